#pragma once
// The peers' segments that this process has attached, each once, whether it sends there, hears from there or both.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/segment/peer_segment.h"

namespace portofu {

/// Shares PeerSegments between links and sources. Used by the thread on duty.
class PeerTable {
 public:
  explicit PeerTable(const std::string& directory) : directory_(directory) {}

  /// Finds or attaches the segment of a process. Costs system calls.
  /// @param incarnation  which life is meant; 0 means the present one
  /// @param peer         set on kAttached
  AttachResult attach(ProcessId id, std::uint64_t incarnation, std::shared_ptr<PeerSegment>* peer);

  /// Asks for every attached peer whether it lives; PeerSegment::is_dead tells the outcome. One system call a peer.
  void check_alive();

  const std::string& directory() const { return directory_; }

 private:
  std::shared_ptr<PeerSegment> find_living(ProcessId id);

  std::string directory_;
  std::vector<std::weak_ptr<PeerSegment>> peers_;  ///< Emptied of what nobody uses by check_alive and attach.
};

}  // namespace portofu
