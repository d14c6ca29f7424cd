// Guide 2.3, 3.4, 3.8: barrier circuits and reductions.
#include <array>
#include <cmath>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

/// A butterfly of all processes (a power of two), as in 5.2.1.
class Butterfly {
 public:
  explicit Butterfly(Process& self) {
    own_job();
    int stages = 0;
    while (1 << stages < self.size()) ++stages;
    const auto count = static_cast<std::size_t>(stages);
    std::array<utofu_vbg_id_t, 4> mine{};
    EXPECT_EQ(utofu_alloc_vbg(static_cast<utofu_tni_id_t>(self.rank() % 6), count, 0, mine.data()), UTOFU_SUCCESS);
    const auto all = self.share(mine);
    std::vector<utofu_vbg_setting> settings(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t before = (i + count - 1) % count, after = (i + 1) % count;
      const auto partner = [&](std::size_t stage) { return all[static_cast<std::size_t>(self.rank() ^ (1 << stage))]; };
      // Gate i receives over stage i - 1 (gate 0 over the last) and sends over stage i.
      settings[i].vbg_id = mine[i];
      settings[i].src_lcl_vbg_id = mine[before];
      settings[i].src_rmt_vbg_id = partner(before)[before];
      settings[i].dst_lcl_vbg_id = mine[after];
      settings[i].dst_rmt_vbg_id = partner(i)[after];
      settings[i].dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
    }
    EXPECT_EQ(utofu_set_vbg(settings.data(), count), UTOFU_SUCCESS);
    start = mine[0];
    ids.assign(mine.begin(), mine.begin() + stages);
    self.barrier();
  }

  utofu_vbg_id_t start = 0;
  std::vector<utofu_vbg_id_t> ids;
};

int wait_reduce(utofu_vbg_id_t vbg, double* data) {
  int rc = UTOFU_ERR_NOT_COMPLETED;
  eventually([&] { return (rc = utofu_poll_reduce_double(vbg, 0, data)) != UTOFU_ERR_NOT_COMPLETED; });
  return rc;
}

}  // namespace

UTOFU_TEST(4, Barrier, Section3_8_1_1__nobody_leaves_before_all_have_come) {
  Butterfly circuit(self);
  EXPECT_EQ(utofu_poll_barrier(circuit.start, 0), UTOFU_ERR_BUSY);
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(utofu_barrier(circuit.start, 0), UTOFU_SUCCESS);
    ASSERT_EQ(wait_barrier(circuit.start), UTOFU_SUCCESS);
  }
  self.barrier();
  if (self.rank() == 0) {
    ASSERT_EQ(utofu_barrier(circuit.start, 0), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_barrier(circuit.start, 0), UTOFU_ERR_BUSY);
    EXPECT_EQ(utofu_poll_barrier(circuit.start, 0), UTOFU_ERR_NOT_COMPLETED);
  }
  self.barrier();
  if (self.rank() != 0) {
    ASSERT_EQ(utofu_barrier(circuit.start, 0), UTOFU_SUCCESS);
  }
  EXPECT_EQ(wait_barrier(circuit.start), UTOFU_SUCCESS);
  self.barrier();
  EXPECT_EQ(utofu_free_vbg(circuit.ids.data(), circuit.ids.size()), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_barrier(circuit.start, 0), UTOFU_ERR_INVALID_VBG_ID);
}

UTOFU_TEST(4, Barrier, Section3_8_1_2__every_reduction) {
  Butterfly circuit(self);
  const auto rank = static_cast<std::uint64_t>(self.rank());
  struct Case {
    utofu_reduce_op op;
    std::uint64_t mine, expected;
  };
  const Case cases[] = {{UTOFU_REDUCE_OP_SUM, rank + 1, 10},
                        {UTOFU_REDUCE_OP_MAX, rank * 5, 15},
                        {UTOFU_REDUCE_OP_BAND, ~(1ull << rank), ~15ull},
                        {UTOFU_REDUCE_OP_BOR, 1ull << rank, 15},
                        {UTOFU_REDUCE_OP_BXOR, rank + 1, 1 ^ 2 ^ 3 ^ 4}};
  for (const Case& one : cases) {
    std::uint64_t data[6] = {one.mine, one.mine, one.mine, one.mine, one.mine, one.mine};
    ASSERT_EQ(utofu_reduce_uint64(circuit.start, one.op, data, 6, 0), UTOFU_SUCCESS);
    std::uint64_t result[6] = {};
    ASSERT_EQ(wait_reduce(circuit.start, result), UTOFU_SUCCESS);
    for (const std::uint64_t value : result) EXPECT_EQ(value, one.expected);
  }
  std::uint64_t pairs[4] = {rank % 2, rank, 7, 100 - rank};
  ASSERT_EQ(utofu_reduce_uint64(circuit.start, UTOFU_REDUCE_OP_MAXLOC, pairs, 4, 0), UTOFU_SUCCESS);
  std::uint64_t found[4] = {};
  ASSERT_EQ(wait_reduce(circuit.start, found), UTOFU_SUCCESS);
  EXPECT_EQ(found[0], 1u);
  EXPECT_EQ(found[1], 1u);
  EXPECT_EQ(found[2], 7u);
  EXPECT_EQ(found[3], 97u);
  double doubles[3] = {0.1 * self.rank(), self.rank() == 0 ? 1e300 : self.rank() == 1 ? -1e300 : 1.0, -0.0};
  ASSERT_EQ(utofu_reduce_double(circuit.start, UTOFU_REDUCE_OP_BFPSUM, doubles, 3, 0), UTOFU_SUCCESS);
  double sums[3] = {};
  ASSERT_EQ(wait_reduce(circuit.start, sums), UTOFU_SUCCESS);
  EXPECT_DOUBLE_EQ(sums[0], 0.1 + 0.2 + 0.3);
  EXPECT_EQ(sums[1], 2.0);  // Nothing was lost on the way.
  EXPECT_TRUE(std::signbit(sums[2]));
  const auto bits = self.share(sums[0]);
  for (const double value : bits) EXPECT_EQ(std::memcmp(&value, &sums[0], sizeof value), 0);
}

UTOFU_TEST(2, Barrier, Section3_8__different_operations_are_noticed) {
  Butterfly circuit(self);
  std::uint64_t value = 1;
  ASSERT_EQ(
      utofu_reduce_uint64(circuit.start, self.rank() == 0 ? UTOFU_REDUCE_OP_SUM : UTOFU_REDUCE_OP_MAX, &value, 1, 0),
      UTOFU_SUCCESS);
  EXPECT_EQ(wait_reduce(circuit.start, &value), UTOFU_ERR_BARRIER_MISMATCH);
  ASSERT_EQ(utofu_barrier(circuit.start, 0), UTOFU_SUCCESS);
  EXPECT_EQ(wait_barrier(circuit.start), UTOFU_SUCCESS);
  self.barrier();
}

UTOFU_TEST(4, Barrier, Section3_8_2__a_dead_process_ends_the_barrier) {
  Butterfly circuit(self);
  ASSERT_EQ(utofu_barrier(circuit.start, 0), UTOFU_SUCCESS);
  ASSERT_EQ(wait_barrier(circuit.start), UTOFU_SUCCESS);
  self.barrier();
  // Its neighbours in the circuit are 1 and 2; they tell 3.
  if (self.rank() == 0) self.die();
  self.barrier();
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(utofu_barrier(circuit.start, 0), UTOFU_SUCCESS);
    EXPECT_EQ(wait_barrier(circuit.start), UTOFU_ERR_BARRIER_OTHER);
    EXPECT_EQ(utofu_poll_barrier(circuit.start, 0), UTOFU_ERR_BUSY);
  }
  self.barrier();
}

UTOFU_TEST(1, Barrier, Section3_4__limits_and_arguments) {
  own_job();
  utofu_vbg_id_t ids[64];
  EXPECT_EQ(utofu_alloc_vbg(6, 1, 0, ids), UTOFU_ERR_INVALID_TNI_ID);
  EXPECT_EQ(utofu_alloc_vbg(0, 0, 0, ids), UTOFU_ERR_INVALID_NUMBER);
  EXPECT_EQ(utofu_alloc_vbg(0, 1, 8, ids), UTOFU_ERR_INVALID_FLAGS);
  EXPECT_EQ(utofu_alloc_vbg(0, 1, 0, nullptr), UTOFU_ERR_INVALID_POINTER);
  EXPECT_EQ(utofu_alloc_vbg(0, 34, 0, ids), UTOFU_ERR_FULL);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(utofu_alloc_vbg(0, 3, 0, ids + 3 * i), UTOFU_SUCCESS);
  utofu_vbg_id_t more[1];
  EXPECT_EQ(utofu_alloc_vbg(0, 1, 0, more), UTOFU_ERR_FULL);
  EXPECT_EQ(utofu_alloc_vbg(1, 33, UTOFU_VBG_FLAG_THREAD_SAFE, ids), UTOFU_SUCCESS);
  uint8_t coords[6];
  uint16_t tni = 9, bg = 99, extra = 0;
  ASSERT_EQ(utofu_query_vbg_info(ids[0], coords, &tni, &bg, &extra), UTOFU_SUCCESS);
  EXPECT_EQ(tni, 1);
  EXPECT_EQ(bg, 0);
  EXPECT_EQ(utofu_query_vbg_info(UTOFU_VBG_ID_NULL, coords, &tni, &bg, &extra), UTOFU_ERR_INVALID_VBG_ID);
  EXPECT_EQ(utofu_barrier(ids[0], 0), UTOFU_ERR_INVALID_VBG_ID);  // Not configured.
  // 3.4.2.1: signals are of "another VBG on the same TNI (local)": none of another TNI, nor one that this process
  // does not have.
  utofu_vbg_id_t elsewhere = 0;
  ASSERT_EQ(utofu_alloc_vbg(2, 1, 0, &elsewhere), UTOFU_SUCCESS);
  utofu_vbg_id_t freed[33];
  ASSERT_EQ(utofu_alloc_vbg(3, 2, 0, freed), UTOFU_SUCCESS);
  utofu_vbg_id_t mine[2];
  ASSERT_EQ(utofu_alloc_vbg(3, 2, 0, mine), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_free_vbg(freed, 2), UTOFU_SUCCESS);
  for (const utofu_vbg_id_t wrong : {elsewhere, freed[1]}) {
    utofu_vbg_setting setting{mine[0],           wrong,
                              UTOFU_VBG_ID_NULL, UTOFU_VBG_ID_NULL,
                              UTOFU_VBG_ID_NULL, {UTOFU_PATH_COORD_NULL, UTOFU_PATH_COORD_NULL, UTOFU_PATH_COORD_NULL}};
    EXPECT_EQ(utofu_set_vbg(&setting, 1), UTOFU_ERR_INVALID_VBG_ID);
    setting.src_lcl_vbg_id = mine[1];
    setting.dst_lcl_vbg_id = wrong;
    EXPECT_EQ(utofu_set_vbg(&setting, 1), UTOFU_ERR_INVALID_VBG_ID);
    setting.dst_lcl_vbg_id = mine[1];
    EXPECT_EQ(utofu_set_vbg(&setting, 1), UTOFU_SUCCESS);
  }
  EXPECT_EQ(utofu_free_vbg(ids, 32), UTOFU_ERR_INVALID_NUMBER);
  EXPECT_EQ(utofu_free_vbg(ids, 33), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_free_vbg(ids, 33), UTOFU_ERR_INVALID_VBG_ID);
}
