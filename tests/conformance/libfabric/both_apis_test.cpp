// Portals and libfabric in one process: one engine, one atomic unit, one memory.

#include <portals4.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

constexpr std::uint64_t kKey = 3;
constexpr std::size_t kRounds = 2000;

/// The word as an entry of Portals, and a memory descriptor to change it with.
class PortalsSide {
 public:
  explicit PortalsSide(std::uint64_t* word) {
    EXPECT_EQ(PtlInit(), PTL_OK);
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni_),
              PTL_OK);
    EXPECT_EQ(PtlGetPhysId(ni_, &id_), PTL_OK);
    EXPECT_EQ(PtlEQAlloc(ni_, 64, &eq_), PTL_OK);
    ptl_pt_index_t pt = 0;
    EXPECT_EQ(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, 3, &pt), PTL_OK);
    ptl_le_t le{};
    le.start = word;
    le.length = sizeof *word;
    le.ct_handle = PTL_CT_NONE;
    le.uid = PTL_UID_ANY;
    le.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_LINK_DISABLE;
    EXPECT_EQ(PtlLEAppend(ni_, 3, &le, PTL_PRIORITY_LIST, nullptr, &le_), PTL_OK);
    ptl_md_t md{};
    md.start = operands_.data();
    md.length = sizeof operands_;
    md.eq_handle = eq_;
    md.ct_handle = PTL_CT_NONE;
    md.options = PTL_MD_EVENT_SEND_DISABLE;
    EXPECT_EQ(PtlMDBind(ni_, &md, &md_), PTL_OK);
  }
  ~PortalsSide() { PtlFini(); }
  PortalsSide(const PortalsSide&) = delete;
  PortalsSide& operator=(const PortalsSide&) = delete;

  /// Adds 1. @return what was there
  std::uint64_t fetch_add() {
    operands_ = {1, 0};
    EXPECT_EQ(PtlFetchAtomic(md_, 8, md_, 0, 8, id_, 3, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T), PTL_OK);
    ptl_event_t event{};
    unsigned int which = 0;
    EXPECT_EQ(PtlEQPoll(&eq_, 1, 20000, &event, &which), PTL_OK);
    return operands_[1];
  }

 private:
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq_ = PTL_INVALID_HANDLE;
  ptl_handle_le_t le_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  ptl_process_t id_{};
  std::array<std::uint64_t, 2> operands_{};
};

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
