#pragma once
// Draws a world and a sequence of calls from a seed, and makes them.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/wire/sim/sim_random.h"
#include "tests/simulation/world.h"

namespace portofu::simulation {

/// Portal table entries of every process. "Aligned": all messages and nearly all offsets are multiples of 32, so that
/// atomics of all types are legal wherever they end up; entries may end anywhere, and cut them.
enum PortalIndex : std::uint16_t {
  kAligned = 0,      ///< No locally managed entries; conditional swaps too.
  kRagged = 1,       ///< Puts and gets of any length, scattered memory.
  kFlowRagged = 2,   ///< The same with flow control.
  kFlowAligned = 3,  ///< Aligned, locally managed entries, flow control; shares the event queue of kFlowRagged.
  kMissing = 4,      ///< Not allocated.
};

/// What a sequence likes to do.
struct Taste {
  std::uint32_t bit_values = 3;         ///< Values of each field of the match bits: many make long lists.
  std::uint32_t initial_entries = 0;    ///< Appended by every process before anything else.
  std::uint32_t append_percent = 12;    ///< Calls that append an entry.
  std::uint32_t priority_percent = 60;  ///< Entries for the priority list; few make long lists of unexpected headers.
  std::uint32_t local_percent = 40;     ///< Entries with locally managed offsets, where they may be.
  std::uint32_t long_percent = 12;      ///< Messages and entries of up to some packets.
  bool lossy = false;                   ///< Over reliable wires on a bad network.
  /// Payloads stay in the memory of their senders. What is read late, or helped with, is in order with nothing else
  /// (2.7.1 promises none to long messages), so each entry takes one message, and has memory of its own.
  bool lends = false;
};

/// One run of the simulator against the model.
class RandomSequence {
 public:
  explicit RandomSequence(std::uint64_t seed, const Taste& taste = {});

  /// Makes `action_count` random calls, lets everything end, and compares.
  /// @return what went otherwise and after which calls; empty if nothing
  std::string run(int action_count);

  /// Transfers that were posted or armed.
  std::uint64_t operations() const { return operations_; }
  const World& world() const { return world_; }

 private:
  /// What the test knows of one process.
  struct Process {
    Handle eq = 0;       ///< Without flow control: MDs, kAligned, kRagged.
    Handle flow_eq = 0;  ///< Of the two others.
    std::vector<Handle> counters;
    std::vector<Handle> send_mds;
    std::vector<Handle> receive_mds;
    Handle volatile_md = 0;
    std::size_t received = 0;     ///< Bytes of the area for replies that are used up.
    std::size_t given = 0;        ///< Taste::lends: bytes of the area for entries that are used up.
    std::vector<Handle> entries;  ///< Live or recently dead.
  };

  static WorldOptions draw_world(std::uint64_t seed, const Taste& taste);
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  template <class T>
  T& any(std::vector<T>& list) {
    return list[below(list.size())];
  }

  void set_up(std::size_t process);
  Handle draw_md_queue(const Process& own, std::uint64_t chance);
  void bind_send_md(std::size_t process);
  ModelRegion draw_pieces(std::size_t at, std::size_t bytes, std::size_t most);
  std::size_t draw_length(bool aligned);
  MatchCriteria draw_criteria();
  std::uint64_t draw_bits();
  std::uint32_t draw_entry_options(bool aligned);
  EntryPlan draw_entry(std::size_t process);
  void make_lone(std::size_t process, EntryPlan& plan);
  Descriptor draw_transfer(std::size_t process);
  void draw_atomic(Descriptor& descriptor);
  void draw_receive(std::size_t process, Descriptor& descriptor);
  Descriptor draw_count(std::size_t process);

  void act();
  void act_post(std::size_t process);
  void act_volatile_post(std::size_t process);
  void act_append(std::size_t process);
  void act_unlink(std::size_t process);
  void act_search(std::size_t process);
  void act_enable(std::size_t process);
  void act_trigger(std::size_t process);
  void act_release(std::size_t process);
  void act_free_counter(std::size_t process);
  void make_room(std::size_t process, std::uint16_t pt_index);
  void note(std::size_t process, const std::string& what);

  SimRandom random_;
  Taste taste_;
  WorldOptions options_;
  World world_;
  std::vector<Process> own_;
  std::uintptr_t next_name_ = 1000;  ///< For user_ptr and hdr_data; below: portal table indices.
  std::deque<std::string> last_calls_;
  int calls_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace portofu::simulation
