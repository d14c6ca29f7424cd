#include "tests/unit/support/core_fixture.h"

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>

#include "engine/run/death.h"
#include "engine/run/dispatch.h"
#include "engine/target/close_interface.h"

namespace portofu {

void PrintTo(EventKind kind, std::ostream* out) {
  constexpr std::array<const char*, 17> kNames{
      "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
      "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
      "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH",       "ERROR"};
  *out << kNames.at(static_cast<std::size_t>(kind));
}

void PrintTo(NiFail fail, std::ostream* out) {
  constexpr std::array<const char*, kNiFailCount> kNames{
      "OK", "UNDELIVERABLE", "PT_DISABLED", "DROPPED", "PERM_VIOLATION", "OP_VIOLATION", "SEGV", "NO_MATCH"};
  *out << kNames.at(static_cast<std::size_t>(fail));
}

void PrintTo(ListKind list, std::ostream* out) { *out << (list == ListKind::kPriority ? "priority" : "overflow"); }
void PrintTo(PacketType type, std::ostream* out) { *out << packet_type_name(type); }
void PrintTo(Status status, std::ostream* out) {
  constexpr std::array<const char*, 5> kNames{"ok", "arg_invalid", "no_space", "in_use", "list_too_long"};
  *out << kNames.at(static_cast<std::size_t>(status));
}

void PrintTo(const FakePacket& packet, std::ostream* out) {
  *out << packet_type_name(packet.header.type) << " of " << packet.payload.size() << " bytes";
}

std::vector<std::byte> pattern_bytes(std::uint64_t from, std::uint64_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) made[i] = pattern(from + i);
  return made;
}

testing::AssertionResult holds_pattern(const std::byte* memory, std::uint64_t bytes, std::uint64_t from) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (memory[i] != pattern(from + i)) return testing::AssertionFailure() << "byte " << i << " is wrong";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult is_untouched(const std::byte* memory, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (memory[i] != std::byte{0}) return testing::AssertionFailure() << "byte " << i << " was written";
  }
  return testing::AssertionSuccess();
}

Settings CoreTest::test_settings() {
  Settings made;
  made.job_key = kJobKey;
  made.window_operations = kWindow;
  return made;
}

CoreTest::CoreTest()
    : settings(test_settings()),
      core(settings, kSelf, kUid, Counters(counters)),
      memory(kMemoryBytes),
      ni(open_interface(kMatchingPhysical)),
      eq(make_eq(ni)),
      ct(make_ct(ni)),
      portal(make_portal(ni, kPt, eq)) {
  core.wires = {&loopback, &wire};
  core.clock = read_clock;
  core.lose_peer = lose_peer;
  core.clock_context = &now_ns;
}

CoreTest::~CoreTest() {
  for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
    if (core.interface(index) != nullptr) close_interface(index);
  }
  core.outstanding.for_each([](std::uint32_t, const OutstandingOperation& operation) {
    EXPECT_EQ(operation.interface_index, kForsaken) << "its interface is closed";
  });
  for (auto& [key, known] : core.peers) {
    lose_peer(core, *known);
    EXPECT_EQ(known->outstanding, 0u);
    EXPECT_TRUE(known->requests.waiting.empty());
    EXPECT_TRUE(known->answers.waiting.empty());
    EXPECT_TRUE(known->requests.lent.empty());
    EXPECT_TRUE(known->answers.lent.empty());
  }
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_TRUE(core.fired.empty());
  EXPECT_EQ(wire.open_links() + loopback.open_links(), 0);
}

Interface& CoreTest::open_interface(std::uint32_t index, const Limits& limits) {
  core.interfaces[index] = std::make_unique<Interface>(index, limits);
  return *core.interfaces[index];
}

void CoreTest::close_interface(std::uint32_t index) { close_interface_on_duty(core, index); }

Handle CoreTest::make_eq(Interface& on, std::uint64_t count) {
  Handle handle = 0;
  EventQueue* queue = on.eqs.allocate(&handle);
  PORTOFU_ASSERT(queue != nullptr && queue->open(count));
  return handle;
}

Handle CoreTest::make_ct(Interface& on) {
  Handle handle = 0;
  CountingEvent* counter = on.cts.allocate(&handle);
  PORTOFU_ASSERT(counter != nullptr);
  counter->reset_on_duty();
  return handle;
}

MemoryDescriptor& CoreTest::make_md(Interface& on, void* start, std::uint64_t length, std::uint32_t options) {
  Handle handle = 0;
  MemoryDescriptor* md = on.mds.allocate(&handle);
  PORTOFU_ASSERT(md != nullptr);
  MemorySegment segment;
  segment.describe(start, length);
  *md = {std::move(segment),
         options,
         handle,
         on.index == kMatchingPhysical ? eq : 0,
         on.index == kMatchingPhysical ? ct : 0,
         0,
         false,
         on.mds.use_of(handle)};
  return *md;
}

void CoreTest::release_md(Interface& on, Handle md_handle) {
  MemoryDescriptor& md = *on.mds.find(md_handle);
  md.released = true;
  ++md.pending;
  end_operation(on, md);
}

PortalTableEntry& CoreTest::make_portal(Interface& on, std::uint16_t pt_index, Handle eq_handle, bool flow_control) {
  on.portal_table[pt_index] = std::make_unique<PortalTableEntry>();
  PortalTableEntry& made = *on.portal_table[pt_index];
  made.eq_handle = eq_handle;
  made.flow_control = flow_control;
  if (flow_control) PORTOFU_ASSERT(on.eqs.find(eq_handle)->reserve_on_duty());
  return made;
}

EntryRequest CoreTest::entry(std::uint32_t options, ListKind list) {
  EntryRequest request;
  request.segment.describe(memory.data(), memory.size());
  request.criteria = {kBits, 0, {}, true, true};
  request.options = options;
  request.ct_handle = ct;
  request.pt_index = kPt;
  request.list = list;
  return request;
}

Handle CoreTest::append(EntryRequest request) {
  Handle handle = 0;
  request.options |= kEntryEventLinkDisable;
  PORTOFU_ASSERT(append_entry(core, ni, std::move(request), &handle) == Status::kOk);
  return handle;
}

void CoreTest::append_late() {
  make_portal(ni, kPt + 1, 0);
  EntryRequest late = entry(
      kEntryOpPut | kEntryAnswersLate | kEntryUnexpectedHdrDisable | kEntryEventCommDisable | kEntryEventLinkDisable,
      ListKind::kOverflow);
  late.pt_index = kPt + 1;
  append(std::move(late));
}

PacketHeader CoreTest::put_header(std::uint64_t length, std::uint32_t operation_id) const {
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.flags = operation_id != 0 ? kFlagAnswerWanted : 0;
  header.interface_index = kMatchingPhysical;
  header.pt_index = kPt;
  header.payload_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kPacketBytes));
  header.operation_id = operation_id;
  header.match_bits = kBits;
  header.hdr_data = 0xfeed;
  header.length = length;
  header.uid = kPeerUid;
  header.job_key = kJobKey;
  return header;
}

PacketHeader CoreTest::get_header(std::uint64_t length, std::uint32_t operation_id) const {
  PacketHeader header = put_header(length, operation_id);
  header.type = PacketType::kGet;
  header.flags = kFlagAnswerWanted;
  header.hdr_data = 0;
  header.payload_bytes = 0;
  return header;
}

PacketHeader CoreTest::atomic_header(PacketType type, std::uint8_t operation, std::uint8_t datatype,
                                     std::uint64_t length) const {
  PacketHeader header = put_header(length, 9);
  header.type = type;
  header.atomic_operation = operation;
  header.atomic_type = datatype;
  return header;
}

PacketHeader CoreTest::data_header(std::uint64_t offset, std::uint32_t payload_bytes, std::uint8_t flags) const {
  PacketHeader header{};
  header.type = PacketType::kData;
  header.flags = flags;
  header.payload_bytes = payload_bytes;
  header.remote_offset = offset;
  header.uid = kPeerUid;
  header.job_key = kJobKey;
  return header;
}

PacketHeader CoreTest::answer_header(std::uint32_t operation_id, std::uint64_t length,
                                     std::uint32_t payload_bytes) const {
  PacketHeader header{};
  header.type = PacketType::kAnswer;
  header.operation_id = operation_id;
  header.length = length;
  header.payload_bytes = payload_bytes;
  header.uid = kPeerUid;
  header.job_key = kJobKey;
  return header;
}

void CoreTest::receive(const PacketHeader& header, ProcessId source) {
  const std::uint64_t from = header.type == PacketType::kData ? header.remote_offset : 0;
  receive(header, pattern_bytes(from, header.payload_bytes), source);
}

void CoreTest::receive(const PacketHeader& header, const std::vector<std::byte>& payload, ProcessId source) {
  receive(header, Payload(payload.data()), source);
}

void CoreTest::receive(const PacketHeader& header, Payload payload, ProcessId source) {
  Packet packet;
  packet.source = source;
  packet.header = header;
  packet.payload = payload;
  packet.source_context = wire.context_of(source);
  receive_packet(core, packet);
}

void CoreTest::receive_put(std::uint64_t length, std::uint32_t operation_id) {
  receive(put_header(length, operation_id));
  for (std::uint64_t at = kPacketBytes; at < length; at += kPacketBytes) {
    receive(data_header(at, static_cast<std::uint32_t>(std::min<std::uint64_t>(length - at, kPacketBytes))));
  }
}

Descriptor CoreTest::descriptor(PacketType kind, std::uint64_t length) {
  Descriptor made;
  made.type = kind;
  made.interface_index = kMatchingPhysical;
  made.pt_index = kPt;
  made.portals.target = kPeer;
  made.length = length;
  made.match_bits = kBits;
  made.hdr_data = 0xfeed;
  return made;
}

Event CoreTest::next_event(Handle eq_handle) {
  EventQueue& queue = *core.interface(handle_interface(eq_handle))->eqs.find(eq_handle);
  if (queue.empty()) {
    ADD_FAILURE() << "an event is missing";
    return {};
  }
  const Event event = queue.oldest_on_duty();
  queue.remove_oldest_on_duty();
  return event;
}

std::vector<EventKind> CoreTest::kinds(Handle eq_handle) {
  std::vector<EventKind> found;
  EventQueue& queue = *core.interface(handle_interface(eq_handle))->eqs.find(eq_handle);
  for (; !queue.empty(); queue.remove_oldest_on_duty()) found.push_back(queue.oldest_on_duty().type);
  return found;
}

}  // namespace portofu
