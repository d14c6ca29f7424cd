// fi_cntr(3): counters.

#include "lib/libfabric/cntr.h"

#include <memory>

namespace portofu::fabric {
namespace {

std::uint64_t read_success(fid_cntr* fid) {
  const auto* cntr = object_of<CounterFid>(fid);
  std::uint64_t value = 0;
  auto look = [&](Core& core) {
    CountingEvent& counter = cntr->counter(core);
    value = counter.success();
    return counter.is_news_on_duty();
  };
  cntr->domain->engine->poll(look);
  return value;
}

std::uint64_t read_failure(fid_cntr* fid) {
  const auto* cntr = object_of<CounterFid>(fid);
  cntr->domain->engine->step();
  const Engine::Duty duty(*cntr->domain->engine);
  return cntr->counter(duty.core()).failure();
}

/// Adds or sets, as the descriptor says; what waits for the count starts.
int change(fid_cntr* fid, DescriptorKind kind, std::uint64_t success, std::uint64_t failure) {
  return guarded([&] {
    const auto* cntr = object_of<CounterFid>(fid);
    Descriptor descriptor;
    descriptor.kind = kind;
    descriptor.interface_index = kFabricInterface;
    descriptor.md_handle = cntr->ct_handle;
    descriptor.length = success;
    descriptor.remote_offset = failure;
    cntr->domain->engine->post(descriptor);
    return 0;
  });
}

int add(fid_cntr* fid, std::uint64_t value) { return change(fid, DescriptorKind::kCountIncrement, value, 0); }
int add_failure(fid_cntr* fid, std::uint64_t value) { return change(fid, DescriptorKind::kCountIncrement, 0, value); }
int set(fid_cntr* fid, std::uint64_t value) { return change(fid, DescriptorKind::kCountSet, value, read_failure(fid)); }
int set_failure(fid_cntr* fid, std::uint64_t value) {
  return change(fid, DescriptorKind::kCountSet, read_success(fid), value);
}

int wait(fid_cntr* fid, std::uint64_t threshold, int timeout_ms) {
  const auto* cntr = object_of<CounterFid>(fid);
  std::uint64_t failures = UINT64_MAX;  // Those before the wait say nothing of it.
  bool failed = false;
  auto is_reached = [&](Core& core) {
    const CountingEvent& counter = cntr->counter(core);
    if (failures == UINT64_MAX) failures = counter.failure();
    failed = counter.failure() != failures;
    return counter.success() >= threshold || failed;
  };
  const std::uint64_t timeout_ns =
      timeout_ms < 0 ? Engine::kForever : static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
  if (cntr->domain->engine->wait(is_reached, timeout_ns, OnAbort::kGoOn) != WaitResult::kReached) return -FI_ETIMEDOUT;
  return failed ? -FI_EAVAIL : 0;
}

int close(fid* object) {
  auto* cntr = object_of<CounterFid>(object);
  if (cntr->users.load() != 0) return -FI_EBUSY;
  {
    const Engine::Duty duty(*cntr->domain->engine);
    Interface& ni = interface_of(duty.core());
    ni.triggered_count -= cntr->counter(duty.core()).cancel_on_duty();
    ni.cts.free(cntr->ct_handle);
  }
  --cntr->domain->users;
  delete cntr;
  return 0;
}

fi_ops object_calls = {sizeof(fi_ops), close, refuse_bind, refuse_control, refuse_ops, NotThere{}, NotThere{}};

fi_ops_cntr calls = {
    .size = sizeof(fi_ops_cntr),
    .read = read_success,
    .readerr = read_failure,
    .add = add,
    .set = set,
    .wait = wait,
    .adderr = add_failure,
    .seterr = set_failure,
};

/// On duty: whether all that a gate counts is over, and what waited for it has started.
bool is_idle(const Core& core, const CounterFid& gate) {
  const CountingEvent& counter = gate.counter(core);
  return counter.success() + counter.failure() >= gate.parts;
}

}  // namespace

CounterFid* open_gate(Core& core, Domain& domain, std::uint64_t parts) {
  Interface& ni = interface_of(core);
  CounterFid* gate = nullptr;
  for (const auto& known : domain.gates) {
    if (is_idle(core, *known)) gate = known.get();
  }
  if (gate == nullptr) {
    auto made = std::make_unique<CounterFid>();
    if (ni.cts.allocate(&made->ct_handle) == nullptr) return nullptr;
    gate = domain.gates.emplace_back(std::move(made)).get();
  }
  // What a part that failed has left behind.
  ni.triggered_count -= gate->counter(core).cancel_on_duty();
  gate->counter(core).reset_on_duty();
  gate->domain = &domain;
  gate->parts = parts;
  return gate;
}

Domain::Domain() = default;
Domain::~Domain() = default;

int open_cntr(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** opened, void* context) {
  return guarded([&] {
    const fi_wait_obj wanted = attr != nullptr ? attr->wait_obj : FI_WAIT_UNSPEC;
    if (wanted == FI_WAIT_SET || wanted == FI_WAIT_FD || wanted == FI_WAIT_POLLFD) return -FI_ENOSYS;
    auto cntr = std::make_unique<CounterFid>();
    cntr->domain = object_of<Domain>(domain);
    const Engine::Duty duty(*cntr->domain->engine);
    CountingEvent* counter = interface_of(duty.core()).cts.allocate(&cntr->ct_handle);
    if (counter == nullptr) return -FI_ENOMEM;
    counter->reset_on_duty();
    ++cntr->domain->users;
    cntr->fid.fid = {FI_CLASS_CNTR, context, &object_calls};
    cntr->fid.ops = &calls;
    *opened = &cntr.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
