// The table of settings agrees with itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "engine/config/settings.h"
#include "engine/memory/stadd_table.h"
#include "engine/run/process_engine.h"
#include "engine/target/new_request.h"
#include "engine/topology/tofu_id.h"

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

std::uint32_t largest(std::string_view name) {
  const auto rows = setting_table();
  const auto row = std::ranges::find(rows, name, [](const SettingRow& of) { return std::string_view(of.name); });
  EXPECT_NE(row, rows.end()) << name;
  return row != rows.end() ? row->maximum : UINT32_MAX;
}

/// The table cannot name what is above it, so the same numbers stand there and here.
TEST(SettingsTable, Largest_values__have_room_in_what_is_made_of_them) {
  EXPECT_LE(largest("PORTOFU_WINDOW"), kMostWaitingAnswers);
  EXPECT_LE(largest("PORTOFU_LANES"), kMostEngines);
  EXPECT_LE(largest("PORTOFU_TNIS"), kMaxTniCount);
  const std::uint32_t tni = largest("PORTOFU_TNIS") - 1;
  const std::uint32_t gates = largest("PORTOFU_START_VBGS") + largest("PORTOFU_RELAY_VBGS");
  const std::uint32_t component = largest("PORTOFU_CMP_IDS") - 1;
  for (const std::uint32_t queue : {largest("PORTOFU_CQS") - 1, gates - 1}) {
    const std::uint32_t number = make_queue_number(tni, queue, component);
    EXPECT_EQ(queue_number(number), number);
    EXPECT_EQ(tni_of(number), tni);
    EXPECT_EQ(queue_of(number), queue);
    EXPECT_EQ(component_of(number), component);
  }
  const std::uint32_t stags = largest("PORTOFU_RESERVED_STAGS");
  EXPECT_EQ(stag_of(make_stadd(reserved_stag(component, stags - 1))), reserved_stag(component, stags - 1));
  EXPECT_EQ(reserved_stag(component, stags - 1) - reserved_stag(component, 0), stags - 1);
}

}  // namespace
}  // namespace portofu
