#include "lib/tools/ptl_run/job.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/door/inspection.h"
#include "lib/tools/ptl_run/signals.h"

namespace portofu::tools {

std::uint64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void say(const std::string& text) {
  write_all(STDERR_FILENO, std::string(program_invocation_short_name) + ": " + text + '\n');
}

Job::Job(JobOptions options)
    : options_(std::move(options)), pmi_(options_.size, "kvs_ptl_run_" + std::to_string(getpid())) {
  context_.command = options_.command;
  context_.size = options_.size;
  context_.local_size = options_.size;
  context_.takes_output = options_.label;
}

Job::~Job() {
  end_hosts();
  for (Rank& rank : ranks_) close_dialogue(rank);
  if (signal_fd_ >= 0) close(std::exchange(signal_fd_, -1));
}

int Job::run() {
  if (!prepare()) return kLauncherFailed;
  if (!(options_.hosts.empty() ? start_ranks() : start_hosts())) return exit_status_;
  if (options_.watcher != nullptr) options_.watcher->begin();
  while (running_count() > 0) {
    wait_for_something();
    take_signals();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (polled_[1 + i].revents != 0) talk(ranks_[i], static_cast<int>(i));
    }
    for (std::size_t i = 0; i < relays_.size(); ++i) {
      if (polled_[1 + ranks_.size() + i].revents != 0) relays_[i]->carry();
    }
    serve_hosts();
    hear_watcher();
    reap_ranks();
    kill_late_ranks();
  }
  if (options_.watcher != nullptr) options_.watcher->end();
  drain_output();
  return exit_status_;
}

// ---- Beginning -----------------------------------------------------------------------------------------------------

bool Job::prepare() {
  signal_fd_ = take_over_signals(&context_);
  if (signal_fd_ < 0) say(std::string("cannot wait for signals: ") + std::strerror(errno));
  return signal_fd_ >= 0 && draw_key();
}

/// A key that the user has chosen stays.
bool Job::draw_key() {
  const char* given = std::getenv("PORTOFU_JOB_KEY");
  if (given != nullptr && *given != '\0') return true;
  std::uint32_t key = 0;
  if (!draw_random(&key, sizeof key)) {
    say(system_failure("getrandom", "the key of the job, and from /dev/urandom,", errno, "set PORTOFU_JOB_KEY"));
    return false;
  }
  setenv("PORTOFU_JOB_KEY", std::to_string(key | 1).c_str(), 1);
  return true;
}

void Job::tell_start(const Rank& rank, int number, const BindingPlan& plan) {
  const bool is_bound = !plan.cpus.empty();
  say("rank " + std::to_string(number) + " is process " + std::to_string(rank.process->pid()) +
      (is_bound ? ", CPUs " + cpu_list_text(plan.cpus[static_cast<std::size_t>(number)]) : ""));
}

bool Job::start_ranks() {
  guard_.start();
  context_.guard_fd = guard_.fd();
  const PlanningTurn turn;
  const BindingPlan plan = plan_binding_here(options_.size);
  if (!plan.is_for_show) context_.cpus = plan.cpus;
  if (options_.verbose) say(plan.words);
  for (int number = 0; number < options_.size; ++number) {
    int error = 0;
    Rank& rank = ranks_.emplace_back();
    rank.process = std::make_unique<RankProcess>(context_, number, &error);
    rank.pmi_fd = rank.process->pmi_fd();
    rank.pid = rank.process->pid();
    if (options_.label) {
      const std::string label = '[' + std::to_string(number) + "] ";
      const auto writer = [this](int fd) { return [this, fd](std::string_view text) { put_out(fd, text); }; };
      relays_.push_back(std::make_unique<LineRelay>(rank.process->output_fd(), writer(STDOUT_FILENO), label));
      relays_.push_back(std::make_unique<LineRelay>(rank.process->error_fd(), writer(STDERR_FILENO), label));
    }
    if (error == 0 && options_.verbose) tell_start(rank, number, plan);
    if (error == 0) continue;
    rank.running = false;
    refuse_start(number, error);
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
  poll_hosts();
  if (options_.watcher != nullptr && !ending_) polled_.push_back({options_.watcher->complaint_fd(), POLLIN, 0});
  std::uint64_t next_ms = UINT64_MAX;
  for (const std::uint64_t due_ms : {kill_at_ms_, slow_at_ms_}) {
    if (due_ms != 0) next_ms = std::min(next_ms, due_ms);
  }
  const int timeout_ms = next_ms == UINT64_MAX ? -1 : static_cast<int>(next_ms - std::min(next_ms, now_ms()));
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
    is_killed_ = true;
    send_to_all(SIGKILL);
    return;
  }
  if (!told_) say(signal_text(number) + ": passed on to all ranks");
  ending_ = told_ = is_asked_to_end_ = true;
  abandon_start(number);
  kill_at_ms_ = now_ms() + static_cast<std::uint64_t>(options_.grace_seconds) * 1000;
}

/// Its place among what is polled is the last.
void Job::hear_watcher() {
  if (options_.watcher == nullptr || ending_ || polled_.back().fd != options_.watcher->complaint_fd()) return;
  if (polled_.back().revents != 0) end_all(kLauncherFailed, options_.watcher->complaint());
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
  return take_requests(rank, number, {buffer, static_cast<std::size_t>(got)});
}

/// @return false if the dialogue is over
bool Job::take_requests(Rank& rank, int number, std::string_view bytes) {
  rank.received.append(bytes);
  const auto goes_on = [&rank] { return rank.host != nullptr || rank.pmi_fd >= 0; };
  for (std::size_t end; goes_on() && (end = rank.received.find('\n')) != std::string::npos;) {
    const std::string line = rank.received.substr(0, end);
    rank.received.erase(0, end + 1);
    obey(pmi_.take_line(number, line));
    if (options_.watcher != nullptr && pmi_.state(number) == PmiState::kAtBarrier)
      options_.watcher->rank_meets(number, true);
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
    if (options_.watcher != nullptr) options_.watcher->rank_meets(answer.rank, false);
    if (rank.host != nullptr && rank.running)
      rank.host->stream->send(FrameKind::kPmi, static_cast<std::uint32_t>(answer.rank), answer.line);
    if (rank.pmi_fd < 0) continue;
    rank.to_send += answer.line;
    send_answers(rank);
  }
  if (outcome.ends_job) end_all(outcome.exit_status, outcome.complaint);
}

/// Hears signals until whoever reads our output takes some. A job that was asked to end waits for that as long as for
/// its ranks.
/// @return false if it waits no longer
bool Job::wait_for_room(int fd) {
  while (true) {
    const std::uint64_t now = now_ms();
    const bool ends = is_asked_to_end_ && kill_at_ms_ != 0;
    pollfd either[] = {{fd, POLLOUT, 0}, {signal_fd_, POLLIN, 0}};
    if (poll(either, 2, ends ? static_cast<int>(kill_at_ms_ - std::min(kill_at_ms_, now)) : -1) < 0) continue;
    if (either[0].revents != 0) return true;
    if (either[1].revents != 0) take_signals();
    output_lost_ = output_lost_ || is_killed_ || (ends && now >= kill_at_ms_);
    if (output_lost_) return false;
  }
}

/// Writes what ranks have written. A job whose output nobody takes ends, as its ranks would if they wrote it
/// themselves.
void Job::put_out(int fd, std::string_view text) {
  if (output_lost_ && fd == STDOUT_FILENO) return;
  int error = 0;
  while (error == 0 && !text.empty()) {
    if (!wait_for_room(fd)) return;
    // So much a pipe takes at once, if it takes anything.
    const std::string_view part = text.substr(0, PIPE_BUF);
    text.remove_prefix(part.size());
    error = write_all(fd, part);
  }
  if (error == 0 || fd != STDOUT_FILENO) return;  // That standard error is lost can be told nobody.
  output_lost_ = true;
  end_all(error == EPIPE ? 128 + SIGPIPE : kLauncherFailed,
          std::string("standard output cannot be written: ") + std::strerror(error));
}

// ---- The end -------------------------------------------------------------------------------------------------------

void Job::reap_ranks() {
  if (!std::exchange(child_ended_, false)) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    RankEnd end;
    if (ranks_[i].process == nullptr || !ranks_[i].process->reap(ending_, &end)) continue;
    guard_.remove(ranks_[i].pid);
    note_end(static_cast<int>(i), end);
  }
}

void Job::note_end(int number, const RankEnd& end) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  while (talk(rank, number)) {  // Its last words may explain its end. It sends no more.
  }
  close_dialogue(rank);
  rank.running = false;
  if (options_.watcher != nullptr) options_.watcher->rank_ended(number);
  const std::string how =
      end.by_signal ? "was ended by " + signal_text(end.number) : "exited with status " + std::to_string(end.number);
  if (options_.verbose) say(who(number) + how);
  if (end.is_bad()) return end_all(end.exit_status(), who(number) + how);
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
  if (!hosts_.empty()) slow_at_ms_ = now_ms() + kHostEndsMs;
}

void Job::drain_output() {
  // What descendants that go on may still write is theirs.
  for (const auto& relay : relays_) relay->carry_rest();
  relays_.clear();  // Lines that have no end are written, too.
}

/// @param to_ours  false: not to a rank that shares our process group
void Job::send_to_all(int number, bool to_ours) {
  for (const Rank& rank : ranks_) {
    if (rank.process != nullptr && (to_ours || rank.process->has_own_group())) rank.process->send_signal(number);
  }
  for (const auto& link : hosts_) {
    if (link->state == HostState::kRunning) link->stream->send(FrameKind::kSignal, 0, pack_numbers(number, 0));
  }
}

std::string Job::who(int number) const {
  const Rank& rank = ranks_[static_cast<std::size_t>(number)];
  return (options_.is_launcher ? "the launcher" : "rank " + std::to_string(number)) + " (process " +
         std::to_string(rank.pid) + (rank.host != nullptr ? " on " + rank.host->host.name : "") + ") ";
}

/// Nobody can start the program of a rank.
void Job::refuse_start(int number, int error) {
  const HostLink* host = ranks_[static_cast<std::size_t>(number)].host;
  if (exit_status_ == 0) {
    say("cannot start '" + options_.command.front() + "' as rank " + std::to_string(number) +
        (host != nullptr ? " on " + host->host.name : "") + ": " + std::strerror(error));
    exit_status_ = error == ENOENT ? kNotFound : error == EACCES || error == ENOEXEC ? kCannotExecute : kLauncherFailed;
  }
  ending_ = told_ = true;
  send_to_all(SIGKILL);
  if (!hosts_.empty()) slow_at_ms_ = now_ms() + kHostEndsMs;
}

int Job::running_count() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; }));
}

}  // namespace portofu::tools
