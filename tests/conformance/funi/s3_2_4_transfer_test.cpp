// Thesis, 3.2.4: transfers, the four cases of figure 3.4.
#include "funi_fixture.h"

using namespace conformance;

namespace {

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kGap = 0x11111111;

/// Memory that both processes map at the same address.
struct Field {
  alignas(64) std::array<std::uint32_t, 64> words{};
  std::uint32_t address = 0;

  explicit Field(Node& node, std::uint32_t value = kGap) {
    words.fill(value);
    address = node.map(words.data(), sizeof words);
  }
  Words part(std::size_t first, std::size_t count) const {
    return {words.begin() + static_cast<std::ptrdiff_t>(first),
            words.begin() + static_cast<std::ptrdiff_t>(first + count)};
  }
};

std::uint32_t transfer_header(std::uint32_t type, std::uint32_t words, std::uint32_t node) {
  return FUNI_XFER | FUNI_HEADER(type, words, node);
}

void expect_accepted(Process& self, Node& node) {
  node.expect_soon([&] { return node.is_all_accepted(); });
  self.barrier();
}

}  // namespace

// Case 2: "the receiving FUNi delivers the payload directly to the destination location specified by the sender. A
// four-word XFER notice block is enqueued into the receive queue of the corresponding priority".
TEST(FuniTransfer, Section3_2_4__from_memory_to_memory) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Field field(node);
    self.barrier();
    for (std::uint32_t words = 0; words <= 16; words += 4) {
      const Class traffic = words % 8 == 0 ? Class::kRequest : Class::kReply;
      if (self.rank() == 0) {
        const Words data = counted(100 * words, words);
        std::copy(data.begin(), data.end(), field.words.begin());
        node.send(traffic, transfer_header(9, words, 1), {field.address, field.address + 64, 4711 + words});
      } else {
        const Packet notice = node.receive(traffic);
        EXPECT_EQ(notice.header, transfer_header(9, words, 1));
        // "The word immediately following the header is always set to zero. The next word is the destination address.
        // Finally, the fourth word holds the single argument".
        EXPECT_EQ(notice.words, (Words{0, field.address + 64, 4711 + words}));
        EXPECT_EQ(field.part(16, words), counted(100 * words, words));
        EXPECT_EQ(field.words[15], kGap);
        EXPECT_EQ(field.words[16 + words], kGap);
      }
      expect_accepted(self, node);
    }
  });
}

// Case 3: "to use this option, the sending process would specify the source address to be 0 and enqueue the transfer
// data in the addresses following the XFER request block".
TEST(FuniTransfer, Section3_2_4__from_the_queue_to_memory) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Field field(node);
    self.barrier();
    if (self.rank() == 0) {
      Words slot{0, field.address, 5};
      const Words data = counted(70, 12);
      slot.insert(slot.end(), data.begin(), data.end());
      node.send(Class::kRequest, transfer_header(3, 12, 1), slot);
    } else {
      EXPECT_EQ(node.receive(Class::kRequest).words, (Words{0, field.address, 5}));
      EXPECT_EQ(field.part(0, 12), counted(70, 12));
      EXPECT_EQ(field.words[12], kGap);
    }
    expect_accepted(self, node);
  });
}

// Case 4: "by specifying 0 as the destination address ... the delivered packet is composed of the single word argument
// that the sender provides in the XFER request block, followed by the payload data".
TEST(FuniTransfer, Section3_2_4__from_memory_to_the_queue) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Field field(node, 3);
    self.barrier();
    if (self.rank() == 0) {
      node.send(Class::kReply, transfer_header(3, 16, 1), {field.address, 0, 5});
      node.send(Class::kReply, transfer_header(4, 4, 1), {0, 0, 6, 1, 2, 3, 4});  // And out of the queue.
    } else {
      const Packet packet = node.receive(Class::kReply);
      EXPECT_EQ(packet.header, FUNI_HEADER(3, 17, 1)) << "a message";
      Words expected(17, 3);
      expected[0] = 5;
      EXPECT_EQ(packet.words, expected);
      EXPECT_EQ(node.receive(Class::kReply).words, (Words{6, 1, 2, 3, 4}));
    }
    expect_accepted(self, node);
  });
}

// "Both the source address and the destination address must be four-word aligned. (Misaligned addresses will be
// automatically truncated)".
TEST(FuniTransfer, Section3_2_4__addresses_are_truncated) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Field field(node);
    self.barrier();
    if (self.rank() == 0) {
      field.words[4] = 42;
      node.send(Class::kRequest, transfer_header(3, 4, 1), {field.address + 16 + 15, field.address + 32 + 7, 5});
    } else {
      EXPECT_EQ(node.receive(Class::kRequest).words, (Words{0, field.address + 32, 5}));
      EXPECT_EQ(field.words[8], 42u);
      EXPECT_EQ(field.words[7], kGap);
    }
    expect_accepted(self, node);
  });
}

// "The user process can examine the RPSQ_TL register to check the progress of FUNi and determine whether the data have
// been retrieved yet": what is changed afterwards does not travel, though the packet is rejected for long.
TEST(FuniTransfer, Section3_2_4__data_is_taken_when_the_tail_moves) {
  run_processes(2, [](Process& self) {
    Node node(self, 2);
    Field field(node, 1);
    self.barrier();
    constexpr std::uint32_t kPackets = 15;  // One slot, ten in the buffer, four of six lines.
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < kPackets; ++i) {
        field.words[0] = i;
        node.send(Class::kRequest, transfer_header(3, 4, 1), {field.address, field.address + 64, i});
        node.expect_soon([&] { return node.read(FUNI_RQSQ_TL) == node.read(FUNI_RQSQ_HD); });
      }
      field.words[0] = 4711;
      node.expect_soon([&] { return node.counts().rejected[1] > 0; });
    }
    self.barrier();
    for (std::uint32_t i = 0; self.rank() == 1 && i < kPackets; ++i) {
      const Packet notice = node.receive(Class::kRequest);
      EXPECT_LT(notice.words[2], kPackets);
      EXPECT_NE(field.words[16], 4711u);
    }
    expect_accepted(self, node);
  });
}

// SPEC: 5.2.3 writes the notice to `RQ_base + (RQ_TL<<5)`. The tail is the program's; the slot there may have a packet
// that has not been read.
TEST(FuniTransfer, Section5_2_3__the_notice_stands_at_the_head) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Field field(node);
    self.barrier();
    if (self.rank() == 0) {
      node.send(Class::kRequest, FUNI_HEADER(1, 1, 1), {17});
      node.send(Class::kRequest, transfer_header(3, 4, 1), {field.address, field.address + 64, 5});
    } else {
      node.expect_soon([&] { return node.read(FUNI_RQRQ_HD) == 2; });
      EXPECT_EQ(node.receive(Class::kRequest).words, Words{17});
      EXPECT_EQ(node.receive(Class::kRequest).words, (Words{0, field.address + 64, 5}));
    }
    expect_accepted(self, node);
  });
}

// "The size of the transfer per XFER packet must be a multiple of 4 and cannot be more than 16 words."
TEST(FuniTransfer, Section3_2_4__sizes_that_there_are_not) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    Field field(node);
    for (const std::uint32_t words : {3u, 17u, 20u, 31u}) {
      EXPECT_TRUE(node.try_send(Class::kRequest, transfer_header(3, words, 0), {field.address, field.address, 0}));
      EXPECT_FUNI(node.last_error(), FUNI_ERR_PACKET);
      funi_fault_t fault{};
      EXPECT_FUNI(funi_take_fault(node, &fault), FUNI_SUCCESS);
      EXPECT_FUNI(fault.error, FUNI_ERR_PACKET);
    }
    EXPECT_EQ(node.counts().dispatched[1], 0u);
    node.send(Class::kRequest, FUNI_HEADER(1, 0, 0), {});
    node.receive(Class::kRequest);
  });
}

// "MERR: this status bit becomes set when a DVMA operation fails because of a memory error ... FUNi will suspend all
// DVMA operations while this bit is set" (3.1.2); "retries the failed transaction when the operating system clears the
// MERR bit" (5.1).
TEST(FuniTransfer, Section3_1_2__a_source_where_nothing_is) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    Field field(node);
    // Interfaces that map alike get the same addresses: another one tells what the next will be.
    static std::array<std::uint32_t, 64> more{};
    more.fill(77);
    Node like(1);
    like.start_queues(kSlots);
    like.map(field.words.data(), sizeof field.words);
    const std::uint32_t later = like.map(more.data(), sizeof more);
    EXPECT_TRUE(node.try_send(Class::kRequest, transfer_header(3, 4, 0), {later, field.address, 1}));
    EXPECT_FUNI(node.last_error(), FUNI_ERR_ADDRESS);
    funi_fault_t fault{};
    funi_take_fault(node, &fault);
    EXPECT_EQ(fault.address, later & ~15u);
    std::uint32_t value = 0;
    EXPECT_FUNI(funi_read(node, FUNI_CNTL, &value), FUNI_ERR_ADDRESS);
    EXPECT_TRUE((value & FUNI_MERR) != 0);
    EXPECT_FUNI(funi_write(node, FUNI_CNTL, 0), FUNI_ERR_ADDRESS);
    EXPECT_EQ(node.counts().retrieved[1], 0u) << "only the system clears the bit";
    EXPECT_EQ(node.map(more.data(), sizeof more), later);
    node.write_privileged(FUNI_CNTL, 0);
    EXPECT_EQ(node.receive(Class::kRequest).words, (Words{0, field.address, 1}));
    EXPECT_EQ(field.words[0], 77u);
  });
}

// The same at the receiver. The system may also set DRAIN, "in this mode, instead of delivering remote DMA transfer
// packets directly to their destinations, FUNi enqueues the transfer packets into the receive queues".
TEST(FuniTransfer, Section3_1_2__a_destination_where_nothing_is) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Field field(node, 6);
    self.barrier();
    if (self.rank() == 0) {
      node.send(Class::kRequest, transfer_header(3, 8, 1), {field.address, 0xfffffff0u, 1});
      node.send(Class::kRequest, FUNI_HEADER(2, 0, 1), {});
      expect_accepted(self, node);
      return;
    }
    std::uint32_t value = 0;
    node.expect_soon([&] { return funi_read(node, FUNI_RQRQ_HD, &value) == FUNI_ERR_ADDRESS; });
    EXPECT_EQ(value, 0u) << "nothing is delivered meanwhile";
    funi_fault_t fault{};
    funi_take_fault(node, &fault);
    EXPECT_EQ(fault.address, 0xfffffff0u);
    node.write_privileged(FUNI_CNTL, FUNI_DRAIN);
    EXPECT_EQ(node.receive(Class::kRequest).words, (Words{0, 0xfffffff0u, 1}));
    const std::uint32_t* slot = node.slot(3, 0);
    EXPECT_EQ(Words(slot + 4, slot + 12), Words(8, 6));
    EXPECT_EQ(node.receive(Class::kRequest).header, FUNI_HEADER(2, 0, 1));
    expect_accepted(self, node);
  });
}
