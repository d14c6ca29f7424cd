// What ptl_trace shows of a process that speaks libfabric.

#include <gtest/gtest.h>

#include <array>
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
    return count([&kind](const nlohmann::json& event) { return event["ph"] == "s" && event["cat"] == kind; });
  }
  int count_calls(const std::string& name) const {
    return count(
        [&name](const nlohmann::json& event) { return event.value("cat", "") == "call" && event["name"] == name; });
  }

 private:
  template <class Counts>
  int count(Counts&& counts) const {
    const std::string file = directory_ + "/trace.json";
    int status = 0;
    const std::string said =
        output_of(std::string(PORTOFU_PTL_TRACE) + " --merge " + directory_ + " -o " + file, &status);
    EXPECT_EQ(status, 0) << said;
    std::ifstream trace(file);
    const nlohmann::json whole = nlohmann::json::parse(trace);
    int count = 0;
    for (const nlohmann::json& event : whole.at("traceEvents")) count += counts(event) ? 1 : 0;
    return count;
  }

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

TEST_F(FabricSteps, Calls__are_named_by_their_kind) {
  static std::array<std::uint64_t, 8> sent{};  // Some operations may be under way when the test ends.
  static std::array<std::uint64_t, 8> received{};
  fi_triggered_context2 context{};
  int value = 1;
  ASSERT_EQ(fi_trecv(b.ep, received.data(), 8, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, sent.data(), 8, nullptr, to_b, 7, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(b.next().err, 0);
  ASSERT_EQ(fi_recv(b.ep, received.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, sent.data(), 8, to_b), 0);
  EXPECT_EQ(b.next().err, 0);
  ASSERT_EQ(fi_recv(b.ep, received.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(send_at_gate(&value, &context), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(b.next().err, 0);
  // No such memory: the calls are calls all the same.
  ASSERT_EQ(fi_write(a.ep, sent.data(), 8, nullptr, to_b, 0, 99, nullptr), 0);
  ASSERT_EQ(fi_read(a.ep, sent.data(), 8, nullptr, to_b, 0, 99, nullptr), 0);
  ASSERT_EQ(fi_atomic(a.ep, sent.data(), 1, nullptr, to_b, 0, 99, FI_UINT64, FI_SUM, nullptr), 0);
  ASSERT_EQ(
      fi_fetch_atomic(a.ep, sent.data(), 1, nullptr, received.data(), nullptr, to_b, 0, 99, FI_UINT64, FI_SUM, nullptr),
      0);
  EXPECT_EQ(count_calls("fi_trecv"), 1);
  EXPECT_EQ(count_calls("fi_tsend"), 1);
  EXPECT_EQ(count_calls("fi_recv"), 2);
  EXPECT_EQ(count_calls("fi_send"), 2);
  EXPECT_EQ(count_calls("fi_write"), 1);
  EXPECT_EQ(count_calls("fi_read"), 1);
  EXPECT_EQ(count_calls("fi_atomic"), 1);
  EXPECT_EQ(count_calls("fi_fetch_atomic"), 1);
}

}  // namespace
}  // namespace portofu::test
