// Counting events: the two numbers, and what starts in which order when successes reach a threshold.

#include "engine/event/counting_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <vector>

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CountingEventTest : public testing::Test {
 protected:
  ~CountingEventTest() override { fired_names(); }

  /// Lets an operation wait; it is known by its name.
  void add(std::uint64_t threshold, std::uint64_t name) {
    auto* operation = new TriggeredOperation;
    operation->threshold = threshold;
    operation->descriptor.hdr_data = name;
    counter.add_triggered_on_duty(operation, fired);
  }

  /// Takes what has fired and says its names in order.
  std::vector<std::uint64_t> fired_names() {
    std::vector<std::uint64_t> names;
    fired.clear_and_dispose([&](TriggeredOperation* operation) {
      names.push_back(operation->descriptor.hdr_data);
      delete operation;
    });
    return names;
  }

  FiredOperations fired;
  CountingEvent counter;
};

TEST_F(CountingEventTest, New__counts_nothing) {
  EXPECT_EQ(counter.success(), 0u);
  EXPECT_EQ(counter.failure(), 0u);
  EXPECT_FALSE(counter.has_waiting());
}

TEST_F(CountingEventTest, Numbers__are_added_and_set) {
  counter.add_success_on_duty(3, fired);
  counter.add_success_on_duty(4, fired);
  counter.add_failure_on_duty(2, fired);
  EXPECT_EQ(counter.success(), 7u);
  EXPECT_EQ(counter.failure(), 2u);
  counter.set_on_duty(1, 0, fired);
  EXPECT_EQ(counter.success(), 1u);
  EXPECT_EQ(counter.failure(), 0u);
}

TEST_F(CountingEventTest, Successes__wrap) {
  counter.set_on_duty(UINT64_MAX, 0, fired);
  counter.add_success_on_duty(2, fired);
  EXPECT_EQ(counter.success(), 1u);
}

/// By a set, by a set of the failures alone, and by an increment that wraps, which is how programs decrement.
TEST_F(CountingEventTest, Watch__hears_of_what_is_set_back_and_keeps_it) {
  CountWatch first;
  first.test = 5;
  CountWatch second;
  second.test = 9;
  counter.keep_watch_on_duty(first);
  counter.keep_watch_on_duty(second);
  counter.set_on_duty(4, 0, fired);
  EXPECT_FALSE(first.reached) << "0 was set back";
  counter.add_success_on_duty(2, fired);
  counter.add_success_on_duty(UINT64_MAX - 2, fired);
  EXPECT_EQ(counter.success(), 3u);
  EXPECT_TRUE(first.reached);
  EXPECT_EQ(first.success, 6u);
  EXPECT_FALSE(second.reached);
  counter.add_failure_on_duty(1, fired);
  counter.set_on_duty(3, 0, fired);
  EXPECT_TRUE(second.reached);
  EXPECT_EQ(second.failure, 1u);
  EXPECT_EQ(first.failure, 0u);
}

TEST_F(CountingEventTest, Watch__that_has_left_hears_nothing) {
  CountWatch watch;
  counter.keep_watch_on_duty(watch);
  watch.unlink();
  counter.add_success_on_duty(1, fired);
  counter.set_on_duty(0, 0, fired);
  EXPECT_FALSE(watch.reached);
  counter.keep_watch_on_duty(watch);
  counter.reset_on_duty();
  watch.unlink();
}

TEST_F(CountingEventTest, Threshold_met_already__fires_at_once) {
  counter.add_success_on_duty(5, fired);
  add(0, 1);
  add(5, 2);
  EXPECT_THAT(fired_names(), ElementsAre(1, 2));
  add(6, 3);
  EXPECT_THAT(fired_names(), IsEmpty());
  EXPECT_TRUE(counter.has_waiting());
}

TEST_F(CountingEventTest, Threshold_0__fires_on_a_new_counter) {
  add(0, 1);
  EXPECT_THAT(fired_names(), ElementsAre(1));
}

TEST_F(CountingEventTest, Waiting__fires_when_the_threshold_is_reached_and_not_before) {
  add(3, 1);
  counter.add_success_on_duty(2, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
  counter.add_success_on_duty(1, fired);
  EXPECT_THAT(fired_names(), ElementsAre(1));
  EXPECT_FALSE(counter.has_waiting());
  counter.add_success_on_duty(1, fired);
  EXPECT_THAT(fired_names(), IsEmpty()) << "only once";
}

TEST_F(CountingEventTest, Several__fire_by_threshold_and_equal_ones_in_order_of_posting) {
  add(3, 31);
  add(1, 11);
  add(2, 21);
  add(3, 32);
  add(1, 12);
  add(3, 33);
  add(2, 22);
  counter.add_success_on_duty(3, fired);
  EXPECT_THAT(fired_names(), ElementsAre(11, 12, 21, 22, 31, 32, 33));
}

TEST_F(CountingEventTest, Several__fire_as_far_as_the_count_goes) {
  for (std::uint64_t i = 1; i <= 5; ++i) add(i, i);
  counter.add_success_on_duty(2, fired);
  EXPECT_THAT(fired_names(), ElementsAre(1, 2));
  counter.add_success_on_duty(2, fired);
  EXPECT_THAT(fired_names(), ElementsAre(3, 4));
  EXPECT_TRUE(counter.has_waiting());
}

TEST_F(CountingEventTest, Set__fires_like_an_addition_and_a_smaller_value_fires_nothing) {
  add(4, 1);
  counter.set_on_duty(3, 9, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
  counter.set_on_duty(0, 0, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
  counter.set_on_duty(4, 0, fired);
  EXPECT_THAT(fired_names(), ElementsAre(1));
}

TEST_F(CountingEventTest, Failures__start_nothing) {
  add(1, 1);
  counter.add_failure_on_duty(10, fired);
  counter.set_on_duty(0, 10, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
}

TEST_F(CountingEventTest, Failures__start_what_waits_where_that_is_wanted) {
  counter.let_failures_start();
  add(3, 1);
  add(4, 2);
  counter.add_failure_on_duty(2, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
  counter.add_success_on_duty(1, fired);
  EXPECT_THAT(fired_names(), ElementsAre(1));
  counter.add_failure_on_duty(1, fired);
  EXPECT_THAT(fired_names(), ElementsAre(2));
  add(4, 3);
  EXPECT_THAT(fired_names(), ElementsAre(3)) << "met already";
}

TEST_F(CountingEventTest, Armed_descriptor__hears_of_the_next_change_only) {
  const int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  eventfd_t heard = 0;
  counter.arm_on_duty(event_fd);
  EXPECT_NE(eventfd_read(event_fd, &heard), 0);
  counter.add_success_on_duty(1, fired);
  counter.add_success_on_duty(1, fired);
  EXPECT_EQ(eventfd_read(event_fd, &heard), 0);
  EXPECT_EQ(heard, 1u);
  counter.arm_on_duty(event_fd);
  counter.add_failure_on_duty(1, fired);
  EXPECT_EQ(eventfd_read(event_fd, &heard), 0);
  close(event_fd);
}

TEST_F(CountingEventTest, Cancel_of_an_owner__takes_out_what_is_his) {
  for (std::uint64_t i = 1; i <= 4; ++i) {
    auto* operation = new TriggeredOperation;
    operation->threshold = i;
    operation->descriptor.hdr_data = i;
    operation->owner = i == 4 ? nullptr : i == 2 ? &fired : static_cast<const void*>(&counter);
    counter.add_triggered_on_duty(operation, fired);
  }
  std::vector<std::uint64_t> names;
  const auto take = [&names](TriggeredOperation* operation) {
    names.push_back(operation->descriptor.hdr_data);
    delete operation;
  };
  const auto is_of = [](const void* owner) {
    return [owner](const TriggeredOperation& operation) { return operation.owner == owner; };
  };
  EXPECT_EQ(counter.cancel_some_on_duty(is_of(&counter), take), 2u);
  EXPECT_THAT(names, ElementsAre(1, 3));
  EXPECT_EQ(counter.cancel_some_on_duty(is_of(&fired), take), 1u);
  EXPECT_EQ(counter.waiting_count(), 1u);
}

TEST_F(CountingEventTest, Largest_threshold__waits_for_the_largest_count) {
  add(UINT64_MAX, 1);
  counter.add_success_on_duty(UINT64_MAX - 1, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
  counter.add_success_on_duty(1, fired);
  EXPECT_THAT(fired_names(), ElementsAre(1));
}

TEST_F(CountingEventTest, Cancel__deletes_what_waits_and_says_how_much) {
  add(1, 1);
  add(2, 2);
  EXPECT_EQ(counter.cancel_on_duty(), 2u);
  EXPECT_EQ(counter.cancel_on_duty(), 0u);
  counter.add_success_on_duty(5, fired);
  EXPECT_THAT(fired_names(), IsEmpty());
}

TEST_F(CountingEventTest, Cancel__leaves_what_has_fired) {
  add(1, 1);
  add(2, 2);
  counter.add_success_on_duty(1, fired);
  EXPECT_EQ(counter.cancel_on_duty(), 1u);
  EXPECT_THAT(fired_names(), ElementsAre(1));
}

TEST_F(CountingEventTest, Reset__begins_anew) {
  counter.set_on_duty(5, 6, fired);
  add(7, 1);
  counter.reset_on_duty();
  EXPECT_EQ(counter.success(), 0u);
  EXPECT_EQ(counter.failure(), 0u);
  EXPECT_FALSE(counter.has_waiting());
}

TEST_F(CountingEventTest, Destruction__deletes_what_waits) {
  auto* operation = new TriggeredOperation;
  operation->threshold = 1;
  CountingEvent short_lived;
  short_lived.add_triggered_on_duty(operation, fired);
}

}  // namespace
}  // namespace portofu
