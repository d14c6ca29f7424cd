#pragma once
// What libportals keeps for a process: how often it was initialised, its engine, its logical interfaces. Everything
// else lives in the engine. All functions: any thread.

#include <cxxabi.h>
#include <portals4.h>

#include <atomic>
#include <cstdint>

#include "engine/door/portals.h"
#include "engine/door/process.h"

namespace portofu::portals {

/// Reference counts of PtlInit and PtlFini. @spec 3.5
int initialise();
void finalise();
bool is_initialised();

/// Set while an interface is open. Writers hold the mutex of the library.
extern constinit std::atomic<Engine*> current_engine;

/// Starts a call: @return PTL_OK and the engine | PTL_NO_INIT | PTL_ARG_INVALID if no interface is open | PTL_FAIL in a
///                 handler that has interrupted another call of this thread in the middle
inline int begin(Engine** engine) {
  *engine = current_engine.load(std::memory_order_acquire);
  if (*engine != nullptr) [[likely]]
    return (*engine)->is_interrupted() ? PTL_FAIL : PTL_OK;
  return is_initialised() ? PTL_ARG_INVALID : PTL_NO_INIT;
}

/// PtlAbort. Async-signal-safe.
void abort_waits();

/// A call that may block is inside: whoever closes the engine waits until none is. PtlEQFree and PtlCTFree after
/// PtlAbort wait until none is that PtlAbort ends (3.13.6, 3.14.3).
class BlockingCall {
 public:
  explicit BlockingCall(OnAbort on_abort = OnAbort::kReturn);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

 private:
  const std::size_t kind_;  ///< Of OnAbort.
};
void wait_for_blocking_calls_after_abort();

/// To be asked inside a BlockingCall: false if somebody has closed the engine since the call began, or is about to.
inline bool is_open(const Engine& engine) { return current_engine.load() == &engine; }

/// Opens a logical interface, or takes one more reference to it. @spec 3.6.2
/// @param pid      PTL_PID_ANY or the wanted one; counts only for the first interface of the process
/// @param desired  nullptr: nothing is; counts only for the first reference
/// @param granted  nullptr: nobody asks. Written here, because another thread may close the interface at once
int open_interface(std::uint32_t index, ptl_pid_t pid, const ptl_ni_limits_t* desired, ptl_ni_limits_t* granted,
                   ptl_handle_ni_t* handle);
int close_interface(ptl_handle_ni_t handle);

/// On duty: the open interface that a handle names; nullptr if it names none.
Interface* interface_of(Core& core, ptl_handle_ni_t ni_handle);

/// On duty: the interface in whose tables the handle of an object would be found. `find` compares all of the handle, so
/// that needs no look at its kind.
inline Interface* home_of(const Core& core, ptl_handle_any_t handle) {
  return core.interfaces[handle_interface(handle) % kPortalsInterfaceCount].get();
}

/// Calls `use(Core&, Interface&)` on duty.
/// @return what it returns | what begin does | PTL_ARG_INVALID if the handle is of no open interface
template <class Use>
int with_interface(ptl_handle_ni_t ni_handle, Use&& use) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  const Engine::Duty duty(*engine);
  Interface* const ni = interface_of(duty.core(), ni_handle);
  return ni != nullptr ? use(duty.core(), *ni) : PTL_ARG_INVALID;
}

/// The handle of an open interface.
ptl_handle_ni_t handle_of(std::uint32_t interface_index);

/// Turns PTL_EQ_NONE or PTL_CT_NONE into the engine's 0.
inline Handle eq_or_zero(ptl_handle_eq_t handle) { return handle == PTL_EQ_NONE ? 0 : handle; }
inline Handle ct_or_zero(ptl_handle_ct_t handle) { return handle == PTL_CT_NONE ? 0 : handle; }

/// Whether a handle names a live object of the interface, or is the NONE value.
inline bool is_eq_or_none(const Interface& ni, ptl_handle_eq_t handle) {
  return handle == PTL_EQ_NONE || ni.eqs.find(handle) != nullptr;
}
inline bool is_ct_or_none(const Interface& ni, ptl_handle_ct_t handle) {
  return handle == PTL_CT_NONE || ni.cts.find(handle) != nullptr;
}

/// The return code for an outcome of the engine.
int to_rc(Status status);

/// Runs the body of an API function: no exception leaves the library, but for that by which a thread ends that is
/// cancelled. Memory that runs out becomes PTL_NO_SPACE.
template <class Body>
int guarded(Body&& body) {
  try {
    return body();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    tell_of_memory("what a call needs");
    return PTL_NO_SPACE;
  }
}

}  // namespace portofu::portals
