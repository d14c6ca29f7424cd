#include "engine/initiator/portals_direct.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "engine/atomic/atomic_access.h"
#include "engine/core/steps.h"
#include "engine/initiator/direct.h"
#include "engine/initiator/report.h"

namespace portofu {
namespace {

/// Bytes that are copied between two looks whether the owner has taken the entry back.
constexpr std::uint64_t kPieceBytes = 2 << 20;

bool reads(PacketType type) { return type == PacketType::kGet || is_fetching(type); }

DirectUse use_of(const Core& core, const Descriptor& d) {
  return {core.uid, d.remote_offset, d.length, reads(d.type), d.type != PacketType::kGet};
}

/// 2.7.1: behind what was sent before.
bool may_go_now(const Peer& peer, const MemoryDescriptor& md) {
  return (md.options & kMdUnordered) != 0 || has_taken_requests(peer);
}

/// One aligned integer, as of counters and locks. @see run_atomic
template <class Word>
bool run_word(const MemoryDescriptor& md, const MemoryDescriptor* reply_md, const Descriptor& d, std::byte* target,
              NiFail* fail) {
  Word source;
  Word operand;
  if (reinterpret_cast<std::uintptr_t>(target) % sizeof source != 0) return false;
  if (!md.segment.read(d.portals.local_offset, reinterpret_cast<std::byte*>(&source), sizeof source)) return false;
  std::memcpy(&operand, d.operand.data(), sizeof operand);
  const Word old = update_plain_word<Word>(static_cast<AtomicOperation>(d.atomic_operation), target, source, operand);
  const auto* fetched = reinterpret_cast<const std::byte*>(&old);
  if (reply_md != nullptr && !reply_md->segment.write(d.portals.local_get_offset, fetched, sizeof old))
    *fail = NiFail::kSegv;
  return true;
}

/// @param fail  set if the operation is done, and its reply could not be stored
/// @return false if nothing was done
bool run_atomic(const MemoryDescriptor& md, const MemoryDescriptor* reply_md, const Descriptor& d, std::byte* target,
                NiFail* fail) {
  const auto type = static_cast<AtomicType>(d.atomic_type);
  const bool plain = is_plain(static_cast<AtomicOperation>(d.atomic_operation));
  const bool is_64 = type == AtomicType::kInt64 || type == AtomicType::kUint64;
  if (plain && is_64 && d.length == 8) return run_word<std::uint64_t>(md, reply_md, d, target, fail);
  const bool is_32 = type == AtomicType::kInt32 || type == AtomicType::kUint32;
  if (plain && is_32 && d.length == 4) return run_word<std::uint32_t>(md, reply_md, d, target, fail);
  if (d.length > kMaxAtomicBytes) return false;
  std::array<std::byte, kMaxAtomicBytes> source;
  std::array<std::byte, kMaxAtomicBytes> fetched;
  if (!md.segment.read(d.portals.local_offset, source.data(), d.length)) return false;
  AtomicRequest request = atomic_of(d, target);
  request.source = source.data();
  request.fetched = reply_md != nullptr ? fetched.data() : nullptr;
  request.item_count = d.length / atomic_type_bytes(type);
  if (!compute(request)) return false;
  if (reply_md != nullptr && !reply_md->segment.write(d.portals.local_get_offset, fetched.data(), d.length)) {
    *fail = NiFail::kSegv;
  }
  return true;
}

/// A put or get. The owner does not wait for the end of a long one: what it has taken back in the middle is done anew,
/// by packets.
bool copy(const MemoryDescriptor& md, const Descriptor& d, const MappedRegion& region) {
  std::byte* const target = region.memory + d.remote_offset;
  if (d.type == PacketType::kPut && d.length <= kPieceBytes) [[likely]]
    return md.segment.read(d.portals.local_offset, target, d.length);
  for (std::uint64_t done = 0; done < d.length; done += kPieceBytes) {
    if (done != 0 && !is_still(region)) return false;
    const std::uint64_t bytes = std::min(d.length - done, kPieceBytes);
    const bool copied = d.type == PacketType::kPut
                            ? md.segment.read(d.portals.local_offset + done, target + done, bytes)
                            : md.segment.write(d.portals.local_offset + done, target + done, bytes);
    if (!copied) return false;
  }
  return true;
}

bool run(const MemoryDescriptor& md, const MemoryDescriptor* reply_md, const Descriptor& d, const MappedRegion& region,
         NiFail* fail) {
  // 2.7.1: behind what was put before; compilers and CPUs but x86 have to be told.
  std::atomic_thread_fence(std::memory_order_release);
  if (d.type == PacketType::kPut || d.type == PacketType::kGet) return copy(md, d, region);
  return run_atomic(md, reply_md, d, region.memory + d.remote_offset, fail);
}

/// SEND, and ACK or REPLY, of what is complete.
void report_done(Core& core, Interface& ni, OwnMemory memory, const Descriptor& d, NiFail fail) {
  const MemoryDescriptor& md = memory.md;
  if (d.type != PacketType::kGet) {
    const SendReport report{d.length, d.portals.user_ptr, NiFail::kOk};
    report_send_count(core, ni, md, report);
    report_send_event(core, ni, md, report);
  }
  const bool acknowledges = d.type != PacketType::kGet && acknowledgement_is_noticed(md, d.portals.ack_req);
  if (!acknowledges && memory.replied == nullptr) return;
  AnswerReport answer;
  answer.ack_req = d.portals.ack_req;
  answer.user_ptr = d.portals.user_ptr;
  answer.fail = fail;
  answer.mlength = d.length;
  answer.remote_offset = d.remote_offset;
  if (acknowledges) report_ack(core, ni, md, answer);
  if (memory.replied != nullptr) report_reply(core, ni, *memory.replied, answer);
}

void count(Core& core, const Descriptor& d) {
  core.counters.add(d.type == PacketType::kPut   ? Counter::kPutsSent
                    : d.type == PacketType::kGet ? Counter::kGetsSent
                                                 : Counter::kAtomicsSent);
  if (d.type == PacketType::kPut) return count_direct_puts(core, 1, d.length);
  core.counters.add(d.type == PacketType::kGet ? Counter::kBytesReceived : Counter::kBytesSent, d.length);
}

}  // namespace

void remember_published(Peer& peer, std::uint32_t interface_index, std::uint32_t pt_index, std::uint64_t match_bits) {
  PublishedEntry found{.key = entry_key(interface_index, pt_index, match_bits), .region = {}};
  if (peer.published != nullptr) {
    const PublishedEntry& known = peer.published->place(found.key);
    if (known.key == found.key && known.region.match_bits == match_bits && is_still(known.region)) return;
  }
  if (peer.state != PeerState::kConnected || !find_direct(peer, found.key, &found.region)) return;
  if (found.region.visited == nullptr || found.region.match_bits != match_bits) return;
  if (peer.published == nullptr) peer.published.reset(new (std::nothrow) PublishedEntries);
  if (peer.published == nullptr) return;
  peer.published->place(found.key) = found;
}

bool use_published(Core& core, Interface& ni, Peer& peer, OwnMemory memory, const Descriptor& d) {
  const std::uint64_t key = entry_key(ni.index, d.pt_index, d.match_bits);
  PublishedEntry& entry = peer.published->place(key);
  if (entry.key != key || entry.region.match_bits != d.match_bits || peer.link->lost) return false;
  if ((d.flags & kFlagTellsData) != 0 || !may_use(entry.region, use_of(core, d)) || !may_go_now(peer, memory.md))
    return false;
  NiFail fail = NiFail::kOk;
  {
    const Visit visit(key, entry.region);
    if (!visit.is_allowed()) {
      entry.key = 0;
      return false;
    }
    if (!run(memory.md, memory.replied, d, entry.region, &fail)) return false;
  }
  core.uses_published = true;
  ++core.direct_uses;
  record_direct(core, peer, d);
  count(core, d);
  report_done(core, ni, memory, d, fail);
  return true;
}

}  // namespace portofu
