// ptl_info and ptl_ping, run as users run them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sched.h>
#include <unistd.h>
#include <utofu.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/process/child_process.h"
#include "tests/process/command_output.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

std::string info_of(std::uint32_t pid) {
  return output_of(std::string(PORTOFU_PTL_INFO) + " --pid " + std::to_string(pid));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// An open non-matching interface with an entry that accepts puts at index 0.
struct OpenInterface {
  OpenInterface() {
    ptl_pt_index_t pt = 0;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    const ptl_le_t le{nullptr, 0, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    const unsigned int options = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;
    ok = PtlInit() == PTL_OK && PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, nullptr, &ni) == PTL_OK &&
         PtlGetPhysId(ni, &id) == PTL_OK && PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt) == PTL_OK &&
         PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK && PtlCTAlloc(ni, &ct) == PTL_OK;
    const ptl_md_t described{nullptr, 0, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct};
    ok = ok && PtlMDBind(ni, &described, &md) == PTL_OK;
  }
  ~OpenInterface() { PtlFini(); }
  OpenInterface(const OpenInterface&) = delete;
  OpenInterface& operator=(const OpenInterface&) = delete;

  bool put(ptl_process_t to, ptl_ack_req_t ack) const {
    return PtlPut(md, 0, 0, ack, to, 0, 0, 0, nullptr, 0) == PTL_OK;
  }

  bool ok = false;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_process_t id{};
};

/// What a living process of another version has in the directory of segments: nobody removes it.
class ForeignSegment {
 public:
  explicit ForeignSegment(std::uint32_t nid) {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "portofu-%u-%08x-777", geteuid(), nid);
    name_ = name.data();
    fd_ = open(path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    EXPECT_EQ(fcntl(fd_, F_OFD_SETLK, &whole), 0);
  }
  ~ForeignSegment() {
    std::remove(path().c_str());
    close(fd_);
  }
  ForeignSegment(const ForeignSegment&) = delete;
  ForeignSegment& operator=(const ForeignSegment&) = delete;

  std::string path() const { return "/dev/shm/" + name_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int fd_ = -1;
};

TEST(PtlInfo, Segment_of_another_version__is_told_by_all_that_cannot_read_it) {
  const OwnNode node;
  const ForeignSegment segment(node.nid());
  EXPECT_TRUE(contains(output_of(PORTOFU_PTL_INFO " -p"), segment.name() + " is not a segment of this version"));
  const std::string said = output_of(PORTOFU_PTL_INFO " --explain");
  EXPECT_TRUE(contains(said, "There are segments of another version of Portofu than this tool")) << said;
  const std::string json = output_of(PORTOFU_PTL_INFO " --explain --json");
  const std::size_t listed = json.find("foreign_segments");
  ASSERT_NE(listed, std::string::npos) << json;
  EXPECT_TRUE(contains(json.substr(listed), segment.name())) << json;
}

TEST(PtlInfo, Process_that_is_asked_for_and_not_there__is_named) {
  const OpenInterface other;
  ASSERT_TRUE(other.ok);
  constexpr std::uint32_t kNobody = 4'000'000'000;  // No PID is so large.
  EXPECT_TRUE(contains(info_of(kNobody), "with PID 4000000000 has an interface open")) << info_of(kNobody);
  for (const std::string asks : {" --pid ", " --explain ", " --json --explain "}) {
    int status = 0;
    output_of(PORTOFU_PTL_INFO + asks + std::to_string(kNobody), &status);
    EXPECT_EQ(status, 1) << asks;
    output_of(PORTOFU_PTL_INFO + asks + std::to_string(other.id.phys.pid), &status);
    EXPECT_EQ(status, 0) << asks;
  }
}

TEST(PtlInfo, Sections__can_be_chosen) {
  const std::string tool = PORTOFU_PTL_INFO;
  const std::string everything = output_of(tool);
  EXPECT_TRUE(contains(everything, "Portals 4.3")) << everything;
  EXPECT_TRUE(contains(everything, "max_triggered_ops        1000000")) << everything;
  EXPECT_FALSE(contains(everything, "PORTOFU_SPIN"));
  const std::string settings = output_of("PORTOFU_SPIN=77 " + tool + " --settings");
  EXPECT_TRUE(contains(settings, "set: PORTOFU_SPIN=77")) << settings;
  EXPECT_TRUE(contains(settings, "Empty polls in a row")) << settings;
  EXPECT_FALSE(contains(settings, "max_entries"));
  const std::string topology = output_of("HWLOC_SYNTHETIC='l3:2 core:4 pu:1' " + tool + " --topology");
  EXPECT_TRUE(contains(topology, "cores 4-7, CPUs 4-7: L3 cache 1")) << topology;
  EXPECT_FALSE(contains(topology, "max_entries"));
  int status = 0;
  EXPECT_TRUE(contains(output_of(tool + " --help", &status), "SYNOPSIS"));
  EXPECT_EQ(status, 0);
  output_of(tool + " --nonsense", &status);
  EXPECT_EQ(status, 2);
}

TEST(PtlInfo, Output__that_cannot_be_written_is_told) {
  for (const char* options : {"", " --settings", " --explain", " --explain --json"}) {
    int status = 0;
    const std::string said = output_of(std::string("{ ") + PORTOFU_PTL_INFO + options + " >/dev/full; }", &status);
    EXPECT_EQ(status, 1) << options;
    EXPECT_TRUE(said.starts_with("ptl_info: standard output cannot be written")) << said;
  }
}

/// A child with an open interface, to which puts can go once it is made.
class ListeningChild {
 public:
  ListeningChild() {
    EXPECT_EQ(read(pipe_.end[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    close(pipe_.end[0]);
    close(pipe_.end[1]);
  }

 private:
  struct Pipe {
    Pipe() { EXPECT_EQ(pipe(end), 0); }
    int end[2] = {-1, -1};
  };
  Pipe pipe_;

 public:
  ptl_process_t id{};
  ChildProcess process{[this] {
    OpenInterface open;
    if (!open.ok || write(pipe_.end[1], &open.id, sizeof open.id) < 0) return 1;
    for (;;) pause();
  }};
};

/// Sends a put there and hears that it has arrived.
void exchange(const OpenInterface& open, ptl_process_t target) {
  ptl_ct_event_t count{};
  ASSERT_TRUE(open.ok && open.put(target, PTL_ACK_REQ));
  ASSERT_EQ(PtlCTWait(open.ct, 1, &count), PTL_OK);
}

// A stopped process is a hanging one: it is shown all the same, with what waits for it.
TEST(PtlInfo, Process__is_shown_with_counters_and_waiting_packets) {
  ListeningChild listening;
  ChildProcess& child = listening.process;
  const ptl_process_t target = listening.id;
  const OpenInterface open;
  ASSERT_NO_FATAL_FAILURE(exchange(open, target));
  const std::string living = info_of(target.phys.pid);
  EXPECT_TRUE(contains(living, "PID " + std::to_string(target.phys.pid) + " on node")) << living;
  EXPECT_TRUE(contains(living, "(process_ptl_in")) << "the name of the program: " << living;
  EXPECT_TRUE(contains(living, "puts_matched")) << living;
  EXPECT_FALSE(contains(living, "peers_lost")) << "zero: " << living;
  child.send_signal(SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT), 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(open.put(target, PTL_NO_ACK_REQ));
  std::string stopped;
  EXPECT_TRUE(eventually([&] {
    stopped = info_of(target.phys.pid);
    return contains(stopped, "published, 5 packets wait");
  })) << stopped;
  EXPECT_TRUE(contains(stopped, "from PID " + std::to_string(open.id.phys.pid))) << stopped;
  child.kill_now();
  // Dead until somebody who starts removes it, which may have happened.
  const std::string dead = info_of(target.phys.pid);
  EXPECT_TRUE(contains(dead, "DEAD, was process") || contains(dead, "No process")) << dead;
}

/// For people each lane of uTofu is shown, and whose it is.
TEST(PtlInfo, Lanes__are_shown_as_those_of_one_process) {
  const ChildProcess child([] {
    setenv("PORTOFU_LANES", "4", 1);
    setenv("PORTOFU_JOB_KEY", std::to_string(getpid()).c_str(), 1);
    utofu_vcq_hdl_t vcq = 0;
    for (utofu_tni_id_t tni = 0; tni < 3; ++tni) {
      if (utofu_create_vcq(tni, 0, &vcq) != UTOFU_SUCCESS) return 1;
    }
    for (;;) pause();
  });
  const std::string process = "process " + std::to_string(child.pid()) + " (process_ptl_inf), one of its ";
  std::string shown;
  const auto count = [&](const std::string& words) {
    int found = 0;
    for (std::size_t at = shown.find(words); at != std::string::npos; at = shown.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_TRUE(eventually([&] {
    shown = output_of(std::string(PORTOFU_PTL_INFO) + " --processes");
    return count(process + "3 lanes") == 3;
  })) << shown;
  shown = output_of(std::string(PORTOFU_PTL_INFO) + " --topology");
  EXPECT_EQ(count("process " + std::to_string(child.pid()) + " "), 1) << "its threads, once: " << shown;
  EXPECT_EQ(count("thread " + std::to_string(child.pid()) + " "), 1) << shown;
  EXPECT_EQ(count("process " + std::to_string(child.pid()) + " (process_ptl_inf), 3 lanes, PID"), 1) << shown;
}

/// What two processes that run on one core have in common, each told of the other; a third one that they do not know.
TEST(PtlInfo, Distance__is_told_of_processes_that_exchange_messages) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const ListeningChild near;
  const ListeningChild unknown;
  const OpenInterface open;
  ASSERT_NO_FATAL_FAILURE(exchange(open, near.id));
  const std::string shown = output_of(std::string(PORTOFU_PTL_INFO) + " --topology");
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  for (const pid_t with : {near.process.pid(), getpid()})
    EXPECT_TRUE(contains(shown, "messages with process " + std::to_string(with) + ": on one core")) << shown;
  EXPECT_FALSE(contains(shown, "messages with process " + std::to_string(unknown.process.pid()))) << shown;
}

TEST(PtlPing, Times__are_printed_in_order) {
  int status = 1;
  const std::string text = output_of(std::string(PORTOFU_PTL_PING) + " --size 100 --count 200", &status);
  EXPECT_EQ(status, 0) << text;
  double shortest = 0, median = 0, most = 0;
  const char* const form = "100 bytes, 200 round trips: shortest %lf us, median %lf us, 99%% below %lf us";
  EXPECT_EQ(std::sscanf(text.c_str(), form, &shortest, &median, &most), 3) << text;
  EXPECT_GT(shortest, 0);
  EXPECT_LE(shortest, median);
  EXPECT_LE(median, most);
}

}  // namespace
}  // namespace portofu
