// Reading the source tree, and asking compilers and binutils about what was built from it.

#include "tests/unit/repository/repository.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

namespace portofu::repository {
namespace {

namespace fs = std::filesystem;

/// What the scanner is inside of, from one character to the next.
enum class Inside { kCode, kLineComment, kBlockComment, kString, kCharacter };

Inside state_after_opening(const std::string& line, std::size_t i) {
  const char c = line[i];
  const char next = i + 1 < line.size() ? line[i + 1] : '\0';
  const bool digit_separator = c == '\'' && i > 0 && std::isxdigit(static_cast<unsigned char>(line[i - 1]));
  if (c == '/' && next == '/') return Inside::kLineComment;
  if (c == '/' && next == '*') return Inside::kBlockComment;
  if (c == '"') return Inside::kString;
  if (c == '\'' && !digit_separator) return Inside::kCharacter;
  return Inside::kCode;
}

/// Blanks one line; `state` is carried from line to line and only a block comment outlives a line.
std::string blank_line(const std::string& line, Inside& state) {
  std::string code = line;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (state == Inside::kCode) {
      state = state_after_opening(line, i);
      if (state == Inside::kCode) continue;
      code[i] = ' ';
      if (state == Inside::kBlockComment && i + 1 < line.size()) code[++i] = ' ';
      continue;
    }
    const char c = line[i];
    code[i] = ' ';
    if ((state == Inside::kString || state == Inside::kCharacter) && c == '\\' && i + 1 < line.size()) {
      code[++i] = ' ';
    } else if ((state == Inside::kString && c == '"') || (state == Inside::kCharacter && c == '\'')) {
      state = Inside::kCode;
    } else if (state == Inside::kBlockComment && c == '/' && i > 0 && line[i - 1] == '*') {
      state = Inside::kCode;
    }
  }
  if (state != Inside::kBlockComment) state = Inside::kCode;
  return code;
}

SourceFile read_file(const fs::path& path) {
  SourceFile file{.path = path.lexically_relative(PORTOFU_SOURCE_DIR).generic_string(), .lines = {}};
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
  return file;
}

}  // namespace

std::string root_path(const std::string& path) { return (fs::path(PORTOFU_SOURCE_DIR) / path).string(); }

std::string built_library(const std::string& file_name) {
  const fs::path path = fs::path(PORTOFU_LIBRARY_DIR) / file_name;
  return fs::exists(path) ? path.string() : std::string();
}

std::vector<SourceFile> source_files(const std::string& directory, const std::vector<std::string>& endings) {
  std::vector<SourceFile> files;
  const fs::path root = root_path(directory);
  if (!fs::is_directory(root)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const bool wanted = std::any_of(endings.begin(), endings.end(), [&](const auto& e) { return name.ends_with(e); });
    if (wanted && entry.is_regular_file()) files.push_back(read_file(entry.path()));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

SourceFile read_source(const std::string& path) { return read_file(root_path(path)); }

std::vector<std::string> code_lines(const SourceFile& file) {
  std::vector<std::string> code;
  Inside state = Inside::kCode;
  for (const std::string& line : file.lines) code.push_back(blank_line(line, state));
  return code;
}

std::vector<Include> quoted_includes(const SourceFile& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::vector<Include> includes;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(file.lines[i], match, pattern)) includes.push_back({.line = i + 1, .path = match[1]});
  }
  return includes;
}

int run_command(const std::string& command, std::string* output) {
  output->clear();
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  std::array<char, 4096> buffer;
  for (std::size_t bytes; (bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output->append(buffer.data(), bytes);
  }
  const int status = ::pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool compiles_alone(const std::string& compiler, const std::string& file, std::string* output) {
  // A file and an object of their own, so that a compiler cache knows them again.
  const fs::path directory = fs::path(PORTOFU_LIBRARY_DIR).parent_path() / "tests" / "alone";
  std::string name = compiler + " " + file;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  const fs::path source = directory / (name + (compiler.find(" -x c ") == std::string::npos ? ".cpp" : ".c"));
  fs::create_directories(directory);
  std::ofstream(source) << "#include \"" << file << "\"\n";
  const std::string command = PORTOFU_COMPILER_LAUNCHER " " + compiler + " -Wall -Wextra -Werror -I'" + root_path(".") +
                              "' -I'" + root_path("include") + "' -c '" + source.string() + "' -o '" + source.string() +
                              ".o'";
  const bool compiled = run_command(command, output) == 0;
  *output = command + "\n" + *output;
  return compiled;
}

std::string c_compiler() { return PORTOFU_C_COMPILER; }
std::string cxx_compiler() { return PORTOFU_CXX_COMPILER; }

}  // namespace portofu::repository
