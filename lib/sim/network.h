#pragma once
// The network of a machine in virtual time: who sends what and when goes in, when it arrives comes out. Links and
// interfaces are used by one packet after the other; a packet goes on as soon as its first byte is there, unless what
// comes next is in use or has no room. It has no thread and no clock of its own.

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/sim/calendar.h"
#include "lib/sim/layout.h"
#include "lib/sim/machine.h"

namespace portofu::sim {

/// What begins a message, and so what its interface has to do before its first byte leaves.
enum class PacketKind : std::uint8_t {
  kPut,            ///< A command of the processor; the payload is read from memory.
  kInlinePut,      ///< The payload is in the command (piggyback).
  kTriggeredPut,   ///< The command was waiting in the interface: session mode, a triggered operation.
  kGetRequest,     ///< A command of the processor.
  kGetReply,       ///< A request that came; the payload is read from memory.
  kAtomicRequest,  ///< A command of the processor, with its operands.
  kAtomicReply,    ///< A request that came, and is executed.
  kAck,            ///< A packet that came.
  kGate,           ///< What a barrier gate was waiting for.
  kNextPut,        ///< A further piece of a put or a reply whose beginning has left: its payload has been read ahead.
};

inline constexpr std::uint32_t kSameInterface = UINT32_MAX;
inline constexpr std::uint32_t kOwnPath = UINT32_MAX;
inline constexpr std::uint32_t kNoStage = UINT32_MAX;

struct Packet {
  std::uint32_t from_node = 0;
  std::uint32_t to_node = 0;
  std::uint32_t interface = 0;  ///< Of the sender's node.
  std::uint32_t bytes = 0;      ///< Payload. What is longer than the machine's packets leaves as several.
  PacketKind kind = PacketKind::kPut;
  std::uint32_t to_interface = kSameInterface;  ///< Of the receiver's node; by default that of the same number.
  /// On a torus: the path as ids of uTofu have it (pack_path); by default, and if the job has no such place, the
  /// sender's own A, B and C.
  std::uint32_t path = kOwnPath;
};

struct Passage {
  std::uint64_t left_ps = 0;     ///< The interface is done with the message; its memory may change.
  std::uint64_t arrived_ps = 0;  ///< All of it is in the receiver's memory, or, a request or ACK, with its interface.
  std::uint64_t waited_ps = 0;   ///< It would have arrived so much earlier if nothing else were on its way.
  /// What one of its packets waited for longest (stage_name); kNoStage: for an earlier message between the same two
  /// interfaces, or for nothing.
  std::uint32_t waited_for = kNoStage;
};

/// What came over a link or through an interface.
struct Use {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;  ///< With headers.
  std::uint64_t busy_ps = 0;
  std::uint64_t waited_ps = 0;  ///< Of all packets together, because it was in use or had no room behind it.
  std::uint64_t longest_wait_ps = 0;
  std::vector<std::uint64_t> busy_by_slice;    ///< Of busy_ps, in each slice of time (Network::slice_ps).
  std::vector<std::uint64_t> waited_by_slice;  ///< The same of waited_ps.
};

/// Used by one thread.
class Network {
 public:
  Network(const Machine& machine, Layout layout);

  const Machine& machine() const { return machine_; }
  const Layout& layout() const { return layout_; }
  std::uint32_t node_count() const { return layout_.node_count(); }

  /// Carries a message.
  /// @param now_ps  of a command: when the processor has given it; of an answer: when the request arrived. Calls come
  ///                in the order of now_ps
  /// @return what interface and network make of it. Messages between the same interfaces arrive in order
  Passage send(std::uint64_t now_ps, const Packet& packet);

  /// From the command, or from the packet that asks for it, until a message of this kind is about to leave.
  std::uint64_t before_ps(PacketKind kind) const;

  /// From the last byte of such a message until it has arrived.
  std::uint64_t after_ps(PacketKind kind) const;

  /// Everything that has been in use, by name: "X+ of node 5", "interface 2 of node 5, out".
  struct NamedUse {
    std::string name;
    const Use* use;
  };
  std::vector<NamedUse> uses() const;
  std::string stage_name(std::uint32_t stage) const;

  /// Length of a slice of Use::busy_by_slice and waited_by_slice; it doubles as time goes on, so that there are at most
  /// 4096.
  std::uint64_t slice_ps() const { return slice_ps_; }

 private:
  /// A link, or one direction of an interface.
  struct Stage {
    double ps_per_byte = 0;
    std::uint64_t latency_ps = 0;
    std::uint32_t buffer_bytes = 0;  ///< Behind it; 0: without limit.
    Calendar calendar;
    struct Waiting {
      std::uint64_t leaves_ps;
      std::uint32_t bytes;
    };
    std::list<Waiting> waiting;  ///< In the buffer behind it, in the order in which they came.
    std::uint64_t waiting_bytes = 0;
    Use use;
  };

  /// One packet of a message, of which it is the first or not.
  struct Frame {
    std::uint32_t bytes;           ///< With header.
    std::uint64_t ready_ps;        ///< At the interface.
    std::uint64_t alone_ready_ps;  ///< The same if nothing else were on its way.
    std::uint64_t occupies_ps;     ///< The interface, at least, together with what follows it of its message.
  };
  /// What has become of it, also if nothing else were on its way.
  struct Carried {
    std::uint64_t began_ps = 0;  ///< To leave.
    std::uint64_t left_ps = 0;
    std::uint64_t arrived_ps = 0;
    std::uint64_t alone_left_ps = 0;
    std::uint64_t alone_arrived_ps = 0;
    std::uint64_t longest_wait_ps = 0;
    std::uint32_t waited_for = kNoStage;
  };

  std::uint32_t out_stage(std::uint32_t node, std::uint32_t interface) const;
  void find_way(const Packet& packet);
  Carried carry(std::uint64_t now_ps, const Frame& frame);
  std::uint64_t room_from(Stage& stage, std::uint64_t now_ps, std::uint32_t bytes) const;
  void note_use(Stage& stage, std::uint64_t came_ps, std::uint64_t from_ps, std::uint64_t duration_ps);
  void make_room(std::uint64_t to_ps);
  void add_to_slices(std::vector<std::uint64_t>& slices, std::uint64_t from_ps, std::uint64_t to_ps) const;

  Machine machine_;
  Layout layout_;
  std::vector<Stage> stages_;       ///< Links as in the topology, then of each interface out and in.
  std::vector<std::uint32_t> way_;  ///< Stages of the message at hand.
  std::unordered_map<std::uint64_t, std::uint64_t> last_arrival_ps_;  ///< By sending and receiving interface.
  std::uint64_t slice_ps_ = 1'000'000;
};

}  // namespace portofu::sim
