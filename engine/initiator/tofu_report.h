#pragma once
// Step 9 of uTofu: what the initiator is told by its TCQ and MRQ. @spec uTofu guide, 2.2.10, 2.2.12, 3.7

#include "engine/core/core.h"

namespace portofu {

/// The registered memory that the data of a get goes to.
/// @param offset  set to where it begins there
/// @return nullptr, with `fail` set: it is not there any more
const MemorySegment* memory_of_get(Core& core, const OutstandingOperation& operation, std::uint64_t* offset,
                                   NiFail* fail);

/// Keeps the old value that an ARMW has brought, of eight bytes at most.
NiFail keep_old_value(OutstandingOperation& operation, const std::byte* data, std::uint64_t bytes);

/// A communication of the VCQ has failed, for whoever asks later. @param failed  without its time; its VCQ ID may have
/// any path
void note_failure(const Core& core, VirtualControlQueue& vcq, const FailedCommunication& failed);

/// The answer is complete, or will never come. The caller closes the outstanding entry.
void report_tofu_answer(Core& core, const OutstandingOperation& operation);

/// The descriptor cannot reach its remote VCQ. That is told whatever notices were asked for.
void report_unreachable(Core& core, VirtualControlQueue& vcq, const Descriptor& descriptor);

/// A peer is lost: what ends because of that is told by tell_lost, in the order of posting (2.2.10), in whatever order
/// it is found.
void gather_lost(Core& core);
void tell_lost(Core& core);

/// A put that wanted no answer has failed at the peer.
void receive_tofu_fault(Core& core, const Peer& peer, const PacketHeader& header);

/// Local notice of a descriptor that has no outstanding entry: it is complete already.
/// @param old_value  of an ARMW
void report_at_once(Core& core, VirtualControlQueue& vcq, const Descriptor& descriptor, std::uint64_t old_value = 0);

}  // namespace portofu
