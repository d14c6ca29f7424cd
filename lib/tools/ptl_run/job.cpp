#include "lib/tools/ptl_run/job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace portofu::tools {
namespace {

/// Signals that ask for the end of the job. Who ignored one of them when starting us wants it ignored.
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// Signals that only pass through.
constexpr int kPassedSignals[] = {SIGUSR1, SIGUSR2, SIGWINCH};

std::uint64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void say(const std::string& text) { write_all(STDERR_FILENO, "ptl_run: " + text + '\n'); }

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool is_ending_signal(int number) {
  return std::find(std::begin(kEndingSignals), std::end(kEndingSignals), number) != std::end(kEndingSignals);
}

std::string signal_text(int number) { return "signal " + std::to_string(number) + " (" + strsignal(number) + ')'; }

}  // namespace

Job::Job(JobOptions options)
    : options_(std::move(options)), pmi_(options_.size, "kvs_ptl_run_" + std::to_string(getpid())) {
  context_.command = options_.command;
  context_.size = options_.size;
  context_.takes_output = options_.label;
}

Job::~Job() {
  for (Rank& rank : ranks_) close_dialogue(rank);
  if (signal_fd_ >= 0) close(signal_fd_);
}

int Job::run() {
  if (!prepare()) return kLauncherFailed;
  if (!start_ranks()) return exit_status_;
  while (running_count() > 0) {
    wait_for_something();
    take_signals();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (polled_[1 + i].revents != 0) talk(ranks_[i], static_cast<int>(i));
    }
    for (std::size_t i = 0; i < relays_.size(); ++i) {
      if (polled_[1 + ranks_.size() + i].revents != 0) relays_[i]->carry();
    }
    reap_ranks();
    kill_late_ranks();
  }
  drain_output();
  return exit_status_;
}

// ---- Beginning -----------------------------------------------------------------------------------------------------

bool Job::prepare() {
  // Below are stdin, stdout and stderr; were one of them closed, a channel would get its number.
  for (int fd = 0; fd >= 0 && fd <= STDERR_FILENO;) fd = open("/dev/null", O_RDWR);
  getrlimit(RLIMIT_NOFILE, &context_.open_files);
  rlimit more = context_.open_files;
  more.rlim_cur = more.rlim_max;  // Three descriptors a rank; the ranks get the old limit back.
  setrlimit(RLIMIT_NOFILE, &more);
  signal(SIGPIPE, SIG_IGN);
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : kEndingSignals) {
    if (!is_ignored(number)) sigaddset(&taken, number);
  }
  for (const int number : kPassedSignals) sigaddset(&taken, number);
  for (const int number : {SIGCHLD, SIGTSTP}) sigaddset(&taken, number);
  signal(SIGCHLD, SIG_DFL);  // Were it ignored, the kernel would take ended ranks away.
  sigprocmask(SIG_BLOCK, &taken, &context_.signal_mask);
  signal_fd_ = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signal_fd_ < 0) say(std::string("cannot wait for signals: ") + std::strerror(errno));
  return signal_fd_ >= 0;
}

bool Job::start_ranks() {
  for (int number = 0; number < options_.size; ++number) {
    int error = 0;
    Rank& rank = ranks_.emplace_back();
    rank.process = std::make_unique<RankProcess>(context_, number, &error);
    rank.pmi_fd = rank.process->pmi_fd();
    if (options_.label) {
      const std::string label = '[' + std::to_string(number) + "] ";
      relays_.push_back(std::make_unique<LineRelay>(rank.process->output_fd(), STDOUT_FILENO, label));
      relays_.push_back(std::make_unique<LineRelay>(rank.process->error_fd(), STDERR_FILENO, label));
    }
    if (error == 0 && options_.verbose)
      say("rank " + std::to_string(number) + " is process " + std::to_string(rank.process->pid()));
    if (error == 0) continue;
    say("cannot start '" + options_.command.front() + "' as rank " + std::to_string(number) + ": " +
        std::strerror(error));
    send_to_all(SIGKILL);
    exit_status_ = error == ENOENT ? kNotFound : error == EACCES || error == ENOEXEC ? kCannotExecute : kLauncherFailed;
    return false;  // The kernel takes the killed away when we end; nobody waits for them.
  }
  return true;
}

// ---- The loop ------------------------------------------------------------------------------------------------------

void Job::wait_for_something() {
  polled_.assign(1, {signal_fd_, POLLIN, 0});
  for (const Rank& rank : ranks_)
    polled_.push_back({rank.pmi_fd, static_cast<short>(rank.to_send.empty() ? POLLIN : POLLOUT), 0});
  for (const auto& relay : relays_) polled_.push_back({relay->fd(), POLLIN, 0});
  int timeout_ms = -1;
  if (kill_at_ms_ != 0) timeout_ms = static_cast<int>(kill_at_ms_ - std::min(kill_at_ms_, now_ms()));
  if (poll(polled_.data(), polled_.size(), timeout_ms) < 0) polled_.assign(polled_.size(), {-1, 0, 0});
}

void Job::take_signals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    take_signal(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
}

void Job::take_signal(int number, bool from_terminal) {
  if (number == SIGCHLD) child_ended_ = true;
  if (number == SIGCHLD) return;
  if (number == SIGTSTP) return stop_and_continue();
  // The terminal has sent it to our group already, and with it to a rank that shares it.
  send_to_all(number, !from_terminal);
  if (!is_ending_signal(number)) return;
  if (ending_ && told_) {
    say(signal_text(number) + " while the job is ending: killing all ranks");
    send_to_all(SIGKILL);
    return;
  }
  if (!told_) say(signal_text(number) + ": passed on to all ranks");
  ending_ = told_ = true;
  kill_at_ms_ = now_ms() + static_cast<std::uint64_t>(options_.grace_seconds) * 1000;
}

void Job::stop_and_continue() {
  send_to_all(SIGSTOP);
  kill(getpid(), SIGSTOP);
  send_to_all(SIGCONT);
}

/// Takes one buffer of requests. @return false if there was none
bool Job::talk(Rank& rank, int number) {
  if (rank.pmi_fd < 0 || !send_answers(rank)) return false;
  char buffer[kMaxPmiLineBytes];
  const ssize_t got = read(rank.pmi_fd, buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    close_dialogue(rank);
    return false;
  }
  rank.received.append(buffer, static_cast<std::size_t>(got));
  for (std::size_t end; rank.pmi_fd >= 0 && (end = rank.received.find('\n')) != std::string::npos;) {
    const std::string line = rank.received.substr(0, end);
    rank.received.erase(0, end + 1);
    obey(pmi_.take_line(number, line));
  }
  if (rank.received.size() < kMaxPmiLineBytes) return true;
  end_all(1, "rank " + std::to_string(number) + " sends a PMI request that does not end");
  close_dialogue(rank);
  return false;
}

/// @return false if something is left, or nobody is there any more
bool Job::send_answers(Rank& rank) {
  while (!rank.to_send.empty()) {
    const ssize_t sent = send(rank.pmi_fd, rank.to_send.data(), rank.to_send.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) close_dialogue(rank);
    if (sent < 0) return false;
    rank.to_send.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void Job::close_dialogue(Rank& rank) {
  if (rank.pmi_fd >= 0) close(std::exchange(rank.pmi_fd, -1));
  rank.to_send.clear();
}

void Job::obey(const PmiOutcome& outcome) {
  for (const PmiAnswer& answer : outcome.answers) {
    Rank& rank = ranks_[static_cast<std::size_t>(answer.rank)];
    if (rank.pmi_fd < 0) continue;
    rank.to_send += answer.line;
    send_answers(rank);
  }
  if (outcome.ends_job) end_all(outcome.exit_status, outcome.complaint);
}

// ---- The end -------------------------------------------------------------------------------------------------------

void Job::reap_ranks() {
  if (!std::exchange(child_ended_, false)) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    RankEnd end;
    if (ranks_[i].process->reap(ending_, &end)) note_end(static_cast<int>(i), end);
  }
}

void Job::note_end(int number, const RankEnd& end) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  while (talk(rank, number)) {  // Its last words may explain its end. It sends no more.
  }
  close_dialogue(rank);
  const std::string who = "rank " + std::to_string(number) + " (process " + std::to_string(rank.process->pid()) + ") ";
  const std::string how =
      end.by_signal ? "was ended by " + signal_text(end.number) : "exited with status " + std::to_string(end.number);
  if (options_.verbose) say(who + how);
  if (end.is_bad()) return end_all(end.exit_status(), who + how);
  obey(pmi_.rank_ended(number));
}

void Job::end_all(int exit_status, const std::string& why) {
  if (exit_status_ == 0) exit_status_ = exit_status;
  if (!told_) say(why + (running_count() > 0 ? "; ending the others" : ""));
  told_ = true;
  if (ending_) return;
  ending_ = true;
  send_to_all(SIGTERM);
  send_to_all(SIGCONT);  // A stopped rank would not see it.
  kill_at_ms_ = now_ms() + static_cast<std::uint64_t>(options_.grace_seconds) * 1000;
}

void Job::kill_late_ranks() {
  if (kill_at_ms_ == 0 || now_ms() < kill_at_ms_ || running_count() == 0) return;
  say(std::to_string(running_count()) + " ranks have not ended within " + std::to_string(options_.grace_seconds) +
      " s: killing them");
  send_to_all(SIGKILL);
  kill_at_ms_ = 0;
}

void Job::drain_output() {
  // What descendants that go on may still write is theirs.
  for (const auto& relay : relays_) {
    while (relay->carry()) {
    }
  }
}

/// @param to_ours  false: not to a rank that shares our process group
void Job::send_to_all(int number, bool to_ours) {
  for (const Rank& rank : ranks_) {
    if (to_ours || rank.process->has_own_group()) rank.process->send_signal(number);
  }
}

int Job::running_count() const {
  return static_cast<int>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.process->is_running(); }));
}

}  // namespace portofu::tools
