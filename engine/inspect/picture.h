#pragma once
// What an onlooker has seen of a process: plain copies, made without that process. Lists are cut after kMostInspected.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/interface.h"
#include "engine/core/peer.h"
#include "engine/core/polled_objects.h"
#include "engine/core/sleeping_call.h"
#include "engine/core/swapped_words.h"
#include "engine/core/tofu.h"
#include "engine/segment/segment_view.h"

namespace portofu {

/// A list as it was found.
template <class Item>
struct Listed {
  std::vector<Item> items;  ///< In the order of the list.
  std::size_t size = 0;     ///< What the list itself says; more than `items` if it was cut or could not be read.
  bool moving = false;      ///< It changed under the look, each time.
};

struct EntryPicture {
  MatchCriteria criteria;
  std::uint64_t start = 0;  ///< 0: of several pieces, or from address 0 on.
  std::uint64_t length = 0;
  std::uint64_t used = 0;     ///< kEntryManageLocal: bytes.
  std::uint64_t origin = 0;   ///< What an initiator calls its first byte.
  std::uint32_t options = 0;  ///< kEntry*.
  std::uint32_t pending = 0;  ///< Messages that are arriving there.
  Handle handle = 0;
  Handle ct_handle = 0;
};

struct HeaderPicture {
  MatchKey key;
  std::uint64_t rlength = 0;
  bool complete = false;
  std::uint64_t order = 0;   ///< In its list, where no other one has ever the same.
  std::uint64_t offset = 0;  ///< As the initiator asked for it.
};

struct PortalPicture {
  std::uint32_t pt_index = 0;
  bool enabled = true;
  bool flow_control = false;
  DisabledBy disabled_by = DisabledBy::kProgram;
  std::uint64_t disabled_since_ns = 0;
  std::uint64_t missed_searches = 0;
  MatchCriteria missed{};  ///< Of the last one.
  bool searches = false;   ///< missed_searches has grown since an earlier look (note_changes).
  Handle eq_handle = 0;
  Listed<EntryPicture> priority;
  Listed<EntryPicture> overflow;
  Listed<HeaderPicture> unexpected;
};

/// An operation that waits for a counter.
struct TriggerPicture {
  std::uint64_t threshold = 0;
  PacketType type = PacketType::kInvalid;
  Handle ct_handle = 0;  ///< kCount*: what it changes.
  Handle md_handle = 0;  ///< Of a data movement: whose counter and event queue tell of it.
  ProcessId target{};    ///< The same: as the interface names it; with `pt_index` and `match_bits` where it goes.
  std::uint32_t pt_index = 0;
  std::uint64_t match_bits = 0;
};

struct CounterPicture {
  Handle handle = 0;
  std::uint64_t success = 0;
  std::uint64_t failure = 0;
  Listed<TriggerPicture> waiting;  ///< By threshold.
  std::uint64_t sets = 0;          ///< How often the program has set it.

  std::uint64_t progress() const { return 3 * success + 5 * failure + 7 * sets; }
};

struct QueuePicture {
  Handle handle = 0;
  std::uint64_t size = 0;
  std::uint64_t capacity = 0;
  bool full = false;               ///< The next event pushes out the oldest, or disables what has flow control.
  bool lost = false;               ///< Events were lost, and nobody was told yet.
  std::uint64_t oldest_place = 0;  ///< Another one when an event has been read.
  EventKind oldest_type = EventKind::kGet;
  NiFail oldest_fail = NiFail::kOk;
  std::uint64_t oldest_bits = 0;
  ProcessId oldest_from{};  ///< As events show it; {0, 0}: of an event that has no initiator.

  std::uint64_t progress() const { return oldest_place + size; }
};

struct DescriptorPicture {
  Handle handle = 0;
  Handle eq_handle = 0;
  Handle ct_handle = 0;
  std::uint32_t options = 0;  ///< kMd*.
  std::uint32_t pending = 0;  ///< Operations whose SEND or REPLY is still to come.
};

struct InterfacePicture {
  std::uint32_t index = 0;
  std::vector<ProcessId> ranks;  ///< Logical interfaces only: its map.
  std::uint32_t own_rank = RankMap::kNoRank;
  RefusedMessage last_refused;
  UndeliveredMessages undelivered;
  std::uint64_t dropped = 0;  ///< PTL_SR_DROP_COUNT.
  std::vector<PortalPicture> portals;
  std::vector<CounterPicture> counters;
  std::vector<QueuePicture> queues;
  std::vector<DescriptorPicture> descriptors;

  bool is_fabric() const { return index == kFabricInterface; }
  bool is_matching() const { return (index & (1u | kFabricInterface)) != 0; }
  bool is_logical() const { return (index & 2u) != 0; }
};

/// An operation that is not answered.
struct OperationPicture {
  std::uint32_t id = 0;
  PacketType kind = PacketType::kInvalid;
  std::uint32_t interface_index = 0;  ///< kTofuInterface: of uTofu.
  ProcessId target;
  std::uint64_t length = 0;
  bool sent = false;
  AckRequest ack_req = AckRequest::kNone;
  Handle md_handle = 0;        ///< For ACK; not of uTofu.
  Handle reply_md_handle = 0;  ///< For REPLY; not of uTofu.
  std::uint64_t peer_vcq = 0;  ///< uTofu.
  bool lasts = false;          ///< It was there at an earlier look, too (note_changes).
};

struct PeerPicture {
  ProcessId id;
  PeerState state = PeerState::kUnconnected;
  std::size_t waiting_requests = 0;  ///< Messages that could not go out yet.
  std::size_t waiting_answers = 0;
  std::uint32_t outstanding = 0;
};

struct SleepPicture {
  WaitSubject subject;
  std::uint64_t since_ns = 0;
  std::int32_t thread = 0;
  bool tells_itself = false;  ///< SleepingCall::tells_itself.
};

/// What calls that do not block have found nothing in.
struct PollPicture {
  PolledObject seen;
  bool goes_on = false;  ///< It has been looked at since an earlier look, too (note_changes).
};

struct VcqPicture {
  std::uint64_t id = 0;
  bool session = false;
  std::uint64_t tcq_unread = 0;
  std::uint64_t tcq_entries = 0;
  std::uint64_t mrq_unread = 0;
  std::uint64_t mrq_entries = 0;
  std::size_t delayed = 0;         ///< Descriptors that DELAY_START holds back.
  std::uint64_t steps = 0;         ///< Session mode: descriptors that may have started.
  Listed<TriggerPicture> waiting;  ///< Session mode.
  FailedCommunication last_failed;
  std::uint64_t astray_steps = 0;  ///< Not in session mode, and got them all the same.
  ProcessId astray_from;           ///< Who sent the last of them.
  std::uint64_t tcq_progress = 0;  ///< Entries taken, and entries read.
  std::uint64_t mrq_progress = 0;  ///< Notices made, and notices read.
};

struct GatePicture {
  std::uint64_t id = 0;
  bool is_start = false;
  bool started = false;  ///< Start/end gates: a barrier runs.
  bool armed = false;
  std::uint64_t local_source = BarrierGate::kNoGate;
  std::uint64_t remote_source = BarrierGate::kNoGate;
  bool has_signal = false;  ///< Of the round that it waits for.
  bool has_packet = false;
  bool holds_packets = false;  ///< Some have come, and its source has to say whether they are of this circuit.
  std::uint64_t rounds_passed = 0;
  std::uint64_t remote_target = BarrierGate::kNoGate;
};

/// Requests for an id that nobody was found to own.
struct OwnerlessPicture {
  std::uint64_t key = 0;  ///< claim_key of it.
  std::size_t requests = 0;
};

/// A word that others compare and swap.
struct WordPicture {
  WordUse use;
  bool goes_on = false;  ///< There were more swaps in vain since an earlier look (note_changes).
};

struct CorePicture {
  std::vector<InterfacePicture> interfaces;
  std::vector<OperationPicture> operations;
  std::vector<PeerPicture> peers;
  std::vector<SleepPicture> sleeps;
  std::vector<PollPicture> polls;
  std::vector<VcqPicture> vcqs;
  std::vector<GatePicture> gates;
  std::vector<OwnerlessPicture> ownerless;
  RefusedMessage last_astray;  ///< To an interface that is not open.
  std::vector<WordPicture> words;
};

/// How much an onlooker wants to see.
enum class Depth : std::uint8_t {
  kAll,
  kQueues,  ///< For who looks several times a second: no lists, counters, descriptors, operations and gates.
};

/// How much an onlooker has seen.
enum class Sight : std::uint8_t {
  kWhole,
  kDead,        ///< The process is gone, and its memory.
  kForbidden,   ///< The kernel lets us not read it.
  kOtherBuild,  ///< Its structures are not those of this build.
  kNothing,     ///< It has no root, or ends just now.
};

/// What the kernel says of a process, by its first thread.
enum class RunState : std::uint8_t { kGone, kRuns, kStopped, kSleeps };

struct ProcessPicture {
  SegmentDescriptorShared descriptor{};
  Sight sight = Sight::kNothing;
  RunState run_state = RunState::kGone;
  std::string program;
  std::int64_t rank = -1;               ///< As its map or its launcher says; -1: neither does.
  std::vector<ChannelView> waiting;     ///< Channels with packets that it has not taken.
  std::uint64_t events_lost = 0;        ///< By full event queues, so far.
  std::uint64_t application_looks = 0;  ///< Grows while the application looks for something.
  bool polls = false;                   ///< It has grown since an earlier look (note_changes).
  CorePicture core;

  /// The application waits for something that the library has to bring.
  bool is_waiting() const { return polls || !core.sleeps.empty(); }

  /// @return nullptr if it has no such gate
  const GatePicture* find_gate(std::uint64_t gate_id) const;

  ProcessId id() const { return {descriptor.nid, descriptor.pid}; }
};

}  // namespace portofu
