#include "lib/libfabric/parts.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "engine/door/libfabric.h"

namespace portofu::fabric {
namespace {

/// What happens when all parts are over.
struct WholeOperation : KeptCall {
  Gate* gate = nullptr;
  Handle eq_handle = 0;  ///< Where it is told.
  void* word = nullptr;  ///< Of the operation.
  bool is_told = false;  ///< If it succeeds, too.
  bool is_over = false;
  std::uint64_t bytes = 0;

  WholeOperation() = default;
  WholeOperation(const WholeOperation&) = delete;
  WholeOperation& operator=(const WholeOperation&) = delete;
  /// There is room in the lists for all gates.
  ~WholeOperation() {
    if (gate != nullptr) (is_over ? domain->idle_gates : domain->left_gates).push_back(gate);
  }
};

/// On duty: how the operation ended: as the first part that failed. The gate forgets it.
NiFail take_outcome(const Core& core, const Gate& gate) {
  NiFail outcome = gate.counter(core).failure() != 0 ? NiFail::kUndeliverable : NiFail::kOk;
  EventQueue& failures = *interface_of(core).eqs.find(gate.eq_handle);
  for (bool first = true; !failures.empty(); first = false) {
    if (first) outcome = failures.oldest_on_duty().ni_fail_type;
    failures.remove_oldest_on_duty();
  }
  return outcome;
}

void finish(Core& core, LocalCall& local) {
  auto& whole = static_cast<WholeOperation&>(local);
  Interface& ni = interface_of(core);
  const NiFail outcome = take_outcome(core, *whole.gate);
  if (outcome != NiFail::kOk || whole.is_told) {
    post_new_event(core, ni, whole.eq_handle, [&](Event& event) {
      event.type = EventKind::kAck;
      event.user_ptr = whole.word;
      event.ni_fail_type = outcome;
      event.mlength = outcome == NiFail::kOk ? whole.bytes : 0;
    });
  }
  count_outcome(core, ni, whole.changes, outcome, 1);
  whole.is_over = true;
  whole.domain->local_calls.erase(&local);
}

/// On duty: gives back what the engine has of a gate, which may be less than all.
void free_gate(Interface& ni, const Gate& gate) {
  if (EventQueue* failures = ni.eqs.find(gate.eq_handle)) {
    failures->close();
    ni.eqs.free(gate.eq_handle);
  }
  if (gate.ct_handle != 0) ni.cts.free(gate.ct_handle);
}

/// On duty. Throws bad_alloc without memory. @return false if there is no counter or no queue left
bool make_gate(Interface& ni, Domain& domain, Gate& gate) {
  const std::size_t room = std::bit_ceil(domain.gates.size() + 1);  // Who leaves a gate later needs no memory.
  domain.idle_gates.reserve(room);
  domain.left_gates.reserve(room);
  if (ni.cts.allocate(&gate.ct_handle) == nullptr) return false;
  EventQueue* failures = ni.eqs.allocate(&gate.eq_handle);
  constexpr std::uint64_t kFirstSize = 7;
  if (failures == nullptr || !failures->open(kFirstSize)) return false;
  failures->let_grow();
  return true;
}

/// On duty. Throws bad_alloc without memory. @return nullptr if there is no counter or no queue left
Gate* add_gate(Interface& ni, Domain& domain) {
  auto made = std::make_unique<Gate>();
  Gate* const gate = made.get();
  try {
    if (make_gate(ni, domain, *gate)) return domain.gates.emplace(gate->ct_handle, std::move(made)).first->second.get();
  } catch (...) {
    if (made != nullptr) free_gate(ni, *gate);
    throw;
  }
  free_gate(ni, *gate);
  return nullptr;
}

/// On duty: takes a gate that nothing counts at any more. @return nullptr if there is none
Gate* take_idle(const Core& core, Domain& domain) {
  const auto is_over = [&core](const Gate* gate) { return gate->counter(core).reached() >= gate->parts; };
  std::vector<Gate*>& list = domain.idle_gates.empty() ? domain.left_gates : domain.idle_gates;
  const auto found = std::ranges::find_if(list, is_over);
  if (found == list.end()) return nullptr;
  std::swap(*found, list.back());
  Gate* gate = list.back();
  list.pop_back();
  return gate;
}

/// On duty. Throws bad_alloc without memory. @return nullptr if there is no gate
Gate* open_gate(Core& core, Domain& domain) {
  Gate* gate = take_idle(core, domain);
  if (gate == nullptr) gate = add_gate(interface_of(core), domain);
  if (gate == nullptr) return nullptr;
  take_outcome(core, *gate);  // Of an operation that nobody was told of.
  gate->counter(core).reset_on_duty();
  gate->counter(core).let_failures_start();
  return gate;
}

/// On duty: what counts the whole; deferred work has a counter of its own, or none.
Handle counter_of(const Transmit& tx, const TransmitCall& whole, PacketType type) {
  if (whole.deferral.owner != nullptr) return whole.deferral.completion;
  const CounterFid* cntr = type == PacketType::kGet || is_fetching(type) ? tx.read_cntr : tx.write_cntr;
  return cntr != nullptr ? cntr->ct_handle : 0;
}

}  // namespace

ssize_t Parts::open(Endpoint& ep, const TransmitCall& whole, PacketType type, std::size_t count) {
  ep_ = &ep;
  count_ = count;
  return count < 2 ? 0 : guarded([&] { return open_whole(whole, type); });
}

ssize_t Parts::open_whole(const TransmitCall& whole, PacketType type) {
  Endpoint& ep = *ep_;
  if (const ssize_t wrong = check_access(*ep.tx, whole); wrong != 0) return wrong;
  const std::uint64_t bytes = length_of(whole.pieces, whole.piece_count);
  if (const ssize_t result = check_length(whole, type, bytes); result != 0) return result;
  Engine& engine = *ep.domain->engine;
  const Engine::Duty duty(engine);
  auto end = std::make_shared<WholeOperation>();
  end->run = finish;
  end->domain = ep.domain;
  end->changes = counter_of(*ep.tx, whole, type);
  Gate* const gate = end->gate = open_gate(duty.core(), *ep.domain);
  if (gate == nullptr) return -FI_EAGAIN;
  end->eq_handle = ep.tx->cq != nullptr ? ep.tx->cq->eq_handle : 0;
  end->word = make_word(whole.word, whole.context);
  end->is_told = (whole.flags & FI_COMPLETION) != 0;
  end->bytes = bytes;
  gate->parts = 0;  // Until it is armed.
  const ssize_t result = keep(std::move(end), {gate->ct_handle, count_}, {whole.deferral.owner, ep.tx.get()});
  if (result != 0) return result;
  gate->parts = count_;
  gate_ = gate;
  return 0;
}

TransmitCall Parts::cut(const TransmitCall& whole, std::size_t index) const {
  TransmitCall part = whole;
  part.goes_on = index != 0;
  if (index != 0) part.flags &= ~std::uint64_t{FI_FENCE};
  if (gate_ == nullptr) return part;
  part.flags &= ~std::uint64_t{FI_COMPLETION};
  part.counts = false;
  part.deferral.completion = gate_->ct_handle;
  part.failures = gate_->eq_handle;
  return part;
}

ssize_t Parts::give_up(ssize_t result, std::size_t index) {
  if (gate_ == nullptr) return result;
  const Engine::Duty duty(*ep_->domain->engine);
  take_all_out(*ep_->domain, duty.core(), gate_->counter(duty.core()));
  gate_->parts = index;
  if (index != 0) take_parts_out(duty.core(), *ep_, *gate_);
  return result;
}

void close_gates(Core& core, Domain& domain) {
  Interface& ni = interface_of(core);
  for (const auto& [ct_handle, gate] : domain.gates) {
    take_all_out(domain, core, gate->counter(core));
    free_gate(ni, *gate);
  }
  domain.idle_gates.clear();
  domain.left_gates.clear();
  domain.gates.clear();
}

Domain::Domain() = default;
Domain::~Domain() {
  if (lane != nullptr) release_lane(*lane);
}

}  // namespace portofu::fabric
