// Random worlds and calls.

#include "tests/simulation/random_sequence.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>

#include "engine/atomic/atomic_unit.h"

namespace portofu::simulation {
namespace {

// Memory of a process: what is sent never changes, so that it does not matter when it is read; what is received has a
// place of its own for each operation.
constexpr std::size_t kSendBytes = 32768;
constexpr std::size_t kVolatileBytes = 4096;
constexpr std::size_t kReceiveBytes = 262144;
constexpr std::size_t kTargetBytes = 65536;
constexpr std::size_t kVolatileAt = kSendBytes;
constexpr std::size_t kReceiveAt = kVolatileAt + kVolatileBytes;
constexpr std::size_t kTargetAt = kReceiveAt + kReceiveBytes;
constexpr std::size_t kMemoryBytes = kTargetAt + kTargetBytes;
constexpr std::size_t kLoneBytes = 1'048'576;  ///< Behind that, for entries of Taste::lends.
constexpr std::size_t kLongest = 20000;

constexpr std::size_t kItemBytes = 32;  ///< Unit of the aligned portal table entries.
constexpr std::size_t kCallsShown = 30;
constexpr std::size_t kHandlesKept = 24;  ///< Stale handles are recognised for a while only (3.11.3).

constexpr std::uint32_t kLocalOptions = kEntryManageLocal | kEntryNoTruncate | kEntryLocalIncUhRlength;

std::size_t round_down(std::size_t bytes) { return bytes - bytes % kItemBytes; }

}  // namespace

WorldOptions RandomSequence::draw_world(std::uint64_t seed, const Taste& taste) {
  SimRandom random(seed);
  WorldOptions options;
  options.seed = random.next();
  options.process_count = 2 + random.below(3);
  options.network.max_payload_bytes = 4096 * static_cast<std::uint32_t>(1 + random.below(2));
  options.network.max_link_packets = 1 + static_cast<std::uint32_t>(random.below(12));
  options.network.max_delay_polls = static_cast<std::uint32_t>(random.below(5));
  options.network.max_ack_slots = static_cast<std::uint32_t>(random.below(8));
  if (taste.lends) options.network.max_lent_bytes = kLongest;
  NodeOptions& node = options.node;
  constexpr std::array<std::uint32_t, 5> kInterfaces{1, 1, 3, 0, 2};  // Matching, more often than not.
  node.interface_index = kInterfaces[random.below(kInterfaces.size())];
  node.memory_bytes = kMemoryBytes + (taste.lends ? kLoneBytes : 0);
  node.own_loopback = random.below(3) != 0;
  node.ring = {16, 16384, 8192};
  node.settings.window_operations = random.below(2) == 0 ? 1 + static_cast<std::uint32_t>(random.below(8)) : 1024;
  if (taste.lossy) {
    LossyOptions lossy = bad_network();
    lossy.max_datagram_bytes = random.below(2) == 0 ? 1472 : 4224 + 4096 * static_cast<std::uint32_t>(random.below(2));
    lossy.delay = static_cast<DelayKind>(random.below(4));
    lossy.mean_delay_ns = 1 + random.below(100'000);
    options.lossy = lossy;
  }
  if (taste.initial_entries != 0) return options;  // Nothing that would keep lists short.
  if (random.below(2) == 0) node.limits.max_unexpected_headers = 1 + static_cast<std::uint32_t>(random.below(8));
  if (random.below(4) == 0) node.limits.max_list_size = 2 + static_cast<std::uint32_t>(random.below(8));
  if (random.below(4) == 0) node.limits.max_entries = 8 + static_cast<std::uint32_t>(random.below(16));
  return options;
}

RandomSequence::RandomSequence(std::uint64_t seed, const Taste& taste)
    : random_(seed ^ 0x5eed),
      taste_(taste),
      options_(draw_world(seed, taste)),
      world_(options_),
      own_(options_.process_count) {
  for (std::size_t i = 0; i < own_.size(); ++i) set_up(i);
}

void RandomSequence::set_up(std::size_t process) {
  Process& own = own_[process];
  for (std::size_t at = 0; at < kMemoryBytes; ++at) {
    if (at < kReceiveAt || at >= kTargetAt)
      world_.write_memory(process, at, static_cast<std::byte>(random_.next() >> 32));
  }
  own.eq = world_.make_queue(process, 512);
  own.flow_eq = world_.make_queue(process, percent(50) ? 4 + below(12) : 30 + below(30));
  for (int i = 0; i < 3; ++i) own.counters.push_back(world_.make_counter(process));
  for (int i = 0; i < 4; ++i) bind_send_md(process);
  own.volatile_md = world_.make_md(process, {{{kVolatileAt, kVolatileBytes}}}, kMdVolatile, own.eq, 0);
  for (int i = 0; i < 2; ++i) {
    std::uint32_t md_options = 0;
    for (const std::uint32_t option : {kMdEventCtReply, kMdEventCtBytes}) md_options |= percent(50) ? option : 0;
    if (percent(15)) md_options |= kMdEventSuccessDisable;
    own.receive_mds.push_back(world_.make_md(process, draw_pieces(kReceiveAt, kReceiveBytes, 3), md_options,
                                             draw_md_queue(own, 90), percent(80) ? any(own.counters) : 0));
  }
  world_.make_portal(process, kAligned, own.eq, false);
  world_.make_portal(process, kRagged, own.eq, false);
  world_.make_portal(process, kFlowRagged, own.flow_eq, true);
  world_.make_portal(process, kFlowAligned, own.flow_eq, true);
}

/// Now and then one with flow control, where answers take places that messages under way need.
Handle RandomSequence::draw_md_queue(const Process& own, std::uint64_t chance) {
  if (!percent(chance)) return 0;
  return percent(10) ? own.flow_eq : own.eq;
}

void RandomSequence::bind_send_md(std::size_t process) {
  Process& own = own_[process];
  std::uint32_t md_options = 0;
  for (const std::uint32_t option : {kMdEventCtSend, kMdEventCtAck, kMdEventCtBytes})
    md_options |= percent(40) ? option : 0;
  for (const std::uint32_t option : {kMdEventSendDisable, kMdEventSuccessDisable})
    md_options |= percent(20) ? option : 0;
  own.send_mds.push_back(world_.make_md(process, draw_pieces(0, kSendBytes, 4), md_options, draw_md_queue(own, 85),
                                        percent(70) ? any(own.counters) : 0));
}

/// Cuts [at, at + bytes) into pieces, some of them empty.
ModelRegion RandomSequence::draw_pieces(std::size_t at, std::size_t bytes, std::size_t most) {
  std::vector<std::size_t> cuts{0, bytes};
  for (std::uint64_t i = below(most); i > 0; --i) cuts.push_back(below(bytes + 1));
  std::sort(cuts.begin(), cuts.end());
  ModelRegion region;
  for (std::size_t i = 1; i < cuts.size(); ++i) region.pieces.push_back({at + cuts[i - 1], cuts[i] - cuts[i - 1]});
  return region;
}

std::size_t RandomSequence::draw_length(bool aligned) {
  constexpr std::array<std::size_t, 7> kBounds{9, 256, 256, 256, 2048, 2048, 8192};
  const std::size_t length = below(percent(taste_.long_percent) ? kLongest : kBounds[below(kBounds.size())]);
  return aligned ? round_down(length) : length;
}

/// Three fields, as MPI has them, with few values.
std::uint64_t RandomSequence::draw_bits() {
  return below(2) << 48 | below(taste_.bit_values) << 32 | below(taste_.bit_values);
}

MatchCriteria RandomSequence::draw_criteria() {
  MatchCriteria criteria;
  criteria.match_bits = draw_bits();
  constexpr std::uint64_t kField = 0xffff;
  for (const int shift : {48, 32, 0}) {
    if (percent(35)) criteria.ignore_bits |= kField << shift;
  }
  if (percent(10)) criteria.ignore_bits = ~std::uint64_t{0};
  const ProcessId wanted = world_.target_id(below(own_.size()));
  const bool logical = (options_.node.interface_index & 2) != 0;
  criteria.match_id = wanted;
  criteria.any_nid = percent(60);
  criteria.any_pid = logical || percent(60);
  if (criteria.any_nid) criteria.match_id.nid = 0;
  if (criteria.any_pid) criteria.match_id.pid = 0;
  return criteria;
}

std::uint32_t RandomSequence::draw_entry_options(bool aligned) {
  std::uint32_t options = percent(94) ? kEntryOpPut | kEntryOpGet : percent(50) ? kEntryOpPut : kEntryOpGet;
  const auto maybe = [&](std::uint64_t chance, std::uint32_t option) { options |= percent(chance) ? option : 0; };
  maybe(45, kEntryUseOnce);
  maybe(6, kEntryAckDisable);
  maybe(10, kEntryUnexpectedHdrDisable);
  maybe(40, kEntryEventLinkDisable);
  maybe(12, kEntryEventCommDisable);
  maybe(10, kEntryEventFlowctrlDisable);
  maybe(8, kEntryEventSuccessDisable);
  maybe(10, kEntryEventOverDisable);
  maybe(12, kEntryEventUnlinkDisable);
  maybe(40, kEntryEventCtComm);
  maybe(40, kEntryEventCtOverflow);
  maybe(30, kEntryEventCtBytes);
  maybe(aligned ? 0 : taste_.local_percent, kEntryManageLocal);
  maybe(20, kEntryNoTruncate);
  maybe(30, kEntryLocalIncUhRlength);
  const bool matching = (options_.node.interface_index & 1) != 0;
  return matching ? options : options & ~kLocalOptions;
}

EntryPlan RandomSequence::draw_entry(std::size_t process) {
  EntryPlan plan;
  plan.pt_index = static_cast<std::uint16_t>(below(4));
  const bool aligned = plan.pt_index == kAligned || plan.pt_index == kFlowAligned;
  plan.options = draw_entry_options(plan.pt_index == kAligned);
  plan.criteria = draw_criteria();
  std::size_t length = draw_length(aligned);
  const std::size_t at = below(kTargetBytes - length + 1);
  const bool ends_anywhere = aligned && (plan.options & kEntryManageLocal) == 0;
  if (ends_anywhere && percent(50)) length += std::min(below(kItemBytes), kTargetBytes - at - length);
  plan.region = aligned ? ModelRegion{{{kTargetAt + round_down(at), length}}} : draw_pieces(kTargetAt + at, length, 3);
  if ((plan.options & kEntryManageLocal) != 0 && percent(60)) plan.min_free = below(length + length / 4 + 1);
  plan.name = next_name_++;
  plan.uid = percent(92) ? kUidAny : world_.model_of(below(own_.size())).uid;
  plan.ct = percent(70) ? any(own_[process].counters) : 0;
  plan.list = percent(taste_.priority_percent) ? ListKind::kPriority : ListKind::kOverflow;
  if (taste_.lends) make_lone(process, plan);
  return plan;
}

/// For one message, and with memory that no other entry has; when that is used up, with none.
void RandomSequence::make_lone(std::size_t process, EntryPlan& plan) {
  std::size_t& given = own_[process].given;
  const std::size_t length = std::min(plan.region.length(), kLoneBytes - given);
  const bool in_one_piece = plan.pt_index == kAligned || plan.pt_index == kFlowAligned || percent(50);
  const std::size_t cut = in_one_piece ? length : below(length + 1);
  const std::size_t at = kMemoryBytes + given;
  plan.region = {{{at, cut}, {at + cut, length - cut}}};
  if (in_one_piece) plan.region.pieces.pop_back();
  plan.options = (plan.options | kEntryUseOnce) & ~kEntryManageLocal;
  plan.min_free = 0;
  given += (length + kItemBytes - 1) / kItemBytes * kItemBytes;
  given = std::min(given, kLoneBytes);
}

void RandomSequence::draw_atomic(Descriptor& d) {
  constexpr std::array kTypes{AtomicType::kInt8, AtomicType::kUint16, AtomicType::kInt32, AtomicType::kUint64};
  const AtomicType type = kTypes[below(kTypes.size())];
  d.atomic_type = static_cast<std::uint8_t>(type);
  d.length = std::min<std::uint64_t>(d.length, kMaxAtomicBytes);
  constexpr std::size_t kFirstSwap = atomic_index(AtomicOperation::kSwap);
  const std::size_t drawn = d.type == PacketType::kSwap ? kFirstSwap : below(kFirstSwap);
  d.atomic_operation = static_cast<std::uint8_t>(atomic_operation_at(drawn));
  if (d.type != PacketType::kSwap || d.pt_index != kAligned || percent(30)) return;
  d.atomic_operation = static_cast<std::uint8_t>(atomic_operation_at(kFirstSwap + 1 + below(7)));
  const std::uint32_t item = atomic_type_bytes(type);
  d.length = percent(90) ? item : 0;
  d.portals.operand_bytes = static_cast<std::uint8_t>(item);
  d.operand = {};
  for (std::uint32_t i = 0; i < item; ++i) d.operand[i] = static_cast<std::byte>(below(4));
}

/// A place for what comes back, that nothing else uses.
void RandomSequence::draw_receive(std::size_t process, Descriptor& d) {
  Process& own = own_[process];
  const Handle md = any(own.receive_mds);
  d.length = std::min<std::uint64_t>(d.length, kReceiveBytes - own.received);
  if (d.type != PacketType::kGet) d.length = d.portals.operand_bytes != 0 ? d.length : round_down(d.length);
  const std::uint64_t place = own.received;
  own.received += d.length;
  if (d.portals.operand_bytes != 0 && d.length < d.portals.operand_bytes) d.length = 0;
  (d.type == PacketType::kGet ? d.portals.md_handle : d.portals.get_md_handle) = md;
  (d.type == PacketType::kGet ? d.portals.local_offset : d.portals.local_get_offset) = place;
}

Descriptor RandomSequence::draw_transfer(std::size_t process) {
  Descriptor d;
  d.interface_index = static_cast<std::uint8_t>(options_.node.interface_index);
  d.portals.target = world_.target_id(below(own_.size()));
  d.pt_index = static_cast<std::uint16_t>(percent(2) ? std::uint64_t{kMissing} : below(4));
  const bool aligned = d.pt_index == kAligned || d.pt_index == kFlowAligned;
  d.type = percent(55) ? PacketType::kPut : PacketType::kGet;
  if (aligned && percent(60)) d.type = static_cast<PacketType>(3 + below(3));
  d.length = draw_length(aligned);
  const bool matching = (options_.node.interface_index & 1) != 0;
  d.match_bits = matching ? draw_bits() : 0;
  d.remote_offset = percent(50) ? 0 : percent(97) ? below(2048) : below(std::uint64_t{1} << 40);
  if (aligned) d.remote_offset = round_down(d.remote_offset);
  d.hdr_data = next_name_++;
  ++operations_;
  d.portals.user_ptr = reinterpret_cast<void*>(d.hdr_data);
  if (d.type == PacketType::kPut || d.type == PacketType::kAtomic)
    d.portals.ack_req = static_cast<AckRequest>(below(4));
  if (d.type == PacketType::kAtomic || d.type == PacketType::kFetchAtomic || d.type == PacketType::kSwap) {
    draw_atomic(d);
    if (percent(5)) d.remote_offset += below(kItemBytes);  // Where its datatype may not be.
  }
  if (d.type != PacketType::kPut && d.type != PacketType::kAtomic) draw_receive(process, d);
  if (d.type != PacketType::kGet) {
    d.portals.md_handle = any(own_[process].send_mds);
    d.portals.local_offset = below(kSendBytes - d.length + 1);
  }
  return d;
}

Descriptor RandomSequence::draw_count(std::size_t process) {
  Descriptor d;
  d.interface_index = static_cast<std::uint8_t>(options_.node.interface_index);
  d.count = {any(own_[process].counters), false, 0, 0};
  d.type = percent(80) ? PacketType::kCountIncrement : PacketType::kCountSet;
  const std::uint64_t success = world_.model_of(process).counters.at(d.count.ct_handle).success;
  d.count.success = d.type == PacketType::kCountSet ? success / 2 + below(success + 2) : below(5);
  d.count.failure = d.type == PacketType::kCountSet || d.count.success == 0 ? below(3) : 0;
  return d;
}

// ---- Calls ---------------------------------------------------------------------------------------------------------

void RandomSequence::note(std::size_t process, const std::string& what) {
  static const bool traced = std::getenv("PORTOFU_TEST_TRACE") != nullptr;
  last_calls_.push_back(std::to_string(calls_) + ": process " + std::to_string(process) + " " + what);
  if (traced) std::cerr << last_calls_.back() << "\n";
  if (last_calls_.size() > kCallsShown) last_calls_.pop_front();
}

void RandomSequence::act_post(std::size_t process) {
  const bool counts = percent(12);
  const Descriptor d = counts ? draw_count(process) : draw_transfer(process);
  const std::string what = "posts " + std::to_string(d.hdr_data) + " kind " + std::to_string(static_cast<int>(d.type));
  note(process, counts ? what + " success " + std::to_string(d.count.success)
                       : what + " to " + std::to_string(d.portals.target.nid) + ":" +
                             std::to_string(d.portals.target.pid) + " pt " + std::to_string(d.pt_index) + " length " +
                             std::to_string(d.length));
  world_.post(process, d);
}

/// PTL_MD_VOLATILE: the buffer is written over as soon as the call is back.
void RandomSequence::act_volatile_post(std::size_t process) {
  Descriptor d = draw_transfer(process);
  if (d.type != PacketType::kPut && d.type != PacketType::kAtomic) return;
  d.length = std::min<std::uint64_t>(d.length, kVolatileBytes);
  d.portals.md_handle = own_[process].volatile_md;
  d.portals.local_offset = below(kVolatileBytes - d.length + 1);
  note(process, "posts " + std::to_string(d.hdr_data) + " volatile, length " + std::to_string(d.length));
  world_.post(process, d);
  for (std::uint64_t i = 0; i < d.length; ++i) {
    world_.write_memory(process, kVolatileAt + d.portals.local_offset + i,
                        static_cast<std::byte>(random_.next() >> 32));
  }
}

/// Events of local calls are not protected by flow control (2.8); an application takes what is there before.
void RandomSequence::make_room(std::size_t process, std::uint16_t pt_index) {
  if (pt_index == kFlowRagged || pt_index == kFlowAligned) world_.take_events(process, own_[process].flow_eq, SIZE_MAX);
}

void RandomSequence::act_append(std::size_t process) {
  const EntryPlan plan = draw_entry(process);
  if (percent(90)) make_room(process, plan.pt_index);
  Handle handle = 0;
  note(process, "appends " + std::to_string(plan.name) + " pt " + std::to_string(plan.pt_index) + " list " +
                    std::to_string(static_cast<int>(plan.list)) + " options " + std::to_string(plan.options) +
                    " length " + std::to_string(plan.region.length()));
  if (world_.append(process, plan, &handle) != Status::kOk) return;
  std::vector<Handle>& entries = own_[process].entries;
  entries.push_back(handle);
  if (entries.size() > kHandlesKept) entries.erase(entries.begin());
}

void RandomSequence::act_unlink(std::size_t process) {
  std::vector<Handle>& entries = own_[process].entries;
  if (entries.empty()) return;
  const Handle handle = any(entries);
  // With few slots a stale handle is soon somebody else's.
  const bool few_slots = options_.node.limits.max_entries < kDefaultLimits.max_entries;
  if (few_slots && !world_.is_live_entry(process, handle)) return;
  note(process, "unlinks");
  world_.unlink(process, handle);
}

void RandomSequence::act_search(std::size_t process) {
  EntryPlan plan = draw_entry(process);
  plan.region = {};
  plan.list = ListKind::kPriority;
  if (percent(90)) make_room(process, plan.pt_index);
  note(process, "searches " + std::to_string(plan.name) + " pt " + std::to_string(plan.pt_index));
  world_.search(process, plan, percent(50) ? SearchOperation::kOnly : SearchOperation::kDelete);
}

/// Recovery from flow control begins with the events that are there, PT_DISABLED among them.
void RandomSequence::act_enable(std::size_t process) {
  const auto pt_index = static_cast<std::uint16_t>(below(4));
  const bool enabled = percent(80);
  if (enabled) make_room(process, pt_index);
  note(process, (enabled ? "enables " : "disables ") + std::to_string(pt_index));
  world_.enable_portal(process, pt_index, enabled);
}

void RandomSequence::act_trigger(std::size_t process) {
  const Handle ct = any(own_[process].counters);
  if (percent(8)) {
    note(process, "cancels");
    return world_.cancel(process, ct);
  }
  const std::uint64_t success = world_.model_of(process).counters.at(ct).success;
  const std::uint64_t threshold = success + below(8) - std::min<std::uint64_t>(success, below(3));
  const Descriptor d = percent(30) ? draw_count(process) : draw_transfer(process);
  note(process, "arms " + std::to_string(d.hdr_data) + " kind " + std::to_string(static_cast<int>(d.type)) + " at " +
                    std::to_string(threshold) + " of counter " + std::to_string(ct));
  world_.arm(process, ct, threshold, d);
}

/// An MD may go when SEND or REPLY of each operation has come; acknowledgements that come later are nobody's (3.10.4).
void RandomSequence::act_release(std::size_t process) {
  std::vector<Handle>& mds = own_[process].send_mds;
  const std::size_t which = below(mds.size());
  if (world_.model_of(process).mds.at(mds[which]).pending != 0) return;
  note(process, "releases an MD and binds another");
  world_.release_md(process, mds[which]);
  mds.erase(mds.begin() + static_cast<std::ptrdiff_t>(which));
  bind_send_md(process);
}

/// Entries, MDs and triggered operations may still name it: what they count is nobody's then.
void RandomSequence::act_free_counter(std::size_t process) {
  Handle& ct = any(own_[process].counters);
  note(process, "frees counter " + std::to_string(ct) + " and allocates another");
  world_.free_counter(process, ct);
  ct = world_.make_counter(process);
}

void RandomSequence::act() {
  const std::size_t process = below(own_.size());
  if (percent(taste_.append_percent)) return act_append(process);
  const std::uint64_t dice = below(88);
  if (dice < 45) return world_.step(process);
  if (dice < 67) return act_post(process);
  if (dice < 70) return act_volatile_post(process);
  if (dice < 72) return act_unlink(process);
  if (dice < 75) return act_search(process);
  if (dice < 79) return act_enable(process);
  if (dice < 83) return act_trigger(process);
  if (dice < 84) return percent(75) ? act_release(process) : act_free_counter(process);
  world_.take_events(process, percent(50) ? own_[process].eq : own_[process].flow_eq, below(10));
}

std::string RandomSequence::run(int action_count) {
  for (std::uint32_t i = 0; i < taste_.initial_entries && world_.complaint().empty(); ++i) act_append(i % own_.size());
  for (calls_ = 0; calls_ < action_count && world_.complaint().empty(); ++calls_) act();
  if (world_.complaint().empty()) world_.settle();
  if (world_.complaint().empty()) world_.compare();
  if (world_.complaint().empty()) return {};
  std::string text = world_.complaint() + "\n  after " + std::to_string(calls_) + " calls, the last ones:";
  for (const std::string& call : last_calls_) text += "\n    " + call;
  return text;
}

}  // namespace portofu::simulation
