// Portals and libfabric in one process: one engine, one atomic unit, one memory.

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"
#include "tests/conformance/libfabric/portals_side.h"

namespace portofu::test {
namespace {

constexpr std::uint64_t kKey = 3;
constexpr std::size_t kRounds = 2000;

class BothApis : public Fabric {};

TEST_F(BothApis, One_word_is_changed_by_both_at_once) {
  std::uint64_t word = 0;
  fid_mr* region = open_memory(&word, sizeof word, kKey);
  std::vector<std::uint64_t> by_portals(kRounds), by_fabric(kRounds);
  {
    PortalsSide portals(&word);
    std::thread other([&] {
      for (std::uint64_t& old : by_portals) old = portals.fetch_add();
    });
    const std::uint64_t one = 1;
    for (std::uint64_t& old : by_fabric) {
      EXPECT_EQ(fi_fetch_atomic(a.ep, &one, 1, nullptr, &old, nullptr, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr), 0);
      EXPECT_EQ(a.next().err, 0);
    }
    other.join();
  }
  EXPECT_EQ(word, 2 * kRounds);
  std::vector<std::uint64_t> all = by_portals;
  all.insert(all.end(), by_fabric.begin(), by_fabric.end());
  std::ranges::sort(all);
  std::vector<std::uint64_t> expected(2 * kRounds);
  std::iota(expected.begin(), expected.end(), std::uint64_t{0});
  EXPECT_EQ(all, expected);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(BothApis, Each_goes_on_when_the_other_has_ended) {
  std::uint64_t word = 0;
  { PortalsSide portals(&word); }
  const int sent = 1;
  int received = 0;
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 1);
}

}  // namespace
}  // namespace portofu::test
