#pragma once
// What libtofucom keeps for a process: its engines, from the first VCQ or VBG on, and its settings. Everything else
// lives in the engines. All functions: any thread.

#include <cxxabi.h>
#include <utofu.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/door/process.h"
#include "engine/door/tofu.h"
#include "lib/utofu/call_inside.h"

namespace portofu::utofu {

/// What `read` gave first; nullptr: nobody has asked for it.
template <class Value, Value (*read)()>
inline constinit std::atomic<Value*> kept{nullptr};

/// For read_once, whose rest is short enough to be everywhere.
template <class Value, Value (*read)()>
[[gnu::noinline, gnu::cold]] Value& read_now() {
  const NoSignals unbroken;
  Value* present = nullptr;
  auto* made = new Value(read());
  if (kept<Value, read>.compare_exchange_strong(present, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *present;
}

/// What `read` gives, kept for the life of the process. Unlike a static variable of a function it holds no lock, which
/// a fork at the wrong moment would leave to the child.
template <class Value, Value (*read)()>
Value& read_once() {
  Value* const present = kept<Value, read>.load(std::memory_order_acquire);
  return present != nullptr ? *present : read_now<Value, read>();
}

/// For `settings`.
Settings read_engine_settings();

/// The settings of this process, read once.
inline const Settings& settings() { return read_once<Settings, read_engine_settings>(); }

/// Where this process is, looked up once; nothing if there is a hosts file that cannot be understood, of which the
/// engine tells when it opens.
const std::optional<NodeMap>& node_map();

/// What node_map says; the origin if that is nothing.
const Coordinates& my_coordinates();

/// The environment variables of the guide. @spec guide, 4.3.2
struct TofuSettings {
  std::uint32_t exclusive_cqs = 0;             ///< UTOFU_NUM_EXCLUSIVE_CQS: CQs of a TNI kept for exclusive VCQs.
  std::uint32_t session_cqs = 3;               ///< UTOFU_NUM_SESSION_MODE_CQS: most session mode CQs of a TNI.
  bool session_cqs_kept = false;               ///< It was set: they are kept for session mode VCQs.
  std::uint32_t mrq_entries = 131072;          ///< UTOFU_NUM_MRQ_ENTRIES.
  std::uint32_t session_mrq_entries = 131072;  ///< UTOFU_NUM_MRQ_ENTRIES_SESSION.
  bool swap_protect = false;                   ///< UTOFU_SWAP_PROTECT: registered memory is locked.
};
const TofuSettings& tofu_settings();

/// The first engine with its uTofu part, opened if need be. @return nullptr if it cannot be opened
Engine* open_engine(const char* call);

/// The same for a further one (own_queues.h). @return false if it cannot be opened, with reason
bool open_engine_at(std::uint32_t number, std::string* why);

/// An engine of this process if it is open, else nullptr; also in a handler that has interrupted another call of this
/// thread in the middle (Engine::is_interrupted).
Engine* engine_at(std::uint64_t number);

/// The first one.
inline Engine* engine() { return engine_at(0); }

/// By TNI: the engine that has the barrier gates of this process. Writer: who holds the list of own_queues.h.
extern std::array<std::atomic<std::uint8_t>, kMaxTniCount> gate_engines;

/// The engine that has a gate, if this process has it. @return nullptr if that engine is not open
inline Engine* engine_of_gate(std::uint64_t vbg_id) {
  return engine_at(gate_engines[tni_of(vbg_id)].load(std::memory_order_relaxed));
}

// The handle of a VCQ has the number of its engine in bits 32 and up, and below what the engine calls it. Its lower
// bits choose a door, so they are turned in a way that VCQs of different engines find different ones.
static_assert(sizeof(utofu_vcq_hdl_t) == sizeof(std::uint64_t));
inline constexpr int kEngineShift = 32;
inline constexpr int kTurnShift = 6;

inline utofu_vcq_hdl_t to_hdl(std::uint32_t number, Handle handle) {
  return std::uint64_t{number} << kEngineShift | (handle ^ number << kTurnShift);
}
/// As its engine has it; of a handle that names no engine, anything.
inline Handle to_handle(utofu_vcq_hdl_t hdl) {
  return static_cast<Handle>(hdl) ^ static_cast<Handle>(hdl >> kEngineShift) << kTurnShift;
}
inline std::uint32_t engine_number(utofu_vcq_hdl_t hdl) { return static_cast<std::uint32_t>(hdl >> kEngineShift); }
inline Engine* engine_of(utofu_vcq_hdl_t hdl) { return engine_at(hdl >> kEngineShift); }

/// The doors to the lanes of VCQs that are not thread-safe, by the lower bits of their handles: what a call needs that
/// goes without the duty. A VCQ has none while its place is another one's.
inline constexpr std::uint32_t kLanePlaces = 1024;
extern std::array<LaneDoor, kLanePlaces> doors;
inline LaneDoor& door_of(utofu_vcq_hdl_t hdl) { return doors[hdl % kLanePlaces]; }

/// Keeps `code` in words for utofu_get_last_error. @return code
int failed(int code, const char* words);
const char* last_error();

/// Runs a body from which no exception may leave, but for that by which a thread ends that is cancelled.
template <class Body>
int guarded(Body&& body) {
  try {
    return body();
  } catch (const abi::__forced_unwind&) {  // This thread is cancelled.
    throw;
  } catch (...) {
    tell_of_memory("what a call needs");
    return failed(UTOFU_ERR_OUT_OF_MEMORY, "no memory");
  }
}

/// Runs `use(Core&, VirtualControlQueue&)` on duty.
/// @param alone  whether the guide lets one thread at a time make such a call (2.5)
/// @return what it returns | UTOFU_ERR_INVALID_VCQ_HDL | UTOFU_ERR_OUT_OF_MEMORY
template <class Use>
int with_vcq(utofu_vcq_hdl_t hdl, Use&& use, bool alone = true) {
  return guarded([&] {
    const CallInside call(hdl, alone);
    Engine* open = engine_of(hdl);
    if (open == nullptr) return failed(UTOFU_ERR_INVALID_VCQ_HDL, "no such VCQ handle");
    const Engine::Duty duty(*open);
    VirtualControlQueue* vcq = duty.core().tofu->vcq(to_handle(hdl));
    if (vcq == nullptr) return failed(UTOFU_ERR_INVALID_VCQ_HDL, "no such VCQ handle");
    enter_on_duty(*vcq);
    call.look_around(duty.core(), *vcq);
    const int rc = use(duty.core(), *vcq);
    open->settle_on_duty();
    return rc;
  });
}

}  // namespace portofu::utofu
