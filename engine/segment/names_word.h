#pragma once
// When a name of a segment may become another process's. A segment has names: that of its PID, and one for each control
// queue and barrier gate (segment_alias.h). Whoever has looked one up remembers whose it is together with the names
// word of that segment (DoorbellShared::names), and believes it while the word has not moved. The word moves before a
// name is taken away and once more afterwards, so that it is odd in between, and what is looked up then is not
// remembered. Its owner moves it when it gives a name up or ends, and of a dead one whoever removes a name of it. With
// the segment ends what it lists for peers (region_table.h), so who uses memory of it needs no look at the word.
//
// Each segment begins with another value, so the word of a later process is not mistaken for that of an earlier one.

#include <atomic>
#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

/// Whose a name is.
struct NameOwner : ProcessId {
  std::uint64_t names = 0;  ///< Of its segment when it had the name; 0 where no segment says so.
};

/// A value that the word of no segment has when it is compared: what was looked up is not to be remembered.
inline constexpr std::uint64_t kNamesMoving = 1;

/// What the word of a new segment is.
constexpr std::uint64_t first_names(std::uint64_t incarnation) { return incarnation & ~std::uint64_t{0xffffffff}; }

/// Held by the owner while it takes names away. The caller holds an OwnSegmentsLock when it is made and when it ends,
/// so a change at the end of the process lies before, after, or whole within this one.
class NamesChange {
 public:
  explicit NamesChange(std::atomic<std::uint64_t>& names) : names_(names) {
    // (N1) Sequentially consistent, so that nobody finds the name taken away, or another's, and the word as it was.
    names_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~NamesChange() { names_.fetch_add(1, std::memory_order_seq_cst); }
  NamesChange(const NamesChange&) = delete;
  NamesChange& operator=(const NamesChange&) = delete;

 private:
  std::atomic<std::uint64_t>& names_;
};

/// The same at the end of a process, or for who removes a name of a dead one, of whatever version (has_head): by the
/// kernel, because somebody may have cut the file. What the file lists for peers is withdrawn, too. Does nothing to a
/// file that is no segment.
/// @pre the caller has the lock of the file
class LastNamesChange {
 public:
  explicit LastNamesChange(int fd);
  ~LastNamesChange();
  LastNamesChange(const LastNamesChange&) = delete;
  LastNamesChange& operator=(const LastNamesChange&) = delete;

 private:
  int fd_;                   ///< -1: it is no segment.
  std::uint64_t names_ = 0;  ///< As we have written it.
};

/// Reads the word of a segment's file. @return kNamesMoving if that cannot be read, or a name is just taken away
std::uint64_t read_names(int fd);

}  // namespace portofu
