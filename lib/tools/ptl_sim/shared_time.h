#pragma once
// The file by which ranks share virtual time, and what the system says of the threads of a rank.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// Costs of calls, and of what is computed between them.
struct TimeCosts {
  VirtualCompute compute = VirtualCompute::kNone;
  std::uint64_t compute_word = 0;                           ///< As VirtualHeader::compute_word.
  std::array<std::uint64_t, kVirtualCallCount> calls_ps{};  ///< As VirtualHeader::call_ps.
  std::uint64_t poll_ps = 1;
  std::uint64_t empty_poll_ps = 1;
  bool keeps_spans = false;  ///< As VirtualHeader::keeps_spans.
};

/// Memory without a name in any directory; it ends with its last user.
class SharedTime {
 public:
  SharedTime(std::uint32_t ranks, const TimeCosts& costs);
  ~SharedTime();
  SharedTime(const SharedTime&) = delete;
  SharedTime& operator=(const SharedTime&) = delete;

  bool is_open() const { return header_ != nullptr; }
  const std::string& why() const { return why_; }  ///< It is not open.
  std::string path() const;                        ///< For PORTOFU_SIM, while this process lives.
  VirtualHeader& header() const { return *header_; }
  VirtualPage& page(std::uint32_t rank) const { return *virtual_page(header_, rank); }

 private:
  int fd_ = -1;
  std::size_t bytes_;
  VirtualHeader* header_ = nullptr;
  std::string why_;
};

/// Whether a thread of a process sleeps in the kernel, or has ended.
bool is_asleep(pid_t process, pid_t thread);

/// The same of all threads of a process, and of those that have started it, up to this one.
bool is_family_asleep(pid_t process);

/// CPU time that a process has used so far. @return 0 if nobody knows
std::uint64_t used_cpu_ns(pid_t process);

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t timeout_ns);
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace portofu::tools
