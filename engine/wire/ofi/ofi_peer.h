#pragma once
// What an OfiWire knows of one other process: its address, what waits to go there, the link to it and the links from
// it. State only; ofi_wire.cpp is the sending half, ofi_receive.cpp the receiving half, and
// ofi_lending.cpp what both do for payloads that stay at their sender.

#include <deque>
#include <memory>
#include <vector>

#include "engine/wire/ofi/fabric_endpoint.h"
#include "engine/wire/ofi/ofi_message.h"
#include "engine/wire/wire.h"

namespace portofu {

struct OfiPeer;

/// How far a link has come.
enum class OfiLinkState : std::uint8_t {
  kGreeting,  ///< The hello is on its way, or its answer.
  kOpen,
  kEnded,  ///< Lost, or never answered; connect makes another one.
};

/// A payload that the peer may still fetch.
struct OfiExposure {
  std::uint64_t packet = 0;  ///< Its number.
  ExposedMemory memory;
};

/// A link to a peer.
struct OfiLink : Link {
  OfiPeer* owner = nullptr;
  OfiLinkState state = OfiLinkState::kGreeting;
  bool wanted = false;     ///< The engine has asked for it, and is told of its end. Else it goes unseen.
  bool given = false;      ///< The engine has it, until disconnect.
  bool refused = false;    ///< kEnded: the peer is there and does not want it.
  bool life_over = false;  ///< The life of the peer is, as its node says.
  std::vector<std::uint64_t> ended_lives;  ///< kGreeting: of the peer, the same. Their words may still be under way.
  bool blocked = false;                    ///< A claim has failed for want of room.
  std::uint32_t number = 0;                ///< OfiEnvelope::link.
  std::uint64_t window = 0;                ///< Packets that may be under way.
  std::uint64_t sent = 0;                  ///< Packets published.
  std::uint64_t released = 0;              ///< Of them, those that the peer has released.
  std::uint64_t greeted_ns = 0;            ///< kGreeting: when the last hello was sent.
  SendBuffer* claimed = nullptr;           ///< Between claim and publish or discard.
  bool lends = false;  ///< The claimed packet was claimed by lend, and its payload is the last of `exposed`.
  std::deque<OfiExposure> exposed;
};

/// Where the payload of a packet is that has arrived.
enum class OfiPayload : std::uint8_t { kInMessage, kAtSender, kOnItsWay, kFetched };

/// A packet that has arrived.
struct OfiArrival {
  const std::byte* data = nullptr;  ///< PacketHeader, and payload or OfiLoan.
  ReceiveBuffer* holder = nullptr;
  OfiPayload payload = OfiPayload::kInMessage;
  FetchBuffer* fetch = nullptr;  ///< kOnItsWay, kFetched.
};

/// A link from a peer.
struct OfiSource : SourceContext {
  OfiPeer* owner = nullptr;
  std::uint32_t number = 0;         ///< OfiEnvelope::link.
  bool closing = false;             ///< No more packets come; it ends when those that are here are taken.
  bool said_goodbye = false;        ///< The sender waits for the last credit.
  std::uint64_t received = 0;       ///< Packets that have come.
  std::uint64_t released = 0;       ///< Of them, those that the engine has released.
  std::uint64_t told = 0;           ///< Of them, those that the sender knows of.
  std::deque<OfiArrival> arrivals;  ///< Not peeked yet.
  std::deque<OfiArrival> behind;    ///< The payload of the first one is not here yet; the others are behind it.
};

struct OfiPeer {
  ProcessId id;
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  std::deque<SendBuffer*> unsent;    ///< What the provider would not take yet, in order.
  std::uint32_t under_way = 0;       ///< Messages that the provider has taken and not reported.
  std::uint64_t stuck_since_ns = 0;  ///< When the provider first refused the first of `unsent`; 0: `unsent` is empty.
  bool is_short = false;             ///< It refused because this process lacks what a connection takes.
  bool far_is_short = false;         ///< It says that it lacks that.
  std::uint64_t probed_ns = 0;       ///< When something was last sent for the sake of check_peers.
  std::uint32_t last_link = 0;       ///< Number of the latest link.
  std::uint32_t ending_link = 0;     ///< Its goodbye is not answered yet; 0: there is none.
  bool ends = false;                 ///< It has said that its life is over: it will not answer.
  std::uint64_t node = 0;            ///< node_identity of its latest hello; 0: none was told.
  std::uint64_t since_ns = 0;        ///< When `link`, or the latest of `sources`, was made; 0: never.
  std::unique_ptr<OfiLink> link;     ///< nullptr: none.
  std::unique_ptr<OfiLink> former;   ///< Lost, to an earlier life, and not given back yet; nullptr: none.
  /// Links from it. Only the first one delivers; a later one waits until that is taken.
  std::deque<std::unique_ptr<OfiSource>> sources;
};

}  // namespace portofu
