// What ptl_trace shows of a process that speaks libfabric.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/conformance/libfabric/trigger_fixture.h"
#include "tests/process/command_output.h"

namespace portofu::test {
namespace {

/// Endpoints whose process writes down all its steps.
class FabricSteps : public FiTrigger {
 protected:
  FabricSteps() {
    std::string pattern = "/tmp/portofu-fabric-steps-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    setenv("PORTOFU_RECORD", directory_.c_str(), 1);
  }
  ~FabricSteps() override { std::filesystem::remove_all(directory_); }

  /// @return how many arrows of a kind the trace has
  int count_arrows(const std::string& kind) const {
    const std::string file = directory_ + "/trace.json";
    int status = 0;
    const std::string said =
        output_of(std::string(PORTOFU_PTL_TRACE) + " --merge " + directory_ + " -o " + file, &status);
    EXPECT_EQ(status, 0) << said;
    std::ifstream trace(file);
    const nlohmann::json whole = nlohmann::json::parse(trace);
    int count = 0;
    for (const nlohmann::json& event : whole.at("traceEvents"))
      count += event["ph"] == "s" && event["cat"] == kind ? 1 : 0;
    return count;
  }

 private:
  std::string directory_;
};

TEST_F(FabricSteps, Triggered_message__is_an_arrow_from_the_count_that_lets_it_start) {
  int sent = 22;
  int received = 0;
  fi_triggered_context2 context{};
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(send_at_gate(&sent, &context), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(count_arrows("trigger"), 1);
}

}  // namespace
}  // namespace portofu::test
