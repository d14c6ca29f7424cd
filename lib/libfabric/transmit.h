#pragma once
// What every sending call ends in: one descriptor, as lib/portals4 makes one. `transmit` resolves the address, chooses
// the memory descriptor, and posts it, or arms it on a counter.

#include <rdma/fi_endpoint.h>
#include <rdma/fi_trigger.h>

#include <functional>
#include <span>

#include "lib/libfabric/credit.h"
#include "lib/libfabric/endpoint.h"
#include "lib/libfabric/info.h"
#include "lib/libfabric/word.h"

namespace portofu::fabric {

/// What deferred work has beside its operation.
struct Deferral {
  Trigger trigger{};
  Handle completion = 0;        ///< Counter that counts its end, in place of the endpoint's; 0: none.
  const void* owner = nullptr;  ///< The work, by which it may be canceled.
};

/// A sending call, before its arguments are checked.
struct TransmitCall {
  WordKind word = WordKind::kSend;
  PortalUse portal = PortalUse::kMessage;
  const iovec* pieces = nullptr;  ///< Local memory.
  std::size_t piece_count = 0;
  fi_addr_t target = FI_ADDR_UNSPEC;
  void* context = nullptr;
  std::uint64_t flags = 0;         ///< As the call counts them, FI_COMPLETION included.
  const iovec* results = nullptr;  ///< Where a fetching atomic puts the old values.
  std::size_t result_count = 0;
  bool counts = true;    ///< False: a part of an operation, of whose success nobody is told.
  Handle failures = 0;   ///< Event queue of a part's failure, in place of the endpoint's; 0: it is no part.
  bool goes_on = false;  ///< A part of a call has left, so this one must not be refused for want of room.
  Deferral deferral{};
};

/// Of two lengths; UINT64_MAX, which is too long for everything, if there are not so many bytes.
constexpr std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

/// Whether a call has the pieces that it counts.
inline bool has_pieces(const iovec* pieces, std::size_t count) {
  return count <= kMostPieces && (count == 0 || pieces != nullptr);
}

/// Bytes of all pieces.
inline std::uint64_t length_of(const iovec* pieces, std::size_t count) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length = sum_of(length, pieces[i].iov_len);
  return length;
}

/// What a call is takes the capability of that name: what counts as a read for a counter (fi_endpoint(3), FI_READ),
/// FI_READ.
/// @return 0 | -FI_EOPBADSTATE: the endpoint is not enabled, or was not opened for what the call does
ssize_t check_access(const Transmit& tx, const TransmitCall& call);

/// @param length  of an operation, whole
/// @return 0 | -FI_EMSGSIZE | -FI_EINVAL: it is injected, and too long for that
ssize_t check_length(const TransmitCall& call, PacketType type, std::uint64_t length);

/// Completes the descriptor, which says everything but target, memory and word, and posts it.
/// @return 0 | -FI_EAGAIN: too much waits for room towards the target | -FI_EINVAL | -FI_EOPBADSTATE | -FI_ENOMEM
ssize_t transmit(Endpoint& ep, const TransmitCall& call, Descriptor& descriptor);

/// A message that lies in one buffer.
struct BufferMessage {
  const void* buffer;
  std::size_t bytes;
  fi_addr_t target;
  std::uint64_t tag;
  std::uint64_t data;
  void* context;
};

/// Sends it, as `transmit` would: the short path of fi_send, fi_inject, and of those with a tag or data.
/// @param flags  as in TransmitCall
template <PortalUse portal>
ssize_t send_buffer(Endpoint& ep, const BufferMessage& message, std::uint64_t flags);

/// transmit, of deferred work that compares. "Referenced data buffers are not read" before it starts (fi_trigger(3)).
/// @param compared  what goes into the operand of the descriptor then
ssize_t transmit_compared(Endpoint& ep, const TransmitCall& call, Descriptor& descriptor,
                          std::span<const iovec> compared);

/// On duty: frees the memory descriptors of an operation of its own that will never start. @param ni  whose they are
void free_memory(Interface& ni, const Descriptor& descriptor);

/// A handle that no counter has.
inline constexpr Handle kNoCounter = UINT32_MAX;

/// The trigger of a context with FI_TRIGGER. @return its counter, or none; kNoCounter if it names no threshold of one
/// of the domain
Trigger trigger_of(const Domain& domain, const void* context, std::uint64_t flags);

/// On duty: lets a descriptor wait for a counter.
/// @param claim  see Deferral; its home is the half of an endpoint that the operation is of
ssize_t arm(Engine& engine, const Descriptor& descriptor, const Trigger& trigger, const Claim& claim = {});

/// On duty: lets a call wait for a counter.
ssize_t keep(std::shared_ptr<KeptCall> call, const Trigger& trigger, const Claim& claim);

/// The transfer that something waits to be, or to start; nullptr: it is none.
const Descriptor* transfer_of(const Descriptor& waiting);

/// On duty: an endpoint closes, and with it ends what has not started.
void end_waiting(Core& core, const Endpoint& ep);

/// On duty: takes an operation of an endpoint out, with all its parts, that waits for a counter and is no deferred
/// work, or that waits for its turn.
/// @param is_it  bool(const Descriptor&), whether it is this one
/// @return whether there was one
bool take_operation_out(Core& core, const Endpoint& ep, const std::function<bool(const Descriptor&)>& is_it);

/// On duty: whether a transfer is one of several that are one operation.
bool is_part(Domain& domain, const Core& core, const Descriptor& transfer);

/// On duty: whether deferred work that waits, or that runs, will change a counter.
bool is_changed_by_work(Core& core, const CounterFid& cntr);

/// Takes out what waits for a counter as deferred work.
void flush_work(CounterFid& cntr);

/// On duty: frees an operation that was taken out of its counter, and what it holds.
void forget(Domain& domain, Core& core, TriggeredOperation* operation);

/// On duty: takes some of what waits for a counter out.
/// @param which  bool(const TriggeredOperation&)
/// @return how much there was
template <class Which>
std::uint32_t take_out(Domain& domain, Core& core, CountingEvent& counter, Which&& which) {
  return counter.cancel_some_on_duty(which, [&](TriggeredOperation* operation) { forget(domain, core, operation); });
}
/// The same with all of it.
inline std::uint32_t take_all_out(Domain& domain, Core& core, CountingEvent& counter) {
  return take_out(domain, core, counter, [](const TriggeredOperation&) { return true; });
}

}  // namespace portofu::fabric
