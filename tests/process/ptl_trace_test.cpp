// ptl_trace, run as users run it: traces in which every flow has both ends, and last steps of the dead.

#include <gtest/gtest.h>
#include <portals4.h>
#include <unistd.h>
#include <utofu.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/command_output.h"
#include "tests/process/launcher.h"
#include "tests/unit/wire/capture/captured_blocks.h"

namespace portofu {
namespace {

using nlohmann::json;

/// Made empty, removed with all it holds.
struct Directory {
  Directory() {
    std::string pattern = "/tmp/portofu-trace-test-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path;
};

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file).at("traceEvents");
}

struct Arrow {
  std::vector<json> begins;
  std::vector<json> ends;
};

/// By category and number.
std::map<std::string, std::map<int, Arrow>> arrows_of(const json& events) {
  std::map<std::string, std::map<int, Arrow>> arrows;
  for (const json& event : events) {
    if (event["ph"] == "s") arrows[event["cat"]][event["id"]].begins.push_back(event);
    if (event["ph"] == "f") arrows[event["cat"]][event["id"]].ends.push_back(event);
  }
  return arrows;
}

using Point = std::tuple<int, int, double>;
Point point_of(const json& event) { return {event["pid"], event["tid"], event["ts"]}; }

/// Where something is drawn, on which an end of an arrow may lie.
std::set<Point> beginnings(const json& events) {
  std::set<Point> points;
  for (const json& event : events) {
    if (event["ph"] == "X") points.insert(point_of(event));
  }
  return points;
}

void expect_both_ends(const json& events) {
  const std::set<Point> drawn = beginnings(events);
  for (const auto& [category, arrows] : arrows_of(events)) {
    for (const auto& [number, arrow] : arrows) {
      ASSERT_EQ(arrow.begins.size(), 1u) << category << " " << number;
      ASSERT_EQ(arrow.ends.size(), 1u) << category << " " << number;
      const json& begin = arrow.begins.front();
      const json& end = arrow.ends.front();
      EXPECT_LE(begin["ts"].get<double>(), end["ts"].get<double>()) << begin << end;
      EXPECT_TRUE(drawn.contains(point_of(begin))) << begin;
      EXPECT_TRUE(drawn.contains(point_of(end))) << end;
    }
  }
}

int count(const json& events, const char* category, const std::string& name) {
  int found = 0;
  for (const json& event : events) {
    if (event.value("cat", "") == category && event["ph"] == "X" && event["name"] == name) ++found;
  }
  return found;
}

#define OK(call)                           \
  do {                                     \
    if ((call) != PTL_OK) return __LINE__; \
  } while (false)

/// An interface that sends to itself.
struct Self {
  int open() {
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni));
    OK(PtlGetPhysId(ni, &id));
    OK(PtlEQAlloc(ni, 64, &eq));
    OK(PtlCTAlloc(ni, &ct));
    OK(PtlPTAlloc(ni, 0, eq, 0, &pt));
    const ptl_md_t described{data, sizeof data, 0, eq, ct};
    OK(PtlMDBind(ni, &described, &md));
    return 0;
  }
  int append(ptl_match_bits_t bits, ptl_list_t list = PTL_PRIORITY_LIST) {
    ptl_me_t me{};
    me.start = data;
    me.length = sizeof data;
    me.match_bits = bits;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    me.uid = PTL_UID_ANY;
    me.ct_handle = ct;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE;
    ptl_handle_me_t handle{};
    OK(PtlMEAppend(ni, pt, &me, list, nullptr, &handle));
    return 0;
  }
  int put(ptl_match_bits_t bits, ptl_size_t length) {
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, id, pt, bits, 0, nullptr, 0));
    return wait_for(PTL_EVENT_ACK);
  }
  int wait_for(ptl_event_kind_t kind) {
    ptl_event_t event{};
    do OK(PtlEQWait(eq, &event));
    while (event.type != kind);
    return 0;
  }

  char data[64]{};
  ptl_handle_ni_t ni{};
  ptl_process_t id{};
  ptl_handle_eq_t eq{};
  ptl_handle_ct_t ct{};
  ptl_pt_index_t pt{};
  ptl_handle_md_t md{};
};

/// Three puts, the second of which passes over two entries and the third of which is unexpected, and a triggered get.
int speak_portals() {
  Self self;
  if (const int rc = self.open(); rc != 0) return rc;
  for (const ptl_match_bits_t bits : {1, 2, 3}) {
    if (const int rc = self.append(bits); rc != 0) return rc;
  }
  if (const int rc = self.append(9, PTL_OVERFLOW_LIST); rc != 0) return rc;
  ptl_ct_event_t counted{};
  OK(PtlTriggeredGet(self.md, 0, 16, self.id, self.pt, 2, 0, nullptr, self.ct, 2));
  for (const ptl_match_bits_t bits : {1, 3, 9}) {
    if (const int rc = self.put(bits, 8); rc != 0) return rc;
  }
  OK(PtlCTWait(self.ct, 4, &counted));
  PtlFini();
  return 0;
}

int speak_utofu() {
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
  alignas(8) static std::array<char, 64> memory{};
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS || utofu_query_vcq_id(vcq, &id) != UTOFU_SUCCESS) return 1;
  if (utofu_reg_mem(vcq, memory.data(), memory.size(), 0, &stadd) != UTOFU_SUCCESS) return 2;
  const unsigned long flags = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  if (utofu_put(vcq, id, stadd, stadd + 32, 32, 5, flags, nullptr) != UTOFU_SUCCESS) return 3;
  utofu_mrq_notice notice{};
  for (int got = 0; got < 2;) got += utofu_poll_mrq(vcq, 0, &notice) == UTOFU_SUCCESS ? 1 : 0;
  return utofu_free_vcq(vcq) == UTOFU_SUCCESS ? 0 : 4;
}

/// A barrier and a reduction of one gate that waits for nobody.
int speak_barrier() {
  utofu_vbg_id_t gate = 0;
  if (utofu_alloc_vbg(0, 1, 0, &gate) != UTOFU_SUCCESS) return 1;
  utofu_vbg_setting setting{};
  setting.vbg_id = gate;
  setting.src_lcl_vbg_id = setting.src_rmt_vbg_id = UTOFU_VBG_ID_NULL;
  setting.dst_lcl_vbg_id = setting.dst_rmt_vbg_id = UTOFU_VBG_ID_NULL;
  if (utofu_set_vbg(&setting, 1) != UTOFU_SUCCESS || utofu_barrier(gate, 0) != UTOFU_SUCCESS) return 2;
  int rc = UTOFU_ERR_NOT_COMPLETED;
  while (rc == UTOFU_ERR_NOT_COMPLETED) rc = utofu_poll_barrier(gate, 0);
  if (rc != UTOFU_SUCCESS) return 3;
  std::array<std::uint64_t, 2> values{1, 2};
  if (utofu_reduce_uint64(gate, UTOFU_REDUCE_OP_SUM, values.data(), values.size(), 0) != UTOFU_SUCCESS) return 4;
  for (rc = UTOFU_ERR_NOT_COMPLETED; rc == UTOFU_ERR_NOT_COMPLETED;)
    rc = utofu_poll_reduce_uint64(gate, 0, values.data());
  return rc == UTOFU_SUCCESS && utofu_free_vbg(&gate, 1) == UTOFU_SUCCESS ? 0 : 5;
}

/// Runs `body` in a process that records all its steps.
int record(const Directory& directory, int (*body)()) {
  ChildProcess child([&] {
    setenv("PORTOFU_RECORD", directory.path.c_str(), 1);
    return body();
  });
  return child.wait_status();
}

/// Puts the files of a directory together. @return the events
json merge(const Directory& directory, std::string* summary) {
  const std::string file = directory.path + "/trace.json";
  int status = 0;
  *summary = output_of(std::string(PORTOFU_PTL_TRACE) + " --merge " + directory.path + " -o " + file, &status);
  EXPECT_EQ(status, 0) << *summary;
  return read_json(file);
}

TEST(PtlTrace, Job__has_every_message_with_both_ends) {
  const Directory directory;
  const std::string file = directory.path + "/trace.json";
  int status = 0;
  const std::string said =
      output_of(std::string(PORTOFU_PTL_TRACE) + " -o " + file + " " + PORTOFU_PTL_PING + " --count 200", &status);
  ASSERT_EQ(status, 0) << said;
  EXPECT_TRUE(contains(said, "200 round trips")) << "of the program: " << said;
  EXPECT_TRUE(contains(said, "2 processes, 2 lanes")) << said;
  EXPECT_TRUE(contains(said, ", with one 0\n")) << said;
  const json events = read_json(file);
  expect_both_ends(events);
  std::map<std::pair<int, int>, int> by_direction;
  const auto arrows = arrows_of(events);
  for (const auto& [number, arrow] : arrows.at("message"))
    ++by_direction[{arrow.begins.front()["pid"], arrow.ends.front()["pid"]}];
  const std::map<std::pair<int, int>, int> both_ways{{{1, 2}, by_direction[{1, 2}]}, {{2, 1}, by_direction[{2, 1}]}};
  EXPECT_EQ(by_direction, both_ways) << "none to oneself";
  EXPECT_GE((by_direction[{1, 2}]), 200);
  EXPECT_GE((by_direction[{2, 1}]), 200);
  EXPECT_GE(count(events, "call", "PtlPut"), 400);
}

TEST(PtlTrace, Matches_triggers_and_waits_of_Portals__are_in_trace_and_summary) {
  const Directory directory;
  ASSERT_EQ(record(directory, speak_portals), 0);
  std::string summary;
  const json events = merge(directory, &summary);
  expect_both_ends(events);
  const auto arrows = arrows_of(events);
  EXPECT_EQ(arrows.at("message").size(), 4u) << "three puts and a get: " << summary;
  EXPECT_EQ(arrows.at("answer").size(), 4u) << summary;
  EXPECT_EQ(arrows.at("trigger").size(), 1u) << summary;
  EXPECT_EQ(count(events, "call", "PtlTriggeredGet"), 1);
  EXPECT_EQ(count(events, "call", "PtlAppend"), 4);
  EXPECT_EQ(count(events, "step", "match"), 4);
  EXPECT_EQ(count(events, "step", "deliver"), 4);
  EXPECT_TRUE(contains(summary, "messages 4, 40 bytes")) << summary;
  EXPECT_TRUE(contains(summary, "matches 4, unexpected 25.0 %, deepest 2")) << summary;
}

TEST(PtlTrace, Put_of_uTofu__is_delivered_and_told) {
  const Directory directory;
  ASSERT_EQ(record(directory, speak_utofu), 0);
  std::string summary;
  const json events = merge(directory, &summary);
  expect_both_ends(events);
  EXPECT_EQ(arrows_of(events).at("message").size(), 1u) << summary;
  EXPECT_EQ(count(events, "call", "utofu_put"), 1);
  EXPECT_EQ(count(events, "step", "deliver"), 1);
  EXPECT_GE(count(events, "step", "notice"), 1);
}

TEST(PtlTrace, Barrier_and_reduction__are_calls) {
  const Directory directory;
  ASSERT_EQ(record(directory, speak_barrier), 0);
  std::string summary;
  const json events = merge(directory, &summary);
  EXPECT_EQ(count(events, "call", "utofu_barrier"), 1) << summary;
  EXPECT_EQ(count(events, "call", "utofu_reduce"), 1) << summary;
}

TEST(PtlTrace, Trace_that_is_cut_short__has_both_ends_of_what_is_left) {
  const Directory directory;
  const std::string file = directory.path + "/trace.json";
  const std::string said =
      output_of(std::string(PORTOFU_PTL_TRACE) + " --most 50 -o " + file + " " + PORTOFU_PTL_PING + " --count 200");
  EXPECT_TRUE(contains(said, "the first 50 packets")) << said;
  const json events = read_json(file);
  expect_both_ends(events);
  const std::size_t messages = arrows_of(events)["message"].size();
  EXPECT_LE(messages, 50u);
  EXPECT_GE(messages, 40u);
}

TEST(PtlTrace, Packets_of_a_job__are_captured_by_both_ends) {
  const Directory directory;
  const std::string file = directory.path + "/job.pcapng";
  int status = 0;
  const std::string said = output_of(std::string(PORTOFU_PTL_TRACE) + " --pcapng " + file + " -o " + directory.path +
                                         "/trace.json " + PORTOFU_PTL_PING + " --count 100",
                                     &status);
  ASSERT_EQ(status, 0) << said;
  std::array<int, 2> sent{};
  std::array<int, 2> received{};
  std::uint64_t last_ns = 0;
  for (const capture_test::CapturedBlock& block : capture_test::read_blocks(file, 2)) {
    EXPECT_GE(block.time_ns, last_ns);
    last_ns = block.time_ns;
    if (block.record.kind != CaptureKind::kPacket || block.header.type != PacketType::kPut) continue;
    ASSERT_LT(block.interface_number, 2u);
    ++(block.record.direction == CaptureDirection::kSent ? sent : received)[block.interface_number];
  }
  EXPECT_GE(sent[0], 100);
  EXPECT_GE(sent[1], 100);
  EXPECT_EQ(received[0], sent[1]);
  EXPECT_EQ(received[1], sent[0]);
}

TEST(PtlTrace, Exit_status__is_that_of_the_program) {
  const Directory directory;
  const std::string tool = std::string(PORTOFU_PTL_TRACE) + " -o " + directory.path + "/trace.json ";
  int status = 0;
  EXPECT_TRUE(contains(output_of(tool + "sh -c 'exit 7'", &status), "no process has recorded"));
  EXPECT_EQ(status, 7);
  output_of(tool + "sh -c 'kill -9 $$'", &status);
  EXPECT_EQ(status, 128 + 9);
  EXPECT_TRUE(contains(output_of(tool + "./no-such-program", &status), "No such file"));
  EXPECT_EQ(status, 127);
  output_of(tool, &status);
  EXPECT_EQ(status, 125);
  EXPECT_TRUE(contains(output_of(std::string(PORTOFU_PTL_TRACE) + " --help", &status), "SYNOPSIS"));
  EXPECT_EQ(status, 0);
}

TEST(PtlTrace, Signal__is_passed_on_to_the_program) {
  const Directory directory;
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    signal(number, SIG_DFL);
    const std::string waits =
        "trap 'exit 7' " + std::to_string(number) + "; echo ready $$; while :; do sleep 0.02; done";
    const Words words{PORTOFU_PTL_TRACE, "-o", directory.path + "/trace.json", "/bin/sh", "-c", waits};
    Launcher tool(words);
    tool.wait_until_ready(1);
    tool.send_signal(number);
    EXPECT_EQ(tool.wait_status(), 7) << strsignal(number) << tool.output();
  }
}

TEST(PtlTrace, Signal__that_is_ignored_stays_so_for_the_program) {
  const Directory directory;
  for (const int number : {SIGINT, SIGHUP}) {
    signal(number, SIG_IGN);
    int status = 0;
    output_of(std::string(PORTOFU_PTL_TRACE) + " -o " + directory.path + "/trace.json sh -c 'kill -" +
                  std::to_string(number) + " $$; exit 7'",
              &status);
    signal(number, SIG_DFL);
    EXPECT_EQ(status, 7) << strsignal(number);
  }
}

TEST(PtlTrace, File_that_cannot_be_written__is_told_before_the_program_runs) {
  const Directory directory;
  const std::string missing = directory.path + "/none/trace.json";
  for (const std::string& options :
       {"-o " + missing, "--report " + missing, "--pcapng " + missing, "-o " + directory.path}) {
    int status = 0;
    const std::string said =
        output_of("cd " + directory.path + " && " + PORTOFU_PTL_TRACE + " " + options + " echo it runs", &status);
    EXPECT_EQ(status, 125) << options;
    EXPECT_FALSE(contains(said, "it runs")) << said;
    EXPECT_TRUE(contains(said, options.ends_with("json") ? "No such file" : "Is a directory")) << said;
  }
}

TEST(PtlTrace, Report__is_drawn_by_a_browser_without_a_network) {
  const Directory directory;
  const std::string report = directory.path + "/report.html";
  int status = 0;
  const std::string said = output_of(std::string(PORTOFU_PTL_TRACE) + " -o " + directory.path +
                                         "/trace.json --report " + report + " " + PORTOFU_PTL_PING + " --count 100",
                                     &status);
  ASSERT_EQ(status, 0) << said;
  std::ifstream file(report);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(contains(page, "ptl_ping")) << page;
  for (const char* reference : {"http", "src=", "href=", "url(", "import"})
    EXPECT_FALSE(contains(page, reference)) << "refers to something outside: " << reference;
  const std::string chromium = browser();
  if (chromium.empty()) GTEST_SKIP() << "there is no chromium to draw the page";
  const std::string drawn = drawn_page(chromium, directory.path, report);
  EXPECT_TRUE(contains(drawn, "data-drawn=\"timeline matrix sizes depths waits\"")) << drawn;
}

/// A process that records its last steps, does a put, and waits for ever.
class Recording {
 public:
  Recording() : child_([this] { return run(); }) {
    EXPECT_EQ(::read(pipe_.ends[0], &id_, sizeof id_), static_cast<ssize_t>(sizeof id_));
  }
  ~Recording() { remove_what_stays(); }

  std::string last_steps() const {
    return output_of(std::string(PORTOFU_PTL_TRACE) + " --last " + std::to_string(child_.pid()));
  }
  ChildProcess& child() { return child_; }

 private:
  struct Pipe {
    Pipe() { EXPECT_EQ(pipe(ends), 0); }
    ~Pipe() {
      for (const int end : ends) close(end);
    }
    int ends[2]{-1, -1};
  };

  int run() const {
    setenv("PORTOFU_RECORD", "last", 1);
    setenv("PORTOFU_KEEP_DEAD", "1", 1);
    Self self;
    if (self.open() != 0 || self.append(1) != 0 || self.put(1, 8) != 0) return 1;
    if (write(pipe_.ends[1], &self.id, sizeof self.id) != static_cast<ssize_t>(sizeof self.id)) return 2;
    ptl_ct_event_t counted{};
    PtlCTWait(self.ct, 1000, &counted);
    return 3;
  }

  /// The segment of a dead process that kept it stays, and its steps do until the next one records.
  void remove_what_stays() {
    child_.kill_unreaped();
    char id[32];
    std::snprintf(id, sizeof id, "-%08x-%u", id_.phys.nid, id_.phys.pid);
    const std::string steps_end = "-" + std::to_string(child_.pid());
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename();
      const bool is_steps = name.starts_with("portofu-steps-") && name.ends_with(steps_end);
      if (is_steps || (name.starts_with("portofu-") && name.ends_with(id))) std::filesystem::remove(entry.path());
    }
  }

  Pipe pipe_;
  ptl_process_t id_{};
  ChildProcess child_;
};

void expect_steps_of_a_put(const std::string& steps) {
  std::size_t at = 0;
  for (const char* step : {"call PtlPut, 8 bytes", "packet out: put of 8 bytes", "packet in: put of 8 bytes",
                           "match put of 8 bytes", "deliver put, 8 bytes", "event PUT", "event ACK"}) {
    const std::size_t found = steps.find(step, at);
    ASSERT_NE(found, std::string::npos) << step << " in\n" << steps;
    at = found;
  }
}

TEST(PtlTrace, Last_steps_of_a_process__are_shown_while_it_waits) {
  Recording recording;
  std::string steps;
  EXPECT_TRUE(eventually([&] {
    steps = recording.last_steps();
    return contains(steps, "sleep");
  })) << steps;
  EXPECT_TRUE(contains(steps, "process " + std::to_string(recording.child().pid()) + " (")) << steps;
  EXPECT_FALSE(contains(steps, "DEAD")) << steps;
  expect_steps_of_a_put(steps);
  EXPECT_TRUE(contains(steps, "wait: counter")) << steps;
  EXPECT_TRUE(contains(steps, ", queue 0x")) << "as ptl_info names it: " << steps;
}

TEST(PtlTrace, Last_steps_of_a_killed_process__are_shown) {
  Recording recording;
  recording.child().kill_unreaped();
  const std::string steps = recording.last_steps();
  EXPECT_TRUE(contains(steps, "DEAD, was process " + std::to_string(recording.child().pid()))) << steps;
  expect_steps_of_a_put(steps);
}

TEST(PtlTrace, Without_such_a_process__it_says_so) {
  int status = 0;
  EXPECT_TRUE(contains(output_of(std::string(PORTOFU_PTL_TRACE) + " --last 1", &status), "PORTOFU_RECORD=last"));
  EXPECT_EQ(status, 1);
}

}  // namespace
}  // namespace portofu
