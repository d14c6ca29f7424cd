#include "engine/wire/ofi/directory_socket.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"
#include "engine/wire/ofi/directory_message.h"

namespace portofu {
namespace {

/// A question is asked again when no answer has come for so long; then for twice as long, up to the longest pause. Each
/// try reaches one of the node's processes by chance, so there are many; together they take five seconds, or two.
constexpr std::uint64_t kFirstPauseMs = 40;
constexpr std::uint64_t kLongestPauseMs = 160;
constexpr int kMostTries = 32;
constexpr int kFewTries = 14;
static_assert((kFewTries - 2) * kLongestPauseMs > kTellMs + 500, "who tells others answers nobody meanwhile");

/// Tries in a row for which this process lacks a socket; together they take a second.
constexpr int kMostShortTries = 8;
constexpr std::size_t kMostSockets = 7;

std::uint64_t now_ms() { return kernel().now_ns() / 1'000'000; }

bool receive_message(DatagramSocket& socket, DirectoryMessage* message, PortAddress* from) {
  const ssize_t bytes = socket.receive(std::as_writable_bytes(std::span(message, 1)), from);
  if (bytes < 0) return false;
  if (bytes != static_cast<ssize_t>(sizeof *message)) *message = {};
  return true;
}

bool is_question(const DirectoryMessage& message) { return message.kind == DirectoryKind::kAsk; }
bool is_answer(const DirectoryMessage& message) {
  return message.kind == DirectoryKind::kFound || message.kind == DirectoryKind::kNobody;
}

/// @param expected  whether the kind is one that may come here
/// @return true for a message of this job; what is none is counted
bool accept(const DirectoryMessage& message, bool expected, const DirectoryOptions& own, Counters& counters) {
  const bool is_whole = message.magic == kDirectoryMagic && expected;
  const bool is_ours = message.job_key == own.job_key && message.uid == own.uid;
  if (is_whole && is_ours) return true;
  counters.add(is_whole ? Counter::kPacketsRefusedKey : Counter::kPacketsRefusedMalformed);
  return false;
}

}  // namespace

/// A question under way: each try has a socket of its own, and an answer to any of the last seven counts. Whoever was
/// slow for longer than that takes them one after the other, and so answers a younger one, too.
struct DirectorySocket::Question {
  const DirectoryMessage message;
  const std::uint32_t nid;
  std::vector<std::uint16_t> ports;  ///< Where somebody may listen; asked in turns.
  const int most_tries;
  struct Try {
    std::unique_ptr<DatagramSocket>
        socket;  ///< Connected to the node, so only that is heard, and that nobody listens there.
    std::uint16_t port;
  };
  std::deque<Try> last;
  int tries = 0;                  ///< So far.
  int short_tries = 0;            ///< Of them the last ones, which had no socket.
  std::uint64_t next_try_ms = 0;  ///< When it is asked again, or given up.

  bool send(std::uint32_t own_nid) {
    const std::uint16_t port = ports[static_cast<std::size_t>(tries++) % ports.size()];
    if (last.size() == kMostSockets) last.pop_front();
    std::unique_ptr<DatagramSocket> made = kernel().open_socket({own_nid, 0});
    if (made == nullptr) return may_wait(errno);
    short_tries = 0;
    last.push_back({std::move(made), port});
    DatagramSocket& socket = *last.back().socket;
    return socket.connect({nid, port}) && socket.send(std::as_bytes(std::span(&message, 1)));
  }

  /// There is no socket. @return whether there may be one soon
  bool may_wait(int error) {
    static constinit ToldOnce told;
    ++short_tries;
    if (!is_shortage(error)) return false;
    tell_of_wait(told, "socket", "a question to another node", error);
    return short_tries < kMostShortTries;
  }

  AskResult look(DirectorySocket& asker, NameOwner* owner) {
    for (const Try& made : last) {
      const AskResult result = take(made, asker, owner);
      if (result != AskResult::kAsking) return result;
    }
    return AskResult::kAsking;
  }

  /// Nobody listens there. @return whether that is so at each port
  bool note_refused(std::uint16_t port) {
    if (std::erase(ports, port) != 0) next_try_ms = 0;
    return ports.empty();
  }

  /// Takes one message, if there is one.
  AskResult take(const Try& made, DirectorySocket& asker, NameOwner* owner) {
    DirectoryMessage answer;
    if (!receive_message(*made.socket, &answer, nullptr)) {
      if (errno == ECONNREFUSED) return note_refused(made.port) ? AskResult::kNobody : AskResult::kAsking;
      return errno == EAGAIN || errno == EINTR ? AskResult::kAsking : AskResult::kNoAnswer;
    }
    if (!accept(answer, is_answer(answer), asker.options_, asker.counters_)) return AskResult::kAsking;
    // An answer to another question is late: the one who had this port before has asked it.
    if (answer.key != message.key || answer.nonce != message.nonce) return AskResult::kAsking;
    if (answer.kind == DirectoryKind::kNobody) return AskResult::kNobody;
    if (answer.pid == 0 || answer.pid > kMaxPid) {
      asker.counters_.add(Counter::kPacketsRefusedMalformed);
      return AskResult::kAsking;
    }
    owner->pid = answer.pid;
    owner->names = answer.ear == 1 ? 0 : kNamesMoving;
    return AskResult::kFound;
  }
};

DirectorySocket::DirectorySocket(const DirectoryOptions& options, Counters counters, Find find, WhenMoved when_moved)
    : options_(options), counters_(counters), find_(std::move(find)), when_moved_(std::move(when_moved)) {}

DirectorySocket::~DirectorySocket() = default;

bool DirectorySocket::add(std::unique_ptr<DatagramSocket> made, std::unique_ptr<DatagramSocket>* place) {
  if (made == nullptr) return false;
  if (!both_fd_) both_fd_ = OwnDescriptor(epoll_create1(EPOLL_CLOEXEC));
  epoll_event readable{};
  readable.events = EPOLLIN;
  // What nobody waits at would take questions and answer none.
  if (!both_fd_ || epoll_ctl(both_fd_.number(), EPOLL_CTL_ADD, made->fd(), &readable) != 0) return false;
  *place = std::move(made);
  return true;
}

bool DirectorySocket::listen() {
  open_ear();
  for (const std::uint16_t port : options_.ports) {
    if (questions_socket_ == nullptr) add(kernel().open_socket({options_.nid, port}), &questions_socket_);
  }
  return questions_socket_ != nullptr;
}

std::uint16_t DirectorySocket::open_ear() {
  if (ear_ == nullptr && add(kernel().open_socket({options_.nid, 0}), &ear_)) ear_port_ = ear_->port();
  return ear_port_;
}

void DirectorySocket::hear() {
  const NoCancellation whole;
  if (ear_ == nullptr || !ear_->is_ours()) return;
  NamesNews news{};
  PortAddress from{};
  for (int i = 0; i < kMostAnswers; ++i) {
    const ssize_t bytes = ear_->receive(std::as_writable_bytes(std::span(&news, 1)), &from);
    if (bytes < 0) return;
    const bool is_whole = bytes == static_cast<ssize_t>(sizeof news) && news.magic == kNewsMagic &&
                          news.kind == NewsKind::kMoved && news.nid == from.nid;
    if (!is_whole || news.job_key != options_.job_key || news.uid != options_.uid) {
      counters_.add(is_whole ? Counter::kPacketsRefusedKey : Counter::kPacketsRefusedMalformed);
      continue;
    }
    // An answer may be under way that was given before.
    std::erase_if(questions_, [&news](const auto& entry) { return entry.first.first == news.nid; });
    when_moved_({news.nid, news.pid}, news.life);
    news.kind = NewsKind::kHeard;
    ear_->send_to(from, std::as_bytes(std::span(&news, 1)));
  }
}

void DirectorySocket::serve() {
  const NoCancellation whole;
  hear();
  if (questions_socket_ == nullptr || !questions_socket_->is_ours()) return;
  DirectoryMessage message;
  PortAddress from{};
  for (int i = 0; i < kMostAnswers && receive_message(*questions_socket_, &message, &from); ++i) {
    if (!accept(message, is_question(message), options_, counters_)) continue;
    NameOwner owner;
    const Knower asker{from.nid, static_cast<std::uint16_t>(message.ear)};
    const bool found = find_(message.key, asker, &owner) && owner.nid == options_.nid;
    message.kind = found ? DirectoryKind::kFound : DirectoryKind::kNobody;
    message.pid = found ? owner.pid : 0;
    message.ear = found && owner.names != kNamesMoving ? 1 : 0;
    questions_socket_->send_to(from, std::as_bytes(std::span(&message, 1)));
  }
}

AskResult DirectorySocket::ask(std::uint32_t nid, std::uint64_t key, NameOwner* owner, Patience patience) {
  const NoCancellation whole;
  auto found = questions_.find({nid, key});
  if (found == questions_.end()) {
    if (questions_.size() >= kMostQuestions) return AskResult::kAsking;
    DirectoryMessage message{kDirectoryMagic, options_.job_key, options_.uid, DirectoryKind::kAsk, key, 0, 0,
                             ear_port_};
    if (!kernel().draw_random(&message.nonce, sizeof message.nonce)) return AskResult::kNoAnswer;
    const int most_tries = patience == Patience::kFull ? kMostTries : kFewTries;
    found = questions_.emplace(std::pair(nid, key), new Question{message, nid, options_.ports, most_tries, {}}).first;
  }
  Question& question = *found->second;
  AskResult result = question.look(*this, owner);
  const std::uint64_t now = now_ms();
  if (result == AskResult::kAsking && now >= question.next_try_ms) {
    question.next_try_ms = now + std::min(kFirstPauseMs << question.tries, kLongestPauseMs);
    const bool again = question.tries < question.most_tries && question.send(options_.nid);
    // What this process lacks does not make the node a silent one.
    if (!again) result = question.short_tries != 0 ? AskResult::kNobody : AskResult::kNoAnswer;
  }
  if (result != AskResult::kAsking) questions_.erase(found);
  owner->nid = nid;
  return result;
}

std::vector<std::uint16_t> DirectorySocket::default_ports(std::uint32_t job_key, std::uint32_t uid) {
  const std::uint64_t mixed = ((std::uint64_t{uid} << 32) + job_key) * 0x9e3779b97f4a7c15u;
  const std::uint64_t first = (mixed >> 32) % 10000;
  // Half the range and a bit apart, so that programs that take ports in a row have one of them at most.
  const std::uint64_t second = (first + 5000 + (mixed >> 8) % 1000) % 10000;
  return {static_cast<std::uint16_t>(20000 + first), static_cast<std::uint16_t>(20000 + second)};
}

}  // namespace portofu
