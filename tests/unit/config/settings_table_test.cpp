// The table of settings agrees with itself.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/config/settings.h"

namespace portofu {
namespace {

TEST(SettingsTable, Names__are_ours_and_each_stands_once) {
  std::set<std::string> names;
  for (const SettingRow& row : setting_table()) {
    EXPECT_TRUE(std::string(row.name).starts_with("PORTOFU_")) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
  }
}

TEST(SettingsTable, Ranges_and_sentences__are_whole) {
  for (const SettingRow& row : setting_table()) {
    EXPECT_LE(row.minimum, row.maximum) << row.name;
    EXPECT_NE((row.number == nullptr), (row.text == nullptr)) << row.name << ": a number or a text";
    EXPECT_TRUE(std::string(row.sentence).ends_with('.')) << row.name;
  }
}

}  // namespace
}  // namespace portofu
