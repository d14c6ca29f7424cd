// fi_cntr(3): counters.

#include "lib/libfabric/cntr.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/libfabric/credit.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {
namespace {

std::uint64_t read_success(fid_cntr* fid) {
  const auto* cntr = object_of<CounterFid>(fid);
  std::uint64_t value = 0;
  auto look = [&](Core& core) {
    CountingEvent& counter = cntr->counter(core);
    value = counter.success();
    const bool is_news = counter.is_news_on_duty();
    if (!is_news) {
      core.polled.note(WaitKind::kCounters, cntr->ct_handle);
      note_vain_look(core);
    }
    return is_news;
  };
  look_into(*cntr->domain->engine, look);
  return value;
}

std::uint64_t read_failure(fid_cntr* fid) {
  const auto* cntr = object_of<CounterFid>(fid);
  cntr->domain->engine->step();
  const Engine::Duty duty(*cntr->domain->engine);
  return cntr->counter(duty.core()).failure();
}

/// What waits for the count starts.
/// @param change  void(CountingEvent&, FiredOperations&)
template <class Change>
int change(fid_cntr* fid, Change&& change) {
  const auto* cntr = object_of<CounterFid>(fid);
  Engine& engine = *cntr->domain->engine;
  const Engine::Duty duty(engine);
  CountingEvent& counter = cntr->counter(duty.core());
  change(counter, duty.core().fired);
  ++duty.core().activity;
  if (duty.core().observers != nullptr) [[unlikely]]
    put_count(duty.core(), cntr->ct_handle, counter.success());
  engine.settle_on_duty();
  return 0;
}

int add(fid_cntr* fid, std::uint64_t value) {
  return change(fid, [=](CountingEvent& counter, auto& fired) { counter.add_success_on_duty(value, fired); });
}
int add_failure(fid_cntr* fid, std::uint64_t value) {
  return change(fid, [=](CountingEvent& counter, auto& fired) { counter.add_failure_on_duty(value, fired); });
}
int set(fid_cntr* fid, std::uint64_t value) {
  return change(fid,
                [=](CountingEvent& counter, auto& fired) { counter.set_on_duty(value, counter.failure(), fired); });
}
int set_failure(fid_cntr* fid, std::uint64_t value) {
  return change(fid,
                [=](CountingEvent& counter, auto& fired) { counter.set_on_duty(counter.success(), value, fired); });
}

/// The condition of a wait for a count.
struct ThresholdLook {
  const CounterFid& cntr;
  std::uint64_t threshold;
  std::uint64_t failures = UINT64_MAX;  ///< Those before the wait say nothing of it.
  bool failed = false;

  bool operator()(Core& core) {
    const CountingEvent& counter = cntr.counter(core);
    if (failures == UINT64_MAX) failures = counter.failure();
    const bool reached = counter.success() >= threshold;
    failed = !reached && counter.failure() != failures;
    if (!reached && !failed) note_vain_look(core);
    return reached || failed;
  }
  void describe(WaitSubject& subject) const {
    subject.kind = WaitKind::kCounters;
    subject.add(cntr.ct_handle, threshold);
  }
};

int wait(fid_cntr* fid, std::uint64_t threshold, int timeout_ms) {
  const auto* cntr = object_of<CounterFid>(fid);
  ThresholdLook is_reached{*cntr, threshold};
  const std::uint64_t timeout_ns =
      timeout_ms < 0 ? Engine::kForever : static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
  if (cntr->domain->engine->wait(is_reached, timeout_ns, OnAbort::kGoOn) != WaitResult::kReached) return -FI_ETIMEDOUT;
  return is_reached.failed ? -FI_EAVAIL : 0;
}

/// On duty. The last one takes its place, so that it takes the same time with however many.
void forget(Domain& domain, const CounterFid& cntr) {
  CounterFid* last = domain.counters.back();
  domain.counters[cntr.place] = last;
  last->place = cntr.place;
  domain.counters.pop_back();
}

/// Whether something waits for the counter, or deferred work will change it: "if resources are still associated with
/// the counter when attempting to close, the call will return -FI_EBUSY".
bool is_in_use(CounterFid& cntr) {
  Engine& engine = *cntr.domain->engine;
  engine.step();
  const Engine::Duty duty(engine);
  return cntr.counter(duty.core()).has_waiting() || (cntr.is_named && is_changed_by_work(duty.core(), cntr));
}

int close(fid* object) {
  auto* cntr = object_of<CounterFid>(object);
  if (cntr->users.load() != 0 || is_in_use(*cntr)) return -FI_EBUSY;
  cntr->wait.leave_set();
  leave_poll_sets(object);
  {
    const Engine::Duty duty(*cntr->domain->engine);
    Interface& ni = interface_of(duty.core());
    note_sleep(duty.core(), *cntr->domain, cntr->is_slept_at, false);
    ni.cts.free(cntr->ct_handle);
    forget(*cntr->domain, *cntr);
  }
  --cntr->domain->users;
  delete cntr;
  return 0;
}

/// A counter has no flags.
int control(fid* object, int command, void* argument) {
  auto& cntr = *object_of<CounterFid>(object);
  switch (command) {
    case FI_FLUSH_WORK:
      return guarded([&] {
        flush_work(cntr);
        return 0;
      });
    case FI_GETOPSFLAG: *static_cast<std::uint64_t*>(argument) = 0; return 0;
    case FI_SETOPSFLAG: return *static_cast<const std::uint64_t*>(argument) == 0 ? 0 : -FI_EINVAL;
    default: return cntr.wait.control(command, argument);
  }
}

fi_ops object_calls = {sizeof(fi_ops), close, refuse_bind, control, refuse_ops, NotThere{}, NotThere{}};

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

}  // namespace

Watchers::Watcher& Watchers::caller() {
  const std::thread::id self = std::this_thread::get_id();
  const auto found = std::ranges::find(watchers_, self, &Watcher::thread);
  if (found != watchers_.end()) return *found;
  Watcher& added = watchers_[oldest_++ % watchers_.size()];
  added = {self, {}, 0};
  return added;
}

bool Watchers::find_news(const CounterState& now) {
  Watcher& self = caller();
  self.patience = 0;
  return std::exchange(self.seen, now) != now;
}

bool Watchers::go_to_sleep(const CounterState& now) {
  // A thread that has ended, or sleeps at something else, does not keep others awake for ever.
  constexpr std::uint32_t kPatience = 1000;
  bool all_have_seen = true;
  for (Watcher& other : watchers_) {
    if (other.patience == 0 || other.seen == now) continue;
    --other.patience;
    all_have_seen = false;
  }
  caller().patience = kPatience;
  return all_have_seen;
}

bool CounterFid::has_news_or_arms() {
  domain->engine->step();
  const Engine::Duty duty(*domain->engine);
  const CounterState now = state(duty.core());
  const bool sleeps = !watchers.find_news(now);
  note_sleep(duty.core(), *domain, is_slept_at, sleeps);
  if (!sleeps) return true;
  if (watchers.go_to_sleep(now)) wait.settle();
  if (wait.fd() >= 0) counter(duty.core()).arm_on_duty(wait.fd());
  return false;
}

int open_cntr(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** opened, void* context) {
  return guarded([&] {
    if (attr != nullptr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags != 0)) return -FI_EINVAL;
    auto cntr = std::make_unique<CounterFid>();
    cntr->domain = object_of<Domain>(domain);
    cntr->fid.fid = {FI_CLASS_CNTR, context, &object_calls};
    cntr->fid.ops = &calls;
    {
      const Engine::Duty duty(*cntr->domain->engine);
      std::vector<CounterFid*>& counters = cntr->domain->counters;
      cntr->place = counters.size();
      counters.push_back(cntr.get());
      CountingEvent* counter = interface_of(duty.core()).cts.allocate(&cntr->ct_handle);
      if (counter == nullptr) {
        counters.pop_back();
        return -FI_ENOMEM;
      }
      counter->reset_on_duty();
      counter->let_failures_start();
    }
    ++cntr->domain->users;
    const int result = attr != nullptr ? cntr->wait.open(attr->wait_obj, attr->wait_set, &cntr->fid.fid) : 0;
    fid_cntr* made = &cntr.release()->fid;
    if (result != 0) {
      close(&made->fid);
      return result;
    }
    *opened = made;
    return 0;
  });
}

}  // namespace portofu::fabric
