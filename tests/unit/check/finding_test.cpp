#include "engine/check/finding.h"

#include "tests/unit/support/found.h"

namespace portofu {
namespace {

CheckFinding finding_of(const std::string& object) {
  return {"some_kind", "PtlPut", object, "Portals 4.3, 2.6", "it is \"so\"", "do that", 7, 2};
}

TEST(FindingLog, Setting__says_whether_it_is_wanted) {
  EXPECT_FALSE(is_check_wanted(""));
  EXPECT_FALSE(is_check_wanted("0"));
  EXPECT_TRUE(is_check_wanted("1"));
  EXPECT_TRUE(is_check_wanted("/tmp/file"));
}

TEST(FindingLog, Finding__is_a_line_of_JSON_at_once) {
  Found found;
  found.log.tell(finding_of("MD 5"));
  EXPECT_EQ(found.text(),
            "{\"kind\":\"some_kind\",\"call\":\"PtlPut\",\"object\":\"MD 5\",\"section\":\"Portals 4.3, "
            "2.6\",\"sentence\":\"it is \\\"so\\\"\",\"advice\":\"do that\",\"byte\":7,\"bit\":2,"
            "\"rank\":3,\"os_pid\":" +
                std::to_string(getpid()) + "}\n");
}

TEST(FindingLog, Finding__is_a_line_for_people) {
  testing::internal::CaptureStderr();
  {
    FindingLog log("1", -1);
    log.tell(finding_of("MD 5"));
  }
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "portofu[" + std::to_string(getpid()) + "]: check: PtlPut: MD 5: it is \"so\"; do that (Portals 4.3, 2.6)\n");
}

TEST(FindingLog, Same_finding__is_told_once_and_counted) {
  const std::string file = testing::TempDir() + "counted-" + std::to_string(getpid());
  testing::internal::CaptureStderr();
  {
    FindingLog log(file, 0);
    for (int i = 0; i < 5; ++i) log.tell(finding_of("MD 5"));
    log.tell(finding_of("MD 6"));
    EXPECT_EQ(log.count(), 2u);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2);
  std::ifstream lines(file);
  std::string line;
  for (int i = 0; i < 3; ++i) std::getline(lines, line);
  EXPECT_EQ(line, "{\"kind\":\"some_kind\",\"call\":\"PtlPut\",\"object\":\"MD 5\",\"times\":5,\"rank\":0,\"os_pid\":" +
                      std::to_string(getpid()) + "}");
  EXPECT_FALSE(std::getline(lines, line));
  std::remove(file.c_str());
}

TEST(FindingLog, Flood__ends) {
  Found found;
  for (std::size_t i = 0; i < kMostFindings + 10; ++i) found.log.tell(finding_of("MD " + std::to_string(i)));
  EXPECT_EQ(found.log.count(), kMostFindings);
}

TEST(FindingLog, File_that_cannot_be_opened__is_told_and_harms_nothing) {
  testing::internal::CaptureStderr();
  FindingLog log("/nowhere/at/all", 0);
  log.tell(finding_of("MD 5"));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("PORTOFU_CHECK=/nowhere/at/all: open of it failed"), std::string::npos) << said;
  EXPECT_NE(said.find("MD 5"), std::string::npos) << said;
}

}  // namespace
}  // namespace portofu
