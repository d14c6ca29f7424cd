// PTL_MD_UNRELIABLE at the initiator: what a wire may lose.

#include <gtest/gtest.h>

#include "engine/initiator/send.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

class SendUnreliableTest : public CoreTest {
 protected:
  /// Sends, and looks at the packets.
  std::vector<bool> losable(PacketType kind, std::uint64_t length, std::uint32_t md_options) {
    Descriptor d = descriptor(kind, length);
    MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
    md.options = md_options;
    d.portals.md_handle = md.handle;
    start_descriptor(core, d);
    std::vector<bool> packets;
    while (!wire.sent.empty()) packets.push_back(may_be_lost(wire.take().header));
    return packets;
  }
};

// 2.2: "guaranteed delivery of messages is not provided"; the rest of a message that is begun must arrive, though.
TEST_F(SendUnreliableTest, Put__may_be_lost_if_it_is_one_packet) {
  using Packets = std::vector<bool>;
  EXPECT_EQ(losable(PacketType::kPut, 100, 0), Packets{false});
  EXPECT_EQ(losable(PacketType::kPut, 0, kMdUnreliable), Packets{true});
  EXPECT_EQ(losable(PacketType::kPut, 100, kMdUnreliable), Packets{true});
  EXPECT_EQ(losable(PacketType::kPut, kPacketBytes, kMdUnreliable), Packets{true});
  EXPECT_EQ(losable(PacketType::kPut, kPacketBytes + 1, kMdUnreliable), (Packets{false, false}));
}

// 2.2: "Only the put operation with no acknowledgment is supported in this mode."
TEST_F(SendUnreliableTest, Get__is_as_reliable_as_ever) {
  EXPECT_EQ(losable(PacketType::kGet, 100, kMdUnreliable), std::vector<bool>{false});
}

}  // namespace
}  // namespace portofu
