#pragma once
// What the engine carries for an operation, and its event brings back: the application's context, and what the
// operation is, in one word. So an operation in flight costs the provider no memory, and nothing has to be looked up.

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <array>
#include <cstdint>

#include "engine/door/libfabric.h"

namespace portofu::fabric {

enum class WordKind : std::uint8_t {
  kNone,
  kSend,
  kTaggedSend,
  kWrite,
  kRead,
  kAtomic,
  kFetchAtomic,
  kReceive,
  kTaggedReceive,
  kCount,
};

/// What a completion says of an operation, which are the capabilities that it takes. @spec fi_cq(3), "completion flags"
inline constexpr std::array<std::uint64_t, static_cast<std::size_t>(WordKind::kCount)> kCompletionFlags = {
    0,
    FI_SEND | FI_MSG,
    FI_SEND | FI_TAGGED,
    FI_WRITE | FI_RMA,
    FI_READ | FI_RMA,
    FI_WRITE | FI_ATOMIC,
    FI_READ | FI_ATOMIC,
    FI_RECV | FI_MSG,
    FI_RECV | FI_TAGGED,
};

/// How a call is written down.
constexpr ApiCall recorded_as(WordKind kind) {
  return static_cast<ApiCall>(static_cast<std::uint8_t>(ApiCall::kFabric) + static_cast<std::uint8_t>(kind));
}

constexpr std::uint64_t flags_of(WordKind kind) { return kCompletionFlags[static_cast<std::size_t>(kind)]; }

/// SPEC: user space ends below 2^56 on every CPU that this runs on, so contexts that are addresses keep all their bits;
/// of others the topmost byte is lost.
inline constexpr unsigned kKindShift = 56;

inline void* make_word(WordKind kind, const void* context) {
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(context) & ~(std::uint64_t{0xff} << kKindShift);
  return reinterpret_cast<void*>(bits | std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift);
}
inline WordKind kind_of(const void* word) {
  const auto kind = static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(word) >> kKindShift);
  return kind < static_cast<std::uint8_t>(WordKind::kCount) ? static_cast<WordKind>(kind) : WordKind::kNone;
}
inline void* context_of(const void* word) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(word) & ~(std::uint64_t{0xff} << kKindShift));
}

}  // namespace portofu::fabric
