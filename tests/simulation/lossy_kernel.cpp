#include "tests/simulation/lossy_kernel.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/queue/assert.h"
#include "engine/segment/own_descriptor.h"

namespace portofu::simulation {
namespace {

constexpr std::uint16_t kFirstFreePort = 50000;
constexpr std::uint64_t kFreePorts = 512;  ///< A question has seven sockets.

}  // namespace

void LossyPort::advance() {
  alignas(64) std::array<std::byte, 8192> datagram;
  ProcessId source;
  while (const std::uint32_t bytes = endpoint->receive(datagram.data(), &source)) {
    const PortAddress from = LossyPorts::address_of(source);
    auto chosen = arrived.begin();
    std::advance(chosen, SimRandom(from.port).next() % arrived.size());
    chosen->second.push_back({from, {datagram.data(), datagram.data() + bytes}});
  }
}

PortAddress LossyPorts::take(PortAddress at, std::uint64_t socket) {
  PORTOFU_ASSERT(taken_.size() < kFreePorts);
  const bool is_any = at.port == 0;
  while (is_any && (at.port == 0 || taken_.contains(id_of(at))))
    at.port = static_cast<std::uint16_t>(kFirstFreePort + random_.below(kFreePorts));
  LossyPort& taken = taken_[id_of(at)];
  if (taken.endpoint == nullptr) taken.endpoint = network_.attach(id_of(at), node_of_(at.nid));
  taken.arrived[socket];
  return at;
}

void LossyPorts::give_back(PortAddress at, std::uint64_t socket) {
  const auto found = taken_.find(id_of(at));
  found->second.advance();
  found->second.arrived.erase(socket);
  if (found->second.arrived.empty()) taken_.erase(found);
}

std::optional<PortAddress> LossyPorts::advance(ProcessId id) {
  const auto found = taken_.find(id);
  if (found == taken_.end()) return std::nullopt;
  found->second.advance();
  return address_of(id);
}

/// One socket of a process.
class LossySocket final : public DatagramSocket {
 public:
  LossySocket(LossyKernel& kernel, PortAddress at)
      : kernel_(kernel), number_(kernel.ports_.random().next()), at_(ports().take(at, number_)) {
    kernel_.open_[number_] = at_;
  }
  ~LossySocket() override {
    if (kernel_.open_.erase(number_) != 0) ports().give_back(at_, number_);
  }

  std::uint16_t port() const override { return at_.port; }
  bool connect(PortAddress to) override {
    to_ = to;
    return true;
  }
  bool send(std::span<const std::byte> datagram) override { return !is_refused() && send_to(to_, datagram); }
  bool send_to(PortAddress to, std::span<const std::byte> datagram) override {
    if (is_open()) own().endpoint->send(LossyPorts::id_of(to), TrafficClass::kRequest, datagram, {});
    return true;
  }
  ssize_t receive(std::span<std::byte> into, PortAddress* from) override {
    if (is_refused()) return -1;
    while (is_open() && !own().arrived[number_].empty()) {
      const LossyPort::Datagram datagram = std::move(own().arrived[number_].front());
      own().arrived[number_].pop_front();
      if (to_.port != 0 && datagram.from != to_) continue;
      std::memcpy(into.data(), datagram.bytes.data(), std::min(datagram.bytes.size(), into.size()));
      if (from != nullptr) *from = datagram.from;
      return static_cast<ssize_t>(datagram.bytes.size());
    }
    errno = EAGAIN;
    return -1;
  }
  int fd() const override {
    if (!descriptor_) descriptor_ = OwnDescriptor(eventfd(0, EFD_CLOEXEC));
    return descriptor_.number();
  }
  bool is_ours() const override { return true; }

 private:
  LossyPorts& ports() const { return kernel_.ports_; }
  LossyPort& own() const { return ports().port(at_); }
  bool is_open() const { return kernel_.open_.contains(number_); }

  /// Only who is connected is told.
  bool is_refused() {
    if (to_.port == 0 || !is_open()) return false;
    ProcessId nobody;
    bool refused = false;
    while (own().endpoint->take_unreachable(&nobody)) refused = refused || LossyPorts::address_of(nobody) == to_;
    if (refused) errno = ECONNREFUSED;
    return refused;
  }

  LossyKernel& kernel_;
  const std::uint64_t number_;
  const PortAddress at_;
  PortAddress to_;                    ///< Port 0: not connected.
  mutable OwnDescriptor descriptor_;  ///< Of a file that is never readable: the world knows who has got something.
};

std::unique_ptr<DatagramSocket> LossyKernel::open_socket(PortAddress at) {
  return std::make_unique<LossySocket>(*this, at);
}

bool LossyKernel::draw_random(void* into, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t drawn = ports_.random().next();
    std::memcpy(static_cast<std::byte*>(into) + at, &drawn, std::min(sizeof drawn, bytes - at));
  }
  return true;
}

void LossyKernel::die() {
  for (const auto& [socket, at] : std::exchange(open_, {})) ports_.give_back(at, socket);
}

bool LossyKernel::has(PortAddress at) const {
  return std::any_of(open_.begin(), open_.end(), [at](const auto& entry) { return entry.second == at; });
}

}  // namespace portofu::simulation
