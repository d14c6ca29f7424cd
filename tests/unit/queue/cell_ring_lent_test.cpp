// Payloads that stay in their sender's memory: who copies them, where to, and when they come back.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/queue/cpu.h"
#include "tests/unit/support/test_ring.h"

namespace portofu {
namespace {

constexpr std::uint64_t kHeapBytes = kMostLentBytes + 100'000;

/// What a consumer says of a payload of `bytes` lent at `offset` of a heap of kHeapBytes.
TakeResult take_lent(std::uint32_t bytes, std::uint64_t offset, std::uint64_t heap_bytes = kHeapBytes) {
  static const std::vector<std::byte> heap(kHeapBytes);
  Ring ring(kSmall);
  if (heap_bytes != 0) ring.consumer.use_heap(heap.data(), heap_bytes);
  EXPECT_TRUE(ring.producer.claim_lent({.place = offset}));
  PacketHeader header{};
  header.payload_bytes = bytes;
  ring.producer.publish(header);
  const std::byte* payload = nullptr;
  const TakeResult result = ring.consumer.take(header, &payload);
  if (result == TakeResult::kPacket) {
    EXPECT_EQ(payload, heap.data() + offset);
  }
  return result;
}

TEST(CellRingLent, Lent_payload__lies_in_the_heap_or_its_sender_lies) {
  EXPECT_EQ(take_lent(kMostLentBytes, 0), TakeResult::kPacket);
  EXPECT_EQ(take_lent(kMostLentBytes, kHeapBytes - kMostLentBytes), TakeResult::kPacket);
  EXPECT_EQ(take_lent(0, kHeapBytes), TakeResult::kPacket);
  EXPECT_EQ(take_lent(kMostLentBytes + 1, 0), TakeResult::kLie);
  EXPECT_EQ(take_lent(1, kHeapBytes), TakeResult::kLie);
  EXPECT_EQ(take_lent(100, kHeapBytes - 99), TakeResult::kLie);
  EXPECT_EQ(take_lent(100, ~std::uint64_t{0} - 49), TakeResult::kLie) << "beyond the end of all addresses";
  EXPECT_EQ(take_lent(0xffffffff, 0), TakeResult::kLie);
  EXPECT_EQ(take_lent(8, 0, 0), TakeResult::kLie) << "nothing is mapped";
  EXPECT_EQ(take_lent(101, 0, 100), TakeResult::kLie);
}

/// A ring whose receiver reads the sender's memory, and a payload that is lent from there.
struct MemoryRing : Ring {
  MemoryRing() : Ring(kSmall) {}

  void lend(std::uint32_t bytes = 512) {
    ASSERT_TRUE(producer.claim_lent({.place = 0x1000, .in_memory = 1}));
    PacketHeader header{};
    header.payload_bytes = bytes;
    producer.publish(header);
  }

  TakeResult take() {
    PacketHeader header{};
    payload = nullptr;
    return consumer.take(header, &payload);
  }

  const std::byte* payload = nullptr;
};

TEST(CellRingLent, Payload_in_memory__is_for_a_receiver_that_has_said_that_it_reads_it) {
  MemoryRing ring;
  EXPECT_FALSE(ring.producer.receiver_reads_memory());
  ring.lend();
  EXPECT_EQ(ring.take(), TakeResult::kLie);
  MemoryRing good;
  good.consumer.read_memory();
  EXPECT_TRUE(good.producer.receiver_reads_memory());
  good.lend();
  EXPECT_EQ(good.take(), TakeResult::kPacket);
  EXPECT_EQ(good.consumer.taken_from(), TakenFrom::kMemory);
  EXPECT_EQ(good.payload, reinterpret_cast<const std::byte*>(0x1000));
  MemoryRing longer;
  longer.consumer.read_memory();
  longer.lend(kMostLentBytes + 1);
  EXPECT_EQ(longer.take(), TakeResult::kLie);
}

TEST(CellRingLent, Payload_that_the_sender_copies__waits_until_it_has) {
  MemoryRing ring;
  ring.consumer.read_memory();
  ring.lend();
  ASSERT_TRUE(ring.producer.take_back(0));
  EXPECT_FALSE(ring.producer.take_back(0)) << "once";
  EXPECT_FALSE(ring.consumer.ready());
  EXPECT_EQ(ring.take(), TakeResult::kLater) << "a receiver that has looked before";
  ring.producer.settle(0, true);
  ASSERT_TRUE(ring.consumer.ready());
  ASSERT_EQ(ring.take(), TakeResult::kPacket);
  EXPECT_EQ(ring.consumer.taken_from(), TakenFrom::kPlaced);
  ring.consumer.release();
}

TEST(CellRingLent, Payload_that_is_held__is_given_back_when_it_is_let_go) {
  MemoryRing ring;
  ring.consumer.read_memory();
  for (int i = 0; i < 3; ++i) ring.lend();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ring.take(), TakeResult::kPacket);
    ring.consumer.hold();
    EXPECT_FALSE(ring.consumer.release());
  }
  EXPECT_TRUE(ring.consumer.withholds_room());
  EXPECT_FALSE(ring.consumer.publish_released());
  EXPECT_EQ(ring.producer.released_position(), 0u);
  EXPECT_FALSE(ring.producer.await_drained(1));
  EXPECT_TRUE(ring.consumer.let_go());
  EXPECT_TRUE(ring.producer.await_drained(3));
  EXPECT_FALSE(ring.consumer.let_go()) << "nothing is left";
}

TEST(CellRingLent, Payload_that_the_sender_could_not_copy__is_the_receivers_again) {
  MemoryRing ring;
  ring.consumer.read_memory();
  ring.lend();
  ASSERT_TRUE(ring.producer.take_back(0));
  ring.producer.settle(0, false);
  ASSERT_TRUE(ring.consumer.ready());
  ASSERT_EQ(ring.take(), TakeResult::kPacket);
  EXPECT_EQ(ring.consumer.taken_from(), TakenFrom::kMemory);
  EXPECT_FALSE(ring.producer.take_back(0)) << "the receiver has got it";
}

TEST(CellRingLent, Nonsense_about_who_copies__is_a_lie) {
  for (const Taker taker : {Taker::kReceiver, static_cast<Taker>(4), static_cast<Taker>(~0u)}) {
    MemoryRing ring;
    ring.consumer.read_memory();
    ring.lend();
    taker_in(ring.view.cells[0]).store(taker);
    EXPECT_EQ(ring.take(), TakeResult::kLie);
  }
}

TEST(CellRingLent, Offer__is_seen_whole_and_can_be_taken_back_while_nobody_writes) {
  MemoryRing ring;
  ring.consumer.read_memory();
  Offer offer;
  EXPECT_FALSE(ring.producer.begin_placing(&offer));
  EXPECT_EQ(ring.view.control->placing, 0u);
  ASSERT_TRUE(ring.send("before"));
  EXPECT_EQ(ring.receive(), "before");
  ring.lend();
  ASSERT_EQ(ring.take(), TakeResult::kPacket);
  ring.consumer.offer(0x5000, 700);
  EXPECT_EQ(ring.producer.offered_message(), 1u);
  ASSERT_TRUE(ring.producer.begin_placing(&offer));
  EXPECT_EQ(offer.message, 1u);
  EXPECT_EQ(offer.address, 0x5000u);
  EXPECT_EQ(offer.bytes, 700u);
  EXPECT_FALSE(ring.consumer.take_offer_back()) << "the sender is writing";
  ring.producer.end_placing();
  EXPECT_TRUE(ring.consumer.take_offer_back());
  EXPECT_FALSE(ring.producer.begin_placing(&offer));
  EXPECT_TRUE(ring.consumer.take_offer_back());
}

/// The sender either writes nothing, or is seen to; what it believes to be offered was offered in one piece.
TEST(CellRingLent, Offer_that_is_changed_and_taken_back_meanwhile__is_never_seen_in_parts) {
  MemoryRing ring;
  ring.consumer.read_memory();
  std::atomic<bool> withdrawn{false}, over{false};
  std::atomic<int> torn{0}, late{0};
  std::thread sender([&] {
    for (int i = 0; i < 200'000 || i % 2 != 0; ++i) {
      Offer offer;
      if (!ring.producer.begin_placing(&offer)) continue;
      if (offer.address != 3 * offer.bytes) ++torn;
      if (withdrawn.load(std::memory_order_relaxed)) ++late;
      ring.producer.end_placing();
    }
    over = true;
  });
  for (std::uint64_t i = 1; !over; ++i) {
    ring.consumer.offer_message(i, 3 * i, i);  // A message is offered a place once.
    if (i % 4 != 0) continue;
    while (!ring.consumer.take_offer_back()) std::this_thread::yield();
    withdrawn = true;
    for (int wait = 0; wait < 50; ++wait) pause_cpu();
    withdrawn = false;
  }
  sender.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(late, 0);
}

TEST(CellRingLent, Costs_of_the_receiver__are_told_to_the_sender) {
  MemoryRing ring;
  EXPECT_EQ(ring.producer.receivers_area_cost(), 0u);
  ring.consumer.tell_costs(4000, 2500);
  EXPECT_EQ(ring.producer.receivers_area_cost(), 4000u);
  EXPECT_EQ(ring.producer.receivers_read_cost(), 2500u);
}

TEST(CellRingLent, Awaited_payload__comes_back_with_its_packet_and_a_waiting_sender_is_to_be_woken) {
  Ring ring(kSmall);
  static const std::byte heap[64]{};
  EXPECT_FALSE(ring.producer.receiver_maps_heap());
  ring.consumer.use_heap(heap, sizeof heap);
  EXPECT_TRUE(ring.producer.receiver_maps_heap());
  ASSERT_TRUE(ring.send("before"));
  ASSERT_TRUE(ring.producer.claim_lent({.awaited = 1}));
  PacketHeader header{};
  header.payload_bytes = 64;
  ring.producer.publish(header);
  const std::uint64_t end = ring.producer.position();
  EXPECT_FALSE(ring.producer.awaits_drain());
  EXPECT_FALSE(ring.producer.await_drained(end));
  EXPECT_TRUE(ring.producer.awaits_drain());
  EXPECT_TRUE(ring.consumer.producer_wants_room());
  EXPECT_EQ(ring.receive(), "before");
  EXPECT_FALSE(ring.producer.await_drained(end));
  const std::byte* payload = nullptr;
  ASSERT_EQ(ring.consumer.take(header, &payload), TakeResult::kPacket);
  EXPECT_FALSE(ring.producer.await_drained(end));
  EXPECT_TRUE(ring.consumer.release()) << "at once";
  EXPECT_FALSE(ring.producer.awaits_drain());
  EXPECT_TRUE(ring.producer.await_drained(end));
}

/// The way of a message may change in its middle. What is told of its end needs what was lent back before what is told
/// of the next message.
TEST(CellRingLent, Lent_payload__comes_back_with_the_next_packet_that_is_not) {
  Ring ring;
  static const std::byte heap[64]{};
  ring.consumer.use_heap(heap, sizeof heap);
  ASSERT_TRUE(ring.producer.claim_lent({}));
  ring.producer.publish(PacketHeader{});
  const std::uint64_t end = ring.producer.position();
  ASSERT_TRUE(ring.send("copied"));
  ASSERT_TRUE(ring.send("behind it"));
  PacketHeader header{};
  const std::byte* payload = nullptr;
  ASSERT_EQ(ring.consumer.take(header, &payload), TakeResult::kPacket);
  EXPECT_FALSE(ring.consumer.release()) << "withheld";
  EXPECT_FALSE(ring.producer.is_drained(end));
  ASSERT_EQ(ring.consumer.take(header, &payload), TakeResult::kPacket);
  EXPECT_TRUE(ring.consumer.release());
  EXPECT_TRUE(ring.producer.is_drained(end));
  ASSERT_EQ(ring.consumer.take(header, &payload), TakeResult::kPacket);
  EXPECT_FALSE(ring.consumer.release()) << "only what was lent is in a hurry";
}

TEST(CellRingLent, Several_waits__end_with_the_first_and_then_the_others) {
  Ring ring(kSmall);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(ring.send("x"));
  EXPECT_FALSE(ring.producer.await_drained(2));
  EXPECT_FALSE(ring.producer.await_drained(6));
  ring.receive(), ring.receive();
  EXPECT_FALSE(ring.producer.awaits_drain()) << "the first is there";
  EXPECT_FALSE(ring.producer.await_drained(6));
  EXPECT_TRUE(ring.producer.awaits_drain());
  EXPECT_TRUE(ring.consumer.producer_wants_room());
  for (int i = 0; i < 4; ++i) ring.receive();
  EXPECT_TRUE(ring.producer.await_drained(6));
  EXPECT_FALSE(ring.consumer.producer_wants_room()) << "nobody waits any more";
}

TEST(CellRingLent, Claim_that_finds_room__does_not_end_the_wait_for_what_is_lent) {
  Ring ring(kSmall);
  static const std::byte heap[64]{};
  ring.consumer.use_heap(heap, sizeof heap);
  while (ring.send("x")) {
  }
  const std::uint64_t end = ring.producer.position();
  EXPECT_FALSE(ring.producer.await_drained(end));
  for (int i = 0; i < 4; ++i) ring.receive();
  ASSERT_TRUE(ring.send("y")) << "the claim no longer waits";
  EXPECT_TRUE(ring.consumer.producer_wants_room()) << "but somebody does";
}

}  // namespace
}  // namespace portofu
