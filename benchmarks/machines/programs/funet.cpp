// The pattern of the thesis' matrix product (6.2.2) on active messages: each node fetches columns of others one after
// the other, and computes with one while the next is under way. The computing is a time, and no numbers: in virtual
// time a wait for what never comes takes what it says. Every so often the node handles what others ask of it.
//
//   ptl_sim --machine funet --nodes 4 ./machines_program_funet COLUMNS MILLISECONDS

#include <cmam.h>
#include <funi.h>
#include <portals4.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kWords = 256;  // Of a column: 128 doublewords.
constexpr int kBytes = kWords * 4;

alignas(64) std::uint32_t own_column[kWords];
alignas(64) std::uint32_t fetched[2][kWords];
std::uint32_t fetched_address[2];
int failure = FUNI_SUCCESS;

void require(bool is_good, const char* what) {
  if (is_good) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

int end_transfer(void* arrived, void*) {
  ++*static_cast<int*>(arrived);
  return 0;
}

/// At the owner of a column.
void send_column(int who, int segment, int address, int) {
  const int error =
      cmam_reply_mfer(who, static_cast<unsigned>(segment), own_column, static_cast<std::uint32_t>(address), kBytes);
  if (error != FUNI_SUCCESS) failure = error;
}

void fetch(int owner, int buffer, int* arrived) {
  const int segment = cmam_open_segment(fetched[buffer], kBytes, end_transfer, arrived);
  require(segment >= 0, "cmam_open_segment");
  require(cmam_4(owner, send_column, cmam_self_address(), segment, static_cast<int>(fetched_address[buffer]), 0) ==
              FUNI_SUCCESS,
          "cmam_4");
}

/// Time passes.
class Computer {
 public:
  Computer() {
    require(PtlInit() == PTL_OK && PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                                             nullptr, &ni_) == PTL_OK,
            "PtlNIInit");
    require(PtlEQAlloc(ni_, 1, &silent_) == PTL_OK, "PtlEQAlloc");
  }

  void compute(int milliseconds) const {
    for (int i = 0; i < milliseconds; ++i) {
      ptl_event_t event{};
      unsigned which = 0;
      require(PtlEQPoll(&silent_, 1, 1, &event, &which) == PTL_EQ_EMPTY, "PtlEQPoll");
      require(cmam_poll() == FUNI_SUCCESS && failure == FUNI_SUCCESS, "cmam_poll");
    }
  }

 private:
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t silent_ = PTL_INVALID_HANDLE;
};

void play(int columns, int milliseconds) {
  const Computer computer;
  const int nodes = cmam_partition_size();
  const auto owner_of = [&](int column) { return (cmam_self_address() + 1 + column % (nodes - 1)) % nodes; };
  int arrived = 0;
  fetch(owner_of(0), 0, &arrived);
  for (int column = 0; column < columns; ++column) {
    require(cmam_wait(&arrived, 1) == FUNI_SUCCESS, "cmam_wait");
    const auto sender = static_cast<std::uint32_t>(owner_of(column));
    for (const std::uint32_t word : fetched[column % 2]) require(word == sender, "a column is of somebody else");
    if (column + 1 < columns) fetch(owner_of(column + 1), (column + 1) % 2, &arrived);
    computer.compute(milliseconds);
  }
}

}  // namespace

int main(int count, char** arguments) {
  funi_t ni = nullptr;
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;
  require(count == 3, "usage: machines_program_funet COLUMNS MILLISECONDS");
  require(funi_open_job(nullptr, &ni, &node, &nodes) == FUNI_SUCCESS && nodes > 1, "it is no job of two or more");
  for (std::uint32_t& word : own_column) word = node;
  std::uint32_t address = 0;
  require(funi_map(ni, own_column, sizeof own_column, &address) == FUNI_SUCCESS, "funi_map");
  for (int i = 0; i < 2; ++i)
    require(funi_map(ni, fetched[i], sizeof fetched[i], &fetched_address[i]) == FUNI_SUCCESS, "funi_map");
  require(cmam_open(ni, node, nodes) == FUNI_SUCCESS && cmam_barrier() == FUNI_SUCCESS, "cmam_open");
  play(std::atoi(arguments[1]), std::atoi(arguments[2]));
  require(cmam_barrier() == FUNI_SUCCESS, "cmam_barrier");
  require(cmam_close() == FUNI_SUCCESS && funi_close(ni) == FUNI_SUCCESS, "funi_close");
  return 0;
}
