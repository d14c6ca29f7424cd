// Which entries peers may use themselves, when they are told so, and how an entry is taken back.

#include "engine/target/published_entry.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/atomic/atomic_unit.h"
#include "engine/segment/shared_heap.h"
#include "engine/target/flow_control.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

/// What a peer on the node sees, and does.
struct SeenDirectory final : NodeDirectory {
  ClaimResult claim(std::uint64_t) override { return ClaimResult::kClaimed; }
  void release(std::uint64_t) override {}
  FindResult find(std::uint64_t, NameOwner*) override { return FindResult::kNobody; }
  bool publish(const PublishedRegion& region) override {
    if (!full) regions[region.key] = region;
    return !full;
  }
  void withdraw(std::uint64_t key) override { regions.erase(key); }
  bool is_visited(std::uint64_t key) override {
    EXPECT_FALSE(regions.contains(key)) << "peers could begin behind this look";
    ++looks;
    if (looks_until_gone == 0) return visited == key;
    if (--looks_until_gone == 0) visited = 0;
    return visited == key;
  }

  std::map<std::uint64_t, PublishedRegion> regions;
  bool full = false;
  std::uint64_t visited = 0;
  int looks = 0;
  int looks_until_gone = 0;  ///< Then the visitor leaves; 0: it stays.
};

constexpr std::uint32_t kSilent = kEntryOpPut | kEntryOpGet | kEntryEventCommDisable;
constexpr std::uint64_t kBytes = 1000;
constexpr std::uint64_t kKey = entry_key(kNonMatchingPhysical, 5, 0);

class PublishedEntryTest : public CoreTest {
 protected:
  PublishedEntryTest() : open(open_interface(kNonMatchingPhysical)) {
    process_heap().open("/dev/shm", 16 << 20);
    block = static_cast<std::byte*>(process_heap().allocate(kBytes, 64));
    PORTOFU_ASSERT(block != nullptr);
    std::fill_n(block, kBytes, std::byte{0});
    core.directory = &directory;
    eq_handle = make_eq(open);
    ct_handle = make_ct(open);
    pt = &make_portal(open, kPt, eq_handle);
  }
  ~PublishedEntryTest() override {
    for (std::uint32_t index : {kNonMatchingPhysical, kMatchingPhysical}) {
      if (core.interface(index) != nullptr) close_interface(index);
    }
    process_heap().free(block);
  }

  EntryRequest silent(std::uint32_t more_options = 0) {
    EntryRequest request;
    request.segment.describe(block, kBytes);
    request.options = kSilent | kEntryEventLinkDisable | more_options;
    request.pt_index = kPt;
    return request;
  }
  Handle append(EntryRequest request) {
    Handle handle = 0;
    EXPECT_EQ(append_entry(core, open, std::move(request), &handle), Status::kOk);
    return handle;
  }

  PacketHeader header(PacketType type, std::uint64_t length, std::uint32_t operation_id) const {
    PacketHeader made = type == PacketType::kGet ? get_header(length, operation_id) : put_header(length, operation_id);
    made.interface_index = kNonMatchingPhysical;
    made.match_bits = 0;
    return made;
  }

  /// A put of the peer that is answered. @return whether the answer says that the entry is published
  bool put_tells(std::uint64_t length = 8) {
    receive(header(PacketType::kPut, length, 7));
    return tells();
  }
  bool tells() {
    const PacketHeader answer = next_sent();
    EXPECT_EQ(answer.type, PacketType::kAnswer);
    if ((answer.flags & kFlagPublished) == 0) return false;
    EXPECT_EQ(answer.pt_index, kPt);
    EXPECT_EQ(answer.match_bits, 0u);
    EXPECT_TRUE(directory.regions.contains(kKey));
    return true;
  }
  bool is_published() const { return directory.regions.contains(kKey); }

  Interface& open;
  PortalTableEntry* pt = nullptr;
  std::byte* block = nullptr;
  Handle eq_handle = 0;
  Handle ct_handle = 0;
  SeenDirectory directory;
};

TEST_F(PublishedEntryTest, Silent_entry__is_published_when_the_first_message_is_answered) {
  EntryRequest request = silent();
  request.uid = kPeerUid;
  append(std::move(request));
  EXPECT_FALSE(is_published()) << "nobody has talked to it yet";
  receive(header(PacketType::kPut, 8, 0));
  EXPECT_FALSE(is_published()) << "there is nothing to say it with";
  EXPECT_TRUE(put_tells());
  const PublishedRegion& region = directory.regions.at(kKey);
  EXPECT_EQ(region.start, reinterpret_cast<std::uintptr_t>(block));
  EXPECT_EQ(region.bytes, kBytes);
  EXPECT_EQ(region.user, kPeerUid);
  EXPECT_TRUE(region.writable);
  EXPECT_TRUE(region.readable);
  EXPECT_TRUE(put_tells()) << "whoever asks next is told, too";
}

TEST_F(PublishedEntryTest, Every_kind_of_answer__tells) {
  append(silent());
  receive(header(PacketType::kGet, 8, 7));
  EXPECT_TRUE(tells());
  PacketHeader atomic = atomic_header(PacketType::kFetchAtomic, static_cast<std::uint8_t>(AtomicOperation::kSum),
                                      static_cast<std::uint8_t>(AtomicType::kUint64), 8);
  atomic.interface_index = kNonMatchingPhysical;
  atomic.match_bits = 0;
  receive(atomic);
  EXPECT_TRUE(tells());
}

TEST_F(PublishedEntryTest, Access_options__are_published) {
  for (const std::uint32_t access : {kEntryOpPut, kEntryOpGet}) {
    EntryRequest request = silent();
    request.options &= ~(kEntryOpPut | kEntryOpGet);
    request.options |= access;
    const Handle handle = append(std::move(request));
    receive(header(access == kEntryOpPut ? PacketType::kPut : PacketType::kGet, 8, 7));
    EXPECT_TRUE(tells());
    EXPECT_EQ(directory.regions.at(kKey).writable, access == kEntryOpPut);
    EXPECT_EQ(directory.regions.at(kKey).readable, access == kEntryOpGet);
    EXPECT_EQ(unlink_entry(core, open, handle), Status::kOk);
  }
}

/// 3.13: of what is told the owner has to know; 3.11.1: so it has of what unlinks itself, and of what is not answered.
TEST_F(PublishedEntryTest, Entry_of_whose_messages_the_owner_must_know__is_not_published) {
  const auto expect_kept = [this](EntryRequest request, const char* why) {
    const Handle handle = append(std::move(request));
    EXPECT_FALSE(put_tells()) << why;
    EXPECT_FALSE(is_published()) << why;
    unlink_entry(core, open, handle);
  };
  EntryRequest told = silent();
  told.options &= ~kEntryEventCommDisable;
  expect_kept(std::move(told), "events");
  EntryRequest counted = silent(kEntryEventCtComm);
  counted.ct_handle = ct_handle;
  expect_kept(std::move(counted), "counts");
  expect_kept(silent(kEntryUseOnce), "use once");
  expect_kept(silent(kEntryAckDisable), "no acknowledgement");
  EntryRequest overflow = silent(kEntryUnexpectedHdrDisable);
  overflow.list = ListKind::kOverflow;
  expect_kept(std::move(overflow), "overflow list");
  EntryRequest elsewhere = silent();
  elsewhere.segment.describe(memory.data(), kBytes);
  expect_kept(std::move(elsewhere), "not in the heap");
  EntryRequest scattered = silent();
  const iovec pieces[] = {{block, 100}, {block + 200, 100}};
  ASSERT_TRUE(scattered.segment.describe(pieces, 2));
  expect_kept(std::move(scattered), "scattered");
  EntryRequest empty = silent();
  empty.segment.describe(block, 0);
  expect_kept(std::move(empty), "of no bytes");
  directory.full = true;
  expect_kept(silent(), "the table is full");
}

TEST_F(PublishedEntryTest, What_nobody_hears_anyway__may_be_published) {
  const auto expect_published = [this](EntryRequest request, const char* why) {
    const Handle handle = append(std::move(request));
    EXPECT_TRUE(put_tells()) << why;
    EXPECT_EQ(unlink_entry(core, open, handle), Status::kOk);
  };
  expect_published(silent(kEntryEventCtComm), "it counts with no counter");
  EntryRequest successes = silent(kEntryEventSuccessDisable);
  successes.options &= ~kEntryEventCommDisable;
  expect_published(std::move(successes), "only failures are told");
  pt->eq_handle = 0;
  EntryRequest loud = silent();
  loud.options &= ~kEntryEventCommDisable;
  expect_published(std::move(loud), "there is no event queue");
}

/// 2.5.1: the first entry takes every message.
TEST_F(PublishedEntryTest, Only_the_first_entry_of_a_non_matching_interface__is_published) {
  EntryRequest first = silent();
  first.options &= ~kEntryEventCommDisable;
  const Handle loud = append(std::move(first));
  append(silent());
  EXPECT_FALSE(put_tells());
  EXPECT_FALSE(is_published());
  ASSERT_EQ(unlink_entry(core, open, loud), Status::kOk);
  EXPECT_TRUE(put_tells()) << "now it is the first one";
}

/// 2.5.2: on a matching interface that depends on the bits, and an entry before may be for somebody else.
TEST_F(PublishedEntryTest, Entry_of_a_matching_interface__is_published_for_its_bits) {
  const auto matching = [this](std::uint64_t bits, std::uint32_t options = kSilent) {
    EntryRequest request = entry(options);
    request.criteria.match_bits = bits;
    request.segment.describe(block, kBytes);
    return request;
  };
  const auto tells_of = [this](std::uint64_t bits) {
    PacketHeader put = put_header(8, 7);
    put.match_bits = bits;
    receive(put);
    const PacketHeader answer = next_sent();
    const bool told = (answer.flags & kFlagPublished) != 0;
    if (told) {
      EXPECT_EQ(answer.match_bits, bits);
      const PublishedRegion& region = directory.regions.at(entry_key(kMatchingPhysical, kPt, bits));
      EXPECT_EQ(region.match_bits, bits);
    }
    return told;
  };
  CoreTest::append(matching(kBits));
  CoreTest::append(matching(kBits + 1));
  EXPECT_TRUE(tells_of(kBits + 1)) << "the one before it is for other bits";
  EXPECT_TRUE(tells_of(kBits));
  EntryRequest of_somebody = matching(kBits + 2);
  of_somebody.criteria.match_id = kPeer;
  of_somebody.criteria.any_nid = of_somebody.criteria.any_pid = false;
  CoreTest::append(std::move(of_somebody));
  EXPECT_FALSE(tells_of(kBits + 2)) << "not everybody's message matches";
  EntryRequest of_another = matching(kBits + 3, kEntryOpPut);
  of_another.criteria.match_id = kOther;
  of_another.criteria.any_nid = of_another.criteria.any_pid = false;
  CoreTest::append(std::move(of_another));
  CoreTest::append(matching(kBits + 3));
  EXPECT_FALSE(tells_of(kBits + 3)) << "another process would match the one before it";
  EntryRequest wild = matching(kBits + 4);
  wild.criteria.ignore_bits = 1;
  CoreTest::append(std::move(wild));
  EXPECT_FALSE(tells_of(kBits + 4)) << "it ignores bits";
  close_interface(kMatchingPhysical);
  EXPECT_TRUE(directory.regions.empty());
}

TEST_F(PublishedEntryTest, Refused_message__tells_nothing) {
  EntryRequest request = silent();
  request.options &= ~kEntryOpGet;
  append(std::move(request));
  receive(header(PacketType::kGet, 8, 7));
  const PacketHeader answer = next_sent();
  EXPECT_EQ(static_cast<NiFail>(answer.ni_fail_type), NiFail::kOpViolation);
  EXPECT_EQ(answer.flags & kFlagPublished, 0);
  EXPECT_FALSE(is_published());
}

/// The list and the table may have changed; but who is answered should not pay for a look each time.
TEST_F(PublishedEntryTest, Entry_that_could_not_be_published__is_tried_again_now_and_then) {
  append(silent());
  directory.full = true;
  EXPECT_FALSE(put_tells());
  directory.full = false;
  int answers = 1;
  while (!put_tells() && answers < 1000) ++answers;
  EXPECT_GT(answers, 10);
  EXPECT_LT(answers, 100);
}

TEST_F(PublishedEntryTest, Unlinked_entry__is_withdrawn_first) {
  const Handle handle = append(silent());
  ASSERT_TRUE(put_tells());
  EXPECT_EQ(unlink_entry(core, open, handle), Status::kOk);
  EXPECT_FALSE(is_published());
  EXPECT_EQ(directory.looks, 1);
}

TEST_F(PublishedEntryTest, Entry_that_was_never_published__is_unlinked_without_a_look) {
  const Handle handle = append(silent());
  EXPECT_EQ(unlink_entry(core, open, handle), Status::kOk);
  EXPECT_EQ(directory.looks, 0);
}

/// 3.11.3: "PTL_IN_USE: the list entry has pending operations and cannot be unlinked".
TEST_F(PublishedEntryTest, Entry_that_a_peer_is_using__is_in_use_until_the_peer_has_left) {
  const Handle handle = append(silent());
  ASSERT_TRUE(put_tells());
  directory.visited = kKey;
  EXPECT_EQ(unlink_entry(core, open, handle), Status::kInUse);
  EXPECT_EQ(unlink_entry(core, open, handle), Status::kInUse) << "withdrawn, and still in use";
  EXPECT_TRUE(put_tells()) << "it is still linked, so that it may be published again";
  EXPECT_EQ(unlink_entry(core, open, handle), Status::kInUse);
  directory.visited = entry_key(kNonMatchingPhysical, kPt + 1, 0);
  EXPECT_EQ(unlink_entry(core, open, handle), Status::kOk) << "the peer uses another one";
}

/// 2.8: a portal table entry that has disabled itself accepts nothing.
TEST_F(PublishedEntryTest, Portal_that_flow_control_disables__is_withdrawn) {
  append(silent());
  pt->flow_control = true;
  ASSERT_TRUE(open.eqs.find(eq_handle)->reserve_on_duty());
  ASSERT_TRUE(put_tells());
  exhausted(core, open, kPt, nullptr);
  EXPECT_FALSE(pt->enabled);
  EXPECT_FALSE(is_published());
  open.eqs.find(eq_handle)->unreserve_on_duty();
}

/// 3.7.3: "all messages being actively processed are completed".
TEST_F(PublishedEntryTest, End_of_visits__is_waited_for_a_second_at_most) {
  append(silent());
  ASSERT_TRUE(put_tells());
  withdraw_entries(core, open, *pt);
  directory.visited = kKey;
  directory.looks_until_gone = 5;
  end_visits(core, open, *pt);
  EXPECT_EQ(directory.looks, 5);
  directory.visited = kKey;
  directory.looks_until_gone = 0;
  core.clock = [](void* context) { return *static_cast<std::uint64_t*>(context) += 100'000'000; };
  end_visits(core, open, *pt);
  EXPECT_LT(directory.looks, 30);
  directory.visited = 0;
  core.clock = [](void* context) { return *static_cast<std::uint64_t*>(context); };
}

TEST_F(PublishedEntryTest, Closed_interface__withdraws_and_waits) {
  append(silent());
  ASSERT_TRUE(put_tells());
  directory.visited = kKey;
  directory.looks_until_gone = 3;
  close_interface(kNonMatchingPhysical);
  EXPECT_FALSE(is_published());
  EXPECT_EQ(directory.looks, 3);
}

}  // namespace
}  // namespace portofu
