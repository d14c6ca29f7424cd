// Who is said to run the loop.

#include "engine/run/attendance.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(Attendance, Process__is_unattended_while_the_progress_thread_does_what_is_to_do) {
  std::atomic<std::uint32_t> shown{0};
  Attendance attendance(&shown);
  attendance.note_work_on_duty(true);
  EXPECT_EQ(shown.load(), 0u);
  attendance.note_work_on_duty(false);
  EXPECT_EQ(shown.load(), 1u);
  attendance.note_look_on_duty();
  EXPECT_EQ(shown.load(), 1u) << "it has found nothing";
  attendance.note_work_on_duty(true);
  EXPECT_EQ(shown.load(), 0u);
}

TEST(Attendance, Looks__are_counted_where_nothing_is_shown_too) {
  Attendance attendance(nullptr);
  attendance.note_work_on_duty(false);
  EXPECT_EQ(attendance.looks(), 0u);
  attendance.note_look_on_duty();
  EXPECT_EQ(attendance.looks(), 1u);
  EXPECT_EQ(attendance.looks_word().load(), 1u);
}

}  // namespace
}  // namespace portofu
