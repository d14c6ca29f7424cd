// ptl_ping: the time that a put takes between two processes of this node. They are forked here and play ping-pong;
// every message is seen by the counter of the entry that it arrives in.

#include <portals4.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "lib/tools/man_page.h"

namespace portofu::tools {
namespace {

const ManPage kPage{
    .name = "ptl_ping",
    .sentence = "measure the latency of a put between two processes on this node",
    .synopsis = "[OPTION]...",
    .description =
        "    Starts two processes that send each other a put in turns, checks the last message, and prints\n"
        "    half the time of a round trip: the shortest, the median, and that which 1 in 100 exceeds.\n",
    .rest = "EXIT STATUS\n    0, or 1 if the processes cannot talk to each other, or 2 for a wrong command line.\n"};

constexpr std::size_t kMostBytes = std::size_t{1} << 26;
constexpr int kMostRounds = 100'000'000;
constexpr ptl_pt_index_t kPt = 1;
constexpr ptl_time_t kPatienceMs = 10'000;

struct PingOptions {
  std::size_t bytes = 8;
  int rounds = 10'000;
};

/// One of the two processes.
class Player {
 public:
  explicit Player(std::size_t bytes) : out_(bytes), in_(bytes) {}
  ~Player() { PtlFini(); }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// @param socket  to the other process, for the exchange of addresses
  bool open(int socket) {
    const unsigned int options = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;
    if (PtlInit() != PTL_OK) return false;
    if (PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, nullptr, &ni_) != PTL_OK) return false;
    ptl_pt_index_t pt = 0;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    if (PtlCTAlloc(ni_, &ct_) != PTL_OK || PtlPTAlloc(ni_, 0, PTL_EQ_NONE, kPt, &pt) != PTL_OK) return false;
    const ptl_le_t le{in_.data(), in_.size(), ct_, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
    const ptl_md_t md{out_.data(), out_.size(), 0, PTL_EQ_NONE, PTL_CT_NONE};
    if (PtlLEAppend(ni_, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return false;
    if (PtlMDBind(ni_, &md, &md_) != PTL_OK) return false;
    ptl_process_t self{};
    const ssize_t bytes = sizeof self;
    return PtlGetPhysId(ni_, &self) == PTL_OK && write(socket, &self, sizeof self) == bytes &&
           read(socket, &peer_, sizeof peer_) == bytes;
  }

  bool send(unsigned char value) {
    if (!out_.empty()) out_.front() = out_.back() = value;
    return PtlPut(md_, 0, out_.size(), PTL_NO_ACK_REQ, peer_, kPt, 0, 0, nullptr, 0) == PTL_OK;
  }

  /// Waits until `count` messages have arrived in all. @return false if the other process has given up
  bool receive(ptl_size_t count) {
    ptl_ct_event_t value{};
    unsigned int which = 0;
    return PtlCTPoll(&ct_, &count, 1, kPatienceMs, &value, &which) == PTL_OK && value.failure == 0;
  }

  bool received(unsigned char value) const { return in_.empty() || (in_.front() == value && in_.back() == value); }

 private:
  std::vector<unsigned char> out_;
  std::vector<unsigned char> in_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  ptl_process_t peer_{};
};

/// Answers every message.
int play_pong(const PingOptions& options, int socket) {
  Player player(options.bytes);
  if (!player.open(socket)) return 1;
  for (int round = 1; round <= options.rounds; ++round) {
    const auto value = static_cast<unsigned char>(round);
    if (!player.receive(static_cast<ptl_size_t>(round)) || !player.send(value)) return 1;
  }
  char over = 0;
  return read(socket, &over, 1) == 1 && player.received(static_cast<unsigned char>(options.rounds)) ? 0 : 1;
}

void print_times(const PingOptions& options, std::vector<double>& microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](std::size_t percent) { return microseconds[(microseconds.size() - 1) * percent / 100]; };
  std::printf("%zu bytes, %d round trips: shortest %.2f us, median %.2f us, 99%% below %.2f us\n", options.bytes,
              options.rounds, at(0), at(50), at(99));
}

int play_ping(const PingOptions& options, int socket) {
  using Clock = std::chrono::steady_clock;
  Player player(options.bytes);
  if (!player.open(socket)) return 1;
  std::vector<double> microseconds;
  microseconds.reserve(static_cast<std::size_t>(options.rounds));
  for (int round = 1; round <= options.rounds; ++round) {
    const auto start = Clock::now();
    if (!player.send(static_cast<unsigned char>(round)) || !player.receive(static_cast<ptl_size_t>(round))) return 1;
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / 2);
  }
  if (!player.received(static_cast<unsigned char>(options.rounds)) || write(socket, "e", 1) != 1) return 1;
  print_times(options, microseconds);
  return 0;
}

int play(const PingOptions& options) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    close(sockets[0]);
    _exit(play_pong(options, sockets[1]));
  }
  close(sockets[1]);
  const int failed = play_ping(options, sockets[0]);
  close(sockets[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return failed != 0 || status != 0 ? 1 : 0;
}

}  // namespace
}  // namespace portofu::tools

int main(int argc, char** argv) {
  using namespace portofu::tools;
  PingOptions options;
  CLI::App app;
  app.add_option("-s,--size", options.bytes, "Bytes of a message, 0 to 64 MiB; without it, 8.")
      ->option_text("BYTES")
      ->check(CLI::Range(std::size_t{0}, kMostBytes));
  app.add_option("-n,--count", options.rounds, "Round trips; without it, 10000.")
      ->option_text("COUNT")
      ->check(CLI::Range(1, kMostRounds));
  const int status = parse_command_line(app, kPage, argc, argv, 2);
  if (status >= 0) return status;
  const int failed = play(options);
  if (failed != 0) std::fprintf(stderr, "ptl_ping: the two processes could not talk to each other\n");
  return failed;
}
