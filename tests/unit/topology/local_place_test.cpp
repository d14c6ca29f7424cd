// Local ranks as launchers tell them, and the CQs that programs for Fugaku expect by them.

#include "engine/topology/local_place.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "engine/config/settings.h"

namespace portofu {
namespace {

using Variables = std::map<std::string, std::string>;
using Table = std::vector<std::uint32_t>;

LocalPlace place(const Variables& variables, const Settings& settings = {}) {
  return find_local_place(settings, [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

constexpr LocalPlace kNowhere{};

TEST(LocalPlace, Nobody__tells_none) { EXPECT_EQ(place({}), kNowhere); }

TEST(LocalPlace, Launchers__tell_rank_and_size) {
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}), (LocalPlace{2, 3}));
  EXPECT_EQ(place({{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}), (LocalPlace{1, 2}));
  EXPECT_EQ(place({{"MV2_COMM_WORLD_LOCAL_RANK", "0"}, {"MV2_COMM_WORLD_LOCAL_SIZE", "1"}}), (LocalPlace{0, 1}));
  EXPECT_EQ(place({{"PALS_LOCAL_RANKID", "5"}, {"PALS_LOCAL_SIZE", "6"}}), (LocalPlace{5, 6}));
  EXPECT_EQ(place({{"PMIX_LOCAL_RANK", "3"}}), (LocalPlace{3, 0}));
  EXPECT_EQ(place({{"PMI_LOCAL_RANK", "3"}, {"PMI_LOCAL_SIZE", "4"}}), (LocalPlace{3, 4}));
}

TEST(LocalPlace, Slurm__tells_a_size_only_if_all_nodes_have_it) {
  EXPECT_EQ(place({{"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4"}}), (LocalPlace{1, 4}));
  EXPECT_EQ(place({{"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}}), (LocalPlace{1, 4}));
  EXPECT_EQ(place({{"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}}), (LocalPlace{1, 0}));
}

TEST(LocalPlace, Mpirun_in_a_step_of_slurm__counts) {
  EXPECT_EQ(place({{"SLURM_LOCALID", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}).rank, 2u);
}

TEST(LocalPlace, Settings__come_before_any_launcher) {
  Settings settings;
  settings.local_rank = 1;
  settings.local_size = 2;
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, settings),
            (LocalPlace{1, 2}));
  settings.local_rank = LocalPlace::kNoRank;
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, settings),
            (LocalPlace{3, 2}));
}

TEST(LocalPlace, What_is_no_number__is_nobodys_rank) {
  for (const char* text : {"", "x", "-1", "1x", "99999999999"})
    EXPECT_EQ(place({{"MPI_LOCALRANKID", text}}), kNowhere) << text;
  EXPECT_EQ(place({{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "many"}}), (LocalPlace{1, 0}));
}

TEST(OwnCqs, Sizes__divide_twelve_queues_as_on_fugaku) {
  EXPECT_EQ(own_cqs({0, 1}, {}), (CqRange{0, 12}));
  EXPECT_EQ(own_cqs({1, 2}, {}), (CqRange{6, 6}));
  EXPECT_EQ(own_cqs({2, 3}, {}), (CqRange{8, 4}));
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(own_cqs({rank, 4}, {}), (CqRange{3 * rank, 3}));
  EXPECT_EQ(own_cqs({5, 6}, {}), (CqRange{10, 2}));
  EXPECT_EQ(own_cqs({11, 12}, {}), (CqRange{11, 1}));
}

TEST(OwnCqs, Nobody_tells_the_size__is_four_a_node) {
  EXPECT_EQ(own_cqs({2, 0}, {}), (CqRange{6, 3}));
  EXPECT_EQ(own_cqs({4, 0}, {}), CqRange{});
}

TEST(OwnCqs, More_ranks_than_queues__leaves_the_others_without) {
  EXPECT_EQ(own_cqs({3, 100}, {}), (CqRange{3, 1}));
  EXPECT_EQ(own_cqs({12, 100}, {}), CqRange{});
}

TEST(OwnCqs, No_rank__has_none) { EXPECT_EQ(own_cqs({}, {0, 2}), CqRange{}); }

TEST(OwnCqs, Table__names_one_for_each_rank) {
  EXPECT_EQ(own_cqs({2, 4}, {0, 2, 5, 8}), (CqRange{5, 1}));
  EXPECT_EQ(own_cqs({4, 5}, {0, 2, 5, 8}), CqRange{});
}

TEST(VirtualNodes, Ranks__fill_one_after_the_other) {
  const auto node = [](LocalPlace place, std::uint32_t per_node) {
    const VirtualNode at = virtual_node(place, per_node);
    return std::pair{at.number, at.place};
  };
  EXPECT_EQ(node({3, 10}, 4), (std::pair{0u, LocalPlace{3, 4}}));
  EXPECT_EQ(node({4, 10}, 4), (std::pair{1u, LocalPlace{0, 4}}));
  EXPECT_EQ(node({9, 10}, 4), (std::pair{2u, LocalPlace{1, 2}})) << "the last one has fewer";
  EXPECT_EQ(node({5, 0}, 4), (std::pair{1u, LocalPlace{1, 4}})) << "nobody tells how many there are";
  EXPECT_EQ(node({9, 10}, 0), (std::pair{0u, LocalPlace{9, 10}})) << "the machine is one node";
  EXPECT_EQ(node(kNowhere, 4), (std::pair{0u, kNowhere}));
  EXPECT_EQ(node({65535, 65536}, 1), (std::pair{65535u, LocalPlace{0, 1}}));
}

TEST(CqTable, Text__is_numbers_below_the_limit) {
  Table table;
  EXPECT_TRUE(parse_cq_table("0,2,5,8", 9, &table));
  EXPECT_EQ(table, (Table{0, 2, 5, 8}));
  EXPECT_TRUE(parse_cq_table("", 9, &table));
  EXPECT_EQ(table, Table{});
  for (const char* text : {"9", "1,", ",1", "1;2", "a", "-1", "1,,2", "1 2"})
    EXPECT_FALSE(parse_cq_table(text, 9, &table)) << text;
}

}  // namespace
}  // namespace portofu
