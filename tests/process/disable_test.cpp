// 3.7.3, 3.7.4: threads that disable and enable a portal table entry while a message is under way there. The engine of
// this process is told that there is one, because no real message stands still for so long.

#include <portals4.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <thread>

#include "engine/run/process_engine.h"
#include "tests/conformance/harness/fixture.h"
#include "tests/process/resources.h"

namespace portofu {
namespace {

using namespace conformance;

/// A message that has matched at entry kPt of the interface, and is complete when this ends.
class MessageUnderWay {
 public:
  MessageUnderWay() {
    OpenError error = OpenError::kNone;
    std::string why;
    engine_ = hold_process_engine(0, &error, &why);
    change(1);
  }
  ~MessageUnderWay() {
    if (engine_ == nullptr) return;
    change(-1);
    release_process_engine();
  }
  MessageUnderWay(const MessageUnderWay&) = delete;
  MessageUnderWay& operator=(const MessageUnderWay&) = delete;

  /// It has gone with its interface.
  void forget() {
    engine_ = nullptr;
    release_process_engine();
  }

  /// Calls that wait for it.
  std::uint32_t waiting() {
    const Engine::Duty duty(*engine_);
    return portal(duty).drains;
  }

 private:
  static PortalTableEntry& portal(const Engine::Duty& duty) { return *duty.core().interface(0)->portal(kPt); }

  void change(int difference) {
    const Engine::Duty duty(*engine_);
    portal(duty).in_progress += static_cast<std::uint32_t>(difference);
    ++duty.core().activity;
  }

  Engine* engine_ = nullptr;
};

// An interface that is neither matching nor logical has index 0.
constexpr unsigned int kPlain = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;

ptl_ni_fail_t put_to_self(const Ni& ni, const Ends& ends) {
  put(ends.md, ni.target(), {.length = 8});
  return next_event(ends.source_eq).ni_fail_type;
}

TEST(Disable, Entry__is_not_enabled_before_all_who_disable_it_have_ended) {
  run_processes(1, [](Process& self) {
    const Ni ni(self, kPlain);
    const Ends ends(ni);
    append(ni, le_of(nullptr, 0));
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    {
      MessageUnderWay message;
      for (std::uint32_t i = 1; i <= 2; ++i) {
        threads.emplace_back([&] {
          EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK);
          ++ended;
        });
        while (message.waiting() != i) sched_yield();
      }
      std::atomic<pid_t> enabler{0};
      threads.emplace_back([&] {
        enabler = gettid();
        EXPECT_RC(PtlPTEnable(ni, kPt), PTL_OK);
        ++ended;
      });
      while (enabler == 0) sched_yield();
      wait_for_sleep(enabler);
      for (int i = 0; i < 100; ++i) EXPECT_EQ(put_to_self(ni, ends), PTL_NI_PT_DISABLED);
      EXPECT_EQ(ended, 0);
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(put_to_self(ni, ends), PTL_NI_OK);
  });
}

// The last message has ended, so nothing keeps the program from freeing the entry before the other thread wakes.
TEST(Disable, Entry__may_be_freed_and_allocated_again_before_who_disables_it_wakes) {
  run_processes(1, [](Process& self) {
    const Ni ni(self, kPlain);
    const ptl_handle_eq_t eq = alloc_eq(ni);
    for (int round = 0; round < 40; ++round) {
      alloc_pt(ni, eq);
      std::thread disabler;
      {
        MessageUnderWay message;
        disabler = std::thread([&] { EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK); });
        while (message.waiting() == 0) sched_yield();
      }
      EXPECT_RC(PtlPTFree(ni, kPt), PTL_OK);
      alloc_pt(ni, eq);
      EXPECT_RC(PtlPTEnable(ni, kPt), PTL_OK) << "nobody disables this one";
      disabler.join();
      EXPECT_RC(PtlPTFree(ni, kPt), PTL_OK);
    }
  });
}

TEST(Disable, Entry__of_an_interface_that_is_closed_keeps_nobody_waiting) {
  run_processes(1, [](Process& self) {
    const Ni ni(self, kPlain);
    alloc_pt(ni, PTL_EQ_NONE);
    MessageUnderWay message;
    std::thread disabler([&] { EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK); });
    while (message.waiting() == 0) sched_yield();
    std::thread enabler([&] { EXPECT_RC(PtlPTEnable(ni, kPt), PTL_ARG_INVALID); });
    REQUIRE_OK(PtlNIFini(ni));
    disabler.join();
    enabler.join();
    message.forget();
  });
}

// 3.13.6, 3.14.3: after PtlAbort a queue or counter is freed when the waits "related to" it have ended. PtlPTDisable is
// none, and goes on. Each free that waited for it would take seconds.
TEST(Disable, Entry__that_is_waited_for_keeps_nobody_from_freeing_after_an_abort) {
  run_processes(1, [](Process& self) {
    constexpr int kPairs = 10;
    const Ni ni(self, kPlain);
    alloc_pt(ni, PTL_EQ_NONE);
    std::atomic<bool> ended{false};
    std::thread disabler;
    {
      MessageUnderWay message;
      disabler = std::thread([&] {
        EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK);
        ended = true;
      });
      while (message.waiting() == 0) sched_yield();
      PtlAbort();
      const FairStopwatch watch;
      for (int i = 0; i < kPairs; ++i) {
        EXPECT_RC(PtlEQFree(alloc_eq(ni)), PTL_OK);
        EXPECT_RC(PtlCTFree(alloc_ct(ni)), PTL_OK);
      }
      EXPECT_LT(watch.seconds(), kPairs);
      EXPECT_FALSE(ended);
    }
    disabler.join();
  });
}

}  // namespace
}  // namespace portofu
