#include "engine/run/unwinding.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <mutex>
#include <thread>

#include "engine/core/direct_lane.h"
#include "engine/queue/fork_mutex.h"
#include "engine/run/duty.h"

namespace portofu {
namespace {

TEST(Unwinding, Duty__is_held_by_who_has_taken_it_and_not_by_others) {
  DutyLock duty(kTakesToFavour);
  EXPECT_FALSE(holds_what_others_need());
  // First by the word, then as the favourite.
  for (std::uint32_t i = 0; i < 2 * kTakesToFavour; ++i) {
    duty.take();
    ASSERT_TRUE(holds_what_others_need()) << i;
    duty.give();
    ASSERT_FALSE(holds_what_others_need()) << i;
  }
  duty.take();
  std::thread([] { EXPECT_FALSE(holds_what_others_need()); }).join();
  duty.give();
}

TEST(Unwinding, Duty_that_is_gone__is_nobodys) {
  { DutyLock duty; }
  EXPECT_FALSE(holds_what_others_need());
}

TEST(Unwinding, Mutex__is_held_until_it_is_given_back) {
  ForkMutex outer;
  ForkMutex inner;
  {
    const std::lock_guard lock(outer);
    EXPECT_TRUE(holds_what_others_need());
    { const std::lock_guard second(inner); }
    EXPECT_TRUE(holds_what_others_need());
    std::thread([&] {
      EXPECT_FALSE(outer.try_lock());
      EXPECT_FALSE(holds_what_others_need());
    }).join();
  }
  EXPECT_FALSE(holds_what_others_need());
}

TEST(Unwinding, Lane__is_held_by_who_is_inside) {
  LaneSeat seat;
  LaneSeat* const before = own_seat;
  own_seat = &seat;
  EXPECT_FALSE(holds_what_others_need());
  seat.busy = true;
  EXPECT_TRUE(holds_what_others_need());
  own_seat = before;
}

/// A frame of ours that has something to destroy.
struct Frame {
  explicit Frame(bool& was_left) : left(was_left) {}
  ~Frame() { left = true; }
  bool& left;
};

struct Leaving {
  DutyLock* duty;  ///< nullptr: it holds none.
  bool left = false;
};

/// The frame of a call that a thread leaves as pthread_exit(3) in a signal handler would.
void* leave(void* argument) {
  auto& leaving = *static_cast<Leaving*>(argument);
  const Frame frame(leaving.left);
  if (leaving.duty != nullptr) leaving.duty->take();
  pthread_exit(nullptr);
}

void leave_in_a_thread(Leaving& leaving) {
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, leave, &leaving), 0);
  pthread_join(thread, nullptr);
}

TEST(Unwinding, Thread_that_holds_nothing__unwinds) {
  prepare_unwinding();
  Leaving leaving{nullptr};
  leave_in_a_thread(leaving);
  EXPECT_TRUE(leaving.left);
}

TEST(Unwinding, Thread_that_holds_the_duty__ends_the_process_before_it_unwinds) {
  const auto leave_with_duty = [] {
    DutyLock duty;  // Of this process: EXPECT_DEATH forks.
    Leaving leaving{&duty};
    leave_in_a_thread(leaving);
  };
  EXPECT_DEATH(leave_with_duty(), "has ended in the middle of a call");
}

[[gnu::noinline]] void end_thread() { pthread_exit(nullptr); }

[[gnu::noinline]] void let_nothing_out() noexcept {
  end_thread();
  asm volatile("");  // No tail call, which would leave no frame.
}

void* leave_what_lets_nothing_out(void*) {
  let_nothing_out();
  return nullptr;
}

struct LeftInDestructor {
  ~LeftInDestructor() { end_thread(); }
};

void* leave_a_destructor(void*) {
  const LeftInDestructor left;
  return nullptr;
}

void run_in_a_thread(void* (*body)(void*)) {
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
  pthread_join(thread, nullptr);
}

// The C++ library would end the process there, too, and say nothing but that it does ([except.spec]/5).
TEST(Unwinding, Function_that_lets_nothing_out__ends_the_process_and_says_why) {
#if defined(__clang__)
  GTEST_SKIP() << "its tables do not tell such functions from handlers";
#endif
  EXPECT_DEATH(run_in_a_thread(leave_what_lets_nothing_out), "has ended in the middle of a call");
  EXPECT_DEATH(run_in_a_thread(leave_a_destructor), "has ended in the middle of a call");
}

TEST(Unwinding, Exceptions__are_as_ever) {
  DutyLock duty;
  bool left = false;
  try {
    const Frame frame(left);
    duty.take();
    throw 1;
  } catch (int) {
    duty.give();
  }
  EXPECT_TRUE(left);
}

}  // namespace
}  // namespace portofu
