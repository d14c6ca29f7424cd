#pragma once
// One other process, as this engine knows it: the link to it, what waits to go there, and what is arriving from there.
// Made when the first packet goes or comes; lives as long as the engine. Touched on duty only.

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <deque>
#include <memory>

#include "engine/descriptor/descriptor.h"
#include "engine/event/notice_queue.h"
#include "engine/memory/list_entry.h"
#include "engine/queue/line_aligned.h"
#include "engine/topology/process_id.h"
#include "engine/wire/wire.h"

namespace portofu {

struct Core;
struct Peer;

/// What happens to the data of a message that is arriving.
enum class ArrivalMode : std::uint8_t {
  kIdle,     ///< No message is arriving on this stream.
  kDeliver,  ///< Data goes to `entry`, up to mlength bytes; the rest is dropped (truncation).
  kDiscard,  ///< The message was refused, or its interface was closed; its data is dropped.
  kReply,    ///< Answer stream: data goes to the memory of the outstanding operation.
};

/// Where a message goes, and how that went.
struct Placement {
  ListEntry* entry = nullptr;           ///< Where it matched. Stays allocated while `pending` counts this message.
  std::uint64_t offset = 0;             ///< Bytes into the entry where it starts.
  std::uint64_t mlength = 0;            ///< Bytes that are moved.
  ProcessId initiator;                  ///< As events and matching show it: physical, or the rank in `nid`.
  NiFail fail = NiFail::kOk;            ///< First thing that went wrong.
  ListKind list = ListKind::kPriority;  ///< Where it matched.
};

/// A message between its first packet and its completion.
struct Arrival : Placement {
  PacketHeader header{};                   ///< Of the first packet.
  UnexpectedHeader* unexpected = nullptr;  ///< It matched in the overflow list and its header is kept.
  std::uint64_t received = 0;              ///< Bytes of payload seen so far.
  std::uint32_t promised_events = 0;       ///< Places promised in the event queue of the portal table entry.
  ArrivalMode mode = ArrivalMode::kIdle;
};

/// How far a request has come on its way out.
struct SendProgress {
  std::uint64_t sent = 0;                     ///< Bytes of payload published.
  std::uint32_t operation_id = 0;             ///< Outstanding operation; 0 if no answer is due, or not opened yet.
  bool started = false;                       ///< The first packet is published.
  bool placed = false;                        ///< uTofu: the data is at its place, and only the packet goes out.
  std::uint64_t lent_end = 0;                 ///< Number behind its last packet that was lent; 0: there is none.
  std::uint64_t first_packet = 0;             ///< Number of its first one, once that is published.
  std::unique_ptr<std::byte[]> private_data;  ///< Copy of the data, for PTL_MD_VOLATILE; else nullptr.
};

/// A request that waits for room. @see initiator/send
struct OutgoingRequest : boost::intrusive::list_base_hook<> {
  Descriptor descriptor;  ///< Its interface_index is kInterfaceCount once the interface of a begun request is closed.
  SendProgress progress;
  bool anew = false;  ///< It was posted when the link was known to be lost: it goes with the next one.
};

/// An answer on its way out. @see target/answer_out
struct OutgoingAnswer : LineAligned, boost::intrusive::list_base_hook<> {
  PacketHeader header{};                      ///< kAnswer; `length` is the number of data bytes that follow.
  Arrival arrival;                            ///< A get that is complete once its data is read; kIdle for others.
  std::uint8_t interface_index = 0;           ///< Of `arrival`.
  std::uint64_t data_bytes = 0;               ///< Data to send.
  std::uint64_t sent = 0;                     ///< Bytes of data published.
  bool started = false;                       ///< The first packet is published.
  std::uint64_t lent_end = 0;                 ///< As in SendProgress.
  std::uint64_t first_packet = 0;             ///< As in SendProgress.
  std::unique_ptr<std::byte[]> private_data;  ///< The data, if it was read already; else it is read from the entry.
  /// Its data has left, or never will (`fail`). Set once it waits at a peer.
  void (*finish)(Core& core, Peer& peer, OutgoingAnswer& answer, NiFail fail) = nullptr;
};

/// uTofu: a remote notice that waits for the one of an earlier get of the same peer, or that of the get itself.
struct HeldNotice {
  Handle vcq_handle = 0;
  Notice notice;
  bool awaited = false;  ///< Of a get whose data has not left yet.
};

/// An entry of the peer that we use ourselves.
struct alignas(64) PublishedEntry {
  std::uint64_t key = 0;  ///< entry_key; 0: none is known here.
  MappedRegion region;
};
static_assert(sizeof(PublishedEntry) == 64);

/// By key; two that share a place take turns.
using PublishedEntries = std::array<PublishedEntry, 8>;

/// Whether packets can go to the peer.
enum class PeerState : std::uint8_t {
  kUnconnected,  ///< No link yet, or the last one was lost.
  kConnecting,   ///< The wire needs more time; bounded by `connect_deadline_ns`.
  kConnected,
};

struct Peer {
  ProcessId id;
  LaneState lane;         ///< uTofu: how VCQs may write into its memory without the duty.
  bool had_lane = false;  ///< There was one since the link was made.
  Wire* wire = nullptr;   ///< Which wire reaches it; constant.
  Link* link = nullptr;   ///< nullptr unless kConnected.
  PeerState state = PeerState::kUnconnected;
  bool waiting = false;                   ///< In Core::waiting_peers, because something could not go out.
  bool awaited = false;                   ///< In Core::awaited_peers.
  std::uint32_t outstanding = 0;          ///< Operations of ours that it has to answer.
  std::uint32_t gets_under_way = 0;       ///< uTofu: gets of ours that it has to answer.
  std::uint32_t answer_count = 0;         ///< Length of `answers`.
  std::uint64_t connect_deadline_ns = 0;  ///< kConnecting: when to give up.
  std::uint64_t connect_again_ns = 0;     ///< kConnecting with a pause: when to try again.
  std::uint64_t connect_pause_ns = 0;     ///< kConnecting: how long what is lacking was waited for; 0: not.
  std::uint64_t answers_life = 0;         ///< The life that `answers` are for; 0: that of the link.
  std::uint64_t lost_since_ns = 0;        ///< When is_over of mailbox/connect first put the loss off; 0: it did not.
  boost::intrusive::list<OutgoingRequest> requests;       ///< In the order of posting; the first may be partly sent.
  boost::intrusive::list<OutgoingAnswer> answers;         ///< In the order of completion; the first may be partly sent.
  boost::intrusive::list<OutgoingRequest> lent_requests;  ///< All has left, and the peer may still read our memory.
  boost::intrusive::list<OutgoingAnswer> lent_answers;    ///< The same.
  std::unique_ptr<PublishedEntries> published;            ///< nullptr: it has told of none since the link was made.
  std::deque<HeldNotice> held_notices;  ///< uTofu: the first is awaited; empty if no get is under way.
  Arrival request_stream;               ///< Request that is arriving.
  Arrival answer_stream;                ///< Answer that is arriving; header.operation_id names the operation.

  /// Whether it may still read memory of ours.
  bool has_lent() const { return !lent_requests.empty() || !lent_answers.empty(); }

  /// Whether the loop has to look at it again.
  bool has_unfinished() const { return !requests.empty() || !answers.empty() || has_lent(); }
};

}  // namespace portofu
