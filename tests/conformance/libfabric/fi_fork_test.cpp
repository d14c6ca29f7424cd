// What a child of a fork has of its parent's objects: nothing that it does with them does harm, and it may have its
// own. libfabric says nothing of forks but that calls on objects in no state for them are -FI_EOPBADSTATE
// (fi_errno(3)).

#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiFork : public Fabric {
 protected:
  void SetUp() override {
    Fabric::SetUp();
    fi_eq_attr eq_attr{};
    fi_wait_attr wait_attr{};
    fi_poll_attr poll_attr{};
    info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = 2;
    ASSERT_EQ(fi_eq_open(fabric, &eq_attr, &eq, nullptr), 0);
    ASSERT_EQ(fi_wait_open(fabric, &wait_attr, &wait_set), 0);
    ASSERT_EQ(fi_poll_open(domain, &poll_attr, &poll_set), 0);
    ASSERT_EQ(fi_srx_context(domain, info->rx_attr, &srx, nullptr), 0);
    ASSERT_EQ(fi_stx_context(domain, info->tx_attr, &stx, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep(domain, info.get(), &sep, nullptr), 0);
    ASSERT_EQ(fi_tx_context(sep, 0, nullptr, &tx, nullptr), 0);
    ASSERT_EQ(fi_rx_context(sep, 0, nullptr, &rx, nullptr), 0);
    ASSERT_EQ(fi_ep_alias(a.ep, &alias, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_cntr_open(domain, nullptr, &cntr, nullptr), 0);
    ASSERT_EQ(fi_mr_reg(domain, &word, sizeof word, FI_REMOTE_READ, 0, 1, 0, &region, nullptr), 0);
    info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = 1;
  }
  void TearDown() override {
    for (fid* object : own_objects()) EXPECT_EQ(fi_close(object), 0);
    Fabric::TearDown();
  }

  std::vector<fid*> own_objects() const {
    return {&eq->fid, &wait_set->fid, &poll_set->fid, &srx->fid,  &stx->fid,   &tx->fid,
            &rx->fid, &sep->fid,      &alias->fid,    &cntr->fid, &region->fid};
  }
  std::vector<fid*> all_objects() const {
    std::vector<fid*> all = own_objects();
    for (const Node* node : {&a, &b}) all.insert(all.end(), {&node->ep->fid, &node->cq->fid, &node->av->fid});
    all.push_back(&domain->fid);
    return all;
  }

  /// Runs something in a child. @return whether all went well there
  template <class Body>
  bool run_in_child(Body&& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kLongestWait.count());
      body();
      _exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status == 0;
  }

  void expect_refusals() {
    constexpr ssize_t kRefused = -FI_EOPBADSTATE;
    int value = 0;
    std::array<std::byte, 64> name;
    std::size_t bytes = name.size();
    fi_cq_tagged_entry entry{};
    fi_cq_err_entry error{};
    fi_addr_t address = 0;
    std::uint32_t event = 0;
    void* context = nullptr;
    fid_ep* ep = nullptr;
    fid_mr* mr = nullptr;
    fid_cq* cq = nullptr;
    for (fid_ep* each : {a.ep, b.ep, alias, sep, tx, rx, srx}) {
      EXPECT_EQ(fi_send(each, &value, sizeof value, nullptr, to_b, nullptr), kRefused);
      EXPECT_EQ(fi_trecv(each, &value, sizeof value, nullptr, to_b, 1, 0, nullptr), kRefused);
      EXPECT_EQ(fi_read(each, &value, sizeof value, nullptr, to_b, 0, 1, nullptr), kRefused);
      EXPECT_EQ(fi_atomic(each, &value, 1, nullptr, to_b, 0, 1, FI_INT32, FI_SUM, nullptr), kRefused);
      EXPECT_EQ(fi_cancel(&each->fid, &value), kRefused);
      EXPECT_EQ(fi_getname(&each->fid, name.data(), &bytes), kRefused);
      EXPECT_EQ(fi_enable(each), kRefused);
      EXPECT_EQ(fi_ep_bind(each, &a.cq->fid, FI_TRANSMIT), kRefused);
    }
    EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), kRefused);
    EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, -1), kRefused);
    EXPECT_EQ(fi_cq_readerr(a.cq, &error, 0), kRefused);
    EXPECT_EQ(fi_cq_signal(a.cq), kRefused);
    EXPECT_NE(fi_cq_strerror(a.cq, 1, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(fi_cntr_read(cntr), 0u);
    EXPECT_EQ(fi_cntr_add(cntr, 1), kRefused);
    EXPECT_EQ(fi_cntr_wait(cntr, 1, -1), kRefused);
    EXPECT_EQ(fi_av_insert(a.av, name.data(), 1, &address, 0, nullptr), kRefused);
    EXPECT_EQ(fi_av_remove(a.av, &to_b, 1, 0), kRefused);
    EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), kRefused);
    EXPECT_EQ(fi_eq_write(eq, 0, &entry, sizeof entry, 0), kRefused);
    EXPECT_EQ(fi_wait(wait_set, -1), kRefused);
    EXPECT_EQ(fi_poll(poll_set, &context, 1), kRefused);
    EXPECT_EQ(fi_mr_enable(region), kRefused);
    EXPECT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), kRefused);
    EXPECT_EQ(fi_cq_open(domain, nullptr, &cq, nullptr), kRefused);
    EXPECT_EQ(fi_mr_reg(domain, &value, sizeof value, FI_SEND, 0, 2, 0, &mr, nullptr), kRefused);
    for (fid* object : all_objects()) EXPECT_EQ(fi_control(object, FI_GETWAIT, &value), kRefused);
  }

  /// A child's own domain, of a fabric that it has inherited.
  void expect_own_domain(bool opens_fabric) {
    if (opens_fabric) {
      ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    }
    fid_domain* own = nullptr;
    ASSERT_EQ(fi_domain(fabric, info.get(), &own, nullptr), 0);
    Node node;
    node.open(own, info.get());
    const fi_addr_t self = node.insert(node);
    int sent = 4, received = 0;
    ASSERT_EQ(fi_recv(node.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(node.ep, &sent, sizeof sent, self), 0);
    EXPECT_EQ(node.next().err, 0);
    EXPECT_EQ(received, 4);
    expect_bound_to_nothing(own, node);
    node.close();
    EXPECT_EQ(fi_close(&own->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
  }

  /// What is a child's own is bound to nothing that it has inherited.
  void expect_bound_to_nothing(fid_domain* own, const Node& node) {
    fid_ep* ep = nullptr;
    fid_cq* cq = nullptr;
    ASSERT_EQ(fi_endpoint(own, info.get(), &ep, nullptr), 0);
    for (fid* object : all_objects()) EXPECT_NE(fi_ep_bind(ep, object, FI_TRANSMIT), 0);
    EXPECT_EQ(fi_close(&ep->fid), 0);
    fi_cq_attr attr{};
    attr.wait_obj = FI_WAIT_SET;
    attr.wait_set = wait_set;
    EXPECT_EQ(fi_cq_open(own, &attr, &cq, nullptr), -FI_EINVAL);
    fi_triggered_context trigger{};
    trigger.event_type = FI_TRIGGER_THRESHOLD;
    trigger.trigger.threshold = {cntr, 1};
    const iovec piece{&trigger, 1};
    const fi_msg msg{&piece, nullptr, 1, 0, &trigger, 0};
    EXPECT_NE(fi_sendmsg(node.ep, &msg, FI_TRIGGER), 0);
  }

  fid_eq* eq = nullptr;
  fid_wait* wait_set = nullptr;
  fid_poll* poll_set = nullptr;
  fid_ep* srx = nullptr;
  fid_stx* stx = nullptr;
  fid_ep* sep = nullptr;
  fid_ep* tx = nullptr;
  fid_ep* rx = nullptr;
  fid_ep* alias = nullptr;
  fid_cntr* cntr = nullptr;
  fid_mr* region = nullptr;
  std::uint64_t word = 7;
};

TEST_F(FiFork, Child_is_refused_what_its_parent_goes_on_with) {
  int received = 0;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_TRUE(run_in_child([this] { expect_refusals(); }));
  EXPECT_TRUE(run_in_child([this] {
    for (fid* object : all_objects()) EXPECT_EQ(fi_close(object), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
  }));
  const int sent = 4;
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  EXPECT_EQ(b.next().source, to_a);
  EXPECT_EQ(received, 4);
}

TEST_F(FiFork, Child_and_grandchild_have_domains_of_their_own) {
  for (const bool opens_fabric : {true, false}) {
    EXPECT_TRUE(run_in_child([=, this] {
      EXPECT_TRUE(run_in_child([=, this] { expect_own_domain(opens_fabric); }));
      expect_own_domain(opens_fabric);
    }));
  }
}

/// "The fabric_attr::fabric field ... if set by the application, ... limits" what is found (fi_getinfo(3)). A fabric is
/// a child's own, also if its parent has opened it; a domain is not.
TEST_F(FiFork, Child_finds_the_fabric_that_it_has_inherited) {
  fid_fabric* later = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &later, nullptr), 0);
  const auto expect_fabrics = [&] {
    const Info hints = make_hints();
    Info found = get_info(hints.get());
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->fabric_attr->fabric, fabric) << "the first one";
    EXPECT_EQ(found->domain_attr->domain, nullptr);
    for (fid_fabric* wanted : {fabric, later}) {
      hints->fabric_attr->fabric = wanted;
      found = get_info(hints.get());
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->fabric_attr->fabric, wanted);
    }
    hints->domain_attr->domain = domain;
    EXPECT_EQ(get_info(hints.get()), nullptr);
  };
  EXPECT_TRUE(run_in_child([&] {
    expect_fabrics();
    EXPECT_TRUE(run_in_child(expect_fabrics));
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    const Info hints = make_hints();
    hints->fabric_attr->fabric = fabric;
    EXPECT_EQ(get_info(hints.get()), nullptr) << "it is closed";
  }));
  EXPECT_EQ(fi_close(&later->fid), 0);
}

/// Objects come and go in another thread.
TEST_F(FiFork, Child_is_forked_in_the_middle_of_anything) {
  std::atomic<bool> over{false};
  std::thread opener([&] {
    while (!over) {
      fid_mr* mr = nullptr;
      fid_cq* cq = nullptr;
      EXPECT_EQ(fi_mr_reg(domain, &word, sizeof word, FI_REMOTE_READ, 0, 2, 0, &mr, nullptr), 0);
      EXPECT_EQ(fi_cq_open(domain, nullptr, &cq, nullptr), 0);
      for (fid* object : {&mr->fid, &cq->fid}) EXPECT_EQ(fi_close(object), 0);
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(run_in_child([this] { EXPECT_EQ(fi_cntr_add(cntr, 1), -FI_EOPBADSTATE); }));
  over = true;
  opener.join();
  EXPECT_EQ(fi_cntr_read(cntr), 0u);
}

}  // namespace
}  // namespace portofu::test
