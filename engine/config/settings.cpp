// Reads the settings from the environment when an engine opens, before anything else of the engine exists.

#include "engine/config/settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
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

}  // namespace

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
  Settings settings = read_settings([](const char* name) { return std::getenv(name); },
                                    [&](const std::string& line) {
                                      lines.push_back(line);
                                      all += line + '\n';
                                    });
  const std::size_t number = std::hash<std::string>{}(all);
  if (told.exchange(number, std::memory_order_relaxed) == number) return settings;
  for (const std::string& line : lines) log_error("%s", line.c_str());
  return settings;
}

}  // namespace portofu
