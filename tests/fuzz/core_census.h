#pragma once
// Counts again, from what is there, everything that the engine counts as it goes, and compares. Whatever a peer sends
// and whatever an application calls, the two have to agree between any two steps.

#include <algorithm>
#include <map>

#include "engine/core/core.h"
#include "engine/queue/assert.h"

namespace portofu::fuzz {

/// What one interface should have counted.
struct InterfaceCensus {
  std::map<Handle, std::uint32_t> md_pending;
  std::map<const ListEntry*, std::uint32_t> entry_pending;
  std::map<const ListEntry*, std::uint32_t> entry_unexpected;
  std::map<std::uint32_t, std::uint32_t> portal_in_progress;
  std::uint32_t unexpected = 0;
  std::uint32_t outstanding = 0;
};

class CoreCensus {
 public:
  /// Counts everything, and ends the process where the engine has counted otherwise.
  static void check(Core& core) {
    CoreCensus census;
    census.count_peers(core);
    census.count_operations(core);
    for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
      if (core.interface(index) != nullptr) check_interface(*core.interface(index), census.interfaces_[index]);
    }
    for (const auto& [key, peer] : core.peers) {
      PORTOFU_ASSERT(peer->outstanding == census.peer_outstanding_[peer.get()]);
      PORTOFU_ASSERT(peer->marks == census.peer_marks_[peer.get()]);
      PORTOFU_ASSERT(peer->awaited ==
                     (std::count(core.awaited_peers.begin(), core.awaited_peers.end(), peer.get()) == 1));
      PORTOFU_ASSERT(peer->gets_under_way == census.peer_gets_[peer.get()]);
    }
    for (const auto& [region, pending] : census.region_pending_) PORTOFU_ASSERT(region->pending == pending);
  }

 private:
  void count_arrival(std::uint32_t index, const Arrival& arrival) {
    if (index == kTofuInterface) {
      if (arrival.entry != nullptr) ++region_pending_[arrival.entry];  // Else it was deregistered.
      return;
    }
    PORTOFU_ASSERT(index < kInterfaceCount && arrival.entry != nullptr);
    InterfaceCensus& ni = interfaces_[index];
    ++ni.entry_pending[arrival.entry];
    ++ni.portal_in_progress[arrival.entry->pt_index];
    if (arrival.unexpected == nullptr) return;
    PORTOFU_ASSERT(!arrival.unexpected->complete && arrival.unexpected->entry == arrival.entry);
    if (!arrival.unexpected->claimed) return;  // It is in its list, and counted there.
    ++ni.unexpected;
    ++ni.entry_unexpected[arrival.entry];
    if (arrival.unexpected->claim.by == ClaimedBy::kEntry) ++ni.entry_pending[arrival.unexpected->claim.entry];
  }

  void count_peers(Core& core) {
    for (const auto& [key, peer] : core.peers) {
      PORTOFU_ASSERT((peer->state == PeerState::kConnected) == (peer->link != nullptr));
      PORTOFU_ASSERT(peer->waiting || (peer->requests.waiting.empty() && peer->answers.waiting.empty()));
      const Arrival& request = peer->request_stream;
      if (request.mode == ArrivalMode::kDeliver) count_arrival(request.header.interface_index, request);
      if (peer->answer_stream.mode == ArrivalMode::kDeliver) {
        const OutstandingOperation* awaited = core.outstanding.find(peer->answer_stream.header.operation_id);
        PORTOFU_ASSERT(awaited != nullptr && awaited->peer == peer.get() && awaited->expects_data);
      }
      std::size_t awaited_notices = 0;
      for (OutgoingMessage& answer : peer->answers.waiting) {
        PORTOFU_ASSERT(answer.is_answer);
        if (answer.hooks == &kNoHooks) continue;
        const Arrival& get = answer.words.answer.get;
        count_arrival(answer.interface_index, get);
        const bool told = (get.header.tofu_meta & kTofuRemoteNotice) != 0;
        if (answer.interface_index == kTofuInterface && told) ++awaited_notices;
      }
      check_notices(*peer, awaited_notices);
      for (const OutgoingMessage& waiting : peer->requests.waiting) count_waiting(core, waiting);
    }
  }

  /// Notices wait only behind gets, one place a get.
  static void check_notices(const Peer& peer, std::size_t awaited_notices) {
    PORTOFU_ASSERT(peer.held_notices.empty() || peer.held_notices.front().awaited);
    for (const HeldNotice& held : peer.held_notices) awaited_notices -= held.awaited ? 1 : 0;
    PORTOFU_ASSERT(awaited_notices == 0);
  }

  /// A request that has an operation is counted there.
  void count_waiting(Core& core, const OutgoingMessage& waiting) {
    PORTOFU_ASSERT(!waiting.is_answer);
    if (waiting.hooks == &kNoHooks) return;  // What is left of it is only to be cut.
    const Descriptor& d = waiting.words.request;
    if (waiting.interface_index == kTofuInterface && waiting.source == SourceKind::kSegment)
      check_source(core, waiting);
    if (core.interface(d.interface_index) == nullptr) return;
    if (waiting.header().operation_id != 0) {
      PORTOFU_ASSERT(core.outstanding.find(waiting.header().operation_id) != nullptr);
      return;
    }
    ++interfaces_[d.interface_index].md_pending[d.portals.md_handle];
    if (is_fetching(d.type)) ++interfaces_[d.interface_index].md_pending[d.portals.get_md_handle];
  }

  /// uTofu: memory that something waits to go out of is registered.
  static void check_source(Core& core, const OutgoingMessage& waiting) {
    const VirtualControlQueue* vcq = core.tofu->vcq(waiting.words.request.tofu.vcq_handle);
    PORTOFU_ASSERT(vcq != nullptr);
    const StaddTable& stadds = core.tofu->queue(queue_number(vcq->id))->stadds;
    const RegisteredRegion* region = stadds.find(waiting.words.request.tofu.local_stadd);
    PORTOFU_ASSERT(region != nullptr && waiting.segment == &region->segment);
  }

  void count_operations(Core& core) {
    core.outstanding.for_each([this](std::uint32_t, const OutstandingOperation& operation) {
      ++peer_outstanding_[operation.peer];
      if (operation.is_mark) ++peer_marks_[operation.peer];
      if (operation.kind == PacketType::kTofuGet) ++peer_gets_[operation.peer];
      if (operation.interface_index == kTofuInterface || operation.interface_index == kForsaken) return;
      PORTOFU_ASSERT(operation.peer->awaited);
      InterfaceCensus& ni = interfaces_[operation.interface_index];
      ++ni.outstanding;
      if (operation.kind != PacketType::kGet && !operation.sent) {
        ++ni.md_pending[operation.portals.md_handle];
      }
      if (operation.expects_data) ++ni.md_pending[operation.portals.reply_md_handle];
    });
  }

  static void check_interface(Interface& ni, InterfaceCensus& census) {
    for (std::uint32_t pt_index = 0; pt_index < kPortalTableSize; ++pt_index) {
      PortalTableEntry* portal = ni.portal(pt_index);
      if (portal == nullptr) continue;
      PORTOFU_ASSERT(portal->in_progress == census.portal_in_progress[pt_index]);
      for (UnexpectedEntry* at = portal->unexpected.first(); at != nullptr; at = UnexpectedList::next(*at)) {
        const auto& header = static_cast<const UnexpectedHeader&>(*at);
        PORTOFU_ASSERT(!header.claimed);
        ++census.unexpected;
        ++census.entry_unexpected[header.entry];
      }
    }
    PORTOFU_ASSERT(ni.unexpected_count == census.unexpected);
    PORTOFU_ASSERT(ni.outstanding == census.outstanding);
    ni.mds.for_each([&](Handle handle, const MemoryDescriptor& md) {
      PORTOFU_ASSERT(md.pending == census.md_pending[handle]);
      PORTOFU_ASSERT(!md.released || md.pending > 0);
      census.md_pending.erase(handle);
    });
    for (const auto& [handle, pending] : census.md_pending) PORTOFU_ASSERT(pending == 0);  // Held, and freed.
    ni.entries.for_each([&](Handle handle, const ListEntry& entry) {
      PORTOFU_ASSERT(entry.handle == handle);
      PORTOFU_ASSERT(entry.pending == census.entry_pending[&entry]);
      PORTOFU_ASSERT(entry.unexpected_count == census.entry_unexpected[&entry]);
      PORTOFU_ASSERT((entry.state == EntryState::kLinked) == entry.is_linked());
      PORTOFU_ASSERT(entry.state != EntryState::kUnlinking || entry.pending > 0);
      PORTOFU_ASSERT(entry.state != EntryState::kUnlinked || (entry.pending == 0 && entry.unexpected_count > 0));
      PORTOFU_ASSERT(entry.state != EntryState::kGone);
      census.entry_pending.erase(&entry);
      census.entry_unexpected.erase(&entry);
    });
    for (const auto& [entry, pending] : census.entry_pending) PORTOFU_ASSERT(pending == 0);  // In use, and freed.
    for (const auto& [entry, headers] : census.entry_unexpected) PORTOFU_ASSERT(headers == 0);
  }

  std::array<InterfaceCensus, kInterfaceCount> interfaces_;
  std::map<const Peer*, std::uint32_t> peer_outstanding_;
  std::map<const Peer*, std::uint32_t> peer_marks_;
  std::map<const Peer*, std::uint32_t> peer_gets_;            ///< uTofu.
  std::map<const ListEntry*, std::uint32_t> region_pending_;  ///< uTofu.
};

}  // namespace portofu::fuzz
