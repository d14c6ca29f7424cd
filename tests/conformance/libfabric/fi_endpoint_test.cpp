// fi_endpoint(3), fi_av(3), fi_eq(3), fi_cm(3): how objects come, know each other, and go.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiEndpoint : public Fabric {};

TEST_F(FiEndpoint, What_others_need_is_not_closed) {
  EXPECT_EQ(fi_close(&a.cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&a.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&fabric->fid), -FI_EBUSY);
}

TEST_F(FiEndpoint, Nothing_goes_before_it_is_enabled) {
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  const int sent = 0;
  EXPECT_EQ(fi_send(ep, &sent, sizeof sent, nullptr, to_b, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_enable(ep), -FI_ENOAV);
  ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOCQ);
  ASSERT_EQ(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), 0);
  EXPECT_EQ(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

TEST_F(FiEndpoint, Alias_is_the_same_endpoint_with_other_flags) {
  fid_ep* alias = nullptr;
  ASSERT_EQ(fi_ep_alias(a.ep, &alias, FI_TRANSMIT | FI_DELIVERY_COMPLETE), 0);
  int sent = 4;
  int received = 0;
  ASSERT_EQ(fi_send(alias, &sent, sizeof sent, nullptr, to_b, nullptr), 0);
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(b.next().source, to_a);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fi_close(&a.ep->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(FiEndpoint, Contexts_of_a_scalable_endpoint_are_reached_by_number) {
  info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = 3;
  fid_ep* sep = nullptr;
  fid_ep* tx = nullptr;
  std::array<fid_ep*, 3> rx{};
  fi_av_attr av_attr{};
  av_attr.rx_ctx_bits = 4;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
  ASSERT_EQ(fi_scalable_ep(domain, info.get(), &sep, nullptr), 0);
  ASSERT_EQ(fi_scalable_ep_bind(sep, &av->fid, 0), 0);
  ASSERT_EQ(fi_tx_context(sep, 1, nullptr, &tx, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(tx, &a.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_enable(tx), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_rx_context(sep, i, nullptr, &rx[i], nullptr), 0);
    ASSERT_EQ(fi_ep_bind(rx[i], &b.cq->fid, FI_RECV), 0);
    ASSERT_EQ(fi_enable(rx[i]), 0);
  }
  ASSERT_EQ(fi_enable(sep), 0);
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  fi_addr_t self = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_getname(&sep->fid, name.data(), &bytes), 0);
  ASSERT_EQ(fi_av_insert(av, name.data(), 1, &self, 0, nullptr), 1);
  std::array<int, 3> received{};
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(fi_recv(rx[i], &received[i], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[i]), 0);
  for (const int i : {2, 0, 1}) {
    const int sent = 10 + i;
    ASSERT_EQ(fi_send(tx, &sent, sizeof sent, nullptr, fi_rx_addr(self, i, 4), nullptr), 0);
    EXPECT_EQ(b.next().op_context, &received[i]);
    EXPECT_EQ(received[i], sent);
    a.next();
  }
  EXPECT_EQ(fi_close(&sep->fid), -FI_EBUSY);
  for (fid* object : {&tx->fid, &rx[0]->fid, &rx[1]->fid, &rx[2]->fid, &sep->fid, &av->fid})
    EXPECT_EQ(fi_close(object), 0);
}

TEST_F(FiEndpoint, Addresses_are_looked_up_and_removed) {
  std::array<std::byte, 64> name, found;
  std::size_t bytes = name.size();
  ASSERT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), 0);
  std::size_t found_bytes = found.size();
  ASSERT_EQ(fi_av_lookup(a.av, to_b, found.data(), &found_bytes), 0);
  EXPECT_EQ(found_bytes, bytes);
  EXPECT_TRUE(std::equal(name.begin(), name.begin() + bytes, found.begin()));
  std::array<char, 64> text{};
  std::size_t text_bytes = text.size();
  EXPECT_NE(fi_av_straddr(a.av, name.data(), text.data(), &text_bytes), nullptr);
  ASSERT_EQ(fi_av_remove(a.av, &to_b, 1, 0), 0);
  const int sent = 0;
  EXPECT_EQ(fi_send(a.ep, &sent, sizeof sent, nullptr, to_b, nullptr), -FI_EINVAL);
  found_bytes = found.size();
  EXPECT_EQ(fi_av_lookup(a.av, to_b, found.data(), &found_bytes), -FI_EINVAL);
  name.fill(std::byte{0});
  fi_addr_t bad = 0;
  EXPECT_EQ(fi_av_insert(a.av, name.data(), 1, &bad, 0, nullptr), 0);
  EXPECT_EQ(bad, FI_ADDR_NOTAVAIL);
  bytes = 2;
  EXPECT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), -FI_ETOOSMALL);
}

TEST_F(FiEndpoint, Insertion_tells_an_event_queue) {
  fi_eq_attr eq_attr{};
  eq_attr.wait_obj = FI_WAIT_FD;
  fid_eq* eq = nullptr;
  fid_av* av = nullptr;
  fi_av_attr av_attr{};
  av_attr.flags = FI_EVENT;
  ASSERT_EQ(fi_eq_open(fabric, &eq_attr, &eq, nullptr), 0);
  ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
  ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), 0);
  EXPECT_EQ(fi_av_insert(av, name.data(), 1, &address, 0, &address), 0);
  ASSERT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, 1000, 0), static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_AV_COMPLETE));
  EXPECT_EQ(entry.data, 1u);
  EXPECT_EQ(entry.context, &address);
  EXPECT_EQ(entry.fid, &av->fid);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

}  // namespace
}  // namespace portofu::test
