#pragma once
// What calls that do not block have looked at in vain, written down for onlookers (engine/inspect), who see by the
// counts which of it a loop looks at again and again. Nothing of the engine reads it.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/core/sleeping_call.h"
#include "engine/queue/direct_mapped.h"

namespace portofu {

/// An object in which a call found nothing.
struct PolledObject {
  WaitKind kind = WaitKind::kOther;  ///< kOther: the place is empty.
  std::uint64_t object = 0;          ///< Handle, or ID of a VCQ or a barrier gate.
  std::uint64_t looks = 0;           ///< Those that were written down since it got its place.
};

/// The last few of them. Changed on duty.
class PolledObjects {
 public:
  /// Of a loop one look in kPeriod is written down, so that the others cost next to nothing.
  void note(WaitKind kind, std::uint64_t object) {
    if (--left_ != 0) [[likely]]
      return;
    left_ = due_ == 0 ? kPeriod : 1;
    due_ -= due_ != 0 ? 1 : 0;
    note_at_once(kind, object);
  }

  void note_at_once(WaitKind kind, std::uint64_t object) {
    PolledObject& place = places_.place(object + (static_cast<std::uint64_t>(kind) << kKindShift));
    if (place.object != object || place.kind != kind) place = {kind, object, 0};
    ++place.looks;
  }

  /// Nobody has looked for a while. Of a loop that rests between its looks the next ones are written down, all that
  /// have a place.
  void note_next() {
    left_ = 1;
    due_ = kPlaces;
  }

  static constexpr std::size_t kPlaces = 16;
  /// A prime, so that a loop over several objects has all of them written down.
  static constexpr std::uint32_t kPeriod = 13;
  const std::array<PolledObject, kPlaces>& places() const { return places_.places(); }

 private:
  static constexpr int kKindShift = 32;  ///< Handles have less bits; VCQs and gates have IDs of their own.

  DirectMapped<PolledObject, kPlaces> places_;
  std::uint32_t left_ = kPeriod;  ///< Looks until one is written down.
  std::uint32_t due_ = 0;         ///< Looks behind that one that are written down as well.
};

}  // namespace portofu
