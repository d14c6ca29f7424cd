// Operations to oneself are served as those to a peer are: the caller starts one and calls no more, and it is done all
// the same (Portals 4.3, 2.1). Nobody rings for what a process sends to itself, so each way is tried: while the library
// is busy, after it has gone to sleep, by a counter, by a long message, and while another thread waits for it.

#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

/// Waiting for a timer takes 100 ms and more, each time. A machine that is busy may take long now and then.
constexpr std::chrono::milliseconds kSoon{50};

/// Long enough for the progress thread to sleep.
void rest() { usleep(150'000); }

/// Things that are started, and then only looked for in memory. At the end the fastest of them must have come soon.
class Fastest {
 public:
  explicit Fastest(const char* what) : what_(what) {}
  ~Fastest() { EXPECT_LT(fastest_, kSoon) << what_; }
  Fastest(const Fastest&) = delete;
  Fastest& operator=(const Fastest&) = delete;

  void add(const std::function<void()>& start, const std::function<bool()>& is_done) {
    start();
    const auto begin = std::chrono::steady_clock::now();
    const auto end = begin + std::chrono::seconds(10);
    while (!is_done() && std::chrono::steady_clock::now() < end) {
    }
    fastest_ = std::min(fastest_, std::chrono::steady_clock::now() - begin);
    EXPECT_TRUE(is_done()) << what_;
  }

 private:
  const char* what_;
  std::chrono::steady_clock::duration fastest_ = std::chrono::hours(1);
};

std::uint64_t word_of(const volatile std::uint64_t& word) { return word; }

/// An entry over one word, and a descriptor over what is put there; nobody is told of anything.
struct Quiet {
  explicit Quiet(const Ni& ni) {
    alloc_pt(ni, PTL_EQ_NONE);
    append(ni, me_of(ni, &target, sizeof target));
    md = bind_md(ni, md_of(&source, sizeof source, PTL_EQ_NONE));
  }
  void put_next(const Ni& ni) {
    ++source;
    put(md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ});
  }
  bool is_there() const { return word_of(target) == source; }

  std::uint64_t source = 0;
  std::uint64_t target = 0;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
};

TEST(ToSelf, Put__is_done_though_the_caller_calls_no_more) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    Quiet quiet(ni);
    Fastest busy("while the library is busy");
    for (int i = 0; i < 100; ++i) busy.add([&] { quiet.put_next(ni); }, [&] { return quiet.is_there(); });
    Fastest asleep("while the library sleeps");
    for (int i = 0; i < 5; ++i) {
      rest();
      asleep.add([&] { quiet.put_next(ni); }, [&] { return quiet.is_there(); });
    }
  });
}

TEST(ToSelf, Triggered_put__is_done_when_the_counter_gets_there) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    Quiet quiet(ni);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    Fastest triggered("a triggered put");
    for (ptl_size_t i = 1; i <= 5; ++i) {
      ++quiet.source;
      REQUIRE_OK(PtlTriggeredPut(quiet.md, 0, 8, PTL_NO_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0, ct, i));
      rest();
      triggered.add([ct] { REQUIRE_OK(PtlCTInc(ct, {1, 0})); }, [&] { return quiet.is_there(); });
    }
  });
}

// A ring of operations, each fired by the one before.
TEST(ToSelf, Chain_of_triggered_operations__runs_to_its_end) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    alloc_pt(ni, PTL_EQ_NONE);
    std::uint64_t sum = 0;
    std::uint64_t one = 1;
    ptl_me_t me = me_of(ni, &sum, sizeof sum, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
    const ptl_handle_md_t md = bind_md(ni, md_of(&one, sizeof one, PTL_EQ_NONE));
    constexpr ptl_size_t kLinks = 500;
    Fastest chain("a chain");
    for (ptl_size_t round = 0; round < 3; ++round) {
      const ptl_size_t from = round * (kLinks + 1);
      for (ptl_size_t i = 1; i <= kLinks; ++i) {
        REQUIRE_OK(PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0, PTL_SUM,
                                      PTL_UINT64_T, ct, from + i));
      }
      rest();
      const std::uint64_t end = (round + 1) * kLinks;
      chain.add([ct] { REQUIRE_OK(PtlCTInc(ct, {1, 0})); }, [&] { return word_of(sum) == end; });
      wait_for_count(ct, from + kLinks + 1);
    }
  });
}

TEST(ToSelf, Long_put__is_done_though_the_caller_calls_no_more) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    std::vector<unsigned char> from = pattern(1 << 20, 5);
    std::vector<unsigned char> to(from.size());
    alloc_pt(ni, PTL_EQ_NONE);
    append(ni, me_of(ni, to.data(), to.size()));
    const ptl_handle_md_t md = bind_md(ni, md_of(from.data(), from.size(), PTL_EQ_NONE));
    const volatile unsigned char& last = to.back();
    Fastest long_put("1 MiB");
    for (unsigned char i = 1; i <= 3; ++i) {
      from.back() = i;
      rest();
      long_put.add([&] { put(md, ni.target(), {.length = from.size(), .ack = PTL_NO_ACK_REQ}); },
                   [&] { return last == i; });
    }
  });
}

TEST(ToSelf, Put__wakes_a_thread_that_waits_for_it) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    append(ni, me_of(ni, nullptr, 0));
    const ptl_handle_md_t quiet = bind_md(ni, md_of(ends.data.data(), 8, PTL_EQ_NONE));
    Fastest waiting("a thread that waits");
    for (int i = 0; i < 5; ++i) {
      std::atomic<int> state{0};
      std::thread waiter([&] {
        state = 1;
        ptl_event_t event{};
        EXPECT_EQ(PtlEQWait(ends.target_eq, &event), PTL_OK);
        state = 2;
      });
      while (state != 1) std::this_thread::yield();
      rest();
      waiting.add([&] { put(quiet, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ}); },
                  [&] { return state.load() == 2; });
      waiter.join();
    }
  });
}

TEST(ToSelf, Tofu_put_and_armw__are_done_though_the_caller_calls_no_more) {
  setenv("PORTOFU_JOB_KEY", std::to_string(getpid()).c_str(), 1);  // CQs belong to the jobs of a machine.
  run_processes(1, [](Process&) {
    utofu_vcq_hdl_t vcq = 0;
    utofu_vcq_id_t id = 0;
    utofu_stadd_t stadd = 0;
    std::uint64_t words[2] = {0, 0};
    ASSERT_EQ(utofu_create_vcq(0, 0, &vcq), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_query_vcq_id(vcq, &id), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_reg_mem(vcq, words, sizeof words, 0, &stadd), UTOFU_SUCCESS);
    const auto put = [&] { EXPECT_EQ(utofu_put(vcq, id, stadd, stadd + 8, 8, 0, 0, nullptr), UTOFU_SUCCESS); };
    const auto add = [&] {
      EXPECT_EQ(utofu_armw8(vcq, id, UTOFU_ARMW_OP_ADD, 100, stadd, 0, 0, nullptr), UTOFU_SUCCESS);
    };
    Fastest puts("a put");
    Fastest armws("an ARMW");
    for (std::uint64_t i = 1; i <= 5; ++i) {
      rest();
      words[0] = i;
      puts.add(put, [&] { return word_of(words[1]) == i; });
      rest();
      armws.add(add, [&] { return word_of(words[0]) == i + 100; });
    }
  });
  unsetenv("PORTOFU_JOB_KEY");
}

}  // namespace
}  // namespace portofu
