#pragma once
// What the tests of initiator, target and loop share: one engine core over two played wires, one matching interface
// with an event queue, a counter and a portal table entry, a peer that says what the test says, and a clock that the
// test moves. When a test ends everything is closed, and what must be nothing by then is checked to be nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "engine/core/core.h"
#include "engine/target/list_entries.h"
#include "tests/unit/support/fake_wire.h"

namespace portofu {

/// Options of an entry that takes both.
inline constexpr std::uint32_t kPutsAndGets = kEntryOpPut | kEntryOpGet;

/// Names in the messages of GoogleTest.
void PrintTo(EventKind kind, std::ostream* out);
void PrintTo(NiFail fail, std::ostream* out);
void PrintTo(ListKind list, std::ostream* out);
void PrintTo(PacketType type, std::ostream* out);
void PrintTo(Status status, std::ostream* out);
void PrintTo(const FakePacket& packet, std::ostream* out);

/// Index of the logical interfaces.
inline constexpr std::uint32_t kNonMatchingPhysical = 0;
inline constexpr std::uint32_t kMatchingPhysical = 1;
inline constexpr std::uint32_t kMatchingLogical = 3;

/// The byte at `position` of any message of these tests.
constexpr std::byte pattern(std::uint64_t position) { return static_cast<std::byte>((position * 7 + 3) % 251); }
std::vector<std::byte> pattern_bytes(std::uint64_t from, std::uint64_t bytes);

/// True if memory holds the pattern from position `from` on.
testing::AssertionResult holds_pattern(const std::byte* memory, std::uint64_t bytes, std::uint64_t from = 0);

/// True if memory holds only zeros.
testing::AssertionResult is_untouched(const std::byte* memory, std::uint64_t bytes);

class CoreTest : public testing::Test {
 protected:
  static constexpr ProcessId kSelf{0x0a000001, 1};
  static constexpr ProcessId kPeer{0x0a000001, 2};
  static constexpr ProcessId kOther{0x0a000001, 3};
  static constexpr std::uint32_t kUid = 1000;      ///< Ours.
  static constexpr std::uint32_t kPeerUid = 1001;  ///< What the peer's packets carry.
  static constexpr std::uint32_t kJobKey = 77;
  static constexpr std::uint32_t kWindow = 4;
  static constexpr std::uint16_t kPt = 5;
  static constexpr std::uint64_t kBits = 0x1234;
  static constexpr std::uint32_t kPacketBytes = FakeWire::kMaxPayloadBytes;
  static constexpr std::uint64_t kMemoryBytes = 4 * kPacketBytes;

  CoreTest();
  ~CoreTest() override;

  /// Objects of an interface. 0 for an event queue or counter is none.
  Interface& open_interface(std::uint32_t index, const Limits& limits = kDefaultLimits);
  void close_interface(std::uint32_t index);
  Handle make_eq(Interface& on, std::uint64_t count = 64);
  Handle make_ct(Interface& on);
  MemoryDescriptor& make_md(Interface& on, void* start, std::uint64_t length, std::uint32_t options = 0);
  PortalTableEntry& make_portal(Interface& on, std::uint16_t pt_index, Handle eq_handle, bool flow_control = false);
  /// What PtlMDRelease does.
  void release_md(Interface& on, Handle md_handle);

  /// An entry for `kBits` over `memory`, whose options the test may change before it is appended.
  EntryRequest entry(std::uint32_t options = kEntryOpPut | kEntryOpGet, ListKind list = ListKind::kPriority);
  /// Appends to `ni`; the test ends if that is refused.
  Handle append(EntryRequest request);

  /// Appends an entry at a portal table entry of its own, kPt + 1, whose answers may be late.
  void append_late();

  /// Requests of the peer to `ni`, entry kPt, kBits. The payload is as long as fits into one packet.
  PacketHeader put_header(std::uint64_t length, std::uint32_t operation_id = 0) const;
  PacketHeader get_header(std::uint64_t length, std::uint32_t operation_id) const;
  PacketHeader atomic_header(PacketType type, std::uint8_t operation, std::uint8_t datatype,
                             std::uint64_t length) const;
  /// More of a request, or with kFlagAnswerStream of an answer.
  PacketHeader data_header(std::uint64_t offset, std::uint32_t payload_bytes, std::uint8_t flags = 0) const;
  /// An answer of the peer to our operation.
  PacketHeader answer_header(std::uint32_t operation_id, std::uint64_t length, std::uint32_t payload_bytes = 0) const;

  /// Hands a packet to the engine. Without a payload it carries the pattern from where it lies in its message.
  void receive(const PacketHeader& header, ProcessId source = kPeer);
  void receive(const PacketHeader& header, const std::vector<std::byte>& payload, ProcessId source = kPeer);
  void receive(const PacketHeader& header, Payload payload, ProcessId source = kPeer);

  /// A put of the peer as a whole, in as many packets as it takes.
  void receive_put(std::uint64_t length, std::uint32_t operation_id = 0);

  /// A descriptor of ours, for `md` over `memory`, to the peer.
  Descriptor descriptor(PacketType kind, std::uint64_t length);

  /// Takes the oldest event; the test fails, and gets an empty one, if there is none.
  Event next_event(Handle eq_handle);
  Event next_event() { return next_event(eq); }
  /// Takes all events and says their kinds.
  std::vector<EventKind> kinds(Handle eq_handle);
  std::vector<EventKind> kinds() { return kinds(eq); }

  std::uint64_t counted(Counter counter) const { return core.counters.get(counter); }
  std::int64_t status(StatusRegister which) const {
    return ni.status_registers[static_cast<std::size_t>(which)].load();
  }
  std::uint64_t successes() const { return ni.cts.find(ct)->success(); }
  std::uint64_t failures() const { return ni.cts.find(ct)->failure(); }
  Peer& peer() { return core.peer(kPeer); }

  /// The header of the oldest packet that we sent; it is removed.
  PacketHeader next_sent() { return wire.take().header; }

  /// Refused packets are counted, and nothing else happens.
  std::uint64_t refused() const { return counted(Counter::kPacketsRefusedMalformed); }

  std::uint64_t now_ns = 1;
  FakeWire loopback;  ///< Reaches kSelf.
  FakeWire wire;      ///< Reaches all others.
  CountersShared counters{};
  Settings settings;
  Core core;
  std::vector<std::byte> memory;  ///< kMemoryBytes zeros.
  Interface& ni;                  ///< kMatchingPhysical.
  Handle eq;
  Handle ct;
  PortalTableEntry& portal;  ///< kPt, logs to `eq`.

 private:
  static Settings test_settings();
  static std::uint64_t read_clock(void* context) { return *static_cast<std::uint64_t*>(context); }
};

}  // namespace portofu
