// The engine that the C libraries share. The tests of one process follow each other: each gives back what it took.

#include "engine/run/process_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/process/child_process.h"
#include "tests/unit/run/real_engine.h"

namespace portofu {
namespace {

class ProcessEngineTest : public testing::Test {
 protected:
  void SetUp() override { setenv("PORTOFU_FABRIC", "0", 1); }

  Engine* hold(std::uint32_t pid = 0) { return hold_process_engine(pid, &error, &why); }

  OpenError error = OpenError::kNone;
  std::string why;
};

/// Whether nobody of this node has the PID.
bool is_free(std::uint32_t pid) { return RealEngine::open(RealEngine::settings(false), pid) != nullptr; }

TEST_F(ProcessEngineTest, References__share_one_engine_until_the_last_is_given_back) {
  Engine* const first = hold();
  ASSERT_NE(first, nullptr) << why;
  const std::uint32_t pid = first->self().pid;
  EXPECT_EQ(hold(), first);
  EXPECT_EQ(hold(pid), first) << "by its own PID";
  EXPECT_EQ(error, OpenError::kNone);
  release_process_engine();
  release_process_engine();
  EXPECT_FALSE(is_free(pid)) << "one is left";
  release_process_engine();
  EXPECT_TRUE(is_free(pid));
  release_process_engine();  // One too many is nothing.
  EXPECT_NE(hold(), nullptr);
  release_process_engine();
}

TEST_F(ProcessEngineTest, Another_PID__than_that_of_the_open_engine_is_in_use) {
  Engine* const first = hold();
  ASSERT_NE(first, nullptr) << why;
  const std::uint32_t pid = first->self().pid;
  EXPECT_EQ(hold(pid + 1), nullptr);
  EXPECT_EQ(error, OpenError::kPidInUse);
  EXPECT_FALSE(why.empty());
  release_process_engine();
  EXPECT_TRUE(is_free(pid)) << "what failed has taken no reference";
}

TEST_F(ProcessEngineTest, PID_of_somebody_else__is_in_use) {
  const RealEngine other(RealEngine::settings(false));
  EXPECT_EQ(hold(other->self().pid), nullptr);
  EXPECT_EQ(error, OpenError::kPidInUse);
  ASSERT_NE(hold(), nullptr) << "any other will do";
  release_process_engine();
}

TEST_F(ProcessEngineTest, Further_engines__are_processes_of_the_node_and_end_with_the_first) {
  Engine* const first = hold();
  ASSERT_NE(first, nullptr) << why;
  Engine* const second = open_further_engine(1, &why);
  ASSERT_NE(second, nullptr) << why;
  Engine* const last = open_further_engine(kMostEngines - 1, &why);
  ASSERT_NE(last, nullptr) << why;
  EXPECT_EQ(open_further_engine(1, &why), second) << "it is open";
  EXPECT_TRUE(second->has_progress_thread());
  const std::uint32_t pids[] = {first->self().pid, second->self().pid, last->self().pid};
  EXPECT_TRUE(pids[0] != pids[1] && pids[0] != pids[2] && pids[1] != pids[2]);
  EXPECT_FALSE(is_free(pids[1]));
  release_process_engine();
  for (const std::uint32_t pid : pids) EXPECT_TRUE(is_free(pid)) << pid;
}

TEST_F(ProcessEngineTest, Further_engine__without_a_thread_of_its_own_is_none) {
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);
  ASSERT_NE(hold(), nullptr) << why;
  EXPECT_EQ(open_further_engine(1, &why), nullptr);
  EXPECT_NE(why.find("thread"), std::string::npos) << why;
  release_process_engine();
  unsetenv("PORTOFU_PROGRESS_THREAD");
}

// Its threads may be inside, where the memory must stay.
TEST_F(ProcessEngineTest, Release__while_another_thread_lives_keeps_the_memory_and_gives_the_PID_back) {
  Engine* const engine = hold();
  ASSERT_NE(engine, nullptr) << why;
  const std::uint32_t pid = engine->self().pid;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) std::this_thread::yield();
  });
  release_process_engine();
  EXPECT_TRUE(is_free(pid));
  EXPECT_EQ(engine->self().pid, pid);
  EXPECT_EQ(engine->step(), 0);
  ends = true;
  other.join();
  Engine* const next = hold();
  ASSERT_NE(next, nullptr) << why;
  EXPECT_NE(next, engine);
  release_process_engine();
}

TEST_F(ProcessEngineTest, Release__by_a_caller_that_waits_keeps_the_memory) {
  Engine* const engine = hold();
  ASSERT_NE(engine, nullptr) << why;
  const std::uint32_t pid = engine->self().pid;
  release_process_engine(true);
  EXPECT_TRUE(is_free(pid));
  EXPECT_EQ(engine->self().pid, pid);
}

TEST_F(ProcessEngineTest, Abort__ends_when_it_is_forgotten) {
  Engine* const engine = hold();
  ASSERT_NE(engine, nullptr) << why;
  engine->abort();
  EXPECT_TRUE(engine->is_aborted());
  forget_process_abort();
  EXPECT_FALSE(engine->is_aborted());
  release_process_engine();
  forget_process_abort();  // Nothing, without one.
}

TEST_F(ProcessEngineTest, Child__has_none_and_leaves_its_parents_alone) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer lets the child of a process with threads make none";
#endif
  Engine* const engine = hold();
  ASSERT_NE(engine, nullptr) << why;
  const std::uint32_t pid = engine->self().pid;
  {
    ChildProcess child([&] {
      Engine* const own = hold();
      if (own == nullptr || own->self().pid == pid) return 1;
      const std::uint32_t own_pid = own->self().pid;
      release_process_engine();
      return is_free(own_pid) ? 0 : 2;
    });
    EXPECT_EQ(child.wait_status(), 0);
  }
  EXPECT_EQ(hold(), engine);
  release_process_engine();
  release_process_engine();
}

TEST_F(ProcessEngineTest, End_of_the_process__closes_it_where_nobody_is_inside) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in each process, which might be inside";
#endif
  ASSERT_NE(hold(), nullptr) << why;
  const std::uint32_t pid = hold()->self().pid;
  EXPECT_TRUE(end_process_engine()) << "the caller may forget it, though somebody else has a reference";
  EXPECT_FALSE(is_free(pid)) << "which is still open";
  EXPECT_TRUE(end_process_engine());
  EXPECT_TRUE(is_free(pid));
  EXPECT_FALSE(end_process_engine()) << "there is none";
}

TEST_F(ProcessEngineTest, End_of_the_process__leaves_it_to_a_call_that_waits) {
  ChildProcess child([&] {
    Engine* const engine = hold();
    if (engine == nullptr) return 1;
    const std::uint32_t pid = engine->self().pid;
    if (end_process_engine(true)) return 2;
    if (!is_free(pid)) return 3;
    return engine->self().pid == pid && engine->step() >= 0 ? 0 : 4;
  });
  EXPECT_EQ(child.wait_status(), 0);
}

TEST_F(ProcessEngineTest, Reasons__are_told_once_and_a_taken_PID_not_at_all) {
  testing::internal::CaptureStderr();
  tell_why_not_open("PtlNIInit", OpenError::kPidInUse, "another has it");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  tell_why_not_open("PtlNIInit", OpenError::kSystem, "there is no room");
  tell_why_not_open("utofu_create_vcq", OpenError::kSystem, "there is no room");
  tell_why_not_open("PtlNIInit", OpenError::kSystem, "there is no memory");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("PtlNIInit fails: there is no room"), std::string::npos) << said;
  EXPECT_NE(said.find("PtlNIInit fails: there is no memory"), std::string::npos) << said;
  EXPECT_EQ(said.find("utofu_create_vcq"), std::string::npos) << said;
}

}  // namespace
}  // namespace portofu
