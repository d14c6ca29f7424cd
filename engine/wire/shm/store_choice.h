#pragma once
// How the sender of a link writes long payloads into its send area: with ordinary stores, or with streaming stores that
// pass the caches by. Before it: LinkSet claims a chunk. After it: whoever copies the payload obeys Link::streaming.
//
// A line that the receiver has read must be taken from its cache before it can be written. Where the two cores share a
// cache, the lines of a large area have been pushed out to it meanwhile; where they do not, each line costs the way to
// the other core and back, and streaming stores are better, though the receiver then reads from memory. Which it is
// changes while a program runs, so both are timed, now and then.
//
// What is compared is the cost for the sender alone: by how much ordinary stores are dearer, measured by what streaming
// ones cost at best. (Not what they cost just now: a source that is not in the cache makes both dearer.) In an area
// that is written by ordinary stores they are not dearer where the cores share a cache, and elsewhere by five times
// that or more. In an area that is written by streaming stores no line comes out of a shared cache, so a single chunk
// of ordinary ones is dearer by four times even there, and by nine elsewhere: hence two factors, and some time to
// settle after each change.

#include <cstdint>

#include "engine/wire/shm/copy_cost.h"

namespace portofu {

/// Of one link. Used by the thread on duty.
class StoreChoice {
 public:
  /// Chooses for the next chunk. @return true for streaming stores
  bool choose() {
    ++chosen_;
    trial_ = false;
    if (settling_ > 0) {
      --settling_;
    } else {
      trial_ = chosen_ % kTrialPeriod == 0 || (streaming_cost_.ns() == 0 && ordinary_cost_.ns() != 0);
    }
    streaming_ = trial_ != prefers_streaming_;
    return streaming_;
  }

  /// Whether the copy that was just chosen is worth two looks at a clock.
  bool wants_time() const {
    return settling_ == 0 && (trial_ || ordinary_cost_.ns() == 0 || chosen_ % kTimedPeriod == 0);
  }

  /// Tells what the copy has taken.
  void note(std::uint64_t ns, std::uint32_t bytes) {
    const std::uint64_t found = (streaming_ ? streaming_cost_ : ordinary_cost_).note(ns, bytes);
    if (streaming_) note_least(found);
    if (streaming_cost_.ns() != 0 && ordinary_cost_.ns() != 0) judge();
  }

  bool prefers_streaming() const { return prefers_streaming_; }

  /// What the preferred stores cost, as CopyCost::ns.
  std::uint64_t cost() const { return (prefers_streaming_ ? streaming_cost_ : ordinary_cost_).ns(); }

  static constexpr std::uint32_t kTrialPeriod = 127;     ///< Chunks; prime, so that trials wander through the area.
  static constexpr std::uint32_t kTimedPeriod = 8;       ///< Chunks.
  static constexpr std::uint32_t kSettlingChunks = 512;  ///< Twice round the area.
  static constexpr std::uint64_t kFactorThere = 2;       ///< So much dearer must ordinary stores be to be given up,
  static constexpr std::uint64_t kFactorBack = 6;        ///< and so much at most to be taken again.
  static constexpr std::uint32_t kFirstLooks = 4;        ///< Of so many the best one counts.
  static constexpr std::uint32_t kForgetPeriod = 16;     ///< Streaming copies after which the least rises by 1.

 private:
  void note_least(std::uint64_t found) {
    if (++streaming_notes_ % kForgetPeriod == 0) ++least_cost_;
    if (least_cost_ == 0 || found < least_cost_) least_cost_ = found;
  }

  void judge() {
    const std::uint64_t ordinary = ordinary_cost_.ns(), streaming = streaming_cost_.ns();
    const std::uint64_t dearer = ordinary > streaming ? ordinary - streaming : 0;
    const bool there = !prefers_streaming_ && dearer > kFactorThere * least_cost_;
    const bool back = prefers_streaming_ && dearer < kFactorBack * least_cost_;
    if (!there && !back) return;
    // What was found in the area as it was written until now says nothing about it as it will be.
    prefers_streaming_ = there;
    ordinary_cost_.forget();
    if (there) {
      streaming_cost_.forget();
      least_cost_ = 0;
    }
    settling_ = kSettlingChunks;
  }

  CopyCost<8> ordinary_cost_{kFirstLooks};
  CopyCost<8> streaming_cost_{kFirstLooks};
  std::uint64_t least_cost_ = 0;       ///< The lowest of streaming stores; rises slowly.
  std::uint32_t streaming_notes_ = 0;  ///< Streaming copies that were timed.
  std::uint32_t chosen_ = 0;           ///< Calls of choose.
  std::uint32_t settling_ = 0;         ///< Chunks for which costs say nothing yet.
  bool prefers_streaming_ = false;
  bool streaming_ = false;  ///< The last choice.
  bool trial_ = false;      ///< It was made against the better knowledge.
};

}  // namespace portofu
