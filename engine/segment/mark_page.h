#pragma once
// Where a process has the mark by which others tell its memory from that of strangers: in a page of its own, at an
// address that was drawn. Whoever asks the kernel to write there first writes the mark over itself, with the same call
// (process_memory.h). Another program, which exec has put in place of this one or which runs later under its number,
// does not have that page, and the call ends before anything is written.

#include <cstdint>

namespace portofu {

/// Owns the page. A forked child has a copy of it.
class MarkPage {
 public:
  MarkPage() = default;
  ~MarkPage();
  MarkPage(const MarkPage&) = delete;
  MarkPage& operator=(const MarkPage&) = delete;

  /// Takes a page and writes the mark. @return false if the kernel gives none, or it has one already
  bool take(std::uint64_t mark);

  /// 0: there is none.
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(mark_); }

 private:
  std::uint64_t* mark_ = nullptr;
};

}  // namespace portofu
