// Barrier gates on lanes: those of a TNI are on one engine of the process, with its queue if there is one
// (lib/utofu/own_queues.h). Threads with barriers on different TNIs have nothing in common, and a circuit may go
// through gates of several lanes, of one process and of many.

#include <cmath>
#include <optional>

#include "tests/process/tofu_lanes.h"

namespace portofu {
namespace {

class TofuGates : public TofuLanes {};

/// The part of a process in a butterfly of all, a power of two, as in 5.2.1 of the guide.
class Butterfly {
 public:
  Butterfly(Process& self, int tni) : ids_(stages_of(self.size())) {
    EXPECT_EQ(utofu_alloc_vbg(static_cast<utofu_tni_id_t>(tni), ids_.size(), 0, ids_.data()), UTOFU_SUCCESS);
    std::array<utofu_vbg_id_t, 4> mine{};
    std::ranges::copy(ids_, mine.begin());
    const auto all = self.share(mine);
    const std::size_t count = ids_.size();
    std::vector<utofu_vbg_setting> settings(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t before = (i + count - 1) % count, after = (i + 1) % count;
      const auto partner = [&](std::size_t stage) { return all[static_cast<std::size_t>(self.rank() ^ (1 << stage))]; };
      settings[i].vbg_id = ids_[i];
      settings[i].src_lcl_vbg_id = ids_[before];
      settings[i].src_rmt_vbg_id = partner(before)[before];
      settings[i].dst_lcl_vbg_id = ids_[after];
      settings[i].dst_rmt_vbg_id = partner(i)[after];
      settings[i].dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
    }
    EXPECT_EQ(utofu_set_vbg(settings.data(), count), UTOFU_SUCCESS);
    self.barrier();
  }
  ~Butterfly() { EXPECT_EQ(utofu_free_vbg(ids_.data(), ids_.size()), UTOFU_SUCCESS); }
  Butterfly(const Butterfly&) = delete;
  Butterfly& operator=(const Butterfly&) = delete;

  utofu_vbg_id_t start() const { return ids_.front(); }

 private:
  static std::size_t stages_of(int processes) {
    std::size_t stages = 0;
    while (1 << stages < processes) ++stages;
    return stages;
  }

  std::vector<utofu_vbg_id_t> ids_;
};

/// What `poll` says in the end.
template <class Poll>
int end_of(Poll&& poll) {
  int rc = UTOFU_ERR_NOT_COMPLETED;
  constexpr std::chrono::seconds kPatience{40};  // Over a fabric a death is told late where cores are short.
  eventually([&] { return (rc = poll()) != UTOFU_ERR_NOT_COMPLETED; }, kPatience);
  return rc;
}
int end_of_barrier(utofu_vbg_id_t start) {
  return end_of([start] { return utofu_poll_barrier(start, 0); });
}

// ---- Which gates are where

TEST_F(TofuGates, Gates__of_each_TNI_are_on_a_lane) {
  run_processes(1, [](Process&) {
    std::array<utofu_vbg_id_t, 2> first{}, more{}, second{};
    EXPECT_EQ(utofu_alloc_vbg(0, 2, 0, first.data()), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_alloc_vbg(0, 2, 0, more.data()), UTOFU_SUCCESS);
    EXPECT_EQ(count_segments(), 1u) << "they are of one TNI";
    EXPECT_EQ(utofu_alloc_vbg(1, 2, 0, second.data()), UTOFU_SUCCESS);
    EXPECT_EQ(count_segments(), 2u);
    {
      const End beside(0), also(1);
      EXPECT_EQ(count_segments(), 2u) << "queues join the gates of their TNIs";
      const End alone(2);
      EXPECT_EQ(count_segments(), 3u);
      utofu_vbg_id_t third = 0;
      EXPECT_EQ(utofu_alloc_vbg(2, 1, 0, &third), UTOFU_SUCCESS);
      EXPECT_EQ(count_segments(), 3u) << "gates join the queue of their TNI";
      EXPECT_EQ(utofu_free_vbg(&third, 1), UTOFU_SUCCESS);
    }
    for (auto* set : {&first, &more, &second}) EXPECT_EQ(utofu_free_vbg(set->data(), 2), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_barrier(first[0], 0), UTOFU_ERR_INVALID_VBG_ID);
    EXPECT_EQ(utofu_barrier(second[0], 0), UTOFU_ERR_INVALID_VBG_ID);
  });
}

TEST_F(TofuGates, One_lane__is_for_all_gates) {
  setenv("PORTOFU_LANES", "1", 1);
  run_processes(2, [](Process& self) {
    const Butterfly first(self, 0), second(self, 1);
    EXPECT_EQ(count_segments(), 1u);
    for (const utofu_vbg_id_t start : {first.start(), second.start()}) {
      EXPECT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
      EXPECT_EQ(end_of_barrier(start), UTOFU_SUCCESS);
    }
    self.barrier();
  });
}

// ---- Threads

/// Barriers and reductions of all kinds, each with the result that it must have.
void reduce_exactly(const Process& self, utofu_vbg_id_t start, int thread, int rounds) {
  const auto size = static_cast<std::uint64_t>(self.size());
  const auto rank = static_cast<std::uint64_t>(self.rank());
  for (int round = 0; round < rounds; ++round) {
    EXPECT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
    EXPECT_EQ(end_of_barrier(start), UTOFU_SUCCESS);
    const auto about = static_cast<std::uint64_t>(1000 * thread + round);
    std::array<std::uint64_t, 6> data{};
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = about + i + rank;
    EXPECT_EQ(utofu_reduce_uint64(start, UTOFU_REDUCE_OP_SUM, data.data(), data.size(), 0), UTOFU_SUCCESS);
    std::array<std::uint64_t, 6> sums{};
    EXPECT_EQ(end_of([&] { return utofu_poll_reduce_uint64(start, 0, sums.data()); }), UTOFU_SUCCESS);
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], size * (about + i) + size * (size - 1) / 2);
    double number = self.rank() == 0 ? 1e300 : self.rank() == 1 ? -1e300 : 1.0;
    EXPECT_EQ(utofu_reduce_double(start, UTOFU_REDUCE_OP_BFPSUM, &number, 1, 0), UTOFU_SUCCESS);
    double sum = -1;
    EXPECT_EQ(end_of([&] { return utofu_poll_reduce_double(start, 0, &sum); }), UTOFU_SUCCESS);
    EXPECT_EQ(sum, self.size() - 2.0);
  }
}

TEST_F(TofuGates, Threads__reduce_on_TNIs_of_their_own_at_once) {
  run_processes(4, [](Process& self) {
    constexpr int kThreads = 2;
    const Butterfly first(self, 0), second(self, 1);
    EXPECT_EQ(count_segments(), 2u);
    in_threads(kThreads, [&](int i) { reduce_exactly(self, (i == 0 ? first : second).start(), i, 150); });
    self.barrier();
  });
}

TEST_F(TofuGates, Threads__reduce_and_put_on_the_same_lanes) {
  run_processes(2, [](Process& self) {
    const Ends ends = make_ends(2);
    const auto peers = share_names<2>(self, ends);
    const Butterfly first(self, 0), second(self, 1);
    EXPECT_EQ(count_segments(), 2u);
    in_threads(4, [&](int i) {
      const auto at = static_cast<std::size_t>(i % 2);
      if (i < 2) return exchange(*ends[at], peers[at], self.rank() == 0, 500);
      reduce_exactly(self, (at == 0 ? first : second).start(), i, 100);
    });
    self.barrier();
  });
}

TEST_F(TofuGates, Gates__come_and_go_while_others_are_used) {
  run_processes(2, [](Process& self) {
    const Butterfly circuit(self, 0);
    in_threads(2, [&](int i) {
      if (i == 0) return reduce_exactly(self, circuit.start(), 0, 200);
      for (int round = 0; round < 300; ++round) {
        std::array<utofu_vbg_id_t, 2> ids{};
        // Gates are the node's, so each process has TNIs of its own.
        const auto tni = static_cast<utofu_tni_id_t>(1 + self.rank() + round % 2 * 2);
        EXPECT_EQ(utofu_alloc_vbg(tni, 2, 0, ids.data()), UTOFU_SUCCESS);
        EXPECT_EQ(utofu_free_vbg(ids.data(), 2), UTOFU_SUCCESS);
      }
    });
    self.barrier();
  });
}

// ---- Circuits over lanes

utofu_vbg_setting setting_of(utofu_vbg_id_t gate) {
  utofu_vbg_setting setting{};
  setting.vbg_id = gate;
  setting.src_lcl_vbg_id = setting.src_rmt_vbg_id = UTOFU_VBG_ID_NULL;
  setting.dst_lcl_vbg_id = setting.dst_rmt_vbg_id = UTOFU_VBG_ID_NULL;
  setting.dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
  return setting;
}

/// A ring: each process starts at TNI 0, and takes the packet of the one before it by a relay of TNI 1, which only
/// passes packets on. So packets go between two lanes of each process.
class Ring {
 public:
  explicit Ring(Process& self) {
    EXPECT_EQ(utofu_alloc_vbg(0, 1, 0, &start_), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_alloc_vbg(1, 2, 0, relays_.data()), UTOFU_SUCCESS);
    EXPECT_EQ(count_segments(), 2u);
    const auto all = self.share(std::array{start_, relays_[1]});
    const auto size = all.size(), rank = static_cast<std::size_t>(self.rank());
    utofu_vbg_setting start = setting_of(start_);
    start.src_rmt_vbg_id = relays_[1];
    start.dst_rmt_vbg_id = all[(rank + 1) % size][1];
    EXPECT_EQ(utofu_set_vbg(&start, 1), UTOFU_SUCCESS);
    std::array relays{setting_of(relays_[0]), setting_of(relays_[1])};
    relays[1].src_rmt_vbg_id = all[(rank + size - 1) % size][0];
    relays[1].dst_rmt_vbg_id = start_;
    EXPECT_EQ(utofu_set_vbg(relays.data(), relays.size()), UTOFU_SUCCESS);
    self.barrier();
  }
  ~Ring() {
    EXPECT_EQ(utofu_free_vbg(&start_, 1), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_free_vbg(relays_.data(), 2), UTOFU_SUCCESS);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  utofu_vbg_id_t start() const { return start_; }

 private:
  utofu_vbg_id_t start_ = 0;
  std::array<utofu_vbg_id_t, 2> relays_{};
};

TEST_F(TofuGates, Circuit__goes_through_lanes_of_each_process) {
  run_processes(3, [](Process& self) {
    const Ring ring(self);
    for (std::uint64_t round = 0; round < 200; ++round) {
      std::uint64_t value = 10 * round + static_cast<std::uint64_t>(self.rank());
      EXPECT_EQ(utofu_reduce_uint64(ring.start(), UTOFU_REDUCE_OP_SUM, &value, 1, 0), UTOFU_SUCCESS);
      EXPECT_EQ(end_of([&] { return utofu_poll_reduce_uint64(ring.start(), 0, &value); }), UTOFU_SUCCESS);
      EXPECT_EQ(value, 10 * round + static_cast<std::uint64_t>((self.rank() + 2) % 3)) << "of the one before";
    }
    self.barrier();
  });
}

// ---- Death

/// Each of two threads is in the middle of its barriers when the other process dies: both are told, now and later.
TEST_F(TofuGates, Death__ends_barriers_of_all_lanes) {
  run_processes(2, [](Process& self) {
    const Butterfly first(self, 0), second(self, 1);
    in_threads(2, [&](int i) {
      const utofu_vbg_id_t start = (i == 0 ? first : second).start();
      int rc = UTOFU_SUCCESS;
      for (int round = 0; rc == UTOFU_SUCCESS; ++round) {
        if (self.rank() == 1 && round == 50) self.die();
        EXPECT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
        rc = end_of_barrier(start);
      }
      EXPECT_EQ(rc, UTOFU_ERR_BARRIER_OTHER);
      EXPECT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
      EXPECT_EQ(end_of_barrier(start), UTOFU_ERR_BARRIER_OTHER);
    });
    self.barrier();
  });
}

/// Survivors learn of a death at different times, one by its neighbour, and none may run ahead of the others.
TEST_F(TofuGates, Death__ends_a_hundred_rounds_of_all_survivors) {
  run_processes(4, [](Process& self) {
    const Butterfly all(self, 0);
    bool failed = false;
    for (int round = 0; round < 100; ++round) {
      if (self.rank() == 3 && round == 20) self.die();
      EXPECT_EQ(utofu_barrier(all.start(), 0), UTOFU_SUCCESS);
      const int rc = end_of_barrier(all.start());
      failed = failed || rc == UTOFU_ERR_BARRIER_OTHER;
      ASSERT_EQ(rc, failed ? UTOFU_ERR_BARRIER_OTHER : UTOFU_SUCCESS) << "in round " << round;
    }
    EXPECT_TRUE(failed);
    self.barrier();
  });
}

TEST_F(TofuGates, Gates_that_are_freed__end_the_barriers_of_those_who_wait) {
  run_processes(4, [](Process& self) {
    std::optional<Butterfly> all(std::in_place, self, 0);
    EXPECT_EQ(utofu_barrier(all->start(), 0), UTOFU_SUCCESS);
    EXPECT_EQ(end_of_barrier(all->start()), UTOFU_SUCCESS);
    if (self.rank() == 3) {
      self.barrier();
      all.reset();
    } else {
      EXPECT_EQ(utofu_barrier(all->start(), 0), UTOFU_SUCCESS);
      self.barrier();
      EXPECT_EQ(end_of_barrier(all->start()), UTOFU_ERR_BARRIER_OTHER);
    }
    self.barrier();
  });
}

/// The relay that has lost its source, and the gate where barriers of the process start, are on different lanes.
void lose_source(Process& self, bool while_it_runs) {
  const Ring ring(self);
  // All have heard of each other.
  EXPECT_EQ(utofu_barrier(ring.start(), 0), UTOFU_SUCCESS);
  EXPECT_EQ(end_of_barrier(ring.start()), UTOFU_SUCCESS);
  self.barrier();
  if (self.rank() == 1) {
    if (while_it_runs) self.barrier();
    self.die();
  }
  int begun = while_it_runs ? utofu_barrier(ring.start(), 0) : UTOFU_SUCCESS;
  self.barrier();
  for (int round = 0; round < 3; ++round) {
    if (round > 0 || !while_it_runs) begun = utofu_barrier(ring.start(), 0);
    EXPECT_EQ(begun, UTOFU_SUCCESS);
    // Who comes behind the dead one is told; the packet of the other one comes, or cannot be taken to the dead.
    const int rc = end_of_barrier(ring.start());
    EXPECT_TRUE(rc == UTOFU_ERR_BARRIER_OTHER || (rc == UTOFU_SUCCESS && self.rank() == 0)) << rc << " in " << round;
  }
  self.barrier();
}

TEST_F(TofuGates, Death__of_who_sends_to_a_relay_of_another_lane_ends_a_barrier) {
  run_processes(3, [](Process& self) { lose_source(self, true); });
}

TEST_F(TofuGates, Death__of_who_sends_to_a_relay_of_another_lane_ends_barriers_that_come_later) {
  run_processes(3, [](Process& self) { lose_source(self, false); });
}

}  // namespace
}  // namespace portofu
