// The faults that tests/simulation/planted_faults.py plants have their places in the sources as they are now, and the
// page counts them right. Whether the simulation finds them takes hours; `./run soak` does that.

#include <gtest/gtest.h>

#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

TEST(PlantedFaults, Places__are_there_once_each) {
  std::string output;
  if (run_command("python3 --version", &output) != 0) GTEST_SKIP() << "there is no python3";
  EXPECT_EQ(run_command("python3 '" + root_path("tests/simulation/planted_faults.py") + "' --check", &output), 0)
      << output;
}

}  // namespace
}  // namespace portofu::repository
