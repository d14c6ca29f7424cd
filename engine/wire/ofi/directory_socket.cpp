#include "engine/wire/ofi/directory_socket.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <type_traits>
#include <vector>

#include "engine/queue/clock.h"
#include "engine/wire/ofi/socket_address.h"

namespace portofu {
namespace {

/// A question is asked again when no answer has come for so long; then for twice as long, and so on.
constexpr int kFirstPauseMs = 40;
constexpr int kMostTries = 7;

enum class DirectoryKind : std::uint32_t { kAsk = 1, kFound = 2, kNobody = 3 };

/// Question and answer.
struct DirectoryMessage {
  std::uint32_t magic;    ///< kDirectoryMagic.
  std::uint32_t job_key;  ///< Of the sender; another one is not answered, and not believed.
  std::uint32_t uid;      ///< The same.
  DirectoryKind kind;
  std::uint64_t key;    ///< Claim key of a queue or gate.
  std::uint64_t nonce;  ///< Random; an answer repeats it.
  std::uint32_t pid;    ///< kFound: of the owner.
  std::uint32_t reserved;
};
static_assert(sizeof(DirectoryMessage) == 40 && std::is_trivially_copyable_v<DirectoryMessage>);

constexpr std::uint32_t kDirectoryMagic = 0x01446f50;

/// @return -1 on failure
int open_socket(std::uint32_t nid, std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const sockaddr_in address = socket_address(nid, port);
  if ((port == 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  close(fd);
  return -1;
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

}  // namespace

/// A question under way: each try has a socket of its own, and an answer to any of them counts, however late.
struct DirectorySocket::Question {
  DirectorySocket& own;
  const DirectoryMessage message;
  std::vector<pollfd> sockets;  ///< Connected to the node, so only that is heard, and that nobody listens there.
  bool refused = false;         ///< Its kernel says so.

  ~Question() {
    for (const pollfd& socket : sockets) close(socket.fd);
  }

  bool send(const sockaddr_in& to) {
    const int fd = open_socket(own.options_.nid, 0);
    if (fd < 0) return false;
    sockets.push_back({fd, POLLIN, 0});
    return connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
           ::send(fd, &message, sizeof message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
  }

  AskResult await(int pause_ms, ProcessId* owner) {
    const std::uint64_t end = now_ms() + static_cast<std::uint64_t>(pause_ms);
    for (std::uint64_t now = now_ms(); now < end && !refused; now = now_ms()) {
      sockets.push_back({own.fd_, POLLIN, 0});  // poll leaves a negative descriptor out.
      poll(sockets.data(), sockets.size(), static_cast<int>(end - now));
      sockets.pop_back();
      own.serve();
      for (const pollfd& socket : sockets) {
        const AskResult result = socket.revents != 0 ? take(socket.fd, owner) : AskResult::kNoAnswer;
        if (result != AskResult::kNoAnswer) return result;
      }
    }
    return AskResult::kNoAnswer;
  }

  AskResult take(int fd, ProcessId* owner) {
    DirectoryMessage answer;
    sockaddr_in from;
    if (!receive_message(fd, &answer, &from)) {
      refused = refused || (errno != EAGAIN && errno != EINTR);
      return AskResult::kNoAnswer;
    }
    const bool ours = answer.magic == kDirectoryMagic && answer.job_key == message.job_key &&
                      answer.uid == message.uid && answer.key == message.key && answer.nonce == message.nonce;
    if (ours && answer.kind == DirectoryKind::kNobody) return AskResult::kNobody;
    if (!ours || answer.kind != DirectoryKind::kFound || answer.pid == 0 || answer.pid > kMaxPid) {
      return AskResult::kNoAnswer;
    }
    owner->pid = answer.pid;
    return AskResult::kFound;
  }
};

DirectorySocket::~DirectorySocket() {
  if (fd_ >= 0) close(fd_);
}

bool DirectorySocket::listen() {
  if (fd_ < 0) fd_ = open_socket(options_.nid, options_.port);
  return fd_ >= 0;
}

void DirectorySocket::serve() {
  DirectoryMessage message;
  sockaddr_in from;
  for (int i = 0; fd_ >= 0 && i < kMostAnswers && receive_message(fd_, &message, &from); ++i) {
    if (message.magic != kDirectoryMagic || message.job_key != options_.job_key || message.uid != options_.uid ||
        message.kind != DirectoryKind::kAsk) {
      continue;
    }
    ProcessId owner;
    const bool found = find_(message.key, &owner) && owner.nid == options_.nid;
    message.kind = found ? DirectoryKind::kFound : DirectoryKind::kNobody;
    message.pid = found ? owner.pid : 0;
    send_message(fd_, message, from);
  }
}

AskResult DirectorySocket::ask(std::uint32_t nid, std::uint64_t key, ProcessId* owner) {
  DirectoryMessage question{kDirectoryMagic, options_.job_key, options_.uid, DirectoryKind::kAsk, key, 0, 0, 0};
  if (getrandom(&question.nonce, sizeof question.nonce, GRND_NONBLOCK) < 0) return AskResult::kNoAnswer;
  Question asked{*this, question, {}};
  AskResult result = AskResult::kNoAnswer;
  int pause_ms = kFirstPauseMs;
  for (int tries = 0; tries < kMostTries && result == AskResult::kNoAnswer; ++tries, pause_ms *= 2) {
    if (!asked.send(socket_address(nid, options_.port))) return AskResult::kNoAnswer;
    result = asked.await(pause_ms, owner);
    if (asked.refused) return AskResult::kNoAnswer;
  }
  owner->nid = nid;
  return result;
}

std::uint16_t DirectorySocket::default_port(std::uint32_t job_key, std::uint32_t uid) {
  const std::uint64_t mixed = ((std::uint64_t{uid} << 32) + job_key) * 0x9e3779b97f4a7c15u;
  return static_cast<std::uint16_t>(20000 + (mixed >> 32) % 10000);
}

}  // namespace portofu
