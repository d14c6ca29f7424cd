#include "lib/portals4/transfer.h"

#include <cstring>
#include <new>

#include "engine/target/atomic_unit.h"

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

const MemoryDescriptor* usable_md(const Interface& ni, ptl_handle_md_t handle) {
  const MemoryDescriptor* md = ni.mds.find(handle);
  return md != nullptr && !md->released ? md : nullptr;
}

bool is_target(const Interface& ni, const ptl_process_t& target) {
  if (ni.is_logical()) return ni.map.process_of(target.rank) != nullptr;
  return target.phys.nid != PTL_NID_ANY && target.phys.pid <= kMaxPid && target.phys.pid != 0;
}

/// Arguments of 3.15.2-3.15.7 that depend on the interface.
bool is_valid(const Interface& ni, const Transfer& transfer, const Descriptor& d) {
  const MemoryDescriptor* md = usable_md(ni, transfer.md_handle);
  if (md == nullptr || !md->segment.fits(transfer.local_offset, transfer.length)) return false;
  if (transfer.length > ni.limits.max_msg_size || transfer.pt_index >= kPortalTableSize) return false;
  if ((md->options & PTL_MD_UNRELIABLE) != 0 && d.ack_req != AckRequest::kNone) return false;
  if (!is_target(ni, transfer.target_id)) return false;
  if (d.kind != DescriptorKind::kFetchAtomic && d.kind != DescriptorKind::kSwap) {
    return d.kind != DescriptorKind::kAtomic || transfer.length <= ni.limits.max_atomic_size;
  }
  const MemoryDescriptor* get_md = usable_md(ni, d.get_md_handle);
  return get_md != nullptr && get_md->segment.fits(d.local_get_offset, transfer.length) &&
         transfer.length <= ni.limits.max_fetch_atomic_size;
}

/// Table 3-4, and whole items only.
bool is_legal(const AtomicPart& part, AtomicUse use, ptl_size_t length) {
  if (static_cast<unsigned>(part.operation) >= PTL_OP_LAST || static_cast<unsigned>(part.datatype) >= PTL_DATATYPE_LAST)
    return false;
  const auto type = static_cast<AtomicType>(part.datatype);
  return atomic_is_legal(static_cast<AtomicOperation>(part.operation), type, use) &&
         length % atomic_type_bytes(type) == 0;
}

int arm(const Engine::Duty& duty, Engine& engine, Interface& ni, const Descriptor& descriptor, const Trigger& trigger) {
  CountingEvent* counter = ni.cts.find(trigger.ct_handle);
  if (counter == nullptr) return PTL_ARG_INVALID;
  // What has reached its threshold does not wait, whether it is new or has not been started yet.
  const bool waits = counter->success() < trigger.threshold;
  while (waits && ni.triggered_count >= ni.limits.max_triggered_ops && !duty.core().fired.empty())
    engine.settle_on_duty();
  if (waits && ni.triggered_count >= ni.limits.max_triggered_ops) return PTL_NO_SPACE;
  auto* operation = new TriggeredOperation;
  operation->descriptor = descriptor;
  operation->threshold = trigger.threshold;
  ++ni.triggered_count;
  counter->add_triggered_on_duty(operation, duty.core().fired);
  engine.settle_on_duty();
  return PTL_OK;
}

int submit(const Transfer& transfer, Descriptor& d, const Trigger& trigger) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    const Engine::Duty duty(*engine);
    Interface* ni = interface_of_object(duty.core(), transfer.md_handle);
    if (ni == nullptr || !is_valid(*ni, transfer, d)) return PTL_ARG_INVALID;
    d.interface_index = static_cast<std::uint8_t>(ni->index);
    d.pt_index = static_cast<std::uint16_t>(transfer.pt_index);
    d.md_handle = transfer.md_handle;
    d.target = ni->is_logical() ? ProcessId{transfer.target_id.rank, 0}
                                : ProcessId{transfer.target_id.phys.nid, transfer.target_id.phys.pid};
    d.local_offset = transfer.local_offset;
    d.length = transfer.length;
    d.match_bits = ni->is_matching() ? transfer.match_bits : 0;
    d.remote_offset = transfer.remote_offset;
    d.user_ptr = transfer.user_ptr;
    if (trigger.waits) return arm(duty, *engine, *ni, d, trigger);
    engine->post_on_duty(d);
    return PTL_OK;
  });
}

bool is_ack_request(ptl_ack_req_t ack_req) { return static_cast<unsigned>(ack_req) <= PTL_OC_ACK_REQ; }

Descriptor atomic_descriptor(DescriptorKind kind, ptl_hdr_data_t hdr_data, const AtomicPart& part) {
  Descriptor d;
  d.kind = kind;
  d.hdr_data = hdr_data;
  d.atomic_operation = static_cast<std::uint8_t>(part.operation);
  d.atomic_type = static_cast<std::uint8_t>(part.datatype);
  return d;
}

/// A wrong argument that is found before the library is looked at: PTL_NO_INIT still comes first.
int invalid_argument() { return is_initialised() ? PTL_ARG_INVALID : PTL_NO_INIT; }

}  // namespace

int put(const Transfer& transfer, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const Trigger& trigger) {
  if (!is_ack_request(ack_req)) return invalid_argument();
  Descriptor d;
  d.kind = DescriptorKind::kPut;
  d.ack_req = static_cast<AckRequest>(ack_req);
  d.hdr_data = hdr_data;
  return submit(transfer, d, trigger);
}

int get(const Transfer& transfer, const Trigger& trigger) {
  Descriptor d;
  d.kind = DescriptorKind::kGet;
  return submit(transfer, d, trigger);
}

int atomic(const Transfer& transfer, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const AtomicPart& part,
           const Trigger& trigger) {
  if (!is_ack_request(ack_req) || !is_legal(part, AtomicUse::kAtomic, transfer.length)) return invalid_argument();
  Descriptor d = atomic_descriptor(DescriptorKind::kAtomic, hdr_data, part);
  d.ack_req = static_cast<AckRequest>(ack_req);
  return submit(transfer, d, trigger);
}

int fetch_atomic(const Transfer& transfer, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const AtomicPart& part,
                 const Trigger& trigger) {
  if (!is_legal(part, AtomicUse::kFetchAtomic, transfer.length)) return invalid_argument();
  Descriptor d = atomic_descriptor(DescriptorKind::kFetchAtomic, hdr_data, part);
  d.get_md_handle = fetch.get_md_handle;
  d.local_get_offset = fetch.local_get_offset;
  return submit(transfer, d, trigger);
}

int swap(const Transfer& transfer, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const void* operand,
         const AtomicPart& part, const Trigger& trigger) {
  if (!is_legal(part, AtomicUse::kSwap, transfer.length)) return invalid_argument();
  Descriptor d = atomic_descriptor(DescriptorKind::kSwap, hdr_data, part);
  d.get_md_handle = fetch.get_md_handle;
  d.local_get_offset = fetch.local_get_offset;
  if (part.operation != PTL_SWAP) {  // 3.15.7: one item, compared with or masked by the operand.
    const std::uint32_t item = atomic_type_bytes(static_cast<AtomicType>(part.datatype));
    if (operand == nullptr || transfer.length > item) return invalid_argument();
    std::memcpy(d.operand.data(), operand, item);
    d.operand_bytes = static_cast<std::uint8_t>(item);
  }
  return submit(transfer, d, trigger);
}

int triggered_count(DescriptorKind kind, ptl_handle_ct_t ct_handle, ptl_ct_event_t amount, const Trigger& trigger) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    const Engine::Duty duty(*engine);
    Interface* ni = interface_of_object(duty.core(), ct_handle);
    if (ni == nullptr || ni->cts.find(ct_handle) == nullptr) return PTL_ARG_INVALID;
    if (kind == DescriptorKind::kCountIncrement && amount.success != 0 && amount.failure != 0) return PTL_ARG_INVALID;
    Descriptor d;
    d.kind = kind;
    d.interface_index = static_cast<std::uint8_t>(ni->index);
    d.md_handle = ct_handle;
    d.length = amount.success;
    d.remote_offset = amount.failure;
    return arm(duty, *engine, *ni, d, trigger);
  });
}

}  // namespace portofu::portals
