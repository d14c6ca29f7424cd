#pragma once
// What the coordinator takes for granted of ranks that tell it nothing. It may come late itself, as may they: machines
// are busy, and stop. So it counts what it has seen, and not how late it is.

#include <algorithm>
#include <cstdint>

namespace portofu::tools {

/// For how long something has been seen to hold. A look counts for no more than `most_of_look_ns`, since nobody saw
/// what was between it and the one before.
class Lasting {
 public:
  explicit Lasting(std::uint64_t most_of_look_ns) : most_of_look_ns_(most_of_look_ns) {}

  /// @param now_ns  of a clock that does not go back. @return for how long it has held, in ns
  std::uint64_t look(bool holds, std::uint64_t now_ns) {
    if (holds && held_) lasted_ns_ += std::min(now_ns - last_ns_, most_of_look_ns_);
    if (!holds) lasted_ns_ = 0;
    held_ = holds;
    last_ns_ = now_ns;
    return lasted_ns_;
  }

 private:
  const std::uint64_t most_of_look_ns_;
  std::uint64_t lasted_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  bool held_ = false;
};

/// What shows that a rank polls its memory: its thread has used CPU and called nothing, and has said so several times
/// in a row. CPU time alone shows too little: that of a processor which is taken away from this machine may count as
/// used, just when the rank was about to call.
struct PollingEvidence {
  std::uint64_t cpu_ns = 0;     ///< That its process had used at the last question, or call.
  std::uint64_t polled_ns = 0;  ///< CPU time of the thread at the last answer that counts; 0: there is none.
  std::uint64_t calls = 0;      ///< That it had made.
  int answers = 0;              ///< That count.
};

}  // namespace portofu::tools
