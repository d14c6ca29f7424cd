// fi_cm(3), as far as endpoints without connections have it: their names.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiCm : public Fabric {};

TEST_F(FiCm, Name_says_how_much_room_it_needs) {
  std::array<std::byte, 64> name{};
  std::size_t bytes = 0;
  EXPECT_EQ(fi_getname(&a.ep->fid, nullptr, &bytes), -FI_ETOOSMALL);
  const std::size_t needed = bytes;
  EXPECT_GT(needed, 0u);
  bytes = name.size();
  EXPECT_EQ(fi_getname(&a.ep->fid, name.data(), &bytes), 0);
  EXPECT_EQ(bytes, needed);
  bytes = needed - 1;
  EXPECT_EQ(fi_getname(&a.ep->fid, name.data(), &bytes), -FI_ETOOSMALL);
}

TEST_F(FiCm, Endpoints_have_names_of_their_own) {
  std::array<std::byte, 16> one{}, two{};
  std::size_t bytes = one.size();
  ASSERT_EQ(fi_getname(&a.ep->fid, one.data(), &bytes), 0);
  ASSERT_EQ(fi_getname(&b.ep->fid, two.data(), &bytes), 0);
  EXPECT_NE(one, two);
}

/// fi_endpoint(3): "An alias EP differs from its parent endpoint only by its default data transfer flags." Contexts
/// "share the transport-level address" of their scalable endpoint.
TEST_F(FiCm, Aliases_and_contexts_have_the_name_of_their_endpoint) {
  const auto name_of = [](fid_ep* ep) {
    std::array<std::byte, 16> name{};
    std::size_t bytes = name.size();
    EXPECT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
    return name;
  };
  fid_ep *sep = nullptr, *tx = nullptr, *rx = nullptr;
  info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = 2;
  ASSERT_EQ(fi_scalable_ep(domain, info.get(), &sep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(sep, &a.av->fid, 0), 0);
  ASSERT_EQ(fi_tx_context(sep, 1, nullptr, &tx, nullptr), 0);
  ASSERT_EQ(fi_rx_context(sep, 1, nullptr, &rx, nullptr), 0);
  for (fid_ep* ep : {a.ep, sep, tx, rx}) {
    fid_ep* alias = nullptr;
    fid_ep* alias_of_alias = nullptr;
    ASSERT_EQ(fi_ep_alias(ep, &alias, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_ep_alias(alias, &alias_of_alias, FI_RECV), 0);
    EXPECT_EQ(name_of(ep), name_of(ep == a.ep ? a.ep : sep));
    EXPECT_EQ(name_of(alias), name_of(ep));
    EXPECT_EQ(name_of(alias_of_alias), name_of(ep));
    EXPECT_EQ(fi_close(&ep->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&alias->fid), 0);
    EXPECT_EQ(fi_close(&alias_of_alias->fid), 0);
  }
  // A context of an alias is one of the endpoint.
  fid_ep* alias = nullptr;
  fid_ep* of_alias = nullptr;
  ASSERT_EQ(fi_ep_alias(sep, &alias, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_rx_context(alias, 0, nullptr, &of_alias, nullptr), 0);
  EXPECT_EQ(name_of(of_alias), name_of(sep));
  EXPECT_EQ(fi_close(&alias->fid), 0);
  for (fid_ep* ep : {of_alias, tx, rx, sep}) EXPECT_EQ(fi_close(&ep->fid), 0);
}

TEST_F(FiCm, Connections_there_are_none) {
  EXPECT_EQ(fi_connect(a.ep, &to_b, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_shutdown(a.ep, 0), -FI_ENOSYS);
  fid_pep* listener = nullptr;
  EXPECT_EQ(fi_passive_ep(fabric, info.get(), &listener, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace portofu::test
