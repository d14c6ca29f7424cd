// What libfabric asks of the initiator beyond Portals: fences, local calls, counters that keep their failures.

#include <gtest/gtest.h>

#include "tests/unit/initiator/send_fixture.h"

namespace portofu {
namespace {

class SendFenceTest : public SendTest {};

TEST_F(SendFenceTest, Fence__waits_until_all_before_is_answered_and_holds_what_is_behind) {
  start(get(8));
  const PacketHeader asked = next_sent();
  Descriptor fenced = put(8);
  fenced.portals.fenced = true;
  start(fenced);
  start(put(16));
  advance();
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_EQ(waiting(), 2u);
  receive(answer_header(asked.operation_id, 8, 8));
  advance();
  EXPECT_EQ(next_sent().length, 8u);
  EXPECT_EQ(next_sent().length, 16u);
}

TEST_F(SendFenceTest, Fence__with_nothing_before_it_holds_nothing) {
  Descriptor fenced = put(8);
  fenced.portals.fenced = true;
  start(fenced);
  EXPECT_EQ(next_sent().length, 8u);
}

/// The last part of an operation, of `bytes`, behind two others that `counter` counts.
class SendLastPartTest : public SendTest {
 protected:
  void start_last(std::uint64_t bytes) {
    counter().let_failures_start();
    counter().set_on_duty(0, 0, core.fired);
    MemoryDescriptor& own = make_md(ni, memory.data(), memory.size());
    own.options = kMdOneShot | kMdVolatile | kMdEventCtAck;
    own.ct_handle = ct;
    Descriptor last = put(bytes, AckRequest::kFull);
    last.portals.md_handle = own.handle;
    last.portals.parts_before = 2;
    start(last);
  }
  CountingEvent& counter() { return *ni.cts.find(ct); }
};

TEST_F(SendLastPartTest, Others_have_been_done__leaves_in_its_place) {
  start_last(8);
  start(put(16));
  count_success(core, ni, ct, 1);
  advance();
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_EQ(waiting(), 2u) << "what is behind keeps its place";
  count_success(core, ni, ct, 1);
  advance();
  EXPECT_EQ(next_sent().length, 8u);
  EXPECT_EQ(next_sent().length, 16u);
}

TEST_F(SendLastPartTest, Another_has_failed__fails_without_a_packet) {
  for (const std::uint64_t bytes : {0, 8}) {
    start_last(bytes);
    count_success(core, ni, ct, 1);
    advance();
    EXPECT_EQ(waiting(), 1u);
    count_failure(core, ni, ct);
    advance();
    EXPECT_EQ(waiting(), 0u);
    EXPECT_TRUE(wire.sent.empty());
    EXPECT_EQ(failures(), 2u) << "it counts as one, too";
  }
}

TEST_F(SendFenceTest, Local_call__runs) {
  struct Call : LocalCall {
    int runs = 0;
  } call;
  call.run = [](Core&, LocalCall& self) { ++static_cast<Call&>(self).runs; };
  Descriptor d = put(0);
  d.type = PacketType::kLocalCall;
  d.call = &call;
  start(d);
  EXPECT_EQ(call.runs, 1);
}

TEST_F(SendFenceTest, Counters__may_be_set_without_their_failures) {
  Descriptor d = put(3);
  d.type = PacketType::kCountIncrement;
  d.count = {ct, false, 3, 5};
  start(d);
  d.type = PacketType::kCountSet;
  d.count = {ct, true, 9, 0};
  start(d);
  EXPECT_EQ(successes(), 9u);
  EXPECT_EQ(failures(), 5u);
}

}  // namespace
}  // namespace portofu
