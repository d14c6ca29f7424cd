#pragma once
// Endpoints: a sending half and a receiving half. An ordinary endpoint has one of each; a scalable one has as many as
// contexts were opened. All that belongs to one half stands together. @spec fi_endpoint(3)

#include <rdma/fi_endpoint.h>

#include <array>
#include <memory>
#include <vector>

#include "lib/libfabric/av.h"
#include "lib/libfabric/cntr.h"
#include "lib/libfabric/cq.h"

namespace portofu::fabric {

/// What is told of an operation, and when. Each is a memory descriptor of the engine that covers the whole address
/// space, so buffers are offsets into it, and a call makes no memory descriptor.
enum class MdUse : std::uint8_t {
  kSend,       ///< Completion when the buffer is free.
  kSendQuiet,  ///< None.
  kSendAck,    ///< Completion when the message is at its place.
  kSendAckQuiet,
  kInject,  ///< None, and the buffer is free when the call returns.
  kWrite,   ///< Completion when the data is in the target's memory.
  kWriteQuiet,
  kWriteInject,
  kRead,
  kReadQuiet,
  kOperand,  ///< What a fetching atomic sends: its reply tells all.
  kCount,
};
inline constexpr std::size_t kMdUseCount = static_cast<std::size_t>(MdUse::kCount);

constexpr bool is_injecting(MdUse use) { return use == MdUse::kInject || use == MdUse::kWriteInject; }

/// Capabilities that are families of calls.
inline constexpr std::uint64_t kCallKinds = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

/// When an operation is over.
inline constexpr std::uint64_t kLevels =
    FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE;

/// The sending half.
struct Transmit {
  Domain* domain = nullptr;
  AddressVector* av = nullptr;
  CompletionQueue* cq = nullptr;
  CounterFid* send_cntr = nullptr;
  CounterFid* write_cntr = nullptr;
  CounterFid* read_cntr = nullptr;
  std::uint32_t number = kMaxEndpoints;  ///< Under which its messages are sent.
  std::uint32_t context = 0;             ///< Of those of a scalable endpoint, which share a number.
  bool enabled = false;
  bool selective = false;  ///< FI_SELECTIVE_COMPLETION.
  /// Of FI_SEND, FI_READ and FI_WRITE, what may be initiated by it, and of kCallKinds, by which calls.
  std::uint64_t access = 0;
  std::array<MemoryDescriptor*, kMdUseCount> mds{};  ///< In the engine, while `enabled`.
};

/// The receiving half.
struct Receive {
  Domain* domain = nullptr;
  AddressVector* av = nullptr;
  CompletionQueue* cq = nullptr;
  CounterFid* recv_cntr = nullptr;
  CounterFid* remote_write_cntr = nullptr;
  CounterFid* remote_read_cntr = nullptr;
  std::uint32_t number =
      kMaxEndpoints;     ///< Under which it is reached. Of a scalable endpoint that of the first context.
  bool enabled = false;  ///< Receives may be posted, so messages have a place.
  bool open = false;     ///< It is reached under its number.
  /// Of a context: that of its scalable endpoint, which stands for all; nullptr of others.
  std::shared_ptr<Receive> whole;
  bool first_is_there = false;  ///< Of a `whole`: the first context is open, or being closed, and has the memory.
  bool shared = false;  ///< Several endpoints receive by it; who is told of a message depends on which one it came by.
  bool selective = false;
  bool directed = false;  ///< FI_DIRECTED_RECV: the source of a receive counts.
  /// Of FI_REMOTE_READ and FI_REMOTE_WRITE, what others may do by it, and FI_RECV: "to restrict the types of RMA
  /// operations supported by an endpoint" (fi_getinfo(3)). Of kCallKinds, by which calls it receives.
  std::uint64_t access = 0;
  std::size_t min_multi_recv = 64;
};

/// What endpoints with a shared receive context have in common (fi_srx_context). No message is sent to its number.
struct SharedReceive {
  std::shared_ptr<Receive> rx;
  std::vector<Receive*> members;  ///< On duty: open endpoints. What belongs to none of them is told at the first.
};

/// What fi_stx_context gives. The halves that send have little, so there is nothing to share but the name.
struct SharedTransmit {
  fid_stx fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  Users users{0};
};

/// Contexts of one kind that a scalable endpoint may have.
struct Contexts {
  std::uint32_t count = 0;
  std::uint64_t opened = 0;  ///< On duty: a bit for each.
};
static_assert(kMaxEndpoints <= 64);

/// An endpoint, a context of one, or an alias. A scalable endpoint has a half of its own only where it uses a shared
/// context, and contexts in place of the other. An alias has what its calls need of the endpoint that it stands for,
/// and flags of its own; all that is asked or done otherwise is asked of `root`, and done to it.
struct Endpoint {
  Endpoint() = default;
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  fid_ep fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  Users users{0};
  EventQueueFid* eq = nullptr;
  /// Both are always there; that of a context which only receives, or only sends, is never enabled.
  std::shared_ptr<Transmit> tx = std::make_shared<Transmit>();
  std::shared_ptr<Receive> rx = std::make_shared<Receive>();
  bool sends = false;
  bool receives = false;
  std::uint64_t tx_flags = 0;  ///< fi_tx_attr::op_flags.
  std::uint64_t rx_flags = 0;
  std::uint64_t caps = 0;
  std::unique_ptr<SharedReceive> shared;  ///< Of FI_CLASS_SRX_CTX only.
  Endpoint* srx = nullptr;                ///< Where it gets its receives from; nullptr: they are its own.
  SharedTransmit* stx = nullptr;
  bool wants_srx = false;                      ///< It was opened for a shared receive context.
  bool wants_stx = false;                      ///< The same of a shared transmit context.
  Contexts tx_contexts;                        ///< Of a scalable endpoint.
  Contexts rx_contexts;                        ///< The same.
  Endpoint* parent = nullptr;                  ///< Of a context: its scalable endpoint.
  std::uint32_t index = 0;                     ///< Of a context.
  Endpoint* root = this;                       ///< Of an alias: what it stands for.
  std::uint32_t first_number = kMaxEndpoints;  ///< Numbers of its own.
  std::uint32_t number_count = 0;              ///< Of those; they are given back with the endpoint.
  AddressVector* av = nullptr;

  /// What is told of a failed operation that has no context of its own. @spec fi_endpoint(3), "notes"
  void* context() const { return fid.fid.context; }

  /// Flags of the calls that take none, and those of a call that takes `flags`.
  std::uint64_t sending() const { return with_completion(tx_flags, *tx); }
  std::uint64_t receiving() const { return with_completion(rx_flags, *rx); }
  std::uint64_t sending(std::uint64_t flags) const { return tx->selective ? flags : flags | FI_COMPLETION; }
  /// Flags of a call that injects: what it is by default, but for its completion (fi_msg(3), fi_inject).
  std::uint64_t injecting() const { return FI_INJECT | (tx_flags & kLevels); }
  std::uint64_t receiving(std::uint64_t flags) const { return rx->selective ? flags : flags | FI_COMPLETION; }

 private:
  template <class Half>
  static std::uint64_t with_completion(std::uint64_t flags, const Half& half) {
    return half.selective ? flags : flags | FI_COMPLETION;
  }
};

/// What is bound and enabled, and has a name.
inline Endpoint& root_of(fid* object) { return *object_of<Endpoint>(object)->root; }
inline Endpoint& endpoint_of(fid_ep* fid) { return *object_of<Endpoint>(fid); }

/// On duty: an endpoint gets its receives from a shared context. Throws bad_alloc without memory.
void join(Core& core, SharedReceive& shared, Receive& member);
/// It does so no more, and what was for it takes none of the receives. Waits for messages that are arriving, for a
/// second at most.
void leave(Engine& engine, SharedReceive& shared, const Receive& member);

/// What of some capabilities those of a context leave. Capabilities of a context that name no family of calls limit
/// none.
std::uint64_t limited(std::uint64_t caps, std::uint64_t of_context);

std::unique_ptr<Endpoint> make_endpoint(Domain& domain, std::size_t fclass, void* context);
int take_numbers_for(Endpoint& ep, std::uint32_t count);

/// The tables of functions, each in the file of its page.
extern fi_ops_msg message_calls;
extern fi_ops_tagged tagged_calls;
extern fi_ops_rma memory_calls;
extern fi_ops_atomic atomic_calls;
extern fi_ops_cm address_calls;

/// On duty: memory that is registered is reached through every enabled endpoint of its domain. Throws bad_alloc without
/// memory, or without a place in the list.
void open_region_at(Core& core, MemoryRegion& region, const Receive& receive);

}  // namespace portofu::fabric
