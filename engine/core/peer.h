#pragma once
// One other process, as this engine knows it: the link to it, what waits to go there, and what is arriving from there.
// Made when the first packet goes or comes; lives as long as the engine. Touched on duty only.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "engine/core/incoming.h"
#include "engine/core/outgoing.h"
#include "engine/event/notice_queue.h"
#include "engine/queue/direct_mapped.h"
#include "engine/topology/process_id.h"
#include "engine/wire/peer_memory.h"
#include "engine/wire/wire.h"

namespace portofu {

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
using PublishedEntries = DirectMapped<PublishedEntry, 32>;

/// uTofu: a region of the peer that puts may write, as a remote VCQ ID and STag name it.
struct PutRegion {
  std::uint64_t vcq_id = 0;  ///< 0: none.
  std::uint64_t bytes = 0;
  const std::atomic<std::uint64_t>* sequence = nullptr;  ///< See MappedRegion.
  std::uint64_t seen = 0;
  std::uint32_t stag = 0;
};

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
  bool was_lost_unheard = false;          ///< Once, before all that it had sent was taken: answers may come late.
  std::uint32_t outstanding = 0;          ///< Operations of ours that it has to answer.
  std::uint32_t marks = 0;                ///< Of these, marks of libfabric (OutstandingOperation::is_mark).
  std::uint32_t gets_under_way = 0;       ///< uTofu: gets of ours that it has to answer.
  std::uint64_t connect_deadline_ns = 0;  ///< kConnecting: when to give up.
  std::uint64_t asked_ns = 0;             ///< kConnecting, or with `lost_since_ns`: when the wire was last asked.
  std::uint64_t connect_again_ns = 0;     ///< kConnecting with a pause: when to try again.
  std::uint64_t connect_pause_ns = 0;     ///< kConnecting: how long what is lacking was waited for; 0: not.
  std::uint64_t answers_life = 0;         ///< The life that `answers` are for; 0: that of the link, or of who is heard.
  std::uint64_t lost_since_ns = 0;        ///< When is_over of mailbox/connect first put the loss off; 0: it did not.
  Outbox requests;                        ///< What we ask of it. What waits here is its TOQ.
  Outbox answers;                         ///< What we answer; waits for no request.
  std::unique_ptr<PublishedEntries> published;  ///< nullptr: it has told of none since the link was made.
  std::uint32_t lost_setting = 0;  ///< uTofu: of our gates, the last one when what it sends was last lost; 0: never.
  DirectMapped<PutRegion, 8> put_regions;  ///< uTofu: those that puts went to last, since the link was made.
  std::deque<HeldNotice> held_notices;     ///< uTofu: the first is awaited; empty if no get is under way.
  Arrival request_stream;                  ///< Request that is arriving.
  Arrival answer_stream;                   ///< Answer that is arriving; header.operation_id names the operation.

  /// Whether it may still read memory of ours.
  bool has_lent() const { return !requests.lent.empty() || !answers.lent.empty(); }

  /// Whether the loop has to look at it again.
  bool has_unfinished() const { return !requests.is_empty() || !answers.is_empty(); }
};

}  // namespace portofu
