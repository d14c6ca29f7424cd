#pragma once
// Who looks at a job beside its launcher, from a thread of its own, and may end it.

#include <string>

namespace portofu::tools {

/// Called by the thread of the job.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;

  /// All ranks were started.
  virtual void begin() = 0;
  virtual void rank_ended(int rank) = 0;
  /// @param waits  a rank has said that it waits at a barrier of PMI; false: all are there, and it is about to hear so
  virtual void rank_meets(int rank, bool waits) = 0;
  /// Readable once the job shall end.
  virtual int complaint_fd() const = 0;
  /// Why it shall. Asked when complaint_fd is readable.
  virtual std::string complaint() = 0;
  /// All ranks have ended.
  virtual void end() = 0;
};

}  // namespace portofu::tools
