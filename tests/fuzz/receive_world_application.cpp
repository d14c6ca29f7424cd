// What the application does, as lib/portals4 would let it: arguments are checked, objects exist.

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/send.h"
#include "engine/target/close_interface.h"
#include "tests/fuzz/receive_world.h"

namespace portofu::fuzz {
namespace {

/// Every option that an entry can have.
constexpr std::uint32_t kEntryOptions =
    kEntryOpPut | kEntryOpGet | kEntryUseOnce | kEntryAckDisable | kEntryUnexpectedHdrDisable | kEntryEventLinkDisable |
    kEntryEventCommDisable | kEntryEventFlowctrlDisable | kEntryEventSuccessDisable | kEntryEventOverDisable |
    kEntryEventUnlinkDisable | kEntryEventCtComm | kEntryEventCtOverflow | kEntryEventCtBytes | kEntryManageLocal |
    kEntryNoTruncate | kEntryMayAlign | kEntryLocalIncUhRlength;

constexpr std::uint32_t kMdOptions = kMdEventSendDisable | kMdEventSuccessDisable | kMdEventCtSend | kMdEventCtReply |
                                     kMdEventCtAck | kMdEventCtBytes | kMdUnordered | kMdVolatile;

/// Small enough to be reached.
Limits small_limits() {
  Limits limits = kDefaultLimits;
  limits.max_entries = 20;
  limits.max_list_size = 8;
  limits.max_unexpected_headers = 6;
  limits.max_mds = 10;
  limits.max_triggered_ops = 10;
  limits.max_volatile_size = 100;
  return limits;
}

/// The n-th live object of a table, counted round and round; 0 if it is empty.
template <class T>
Handle nth(HandleTable<T>& table, std::uint32_t n) {
  if (table.live_count() == 0) return 0;
  n %= table.live_count();
  Handle found = 0;
  table.for_each([&](Handle handle, T&) {
    if (n-- == 0) found = handle;
  });
  return found;
}

/// Where in a memory descriptor the bytes of a transfer lie.
struct Place {
  Handle md_handle = 0;
  std::uint64_t offset = 0;
  bool found = false;  ///< There is a descriptor, and the bytes fit.
};

void open_queue(Interface& ni, std::uint64_t count) {
  Handle handle = 0;
  EventQueue* queue = ni.eqs.allocate(&handle);
  PORTOFU_ASSERT(queue != nullptr && queue->open(count));
}

}  // namespace

Interface* ReceiveWorld::any_interface() {
  for (std::uint32_t i = 0, wanted = input_.below(kInterfaceCount); i < kInterfaceCount; ++i) {
    if (Interface* ni = core_.interface((wanted + i) % kInterfaceCount)) return ni;
  }
  return nullptr;
}

/// With event queues of 2, 8 and 64 events, two counters, a map, and portal table entries: plain, with flow control on
/// a small queue and on a larger one, and without a queue.
void ReceiveWorld::open_interface() {
  const std::uint32_t index = input_.below(kInterfaceCount);
  if (core_.interface(index) != nullptr) return;
  core_.interfaces[index] = std::make_unique<Interface>(index, small_limits());
  Interface& ni = *core_.interface(index);
  for (const std::uint64_t count : {2, 8, 64}) open_queue(ni, count);
  for (int i = 0; i < 2; ++i) {
    Handle handle = 0;
    ni.cts.allocate(&handle)->reset_on_duty();
  }
  if (ni.is_logical()) PORTOFU_ASSERT(ni.map.set(kSources.data(), kSourceCount, core_.self));
  const std::array<Handle, kPortals> queues{nth(ni.eqs, 2), nth(ni.eqs, 0), nth(ni.eqs, 1), 0};
  for (std::uint32_t pt_index = 0; pt_index < kPortals; ++pt_index) {
    ni.portal_table[pt_index] = std::make_unique<PortalTableEntry>();
    PortalTableEntry& portal = *ni.portal(pt_index);
    portal.eq_handle = queues[pt_index];
    portal.flow_control = pt_index == 1 || pt_index == 2;
    if (portal.flow_control) PORTOFU_ASSERT(ni.eqs.find(portal.eq_handle)->reserve_on_duty());
  }
}

void ReceiveWorld::close_interface() {
  const Interface* ni = any_interface();
  if (ni == nullptr || !input_.once_in(2)) return;
  const std::uint32_t index = ni->index;
  close_interface_on_duty(core_, index);
  std::erase_if(entries_, [index](Handle handle) { return handle_interface(handle) == index; });
}

/// Memory for an entry or descriptor: a region, a part of one, or memory that faults.
Range ReceiveWorld::any_range() {
  if (input_.once_in(16)) return memory_.faulty_range();
  Range range = memory_.region(input_.below(FuzzMemory::kRegions));
  const std::uint64_t skip = input_.once_in(2) ? input_.below(64) : 0;
  range = {range.start + skip, range.bytes - skip};
  if (input_.once_in(4)) range.bytes = std::min<std::uint64_t>(range.bytes, input_.byte());
  return range;
}

void ReceiveWorld::describe(MemorySegment& segment, bool writable) {
  const std::uint32_t pieces = input_.once_in(4) ? 1 + input_.below(4) : 0;
  std::array<iovec, 4> list{};
  Range last{};
  for (std::uint32_t i = 0; i < std::max(pieces, 1u); ++i) {
    last = any_range();
    list[i] = {last.start, last.bytes};
    if (writable) memory_.allow(last);
  }
  if (pieces == 0) {
    segment.describe(last.start, last.bytes);
  } else {
    PORTOFU_ASSERT(segment.describe(list.data(), pieces));
  }
}

EntryRequest ReceiveWorld::entry_request(Interface& ni) {
  EntryRequest request;
  request.options = input_.once_in(4) ? input_.raw<std::uint32_t>() & kEntryOptions : kEntryOpPut | kEntryOpGet;
  if (input_.once_in(2)) request.options |= kEntryUseOnce;
  describe(request.segment, (request.options & kEntryOpPut) != 0);
  request.criteria = {input_.below(4), input_.below(4), {}, true, true};
  if (!ni.is_matching()) request.criteria = kAnyMessage;
  if (ni.is_matching() && input_.once_in(4)) {
    const ProcessId wanted = ni.is_logical() ? ProcessId{input_.below(3), 0} : source();
    request.criteria.match_id = wanted;
    request.criteria.any_nid = false;
    request.criteria.any_pid = ni.is_logical();
  }
  request.min_free = (request.options & kEntryManageLocal) != 0 ? input_.byte() : 0;
  request.user_ptr = this;
  if (input_.once_in(8)) request.uid = input_.below(8);
  request.ct_handle = input_.once_in(2) ? nth(ni.cts, input_.byte()) : 0;
  request.pt_index = static_cast<std::uint16_t>(input_.below(kPortals));
  request.list = input_.once_in(2) ? ListKind::kOverflow : ListKind::kPriority;
  return request;
}

void ReceiveWorld::append() {
  Interface* ni = any_interface();
  if (ni == nullptr) return;
  EntryRequest request = entry_request(*ni);
  if (ni->portal(request.pt_index) == nullptr) return;
  Handle handle = 0;
  if (append_entry(core_, *ni, std::move(request), &handle) == Status::kOk) entries_.push_back(handle);
}

void ReceiveWorld::unlink() {
  if (entries_.empty()) return;
  const std::size_t which = input_.byte() % entries_.size();
  const Handle handle = entries_[which];
  const Status status = unlink_entry(core_, *core_.interface(handle_interface(handle)), handle);
  if (status != Status::kInUse) entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(which));
}

void ReceiveWorld::search() {
  Interface* ni = any_interface();
  if (ni == nullptr) return;
  const EntryRequest request = entry_request(*ni);
  if (ni->portal(request.pt_index) == nullptr) return;
  search_entries(core_, *ni, request, input_.once_in(2) ? SearchOperation::kDelete : SearchOperation::kOnly);
}

void ReceiveWorld::bind_md() {
  Interface* ni = any_interface();
  if (ni == nullptr) return;
  Handle handle = 0;
  MemoryDescriptor* md = ni->mds.allocate(&handle);
  if (md == nullptr) return;
  *md = {};
  if (input_.once_in(8)) {
    md->segment.describe(static_cast<void*>(nullptr), UINT64_MAX);  // The whole address space, as Open MPI does.
  } else {
    describe(md->segment, /*writable=*/false);
  }
  md->options = input_.raw<std::uint16_t>() & kMdOptions;
  md->handle = handle;
  md->eq_handle = input_.once_in(4) ? 0 : nth(ni->eqs, input_.byte());
  md->ct_handle = input_.once_in(2) ? nth(ni->cts, input_.byte()) : 0;
}

Handle ReceiveWorld::any_md(const Interface& ni) {
  const Handle handle = nth(const_cast<Interface&>(ni).mds, input_.byte());
  const MemoryDescriptor* md = ni.mds.find(handle);
  return md != nullptr && !md->released ? handle : 0;
}

void ReceiveWorld::release_md() {
  Interface* ni = any_interface();
  const Handle handle = ni != nullptr ? any_md(*ni) : 0;
  if (handle == 0) return;
  MemoryDescriptor& md = *ni->mds.find(handle);
  md.released = true;
  ++md.pending;
  end_operation(*ni, md);
}

/// Fills what all transfers have. @return false if there is nothing that would pass the checks of lib/
bool ReceiveWorld::fill_descriptor(Descriptor& d, PacketType kind) {
  Interface* ni = any_interface();
  if (ni == nullptr) return false;
  const bool fetches = kind == PacketType::kFetchAtomic || kind == PacketType::kSwap;
  // Memory that a reply goes to may change from now on.
  const auto place = [&](bool is_written) {
    Place found;
    found.md_handle = any_md(*ni);
    if (found.md_handle == 0) return found;
    const MemorySegment& segment = ni->mds.find(found.md_handle)->segment;
    const Range range = any_range();
    const bool whole = segment.length() == UINT64_MAX;
    found.offset = whole ? reinterpret_cast<std::uintptr_t>(range.start) : input_.below(4);
    found.found = segment.fits(found.offset, d.length) && (!whole || d.length <= range.bytes);
    for (std::uint64_t at = 0; found.found && is_written && at < d.length;) {
      const MemorySegment::Run run = segment.run_at(found.offset + at, d.length - at);
      memory_.allow({run.start, run.bytes});
      at += run.bytes;
    }
    return found;
  };
  d.type = kind;
  const Place local = place(kind == PacketType::kGet);
  const Place fetched = fetches ? place(true) : Place{};
  if (!local.found || (fetches && !fetched.found) || d.length > ni->limits.max_msg_size) return false;
  d.interface_index = static_cast<std::uint8_t>(ni->index);
  d.pt_index = static_cast<std::uint16_t>(input_.below(kPortals));
  d.portals.md_handle = local.md_handle;
  d.portals.local_offset = local.offset;
  d.portals.get_md_handle = fetched.md_handle;
  d.portals.local_get_offset = fetched.offset;
  d.portals.target = ni->is_logical() ? ProcessId{input_.below(kSourceCount), 0} : source();
  d.match_bits = ni->is_matching() ? input_.below(4) : 0;
  d.remote_offset = input_.once_in(4) ? input_.byte() : 0;
  d.portals.user_ptr = this;
  return true;
}

/// Starts it now, or lets it wait for a count.
void ReceiveWorld::start(Descriptor& d) {
  Interface& ni = *core_.interface(d.interface_index);
  CountingEvent* counter = input_.once_in(4) ? ni.cts.find(nth(ni.cts, input_.byte())) : nullptr;
  if (counter == nullptr || ni.triggered_count >= ni.limits.max_triggered_ops) return start_descriptor(core_, d);
  arm_operation(core_, *counter, d, {0, input_.below(8)});
}

void ReceiveWorld::start_put() {
  Descriptor d;
  d.length = input_.length();
  d.portals.ack_req = static_cast<AckRequest>(input_.below(4));
  if (fill_descriptor(d, PacketType::kPut)) start(d);
}

void ReceiveWorld::start_get() {
  Descriptor d;
  d.length = input_.length();
  if (fill_descriptor(d, PacketType::kGet)) start(d);
}

void ReceiveWorld::start_atomic() {
  Descriptor d;
  d.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  d.atomic_type = static_cast<std::uint8_t>(atomic_type_at(input_.below(kAtomicTypeCount)));
  d.length = atomic_type_bytes(static_cast<AtomicType>(d.atomic_type)) * input_.below(5);
  d.portals.ack_req = static_cast<AckRequest>(input_.below(4));
  if (fill_descriptor(d, PacketType::kAtomic)) start(d);
}

void ReceiveWorld::start_fetching() {
  Descriptor d;
  const bool swaps = input_.once_in(2);
  const bool conditional = swaps && input_.once_in(2);
  d.atomic_operation = static_cast<std::uint8_t>(conditional ? AtomicOperation::kCswap
                                                 : swaps     ? AtomicOperation::kSwap
                                                             : AtomicOperation::kSum);
  d.atomic_type = static_cast<std::uint8_t>(atomic_type_at(input_.below(kAtomicTypeCount)));
  const std::uint32_t item = atomic_type_bytes(static_cast<AtomicType>(d.atomic_type));
  d.length = item * input_.below(conditional ? 2 : 5);
  if (conditional) d.portals.operand_bytes = static_cast<std::uint8_t>(item);
  d.operand = {};
  if (fill_descriptor(d, swaps ? PacketType::kSwap : PacketType::kFetchAtomic)) start(d);
}

/// A change of a counter that waits for a count.
void ReceiveWorld::arm() {
  Interface* ni = any_interface();
  const Handle counter = ni != nullptr ? nth(ni->cts, input_.byte()) : 0;
  if (counter == 0) return;
  Descriptor d;
  d.type = input_.once_in(2) ? PacketType::kCountSet : PacketType::kCountIncrement;
  d.interface_index = static_cast<std::uint8_t>(ni->index);
  d.count = {counter, false, input_.below(4), 0};
  start(d);
}

void ReceiveWorld::cancel_triggered() {
  Interface* ni = any_interface();
  const Handle counter = ni != nullptr ? nth(ni->cts, input_.byte()) : 0;
  if (counter != 0) disarm_operations(*ni, *ni->cts.find(counter));
}

void ReceiveWorld::change_counter() {
  Interface* ni = any_interface();
  const Handle counter = ni != nullptr ? nth(ni->cts, input_.byte()) : 0;
  if (counter != 0) count_success(core_, *ni, counter, input_.below(4));
}

void ReceiveWorld::take_events() {
  Interface* ni = any_interface();
  if (ni == nullptr) return;
  std::uint32_t left = 1 + input_.below(8);
  ni->eqs.for_each([&left](Handle, EventQueue& queue) {
    for (; left > 0 && !queue.empty(); --left) {
      const Event& event = queue.oldest_on_duty();
      PORTOFU_ASSERT(event.type <= EventKind::kError);
      PORTOFU_ASSERT(static_cast<std::uint8_t>(event.ni_fail_type) < kNiFailCount);
      PORTOFU_ASSERT(event.type > EventKind::kFetchAtomicOverflow || event.mlength <= event.rlength);
      queue.remove_oldest_on_duty();
    }
  });
}

/// Enables or disables a portal table entry, frees one that nothing refers to, or allocates it anew.
void ReceiveWorld::change_portal() {
  Interface* ni = any_interface();
  if (ni == nullptr) return;
  const std::uint32_t pt_index = input_.below(kPortals);
  PortalTableEntry* portal = ni->portal(pt_index);
  if (portal == nullptr) {
    ni->portal_table[pt_index] = std::make_unique<PortalTableEntry>();
    ni->portal(pt_index)->eq_handle = nth(ni->eqs, input_.byte());
    return;
  }
  if (!input_.once_in(4)) {
    portal->enabled = !portal->enabled;
    return;
  }
  if (portal->has_entries() || portal->in_progress != 0 || !portal->unexpected.empty()) return;
  EventQueue* queue = portal->flow_control ? ni->eqs.find(portal->eq_handle) : nullptr;
  if (queue != nullptr) queue->unreserve_on_duty();
  ni->portal_table[pt_index].reset();
}

/// Frees an event queue that others may still name, and opens another.
void ReceiveWorld::free_queue() {
  Interface* ni = any_interface();
  const Handle handle = ni != nullptr ? nth(ni->eqs, input_.byte()) : 0;
  if (handle == 0) return;
  ni->eqs.find(handle)->close();
  ni->eqs.free(handle);
  open_queue(*ni, input_.below(9));
}

}  // namespace portofu::fuzz
