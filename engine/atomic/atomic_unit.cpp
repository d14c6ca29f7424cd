// Judges an atomic and runs the kernel for it.

#include "engine/atomic/atomic_unit.h"

#include <cfenv>
#include <mutex>

#include "engine/atomic/atomic_kernels.h"
#include "engine/atomic/atomic_rules.h"
#include "engine/atomic/atomic_word.h"
#include "engine/memory/guarded_copy.h"
#include "engine/queue/fork_mutex.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace portofu {

namespace {

bool is_valid(AtomicOperation operation) { return atomic_index(operation) < kAtomicOperationCount; }
bool is_valid(AtomicType type) { return atomic_index(type) < kAtomicTypeCount; }

const AtomicTypeRule& rule_of(AtomicType type) { return kAtomicTypeRules[atomic_index(type)]; }

/// While it lives this thread computes as a network interface does: rounding to nearest, no traps, denormals kept.
/// The engine runs on threads of the application, which may have set anything, and whose flags must not change.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

#if defined(__x86_64__)
/// The same for float and double alone, which x86-64 computes in SSE. Changing the control register costs more than an
/// atomic, so it is written only if it differs; the full environment would cost hundreds of nanoseconds.
class DefaultSseEnvironment {
 public:
  DefaultSseEnvironment() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kFlags) != kDefaultMxcsr) _mm_setcsr(kDefaultMxcsr);
  }
  ~DefaultSseEnvironment() {
    if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
  }
  DefaultSseEnvironment(const DefaultSseEnvironment&) = delete;
  DefaultSseEnvironment& operator=(const DefaultSseEnvironment&) = delete;

 private:
  static constexpr unsigned kDefaultMxcsr = 0x1f80;  ///< All exceptions masked, no flag, nearest, denormals kept.
  static constexpr unsigned kFlags = 0x3f;           ///< Sticky exception flags; they change no result.
  unsigned saved_;
};
#else
using DefaultSseEnvironment = DefaultFloatEnvironment;
#endif

/// A kernel and what it is to do, in the one pointer that guarded_call passes on.
struct GuardedKernel {
  AtomicKernel kernel;
  const AtomicRequest& request;
};

/// @return false if the target was not accessible
bool run_guarded(AtomicKernel kernel, const AtomicRequest& request) {
  GuardedKernel call{kernel, request};
  return guarded_call(
      [](void* argument) {
        const auto* guarded = static_cast<const GuardedKernel*>(argument);
        guarded->kernel(guarded->request);
      },
      &call);
}

bool run_in_default_environment(AtomicKernel kernel, const AtomicRequest& request) {
  if (rule_of(request.type).type_class == AtomicClass::kIntegral) return run_guarded(kernel, request);
  if (request.type < AtomicType::kLongDouble) {
    const DefaultSseEnvironment environment;
    return run_guarded(kernel, request);
  }
  const DefaultFloatEnvironment environment;
  return run_guarded(kernel, request);
}

/// Serializes what no CPU atomic covers, see the head of atomic_unit.h. Taken last, so nothing can wait in a circle.
ForkMutex locked_access_mutex;

}  // namespace

std::uint32_t atomic_type_bytes(AtomicType type) { return is_valid(type) ? rule_of(type).bytes : 0; }

bool atomic_is_legal(AtomicOperation operation, AtomicType type, AtomicUse use) {
  if (!is_valid(operation) || !is_valid(type)) return false;
  const AtomicOperationRule& rule = kAtomicOperationRules[atomic_index(operation)];
  const bool use_fits = (rule.uses & atomic_rules::use_bit(use)) != 0;
  return use_fits && (rule.portals_classes & static_cast<std::uint8_t>(rule_of(type).type_class)) != 0;
}

bool fabric_atomic_is_legal(AtomicOperation operation, AtomicType type, AtomicUse use) {
  if (!is_valid(operation) || !is_valid(type) || !unit_has(operation, type)) return false;
  if (operation == AtomicOperation::kDiff || operation == AtomicOperation::kSwap) return false;
  if (operation == AtomicOperation::kAtomicRead) return use == AtomicUse::kFetchAtomic;
  if (operation == AtomicOperation::kAtomicWrite) return use != AtomicUse::kSwap;
  return (kAtomicOperationRules[atomic_index(operation)].uses & atomic_rules::use_bit(use)) != 0;
}

bool is_atomic_for_all(AtomicType type, const std::byte* target) {
  return is_valid(type) && choose_atomic_access(type, target, cpu_has_word16()) == AtomicAccess::kCpu;
}

AtomicResult execute_atomic(const AtomicRequest& request) {
  if (!is_valid(request.operation) || !is_valid(request.type)) return AtomicResult::kIllegal;
  if (!unit_has(request.operation, request.type)) return AtomicResult::kIllegal;
  if (request.item_count == 0) return AtomicResult::kDone;
  // Alignments are powers of two; a division would take longer than all the rest.
  if ((reinterpret_cast<std::uintptr_t>(request.target) & (rule_of(request.type).alignment_bytes - 1)) != 0) {
    return AtomicResult::kUnaligned;
  }
  const AtomicAccess access = choose_atomic_access(request.type, request.target, cpu_has_word16());
  const AtomicKernel kernel = find_atomic_kernel(request.operation, request.type, access);
  std::unique_lock<ForkMutex> lock(locked_access_mutex, std::defer_lock);
  if (access != AtomicAccess::kCpu) lock.lock();
  return run_in_default_environment(kernel, request) ? AtomicResult::kDone : AtomicResult::kFault;
}

}  // namespace portofu
