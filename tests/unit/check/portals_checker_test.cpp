// What the tests of processes (tests/process/check_test.cpp) cannot bring about at will: orders, and counts.

#include "engine/check/portals_checker.h"

#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/found.h"

namespace portofu {
namespace {

class PortalsCheckerTest : public CoreTest {
 protected:
  /// Begins a put of 8 bytes from the offset.
  void start(MemoryDescriptor& md, std::uint64_t offset, void* user_ptr = nullptr, AckRequest ack = AckRequest::kNone) {
    Descriptor d;
    d.type = PacketType::kPut;
    d.length = 8;
    d.portals.md_handle = md.handle;
    d.portals.local_offset = offset;
    d.portals.user_ptr = user_ptr;
    d.portals.ack_req = ack;
    checker.starts(ni, md, d);
  }
  void post_event(EventKind kind, void* user_ptr = nullptr) {
    post_new_event(core, ni, eq, [&](Event& event) {
      event.type = kind;
      event.user_ptr = user_ptr;
      event.start = memory.data();
      event.mlength = 8;
      event.initiator = initiator;
      event.pt_index = kPt;
    });
  }
  void read_event() {
    checker.reads_event(core, *ni.eqs.find(eq));
    ni.eqs.find(eq)->remove_oldest_on_duty();
  }
  MemoryDescriptor& md_with(std::uint32_t options, Handle eq_handle, Handle ct_handle) {
    MemoryDescriptor& md = make_md(ni, memory.data(), memory.size(), options);
    md.eq_handle = eq_handle;
    md.ct_handle = ct_handle;
    return md;
  }

  Found found;
  PortalsChecker checker{found.log};
  ProcessId initiator = kPeer;
  int one = 1;
  int two = 2;
};

TEST_F(PortalsCheckerTest, Source__may_change_when_its_event_is_read) {
  MemoryDescriptor& md = md_with(0, eq, 0);
  start(md, 0, &one);
  start(md, 8, &two);
  post_event(EventKind::kSend, &two);
  read_event();
  memory[8] = std::byte{1};
  post_event(EventKind::kSend, &one);
  read_event();
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(PortalsCheckerTest, Source__that_changes_before_is_told_by_its_own_event) {
  MemoryDescriptor& md = md_with(0, eq, 0);
  start(md, 0, &one);
  start(md, 8, &two);
  memory[1] = std::byte{4};
  post_event(EventKind::kSend, &two);
  read_event();
  EXPECT_TRUE(found.is_empty()) << found.text();
  post_event(EventKind::kSend, &one);
  read_event();
  EXPECT_TRUE(found.has("\"kind\":\"source_changed\"")) << found.text();
  EXPECT_TRUE(found.has("\"byte\":1,\"bit\":2")) << found.text();
}

TEST_F(PortalsCheckerTest, Ack__frees_the_source_as_SEND_does) {
  MemoryDescriptor& md = md_with(0, eq, 0);
  start(md, 0, &one, AckRequest::kFull);
  post_event(EventKind::kAck, &one);
  read_event();
  memory[0] = std::byte{1};
  post_event(EventKind::kSend, &one);
  read_event();
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(PortalsCheckerTest, Counter__frees_what_it_has_counted) {
  MemoryDescriptor& md = md_with(kMdEventCtSend, 0, ct);
  const CountingEvent* counter = ni.cts.find(ct);
  start(md, 0);
  start(md, 8);
  memory[8] ^= std::byte{1};
  checker.reads_count(counter, 1, 0);
  EXPECT_TRUE(found.is_empty()) << "the second is not known to be over: " << found.text();
  memory[0] ^= std::byte{1};
  checker.reads_count(counter, 2, 0);
  EXPECT_TRUE(found.has("bytes 8 to 15")) << found.text();
  EXPECT_FALSE(found.has("bytes 0 to 7")) << found.text();
}

// Only SEND, ACK and their counts tell that a source is free (2.6), and this program has read none of them.
TEST_F(PortalsCheckerTest, Source_whose_count_is_never_read__is_judged_when_it_cannot_be_read_any_more) {
  MemoryDescriptor& unchanged = md_with(kMdEventCtSend, 0, ct);
  start(unchanged, 0);
  checker.releases(unchanged);
  EXPECT_TRUE(found.is_empty()) << found.text();
  MemoryDescriptor& md = md_with(kMdEventCtSend, 0, ct);
  Interface& other = open_interface(kMatchingLogical);
  start(md, 0);
  memory[0] ^= std::byte{1};
  checker.closes(other, "PtlNIFini");
  EXPECT_FALSE(found.has("source_changed")) << "of another interface: " << found.text();
  checker.frees(ni, ct, *ni.cts.find(ct));
  EXPECT_TRUE(found.has("bytes 0 to 7")) << found.text();
  start(md, 16);
  memory[16] ^= std::byte{1};
  checker.releases(md);
  EXPECT_TRUE(found.has("bytes 16 to 23")) << found.text();
  start(md_with(kMdEventCtSend, 0, ct), 24);
  memory[24] ^= std::byte{1};
  checker.closes(ni, "PtlNIFini");
  EXPECT_TRUE(found.has("bytes 24 to 31")) << found.text();
}

// 3.15.6, 3.15.7: the reply of a fetching operation counts at the memory descriptor that it is fetched into.
TEST_F(PortalsCheckerTest, Count_of_a_reply__frees_the_source_of_a_fetching_operation_and_what_it_has_fetched) {
  MemoryDescriptor& from = md_with(kMdEventSendDisable, 0, 0);
  MemoryDescriptor& to = md_with(kMdEventCtReply | kMdEventCtSend, 0, ct);
  std::uint64_t offset = 0;
  for (const PacketType type : {PacketType::kFetchAtomic, PacketType::kSwap}) {
    Descriptor d;
    d.type = type;
    d.length = 8;
    d.portals.md_handle = from.handle;
    d.portals.get_md_handle = to.handle;
    d.portals.local_offset = offset;
    d.portals.local_get_offset = offset + 8;
    const std::string fetched = "bytes " + std::to_string(offset + 8) + " to " + std::to_string(offset + 15);
    const std::string source = "bytes " + std::to_string(offset) + " to " + std::to_string(offset + 7);
    checker.starts(ni, from, d);
    checker.reads_count(ni.cts.find(ct), UINT64_MAX, 0);
    memory[offset] ^= std::byte{1};
    start(to, offset + 8);
    EXPECT_FALSE(found.has(fetched)) << "it has been read: " << found.text();
    checker.starts(ni, from, d);
    start(to, offset + 8);
    EXPECT_TRUE(found.has(fetched)) << "it has not: " << found.text();
    EXPECT_FALSE(found.has(source)) << found.text();
    memory[offset] ^= std::byte{1};
    checker.reads_count(ni.cts.find(ct), UINT64_MAX, 0);
    EXPECT_TRUE(found.has(source)) << found.text();
    offset += 32;
  }
}

// The target may cut a message, and then its ACK counts fewer bytes.
TEST_F(PortalsCheckerTest, Counter_of_bytes__frees_with_the_first_of_them) {
  MemoryDescriptor& md = md_with(kMdEventCtSend | kMdEventCtBytes, 0, ct);
  start(md, 0);
  ni.cts.find(ct)->add_success_on_duty(4, core.fired);
  checker.reads_count(ni.cts.find(ct), 4, 0);
  memory[0] ^= std::byte{1};
  checker.reads_count(ni.cts.find(ct), 12, 0);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(PortalsCheckerTest, Volatile_source__is_free_at_once) {
  MemoryDescriptor& md = md_with(kMdVolatile, eq, 0);
  start(md, 0, &one);
  memory[0] = std::byte{1};
  post_event(EventKind::kSend, &one);
  read_event();
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(PortalsCheckerTest, Transfer_that_tells_nobody__is_not_judged) {
  MemoryDescriptor& md = md_with(kMdEventSendDisable, eq, 0);
  start(md, 0, &one);
  memory[0] ^= std::byte{1};
  checker.releases(md);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(PortalsCheckerTest, Operands_that_the_reply_overwrites__are_told_as_such) {
  MemoryDescriptor& md = md_with(0, eq, 0);
  Descriptor d;
  d.type = PacketType::kFetchAtomic;
  d.length = 8;
  d.portals.md_handle = d.portals.get_md_handle = md.handle;
  d.portals.local_get_offset = 8;
  checker.starts(ni, md, d);
  EXPECT_TRUE(found.is_empty()) << found.text();
  d.portals.local_get_offset = 7;
  checker.starts(ni, md, d);
  EXPECT_TRUE(found.has("\"kind\":\"buffers_overlap\"")) << found.text();
}

TEST_F(PortalsCheckerTest, Count_of_an_entry__tells_of_its_messages_as_events_do) {
  const CountingEvent* counter = ni.cts.find(ct);
  checker.appends(ni, kPt, false, ct);
  post_event(EventKind::kPut);
  checker.look(core);
  checker.reads_count(counter, 0, 0);
  checker.reads_count(counter, 1, 0);
  memory[0] = std::byte{1};
  read_event();
  EXPECT_TRUE(found.is_empty()) << found.text();
  post_event(EventKind::kPut);
  checker.look(core);
  memory[1] = std::byte{1};
  checker.reads_count(counter, 2, 0);
  EXPECT_TRUE(found.has("\"kind\":\"target_changed\"")) << found.text();
  read_event();
}

TEST_F(PortalsCheckerTest, Equal_data_of_two_initiators__has_no_order) {
  post_event(EventKind::kPut);
  checker.look(core);
  initiator = kOther;
  post_event(EventKind::kPut);
  checker.look(core);
  EXPECT_TRUE(found.is_empty()) << found.text();
  for (int i = 0; i < 2; ++i) read_event();
}

TEST_F(PortalsCheckerTest, Two_messages_of_one_initiator__are_in_order) {
  for (int i = 0; i < 2; ++i) post_event(EventKind::kPut);
  checker.look(core);
  EXPECT_TRUE(found.is_empty()) << found.text();
  initiator = kOther;
  memory[0] = std::byte{1};
  post_event(EventKind::kPut);
  checker.look(core);
  EXPECT_TRUE(found.has("\"kind\":\"data_overwritten\"")) << found.text();
  for (int i = 0; i < 3; ++i) read_event();
  EXPECT_FALSE(found.has("target_changed")) << found.text();
}

TEST_F(PortalsCheckerTest, Second_initiator__may_have_heard_of_the_ack_of_the_first) {
  ListEntry entry;
  Arrival arrival;
  arrival.entry = &entry;
  arrival.header.type = PacketType::kPut;
  const auto overwrite = [&](std::uint8_t flags, std::uint32_t options) {
    arrival.header.flags = flags;
    entry.options = options;
    initiator = kPeer;
    checker.takes(arrival);
    post_event(EventKind::kPut);
    checker.look(core);
    initiator = kOther;
    memory[0] ^= std::byte{1};
    arrival.header.flags = 0;
    checker.takes(arrival);
    post_event(EventKind::kPut);
    checker.look(core);
    for (int i = 0; i < 2; ++i) read_event();
  };
  overwrite(kFlagAnswerWanted, 0);
  EXPECT_TRUE(found.is_empty()) << found.text();
  overwrite(kFlagAnswerWanted, kEntryAckDisable);
  EXPECT_TRUE(found.has("\"kind\":\"data_overwritten\"")) << found.text();
}

TEST_F(PortalsCheckerTest, Memory_that_a_get_fills__may_not_be_sent_by_what_tells_nobody) {
  Descriptor get;
  get.type = PacketType::kGet;
  get.length = 8;
  get.portals.md_handle = md_with(0, eq, 0).handle;
  checker.starts(ni, *ni.mds.find(get.portals.md_handle), get);
  start(md_with(0, 0, 0), 8);
  EXPECT_TRUE(found.is_empty()) << found.text();
  start(md_with(0, 0, 0), 7);
  EXPECT_TRUE(found.has("\"kind\":\"buffer_used_early\"")) << found.text();
}

TEST_F(PortalsCheckerTest, Lost_events__end_the_looks_at_their_memory) {
  const std::uint64_t room = ni.eqs.find(eq)->capacity();
  for (std::uint64_t i = 0; i < room; ++i) {
    post_event(EventKind::kPut);
    checker.look(core);
  }
  memory[0] = std::byte{1};
  read_event();
  EXPECT_FALSE(found.has("target_changed")) << found.text();
  EXPECT_TRUE(found.has("event_queue_nearly_full")) << found.text();
  while (!ni.eqs.find(eq)->empty()) ni.eqs.find(eq)->remove_oldest_on_duty();
}

TEST_F(PortalsCheckerTest, Scattered_entries__are_not_looked_at) {
  checker.appends(ni, 0, true, 0);
  post_event(EventKind::kPut);
  checker.look(core);
  memory[0] = std::byte{1};
  read_event();
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(PortalsCheckerTest, Generous_queue__is_overfull_beyond_what_was_asked_for) {
  const Handle large = make_eq(ni, 512);
  EventQueue& queue = *ni.eqs.find(large);
  for (int i = 0; i < 513; ++i) queue.append_on_duty() = Event();
  checker.reads_event(core, queue);
  EXPECT_TRUE(found.has("\"kind\":\"event_queue_overfull\"")) << found.text();
  EXPECT_TRUE(found.has("event queue for 512 events")) << found.text();
  while (!queue.empty()) queue.remove_oldest_on_duty();
}

}  // namespace
}  // namespace portofu
