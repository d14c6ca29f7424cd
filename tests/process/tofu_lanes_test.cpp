// Lanes: control queues of one process that run on engines of their own (lib/utofu/own_queues.h). What threads do with
// VCQs on different lanes must be as if they were processes, and what they share, memory and words, must stay exact.

#include "tests/process/tofu_lanes.h"

#include <portofu.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <random>

namespace portofu {
namespace {

// ---- Which CQ is where

TEST_F(TofuLanes, Lanes__are_opened_for_queues_that_want_them) {
  run_processes(1, [](Process&) {
    {
      const End first(0);
      const End second(0);
      EXPECT_EQ(count_segments(), 1u) << "they share a CQ";
      const End third(1);
      EXPECT_EQ(count_segments(), 2u);
      const Ends more = make_ends(kTnis);
      EXPECT_EQ(count_segments(), std::size_t{kLanes}) << "CQs share them";
    }
    const End later(0);
    EXPECT_EQ(count_segments(), std::size_t{kLanes}) << "they stay";
  });
}

TEST_F(TofuLanes, One_lane__is_for_all) {
  setenv("PORTOFU_LANES", "1", 1);
  run_processes(1, [](Process&) {
    const Ends ends = make_ends(kTnis);
    EXPECT_EQ(count_segments(), 1u);
  });
}

/// Nobody would look after a lane whose thread is away.
TEST_F(TofuLanes, Without_progress_threads__there_is_one) {
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);
  run_processes(1, [](Process&) {
    const Ends ends = make_ends(kTnis);
    EXPECT_EQ(count_segments(), 1u);
  });
  unsetenv("PORTOFU_PROGRESS_THREAD");
}

/// Where there is no memory for a lane there are fewer, and everything works.
TEST_F(TofuLanes, Lane_that_cannot_be_opened__is_done_without) {
  run_processes(1, [](Process&) {
    const End first(0);
    constexpr rlim_t kTooLittle = 1 << 20;
    const rlimit limit{kTooLittle, kTooLittle};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    testing::internal::CaptureStderr();
    const Ends more = make_ends(kTnis);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("utofu_create_vcq goes on with 1 lane:"), std::string::npos) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_EQ(count_segments(), 1u);
    EXPECT_EQ(first.put(more.back()->name, 9, kTcq | kRemote), UTOFU_SUCCESS);
    more.back()->expect_put(9);
  });
}

// ---- Messages

TEST_F(TofuLanes, Put__goes_between_all_lanes_of_both_processes) {
  run_processes(2, [](Process& self) {
    const Ends ends = make_ends(kLanes);
    const auto peers = share_names<kLanes>(self, ends);
    for (int from = 0; from < kLanes; ++from) {
      for (int to = 0; to < kLanes; ++to) {
        const auto number = static_cast<std::uint64_t>(10 * from + to);
        const End& sender = *ends[static_cast<std::size_t>(from)];
        const End& receiver = *ends[static_cast<std::size_t>(to)];
        for (const Name& peer : {peers[static_cast<std::size_t>(to)], receiver.name}) {
          EXPECT_EQ(sender.put(peer, number, kTcq | kLocal | kRemote), UTOFU_SUCCESS);
          EXPECT_EQ(sender.poll_tcq(), UTOFU_SUCCESS);
        }
        std::array<int, 256> seen{};
        const auto take = [&](const End& end, int count) {
          utofu_mrq_notice notice{};
          for (int i = 0; i < count; ++i) {
            EXPECT_EQ(end.poll_mrq(&notice), UTOFU_SUCCESS);
            EXPECT_EQ(notice.edata, number);
            ++seen[notice.notice_type];
          }
        };
        take(sender, 2);
        take(receiver, 2);
        EXPECT_EQ(seen[UTOFU_MRQ_TYPE_LCL_PUT], 2);
        EXPECT_EQ(seen[UTOFU_MRQ_TYPE_RMT_PUT], 2) << "from the peer, and from oneself";
        self.barrier();
      }
    }
  });
}

/// Of ordinary memory and of the heap, between lanes of two processes and of one.
void move_long_data(Process& self, bool mapped) {
  constexpr std::size_t kLong = 300'000;
  std::vector<std::vector<std::uint8_t>> ordinary(kLanes, std::vector<std::uint8_t>(kLong));
  std::vector<std::uint8_t*> memory;
  Ends ends;
  for (int i = 0; i < kLanes; ++i) {
    memory.push_back(mapped ? static_cast<std::uint8_t*>(portofu_alloc(kLong, 256))
                            : ordinary[static_cast<std::size_t>(i)].data());
    std::fill_n(memory.back(), kLong, static_cast<std::uint8_t>(10 * self.rank() + i));
    ends.push_back(std::make_unique<End>(i, 0, memory.back(), kLong));
  }
  Names<kLanes> mine;
  for (std::size_t i = 0; i < kLanes; ++i) mine[i] = ends[i]->name;
  const auto all = self.share(mine);
  const auto is_filled = [&](std::size_t at, int value) {
    return std::all_of(memory[at], memory[at] + kLong, [value](std::uint8_t byte) { return byte == value; });
  };
  // From lane 0 to lane 1 of the other process; from there by its lane 2, and on to its own lane 3.
  if (self.rank() == 0) {
    EXPECT_EQ(utofu_put(ends[0]->vcq, all[1][1].id, mine[0].stadd, all[1][1].stadd, kLong, 0, kTcq | kRemote, nullptr),
              UTOFU_SUCCESS);
    EXPECT_EQ(ends[0]->poll_tcq(), UTOFU_SUCCESS);
  } else {
    ends[1]->expect_put(0);
    utofu_mrq_notice notice{};
    EXPECT_EQ(utofu_get(ends[2]->vcq, all[1][1].id, mine[2].stadd, mine[1].stadd, kLong, 0, kLocal, nullptr),
              UTOFU_SUCCESS);
    EXPECT_EQ(ends[2]->poll_mrq(&notice), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_put(ends[2]->vcq, mine[3].id, mine[2].stadd, mine[3].stadd, kLong, 0, kRemote, nullptr),
              UTOFU_SUCCESS);
    ends[3]->expect_put(0);
    for (std::size_t i = 1; i < kLanes; ++i) EXPECT_TRUE(is_filled(i, 0)) << i;
  }
  self.barrier();
}

TEST_F(TofuLanes, Long_data__of_ordinary_memory_goes_between_lanes) {
  run_processes(2, [](Process& self) { move_long_data(self, false); });
}

TEST_F(TofuLanes, Long_data__of_mapped_memory_goes_between_lanes) {
  run_processes(2, [](Process& self) { move_long_data(self, true); });
}

/// A process that looks at one lane only, and then at none, answers at the others, too.
TEST_F(TofuLanes, Lane__that_nobody_looks_at_is_served) {
  run_processes(2, [](Process& self) {
    const Ends ends = make_ends(kLanes);
    const auto peers = share_names<kLanes>(self, ends);
    std::atomic<bool> done{false};
    std::thread other([&] {
      void* data = nullptr;
      while (self.rank() == 1 && !done) utofu_poll_tcq(ends[0]->vcq, 0, &data);
    });
    if (self.rank() == 0) {
      for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 1; i < kLanes; ++i) {
          utofu_mrq_notice notice{};
          EXPECT_EQ(ends[i]->put(peers[i], 0, kRemote), UTOFU_SUCCESS);
          EXPECT_EQ(utofu_get(ends[i]->vcq, peers[i].id, ends[i]->name.stadd, peers[i].stadd, 8, 0, kLocal, nullptr),
                    UTOFU_SUCCESS);
          EXPECT_EQ(ends[i]->poll_mrq(&notice), UTOFU_SUCCESS);
        }
      }
    }
    self.barrier();
    done = true;
    other.join();
  });
}

// ---- The four patterns

TEST_F(TofuLanes, One_thread__uses_queues_of_all_lanes) {
  run_processes(2, [](Process& self) {
    const Ends ends = make_ends(kTnis);
    const auto peers = share_names<kTnis>(self, ends);
    for (int round = 0; round < 500; ++round) {
      for (std::size_t i = 0; i < kTnis; ++i) EXPECT_EQ(ends[i]->put(peers[i], 0, kTcq | kRemote), UTOFU_SUCCESS);
      for (const auto& end : ends) end->expect_put(0);
      for (const auto& end : ends) EXPECT_EQ(end->poll_tcq(), UTOFU_SUCCESS);
    }
    self.barrier();
  });
}

void use_from_workers(Process& self, bool on_one_tni) {
  const Ends ends = make_ends(kLanes, on_one_tni);
  const auto peers = share_names<kLanes>(self, ends);
  in_threads(kLanes, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    exchange(*ends[at], peers[at], self.rank() == 0, 2000);
  });
  self.barrier();
}

TEST_F(TofuLanes, Workers__use_queues_that_the_first_thread_has_made) {
  run_processes(2, [](Process& self) { use_from_workers(self, false); });
}

TEST_F(TofuLanes, Workers__use_components_of_one_queue) {
  run_processes(2, [](Process& self) { use_from_workers(self, true); });
}

TEST_F(TofuLanes, Threads__make_their_own_and_use_them_at_once) {
  run_processes(2, [](Process& self) {
    std::array<std::atomic<End*>, kLanes> made{};
    std::atomic<bool> known{false};
    Names<kLanes> peers;
    std::thread asker([&] {
      Names<kLanes> mine;
      for (std::size_t i = 0; i < kLanes; ++i) {
        eventually([&] { return made[i] != nullptr; });
        mine[i] = made[i].load()->name;
      }
      peers = self.share(mine)[static_cast<std::size_t>(1 - self.rank())];
      known = true;
    });
    in_threads(kLanes, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      // Of the heap, which the first of them publishes, and all lanes at once.
      End end(i, 0, portofu_alloc(End::kBytes, 256));
      made[at] = &end;
      eventually([&] { return known.load(); });
      exchange(end, peers[at], self.rank() == 0, 2000);
    });
    asker.join();
    self.barrier();
  });
}

TEST_F(TofuLanes, Threads__share_one_while_another_has_its_own) {
  run_processes(2, [](Process& self) {
    const End shared(0, UTOFU_VCQ_FLAG_THREAD_SAFE);
    const Ends own = make_ends(2);
    const Name peer = self.share(shared.name)[static_cast<std::size_t>(1 - self.rank())];
    const auto peers = share_names<2>(self, own);
    in_threads(kLanes, [&](int i) {
      if (i == 0) return exchange(*own[1], peers[1], self.rank() == 0, 2000);
      for (int round = 0; round < 2000; ++round) {
        EXPECT_EQ(shared.put(peer, 0, kTcq), UTOFU_SUCCESS);
        EXPECT_EQ(shared.poll_tcq(), UTOFU_SUCCESS);
      }
    });
    self.barrier();
  });
}

// ---- What stays true

/// What one thread puts through one VCQ arrives in order, whatever other lanes do.
TEST_F(TofuLanes, Order__is_that_of_each_queue) {
  run_processes(2, [](Process& self) {
    constexpr std::uint64_t kPuts = 20'000;
    const Ends ends = make_ends(kLanes);
    const auto peers = share_names<kLanes>(self, ends);
    in_threads(kLanes, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      for (std::uint64_t number = 0; number < kPuts; ++number) {
        if (self.rank() == 1) {
          ends[at]->expect_put(number);
        } else {
          EXPECT_EQ(ends[at]->put(peers[at], number % 256, kRemote), UTOFU_SUCCESS);
        }
      }
    });
    self.barrier();
  });
}

constexpr std::size_t kWords = 16;  // Few, so that lanes meet at them.
constexpr int kUpdates = 10'000;

/// All threads of both processes, on lanes of their own, and the CPU add to words of rank 0.
void count_exactly(Process& self, std::uint64_t* words) {
  Ends ends;
  for (int i = 0; i < kLanes; ++i) ends.push_back(std::make_unique<End>(i, 0, words, kWords * sizeof *words));
  Names<kLanes> mine;
  for (std::size_t i = 0; i < kLanes; ++i) mine[i] = ends[i]->name;
  const Names<kLanes> owner = self.share(mine)[0];
  in_threads(kLanes, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    std::minstd_rand random(static_cast<unsigned>(10 * self.rank() + i + 1));
    for (int update = 0; update < kUpdates; ++update) {
      const std::size_t word = random() % kWords;
      int rc = UTOFU_ERR_BUSY;
      eventually([&] {
        rc = utofu_armw8(ends[at]->vcq, owner[at].id, UTOFU_ARMW_OP_ADD, 1, owner[at].stadd + 8 * word, 0,
                         kTcq | kLocal, nullptr);
        return rc != UTOFU_ERR_BUSY;
      });
      EXPECT_EQ(rc, UTOFU_SUCCESS);
      EXPECT_EQ(ends[at]->poll_tcq(), UTOFU_SUCCESS);
      utofu_mrq_notice notice{};
      EXPECT_EQ(ends[at]->poll_mrq(&notice), UTOFU_SUCCESS);
      if (self.rank() == 0) std::atomic_ref<std::uint64_t>(words[word]).fetch_add(1);
    }
  });
  self.barrier();
  if (self.rank() != 0) return;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kWords; ++i) sum += words[i];
  EXPECT_EQ(sum, std::uint64_t{3} * kLanes * kUpdates);
}

TEST_F(TofuLanes, Updates__of_ordinary_memory_are_exact) {
  run_processes(2, [](Process& self) {
    alignas(256) std::array<std::uint64_t, kWords> words{};
    count_exactly(self, words.data());
  });
}

TEST_F(TofuLanes, Updates__of_mapped_memory_are_exact) {
  run_processes(2, [](Process& self) {
    auto* words = static_cast<std::uint64_t*>(portofu_alloc(kWords * sizeof(std::uint64_t), 256));
    std::fill_n(words, kWords, 0);
    count_exactly(self, words);
  });
}

/// A process with lanes dies: what was on its way to any of them is told, each once.
TEST_F(TofuLanes, Death__is_told_once_for_each_operation) {
  run_processes(2, [](Process& self) {
    constexpr int kPuts = 100;
    const Ends ends = make_ends(kLanes);
    const auto peers = share_names<kLanes>(self, ends);
    if (self.rank() == 1) {
      for (const auto& end : ends) end->expect_put(0);
      self.die();
    }
    for (std::size_t i = 0; i < kLanes; ++i) EXPECT_EQ(ends[i]->put(peers[i], 0, kTcq | kRemote), UTOFU_SUCCESS);
    for (const auto& end : ends) EXPECT_EQ(end->poll_tcq(), UTOFU_SUCCESS);
    self.barrier();
    in_threads(kLanes, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      for (int put = 0; put < kPuts; ++put)
        EXPECT_EQ(ends[at]->put(peers[at], 0, kTcq | kLocal | kRemote), UTOFU_SUCCESS);
      utofu_mrq_notice notice{};
      for (int put = 0; put < kPuts; ++put) {
        EXPECT_EQ(ends[at]->poll_tcq(), UTOFU_SUCCESS);
        EXPECT_EQ(ends[at]->poll_mrq(&notice), UTOFU_ERR_MRQ_PEER);
      }
      EXPECT_EQ(utofu_poll_mrq(ends[at]->vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
    });
  });
}

TEST_F(TofuLanes, Queues__come_and_go_while_others_are_used) {
  run_processes(2, [](Process& self) {
    const Ends ends = make_ends(2);
    const auto peers = share_names<2>(self, ends);
    in_threads(3, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      if (i < 2) return exchange(*ends[at], peers[at], self.rank() == 0, 10'000);
      for (int round = 0; round < 500; ++round) {
        const End passing(2 + self.rank());
        const End second(4 + self.rank());
        EXPECT_EQ(passing.put(second.name, 7, kTcq | kRemote), UTOFU_SUCCESS);
        EXPECT_EQ(passing.poll_tcq(), UTOFU_SUCCESS);
        second.expect_put(7);
      }
    });
    self.barrier();
  });
}

/// 3.7.9.1: "The next one-sided communication start function call for the same VCQ without the flag [...] starts the
/// pending communication", also if what went before it had to wait for its owner, and opens the way into mapped memory.
TEST_F(TofuLanes, Put_that_is_held_back__is_started_behind_one_that_waits_for_its_owner) {
  setenv("PORTOFU_LANES", "1", 1);
  run_processes(2, [](Process& self) {
    auto* const memory = static_cast<char*>(portofu_alloc(End::kBytes, 256));
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 0, End::kBytes);
    const End known(0, 0, memory);
    const End unknown(1, 0, memory);
    const Name first = self.share(known.name)[static_cast<std::size_t>(1 - self.rank())];
    const Name second = self.share(unknown.name)[static_cast<std::size_t>(1 - self.rank())];
    if (self.rank() == 0) {
      EXPECT_EQ(known.put(first, 0, kTcq), UTOFU_SUCCESS);
      EXPECT_EQ(known.poll_tcq(), UTOFU_SUCCESS);
      rlimit limit{};
      EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
      const rlimit none{.rlim_cur = 3, .rlim_max = limit.rlim_max};
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
      const auto put = [&](std::uint64_t number, unsigned long flags) {
        EXPECT_EQ(utofu_put_piggyback8(known.vcq, second.id, number, second.stadd + 8 * number, 8, 0, flags, nullptr),
                  UTOFU_SUCCESS);
      };
      put(1, 0);
      put(2, kTcq | UTOFU_ONESIDED_FLAG_DELAY_START);
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
      // Until the first one has left.
      utofu_mrq_notice notice{};
      for (int look = 0; look < 20000; ++look) EXPECT_EQ(utofu_poll_mrq(known.vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
      put(3, kTcq);
      EXPECT_EQ(known.poll_tcq(), UTOFU_SUCCESS);
      EXPECT_EQ(known.poll_tcq(), UTOFU_SUCCESS);
    }
    self.barrier();
    if (self.rank() == 1) {
      const auto word = [memory](std::size_t i) {
        return std::atomic_ref(reinterpret_cast<std::uint64_t*>(memory)[i]).load();
      };
      for (std::size_t i = 1; i <= 3; ++i) EXPECT_TRUE(eventually([&] { return word(i) == i; })) << i;
    }
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
