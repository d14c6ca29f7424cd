// Eight ranks on a butterfly of barrier gates (uTofu user's guide, 5.2.1), of which the last comes late. Rank 0 tells
// what a barrier takes when all come at once, and what one takes that waits for the late one, 500 us.

#include <array>
#include <chrono>
#include <thread>

#include "tests/process/sim_roles.h"

using namespace portofu;

namespace {

constexpr int kRanks = 8;
constexpr std::size_t kGates = 3;
using Gates = std::array<utofu_vbg_id_t, kGates>;

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(9);
}

/// Gate g hears from the partner of the stage before, and tells that of its own stage.
void build(const Gates& own, const std::array<Gates, kRanks>& all, std::size_t rank) {
  std::array<utofu_vbg_setting, kGates> settings{};
  for (std::size_t g = 0; g < kGates; ++g) {
    const std::size_t before = (g + kGates - 1) % kGates;
    const std::size_t behind = (g + 1) % kGates;
    settings[g].vbg_id = own[g];
    settings[g].src_lcl_vbg_id = own[before];
    settings[g].src_rmt_vbg_id = all[rank ^ std::size_t{1} << before][before];
    settings[g].dst_lcl_vbg_id = own[behind];
    settings[g].dst_rmt_vbg_id = all[rank ^ std::size_t{1} << g][behind];
    settings[g].dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
  }
  check(utofu_set_vbg(settings.data(), kGates) == UTOFU_SUCCESS, "utofu_set_vbg");
}

Gates open(const PmiClient& pmi) {
  Gates own{};
  check(utofu_alloc_vbg(0, kGates, 0, own.data()) == UTOFU_SUCCESS, "utofu_alloc_vbg");
  for (std::size_t g = 0; g < kGates; ++g)
    pmi.put("gate-" + std::to_string(pmi.rank) + "-" + std::to_string(g), std::to_string(own[g]));
  pmi.barrier();
  std::array<Gates, kRanks> all{};
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t g = 0; g < kGates; ++g) {
      const auto answer = pmi.get("gate-" + std::to_string(rank) + "-" + std::to_string(g));
      all[rank][g] = std::stoull(PmiClient::field(answer, "value"));
    }
  }
  build(own, all, static_cast<std::size_t>(pmi.rank));
  pmi.barrier();
  return own;
}

/// @return nanoseconds
long long meet(const Gates& own) {
  const auto began = std::chrono::steady_clock::now();
  check(utofu_barrier(own[0], 0) == UTOFU_SUCCESS, "utofu_barrier");
  int rc = UTOFU_ERR_NOT_COMPLETED;
  while (rc == UTOFU_ERR_NOT_COMPLETED) rc = utofu_poll_barrier(own[0], 0);
  check(rc == UTOFU_SUCCESS, "utofu_poll_barrier");
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

int main() {
  PmiClient pmi;
  pmi.begin();
  check(pmi.size == kRanks, "eight ranks");
  const Gates own = open(pmi);
  meet(own);
  meet(own);
  const long long together_ns = meet(own);
  if (pmi.rank == kRanks - 1) std::this_thread::sleep_for(std::chrono::microseconds(500));
  const long long late_ns = meet(own);
  std::uint64_t sum = static_cast<std::uint64_t>(pmi.rank) + 1;
  check(utofu_reduce_uint64(own[0], UTOFU_REDUCE_OP_SUM, &sum, 1, 0) == UTOFU_SUCCESS, "utofu_reduce_uint64");
  int rc = UTOFU_ERR_NOT_COMPLETED;
  while (rc == UTOFU_ERR_NOT_COMPLETED) rc = utofu_poll_reduce_uint64(own[0], 0, &sum);
  check(rc == UTOFU_SUCCESS && sum == 36, "the sum");
  if (pmi.rank == 0) std::printf("together %lld late %lld\n", together_ns, late_ns);
  meet(own);
  Gates ids = own;
  check(utofu_free_vbg(ids.data(), kGates) == UTOFU_SUCCESS, "utofu_free_vbg");
  pmi.end();
  return 0;
}
