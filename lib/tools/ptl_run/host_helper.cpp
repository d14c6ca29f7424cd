#include "lib/tools/ptl_run/host_helper.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "engine/config/settings.h"
#include "engine/door/inspection.h"
#include "lib/tools/ptl_run/binding.h"
#include "lib/tools/ptl_run/signals.h"

namespace portofu::tools {
namespace {

/// While so much waits for the launcher nothing is taken from the ranks.
constexpr std::size_t kMostQueuedBytes = 1u << 20;

constexpr std::size_t kFirstRankPolled = 4;

/// Takes a standard descriptor for itself and leaves nothing in its place.
int take_standard(int fd) {
  const int taken = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, fd);
  if (nothing > STDERR_FILENO) close(nothing);
  return taken;
}

}  // namespace

HostHelper::HostHelper() {
  signal_fd_ = take_over_signals(&context_);
  const int input = take_standard(STDIN_FILENO);
  stream_ = std::make_unique<FrameStream>(input, take_standard(STDOUT_FILENO), false);
  context_.takes_output = true;
}

HostHelper::~HostHelper() {
  for (const Rank& rank : ranks_) {
    if (rank.pmi_fd >= 0) close(rank.pmi_fd);
  }
  for (const int fd : {signal_fd_, hosts_fd_, input_fd_}) {
    if (fd >= 0) close(fd);
  }
}

int HostHelper::run() {
  if (signal_fd_ < 0) return 1;
  stream_->greet();
  for (bool connected = true; connected;) {
    wait_for_something();
    connected = take_signals();
    if (polled_[1].revents != 0) connected = stream_->receive() && connected;
    while (const auto frame = stream_->take()) connected = obey(*frame) && connected;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      const pollfd* polled = kFirstRankPolled + 3 * i < polled_.size() ? &polled_[kFirstRankPolled + 3 * i] : nullptr;
      if (polled == nullptr) continue;  // Started just now.
      if (polled[0].revents != 0) take_pmi(rank, rank_number(i));
      if (polled[1].revents != 0) rank.output->carry();
      if (polled[2].revents != 0) rank.error->carry();
    }
    feed_input();
    reap_ranks();
    connected = stream_->flush() && connected;
  }
  signal_ranks(SIGKILL);
  return 0;
}

void HostHelper::wait_for_something() {
  const bool full = stream_->queued_bytes() > kMostQueuedBytes;
  polled_.assign(1, {signal_fd_, POLLIN, 0});
  polled_.push_back({stream_->read_fd(), POLLIN, 0});
  polled_.push_back({stream_->queued_bytes() > 0 ? stream_->write_fd() : -1, POLLOUT, 0});
  polled_.push_back({input_.empty() ? -1 : input_fd_, POLLOUT, 0});
  for (const Rank& rank : ranks_) {
    const bool waits = full && rank.to_send.empty();
    polled_.push_back({waits ? -1 : rank.pmi_fd, static_cast<short>(rank.to_send.empty() ? POLLIN : POLLOUT), 0});
    polled_.push_back({full ? -1 : rank.output->fd(), POLLIN, 0});
    polled_.push_back({full ? -1 : rank.error->fd(), POLLIN, 0});
  }
  if (poll(polled_.data(), polled_.size(), -1) < 0) polled_.assign(polled_.size(), {-1, 0, 0});
}

/// @return false if we were asked to end
bool HostHelper::take_signals() {
  bool goes_on = true;
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) child_ended_ = true;
    if (is_ending_signal(static_cast<int>(info.ssi_signo))) goes_on = false;
  }
  return goes_on;
}

/// @return false if the launcher says what makes no sense
bool HostHelper::obey(const Frame& frame) {
  std::int32_t number = 0;
  std::int32_t unused = 0;
  const auto index = static_cast<std::size_t>(static_cast<int>(frame.rank) - plan_.first_rank);
  switch (frame.kind) {
    case FrameKind::kHost: return begin(frame.payload);
    case FrameKind::kJob: return ranks_.empty() && start_ranks(frame.payload);
    case FrameKind::kPmi:
      if (index >= ranks_.size()) return false;
      ranks_[index].to_send += frame.payload;
      send_answers(ranks_[index]);
      return true;
    case FrameKind::kSignal:
      if (!unpack_numbers(frame.payload, &number, &unused)) return false;
      signal_ranks(number);
      return true;
    case FrameKind::kInput:
      input_ += frame.payload;
      input_ended_ = input_ended_ || frame.payload.empty();
      return true;
    default: return false;
  }
}

bool HostHelper::begin(const std::string& payload) {
  const auto texts = unpack_strings(payload);
  if (!texts || texts->size() != 2) return false;
  address_ = (*texts)[0];
  if (address_.empty()) {
    const Settings settings = read_settings();
    address_ = node_id_text(find_node_id(settings.nid, (*texts)[1].empty() ? settings.interface : (*texts)[1]));
  }
  stream_->send(FrameKind::kHello, 0, address_);
  return true;
}

bool HostHelper::start_ranks(const std::string& payload) {
  const auto plan = unpack_plan(payload);
  if (!plan) return false;
  plan_ = *plan;
  enter_environment(plan_);
  context_.command = plan_.command;
  context_.size = plan_.size;
  context_.first_rank = plan_.first_rank;
  context_.local_size = plan_.count;
  int input[2] = {-1, -1};
  if (plan_.first_rank == 0 && pipe2(input, O_CLOEXEC) == 0) {
    context_.input_fd = input[0];
    input_fd_ = input[1];
    fcntl(input_fd_, F_SETFL, O_NONBLOCK);
  }
  guard_.start();
  context_.guard_fd = guard_.fd();
  const PlanningTurn turn;
  BindingPlan binding = plan_binding_here(plan_.count);
  if (!binding.is_for_show) context_.cpus = std::move(binding.cpus);
  const int entered = chdir(plan_.directory.c_str()) == 0 ? 0 : errno;
  for (int i = 0; i < plan_.count; ++i) {
    if (entered != 0) {
      stream_->send(FrameKind::kStarted, static_cast<std::uint32_t>(plan_.first_rank + i), pack_numbers(0, entered));
    } else {
      start_rank(plan_.first_rank + i);
    }
  }
  if (input[0] >= 0) close(input[0]);
  return true;
}

void HostHelper::enter_environment(const JobPlan& plan) {
  for (const std::string& one : plan.environment) {
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos) setenv(one.substr(0, equals).c_str(), one.c_str() + equals + 1, 1);
  }
  // Where connections share their receives, as over tcp, each process would have 4096 of 16 KiB. What the user says, or
  // the host, stays.
  setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);
  hosts_fd_ = memfd_create("hosts", MFD_CLOEXEC);
  if (hosts_fd_ >= 0) write_all(hosts_fd_, plan.hosts);
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(hosts_fd_);
  setenv("PORTOFU_HOSTS", path.c_str(), 1);
  setenv("PORTOFU_NID", address_.c_str(), 1);
}

void HostHelper::start_rank(int number) {
  int error = 0;
  Rank& rank = ranks_.emplace_back();
  rank.process = std::make_unique<RankProcess>(context_, number, &error);
  rank.pmi_fd = rank.process->pmi_fd();
  const auto name = static_cast<std::uint32_t>(number);
  const std::string label = plan_.label ? '[' + std::to_string(number) + "] " : "";
  const auto relay = [&](int fd, FrameKind kind) {
    return std::make_unique<LineRelay>(
        fd, [this, kind, name](std::string_view text) { stream_->send(kind, name, text); }, label);
  };
  rank.output = relay(rank.process->output_fd(), FrameKind::kOutput);
  rank.error = relay(rank.process->error_fd(), FrameKind::kError);
  stream_->send(FrameKind::kStarted, name, pack_numbers(error == 0 ? rank.process->pid() : 0, error));
}

void HostHelper::signal_ranks(int number) {
  ending_ = ending_ || is_ending_signal(number);
  for (const Rank& rank : ranks_) rank.process->send_signal(number);
}

/// Takes one buffer of requests. @return false if there was none
bool HostHelper::take_pmi(Rank& rank, int number) {
  send_answers(rank);
  if (rank.pmi_fd < 0) return false;
  char buffer[4096];
  const ssize_t got = read(rank.pmi_fd, buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    close(std::exchange(rank.pmi_fd, -1));
    return false;
  }
  stream_->send(FrameKind::kPmi, static_cast<std::uint32_t>(number), {buffer, static_cast<std::size_t>(got)});
  return true;
}

void HostHelper::send_answers(Rank& rank) {
  while (rank.pmi_fd >= 0 && !rank.to_send.empty()) {
    const ssize_t sent = send(rank.pmi_fd, rank.to_send.data(), rank.to_send.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) close(std::exchange(rank.pmi_fd, -1));
    if (sent > 0) rank.to_send.erase(0, static_cast<std::size_t>(sent));
  }
}

void HostHelper::feed_input() {
  std::size_t taken = 0;
  while (!input_.empty()) {
    const ssize_t written = input_fd_ >= 0 ? write(input_fd_, input_.data(), input_.size()) : 0;
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) close(std::exchange(input_fd_, -1));  // It does not read any more.
    const std::size_t done = input_fd_ < 0 ? input_.size() : static_cast<std::size_t>(written);
    input_.erase(0, done);
    taken += done;
  }
  if (taken > 0) stream_->send(FrameKind::kInputTaken, 0, pack_numbers(static_cast<std::int32_t>(taken), 0));
  if (input_ended_ && input_.empty() && input_fd_ >= 0) close(std::exchange(input_fd_, -1));
}

void HostHelper::reap_ranks() {
  if (!std::exchange(child_ended_, false)) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    RankEnd end;
    if (!rank.process->reap(ending_, &end)) continue;
    guard_.remove(rank.process->pid());
    while (take_pmi(rank, rank_number(i))) {  // Its last words may explain its end. It sends no more.
    }
    for (LineRelay* relay : {rank.output.get(), rank.error.get()}) relay->carry_rest();
    stream_->send(FrameKind::kEnded, static_cast<std::uint32_t>(rank_number(i)),
                  pack_numbers(end.by_signal ? 1 : 0, end.number));
  }
}

}  // namespace portofu::tools
