#pragma once
// One process of a job: started with its end of the PMI dialogue, signalled, and taken away when it has ended.

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace portofu::tools {

/// What the launcher was given, and what every rank gets unchanged.
struct LaunchContext {
  std::vector<std::string> command;    ///< Program and arguments; not empty.
  int size = 1;                        ///< Number of ranks of the job.
  int first_rank = 0;                  ///< Of those that are started here,
  int local_size = 1;                  ///< and their number.
  std::vector<std::vector<int>> cpus;  ///< Of each rank that is started here; empty: none is bound.
  int guard_fd = -1;                   ///< Of a GroupGuard; -1: there is none.
  int input_fd = -1;                   ///< Standard input of rank 0; -1: the launcher's own.
  bool takes_output = false;           ///< stdout and stderr of the ranks go through pipes.
  sigset_t signal_mask{};              ///< As it was when the launcher began.
  rlimit open_files{};                 ///< The same.
};

/// How a rank has ended.
struct RankEnd {
  bool by_signal = false;
  int number = 0;  ///< Signal or exit status.

  bool is_bad() const { return number != 0; }
  int exit_status() const { return by_signal ? 128 + number : number; }
};

/// Descriptors of the launcher's side are the caller's to close.
class RankProcess {
 public:
  /// Forks and executes.
  /// @param rank        0 <= rank < context.size; rank 0 reads what the context says, the others nothing
  /// @param exec_error  set to errno if the program could not be started, else 0
  RankProcess(const LaunchContext& context, int rank, int* exec_error);

  pid_t pid() const { return pid_; }
  int pmi_fd() const { return pmi_fd_; }        ///< Launcher's end of the dialogue; -1 if the process was not started.
  int output_fd() const { return output_fd_; }  ///< Read end of its stdout; -1 without takes_output.
  int error_fd() const { return error_fd_; }    ///< Read end of its stderr; -1 without takes_output.
  bool has_own_group() const { return group_ > 0; }

  /// To the process and its descendants, if it runs.
  void send_signal(int number) const;

  /// Looks whether it has ended, and takes it away if so.
  /// @param kill_rest  its descendants are killed, too
  /// @return true once, when it has ended
  bool reap(bool kill_rest, RankEnd* end);

 private:
  void kill_group(int number) const;

  pid_t pid_ = -1;
  pid_t group_ = -1;  ///< Process group that is signalled; -1: the process alone, which shares ours.
  int pmi_fd_ = -1;
  int output_fd_ = -1;
  int error_fd_ = -1;
  bool running_ = false;
};

}  // namespace portofu::tools
