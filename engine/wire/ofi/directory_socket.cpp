#include "engine/wire/ofi/directory_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/queue/random_bytes.h"
#include "engine/wire/ofi/directory_message.h"
#include "engine/wire/ofi/socket_address.h"

namespace portofu {
namespace {

/// A question is asked again when no answer has come for so long; then for twice as long, up to the longest pause. Each
/// try reaches one of the node's processes by chance, so there are many; together they take five seconds.
constexpr std::uint64_t kFirstPauseMs = 40;
constexpr std::uint64_t kLongestPauseMs = 160;
constexpr int kMostTries = 32;

/// Tries in a row for which this process lacks a socket; together they take a second.
constexpr int kMostShortTries = 8;
constexpr std::size_t kMostSockets = 7;

/// @return none on failure
OwnDescriptor open_socket(std::uint32_t nid, std::uint16_t port) {
  OwnDescriptor made(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return made;
  const int fd = made.number();
  const int on = 1;
  const sockaddr_in address = socket_address(nid, port);
  if ((port == 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return made;
  }
  return OwnDescriptor();
}

/// @return 0 on failure
std::uint16_t port_of(int fd) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? ntohs(address.sin_port) : 0;
}

std::uint64_t now_ms() { return monotonic_ns() / 1'000'000; }

void send_message(int fd, const DirectoryMessage& message, const sockaddr_in& to) {
  sendto(fd, &message, sizeof message, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

bool receive_message(int fd, DirectoryMessage* message, sockaddr_in* from) {
  socklen_t length = sizeof *from;
  *from = {};
  const ssize_t bytes = recvfrom(fd, message, sizeof *message, MSG_TRUNC, reinterpret_cast<sockaddr*>(from), &length);
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
  struct Try {
    OwnDescriptor socket;  ///< Connected to the node, so only that is heard, and that nobody listens there.
    std::uint16_t port;
  };
  std::deque<Try> last;
  int tries = 0;                  ///< So far.
  int short_tries = 0;            ///< Of them the last ones, which had no socket.
  std::uint64_t next_try_ms = 0;  ///< When it is asked again, or given up.

  bool send(std::uint32_t own_nid) {
    const std::uint16_t port = ports[static_cast<std::size_t>(tries++) % ports.size()];
    if (last.size() == kMostSockets) last.pop_front();
    OwnDescriptor made = open_socket(own_nid, 0);
    if (!made) return may_wait(errno);
    short_tries = 0;
    const int fd = made.number();
    last.push_back({std::move(made), port});
    const sockaddr_in to = socket_address(nid, port);
    return connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
           ::send(fd, &message, sizeof message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
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
    sockaddr_in from;
    if (!receive_message(made.socket.number(), &answer, &from)) {
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

bool DirectorySocket::add(OwnDescriptor made, OwnDescriptor* place) {
  if (!made) return false;
  if (!both_fd_) both_fd_ = OwnDescriptor(epoll_create1(EPOLL_CLOEXEC));
  epoll_event readable{};
  readable.events = EPOLLIN;
  // What nobody waits at would take questions and answer none.
  if (!both_fd_ || epoll_ctl(both_fd_.number(), EPOLL_CTL_ADD, made.number(), &readable) != 0) return false;
  *place = std::move(made);
  return true;
}

bool DirectorySocket::listen() {
  open_ear();
  for (const std::uint16_t port : options_.ports) {
    if (!fd_) add(open_socket(options_.nid, port), &fd_);
  }
  return static_cast<bool>(fd_);
}

std::uint16_t DirectorySocket::open_ear() {
  if (!ear_fd_ && add(open_socket(options_.nid, 0), &ear_fd_)) ear_port_ = port_of(ear_fd_.number());
  return ear_port_;
}

void DirectorySocket::hear() {
  const NoCancellation whole;
  const int ear = ear_fd_ ? ear_fd_.get() : -1;
  NamesNews news{};
  sockaddr_in from{};
  socklen_t length = sizeof from;
  for (int i = 0; ear >= 0 && i < kMostAnswers; ++i, length = sizeof from) {
    auto* const sender = reinterpret_cast<sockaddr*>(&from);
    const ssize_t bytes = recvfrom(ear, &news, sizeof news, MSG_TRUNC, sender, &length);
    if (bytes < 0) return;
    const bool is_whole = bytes == static_cast<ssize_t>(sizeof news) && news.magic == kNewsMagic &&
                          news.kind == NewsKind::kMoved && news.nid == ntohl(from.sin_addr.s_addr);
    if (!is_whole || news.job_key != options_.job_key || news.uid != options_.uid) {
      counters_.add(is_whole ? Counter::kPacketsRefusedKey : Counter::kPacketsRefusedMalformed);
      continue;
    }
    // An answer may be under way that was given before.
    std::erase_if(questions_, [&news](const auto& entry) { return entry.first.first == news.nid; });
    when_moved_({news.nid, news.pid}, news.life);
    news.kind = NewsKind::kHeard;
    sendto(ear, &news, sizeof news, MSG_NOSIGNAL, sender, sizeof from);
  }
}

void DirectorySocket::serve() {
  const NoCancellation whole;
  hear();
  DirectoryMessage message;
  sockaddr_in from;
  const int fd = fd_ ? fd_.get() : -1;
  for (int i = 0; fd >= 0 && i < kMostAnswers && receive_message(fd, &message, &from); ++i) {
    if (!accept(message, is_question(message), options_, counters_)) continue;
    NameOwner owner;
    const Knower asker{ntohl(from.sin_addr.s_addr), static_cast<std::uint16_t>(message.ear)};
    const bool found = find_(message.key, asker, &owner) && owner.nid == options_.nid;
    message.kind = found ? DirectoryKind::kFound : DirectoryKind::kNobody;
    message.pid = found ? owner.pid : 0;
    message.ear = found && owner.names != kNamesMoving ? 1 : 0;
    send_message(fd, message, from);
  }
}

AskResult DirectorySocket::ask(std::uint32_t nid, std::uint64_t key, NameOwner* owner) {
  const NoCancellation whole;
  auto found = questions_.find({nid, key});
  if (found == questions_.end()) {
    if (questions_.size() >= kMostQuestions) return AskResult::kAsking;
    DirectoryMessage message{kDirectoryMagic, options_.job_key, options_.uid, DirectoryKind::kAsk, key, 0, 0,
                             ear_port_};
    if (!draw_random(&message.nonce, sizeof message.nonce)) return AskResult::kNoAnswer;
    found = questions_.emplace(std::pair(nid, key), new Question{message, nid, options_.ports, {}}).first;
  }
  Question& question = *found->second;
  AskResult result = question.look(*this, owner);
  const std::uint64_t now = now_ms();
  if (result == AskResult::kAsking && now >= question.next_try_ms) {
    question.next_try_ms = now + std::min(kFirstPauseMs << question.tries, kLongestPauseMs);
    const bool again = question.tries < kMostTries && question.send(options_.nid);
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
