// How ptl_top reads what the kernel and the launcher say of a process.

#include "lib/tools/ptl_top/look.h"

#include <gtest/gtest.h>

#include <map>

namespace portofu::tools {
namespace {

std::int64_t rank_in(const std::map<std::string, std::string>& environment) {
  return rank_of([&environment](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second.c_str() : nullptr;
  });
}

TEST(RankOf, Launchers__have_variables_of_their_own) {
  EXPECT_EQ(rank_in({}), ProcessLook::kNoRank);
  EXPECT_EQ(rank_in({{"OMPI_COMM_WORLD_RANK", "3"}}), 3);
  EXPECT_EQ(rank_in({{"PMI_RANK", "12"}}), 12);
  EXPECT_EQ(rank_in({{"SLURM_PROCID", "0"}}), 0);
  EXPECT_EQ(rank_in({{"PMI_RANK", "4x"}, {"SLURM_PROCID", "5"}}), 5) << "no number is no rank";
  EXPECT_EQ(rank_in({{"PMI_RANK", ""}}), ProcessLook::kNoRank);
}

TEST(ReadStat, Program__may_have_any_name) {
  char state = 0;
  std::uint64_t cpu_ns = 0;
  const std::string rest = " T 1 2 3 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 3 0 1234 5678 90";
  EXPECT_TRUE(read_stat("77 (solver)" + rest, 100, &state, &cpu_ns));
  EXPECT_EQ(state, 'T');
  EXPECT_EQ(cpu_ns, 2'000'000'000u);
  state = 0;
  EXPECT_TRUE(read_stat("77 (a) R 1 (b)" + rest, 100, &state, &cpu_ns));
  EXPECT_EQ(state, 'T');
}

TEST(ReadStat, What_is_no_such_text__is_refused) {
  char state = '?';
  std::uint64_t cpu_ns = 5;
  EXPECT_FALSE(read_stat("", 100, &state, &cpu_ns));
  EXPECT_FALSE(read_stat("77 (solver) R 1 2", 100, &state, &cpu_ns));
  EXPECT_FALSE(read_stat("77 (solver) R 1 2 3 0 -1 4 1 0 0 0 1 1", 0, &state, &cpu_ns));
  EXPECT_EQ(state, '?');
  EXPECT_EQ(cpu_ns, 5u);
}

}  // namespace
}  // namespace portofu::tools
