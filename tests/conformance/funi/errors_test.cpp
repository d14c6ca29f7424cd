// What funi.h says of errors, which the thesis leaves open: clear codes, and nothing hangs.
#include <portals4.h>

#include "funi_fixture.h"

using namespace conformance;

namespace {

constexpr std::uint32_t kSlots = 8;

}  // namespace

TEST(FuniErrors, Arguments) {
  run_processes(1, [](Process& self) {
    funi_t none = nullptr;
    EXPECT_FUNI(funi_open(nullptr, nullptr), FUNI_ERR_ARGUMENT);
    for (const funi_options_t& wrong :
         {funi_options_t{FUNI_GROUPS, 0, 0}, funi_options_t{31, 0, 0}, funi_options_t{0, FUNI_NODES, 0},
          funi_options_t{0, 0, 1}, funi_options_t{0, 0, 48}, funi_options_t{0, 0, 1u << 17}}) {
      EXPECT_FUNI(funi_open(&wrong, &none), FUNI_ERR_ARGUMENT);
    }
    EXPECT_EQ(none, nullptr);
    Node node(self, kSlots);
    std::uint32_t value = 0;
    EXPECT_FUNI(funi_read(nullptr, FUNI_CNTL, &value), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_read(node, FUNI_CNTL, nullptr), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_read(node, FUNI_REGISTERS, &value), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_write(node, FUNI_REGISTERS, 0), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_write(node, FUNI_RPSQ_HD, kSlots), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_write(node, FUNI_RPRQ_TL, 1), FUNI_ERR_ARGUMENT) << "behind what has been delivered";
    EXPECT_FUNI(funi_write_privileged(node, FUNI_CNTL, 1u << 1), FUNI_ERR_ARGUMENT) << "RESET";
    EXPECT_FUNI(funi_write(node, FUNI_RPSQ_BASE, 4096), FUNI_ERR_BUSY);
    EXPECT_FUNI(funi_write(node, FUNI_RQRQ_BASE, 4096), FUNI_ERR_BUSY);
    EXPECT_FUNI(funi_write(node, FUNI_QMASK, 15), FUNI_ERR_BUSY);
    funi_address_t address{};
    EXPECT_FUNI(funi_get_address(node, nullptr), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_set_route(node, FUNI_NODES, &address), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_map(node, &value, 0, &value), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_map(node, &value, std::size_t{1} << 33, &value), FUNI_ERR_MEMORY);
    EXPECT_FUNI(funi_unmap(node, 12345), FUNI_ERR_ADDRESS);
    EXPECT_FUNI(funi_unmap(node, node.read(FUNI_RPSQ_BASE)), FUNI_ERR_BUSY) << "the network writes there";
    EXPECT_FUNI(funi_address_of(node, &value, 4, &value), FUNI_ERR_ADDRESS);
    EXPECT_STREQ(funi_error_name(1), "unknown");
    EXPECT_STREQ(funi_error_name(-99), "unknown");
  });
}

TEST(FuniErrors, Queues_that_nothing_is_mapped_at_do_not_go) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    node.halt_queues();
    EXPECT_FUNI(funi_write(node, FUNI_QMASK, 5), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_write(node, FUNI_QMASK, 0), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(funi_write(node, FUNI_QMASK, 511), FUNI_ERR_ARGUMENT) << "larger than was asked for";
    node.write(FUNI_QMASK, 255);
    EXPECT_FUNI(funi_write(node, FUNI_CNTL, 0), FUNI_ERR_ADDRESS) << "the memory is for 8 slots";
    node.write(FUNI_QMASK, kSlots - 1);
    node.write(FUNI_CNTL, 0);
    node.write(FUNI_CNTL, FUNI_CRQM);
    node.write(FUNI_RPRQ_BASE, 0x70000000u);
    EXPECT_FUNI(funi_write(node, FUNI_CNTL, 0), FUNI_ERR_ADDRESS);
    EXPECT_EQ(node.read(FUNI_CNTL), FUNI_CRQM | FUNI_CRQR) << "it stays as it was";
  });
}

TEST(FuniErrors, A_node_without_a_route) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    EXPECT_TRUE(node.try_send(Class::kRequest, FUNI_HEADER(1, 0, 77), {}));
    EXPECT_FUNI(node.last_error(), FUNI_ERR_NODE);
    EXPECT_FUNI(funi_wait(node, 1000), FUNI_ERR_NODE) << "until somebody has taken it";
    funi_fault_t fault{};
    EXPECT_FUNI(funi_take_fault(node, &fault), FUNI_SUCCESS);
    EXPECT_EQ(fault.node, 77u);
    EXPECT_FUNI(funi_take_fault(node, &fault), FUNI_SUCCESS);
    EXPECT_FUNI(fault.error, FUNI_SUCCESS);
    EXPECT_TRUE(node.is_all_accepted()) << "it holds nothing up";
    EXPECT_FUNI(funi_wait(node, 1), FUNI_ERR_TIMEOUT);
  });
}

// Packets to a process that has died are given up, those to others go on.
TEST(FuniErrors, A_peer_that_dies) {
  run_processes(3, [](Process& self) {
    Node node(self, self.rank() == 0 ? 64 : kSlots);
    if (self.rank() == 0) {
      for (std::uint32_t i = 0; i < 40; ++i) node.send(Class::kRequest, FUNI_HEADER(1, 0, 1), {});
      node.expect_soon([&] { return node.counts().rejected[1] > 0; });
    }
    self.barrier();
    if (self.rank() == 1) self.die();
    if (self.rank() == 0) {
      funi_fault_t fault{};
      const auto give_up = [&] {
        if (funi_wait(node, 1) == FUNI_ERR_PEER) {
          funi_take_fault(node, &fault);
          EXPECT_FUNI(fault.error, FUNI_ERR_PEER);
          EXPECT_EQ(fault.node, 1u);
        }
        return node.is_all_accepted();
      };
      node.expect_soon(give_up);
      EXPECT_FUNI(fault.error, FUNI_ERR_PEER);
      funi_take_fault(node, &fault);  // The last packets may have been lost as that was asked.
      node.send(Class::kRequest, FUNI_HEADER(1, 0, 2), {});
      node.expect_soon([&] { return node.is_all_accepted(); });
    } else {
      node.receive(Class::kRequest);
    }
    self.barrier();
  });
}

// A peer that has closed its interface is told from one that is switched out.
TEST(FuniErrors, A_peer_that_has_closed_its_interface) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    {
      Node other(1);
      funi_address_t address{};
      funi_get_address(other, &address);
      funi_set_route(node, 1, &address);
    }
    EXPECT_TRUE(node.try_send(Class::kRequest, FUNI_HEADER(1, 0, 1), {}));
    std::uint32_t value = 0;
    node.expect_soon([&] { return funi_read(node, FUNI_CNTL, &value) == FUNI_ERR_PEER; });
    funi_fault_t fault{};
    funi_take_fault(node, &fault);
    EXPECT_EQ(node.read(FUNI_TICKET), 0xffu);
  });
}

// Nothing that a peer writes is believed: packets that are no packets of FUNi, from Portals itself.
TEST(FuniErrors, Packets_that_lie_about_themselves) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    funi_address_t at{};
    funi_get_address(node, &at);
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    std::array<std::uint32_t, 40> packet{};
    ASSERT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni),
              PTL_OK);
    const ptl_md_t described{packet.data(), sizeof packet, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ASSERT_EQ(PtlMDBind(ni, &described, &md), PTL_OK);
    ptl_process_t self_id{};
    self_id.phys = {at.nid, at.pid};
    const auto put = [&](std::uint32_t header, std::size_t bytes) {
      packet[0] = header;
      EXPECT_EQ(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, self_id, at.request_entry, 1, 0, nullptr, 0), PTL_OK);
    };
    put(FUNI_HEADER(1, 21, 9), 8);
    EXPECT_EQ(node.receive(Class::kRequest).header, FUNI_HEADER(1, 1, 0)) << "as long as it is";
    put(FUNI_HEADER(1, 31, 9), 128);
    EXPECT_EQ(node.receive(Class::kRequest).header, FUNI_HEADER(1, 21, 0));
    put(FUNI_XFER | FUNI_HEADER(1, 16, 0), 8);
    EXPECT_EQ(node.receive(Class::kRequest).header, FUNI_HEADER(1, 0, 0)) << "no notice, and nothing is written";
    put(FUNI_HEADER(3, 1, 0), 2);
    EXPECT_EQ(node.receive(Class::kRequest).header, FUNI_HEADER(0, 0, 0));
    put(FUNI_HEADER(3, 1, 0), 160);  // Longer than a slot: it matches nothing.
    put(FUNI_HEADER(4, 0, 0), 4);
    EXPECT_EQ(node.receive(Class::kRequest).header, FUNI_HEADER(4, 0, 0));
    PtlMDRelease(md);
    PtlNIFini(ni);
  });
}

// Each has its own entries, group and queues.
TEST(FuniErrors, Two_interfaces_of_a_process_are_apart) {
  run_processes(1, [](Process& self) {
    Node node(self, kSlots);
    Node other(1, 2);
    funi_address_t address{};
    funi_get_address(other, &address);
    funi_set_route(other, 1, &address);
    other.start_queues(kSlots);
    node.send(Class::kRequest, FUNI_HEADER(1, 1, 0), {1});
    other.send(Class::kRequest, FUNI_HEADER(1, 1, 1), {2});
    EXPECT_EQ(node.receive(Class::kRequest).words, Words{1});
    EXPECT_EQ(other.receive(Class::kRequest).words, Words{2});
  });
}
