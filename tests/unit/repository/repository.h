#pragma once
// The repository as its own tests see it: files, lines, and what compilers and libraries answer.

#include <string>
#include <vector>

namespace portofu::repository {

/// One source file, read as a whole.
struct SourceFile {
  std::string path;                ///< From the root: "engine/queue/cell_ring.h".
  std::vector<std::string> lines;  ///< Without newlines; lines[0] is line 1.
};

/// An #include "..." of a file.
struct Include {
  std::size_t line = 0;  ///< From 1.
  std::string path;      ///< As written between the quotes.
};

/// Absolute path of a file or directory given from the root.
std::string root_path(const std::string& path);

/// Absolute path of a file among the built libraries; empty if it has not been built.
std::string built_library(const std::string& file_name);

/// All files below `directory` (from the root) whose names end in one of `endings`, sorted by path. A directory that
/// does not exist has none.
std::vector<SourceFile> source_files(const std::string& directory, const std::vector<std::string>& endings);

/// One file from the root; lines are empty if there is none.
SourceFile read_source(const std::string& path);

/// The lines with comments, string literals and character literals blanked out, each as long as before.
std::vector<std::string> code_lines(const SourceFile& file);

/// The #include "..." lines of a file.
std::vector<Include> quoted_includes(const SourceFile& file);

/// Runs a shell command.
/// @param output  set to what it wrote to stdout and stderr
/// @return its exit status, or -1 if it could not be run
int run_command(const std::string& command, std::string* output);

/// Compiles a file that includes only `file`, a path from the root or from include/, with all warnings as errors.
/// @param compiler  a command with its options
/// @param output    set to the command and to what it said
/// @return whether that succeeded
bool compiles_alone(const std::string& compiler, const std::string& file, std::string* output);

/// Commands that start the compilers this build was made with.
std::string c_compiler();
std::string cxx_compiler();

}  // namespace portofu::repository
