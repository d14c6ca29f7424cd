// Guide 3.3, 3.5, 4.3.2: VCQs, their ids and paths, and how many there are.
#include <array>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

uint16_t cq_of(utofu_vcq_hdl_t vcq, uint16_t* component = nullptr) {
  utofu_vcq_id_t id = 0;
  uint8_t coords[6];
  uint16_t tni = 0, cq = 0, extra = 0;
  EXPECT_EQ(utofu_query_vcq_id(vcq, &id), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_query_vcq_info(id, coords, &tni, &cq, &extra), UTOFU_SUCCESS);
  if (component != nullptr) *component = extra;
  return cq;
}

}  // namespace

UTOFU_TEST(1, Vcq, Section3_3_1__eight_share_a_queue_and_then_the_next_follows) {
  own_job();
  std::vector<utofu_vcq_hdl_t> vcqs;
  utofu_vcq_hdl_t vcq = 0;
  while (utofu_create_vcq(2, 0, &vcq) == UTOFU_SUCCESS && vcqs.size() < 1000) vcqs.push_back(vcq);
  ASSERT_EQ(vcqs.size(), 72u);
  for (std::size_t i = 0; i < vcqs.size(); ++i) {
    uint16_t component = 99;
    EXPECT_EQ(cq_of(vcqs[i], &component), i / 8);
    EXPECT_EQ(component, i % 8);
  }
  EXPECT_EQ(utofu_create_vcq(2, 0, &vcq), UTOFU_ERR_FULL);
  EXPECT_EQ(utofu_create_vcq(2, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq), UTOFU_ERR_NOT_AVAILABLE);
  EXPECT_EQ(utofu_create_vcq(2, UTOFU_VCQ_FLAG_SESSION_MODE, &vcq), UTOFU_ERR_NOT_AVAILABLE);
  EXPECT_EQ(utofu_create_vcq(1, 0, &vcq), UTOFU_SUCCESS);  // Another TNI has its own.
  for (const utofu_vcq_hdl_t made : vcqs) EXPECT_EQ(utofu_free_vcq(made), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_free_vcq(vcqs[0]), UTOFU_ERR_INVALID_VCQ_HDL);
  EXPECT_EQ(utofu_create_vcq(2, 0, &vcq), UTOFU_SUCCESS);
  EXPECT_EQ(cq_of(vcq), 0);
}

UTOFU_TEST(1, Vcq, Section3_3_1__arguments) {
  own_job();
  utofu_vcq_hdl_t vcq = 0;
  EXPECT_EQ(utofu_create_vcq(6, 0, &vcq), UTOFU_ERR_INVALID_TNI_ID);
  EXPECT_EQ(utofu_create_vcq(0, 0, nullptr), UTOFU_ERR_INVALID_POINTER);
  EXPECT_EQ(utofu_create_vcq(0, 1UL << 9, &vcq), UTOFU_ERR_INVALID_FLAGS);
  EXPECT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE | UTOFU_VCQ_FLAG_SESSION_MODE, &vcq), UTOFU_ERR_INVALID_FLAGS);
  EXPECT_EQ(utofu_create_vcq_with_cmp_id(0, 8, 0, &vcq), UTOFU_ERR_INVALID_CMP_ID);
  EXPECT_EQ(utofu_create_vcq_with_cmp_id(0, 0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq), UTOFU_ERR_INVALID_FLAGS);
  EXPECT_EQ(utofu_create_vcq_with_cmp_id(0, 0, UTOFU_VCQ_FLAG_SESSION_MODE, &vcq), UTOFU_ERR_INVALID_FLAGS);
  utofu_vcq_id_t id = 0;
  EXPECT_EQ(utofu_query_vcq_id(0, &id), UTOFU_ERR_INVALID_VCQ_HDL);
  EXPECT_EQ(utofu_query_vcq_id(12345678, &id), UTOFU_ERR_INVALID_VCQ_HDL);
  EXPECT_EQ(utofu_free_vcq(UINTPTR_MAX), UTOFU_ERR_INVALID_VCQ_HDL);
}

UTOFU_TEST(1, Vcq, Section3_3_1_2__a_component_id_is_used_once) {
  own_job();
  utofu_vcq_hdl_t first = 0, second = 0, third = 0;
  ASSERT_EQ(utofu_create_vcq_with_cmp_id(0, 7, 0, &first), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_create_vcq_with_cmp_id(0, 7, 0, &second), UTOFU_ERR_USED);
  ASSERT_EQ(utofu_create_vcq_with_cmp_id(0, 3, UTOFU_VCQ_FLAG_THREAD_SAFE, &second), UTOFU_SUCCESS);
  EXPECT_EQ(cq_of(first), cq_of(second));
  uint16_t component = 99;
  ASSERT_EQ(utofu_create_vcq(0, 0, &third), UTOFU_SUCCESS);
  cq_of(third, &component);
  EXPECT_EQ(component, 0);
  EXPECT_EQ(utofu_free_vcq(first), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_create_vcq_with_cmp_id(0, 7, 0, &first), UTOFU_SUCCESS);
}

UTOFU_TEST(1, Vcq, Section3_3_4__exclusive_shares_with_nobody) {
  own_job();
  utofu_vcq_hdl_t shared = 0, first = 0, second = 0;
  ASSERT_EQ(utofu_create_vcq(0, 0, &shared), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &first), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &second), UTOFU_SUCCESS);
  EXPECT_NE(cq_of(shared), cq_of(first));
  EXPECT_NE(cq_of(first), cq_of(second));
}

UTOFU_TEST(1, Vcq, Section4_3_2__kept_queues_are_left_alone) {
  own_job();
  setenv("UTOFU_NUM_EXCLUSIVE_CQS", "2", 1);
  setenv("UTOFU_NUM_SESSION_MODE_CQS", "1", 1);
  utofu_vcq_hdl_t vcq = 0;
  int shared = 0;
  while (utofu_create_vcq(0, 0, &vcq) == UTOFU_SUCCESS && shared < 1000) ++shared;
  EXPECT_EQ(shared, 6 * 8);
  EXPECT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_SESSION_MODE, &vcq), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq), UTOFU_ERR_NOT_AVAILABLE);
}

// "tries to reserve as many CQs as possible up to the required number": also from who makes exclusive ones, of which
// only so many come first as are kept for them.
UTOFU_TEST(1, Vcq, Section4_3_2_2__session_queues_are_kept_from_exclusive_ones) {
  own_job();
  setenv("UTOFU_NUM_EXCLUSIVE_CQS", "2", 1);
  setenv("UTOFU_NUM_SESSION_MODE_CQS", "3", 1);
  utofu_vcq_hdl_t vcq = 0;
  ASSERT_EQ(utofu_create_vcq(0, 0, &vcq), UTOFU_SUCCESS);
  int exclusive = 0;
  while (utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq) == UTOFU_SUCCESS && exclusive < 1000) ++exclusive;
  EXPECT_EQ(exclusive, 9 - 1 - 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_SESSION_MODE, &vcq), UTOFU_SUCCESS) << i;
}

UTOFU_TEST(3, Vcq, Section3_3_2__ids_are_different_in_all_processes_and_computable) {
  own_job();
  utofu_vcq_hdl_t vcq = 0;
  ASSERT_EQ(utofu_create_vcq(4, 0, &vcq), UTOFU_SUCCESS);
  utofu_vcq_id_t mine = 0;
  ASSERT_EQ(utofu_query_vcq_id(vcq, &mine), UTOFU_SUCCESS);
  const auto ids = self.share(mine);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[1], ids[2]);
  EXPECT_NE(ids[0], ids[2]);
  for (const utofu_vcq_id_t id : ids) {
    uint8_t coords[6];
    uint16_t tni = 0, cq = 0, component = 0;
    ASSERT_EQ(utofu_query_vcq_info(id, coords, &tni, &cq, &component), UTOFU_SUCCESS);
    EXPECT_EQ(tni, 4);
    EXPECT_LT(cq, 3);
    utofu_vcq_id_t constructed = 0;
    ASSERT_EQ(utofu_construct_vcq_id(coords, tni, cq, component, &constructed), UTOFU_SUCCESS);
    EXPECT_EQ(constructed, id);
  }
  self.barrier();
}

namespace {

/// The CQ of a VCQ that is made now.
std::uint32_t cq_of_new_vcq(utofu_tni_id_t tni, unsigned long flags = 0) {
  utofu_vcq_hdl_t vcq = 0;
  EXPECT_EQ(utofu_create_vcq(tni, flags, &vcq), UTOFU_SUCCESS);
  utofu_vcq_id_t id = 0;
  EXPECT_EQ(utofu_query_vcq_id(vcq, &id), UTOFU_SUCCESS);
  uint8_t coords[6];
  uint16_t of_tni = 0, cq = 0, component = 0;
  EXPECT_EQ(utofu_query_vcq_info(id, coords, &of_tni, &cq, &component), UTOFU_SUCCESS);
  utofu_vcq_id_t constructed = 0;
  EXPECT_EQ(utofu_construct_vcq_id(coords, tni, cq, component, &constructed), UTOFU_SUCCESS);
  EXPECT_EQ(constructed, id);
  return cq;
}

void set_number(const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); }

}  // namespace

// 3.3.2.2: programs construct the ids of their peers from the CQs that local ranks have on the real machine.
UTOFU_TEST(4, CqOfRank, Launcher__tells_the_local_rank) {
  own_job();
  set_number("OMPI_COMM_WORLD_LOCAL_RANK", self.rank());
  const auto rank = static_cast<std::uint32_t>(self.rank());
  EXPECT_EQ(cq_of_new_vcq(1), 3 * rank);
  EXPECT_EQ(cq_of_new_vcq(1, UTOFU_VCQ_FLAG_EXCLUSIVE), 3 * rank + 1) << "its next one";
  self.barrier();
}

UTOFU_TEST(3, CqOfRank, Setting__tells_rank_and_size) {
  own_job();
  set_number("PORTOFU_LOCAL_RANK", self.rank());
  set_number("PORTOFU_LOCAL_SIZE", self.size());
  EXPECT_EQ(cq_of_new_vcq(1), 4u * static_cast<std::uint32_t>(self.rank()));
  self.barrier();
}

UTOFU_TEST(4, CqOfRank, Table__tells_another_order) {
  own_job();
  set_number("MPI_LOCALRANKID", self.rank());
  set_number("MPI_LOCALNRANKS", self.size());
  setenv("PORTOFU_RANK_CQS", "0,2,5,8", 1);
  const std::uint32_t table[] = {0, 2, 5, 8};
  EXPECT_EQ(cq_of_new_vcq(2), table[self.rank()]);
  self.barrier();
}

// Two processes of the same local rank, and one whose rank is nobody's: the lowest CQ that is free will do.
UTOFU_TEST(3, CqOfRank, Taken_or_out_of_range__is_the_lowest_free) {
  own_job();
  set_number("PORTOFU_LOCAL_RANK", self.rank() == 2 ? 17 : 1);
  setenv("PORTOFU_RANK_CQS", "7,3", 1);
  std::uint32_t cq = 99;
  for (int rank = 0; rank < self.size(); ++rank) {
    if (self.rank() == rank) cq = cq_of_new_vcq(0);
    self.barrier();
  }
  EXPECT_EQ(self.share(cq), (std::vector<std::uint32_t>{3, 0, 1}));
  self.barrier();
}

// 2.4: a node has few CQs and few processes. A machine with many processes stands for several nodes, whose processes
// compute each other's ids as on the real machine, and reach each other.
UTOFU_TEST(10, VirtualNode, Processes_of_a_lone_node__have_coordinates_and_CQs_of_several) {
  own_job();
  const int rank = self.rank(), size = self.size();
  set_number("PORTOFU_PER_NODE", 4);
  set_number("MPI_LOCALRANKID", rank);
  set_number("MPI_LOCALNRANKS", size);
  std::array<std::uint8_t, 6> mine{};
  ASSERT_EQ(utofu_query_my_coords(mine.data()), UTOFU_SUCCESS);
  const auto coords = self.share(mine);
  for (int other = 0; other < size; ++other)
    EXPECT_EQ(coords[static_cast<std::size_t>(other)] == mine, other / 4 == rank / 4) << other;
  // Ranks 8 and 9 are two on their node: each has half of 12 CQs. All together have more than the nine of a node.
  const auto cq_of_rank = [](int of) { return of < 8 ? 3 * (of % 4) : 6 * (of % 4); };
  utofu_vcq_hdl_t vcq = 0;
  ASSERT_EQ(utofu_create_vcq_with_cmp_id(0, 1, 0, &vcq), UTOFU_SUCCESS);
  ASSERT_EQ(cq_of(vcq), cq_of_rank(rank));
  alignas(256) std::array<std::uint64_t, 32> words{};
  utofu_stadd_t stadd = 0;
  ASSERT_EQ(utofu_reg_mem_with_stag(vcq, words.data(), sizeof words, 5, 0, &stadd), UTOFU_SUCCESS);
  self.barrier();
  for (int other = 0; other < size; ++other) {
    auto at = coords[static_cast<std::size_t>(other)];
    utofu_vcq_id_t id = 0;
    ASSERT_EQ(utofu_construct_vcq_id(at.data(), 0, static_cast<utofu_cq_id_t>(cq_of_rank(other)), 1, &id),
              UTOFU_SUCCESS);
    utofu_stadd_t there = 0;
    ASSERT_EQ(utofu_query_stadd(id, 5, &there), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_put_piggyback8(vcq, id, static_cast<std::uint64_t>(100 + rank),
                                   there + 8 * static_cast<std::uint64_t>(rank), 8, 0,
                                   UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr),
              UTOFU_SUCCESS);
  }
  for (int other = 0; other < size; ++other) {
    utofu_mrq_notice notice{};
    ASSERT_EQ(poll_mrq(vcq, &notice), UTOFU_SUCCESS);
  }
  for (int other = 0; other < size; ++other)
    EXPECT_EQ(words[static_cast<std::size_t>(other)], static_cast<std::uint64_t>(100 + other));
  self.barrier();
}

UTOFU_TEST(1, VcqId, Section3_3_2__arguments) {
  uint8_t coords[6] = {0, 0, 0, 0, 0, 0};
  utofu_vcq_id_t id = 0;
  EXPECT_EQ(utofu_construct_vcq_id(coords, 6, 0, 0, &id), UTOFU_ERR_INVALID_TNI_ID);
  EXPECT_EQ(utofu_construct_vcq_id(coords, 0, 12, 0, &id), UTOFU_ERR_INVALID_CQ_ID);
  EXPECT_EQ(utofu_construct_vcq_id(coords, 0, 0, 8, &id), UTOFU_ERR_INVALID_CMP_ID);
  EXPECT_EQ(utofu_construct_vcq_id(nullptr, 0, 0, 0, &id), UTOFU_ERR_INVALID_POINTER);
  coords[4] = 3;
  EXPECT_EQ(utofu_construct_vcq_id(coords, 0, 0, 0, &id), UTOFU_ERR_INVALID_COORDS);
  uint16_t tni = 0, cq = 0, extra = 0;
  EXPECT_EQ(utofu_query_vcq_info(0, coords, &tni, &cq, &extra), UTOFU_ERR_INVALID_VCQ_ID);
}

UTOFU_TEST(1, VcqId, Section3_5__paths) {
  uint8_t coords[6] = {3, 2, 1, 1, 2, 0};
  utofu_vcq_id_t id = 0;
  ASSERT_EQ(utofu_construct_vcq_id(coords, 1, 2, 3, &id), UTOFU_SUCCESS);
  utofu_vcq_id_t other = id;
  uint8_t path[3] = {0, 1, 1};
  ASSERT_EQ(utofu_set_vcq_id_path(&other, path), UTOFU_SUCCESS);
  EXPECT_NE(other, id);
  uint16_t tni = 0, cq = 0, extra = 0;
  uint8_t seen[6];
  ASSERT_EQ(utofu_query_vcq_info(other, seen, &tni, &cq, &extra), UTOFU_SUCCESS);
  EXPECT_EQ(std::memcmp(seen, coords, sizeof seen), 0);
  ASSERT_EQ(utofu_set_vcq_id_path(&other, nullptr), UTOFU_SUCCESS);
  EXPECT_EQ(other, id);
  uint8_t none[3] = {UTOFU_PATH_COORD_NULL, 0, 0};
  EXPECT_EQ(utofu_set_vcq_id_path(&other, none), UTOFU_ERR_INVALID_PATH);  // 3.1.2.1: path, not node coordinates
  uint8_t outside[3] = {0, 3, 0};
  utofu_path_id_t unset = 77;
  EXPECT_EQ(utofu_get_path_id(id, outside, &unset), UTOFU_ERR_INVALID_PATH);
  EXPECT_EQ(unset, 77);
  for (uint8_t a = 0; a < 2; ++a) {
    for (uint8_t b = 0; b < 3; ++b) {
      for (uint8_t c = 0; c < 2; ++c) {
        uint8_t wanted[3] = {a, b, c}, got[3] = {9, 9, 9};
        utofu_path_id_t path_id = 0;
        ASSERT_EQ(utofu_get_path_id(id, wanted, &path_id), UTOFU_SUCCESS);
        EXPECT_NE(path_id, 0);
        ASSERT_EQ(utofu_get_path_coords(id, path_id, got), UTOFU_SUCCESS);
        EXPECT_EQ(std::memcmp(wanted, got, sizeof got), 0);
      }
    }
  }
  EXPECT_EQ(utofu_get_path_coords(id, 0, path), UTOFU_ERR_INVALID_PATH_ID);
}
