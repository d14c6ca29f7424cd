// Includes go where the table of directories allows. A row of the table names rows before it only, so there is no
// circle.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

struct Room {
  const char* directory;    ///< Under engine/, but for lib.
  const char* may_include;  ///< Directories beside its own; "*": all rows before.
};

/// The lowest first.
constexpr std::array<Room, 20> kRooms{{
    {"queue", ""},
    {"observe", "queue"},
    {"config", "observe"},
    {"topology", "observe config"},
    {"segment", "queue observe config topology"},
    {"wire", "queue observe topology segment"},
    {"descriptor", "topology wire"},
    {"match", "topology"},
    {"event", "queue topology descriptor"},
    {"memory", "queue segment wire descriptor match event"},
    {"atomic", "queue memory"},
    {"core", "queue observe config topology segment wire descriptor match event memory"},
    {"mailbox", "queue observe config topology segment wire descriptor match event memory atomic core"},
    {"initiator", "queue observe config topology segment wire descriptor match event memory core atomic mailbox"},
    {"target", "queue observe config topology segment wire descriptor match event memory core atomic mailbox"},
    {"check", "queue observe config topology segment wire descriptor match event memory core"},
    {"inspect", "queue observe config topology segment wire descriptor match event memory core"},
    {"run", "*"},
    {"door", "*"},
    {"lib", "config door"},
}};

/// Where a file lies: "wire" of "engine/wire/shm/shm_wire.h", "lib" of "lib/utofu/toq.h".
/// @return kRooms.size() if the table does not know
std::size_t room_of(const std::string& path) {
  const std::string inside = path.starts_with("engine/") ? path.substr(path.find('/') + 1) : path;
  const std::string directory = inside.substr(0, inside.find('/'));
  const auto is_it = [&](const Room& room) {
    return inside.find('/') != std::string::npos && directory == room.directory;
  };
  return static_cast<std::size_t>(std::find_if(kRooms.begin(), kRooms.end(), is_it) - kRooms.begin());
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

bool may_include(std::size_t from, std::size_t to) {
  if (from == to) return true;
  const std::set<std::string> allowed = words_of(kRooms[from].may_include);
  return to < from && (allowed.contains("*") || allowed.contains(kRooms[to].directory));
}

std::vector<SourceFile> sources_of_the_house() {
  auto files = source_files("engine", {".h", ".cpp"});
  for (auto& file : source_files("lib", {".h", ".cpp"})) files.push_back(std::move(file));
  return files;
}

TEST(Layers, Every_file__lies_in_a_known_directory) {
  for (const SourceFile& file : sources_of_the_house()) {
    EXPECT_LT(room_of(file.path), kRooms.size()) << file.path << ": add its directory to the table";
  }
}

TEST(Layers, Table__names_rows_before_only) {
  for (std::size_t i = 0; i < kRooms.size(); ++i) {
    for (const std::string& name : words_of(kRooms[i].may_include)) {
      if (name == "*") continue;
      EXPECT_LT(room_of(name + "/"), i) << kRooms[i].directory << " may not include " << name;
    }
  }
}

TEST(Layers, Includes__go_where_the_table_allows) {
  for (const SourceFile& file : sources_of_the_house()) {
    for (const Include& include : quoted_includes(file)) {
      if (include.path.find('/') == std::string::npos) continue;  // The C headers, named as users name them.
      const std::size_t to = room_of(include.path);
      ASSERT_LT(to, kRooms.size()) << file.path << ":" << include.line << " is not named from the root";
      EXPECT_TRUE(may_include(room_of(file.path), to))
          << file.path << ":" << include.line << " includes " << include.path << ", which the table does not allow";
    }
  }
}

/// A door has a head and includes, nothing else.
TEST(Layers, Doors__only_lead_further) {
  const auto files = source_files("engine/door", {".h", ".cpp"});
  EXPECT_FALSE(files.empty());
  for (const SourceFile& file : files) {
    for (const std::string& line : file.lines) {
      EXPECT_TRUE(line.empty() || line.starts_with("#") || line.starts_with("//")) << file.path << ": " << line;
    }
  }
}

TEST(Layers, A_library__has_two_doors_at_most) {
  std::map<std::string, std::set<std::string>> doors;
  for (const SourceFile& file : source_files("lib", {".h", ".cpp"})) {
    const std::string library = file.path.substr(0, file.path.find('/', std::string("lib/").size()));
    for (const Include& include : quoted_includes(file)) {
      if (include.path.starts_with("engine/door/")) doors[library].insert(include.path);
    }
  }
  EXPECT_GE(doors.size(), 4u);
  for (const auto& [library, used] : doors) EXPECT_LE(used.size(), 2u) << library;
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
  for (const SourceFile& file : sources_of_the_house()) {
    for (const Include& include : quoted_includes(file)) {
      const bool is_bare = include.path.find('/') == std::string::npos;
      const std::string path = is_bare ? "include/" + include.path : include.path;
      // What is built elsewhere, too, names its neighbours alone.
      const std::string neighbour = file.path.substr(0, file.path.rfind('/') + 1) + include.path;
      const bool is_there = !read_source(path).lines.empty() || (is_bare && !read_source(neighbour).lines.empty());
      EXPECT_TRUE(is_there) << file.path << ":" << include.line << " " << include.path;
    }
  }
}

TEST(Layers, Headers__do_not_include_each_other_in_a_circle) {
  std::map<std::string, std::set<std::string>> uses;
  for (const SourceFile& file : sources_of_the_house()) {
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
