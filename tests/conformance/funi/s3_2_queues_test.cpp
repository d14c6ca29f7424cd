// Thesis, 3.1 and 3.2: four circular queues in the program's memory.
#include "funi_fixture.h"

using namespace conformance;

namespace {

constexpr std::uint32_t kSlots = 8;

void answer_one(Node& node) {
  const Packet request = node.receive(Class::kRequest);
  node.send(Class::kReply, FUNI_HEADER(FUNI_HEADER_TYPE(request.header) + 1, 1, request.words[0]), {request.words[1]});
}

}  // namespace

// "Two sets of send and receive queue pairs are provided, one for each packet priority" (3).
TEST(FuniQueues, Section3__a_request_and_its_reply) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    if (self.rank() == 0) {
      node.send(Class::kRequest, FUNI_HEADER(5, 2, 1), {0, 4711});
      const Packet reply = node.receive(Class::kReply);
      EXPECT_EQ(reply.header, FUNI_HEADER(6, 1, 0));
      EXPECT_EQ(reply.words, Words{4711});
    } else {
      answer_one(node);
    }
    node.expect_soon([&] { return node.is_all_accepted(); });
    self.barrier();
    EXPECT_EQ(node.counts().dispatched[0] + node.counts().dispatched[1], 1u);
    EXPECT_EQ(node.counts().delivered[0] + node.counts().delivered[1], 1u);
  });
}

// "Length of 0 to 21 words can be specified. If a length longer than 21 is specified, the packet is assumed 21-word
// long" (3.2.2). "The header has the same format as the header used for sending, except for the destination field
// bit[15:0] which is set to the receiving workstations own node ID" (3.2.3).
TEST(FuniQueues, Section3_2_2__lengths_from_0_to_21) {
  run_processes(2, [](Process& self) {
    Node node(self, 64);  // None is rejected, so they come in order.
    for (std::uint32_t length = 0; length < 32; ++length) {
      const std::uint32_t arrives = std::min(length, 21u);
      if (self.rank() == 0) {
        node.send(Class::kRequest, FUNI_HEADER(length * 16 + 15, length, 1), counted(length * 100, 31));
      } else {
        const Packet packet = node.receive(Class::kRequest);
        EXPECT_EQ(packet.header, FUNI_HEADER(length * 16 + 15, arrives, 1));
        EXPECT_EQ(packet.words, counted(length * 100, arrives));
      }
    }
    node.expect_soon([&] { return node.is_all_accepted(); });
    self.barrier();
  });
}

// "FUNi only processes pending packets up to the slot indexed by RPSQ_HD" (3.1.2); "the user process only needs to
// update the register once for each sub-block" (3.2.2).
TEST(FuniQueues, Section3_1_2__packets_are_seen_when_the_head_moves) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(node.try_send(Class::kReply, FUNI_HEADER(1, 1, 1), {i}, /*update=*/false));
      }
      EXPECT_FALSE(node.becomes([&] { return node.read(FUNI_RPSQ_TL) != 0; }, 50));
      EXPECT_EQ(node.counts().retrieved[0], 0u);
      self.barrier();
      node.write(FUNI_RPSQ_HD, 3);
      node.expect_soon([&] { return node.read(FUNI_RPSQ_TL) == 3; });
    } else {
      EXPECT_FALSE(node.try_receive(Class::kReply).has_value());
      self.barrier();
      for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(node.receive(Class::kReply).words, Words{i});
    }
    self.barrier();
  });
}

// "A queue is full when the head is logically immediate before the tail" (3): it holds a slot less than it has.
TEST(FuniQueues, Section3__a_full_queue_has_one_slot_free) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < kSlots - 1; ++i) node.send(Class::kRequest, FUNI_HEADER(1, 1, 1), {i});
      node.expect_soon([&] { return node.is_all_accepted(); });
      EXPECT_EQ(node.counts().accepted[1], kSlots - 1);
    }
    self.barrier();
    if (self.rank() == 1) {
      EXPECT_EQ(node.read(FUNI_RQRQ_HD), kSlots - 1) << "and the tail is 0";
      EXPECT_EQ(node.counts().held[1], 0u);
      for (std::uint32_t i = 0; i < kSlots - 1; ++i) EXPECT_EQ(node.receive(Class::kRequest).words, Words{i});
      EXPECT_FALSE(node.try_receive(Class::kRequest).has_value());
    }
    self.barrier();
  });
}

// "The queue size can be dynamically adjusted throughout the user process's execution" (3.1.1), with packets under way:
// they wait in the interface meanwhile.
TEST(FuniQueues, Section3_1_1__the_size_changes_while_packets_come) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    constexpr std::uint32_t kPackets = 300;
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < kPackets; ++i) node.send(Class::kRequest, FUNI_HEADER(1, 1, 1), {i});
      node.expect_soon([&] { return node.is_all_accepted(); });
    } else {
      std::vector<bool> seen(kPackets);
      std::uint32_t count = 0;
      const auto take = [&] {
        const auto packet = node.try_receive(Class::kRequest);
        if (!packet) return false;
        EXPECT_FALSE(seen.at(packet->words.at(0)));
        seen.at(packet->words.at(0)) = true;
        return ++count == kPackets;
      };
      std::uint32_t slots = 2;
      while (count < kPackets) {
        const std::uint32_t before = count;
        node.expect_soon([&] { return take() || count >= before + 20; });
        if (count == kPackets) break;
        node.halt_queues();
        while (node.read(FUNI_RQRQ_HD) != node.read(FUNI_RQRQ_TL)) take();
        node.start_queues(slots);
        slots = slots == 256 ? 2 : slots * 2;
      }
    }
    self.barrier();
  });
}

// "Memory-mapped writes to each of these four registers cause the corresponding HD and TL registers to automatically
// initialize to zero"; "each address must be 32-word aligned, or will be automatically truncated" (3.1.2).
TEST(FuniQueues, Section3_1_2__a_base_is_truncated_and_its_ends_become_zero) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < 3; ++i) node.send(Class::kRequest, FUNI_HEADER(1, 0, 1), {});
      node.expect_soon([&] { return node.is_all_accepted(); });
      EXPECT_EQ(node.read(FUNI_RQSQ_TL), 3u);
      node.write(FUNI_CNTL, FUNI_CSQM);
      const std::uint32_t base = node.read(FUNI_RQSQ_BASE);
      node.write(FUNI_RQSQ_BASE, base + 127);
      EXPECT_EQ(node.read(FUNI_RQSQ_BASE), base);
      EXPECT_EQ(node.read(FUNI_RQSQ_HD), 0u);
      EXPECT_EQ(node.read(FUNI_RQSQ_TL), 0u);
    }
    self.barrier();
  });
}

// All packets of a sender that nobody rejects come in their order; the thesis promises no more than that each comes.
TEST(FuniQueues, Section3__packets_go_round_the_queues_many_times) {
  run_processes(2, [](Process& self) {
    Node node(self, 4);
    constexpr std::uint32_t kRounds = 500;
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      if (self.rank() == 0) {
        node.send(Class::kRequest, FUNI_HEADER(i, 2, 1), {0, i});
        EXPECT_EQ(node.receive(Class::kReply).words, Words{i});
      } else {
        answer_one(node);
      }
    }
    self.barrier();
  });
}

// Each call may take in what has arrived, also for another queue. Whoever has looked at both, and found nothing, must
// not sleep over that.
TEST(FuniQueues, Section3_2_3__a_wait_ends_if_a_queue_that_was_looked_at_has_changed) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    constexpr std::uint32_t kLongMs = 3000;
    EXPECT_FALSE(node.try_receive(Class::kReply).has_value());
    EXPECT_TRUE(node.try_send(Class::kReply, FUNI_HEADER(5, 1, 0), {4711}));
    while (node.counts().delivered[0] == 0 || !node.is_all_accepted()) EXPECT_EQ(node.read(FUNI_RQRQ_HD), 0u);
    EXPECT_FUNI(funi_wait(node, kLongMs), FUNI_SUCCESS) << "the head of the replies is another one";
    EXPECT_EQ(node.receive(Class::kReply).words, Words{4711});
    EXPECT_FALSE(node.try_receive(Class::kReply).has_value());
    EXPECT_FUNI(funi_wait(node, 1), FUNI_ERR_TIMEOUT) << "nothing has changed";
  });
}
