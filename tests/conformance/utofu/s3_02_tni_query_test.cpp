// Guide 3.1, 3.2 and chapter 6: numbers of the ABI, TNIs and their capabilities.
#include "utofu_fixture.h"

using namespace conformance;

static_assert(UTOFU_ERR_NOT_SUPPORTED == -8 && UTOFU_ERR_TCQ_LENGTH == -132 && UTOFU_ERR_MRQ_RMT_LENGTH == -199);
static_assert(UTOFU_ERR_BARRIER_MISMATCH == -257 && UTOFU_ERR_INVALID_DATA == -533 && UTOFU_ERR_FATAL == -768);
static_assert(UTOFU_ONESIDED_FLAG_TCQ_NOTICE == 1UL << 14 && UTOFU_ONESIDED_FLAG_PATH(1) == 1UL << 28);
static_assert(UTOFU_ONESIDED_FLAG_SPS(15) == 15UL << 24 && UTOFU_MRQ_TYPE_RMT_ARMW == 5 && UTOFU_REDUCE_OP_BFPSUM == 8);
static_assert(UTOFU_VBG_ID_NULL == UINT64_MAX && UTOFU_PATH_COORD_NULL == 255 && UTOFU_ARMW_OP_OR == 5);

UTOFU_TEST(1, TniQuery, Section3_2_1__six_tnis_in_an_array_to_be_freed) {
  for (auto* get : {utofu_get_onesided_tnis, utofu_get_barrier_tnis}) {
    utofu_tni_id_t* ids = nullptr;
    size_t count = 0;
    ASSERT_EQ(get(&ids, &count), UTOFU_SUCCESS);
    ASSERT_EQ(count, 6u);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(ids[i], i);
    std::free(ids);
    EXPECT_EQ(get(nullptr, &count), UTOFU_ERR_INVALID_POINTER);
    EXPECT_EQ(get(&ids, nullptr), UTOFU_ERR_INVALID_POINTER);
  }
}

UTOFU_TEST(1, TniQuery, Section3_2_1__capabilities_are_those_of_chapter_6) {
  utofu_onesided_caps* onesided = nullptr;
  ASSERT_EQ(utofu_query_onesided_caps(5, &onesided), UTOFU_SUCCESS);
  EXPECT_EQ(onesided->flags, UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE | UTOFU_ONESIDED_CAP_FLAG_ARMW);
  EXPECT_EQ(onesided->armw_ops, UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP | UTOFU_ONESIDED_CAP_ARMW_OP_SWAP |
                                    UTOFU_ONESIDED_CAP_ARMW_OP_ADD | UTOFU_ONESIDED_CAP_ARMW_OP_XOR |
                                    UTOFU_ONESIDED_CAP_ARMW_OP_AND | UTOFU_ONESIDED_CAP_ARMW_OP_OR);
  EXPECT_EQ(onesided->num_cmp_ids, 8u);
  EXPECT_EQ(onesided->num_reserved_stags, 256u);
  EXPECT_EQ(onesided->cache_line_size, 256u);
  EXPECT_EQ(onesided->stag_address_alignment, 256u);
  EXPECT_EQ(onesided->max_toq_desc_size, 64u);
  EXPECT_EQ(onesided->max_putget_size, 16777215u);
  EXPECT_EQ(onesided->max_piggyback_size, 32u);
  EXPECT_EQ(onesided->max_edata_size, 1u);
  EXPECT_EQ(onesided->max_mtu, 1920u);
  EXPECT_EQ(onesided->max_gap, 255u);
  utofu_barrier_caps* barrier = nullptr;
  ASSERT_EQ(utofu_query_barrier_caps(0, &barrier), UTOFU_SUCCESS);
  EXPECT_EQ(barrier->flags, 0u);
  EXPECT_EQ(barrier->reduce_ops, 0x1feu);
  EXPECT_EQ(barrier->reduce_ops & UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM, UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM);
  EXPECT_EQ(barrier->max_uint64_reduction, 6u);
  EXPECT_EQ(barrier->max_double_reduction, 3u);
  EXPECT_EQ(utofu_query_onesided_caps(6, &onesided), UTOFU_ERR_INVALID_TNI_ID);
  EXPECT_EQ(utofu_query_barrier_caps(6, &barrier), UTOFU_ERR_INVALID_TNI_ID);
  EXPECT_EQ(utofu_query_onesided_caps(0, nullptr), UTOFU_ERR_INVALID_POINTER);
}

UTOFU_TEST(1, TniQuery, Section3_9__versions_and_coordinates) {
  int major = 0, minor = -1;
  utofu_query_tofu_version(&major, &minor);
  EXPECT_EQ(major, 3);
  EXPECT_EQ(minor, 0);
  utofu_query_utofu_version(&major, &minor);
  EXPECT_EQ(major, UTOFU_VERSION_MAJOR);
  EXPECT_EQ(minor, UTOFU_VERSION_MINOR);
}

UTOFU_TEST(1, TniQueryProcess, Section3_9_2__lone_node_is_at_the_origin) {
  uint8_t coords[6] = {1, 1, 1, 1, 1, 1};
  ASSERT_EQ(utofu_query_my_coords(coords), UTOFU_SUCCESS);
  for (const uint8_t coordinate : coords) EXPECT_EQ(coordinate, 0);
  EXPECT_EQ(utofu_query_my_coords(nullptr), UTOFU_ERR_INVALID_POINTER);
}

// Tables 6.2 to 6.4 beyond the machine: VCQs of a CQ, STags, sizes.
UTOFU_TEST(1, TniQueryProcess, Section3_2_2__limits_can_be_raised_by_the_environment) {
  own_job();
  setenv("PORTOFU_TNIS", "8", 1);
  setenv("PORTOFU_CQS", "11", 1);
  setenv("PORTOFU_CMP_IDS", "200", 1);
  setenv("PORTOFU_RESERVED_STAGS", "4000", 1);
  setenv("PORTOFU_MAX_PUTGET_SIZE", "33554432", 1);
  setenv("PORTOFU_MAX_MTU", "9000", 1);
  setenv("PORTOFU_MAX_GAP", "1000", 1);
  utofu_onesided_caps* caps = nullptr;
  ASSERT_EQ(utofu_query_onesided_caps(7, &caps), UTOFU_SUCCESS);
  EXPECT_EQ(caps->num_cmp_ids, 200u);
  EXPECT_EQ(caps->num_reserved_stags, 4000u);
  EXPECT_EQ(caps->max_putget_size, 33554432u);
  EXPECT_EQ(caps->max_mtu, 9000u);
  EXPECT_EQ(caps->max_gap, 1000u);

  utofu_vcq_hdl_t vcq = 0;
  ASSERT_EQ(utofu_create_vcq_with_cmp_id(7, 199, 0, &vcq), UTOFU_SUCCESS);
  utofu_vcq_hdl_t other = 0;
  EXPECT_EQ(utofu_create_vcq_with_cmp_id(7, 200, 0, &other), UTOFU_ERR_INVALID_CMP_ID);
  utofu_vcq_id_t id = 0;
  ASSERT_EQ(utofu_query_vcq_id(vcq, &id), UTOFU_SUCCESS);

  constexpr std::size_t kBytes = 32u << 20;
  std::vector<unsigned char> memory(2 * kBytes + 256, 0);
  unsigned char* const from = memory.data() + 256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256;
  utofu_stadd_t stadd = 0;
  EXPECT_EQ(utofu_reg_mem_with_stag(vcq, from, 2 * kBytes, 4000, 0, &stadd), UTOFU_ERR_INVALID_STAG);
  ASSERT_EQ(utofu_reg_mem_with_stag(vcq, from, 2 * kBytes, 3999, 0, &stadd), UTOFU_SUCCESS);
  utofu_stadd_t asked = 0;
  ASSERT_EQ(utofu_query_stadd(id, 3999, &asked), UTOFU_SUCCESS);
  EXPECT_EQ(asked, stadd);

  for (std::size_t i = 0; i < kBytes; i += 4096) from[i] = static_cast<unsigned char>(i / 4096 + 1);
  from[kBytes - 1] = 99;
  EXPECT_EQ(utofu_put(vcq, id, stadd, stadd + kBytes, kBytes + 1, 0, 0, nullptr), UTOFU_ERR_INVALID_SIZE);
  ASSERT_EQ(utofu_put_gap(vcq, id, stadd, stadd + kBytes, kBytes, 0,
                          UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, 9000, 1000, nullptr),
            UTOFU_SUCCESS);
  void* cbdata = nullptr;
  EXPECT_EQ(poll_tcq(vcq, &cbdata), UTOFU_SUCCESS);
  utofu_mrq_notice notice{};
  EXPECT_EQ(poll_mrq(vcq, &notice), UTOFU_SUCCESS);
  EXPECT_EQ(std::memcmp(from, from + kBytes, kBytes), 0);
}

UTOFU_TEST(1, TniQueryProcess, Section3_9_2__coordinates_come_from_the_environment) {
  own_job();
  setenv("PORTOFU_COORDS", "7,8,9,1,2,1", 1);
  uint8_t coords[6] = {};
  ASSERT_EQ(utofu_query_my_coords(coords), UTOFU_SUCCESS);
  const uint8_t expected[6] = {7, 8, 9, 1, 2, 1};
  EXPECT_EQ(std::memcmp(coords, expected, sizeof coords), 0);
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  ASSERT_EQ(utofu_create_vcq(3, 0, &vcq), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_query_vcq_id(vcq, &id), UTOFU_SUCCESS);
  utofu_vcq_id_t constructed = 0;
  ASSERT_EQ(utofu_construct_vcq_id(coords, 3, 0, 0, &constructed), UTOFU_SUCCESS);
  EXPECT_EQ(id, constructed);
}

UTOFU_TEST(1, TniQueryProcess, Section3_9_2__coordinates_that_no_node_has_are_those_of_a_lone_node) {
  own_job();
  setenv("PORTOFU_COORDS", "7,8,9,1,3,1", 1);
  uint8_t coords[6] = {1, 1, 1, 1, 1, 1};
  ASSERT_EQ(utofu_query_my_coords(coords), UTOFU_SUCCESS);
  const uint8_t expected[6] = {};
  EXPECT_EQ(std::memcmp(coords, expected, sizeof coords), 0);
}
