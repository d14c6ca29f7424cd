// ptl_run --check, at programs that lean on something that no section promises, and at the same ones without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/launcher.h"
#include "tests/process/own_node.h"
#include "tests/process/planted_counts.h"

namespace portofu {
namespace {

using Json = nlohmann::json;

constexpr int kFindings = 123;

/// A program under ptl_run --check, and what was found.
class Checked {
 public:
  Checked(const std::string& role, int ranks) {
    const std::string file = testing::TempDir() + "check-" + std::to_string(getpid());
    Launcher launcher(with_ranks(ranks, {"--check=" + file}), role);
    status_ = launcher.wait_status();
    output_ = launcher.output();
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) findings_.push_back(Json::parse(line, nullptr, false));
    std::remove(file.c_str());
  }

  int status() const { return status_; }
  const std::string& output() const { return output_; }
  std::string text() const { return Json(findings_).dump(1) + '\n' + output_; }
  std::size_t count() const { return findings_.size(); }
  /// @param also  a further kind that may be there
  bool has_only(const std::string& kind, const std::string& also, int rank) const {
    return std::ranges::all_of(findings_, [&](const Json& finding) {
      const std::string it = finding.is_object() ? finding.value("kind", "") : "";
      return finding.value("rank", -1) == rank && (it == kind || it == also);
    });
  }
  /// @return null if there is none
  Json find(const std::string& kind, int rank) const {
    for (const Json& finding : findings_) {
      if (finding.is_object() && finding.value("kind", "") == kind && finding.value("rank", -1) == rank) return finding;
    }
    return {};
  }

 private:
  int status_ = -1;
  std::string output_;
  std::vector<Json> findings_;
};

/// What a bad program is told.
struct Misuse {
  const char* role;
  int ranks;
  const char* kind;
  int guilty;  ///< Rank.
  const char* call;
  const char* object;  ///< A part of what is named.
  int byte = -1;
  int bit = -1;
  const char* also = "";  ///< Kind of what follows from it.
};

void PrintTo(const Misuse& misuse, std::ostream* stream) { *stream << misuse.role; }

class Check : public testing::TestWithParam<Misuse> {};

TEST_P(Check, Bad_program__is_told_its_rank_object_and_bit) {
  const OwnNode node;
  const Misuse& misuse = GetParam();
  const Checked checked(misuse.role, misuse.ranks);
  EXPECT_EQ(checked.status(), kFindings) << checked.text();
  const Json finding = checked.find(misuse.kind, misuse.guilty);
  ASSERT_FALSE(finding.is_null()) << checked.text();
  EXPECT_EQ(finding.value("call", ""), misuse.call);
  EXPECT_TRUE(contains(finding.value("object", ""), misuse.object)) << finding;
  EXPECT_EQ(finding.value("byte", -1), misuse.byte) << finding;
  EXPECT_EQ(finding.value("bit", -1), misuse.bit) << finding;
  for (const char* part : {"section", "sentence", "advice"}) {
    EXPECT_FALSE(finding.value(part, "").empty()) << finding;
    EXPECT_TRUE(contains(checked.output(), finding.value(part, "?"))) << checked.output();
  }
  EXPECT_TRUE(checked.has_only(misuse.kind, misuse.also, misuse.guilty)) << checked.text();
}

TEST_P(Check, Good_program__is_told_nothing) {
  const OwnNode node;
  const Misuse& misuse = GetParam();
  const Checked checked(std::string(misuse.role) + " good", misuse.ranks);
  EXPECT_EQ(checked.status(), 0) << checked.text();
  EXPECT_EQ(checked.count(), 0u) << checked.text();
}

TEST_P(Check, Good_program__is_told_nothing_in_another_order) {
  const OwnNode node;
  const Misuse& misuse = GetParam();
  setenv("PORTOFU_SHUFFLE", "3", 1);
  const Checked checked(std::string(misuse.role) + " good", misuse.ranks);
  unsetenv("PORTOFU_SHUFFLE");
  EXPECT_EQ(checked.status(), 0) << checked.text();
  EXPECT_EQ(checked.count(), 0u) << checked.text();
}

std::string name_of(const testing::TestParamInfo<Misuse>& info) { return info.param.role; }

INSTANTIATE_TEST_SUITE_P(
    Portals, Check,
    testing::Values(Misuse{"source", 2, "source_changed", 0, "PtlPut", "bytes 0 to 7", 3, 4},
                    Misuse{"source_long", 2, "source_changed", 0, "PtlPut", "bytes 0 to 199999", 150'000},
                    Misuse{"source_counted", 2, "source_changed", 0, "PtlPut", "bytes 0 to 7", 5, 0},
                    Misuse{"target", 2, "target_changed", 1, "PtlEQGet", "portal table entry 4", 2, 1},
                    Misuse{"overwrite", 3, "data_overwritten", 1, "PtlPut", "match bits 0x10"},
                    Misuse{"overwrite_read", 3, "data_overwritten", 1, "PtlPut", "match bits 0x10"},
                    Misuse{"early_use", 2, "buffer_used_early", 0, "PtlPut", "bytes 0 to 7"},
                    Misuse{"early_use_unheard", 2, "buffer_used_early", 0, "PtlPut", "bytes 0 to 7"},
                    Misuse{"ack", 2, "ack_unheard", 0, "PtlPut", "MD 0x"},
                    Misuse{"events", 2, "events_unread", 1, "PtlEQFree", "event queue 0x"},
                    Misuse{"room", 2, "event_queue_nearly_full", 1, "PtlEQAlloc", "16 events"},
                    Misuse{"handles", 2, "left_at_end", 1, "PtlNIFini", "memory descriptors"},
                    Misuse{"message", 2, "message_untaken", 1, "PtlNIFini", "portal table entry 4", -1, -1,
                           "left_at_end"},
                    Misuse{"release", 2, "md_released_in_use", 0, "PtlMDRelease", "MD 0x"},
                    Misuse{"free_counter", 2, "counter_freed_in_use", 0, "PtlCTFree", "counter 0x"},
                    Misuse{"free_queue", 2, "event_queue_freed_in_use", 0, "PtlEQFree", "event queue 0x"},
                    Misuse{"portal", 2, "limit_exceeded", 0, "PtlPTAlloc", "portal table entry 250"},
                    Misuse{"counted_event", 2, "target_changed", 1, "PtlCTGet", "portal table entry 4", 3, 2},
                    Misuse{"cut", 2, "source_changed", 0, "PtlPut", "bytes 0 to 63", 5, 0},
                    Misuse{"token", 3, "data_overwritten", 1, "PtlPut", "match bits 0x10"},
                    Misuse{"offsets", 4, "source_changed", 0, "PtlPut", "bytes 64 to 71", 65, 0},
                    Misuse{"in_place", 2, "buffers_overlap", 0, "PtlFetchAtomic", "bytes 0 to 7"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Tofu, Check,
    testing::Values(Misuse{"tofu_source", 2, "source_changed", 0, "utofu_put", "64 bytes", 9, 2},
                    Misuse{"flag", 2, "flag_unordered", 0, "utofu_put_piggyback", "8 bytes"},
                    Misuse{"tofu_overwrite", 2, "overwrites_unordered", 0, "utofu_put", "64 bytes"},
                    Misuse{"tofu_barrier", 2, "overwrites_unordered", 0, "utofu_put", "64 bytes"},
                    Misuse{"tofu_early_use", 2, "buffer_used_early", 0, "utofu_put", "64 bytes"},
                    Misuse{"tcq", 2, "tcq_not_polled", 0, "utofu_put", "VCQ 0x"},
                    Misuse{"deregistration", 2, "registration_freed_in_use", 0, "utofu_dereg_mem", "STADD 0x"},
                    Misuse{"notices", 2, "notices_unread", 1, "utofu_free_vcq", "MRQ"},
                    Misuse{"registration", 2, "left_at_end", 0, "utofu_free_vcq", "STADD 0x"},
                    Misuse{"queue", 2, "left_at_end", 0, "exit", "VCQ 0x"},
                    Misuse{"threads", 2, "threads_at_once", 0, "utofu", "VCQ 0x"}),
    name_of);

TEST(CheckRight, Programs__that_look_as_if_they_were_wrong_are_told_nothing) {
  const OwnNode node;
  for (const char* role : {"chain", "silent_update"}) {
    const Checked checked(role, 2);
    EXPECT_EQ(checked.status(), 0) << role << ' ' << checked.text();
    EXPECT_EQ(checked.count(), 0u) << role << ' ' << checked.text();
  }
}

TEST(CheckLimits, Component_id__that_Fugaku_does_not_have_is_told) {
  const OwnNode node;
  setenv("PORTOFU_CMP_IDS", "16", 1);
  const Checked checked("component", 2);
  const Checked good("component good", 2);
  unsetenv("PORTOFU_CMP_IDS");
  const Json finding = checked.find("limit_exceeded", 0);
  EXPECT_EQ(checked.status(), kFindings);
  EXPECT_EQ(finding.value("object", ""), "component ID 9") << checked.text();
  EXPECT_TRUE(contains(finding.value("section", ""), "tables 6.3")) << finding;
  EXPECT_EQ(good.status(), 0) << good.text();
}

TEST(CheckStatus, Program_that_fails__keeps_its_own_status) {
  const OwnNode node;
  Launcher launcher(with_shell(2, "exit 7", {"--check"}));
  EXPECT_EQ(launcher.wait_status(), 7);
}

TEST(CheckStatus, Findings__are_counted_for_people) {
  const OwnNode node;
  Launcher launcher(with_ranks(2, {"--check"}), "source");
  EXPECT_EQ(launcher.wait_status(), kFindings);
  EXPECT_TRUE(contains(launcher.output(), "check: rank 0: PtlPut: MD 0x")) << launcher.output();
  EXPECT_TRUE(contains(launcher.output(), "ptl_run: the checker has 1 finding")) << launcher.output();
}

TEST(CheckStatus, Without_check__nothing_is_told) {
  const OwnNode node;
  Launcher launcher(with_ranks(2), "source");
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_EQ(launcher.output(), "");
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  const char* role = std::getenv(portofu::kRoleVariable);
  if (role != nullptr && *role != '\0' && std::getenv("PMI_RANK") != nullptr)
    return portofu::play_misuse_or_counts(role);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
