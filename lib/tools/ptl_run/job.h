#pragma once
// A job: its ranks, their PMI dialogue and output, and how it ends. The loop that owns all transitions is Job::run.

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/tools/ptl_run/binding.h"
#include "lib/tools/ptl_run/group_guard.h"
#include "lib/tools/ptl_run/host_link.h"
#include "lib/tools/ptl_run/job_watcher.h"
#include "lib/tools/ptl_run/line_relay.h"
#include "lib/tools/ptl_run/pmi_server.h"
#include "lib/tools/ptl_run/rank_process.h"

namespace portofu::tools {

inline constexpr int kMaxRankCount = 4096;
inline constexpr int kMaxGraceSeconds = 3600;

/// Exit statuses of the launcher itself, those of env(1) and timeout(1).
inline constexpr int kCheckHasFindings = 123;  ///< Every rank exits with 0, but --check has found something.
inline constexpr int kLauncherFailed = 125;
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

/// Bounds of waiting for a host: until its helper says its address, and until it says that its killed ranks have ended.
inline constexpr std::uint64_t kHostStartsMs = 60'000;
inline constexpr std::uint64_t kHostEndsMs = 5'000;

struct JobOptions {
  std::vector<std::string> command;
  int size = 1;
  bool is_launcher = false;              ///< The one process starts the ranks itself.
  bool label = false;                    ///< Each line of output begins with its rank.
  bool verbose = false;                  ///< Starts and ends of ranks are told.
  int grace_seconds = 5;                 ///< Between SIGTERM and SIGKILL.
  std::vector<JobHost> hosts;            ///< Where ranks run, with counts; empty: all on this node.
  std::vector<std::string> agent;        ///< Words of the command that runs another on a host; empty: none is needed.
  bool agent_for_all = false;            ///< Also for the host that this process runs on.
  std::vector<std::string> environment;  ///< NAME=VALUE, for ranks on hosts.
  JobWatcher* watcher = nullptr;         ///< nullptr: nobody; it outlives the job. Not with hosts.
};

/// For people, on standard error, behind the name of the tool.
void say(const std::string& text);

/// Milliseconds of a clock that never goes back.
std::uint64_t now_ms();

/// One job, run once, by a process with one thread.
class Job {
 public:
  explicit Job(JobOptions options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// @return exit status for the launcher: 0, or that of the first rank that ended badly
  int run();

 private:
  /// A rank with its ends of things.
  struct Rank {
    std::unique_ptr<RankProcess> process;  ///< nullptr: it is on `host`.
    HostLink* host = nullptr;              ///< nullptr: it is on this node.
    pid_t pid = 0;                         ///< There.
    bool running = true;
    int pmi_fd = -1;       ///< -1 on a host, and once the dialogue is over.
    std::string received;  ///< The beginning of a line; below kMaxPmiLineBytes.
    std::string to_send;   ///< Answers that the socket had no room for; requests wait meanwhile.
  };

  bool prepare();
  static bool draw_key();
  bool start_ranks();
  static void tell_start(const Rank& rank, int number, const BindingPlan& plan);
  void wait_for_something();
  void take_signals();
  void take_signal(int number, bool from_terminal);
  void hear_watcher();
  void stop_and_continue();
  bool talk(Rank& rank, int number);
  bool take_requests(Rank& rank, int number, std::string_view bytes);
  bool send_answers(Rank& rank);
  void close_dialogue(Rank& rank);
  void obey(const PmiOutcome& outcome);
  bool wait_for_room(int fd);
  void put_out(int fd, std::string_view text);
  void reap_ranks();
  void note_end(int number, const RankEnd& end);
  void refuse_start(int number, int error);
  void end_all(int exit_status, const std::string& why);
  void kill_late_ranks();
  void drain_output();
  void send_to_all(int number, bool to_ours = true);
  int running_count() const;
  std::string who(int number) const;

  // Ranks on hosts (job_hosts.cpp).
  bool start_hosts();
  void poll_hosts();
  void serve_hosts();
  void take_frame(HostLink& link, const Frame& frame);
  void send_plans();
  void abandon_start(int number);
  std::string hosts_text() const;
  void feed_input();
  void lose_host(HostLink& link, const std::string& why);
  void lose_slow_hosts();
  void end_hosts();

  JobOptions options_;
  LaunchContext context_;
  GroupGuard guard_;
  PmiServer pmi_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<LineRelay>> relays_;
  std::vector<std::unique_ptr<HostLink>> hosts_;
  std::uint64_t slow_at_ms_ = 0;       ///< When a host that has not said its address, or ended, is lost; 0: never.
  std::size_t input_under_way_ = 0;    ///< Bytes for rank 0 that its host has not taken.
  bool input_ended_ = false;           ///< Nothing more is read from standard input.
  std::size_t first_host_polled_ = 0;  ///< In polled_: two a host, then standard input.
  int signal_fd_ = -1;
  std::vector<pollfd> polled_;    ///< The signals, one a rank, one a relay, hosts; -1 where there is nothing.
  bool child_ended_ = false;      ///< SIGCHLD has come since the last look.
  bool ending_ = false;           ///< SIGTERM is sent, or the user has asked for the end.
  bool told_ = false;             ///< Why it ends has been said; what follows from it is not said.
  bool is_asked_to_end_ = false;  ///< By a signal.
  bool is_killed_ = false;        ///< By a second one.
  bool output_lost_ = false;      ///< Standard output takes no more.
  int exit_status_ = 0;           ///< First bad one.
  std::uint64_t kill_at_ms_ = 0;  ///< 0: nobody is to be killed; monotonic clock.
};

}  // namespace portofu::tools
