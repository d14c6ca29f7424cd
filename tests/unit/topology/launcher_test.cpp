#include "engine/topology/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace portofu {
namespace {

using Variables = std::map<std::string, std::string>;

std::function<const char*(const char*)> from(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

bool spans_nodes(const Variables& variables) { return launcher_spans_nodes(from(variables)); }

std::uint32_t key(const Variables& variables) { return job_key_of_launcher(from(variables)); }

TEST(Launcher, Nobody__tells_of_no_other_node) { EXPECT_FALSE(spans_nodes({})); }

TEST(Launcher, Open_mpi__tells_by_the_ranks_that_are_not_here) {
  EXPECT_TRUE(spans_nodes({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_FALSE(spans_nodes({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}));
  EXPECT_FALSE(spans_nodes({{"OMPI_COMM_WORLD_SIZE", "4"}}));
}

TEST(Launcher, Hydra__tells_by_the_ranks_that_are_not_here) {
  EXPECT_TRUE(spans_nodes({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "1"}}));
  EXPECT_FALSE(spans_nodes({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}}));
}

TEST(Launcher, Slurm__tells_the_nodes) {
  EXPECT_TRUE(spans_nodes({{"SLURM_STEP_NUM_NODES", "2"}}));
  EXPECT_FALSE(spans_nodes({{"SLURM_STEP_NUM_NODES", "1"}}));
}

TEST(Launcher, Same_nid__is_shown_by_more_processes_than_are_here) {
  const std::vector<ProcessId> two_each{{1, 1}, {1, 2}, {2, 1}, {2, 2}};
  const std::vector<ProcessId> all_alike{{1, 1}, {1, 2}, {1, 1}, {1, 2}};
  const Variables open_mpi{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const Variables hydra{{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}};
  for (const Variables& variables : {open_mpi, hydra}) {
    EXPECT_FALSE(shows_same_nid(two_each, 1, from(variables)));
    EXPECT_TRUE(shows_same_nid(all_alike, 1, from(variables)));
    EXPECT_FALSE(shows_same_nid(all_alike, 2, from(variables)));
    const std::vector<ProcessId> others{{1, 1}, {1, 2}, {1, 3}};
    EXPECT_FALSE(shows_same_nid(others, 1, from(variables))) << "not all of the job";
  }
  EXPECT_FALSE(shows_same_nid(all_alike, 1, from({}))) << "nobody tells";
}

TEST(Launcher, Job_key__is_one_for_each_job_and_0_for_nobody) {
  EXPECT_EQ(key({}), 0u);
  EXPECT_EQ(key({{"SLURM_STEP_ID", "1"}, {"PMI_RANK", "0"}}), 0u);
  const Variables open_mpi{{"OMPI_MCA_orte_precondition_transports", "0123456789abcdef-fedcba9876543210"}};
  const Variables slurm{{"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", "2"}};
  EXPECT_NE(key(open_mpi), 0u);
  EXPECT_NE(key(slurm), 0u);
  EXPECT_NE(key(open_mpi), key({{"OMPI_MCA_orte_precondition_transports", "0123456789abcdef-fedcba9876543211"}}));
  EXPECT_NE(key(slurm), key({{"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", "3"}}));
  EXPECT_NE(key(slurm), key({{"SLURM_JOB_ID", "18"}, {"SLURM_STEP_ID", "2"}}));
  Variables both = slurm;
  both.insert(open_mpi.begin(), open_mpi.end());
  EXPECT_EQ(key(both), key(open_mpi)) << "mpirun within a step of Slurm";
  both["OMPI_COMM_WORLD_RANK"] = "3";
  EXPECT_EQ(key(both), key(open_mpi)) << "all ranks have the same";
}

TEST(Launcher, Rank__has_a_variable_for_each_launcher) {
  const auto rank = [](const Variables& variables) { return rank_of_launcher(from(variables)); };
  EXPECT_EQ(rank({}), -1);
  EXPECT_EQ(rank({{"OMPI_COMM_WORLD_RANK", "3"}}), 3);
  EXPECT_EQ(rank({{"PMIX_RANK", "4"}}), 4);
  EXPECT_EQ(rank({{"PMI_RANK", "12"}}), 12);
  EXPECT_EQ(rank({{"SLURM_PROCID", "0"}}), 0);
  EXPECT_EQ(rank({{"PMI_RANK", "4x"}, {"SLURM_PROCID", "5"}}), 5) << "no number is no rank";
  EXPECT_EQ(rank({{"PMI_RANK", ""}}), -1);
}

}  // namespace
}  // namespace portofu
