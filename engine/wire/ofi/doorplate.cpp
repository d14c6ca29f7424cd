#include "engine/wire/ofi/doorplate.h"

#include <time.h>  // linux/errqueue.h needs it.

#include <linux/errqueue.h>
#include <linux/filter.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "engine/queue/cancellation.h"
#include "engine/topology/socket_address.h"

namespace portofu {
namespace {

/// Errors that another knock may raise at once, before it is sent; none of them is about that knock.
constexpr int kMostOldErrors = 4;

/// Descriptors among which another socket is looked for.
constexpr int kMostDescriptors = 4096;

/// Takes one error of a socket: somebody who is not there.
bool take_error(int fd, Absent* absent) {
  alignas(cmsghdr) char control[256];
  sockaddr_in address{};
  iovec quoted{absent->datagram, sizeof absent->datagram};
  msghdr message{};
  message.msg_iov = &quoted;
  message.msg_iovlen = 1;
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
  if (bytes < 0) return false;
  absent->nid = ntohl(address.sin_addr.s_addr);
  absent->port = ntohs(address.sin_port);
  absent->datagram_bytes = static_cast<std::uint32_t>(bytes);
  absent->says_node = false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != IPPROTO_IP || part->cmsg_type != IP_RECVERR) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(part), sizeof error);
    absent->says_node = error.ee_origin == SO_EE_ORIGIN_ICMP && error.ee_type == ICMP_DEST_UNREACH &&
                        error.ee_code == ICMP_PORT_UNREACH;
  }
  return true;
}

}  // namespace

std::uint64_t Absent::knocked_ns() const {
  Knock knock{};
  Letter letter{};
  if (datagram_bytes == sizeof knock) std::memcpy(&knock, datagram, sizeof knock);
  if (datagram_bytes == sizeof letter) std::memcpy(&letter, datagram, sizeof letter);
  return letter.kind == LetterKind::kAsk ? letter.sent_ns : knock.sent_ns;
}

bool Doorplate::open(std::uint32_t nid, std::uint16_t port) {
  OwnDescriptor made(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return false;
  const int fd = made.number();
  const int on = 1;
  // The filter sees the header of the datagram, too.
  constexpr std::uint32_t kLetterLength = sizeof(udphdr) + sizeof(Letter);
  sock_filter letters[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kLetterLength, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, kLetterLength), BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{std::size(letters), letters};
  const sockaddr_in address = socket_address(nid, port);
  if (setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0 &&
      setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 &&
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    fd_ = std::move(made);
    return true;
  }
  return false;
}

bool Doorplate::watch_socket(std::uint32_t nid, std::uint16_t port) {
  const sockaddr_in place = socket_address(nid, port);
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    sockaddr_in found{};
    socklen_t bytes = sizeof found;
    if (fd == fd_.number() || getsockname(fd, reinterpret_cast<sockaddr*>(&found), &bytes) != 0) continue;
    if (found.sin_family != AF_INET || found.sin_port != place.sin_port) continue;
    if (found.sin_addr.s_addr != place.sin_addr.s_addr && found.sin_addr.s_addr != htonl(INADDR_ANY)) continue;
    int type = 0;
    const int on = 1;
    bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_DGRAM) continue;
    if (setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on) != 0) continue;
    watched_fd_ = fd;
    return true;
  }
  return false;
}

void Doorplate::knock(std::uint32_t nid, std::uint16_t port, Knock content) {
  send_bytes(nid, port, &content, sizeof content);
}

void Doorplate::send(std::uint32_t nid, std::uint16_t port, LetterKind kind, std::uint64_t sent_ns) {
  const Letter letter{kLetterMagic, kind, sent_ns};
  send_bytes(nid, port, &letter, sizeof letter);
}

void Doorplate::send_bytes(std::uint32_t nid, std::uint16_t port, const void* bytes, std::size_t count) {
  const NoCancellation whole;
  if (!fd_.is_ours()) return;  // The program has closed it.
  const sockaddr_in address = socket_address(nid, port);
  for (int i = 0; i < kMostOldErrors; ++i) {
    if (sendto(fd_.number(), bytes, count, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), sizeof address) >=
        0) {
      return;
    }
  }
}

bool Doorplate::take_letter(std::uint32_t* nid, std::uint16_t* port, Letter* letter) {
  const NoCancellation whole;
  if (!fd_.is_ours()) return false;
  for (int i = 0; i <= kMostOldErrors; ++i) {
    sockaddr_in sender{};
    socklen_t bytes = sizeof sender;
    const ssize_t got =
        recvfrom(fd_.number(), letter, sizeof *letter, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&sender), &bytes);
    if (got == sizeof *letter && letter->magic == kLetterMagic) {
      *nid = ntohl(sender.sin_addr.s_addr);
      *port = ntohs(sender.sin_port);
      return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EBADF)) return false;
  }
  return false;
}

bool Doorplate::take_absent(Absent* absent) {
  const NoCancellation whole;
  return take_error(fd_.number(), absent) || (watched_fd_ >= 0 && take_error(watched_fd_, absent));
}

}  // namespace portofu
