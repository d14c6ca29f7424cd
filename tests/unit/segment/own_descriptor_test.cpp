// Descriptors of the library in a program that closes what is not its own.

#include "engine/segment/own_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

int open_nothing() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }
bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
bool ends_with_exec(int fd) { return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

TEST(OwnDescriptor, Number__is_above_the_standard_streams_and_ends_with_exec) {
  EXPECT_EQ(in_dying_child([] {
              for (int number = 0; number <= 2; ++number) close(number);
              const OwnDescriptor own(open_nothing());
              if (own.number() <= 2 || !own.is_ours() || !ends_with_exec(own.number())) return 1;
              for (int number = 0; number <= 2; ++number) {
                if (is_open(number)) return 2;
              }
              return 0;
            }),
            0);
}

TEST(OwnDescriptor, Nothing__is_nobodys) {
  const OwnDescriptor none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.is_ours());
  EXPECT_EQ(none.get(), -1);
  const OwnDescriptor failed(-1);
  EXPECT_FALSE(failed);
}

TEST(OwnDescriptor, End__closes_it) {
  int number = -1;
  {
    OwnDescriptor own(open_nothing());
    number = own.number();
    const OwnDescriptor moved(std::move(own));
    EXPECT_TRUE(moved.is_ours());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(OwnDescriptor, File_of_the_program_under_its_number__is_not_touched) {
  int theirs = -1;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    const OwnDescriptor own(open_nothing());
    theirs = own.number();
    close(theirs);
    EXPECT_FALSE(own.is_ours()) << "closed";
    ASSERT_EQ(dup2(ends[0], theirs), theirs);
    EXPECT_FALSE(own.is_ours()) << "another file";
    EXPECT_EQ(own.get(), -1);
  }
  EXPECT_TRUE(is_open(theirs));
  for (const int number : {theirs, ends[0], ends[1]}) close(number);
}

TEST(OwnDescriptor, Same_file__is_known_by_any_number) {
  const OwnDescriptor one(open_nothing());
  const OwnDescriptor same(open_nothing());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const OwnDescriptor other(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(one.is_same_file(same));
  EXPECT_FALSE(one.is_same_file(other));
}

TEST(OwnDescriptor, Far_up__is_where_few_programs_come) {
  const OwnDescriptor own(move_far_up(open_nothing()));
  EXPECT_GE(own.number(), 100);
  EXPECT_TRUE(ends_with_exec(own.number()));
}

/// What /proc says of the table of descriptors.
long table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("FDSize:", 0) == 0) return std::stol(line.substr(7));
  }
  return 0;
}

TEST(OwnDescriptor, Room_far_up__stays_though_nothing_is_open_there) {
  EXPECT_EQ(in_dying_child([] {
              make_room_far_up();
              if (is_open(512)) return 1;
              return table_size() > 512 ? 0 : 2;
            }),
            0);
}

TEST(StandardNumbers, Taken__are_closed_again_unless_they_are_kept) {
  for (const bool keep : {false, true}) {
    EXPECT_EQ(in_dying_child([keep] {
                close(0);
                close(2);
                {
                  StandardNumbersTaken taken;
                  if (open_nothing() <= 2) return 1;
                  if (write(2, "x", 1) >= 0) return 2;  // As if it was closed.
                  if (keep) taken.keep();
                }
                return is_open(0) == keep && is_open(2) == keep ? 0 : 3;
              }),
              0);
  }
}

// close(2) is a place where a thread is cancelled (pthreads(7)), and a destructor none where one may unwind.
TEST(StandardNumbers, Taken__are_closed_by_a_thread_that_is_to_be_cancelled) {
  EXPECT_EQ(in_dying_child([] {
              for (int number = 0; number <= 1; ++number) close(number);
              std::atomic<bool> is_done{false};
              std::thread thread([&is_done] {
                pthread_cancel(pthread_self());
                { const StandardNumbersTaken taken; }
                is_done = true;
              });
              thread.join();
              return is_done && !is_open(0) && !is_open(1) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace portofu
