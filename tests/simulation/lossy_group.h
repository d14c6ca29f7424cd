#pragma once
// A group of processes on a lossy network in virtual time that put to each other and add to each other's memory, so
// that what has happened can be counted: every operation has a number, ends once, and is executed once or not at all.
// Only who has something to do is stepped, so a group may have a thousand engines.

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "tests/simulation/network.h"
#include "tests/simulation/node.h"

namespace portofu::simulation {

inline constexpr std::uint64_t kMillisecondNs = 1'000'000;
inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// One operation, as far as it has come.
struct GroupOperation {
  std::size_t from = 0;
  std::size_t to = 0;
  std::uint64_t posted_ns = 0;
  std::uint64_t ended_ns = 0;  ///< Of the ACK; 0: it has not ended.
  NiFail fail = NiFail::kOk;
  int acks = 0;
  int executed = 0;  ///< Events at the target.
};

/// Used by one thread.
class LossyGroup {
 public:
  /// @param topology  has a node for each process at least
  LossyGroup(std::uint64_t seed, Topology topology, const LossyOptions& options, std::size_t process_count);
  ~LossyGroup();

  /// Starts a put of `bytes`, or an atomic that adds 1 to every number of them, with a full acknowledgement.
  /// @return its number
  std::uint64_t put(std::size_t from, std::size_t to, std::uint64_t bytes);
  std::uint64_t add(std::size_t from, std::size_t to, std::uint64_t bytes = 8);

  /// Lets virtual time pass; whoever is not stopped or dead acts.
  /// @param each  called whenever something may have ended; false ends the run
  void run(
      std::uint64_t for_ns, const std::function<bool()>& each = [] { return true; });

  /// Runs until nothing is under way. @return false if that takes longer
  bool settle(std::uint64_t limit_ns);

  void kill(std::size_t process);
  void set_stopped(std::size_t process, bool stopped);

  const GroupOperation& operation(std::uint64_t number) const { return operations_[number]; }
  std::uint64_t operation_count() const { return operations_.size(); }
  std::uint64_t now_ns() const { return network_.now_ns(); }
  Network& network() { return network_; }
  Node& node(std::size_t process) { return *members_[process].node; }
  /// Those of the dead count as ended.
  std::uint64_t ended_count() const { return ended_count_; }
  /// Operations of one process that have not ended.
  std::uint64_t open_count(std::size_t process) const { return members_[process].open; }
  /// Sum of what was added to the first number of the process.
  std::uint64_t added(std::size_t process) const;

  /// Looks at all operations: ended once, executed once if they went well, and never more often.
  /// @return what is wrong; empty if nothing
  std::string check() const;
  /// Nothing of ended operations is left at the living.
  std::string check_nothing_left();

 private:
  struct Member {
    std::unique_ptr<Node> node;
    Handle target_eq = 0;
    Handle own_eq = 0;
    Handle md = 0;
    bool alive = true;
    bool stopped = false;
    bool busy = false;  ///< In busy_.
    std::uint64_t open = 0;
  };

  std::uint64_t post(std::size_t from, std::size_t to, std::uint64_t bytes, PacketType kind);
  void set_up(std::size_t process);
  void wake(std::size_t process);
  void step(std::size_t process);
  void take_events(std::size_t process);
  void wake_those_with_work();
  void check_all_peers();

  Network network_;
  std::vector<Member> members_;
  std::vector<GroupOperation> operations_;  ///< By number.
  std::uint64_t ended_count_ = 0;
  std::vector<std::size_t> busy_;  ///< To be stepped now.
  using Due = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;  ///< When wires want to be looked at, at the latest.
  std::uint64_t next_check_ns_ = 0;
};

}  // namespace portofu::simulation
