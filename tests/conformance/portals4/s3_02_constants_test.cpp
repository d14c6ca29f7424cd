// Portals 4.3, 3.2 and 3.3: constants and base types. Nearly all of it is checked by the compiler.
#include <gtest/gtest.h>
#include <portals.h>  // 3.1: "the same interface in a header file named portals.h".
#include <portals4.h>

#include <cstddef>
#include <set>
#include <type_traits>

// 3.2.1: version constants.
static_assert(PTL_MAJOR_VERSION == 4 && PTL_MINOR_VERSION == 3);

// 3.3.1, 3.3.4, 3.15.2: unsigned 64-bit integers.
static_assert(std::is_unsigned_v<ptl_size_t> && sizeof(ptl_size_t) == 8 && PTL_SIZE_MAX == UINT64_MAX);
static_assert(std::is_unsigned_v<ptl_match_bits_t> && sizeof(ptl_match_bits_t) == 8);
static_assert(std::is_unsigned_v<ptl_hdr_data_t> && sizeof(ptl_hdr_data_t) == 8);

// 3.3.3, 3.3.5, 3.3.6: integral types.
static_assert(std::is_integral_v<ptl_pt_index_t> && std::is_integral_v<ptl_interface_t>);
static_assert(std::is_integral_v<ptl_nid_t> && std::is_integral_v<ptl_pid_t> && std::is_integral_v<ptl_rank_t> &&
              std::is_integral_v<ptl_uid_t>);

// 3.3.2: "Every handle value can be converted into a value of type ptl_handle_any_t without loss of information";
// ours are integers, and their constants are constant expressions.
static_assert(std::is_convertible_v<ptl_handle_ni_t, ptl_handle_any_t> && sizeof(ptl_handle_ni_t) <= sizeof(void*));
static_assert(std::is_integral_v<ptl_handle_md_t> && std::is_integral_v<ptl_handle_eq_t>);
static_assert(std::is_integral_v<ptl_handle_ct_t> && std::is_integral_v<ptl_handle_me_t>);
constexpr ptl_handle_eq_t kNoQueue = PTL_EQ_NONE;
constexpr ptl_handle_ct_t kNoCounter = PTL_CT_NONE;
constexpr ptl_handle_any_t kInvalid = PTL_INVALID_HANDLE;
static_assert(kNoQueue != kInvalid && kNoCounter != kInvalid);

// 3.10.2: ptl_iovec_t has these two members.
static_assert(std::is_same_v<decltype(ptl_iovec_t::iov_base), void*> && sizeof(ptl_iovec_t::iov_len) == 8);

// openmpi.md 2.1: the union of 3.9.1 is published as eight raw bytes.
static_assert(sizeof(ptl_process_t) == 8);

// C.1: deprecated names that programs still use.
static_assert(PTL_INTERRUPTED == PTL_ABORTED);
static_assert(PTL_ME_ACK_DISABLE != 0 && PTL_LE_ACK_DISABLE != 0);

namespace {

// 3.2: "constants whose type is specified to be integral must be valid labels for switch statements": and different
// ones.
int number_of_rc(int rc) {
  switch (rc) {
    case PTL_OK: return 1;
    case PTL_FAIL: return 2;
    case PTL_NO_INIT: return 3;
    case PTL_ARG_INVALID: return 4;
    case PTL_NO_SPACE: return 5;
    case PTL_IN_USE: return 6;
    case PTL_IGNORED: return 7;
    case PTL_LIST_TOO_LONG: return 8;
    case PTL_PID_IN_USE: return 9;
    case PTL_PT_FULL: return 10;
    case PTL_PT_IN_USE: return 11;
    case PTL_PT_EQ_NEEDED: return 12;
    case PTL_EQ_EMPTY: return 13;
    case PTL_EQ_DROPPED: return 14;
    case PTL_CT_NONE_REACHED: return 15;
    case PTL_ABORTED: return 16;
    default: return 0;
  }
}

// Each option is a bit of its own, and the mask is all of them.
void expect_bits(const std::set<unsigned int>& options, std::size_t count, unsigned int mask) {
  EXPECT_EQ(options.size(), count) << "two options share a bit";
  unsigned int all = 0;
  for (unsigned int option : options) {
    EXPECT_EQ(option & (option - 1), 0u) << "not a single bit: " << option;
    all |= option;
  }
  EXPECT_EQ(all, mask);
}

}  // namespace

TEST(Constants, Section3_2__return_codes_are_switch_labels) {
  EXPECT_EQ(number_of_rc(PTL_ABORTED), 16);
  EXPECT_EQ(PTL_OK, 0) << "PTL_NI_OK and PTL_OK are compared with each other in 3.10.1";
  EXPECT_EQ(static_cast<int>(PTL_NI_OK), PTL_OK);
}

// The masks are all legal options or'ed; options may be or'ed (3.6.2, 3.7.1, 3.10.1, 3.11.1, 3.12.1), so they are bits.
TEST(Constants, Section3_2__options_are_bits_of_their_own) {
  expect_bits({PTL_NI_MATCHING, PTL_NI_NO_MATCHING, PTL_NI_LOGICAL, PTL_NI_PHYSICAL}, 4, PTL_NI_INIT_OPTIONS_MASK);
  expect_bits({PTL_PT_ONLY_USE_ONCE, PTL_PT_ONLY_TRUNCATE, PTL_PT_FLOWCTRL, PTL_PT_ALLOC_DISABLED}, 4,
              PTL_PT_ALLOC_OPTIONS_MASK);
  expect_bits(
      {PTL_IOVEC, PTL_MD_EVENT_SEND_DISABLE, PTL_MD_EVENT_SUCCESS_DISABLE, PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_REPLY,
       PTL_MD_EVENT_CT_ACK, PTL_MD_EVENT_CT_BYTES, PTL_MD_UNORDERED, PTL_MD_VOLATILE, PTL_MD_UNRELIABLE},
      10, PTL_MD_OPTIONS_MASK);
  expect_bits(
      {PTL_IOVEC, PTL_LE_OP_PUT, PTL_LE_OP_GET, PTL_LE_USE_ONCE, PTL_LE_ACK_DISABLE, PTL_LE_UNEXPECTED_HDR_DISABLE,
       PTL_LE_IS_ACCESSIBLE, PTL_LE_EVENT_LINK_DISABLE, PTL_LE_EVENT_COMM_DISABLE, PTL_LE_EVENT_FLOWCTRL_DISABLE,
       PTL_LE_EVENT_SUCCESS_DISABLE, PTL_LE_EVENT_OVER_DISABLE, PTL_LE_EVENT_UNLINK_DISABLE, PTL_LE_EVENT_CT_COMM,
       PTL_LE_EVENT_CT_OVERFLOW, PTL_LE_EVENT_CT_BYTES},
      16, PTL_LE_APPEND_OPTIONS_MASK);
  expect_bits({PTL_IOVEC,
               PTL_ME_OP_PUT,
               PTL_ME_OP_GET,
               PTL_ME_USE_ONCE,
               PTL_ME_ACK_DISABLE,
               PTL_ME_UNEXPECTED_HDR_DISABLE,
               PTL_ME_IS_ACCESSIBLE,
               PTL_ME_EVENT_LINK_DISABLE,
               PTL_ME_EVENT_COMM_DISABLE,
               PTL_ME_EVENT_FLOWCTRL_DISABLE,
               PTL_ME_EVENT_SUCCESS_DISABLE,
               PTL_ME_EVENT_OVER_DISABLE,
               PTL_ME_EVENT_UNLINK_DISABLE,
               PTL_ME_EVENT_CT_COMM,
               PTL_ME_EVENT_CT_OVERFLOW,
               PTL_ME_EVENT_CT_BYTES,
               PTL_ME_MANAGE_LOCAL,
               PTL_ME_NO_TRUNCATE,
               PTL_ME_MAY_ALIGN,
               PTL_ME_LOCAL_INC_UH_RLENGTH},
              20, PTL_ME_APPEND_OPTIONS_MASK);
}
