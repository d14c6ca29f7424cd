// fi_fabric(3): fabrics and domains come by their names, and go when nobody needs them.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiFabric : public Fabric {};

TEST_F(FiFabric, Is_known_by_its_name) {
  fi_fabric_attr attr = *info->fabric_attr;
  fid_fabric* other = nullptr;
  ASSERT_EQ(fi_fabric(&attr, &other, &attr), 0);
  EXPECT_EQ(other->fid.context, &attr);
  EXPECT_EQ(other->fid.fclass, static_cast<std::size_t>(FI_CLASS_FABRIC));
  EXPECT_EQ(fi_close(&other->fid), 0);
  char wrong[] = "another";
  attr.name = wrong;
  EXPECT_NE(fi_fabric(&attr, &other, nullptr), 0);
}

TEST_F(FiFabric, What_others_need_is_not_closed) {
  EXPECT_EQ(fi_close(&a.cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&a.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&fabric->fid), -FI_EBUSY);
}

TEST_F(FiFabric, Domains_of_a_process_are_one_node) {
  fid_domain* second = nullptr;
  ASSERT_EQ(fi_domain(fabric, info.get(), &second, nullptr), 0);
  Node c;
  c.open(second, info.get());
  int received = 0;
  const int sent = 4;
  ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, a.insert(c)), 0);
  EXPECT_EQ(c.next().err, 0);
  EXPECT_EQ(received, 4);
  c.close();
  EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(FiFabric, Calls_that_it_has_not_say_so) {
  EXPECT_EQ(fi_control(&fabric->fid, FI_GETWAIT, &to_a), -FI_ENOSYS);
  void* ops = nullptr;
  EXPECT_NE(fi_open_ops(&fabric->fid, "none", 0, &ops, nullptr), 0);
}

}  // namespace
}  // namespace portofu::test
