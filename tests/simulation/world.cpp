// Engines and model side by side.

#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

namespace portofu::simulation {
namespace {

constexpr std::uint32_t kNid = 0x0a000001;
constexpr std::uint32_t kFirstPid = 100;
constexpr std::uint32_t kFirstUid = 1000;

/// Virtual time of one step, and of a round in which nothing moves.
constexpr std::uint64_t kStepNs = 2'000;
constexpr std::uint64_t kSettleNs = 1'000'000'000;

/// Rounds after which a network that still moves is taken for one that never rests.
constexpr int kMostRounds = 20000;

const char* name_of(EventKind kind) {
  static constexpr const char* kNames[] = {
      "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
      "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
      "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH"};
  return static_cast<std::size_t>(kind) < std::size(kNames) ? kNames[static_cast<std::size_t>(kind)] : "?";
}

std::string describe(const Event& event) {
  return std::string(name_of(event.type)) + " of " + std::to_string(reinterpret_cast<std::uintptr_t>(event.user_ptr)) +
         " fail " + std::to_string(static_cast<int>(event.ni_fail_type)) + " pt " + std::to_string(event.pt_index) +
         " list " + std::to_string(static_cast<int>(event.ptl_list)) + " rlength " + std::to_string(event.rlength) +
         " mlength " + std::to_string(event.mlength) + " offset " + std::to_string(event.remote_offset) + " hdr_data " +
         std::to_string(event.hdr_data) + " bits " + std::to_string(event.match_bits) + " from " +
         std::to_string(event.initiator.nid) + ":" + std::to_string(event.initiator.pid);
}

std::string describe(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) text += "\n    " + describe(event);
  return text.empty() ? " nothing" : text;
}

bool same(const Event& a, const Event& b) {
  const bool has_data = a.mlength > 0 && a.start != nullptr;
  return a.type == b.type && a.user_ptr == b.user_ptr && a.hdr_data == b.hdr_data && a.match_bits == b.match_bits &&
         a.rlength == b.rlength && a.mlength == b.mlength && a.remote_offset == b.remote_offset && a.uid == b.uid &&
         a.initiator == b.initiator && a.ptl_list == b.ptl_list && a.ni_fail_type == b.ni_fail_type &&
         a.atomic_operation == b.atomic_operation && a.atomic_type == b.atomic_type && a.pt_index == b.pt_index &&
         (!has_data || a.start == b.start);
}

/// Events whose order means something have the same key: those of one list entry or search. @see compare_substream
std::uintptr_t key_of(const Event& event) {
  return event.type == EventKind::kPtDisabled ? event.pt_index : reinterpret_cast<std::uintptr_t>(event.user_ptr);
}

std::map<std::uintptr_t, std::vector<Event>> substreams(const std::vector<Event>& events) {
  std::map<std::uintptr_t, std::vector<Event>> streams;
  for (const Event& event : events) streams[key_of(event)].push_back(event);
  return streams;
}

bool is_initiators(EventKind kind) {
  return kind == EventKind::kSend || kind == EventKind::kAck || kind == EventKind::kReply;
}

}  // namespace

World::World(const WorldOptions& options)
    : options_(options),
      network_(options.seed, options.network, options.lossy, static_cast<std::uint32_t>(options.process_count)),
      model_(options.node.interface_index) {
  std::vector<ProcessId> ids;
  for (std::size_t i = 0; i < options.process_count; ++i)
    ids.push_back({kNid, kFirstPid + static_cast<std::uint32_t>(i)});
  const bool logical = (options.node.interface_index & 2) != 0;
  taken_.resize(ids.size());
  WireObserver* observer = this;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    NodeOptions node = options.node;
    node.id = ids[i];
    node.index = i;
    node.uid = kFirstUid + static_cast<std::uint32_t>(i);
    node.clock_ns = network_.clock_ns();
    nodes_.push_back(std::make_unique<Node>(network_.attach(node.id, static_cast<std::uint32_t>(i)), node, observer));
    if (logical) nodes_[i]->set_map(ids);
    ModelProcess process;
    process.id = node.id;
    process.initiator_id = logical ? ProcessId{static_cast<std::uint32_t>(i), 0} : node.id;
    process.uid = node.uid;
    process.limits = node.limits;
    process.real = nodes_[i]->memory();
    process.memory.resize(node.memory_bytes);
    model_.processes.push_back(std::move(process));
  }
}

World::~World() {
  for (auto& node : nodes_) node->close_interface();
}

void World::complain(std::size_t process, const std::string& text) {
  model_.complain("process " + std::to_string(process) + ": " + text);
}

ProcessId World::target_id(std::size_t process) const { return model_.processes[process].initiator_id; }

// ---- The engine tells ----------------------------------------------------------------------------------------------

void World::follow_triggers(std::size_t process) {
  model_.start_fired_until(process, nodes_[process]->core().counters.get(Counter::kTriggersFired));
}

void World::trace(const char* what, std::size_t process, ProcessId peer, const PacketHeader& header) const {
  static const bool wanted = std::getenv("PORTOFU_TEST_TRACE") != nullptr;
  if (!wanted) return;
  std::cerr << "  process " << process << " " << what << " " << peer.pid << ": " << packet_type_name(header.type)
            << " hdr_data " << header.hdr_data << " id " << header.operation_id << " length " << header.length
            << " payload " << header.payload_bytes << " fail " << int{header.ni_fail_type} << " flags "
            << int{header.flags} << "\n";
}

void World::published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end) {
  trace(lent_end != 0 ? "lends to" : "sends to", process, peer, header);
  follow_triggers(process);
  model_.published(process, peer, header, lent_end);
}

void World::peeked(std::size_t process, ProcessId source, const PacketHeader& header) {
  trace("takes from", process, source, header);
  follow_triggers(process);
  model_.peeked(process, source, header);
}

void World::taken(std::size_t process, ProcessId peer, std::uint64_t lent_end) {
  follow_triggers(process);
  model_.taken(process, peer, lent_end);
}

void World::acknowledged(std::size_t process, ProcessId peer, std::uint32_t operation_id) {
  follow_triggers(process);
  model_.acknowledged(process, peer, operation_id);
}

void World::acknowledgement_taken(std::size_t process, ProcessId peer, std::uint32_t operation_id) {
  follow_triggers(process);
  model_.acknowledgement_taken(process, peer, operation_id);
}

// ---- Set-up --------------------------------------------------------------------------------------------------------

Handle World::make_queue(std::size_t process, std::uint64_t count) {
  const Handle handle = nodes_[process]->make_queue(count);
  model_.processes[process].queues[handle].capacity = nodes_[process]->interface().eqs.find(handle)->capacity();
  return handle;
}

Handle World::make_counter(std::size_t process) {
  const Handle handle = nodes_[process]->make_counter();
  model_.processes[process].counters[handle] = {};
  return handle;
}

Handle World::make_md(std::size_t process, const ModelRegion& region, std::uint32_t md_options, Handle eq, Handle ct) {
  const Handle handle = nodes_[process]->make_md(region, md_options, eq, ct);
  model_.processes[process].mds[handle] = {region, md_options, eq, ct, 0, false};
  return handle;
}

void World::make_portal(std::size_t process, std::uint16_t pt_index, Handle eq, bool flow_control) {
  nodes_[process]->make_portal(pt_index, eq, flow_control);
  ModelPortal& portal = model_.processes[process].portals[pt_index];
  portal.eq = eq;
  portal.flow_control = flow_control;
}

// ---- Calls ---------------------------------------------------------------------------------------------------------

void World::step(std::size_t process) {
  network_.pass_to_next(kStepNs);
  nodes_[process]->engine().step();
  follow_triggers(process);
  compare_counters(process);
}

void World::post(std::size_t process, const Descriptor& descriptor) {
  model_.start(process, descriptor);
  nodes_[process]->post(descriptor);
  follow_triggers(process);
  compare_counters(process);
}

Status World::append(std::size_t process, const EntryPlan& plan, Handle* handle) {
  Node& node = *nodes_[process];
  const Engine::Duty duty(node.engine());
  const Status status = append_entry(node.core(), node.interface(), node.request_of(plan), handle);
  const Status expected = model_.append(process, plan, status == Status::kOk ? *handle : 0);
  if (status != expected) {
    complain(process, "append gave " + std::to_string(static_cast<int>(status)) + ", expected " +
                          std::to_string(static_cast<int>(expected)));
  }
  node.engine().settle_on_duty();
  follow_triggers(process);
  return status;
}

bool World::is_live_entry(std::size_t process, Handle handle) const {
  const auto& entries = model_.processes[process].entries;
  return std::any_of(entries.begin(), entries.end(), [handle](const auto& entry) {
    return entry->handle == handle && entry->state != EntryState::kGone;
  });
}

void World::unlink(std::size_t process, Handle handle) {
  const Engine::Duty duty(nodes_[process]->engine());
  const Status status = unlink_entry(nodes_[process]->core(), nodes_[process]->interface(), handle);
  const Status expected = model_.unlink(process, handle);
  if (status == expected) return;
  complain(process, "unlink gave " + std::to_string(static_cast<int>(status)) + ", expected " +
                        std::to_string(static_cast<int>(expected)));
}

void World::search(std::size_t process, const EntryPlan& plan, SearchOperation operation) {
  Node& node = *nodes_[process];
  const Engine::Duty duty(node.engine());
  search_entries(node.core(), node.interface(), node.request_of(plan), operation);
  model_.search(process, plan, operation);
  node.engine().settle_on_duty();
  follow_triggers(process);
}

void World::enable_portal(std::size_t process, std::uint16_t pt_index, bool enabled) {
  nodes_[process]->enable_portal(pt_index, enabled);
  model_.processes[process].portals.at(pt_index).enabled = enabled;
}

void World::arm(std::size_t process, Handle ct, std::uint64_t threshold, const Descriptor& descriptor) {
  Node& node = *nodes_[process];
  node.arm(ct, threshold, descriptor);
  model_.arm(process, ct, {threshold, descriptor});
  {
    const Engine::Duty duty(node.engine());
    node.engine().settle_on_duty();
  }
  follow_triggers(process);
}

void World::cancel(std::size_t process, Handle ct) {
  nodes_[process]->cancel(ct);
  model_.cancel(process, ct);
}

void World::free_counter(std::size_t process, Handle ct) {
  nodes_[process]->free_counter(ct);
  model_.free_counter(process, ct);
}

void World::release_md(std::size_t process, Handle md) {
  nodes_[process]->release_md(md);
  model_.processes[process].mds.at(md).released = true;
}

void World::take_events(std::size_t process, Handle eq, std::size_t most) {
  const Engine::Duty duty(nodes_[process]->engine());
  EventQueue& queue = *nodes_[process]->interface().eqs.find(eq);
  Taken& taken = taken_[process][eq];
  ModelQueue& expected = model_.processes[process].queues.at(eq);
  for (std::size_t i = 0; i < most && !queue.empty(); ++i) {
    const Event event = queue.oldest_on_duty();
    taken.events.push_back(event);
    taken.dropped = queue.remove_oldest_on_duty() || taken.dropped;
    if (expected.taken < expected.events.size()) {
      ++expected.taken;
    } else if (!expected.overflowed) {
      complain(process, "an event that was not expected: " + describe(event));
    }
  }
}

void World::write_memory(std::size_t process, std::size_t at, std::byte value) {
  nodes_[process]->memory()[at] = value;
  model_.processes[process].memory[at] = value;
}

// ---- Comparison ----------------------------------------------------------------------------------------------------

bool World::is_quiet() {
  if (!network_.is_quiet()) return false;
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return node->core().waiting_peers.empty() && node->core().awaited_peers.empty() && node->core().fired.empty() &&
           !node->core().wires[0]->has_packets();
  });
}

void World::settle() {
  for (int round = 0; round < kMostRounds; ++round) {
    bool moved = false;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      moved = nodes_[i]->engine().step() > 0 || moved;
      follow_triggers(i);
      if (!complaint().empty()) return;
    }
    if (!moved && is_quiet()) return;
    if (!moved) network_.pass_to_next(kSettleNs);
  }
  model_.complain("the network never comes to rest");
}

void World::compare_counters(std::size_t process) {
  const ModelProcess& expected = model_.processes[process];
  Interface& ni = nodes_[process]->interface();
  for (const auto& [handle, counter] : expected.counters) {
    const CountingEvent& seen = *ni.cts.find(handle);
    if (seen.success() == counter.success && seen.failure() == counter.failure) continue;
    return complain(process, "counter " + std::to_string(handle_index(handle)) + " is " +
                                 std::to_string(seen.success()) + "/" + std::to_string(seen.failure()) + ", expected " +
                                 std::to_string(counter.success) + "/" + std::to_string(counter.failure));
  }
  for (std::size_t i = 0; i < kStatusRegisterCount; ++i) {
    if (ni.status_registers[i].load() == expected.status[i]) continue;
    return complain(process, "status register " + std::to_string(i) + " is " +
                                 std::to_string(ni.status_registers[i].load()) + ", expected " +
                                 std::to_string(expected.status[i]));
  }
}

/// SEND, ACK and REPLY of an operation come in any order (3.13.1); what one list entry tells comes in the order in
/// which it happened, with AUTO_UNLINK behind the communication and AUTO_FREE last.
void World::compare_substream(const std::vector<Event>& seen, const std::vector<Event>& expected) {
  std::vector<Event> a = seen;
  std::vector<Event> b = expected;
  const auto by_kind = [](const Event& x, const Event& y) { return x.type < y.type; };
  if (!expected.empty() && is_initiators(expected.front().type)) {
    std::sort(a.begin(), a.end(), by_kind);
    std::sort(b.begin(), b.end(), by_kind);
  }
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), same)) return;
  model_.complain("events differ; seen:" + describe(seen) + "\n  expected:" + describe(expected));
}

void World::compare_queue(std::size_t process, Handle eq) {
  const ModelQueue& expected = model_.processes[process].queues.at(eq);
  const Taken& taken = taken_[process][eq];
  if (taken.dropped != expected.overflowed) {
    return complain(process, expected.overflowed ? "events should have been lost" : "events were lost for no reason");
  }
  if (expected.overflowed) return;
  const auto seen_streams = substreams(taken.events);
  const auto expected_streams = substreams(expected.events);
  for (const auto& [key, events] : expected_streams) {
    const auto found = seen_streams.find(key);
    compare_substream(found != seen_streams.end() ? found->second : std::vector<Event>(), events);
  }
  for (const auto& [key, events] : seen_streams) {
    if (!expected_streams.contains(key)) compare_substream(events, {});
  }
}

void World::compare_memory(std::size_t process) {
  const std::vector<std::byte>& expected = model_.processes[process].memory;
  const std::byte* seen = nodes_[process]->memory();
  if (std::memcmp(seen, expected.data(), expected.size()) == 0) return;
  const auto at = std::mismatch(expected.begin(), expected.end(), seen).first - expected.begin();
  complain(process, "memory differs at " + std::to_string(at));
}

void World::check_nothing_left(std::size_t process) {
  Core& core = nodes_[process]->core();
  Interface& ni = nodes_[process]->interface();
  if (core.outstanding.open_count() != 0) complain(process, "operations stay open");
  if (ni.outstanding != 0) complain(process, "the interface counts operations that are over");
  if (ni.triggered_count != model_.processes[process].waiting_count)
    complain(process, "triggered operations are miscounted");
  ni.mds.for_each([&](Handle, const MemoryDescriptor& md) {
    if (md.pending != 0) complain(process, "a memory descriptor stays in use");
  });
  ni.entries.for_each([&](Handle, const ListEntry& entry) {
    if (entry.pending != 0) complain(process, "a list entry stays in use");
  });
  std::uint32_t headers = 0;
  for (const auto& portal : ni.portal_table) {
    if (portal == nullptr) continue;
    headers += static_cast<std::uint32_t>(portal->unexpected.size());
    if (portal->in_progress != 0) complain(process, "a portal table entry stays in use");
    const EventQueue* queue = ni.eqs.find(portal->eq_handle);
    if (queue != nullptr && !queue->has_room_on_duty(static_cast<std::uint32_t>(queue->capacity()))) {
      complain(process, "places in an empty event queue stay promised");
    }
  }
  if (headers != ni.unexpected_count) complain(process, "unexpected headers are miscounted");
  for (const auto& [key, peer] : core.peers) {
    if (peer->outstanding != 0 || !peer->answers.waiting.empty()) complain(process, "a peer stays in use");
  }
}

void World::compare() {
  for (const auto& message : model_.messages) {
    const bool answered = message->operation_id == 0 || message->answer_sent;
    if (message->sent && message->arrived && message->over && answered) continue;
    return complain(message->initiator, "operation " + std::to_string(message->descriptor.hdr_data) + " never ended");
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const auto& [eq, queue] : model_.processes[i].queues) take_events(i, eq, SIZE_MAX);
    compare_counters(i);
    for (const auto& [eq, queue] : model_.processes[i].queues) compare_queue(i, eq);
    compare_memory(i);
    check_nothing_left(i);
  }
}

}  // namespace portofu::simulation
