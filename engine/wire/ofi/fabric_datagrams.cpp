#include "engine/wire/ofi/fabric_datagrams.h"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/segment/own_segments.h"
#include "engine/topology/node_id.h"
#include "engine/wire/ofi/empty_looks.h"
#include "engine/wire/reliable/crc32c.h"
#include "engine/wire/reliable/frame.h"

namespace portofu {
namespace {

/// Datagrams that may have arrived and not been taken; the kernel holds more of them.
constexpr std::size_t kMostSlots = 256;
constexpr std::size_t kDatagramsPerRead = 16;

/// Longer ones gain nothing.
constexpr std::size_t kMostDatagramBytes = 16384;
constexpr std::size_t kLeastDatagramBytes = kMinDatagramBytes + sizeof(DatagramEnvelope);

/// Between two knocks at one peer. Kernels answer six times at once and then once a second.
constexpr std::uint64_t kKnockNs = 75'000'000;

/// Between two looks at what came back from knocking, while there is something to receive.
constexpr std::uint64_t kDoorNs = 1'000'000;

/// A socket tells of earlier datagrams, once each, instead of sending the next one.
constexpr int kMostSendTries = 8;

/// Datagrams of those who may not send that one call throws away.
constexpr int kMostRefused = 64;

/// Peers that are not there and of which nobody has asked yet.
constexpr std::size_t kMostUnreachable = 1024;

std::uint32_t checksum_of(const DatagramEnvelope& envelope) {
  return crc32c(std::as_bytes(std::span(&envelope, 1)).subspan(sizeof envelope.checksum));
}

}  // namespace

void seal_envelope(DatagramEnvelope& envelope) { envelope.checksum = checksum_of(envelope); }

// ---- Opening and closing -------------------------------------------------------------------------------------------

FabricDatagrams::FabricDatagrams(FabricOptions options, Counters counters)
    : options_(std::move(options)), counters_(counters), fork_generation_(fork_generation()) {}

std::unique_ptr<FabricDatagrams> FabricDatagrams::open(FabricOptions options, Counters counters, std::string* why) {
  const std::uint32_t port = options.base_port + options.self.pid;
  if (port > 65535) {
    *why = "the port " + std::to_string(port) + " of the fabric endpoint is above 65535";
    return nullptr;
  }
  const std::string place = node_id_text(options.self.nid) + ":" + std::to_string(port);
  std::unique_ptr<FabricDatagrams> made(new FabricDatagrams(std::move(options), counters));
  const auto port_number = static_cast<std::uint16_t>(port);
  if (made->open_fabric(port_number, why) && made->open_doors(port_number, why)) return made;
  *why = "the fabric endpoint " + place + ": " + *why;
  return nullptr;
}

bool FabricDatagrams::open_fabric(std::uint16_t port, std::string* why) {
  const std::lock_guard no_fork(FabricLibrary::gate());
  StandardNumbersTaken standard;
  const FabricLibrary* library = FabricLibrary::load(why);
  if (library == nullptr) return false;
  const FabricHints hints(*library, FI_EP_DGRAM, FI_MSG | FI_SOURCE, options_.provider);
  if (hints.info != nullptr) {
    hints.info->ep_attr->max_msg_size = kLeastDatagramBytes;
    hints.info->tx_attr->inject_size = kLeastDatagramBytes;
  }
  fi_info* found = nullptr;
  const int result = hints.find(options_.self.nid, port, &found);
  if (result != 0) {
    *why = "no provider of libfabric " + (options_.provider.empty() ? "" : "named " + options_.provider + " ") +
           "has unreliable datagrams (" + library->strerror(-result) + ")";
    return false;
  }
  const bool opened = open_objects(*library, found, why);
  library->freeinfo(found);
  if (opened) standard.keep();
  return opened;
}

bool FabricDatagrams::open_objects(const FabricLibrary& library, fi_info* info, std::string* why) {
  const std::size_t longest = std::min(info->ep_attr->max_msg_size, info->tx_attr->inject_size);
  datagram_bytes_ = static_cast<std::uint32_t>(std::min(longest, kMostDatagramBytes));
  outgoing_ = PacketBuffer(datagram_bytes_);
  const std::size_t slots = std::clamp<std::size_t>(info->rx_attr->size, 1, kMostSlots);
  if (!objects_.open(library, info, kMostSlots, why)) return false;
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->memory = PacketBuffer(datagram_bytes_);
    post(*slots_.back());
  }
  wait_fd_ = OwnDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (wait_fd_ && wait_for(objects_.wait_fd, EPOLLIN)) return true;
  *why = std::string("epoll: ") + std::strerror(errno);
  return false;
}

/// The provider that binds the UDP port itself has it by now.
bool FabricDatagrams::open_doors(std::uint16_t port, std::string* why) {
  const bool open = door_.open(options_.self.nid, port) || door_.open(options_.self.nid, 0);
  // Without it, or with a provider that has no such socket, a death is noticed by knocks.
  if (open) door_.watch_socket(options_.self.nid, port);
  if (open && wait_for(door_.fd(), 0)) return true;
  *why = std::string("its UDP socket: ") + std::strerror(errno);
  return false;
}

bool FabricDatagrams::wait_for(int fd, std::uint32_t events) {
  epoll_event waited{};
  waited.events = events;  // Errors are always among them.
  return epoll_ctl(wait_fd_.number(), EPOLL_CTL_ADD, fd, &waited) == 0;
}

FabricDatagrams::~FabricDatagrams() {
  if (is_over()) {
    for (auto& slot : slots_) (void)slot.release();
    return;
  }
  const std::lock_guard no_fork(FabricLibrary::gate());
  objects_.close_endpoint();
  objects_.close();
}

bool FabricDatagrams::is_over() const { return FabricLibrary::is_ending() || fork_generation_ != fork_generation(); }

void FabricDatagrams::attend(int fd, std::function<void()> handle) {
  wait_for(fd, EPOLLIN);
  handle_ = std::move(handle);
}

std::uint64_t FabricDatagrams::now_ns() const { return monotonic_ns(); }

// ---- Sending -------------------------------------------------------------------------------------------------------

FabricDatagrams::Peer* FabricDatagrams::find_peer(ProcessId id) {
  const auto found = peers_.find(process_key(id));
  return found == peers_.end() ? nullptr : &found->second;
}

/// @return nullptr if it cannot be an address
FabricDatagrams::Peer* FabricDatagrams::make_peer(ProcessId id) {
  const std::uint32_t port = options_.base_port + id.pid;
  if (port > 65535) return nullptr;
  Peer peer;
  peer.address = objects_.insert(id.nid, static_cast<std::uint16_t>(port));
  if (peer.address == FI_ADDR_NOTAVAIL) return nullptr;
  return &peers_.emplace(process_key(id), peer).first->second;
}

bool FabricDatagrams::send(ProcessId id, TrafficClass, std::span<const std::byte> head,
                           std::span<const std::byte> body) {
  const NoCancellation whole;
  if (is_over()) return true;
  Peer* peer = find_peer(id);
  if (peer == nullptr) peer = make_peer(id);
  if (peer == nullptr) {
    if (unreachable_.size() < kMostUnreachable) unreachable_.push_back({id});
    return true;
  }
  DatagramEnvelope envelope{0, kDatagramMagic, options_.job_key, options_.uid, options_.self.nid, options_.self.pid};
  seal_envelope(envelope);
  std::byte* at = outgoing_.data();
  std::memcpy(at, &envelope, sizeof envelope);
  at = std::copy(head.begin(), head.end(), at + sizeof envelope);
  at = std::copy(body.begin(), body.end(), at);
  const auto bytes = static_cast<std::size_t>(at - outgoing_.data());
  const std::uint64_t now = now_ns();
  if (now - peer->knocked_ns >= kKnockNs) {
    peer->knocked_ns = now;
    door_.knock(id.nid, static_cast<std::uint16_t>(options_.base_port + id.pid), {now});
  }
  ssize_t sent = 0;
  for (int tries = 0; tries < kMostSendTries && !is_told_absent(id); ++tries) {
    sent = fi_inject(objects_.endpoint, outgoing_.data(), bytes, peer->address);
    if (sent == 0) return true;
    if (sent == -FI_EAGAIN) return false;
    look_at_door();  // It is the answer to an earlier one, or this one got lost.
  }
  if (is_told_absent(id)) return false;
  tell_of_closed_way("fi_inject", "a datagram to node " + node_id_text(id.nid), static_cast<int>(-sent));
  return true;
}

/// Whether there is news of it that nobody has taken: more datagrams would only use up what its node says.
bool FabricDatagrams::is_told_absent(ProcessId id) const {
  return std::ranges::any_of(unreachable_, [id](const Unreachable& one) { return one.id == id; });
}

// ---- Receiving -----------------------------------------------------------------------------------------------------

void FabricDatagrams::post(Slot& slot) {
  const ssize_t result =
      fi_recv(objects_.endpoint, slot.memory.data(), datagram_bytes_, nullptr, FI_ADDR_UNSPEC, &slot.room);
  if (result != 0) unposted_.push_back(&slot);
}

/// Takes what the provider has.
void FabricDatagrams::look() {
  const NoCancellation whole;
  for (Slot* slot : std::exchange(unposted_, {})) post(*slot);
  std::array<fi_cq_msg_entry, kDatagramsPerRead> entries;
  std::array<fi_addr_t, kDatagramsPerRead> sources;
  const ssize_t read = fi_cq_readfrom(objects_.completions, entries.data(), entries.size(), sources.data());
  if (read == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(objects_.completions, &error, 0) == 1 && error.op_context != nullptr) {
      post(*static_cast<Slot*>(error.op_context));
    }
    return;
  }
  for (ssize_t i = 0; i < read; ++i) {
    const auto index = static_cast<std::size_t>(i);
    auto* slot = static_cast<Slot*>(entries[index].op_context);
    if (entries[index].len <= sizeof(Knock)) {
      post(*slot);  // Somebody knocked.
    } else {
      arrived_.push_back({slot, entries[index].len, sources[index]});
    }
  }
}

void FabricDatagrams::look_at_door() {
  const NoCancellation whole;
  looked_at_door_ns_ = now_ns();
  Absent absent;
  while (unreachable_.size() < kMostUnreachable && door_.take_absent(&absent)) {
    if (absent.port < options_.base_port) continue;
    const ProcessId id{absent.nid, absent.port - options_.base_port};
    if (find_peer(id) != nullptr) unreachable_.push_back({id, sent_at(absent)});
  }
}

/// @return when the datagram left that found nobody; 0 if it does not say so
std::uint64_t FabricDatagrams::sent_at(const Absent& absent) const {
  if (!absent.says_node) return 0;
  if (const std::uint64_t knocked_ns = absent.knocked_ns(); knocked_ns != 0) return knocked_ns;
  DatagramEnvelope envelope{};
  FrameHeader frame{};
  if (absent.datagram_bytes < sizeof envelope + sizeof frame) return 0;
  std::memcpy(&envelope, absent.datagram, sizeof envelope);
  std::memcpy(&frame, absent.datagram + sizeof envelope, sizeof frame);
  const bool ours =
      envelope.checksum == checksum_of(envelope) && envelope.magic == kDatagramMagic && frame.format == kFrameFormat;
  return ours ? frame.sent_ns : 0;
}

bool FabricDatagrams::has_datagrams() {
  if (!arrived_.empty() || !unreachable_.empty()) return true;
  const std::uint32_t looks = empty_looks_++;
  if (is_left_out(looks) || is_over()) return false;
  if (handle_ && looks % kHandleLook == 0) handle_();
  look();
  if (now_ns() - looked_at_door_ns_ >= kDoorNs) look_at_door();
  if (arrived_.empty() && unreachable_.empty()) return false;
  empty_looks_ = 0;
  return true;
}

bool FabricDatagrams::may_sleep() {
  const NoCancellation whole;
  if (is_over()) return true;
  empty_looks_ = 0;
  if (handle_) handle_();
  look_at_door();
  if (!arrived_.empty() || !unreachable_.empty()) return false;
  return objects_.may_sleep();
}

bool FabricDatagrams::take_unreachable(ProcessId* peer) {
  if (unreachable_.empty()) return false;
  *peer = unreachable_.front().id;
  unreachable_since_ns_ = unreachable_.front().since_ns;
  unreachable_.pop_front();
  return true;
}

std::uint32_t FabricDatagrams::receive(std::byte* buffer, ProcessId* source) {
  if (is_over()) return 0;
  for (int left = kMostRefused; left > 0; --left) {
    if (arrived_.empty()) look();
    if (arrived_.empty()) return 0;
    const Arrival arrival = arrived_.front();
    arrived_.pop_front();
    const std::uint32_t bytes = open_datagram(arrival, buffer, source);
    post(*arrival.slot);
    if (bytes > 0) return bytes;
  }
  return 0;
}

/// @return bytes behind the envelope; 0 if it is from nobody who may send
std::uint32_t FabricDatagrams::open_datagram(const Arrival& arrival, std::byte* buffer, ProcessId* source) {
  DatagramEnvelope envelope{};
  const bool whole = arrival.bytes > sizeof envelope && arrival.bytes <= datagram_bytes_;
  if (whole) std::memcpy(&envelope, arrival.slot->memory.data(), sizeof envelope);
  if (!whole || envelope.checksum != checksum_of(envelope) || envelope.magic != kDatagramMagic) {
    counters_.add(Counter::kPacketsRefusedMalformed);
    return 0;
  }
  if (envelope.job_key != options_.job_key || envelope.uid != options_.uid) {
    counters_.add(Counter::kPacketsRefusedKey);
    return 0;
  }
  if (!may_come(envelope, arrival.source)) {
    counters_.add(Counter::kPacketsRefusedSource);
    return 0;
  }
  *source = {envelope.nid, envelope.pid};
  const std::size_t bytes = arrival.bytes - sizeof envelope;
  std::memcpy(buffer, arrival.slot->memory.data() + sizeof envelope, bytes);
  return static_cast<std::uint32_t>(bytes);
}

bool FabricDatagrams::may_come(const DatagramEnvelope& envelope, fi_addr_t source) {
  const ProcessId id{envelope.nid, envelope.pid};
  const bool expected = options_.nodes.empty() || std::ranges::count(options_.nodes, id.nid) != 0;
  if (!expected || id.pid == 0 || id.pid > kMaxPid || id == options_.self) return false;
  // The fabric names senders whose address it was told.
  const Peer* peer = find_peer(id);
  return source == (peer != nullptr ? peer->address : FI_ADDR_NOTAVAIL);
}

}  // namespace portofu
