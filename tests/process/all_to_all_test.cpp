// Many processes on few cores: everybody sends to everybody.

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr int kProcesses = 16;
constexpr int kRounds = 20;

// Each process puts a word and a block of several packets into everybody's memory, round by round, and everybody
// counts.
TEST(AllToAll, Sixteen_processes__get_everything_from_everybody) {
  const OwnNode node;
  run_processes(kProcesses, [](Process& self) {
    const Ni ni(self);
    const ptl_handle_ct_t arrived = alloc_ct(ni);
    const ptl_handle_ct_t acknowledged = alloc_ct(ni);
    alloc_pt(ni, PTL_EQ_NONE);
    constexpr std::size_t kBlock = 20000;
    std::vector<unsigned char> memory(kProcesses * kBlock);
    ptl_me_t me = me_of(ni, memory.data(), memory.size(), PTL_ME_EVENT_CT_COMM);
    me.ct_handle = arrived;
    append(ni, me);
    const std::vector<unsigned char> mine = pattern(kBlock, static_cast<unsigned>(self.rank()));
    const ptl_handle_md_t md =
        bind_md(ni, md_of(mine.data(), mine.size(), PTL_EQ_NONE, acknowledged, PTL_MD_EVENT_CT_ACK));
    self.barrier();
    const auto place = static_cast<ptl_size_t>(self.rank()) * kBlock;
    ptl_size_t expected = 0;
    for (int round = 0; round < kRounds; ++round) {
      const ptl_size_t length = round == kRounds - 1 ? kBlock : 8;
      for (int peer = 0; peer < kProcesses; ++peer) {
        put(md, ni.id(peer), {.length = length, .remote_offset = place, .ack = PTL_CT_ACK_REQ});
      }
      expected += kProcesses;
      wait_for_count(acknowledged, expected);
      wait_for_count(arrived, expected);
      if (round % 5 == 4) self.barrier();  // Nobody is more than five rounds ahead.
    }
    self.barrier();
    EXPECT_EQ(count_of(arrived).success, expected);
    for (int peer = 0; peer < kProcesses; ++peer) {
      const auto theirs = pattern(kBlock, static_cast<unsigned>(peer));
      EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), memory.begin() + static_cast<std::ptrdiff_t>(peer) * kBlock))
          << "from " << peer;
    }
    self.barrier();
  });
}

TEST(AllToAll, Sixteen_processes__add_up_on_one_word) {
  const OwnNode node;
  run_processes(kProcesses, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::int64_t sum = 0;
    append(ni, me_of(ni, &sum, sizeof sum, PTL_ME_EVENT_COMM_DISABLE));
    std::int64_t one = 1;
    std::int64_t old = -1;
    const ptl_handle_md_t one_md = bind_quiet(ni, &one, sizeof one, ends.source_eq);
    const ptl_handle_md_t old_md = bind_quiet(ni, &old, sizeof old, ends.source_eq);
    self.barrier();
    std::int64_t last = -1;
    for (int i = 0; i < 100; ++i) {
      fetch_atomic(old_md, 0, one_md, ni.target(), {.length = 8});
      next_event(ends.source_eq, PTL_EVENT_REPLY);
      EXPECT_GT(old, last) << "a value was seen twice";
      last = old;
    }
    self.barrier();
    if (self.is_target()) {
      EXPECT_EQ(sum, 100 * kProcesses);
    }
  });
}

}  // namespace
}  // namespace portofu
