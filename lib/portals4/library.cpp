#include "lib/portals4/library.h"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "engine/door/portals.h"
#include "engine/door/process.h"
#include "lib/portals4/limits.h"

namespace portofu::portals {

constinit std::atomic<Engine*> current_engine{nullptr};

namespace {

/// One logical interface of this process.
struct InterfaceReference {
  std::uint32_t count = 0;       ///< PtlNIInit calls less PtlNIFini calls; 0: closed.
  std::uint32_t generation = 0;  ///< Part of the handle: moves on with every opening.
};

/// This thread has the library's mutex, or is about to. Written before and after, so that a handler that interrupts it
/// in between knows. @see Engine::is_interrupted
__attribute__((tls_model("initial-exec"))) thread_local bool has_mutex = false;

/// Blocking calls of this thread that are inside, by what PtlAbort does to them: more than 0 in a handler that has
/// interrupted one. Counted as long as the library counts them, and longer.
__attribute__((tls_model("initial-exec"))) constinit thread_local std::array<std::uint32_t, 2> own_calls{};

struct Library {
  ForkMutex mutex;                   ///< Guards what has no own word about it; never taken on the data path.
  std::atomic<int> init_count{0};    ///< Writers hold the mutex. Readers: any thread.
  std::atomic<bool> aborted{false};  ///< PtlAbort was called since the library was initialised.
  std::array<std::atomic<std::uint32_t>, 2> calls{};  ///< Blocking calls by OnAbort, of all threads.
  std::array<InterfaceReference, kPortalsInterfaceCount> interfaces;

  /// Those of this thread do not end while it asks.
  bool has_calls_of_others(OnAbort on_abort) const {
    const auto kind = static_cast<std::size_t>(on_abort);
    return calls[kind].load() > own_calls[kind];
  }
  bool has_blocking_calls() const { return calls[0].load() != 0 || calls[1].load() != 0; }

  /// The process ends without PtlFini: give the name on the node back.
  ~Library() {
    if (current_engine.load() == nullptr || !end_process_engine(has_blocking_calls() || has_mutex)) return;
    current_engine.store(nullptr);
    init_count.store(0);
    interfaces = {};
  }
};

Library library;

/// The library's mutex, unless a handler wants it that has interrupted its holder, or a call on duty.
class LibraryLock {
 public:
  LibraryLock() {
    const Engine* engine = current_engine.load(std::memory_order_acquire);
    if (has_mutex || (engine != nullptr && engine->is_interrupted())) return;
    has_mutex = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    library.mutex.lock();
    held_ = true;
  }
  ~LibraryLock() {
    if (!held_) return;
    library.mutex.unlock();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    has_mutex = false;
  }
  LibraryLock(const LibraryLock&) = delete;
  LibraryLock& operator=(const LibraryLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  bool held_ = false;
  const NoCancellation whole_;
  const NoSignals unbroken_;
};

/// A child gets nothing and harms nothing (3.5): it forgets the engine, whose memory and thread stay with the parent.
void forget_in_child() {
  new (&library.mutex) ForkMutex;
  has_mutex = false;
  current_engine.store(nullptr);
  library.init_count.store(0);
  library.aborted.store(false);
  for (std::atomic<std::uint32_t>& calls : library.calls) calls.store(0);
  own_calls = {};
  library.interfaces = {};
}

/// Set when the library is loaded, so that no fork can come between the first PtlInit and the handler. 0: it is there.
const int fork_handler = pthread_atfork(nullptr, nullptr, forget_in_child);

/// Under libportofu_malloc.so, malloc gives memory that peers map from now on.
[[maybe_unused]] const bool wants_shared_memory = (want_shared_memory(), true);

int open_engine(ptl_pid_t pid) {
  OpenError error = OpenError::kNone;
  std::string why;
  Engine* engine = hold_process_engine(pid == PTL_PID_ANY ? 0 : pid, &error, &why);
  if (engine == nullptr) {
    tell_why_not_open("PtlNIInit", error, why);
    if (error == OpenError::kPidInUse) return PTL_PID_IN_USE;
    return error == OpenError::kNoSpace ? PTL_NO_SPACE : PTL_FAIL;
  }
  if (library.aborted.load()) engine->abort();
  current_engine.store(engine, std::memory_order_release);
  return PTL_OK;
}

/// Opens the engine, if it is not open, for an interface that is to have this PID.
int ensure_engine(ptl_pid_t pid) {
  if (pid != PTL_PID_ANY && pid >= PTL_PID_MAX) return PTL_ARG_INVALID;
  if (pid == 0) return PTL_PID_IN_USE;  // Legal to ask for, and never free (lib/portals4/README.md).
  const Engine* const engine = current_engine.load();
  if (engine == nullptr) return open_engine(pid);
  // All interfaces of a process share one pid (3.6).
  return pid == PTL_PID_ANY || pid == engine->self().pid ? PTL_OK : PTL_ARG_INVALID;
}

/// The last interface is closed, so every wait ends at its next look: its handle is gone.
/// @return false if one does not end, and the engine's memory has to stay: a handler closes the interface that its own
///         thread waits at, or a handler has ended a thread that waited
bool wait_for_blocking_calls() {
  // Partner: BlockingCall and is_open. Either it sees that the engine is closed, or it is seen here.
  const std::uint64_t deadline_ns = monotonic_ns() + Engine::kLingerNs;
  while (library.has_calls_of_others(OnAbort::kReturn) || library.has_calls_of_others(OnAbort::kGoOn)) {
    if (monotonic_ns() > deadline_ns) return false;
    sched_yield();
  }
  return !library.has_blocking_calls();
}

void close_engine_if_unused() {
  for (const InterfaceReference& reference : library.interfaces) {
    if (reference.count != 0) return;
  }
  current_engine.store(nullptr);
  release_process_engine(!wait_for_blocking_calls());
}

/// Closes what is open, whatever the count says. The mutex is held.
void close_now(std::uint32_t index) {
  Engine* engine = current_engine.load();
  library.interfaces[index].count = 0;
  engine->flush(Engine::kLingerNs);
  {
    const Engine::Duty duty(*engine);
    if (Checker* const checker = duty.core().checker()) [[unlikely]]
      checker->portals.closes(*duty.core().interface(index), "PtlNIFini");
    close_interface_on_duty(duty.core(), index);
    ++duty.core().activity;  // Whoever waits at one of its objects waits no longer.
  }
  close_engine_if_unused();
}

}  // namespace

bool is_initialised() { return library.init_count.load(std::memory_order_acquire) > 0; }

int initialise() {
  if (fork_handler != 0) return PTL_FAIL;
  const LibraryLock lock;
  if (!lock) return PTL_FAIL;
  library.init_count.fetch_add(1, std::memory_order_release);
  return PTL_OK;
}

void finalise() {
  const LibraryLock lock;
  if (!lock) return;  // The end of the process does what is left.
  if (library.init_count.load() == 0 || library.init_count.fetch_sub(1) > 1) return;
  for (std::uint32_t index = 0; index < kPortalsInterfaceCount; ++index) {
    if (library.interfaces[index].count != 0) close_now(index);
  }
  if (library.aborted.exchange(false)) forget_process_abort();
}

void abort_waits() {
  library.aborted.store(true);
  if (Engine* engine = current_engine.load()) engine->abort();
}

BlockingCall::BlockingCall(OnAbort on_abort) : kind_(static_cast<std::size_t>(on_abort)) {
  ++own_calls[kind_];
  library.calls[kind_].fetch_add(1);
}
BlockingCall::~BlockingCall() {
  library.calls[kind_].fetch_sub(1, std::memory_order_acq_rel);
  --own_calls[kind_];
}

void wait_for_blocking_calls_after_abort() {
  // After the abort every one of them returns at its next look, unless a handler has ended its thread there.
  const std::uint64_t deadline_ns = monotonic_ns() + 2 * Engine::kLingerNs;
  while (library.aborted.load() && library.has_calls_of_others(OnAbort::kReturn) && monotonic_ns() < deadline_ns) {
    sched_yield();
  }
}

int open_interface(std::uint32_t index, ptl_pid_t pid, const ptl_ni_limits_t* desired, ptl_ni_limits_t* granted,
                   ptl_handle_ni_t* handle) {
  const LibraryLock lock;
  if (!lock) return PTL_FAIL;
  if (!is_initialised()) return PTL_NO_INIT;
  InterfaceReference& reference = library.interfaces[index];
  if (reference.count == 0) {
    if (const int rc = ensure_engine(pid); rc != PTL_OK) return rc;
    auto ni = std::make_unique<Interface>(index, grant_limits(desired));
    const Engine::Duty duty(*current_engine.load());
    duty.core().interfaces[index] = std::move(ni);
    ++reference.generation;
  }
  ++reference.count;
  *handle = handle_of(index);
  if (granted == nullptr) return PTL_OK;
  const Engine::Duty duty(*current_engine.load());
  *granted = actual_limits(duty.core().interface(index)->limits);
  return PTL_OK;
}

int close_interface(ptl_handle_ni_t handle) {
  const LibraryLock lock;
  if (!lock) return PTL_FAIL;
  if (!is_initialised()) return PTL_NO_INIT;
  const std::uint32_t index = handle_interface(handle);
  if (index >= kPortalsInterfaceCount || library.interfaces[index].count == 0 || handle != handle_of(index))
    return PTL_ARG_INVALID;
  if (--library.interfaces[index].count == 0) close_now(index);
  return PTL_OK;
}

ptl_handle_ni_t handle_of(std::uint32_t interface_index) {
  return make_handle(HandleKind::kInterface, interface_index, library.interfaces[interface_index].generation, 0);
}

Interface* interface_of(Core& core, ptl_handle_ni_t ni_handle) {
  if (handle_kind(ni_handle) != static_cast<std::uint32_t>(HandleKind::kInterface)) return nullptr;
  const std::uint32_t index = handle_interface(ni_handle);
  return index < kPortalsInterfaceCount && ni_handle == handle_of(index) ? core.interface(index) : nullptr;
}

int to_rc(Status status) {
  switch (status) {
    case Status::kOk: return PTL_OK;
    case Status::kArgInvalid: return PTL_ARG_INVALID;
    case Status::kNoSpace: return PTL_NO_SPACE;
    case Status::kInUse: return PTL_IN_USE;
    case Status::kListTooLong: return PTL_LIST_TOO_LONG;
  }
  return PTL_FAIL;
}

}  // namespace portofu::portals
