#include "engine/wire/ofi/doorplate.h"

#include <time.h>  // linux/errqueue.h needs it.

#include <linux/errqueue.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "engine/wire/ofi/socket_address.h"

namespace portofu {
namespace {

/// Errors that another knock may raise at once, before it is sent; none of them is about that knock.
constexpr int kMostOldErrors = 4;

}  // namespace

Doorplate::~Doorplate() {
  if (fd_ >= 0) close(fd_);
}

bool Doorplate::open(std::uint32_t nid, std::uint16_t port) {
  fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return false;
  const int on = 1;
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{1, drop_all};
  const sockaddr_in address = socket_address(nid, port);
  if (setsockopt(fd_, IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0 &&
      setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 &&
      bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return true;
  }
  close(fd_);
  fd_ = -1;
  return false;
}

void Doorplate::knock(std::uint32_t nid, std::uint16_t port) {
  const sockaddr_in address = socket_address(nid, port);
  for (int i = 0; i < kMostOldErrors; ++i) {
    if (sendto(fd_, nullptr, 0, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
  }
}

bool Doorplate::take_absent(std::uint32_t* nid, std::uint16_t* port) {
  alignas(cmsghdr) char control[256];
  sockaddr_in address{};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd_, &message, MSG_ERRQUEUE) < 0) return false;
  *nid = ntohl(address.sin_addr.s_addr);
  *port = ntohs(address.sin_port);
  return true;
}

}  // namespace portofu
