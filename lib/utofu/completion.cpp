// 3.7.4 Completion confirmation and 3.7.5 query.

#include <utility>

#include "lib/utofu/library.h"

using namespace portofu;
using namespace portofu::utofu;

namespace {

int tcq_code(NiFail fail) {
  switch (fail) {
    case NiFail::kOk: return UTOFU_SUCCESS;
    case NiFail::kSegv: return UTOFU_ERR_TCQ_MEMORY;
    case NiFail::kBadStadd: return UTOFU_ERR_TCQ_STADD;
    case NiFail::kBadLength: return UTOFU_ERR_TCQ_LENGTH;
    default: return UTOFU_ERR_TCQ_OTHER;
  }
}

int mrq_code(const Notice& notice) {
  const bool remote = notice.remote_fault;
  switch (notice.fail) {
    case NiFail::kOk: return UTOFU_SUCCESS;
    case NiFail::kUndeliverable: return UTOFU_ERR_MRQ_PEER;
    case NiFail::kSegv: return remote ? UTOFU_ERR_MRQ_RMT_MEMORY : UTOFU_ERR_MRQ_LCL_MEMORY;
    case NiFail::kBadStadd: return remote ? UTOFU_ERR_MRQ_RMT_STADD : UTOFU_ERR_MRQ_LCL_STADD;
    // Deregistered while the data of a get was leaving it (leave_region).
    case NiFail::kDropped: return UTOFU_ERR_MRQ_RMT_STADD;
    case NiFail::kBadLength: return remote ? UTOFU_ERR_MRQ_RMT_LENGTH : UTOFU_ERR_MRQ_LCL_LENGTH;
    default: return UTOFU_ERR_MRQ_OTHER;
  }
}

bool is_of_target(NoticeKind kind) {
  return kind == NoticeKind::kRemotePut || kind == NoticeKind::kRemoteGet || kind == NoticeKind::kRemoteArmw;
}

/// Gives a notice to the program. @return its code
int show(const Notice& read, utofu_mrq_notice* notice) {
  *notice = {};
  notice->notice_type = static_cast<std::uint8_t>(read.kind);
  notice->vcq_id = fresh(read.vcq_id);
  notice->edata = fresh(read.edata);
  notice->lcl_stadd = fresh(read.local_stadd);
  notice->rmt_stadd = fresh(read.remote_stadd);
  // SPEC: 3.7.6.1 sets it for LCL_ARMW only. On Tofu it is one word with rmt_stadd in the notices of a target, and
  // transports read the address there.
  notice->rmt_value = is_of_target(read.kind) ? fresh(read.remote_stadd) : fresh(read.remote_value);
  return mrq_code(read);
}

/// Looks for a notice, with a cycle of the engine if there is none.
/// @param kind  kTcq or kMrq: where
/// @param look  bool(Core&, VirtualControlQueue&)
template <class Look>
int poll(utofu_vcq_hdl_t vcq_hdl, WaitKind kind, Look&& look) {
  return guarded([&]() -> int {
    const CallInside call(vcq_hdl);
    Engine* open = engine_of(vcq_hdl);
    bool known = open != nullptr;
    auto ask = [&](Core& core) {
      VirtualControlQueue* vcq = core.tofu->vcq(to_handle(vcq_hdl));
      known = vcq != nullptr;
      if (vcq == nullptr) return true;
      enter_on_duty(*vcq);
      call.look_around(core, *vcq);
      const bool has_it = look(core, *vcq);
      if (!has_it) core.polled.note(kind, vcq->id);
      return has_it;
    };
    const bool found = open != nullptr && look_into(*open, ask);
    if (!known) return failed(UTOFU_ERR_INVALID_VCQ_HDL, "no such VCQ handle");
    return found ? UTOFU_SUCCESS : UTOFU_ERR_NOT_FOUND;
  });
}

/// Reads the MRQ, and tells the checker.
[[gnu::cold, gnu::noinline]] bool read_checked(Checker& checker, VirtualControlQueue& vcq, Notice* read) {
  checker.tofu.polls_mrq(vcq);
  const bool found = vcq.read_notice(read);
  if (found) checker.tofu.reads(vcq, *read);
  return found;
}

/// Looks at the TCQ without the duty. @return false if the long way has to be taken
inline bool tcq_is_read_at_once(utofu_vcq_hdl_t vcq_hdl, void** cbdata, int* rc) {
  const LaneUse use(door_of(vcq_hdl), vcq_hdl);
  DirectLane* const lane = use.lane();
  if (lane == nullptr) return false;
  NiFail fail = NiFail::kOk;
  // A program reads until nothing is there.
  const bool gave = std::exchange(lane->tcq_gave, false);
  if (lane->tcq.read(cbdata, &fail)) {
    lane->tcq_gave = true;
    *rc = tcq_code(fail);
    return true;
  }
  *rc = UTOFU_ERR_NOT_FOUND;
  return lane->tcq.unread() == 0 && lane->may_skip_cycle(gave);
}

/// The same of the MRQ.
inline bool mrq_is_read_at_once(utofu_vcq_hdl_t vcq_hdl, utofu_mrq_notice* notice, int* rc) {
  const LaneUse use(door_of(vcq_hdl), vcq_hdl);
  DirectLane* const lane = use.lane();
  if (lane == nullptr) return false;
  if (const Notice* own = lane->notices.front(lane->mrq)) {
    *rc = show(*own, notice);
    lane->notices.drop();
    return true;
  }
  *rc = UTOFU_ERR_NOT_FOUND;
  return lane->mrq.is_empty() && lane->may_skip_cycle();
}

}  // namespace

int utofu_poll_tcq(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void** cbdata) {
  if (flags != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
  if (cbdata == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "cbdata is NULL");
  NiFail fail = NiFail::kOk;
  if (int rc = UTOFU_SUCCESS; tcq_is_read_at_once(vcq_hdl, cbdata, &rc)) return rc;
  const int rc = poll(vcq_hdl, WaitKind::kTcq, [&](const Core& core, VirtualControlQueue& vcq) {
    const bool found = vcq.tcq.read(cbdata, &fail);
    if (Checker* const checker = core.checker()) [[unlikely]]
      checker->tofu.polls_tcq(vcq);
    return found;
  });
  return rc == UTOFU_SUCCESS ? tcq_code(fail) : rc;
}

int utofu_poll_mrq(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, struct utofu_mrq_notice* notice) {
  if (flags != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
  if (notice == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "notice is NULL");
  if (int rc = UTOFU_SUCCESS; mrq_is_read_at_once(vcq_hdl, notice, &rc)) return rc;
  Notice read;
  const int rc = poll(vcq_hdl, WaitKind::kMrq, [&](const Core& core, VirtualControlQueue& vcq) {
    if (Checker* const checker = core.checker()) [[unlikely]]
      return read_checked(*checker, vcq, &read);
    return vcq.read_notice(&read);
  });
  return rc == UTOFU_SUCCESS ? show(read, notice) : rc;
}

int utofu_query_num_unread_tcq(utofu_vcq_hdl_t vcq_hdl, size_t* count) {
  if (count == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "count is NULL");
  return with_vcq(vcq_hdl, [count](Core& core, const VirtualControlQueue& vcq) {
    std::uint64_t unread = 0;
    for (const auto& other : core.tofu->queue(queue_number(vcq.id))->vcqs) {
      if (other == nullptr) continue;
      enter_on_duty(*other);  // Perhaps another thread's.
      other->tcq.forget_silent();
      unread += other->tcq.unread();
    }
    *count = unread;
    return UTOFU_SUCCESS;
  });
}

int utofu_query_num_unread_mrq(utofu_vcq_hdl_t vcq_hdl, size_t* count) {
  if (count == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "count is NULL");
  std::uint64_t unread = 0;
  const int rc = poll(vcq_hdl, WaitKind::kMrq, [&unread](const Core&, const VirtualControlQueue& vcq) {
    unread = vcq.unread_notices();
    return unread != 0;
  });
  if (rc != UTOFU_SUCCESS && rc != UTOFU_ERR_NOT_FOUND) return rc;
  *count = unread;
  return UTOFU_SUCCESS;
}
