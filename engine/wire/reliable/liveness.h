#pragma once
// What is known about the life of whoever is at the other end of a link: when it was heard, since when it owes us an
// answer, and what the medium says about it.

#include <cstdint>

namespace portofu {

/// Times are nanoseconds of the endpoint's clock.
class Liveness {
 public:
  /// News of an earlier life may come late. So an address that nobody has is believed when that was found out by
  /// something that we sent after the process of this link had it; while it may not have begun, when nobody answers for
  /// so long after that; else when the medium says so twice, this far apart, and nothing was heard since.
  static constexpr std::uint64_t kConfirmNs = 150'000'000;
  /// How long a word of the medium counts.
  static constexpr std::uint64_t kSuspicionNs = 2'000'000'000;

  /// Something came from there that belongs to this link; also its beginning.
  void heard(std::uint64_t now_ns) {
    heard_ns_ = now_ns;
    asked_ns_ = 0;
    suspected_ns_ = 0;
    fresh_ns_ = 0;
  }

  /// Something was sent there that wants an answer.
  void asked(std::uint64_t now_ns) {
    if (asked_ns_ == 0) asked_ns_ = now_ns;
  }

  /// The process at the other end of this link has the address now, and until it is gone.
  void met(std::uint64_t now_ns) {
    if (met_ns_ == 0) met_ns_ = now_ns;
  }

  /// The medium says that nobody is there.
  /// @param since_ns  when that left by which it was found out; 0: not known
  /// @return true if that is certain
  bool told_unreachable(std::uint64_t now_ns, std::uint64_t since_ns = 0) {
    if (met_ns_ != 0 && since_ns > met_ns_ && since_ns <= now_ns) return true;
    const bool fresh = met_ns_ == 0 && since_ns != 0 && since_ns >= heard_ns_ && since_ns <= now_ns;
    if (fresh && fresh_ns_ == 0) fresh_ns_ = now_ns;
    if (suspected_ns_ == 0 || now_ns - suspected_ns_ > kSuspicionNs) suspected_ns_ = now_ns;
    return now_ns - suspected_ns_ >= kConfirmNs;
  }

  /// Nobody had the address when we asked for a process that may not have begun, and nobody has answered since, though
  /// we went on asking.
  bool is_nobody_there(std::uint64_t now_ns) const { return fresh_ns_ != 0 && now_ns - fresh_ns_ >= kConfirmNs; }

  /// We were away ourselves, and what was said meanwhile may be lost: waiting begins anew.
  void pardon(std::uint64_t now_ns) {
    if (asked_ns_ != 0) asked_ns_ = now_ns;
    if (fresh_ns_ != 0) fresh_ns_ = now_ns;
  }

  bool is_suspected(std::uint64_t now_ns) const { return suspected_ns_ != 0 && now_ns - suspected_ns_ <= kSuspicionNs; }

  /// Time for which it has owed an answer; 0 if it owes none.
  std::uint64_t silence_ns(std::uint64_t now_ns) const { return asked_ns_ == 0 ? 0 : now_ns - asked_ns_; }

  std::uint64_t heard_ns() const { return heard_ns_; }

 private:
  std::uint64_t heard_ns_ = 0;
  std::uint64_t met_ns_ = 0;        ///< When the process was there for certain; 0: it may not have begun.
  std::uint64_t fresh_ns_ = 0;      ///< When the medium first said so of what was sent on this link, unmet; 0: never.
  std::uint64_t asked_ns_ = 0;      ///< First question since it was heard; 0: none.
  std::uint64_t suspected_ns_ = 0;  ///< When the medium first said that nobody is there; 0: it did not.
};

}  // namespace portofu
