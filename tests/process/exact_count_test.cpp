// Words that threads of two processes change at once, through both APIs and by the CPU: every one is exact, however
// many engines take part. And what a thread sends through what it shares with others arrives in the order of its calls.

#include <portofu.h>

#include <atomic>
#include <random>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/tofu_lanes.h"

namespace portofu {
namespace {

constexpr int kUpdaters = 8;  // Of each process: more than there are lanes, so some share one.
constexpr std::size_t kManyWords = std::size_t{1} << 20;
constexpr int kWindows = 1500;  // Of each thread.
constexpr int kWindow = 8;      // Updates that are under way at once.

enum class Updater { kTofu, kPortals, kCpu };

/// What the updates of one thread are: the same numbers for who makes them and for who counts them afterwards.
class Draw {
 public:
  Draw(int rank, int thread) : rank_(rank), random_(static_cast<unsigned>(100 * rank + thread + 1)) {}

  /// Only the owner of the words reaches them by the CPU.
  Updater updater() { return static_cast<Updater>(random_() % (rank_ == 0 ? 3 : 2)); }
  std::size_t word() { return random_() % kManyWords; }

 private:
  int rank_;
  std::mt19937 random_;
};

/// How a thread changes words of rank 0: by a VCQ of its own, and by an interface that all threads share.
class Changer {
 public:
  Changer(const Ni& ni, std::uint64_t* words, const End& end, const Name& owner)
      : ni_(ni), words_(words), end_(end), owner_(owner), replies_(alloc_ct(ni)) {
    ptl_md_t md = md_of(&one_, sizeof one_);
    one_md_ = bind_md(ni, md);
    md = md_of(fetched_.data(), sizeof fetched_, PTL_EQ_NONE, replies_, PTL_MD_EVENT_CT_REPLY);
    fetched_md_ = bind_md(ni, md);
  }
  ~Changer() {
    EXPECT_RC(PtlMDRelease(one_md_), PTL_OK);
    EXPECT_RC(PtlMDRelease(fetched_md_), PTL_OK);
    EXPECT_RC(PtlCTFree(replies_), PTL_OK);
  }
  Changer(const Changer&) = delete;
  Changer& operator=(const Changer&) = delete;

  void change_window(Updater updater, Draw& draw) {
    for (int i = 0; i < kWindow; ++i) start(updater, draw.word(), static_cast<ptl_size_t>(i));
    for (int i = 0; i < kWindow && updater == Updater::kTofu; ++i) {
      utofu_mrq_notice notice{};
      EXPECT_EQ(end_.poll_tcq(), UTOFU_SUCCESS);
      EXPECT_EQ(end_.poll_mrq(&notice), UTOFU_SUCCESS);
    }
    wait_for_count(replies_, expected_replies_);
  }

 private:
  void start(Updater updater, std::size_t word, ptl_size_t place) {
    int rc = UTOFU_ERR_BUSY;
    switch (updater) {
      case Updater::kCpu: std::atomic_ref<std::uint64_t>(words_[word]).fetch_add(1); break;
      case Updater::kPortals:
        EXPECT_RC(PtlFetchAtomic(fetched_md_, 8 * place, one_md_, 0, 8, ni_.id(0), kPt, 0, 8 * word, nullptr, 0,
                                 PTL_SUM, PTL_UINT64_T),
                  PTL_OK);
        ++expected_replies_;
        break;
      case Updater::kTofu:
        eventually([&] {
          rc = utofu_armw8(end_.vcq, owner_.id, UTOFU_ARMW_OP_ADD, 1, owner_.stadd + 8 * word, 0, kTcq | kLocal,
                           nullptr);
          return rc != UTOFU_ERR_BUSY;
        });
        EXPECT_EQ(rc, UTOFU_SUCCESS);
    }
  }

  const Ni& ni_;
  std::uint64_t* words_;
  const End& end_;
  const Name owner_;
  ptl_handle_ct_t replies_;
  ptl_size_t expected_replies_ = 0;
  std::uint64_t one_ = 1;
  std::array<std::uint64_t, kWindow> fetched_{};
  ptl_handle_md_t one_md_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t fetched_md_ = PTL_INVALID_HANDLE;
};

/// How often the threads of both processes have changed each word.
std::vector<std::uint64_t> count_draws() {
  std::vector<std::uint64_t> counts(kManyWords);
  for (int thread = 0; thread < 2 * kUpdaters; ++thread) {
    Draw draw(thread % 2, thread / 2);
    for (int window = 0; window < kWindows; ++window) {
      draw.updater();
      for (int i = 0; i < kWindow; ++i) ++counts[draw.word()];
    }
  }
  return counts;
}

/// @param words  kManyWords of them, of which those of rank 0 are changed
void change_words(Process& self, std::uint64_t* words) {
  const Ni ni(self);
  alloc_pt(ni, PTL_EQ_NONE);
  append(ni, me_of(ni, words, kManyWords * sizeof *words));
  Ends ends;
  for (int i = 0; i < kUpdaters; ++i)
    ends.push_back(std::make_unique<End>(i % kTnis, 0, words, kManyWords * sizeof *words));
  Names<kUpdaters> mine;
  for (std::size_t i = 0; i < kUpdaters; ++i) mine[i] = ends[i]->name;
  const Names<kUpdaters> owner = self.share(mine)[0];
  self.barrier();
  in_threads(kUpdaters, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    Changer changer(ni, words, *ends[at], owner[at]);
    Draw draw(self.rank(), i);
    for (int window = 0; window < kWindows; ++window) changer.change_window(draw.updater(), draw);
  });
  self.barrier();
  if (self.rank() != 0) return;
  const std::vector<std::uint64_t> expected = count_draws();
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), words)) << "some word is not what it was changed to";
}

class ExactCount : public TofuLanes {};

TEST_F(ExactCount, Words_of_ordinary_memory__through_both_apis_and_the_cpu) {
  run_processes(2, [](Process& self) {
    std::vector<std::uint64_t> words(kManyWords);
    change_words(self, words.data());
  });
}

TEST_F(ExactCount, Words_of_mapped_memory__through_both_apis_and_the_cpu) {
  run_processes(2, [](Process& self) {
    auto* words = static_cast<std::uint64_t*>(portofu_alloc(kManyWords * sizeof(std::uint64_t), 256));
    ASSERT_NE(words, nullptr);
    std::fill_n(words, kManyWords, 0);
    change_words(self, words);
  });
}

// ---- Order (3.13, 2.4; uTofu guide 2.2.10)

constexpr std::uint64_t kSenders = 4;
constexpr std::uint64_t kSent = 20'000;  // By each.

/// Says which number of which thread comes next.
class Expected {
 public:
  /// @param number  of its thread, counted as `modulus` does
  bool is_next(std::uint64_t thread, std::uint64_t number, std::uint64_t modulus) {
    return thread < kSenders && number == next_[thread]++ % modulus;
  }

 private:
  std::array<std::uint64_t, kSenders> next_{};
};

TEST_F(ExactCount, Puts_of_threads_that_share_an_interface__keep_the_order_of_each) {
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const conformance::Ends ends(ni, 0, 2 * kSenders * kSent);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    if (self.is_target()) {
      Expected expected;
      for (std::uint64_t i = 0; i < kSenders * kSent; ++i) {
        const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
        ASSERT_TRUE(expected.is_next(event.hdr_data >> 32, event.hdr_data & UINT32_MAX, kSent));
      }
    } else {
      const ptl_handle_md_t md = bind_md(ni, md_of(&word, sizeof word));
      in_threads(kSenders, [&](int thread) {
        for (std::uint64_t i = 0; i < kSent; ++i)
          EXPECT_RC(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, ni.target(), kPt, 0, 0, nullptr,
                           static_cast<ptl_hdr_data_t>(thread) << 32 | i),
                    PTL_OK);
      });
    }
    self.barrier();
  });
}

TEST_F(ExactCount, Puts_of_threads_that_share_a_vcq__keep_the_order_of_each) {
  run_processes(2, [](Process& self) {
    constexpr std::uint64_t kNumbers = 64;  // EDATA has eight bits, of which two say which thread it was.
    const End end(0, UTOFU_VCQ_FLAG_THREAD_SAFE);
    const Name peer = self.share(end.name)[static_cast<std::size_t>(1 - self.rank())];
    if (self.rank() == 0) {
      in_threads(kSenders, [&](int thread) {
        for (std::uint64_t i = 0; i < kSent; ++i)
          EXPECT_EQ(end.put(peer, static_cast<std::uint64_t>(thread) * kNumbers + i % kNumbers, kRemote),
                    UTOFU_SUCCESS);
      });
    } else {
      Expected expected;
      for (std::uint64_t i = 0; i < kSenders * kSent; ++i) {
        utofu_mrq_notice notice{};
        ASSERT_EQ(end.poll_mrq(&notice), UTOFU_SUCCESS);
        ASSERT_TRUE(expected.is_next(notice.edata / kNumbers, notice.edata % kNumbers, kNumbers));
      }
    }
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
