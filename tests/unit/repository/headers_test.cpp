// Every header compiles alone. The C headers: as C99, C11, C++11 and C++20, without a warning. An engine header: by the
// rule that NAME.cpp includes NAME.h first; one that has no NAME.cpp is compiled here.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

testing::AssertionResult alone(const std::string& compiler, const std::string& header) {
  std::string output;
  if (compiles_alone(compiler, header, &output)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << output;
}

TEST(Headers, C_headers__compile_alone_as_C_and_as_Cxx) {
  for (const SourceFile& header : source_files("include", {".h"})) {
    const std::string name = header.path.substr(header.path.rfind('/') + 1);
    for (const char* standard : {"c99", "c11"}) {
      EXPECT_TRUE(alone(c_compiler() + " -pedantic-errors -x c -std=" + standard, name));
    }
    for (const char* standard : {"c++11", "c++20"}) {
      EXPECT_TRUE(alone(cxx_compiler() + " -pedantic-errors -std=" + standard, name));
    }
  }
}

/// Every MPI library has another <mpi.h>; tests/utofu compiles with two.
bool is_for_mpi(const SourceFile& header) { return std::ranges::count(header.lines, "#include <mpi.h>") != 0; }

/// What is compiled against headers of UCX that no package installs: by `./run ucx`.
bool is_for_ucx(const SourceFile& header) { return header.path.starts_with("lib/ucx/"); }

/// Directories of the engine and of the libraries: a busy machine takes minutes for all their headers.
std::vector<std::string> source_directories() {
  std::vector<std::string> directories;
  for (const char* root : {"engine", "lib"}) {
    for (const SourceFile& header : source_files(root, {".h"})) {
      const std::string directory = header.path.substr(0, header.path.find('/', header.path.find('/') + 1));
      if (!std::ranges::count(directories, directory)) directories.push_back(directory);
    }
  }
  return directories;
}

class HeadersOf : public testing::TestWithParam<std::string> {};

TEST_P(HeadersOf, Directory__those_without_a_source_file_compile_alone) {
  for (const SourceFile& header : source_files(GetParam(), {".h"})) {
    const std::string source = header.path.substr(0, header.path.size() - 1) + "cpp";
    if (!read_source(source).lines.empty() || is_for_mpi(header) || is_for_ucx(header)) continue;
    EXPECT_TRUE(alone(cxx_compiler() + " -std=c++20", header.path));
  }
}

INSTANTIATE_TEST_SUITE_P(Directories, HeadersOf, testing::ValuesIn(source_directories()),
                         [](const testing::TestParamInfo<std::string>& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

TEST(Headers, Source_files__include_their_own_header_first) {
  for (const char* directory : {"engine", "lib"}) {
    for (const SourceFile& source : source_files(directory, {".cpp"})) {
      const std::string header = source.path.substr(0, source.path.size() - 3) + "h";
      if (read_source(header).lines.empty()) continue;
      for (const std::string& line : source.lines) {
        if (!line.starts_with("#include")) continue;
        EXPECT_EQ(line, "#include \"" + header + "\"") << source.path;
        break;
      }
    }
  }
}

}  // namespace
}  // namespace portofu::repository
