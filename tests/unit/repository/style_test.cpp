// The habits of the house that a program can check: sizes, words, and that the pages keep up.

#include <gtest/gtest.h>

#include <regex>

#include "engine/config/settings.h"
#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

constexpr std::size_t kMaxFileLines = 600;
constexpr std::size_t kMaxFunctionLines = 70;
constexpr std::size_t kMaxColumns = 120;

/// The C headers are one file each because the specs name one file.
bool is_c_header(const std::string& path) { return path.starts_with("include/"); }

std::vector<SourceFile> all_sources() {
  std::vector<SourceFile> files;
  for (const char* directory : {"engine", "lib", "include", "tests", "benchmarks"}) {
    for (auto& file : source_files(directory, {".h", ".cpp", ".c", ".sh"})) files.push_back(std::move(file));
  }
  return files;
}

std::vector<SourceFile> engine_and_lib() {
  auto files = source_files("engine", {".h", ".cpp"});
  for (auto& file : source_files("lib", {".h", ".cpp", ".c"})) files.push_back(std::move(file));
  return files;
}

/// Characters of a line; a UTF-8 sequence is one.
std::size_t column_count(const std::string& line) {
  std::size_t columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

/// A signature or a list of initializers may be indented deeper than the function that it belongs to.
/// @return the line number (from 0) of the first line after `first` that begins with "}" and is indented no deeper
std::size_t end_of_block(const std::vector<std::string>& code, std::size_t first) {
  const std::size_t indent = code[first].find_first_not_of(' ');
  for (std::size_t i = first + 1; i < code.size(); ++i) {
    const std::size_t column = code[i].find_first_not_of(' ');
    if (column <= indent && code[i][column] == '}') return i;
  }
  return code.size();
}

TEST(Style, Files__have_at_most_600_lines) {
  for (const SourceFile& file : all_sources()) {
    if (is_c_header(file.path)) continue;
    EXPECT_LE(file.lines.size(), kMaxFileLines) << file.path;
  }
}

TEST(Style, Lines__have_at_most_120_columns) {
  for (const SourceFile& file : all_sources()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_LE(column_count(file.lines[i]), kMaxColumns) << file.path << ":" << i + 1;
    }
  }
}

TEST(Style, Functions__have_at_most_70_lines) {
  static const std::regex not_a_function(R"(^\s*(namespace|struct|class|enum|union|extern)\b)");
  for (const SourceFile& file : engine_and_lib()) {
    const auto code = code_lines(file);
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (!code[i].ends_with(") {") && !code[i].ends_with(") const {")) continue;
      if (std::regex_search(code[i], not_a_function)) continue;
      EXPECT_LE(end_of_block(code, i) - i + 1, kMaxFunctionLines) << file.path << ":" << i + 1;
    }
  }
}

TEST(Style, Words__goto_and_volatile_are_not_used) {
  static const std::regex forbidden(R"(\b(goto|volatile)\b)");
  static const std::regex statement(R"(\basm\s+volatile\b)");  // Not the qualifier, which is what is meant.
  for (const SourceFile& file : engine_and_lib()) {
    const auto code = code_lines(file);
    for (std::size_t i = 0; i < code.size(); ++i) {
      const std::string checked = std::regex_replace(code[i], statement, "asm");
      EXPECT_FALSE(std::regex_search(checked, forbidden)) << file.path << ":" << i + 1 << ": " << code[i];
    }
  }
}

TEST(Style, Names__fixed_width_types_of_our_own_have_no_t) {
  static const std::regex own_type(R"(\b(?:struct|class|enum class|using)\s+\w+_t\b)");
  for (const SourceFile& file : engine_and_lib()) {
    const auto code = code_lines(file);
    for (std::size_t i = 0; i < code.size(); ++i) {
      EXPECT_FALSE(std::regex_search(code[i], own_type)) << file.path << ":" << i + 1 << ": " << code[i];
    }
  }
}

TEST(Pages, Settings__stand_in_their_table) {
  std::string rows;
  for (const std::string& line : read_source("lib/environment.md").lines) {
    if (line.starts_with("| `PORTOFU_")) rows.append(line).append("\n");
  }
  EXPECT_EQ(rows, settings_markdown()) << "cmake --build build/dev --target settings_page writes lib/environment.md";
}

}  // namespace
}  // namespace portofu::repository
