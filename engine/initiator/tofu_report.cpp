#include "engine/initiator/tofu_report.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/memory/guarded_copy.h"
#include "engine/memory/stadd_access.h"
#include "engine/queue/fresh_line.h"

namespace portofu {
namespace {

NoticeKind local_kind(PacketType kind) {
  switch (kind) {
    case PacketType::kTofuGet: return NoticeKind::kLocalGet;
    case PacketType::kTofuArmw: return NoticeKind::kLocalArmw;
    default: return NoticeKind::kLocalPut;
  }
}

/// The local notice of a descriptor.
Notice notice_of(const Descriptor& d) {
  Notice notice;
  notice.kind = local_kind(d.type);
  notice.vcq_id = with_own_path(d.tofu.remote_vcq_id);
  notice.edata = edata_of(d.tofu_meta);
  const std::uint64_t moved = d.type == PacketType::kTofuArmw ? 0 : d.length;
  if (d.type == PacketType::kTofuGet) notice.local_stadd = d.tofu.local_stadd + moved;
  if (d.type != PacketType::kTofuGet) notice.remote_stadd = d.remote_stadd + moved;
  return notice;
}

/// Tells of a failure, now or with others that the loss of their peer has ended, too.
void post_failure(Core& core, VirtualControlQueue& vcq, std::uint64_t tcq_place, const Notice& notice) {
  try {
    if (core.tofu->loses_peer) return core.tofu->lost_notices.push_back({vcq.handle, tcq_place, notice});
  } catch (const std::bad_alloc&) {  // Better told too early than not.
  }
  post_notice(core, vcq, notice);
}

}  // namespace

void gather_lost(Core& core) {
  if (core.tofu != nullptr) core.tofu->loses_peer = true;
}

void tell_lost(Core& core) {
  if (core.tofu == nullptr) return;
  core.tofu->loses_peer = false;
  std::vector<LostNotice> lost = std::exchange(core.tofu->lost_notices, {});
  std::ranges::sort(lost, {}, &LostNotice::tcq_place);
  for (const LostNotice& one : lost) {
    if (VirtualControlQueue* const vcq = core.tofu->vcq(one.vcq_handle)) post_notice(core, *vcq, one.notice);
  }
}

const MemorySegment* memory_of_get(Core& core, const OutstandingOperation& operation, std::uint64_t* offset,
                                   NiFail* fail) {
  const VirtualControlQueue* vcq = core.tofu != nullptr ? core.tofu->vcq(operation.tofu.vcq_handle) : nullptr;
  *fail = NiFail::kBadStadd;
  if (vcq == nullptr) return nullptr;
  const StaddAccess access{operation.tofu.local_stadd, operation.length, PacketType::kTofuPut};
  const RegisteredRegion* region = find_region(core.tofu->stadds(*vcq), access, fail);
  if (region == nullptr) return nullptr;
  *offset = stadd_offset(operation.tofu.local_stadd);
  *fail = NiFail::kOk;
  return &region->segment;
}

NiFail keep_old_value(OutstandingOperation& operation, const std::byte* data, std::uint64_t bytes) {
  std::uint64_t old_value = 0;
  if (!guarded_copy(reinterpret_cast<std::byte*>(&old_value), data, std::min(bytes, sizeof old_value)))
    return NiFail::kSegv;
  operation.tofu.old_value = old_value;
  return NiFail::kOk;
}

void note_failure(const Core& core, VirtualControlQueue& vcq, const FailedCommunication& failed) {
  vcq.last_failed = failed;
  vcq.last_failed.vcq_id = with_own_path(failed.vcq_id);
  vcq.last_failed.at_ns = core.now_ns();
}

void report_tofu_answer(Core& core, const OutstandingOperation& operation) {
  VirtualControlQueue* vcq = core.tofu != nullptr ? core.tofu->vcq(operation.tofu.vcq_handle) : nullptr;
  if (operation.fail == NiFail::kUndeliverable && core.tofu != nullptr)
    core.tofu->distrust_owner_of(operation.tofu.peer_vcq);
  if (vcq == nullptr || (fresh(operation.fail) == NiFail::kOk && fresh(operation.ack_req) == AckRequest::kNone)) return;
  Notice notice;
  notice.kind = local_kind(operation.kind);
  notice.fail = fresh(operation.fail);
  notice.remote_fault = !operation.silent;
  notice.vcq_id = operation.tofu.peer_vcq;
  notice.edata = operation.tofu.edata;
  if (operation.kind == PacketType::kTofuGet) notice.local_stadd = operation.tofu.local_stadd + operation.length;
  if (operation.kind == PacketType::kTofuArmw) notice.remote_value = operation.tofu.old_value;
  if (operation.kind != PacketType::kTofuGet) notice.remote_stadd = operation.remote_offset;
  if (notice.fail != NiFail::kOk) [[unlikely]] {
    const std::uint64_t local_end = operation.tofu.local_stadd + operation.length;
    note_failure(core, *vcq,
                 {notice.fail, notice.remote_fault, notice.vcq_id,
                  notice.remote_fault ? operation.remote_offset : local_end, 0});
    return post_failure(core, *vcq, operation.tcq_place, notice);
  }
  post_notice(core, *vcq, notice);
}

void receive_tofu_fault(Core& core, const Peer&, const PacketHeader& header) {
  // By handle: its number may be that of a later VCQ by now, which has not put anything.
  VirtualControlQueue* vcq = core.tofu != nullptr ? core.tofu->vcq(static_cast<Handle>(header.vcq_handle)) : nullptr;
  const bool is_ours = vcq != nullptr && vcq->handle == header.vcq_handle && queue_number(vcq->id) == header.tofu_queue;
  if (!is_ours || header.ni_fail_type == 0) return core.counters.add(Counter::kPacketsRefusedMalformed);
  Notice notice;
  notice.fail = static_cast<NiFail>(header.ni_fail_type);
  notice.vcq_id = header.sender_id;
  notice.edata = edata_of(header.tofu_meta);
  notice.remote_stadd = header.remote_stadd;
  if (notice.fail == NiFail::kUndeliverable) core.tofu->distrust_owner_of(notice.vcq_id);
  note_failure(core, *vcq, {notice.fail, true, notice.vcq_id, notice.remote_stadd, 0});
  post_notice(core, *vcq, notice);
}

void report_at_once(Core& core, VirtualControlQueue& vcq, const Descriptor& d, std::uint64_t old_value) {
  Notice notice = notice_of(d);
  notice.remote_value = old_value;
  post_notice(core, vcq, notice);
}

void report_unreachable(Core& core, VirtualControlQueue& vcq, const Descriptor& d) {
  Notice notice = notice_of(d);
  notice.fail = NiFail::kUndeliverable;
  post_failure(core, vcq, d.tofu.tcq_place, notice);
}

}  // namespace portofu
