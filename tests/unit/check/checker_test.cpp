#include "engine/check/checker.h"

#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/found.h"

namespace portofu {
namespace {

class CheckerTest : public CoreTest {};

// As soon as an event is posted its initiator may hear of it and tell the program, which may write before any cycle of
// the engine has ended.
TEST_F(CheckerTest, Memory_of_an_event__is_kept_as_it_is_posted) {
  Found found;
  Checker checker(found.file(), 3);
  const Observers observers{nullptr, &checker};
  core.observers = &observers;
  std::array<std::byte, 8> target{};
  const Handle queue = make_eq(ni, 4);
  post_new_event(core, ni, queue, [&](Event& event) {
    event.type = EventKind::kPut;
    event.start = target.data();
    event.mlength = target.size();
  });
  target[2] = std::byte{2};
  checker.portals.reads_event(core, *ni.eqs.find(queue));
  EXPECT_TRUE(found.has("\"kind\":\"target_changed\"")) << found.text();
  EXPECT_TRUE(found.has("\"byte\":2")) << found.text();
  ni.eqs.find(queue)->remove_oldest_on_duty();
  core.observers = nullptr;
}

// A program may wait for what a chain of counters does, and never look at those in the middle (3.16).
TEST_F(CheckerTest, Operation_that_starts__tells_what_its_counter_has) {
  Found found;
  Checker checker(found.file(), 3);
  Descriptor d;
  d.type = PacketType::kPut;
  d.length = 8;
  MemoryDescriptor& md = make_md(ni, memory.data(), memory.size(), kMdEventCtAck);
  md.ct_handle = ct;
  d.portals.md_handle = md.handle;
  d.portals.ack_req = AckRequest::kCount;
  checker.portals.starts(ni, md, d);
  TriggeredOperation operation;
  operation.counter = ct;
  operation.threshold = 1;
  operation.descriptor.type = PacketType::kCountSet;
  operation.descriptor.count.ct_handle = ct;
  note_start(checker, core, operation);
  memory[0] = std::byte{1};
  checker.portals.changes_count(ni.cts.find(ct));
  EXPECT_TRUE(found.is_empty()) << found.text();
}

}  // namespace
}  // namespace portofu
