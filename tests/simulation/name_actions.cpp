// What the processes of a NameWorld do.

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/topology/host_file.h"
#include "tests/simulation/name_world.h"

namespace portofu::simulation {
namespace {

constexpr std::uint32_t kJobKey = 7;
constexpr std::uint32_t kUid = 1000;
constexpr std::uint16_t kPt = 3;
constexpr std::uint32_t kBaseTni = 5;

Settings settings_of_node() {
  Settings settings;
  settings.fabric = static_cast<std::uint32_t>(FabricUse::kOn);
  return settings;
}

}  // namespace

// ---- What is done --------------------------------------------------------------------------------------------------

/// Whether a call that waits for others may be made now: not so many in each other, and no file of the node is in the
/// hands of a process that waits.
bool NameWorld::may_wait(const Process& process) const {
  if (waiting_ >= 3) return false;
  return process.node != nullptr || std::none_of(processes_.begin(), processes_.end(), [&](const Process& other) {
           return other.node_index == process.node_index && other.is_waiting;
         });
}

void NameWorld::act(Process& process) {
  constexpr std::array<std::uint64_t, 4> kRests{50'000, 2 * kMillisecond, 40 * kMillisecond, 800 * kMillisecond};
  const std::uint64_t rest_ns = is_cut_ ? kSecond : std::min(options_.longest_rest_ns, kRests[below(kRests.size())]);
  process.next_action_ns = now_ns() + 1 + below(rest_ns);
  if (process.node == nullptr) {
    if (may_wait(process)) begin(process);
    return;
  }
  if (may_wait(process)) advance_closing(process);
  if (process.node == nullptr || actions_left_ <= 0) return;
  if (process.base == nullptr) {
    if (may_wait(process)) make_base(process);
    return;
  }
  --actions_left_;
  if (options_.is_cut && cut_until_ns_ == 0 && below(50) == 0) cut();
  const std::uint64_t what = below(100);
  Slot& slot = process.slots[below(kSlots)];
  if (what < 12) {
    if (slot.vcq == nullptr && may_wait(process) && !process.leaves) open(process, slot);
  } else if (what < 24) {
    if (slot.vcq == nullptr) return;
    holdings_[slot.holding].is_open = false;
    holdings_[slot.holding].is_kept = below(4) != 0;
  } else if (what < 26) {
    die(process);
  } else if (what < 28) {
    leave(process);
  } else if (what < 31) {
    process.stopped_until_ns = now_ns() + below(options_.longest_stop_ns);
    trace("process %zu stops for %.3f", holdings_[process.holding].process,
          static_cast<double>(process.stopped_until_ns - now_ns()) / kMillisecond);
  } else {
    put(process);
  }
}

void NameWorld::begin(Process& process) {
  process.life = ++lives_;
  process.own = make_own_segments();
  process.kernel =
      std::make_unique<LossyKernel>(ports_, [this, &process](const Meanwhile& meanwhile) { wait(process, meanwhile); });
  const Enter enter(process);
  make_segment(process);
  if (process.segment == nullptr) return;
  make_engine(process);
  make_portals(process);
  process.holding = holdings_.size();
  holdings_.push_back({.process = static_cast<std::size_t>(&process - processes_.data()), .life = process.life});
  const bool are_lost = options_.news_are_lost || process.ended_ns < cut_until_ns_;
  for (const Process& other : processes_)
    holdings_.back().may_be_refused.push_back(are_lost || other.stopped_until_ns > process.ended_ns);
  holdings_.back().found_out_ns.resize(processes_.size());
  process.is_woken = true;
  ++counts_.lives;
  trace("process %zu begins: life %llu", holdings_.back().process, static_cast<unsigned long long>(process.life));
}

void NameWorld::make_segment(Process& process) {
  SegmentOptions options;
  options.nid = process.id.nid;
  options.pid = process.id.pid;
  options.job_key = kJobKey;
  options.uid = kUid;
  options.channel_count = 1;
  options.ring = {4, 1024, 512};
  options.area_bytes = 0;
  options.directory = options_.directories[process.node_index];
  SegmentError error{};
  std::string why;
  process.segment = ProcessSegment::create(options, &error, &why);
  if (process.segment == nullptr) complain("no segment: " + why);
}

/// As open_node and Engine::open do.
void NameWorld::make_engine(Process& process) {
  ReliableOptions reliable;
  reliable.life = process.segment->incarnation();
  reliable.connect_timeout_ns = OfiWire::kOfiConnectNs;
  auto wire = std::make_unique<ReliableWire>(network_.attach(process.id, process.node_index), reliable,
                                             Counters(process.segment->counters()));
  process.wire = wire.get();
  process.keeper = std::make_unique<Keeper>();
  std::string why;
  auto map = NodeMap::find(settings_of_node(), process.id.nid, true, {}, &why);
  const DirectoryOptions options{process.id.nid, {kPorts.begin(), kPorts.end()}, kJobKey, kUid};
  auto directory = std::make_unique<SegmentDirectory>(*process.segment, *map, process.keeper.get(), options);
  directory->introduce(*process.wire);
  directory->when_ended = [&process](ProcessId ended, std::uint64_t life) { process.wire->end_life(ended, life); };
  NodeOptions node;
  node.id = process.id;
  node.uid = kUid;
  node.interface_index = 0;
  node.memory_bytes = kRegionBytes * (1 + kSlots);
  node.clock_ns = network_.clock_ns();
  node.ring = {16, 16384, 8192};
  const Coordinates at = coordinates_of_address(process.id.nid);
  process.node = std::make_unique<TofuNode>(std::move(wire), node, std::move(directory), at);
}

void NameWorld::make_portals(Process& process) {
  Node& node = process.node->node();
  process.own_eq = node.make_queue(EventQueue::kGenerousFrom);
  process.target_eq = node.make_queue(EventQueue::kGenerousFrom);
  process.md = node.make_md({{{0, 8}}}, kMdEventSendDisable, process.own_eq, 0);
  node.make_portal(kPt, process.target_eq, false);
  EntryPlan plan;
  plan.region = {{{512, 8}}};
  plan.options = kEntryOpPut | kEntryEventLinkDisable;
  plan.pt_index = kPt;
  Handle handle = 0;
  append_entry(node.core(), node.interface(), node.request_of(plan), &handle);
}

/// Of whom had the number before, some may not have heard yet.
void NameWorld::make_base(Process& process) {
  const Enter enter(process);
  const std::uint32_t number = make_queue_number(kBaseTni, process.id.pid - kFirstPid, 0);
  if (!process.node->claim(number)) return;
  process.base = &process.node->make_vcq(number, CqMode::kShared, 64);
  process.base_stadd = process.node->register_memory(*process.base, 0, kRegionBytes, false);
}

/// Nothing is left of what it had.
void NameWorld::forget(Process& process) {
  process.segment.reset();
  process.keeper.reset();
  process.wire = nullptr;
  process.base = nullptr;
  process.leaves = false;
  process.ended_ns = now_ns();
}

/// What it was is no more, and nobody waits for it.
void NameWorld::clear(Process& process) {
  for (std::size_t number : std::exchange(process.under_way, {})) {
    if (number == 0 || number == kForgotten) continue;
    operations_[number - 1].ended = true;
    --holdings_[operations_[number - 1].holding].users;
    --open_operations_;
  }
  const auto leave = [this](std::size_t holding) { holdings_[holding].is_open = holdings_[holding].is_there = false; };
  leave(process.holding);
  for (Slot& slot : process.slots) {
    if (slot.vcq != nullptr) leave(slot.holding);
    slot = {};
  }
  network_.kill(process.id);
  process.kernel->die();
  process.segment->die();
  process.node.reset();
  forget(process);
}

void NameWorld::die(Process& process) {
  trace("process %zu dies", holdings_[process.holding].process);
  const Enter enter(process);
  for (const Slot& slot : process.slots) {
    if (slot.vcq != nullptr) check_region(process, slot);
  }
  clear(process);
  process.own = make_own_segments();
}

void NameWorld::cut() {
  trace("the network is cut");
  cut_until_ns_ = now_ns() + 6 * kSecond;
  is_cut_ = true;
  std::vector<int> parts;
  for (std::uint32_t node = 0; node < options_.nodes; ++node) parts.push_back(static_cast<int>(node));
  network_.set_parts(std::move(parts));
}

/// It ends when nobody uses its names any more.
void NameWorld::leave(Process& process) {
  process.leaves = true;
  holdings_[process.holding].is_open = false;
  for (const Slot& slot : process.slots) {
    if (slot.vcq != nullptr) holdings_[slot.holding].is_open = false;
  }
}

/// As an engine is closed.
void NameWorld::end(Process& process) {
  trace("process %zu ends", holdings_[process.holding].process);
  const Enter enter(process);
  holdings_[process.holding].is_there = false;
  process.node.reset();
  process.segment->end();
  forget(process);
}

void NameWorld::open(Process& process, Slot& slot) {
  trace("process %zu wants a queue", holdings_[process.holding].process);
  const Enter enter(process);
  const auto queue = static_cast<std::uint32_t>(below(options_.queues));
  const std::uint32_t number = make_queue_number(queue % kBaseTni, queue / kBaseTni, 0);
  if (process.node->tofu().queue(number) != nullptr || !process.node->claim(number)) return;
  std::memset(process.node->memory() + region_of(process, slot), 0, kRegionBytes);
  slot.vcq = &process.node->make_vcq(number, CqMode::kShared, 64);
  slot.holding = holdings_.size();
  const std::uint64_t stadd = process.node->register_memory(*slot.vcq, region_of(process, slot), kRegionBytes, false);
  holdings_.push_back({.process = static_cast<std::size_t>(&process - processes_.data()),
                       .life = process.life,
                       .vcq_id = slot.vcq->id,
                       .stadd = stadd});
  ++counts_.owners;
  trace("process %zu has queue %u: holding %zu", holdings_.back().process, queue, slot.holding);
}

void NameWorld::close(Process& process, Slot& slot) {
  const Enter enter(process);
  trace("process %zu frees holding %zu", holdings_[slot.holding].process, slot.holding);
  check_region(process, slot);
  VirtualControlQueue& vcq = *slot.vcq;
  holdings_[slot.holding].is_there = false;
  slot = {};
  process.node->free_vcq(vcq);
  trace("process has freed it");
}

void NameWorld::advance_closing(Process& process) {
  for (Slot& slot : process.slots) {
    if (slot.vcq == nullptr || holdings_[slot.holding].is_open) continue;
    if (holdings_[slot.holding].users == 0 || !holdings_[slot.holding].is_kept) close(process, slot);
  }
  const auto is_used = [](const Slot& slot) { return slot.vcq != nullptr; };
  if (!process.leaves || holdings_[process.holding].users != 0) return;
  if (std::any_of(process.slots.begin(), process.slots.end(), is_used)) return;
  const bool has_own = std::any_of(process.under_way.begin(), process.under_way.end(),
                                   [](auto one) { return one != 0 && one != kForgotten; });
  if (!has_own && process.wire->is_settled() && !process.is_woken) end(process);
}

void NameWorld::put(Process& process) {
  const auto place = std::find(process.under_way.begin(), process.under_way.end(), 0u);
  if (place == process.under_way.end()) return;
  std::vector<std::size_t> open;
  const bool to_pid = below(4) == 0;
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    const Holding& holding = holdings_[i];
    const bool is_far = processes_[holding.process].node_index != process.node_index;
    if (holding.is_open && is_far && to_pid == (holding.vcq_id == 0)) open.push_back(i);
  }
  if (open.empty()) return;
  const std::size_t number = operations_.size();
  Operation operation;
  operation.from = static_cast<std::size_t>(&process - processes_.data());
  operation.life = process.life;
  operation.holding = open[below(open.size())];
  operation.slot = static_cast<std::uint32_t>(place - process.under_way.begin());
  operation.posted_ns = now_ns();
  operation.is_silent = !to_pid && below(4) == 0;
  operations_.push_back(operation);
  *place = number + 1;
  ++holdings_[operation.holding].users;
  ++open_operations_;
  ++counts_.operations;
  trace("operation %zu of %zu to holding %zu slot %u silent %d", number, operation.from, operation.holding,
        operation.slot, operation.is_silent);
  const Enter enter(process);
  to_pid ? post_to_pid(process, number) : post_to_queue(process, number);
  process.is_woken = true;
}

void NameWorld::post_to_queue(Process& process, std::size_t number) {
  const Operation& operation = operations_[number];
  const Holding& holding = holdings_[operation.holding];
  const std::uint64_t word = number + 1;
  std::memcpy(process.node->memory() + 8 + 8 * operation.slot, &word, sizeof word);
  Descriptor d;
  d.type = PacketType::kTofuPut;
  d.tofu = {};
  d.tofu_meta = static_cast<std::uint16_t>((operation.is_silent ? 0 : kTofuLocalNotice) | operation.slot);
  d.tofu.remote_vcq_id = holding.vcq_id;
  d.tofu.local_stadd = process.base_stadd + 8 + 8 * operation.slot;
  d.remote_stadd = holding.stadd + 8 * word_of(operation);
  d.length = 8;
  process.node->post(*process.base, d, nullptr, false);
}

void NameWorld::post_to_pid(Process& process, std::size_t number) {
  Descriptor d;
  d.type = PacketType::kPut;
  d.interface_index = 0;
  d.portals.ack_req = AckRequest::kFull;
  d.portals.target = processes_[holdings_[operations_[number].holding].process].id;
  d.pt_index = kPt;
  d.portals.md_handle = process.md;
  d.length = 8;
  d.hdr_data = number;
  d.portals.user_ptr = reinterpret_cast<void*>(number);
  process.node->node().post(d);
}

}  // namespace portofu::simulation
