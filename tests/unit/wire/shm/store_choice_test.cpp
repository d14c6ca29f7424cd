// Which stores are chosen for which costs.

#include "engine/wire/shm/store_choice.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

constexpr std::uint32_t kBytes = 8192;

/// A machine on which a chunk takes so long to write.
struct Costs {
  std::uint64_t ordinary_ns;
  std::uint64_t streaming_ns;
};
constexpr Costs kNear{300, 320};
constexpr Costs kFar{4000, 300};

/// @return of so many chunks, those written by streaming stores
int write_chunks(StoreChoice& choice, const Costs& costs, int count) {
  int streamed = 0;
  for (int i = 0; i < count; ++i) {
    const bool streaming = choice.choose();
    if (streaming) ++streamed;
    if (choice.wants_time()) choice.note(streaming ? costs.streaming_ns : costs.ordinary_ns, kBytes);
  }
  return streamed;
}

TEST(StoreChoice, Cores_that_share_a_cache__get_ordinary_stores_but_for_trials) {
  StoreChoice choice;
  EXPECT_LE(write_chunks(choice, kNear, 1000), 10);
  EXPECT_FALSE(choice.prefers_streaming());
}

TEST(StoreChoice, Cores_that_share_none__get_streaming_stores_but_for_trials) {
  StoreChoice choice;
  EXPECT_GE(write_chunks(choice, kFar, 1000), 980);
  EXPECT_TRUE(choice.prefers_streaming());
}

TEST(StoreChoice, Cores_that_move__are_followed) {
  StoreChoice choice;
  for (int i = 0; i < 5; ++i) {
    write_chunks(choice, kNear, 1000);
    EXPECT_FALSE(choice.prefers_streaming());
    write_chunks(choice, kFar, 1000);
    EXPECT_TRUE(choice.prefers_streaming());
  }
}

TEST(StoreChoice, Trial_in_a_streamed_area__is_dear_and_still_leads_back) {
  StoreChoice choice;
  write_chunks(choice, kFar, 1000);
  write_chunks(choice, {1700, 320}, 1000);
  EXPECT_FALSE(choice.prefers_streaming());
}

TEST(StoreChoice, Source_out_of_the_cache__changes_nothing) {
  StoreChoice choice;
  write_chunks(choice, kFar, 1000);
  write_chunks(choice, {4800, 1100}, 200);
  EXPECT_TRUE(choice.prefers_streaming());
}

TEST(StoreChoice, Interruption__changes_nothing) {
  StoreChoice choice;
  write_chunks(choice, kNear, 100);
  while (!choice.wants_time()) choice.choose();
  choice.note(5'000'000, kBytes);
  EXPECT_FALSE(choice.prefers_streaming());
}

TEST(StoreChoice, Time__is_asked_for_now_and_then) {
  StoreChoice choice;
  write_chunks(choice, kNear, 10);
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
