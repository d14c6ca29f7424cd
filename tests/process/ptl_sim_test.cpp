// ptl_sim with real processes: the times of a machine, the same in each run; what ranks wait for, and how; and the ends
// of jobs that go wrong. The test program is its own rank, as in the tests of ptl_run.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "engine/queue/clock.h"
#include "tests/process/command_output.h"
#include "tests/process/sim_roles.h"
#include "tests/process/simulated_job.h"

namespace portofu {
namespace {

/// The path has no gap from the beginning to the end of a rank, and its sums are those of its segments.
void check_path(const Simulated& job) {
  const auto& path = job.report["critical_path"];
  std::map<std::string, std::uint64_t> sums;
  std::uint64_t now_ps = 0;
  for (const auto& segment : path["segments"]) {
    ASSERT_EQ(segment["from_ps"], now_ps);
    now_ps = segment["to_ps"];
    sums[segment["kind"]] += now_ps - segment["from_ps"].get<std::uint64_t>();
  }
  EXPECT_EQ(path["time_ps"], now_ps);
  EXPECT_EQ(job.time_ps(), now_ps);
  for (const auto& rank : job.report["ranks"]) EXPECT_LE(rank["time_ps"], now_ps);
  std::uint64_t parts_ps = 0;
  for (const auto& part : path["parts"]) parts_ps += part["time_ps"].get<std::uint64_t>();
  EXPECT_EQ(parts_ps, now_ps);
  for (const char* kind : {"compute", "call", "interface", "wire", "busy", "timer"})
    EXPECT_EQ(path[std::string(kind) + "_ps"], sums[kind]) << kind;
}

// ---- Times ----------------------------------------------------------------------------------------------------------

/// Published for Tofu-D: a put of 8 bytes takes 0.97 to 0.99 us one way over one hop, memory polled; we allow 5 %.
TEST(PtlSim, Tofu__memory_that_is_polled_takes_what_the_machine_takes) {
  const Simulated job = run("memory", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const double half_round_trip_us = static_cast<double>(job.time_ps()) / 1e6 / 40;
  EXPECT_GT(half_round_trip_us, 0.97 * 0.95);
  EXPECT_LT(half_round_trip_us, 0.99 * 1.05);
  EXPECT_EQ(job.report["message_count"], 40);
  EXPECT_TRUE(contains(job.output, "ranks were taken to poll their memory")) << job.output;
}

/// A put is seen by the polling call behind it: what a message takes on its way, a call that puts, and one that polls.
/// Published for Tofu-D: a hop of a ring with notices takes 1.23 us; we allow 2 %.
TEST(PtlSim, Tofu__a_notice_is_polled_when_the_message_has_arrived) {
  const Simulated job = run("mrq", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& messages = job.report["messages"];
  ASSERT_EQ(messages.size(), 40u);
  const auto& rank = job.report["ranks"][0];
  const std::uint64_t put_ps = rank["put"]["time_ps"].get<std::uint64_t>() / 20;
  for (std::size_t i = 3; i < messages.size(); ++i) {
    const std::uint64_t before = messages[i - 1]["arrived_ps"];
    const std::uint64_t after = messages[i]["sent_ps"];
    EXPECT_GT(after, before + put_ps) << "and the call that polls";
    EXPECT_EQ(after - before,
              messages[3]["sent_ps"].get<std::uint64_t>() - messages[2]["arrived_ps"].get<std::uint64_t>())
        << i;
    const double hop_us = static_cast<double>(after - messages[i - 1]["sent_ps"].get<std::uint64_t>()) / 1e6;
    EXPECT_NEAR(hop_us, 1.23, 1.23 * 0.02) << i;
  }
  EXPECT_FALSE(contains(job.output, "ranks were taken to poll their memory")) << job.output;
}

/// A VCQ of the target is of a TNI of its own, through which answers leave.
TEST(PtlSim, Tofu__messages_come_in_through_the_tni_of_their_target) {
  const Simulated job = run("two_tnis", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  std::map<std::string, int> packets;
  for (const auto& use : job.report["uses"]) packets[use["name"]] = use["packets"];
  const auto of = [&packets](const char* name) { return packets.contains(name) ? packets[name] : 0; };
  EXPECT_EQ(of("interface 0 of node 0, out"), 10) << "five puts, and five answers";
  EXPECT_EQ(of("interface 3 of node 1, in"), 10);
  EXPECT_EQ(of("interface 3 of node 1, out"), 5) << "requests";
  EXPECT_EQ(of("interface 0 of node 0, in"), 5);
  EXPECT_EQ(of("interface 0 of node 1, in") + of("interface 3 of node 0, in"), 0);
}

/// 3.4: the data of a piggyback is in the descriptor, so the interface reads no memory.
TEST(PtlSim, Tofu__a_piggyback_is_not_read_from_memory) {
  const Simulated job = run("two_tnis", {"--nodes", "2"});
  const Simulated put = run("memory", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  ASSERT_EQ(put.status, 0) << put.output;
  std::ifstream file(std::filesystem::path(PORTOFU_PTL_SIM).parent_path() / "../share/portofu/machines/tofud.json");
  const std::uint64_t read_ps = number_of(nlohmann::json::parse(file)["interfaces"], "dma_read_ns") * 1000;
  const auto& first = job.report["messages"][0];
  const auto& other = put.report["messages"][0];
  EXPECT_EQ(first["kind"], "inline put");
  EXPECT_EQ(other["kind"], "put");
  EXPECT_EQ(number_of(first, "bytes"), number_of(other, "bytes"));
  EXPECT_EQ(number_of(first, "left_ps") - number_of(first, "sent_ps") + read_ps,
            number_of(other, "left_ps") - number_of(other, "sent_ps"));
}

/// Published for Tofu-D: 3.49 GB/s in puts of 1 KiB, one every 293 ns, each with a notice that is polled. The processor
/// bounds that, so it is the same for shorter ones.
TEST(PtlSim, Tofu__notices_that_are_there_cost_a_call_each) {
  const Simulated job = run("rate", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& rank = job.report["ranks"][0];
  EXPECT_EQ(rank["put"]["count"], 20);
  EXPECT_EQ(rank["look"]["count"], 20) << "each is there when it is looked for";
  const auto& messages = job.report["messages"];
  ASSERT_EQ(messages.size(), 20u);
  for (std::size_t i = 6; i < messages.size(); ++i) {
    const double put_ns =
        static_cast<double>(number_of(messages[i], "sent_ps") - number_of(messages[i - 1], "sent_ps")) / 1e3;
    EXPECT_NEAR(put_ns, 293, 293 * 0.02) << i;
  }
}

/// 2.2.12, 3.7: a notice of the TCQ says that the source is free. The interface has read it when the message has left.
TEST(PtlSim, Tofu__a_notice_of_the_tcq_comes_when_the_message_has_left) {
  const Simulated job = run("notice_by_notice", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& messages = job.report["messages"];
  ASSERT_EQ(messages.size(), 20u);
  const std::uint64_t put_ps = number_of(job.report["ranks"][0]["put"], "time_ps") / 20;
  constexpr std::uint64_t kPollPs = 143'000;  // Of the machine `tofud`.
  constexpr std::uint64_t kEmptyPollPs = 20'000;
  for (std::size_t i = 1; i < messages.size(); ++i) {
    const std::uint64_t found_ps = number_of(messages[i], "sent_ps") - put_ps;
    EXPECT_GE(found_ps, number_of(messages[i - 1], "left_ps") + kPollPs) << i;
    EXPECT_LT(found_ps, number_of(messages[i - 1], "left_ps") + kPollPs + kEmptyPollPs) << i << ": at once";
  }
  check_path(job);
}

/// 3.13.3: SEND says that the buffer may be used again.
TEST(PtlSim, Portals__send_comes_when_the_message_has_left) {
  const Simulated job = run("sends", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& messages = job.report["messages"];
  ASSERT_EQ(messages.size(), 5u);
  const auto& rank = job.report["ranks"][0];
  const std::uint64_t put_ps = number_of(rank["put"], "time_ps") / 5;
  for (std::size_t i = 1; i < messages.size(); ++i) {
    const std::uint64_t left_ps = number_of(messages[i - 1], "left_ps");
    const std::uint64_t between_ps = number_of(messages[i], "sent_ps") - left_ps;
    EXPECT_GE(between_ps, put_ps) << i;
    EXPECT_LE(between_ps, put_ps + 2 * number_of(rank["look"], "time_ps") / number_of(rank["look"], "count")) << i;
    EXPECT_LT(left_ps, number_of(messages[i - 1], "arrived_ps")) << "it need not have arrived";
  }
  check_path(job);
}

/// A counter that counts SEND fires at that time, in the interface.
TEST(PtlSim, Portals__what_send_triggers_leaves_when_the_message_has_left) {
  const Simulated job = run("send_triggers", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& messages = job.report["messages"];
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[1]["sent_ps"], messages[0]["left_ps"]);
  EXPECT_EQ(messages[1]["kind"], "triggered put");
  check_path(job);
}

/// 3.13.2: GET is raised when the data has been read.
TEST(PtlSim, Portals__get_comes_at_the_target_when_its_reply_has_left) {
  const Simulated job = run("get_events", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& messages = job.report["messages"];
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1]["kind"], "get reply");
  const std::uint64_t put_ps = number_of(job.report["ranks"][0]["put"], "time_ps");
  EXPECT_GE(number_of(messages[2], "sent_ps"), number_of(messages[1], "left_ps") + put_ps);
  EXPECT_LT(number_of(messages[2], "sent_ps"), number_of(messages[1], "left_ps") + put_ps + 500'000);
}

/// On BXI a payload of up to 64 bytes is in the command.
TEST(PtlSim, Portals__a_short_message_is_not_read_from_memory) {
  for (const auto& [role, kind] : {std::pair{"ring", "inline put"}, {"long_ring", "put"}}) {
    const Simulated job = run(role, {"--nodes", "3", "--machine", "bxi2"});
    ASSERT_EQ(job.status, 0) << job.output;
    ASSERT_EQ(job.report["messages"].size(), 9u);
    for (const auto& message : job.report["messages"]) EXPECT_EQ(message["kind"], kind);
  }
}

TEST(PtlSim, Portals__a_long_message_takes_its_bandwidth) {
  const Simulated job = run("long_ring", {"--nodes", "3"});
  ASSERT_EQ(job.status, 0) << job.output;
  ASSERT_EQ(job.report["messages"].size(), 9u);
  for (const auto& message : job.report["messages"]) {
    EXPECT_EQ(message["bytes"], 8u << 20);
    const double took_ns =
        static_cast<double>(message["arrived_ps"].get<std::uint64_t>() - message["sent_ps"].get<std::uint64_t>()) / 1e3;
    EXPECT_GT(took_ns, (8u << 20) / 6.8) << "no faster than a link of Tofu-D";
  }
}

/// MPI leaves many of them unread when it has started, or none: that is a matter of luck.
TEST(PtlSim, Portals__entries_cost_nothing_nor_do_their_events) {
  const Simulated many = run("links", {"--nodes", "2"});
  const Simulated one = run("no_links", {"--nodes", "2"});
  ASSERT_EQ(many.status, 0) << many.output;
  ASSERT_EQ(one.status, 0) << one.output;
  EXPECT_EQ(many.report, one.report);
}

TEST(PtlSim, Portals__timeouts_are_of_virtual_time) {
  const std::uint64_t before_ns = monotonic_ns();
  const Simulated job = run("timeouts", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  EXPECT_GE(job.time_ps(), 8'000'000'000u);
  EXPECT_LT(job.time_ps(), 8'100'000'000u);
  EXPECT_LT(monotonic_ns() - before_ns, 30'000'000'000u);
}

/// A rank answers gets and atomics while it waits for something else, and so costs none of its time.
TEST(PtlSim, Tofu__who_is_asked_does_not_spend_time) {
  const Simulated job = run("get_armw", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto& asked = job.report["ranks"][1];
  EXPECT_EQ(asked["get"]["time_ps"], 0);
  EXPECT_EQ(asked["atomic"]["time_ps"], 0);
  EXPECT_EQ(asked["messages"], 20) << "answers";
}

TEST(PtlSim, Compute__costs_what_is_said) {
  const Simulated none = run("mrq", {"--nodes", "2"});
  const Simulated fixed = run("mrq", {"--nodes", "2", "--compute", "fixed=1000"});
  const Simulated cpu = run("mrq", {"--nodes", "2", "--compute", "cpu=10"});
  ASSERT_EQ(none.status + fixed.status + cpu.status, 0) << fixed.output << cpu.output;
  EXPECT_EQ(none.report["ranks"][0]["compute"]["time_ps"], 0);
  const auto& spent = fixed.report["ranks"][0]["compute"];
  EXPECT_EQ(spent["time_ps"].get<std::uint64_t>(), spent["count"].get<std::uint64_t>() * 1'000'000);
  EXPECT_GE(spent["count"], 40) << "20 puts, and a poll behind each";
  EXPECT_GT(cpu.report["ranks"][0]["compute"]["time_ps"], 0);
}

// ---- Nodes ----------------------------------------------------------------------------------------------------------

bool uses_link(const Simulated& job, const std::string& name) {
  const auto& uses = job.report["uses"];
  return std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return use["name"] == name; });
}

/// X, Y, Z, A, B and C of Tofu-D: uTofu in the ranks and the network between them have the same places, X first.
TEST(PtlSim, Nodes__are_the_six_lengths_of_a_torus) {
  const Simulated job = run("coordinates", {"--nodes", "2x1x1x2x3x2"});
  ASSERT_EQ(job.status, 0) << job.output;
  EXPECT_EQ(job.report["nodes"], 24);
  for (int rank = 0; rank < 24; ++rank) {
    const std::string at = std::to_string(rank % 2) + ",0,0," + std::to_string(rank / 2 % 2) + ',' +
                           std::to_string(rank / 4 % 3) + ',' + std::to_string(rank / 12) + ".\n";
    EXPECT_TRUE(contains(job.output, "rank " + std::to_string(rank) + " at " + at)) << job.output;
  }
  EXPECT_TRUE(uses_link(job, "X+ of node 0") && !uses_link(job, "A+ of node 0"));
  const Simulated group = run("coordinates", {"--nodes", "1x1x1x2x3x2"});
  ASSERT_EQ(group.status, 0) << group.output;
  EXPECT_TRUE(uses_link(group, "A+ of node 0") && !uses_link(group, "X+ of node 0"));
  EXPECT_EQ(group.time_ps(), job.time_ps()) << "neighbours, one as the other";
}

TEST(PtlSim, Nodes__run_along_a_box) {
  const Simulated job = run("coordinates", {"--nodes", "4x3", "--per-node", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  EXPECT_TRUE(contains(job.output, "rank 3 at 0,0,0,1,0,0.")) << job.output;
  EXPECT_TRUE(contains(job.output, "rank 23 at 1,0,0,0,2,0.")) << job.output;
}

// ---- What comes out -------------------------------------------------------------------------------------------------

std::uint64_t sum_of(const nlohmann::json& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const nlohmann::json& one) { return sum + one.get<std::uint64_t>(); });
}

/// Who plays ping pong waits for every message, however it looks for it.
TEST(PtlSim, Path__of_a_ping_pong_has_all_its_messages) {
  for (const char* role : {"mrq", "memory"}) {
    const Simulated job = run(role, {"--nodes", "2"});
    ASSERT_EQ(job.status, 0) << job.output;
    check_path(job);
    const auto& path = job.report["critical_path"];
    const auto& segments = path["segments"];
    EXPECT_EQ(std::ranges::count_if(segments, [](const auto& one) { return one["kind"] == "wire"; }), 40) << role;
    EXPECT_EQ(path["busy_ps"], 0) << "nobody else is there";
    EXPECT_EQ(path["timer_ps"], 0);
    EXPECT_EQ(path["interface_ps"].get<std::uint64_t>() % 40, 0) << "each message costs the same";
  }
}

TEST(PtlSim, Path__of_answers_leads_through_the_rank_that_is_asked) {
  const Simulated job = run("get_armw", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  check_path(job);
  std::set<std::string> kinds;
  for (const auto& segment : job.report["critical_path"]["segments"]) {
    if (segment.contains("message")) kinds.insert(segment["message"]);
  }
  EXPECT_TRUE(kinds.contains("get request") && kinds.contains("get reply") && kinds.contains("atomic reply"));
}

TEST(PtlSim, Path__of_a_triggered_chain_is_the_chain) {
  const Simulated job = run("triggered", {"--nodes", "2x3x2"});
  ASSERT_EQ(job.status, 0) << job.output;
  check_path(job);
  const auto& segments = job.report["critical_path"]["segments"];
  EXPECT_EQ(std::ranges::count_if(segments, [](const auto& one) { return one["kind"] == "wire"; }), 12);
}

TEST(PtlSim, Path__of_a_timeout_is_waiting_for_it) {
  const Simulated job = run("timeouts", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  check_path(job);
  EXPECT_GE(job.report["critical_path"]["timer_ps"], 7'900'000'000u);
}

/// 11 nodes send 64 KiB to one, through one interface of 6.8 GB/s: what is on the way last has waited for ten others.
TEST(PtlSim, Path__shows_the_interface_that_all_wait_for) {
  Words options{"--nodes", "2x3x2", "--path"};
  const Simulated job = run("incast", options);
  ASSERT_EQ(job.status, 0) << job.output;
  check_path(job);
  const auto& path = job.report["critical_path"];
  EXPECT_GT(path["busy_ps"].get<std::uint64_t>(), path["time_ps"].get<std::uint64_t>() / 2);
  EXPECT_EQ(path["parts"][0]["name"], "interface 0 of node 0, in: in use");
  EXPECT_TRUE(contains(job.output, "critical path")) << job.output;
  EXPECT_TRUE(contains(job.output, "interface 0 of node 0, in: in use")) << job.output;
}

TEST(PtlSim, Uses__over_time_are_those_of_the_whole) {
  const Simulated job = run("incast", {"--nodes", "2x3x2"});
  ASSERT_EQ(job.status, 0) << job.output;
  const std::uint64_t slice_ps = job.report["slice_ps"];
  EXPECT_GT(slice_ps, 0u);
  std::uint64_t waited_ps = 0;
  for (const auto& use : job.report["uses"]) {
    EXPECT_EQ(sum_of(use["busy_by_slice_ps"]), use["busy_ps"]) << use["name"];
    EXPECT_EQ(sum_of(use["waited_by_slice_ps"]), use["waited_ps"]) << use["name"];
    EXPECT_LE(use["busy_by_slice_ps"].size(), 128u);
    for (const auto& busy : use["busy_by_slice_ps"]) EXPECT_LE(busy, slice_ps);
    waited_ps += use["waited_ps"].get<std::uint64_t>();
  }
  EXPECT_GT(waited_ps, 0u);
}

/// A directory for files of a run.
struct Directory {
  Directory() {
    std::string pattern = testing::TempDir() + "ptl_sim_test-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string text_of(const std::string& name) const {
    std::ifstream file(path + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path;
};

/// Calls and messages of the trace are at the virtual times of the JSON.
TEST(PtlSim, Trace__has_calls_messages_and_links_in_virtual_time) {
  const Directory directory;
  const Simulated job = run("mrq", {"--nodes", "2", "--trace", directory.path + "/trace.json"});
  ASSERT_EQ(job.status, 0) << job.output;
  const auto trace = nlohmann::json::parse(directory.text_of("/trace.json"));
  std::size_t calls = 0;
  std::size_t counters = 0;
  std::vector<double> sent_us;
  for (const auto& event : trace["traceEvents"]) {
    const std::string name = event["name"];
    if (event["ph"] == "X" && event["cat"] == "call") {
      ++calls;
      EXPECT_EQ(name, "utofu_put");
      EXPECT_DOUBLE_EQ(event["dur"], 0.15) << "put_ns of the machine";
    }
    if (event["ph"] == "s") sent_us.push_back(event["ts"]);
    if (event["ph"] == "C") ++counters;
  }
  EXPECT_EQ(calls, 40u);
  EXPECT_GT(counters, 0u);
  ASSERT_EQ(sent_us.size(), 40u);
  const auto& messages = job.report["messages"];
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_NEAR(sent_us[i], messages[i]["sent_ps"].get<double>() / 1e6, 0.001) << "nanoseconds are written";
}

TEST(PtlSim, Report__is_drawn_by_a_browser_without_a_network) {
  const Directory directory;
  const std::string report = directory.path + "/report.html";
  const Simulated job = run("incast", {"--nodes", "2x3x2", "--report", report});
  ASSERT_EQ(job.status, 0) << job.output;
  const std::string page = directory.text_of("/report.html");
  for (const char* content : {"rank 11", "interface 0 of node 0, in: in use", "Packets that wait"})
    EXPECT_TRUE(contains(page, content)) << content;
  for (const char* reference : {"http", "src=", "href=", "url(", "import"})
    EXPECT_FALSE(contains(page, reference)) << "refers to something outside: " << reference;
  const std::string chromium = browser();
  if (chromium.empty()) GTEST_SKIP() << "there is no chromium to draw the page";
  const std::string drawn = drawn_page(chromium, directory.path, report);
  EXPECT_TRUE(contains(drawn, "data-drawn=\"timeline matrix sizes links queues waits path parts\"")) << drawn;
}

/// Four hops of a ring after each other take longer than two, and a run by itself takes as long as in a sweep.
TEST(PtlSim, Sweep__runs_the_program_for_each_size) {
  const Directory directory;
  const std::string plot = directory.path + "/times.svg";
  const Simulated all = run("triggered", {"--sweep", "nodes=2,4,2x3x2", "--plot", plot}, false);
  ASSERT_EQ(all.status, 0) << all.output;
  const auto& points = all.report["sweep"];
  ASSERT_EQ(points.size(), 3u);
  std::uint64_t before_ps = 0;
  for (const auto& point : points) {
    const Simulated one = run("triggered", {"--nodes", point["shape"]});
    EXPECT_EQ(point["time_ps"], one.time_ps());
    EXPECT_EQ(point["nodes"], one.report["nodes"]);
    EXPECT_EQ(point["interface_ps"], one.report["critical_path"]["interface_ps"]);
    EXPECT_GT(one.time_ps(), before_ps);
    before_ps = one.time_ps();
  }
  EXPECT_EQ(points[2]["ranks"], 12);
  EXPECT_TRUE(contains(all.output, "2x3x2")) << all.output;
  const std::string drawn = directory.text_of("/times.svg");
  EXPECT_TRUE(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n")) << drawn;
}

TEST(PtlSim, Sweep__ends_with_the_run_that_ends_badly) {
  const Simulated job = run("hangs", {"--sweep", "nodes=2,4"}, false);
  EXPECT_EQ(job.status, 125) << job.output;
  EXPECT_TRUE(contains(job.output, "hangs") && !contains(job.output, "rank 3")) << job.output;
}

/// The third rank of three has no partner.
TEST(PtlSim, Sweep__that_ends_badly_tells_what_it_has) {
  const Simulated all = run("mrq", {"--sweep", "nodes=2,3,4"}, false);
  EXPECT_EQ(all.status, 1) << all.output;
  EXPECT_TRUE(contains(all.output, "the sweep ends at nodes=3")) << all.output;
  EXPECT_EQ(all.report["status"], 1);
  ASSERT_EQ(all.report["sweep"].size(), 1u) << all.output;
  EXPECT_EQ(all.report["sweep"][0]["nodes"], 2);
  EXPECT_EQ(all.report["sweep"][0]["messages"], 40);
}

/// Each run starts its ranks as a ptl_sim of its own would.
TEST(PtlSim, Sweep__leaves_ranks_of_later_runs_their_signals_and_limits) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{kFewFiles, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Simulated job = run("as_started", {"--sweep", "nodes=1,2,3"}, false);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(job.status, 0) << job.output;
}

// ---- Ends -----------------------------------------------------------------------------------------------------------

TEST(PtlSim, Ends__a_rank_that_dies_ends_the_job) {
  const Simulated job = run("dies", {"--nodes", "2"});
  EXPECT_EQ(job.status, 128 + SIGKILL) << job.output;
  EXPECT_TRUE(contains(job.output, "rank 1 ")) << job.output;
}

/// 3.1.2.1: UTOFU_ERR_MRQ_PEER.
TEST(PtlSim, Ends__who_sends_to_a_rank_that_has_left_is_told_so_in_virtual_time) {
  const Simulated job = run("leaves_early", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_LT(job.time_ps(), 1'000'000'000u) << "not when somebody looks after the dead: " << job.output;
}

/// Of one program, and of the next that is the same rank, messages arrive.
TEST(PtlSim, Ends__a_program_that_another_one_follows_as_the_same_rank) {
  const Simulated job = run("one_after_the_other", {"--nodes", "2", "--hang", "10"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_EQ(job.report["message_count"], 12);
}

/// A rank that has seen its last word in its memory has waited for that.
TEST(PtlSim, Ends__count_waiting_behind_the_last_call) {
  const Simulated job = run("memory_and_no_close", {"--nodes", "2"});
  ASSERT_EQ(job.status, 0) << job.output;
  check_path(job);
  EXPECT_EQ(job.report["ranks"][0]["time_ps"], job.time_ps()) << "its word was on its way last";
}

TEST(PtlSim, Ends__who_never_uses_the_library_is_told_so) {
  const Simulated job = run("never", {"--nodes", "2"});
  EXPECT_EQ(job.status, 125) << job.output;
  EXPECT_TRUE(contains(job.output, "no rank has used the library")) << job.output;
  EXPECT_EQ(job.report["status"], 125);
  EXPECT_TRUE(contains(job.report["complaint"], "no rank has used the library")) << job.report["complaint"];
}

/// Else times of ranks that talk by other ways look like those of the machine.
TEST(PtlSim, Ends__who_sends_nothing_is_told_so) {
  const std::string what = "no message has gone through the library";
  const Simulated job = run("alone", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_TRUE(contains(job.output, what)) << job.output;
  EXPECT_FALSE(contains(run("alone", {"--nodes", "1"}).output, what)) << "there is nobody to send to";
}

TEST(PtlSim, Start__that_waits_for_a_rank_says_for_which) {
  const std::string line = "rank 1 has not used the library yet; time begins without it 10 s after the start";
  const Simulated job = run("one_never", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
  const std::size_t at = job.output.find(line);
  ASSERT_NE(at, std::string::npos) << job.output;
  EXPECT_EQ(job.output.find(line, at + 1), std::string::npos) << "once";
  EXPECT_FALSE(contains(run("one_never", {"--nodes", "2", "--quiet"}).output, "has not used"));
}

TEST(PtlSim, Ends__a_program_that_hangs_ends) {
  for (const char* role : {"hangs", "polls_in_vain"}) {
    const Simulated job = run(role, {"--nodes", "2"});
    EXPECT_EQ(job.status, 125) << role << job.output;
    EXPECT_TRUE(contains(job.output, "hangs")) << job.output;
    EXPECT_EQ(job.report["status"], 125);
    EXPECT_TRUE(contains(job.report["complaint"], "hangs")) << job.report["complaint"];
    EXPECT_TRUE(contains(job.output, "rank 1 ")) << job.output;
  }
}

/// Real time passes, since whoever polls its memory may go on at any time. If so little of it is enough to give up, a
/// busy machine may not have let the ranks come so far: then with more.
TEST(PtlSim, Ends__a_program_that_polls_memory_in_vain_ends) {
  const auto hangs = [](const std::string& role, const std::string& words) {
    Simulated job;
    for (int seconds = 2; seconds <= 32; seconds *= 2) {
      job = run(role, {"--nodes", "2", "--hang", std::to_string(seconds)});
      EXPECT_EQ(job.status, 125) << role << job.output;
      if (contains(job.output, " for " + std::to_string(seconds) + " s") && contains(job.output, words)) return;
    }
    ADD_FAILURE() << role << job.output;
  };
  hangs("memory_in_vain", "polls its memory");
  hangs("one_ends", "; 1 rank has ended");
  // Time has not begun in the first job, and goes on and on in the second.
  hangs("memory_without_a_call", "nothing has happened for ");
  hangs("memory_and_notices", "nothing has happened for ");
}

TEST(PtlSim, Ends__a_rank_that_cannot_be_stopped_is_told_of_and_goes_on) {
  const Simulated job = run("memory_and_own_handler", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_TRUE(contains(job.output, "has a handler of its own for SIGURG")) << job.output;
}

// What the library says of a full TNI names what can be changed there.
TEST(PtlSim, Machine__without_a_free_CQ_is_told_of) {
  const Simulated job = run("full_tni", {"--nodes", "1x1x1"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_TRUE(contains(job.output, "raise queues_per_interface of the machine")) << job.output;
  const Simulated unlimited = run("full_tni", {"--nodes", "1", "--machine", "bxi2"});
  EXPECT_EQ(unlimited.status, 1) << "0 is without limit: it gets all ten" << unlimited.output;
}

TEST(PtlSim, Polling__of_a_number_of_times_is_no_hang) {
  for (const char* nodes : {"1x1x1", "2"}) {
    const Simulated job = run("looks_and_goes_on", {"--nodes", nodes, "--per-node", "2"});
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_LT(job.time_ps(), 10'000'000'000'000u) << "seconds at most: " << job.output;
  }
}

TEST(PtlSim, Polling__gives_way_to_a_rank_that_was_away_and_comes_back) {
  const Simulated job = run("comes_back", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
}

/// Each call that sends lets the signal in, because the program may poll its memory behind it.
TEST(PtlSim, Ends__a_rank_that_blocks_signals_can_be_stopped) {
  const Simulated job = run("memory_and_blocked_signals", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_FALSE(contains(job.output, "SIGURG")) << job.output;
}

TEST(PtlSim, Ends__a_rank_whose_thread_has_ended_goes_on) {
  const Simulated job = run("thread_ends", {"--nodes", "2"});
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_EQ(job.report["message_count"], 3);
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) { return portofu::play_or_test(argc, argv, portofu::play_sim); }
