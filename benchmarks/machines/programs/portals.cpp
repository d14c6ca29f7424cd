// What programs measure on BXI: messages between two ranks, to and fro or one after the other. Times are not taken
// here: who runs it in virtual time has those of the messages.
//
//   ptl_sim --machine bxi2 --nodes 2 ./machines_program_portals put|stream BYTES COUNT

#include <portals4.h>

#include <cstring>
#include <vector>

#include "benchmarks/machines/programs/pmi.h"

namespace portofu::machines {
namespace {

constexpr ptl_pt_index_t kPt = 3;

/// A rank whose memory anybody may put to, and a counter of what has come.
class Rank {
 public:
  explicit Rank(std::size_t bytes) : out_(bytes), in_(bytes) {
    ptl_process_t self{};
    require(PtlInit() == PTL_OK, "PtlInit");
    require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni_) ==
                PTL_OK,
            "PtlNIInit");
    require(PtlGetPhysId(ni_, &self) == PTL_OK && PtlCTAlloc(ni_, &counter_) == PTL_OK, "no counter");
    ptl_pt_index_t pt = 0;
    require(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, kPt, &pt) == PTL_OK && pt == kPt, "PtlPTAlloc");
    const ptl_le_t le{in_.data(), bytes, counter_, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    require(PtlLEAppend(ni_, kPt, &le, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK, "PtlLEAppend");
    const ptl_md_t md{out_.data(), bytes, 0, PTL_EQ_NONE, PTL_CT_NONE};
    require(PtlMDBind(ni_, &md, &md_) == PTL_OK, "PtlMDBind");
    pmi_.tell(std::to_string(self.phys.nid) + ':' + std::to_string(self.phys.pid));
    require(std::sscanf(pmi_.word_of(1 - pmi_.rank).c_str(), "%u:%u", &peer_.phys.nid, &peer_.phys.pid) == 2,
            "the peer has told nothing");
  }

  bool is_first() const { return pmi_.rank == 0; }
  void put() { require(PtlPut(md_, 0, out_.size(), PTL_NO_ACK_REQ, peer_, kPt, 0, 0, nullptr, 0) == PTL_OK, "PtlPut"); }
  void await(ptl_size_t count) {
    ptl_ct_event_t event{};
    require(PtlCTWait(counter_, count, &event) == PTL_OK && event.failure == 0, "PtlCTWait");
  }
  void end() {
    pmi_.barrier();
    PtlNIFini(ni_);
    PtlFini();
  }

 private:
  Pmi pmi_;
  std::vector<char> out_;
  std::vector<char> in_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_ct_t counter_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  ptl_process_t peer_{};
};

int play(bool is_stream, std::size_t bytes, ptl_size_t count) {
  Rank rank(bytes);
  if (is_stream && !rank.is_first()) rank.await(count);
  for (ptl_size_t i = 1; i <= count; ++i) {
    if (rank.is_first()) rank.put();
    if (!is_stream) rank.await(i);
    if (!is_stream && !rank.is_first()) rank.put();
  }
  rank.end();
  return 0;
}

}  // namespace
}  // namespace portofu::machines

int main(int count, char** arguments) {
  const bool is_stream = count == 4 && std::strcmp(arguments[1], "stream") == 0;
  if (count != 4 || (!is_stream && std::strcmp(arguments[1], "put") != 0)) {
    std::fprintf(stderr, "usage: machines_program_portals put|stream BYTES COUNT\n");
    return 2;
  }
  return portofu::machines::play(is_stream, static_cast<std::size_t>(std::atol(arguments[2])),
                                 static_cast<ptl_size_t>(std::atol(arguments[3])));
}
