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

}  // namespace
}  // namespace portofu
