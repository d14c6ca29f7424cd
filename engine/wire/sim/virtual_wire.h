#pragma once
// A wire in virtual time: over another wire, which carries the bytes at once, in real time. What has come stays
// invisible until the coordinator says that its message has arrived; then it is handed on as a whole. Each packet
// carries the number of its message in front of its payload. There is always room for what is sent: what the wire below
// has no room for waits here.
//
// Nothing of a peer is reached without packets, because that would take no time: no loans, no memory, no completions.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/topology/process_id.h"
#include "engine/wire/sim/sim_packet.h"
#include "engine/wire/sim/virtual_clock.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Wire over another wire. Used by the thread on duty.
class VirtualWire final : public Wire {
 public:
  /// @param inner  outlives this wire, as does the clock; nobody else uses it
  VirtualWire(Wire& inner, VirtualClock& clock);

  ConnectResult connect(ProcessId peer, Link** link) override;
  void disconnect(Link* link) override;
  bool leads_to_name(Link& link) override { return inner_.leads_to_name(link); }
  bool has_unheard(ProcessId peer, std::uint64_t life) override;
  void give_up(ProcessId peer) override { inner_.give_up(peer); }
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link& link) override;
  bool peek(Packet& packet) override;
  void release() override;
  bool has_packets() override { return false; }
  bool has_room_again() override { return inner_.has_room_again(); }
  int check_peers() override { return inner_.check_peers(); }
  bool take_closed_source(ProcessId* source, void** engines) override;

  /// Whether something that was sent waits for room below.
  bool has_unsent() const { return unsent_ != 0; }
  /// Sends what has room now.
  void send_waiting();

  /// Takes packets in. @return whether the message is here, the whole of it
  bool has_arrived(ProcessId source, std::uint64_t number);
  /// Makes a message that has arrived visible to peek. @return type of its first packet
  PacketType show(ProcessId source, std::uint64_t number);
  void hide();

 private:
  struct Message {
    std::deque<SimPacket> packets;
    std::uint64_t missing_bytes = 0;
    bool is_whole = false;
  };
  struct Source : SourceContext {
    ProcessId id;
    std::unordered_map<std::uint64_t, Message> messages;  ///< By number: those that are not taken yet.
  };
  struct Outgoing {
    PacketHeader header;
    SimPayload payload;
    std::uint32_t bytes;
  };
  struct Way {
    Link* link;
    ProcessId peer;
    std::unique_ptr<SimPayload> claimed;  ///< Between claim and publish.
    std::deque<Outgoing> waiting;         ///< For room below.
    std::uint64_t open_number[2] = {};    ///< Of the request, and of the answer, whose data packets come next.
    bool is_closed = false;               ///< By the engine.
  };

  void take_in();
  bool send_first(Way& way);
  void report(const Way& way, const PacketHeader& header, std::uint64_t number);
  Source* find_source(ProcessId id, std::uint64_t number);

  Wire& inner_;
  VirtualClock& clock_;
  std::unordered_map<Link*, std::unique_ptr<Way>> ways_;
  std::size_t unsent_ = 0;  ///< Packets in Way::waiting of all.
  std::vector<std::unique_ptr<Source>> sources_;
  Source* closing_ = nullptr;  ///< The inner wire has closed it.
  Source* shown_source_ = nullptr;
  Message shown_;
  bool in_hand_ = false;  ///< Between peek and release: the first of `shown_`.
};

}  // namespace portofu
