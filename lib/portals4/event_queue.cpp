// 3.13 Events and event queues.

#include <cstddef>

#include "engine/door/process.h"
#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

static_assert(PTL_EVENT_GET == static_cast<int>(EventKind::kGet) &&
              PTL_EVENT_FETCH_ATOMIC == static_cast<int>(EventKind::kFetchAtomic));
static_assert(PTL_EVENT_REPLY == static_cast<int>(EventKind::kReply) &&
              PTL_EVENT_SEARCH == static_cast<int>(EventKind::kSearch));
static_assert(PTL_EVENT_PT_DISABLED == static_cast<int>(EventKind::kPtDisabled) &&
              PTL_EVENT_ERROR == static_cast<int>(EventKind::kError));
static_assert(PTL_NI_OK == static_cast<int>(NiFail::kOk) &&
              PTL_NI_PT_DISABLED == static_cast<int>(NiFail::kPtDisabled));
static_assert(PTL_NI_SEGV == static_cast<int>(NiFail::kSegv) && PTL_NI_NO_MATCH == static_cast<int>(NiFail::kNoMatch));
static_assert(PTL_OVERFLOW_LIST == static_cast<int>(ListKind::kOverflow));

// An event begins as ptl_event_t does. Since what follows the common part begins at the same place, too, no field is
// longer in one than in the other. On a logical interface the rank stands in `nid`, where the union has it, and 0 in
// `pid`.
static_assert(offsetof(ptl_event_t, start) == offsetof(Event, start));
static_assert(offsetof(ptl_event_t, user_ptr) == offsetof(Event, user_ptr));
static_assert(offsetof(ptl_event_t, hdr_data) == offsetof(Event, hdr_data));
static_assert(offsetof(ptl_event_t, match_bits) == offsetof(Event, match_bits));
static_assert(offsetof(ptl_event_t, rlength) == offsetof(Event, rlength));
static_assert(offsetof(ptl_event_t, mlength) == offsetof(Event, mlength));
static_assert(offsetof(ptl_event_t, remote_offset) == offsetof(Event, remote_offset));
static_assert(offsetof(ptl_event_t, uid) == offsetof(Event, uid));
static_assert(offsetof(ptl_event_t, initiator) == offsetof(Event, initiator));
static_assert(offsetof(ptl_event_t, type) == offsetof(Event, type));
static_assert(offsetof(ptl_event_t, ptl_list) == kEventHeadBytes);
static_assert(offsetof(ptl_process_t, phys.nid) == offsetof(ProcessId, nid) &&
              offsetof(ptl_process_t, phys.pid) == offsetof(ProcessId, pid) &&
              offsetof(ptl_process_t, rank) == offsetof(ProcessId, nid));

namespace {

EventQueue* find_queue(Core& core, ptl_handle_eq_t handle) {
  Interface* ni = home_of(core, handle);
  return ni != nullptr ? ni->eqs.find(handle) : nullptr;
}

[[gnu::always_inline]] inline void hand_over(const Event& from, ptl_event_t* to) {
  copy_fresh_line<kEventHeadBytes, offsetof(Event, uid)>(to, &from);
  to->ptl_list = static_cast<ptl_list_t>(fresh(from.ptl_list));
  to->pt_index = fresh(from.pt_index);
  to->ni_fail_type = static_cast<ptl_ni_fail_t>(fresh(from.ni_fail_type));
  to->atomic_operation = static_cast<ptl_op_t>(fresh(from.atomic_operation));
  to->atomic_type = static_cast<ptl_datatype_t>(fresh(from.atomic_type));
}

[[gnu::always_inline]] inline int take_untold(Core& core, EventQueue& queue, ptl_event_t* event) {
  hand_over(queue.oldest_on_duty(), event);
  core.gave_link = event->type == PTL_EVENT_LINK;
  return queue.remove_oldest_on_duty() ? PTL_EQ_DROPPED : PTL_OK;
}

[[gnu::cold, gnu::noinline]] int take_told(Core& core, EventQueue& queue, ptl_event_t* event) {
  if (Checker* const checker = core.checker()) checker->portals.reads_event(core, queue);
  return take_untold(core, queue, event);
}

/// Takes the oldest event of a queue. Apart, so that looks that find none need no room on the stack.
[[gnu::noinline]] int take_event(Core& core, EventQueue& queue, ptl_event_t* event) {
  if (core.observers != nullptr) [[unlikely]]
    return take_told(core, queue, event);
  return take_untold(core, queue, event);
}

/// A look at several event queues: the condition of every wait for events.
struct EventLook {
  const ptl_handle_eq_t* handles;
  unsigned int size;
  ptl_event_t* event;
  unsigned int which = 0;  ///< Index of the queue that gave the event.
  int rc = PTL_EQ_EMPTY;
  bool waits = false;  ///< All handles were there once: one that is missing was freed meanwhile.

  /// Takes the first event there is. @return true if the search is over: an event, or a wrong handle
  bool operator()(Core& core) {
    for (unsigned int i = 0; i < size; ++i) {
      EventQueue* queue = find_queue(core, handles[i]);
      if (queue == nullptr) {
        rc = waits ? PTL_INTERRUPTED : PTL_ARG_INVALID;
        return true;
      }
      if (queue->empty()) continue;
      which = i;
      rc = take_event(core, *queue, event);
      return true;
    }
    waits = true;
    for (unsigned int i = 0; i < size; ++i) core.polled.note(WaitKind::kEventQueue, handles[i]);
    return false;
  }

  void describe(WaitSubject& subject) const {
    subject.kind = WaitKind::kEventQueue;
    for (unsigned int i = 0; i < size; ++i) subject.add(handles[i], 0);
  }
};

/// A look at so many event queues as most programs have, which does not wait. Each handle is looked up once, because
/// the duty is held meanwhile.
/// @param which  set with an event, see EventLook
template <unsigned int kCount>
int poll_now(Engine& engine, const ptl_handle_eq_t* handles, ptl_event_t* event, unsigned int* which) {
  int rc = PTL_EQ_EMPTY;
  EventQueue* queues[kCount] = {};
  auto look = [&](Core& core) {
#pragma GCC unroll 2
    for (unsigned int i = 0; i < kCount; ++i) {
      if (queues[i] == nullptr) queues[i] = find_queue(core, handles[i]);
      if (queues[i] == nullptr) {
        rc = PTL_ARG_INVALID;
        return true;
      }
      if (queues[i]->empty()) continue;
      *which = i;
      rc = take_event(core, *queues[i], event);
      return true;
    }
    for (unsigned int i = 0; i < kCount; ++i) core.polled.note(WaitKind::kEventQueue, handles[i]);
    return false;
  };
  engine.poll(look);
  return rc;
}

int wait_event(Engine& engine, EventLook& look, std::uint64_t timeout_ns) {
  const BlockingCall inside;
  if (!is_open(engine)) return PTL_INTERRUPTED;
  switch (engine.wait(look, timeout_ns)) {
    case WaitResult::kReached: return look.rc;
    case WaitResult::kTimedOut: return PTL_EQ_EMPTY;
    case WaitResult::kAborted: return PTL_ABORTED;
  }
  return PTL_EQ_EMPTY;
}

}  // namespace

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t* eq_handle) {
  const auto allocate = [&](Core&, Interface& ni) {
    if (eq_handle == nullptr) return PTL_ARG_INVALID;
    Handle handle = 0;
    EventQueue* queue = ni.eqs.allocate(&handle);
    if (queue == nullptr) return PTL_NO_SPACE;
    if (!queue->open(count)) {
      tell_of_memory("an event queue");
      ni.eqs.free(handle);
      return PTL_NO_SPACE;
    }
    *eq_handle = handle;
    return PTL_OK;
  };
  return guarded([&] { return with_interface(ni_handle, allocate); });
}

int PtlEQFree(ptl_handle_eq_t eq_handle) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  wait_for_blocking_calls_after_abort();
  const Engine::Duty duty(*engine);
  EventQueue* queue = find_queue(duty.core(), eq_handle);
  if (queue == nullptr) return PTL_ARG_INVALID;
  if (Checker* const checker = duty.core().checker()) [[unlikely]]
    checker->portals.frees(*home_of(duty.core(), eq_handle), eq_handle, *queue);
  queue->close();
  home_of(duty.core(), eq_handle)->eqs.free(eq_handle);
  ++duty.core().activity;  // Whoever waits at it waits no longer.
  return PTL_OK;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (event == nullptr) return PTL_ARG_INVALID;
  unsigned int which = 0;
  return poll_now<1>(*engine, &eq_handle, event, &which);
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (event == nullptr) return PTL_ARG_INVALID;
  EventLook look{&eq_handle, 1, event};
  return wait_event(*engine, look, Engine::kForever);
}

int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t* event,
              unsigned int* which) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (event == nullptr || which == nullptr || (eq_handles == nullptr && size != 0)) return PTL_ARG_INVALID;
  if (engine->is_aborted()) return PTL_ABORTED;
  if (size == 0) return PTL_EQ_EMPTY;
  if (timeout == 0 && size == 1) return poll_now<1>(*engine, eq_handles, event, which);
  if (timeout == 0 && size == 2) return poll_now<2>(*engine, eq_handles, event, which);
  EventLook look{eq_handles, size, event};
  int rc = PTL_EQ_EMPTY;
  if (timeout == 0) {
    engine->poll(look);
    rc = look.rc;
  } else {
    rc = wait_event(*engine, look, timeout == PTL_TIME_FOREVER ? Engine::kForever : std::uint64_t{timeout} * 1'000'000);
  }
  if (rc == PTL_OK || rc == PTL_EQ_DROPPED) *which = look.which;
  return rc;
}
