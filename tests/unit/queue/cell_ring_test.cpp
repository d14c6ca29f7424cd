// Both ends of a ring in one process: contents, order, room, and what each end does when the other one lies.

#include "engine/queue/cell_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/wire/header.h"

namespace portofu {
namespace {

constexpr RingGeometry kSmall{8, 1024, 512};

/// Memory of exactly one ring, so that AddressSanitizer sees every step outside.
class RingMemory {
 public:
  explicit RingMemory(const RingGeometry& ring) : bytes_(ring.bytes()) {
    memory_ = static_cast<std::byte*>(std::aligned_alloc(128, bytes_));
    std::memset(memory_, 0, bytes_);
  }
  ~RingMemory() { std::free(memory_); }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  std::byte* get() { return memory_; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
};

/// A ring and both of its ends.
struct Ring {
  explicit Ring(const RingGeometry& sizes = {})
      : memory(sizes), view(memory.get(), sizes), producer(view), consumer(view) {}

  /// @return false if there is no room
  bool send(const std::string& payload, std::uint64_t hdr_data = 0) {
    std::byte* room = producer.claim(static_cast<std::uint32_t>(payload.size()));
    if (room == nullptr) return false;
    std::memcpy(room, payload.data(), payload.size());
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.hdr_data = hdr_data;
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    producer.publish(header);
    return true;
  }

  std::string receive(std::uint64_t* hdr_data = nullptr) {
    PacketHeader header{};
    const std::byte* payload = nullptr;
    EXPECT_TRUE(consumer.ready());
    EXPECT_EQ(consumer.take(header, &payload), TakeResult::kPacket);
    std::string text(reinterpret_cast<const char*>(payload), header.payload_bytes);
    if (hdr_data != nullptr) *hdr_data = header.hdr_data;
    consumer.release();
    return text;
  }

  RingMemory memory;
  RingView view;
  CellProducer<PacketHeader> producer;
  CellConsumer<PacketHeader> consumer;
};

std::string text_of(std::size_t bytes, std::uint64_t seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(seed * 31 + i * 7);
  return text;
}

TEST(CellRing, New_ring__is_empty) {
  Ring ring;
  EXPECT_FALSE(ring.consumer.ready());
  EXPECT_FALSE(ring.consumer.publish_released());
}

TEST(CellRing, Header__arrives_whole) {
  Ring ring;
  PacketHeader sent{};
  std::memset(static_cast<void*>(&sent), 0x5a, sizeof sent);
  sent.payload_bytes = 0;
  ASSERT_NE(ring.producer.claim(0), nullptr);
  ring.producer.publish(sent);
  PacketHeader received{};
  const std::byte* payload = nullptr;
  ASSERT_TRUE(ring.consumer.ready());
  ASSERT_EQ(ring.consumer.take(received, &payload), TakeResult::kPacket);
  EXPECT_EQ(std::memcmp(&sent, &received, 60), 0);
}

TEST(CellRing, Payload__of_every_length_arrives) {
  Ring ring(kSmall);
  for (std::uint32_t bytes = 0; bytes <= kSmall.max_payload_bytes; ++bytes) {
    ASSERT_TRUE(ring.send(text_of(bytes, bytes))) << bytes;
    ASSERT_EQ(ring.receive(), text_of(bytes, bytes));
    ring.consumer.publish_released();
  }
}

TEST(CellRing, Claim__gives_whole_lines) {
  Ring ring;
  for (const std::uint32_t bytes : {0u, 1u, 64u, 65u, 8192u}) {
    std::byte* room = ring.producer.claim(bytes);
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 64, 0u);
    ring.producer.discard();
  }
}

TEST(CellRing, Discard__leaves_no_trace) {
  Ring ring(kSmall);
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(ring.producer.claim(512), nullptr);
    ring.producer.discard();
  }
  EXPECT_FALSE(ring.consumer.ready());
  ASSERT_TRUE(ring.send("after"));
  EXPECT_EQ(ring.receive(), "after");
}

TEST(CellRing, Publish__of_less_than_claimed_gives_the_rest_back) {
  Ring ring(kSmall);
  for (const std::uint32_t used : {0u, 1u, 64u, 65u, 300u}) {
    std::byte* room = ring.producer.claim(512);
    ASSERT_NE(room, nullptr);
    const std::string text = text_of(used, used);
    std::memcpy(room, text.data(), used);
    PacketHeader header{};
    header.payload_bytes = used;
    ring.producer.publish(header);
    EXPECT_EQ(ring.receive(), text);
    ring.consumer.publish_released();
  }
}

TEST(CellRing, Full_of_cells__refuses_until_some_come_back) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x", i));
  EXPECT_FALSE(ring.consumer.producer_wants_room());
  EXPECT_FALSE(ring.send("too much"));
  EXPECT_TRUE(ring.consumer.producer_wants_room());
  EXPECT_FALSE(ring.producer.has_room_again());
  ring.receive();
  EXPECT_FALSE(ring.producer.has_room_again()) << "less than a quarter is withheld";
  ring.receive();
  EXPECT_TRUE(ring.producer.has_room_again());
  EXPECT_FALSE(ring.consumer.producer_wants_room());
  EXPECT_TRUE(ring.send("now"));
}

TEST(CellRing, Full_of_data__refuses_long_payloads_only) {
  Ring ring(kSmall);
  ASSERT_TRUE(ring.send(text_of(512, 1)));
  ASSERT_TRUE(ring.send(text_of(512, 2)));
  EXPECT_FALSE(ring.send(text_of(65, 3)));
  EXPECT_TRUE(ring.send(text_of(64, 4)));
  EXPECT_EQ(ring.receive(), text_of(512, 1)) << "a quarter of the data area: its room comes back at once";
  EXPECT_TRUE(ring.send(text_of(65, 3)));
}

TEST(CellRing, Withheld_room__comes_back_when_the_receiver_runs_dry) {
  Ring ring(kSmall);
  ring.send("x");
  ring.receive();
  EXPECT_TRUE(ring.consumer.withholds_room());
  EXPECT_TRUE(ring.consumer.publish_released());
  EXPECT_FALSE(ring.consumer.withholds_room());
}

TEST(CellRing, Claim__that_succeeds_ends_the_wait_for_room) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x"));
  ASSERT_FALSE(ring.send("x"));
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ring.receive();
  EXPECT_TRUE(ring.send("x"));
  EXPECT_FALSE(ring.producer.waits_for_room());
  EXPECT_FALSE(ring.consumer.producer_wants_room());
}

TEST(CellRing, Laps__beyond_the_range_of_the_sequence_word_stay_apart) {
  Ring ring(kSmall);
  for (std::uint64_t i = 0; i < 3 * 65536 + 5; ++i) {
    ASSERT_FALSE(ring.consumer.ready()) << "a packet of an old lap looks new at " << i;
    ASSERT_TRUE(ring.send("", i));
    std::uint64_t seen = 0;
    ring.receive(&seen);
    ASSERT_EQ(seen, i);
    ring.consumer.publish_released();
  }
}

TEST(CellRing, Random_traffic__arrives_as_sent) {
  const unsigned seed = std::getenv("SEED") != nullptr ? static_cast<unsigned>(std::atoi(std::getenv("SEED"))) : 1;
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&random] { return static_cast<std::uint32_t>(random()); };
  for (const RingGeometry& sizes : {kSmall, RingGeometry{}, RingGeometry{4, 128, 64}, RingGeometry{64, 4096, 2048}}) {
    Ring ring(sizes);
    std::deque<std::string> expected;
    for (int step = 0; step < 20000; ++step) {
      if (random() % 2 == 0) {
        const std::uint32_t bytes = draw() % 3 == 0 ? draw() % (sizes.max_payload_bytes + 1) : draw() % 70;
        const std::string text = text_of(std::min(bytes, sizes.max_payload_bytes), random());
        if (ring.send(text)) expected.push_back(text);
      } else if (!expected.empty()) {
        ASSERT_EQ(ring.receive(), expected.front());
        expected.pop_front();
      } else {
        ASSERT_FALSE(ring.consumer.ready());
        ring.consumer.publish_released();
        ASSERT_TRUE(ring.producer.claim(sizes.max_payload_bytes) != nullptr) << "an empty ring has room for everything";
        ring.producer.discard();
      }
    }
  }
}

// What a lying sender may write into the cell at the front. Only the header's line may have been touched.
TakeResult take_after(std::uint32_t payload_bytes, std::uint32_t granule_plus_one) {
  Ring ring(kSmall);
  CellShared& cell = ring.view.cells[0];
  PacketHeader header{};
  header.payload_bytes = payload_bytes;
  std::memcpy(cell.head, &header, sizeof cell.head);
  cell.wire_word.store(granule_plus_one << 16 | lap_of(0), std::memory_order_release);
  const std::byte* payload = nullptr;
  EXPECT_TRUE(ring.consumer.ready());
  return ring.consumer.take(header, &payload);
}

TEST(CellRing, Lying_sender__is_found_out) {
  EXPECT_EQ(take_after(64, 0), TakeResult::kPacket);
  EXPECT_EQ(take_after(65, 0), TakeResult::kLie);
  EXPECT_EQ(take_after(0xffffffff, 0), TakeResult::kLie);
  EXPECT_EQ(take_after(512, 1), TakeResult::kPacket);
  EXPECT_EQ(take_after(513, 1), TakeResult::kLie);
  EXPECT_EQ(take_after(0xffffffff, 1), TakeResult::kLie);
  EXPECT_EQ(take_after(512, 9), TakeResult::kPacket) << "ends where the data area ends";
  EXPECT_EQ(take_after(512, 10), TakeResult::kLie);
  EXPECT_EQ(take_after(64, 16), TakeResult::kPacket);
  EXPECT_EQ(take_after(65, 16), TakeResult::kLie);
  EXPECT_EQ(take_after(0, 0xfffe), TakeResult::kLie);
  EXPECT_EQ(take_after(1, 0xfffe), TakeResult::kLie);
  EXPECT_EQ(take_after(8, kInHeader), TakeResult::kPacket);
  EXPECT_EQ(take_after(9, kInHeader), TakeResult::kLie);
  EXPECT_EQ(take_after(0xffffffff, kInHeader), TakeResult::kLie);
}

/// What a consumer says of a payload of `bytes` lent at `offset` of a heap of 200000 bytes.
TakeResult take_lent(std::uint32_t bytes, std::uint64_t offset, std::uint64_t heap_bytes = 200000) {
  static const std::vector<std::byte> heap(200000);
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

TEST(CellRing, Lent_payload__lies_in_the_heap_or_its_sender_lies) {
  EXPECT_EQ(take_lent(kMostLentBytes, 0), TakeResult::kPacket);
  EXPECT_EQ(take_lent(kMostLentBytes, 200000 - kMostLentBytes), TakeResult::kPacket);
  EXPECT_EQ(take_lent(0, 200000), TakeResult::kPacket);
  EXPECT_EQ(take_lent(kMostLentBytes + 1, 0), TakeResult::kLie);
  EXPECT_EQ(take_lent(1, 200000), TakeResult::kLie);
  EXPECT_EQ(take_lent(100, 199901), TakeResult::kLie);
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

TEST(CellRing, Payload_in_memory__is_for_a_receiver_that_has_said_that_it_reads_it) {
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

TEST(CellRing, Payload_that_the_sender_copies__waits_until_it_has) {
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

TEST(CellRing, Payload_that_is_held__is_given_back_when_it_is_let_go) {
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

TEST(CellRing, Payload_that_the_sender_could_not_copy__is_the_receivers_again) {
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

TEST(CellRing, Nonsense_about_who_copies__is_a_lie) {
  for (const Taker taker : {Taker::kReceiver, static_cast<Taker>(4), static_cast<Taker>(~0u)}) {
    MemoryRing ring;
    ring.consumer.read_memory();
    ring.lend();
    taker_in(ring.view.cells[0]).store(taker);
    EXPECT_EQ(ring.take(), TakeResult::kLie);
  }
}

TEST(CellRing, Offer__is_seen_whole_and_can_be_taken_back_while_nobody_writes) {
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
TEST(CellRing, Offer_that_is_changed_and_taken_back_meanwhile__is_never_seen_in_parts) {
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
    ring.consumer.offer(3 * i, i);
    if (i % 4 != 0) continue;
    while (!ring.consumer.take_offer_back()) std::this_thread::yield();
    withdrawn = true;
    for (int wait = 0; wait < 50; ++wait) __builtin_ia32_pause();
    withdrawn = false;
  }
  sender.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(late, 0);
}

TEST(CellRing, Costs_of_the_receiver__are_told_to_the_sender) {
  MemoryRing ring;
  EXPECT_EQ(ring.producer.receivers_area_cost(), 0u);
  ring.consumer.tell_costs(4000, 2500);
  EXPECT_EQ(ring.producer.receivers_area_cost(), 4000u);
  EXPECT_EQ(ring.producer.receivers_read_cost(), 2500u);
}

TEST(CellRing, Awaited_payload__comes_back_with_its_packet_and_a_waiting_sender_is_to_be_woken) {
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

TEST(CellRing, Several_waits__end_with_the_first_and_then_the_others) {
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

TEST(CellRing, Claim_that_finds_room__does_not_end_the_wait_for_what_is_lent) {
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

TEST(CellRing, Short_payload__arrives_whole_whatever_the_length_of_its_message) {
  for (std::uint32_t bytes = 0; bytes <= 9; ++bytes) {
    for (const std::uint64_t length : {std::uint64_t{bytes}, std::uint64_t{0}, std::uint64_t{1} << 40}) {
      Ring ring(kSmall);
      std::byte* room = ring.producer.claim(bytes);
      for (std::uint32_t i = 0; i < bytes; ++i) room[i] = std::byte(0xf0 + i);
      PacketHeader sent{};
      sent.payload_bytes = bytes;
      sent.length = length;
      ring.producer.publish(sent);
      PacketHeader header{};
      const std::byte* payload = nullptr;
      ASSERT_EQ(ring.consumer.take(header, &payload), TakeResult::kPacket);
      EXPECT_EQ(header.payload_bytes, bytes);
      EXPECT_EQ(header.length, length);
      for (std::uint32_t i = 0; i < bytes; ++i) EXPECT_EQ(payload[i], std::byte(0xf0 + i));
      EXPECT_TRUE(ring.view.cells[0].wire_word.load() >> 16 == (length == bytes && bytes <= 8 ? kInHeader : 0u));
    }
  }
}

TEST(CellRing, Random_bytes__never_lead_outside) {
  std::mt19937 random(7);
  const auto draw = [&random] { return static_cast<std::uint32_t>(random()); };
  std::uint64_t sum = 0;
  for (int round = 0; round < 2000; ++round) {
    Ring ring(kSmall);
    for (std::size_t i = kRingControlBytes; i < kSmall.bytes(); ++i) ring.memory.get()[i] = std::byte(random());
    for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) {
      CellShared& cell = ring.view.cells[i];
      const std::uint32_t granule = random() % 8 == 0 ? kInHeader : random() % 24;
      const std::uint32_t word = granule << 16 | lap_of(i);
      cell.wire_word.store(word, std::memory_order_relaxed);
      const std::uint32_t bytes = draw() % 2 == 0 ? draw() % 700 : draw();
      std::memcpy(cell.head + offsetof(PacketHeader, payload_bytes), &bytes, sizeof bytes);
    }
    PacketHeader header{};
    const std::byte* payload = nullptr;
    while (ring.consumer.ready() && ring.consumer.take(header, &payload) == TakeResult::kPacket) {
      for (std::uint32_t i = 0; i < header.payload_bytes; ++i) sum += std::to_integer<unsigned>(payload[i]);
      ring.consumer.release();
    }
  }
  EXPECT_NE(sum, 0u);
}

TEST(CellRing, Lying_receiver__is_found_out) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x"));
  ring.view.control->released.store(kSmall.cell_count + 1, std::memory_order_release);
  EXPECT_FALSE(ring.send("x"));
  EXPECT_TRUE(ring.producer.receiver_lied());
}

TEST(CellRing, Receiver_that_takes_room_back__is_found_out) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x"));
  for (std::uint32_t i = 0; i < 4; ++i) ring.receive();
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ring.send("x"));
  ring.view.control->released.store(1, std::memory_order_release);
  EXPECT_FALSE(ring.send("x"));
  EXPECT_TRUE(ring.producer.receiver_lied());
}

TEST(CellRing, Two_threads__hand_over_whole_packets) {
  constexpr std::uint64_t kMessages = 30000;
  Ring ring;
  std::thread sender([&ring] {
    for (std::uint64_t i = 0; i < kMessages;) {
      if (ring.send(text_of(i % 7 == 0 ? 1000 + i % 3000 : i % 65, i), i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint64_t i = 0; i < kMessages;) {
    if (!ring.consumer.ready()) {
      ring.consumer.publish_released();
      std::this_thread::yield();
      continue;
    }
    std::uint64_t seen = 0;
    const std::string text = ring.receive(&seen);
    EXPECT_EQ(seen, i);
    EXPECT_EQ(text, text_of(i % 7 == 0 ? 1000 + i % 3000 : i % 65, i));
    ++i;
  }
  sender.join();
}

}  // namespace
}  // namespace portofu
