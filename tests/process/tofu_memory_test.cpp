// Memory that runs out in the middle of a call of uTofu: the call says so, leaves no name behind, and does what it is
// to do when there is memory again. There is one CQ and one gate, so what is left behind is missed.

#include <gtest/gtest.h>
#include <utofu.h>

#include <cstdlib>
#include <string_view>

#include "tests/process/failing_memory.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

struct Opened {
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_vbg_id_t gates[2] = {};
  utofu_stadd_t stadd = 0;
  utofu_stadd_t reserved = 0;
  alignas(256) char memory[65536] = {};
};

struct Call {
  const char* name;
  int (*make)(Opened&);
};

/// In the order of a program. The puts are to oneself; who has asked for a notice is owed one.
constexpr Call kCalls[] = {
    {"utofu_create_vcq", [](Opened& o) { return utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &o.vcq); }},
    {"utofu_query_vcq_id", [](Opened& o) { return utofu_query_vcq_id(o.vcq, &o.id); }},
    {"utofu_alloc_vbg", [](Opened& o) { return utofu_alloc_vbg(0, 2, 0, o.gates); }},
    {"utofu_reg_mem", [](Opened& o) { return utofu_reg_mem(o.vcq, o.memory, sizeof o.memory, 0, &o.stadd); }},
    {"utofu_reg_mem_with_stag",
     [](Opened& o) { return utofu_reg_mem_with_stag(o.vcq, o.memory + 256, 256, 5, 0, &o.reserved); }},
    {"utofu_query_stadd",
     [](Opened& o) {
       utofu_stadd_t stadd = 0;
       const int rc = utofu_query_stadd(o.id, 5, &stadd);
       return rc == UTOFU_SUCCESS && stadd != o.reserved ? UTOFU_ERR_INVALID_STADD : rc;
     }},
    {"utofu_put",
     [](Opened& o) {
       return utofu_put(o.vcq, o.id, o.stadd, o.stadd + 8, 8, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr);
     }},
    {"utofu_put of 32 KiB",
     [](Opened& o) {
       return utofu_put(o.vcq, o.id, o.stadd, o.stadd + 32768, 32768, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr);
     }},
    {"utofu_put_stride",
     [](Opened& o) {
       return utofu_put_stride(o.vcq, o.id, o.stadd, o.stadd + 8192, 8, 64, 4, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE,
                               nullptr);
     }},
    {"utofu_put that is held back",
     [](Opened& o) {
       return utofu_put(o.vcq, o.id, o.stadd, o.stadd + 16, 8, 0,
                        UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_DELAY_START, nullptr);
     }},
    {"utofu_armw8",
     [](Opened& o) {
       return utofu_armw8(o.vcq, o.id, UTOFU_ARMW_OP_ADD, 1, o.stadd, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr);
     }},
    {"utofu_get",
     [](Opened& o) {
       return utofu_get(o.vcq, o.id, o.stadd, o.stadd + 4096, 64, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr);
     }},
    {"utofu_set_vbg",
     [](Opened& o) {
       utofu_vbg_setting settings[2];
       for (int i = 0; i < 2; ++i) {
         settings[i].vbg_id = o.gates[i];
         settings[i].src_lcl_vbg_id = settings[i].dst_lcl_vbg_id = o.gates[1 - i];
         settings[i].src_rmt_vbg_id = settings[i].dst_rmt_vbg_id = UTOFU_VBG_ID_NULL;
         settings[i].dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
       }
       return utofu_set_vbg(settings, 2);
     }},
    {"utofu_barrier", [](Opened& o) { return utofu_barrier(o.gates[0], 0); }},
};
constexpr int kNotices = 9;  ///< One of each, and of each block (3.7.1.4).

/// Takes the notices of all that was posted, and one more would be wrong. A block alone may fail (2.2.12).
bool has_its_notices(Opened& o) {
  int found = 0;
  for (const double end = now_s() + kLongestWaitS; found < kNotices && now_s() < end;) {
    void* data = nullptr;
    const int rc = utofu_poll_tcq(o.vcq, 0, &data);
    if (rc == UTOFU_ERR_NOT_FOUND) continue;
    if (rc != UTOFU_SUCCESS && rc != UTOFU_ERR_TCQ_OTHER) return false;
    ++found;
  }
  void* data = nullptr;
  return found == kNotices && utofu_poll_tcq(o.vcq, 0, &data) == UTOFU_ERR_NOT_FOUND;
}

/// Of the barrier, and of one more.
/// @param may_fail  there was no memory for it: it ends all the same, and so does the next
bool has_its_barriers(const Opened& o, bool may_fail) {
  const auto is_good = [may_fail](int rc) {
    return rc == UTOFU_SUCCESS || (may_fail && rc == UTOFU_ERR_BARRIER_OTHER);
  };
  for (int round = 0; round < 2; ++round) {
    if (round == 1 && utofu_barrier(o.gates[0], 0) != UTOFU_SUCCESS) return false;
    int rc = UTOFU_ERR_NOT_COMPLETED;
    for (const double end = now_s() + kLongestWaitS; rc == UTOFU_ERR_NOT_COMPLETED && now_s() < end;)
      rc = utofu_poll_barrier(o.gates[0], 0);
    if (!is_good(rc)) return false;
  }
  return true;
}

bool is_freed(Opened& o) {
  return utofu_dereg_mem(o.vcq, o.reserved, 0) == UTOFU_SUCCESS &&
         utofu_dereg_mem(o.vcq, o.stadd, 0) == UTOFU_SUCCESS && utofu_free_vbg(o.gates, 2) == UTOFU_SUCCESS &&
         utofu_free_vcq(o.vcq) == UTOFU_SUCCESS;
}

End live(const Call& failing, int use) {
  Opened o;
  End end = End::kWrong;
  for (const Call& call : kCalls) {
    const bool is_it = &call == &failing;
    int result = 0;
    const bool has_failed = make_failing(is_it ? use : -1, &result, [&] { return call.make(o); });
    if (is_it) end = has_failed ? End::kGood : End::kAllUsesHaveFailed;
    if (result == UTOFU_SUCCESS) continue;
    const bool tells = result == UTOFU_ERR_OUT_OF_MEMORY || result == UTOFU_ERR_OUT_OF_RESOURCE;
    if (!is_it || !tells) return tell(call.name, "does not tell", result);
    if (const int again = call.make(o); again != UTOFU_SUCCESS) return tell(call.name, "fails again", again);
  }
  if (!has_its_notices(o)) return tell(failing.name, "has lost a notice, or told too much", 0);
  const bool is_of_barrier = failing.name == std::string_view("utofu_barrier");
  if (!has_its_barriers(o, is_of_barrier && end == End::kGood)) return tell(failing.name, "has lost a barrier", 0);
  if (!is_freed(o)) return tell(failing.name, "cannot be freed", 0);
  return end;
}

TEST(TofuMemory, Runs_out_in_the_middle_of_a_call__which_leaves_nothing_behind) {
  setenv("PORTOFU_CQS", "1", 1);
  setenv("PORTOFU_START_VBGS", "1", 1);
  setenv("PORTOFU_RELAY_VBGS", "1", 1);
  {
    const OwnNode node;
    // The engine stays open until the process ends as a program does.
    for (const Call& call : kCalls)
      expect_good_lives(call.name, [&](int use) -> End { std::exit(static_cast<int>(live(call, use))); });
  }
  for (const char* name : {"PORTOFU_CQS", "PORTOFU_START_VBGS", "PORTOFU_RELAY_VBGS"}) unsetenv(name);
}

}  // namespace
}  // namespace portofu
