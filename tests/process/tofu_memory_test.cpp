// Memory that runs out in the middle of a call of uTofu: the call says so, leaves no name behind, and does what it is
// to do when there is memory again. There is one CQ and one gate, so what is left behind is missed.

#include <gtest/gtest.h>
#include <utofu.h>

#include <cstdlib>

#include "tests/process/failing_memory.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

constexpr const char* kCalls[] = {"utofu_create_vcq", "utofu_alloc_vbg"};

struct Opened {
  utofu_vcq_hdl_t vcq = 0;
  utofu_vbg_id_t gates[2] = {};
};

int make(const char* call, Opened& o) {
  return call == kCalls[0] ? utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &o.vcq) : utofu_alloc_vbg(0, 2, 0, o.gates);
}

End live(const char* failing, int use) {
  Opened o;
  End end = End::kWrong;
  for (const char* call : kCalls) {
    int result = 0;
    const bool has_failed = make_failing(call == failing ? use : -1, &result, [&] { return make(call, o); });
    if (call == failing) end = has_failed ? End::kGood : End::kAllUsesHaveFailed;
    if (result == UTOFU_SUCCESS) continue;
    const bool tells = result == UTOFU_ERR_OUT_OF_MEMORY || result == UTOFU_ERR_OUT_OF_RESOURCE;
    if (call != failing || !tells) return tell(call, "does not tell", result);
    if (const int again = make(call, o); again != UTOFU_SUCCESS) return tell(call, "fails again", again);
  }
  if (utofu_free_vbg(o.gates, 2) != UTOFU_SUCCESS || utofu_free_vcq(o.vcq) != UTOFU_SUCCESS)
    return tell(failing, "cannot be freed", 0);
  return end;
}

TEST(TofuMemory, Runs_out_in_the_middle_of_a_call__which_leaves_nothing_behind) {
  setenv("PORTOFU_CQS", "1", 1);
  setenv("PORTOFU_START_VBGS", "1", 1);
  setenv("PORTOFU_RELAY_VBGS", "1", 1);
  {
    const OwnNode node;
    // The engine stays open until the process ends as a program does.
    for (const char* call : kCalls)
      expect_good_lives(call, [&](int use) -> End { std::exit(static_cast<int>(live(call, use))); });
  }
  for (const char* name : {"PORTOFU_CQS", "PORTOFU_START_VBGS", "PORTOFU_RELAY_VBGS"}) unsetenv(name);
}

}  // namespace
}  // namespace portofu
