// Tests of lib/sim/machine.cpp: machines that come with Portofu, and files that are wrong.

#include "lib/sim/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace portofu::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string read_tofud() {
  std::ifstream file(machine_directory() / "tofud.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What is said of Tofu-D with one piece of its text replaced.
std::string complaint_about(const std::string& piece, const std::string& replacement) {
  std::string text = read_tofud();
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), replacement);
  std::string why;
  EXPECT_FALSE(parse_machine(text, "file.json", &why)) << replacement;
  return why;
}

TEST(MachineFile, Tofu_d__has_what_the_guide_says) {
  std::string why;
  const auto machine = load_machine("tofud", &why);
  ASSERT_TRUE(machine) << why;
  EXPECT_EQ(machine->name, "tofud");
  EXPECT_EQ(machine->topology.kind, TopologyKind::kTorus);
  EXPECT_EQ(machine->topology.lengths[4], 3u) << "1.1: the length of B";
  EXPECT_TRUE(machine->topology.wraps[4]) << "1.1: B is a ring";
  EXPECT_FALSE(machine->topology.wraps[3]);
  EXPECT_EQ(machine->interfaces.count, 6u) << "table 6.2";
  EXPECT_EQ(machine->limits.queues_per_interface, 9u) << "table 6.2";
  EXPECT_EQ(machine->limits.virtual_queues_per_queue, 8u) << "table 6.3";
  EXPECT_EQ(machine->limits.gates_per_interface, 48u) << "table 6.3";
  EXPECT_EQ(machine->links.mtu_bytes, 1920u) << "table 6.4";
  EXPECT_EQ(machine->limits.inline_bytes, 32u) << "table 6.4";
  EXPECT_EQ(machine->limits.most_transfer_bytes, (1u << 24) - 1) << "table 6.4";
  EXPECT_DOUBLE_EQ(machine->links.gb_s(), 6.8);
  EXPECT_EQ(machine->links.latency_ps, 77'500u) << "ns become ps";
  EXPECT_THAT(machine->sources.at("links.mtu_bytes"), HasSubstr("guide"));
}

TEST(MachineFile, Every_machine_of_ours__is_right) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(machine_directory())) {
    const std::string name = entry.path().stem().string();
    std::string why;
    const auto machine = load_machine(name, &why);
    ASSERT_TRUE(machine) << why;
    EXPECT_EQ(machine->name, name);
    ++count;
  }
  EXPECT_GE(count, 3u);
}

// The thesis: 3.2.2, 6.1.4.
TEST(MachineFile, Funet__has_what_the_thesis_says) {
  std::string why;
  const auto machine = load_machine("funet", &why);
  ASSERT_TRUE(machine) << why;
  EXPECT_EQ(machine->topology.kind, TopologyKind::kHypercube);
  EXPECT_DOUBLE_EQ(machine->links.gb_s(), 0.1) << "two 16-bit halfwords a cycle of 25 MHz";
  EXPECT_EQ(machine->links.latency_ps, 6 * 40'000u) << "five cycles in a router, one on the wire";
  EXPECT_EQ(machine->links.mtu_bytes, 21 * 4u);
  EXPECT_GE(machine->links.buffer_bytes, 3 * (machine->links.mtu_bytes + machine->links.header_bytes));
}

TEST(MachineFile, A_path__is_read_as_well) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("portofu-machine-test-" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << read_tofud();
  std::string why;
  EXPECT_TRUE(load_machine(path.string(), &why)) << why;
  std::filesystem::remove(path);
  EXPECT_FALSE(load_machine(path.string(), &why));
  EXPECT_THAT(why, HasSubstr(path.string()));
}

/// Nobody might ever write into it.
TEST(MachineFile, Pipe__is_refused) {
  const std::string path = testing::TempDir() + "pipe." + std::to_string(getpid()) + ".json";
  std::string why;
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(load_machine(path, &why));
  EXPECT_TRUE(why.starts_with(path + ": it is no file")) << why;
  std::filesystem::remove(path);
}

TEST(MachineFile, Directory__is_refused) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("portofu-machine-directory-" + std::to_string(getpid()) + ".json");
  std::filesystem::create_directory(path);
  std::string why;
  EXPECT_FALSE(load_machine(path.string(), &why));
  EXPECT_THAT(why, HasSubstr(path.string() + ": it cannot be read"));
  std::filesystem::remove(path);
}

TEST(MachineFile, Unknown_machine__is_refused) {
  std::string why;
  for (const char* name : {"tofux", "", "../machines/tofud"}) EXPECT_FALSE(load_machine(name, &why)) << name;
  EXPECT_THAT(why, HasSubstr("there is no machine ../machines/tofud"));
  EXPECT_THAT(why, HasSubstr("; there are bxi2, funet, tofud"));
}

TEST(MachineFile, What_is_no_JSON__is_refused) {
  std::string why;
  EXPECT_FALSE(parse_machine("{\"format\": 1,", "file.json", &why));
  EXPECT_THAT(why, AllOf(HasSubstr("file.json"), HasSubstr("parse error")));
  EXPECT_FALSE(parse_machine("[1]", "file.json", &why));
  EXPECT_EQ(why, "file.json: it is not an object");
}

TEST(MachineFile, What_is_nested_without_end__is_refused) {
  constexpr std::size_t kDepth = 200'000;
  const std::string what = "too many objects and lists in each other, in line 2";
  const std::string lists = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_THAT(complaint_about("\"format\": 1", "\"format\": " + lists), HasSubstr("format: " + what));
  std::string objects;
  for (std::size_t i = 0; i < kDepth; ++i) objects += "{\"a\":";
  objects += "1" + std::string(kDepth, '}');
  EXPECT_THAT(complaint_about("\"format\": 1", "\"format\": " + objects), HasSubstr(what));
  EXPECT_THAT(complaint_about("\"format\": 1", "\"format\": [[1]]"), HasSubstr("[[1]] is not a whole number"));
}

TEST(MachineFile, Missing_key__is_named_with_what_is_allowed) {
  EXPECT_EQ(complaint_about("\"lanes\": 2,", ""), "file.json: links.lanes: missing; a whole number from 1 to 64");
  EXPECT_THAT(complaint_about("\"name\": \"tofud\",", ""), HasSubstr("file.json: name: missing; a text"));
  EXPECT_THAT(complaint_about("\"node\": {\"injection_gb_s\": 40.8},", ""), HasSubstr("file.json: node: missing"));
}

TEST(MachineFile, A_key_that_stands_twice__is_named_with_its_line) {
  EXPECT_EQ(complaint_about("\"lanes\": 2,", "\"lanes\": 2,\n    \"lanes\": 3,"),
            "file.json: links.lanes: it stands there twice, again in line 12");
  EXPECT_EQ(complaint_about("\"format\": 1,", "\"format\": 1, \"format\": 1,"),
            "file.json: format: it stands there twice, again in line 2");
  EXPECT_THAT(complaint_about("\"sources\": {", "\"sources\": {\n\"links.lanes\": \"a guess\","),
              HasSubstr("file.json: sources.links.lanes: it stands there twice"));
  std::string why;
  EXPECT_TRUE(parse_machine(read_tofud(), "file.json", &why)) << why << ": the same key in two objects";
}

TEST(MachineFile, Unknown_key__is_named_with_those_that_there_are) {
  EXPECT_EQ(complaint_about("\"lanes\": 2,", "\"lanes\": 2, \"speed\": 3,"),
            "file.json: links.speed: there is no such key; there are: buffer_bytes header_bytes lane_gb_s lanes "
            "latency_ns mtu_bytes");
  EXPECT_THAT(complaint_about("\"format\": 1,", "\"format\": 1, \"colour\": 3,"), HasSubstr("file.json: colour: "));
  EXPECT_THAT(complaint_about("\"kind\": \"torus\",", "\"kind\": \"torus\", \"switch_ports\": 48,"),
              HasSubstr("topology.switch_ports: there is no such key"))
      << "a key of another kind of topology";
}

TEST(MachineFile, Wrong_type_or_range__is_named_with_what_is_allowed) {
  EXPECT_EQ(complaint_about("\"lanes\": 2,", "\"lanes\": \"two\","),
            "file.json: links.lanes: \"two\" is not a whole number from 1 to 64");
  for (const char* number : {"0", "65", "-1", "1.5", "1e3", "null", "true", "[2]", "99999999999999999999999"})
    EXPECT_THAT(complaint_about("\"lanes\": 2,", std::string("\"lanes\": ") + number + ","),
                HasSubstr("is not a whole"));
  for (const char* number : {"-1", "1000001", "\"1\"", "{}"})
    EXPECT_THAT(complaint_about("\"latency_ns\": 77.5,", std::string("\"latency_ns\": ") + number + ","),
                HasSubstr("links.latency_ns: "))
        << number;
  EXPECT_EQ(complaint_about("\"lanes\": 2,", "\"lanes\": \"" + std::string(100000, 'x') + "\","),
            "file.json: links.lanes: a value of 100002 bytes is not a whole number from 1 to 64");
  EXPECT_THAT(complaint_about("\"lane_gb_s\": 3.4,", "\"lane_gb_s\": 0,"), HasSubstr("is not a number from 0.001 to"));
  EXPECT_THAT(complaint_about("\"kind\": \"torus\",", "\"kind\": \"ring\","),
              HasSubstr("\"ring\" is not one of torus hypercube fat_tree dragonfly crossbar"));
  EXPECT_THAT(complaint_about("[0, 0, 0, 2, 3, 2]", "[0, 0, 0, 2, 3]"), HasSubstr("a list of 6 whole numbers"));
  EXPECT_THAT(complaint_about("[true, true, true, false, true, false]", "[1, 1, 1, 0, 1, 0]"),
              HasSubstr("a list of 6 times true or false"));
  EXPECT_THAT(complaint_about("\"format\": 1,", "\"format\": 2,"), HasSubstr("format: 2 is not a whole number"));
  EXPECT_THAT(complaint_about("{\"injection_gb_s\": 40.8}", "40.8"), HasSubstr("node: 40.8 is not an object"));
  EXPECT_THAT(complaint_about("\"buffer_bytes\": 0", "\"buffer_bytes\": 1000"), HasSubstr("holds no packet"));
}

TEST(MachineFile, Every_number__has_a_source) {
  EXPECT_THAT(complaint_about("\"links.lanes\": \"block diagram", "\"links.lane\": \"block diagram"),
              HasSubstr("sources.links.lane: there is no number of this key"));
  EXPECT_THAT(complaint_about("\"links.lanes\": \"block diagram of Tofu-D: 2 lanes x 10 ports\",", ""),
              HasSubstr("sources.links.lanes: missing"));
  EXPECT_THAT(complaint_about("\"block diagram of Tofu-D: 2 lanes x 10 ports\"", "\"\""), HasSubstr("is not a text"));
}

}  // namespace
}  // namespace portofu::sim
