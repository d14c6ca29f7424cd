// The part of a job that is about ranks on other hosts: their helpers (host_helper.h) do there what the job itself does
// on this node, and say what has happened; what follows from it is decided here.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "lib/tools/ptl_run/agent.h"
#include "lib/tools/ptl_run/job.h"

namespace portofu::tools {
namespace {

/// Bytes of standard input that may be on their way to rank 0.
constexpr std::size_t kInputWindowBytes = 65536;

constexpr const char* kNonsense = "what it says makes no sense";

}  // namespace

bool Job::start_hosts() {
  std::vector<int> counts;
  for (const JobHost& host : options_.hosts) counts.push_back(host.count);
  pmi_.place_ranks(counts);
  slow_at_ms_ = now_ms() + kHostStartsMs;
  for (const JobHost& host : options_.hosts) {
    HostLink& link = *hosts_.emplace_back(std::make_unique<HostLink>());
    link.host = host;
    link.first_rank = static_cast<int>(ranks_.size());
    for (int i = 0; i < host.count; ++i) ranks_.emplace_back().host = &link;
    const bool here = !options_.agent_for_all && is_this_host(host.name);
    const int error = link.start(here ? std::vector<std::string>() : options_.agent, context_);
    if (error == 0) continue;
    say(std::string("cannot start an agent: ") + std::strerror(error));
    exit_status_ = kLauncherFailed;
    return false;
  }
  return true;
}

void Job::poll_hosts() {
  first_host_polled_ = polled_.size();
  for (const auto& link : hosts_) {
    const FrameStream& stream = *link->stream;
    polled_.push_back({stream.read_fd(), POLLIN, 0});
    polled_.push_back({stream.queued_bytes() > 0 ? stream.write_fd() : -1, POLLOUT, 0});
  }
  const bool reads = !hosts_.empty() && hosts_.front()->state == HostState::kRunning && !input_ended_ &&
                     input_under_way_ < kInputWindowBytes;
  polled_.push_back({reads ? STDIN_FILENO : -1, POLLIN, 0});
}

void Job::serve_hosts() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    HostLink& link = *hosts_[i];
    const bool readable = polled_[first_host_polled_ + 2 * i].revents != 0;
    const bool alive = link.state == HostState::kLost || !readable || link.stream->receive();
    while (link.state != HostState::kLost) {
      const auto frame = link.stream->take();
      if (!frame) break;
      take_frame(link, *frame);
    }
    const bool agent_ended = child_ended_ && link.reap_agent();
    if (link.state == HostState::kLost) continue;
    if (!alive || !link.stream->flush()) {
      lose_host(link, "it has ended");
    } else if (agent_ended) {
      lose_host(link, "its agent has ended");
    }
  }
  if (!hosts_.empty() && polled_.back().revents != 0) feed_input();
  lose_slow_hosts();
}

void Job::take_frame(HostLink& link, const Frame& frame) {
  if (frame.kind == FrameKind::kHello && link.state == HostState::kStarting) {
    link.address = frame.payload;
    link.state = HostState::kReady;
    const auto is_ready = [](const auto& one) { return one->state == HostState::kReady; };
    if (std::ranges::all_of(hosts_, is_ready)) send_plans();
    return;
  }
  const int number = static_cast<int>(frame.rank);
  const bool is_its = number >= link.first_rank && number - link.first_rank < link.host.count;
  if (link.state != HostState::kRunning || !is_its) return lose_host(link, kNonsense);
  Rank& rank = ranks_[frame.rank];
  std::int32_t first = 0;
  std::int32_t second = 0;
  const bool numbers = unpack_numbers(frame.payload, &first, &second);
  switch (frame.kind) {
    case FrameKind::kPmi: take_requests(rank, number, frame.payload); return;
    case FrameKind::kOutput: return put_out(STDOUT_FILENO, frame.payload);
    case FrameKind::kError: return put_out(STDERR_FILENO, frame.payload);
    case FrameKind::kStarted:
      if (!numbers) break;
      rank.pid = first;
      rank.running = first != 0;
      if (first == 0) return refuse_start(number, second);
      if (options_.verbose) say(who(number) + "runs");
      return;
    case FrameKind::kEnded:
      if (!numbers) break;
      return note_end(number, {.by_signal = first != 0, .number = second});
    case FrameKind::kInputTaken:
      if (!numbers) break;
      input_under_way_ -= std::min(input_under_way_, static_cast<std::size_t>(first));
      return;
    default: break;
  }
  lose_host(link, kNonsense);
}

/// All hosts have said their addresses: they learn each other's, and begin.
void Job::send_plans() {
  std::set<std::string> addresses;
  for (const auto& link : hosts_) {
    if (addresses.insert(link->address).second) continue;
    return lose_host(*link, "another name stands for the same node, " + link->address);
  }
  slow_at_ms_ = 0;
  char* directory = getcwd(nullptr, 0);
  for (const auto& link : hosts_) {
    JobPlan plan;
    plan.size = options_.size;
    plan.first_rank = link->first_rank;
    plan.count = link->host.count;
    plan.label = options_.label;
    plan.directory = directory != nullptr ? directory : "/";
    plan.hosts = hosts_text();
    plan.command = options_.command;
    plan.environment = options_.environment;
    plan.environment.push_back(std::string("PORTOFU_JOB_KEY=") + std::getenv("PORTOFU_JOB_KEY"));
    link->state = HostState::kRunning;
    link->stream->send(FrameKind::kJob, 0, pack_plan(plan));
  }
  std::free(directory);
}

/// Asked to end by a signal before any rank has begun.
void Job::abandon_start(int number) {
  const auto has_begun = [](const auto& link) { return link->state == HostState::kRunning; };
  if (hosts_.empty() || std::ranges::any_of(hosts_, has_begun)) return;
  exit_status_ = 128 + number;
  for (Rank& rank : ranks_) rank.running = false;
}

/// What PORTOFU_HOSTS names: coordinates where the user has given any.
std::string Job::hosts_text() const {
  std::string text;
  for (const auto& link : hosts_) {
    text += link->address;
    for (std::size_t i = 0; link->host.at && i < link->host.at->size(); ++i) {
      text += i == 0 ? ' ' : ',';
      text += std::to_string((*link->host.at)[i]);
    }
    text += '\n';
  }
  return text;
}

void Job::feed_input() {
  char buffer[kInputWindowBytes];
  const ssize_t got = read(STDIN_FILENO, buffer, kInputWindowBytes - input_under_way_);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  input_ended_ = got <= 0;
  const std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
  input_under_way_ += bytes;
  hosts_.front()->stream->send(FrameKind::kInput, 0, {buffer, bytes});
}

void Job::lose_host(HostLink& link, const std::string& why) {
  const bool begun = link.state == HostState::kRunning;
  link.state = HostState::kLost;
  link.stream->close_both();
  bool had_ranks = false;
  for (Rank& rank : ranks_) {
    // Before all hosts were there nobody was given a rank.
    if (begun && rank.host != &link) continue;
    had_ranks = had_ranks || rank.running;
    rank.running = false;
  }
  if (had_ranks) end_all(kLauncherFailed, "the connection to the host " + link.host.name + " is lost: " + why);
}

void Job::lose_slow_hosts() {
  if (slow_at_ms_ == 0 || now_ms() < slow_at_ms_) return;
  slow_at_ms_ = 0;
  for (const auto& link : hosts_) {
    if (link->state == HostState::kStarting)
      return lose_host(*link, "it has not answered for " + std::to_string(kHostStartsMs / 1000) + " s");
    if (link->state != HostState::kRunning) continue;
    told_ = false;
    lose_host(*link, "it does not say that its ranks have ended");
  }
}

void Job::end_hosts() {
  for (const auto& link : hosts_) link->end();
}

}  // namespace portofu::tools
