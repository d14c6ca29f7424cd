// fi_trigger(3): deferred work. It becomes the descriptors that the calls make, which wait for a counter in the engine.

#include <rdma/fi_trigger.h>

#include <algorithm>
#include <span>
#include <unordered_set>

#include "lib/libfabric/atomic.h"
#include "lib/libfabric/mr.h"
#include "lib/libfabric/msg.h"
#include "lib/libfabric/parts.h"
#include "lib/libfabric/rma.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {
namespace {

/// A counter that work will change. @return 0 if there is none
Handle name_changed(fid_cntr* fid) {
  if (fid == nullptr) return 0;
  auto& cntr = *object_of<CounterFid>(fid);
  cntr.is_named = true;
  return cntr.ct_handle;
}

/// Deferred work tells nobody but its counter, unless it asks for a completion.
Deferral deferral_of(const fi_deferred_work& work) {
  const Handle completion = name_changed(work.completion_cntr);
  return {{object_of<CounterFid>(work.triggering_cntr)->ct_handle, work.threshold}, completion, &work};
}

std::uint64_t without_trigger(std::uint64_t flags) { return flags & ~std::uint64_t{FI_TRIGGER}; }

template <class Operation>
ssize_t queue_send(const fi_deferred_work& work, const Operation& op) {
  return send(endpoint_of(op.ep), portal_for(op.msg), widest(op.msg), without_trigger(op.flags), deferral_of(work));
}

template <class Operation>
ssize_t queue_receive(const fi_deferred_work& work, const Operation& op) {
  const Deferral deferral = deferral_of(work);
  if (!has_pieces(op.msg.msg_iov, op.msg.iov_count)) return -FI_EINVAL;
  return receive(endpoint_of(op.ep), {portal_for(op.msg), widest(op.msg), without_trigger(op.flags), &deferral});
}

ssize_t queue_access(const fi_deferred_work& work, const fi_op_rma& op, PacketType type) {
  TransmitCall call;
  call.flags = without_trigger(op.flags);
  call.deferral = deferral_of(work);
  call.word = type == PacketType::kGet ? WordKind::kRead : WordKind::kWrite;
  call.portal = PortalUse::kMemory;
  call.pieces = op.msg.msg_iov;
  call.piece_count = op.msg.iov_count;
  call.target = op.msg.addr;
  call.context = op.msg.context;
  Descriptor d;
  d.type = type;
  d.hdr_data = op.msg.data;
  if (type == PacketType::kPut && (op.flags & FI_REMOTE_CQ_DATA) != 0) d.flags |= kFlagTellsData;
  return access_memory(endpoint_of(op.ep), call, d, op.msg.rma_iov, op.msg.rma_iov_count);
}

ssize_t queue_atomic(const fi_deferred_work& work, fid_ep* ep, std::uint64_t flags, AtomicCall call) {
  call.flags = without_trigger(flags);
  call.deferral = deferral_of(work);
  return run_atomic(endpoint_of(ep), call);
}

ssize_t queue_count(const fi_deferred_work& work, PacketType type) {
  if (work.completion_cntr != nullptr) return -FI_EINVAL;
  const CounterFid& cntr = *object_of<CounterFid>(work.op.cntr->cntr);
  Engine& engine = *cntr.domain->engine;
  Descriptor d;
  d.type = type;
  d.interface_index = kFabricInterface;
  d.count = {name_changed(work.op.cntr->cntr), true, work.op.cntr->value, 0};
  const Deferral deferral = deferral_of(work);
  const Engine::Duty duty(engine);
  return arm(engine, d, deferral.trigger, {deferral.owner});
}

bool is_counting(fi_op_type type) { return type == FI_OP_CNTR_SET || type == FI_OP_CNTR_ADD; }

/// Whether work names what it is about: each operation begins with its endpoint, or its counter.
bool is_about_something(const fi_deferred_work& work) {
  if (work.triggering_cntr == nullptr || work.op.msg == nullptr) return false;
  return is_counting(work.op_type) ? work.op.cntr->cntr != nullptr : work.op.msg->ep != nullptr;
}

/// Whether all that work names is of one domain.
bool is_of(const Domain& domain, const fi_deferred_work& work) {
  const auto is_ours = [&](fid_cntr* fid) { return fid == nullptr || object_of<CounterFid>(fid)->domain == &domain; };
  return is_ours(work.triggering_cntr) && is_ours(work.completion_cntr) &&
         (is_counting(work.op_type) ? is_ours(work.op.cntr->cntr) : endpoint_of(work.op.msg->ep).domain == &domain);
}

ssize_t queue(const Domain& domain, const fi_deferred_work& work) {
  if (work.op_type > FI_OP_CNTR_ADD) return -FI_ENOSYS;
  if (!is_about_something(work)) return -FI_EINVAL;
  if (!is_of(domain, work)) return -FI_EDOMAIN;
  switch (work.op_type) {
    case FI_OP_SEND: return queue_send(work, *work.op.msg);
    case FI_OP_TSEND: return queue_send(work, *work.op.tagged);
    case FI_OP_RECV: return queue_receive(work, *work.op.msg);
    case FI_OP_TRECV: return queue_receive(work, *work.op.tagged);
    case FI_OP_READ: return queue_access(work, *work.op.rma, PacketType::kGet);
    case FI_OP_WRITE: return queue_access(work, *work.op.rma, PacketType::kPut);
    case FI_OP_ATOMIC: {
      const fi_op_atomic& op = *work.op.atomic;
      return queue_atomic(work, op.ep, op.flags, {AtomicFamily::kBase, &op.msg});
    }
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& op = *work.op.fetch_atomic;
      return queue_atomic(work, op.ep, op.flags, {AtomicFamily::kFetch, &op.msg, op.fetch.msg_iov, op.fetch.iov_count});
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& op = *work.op.compare_atomic;
      return queue_atomic(work, op.ep, op.flags,
                          {AtomicFamily::kCompare, &op.msg, op.fetch.msg_iov, op.fetch.iov_count, op.compare.msg_iov,
                           op.compare.iov_count});
    }
    case FI_OP_CNTR_SET: return queue_count(work, PacketType::kCountSet);
    case FI_OP_CNTR_ADD: return queue_count(work, PacketType::kCountIncrement);
    default: return -FI_ENOSYS;
  }
}

constexpr bool is_count(PacketType type) {
  return type == PacketType::kCountSet || type == PacketType::kCountIncrement;
}

/// On duty: where what waits counts as a part; nullptr: it is none.
Gate* gate_of(Domain& domain, const Interface& ni, const Descriptor& waiting) {
  const Descriptor* d = transfer_of(waiting);
  if (d == nullptr) return nullptr;
  const MemoryDescriptor* md = ni.mds.find(is_fetching(d->type) ? d->portals.get_md_handle : d->portals.md_handle);
  if (md == nullptr || md->ct_handle == 0) return nullptr;
  const auto found = domain.gates.find(md->ct_handle);
  return found != domain.gates.end() ? found->second.get() : nullptr;
}

bool is_at_home(const TriggeredOperation& operation, const Endpoint& ep) {
  return operation.home == ep.tx.get() || operation.home == ep.rx.get();
}

/// On duty: what waits for any counter of the domain.
template <class Which>
std::uint32_t take_out_everywhere(Domain& domain, Core& core, Which&& which) {
  std::uint32_t count = 0;
  for (const CounterFid* cntr : domain.counters) count += take_out(domain, core, cntr->counter(core), which);
  // What is to be told of an operation waits for its parts.
  for (const auto& [ct_handle, gate] : domain.gates) take_out(domain, core, gate->counter(core), which);
  return count;
}

/// On duty: takes work out that waits for some counters, and with its parts what was to be told of it. What has started
/// goes on.
/// @param work  nullptr: all
/// @return how much there was
std::uint32_t take_work_out(Domain& domain, Core& core, std::span<CounterFid* const> counters, const void* work) {
  std::unordered_set<const void*> works;
  const auto is_meant = [&](const TriggeredOperation& operation) {
    if (operation.owner == nullptr || (work != nullptr && operation.owner != work)) return false;
    works.insert(operation.owner);
    return true;
  };
  std::uint32_t count = 0;
  for (const CounterFid* cntr : counters) count += take_out(domain, core, cntr->counter(core), is_meant);
  if (works.empty()) return 0;
  const auto tells_of_it = [&](const TriggeredOperation& operation) { return works.contains(operation.owner); };
  for (const auto& [ct_handle, gate] : domain.gates) take_out(domain, core, gate->counter(core), tells_of_it);
  return count;
}

/// Takes deferred work out of its counters: one, or all if it is nullptr. @return how much there was
std::uint32_t cancel_work(Domain& domain, const void* work) {
  const Engine::Duty duty(*domain.engine);
  return take_work_out(domain, duty.core(), domain.counters, work);
}

/// On duty: what may be an endpoint's and waits for a counter, or until messages before it have been received.
template <class Which>
void take_out_wherever(Core& core, const Endpoint& ep, Which&& which) {
  take_out_everywhere(*ep.domain, core, which);
  if (ep.tx->av == nullptr) return;
  for (const Credit& credit : ep.tx->av->credits) {
    if (credit.ct_handle != 0) take_out(*ep.domain, core, *interface_of(core).cts.find(credit.ct_handle), which);
  }
}

/// On duty: takes an operation in parts out. @return false if some part has started: one cannot take half of it back
bool take_whole_out(Core& core, const Endpoint& ep, const Gate& gate) {
  std::uint64_t waiting = 0;
  take_out_wherever(core, ep, [&](const TriggeredOperation& operation) {
    waiting += gate_of(*ep.domain, interface_of(core), operation.descriptor) == &gate ? 1 : 0;
    return false;
  });
  if (waiting != gate.parts) return false;
  take_parts_out(core, ep, gate);
  take_all_out(*ep.domain, core, gate.counter(core));
  return true;
}

}  // namespace

const Descriptor* transfer_of(const Descriptor& waiting) {
  if (waiting.type == PacketType::kLocalCall) return static_cast<const KeptCall*>(waiting.call)->starts;
  return is_count(waiting.type) ? nullptr : &waiting;
}

bool is_part(Domain& domain, const Core& core, const Descriptor& transfer) {
  return gate_of(domain, interface_of(core), transfer) != nullptr;
}

void forget(Domain& domain, Core& core, TriggeredOperation* operation) {
  const Descriptor& waiting = operation->descriptor;
  Interface& ni = interface_of(core);
  if (const Descriptor* d = transfer_of(waiting)) {
    if (Gate* const gate = gate_of(domain, ni, waiting)) --gate->parts;  // This one will never start.
    free_memory(ni, *d);
  }
  if (waiting.type == PacketType::kLocalCall) domain.local_calls.erase(waiting.call);
  --ni.triggered_count;
  delete operation;
}

void end_waiting(Core& core, const Endpoint& ep) {
  const auto is_of_it = [&ep](const TriggeredOperation& operation) { return is_at_home(operation, ep); };
  take_out_wherever(core, ep, is_of_it);
}

void take_parts_out(Core& core, const Endpoint& ep, const Gate& gate) {
  take_out_wherever(core, ep, [&](const TriggeredOperation& operation) {
    return gate_of(*ep.domain, interface_of(core), operation.descriptor) == &gate;
  });
}

bool take_operation_out(Core& core, const Endpoint& ep, const std::function<bool(const Descriptor&)>& is_it) {
  bool found = false;
  const Gate* gate = nullptr;
  take_out_wherever(core, ep, [&](const TriggeredOperation& operation) {
    if (found || operation.owner != nullptr || !is_at_home(operation, ep) || !is_it(operation.descriptor)) return false;
    found = true;
    gate = gate_of(*ep.domain, interface_of(core), operation.descriptor);
    return gate == nullptr;
  });
  return gate != nullptr ? take_whole_out(core, ep, *gate) : found;
}

bool is_changed_by_work(Core& core, const CounterFid& cntr) {
  Interface& ni = interface_of(core);
  const Handle ct_handle = cntr.ct_handle;
  bool found = std::ranges::any_of(cntr.domain->local_calls,
                                   [&](const auto& local) { return local.second->changes == ct_handle; });
  ni.mds.for_each([&](Handle, const MemoryDescriptor& md) { found |= md.ct_handle == ct_handle; });
  ni.entries.for_each([&](Handle, const ListEntry& entry) { found |= entry.ct_handle == ct_handle; });
  const auto look = [&](const TriggeredOperation& operation) {
    const Descriptor& d = operation.descriptor;
    found |= is_count(d.type) && d.count.ct_handle == ct_handle;
    return false;  // It stays.
  };
  std::ranges::for_each(core.fired, look);
  take_out_everywhere(*cntr.domain, core, look);
  return found;
}

void flush_work(CounterFid& cntr) {
  const Engine::Duty duty(*cntr.domain->engine);
  CounterFid* const counters[] = {&cntr};
  take_work_out(*cntr.domain, duty.core(), counters, nullptr);
}

int control_domain(fid* object, int command, void* argument) {
  auto& domain = *object_of<Domain>(object);
  switch (command) {
    case FI_QUEUE_WORK:
      if (argument == nullptr) return -FI_EINVAL;
      return guarded([&] { return static_cast<int>(queue(domain, *static_cast<const fi_deferred_work*>(argument))); });
    case FI_CANCEL_WORK:
      if (argument == nullptr) return -FI_EINVAL;
      return guarded([&] { return cancel_work(domain, argument) != 0 ? 0 : -FI_ENOENT; });
    case FI_FLUSH_WORK:
      if (argument != nullptr) return -FI_EINVAL;
      return guarded([&] {
        cancel_work(domain, nullptr);
        return 0;
      });
    case FI_MAP_RAW_MR: return map_raw_key(*static_cast<const struct fi_mr_map_raw*>(argument));
    case FI_UNMAP_KEY: return 0;
    default: return -FI_ENOSYS;
  }
}

}  // namespace portofu::fabric
