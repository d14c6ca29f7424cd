// Guide 2.3.1, 2.3.2, 3.4.2: barrier circuits that are no butterflies: rings, trees, masked signals and packets, relay
// gates on several TNIs, several circuits at once.
#include <algorithm>
#include <array>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

constexpr utofu_vbg_id_t kNone = UTOFU_VBG_ID_NULL;

/// A set of gates on one TNI in every process, and the settings of our own.
class Gates {
 public:
  static constexpr std::size_t kMost = 6;

  Gates(Process& self, utofu_tni_id_t tni, std::size_t count) {
    EXPECT_EQ(utofu_alloc_vbg(tni, count, 0, mine_.data()), UTOFU_SUCCESS);
    all_ = self.share(mine_);
  }

  utofu_vbg_id_t own(std::size_t gate) const { return mine_[gate]; }
  utofu_vbg_id_t of(int rank, std::size_t gate) const { return all_[static_cast<std::size_t>(rank)][gate]; }

  using Settings = std::vector<utofu_vbg_setting>;

  utofu_vbg_setting setting(std::size_t gate, utofu_vbg_id_t src_lcl, utofu_vbg_id_t src_rmt, utofu_vbg_id_t dst_lcl,
                            utofu_vbg_id_t dst_rmt) const {
    return {mine_[gate], src_lcl, src_rmt, dst_lcl, dst_rmt, {UTOFU_PATH_COORD_NULL, 0, 0}};
  }
  void set(std::size_t gate, utofu_vbg_id_t src_lcl, utofu_vbg_id_t src_rmt, utofu_vbg_id_t dst_lcl,
           utofu_vbg_id_t dst_rmt) {
    settings_.push_back(setting(gate, src_lcl, src_rmt, dst_lcl, dst_rmt));
  }
  void configure() { EXPECT_EQ(utofu_set_vbg(settings_.data(), settings_.size()), UTOFU_SUCCESS); }

 private:
  std::array<utofu_vbg_id_t, kMost> mine_{};
  std::vector<std::array<utofu_vbg_id_t, kMost>> all_;
  Settings settings_;
};

/// Once around to collect (gate 1), once more to tell (gate 2).
utofu_vbg_id_t make_ring(Process& self, utofu_tni_id_t tni) {
  Gates gates(self, tni, 3);
  const int rank = self.rank(), last = self.size() - 1;
  const utofu_vbg_id_t start = gates.own(0), collect = gates.own(1), tell = gates.own(2);
  if (rank == 0) {
    gates.set(0, tell, kNone, kNone, gates.of(1, 1));
    gates.set(2, kNone, gates.of(last, 1), start, gates.of(1, 2));
  } else if (rank < last) {
    gates.set(0, tell, kNone, collect, kNone);
    gates.set(1, start, gates.of(rank - 1, rank == 1 ? 0 : 1), kNone, gates.of(rank + 1, 1));
    gates.set(2, kNone, gates.of(rank - 1, 2), start, rank + 1 < last ? gates.of(rank + 1, 2) : kNone);
  } else {
    gates.set(0, collect, kNone, collect, kNone);
    gates.set(1, start, gates.of(rank - 1, 1), start, gates.of(0, 2));
  }
  gates.configure();
  return start;
}

/// A binary tree. Collects on one TNI (gates 1 and 2 take from the children), tells on another (gates 1 and 2 send to
/// the children, one more sends back to the first TNI); between the TNIs of a process goes a packet. The start/end gate
/// of the other TNI takes no part.
utofu_vbg_id_t make_tree(Process& self, utofu_tni_id_t up_tni, utofu_tni_id_t down_tni) {
  Gates up(self, up_tni, 3), down(self, down_tni, 4);
  const int rank = self.rank(), parent = (rank - 1) / 2;
  const auto children_of = [&](int of) { return std::min(2, std::max(0, self.size() - 1 - 2 * of)); };
  const auto children = static_cast<std::size_t>(children_of(rank));
  const utofu_vbg_id_t start = up.own(0);
  const std::size_t slot = rank % 2 == 1 ? 1 : 2;  // Which child we are.
  // The last gate of a process that collects sends on: to its parent's gate for it, the root's to its own other TNI.
  const auto last_up = [&](int of) { return up.of(of, static_cast<std::size_t>(children_of(of))); };
  const utofu_vbg_id_t out = rank == 0 ? down.own(1) : up.of(parent, slot);
  const utofu_vbg_id_t from_parent = rank == 0 ? last_up(0) : down.of(parent, slot);
  // A leaf is its start/end gate alone: it sends to its parent, and its parent's gate sends to it.
  up.set(0, kNone, children > 0 ? down.own(children + 1) : from_parent, children > 0 ? up.own(1) : kNone,
         children > 0 ? kNone : out);
  for (std::size_t i = 1; i <= children; ++i) {
    const bool is_last = i == children;
    up.set(i, up.own(i - 1), last_up(2 * rank + static_cast<int>(i)), is_last ? kNone : up.own(i + 1),
           is_last ? out : kNone);
  }
  up.configure();
  down.set(0, kNone, kNone, kNone, kNone);
  for (std::size_t i = 1; i <= children; ++i) {
    const int child = 2 * rank + static_cast<int>(i);
    const utofu_vbg_id_t to = children_of(child) > 0 ? down.of(child, 1) : up.of(child, 0);
    down.set(i, i == 1 ? kNone : down.own(i - 1), i == 1 ? from_parent : kNone, down.own(i + 1), to);
  }
  if (children > 0) down.set(children + 1, down.own(children), kNone, kNone, start);
  down.configure();
  return start;
}

/// Rounds of barriers with one process that is late, and of every reduction.
void expect_circuit_works(Process& self, utofu_vbg_id_t start) {
  for (int late = 0; late < self.size(); ++late) {
    if (self.rank() != late) {
      ASSERT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
    }
    self.barrier();
    if (self.rank() != late) {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(utofu_poll_barrier(start, 0), UTOFU_ERR_NOT_COMPLETED);
    }
    self.barrier();
    if (self.rank() == late) {
      ASSERT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
    }
    EXPECT_EQ(wait_barrier(start), UTOFU_SUCCESS);
  }
  const auto rank = static_cast<std::uint64_t>(self.rank()), size = static_cast<std::uint64_t>(self.size());
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::uint64_t data[6] = {rank, 1, round, rank * round, 1ull << rank, ~0ull}, result[6] = {};
    ASSERT_EQ(utofu_reduce_uint64(start, UTOFU_REDUCE_OP_SUM, data, 6, 0), UTOFU_SUCCESS);
    ASSERT_EQ(wait_reduce(start, result), UTOFU_SUCCESS);
    const std::uint64_t ranks = size * (size - 1) / 2;
    const std::uint64_t expected[6] = {ranks, size, size * round, ranks * round, (1ull << size) - 1, -size};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(result[i], expected[i]) << "item " << i << " of round " << round;
    std::uint64_t pair[2] = {rank == round % size ? 9u : 7u, rank}, found[2] = {};
    ASSERT_EQ(utofu_reduce_uint64(start, UTOFU_REDUCE_OP_MAXLOC, pair, 2, 0), UTOFU_SUCCESS);
    ASSERT_EQ(wait_reduce(start, found), UTOFU_SUCCESS);
    EXPECT_EQ(found[0], 9u);
    EXPECT_EQ(found[1], round % size);
  }
}

/// One process starts something else.
void expect_mismatch_noticed(Process& self, utofu_vbg_id_t start) {
  for (int other = 0; other < self.size(); ++other) {
    std::uint64_t data[2] = {1, 2};
    const bool differs = self.rank() == other;
    const auto op = differs && other % 2 == 0 ? UTOFU_REDUCE_OP_BOR : UTOFU_REDUCE_OP_SUM;
    ASSERT_EQ(utofu_reduce_uint64(start, op, data, differs && other % 2 == 1 ? 1 : 2, 0), UTOFU_SUCCESS);
    EXPECT_EQ(wait_reduce(start, data), UTOFU_ERR_BARRIER_MISMATCH) << "process " << other << " is different";
    EXPECT_EQ(data[0], 1u);
  }
  ASSERT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
  EXPECT_EQ(wait_barrier(start), UTOFU_SUCCESS);
}

}  // namespace

UTOFU_TEST(5, Circuit, Section2_3_2__a_ring_with_masked_signals_and_packets) {
  own_job();
  const utofu_vbg_id_t start = make_ring(self, static_cast<utofu_tni_id_t>(self.rank()));
  self.barrier();
  expect_circuit_works(self, start);
  expect_mismatch_noticed(self, start);
  self.barrier();
}

UTOFU_TEST(7, Circuit, Section2_3_2__a_tree_on_two_tnis_of_each_process) {
  own_job();
  const utofu_vbg_id_t start = make_tree(self, 1, 4);
  self.barrier();
  expect_circuit_works(self, start);
  expect_mismatch_noticed(self, start);
  self.barrier();
}

// Figure 2.17: who is beyond a power of two hands its value in first and is told last.
UTOFU_TEST(3, Circuit, Section2_3_2__a_butterfly_of_three) {
  own_job();
  Gates gates(self, 0, 4);
  const utofu_vbg_id_t start = gates.own(0);
  if (self.rank() == 2) {
    gates.set(0, kNone, gates.of(0, 3), kNone, gates.of(0, 1));
  } else if (self.rank() == 0) {
    gates.set(0, gates.own(3), kNone, gates.own(1), kNone);
    gates.set(1, start, gates.of(2, 0), gates.own(2), gates.of(1, 2));
    gates.set(2, gates.own(1), gates.of(1, 0), gates.own(3), kNone);
    gates.set(3, gates.own(2), kNone, start, gates.of(2, 0));
  } else {
    gates.set(0, gates.own(2), kNone, gates.own(2), gates.of(0, 2));
    gates.set(2, start, gates.of(0, 1), start, kNone);
  }
  gates.configure();
  self.barrier();
  expect_circuit_works(self, start);
  expect_mismatch_noticed(self, start);
  self.barrier();
}

// A start/end gate and relays of one process: signals on a TNI, packets between TNIs.
UTOFU_TEST(1, Circuit, Section2_3_1__gates_of_one_process_on_several_tnis) {
  own_job();
  Gates first(self, 0, 3), second(self, 5, 2), third(self, 2, 2);
  first.set(0, first.own(2), kNone, first.own(1), kNone);
  first.set(1, first.own(0), kNone, kNone, second.own(1));
  first.set(2, kNone, third.own(1), first.own(0), kNone);
  second.set(0, kNone, kNone, kNone, kNone);
  second.set(1, kNone, first.own(1), kNone, third.own(1));
  third.set(0, kNone, kNone, kNone, kNone);
  third.set(1, kNone, second.own(1), kNone, first.own(2));
  first.configure();
  second.configure();
  third.configure();
  expect_circuit_works(self, first.own(0));
}

UTOFU_TEST(4, Circuit, Section2_3_3__several_circuits_run_at_once) {
  own_job();
  const utofu_vbg_id_t ring = make_ring(self, 0), tree = make_tree(self, 0, 1), other_ring = make_ring(self, 0);
  self.barrier();
  const auto rank = static_cast<std::uint64_t>(self.rank());
  for (std::uint64_t round = 0; round < 100; ++round) {
    std::uint64_t sum = rank + round, most = rank * round, bits = 1ull << rank;
    const auto start_sum = [&] {
      ASSERT_EQ(utofu_reduce_uint64(ring, UTOFU_REDUCE_OP_SUM, &sum, 1, 0), UTOFU_SUCCESS);
    };
    // Not everybody starts them in the same order.
    if (rank % 2 == 0) start_sum();
    ASSERT_EQ(utofu_reduce_uint64(tree, UTOFU_REDUCE_OP_MAX, &most, 1, 0), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_reduce_uint64(other_ring, UTOFU_REDUCE_OP_BOR, &bits, 1, 0), UTOFU_SUCCESS);
    if (rank % 2 == 1) start_sum();
    ASSERT_EQ(wait_reduce(other_ring, &bits), UTOFU_SUCCESS);
    ASSERT_EQ(wait_reduce(tree, &most), UTOFU_SUCCESS);
    ASSERT_EQ(wait_reduce(ring, &sum), UTOFU_SUCCESS);
    EXPECT_EQ(sum, 6 + 4 * round);
    EXPECT_EQ(most, 3 * round);
    EXPECT_EQ(bits, 15u);
  }
  self.barrier();
}

UTOFU_TEST(12, Circuit, Section2_3_2__a_ring_of_many_processes) {
  own_job();
  const utofu_vbg_id_t start = make_ring(self, static_cast<utofu_tni_id_t>(self.rank() % 6));
  self.barrier();
  std::uint64_t value = 1;
  ASSERT_EQ(utofu_reduce_uint64(start, UTOFU_REDUCE_OP_SUM, &value, 1, 0), UTOFU_SUCCESS);
  ASSERT_EQ(wait_reduce(start, &value), UTOFU_SUCCESS);
  EXPECT_EQ(value, 12u);
  self.barrier();
}

UTOFU_TEST(4, Circuit, Section3_4_2_1__the_last_configuration_takes_effect) {
  own_job();
  Gates gates(self, 3, 3);
  const utofu_vbg_id_t start = gates.own(0);
  // A pair with the neighbour; then all four by way of the relay gates; then the pair again.
  const int pair = self.rank() ^ 1, across = self.rank() ^ 2;
  for (int turn = 0; turn < 6; ++turn) {
    Gates::Settings wanted;
    if (turn % 2 == 0) {
      wanted = {gates.setting(0, gates.own(1), kNone, gates.own(1), gates.of(pair, 1)),
                gates.setting(1, start, gates.of(pair, 0), start, kNone)};
    } else {
      wanted = {gates.setting(0, gates.own(2), kNone, gates.own(1), gates.of(pair, 1)),
                gates.setting(1, start, gates.of(pair, 0), gates.own(2), gates.of(across, 2)),
                gates.setting(2, gates.own(1), gates.of(across, 1), start, kNone)};
    }
    ASSERT_EQ(utofu_set_vbg(wanted.data(), wanted.size()), UTOFU_SUCCESS);
    self.barrier();
    for (std::uint64_t round = 0; round < 5; ++round) {
      std::uint64_t value = 1ull << self.rank() | round << 8;
      ASSERT_EQ(utofu_reduce_uint64(start, UTOFU_REDUCE_OP_BOR, &value, 1, 0), UTOFU_SUCCESS);
      ASSERT_EQ(wait_reduce(start, &value), UTOFU_SUCCESS);
      EXPECT_EQ(value, (turn % 2 == 1 ? 15u : self.rank() < 2 ? 3u : 12u) | round << 8) << "turn " << turn;
    }
    self.barrier();
  }
}

// 3.8.2, UTOFU_ERR_BARRIER_OTHER: everybody in a circuit is told of a death, also who has nothing to do with the dead.
void expect_death_is_told(Process& self, utofu_vbg_id_t start, int victim) {
  self.barrier();
  ASSERT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
  ASSERT_EQ(wait_barrier(start), UTOFU_SUCCESS);
  self.barrier();
  // Some wait already when it happens.
  if (self.rank() % 2 == 0 && self.rank() != victim) {
    ASSERT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
  }
  self.barrier();
  if (self.rank() == victim) self.die();
  self.barrier();
  if (self.rank() % 2 == 1) {
    ASSERT_EQ(utofu_barrier(start, 0), UTOFU_SUCCESS);
  }
  EXPECT_EQ(wait_barrier(start), UTOFU_ERR_BARRIER_OTHER);
  self.barrier();
}

UTOFU_TEST(6, Circuit, Section3_8_2__death_is_told_round_a_ring) {
  own_job();
  expect_death_is_told(self, make_ring(self, 1), 2);
}

UTOFU_TEST(6, Circuit, Section3_8_2__death_of_the_first_is_told_round_a_ring) {
  own_job();
  expect_death_is_told(self, make_ring(self, 1), 0);
}

UTOFU_TEST(7, Circuit, Section3_8_2__death_of_a_leaf_is_told_through_a_tree) {
  own_job();
  expect_death_is_told(self, make_tree(self, 0, 3), 5);
}

UTOFU_TEST(7, Circuit, Section3_8_2__death_of_an_inner_node_is_told_through_a_tree) {
  own_job();
  expect_death_is_told(self, make_tree(self, 0, 3), 1);
}
