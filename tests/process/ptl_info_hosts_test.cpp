// ptl_info --explain --hosts, at a job on two hosts: what is wrong between them is found. The hosts are loopback
// addresses, each with a /dev/shm of its own, so that nobody sees the processes of the other.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/process/command_output.h"
#include "tests/process/launcher.h"
#include "tests/process/planted_errors.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

using Json = nlohmann::json;

/// Whether a command may have a /dev/shm of its own here.
bool may_mount() { return std::system("unshare --mount mount -t tmpfs none /dev/shm 2>/dev/null") == 0; }

/// An agent that starts the first command on a host with a new /dev/shm, and later ones where the first is.
class SeparateHosts {
 public:
  SeparateHosts() {
    std::ofstream(agent())
        << "#!/bin/sh\nfirst=" << agent() << ".$1\nshift\n"
        << "if kill -0 $(cat $first 2>/dev/null) 2>/dev/null; then\n"
        << "  exec nsenter --mount=/proc/$(cat $first)/ns/mnt sh -c \"$*\"\nfi\n"
        << "exec unshare --mount sh -c \"mount -t tmpfs none /dev/shm && echo \\$\\$ >$first && $*\"\n";
    chmod(agent().c_str(), 0700);
  }
  ~SeparateHosts() {
    for (const std::string& name : {agent(), agent() + '.' + test_address(1), agent() + '.' + test_address(2)})
      unlink(name.c_str());
  }
  SeparateHosts(const SeparateHosts&) = delete;
  SeparateHosts& operator=(const SeparateHosts&) = delete;

  static std::string agent() { return "/tmp/ptl-info-test-agent-" + std::to_string(getpid()); }
  static std::string list() { return test_address(1) + "," + test_address(2); }
  /// This very program, with ranks on both.
  Words with_ranks(int count) const {
    return {PORTOFU_PTL_RUN, "--hosts", list(),     "-n",          std::to_string(count),
            "--agent",       agent(),   "--export", kRoleVariable, own_program()};
  }
};

/// A job that hangs, with an error that was planted.
class Hanging {
 public:
  Hanging(const std::string& role, int ranks) : launcher_(hosts_.with_ranks(ranks), role) {
    EXPECT_EQ(launcher_.wait_until_ready(ranks).size(), static_cast<std::size_t>(ranks)) << launcher_.output();
  }
  ~Hanging() {
    launcher_.send_signal(SIGTERM);
    launcher_.wait_status();
  }
  Hanging(const Hanging&) = delete;
  Hanging& operator=(const Hanging&) = delete;

  /// Looks until something is found; the ranks may need a moment to hang.
  /// @param command  prints the explanation as JSON
  static Json found(const std::string& command, const std::string& kind, int rank) {
    Json found;
    std::string text;
    eventually([&] {
      const Json all = Json::parse(text = output_of(command), nullptr, false);
      if (!all.is_object()) return false;
      for (const Json& job : all["jobs"]) {
        for (const Json& finding : job["findings"]) {
          if (finding["kind"] == kind && finding.value("rank", -1) == rank) found = finding;
        }
      }
      return !found.is_null();
    });
    EXPECT_FALSE(found.is_null()) << kind << " of rank " << rank << " is not in " << text;
    return found;
  }
  static std::string explain(const std::string& hosts) {
    return std::string(PORTOFU_PTL_INFO) + " --explain --json --agent " + SeparateHosts::agent() + " --hosts " + hosts;
  }

 private:
  SeparateHosts hosts_;
  Launcher launcher_;
};

class PtlInfoHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_mount()) GTEST_SKIP() << "a command may not have a /dev/shm of its own here";
  }
};

TEST_F(PtlInfoHosts, Circle__of_three_on_two_hosts_is_told_with_all_three) {
  const Hanging job("circle", 3);
  const Json finding = Hanging::found(Hanging::explain(SeparateHosts::list()), "circle", 0);
  EXPECT_EQ(finding.value("object", ""), "rank 0, rank 1, rank 2") << finding;
}

TEST_F(PtlInfoHosts, Tag__that_is_off_by_one_is_named_with_the_rank_on_the_other_host) {
  const Hanging job("tag", 2);
  const Json finding = Hanging::found(Hanging::explain(SeparateHosts::list()), "header_waits", 1);
  EXPECT_EQ(finding.value("other_rank", -1), 0) << finding;
  EXPECT_EQ(finding["differing_bits"], Json::array({0})) << finding;
}

/// Here, where no process of another build starts and removes the dead.
TEST_F(PtlInfoHosts, Peer__that_is_dead_is_named_with_who_waits_while_its_segment_is_kept) {
  setenv("PORTOFU_KEEP_DEAD", "1", 1);
  const Hanging job("dead", 2);
  unsetenv("PORTOFU_KEEP_DEAD");
  const Json finding = Hanging::found(Hanging::explain(SeparateHosts::list()), "peer_dead", 1);
  EXPECT_TRUE(contains(finding.value("sentence", ""), "is dead; it is waited for by rank 0")) << finding;
  const std::string there = SeparateHosts::agent() + ' ' + test_address(2) + " '" + PORTOFU_PTL_INFO;
  const std::string counted = output_of(there + " --pid " + std::to_string(PlantedRank::kFirstPid + 1) + "'");
  EXPECT_TRUE(contains(counted, "DEAD, was process")) << counted;
  EXPECT_TRUE(contains(counted, "packets_received")) << counted;
  EXPECT_EQ(output_of(there + " --remove-dead'"), "1 segments were removed\n");
}

/// On a host of the job, without a list: the hosts file of a process there has it.
TEST_F(PtlInfoHosts, Hosts__are_found_by_the_hosts_file_of_the_job) {
  const Hanging job("circle", 2);
  const std::string inside = SeparateHosts::agent() + ' ' + test_address(2) + " '" + Hanging::explain("") + "'";
  const Json finding = Hanging::found(inside, "circle", 0);
  EXPECT_EQ(finding.value("count", 0), 2) << finding;
}

TEST(PtlInfoHostsOptions, Host__that_does_not_answer_is_named) {
  int status = 0;
  const std::string said =
      output_of(std::string(PORTOFU_PTL_INFO) + " --explain --hosts nowhere --agent false 2>&1", &status);
  EXPECT_EQ(status, 1);
  EXPECT_TRUE(contains(said, "host nowhere has not said what it sees")) << said;
  output_of(std::string(PORTOFU_PTL_INFO) + " --explain --hosts a,,b 2>&1", &status);
  EXPECT_EQ(status, 2);
  output_of(std::string(PORTOFU_PTL_INFO) + " --hosts a 2>&1", &status);
  EXPECT_EQ(status, 2) << "only --explain looks there";
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  portofu::play_if_asked(portofu::play_planted);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
