// Feeds read_settings a fake environment; says what must be taken and what must be complained about.

#include "engine/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"

namespace portofu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SettingsTest : public ::testing::Test {
 protected:
  Settings read() {
    return read_settings(
        [this](const char* name) {
          const auto found = environment_.find(name);
          return found == environment_.end() ? nullptr : found->second.c_str();
        },
        [this](const std::string& line) { complaints_.push_back(line); });
  }

  std::map<std::string, std::string> environment_;
  std::vector<std::string> complaints_;
};

TEST_F(SettingsTest, Empty_environment__gives_defaults) {
  const Settings settings = read();
  EXPECT_EQ(settings.nid, 0u);
  EXPECT_EQ(settings.spin_count, 2000u);
  EXPECT_EQ(settings.sleep_after_us, 200u);
  EXPECT_EQ(settings.window_operations, 1024u);
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(SettingsTest, Empty_value__counts_as_not_set) {
  environment_["PORTOFU_WINDOW"] = "";
  EXPECT_EQ(read().window_operations, 1024u);
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(SettingsTest, Name_of_libfabric__counts_if_our_own_is_not_set) {
  environment_["FI_PORTOFU_WINDOW"] = "5";
  EXPECT_EQ(read().window_operations, 5u);
  environment_["PORTOFU_WINDOW"] = "6";
  EXPECT_EQ(read().window_operations, 6u);
}

TEST_F(SettingsTest, Every_bound__is_allowed_and_one_beyond_is_not) {
  for (const SettingRow& row : setting_table()) {
    if (row.number == nullptr) continue;
    for (const std::uint32_t bound : {row.minimum, row.maximum}) {
      environment_ = {{row.name, std::to_string(bound)}};
      EXPECT_EQ(read().*row.number, bound) << row.name;
    }
    EXPECT_THAT(complaints_, IsEmpty());
    if (row.minimum > 0) {
      environment_ = {{row.name, std::to_string(row.minimum - 1)}};
      EXPECT_EQ(read().*row.number, Settings{}.*row.number) << row.name;
      EXPECT_EQ(complaints_.size(), 1u) << row.name;
      complaints_.clear();
    }
    environment_ = {{row.name, std::to_string(std::uint64_t{row.maximum} + 1)}};
    EXPECT_EQ(read().*row.number, Settings{}.*row.number) << row.name;
    EXPECT_EQ(complaints_.size(), 1u) << row.name;
    complaints_.clear();
  }
}

TEST_F(SettingsTest, Every_default__lies_in_its_own_range) {
  for (const SettingRow& row : setting_table()) {
    if (row.number == nullptr || row.default_words != nullptr) continue;
    environment_[row.name] = std::to_string(Settings{}.*row.number);
  }
  read();
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(SettingsTest, Bad_value__names_variable_range_and_what_was_taken) {
  environment_["PORTOFU_GUARD_PERIOD_US"] = "49";
  EXPECT_EQ(read().guard_period_us, 500u);
  EXPECT_THAT(complaints_, ElementsAre("PORTOFU_GUARD_PERIOD_US=49 is not allowed (50..100000); the default is taken: "
                                       "500 us"));
}

TEST_F(SettingsTest, Not_a_number__takes_the_default) {
  for (const char* text : {"many", "12x", "-1", "+1", " 1", "1.5", "0x", "99999999999999999999"}) {
    environment_["PORTOFU_WINDOW"] = text;
    EXPECT_EQ(read().window_operations, 1024u) << text;
  }
  EXPECT_EQ(complaints_.size(), 8u);
}

TEST_F(SettingsTest, Hexadecimal__is_read) {
  environment_["PORTOFU_JOB_KEY"] = "0xC0FFEE";
  EXPECT_EQ(read().job_key, 0xC0FFEEu);
}

TEST_F(SettingsTest, Not_a_power_of_two__takes_the_default) {
  environment_["PORTOFU_RING_CELLS"] = "100";
  EXPECT_EQ(read().ring_cells, 128u);
  EXPECT_THAT(complaints_, ElementsAre(HasSubstr("a power of two, 16..4096")));
}

TEST_F(SettingsTest, Word__is_one_of_its_row_or_its_number) {
  for (const char* text : {"datagram", "1"}) {
    environment_["PORTOFU_FABRIC_ENDPOINT"] = text;
    EXPECT_EQ(read().fabric_endpoint, static_cast<std::uint32_t>(EndpointKind::kDatagram)) << text;
  }
  environment_["PORTOFU_FABRIC_ENDPOINT"] = "reliable";
  EXPECT_EQ(read().fabric_endpoint, static_cast<std::uint32_t>(EndpointKind::kReliable));
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(SettingsTest, Other_word__takes_the_default_and_is_told_which_there_are) {
  for (const char* text : {"reliabl", "datagrams", "reliable datagram", " ", "2"}) {
    environment_["PORTOFU_FABRIC_ENDPOINT"] = text;
    EXPECT_EQ(read().fabric_endpoint, 0u) << text;
    EXPECT_THAT(complaints_.back(), HasSubstr("one of: reliable datagram"));
  }
  EXPECT_EQ(complaints_.size(), 5u);
}

TEST_F(SettingsTest, Node_id__is_dotted_or_an_integer) {
  environment_["PORTOFU_NID"] = "10.1.2.3";
  EXPECT_EQ(read().nid, 0x0a010203u);
  environment_["PORTOFU_NID"] = "167838211";
  EXPECT_EQ(read().nid, 0x0a010203u);
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(SettingsTest, Node_id__refuses_no_node_and_the_wildcard) {
  for (const char* text : {"0", "0.0.0.0", "255.255.255.255", "10.1.2", "host"}) {
    environment_["PORTOFU_NID"] = text;
    EXPECT_EQ(read().nid, 0u) << text;
  }
  EXPECT_EQ(complaints_.size(), 5u);
}

TEST_F(SettingsTest, Interface_name__is_taken_as_it_is_unless_too_long) {
  environment_["PORTOFU_INTERFACE"] = "eth0.17";
  EXPECT_EQ(read().interface, "eth0.17");
  environment_["PORTOFU_INTERFACE"] = "a-name-of-16-chr";
  EXPECT_EQ(read().interface, "");
  EXPECT_EQ(complaints_.size(), 1u);
}

TEST_F(SettingsTest, Name_that_is_nearly_a_setting__is_told) {
  const char* const environment[] = {"PORTOFU_STALLS=3",
                                     "PORTOFU_LANE=2",
                                     "FI_PORTOFU_WINDWO=5",
                                     "PORTOFU_STALL_S=3",
                                     "PORTOFU_TEST_SEED=",
                                     "PORTOFU_CACHE=/tmp/x",
                                     "PORTOFU_LIB=/opt",
                                     "PORTOFU_",
                                     "PORTOFU",
                                     "HOME=/",
                                     "",
                                     nullptr};
  look_for_misspelled(environment, [this](const std::string& line) { complaints_.push_back(line); });
  EXPECT_THAT(complaints_, ElementsAre(AllOf(HasSubstr("PORTOFU_STALLS"), HasSubstr("was PORTOFU_STALL_S meant")),
                                       HasSubstr("was PORTOFU_LANES meant"), HasSubstr("was PORTOFU_WINDOW meant")));
}

TEST_F(SettingsTest, Bad_name_in_the_environment__complains_on_stderr) {
  setenv("PORTOFU_WINDOWS", "5", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(read_settings().window_operations, 1024u);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("was PORTOFU_WINDOW meant"));
  unsetenv("PORTOFU_WINDOWS");
}

TEST_F(SettingsTest, Bad_value_in_the_environment__complains_on_stderr) {
  ASSERT_EQ(setenv("PORTOFU_WINDOW", "none", 1), 0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(read_settings().window_operations, 1024u);
  ASSERT_EQ(unsetenv("PORTOFU_WINDOW"), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("PORTOFU_WINDOW=none is not allowed"));
}

/// A child that opens its own engine reads them, whatever a thread of its parent was doing.
TEST_F(SettingsTest, Child__reads_them_though_a_thread_of_its_parent_was_reading) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc leaves its own locks to the child";
#endif
  const std::string long_text(100'000, 'x');  // What takes long is where a fork finds it.
  ASSERT_EQ(setenv("PORTOFU_WINDOW", long_text.c_str(), 1), 0);
  ::testing::internal::CaptureStderr();
  read_settings();
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    while (!ends.load()) read_settings();
  });
  int stuck = 0;
  for (int i = 0; i < 300 && stuck == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kLongestWait.count());
      read_settings();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    stuck += status != 0;
  }
  ends.store(true);
  reader.join();
  ASSERT_EQ(unsetenv("PORTOFU_WINDOW"), 0);
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(stuck, 0);
}

TEST(SettingTable, Rows__say_everything_once) {
  std::map<std::string, int> names;
  for (const SettingRow& row : setting_table()) {
    EXPECT_EQ(++names[row.name], 1) << row.name;
    EXPECT_TRUE(std::string(row.name).starts_with("PORTOFU_")) << row.name;
    EXPECT_TRUE(std::string(row.sentence).ends_with(".")) << row.name;
    EXPECT_NE(row.number == nullptr, row.text == nullptr) << row.name;
    EXPECT_EQ(row.kind == SettingKind::kText, row.text != nullptr) << row.name;
    EXPECT_TRUE(row.default_words != nullptr || row.number != nullptr) << row.name;
    EXPECT_THAT(settings_help(), HasSubstr(row.name));
  }
}

}  // namespace
}  // namespace portofu
