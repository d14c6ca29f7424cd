#include "engine/wire/ofi/fabric_endpoint.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/no_signals.h"
#include "engine/queue/random_bytes.h"
#include "engine/segment/own_descriptor.h"
#include "engine/topology/node_id.h"

namespace portofu {
namespace {

constexpr std::size_t kReceiveBufferCount = 64;
constexpr std::size_t kBuffersPerSlab = 16;
constexpr std::size_t kEventsPerRead = 16;
constexpr std::size_t kMostCompletions = 4096;

/// What a provider that reads memory of peers has to offer beside.
constexpr std::uint64_t kFetchCapabilities = FI_RMA | FI_READ | FI_REMOTE_READ;

/// What any provider has to offer.
constexpr std::uint64_t kCapabilities = FI_MSG | FI_SOURCE;

/// What this process lacks says nothing about the peer, so it is told.
FabricSend note_short(int error) {
  static constinit ToldOnce told;
  tell_of_wait(told, "fi_send", "a message to another node", error);
  return FabricSend::kShort;
}

/// Of what a provider says of a message that did not leave, or did not arrive; the rest is about who was to get it.
bool is_closed_way(int error) {
  return error == EPERM || error == EACCES || error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN;
}

FabricSend outcome_of(ssize_t result) {
  if (result == 0) return FabricSend::kTaken;
  if (result == -FI_EAGAIN) return FabricSend::kLater;
  const int error = static_cast<int>(-result);
  if (is_shortage(error)) return note_short(error);
  if (is_closed_way(error)) tell_of_closed_way("fi_send", "a message to another node", error);
  return FabricSend::kFailed;
}

}  // namespace

std::unique_ptr<FabricEndpoint> FabricEndpoint::open(const std::string& provider, std::uint32_t nid, std::uint16_t port,
                                                     std::string* why) {
  std::unique_ptr<FabricEndpoint> made;  // Before the gate, which its destructor wants for itself.
  const std::lock_guard no_fork(FabricLibrary::gate());
  const NoSignals unbroken;  // Also where the first message to another node opens it, in the middle of a call.
  StandardNumbersTaken standard;
  const FabricLibrary* library = FabricLibrary::load(why);
  if (library == nullptr) return nullptr;
  const FabricHints hints(*library, FI_EP_RDM, kCapabilities | kFetchCapabilities, provider);
  if (hints.info != nullptr) {
    hints.info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints.info->tx_attr->msg_order = FI_ORDER_SAS;
    hints.info->rx_attr->msg_order = FI_ORDER_SAS;
  }
  fi_info* found = nullptr;
  int result = hints.find(nid, port, &found);
  if (result == -FI_ENODATA) {
    hints.info->caps = kCapabilities;
    result = hints.find(nid, port, &found);
  }
  if (result != 0) {
    *why = "no provider of libfabric " + (provider.empty() ? "" : "named " + provider + " ") +
           "has reliable datagrams for " + node_id_text(nid) + " (" + library->strerror(-result) + ")";
    return nullptr;
  }
  made.reset(new FabricEndpoint);
  const bool opened = made->open_objects(*library, found, why);
  library->freeinfo(found);
  if (opened) standard.keep();
  if (!opened) *why = "the fabric endpoint " + node_id_text(nid) + ":" + std::to_string(port) + ": " + *why;
  return opened ? std::move(made) : nullptr;
}

bool FabricEndpoint::open_objects(const FabricLibrary& library, fi_info* info, std::string* why) {
  registers_ = (info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  can_fetch_ = (info->caps & kFetchCapabilities) == kFetchCapabilities;
  names_address_ = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  chooses_key_ = (info->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0;
  key_mask_ = info->domain_attr->mr_key_size >= sizeof key_mask_ ? UINT64_MAX
                                                                 : (1ull << info->domain_attr->mr_key_size * 8) - 1;
  return objects_.open(library, info, kMostCompletions, why) && add_receive_buffers(why);
}

bool FabricEndpoint::add_receive_buffers(std::string* why) {
  constexpr std::size_t kBytes = kReceiveBufferCount * kFabricMessageBytes;
  receive_memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  if (registers_) receive_registration_ = register_memory(receive_memory_.get(), kBytes, FI_RECV);
  for (std::size_t i = 0; i < kReceiveBufferCount; ++i) {
    ReceiveBuffer& buffer = receive_buffers_.emplace_back();
    buffer.memory = receive_memory_.get() + i * kFabricMessageBytes;
    post(buffer);
  }
  if (unposted_.size() < kReceiveBufferCount) return true;
  *why = "the provider takes no buffers to receive into";
  return false;
}

FabricEndpoint::~FabricEndpoint() {
  if (FabricLibrary::is_ending()) {
    for (BufferSlab& slab : slabs_) (void)slab.buffers.release();
    (void)receive_memory_.release();
    for (FetchBuffer& buffer : fetch_buffers_) (void)buffer.memory.release();
    return;
  }
  const std::lock_guard no_fork(FabricLibrary::gate());
  objects_.close_endpoint();
  for (BufferSlab& slab : slabs_) close_fabric_object(slab.registration);
  close_fabric_object(receive_registration_);
  for (FetchBuffer& buffer : fetch_buffers_) close_fabric_object(buffer.registration);
  objects_.close();
}

fid_mr* FabricEndpoint::register_memory(const void* memory, std::size_t bytes, std::uint64_t access) {
  std::uint64_t key = 0;
  if (!chooses_key_ && !draw_random(&key, sizeof key)) return nullptr;
  fid_mr* registration = nullptr;
  fi_mr_reg(objects_.domain, memory, bytes, access, 0, key & key_mask_, 0, &registration, nullptr);
  return registration;
}

ExposedMemory FabricEndpoint::expose(const std::byte* memory, std::size_t bytes) {
  ExposedMemory exposed;
  exposed.registration = register_memory(memory, bytes, FI_REMOTE_READ);
  if (exposed.registration == nullptr) return exposed;
  exposed.key = fi_mr_key(exposed.registration);
  exposed.address = names_address_ ? reinterpret_cast<std::uintptr_t>(memory) : 0;
  return exposed;
}

void FabricEndpoint::hide(const ExposedMemory& exposed) { close_fabric_object(exposed.registration); }

FetchBuffer* FabricEndpoint::take_fetch_buffer() {
  if (free_fetches_.empty()) {
    if (fetch_buffers_.size() >= kMostFetches + forsaken_) return nullptr;
    FetchBuffer& made = fetch_buffers_.emplace_back();
    made.memory = std::make_unique_for_overwrite<std::byte[]>(kFetchBytes);
    if (registers_) made.registration = register_memory(made.memory.get(), kFetchBytes, FI_READ);
    free_fetches_.push_back(&made);
  }
  FetchBuffer* const buffer = free_fetches_.back();
  free_fetches_.pop_back();
  return buffer;
}

void FabricEndpoint::forsake(FetchBuffer* buffer) {
  buffer->owner = nullptr;
  ++forsaken_;
}

bool FabricEndpoint::take_back(FetchBuffer* buffer) {
  if (buffer->owner != nullptr) return false;
  --forsaken_;
  give_fetch_buffer(buffer);
  return true;
}

FabricSend FabricEndpoint::fetch(fi_addr_t from, FetchBuffer* buffer, std::size_t bytes, std::uint64_t address,
                                 std::uint64_t key) {
  const NoCancellation whole;
  void* const descriptor = buffer->registration != nullptr ? fi_mr_desc(buffer->registration) : nullptr;
  return outcome_of(
      fi_read(objects_.endpoint, buffer->memory.get(), bytes, descriptor, from, address, key, &buffer->room));
}

SendBuffer* FabricEndpoint::take_buffer() {
  if (free_buffers_.empty()) {
    BufferSlab& slab = slabs_.emplace_back();
    slab.buffers = std::make_unique<SendBuffer[]>(kBuffersPerSlab);
    if (registers_) {
      slab.registration = register_memory(slab.buffers.get(), sizeof(SendBuffer) * kBuffersPerSlab, FI_SEND);
    }
    for (std::size_t i = 0; i < kBuffersPerSlab; ++i) {
      if (slab.registration != nullptr) slab.buffers[i].descriptor = fi_mr_desc(slab.registration);
      free_buffers_.push_back(&slab.buffers[i]);
    }
  }
  SendBuffer* const buffer = free_buffers_.back();
  free_buffers_.pop_back();
  return buffer;
}

FabricSend FabricEndpoint::send(fi_addr_t to, SendBuffer* buffer) {
  const NoCancellation whole;
  return outcome_of(fi_send(objects_.endpoint, buffer->data, buffer->bytes, buffer->descriptor, to, &buffer->room));
}

void FabricEndpoint::post(ReceiveBuffer& buffer) {
  void* const descriptor = receive_registration_ != nullptr ? fi_mr_desc(receive_registration_) : nullptr;
  const ssize_t result =
      fi_recv(objects_.endpoint, buffer.memory, kFabricMessageBytes, descriptor, FI_ADDR_UNSPEC, &buffer.room);
  if (result != 0) unposted_.push_back(&buffer);
}

void FabricEndpoint::release(ReceiveBuffer* holder) { post(*holder); }

bool FabricEndpoint::take_arrival(FabricEvent& event, const fi_cq_msg_entry& entry) {
  auto* holder = static_cast<ReceiveBuffer*>(static_cast<FabricContext*>(entry.op_context));
  if (entry.len == 0) {
    post(*holder);
    return false;
  }
  event.kind = FabricEvent::Kind::kArrived;
  event.holder = holder;
  event.data = holder->memory;
  event.bytes = entry.len;
  return true;
}

bool FabricEndpoint::take_error(FabricEvent& event) {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(objects_.completions, &error, 0) != 1 || error.op_context == nullptr) return false;
  auto* context = static_cast<FabricContext*>(error.op_context);
  if (context->operation == FabricOperation::kFetch) {
    event.kind = FabricEvent::Kind::kMissed;
    event.fetch = static_cast<FetchBuffer*>(context);
    return true;
  }
  if (context->operation == FabricOperation::kReceive) {
    // A message that does not fit is nobody's of ours; the buffer goes on.
    post(*static_cast<ReceiveBuffer*>(context));
    return false;
  }
  if (is_closed_way(error.err)) tell_of_closed_way("sending", "a message to another node", error.err);
  event.kind = FabricEvent::Kind::kFailed;
  event.buffer = static_cast<SendBuffer*>(context);
  return true;
}

std::size_t FabricEndpoint::poll(std::span<FabricEvent> events) {
  while (!unposted_.empty()) {
    ReceiveBuffer& buffer = *unposted_.back();
    unposted_.pop_back();
    post(buffer);
    if (!unposted_.empty() && unposted_.back() == &buffer) break;
  }
  std::array<fi_cq_msg_entry, kEventsPerRead> entries;
  std::array<fi_addr_t, kEventsPerRead> sources;
  const std::size_t wanted = std::min(events.size(), entries.size());
  const ssize_t read = fi_cq_readfrom(objects_.completions, entries.data(), wanted, sources.data());
  if (read == -FI_EAVAIL) return take_error(events[0]) ? 1 : 0;
  std::size_t count = 0;
  for (ssize_t i = 0; i < read; ++i) {
    const fi_cq_msg_entry& entry = entries[static_cast<std::size_t>(i)];
    FabricEvent& event = events[count];
    event = FabricEvent();
    auto* context = static_cast<FabricContext*>(entry.op_context);
    switch (context->operation) {
      case FabricOperation::kReceive:
        if (!take_arrival(event, entry)) continue;
        event.source = sources[static_cast<std::size_t>(i)];
        break;
      case FabricOperation::kFetch:
        event.kind = FabricEvent::Kind::kFetched;
        event.fetch = static_cast<FetchBuffer*>(context);
        break;
      case FabricOperation::kSend: event.buffer = static_cast<SendBuffer*>(context); break;
    }
    ++count;
  }
  return count;
}

}  // namespace portofu
