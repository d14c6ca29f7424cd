#pragma once
// What is known about the life of whoever is at the other end of a link: when it was heard, since when it owes us an
// answer, and what the medium says about it.

#include <algorithm>
#include <cstdint>

namespace portofu {

/// Times are nanoseconds of the endpoint's clock.
class Liveness {
 public:
  /// An address that nobody has is believed when the medium says so twice, this far apart, and nothing was heard since:
  /// news of an earlier life may come late.
  static constexpr std::uint64_t kConfirmNs = 150'000'000;
  /// How long a word of the medium counts.
  static constexpr std::uint64_t kSuspicionNs = 2'000'000'000;

  /// Something came from there that belongs to this link; also its beginning.
  void heard(std::uint64_t now_ns) {
    heard_ns_ = now_ns;
    asked_ns_ = 0;
    suspected_ns_ = 0;
  }

  /// Something was sent there that wants an answer.
  void asked(std::uint64_t now_ns) {
    if (asked_ns_ == 0) asked_ns_ = now_ns;
  }

  /// The medium says that nobody is there.
  /// @return true if that is certain
  bool told_unreachable(std::uint64_t now_ns) {
    if (suspected_ns_ == 0 || now_ns - suspected_ns_ > kSuspicionNs) suspected_ns_ = now_ns;
    return now_ns - suspected_ns_ >= kConfirmNs;
  }

  /// We were away ourselves, and what was said meanwhile may be lost: waiting begins anew.
  void pardon(std::uint64_t now_ns) {
    if (asked_ns_ != 0) asked_ns_ = now_ns;
  }

  bool is_suspected(std::uint64_t now_ns) const { return suspected_ns_ != 0 && now_ns - suspected_ns_ <= kSuspicionNs; }

  /// Time for which it has owed an answer; 0 if it owes none.
  std::uint64_t silence_ns(std::uint64_t now_ns) const { return asked_ns_ == 0 ? 0 : now_ns - asked_ns_; }

  std::uint64_t heard_ns() const { return heard_ns_; }

 private:
  std::uint64_t heard_ns_ = 0;
  std::uint64_t asked_ns_ = 0;      ///< First question since it was heard; 0: none.
  std::uint64_t suspected_ns_ = 0;  ///< When the medium first said that nobody is there; 0: it did not.
};

}  // namespace portofu
