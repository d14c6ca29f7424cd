#include "engine/initiator/portals_direct.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/atomic/atomic_access.h"
#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/report.h"
#include "engine/queue/asymmetric_guard.h"
#include "engine/segment/region_table.h"

namespace portofu {
namespace {

/// Bytes that are copied between two looks whether the owner has taken the entry back.
constexpr std::uint64_t kPieceBytes = 2 << 20;

bool is_still(const MappedRegion& region) { return region.sequence->load(std::memory_order_acquire) == region.seen; }

/// Tells the owner what is in use. Nobody takes it away while this lives and is_allowed.
class Visit {
 public:
  explicit Visit(const PublishedEntry& entry) : visited_(*entry.region.visited) {
    say_before_look(visited_, entry.key);  // (V1)
    allowed_ = is_still(entry.region);
  }
  ~Visit() { visited_.store(0, std::memory_order_release); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  bool is_allowed() const { return allowed_; }

 private:
  std::atomic<std::uint64_t>& visited_;
  bool allowed_;
};

bool reads(DescriptorKind kind) { return kind == DescriptorKind::kGet || is_fetching(kind); }

/// What the owner would refuse, or cut, it refuses or cuts itself.
bool is_open_for(const MappedRegion& region, std::uint32_t uid, const Descriptor& d) {
  if (region.user != kUidAny && region.user != uid) return false;
  if (d.length == 0 || d.tells_data || (reads(d.kind) && !region.readable)) return false;
  const bool writes = d.kind != DescriptorKind::kGet;
  return judge_region(region.bytes, region.writable, d.remote_offset, d.length, writes) == RegionVerdict::kFine;
}

/// 2.7.1: behind what was sent before.
bool may_go_now(Peer& peer, const MemoryDescriptor& md) {
  return (md.options & kMdUnordered) != 0 ||
         (peer.requests.waiting.empty() && peer.wire->peer_memory()->has_settled(*peer.link));
}

/// One aligned integer, as of counters and locks. @see run_atomic
template <class Word>
bool run_word(const MemoryDescriptor& md, const MemoryDescriptor* reply_md, const Descriptor& d, std::byte* target,
              NiFail* fail) {
  Word source;
  Word operand;
  if (reinterpret_cast<std::uintptr_t>(target) % sizeof source != 0) return false;
  if (!md.segment.read(d.local_offset, reinterpret_cast<std::byte*>(&source), sizeof source)) return false;
  std::memcpy(&operand, d.operand.data(), sizeof operand);
  const Word old = update_plain_word<Word>(static_cast<AtomicOperation>(d.atomic_operation), target, source, operand);
  const auto* fetched = reinterpret_cast<const std::byte*>(&old);
  if (reply_md != nullptr && !reply_md->segment.write(d.local_get_offset, fetched, sizeof old)) *fail = NiFail::kSegv;
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
  if (d.length > kMaxAtomicBytes || !is_atomic_for_all(type, target)) return false;
  std::array<std::byte, kMaxAtomicBytes> source;
  std::array<std::byte, kMaxAtomicBytes> fetched;
  if (!md.segment.read(d.local_offset, source.data(), d.length)) return false;
  AtomicRequest request{static_cast<AtomicOperation>(d.atomic_operation), type};
  request.target = target;
  request.source = source.data();
  request.fetched = reply_md != nullptr ? fetched.data() : nullptr;
  request.operand = d.operand.data();
  request.item_count = d.length / atomic_type_bytes(type);
  if (execute_atomic(request) != AtomicResult::kDone) return false;
  if (reply_md != nullptr && !reply_md->segment.write(d.local_get_offset, fetched.data(), d.length)) {
    *fail = NiFail::kSegv;
  }
  return true;
}

/// A put or get. The owner does not wait for the end of a long one: what it has taken back in the middle is done anew,
/// by packets.
bool copy(const MemoryDescriptor& md, const Descriptor& d, const MappedRegion& region) {
  std::byte* const target = region.memory + d.remote_offset;
  if (d.kind == DescriptorKind::kPut && d.length <= kPieceBytes) [[likely]]
    return md.segment.read(d.local_offset, target, d.length);
  for (std::uint64_t done = 0; done < d.length; done += kPieceBytes) {
    if (done != 0 && !is_still(region)) return false;
    const std::uint64_t bytes = std::min(d.length - done, kPieceBytes);
    const bool copied = d.kind == DescriptorKind::kPut ? md.segment.read(d.local_offset + done, target + done, bytes)
                                                       : md.segment.write(d.local_offset + done, target + done, bytes);
    if (!copied) return false;
  }
  return true;
}

bool run(const MemoryDescriptor& md, const MemoryDescriptor* reply_md, const Descriptor& d, const MappedRegion& region,
         NiFail* fail) {
  // 2.7.1: behind what was put before; compilers and CPUs but x86 have to be told.
  std::atomic_thread_fence(std::memory_order_release);
  if (d.kind == DescriptorKind::kPut || d.kind == DescriptorKind::kGet) return copy(md, d, region);
  return run_atomic(md, reply_md, d, region.memory + d.remote_offset, fail);
}

/// SEND, and ACK or REPLY, of what is complete.
void report_done(Core& core, Interface& ni, MemoryDescriptor& md, MemoryDescriptor* reply_md, const Descriptor& d,
                 NiFail fail) {
  if (d.kind != DescriptorKind::kGet) {
    const SendReport report{d.length, d.user_ptr, NiFail::kOk};
    report_send_count(core, ni, md, report);
    report_send_event(core, ni, md, report);
  }
  const bool acknowledges = d.kind != DescriptorKind::kGet && acknowledgement_is_noticed(md, d.ack_req);
  if (!acknowledges && reply_md == nullptr) return;
  AnswerReport answer;
  answer.ack_req = d.ack_req;
  answer.user_ptr = d.user_ptr;
  answer.fail = fail;
  answer.mlength = d.length;
  answer.remote_offset = d.remote_offset;
  if (acknowledges) report_ack(core, ni, md, answer);
  if (reply_md != nullptr) report_reply(core, ni, *reply_md, answer);
}

void count(Core& core, const Descriptor& d) {
  core.counters.add(d.kind == DescriptorKind::kPut   ? Counter::kPutsSent
                    : d.kind == DescriptorKind::kGet ? Counter::kGetsSent
                                                     : Counter::kAtomicsSent);
  if (d.kind == DescriptorKind::kPut) core.counters.add(Counter::kPutsDirect);
  core.counters.add(d.kind == DescriptorKind::kGet ? Counter::kBytesReceived : Counter::kBytesSent, d.length);
}

}  // namespace

void remember_published(Peer& peer, std::uint32_t interface_index, std::uint32_t pt_index, std::uint64_t match_bits) {
  PublishedEntry found{.key = entry_key(interface_index, pt_index, match_bits), .region = {}};
  if (peer.published != nullptr) {
    const PublishedEntry& known = peer.published->place(found.key);
    if (known.key == found.key && known.region.match_bits == match_bits && is_still(known.region)) return;
  }
  PeerMemory* const memory = peer.wire->peer_memory();
  if (memory == nullptr || peer.state != PeerState::kConnected) return;
  if (!memory->find_mapped(*peer.link, found.key, &found.region)) return;
  if (found.region.visited == nullptr || found.region.match_bits != match_bits) return;
  if (peer.published == nullptr) peer.published = std::make_unique<PublishedEntries>();
  peer.published->place(found.key) = found;
}

bool use_published(Core& core, Interface& ni, Peer& peer, MemoryDescriptor& md, MemoryDescriptor* reply_md,
                   const Descriptor& d) {
  const std::uint64_t key = entry_key(ni.index, d.pt_index, d.match_bits);
  PublishedEntry& entry = peer.published->place(key);
  if (entry.key != key || entry.region.match_bits != d.match_bits || peer.link->lost) return false;
  if (!is_open_for(entry.region, core.uid, d) || !may_go_now(peer, md)) return false;
  NiFail fail = NiFail::kOk;
  {
    const Visit visit(entry);
    if (!visit.is_allowed()) {
      entry.key = 0;
      return false;
    }
    if (!run(md, reply_md, d, entry.region, &fail)) return false;
  }
  core.uses_published = true;
  ++core.direct_uses;
  count(core, d);
  report_done(core, ni, md, reply_md, d, fail);
  return true;
}

}  // namespace portofu
