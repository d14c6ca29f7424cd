#pragma once
// Sixteen bytes of a bucket table that are looked at together: one tag per slot, and a count of what did not fit.

#include <array>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace portofu {

/// Slots of a group. The sixteenth byte of a group counts its overflow.
inline constexpr std::uint32_t kGroupSlots = 15;

/// Tags of the slots of one group. A tag is a byte of the hash that is not 0; 0 is a free slot. A search compares all
/// tags at once and so has nothing to mispredict. The overflow count makes tombstones needless, as in Meta's F14.
struct alignas(16) TagGroup {
  std::array<std::uint8_t, kGroupSlots> tags{};
  std::uint8_t overflow =
      0;  ///< Buckets that passed this group because it was full; 255 means "255 or more", for ever.

  /// Bit i: slot i has this tag. For tag 0: slot i is free.
  std::uint32_t slots_with(std::uint8_t tag) const {
    constexpr std::uint32_t kAllSlots = (1u << kGroupSlots) - 1;
#ifdef __SSE2__
    const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
    const __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(equal)) & kAllSlots;
#else
    std::uint32_t slots = 0;
    for (std::uint32_t i = 0; i < kGroupSlots; ++i) slots |= static_cast<std::uint32_t>(tags[i] == tag) << i;
    return slots & kAllSlots;
#endif
  }

  void count_passing() {
    if (overflow < 255) ++overflow;
  }
  void count_passing_back() {
    if (overflow < 255) --overflow;
  }
};

static_assert(sizeof(TagGroup) == 16);

}  // namespace portofu
