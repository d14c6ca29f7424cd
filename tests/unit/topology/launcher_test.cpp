#include "engine/topology/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace portofu {
namespace {

bool spans_nodes(const std::map<std::string, std::string>& variables) {
  return launcher_spans_nodes([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

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

}  // namespace
}  // namespace portofu
