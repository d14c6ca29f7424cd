#pragma once
// ptl_run on another host: starts the ranks there and carries what they say to the launcher, and back. It is started by
// the launch agent, talks over its standard input and output, and ends, with all its ranks, when the launcher is gone.

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/tools/ptl_run/frame.h"
#include "lib/tools/ptl_run/group_guard.h"
#include "lib/tools/ptl_run/line_relay.h"
#include "lib/tools/ptl_run/rank_process.h"

namespace portofu::tools {

/// The option by which ptl_run becomes a helper.
inline constexpr const char* kHelperOption = "--host-helper";

/// One helper, run once, by a process with one thread.
class HostHelper {
 public:
  HostHelper();
  ~HostHelper();
  HostHelper(const HostHelper&) = delete;
  HostHelper& operator=(const HostHelper&) = delete;

  /// @return exit status
  int run();

 private:
  struct Rank {
    std::unique_ptr<RankProcess> process;
    int pmi_fd = -1;
    std::string to_send;  ///< Answers that the socket had no room for.
    std::unique_ptr<LineRelay> output;
    std::unique_ptr<LineRelay> error;
  };

  bool obey(const Frame& frame);
  bool begin(const std::string& payload);
  bool start_ranks(const std::string& payload);
  void enter_environment(const JobPlan& plan);
  void start_rank(int number);
  void signal_ranks(int number);
  void wait_for_something();
  bool take_signals();
  bool take_pmi(Rank& rank, int number);
  void send_answers(Rank& rank);
  void feed_input();
  void reap_ranks();
  int rank_number(std::size_t index) const { return plan_.first_rank + static_cast<int>(index); }

  int signal_fd_ = -1;
  LaunchContext context_;
  GroupGuard guard_;
  std::unique_ptr<FrameStream> stream_;
  std::string address_;  ///< Of this host, dotted.
  JobPlan plan_;
  int hosts_fd_ = -1;  ///< The file that PORTOFU_HOSTS names; it has no other name, and goes when we do.
  std::vector<Rank> ranks_;
  int input_fd_ = -1;           ///< To standard input of rank 0; -1: it is not here, or does not read.
  std::string input_;           ///< What it has not taken.
  bool input_ended_ = false;    ///< Nothing comes any more.
  std::vector<pollfd> polled_;  ///< Signals, frames in, frames out, input; then three a rank. -1 where nothing is.
  bool child_ended_ = false;
  bool ending_ = false;  ///< A signal that asks for the end was passed on.
};

}  // namespace portofu::tools
