#pragma once
// A process that outlives the one that launches ranks, if that is killed: then it kills the ranks' process groups. The
// kernel ends the ranks themselves (rank_process.h), but not what they have started.

#include <sys/types.h>

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

  /// Where a rank tells its group before it becomes its program; -1 without a guard.
  int fd() const { return fd_; }

  /// Of a rank: this process leads a group.
  static void add_own_group(int guard_fd);

  /// Of the launcher: the rank has ended.
  void remove(pid_t group) const;

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

}  // namespace portofu::tools
