// The frame of one run: what there is at the start, one step, and the end, when nothing may be left.

#include "tests/fuzz/receive_world.h"

#include <utility>

#include "engine/mailbox/inbox.h"
#include "engine/run/death.h"
#include "engine/run/dispatch.h"
#include "engine/run/loop.h"
#include "engine/target/close_interface.h"
#include "tests/fuzz/core_census.h"

namespace portofu::fuzz {
namespace {

Settings fuzz_settings() {
  Settings settings;
  settings.job_key = 1;
  settings.window_operations = 3;
  settings.log_level = 0;
  return settings;
}

std::uint64_t read_clock(void* context) { return *static_cast<std::uint64_t*>(context); }

}  // namespace

// Packets come up more often than the rest; what changes everything comes up seldom.
const std::array<ReceiveWorld::Act, 45> ReceiveWorld::kActs{&ReceiveWorld::receive_request_packet,
                                                            &ReceiveWorld::receive_put_packet,
                                                            &ReceiveWorld::receive_next_data,
                                                            &ReceiveWorld::receive_answer_packet,
                                                            &ReceiveWorld::append,
                                                            &ReceiveWorld::receive_put_packet,
                                                            &ReceiveWorld::receive_next_data,
                                                            &ReceiveWorld::receive_next_answer_data,
                                                            &ReceiveWorld::append,
                                                            &ReceiveWorld::start_put,
                                                            &ReceiveWorld::start_get,
                                                            &ReceiveWorld::start_atomic,
                                                            &ReceiveWorld::start_fetching,
                                                            &ReceiveWorld::unlink,
                                                            &ReceiveWorld::search,
                                                            &ReceiveWorld::cycle,
                                                            &ReceiveWorld::change_room,
                                                            &ReceiveWorld::receive_raw_packet,
                                                            &ReceiveWorld::bind_md,
                                                            &ReceiveWorld::release_md,
                                                            &ReceiveWorld::arm,
                                                            &ReceiveWorld::change_counter,
                                                            &ReceiveWorld::take_events,
                                                            &ReceiveWorld::change_portal,
                                                            &ReceiveWorld::timers,
                                                            &ReceiveWorld::kill_peer,
                                                            &ReceiveWorld::change_connect,
                                                            &ReceiveWorld::lose_source,
                                                            &ReceiveWorld::cancel_triggered,
                                                            &ReceiveWorld::open_interface,
                                                            &ReceiveWorld::close_interface,
                                                            &ReceiveWorld::free_queue,
                                                            &ReceiveWorld::receive_tofu_request,
                                                            &ReceiveWorld::receive_tofu_request,
                                                            &ReceiveWorld::receive_next_data,
                                                            &ReceiveWorld::post_tofu,
                                                            &ReceiveWorld::change_copies,
                                                            &ReceiveWorld::receive_tofu_fault,
                                                            &ReceiveWorld::receive_gate_packet,
                                                            &ReceiveWorld::use_gate,
                                                            &ReceiveWorld::register_memory,
                                                            &ReceiveWorld::deregister_memory,
                                                            &ReceiveWorld::replace_vcq,
                                                            &ReceiveWorld::configure_gates,
                                                            &ReceiveWorld::receive_acknowledgement};

ReceiveWorld::ReceiveWorld(FuzzInput& input)
    : input_(input), core_(fuzz_settings(), kSources[0], /*user=*/7, Counters(counters_)) {
  core_.wires = {&loopback_, &wire_};
  core_.clock = read_clock;
  core_.lose_peer = lose_peer;
  core_.clock_context = &now_ns_;
  open_interface();
  open_tofu();
}

ReceiveWorld::~ReceiveWorld() {
  for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
    if (core_.interface(index) != nullptr) close_interface_on_duty(core_, index);
  }
  CoreCensus::check(core_);
  core_.outstanding.for_each([](std::uint32_t, const OutstandingOperation& operation) {
    PORTOFU_ASSERT(operation.interface_index == kTofuInterface || operation.interface_index == kForsaken);
  });
  for (auto& [key, peer] : core_.peers) {
    leave_peer(core_, *peer);
    PORTOFU_ASSERT(peer->requests.waiting.empty() && peer->answers.waiting.empty() && peer->outstanding == 0);
    PORTOFU_ASSERT(peer->held_notices.empty() && peer->gets_under_way == 0);
  }
  // Also what the loss of a peer has set free: barriers that fail.
  core_.fired.clear_and_dispose([](TriggeredOperation* operation) {
    PORTOFU_ASSERT(operation->descriptor.interface_index == kTofuInterface);
    delete operation;
  });
  PORTOFU_ASSERT(core_.outstanding.open_count() == 0);
  PORTOFU_ASSERT(wire_.open_links() + loopback_.open_links() == 0);
  memory_.check();
}

void ReceiveWorld::step() {
  (this->*kActs[input_.below(kActs.size())])();
  finish_late_messages(core_);  // As at the end of a burst.
  notice_sent();
}

void ReceiveWorld::check() { CoreCensus::check(core_); }

/// Remembers what we have asked for; what we send to ourselves arrives.
void ReceiveWorld::notice_sent() {
  for (FakeWire* wire : {&loopback_, &wire_}) {
    for (FakePacket& packet : std::exchange(wire->sent, {})) {
      const PacketHeader& header = packet.header;
      PORTOFU_ASSERT(header.job_key == core_.settings.job_key && header.uid == core_.uid);
      if ((header.flags & kFlagAnswerWanted) != 0) {
        const bool wants_data = header.type != PacketType::kPut && header.type != PacketType::kAtomic &&
                                header.type != PacketType::kTofuPut;
        asked_.push_back({packet.process, header.operation_id, header.length, wants_data});
      }
      if (wire == &loopback_) loopback_.arrive(std::move(packet));
    }
  }
  constexpr std::size_t kRemembered = 64;
  if (asked_.size() > kRemembered) asked_.erase(asked_.begin(), asked_.end() - kRemembered);
}

void ReceiveWorld::come_to_rest() {
  wire_.connect_result = loopback_.connect_result = ConnectResult::kConnected;
  for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
    if (core_.interface(index) == nullptr) continue;
    Interface& ni = *core_.interface(index);
    ni.cts.for_each([&ni](Handle, CountingEvent& counter) { disarm_operations(ni, counter); });
  }
  run_until_quiet();
  for (const ProcessId peer : kSources) {
    close_source(core_, wire_.context_of(peer)->engines);
    close_source(core_, loopback_.context_of(peer)->engines);
    lose_peer(core_, core_.peer(peer));
  }
  run_until_quiet();
  check();
  for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
    if (core_.interface(index) != nullptr) check_rest(*core_.interface(index));
  }
  check_tofu();
}

/// What is on its way to and from ourselves comes to its end; peers say nothing more.
void ReceiveWorld::run_until_quiet() {
  constexpr int kMostCycles = 10'000;
  int cycles = 0;
  wire_.room = loopback_.room = FakeWire::kPlentyOfRoom;
  for (int quiet = 0; quiet < 3; ++quiet) {
    if (run_cycle_on_duty(core_) > 0) quiet = 0;
    notice_sent();
    drain_queues();
    PORTOFU_ASSERT(++cycles < kMostCycles);
  }
}

void ReceiveWorld::drain_queues() {
  for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
    if (core_.interface(index) == nullptr) continue;
    core_.interface(index)->eqs.for_each([](Handle, EventQueue& queue) {
      while (!queue.empty()) queue.remove_oldest_on_duty();
    });
  }
}

/// Nothing is under way any more: what is left is what the application has put there, and headers that nobody took.
void ReceiveWorld::check_rest(Interface& ni) {
  PORTOFU_ASSERT(ni.outstanding == 0 && ni.triggered_count == 0);
  for (std::uint32_t pt_index = 0; pt_index < kPortals; ++pt_index) {
    PortalTableEntry* portal = ni.portal(pt_index);
    if (portal == nullptr) continue;
    PORTOFU_ASSERT(portal->in_progress == 0);
    EntryRequest everything;
    everything.criteria = kAnyMessage;
    everything.pt_index = static_cast<std::uint16_t>(pt_index);
    search_entries(core_, ni, everything, SearchOperation::kDelete);
    PORTOFU_ASSERT(portal->unexpected.empty());
  }
  drain_queues();
  PORTOFU_ASSERT(ni.unexpected_count == 0);
  ni.mds.for_each([](Handle, const MemoryDescriptor& md) { PORTOFU_ASSERT(md.pending == 0 && !md.released); });
  ni.eqs.for_each([](Handle, const EventQueue& queue) {
    PORTOFU_ASSERT(queue.has_room_on_duty(static_cast<std::uint32_t>(queue.capacity())));
  });
  for (const Handle handle : std::exchange(entries_, {})) {
    if (handle_interface(handle) != ni.index) {
      entries_.push_back(handle);
      continue;
    }
    const bool live = ni.entries.find(handle) != nullptr;
    PORTOFU_ASSERT((unlink_entry(core_, ni, handle) == Status::kOk) == live);
  }
  PORTOFU_ASSERT(ni.entries.live_count() == 0);
}

}  // namespace portofu::fuzz
