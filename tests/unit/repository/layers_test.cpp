// Includes go downward only. The layers are those of the design:
// queue < segment, config, observe, topology < wire < descriptor, match, event, memory, atomic, core < mailbox,
// initiator, target < run < lib. Directories of one layer may use each other.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

const std::map<std::string, int> kLayerOfDirectory{
    {"engine/queue", 0},     {"engine/segment", 1},  {"engine/config", 1},
    {"engine/observe", 1},   {"engine/topology", 1}, {"engine/wire", 2},
    {"engine/memory", 3},    {"engine/atomic", 3},   {"engine/core", 3},
    {"engine/match", 3},     {"engine/event", 3},    {"engine/mailbox", 4},
    {"engine/initiator", 4}, {"engine/target", 4},   {"engine/descriptor", 3},
    {"engine/run", 5},       {"include", 6},         {"lib", 6}};

/// What stands lower than where it lies. A descriptor's format is what initiator and target fill and read; only its
/// dispatch is the top of the engine.
const std::map<std::string, int> kLayerOfFile{{"engine/descriptor/descriptor.h", 3}};

/// The longest key of the table that is a directory above the file: "engine/wire/shm/ring.h" lies in "engine/wire".
std::string directory_of(const std::string& path) {
  for (std::string directory = path; directory.find('/') != std::string::npos;) {
    directory.erase(directory.rfind('/'));
    if (kLayerOfDirectory.contains(directory)) return directory;
  }
  return {};
}

/// @return -1 if the table does not know where the file lies
int layer_of(const std::string& path) {
  if (const auto found = kLayerOfFile.find(path); found != kLayerOfFile.end()) return found->second;
  const auto found = kLayerOfDirectory.find(directory_of(path));
  return found == kLayerOfDirectory.end() ? -1 : found->second;
}

std::vector<SourceFile> house() {
  auto files = source_files("engine", {".h", ".cpp"});
  for (auto& file : source_files("lib", {".h", ".cpp"})) files.push_back(std::move(file));
  return files;
}

TEST(Layers, Every_file__lies_in_a_known_directory) {
  for (const SourceFile& file : house()) {
    EXPECT_GE(layer_of(file.path), 0) << file.path << ": add its directory to the layers";
  }
}

TEST(Layers, Includes__go_downward_only) {
  for (const SourceFile& file : house()) {
    for (const Include& include : quoted_includes(file)) {
      if (include.path.find('/') == std::string::npos) continue;  // The C headers, named as users name them.
      EXPECT_GE(layer_of(include.path), 0) << file.path << ":" << include.line << " is not named from the root";
      EXPECT_LE(layer_of(include.path), layer_of(file.path))
          << file.path << ":" << include.line << " includes " << include.path << " of a higher layer";
    }
  }
}

TEST(Layers, C_headers__are_used_by_lib_only) {
  for (const SourceFile& file : source_files("engine", {".h", ".cpp"})) {
    for (const std::string& line : file.lines) {
      const bool uses = line.starts_with("#include") && line.find("portals") != std::string::npos;
      EXPECT_FALSE(uses && line.find("engine/") == std::string::npos) << file.path << ": " << line;
    }
  }
}

TEST(Layers, Includes__exist) {
  for (const SourceFile& file : house()) {
    for (const Include& include : quoted_includes(file)) {
      const std::string path = include.path.find('/') == std::string::npos ? "include/" + include.path : include.path;
      EXPECT_FALSE(read_source(path).lines.empty()) << file.path << ":" << include.line << " " << include.path;
    }
  }
}

TEST(Layers, Headers__do_not_include_each_other_in_a_circle) {
  std::map<std::string, std::set<std::string>> uses;
  for (const SourceFile& file : house()) {
    if (!file.path.ends_with(".h")) continue;
    for (const Include& include : quoted_includes(file)) uses[file.path].insert(include.path);
  }
  // Takes away headers that use nothing that is left; a circle is what remains.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = uses.begin(); at != uses.end();) {
      std::erase_if(at->second, [&](const std::string& to) { return !uses.contains(to); });
      changed = changed || at->second.empty();
      at = at->second.empty() ? uses.erase(at) : std::next(at);
    }
  }
  for (const auto& [from, to] : uses) {
    for (const std::string& header : to) ADD_FAILURE() << "in a circle: " << from << " uses " << header;
  }
}

}  // namespace
}  // namespace portofu::repository
