// Names of the counters for people and tools.

#include "engine/observe/counters.h"

#include <array>

namespace portofu {
namespace {

constexpr std::array<CounterRow, kCounterCount> kTable{{
    {Counter::kPutsSent, "puts_sent", "messages", "A put has been handed to the wire as a whole."},
    {Counter::kGetsSent, "gets_sent", "messages", "A get request has been handed to the wire."},
    {Counter::kAtomicsSent, "atomics_sent", "messages", "An atomic, fetch-atomic or swap has been handed to the wire."},
    {Counter::kAnswersSent, "answers_sent", "messages", "An acknowledgement or reply has been handed to the wire."},
    {Counter::kPacketsSent, "packets_sent", "packets", "A packet has been published."},
    {Counter::kPacketsReceived, "packets_received", "packets", "A packet has arrived, good or bad."},
    {Counter::kBytesSent, "bytes_sent", "bytes", "Payload published, without headers."},
    {Counter::kBytesReceived, "bytes_received", "bytes", "Payload taken from the wire, without headers."},
    {Counter::kPutsMatched, "puts_matched", "messages", "A put has found its entry."},
    {Counter::kGetsMatched, "gets_matched", "messages", "A get has found its entry."},
    {Counter::kAtomicsMatched, "atomics_matched", "messages", "An atomic operation has found its entry."},
    {Counter::kHeadersUnexpected, "headers_unexpected", "headers", "A message went to the overflow list."},
    {Counter::kHeadersDropped, "headers_dropped", "headers", "A message found no entry (PTL_SR_DROP_COUNT)."},
    {Counter::kPermissionViolations, "permission_violations", "headers", "The entry is for another usage ID."},
    {Counter::kOperationViolations, "operation_violations", "headers", "The entry does not allow the operation."},
    {Counter::kFlowControlEvents, "flow_control_events", "events", "A portal table entry was disabled by overload."},
    {Counter::kEventsPosted, "events_posted", "events", "A full event has entered an event queue."},
    {Counter::kEventsDropped, "events_dropped", "events", "A full event was lost because its queue was full."},
    {Counter::kTriggersFired, "triggers_fired", "operations", "A triggered operation has reached its threshold."},
    {Counter::kPacketsRefusedKey, "packets_refused_key", "packets", "A packet carried a foreign job key or user ID."},
    {Counter::kPacketsRefusedMalformed, "packets_refused_malformed", "packets",
     "A packet failed a check of its header."},
    {Counter::kPeersLost, "peers_lost", "peers", "A peer was found dead or gone while it was needed."},
    {Counter::kSendsBlocked, "sends_blocked", "operations", "An operation had to wait for room or for its window."},
    {Counter::kDutyByApplication, "duty_by_application", "cycles", "An application thread ran a duty cycle with work."},
    {Counter::kDutyByProgress, "duty_by_progress", "cycles", "The progress thread ran a duty cycle with work."},
    {Counter::kSleeps, "sleeps", "sleeps", "A thread of this process slept because there was no work."},
    {Counter::kDoorbellsRung, "doorbells_rung", "system calls", "A sleeping peer was woken."},
    {Counter::kSourcesEvicted, "sources_evicted", "sources", "A peer wrote nonsense and is not heard any more."},
    {Counter::kChannelsRepaired, "channels_repaired", "channels", "A channel was freed whose claimer died early."},
    {Counter::kSegmentsRemoved, "segments_removed", "segments", "What a dead process left was removed."},
    {Counter::kPutsDirect, "puts_direct", "messages", "A put was written into the peer's memory, without a packet."},
    {Counter::kPacketsByArea, "packets_by_area", "packets", "A payload has travelled through the send area."},
    {Counter::kPacketsStreamed, "packets_streamed", "packets", "Such a payload was written by streaming stores."},
    {Counter::kPacketsLent, "packets_lent", "packets", "A payload was lent: the peer reads it where it lies."},
    {Counter::kPacketsPlaced, "packets_placed", "packets", "A lent payload was copied by its sender after all."},
    {Counter::kPacketsRefusedSource, "packets_refused_source", "packets",
     "A packet came from a node that is not of the job, or not from where it said."},
    {Counter::kFramesSent, "frames_sent", "frames", "A datagram has left for another node."},
    {Counter::kFramesSentAgain, "frames_sent_again", "frames",
     "Data left once more, because the peer seems not to have it."},
    {Counter::kFramesDamaged, "frames_damaged", "frames", "A datagram was no frame, or its checksum was wrong."},
    {Counter::kFramesDuplicate, "frames_duplicate", "frames", "Data came that had come before."},
    {Counter::kFramesRefused, "frames_refused", "frames", "A frame was nonsense, or of a link that is not known."},
}};

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].counter) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enumeration());

}  // namespace

std::span<const CounterRow> counter_table() { return kTable; }

}  // namespace portofu
