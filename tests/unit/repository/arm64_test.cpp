// What depends on the processor compiles for 64-bit Arm, too. Only those files are compiled: all would take minutes
// (`cmake --preset arm64`). Needs Debian's g++-aarch64-linux-gnu; without it the compiler's half is left out.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

/// Words of one processor, or of what differs between them: numbers of system calls, registers in a signal's context.
const std::regex kProcessorWord(R"(__x86_64__|__aarch64__|__SSE|__builtin_ia32|__builtin_cpu_|\basm\b|__asm__|)"
                                R"(\b_mm\d*_|cpuid|intrin\.h|\bSYS_|ucontext|queue/cpu\.h)");

/// Words that only one processor has: each stands between an #if that asks for it and the #else or #endif.
const std::regex kForeignWord(R"(__builtin_ia32|__builtin_cpu_|\b_mm\d*_|__get_cpuid|mmintrin\.h|cpuid\.h)");

std::vector<SourceFile> house() {
  auto files = source_files("engine", {".h", ".cpp"});
  for (auto& file : source_files("lib", {".h", ".cpp"})) files.push_back(std::move(file));
  return files;
}

bool has_word(const SourceFile& file, const std::regex& word) {
  for (const std::string& line : file.lines) {
    if (std::regex_search(line, word)) return true;
  }
  return false;
}

/// The lines of the file that are compiled whatever the processor: not between `#if ...x86_64` or `#ifdef __SSE2__` and
/// their `#else`, `#elif` or `#endif`.
std::vector<std::size_t> lines_for_all(const SourceFile& file) {
  static const std::regex asks(R"(^\s*#\s*(if|ifdef|elif)\b[^!]*(__x86_64__|__SSE\d*__))");
  static const std::regex begins(R"(^\s*#\s*if)");
  static const std::regex turns(R"(^\s*#\s*(else|elif)\b)");
  static const std::regex ends(R"(^\s*#\s*endif\b)");
  std::vector<std::size_t> open;
  std::vector<bool> guarded;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (std::regex_search(line, begins)) {
      guarded.push_back(std::regex_search(line, asks));
    } else if (std::regex_search(line, turns) && !guarded.empty()) {
      guarded.back() = std::regex_search(line, asks);
    } else if (std::regex_search(line, ends) && !guarded.empty()) {
      guarded.pop_back();
    } else if (std::find(guarded.begin(), guarded.end(), true) == guarded.end()) {
      open.push_back(i);
    }
  }
  return open;
}

TEST(Arm64, Words_of_one_processor__stand_behind_a_question_for_it) {
  for (const SourceFile& file : house()) {
    if (!has_word(file, kForeignWord)) continue;
    SourceFile code = file;
    for (std::string& line : code.lines) line.resize(std::min(line.find("//"), line.size()));
    for (const std::size_t i : lines_for_all(code)) {
      const std::string& line = code.lines[i];
      EXPECT_FALSE(std::regex_search(line, kForeignWord)) << file.path << ":" << i + 1 << ": " << line;
    }
  }
}

TEST(Arm64, What_depends_on_the_processor__compiles) {
  const std::string compiler = "aarch64-linux-gnu-g++";
  std::string output;
  if (run_command("command -v " + compiler, &output) != 0) GTEST_SKIP() << "no " << compiler;
  int compiled = 0;
  for (const SourceFile& file : house()) {
    if (!has_word(file, kProcessorWord)) continue;
    EXPECT_TRUE(compiles_alone(compiler + " -std=c++20", file.path, &output)) << output;
    ++compiled;
  }
  EXPECT_GT(compiled, 10) << "the words of the pattern are not found";
}

}  // namespace
}  // namespace portofu::repository
