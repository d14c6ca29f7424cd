#pragma once
// Which process of a node owns a control queue or a barrier gate, and what memory of ours others there may use. On a
// real node the names of the shared segments answer (engine_node.cpp); in a simulation a table does.

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/segment/names_word.h"
#include "engine/segment/region_table.h"

namespace portofu {

/// Outcome of NodeDirectory::claim.
enum class ClaimResult : std::uint8_t { kClaimed, kTaken, kFailed };

/// Outcome of NodeDirectory::find.
enum class FindResult : std::uint8_t {
  kFound,
  kNobody,  ///< No living process has it, or its node does not answer.
  kLater,   ///< Its node is being asked: call again soon, until the answer is another one. Bounded by seconds.
};

/// Called on duty; never waits for anybody, but may cost system calls, so never on the short path.
class NodeDirectory {
 public:
  virtual ~NodeDirectory() = default;

  /// Takes what nobody living has. @param key  claim_key of an id
  virtual ClaimResult claim(std::uint64_t key) = 0;

  /// Gives back what this process has claimed. A process that ends has given back everything.
  virtual void release(std::uint64_t key) = 0;

  /// Where the STags are counted that a claimed queue gives out, whoever has it (stag_counts.h).
  /// @return nullptr: each owner counts from the first
  virtual std::atomic<std::uint64_t>* stags_given(std::uint64_t /*key*/) { return nullptr; }

  /// Lets peers on the node see memory that they may use themselves, or see it no more.
  /// @return false if they do not see it
  virtual bool publish(const PublishedRegion&) { return false; }
  virtual void withdraw(std::uint64_t /*key*/) {}

  /// Whether some peer still uses what was withdrawn. @param key  an entry_key
  virtual bool is_visited(std::uint64_t /*key*/) { return false; }

  /// Called when nothing that is known of names of a process of another node is good any more; such names have the word
  /// 0.
  std::function<void(ProcessId process)> when_moved;

  /// Called when such a process has ended, or its end is known.
  /// @param life  which one
  std::function<void(ProcessId process, std::uint64_t life)> when_ended;

  /// @param owner  set if it is found
  virtual FindResult find(std::uint64_t key, NameOwner* owner) = 0;
};

}  // namespace portofu
