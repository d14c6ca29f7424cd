// Between fork and exec this process has one thread, so the child may use whatever it likes.

#include "lib/tools/ptl_run/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "lib/tools/arguments.h"
#include "lib/tools/ptl_run/binding.h"
#include "lib/tools/ptl_run/group_guard.h"
#include "lib/tools/ptl_run/job.h"

namespace portofu::tools {
namespace {

/// Both ends of something; -1 where there is nothing.
struct Ends {
  int launcher = -1;
  int rank = -1;
};

struct Channels {
  Ends pmi;
  Ends output;
  Ends error;
  Ends exec_error;  ///< The rank's end closes when exec succeeds, else errno comes.
};

Ends make_pipe(int launcher_flags) {
  int fds[2] = {-1, -1};
  if (pipe2(fds, O_CLOEXEC) != 0) return {};
  if (launcher_flags != 0) fcntl(fds[0], F_SETFL, launcher_flags);
  return {fds[0], fds[1]};
}

bool open_channels(bool takes_output, Channels* channels) {
  int sockets[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return false;
  fcntl(sockets[0], F_SETFL, O_NONBLOCK);
  channels->pmi = {sockets[0], sockets[1]};
  channels->exec_error = make_pipe(0);
  if (takes_output) {
    channels->output = make_pipe(O_NONBLOCK);
    channels->error = make_pipe(O_NONBLOCK);
  }
  return channels->exec_error.rank >= 0 && (!takes_output || (channels->output.rank >= 0 && channels->error.rank >= 0));
}

void close_if_open(int fd) {
  if (fd >= 0) close(fd);
}

void set_environment(const LaunchContext& context, int rank, int pmi_fd) {
  // What another launcher has said to the one that started us is not true for our ranks.
  for (const char* name : {"PMI_PORT", "PMI_ID", "PMI_KVSNAME", "PMI_SPAWNED"}) unsetenv(name);
  const std::string size = std::to_string(context.size);
  const std::string own = std::to_string(rank);
  setenv("PMI_FD", std::to_string(pmi_fd).c_str(), 1);
  setenv("PMI_RANK", own.c_str(), 1);
  setenv("PMI_SIZE", size.c_str(), 1);
  setenv("MPI_LOCALRANKID", std::to_string(rank - context.first_rank).c_str(), 1);
  setenv("MPI_LOCALNRANKS", std::to_string(context.local_size).c_str(), 1);
}

void bind_rank(const LaunchContext& context, int rank) {
  const std::vector<int>& cpus = context.cpus[static_cast<std::size_t>(rank - context.first_rank)];
  if (bind_to_cpus(cpus)) return;
  say("rank " + std::to_string(rank) + " runs anywhere: it cannot be bound to CPUs " + cpu_list_text(cpus) + ": " +
      std::strerror(errno));
}

[[noreturn]] void become_rank(const LaunchContext& context, int rank, const Channels& channels, bool own_group,
                              pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);  // The launcher died before the line above.
  if (own_group) {
    setpgid(0, 0);
    GroupGuard::add_own_group(context.guard_fd);
  }
  if (!context.cpus.empty()) bind_rank(context, rank);
  fcntl(channels.pmi.rank, F_SETFD, 0);
  set_environment(context, rank, channels.pmi.rank);
  if (rank == 0 && context.input_fd >= 0) dup2(context.input_fd, STDIN_FILENO);
  if (rank != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
  }
  if (channels.output.rank >= 0) dup2(channels.output.rank, STDOUT_FILENO);
  if (channels.error.rank >= 0) dup2(channels.error.rank, STDERR_FILENO);
  setrlimit(RLIMIT_NOFILE, &context.open_files);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &context.signal_mask, nullptr);
  const std::vector<char*> arguments = argument_pointers(context.command);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  // Nobody waits for more than this one number.
  if (write(channels.exec_error.rank, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

/// Waits until exec has succeeded or failed. @return errno of exec
int wait_for_exec(int fd) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

RankProcess::RankProcess(const LaunchContext& context, int rank, int* exec_error) {
  Channels channels;
  const bool opened = open_channels(context.takes_output, &channels);
  // A process in another group than the terminal's cannot read from it: rank 0 then stays in ours.
  const bool own_group = rank != 0 || context.input_fd >= 0 || isatty(STDIN_FILENO) == 0;
  const pid_t launcher = getpid();
  *exec_error = opened ? 0 : errno;
  if (opened) pid_ = fork();
  if (opened && pid_ < 0) *exec_error = errno;
  if (pid_ == 0) become_rank(context, rank, channels, own_group, launcher);
  for (const int fd : {channels.pmi.rank, channels.output.rank, channels.error.rank, channels.exec_error.rank})
    close_if_open(fd);
  if (pid_ > 0) {
    if (own_group) {
      setpgid(pid_, pid_);  // Both sides do it, so that neither has to wait for the other.
      group_ = pid_;
    }
    *exec_error = wait_for_exec(channels.exec_error.launcher);
    running_ = true;
  }
  close_if_open(channels.exec_error.launcher);
  pmi_fd_ = channels.pmi.launcher;
  output_fd_ = channels.output.launcher;
  error_fd_ = channels.error.launcher;
}

void RankProcess::kill_group(int number) const { kill(group_ > 0 ? -group_ : pid_, number); }

void RankProcess::send_signal(int number) const {
  if (running_) kill_group(number);
}

bool RankProcess::reap(bool kill_rest, RankEnd* end) {
  if (!running_) return false;
  siginfo_t info{};
  // First a look that leaves it a zombie: while it is one, nobody else can get its number.
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
  *end = {.by_signal = info.si_code != CLD_EXITED, .number = info.si_status};
  if (kill_rest || end->is_bad()) kill_group(SIGKILL);
  waitpid(pid_, nullptr, 0);
  running_ = false;
  return true;
}

}  // namespace portofu::tools
