// Runs the body of one test in forked processes, so that every test starts with a fresh libportals and the gtest
// process itself never calls it. The processes meet at barriers, exchange small values, and report their failures to
// the gtest process, which kills them all when the test takes too long. Nothing here knows Portals.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/eventually.h"

namespace conformance {

/// A test that has not ended by itself after this time is killed and fails, with the stacks of who hangs.
inline constexpr int kTestSeconds = portofu::kLongestTestS;

/// Thrown to leave the body early, by a failed ASSERT_* and by stop(). Failures have been reported before.
struct Stopped {};

/// One process of a test, given to the body. In the body EXPECT_* and ASSERT_* of gtest work as usual, except that a
/// failed ASSERT_* leaves the whole body, not only the current function. ASSERT_* must not be used in further threads.
class Process {
 public:
  Process(int rank, int size, int socket) : rank_(rank), size_(size), socket_(socket) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Rank 0 is the target; all others are initiators. A single process is both.
  bool is_target() const { return rank_ == 0; }
  bool is_initiator() const { return size_ == 1 || rank_ > 0; }

  /// Runs one step of the test at the target (or at every initiator) while the others wait, then all meet.
  void target(const std::function<void()>& step);
  void initiator(const std::function<void()>& step);

  /// Runs one step in every process, then all meet.
  void everywhere(const std::function<void()>& step);

  /// Waits until every process that is alive has called it.
  void barrier() { meet("", 0); }

  /// Like barrier(); gives everyone the value of each rank. A process that has left counts as all zero.
  template <class Value>
  std::vector<Value> share(const Value& mine) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const std::string all = meet(&mine, sizeof mine);
    std::vector<Value> values(static_cast<std::size_t>(size_));
    std::memcpy(values.data(), all.data(), all.size());
    return values;
  }

  /// Ends this process as kill -9 does, without clean-up. The test goes on without it; the next barrier of the others
  /// opens when it is dead.
  [[noreturn]] void die();

  /// Tells that somebody will kill this process.
  void announce_death();

  /// Ends the whole test as skipped. Every process must come to the same decision.
  [[noreturn]] void skip(const std::string& reason);

 private:
  std::string meet(const void* value, std::size_t bytes);

  int rank_;
  int size_;
  int socket_;  // To the gtest process; seqpacket, one packet per message.
};

using Body = std::function<void(Process&)>;

struct Failure {
  std::string file;
  int line;
  std::string text;
};

struct Outcome {
  std::vector<Failure> failures;
  std::string skip_reason;  // Empty: not skipped.
};

/// Every process can be on a node of its own. PORTOFU_TEST_NODES=127.9.0: rank R has the NID 127.9.0.(R + 1), which is
/// an address of every Linux machine. 127.9.0,datagram or 127.9.0,datagram,loss=10: the same over unreliable datagrams,
/// as they are or with PORTOFU_DATAGRAM_FAULTS. PORTOFU_TEST_NETNS=one,two: rank R lives in the network namespace whose
/// turn it is. The processes of a test are there already.
/// @return false if this process cannot be there
bool enter_node(int rank);

/// Forks `count` processes, runs the body in each, and gives what they report, also how they died.
Outcome collect_outcome(int count, const Body& body, int limit_s = kTestSeconds);

/// The same, and turns the outcome into results of the current gtest test.
void run_processes(int count, const Body& body);

}  // namespace conformance
