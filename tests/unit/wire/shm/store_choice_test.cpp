// Which stores are chosen for which costs.

#include "engine/wire/shm/store_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace portofu {
namespace {

constexpr std::uint32_t kBytes = 8192;

/// Two cores, and an area that goes round: what a chunk costs depends on how the last lap was written.
class Cores {
 public:
  bool far = false;
  std::uint64_t source_ns = 0;  ///< For a chunk of the source that is not in the cache.

  /// @return of so many chunks, those written by streaming stores
  int write_chunks(StoreChoice& choice, int count) {
    int streamed = 0;
    for (int i = 0; i < count; ++i) {
      const bool streaming = choice.choose();
      streamed_ = streaming ? std::min(streamed_ + 1, kLap) : std::max(streamed_ - 1, 0);
      if (streaming) ++streamed;
      if (choice.wants_time()) choice.note(source_ns + (streaming ? streaming_ns() : ordinary_ns()), kBytes);
    }
    return streamed;
  }

 private:
  static constexpr int kLap = 256;
  std::uint64_t streaming_ns() const { return far && streamed_ < kLap / 2 ? 560 : 330; }
  std::uint64_t ordinary_ns() const {
    if (far) return 3400;
    return streamed_ > kLap / 2 ? 1700 : 330;
  }

  int streamed_ = 0;
};

struct StoreChoiceTest : ::testing::Test {
  Cores cores;
  StoreChoice choice;
};

TEST_F(StoreChoiceTest, Cores_that_share_a_cache__get_ordinary_stores_but_for_trials) {
  EXPECT_LE(cores.write_chunks(choice, 1000), 10);
  EXPECT_FALSE(choice.prefers_streaming());
}

TEST_F(StoreChoiceTest, Cores_that_share_none__get_streaming_stores_but_for_trials) {
  cores.far = true;
  EXPECT_GE(cores.write_chunks(choice, 3000), 2940);
  EXPECT_TRUE(choice.prefers_streaming());
}

TEST_F(StoreChoiceTest, Cores_that_move__are_followed) {
  for (int i = 0; i < 10; ++i) {
    cores.far = i % 2 != 0;
    cores.write_chunks(choice, 2000);
    EXPECT_EQ(choice.prefers_streaming(), cores.far);
    EXPECT_LE(cores.write_chunks(choice, 1000) < 500, !cores.far);
  }
}

TEST_F(StoreChoiceTest, Source_out_of_the_cache__changes_nothing) {
  for (const bool far : {false, true}) {
    cores.far = far;
    cores.source_ns = 0;
    cores.write_chunks(choice, 2000);
    cores.source_ns = 500;
    cores.write_chunks(choice, 2000);
    EXPECT_EQ(choice.prefers_streaming(), far);
  }
}

TEST_F(StoreChoiceTest, Interruption_of_the_first_copy__is_soon_forgotten) {
  do {
    choice.choose();
  } while (!choice.wants_time());
  choice.note(5'000'000, kBytes);
  cores.write_chunks(choice, 20);
  EXPECT_LE(choice.cost(), 4000u);
}

TEST_F(StoreChoiceTest, Interruption__changes_nothing) {
  cores.write_chunks(choice, 100);
  do {
    choice.choose();
  } while (!choice.wants_time());
  choice.note(5'000'000, kBytes);
  EXPECT_FALSE(choice.prefers_streaming());
}

TEST_F(StoreChoiceTest, Time__is_asked_for_now_and_then) {
  cores.write_chunks(choice, 10);
  int timed = 0;
  for (int i = 0; i < 1000; ++i) {
    choice.choose();
    if (choice.wants_time()) ++timed;
  }
  EXPECT_GE(timed, 100);
  EXPECT_LE(timed, 150);
}

}  // namespace
}  // namespace portofu
