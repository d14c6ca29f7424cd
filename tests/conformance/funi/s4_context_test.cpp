// Thesis, 4: groups, and switching of contexts.
#include "funi_fixture.h"

using namespace conformance;

namespace {

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kGroup = 1;
constexpr std::uint32_t kOtherGroup = 2;

}  // namespace

// "The inbound packet is delivered to the executing process only if a match is made. In the case of a GID mismatch ...
// FUNi will drop the undeliverable packet and return a negative acknowledgment" (4.1.1).
TEST(FuniGroup, Section4_1_1__packets_of_another_group_are_rejected) {
  run_processes(3, [](Process& self) {
    Node node(self, kSlots, self.rank() == 2 ? kOtherGroup : kGroup);
    if (self.rank() != 1) {
      node.send(Class::kRequest, FUNI_HEADER(1, 1, 1), {static_cast<std::uint32_t>(self.rank())});
      node.send(Class::kReply, FUNI_HEADER(1, 1, 1), {static_cast<std::uint32_t>(self.rank())});
    }
    if (self.rank() == 2) {
      node.expect_soon([&] { return node.counts().rejected[0] >= 10 && node.counts().rejected[1] >= 10; });
      EXPECT_EQ(node.counts().accepted[0] + node.counts().accepted[1], 0u);
    } else if (self.rank() == 0) {
      node.expect_soon([&] { return node.is_all_accepted(); });
    }
    self.barrier();
    if (self.rank() == 1) {
      EXPECT_EQ(node.receive(Class::kRequest).words, Words{0});
      EXPECT_EQ(node.receive(Class::kReply).words, Words{0});
      EXPECT_FALSE(node.try_receive(Class::kRequest).has_value());
      EXPECT_FALSE(node.try_receive(Class::kReply).has_value());
    }
    self.barrier();
  });
}

// "Only trusted system-level processes are allowed to write to the FUNi GID register" (4.1.2). "An attempt to set or
// clear the privileged control bits by user-level processes is ignored" (3.1.2).
TEST(FuniGroup, Section4_1_2__programs_do_not_write_what_is_privileged) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    EXPECT_FUNI(funi_write(node, FUNI_GID, 3), FUNI_ERR_PRIVILEGE);
    EXPECT_FUNI(funi_write(node, FUNI_TICKET, 0), FUNI_ERR_PRIVILEGE);
    EXPECT_EQ(node.read(FUNI_GID), kGroup);
    node.write(FUNI_CNTL, FUNI_MERR | FUNI_CTXM | FUNI_DRAIN);
    EXPECT_EQ(node.read(FUNI_CNTL), 0u);
    constexpr std::uint32_t kReset = 1u << 1;
    node.write(FUNI_CNTL, kReset | FUNI_CSQM);
    EXPECT_EQ(node.read(FUNI_CNTL), FUNI_CSQM | FUNI_CSQR) << "the others are as they were written";
    node.write(FUNI_CNTL, kReset);
    node.write_privileged(FUNI_CNTL, FUNI_DRAIN);
    node.write(FUNI_CNTL, 0);
    EXPECT_EQ(node.read(FUNI_CNTL), FUNI_DRAIN);
    EXPECT_FUNI(funi_write_privileged(node, FUNI_GID, 3), FUNI_ERR_BUSY) << "without CTXM";
    // Ends of queues that the interface moves.
    EXPECT_FUNI(funi_write(node, FUNI_RPSQ_TL, 1), FUNI_ERR_PRIVILEGE);
    EXPECT_FUNI(funi_write(node, FUNI_RQRQ_HD, 1), FUNI_ERR_PRIVILEGE);
  });
}

// "When a cache line has been selected for dispatch" it has a packet (5.2.4). The system may take lines for occupied
// that have never had one, as those of a context that another interface has kept: they leave no packet, and are free.
TEST(FuniContext, Section5_2_4__lines_that_nothing_was_ever_in_send_nothing) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    node.write_privileged(FUNI_CNTL, FUNI_CTXM);
    node.write_privileged(FUNI_TICKET, 0xf0);
    node.write_privileged(FUNI_CNTL, 0);
    for (int i = 0; i < 50; ++i) node.read(FUNI_CNTL);
    funi_counts_t counts{};
    ASSERT_FUNI(funi_get_counts(node, &counts));
    for (const std::uint64_t dispatched : counts.dispatched) EXPECT_EQ(dispatched, 0u);
    for (const std::uint64_t delivered : counts.delivered) EXPECT_EQ(delivered, 0u);
    EXPECT_EQ(node.read(FUNI_TICKET), 0xffu);
  });
}

// "Once this bit is set, all of FUNi's transactions will halt ... FUNi will also reject all further inbound packets by
// returning negative acknowledgments to their senders" (3.1.2, CTXM).
TEST(FuniContext, Section3_1_2__context_switch_mode_rejects_everything) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    if (self.rank() == 1) {
      node.write_privileged(FUNI_CNTL, FUNI_CTXM);
      const std::uint32_t ready = FUNI_CTXR1 | FUNI_CTXR1_PRIME | FUNI_CTXR2;
      node.expect_soon([&] { return (node.read(FUNI_CNTL) & ready) == ready; });
      node.send(Class::kRequest, FUNI_HEADER(1, 0, 0), {});
      EXPECT_EQ(node.read(FUNI_RQSQ_TL), 0u) << "retrieval has halted";
    }
    self.barrier();
    if (self.rank() == 0) {
      node.send(Class::kReply, FUNI_HEADER(1, 0, 1), {});
      node.expect_soon([&] { return node.counts().rejected[0] >= 10; });
    }
    self.barrier();
    if (self.rank() == 1) node.write_privileged(FUNI_CNTL, 0);
    node.receive(self.rank() == 1 ? Class::kReply : Class::kRequest);
    node.expect_soon([&] { return node.is_all_accepted(); });
    self.barrier();
  });
}

// "The operating system must explicitly set up a new pair of receive queues with sufficient space to drain the contents
// of the buffers ... When the context is restored, the drained packets need to be returned onto the network" (4.2).
// A program of group 1 is switched out with full queues, a full buffer, packets of its own that nobody has taken, and
// transfers among what is drained; one of group 2 runs; then the first goes on, and nothing is lost or doubled.
TEST(FuniContext, Section4_2__nothing_is_lost_by_a_switch) {
  run_processes(3, [](Process& self) {
    // Rank 0 is switched. Rank 1 is of its first group, rank 2 of its second.
    Node node(self, self.rank() == 0 ? kSlots : 64, self.rank() == 2 ? kOtherGroup : kGroup);
    constexpr std::uint32_t kPackets = 40;
    alignas(16) static std::array<std::uint32_t, 4 * kPackets> field{};
    const std::uint32_t address = self.share(node.map(field.data(), sizeof field)).at(0);
    const auto send_number = [&](std::uint32_t i, std::uint32_t to, Class traffic) {
      // Every third is a transfer out of the queue.
      if (i % 3 == 0) {
        node.send(traffic, FUNI_XFER | FUNI_HEADER(2, 4, to), {0, address + 16 * i, i, i, i, i, i});
      } else {
        node.send(traffic, FUNI_HEADER(1, 1, to), {i});
      }
    };
    if (self.rank() == 1) {
      for (std::uint32_t i = 0; i < kPackets; ++i) send_number(i, 0, i % 2 == 0 ? Class::kRequest : Class::kReply);
      node.expect_soon([&] { return node.counts().rejected[0] >= 5 && node.counts().rejected[1] >= 5; });
    }
    self.barrier();
    static funi_context_t first{};
    static funi_context_t second{};
    Node::Ends other{};
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < 5; ++i) node.send(Class::kRequest, FUNI_HEADER(1, 1, 2), {i});  // Of group 2.
      node.expect_soon([&] { return node.counts().rejected[1] >= 5; });
      EXPECT_FUNI(funi_save_context(node, &first, kPatienceMs), FUNI_SUCCESS);
      EXPECT_EQ(first.drained[0], 10u);
      EXPECT_EQ(first.drained[1], 10u);
      EXPECT_EQ(first.registers[FUNI_TICKET], 0xe0u) << "five lines have packets";
      EXPECT_FUNI(funi_begin_context(&second, kOtherGroup), FUNI_SUCCESS);
      EXPECT_FUNI(funi_restore_context(node, &second, kPatienceMs), FUNI_SUCCESS);
      other = node.swap_ends({});
      node.start_queues(kSlots);
      EXPECT_EQ(node.read(FUNI_TICKET), 0xffu);
    }
    self.barrier();
    if (self.rank() == 1) {
      node.expect_soon([&] { return node.is_all_accepted(); });
    } else if (self.rank() == 2) {
      node.send(Class::kRequest, FUNI_HEADER(7, 1, 0), {4711});
      EXPECT_EQ(node.receive(Class::kReply).words, Words{4712});
    } else if (self.rank() == 0) {
      EXPECT_EQ(node.receive(Class::kRequest).words, Words{4711});
      EXPECT_FALSE(node.try_receive(Class::kRequest).has_value());
      node.send(Class::kReply, FUNI_HEADER(7, 1, 2), {4712});
      node.expect_soon([&] { return node.is_all_accepted(); });
      EXPECT_FUNI(funi_save_context(node, &second, kPatienceMs), FUNI_SUCCESS);
      EXPECT_FUNI(funi_restore_context(node, &first, kPatienceMs), FUNI_SUCCESS);
      node.swap_ends(other);
      EXPECT_EQ(node.read(FUNI_GID), kGroup);
      EXPECT_EQ(node.read(FUNI_TICKET), 0xe0u);
      Words seen(kPackets);
      for (std::uint32_t i = 0; i < kPackets; ++i) {
        const Packet packet = node.receive(i % 2 == 0 ? Class::kRequest : Class::kReply);
        const bool is_notice = (packet.header & FUNI_XFER) != 0;
        const std::uint32_t number = packet.words.at(is_notice ? 2 : 0);
        EXPECT_EQ(is_notice, number % 3 == 0);
        ++seen.at(number);
      }
      EXPECT_EQ(seen, Words(kPackets, 1));
      for (std::uint32_t i = 0; i < kPackets; i += 3) EXPECT_EQ(field[4 * i], i) << i;
    }
    self.barrier();
  });
}

// A context is as it was when the switch cannot be made.
TEST(FuniContext, Section4_2__errors_leave_the_program_running) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    funi_context_t context{};
    EXPECT_FUNI(funi_begin_context(nullptr, 1), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_begin_context(&context, FUNI_GROUPS), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_begin_context(&context, 63), FUNI_ERR_ARGUMENT) << "of the system";
    EXPECT_FUNI(funi_save_context(node, nullptr, 100), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_restore_context(node, nullptr, 100), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_begin_context(&context, 2), FUNI_SUCCESS);
    EXPECT_FUNI(funi_restore_context(node, &context, 100), FUNI_ERR_BUSY) << "the program runs";
    // A transfer that cannot be delivered holds the receive queue up.
    node.send(Class::kRequest, FUNI_XFER | FUNI_HEADER(2, 4, 0), {0, 0x80000000u, 0, 1, 2, 3, 4});
    std::uint32_t value = 0;
    node.expect_soon([&] { return funi_read(node, FUNI_CNTL, &value) == FUNI_ERR_ADDRESS; });
    EXPECT_FUNI(funi_save_context(node, &context, 100), FUNI_ERR_ADDRESS);
    node.write_privileged(FUNI_CNTL, FUNI_DRAIN);
    node.receive(Class::kRequest);
    node.write_privileged(FUNI_CNTL, 0);
    node.send(Class::kRequest, FUNI_HEADER(1, 0, 0), {});
    node.receive(Class::kRequest);
  });
}
