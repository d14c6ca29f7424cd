#pragma once
// When a loop of calls that find nothing has lasted so long that it has to say so (PORTOFU_STALL_S). What explains a
// hang is there at two looks (inspect/explanation.h), and between them the loop goes on, as it does when a tool looks:
// so it takes the first look, calls on, and takes the second one. Asked by the poll policy, on duty.

#include <cstdint>
#include <utility>

#include "engine/config/settings.h"
#include "engine/run/wait_limits.h"

namespace portofu {

class StallWatch {
 public:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  /// @param stall_ns  a loop that has lasted so long says so; kNever: none does
  explicit StallWatch(std::uint64_t stall_ns) : stall_ns_(stall_ns) {}

  bool is_on() const { return stall_ns_ != kNever; }

  /// A call has found nothing. A program that was away for half the time between two of them did not only wait.
  /// @param news       differs from earlier ones if anything has come or was started since
  /// @param lasted_ns  the call itself
  /// @return whether the caller has to look why, behind the duty
  bool is_look_due(std::uint64_t now_ns, std::uint64_t news, std::uint64_t lasted_ns = 0) {
    const bool was_away = now_ns - std::exchange(last_ns_, now_ns) > lasted_ns + stall_ns_ / 2;
    if (state_ == State::kNone || news != seen_news_ || was_away) {
      since_ns_ = news != seen_news_ ? now_ns : now_ns - lasted_ns;
      seen_news_ = news;
      state_ = State::kWaits;
    }
    if (state_ == State::kWaits && now_ns - since_ns_ >= stall_ns_) {
      state_ = State::kFirstLook;
      return true;
    }
    if (state_ == State::kBetween && now_ns - looked_ns_ >= kBetweenLooksWhyNs) {
      state_ = State::kTold;
      return true;
    }
    return false;
  }

  /// Since when nothing has been found.
  std::uint64_t since_ns() const { return since_ns_; }
  /// Whether the look that is due is the second one, with which all is told.
  bool is_second() const { return state_ == State::kTold; }

  /// The first look is taken.
  /// @param since_ns  as it was before
  /// @return false if the wait that it was for has ended meanwhile
  bool note_first_look(std::uint64_t since_ns, std::uint64_t now_ns) {
    if (state_ != State::kFirstLook || since_ns != since_ns_) return false;
    looked_ns_ = now_ns;
    state_ = State::kBetween;
    return true;
  }

  /// The wait has been told of elsewhere.
  void note_told() { state_ = State::kTold; }

 private:
  enum class State : std::uint8_t {
    kNone,       ///< No call has found nothing yet.
    kWaits,      ///< Calls find nothing.
    kFirstLook,  ///< One of them takes the first look.
    kBetween,    ///< It was taken.
    kTold,       ///< The second one was, or is being taken.
  };

  std::uint64_t stall_ns_;       ///< Constant.
  std::uint64_t seen_news_ = 0;  ///< `news` since since_ns_.
  std::uint64_t since_ns_ = 0;
  std::uint64_t last_ns_ = 0;    ///< When it was asked last.
  std::uint64_t looked_ns_ = 0;  ///< kBetween: when the first look was over.
  State state_ = State::kNone;
};

inline std::uint64_t stall_ns_of(const Settings& settings) {
  return settings.stall_s != 0 ? std::uint64_t{settings.stall_s} * 1'000'000'000 : StallWatch::kNever;
}

}  // namespace portofu
