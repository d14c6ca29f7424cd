// One engine, one atomic unit: a word of one process, which eight processes change through Portals, uTofu and
// libfabric.

#include "tests/conformance/libfabric/fabric_fixture.h"
#include "tests/conformance/libfabric/portals_side.h"
#include "tests/conformance/utofu/utofu_fixture.h"

namespace portofu::test {
namespace {

constexpr std::uint64_t kKey = 3;

/// The word as a region of libfabric, and an endpoint to change it with.
class FabricSide {
 public:
  explicit FabricSide(void* word) {
    EXPECT_EQ(fi_mr_reg(node_.domain(), word, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region_, nullptr), 0);
  }
  ~FabricSide() { EXPECT_EQ(fi_close(&region_->fid), 0); }
  FabricSide(const FabricSide&) = delete;
  FabricSide& operator=(const FabricSide&) = delete;

  LoneNode::Name name() const { return node_.name(); }
  void know(const LoneNode::Name& owner) { owner_ = node_.know(owner); }

  std::uint64_t fetch_add() {
    const std::uint64_t one = 1;
    std::uint64_t old = 0;
    EXPECT_EQ(fi_fetch_atomic(node_->ep, &one, 1, nullptr, &old, nullptr, owner_, 0, kKey, FI_UINT64, FI_SUM, nullptr),
              0);
    EXPECT_EQ(node_->next().err, 0);
    return old;
  }

 private:
  LoneNode node_;
  fid_mr* region_ = nullptr;
  fi_addr_t owner_ = FI_ADDR_NOTAVAIL;
};

std::uint64_t fetch_add_by_utofu(const conformance::Ring& ring) {
  utofu_mrq_notice notice{};
  EXPECT_EQ(utofu_armw8(ring.vcq, ring.places[0].vcq_id, UTOFU_ARMW_OP_ADD, 1, ring.places[0].stadd, 0,
                        UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
            UTOFU_SUCCESS);
  EXPECT_EQ(conformance::poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
  return notice.rmt_value;
}

void change_one_word(conformance::Process& self) {
  constexpr std::size_t kRounds = 16;  // Of each API, so that the values of a process fit into one exchange.
  conformance::Ring ring(self);
  auto* word = reinterpret_cast<std::uint64_t*>(ring.memory.data());
  {
    PortalsSide portals(word);
    FabricSide fabric(word);
    const auto ids = self.share(portals.id());
    fabric.know(self.share(fabric.name())[0]);
    std::array<std::uint16_t, 3 * kRounds> fetched{};
    for (std::size_t i = 0; i < fetched.size(); ++i) {
      const std::size_t api = (i + static_cast<std::size_t>(self.rank())) % 3;
      fetched[i] = static_cast<std::uint16_t>(api == 0   ? portals.fetch_add(ids[0])
                                              : api == 1 ? fabric.fetch_add()
                                                         : fetch_add_by_utofu(ring));
    }
    std::vector<int> seen(fetched.size() * static_cast<std::size_t>(self.size()));
    for (const auto& values : self.share(fetched)) {
      for (const std::uint16_t value : values) {
        ASSERT_LT(value, seen.size());
        ++seen[value];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << "every value was fetched once";
    if (self.rank() == 0) {
      EXPECT_EQ(*word, seen.size());
    }
    self.barrier();
  }
}

TEST(OneWord, Is_changed_by_eight_processes_through_three_interfaces) {
  conformance::run_processes(8, change_one_word);
}

}  // namespace
}  // namespace portofu::test
