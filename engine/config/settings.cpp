// Reads the settings from the environment when an engine opens, before anything else of the engine exists.

#include "engine/config/settings.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/observe/log.h"

namespace portofu {
namespace {

/// A whole text as an unsigned number; nothing may come before or after it.
std::optional<std::uint32_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> parse_node_id(const char* text) {
  in_addr address{};
  if (inet_pton(AF_INET, text, &address) == 1) return ntohl(address.s_addr);
  return parse_number(text);
}

/// @return which of the words it is, from 0
std::optional<std::uint32_t> parse_word(std::string_view words, std::string_view text) {
  for (std::uint32_t index = 0; !words.empty(); ++index) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (word == text) return index;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return parse_number(text);
}

std::optional<std::uint32_t> parse_number_of(const SettingRow& row, const char* text) {
  if (row.kind == SettingKind::kNodeId) return parse_node_id(text);
  return row.kind == SettingKind::kWord ? parse_word(row.unit, text) : parse_number(text);
}

/// @return the value if the row allows it
std::optional<std::uint32_t> parse_value(const SettingRow& row, const char* text) {
  const auto value = parse_number_of(row, text);
  if (!value || *value < row.minimum || *value > row.maximum) return std::nullopt;
  if (row.kind == SettingKind::kPowerOfTwo && !std::has_single_bit(*value)) return std::nullopt;
  return value;
}

/// Stores what the text says.
/// @return false, and nothing is stored, if the row does not allow it
bool store_value(const SettingRow& row, const char* text, Settings& settings) {
  if (row.kind == SettingKind::kText) {
    if (std::strlen(text) > row.maximum) return false;
    settings.*row.text = text;
    return true;
  }
  const auto value = parse_value(row, text);
  if (value) settings.*row.number = *value;
  return value.has_value();
}

/// How many characters have to be put in, taken out or changed to make one of the other (Levenshtein).
std::size_t distance_between(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);  // From the characters of `one` so far to each beginning of `other`.
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t changed = diagonal + (one[i] != other[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// @return the setting that a name looks like which is none's; nullptr: it looks like none, or is one's
const SettingRow* meant_by(std::string_view name) {
  const auto rows = setting_table();
  if (std::ranges::find(rows, name, &SettingRow::name) != rows.end()) return nullptr;
  const auto distance = [name](const SettingRow& row) { return distance_between(name, row.name); };
  const auto nearest = std::ranges::min_element(rows, {}, distance);
  const bool is_short = name.size() <= std::string_view("PORTOFU_HOST").size();
  return distance(*nearest) <= (is_short ? 1 : 2) ? &*nearest : nullptr;
}

}  // namespace

void look_for_misspelled(const char* const* environment, const TakeComplaint& complain) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view name(*environment);
    name = name.substr(0, name.find('='));
    if (name.starts_with("FI_PORTOFU_")) name.remove_prefix(3);
    if (!name.starts_with("PORTOFU_") || name.size() > 64) continue;
    const SettingRow* const meant = meant_by(name);
    if (meant == nullptr) continue;
    complain("there is no setting " + std::string(name) + ", and it is left out; was " + meant->name + " meant?");
  }
}

Settings read_settings(const GetVariable& get_variable, const TakeComplaint& complain) {
  Settings settings;
  for (const SettingRow& row : setting_table()) {
    const char* text = get_variable(row.name);
    // So libfabric calls the settings of its providers (fi_info -e).
    if (text == nullptr) text = get_variable((std::string("FI_") + row.name).c_str());
    if (text == nullptr || *text == '\0') continue;
    if (store_value(row, text, settings)) continue;
    complain(std::string(row.name) + "=" + text + " is not allowed (" + allowed_text(row) +
             "); the default is taken: " + default_text(row));
  }
  return settings;
}

Settings read_settings() {
  // No lock, which a fork could leave to the child as another thread has it: a number says what was told last.
  static std::atomic<std::size_t> told{0};
  std::vector<std::string> lines;
  std::string all;
  const auto complain = [&](const std::string& line) {
    lines.push_back(line);
    all += line + '\n';
  };
  Settings settings = read_settings([](const char* name) { return std::getenv(name); }, complain);
  look_for_misspelled(environ, complain);
  const std::size_t number = std::hash<std::string>{}(all);
  if (told.exchange(number, std::memory_order_relaxed) == number) return settings;
  for (const std::string& line : lines) log_error("%s", line.c_str());
  return settings;
}

}  // namespace portofu
