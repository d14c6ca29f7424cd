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

TEST_F(FiCm, Connections_there_are_none) {
  EXPECT_EQ(fi_connect(a.ep, &to_b, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_shutdown(a.ep, 0), -FI_ENOSYS);
  fid_pep* listener = nullptr;
  EXPECT_EQ(fi_passive_ep(fabric, info.get(), &listener, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace portofu::test
