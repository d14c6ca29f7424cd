// ptl_info --explain, at programs that hang because of an error that was planted, and at the same ones without it.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/command_output.h"
#include "tests/process/launcher.h"
#include "tests/process/own_node.h"
#include "tests/process/planted_traffic.h"

namespace portofu {
namespace {

using Json = nlohmann::json;

bool says(const Json& finding, const std::string& words) { return contains(finding.value("sentence", ""), words); }

std::string dotted_nid(std::uint32_t nid) {
  return std::to_string(nid >> 24) + "." + std::to_string(nid >> 16 & 255) + "." + std::to_string(nid >> 8 & 255) +
         "." + std::to_string(nid & 255);
}

/// ptl_info --explain --json, as far as it is about this node.
class Explained {
 public:
  explicit Explained(std::uint32_t nid) {
    text_ = output_of(std::string(PORTOFU_PTL_INFO) + " --explain --json");
    const Json all = Json::parse(text_, nullptr, false);
    if (!all.is_object()) return;
    for (const Json& job : all["jobs"]) {
      for (const Json& process : job["processes"]) {
        if (process["nid"] == dotted_nid(nid)) processes_.push_back(process);
      }
      for (const Json& finding : job["findings"]) {
        if (finding["process"]["nid"] == dotted_nid(nid)) findings_.push_back(finding);
      }
    }
  }

  /// @return the first of the kind that says the words; null if there is none
  Json find(const std::string& kind, int rank, const std::string& words) const {
    for (const Json& finding : findings_) {
      if (finding["kind"] == kind && finding.value("rank", -1) == rank && says(finding, words)) return finding;
    }
    return {};
  }
  const std::vector<Json>& processes() const { return processes_; }
  std::string findings() const { return Json(findings_).dump(2); }
  bool is_silent() const { return findings_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<Json> processes_;
  std::vector<Json> findings_;
};

/// A program under ptl_run, whose ranks are ready.
class Program {
 public:
  Program(const OwnNode& node, const std::string& role, int ranks) : node_(node), launcher_(with_ranks(ranks), role) {
    EXPECT_EQ(launcher_.wait_until_ready(ranks).size(), static_cast<std::size_t>(ranks)) << launcher_.output();
  }
  ~Program() {
    const Explained last(node_.nid());
    for (const Json& process : last.processes()) kill(process["os_pid"].get<pid_t>(), SIGCONT);
    launcher_.send_signal(SIGTERM);
    launcher_.wait_status();
    sweep();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until its ranks have said something.
  bool eventually_says(const std::string& words) {
    const auto is_said = [&] {
      launcher_.read_for_a_while();
      return contains(launcher_.output(), words);
    };
    return eventually(is_said, 2 * kLongestWait);
  }
  const std::string& output() const { return launcher_.output(); }

  /// Looks until something is found that says the words; the ranks may need a moment to hang, and messages to come.
  Json found(const std::string& kind, int rank, const std::string& words = "") const {
    Json finding;
    std::string others;
    eventually([&] {
      const Explained explained(node_.nid());
      finding = explained.find(kind, rank, words);
      others = explained.findings();
      return !finding.is_null();
    });
    EXPECT_FALSE(finding.is_null()) << kind << " of rank " << rank << " with '" << words << "' is not in " << others;
    return finding;
  }

 private:
  /// Whoever opens an interface removes what the dead have left.
  static void sweep() {
    ChildProcess child([] {
      ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
      if (PtlInit() != PTL_OK) return 1;
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni);
      PtlFini();
      return 0;
    });
    EXPECT_EQ(child.wait_status(), 0);
  }

  const OwnNode& node_;
  Launcher launcher_;
};

TEST(PtlInfoExplain, Tag__that_is_off_by_one_is_named_with_its_bit) {
  const OwnNode node;
  const Program program(node, "tag", 2);
  const Json finding = program.found("header_waits", 1, "the nearest entry differs in bit 0 (0x11 instead of 0x10)");
  EXPECT_EQ(finding.value("got", ""), "0x11") << finding;
  EXPECT_EQ(finding.value("wanted", ""), "0x10") << finding;
  EXPECT_EQ(finding["differing_bits"], Json::array({0})) << finding;
  EXPECT_EQ(finding.value("other_rank", -1), 0) << finding;
  EXPECT_EQ(finding.value("object", ""), "portal table entry 4");
}

TEST(PtlInfoExplain, Lists__are_shown_to_people_and_to_programs) {
  const OwnNode node;
  const Program program(node, "tag", 2);
  program.found("header_waits", 1);
  const Explained explained(node.nid());
  ASSERT_EQ(explained.processes().size(), 2u);
  const Json& target = explained.processes()[1];
  EXPECT_EQ(target["rank"], 1);
  EXPECT_EQ(target["waiting"], true);
  const Json& portal = target["interfaces"][0]["portals"][0];
  EXPECT_EQ(portal["pt_index"], 4);
  ASSERT_EQ(portal["posted"].size(), 2u) << portal;
  EXPECT_EQ(portal["posted"][0]["match_bits"], "0x10");
  EXPECT_EQ(portal["posted"][0]["source_pid"], PlantedRank::kFirstPid);
  EXPECT_EQ(portal["posted"][1]["match_bits"], "0x12345600");
  EXPECT_EQ(portal["overflow"].size(), 1u);
  EXPECT_EQ(portal["unexpected"][0]["match_bits"], "0x11");
  EXPECT_EQ(portal["unexpected"][0]["length"], 8);
  EXPECT_EQ(target["sleeps"][0]["for"][0]["test"], 1) << target;
  const std::string pid = std::to_string(PlantedRank::kFirstPid + 1);
  const std::string text = output_of(std::string(PORTOFU_PTL_INFO) + " --explain " + pid);
  EXPECT_TRUE(contains(text, "portal table entry 4: enabled, 2 posted, 1 overflow, 1 unexpected")) << text;
  EXPECT_TRUE(contains(text, "unexpected: bits 0x11 of PID 700")) << text;
  EXPECT_TRUE(contains(text, "rank 1, PID " + pid)) << text;
  EXPECT_FALSE(contains(text, "rank 0, PID")) << text;
}

TEST(PtlInfoExplain, Portal_table_entry__that_is_wrong_is_named_with_the_right_one) {
  const OwnNode node;
  const Program program(node, "portal", 2);
  const Json finding = program.found("message_refused", 1, "which is not allocated");
  EXPECT_EQ(finding.value("object", ""), "portal table entry 5") << finding;
  EXPECT_EQ(finding.value("other_rank", -1), 0);
  EXPECT_TRUE(says(finding, "an entry that it matches is posted at portal table entry 4")) << finding;
}

TEST(PtlInfoExplain, Ack__that_nobody_asked_for_is_not_waited_for_in_silence) {
  const OwnNode node;
  const Program program(node, "ack", 2);
  const Json finding = program.found("no_answer_due", 0, "was an ACK asked for?");
  EXPECT_EQ(finding.value("count", 0), 1) << finding;
}

TEST(PtlInfoExplain, Threshold__that_is_one_too_high_lacks_one) {
  const OwnNode node;
  const Program program(node, "threshold", 2);
  const Json finding = program.found("counter_lacks", 1, "the next needs 5, it has 4 and lacks 1");
  EXPECT_EQ(finding.value("count", 0), 1) << finding;
}

TEST(PtlInfoExplain, Circle__of_three_is_told_with_all_three) {
  const OwnNode node;
  const Program program(node, "circle", 3);
  const Json finding = program.found("circle", 0);
  EXPECT_EQ(finding.value("object", ""), "rank 0, rank 1, rank 2") << finding;
  EXPECT_EQ(finding.value("count", 0), 3);
  EXPECT_TRUE(says(finding,
                   "rank 0 waits for a message of rank 1, which waits for a message of rank 2, which waits "
                   "for a message of rank 0: a circle of 3"))
      << finding;
}

TEST(PtlInfoExplain, Peer__that_is_stopped_is_named_with_who_waits) {
  const OwnNode node;
  const Program program(node, "stopped", 2);
  EXPECT_TRUE(
      says(program.found("peer_stopped", 1, "it is waited for by rank 0"), "is stopped by a signal or a debugger"));
  program.found("not_answered", 0);
}

TEST(PtlInfoExplain, Mrq__that_nobody_reads_is_full) {
  const OwnNode node;
  setenv("UTOFU_NUM_MRQ_ENTRIES", "2048", 1);  // The least there is.
  const Program program(node, "notices", 2);
  unsetenv("UTOFU_NUM_MRQ_ENTRIES");
  program.found("queue_full", 1, "the MRQ of VCQ");
}

TEST(PtlInfoExplain, Event_queue__that_is_full_is_told) {
  const OwnNode node;
  const Program program(node, "events", 2);
  program.found("queue_full", 1, "2 events wait, and it has room for 2");
}

TEST(PtlInfoExplain, Flow_control__that_nobody_ends_is_told) {
  const OwnNode node;
  const Program program(node, "disabled", 2);
  const Json finding = program.found("entry_disabled", 1, "because a message matched nothing");
  EXPECT_EQ(finding.value("object", ""), "portal table entry 4") << finding;
}

TEST(PtlInfoExplain, Session__lacks_a_put_with_a_step) {
  const OwnNode node;
  const Program program(node, "session", 2);
  const Json finding = program.found("session_lacks", 1, "that wait in session mode: 1; steps that the next lacks: 1");
  EXPECT_EQ(finding.value("count", 0), 1) << finding;
}

TEST(PtlInfoExplain, Gate__lacks_the_packet_of_the_rank_that_did_not_come) {
  const OwnNode node;
  const Program program(node, "gate", 2);
  const Json finding = program.found("gate_lacks", 0, "lacks the packet of barrier gate");
  EXPECT_EQ(finding.value("other_rank", -1), 1) << finding;
}

TEST(PtlInfoExplain, Room__that_a_message_lacks_is_told) {
  const OwnNode node;
  const Program program(node, "room", 2);
  const Json finding =
      program.found("message_refused", 1, "the nearest entry has room for 4 bytes and does not truncate");
  EXPECT_EQ(finding["differing_bits"], Json::array()) << finding;
}

TEST(PtlInfoExplain, Event__that_an_entry_does_not_make_is_told) {
  const OwnNode node;
  const Program program(node, "silent", 2);
  program.found("nothing_counts", 1, "the entry at portal table entry 4 with bits 0x10 makes no event");
}

TEST(PtlInfoExplain, Put__that_left_its_region_is_told_of_its_initiator) {
  const OwnNode node;
  const Program program(node, "region", 2);
  const Json finding = program.found("communication_failed", 0, "lies behind the end of its registered memory");
  EXPECT_EQ(finding.value("other_rank", -1), 1) << finding;
}

TEST(PtlInfoExplain, Descriptor__that_was_delayed_and_forgotten_is_told) {
  const OwnNode node;
  const Program program(node, "delay", 2);
  const Json finding = program.found("start_delayed", 0, "UTOFU_ONESIDED_FLAG_DELAY_START holds back: 1");
  EXPECT_EQ(finding.value("count", 0), 1) << finding;
}

TEST(PtlInfoExplain, Loop__of_looks_at_a_counter_is_told_like_a_wait) {
  const OwnNode node;
  const Program program(node, "looks", 2);
  const Json finding = program.found("no_answer_due", 0, "rank 0 looks again and again at counter 0x");
  EXPECT_TRUE(says(finding, "was an ACK asked for?")) << finding;
}

TEST(PtlInfoExplain, Loop__that_rests_between_its_looks_is_told_what_it_looks_at) {
  const OwnNode node;
  const Program program(node, "rare_looks", 2);
  program.found("no_answer_due", 0, " looks again and again at counter 0x");
}

TEST(PtlInfoExplain, Failure__that_a_loop_does_not_see_is_told) {
  const OwnNode node;
  const Program program(node, "failure", 2);
  const Json finding = program.found("counter_failed", 0);
  EXPECT_EQ(finding.value("count", 0), 1) << finding;
  EXPECT_FALSE(program.found("message_refused", 1).is_null());
}

TEST(PtlInfoExplain, Queue__with_the_event_that_is_looked_for_elsewhere_is_named) {
  const OwnNode node;
  const Program program(node, "other_queue", 2);
  const Json finding = program.found("events_unread", 1, "; the oldest is PTL_EVENT_PUT of rank 0 (bits 0x10)");
  EXPECT_EQ(finding.value("other_rank", -1), 0) << finding;
}

TEST(PtlInfoExplain, Search__that_finds_nothing_is_told_with_what_waits_there) {
  const OwnNode node;
  const Program program(node, "search", 2);
  const Json finding = program.found("header_waits", 1, "the search there differs in bit 1 (0x10 instead of 0x12)");
  EXPECT_EQ(finding["differing_bits"], Json::array({1})) << finding;
}

TEST(PtlInfoExplain, Chain__that_does_not_begin_is_told_with_who_should_begin_it) {
  const OwnNode node;
  const Program program(node, "chain", 3);
  const Json broken = program.found("counter_lacks", 0);
  EXPECT_EQ(broken.value("other_rank", -1), 2) << broken;
  const Json awaited = program.found("counter_lacks", 1);
  EXPECT_EQ(awaited.value("other_rank", -1), 0) << awaited;
}

TEST(PtlInfoExplain, Message__that_nothing_is_posted_for_is_told) {
  const OwnNode node;
  const Program program(node, "untaken", 2);
  const Json finding = program.found("header_waits", 1, "; no entry is posted there");
  EXPECT_EQ(finding.value("other_rank", -1), 0) << finding;
  EXPECT_EQ(finding.value("got", ""), "0x10") << finding;
}

TEST(PtlInfoExplain, Rank__that_computes_is_named_with_who_waits) {
  const OwnNode node;
  const Program program(node, "computes", 2);
  program.found("outside", 1, "is in no call of the library while rank 0 waits; its first thread computes");
}

TEST(PtlInfoExplain, Loop__of_looks_at_queues_of_utofu_is_told) {
  {
    const OwnNode node;
    const Program program(node, "no_notice", 2);
    program.found("event_lacks", 1, "only puts with UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE");
  }
  const OwnNode node;
  const Program program(node, "no_entry", 2);
  program.found("no_answer_due", 0, "did it ask for UTOFU_ONESIDED_FLAG_TCQ_NOTICE?");
}

/// What is said of a program whose messages go astray, or that stands in its own way.
struct Astray {
  const char* role;
  int ranks;
  const char* kind;
  int rank;
  int other;  ///< -1: none.
  const char* words;
};
constexpr Astray kAstray[] = {
    {"interface", 2, "message_refused", 1, 0, "has no non-matching, physical interface open, but a matching, physical"},
    {"other_rank", 3, "counter_lacks", 1, 0, "; one with such bits of it waits unexpected at rank 2"},
    {"nobody", 2, "not_delivered", 0, -1, " was for PID 333, and no process of this job has that PID now"},
    {"lost", 2, "events_lost", 1, -1, "event queues of rank 1 were full and have lost events: 2; a call has said so"},
    {"counters", 1, "nothing_counts", 0, -1, ": a circle of counters"},
    {"uncounted", 2, "nothing_counts", 0, -1, "names it, but with none of PTL_MD_EVENT_CT_SEND, _ACK and _REPLY"},
    {"search_taken", 2, "search_lacks", 1, -1, "an entry is posted there that takes such messages (bits 0x10, ignore"},
    {"lock", 3, "word_held", 2, 1, "the word at offset 8 of portal table entry 4, bits 0x10 of rank 0"},
    {"locks", 2, "circle", 0, -1, "rank 0 waits for a lock of rank 1, which waits for a lock of rank 0: a circle of 2"},
    {"busy_thread", 3, "counter_lacks", 1, 0, "; it counts messages at portal table entry 4 with bits 0x10 of rank 0"},
    {"steps", 2, "session_lacks", 1, -1,
     "of rank 1, which is not in session mode, has got steps: 1, the last of rank 0"},
    {"other_tcq", 2, "notices_unread", 0, -1, "where entries wait: 1"},
    {"gate_astray", 2, "gate_lacks", 1, 0, " of rank 0, which sends its packets to barrier gate 0x"},
    {"gate_order", 2, "circle", 0, -1, "rank 0 waits for a packet of a barrier gate of rank 1, which waits for"},
};

TEST(PtlInfoExplain, What_goes_astray__is_told_with_where_it_is) {
  for (const Astray& astray : kAstray) {
    const OwnNode node;
    const Program program(node, astray.role, astray.ranks);
    const Json finding = program.found(astray.kind, astray.rank, astray.words);
    EXPECT_EQ(finding.value("other_rank", -1), astray.other) << finding;
  }
}

TEST(PtlInfoExplain, Nothing__is_found_where_nothing_goes_astray) {
  for (const Astray& astray : kAstray) {
    const OwnNode node;
    const Program program(node, std::string(astray.role) + " good", astray.ranks);
    const Explained explained(node.nid());
    EXPECT_EQ(explained.processes().size(), static_cast<std::size_t>(astray.ranks)) << explained.text();
    EXPECT_TRUE(explained.is_silent()) << astray.role << ": " << explained.findings();
  }
}

// A program that polls its own memory is in no call, and nobody else is: it is told where more can be seen.
TEST(PtlInfoExplain, Job__that_waits_outside_of_the_library_is_told_so) {
  const OwnNode node;
  const Program program(node, "polled_memory", 2);
  EXPECT_TRUE(Explained(node.nid()).is_silent());
  const std::string text = output_of(std::string(PORTOFU_PTL_INFO) + " --explain");
  EXPECT_TRUE(contains(text, "no process waits in the library")) << text;
  EXPECT_TRUE(contains(text, "in no call of the library: its first thread computes")) << text;
}

TEST(PtlInfoExplain, Wait__that_lasts_says_so_itself) {
  const OwnNode node;
  setenv("PORTOFU_STALL_S", "1", 1);
  Program program(node, "ack", 2);
  unsetenv("PORTOFU_STALL_S");
  EXPECT_TRUE(program.eventually_says("a call of PID 700 has been waiting for 1 s at counter 0x")) << program.output();
  EXPECT_TRUE(contains(program.output(), "was an ACK asked for?")) << program.output();
}

/// A program that says itself why it waits.
class Stalled {
 public:
  explicit Stalled(const std::string& role) {
    setenv("PORTOFU_STALL_S", "1", 1);
    program_.emplace(node_, role, 2);
    unsetenv("PORTOFU_STALL_S");
  }
  bool says(const std::string& words) { return program_->eventually_says(words); }
  const std::string& output() const { return program_->output(); }

 private:
  OwnNode node_;
  std::optional<Program> program_;
};

TEST(PtlInfoExplain, Loop__that_lasts_says_so_itself) {
  struct Case {
    const char* role;
    const char* where;
    const char* why;
  };
  for (const Case& loop :
       {Case{"looks", " s at counter 0x", "was an ACK asked for?"},
        Case{"other_queue", " s at event queue 0x", "; the oldest is PTL_EVENT_PUT"},
        Case{"no_notice", " s at the MRQ of VCQ 0x", "only puts with UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE"},
        Case{"no_entry", " s at the TCQ of VCQ 0x", "did it ask for UTOFU_ONESIDED_FLAG_TCQ_NOTICE?"},
        Case{"gate", " s at barrier gate 0x", "lacks the packet of barrier gate"}}) {
    Stalled program(loop.role);
    EXPECT_TRUE(program.says("a loop of calls of ")) << loop.role << program.output();
    EXPECT_TRUE(program.says(loop.where)) << program.output();
    EXPECT_TRUE(program.says("it goes on waiting")) << program.output();
    EXPECT_TRUE(contains(program.output(), loop.why)) << program.output();
  }
}

TEST(PtlInfoExplain, Waits_of_several_threads__say_so_once_each_with_their_own_cause) {
  Stalled program("several");
  EXPECT_TRUE(program.says(" s at event queue 0x")) << program.output();
  EXPECT_TRUE(program.says("until counter 0x")) << program.output();
  EXPECT_TRUE(program.says("looks again and again at counter 0x")) << program.output();
  EXPECT_TRUE(program.says("a loop of calls of PID 700 has been waiting for ")) << program.output();
  const auto times_of = [&program](const std::string& words) {
    int times = 0;
    for (std::size_t at = 0; (at = program.output().find(words, at)) != std::string::npos; ++at) ++times;
    return times;
  };
  EXPECT_EQ(times_of("a call of PID 700 has been waiting for "), 2) << program.output();
  EXPECT_EQ(times_of("for an event of event queue 0x"), 1) << program.output();
  EXPECT_EQ(times_of("until counter 0x"), 1) << program.output();
  EXPECT_EQ(times_of("looks again and again at counter 0x"), 1) << program.output();
}

TEST(PtlInfoExplain, Loop__that_nobody_owes_anything_says_what_it_waits_for) {
  Stalled program("idle");
  EXPECT_TRUE(program.says("a loop of calls of PID 700 has been waiting for ")) << program.output();
  EXPECT_TRUE(program.says("a loop of calls of PID 701 has been waiting for ")) << program.output();
  EXPECT_TRUE(program.says(" s at event queue 0x")) << program.output();
}

TEST(PtlInfoExplain, Programs__without_an_error_give_no_finding) {
  for (const char* role : {"tag",     "portal", "ack",      "threshold", "circle",    "stopped",    "dead",
                           "notices", "events", "disabled", "session",   "gate",      "room",       "region",
                           "delay",   "silent", "looks",    "several",   "failure",   "rare_looks", "other_queue",
                           "search",  "chain",  "untaken",  "computes",  "no_notice", "no_entry"}) {
    const OwnNode node;
    const int ranks = std::string(role) == "circle" || std::string(role) == "chain" ? 3 : 2;
    const Program program(node, std::string(role) + " good", ranks);
    const Explained explained(node.nid());
    EXPECT_EQ(explained.processes().size(), static_cast<std::size_t>(ranks)) << explained.text();
    for (const Json& process : explained.processes()) EXPECT_EQ(process["seen"], true) << process;
    EXPECT_TRUE(explained.is_silent()) << role << ": " << explained.findings();
  }
}

// What goes on does not hang, though everybody waits for somebody at each look. A rank that a busy machine has not let
// run between two looks is told, and rightly.
TEST(PtlInfoExplain, Traffic__gives_no_finding) {
  for (const char* kind : {"counts waits", "counts looks", "counts sets", "events waits", "events looks", "triggers",
                           "unexpected", "notices", "gates"}) {
    const OwnNode node;
    const Program program(node, std::string("traffic ") + kind, 2);
    int silent = 0;
    std::string told;
    for (int look = 0; look < 20 && silent < 3; ++look) {
      const Explained explained(node.nid());
      EXPECT_EQ(explained.processes().size(), 2u) << explained.text();
      if (explained.is_silent()) ++silent;
      told += explained.findings();
    }
    EXPECT_EQ(silent, 3) << kind << ": " << told;
  }
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  portofu::play_if_asked(portofu::play_planted_or_traffic);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
