#include "engine/run/unwinding.h"

#include <execinfo.h>
#include <unwind.h>

#include "engine/core/direct_lane.h"
#include "engine/queue/fork_mutex.h"
#include "engine/queue/lost_thread.h"
#include "engine/run/duty.h"
#include "engine/segment/shared_heap.h"

namespace portofu {

bool holds_what_others_need() {
  return DutyLock::has_this_thread_one() || ForkMutex::has_this_thread_one() ||
         own_seat->busy.load(std::memory_order_relaxed) || process_heap().has_this_thread_lock();
}

void prepare_unwinding() {
  void* caller = nullptr;
  backtrace(&caller, 1);
}

}  // namespace portofu

extern "C" {

/// The personality routine of C++. The linker gives its name to the one below.
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class, _Unwind_Exception* exception,
                                                _Unwind_Context* context);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class, _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
  if ((actions & _UA_FORCE_UNWIND) != 0) {
    int is_interrupted = 0;  // At any instruction, by a signal: this frame has called nobody.
    _Unwind_GetIPInfo(context, &is_interrupted);
    // Of such a frame the tables seldom tell what it would have to destroy.
    const bool is_torn = is_interrupted != 0 && __real___gxx_personality_v0(version, _UA_SEARCH_PHASE, exception_class,
                                                                            exception, context) != _URC_CONTINUE_UNWIND;
    if (is_torn || portofu::holds_what_others_need()) portofu::end_without(portofu::this_thread_id());
  }
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}

}  // extern "C"
