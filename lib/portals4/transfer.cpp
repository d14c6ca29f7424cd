#include "lib/portals4/transfer.h"

#include <cstring>

#include "engine/door/portals.h"
#include "engine/door/process.h"

namespace portofu::portals {

static_assert(PTL_MIN == static_cast<int>(AtomicOperation::kMin) &&
              PTL_MSWAP == static_cast<int>(AtomicOperation::kMswap));
static_assert(PTL_SWAP == static_cast<int>(AtomicOperation::kSwap) &&
              PTL_BXOR == static_cast<int>(AtomicOperation::kBxor));
static_assert(PTL_INT8_T == static_cast<int>(AtomicType::kInt8) && PTL_FLOAT == static_cast<int>(AtomicType::kFloat));
static_assert(PTL_LONG_DOUBLE_COMPLEX == static_cast<int>(AtomicType::kLongDoubleComplex));
static_assert(PTL_NO_ACK_REQ == static_cast<int>(AckRequest::kNone) &&
              PTL_ACK_REQ == static_cast<int>(AckRequest::kFull));
static_assert(PTL_CT_ACK_REQ == static_cast<int>(AckRequest::kCount) &&
              PTL_OC_ACK_REQ == static_cast<int>(AckRequest::kOperation));

namespace {

MemoryDescriptor* usable_md(const Interface& ni, ptl_handle_md_t handle) {
  MemoryDescriptor* md = ni.mds.find(handle);
  return md != nullptr && !md->released ? md : nullptr;
}

bool is_target(const Interface& ni, ProcessId target) {
  if (ni.is_logical()) return ni.map.process_of(target.nid) != nullptr;
  return target.nid != PTL_NID_ANY && target.pid <= kMaxPid && target.pid != 0;
}

bool is_valid_get_part(const Interface& ni, const Descriptor& d) {
  const MemoryDescriptor* get_md = usable_md(ni, d.portals.get_md_handle);
  return get_md != nullptr && get_md->segment.fits(d.portals.local_get_offset, d.length) &&
         d.length <= ni.limits.max_fetch_atomic_size;
}

/// Arguments of 3.15.2-3.15.7 that depend on the interface.
/// @param md  of d.portals.md_handle
bool is_valid(const Interface& ni, const MemoryDescriptor& md, const Descriptor& d) {
  if (!md.segment.fits(d.portals.local_offset, d.length)) return false;
  if (d.length > ni.limits.max_msg_size || d.pt_index == kNoPortalIndex) return false;
  if ((md.options & PTL_MD_UNRELIABLE) != 0 && d.portals.ack_req != AckRequest::kNone) return false;
  if (!is_target(ni, d.portals.target)) return false;
  if (d.type == PacketType::kAtomic && d.length > ni.limits.max_atomic_size) return false;
  return !is_fetching(d.type) || is_valid_get_part(ni, d);
}

/// Table 3-4, and whole items only.
bool is_legal(const AtomicPart& part, AtomicUse use, ptl_size_t length) {
  if (static_cast<unsigned>(part.operation) >= PTL_OP_LAST || static_cast<unsigned>(part.datatype) >= PTL_DATATYPE_LAST)
    return false;
  const auto type = static_cast<AtomicType>(part.datatype);
  return atomic_is_legal(static_cast<AtomicOperation>(part.operation), type, use) &&
         length % atomic_type_bytes(type) == 0;
}

int arm(Engine& engine, const Descriptor& descriptor, const Trigger& trigger) {
  switch (engine.arm_on_duty(descriptor, trigger)) {
    case Armed::kNoCounter: return PTL_ARG_INVALID;
    case Armed::kNoRoom: return PTL_NO_SPACE;
    case Armed::kYes: break;
  }
  return PTL_OK;
}

int submit(Descriptor& d, const Trigger* trigger) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    bool pauses = false;
    {
      const Engine::Duty duty(*engine);
      const RecordedCall call(duty.core(), d, trigger != nullptr ? CallStarts::kByCounter : CallStarts::kAtOnce);
      Interface* ni = home_of(duty.core(), d.portals.md_handle);
      MemoryDescriptor* md = ni != nullptr ? usable_md(*ni, d.portals.md_handle) : nullptr;
      if (md == nullptr || !is_valid(*ni, *md, d)) return PTL_ARG_INVALID;
      d.interface_index = static_cast<std::uint8_t>(ni->index);
      if (ni->is_logical()) d.portals.target.pid = 0;
      if (!ni->is_matching()) d.match_bits = 0;
      if (trigger != nullptr) return arm(*engine, d, *trigger);
      if (Checker* const checker = duty.core().checker()) [[unlikely]]
        checker->portals.starts(*ni, *md, d);
      if (send_at_once(duty.core(), *ni, *md, d)) {
        engine->settle_on_duty();
      } else {
        engine->post_on_duty(d);
      }
      pauses = engine->take_pause_on_duty();
    }
    if (pauses) [[unlikely]]
      engine->pause();
    return PTL_OK;
  });
}

bool is_ack_request(ptl_ack_req_t ack_req) { return static_cast<unsigned>(ack_req) <= PTL_OC_ACK_REQ; }

void set_atomic_part(Descriptor& d, ptl_hdr_data_t hdr_data, const AtomicPart& part) {
  d.hdr_data = hdr_data;
  d.atomic_operation = static_cast<std::uint8_t>(part.operation);
  d.atomic_type = static_cast<std::uint8_t>(part.datatype);
}

/// A wrong argument that is found before the library is looked at: PTL_NO_INIT still comes first.
int invalid_argument() { return is_initialised() ? PTL_ARG_INVALID : PTL_NO_INIT; }

}  // namespace

int put(Descriptor&& d, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const Trigger* trigger) {
  if (!is_ack_request(ack_req)) return invalid_argument();
  d.portals.ack_req = static_cast<AckRequest>(ack_req);
  d.hdr_data = hdr_data;
  return submit(d, trigger);
}

int get(Descriptor&& d, const Trigger* trigger) { return submit(d, trigger); }

int atomic(Descriptor&& d, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const AtomicPart& part,
           const Trigger* trigger) {
  if (!is_ack_request(ack_req) || !is_legal(part, AtomicUse::kAtomic, d.length)) return invalid_argument();
  set_atomic_part(d, hdr_data, part);
  d.portals.ack_req = static_cast<AckRequest>(ack_req);
  return submit(d, trigger);
}

int fetch_atomic(Descriptor&& d, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const AtomicPart& part,
                 const Trigger* trigger) {
  if (!is_legal(part, AtomicUse::kFetchAtomic, d.length)) return invalid_argument();
  set_atomic_part(d, hdr_data, part);
  d.portals.get_md_handle = fetch.get_md_handle;
  d.portals.local_get_offset = fetch.local_get_offset;
  return submit(d, trigger);
}

int swap(Descriptor&& d, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const void* operand, const AtomicPart& part,
         const Trigger* trigger) {
  if (!is_legal(part, AtomicUse::kSwap, d.length)) return invalid_argument();
  set_atomic_part(d, hdr_data, part);
  d.portals.get_md_handle = fetch.get_md_handle;
  d.portals.local_get_offset = fetch.local_get_offset;
  if (part.operation != PTL_SWAP) {  // 3.15.7: one item, compared with or masked by the operand.
    const std::uint32_t item = atomic_type_bytes(static_cast<AtomicType>(part.datatype));
    if (operand == nullptr || d.length > item) return invalid_argument();
    d.operand = {};
    std::memcpy(d.operand.data(), operand, item);
    d.portals.operand_bytes = static_cast<std::uint8_t>(item);
  }
  return submit(d, trigger);
}

int triggered_count(PacketType type, ptl_handle_ct_t ct_handle, ptl_ct_event_t amount, const Trigger& trigger) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    const Engine::Duty duty(*engine);
    const RecordedCall call(duty.core(), type, 0, CallStarts::kByCounter);
    Interface* ni = home_of(duty.core(), ct_handle);
    if (ni == nullptr || ni->cts.find(ct_handle) == nullptr) return PTL_ARG_INVALID;
    if (type == PacketType::kCountIncrement && amount.success != 0 && amount.failure != 0) return PTL_ARG_INVALID;
    Descriptor d;
    d.type = type;
    d.interface_index = static_cast<std::uint8_t>(ni->index);
    d.count = {ct_handle, false, amount.success, amount.failure};
    return arm(*engine, d, trigger);
  });
}

}  // namespace portofu::portals
