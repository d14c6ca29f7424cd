// 3.14 Lightweight counting events.

#include <array>
#include <memory>

#include "engine/door/process.h"
#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

namespace {

CountingEvent* find_counter(Core& core, ptl_handle_ct_t handle) {
  Interface* ni = home_of(core, handle);
  return ni != nullptr ? ni->cts.find(handle) : nullptr;
}

/// A look at several counters: the condition of every wait for counts.
struct CountLook {
  const ptl_handle_ct_t* handles;
  const ptl_size_t* tests;
  unsigned int size;
  ptl_ct_event_t* event;
  unsigned int which = 0;  ///< Index of the counter that reached its test.
  int rc = PTL_CT_NONE_REACHED;
  CountWatch* watches = nullptr;  ///< One for each of who may wait.
  bool waits = false;             ///< All handles were there once: one that is missing was freed meanwhile.

  /// @return true if the search is over: a counter has reached its test or counted a failure, or a handle is wrong
  bool operator()(Core& core) {
    const bool is_over = look(core);
    if (is_over) {
      leave_on_duty();
    } else if (!waits && watches != nullptr) {
      for (unsigned int i = 0; i < size; ++i) find_counter(core, handles[i])->keep_watch_on_duty(watches[i]);
    }
    waits = !is_over;
    return is_over;
  }

  bool look(Core& core) {
    CountWatch only_now;
    for (unsigned int i = 0; i < size; ++i) {
      const CountingEvent* counter = find_counter(core, handles[i]);
      if (counter == nullptr) {
        rc = waits ? PTL_INTERRUPTED : PTL_ARG_INVALID;
        return true;
      }
      CountWatch& watch = watches != nullptr ? watches[i] : only_now;
      watch.test = tests[i];
      if (!watch.look(counter->success(), counter->failure())) continue;
      event->success = watch.success;
      event->failure = watch.failure;
      which = i;
      if (Checker* const checker = core.checker()) [[unlikely]]
        checker->portals.reads_count(counter, event->success, event->failure);
      rc = PTL_OK;
      return true;
    }
    for (unsigned int i = 0; i < size; ++i) core.polled.note(WaitKind::kCounters, handles[i]);
    return false;
  }

  /// Whoever has waited waits no longer.
  void leave_on_duty() {
    for (unsigned int i = 0; waits && watches != nullptr && i < size; ++i) watches[i].unlink();
    waits = false;
  }

  void describe(WaitSubject& subject) const {
    subject.kind = WaitKind::kCounters;
    for (unsigned int i = 0; i < size; ++i) subject.add(handles[i], tests[i]);
  }
};

/// @param watches  as many as there are counters
int wait_count(Engine& engine, CountLook& look, CountWatch* watches, std::uint64_t timeout_ns) {
  const BlockingCall inside;
  if (!is_open(engine)) return PTL_INTERRUPTED;
  // However this ends: in time, by PtlAbort, or with the thread.
  struct Leaving {
    ~Leaving() {
      if (!look.waits) return;
      const Engine::Duty duty(engine);
      look.leave_on_duty();
    }
    Engine& engine;
    CountLook& look;
  } leaving{engine, look};
  look.watches = watches;
  switch (engine.wait(look, timeout_ns)) {
    case WaitResult::kReached: return look.rc;
    case WaitResult::kTimedOut: return PTL_CT_NONE_REACHED;
    case WaitResult::kAborted: return PTL_ABORTED;
  }
  return PTL_CT_NONE_REACHED;
}

/// Sets or increments a counter, as the descriptor says.
int change(PacketType type, ptl_handle_ct_t ct_handle, ptl_ct_event_t amount) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    const Engine::Duty duty(*engine);
    const RecordedCall call(duty.core(), type, 0);
    const CountingEvent* const counter = find_counter(duty.core(), ct_handle);
    if (counter == nullptr) return PTL_ARG_INVALID;
    if (Checker* const checker = duty.core().checker()) [[unlikely]]
      checker->portals.changes_count(counter);
    Descriptor descriptor;
    descriptor.type = type;
    descriptor.interface_index = static_cast<std::uint8_t>(handle_interface(ct_handle));
    descriptor.count = {ct_handle, false, amount.success, amount.failure};
    engine->post_on_duty(descriptor);
    return PTL_OK;
  });
}

}  // namespace

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t* ct_handle) {
  const auto allocate = [ct_handle](Core&, Interface& ni) {
    if (ct_handle == nullptr) return PTL_ARG_INVALID;
    Handle handle = 0;
    CountingEvent* counter = ni.cts.allocate(&handle);
    if (counter == nullptr) return PTL_NO_SPACE;
    counter->reset_on_duty();
    *ct_handle = handle;
    return PTL_OK;
  };
  return guarded([&] { return with_interface(ni_handle, allocate); });
}

int PtlCTFree(ptl_handle_ct_t ct_handle) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  wait_for_blocking_calls_after_abort();
  const Engine::Duty duty(*engine);
  CountingEvent* counter = find_counter(duty.core(), ct_handle);
  if (counter == nullptr) return PTL_ARG_INVALID;
  Interface* ni = home_of(duty.core(), ct_handle);
  if (Checker* const checker = duty.core().checker()) [[unlikely]]
    checker->portals.frees(*ni, ct_handle, *counter);
  disarm_operations(*ni, *counter);
  ni->cts.free(ct_handle);
  ++duty.core().activity;  // Whoever waits for it waits no longer.
  return PTL_OK;
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  const Engine::Duty duty(*engine);
  CountingEvent* counter = find_counter(duty.core(), ct_handle);
  if (counter == nullptr) return PTL_ARG_INVALID;
  disarm_operations(*home_of(duty.core(), ct_handle), *counter);
  return PTL_OK;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t* event) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (event == nullptr) return PTL_ARG_INVALID;
  int rc = PTL_ARG_INVALID;
  CountingEvent* counter = nullptr;  // The same for both looks, because the duty is held meanwhile.
  // A value that changed since the last look is news; one that did not makes this call part of a spin loop.
  auto look = [&](Core& core) {
    if (counter == nullptr) counter = find_counter(core, ct_handle);
    if (counter == nullptr) return true;
    rc = PTL_OK;
    *event = {counter->success(), counter->failure()};
    if (Checker* const checker = core.checker()) [[unlikely]]
      checker->portals.reads_count(counter, event->success, event->failure);
    const bool is_news = counter->is_news_on_duty();
    if (!is_news) core.polled.note(WaitKind::kCounters, ct_handle);
    return is_news;
  };
  engine->poll(look);
  return rc;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t* event) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (event == nullptr) return PTL_ARG_INVALID;
  CountLook look{&ct_handle, &test, 1, event};
  CountWatch watch;
  return wait_count(*engine, look, &watch, Engine::kForever);
}

int PtlCTPoll(const ptl_handle_ct_t* ct_handles, const ptl_size_t* tests, unsigned int size, ptl_time_t timeout,
              ptl_ct_event_t* event, unsigned int* which) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (event == nullptr || which == nullptr || ((ct_handles == nullptr || tests == nullptr) && size != 0))
    return PTL_ARG_INVALID;
  if (engine->is_aborted()) return PTL_ABORTED;
  if (size == 0) return PTL_CT_NONE_REACHED;
  CountLook look{ct_handles, tests, size, event};
  int rc = PTL_CT_NONE_REACHED;
  if (timeout == 0) {
    engine->poll(look);
    rc = look.rc;
  } else {
    rc = guarded([&] {
      std::array<CountWatch, 4> few;
      const auto many = size > few.size() ? std::make_unique<CountWatch[]>(size) : nullptr;
      const std::uint64_t ns = timeout == PTL_TIME_FOREVER ? Engine::kForever : std::uint64_t{timeout} * 1'000'000;
      return wait_count(*engine, look, many != nullptr ? many.get() : few.data(), ns);
    });
  }
  if (rc == PTL_OK) *which = look.which;
  return rc;
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) {
  return change(PacketType::kCountSet, ct_handle, new_ct);
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) {
  if (is_initialised() && increment.success != 0 && increment.failure != 0) return PTL_ARG_INVALID;
  return change(PacketType::kCountIncrement, ct_handle, increment);
}
