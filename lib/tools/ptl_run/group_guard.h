#pragma once
// A process that outlives the one that launches ranks, if that is killed: then it kills the ranks' process groups. The
// kernel ends the ranks themselves (rank_process.h), but not what they have started.

#include <sys/types.h>

#include <cstdint>

namespace portofu::tools {

/// Made before the first rank, by a process with one thread.
class GroupGuard {
 public:
  /// Forks. Without it everything works but what is said above.
  void start();

  /// The groups that are known by now are killed.
  ~GroupGuard();
  GroupGuard() = default;
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  void add(pid_t group) const { tell(group); }
  void remove(pid_t group) const { tell(-group); }

 private:
  void tell(std::int32_t word) const;

  pid_t pid_ = -1;
  int fd_ = -1;
};

}  // namespace portofu::tools
