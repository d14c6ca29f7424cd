#pragma once
// What has happened in a job in virtual time, step by step: messages, what ranks did, and which message let a rank go
// on. Written by the coordinator while the job runs; the critical path and the timeline are made of it.

#include <cstdint>
#include <vector>

#include "engine/door/inspection.h"
#include "lib/sim/network.h"

namespace portofu::tools {

inline constexpr std::uint32_t kNoMessage = UINT32_MAX;
/// Steps that are kept, at most: about 2 GB.
inline constexpr std::size_t kMostHistory = std::size_t{1} << 25;

/// A message of the job.
struct MessageTimes {
  std::uint32_t from;       ///< Rank.
  std::uint32_t to;         ///< Rank.
  std::uint32_t interface;  ///< Of the sender's node.
  sim::PacketKind kind;
  std::uint8_t type;  ///< PacketType.
  std::uint64_t bytes;
  std::uint64_t sent_ps;
  std::uint64_t left_ps;
  std::uint64_t arrived_ps;
  std::uint64_t before_ps;   ///< After sent_ps, in the sender's interface.
  std::uint64_t after_ps;    ///< Before arrived_ps, in the receiver's.
  std::uint64_t waited_ps;   ///< For links and interfaces in use.
  std::uint32_t waited_for;  ///< Which of them: sim::Passage::waited_for.
  /// Index of the message whose arrival has sent it, or whose departure has if it is of the same rank; kNoMessage: a
  /// call has.
  std::uint32_t answers;
  bool is_told = false;  ///< Its sender was told when it left.
};

/// A rank went on because of a message.
struct Wake {
  std::uint64_t time_ps;
  std::uint32_t message;  ///< Index.
};

struct RankHistory {
  std::vector<VirtualSpan> spans;  ///< In order.
  std::vector<Wake> wakes;         ///< In order.
};

struct History {
  std::vector<MessageTimes> messages;  ///< In the order in which they left.
  std::vector<RankHistory> ranks;
  std::size_t steps = 0;
  bool is_cut = false;  ///< It was too much to keep.

  /// Room for one more step. @return false if there is none
  bool has_room() {
    is_cut = is_cut || steps == kMostHistory;
    steps += is_cut ? 0 : 1;
    return !is_cut;
  }
};

}  // namespace portofu::tools
