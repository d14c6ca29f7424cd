#pragma once
// A simulated network that promises nothing: datagrams are lost, duplicated, reordered, damaged and delayed, queues in
// it are finite, and it can be cut in parts; processes die between any two calls. Time is virtual and everything
// follows from one seed. What it carries becomes a wire by wire/reliable.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "engine/wire/reliable/datagram.h"
#include "engine/wire/sim/sim_random.h"
#include "engine/wire/sim/topology.h"

namespace portofu {

/// How the delay is distributed that a datagram has on top of its way.
enum class DelayKind : std::uint8_t {
  kNone,
  kUniform,      ///< From 0 to twice the mean.
  kExponential,  ///< Some are late.
  kPareto,       ///< Few are very late: exponent 1.5, at most 1000 times the least.
};

/// Chances are in thousandths, per datagram.
struct LossyOptions {
  std::uint32_t max_datagram_bytes = 4224;
  std::uint32_t loss = 0;
  std::uint32_t duplicates = 0;
  std::uint32_t damaged = 0;  ///< Some bits change, or the end is missing.
  std::uint32_t reordered = 0;
  std::uint32_t reorder_span = 64;              ///< Later ones of the same pair that may overtake a reordered datagram.
  std::uint64_t reorder_limit_ns = 10'000'000;  ///< Longest time that it waits for them.
  DelayKind delay = DelayKind::kNone;
  std::uint64_t mean_delay_ns = 0;
  std::uint32_t receive_datagrams = 1024;  ///< Held at an endpoint, at most, of each class.
  /// True: what finds no room waits where it is, and so does what is behind it. False: it is dropped.
  bool blocking = false;
  /// False: answers are requests for the network.
  bool two_classes = true;
  /// How many times in a row a node tells another one that nobody has an address, as kernels limit it: a second later
  /// once more. 0: without limit.
  std::uint32_t notices_in_a_row = 0;
};

class LossyEndpoint;

/// Outlives its endpoints. Used by one thread.
class LossyNetwork {
 public:
  LossyNetwork(std::uint64_t seed, Topology topology, const LossyOptions& options);
  ~LossyNetwork();
  LossyNetwork(const LossyNetwork&) = delete;
  LossyNetwork& operator=(const LossyNetwork&) = delete;

  /// A process begins; no living one may have its id.
  /// @param node  where it lives, < topology.node_count()
  std::unique_ptr<LossyEndpoint> attach(ProcessId process, std::uint32_t node);

  /// Ends a process at once: what it has sent is still on its way, what it has not taken is gone. From then on its node
  /// says that nobody has the address. Its endpoint stays valid, and does nothing any more.
  void kill(ProcessId process);

  /// The same for a whole node, which says nothing any more, until a process begins there.
  void kill_node(std::uint32_t node);

  /// Nothing passes between nodes of different parts, also not what is on its way.
  /// @param part_of_node  by node; those behind the end are in part 0. Empty: the network is whole
  void set_parts(std::vector<int> part_of_node) { parts_ = std::move(part_of_node); }

  /// Chances and delays from now on.
  LossyOptions& options() { return options_; }

  /// The clock; only advance moves it.
  std::uint64_t* clock_ns() { return &now_ns_; }
  std::uint64_t now_ns() const { return now_ns_; }

  /// When something happens next; UINT64_MAX: nothing is on its way.
  std::uint64_t next_event_ns() const { return events_.empty() ? UINT64_MAX : events_.top().at_ns; }

  /// Lets the time pass.
  void advance(std::uint64_t to_ns);

  /// Datagrams that found a queue full and were dropped.
  std::uint64_t dropped_full() const { return dropped_full_; }
  /// Endpoints that got something since the last call, in no order: for a test with many engines.
  std::vector<ProcessId> take_receivers() { return std::exchange(receivers_, {}); }

 private:
  friend class LossyEndpoint;

  enum class EventKind : std::uint8_t { kArrive, kLinkFree, kRetry, kSetFree, kDeliver, kNotice };
  struct Event {
    std::uint64_t at_ns;
    std::uint64_t serial;  ///< Among events of one time, in the order in which they were made.
    EventKind kind;
    std::uint32_t index;  ///< Of a datagram in transits_, or of a link.
    bool operator>(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : serial > other.serial;
    }
  };

  /// A datagram on its way.
  struct Transit {
    std::vector<std::byte> bytes;
    std::uint32_t from = 0;  ///< Endpoint.
    ProcessId to;
    std::uint32_t to_node = 0;
    TrafficClass traffic = TrafficClass::kRequest;
    std::vector<std::uint32_t> route;
    std::size_t hop = 0;           ///< The link in whose queue it is.
    std::uint32_t overtakers = 0;  ///< Set aside until so many have overtaken it; 0: it is not.
    std::uint64_t extra_delay_ns = 0;
    std::uint64_t sent_ns = 0;
  };

  struct LinkState {
    std::deque<std::uint32_t> waiting[kTrafficClassCount];  ///< Transits.
    std::uint32_t promised = 0;                             ///< Places for those that are on their way into the queue.
    bool busy = false;
    bool blocked = false;  ///< In blocked_.
    std::size_t used() const { return waiting[0].size() + waiting[1].size() + promised; }
  };

  struct Arrived {
    ProcessId source;
    std::vector<std::byte> bytes;
  };

  struct Unreachable {
    ProcessId process;
    std::uint64_t since_ns;
  };

  struct Endpoint {
    ProcessId process;
    std::uint32_t node = 0;
    bool alive = true;
    std::deque<Arrived> arrived[kTrafficClassCount];
    std::uint32_t promised[kTrafficClassCount] = {};  ///< Places for datagrams that are on their last link.
    std::deque<Unreachable> unreachable;
    std::uint64_t unreachable_since_ns = 0;  ///< Of the last one that was taken.
    std::vector<std::uint32_t> aside;        ///< Transits.
  };

  bool chance(std::uint32_t thousandths) { return thousandths > 0 && random_.below(1000) < thousandths; }
  void schedule(std::uint64_t at_ns, EventKind kind, std::uint32_t index);
  std::uint32_t new_transit(Transit transit);
  void end_transit(std::uint32_t index);
  Endpoint* find_living(ProcessId process);
  bool is_apart(std::uint32_t node_a, std::uint32_t node_b) const;
  std::uint64_t draw_delay();
  bool may_notify(std::uint32_t from_node, std::uint32_t to_node);

  bool send(std::uint32_t from, ProcessId to, TrafficClass traffic, std::vector<std::byte> bytes);
  void damage(std::vector<std::byte>& bytes);
  void let_overtake(Endpoint& sender, ProcessId to);
  void set_free(std::uint32_t index);
  bool has_room(std::uint32_t link, TrafficClass traffic) const;
  void enter(std::uint32_t index);
  void start(std::uint32_t link);
  bool start_one(std::uint32_t link, TrafficClass traffic);
  bool may_go_on(const Transit& transit);
  void arrive(std::uint32_t index);
  void deliver(std::uint32_t index);
  void room_again();
  void handle(const Event& event);

  Topology topology_;
  LossyOptions options_;
  SimRandom random_;
  std::uint64_t now_ns_ = 1;
  std::uint64_t serial_ = 0;
  std::uint64_t dropped_full_ = 0;
  std::vector<int> parts_;
  std::vector<bool> node_dead_;
  std::vector<LinkState> links_;  ///< As in the topology.
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::map<std::uint64_t, std::uint32_t> living_;   ///< Endpoint by process.
  std::map<std::uint64_t, std::uint32_t> node_of_;  ///< Of every process that ever lived.
  std::vector<std::unique_ptr<Transit>> transits_;  ///< nullptr: free.
  std::vector<std::uint32_t> free_transits_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> blocked_;  ///< Links that wait for room behind them.
  std::vector<ProcessId> receivers_;
  /// By the node that tells and the one that is told: when all of notices_in_a_row may go again.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> notices_full_ns_;
};

/// What one process sees of it.
class LossyEndpoint final : public DatagramEndpoint {
 public:
  LossyEndpoint(LossyNetwork& network, std::uint32_t index) : network_(network), index_(index) {}
  /// The process ends.
  ~LossyEndpoint() override;

  std::uint32_t max_bytes() const override { return network_.options_.max_datagram_bytes; }
  bool send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
            std::span<const std::byte> body) override;
  std::uint32_t receive(std::byte* buffer, ProcessId* source) override;
  bool has_datagrams() override;
  bool take_unreachable(ProcessId* peer) override;
  std::uint64_t unreachable_since_ns() const override;
  /// Whether receive would find a datagram of this class; it takes answers first.
  bool has_of_class(TrafficClass traffic) const { return !own().arrived[static_cast<std::size_t>(traffic)].empty(); }
  std::uint64_t now_ns() const override { return network_.now_ns_; }

 private:
  LossyNetwork::Endpoint& own() const { return *network_.endpoints_[index_]; }

  LossyNetwork& network_;
  std::uint32_t index_;
};

}  // namespace portofu
