#pragma once
// The log of all steps in a file of them: the records that went through the ring, in a quarter of the room or less.
// Each has a tag, the ticks since the record before it, and those of its other words that differ from the last record
// of the same step: of a put most are as before. The kernel takes longer to write a record of 32 bytes than it takes to
// make it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/observe/step_record.h"

namespace portofu {

/// What writer and reader know of a log so far. Each record has:
/// - its tag, 16 bits: the step in the lowest five, the width of the ticks in two, and a bit for each word that
/// follows;
/// - the ticks since the record before it, modulo 2^64, in 2, 4 or 8 bytes;
/// - words of 64 bits of the record, from StepRecord::amount on.
class StepLogState {
 public:
  /// That a record takes at most, and at least.
  static constexpr std::size_t kMostBytes = 2 + sizeof(StepRecord);
  static constexpr std::size_t kLeastBytes = 4;

 protected:
  static constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  static constexpr std::size_t kWords = sizeof(StepRecord) / kWordBytes;
  static constexpr unsigned kStepBits = 5;
  static constexpr unsigned kWidthBits = 2;
  static constexpr std::uint32_t kStepMask = (1u << kStepBits) - 1;
  static constexpr std::uint32_t kWidthMask = (1u << kWidthBits) - 1;
  static_assert(kStepCount <= kStepMask + 1);
  static_assert(offsetof(StepRecord, ticks) == 0 && offsetof(StepRecord, amount) == kWordBytes);

  /// Of a record; the first one are its ticks.
  using Words = std::array<std::uint64_t, kWords>;

  /// The bit of a tag that says that a word follows.
  static constexpr unsigned bit_of(std::size_t word) { return kStepBits + kWidthBits + static_cast<unsigned>(word); }

  std::array<Words, kStepMask + 1> before_{};  ///< The last record of each step, but for its ticks.
  std::uint64_t ticks_ = 0;                    ///< Of the last record.
};

class StepLogWriter : private StepLogState {
 public:
  using StepLogState::kMostBytes;

  /// @param to  has room for kMostBytes for each record
  /// @return behind the last one
  std::byte* write(std::span<const StepRecord> records, std::byte* to) {
    std::uint64_t last_ticks = ticks_;
    for (const StepRecord& record : records) {
      const std::uint64_t passed = record.ticks - last_ticks;
      last_ticks = record.ticks;
      to = write_record(record, passed, to);
    }
    ticks_ = last_ticks;
    return to;
  }

 private:
  static std::uint64_t word_of(const StepRecord& record, std::size_t i) {
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&record) + i * kWordBytes, kWordBytes);
    return word;
  }

  /// Bytes behind the record may be written, too: the next one writes them again.
  std::byte* write_record(const StepRecord& record, std::uint64_t passed, std::byte* to) {
    std::uint32_t tag = static_cast<std::uint32_t>(record.step) & kStepMask;
    Words& before = before_[tag];
    std::byte* at = to + sizeof(std::uint16_t);
    std::memcpy(at, &passed, sizeof passed);
    std::uint32_t width = 0;
    if (passed >> 16 != 0) [[unlikely]]
      width = passed >> 32 != 0 ? 2 : 1;
    tag |= width << kStepBits;
    at += std::size_t{2} << width;
    // Each word by itself: from a copy of all, two at once would be read across the pieces that it was made of.
    const Words words = {0, word_of(record, 1), word_of(record, 2), word_of(record, 3)};
    if (((words[1] ^ before[1]) | (words[2] ^ before[2]) | (words[3] ^ before[3])) != 0) {
      for (std::size_t i = 1; i < kWords; ++i) {  // No jump depends on which of them differ.
        const std::uint32_t differs = words[i] != before[i] ? 1 : 0;
        std::memcpy(at, &words[i], kWordBytes);
        at += differs * kWordBytes;
        tag |= differs << bit_of(i);
        before[i] = words[i];
      }
    }
    const auto whole = static_cast<std::uint16_t>(tag);
    std::memcpy(to, &whole, sizeof whole);
    return at;
  }
};

class StepLogReader : private StepLogState {
 public:
  using StepLogState::kLeastBytes;
  using StepLogState::kMostBytes;

  /// @param log  is there until it has been read
  explicit StepLogReader(std::span<const std::byte> log = {}) : left_(log) {}

  /// What was not read yet.
  std::span<const std::byte> left() const { return left_; }

  /// The log goes on with this, which begins with what was left.
  void go_on(std::span<const std::byte> log) { left_ = log; }

  /// @pre kMostBytes are left, or all that there is
  /// @return false if no whole record is left
  bool read(StepRecord* record) {
    std::uint16_t tag = 0;
    if (!take(&tag, sizeof tag)) return false;
    const std::uint32_t width = tag >> kStepBits & kWidthMask;
    std::uint64_t passed = 0;
    if (width > 2 || !take(&passed, std::size_t{2} << width)) return false;
    Words& words = before_[tag & kStepMask];
    for (std::size_t i = 1; i < kWords; ++i) {
      if ((tag >> bit_of(i) & 1) != 0 && !take(&words[i], kWordBytes)) return false;
    }
    ticks_ += passed;
    std::memcpy(record, words.data(), sizeof *record);
    record->ticks = ticks_;
    return true;
  }

 private:
  bool take(void* to, std::size_t bytes) {
    if (left_.size() < bytes) return false;
    std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
    return true;
  }

  std::span<const std::byte> left_;
};

}  // namespace portofu
