// fi_endpoint(3): how endpoints come, share, and go.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiEndpoint : public Fabric {};

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

TEST_F(FiEndpoint, Counter_that_is_bound_for_nothing_counts_nothing) {
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  fid_cntr* cntr = open_cntr(domain);
  EXPECT_EQ(fi_ep_bind(ep, &cntr->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep, &cntr->fid, FI_MORE), -FI_EBADFLAGS);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

/// What fails does nothing: no flag of a call that is refused is bound.
TEST_F(FiEndpoint, Binding_that_fails_binds_nothing) {
  fid_ep* ep = nullptr;
  fid_cq *first = nullptr, *second = nullptr;
  fi_cq_attr cq_attr{};
  fi_cntr_attr cntr_attr{};
  ASSERT_EQ(fi_cq_open(domain, &cq_attr, &first, nullptr), 0);
  ASSERT_EQ(fi_cq_open(domain, &cq_attr, &second, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &first->fid, FI_RECV), 0);
  EXPECT_EQ(fi_ep_bind(ep, &second->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL) << "receives have a queue";
  EXPECT_EQ(fi_close(&second->fid), 0);
  constexpr std::array kEvents{FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
  std::uint64_t all = 0;
  for (const std::uint64_t event : kEvents) all |= event;
  for (const std::uint64_t taken : kEvents) {
    fid_cntr *counter = nullptr, *other = nullptr;
    fid_ep* counted = nullptr;
    ASSERT_EQ(fi_cntr_open(domain, &cntr_attr, &counter, nullptr), 0);
    ASSERT_EQ(fi_cntr_open(domain, &cntr_attr, &other, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain, info.get(), &counted, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(counted, &counter->fid, taken), 0);
    EXPECT_EQ(fi_ep_bind(counted, &other->fid, all), -FI_EINVAL);
    EXPECT_EQ(fi_close(&other->fid), 0);
    EXPECT_EQ(fi_ep_bind(counted, &counter->fid, all), 0) << "it counts the rest, too";
    for (fid* object : {&counted->fid, &counter->fid}) EXPECT_EQ(fi_close(object), 0);
  }
  for (fid* object : {&ep->fid, &first->fid}) EXPECT_EQ(fi_close(object), 0);
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
  Node c;
  c.open(domain, info.get());
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
  // "Providers will return the actual attributes assigned to the context through the attr parameter, if provided."
  fi_tx_attr attr{};
  attr.caps = FI_MSG | FI_SEND;
  ASSERT_EQ(fi_tx_context(sep, 1, &attr, &tx, nullptr), 0);
  EXPECT_EQ(attr.caps, FI_MSG | FI_SEND);
  EXPECT_EQ(attr.inject_size, info->tx_attr->inject_size);
  EXPECT_EQ(attr.iov_limit, info->tx_attr->iov_limit);
  ASSERT_EQ(fi_ep_bind(tx, &a.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_enable(tx), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_rx_context(sep, i, nullptr, &rx[i], nullptr), 0);
    ASSERT_EQ(fi_ep_bind(rx[i], &c.cq->fid, FI_RECV), 0);
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
    EXPECT_EQ(c.next().op_context, &received[i]);
    EXPECT_EQ(received[i], sent);
    a.next();
  }
  EXPECT_EQ(fi_close(&sep->fid), -FI_EBUSY);
  for (fid* object : {&tx->fid, &rx[0]->fid, &rx[1]->fid, &rx[2]->fid, &sep->fid, &av->fid})
    EXPECT_EQ(fi_close(object), 0);
  c.close();
}

/// "Index to retrieve a specific transmit/receive context." Each is there once, and "the number of transmit contexts
/// associated with an endpoint is specified during endpoint creation"; so is that of receive contexts.
TEST_F(FiEndpoint, Contexts_are_as_many_as_were_asked_for_and_each_is_opened_once) {
  for (const std::size_t tx_count : {1, 3}) {
    const std::size_t rx_count = 4 - tx_count;
    info->ep_attr->tx_ctx_cnt = tx_count;
    info->ep_attr->rx_ctx_cnt = rx_count;
    fid_ep* sep = nullptr;
    ASSERT_EQ(fi_scalable_ep(domain, info.get(), &sep, nullptr), 0);
    std::vector<fid_ep*> opened;
    const auto open_all = [&](auto open, std::size_t count) {
      fid_ep* none = nullptr;
      for (std::size_t i = 0; i < count; ++i) {
        const int index = static_cast<int>(i);
        ASSERT_EQ(open(sep, index, &opened.emplace_back()), 0);
        EXPECT_EQ(open(sep, index, &none), -FI_EBUSY);
      }
      EXPECT_EQ(open(sep, static_cast<int>(count), &none), -FI_EINVAL);
      EXPECT_EQ(open(sep, -1, &none), -FI_EINVAL);
    };
    const auto transmit = [](fid_ep* of, int index, fid_ep** ep) {
      return fi_tx_context(of, index, nullptr, ep, nullptr);
    };
    const auto receive = [](fid_ep* of, int index, fid_ep** ep) {
      return fi_rx_context(of, index, nullptr, ep, nullptr);
    };
    open_all(transmit, tx_count);
    open_all(receive, rx_count);
    // One that was closed may be opened again.
    EXPECT_EQ(fi_close(&opened.back()->fid), 0);
    EXPECT_EQ(receive(sep, static_cast<int>(rx_count) - 1, &opened.back()), 0);
    opened.push_back(sep);
    for (fid_ep* ep : opened) EXPECT_EQ(fi_close(&ep->fid), 0);
  }
}

/// fi_rx_addr "specifies a target receive context" (fi_av(3)): one that an endpoint has not is nobody, no other
/// endpoint.
TEST_F(FiEndpoint, Context_that_an_endpoint_has_not_is_nobody) {
  fid_av* av = nullptr;
  fid_ep *sep = nullptr, *sender = nullptr;
  ASSERT_NO_FATAL_FAILURE(open_sender(4, &av, &sender));
  info->ep_attr->rx_ctx_cnt = 2;
  ASSERT_EQ(fi_scalable_ep(domain_of_b, info.get(), &sep, nullptr), 0);
  Node neighbour;
  info->ep_attr->rx_ctx_cnt = 1;
  neighbour.open(domain_of_b, info.get());
  for (const auto& [ep, count] : {std::pair{sep, 2}, std::pair{b.ep, 1}}) {
    std::array<std::byte, 64> name;
    std::size_t bytes = name.size();
    fi_addr_t to = FI_ADDR_NOTAVAIL;
    ASSERT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
    ASSERT_EQ(fi_av_insert(av, name.data(), 1, &to, 0, nullptr), 1);
    const int word = 1;
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(fi_send(sender, &word, sizeof word, nullptr, fi_rx_addr(to, i, 4), nullptr),
                i < count ? 0 : -FI_EINVAL);
  }
  neighbour.close();
  for (fid* object : {&sender->fid, &sep->fid, &av->fid}) EXPECT_EQ(fi_close(object), 0);
}

/// "FI_EDOMAIN: A resource domain was not bound to the endpoint or an attempt was made to bind multiple domains."
TEST_F(FiEndpoint, What_belongs_to_another_domain_is_not_bound) {
  fid_domain* other = nullptr;
  ASSERT_EQ(fi_domain(fabric, info.get(), &other, nullptr), 0);
  fid_cq* cq = nullptr;
  fid_cntr* cntr = nullptr;
  fid_av* av = nullptr;
  fid_ep* srx = nullptr;
  fid_stx* stx = nullptr;
  fid_ep* ep = nullptr;
  fi_cq_attr cq_attr{};
  fi_cntr_attr cntr_attr{};
  fi_av_attr av_attr{};
  ASSERT_EQ(fi_cq_open(other, &cq_attr, &cq, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(other, &cntr_attr, &cntr, nullptr), 0);
  ASSERT_EQ(fi_av_open(other, &av_attr, &av, nullptr), 0);
  ASSERT_EQ(fi_srx_context(other, info->rx_attr, &srx, nullptr), 0);
  ASSERT_EQ(fi_stx_context(other, info->tx_attr, &stx, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EDOMAIN);
  EXPECT_EQ(fi_ep_bind(ep, &cntr->fid, FI_SEND), -FI_EDOMAIN);
  for (fid* object : {&av->fid, &srx->fid, &stx->fid}) EXPECT_EQ(fi_ep_bind(ep, object, 0), -FI_EDOMAIN);
  for (fid* object : {&ep->fid, &cq->fid, &cntr->fid, &av->fid, &srx->fid, &stx->fid, &other->fid})
    EXPECT_EQ(fi_close(object), 0);
}

/// "The control argument must include FI_TRANSMIT or FI_RECV (not both)"; so must the flags of an alias.
TEST_F(FiEndpoint, Flags_are_those_of_one_direction) {
  fid_ep* alias = nullptr;
  for (const std::uint64_t wrong : std::array<std::uint64_t, 2>{0, FI_TRANSMIT | FI_RECV}) {
    std::uint64_t flags = wrong;
    EXPECT_EQ(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
    EXPECT_EQ(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
    EXPECT_EQ(fi_ep_alias(a.ep, &alias, wrong), -FI_EINVAL);
  }
  std::uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
  ASSERT_EQ(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), 0);
  flags = FI_TRANSMIT;
  ASSERT_EQ(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, FI_DELIVERY_COMPLETE);
  flags = FI_RECV;
  ASSERT_EQ(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0u);
}

/// "Operations posted without a valid context parameter ... cannot be canceled."
TEST_F(FiEndpoint, What_has_no_context_is_not_canceled) {
  int received = 0;
  const int sent = 4;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(fi_cancel(&b.ep->fid, nullptr), -FI_ENOENT);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 4);
}

/// "If multiple outstanding operations match the context parameter, only one will be canceled."
TEST_F(FiEndpoint, One_of_several_is_canceled) {
  std::array<int, 2> received{};
  const int sent = 4;
  for (int& place : received) ASSERT_EQ(fi_recv(b.ep, &place, sizeof place, nullptr, FI_ADDR_UNSPEC, &received), 0);
  ASSERT_EQ(fi_cancel(&b.ep->fid, &received), 0);
  EXPECT_EQ(b.next().err, FI_ECANCELED);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_TRUE(b.is_quiet());
}

/// fi_getinfo(3): "a provider must enable support for only those primary capabilities which were selected", and
/// modifiers are "used to limit a primary capability, such as restricting an endpoint to being send-only".
TEST_F(FiEndpoint, Has_the_calls_that_were_selected) {
  std::uint64_t word = 1;
  fid_mr* region = open_memory(&word, sizeof word, 5);
  for (const std::uint64_t caps : {FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC}) {
    Info hints = make_hints();
    hints->caps = caps;
    const Info selected = get_info(hints.get());
    ASSERT_NE(selected, nullptr);
    Node c;
    c.open(domain, selected.get());
    const fi_addr_t from_c = c.insert(b);
    const auto answer = [caps](std::uint64_t of) -> ssize_t { return caps == of ? 0 : -FI_ENOSYS; };
    EXPECT_EQ(fi_send(c.ep, &word, 8, nullptr, from_c, nullptr), answer(FI_MSG));
    EXPECT_EQ(fi_recv(c.ep, &word, 8, nullptr, FI_ADDR_UNSPEC, nullptr), answer(FI_MSG));
    EXPECT_EQ(fi_tsend(c.ep, &word, 8, nullptr, from_c, 1, nullptr), answer(FI_TAGGED));
    EXPECT_EQ(fi_write(c.ep, &word, 8, nullptr, from_c, 0, 5, nullptr), answer(FI_RMA));
    EXPECT_EQ(fi_atomic(c.ep, &word, 1, nullptr, from_c, 0, 5, FI_UINT64, FI_SUM, nullptr), answer(FI_ATOMIC));
    EXPECT_EQ(c.next().err, 0);
    c.close();
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// A message that nobody could ever receive is not kept.
TEST_F(FiEndpoint, Messages_of_a_kind_that_was_not_selected_are_refused) {
  int word = 1;
  const iovec piece{&word, sizeof word};
  for (const std::uint64_t caps : {FI_MSG, FI_TAGGED}) {
    Info hints = make_hints();
    hints->caps = caps;
    const Info selected = get_info(hints.get());
    ASSERT_NE(selected, nullptr);
    Node c;
    c.open(domain_of_b, selected.get());
    const fi_addr_t to_c = a.insert(c);
    const fi_msg msg{&piece, nullptr, 1, to_c, nullptr, 0};
    const fi_msg_tagged tagged{&piece, nullptr, 1, to_c, 1, 0, nullptr, 0};
    ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_TRANSMIT_COMPLETE), 0);
    EXPECT_EQ(a.next().err, caps == FI_MSG ? 0 : FI_ECONNREFUSED);
    ASSERT_EQ(fi_tsendmsg(a.ep, &tagged, FI_TRANSMIT_COMPLETE), 0);
    EXPECT_EQ(a.next().err, caps == FI_TAGGED ? 0 : FI_ECONNREFUSED);
    EXPECT_EQ(fi_cancel(&c.ep->fid, &word), -FI_ENOENT);
    c.close();
  }
}

TEST_F(FiEndpoint, Sends_only_or_receives_only_where_that_was_selected) {
  int word = 1;
  const iovec piece{&word, sizeof word};
  const fi_msg msg{&piece, nullptr, 1, 0, nullptr, 0};
  for (const std::uint64_t direction : {FI_SEND, FI_RECV}) {
    Info hints = make_hints();
    hints->caps = FI_MSG | direction;
    const Info selected = get_info(hints.get());
    ASSERT_NE(selected, nullptr);
    Node c;
    c.open(domain_of_b, selected.get());
    const bool sends = direction == FI_SEND;
    EXPECT_EQ(fi_send(c.ep, &word, sizeof word, nullptr, c.insert(b), nullptr), sends ? 0 : -FI_EOPBADSTATE);
    EXPECT_EQ(fi_recv(c.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), sends ? -FI_EOPBADSTATE : 0);
    fi_msg to_c = msg;
    to_c.addr = a.insert(c);
    ASSERT_EQ(fi_sendmsg(a.ep, &to_c, FI_DELIVERY_COMPLETE), 0);
    EXPECT_EQ(a.next().err != 0, sends) << "nobody can receive it";
    c.close();
  }
}

/// fi_getinfo(3): "Primary modifiers are used to limit a primary capability". A counter for FI_READ counts "an RMA
/// read, atomic fetch, or atomic compare operation" (fi_endpoint(3)), so these are what FI_READ is for.
class FiEndpointModifiers : public Fabric {
 protected:
  /// What calls say to an endpoint that is opened as `info_of_c` says.
  void expect_only(std::uint64_t allowed, fi_info& info_of_c) {
    Node c;
    c.open(domain, &info_of_c);
    const fi_addr_t from_c = c.insert(b);
    const auto answer = [allowed](std::uint64_t needed) -> ssize_t {
      return (allowed & needed) != 0 ? 0 : -FI_EOPBADSTATE;
    };
    EXPECT_EQ(fi_send(c.ep, &word, 8, nullptr, from_c, nullptr), answer(FI_SEND));
    EXPECT_EQ(fi_tsend(c.ep, &word, 8, nullptr, from_c, 1, nullptr), answer(FI_SEND));
    EXPECT_EQ(fi_recv(c.ep, &word, 8, nullptr, FI_ADDR_UNSPEC, &word), answer(FI_RECV));
    EXPECT_EQ(fi_trecv(c.ep, &word, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &word), answer(FI_RECV));
    EXPECT_EQ(fi_read(c.ep, &word, 8, nullptr, from_c, 0, 5, nullptr), answer(FI_READ));
    EXPECT_EQ(fi_write(c.ep, &word, 8, nullptr, from_c, 0, 5, nullptr), answer(FI_WRITE));
    EXPECT_EQ(fi_inject_write(c.ep, &word, 8, from_c, 0, 5), answer(FI_WRITE));
    EXPECT_EQ(fi_atomic(c.ep, &word, 1, nullptr, from_c, 0, 5, FI_UINT64, FI_SUM, nullptr), answer(FI_WRITE));
    EXPECT_EQ(fi_fetch_atomic(c.ep, &word, 1, nullptr, &word, nullptr, from_c, 0, 5, FI_UINT64, FI_SUM, nullptr),
              answer(FI_READ));
    EXPECT_EQ(fi_compare_atomic(c.ep, &word, 1, nullptr, &word, nullptr, &word, nullptr, from_c, 0, 5, FI_UINT64,
                                FI_CSWAP, nullptr),
              answer(FI_READ));
    const iovec piece{&word, 8};
    const std::array<fi_rma_iov, 2> halves{{{0, 4, 5}, {4, 4, 5}}};
    const fi_msg_rma msg{&piece, nullptr, 1, from_c, halves.data(), halves.size(), nullptr, 0};
    EXPECT_EQ(fi_readmsg(c.ep, &msg, 0), answer(FI_READ));
    EXPECT_EQ(fi_writemsg(c.ep, &msg, 0), answer(FI_WRITE));
    c.close();
  }

  static constexpr std::uint64_t kCalls = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
  std::uint64_t word = 1;
};

TEST_F(FiEndpointModifiers, Limit_what_an_endpoint_initiates) {
  std::uint64_t memory = 0;
  fid_mr* region = open_memory(&memory, sizeof memory, 5);
  // "If no modifiers are specified for an applicable capability, all relevant modifiers are assumed."
  constexpr std::uint64_t kMessages = FI_SEND | FI_RECV;
  const std::array<std::array<std::uint64_t, 2>, 6> modifiers{{{FI_SEND | FI_REMOTE_READ, FI_SEND},
                                                               {FI_RECV | FI_REMOTE_READ, FI_RECV},
                                                               {FI_READ, FI_READ | kMessages},
                                                               {FI_WRITE, FI_WRITE | kMessages},
                                                               {FI_SEND | FI_READ, FI_SEND | FI_READ},
                                                               {FI_SEND, FI_SEND | FI_READ | FI_WRITE}}};
  for (const auto& [asked, allowed] : modifiers) {
    Info hints = make_hints();
    hints->caps = kCalls | asked;
    const Info selected = get_info(hints.get());
    ASSERT_NE(selected, nullptr);
    SCOPED_TRACE(fi_tostr(&asked, FI_TYPE_CAPS));
    expect_only(allowed, *selected);
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// fi_endpoint(3), caps of a context: it "allows configuring a specific transmit context with fewer capabilities".
TEST_F(FiEndpointModifiers, Of_a_context_limit_it_further) {
  std::uint64_t memory = 0;
  fid_mr* region = open_memory(&memory, sizeof memory, 5);
  Info hints = make_hints();
  hints->caps = kCalls;
  hints->tx_attr->caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_WRITE;
  hints->rx_attr->caps = FI_RMA | FI_ATOMIC | FI_REMOTE_READ;
  const Info selected = get_info(hints.get());
  ASSERT_NE(selected, nullptr);
  expect_only(FI_SEND | FI_WRITE, *selected);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// The same, by calls: what an endpoint may do is not what each of its contexts may.
TEST_F(FiEndpointModifiers, Of_a_context_limit_its_calls) {
  Info hints = make_hints();
  hints->caps = kCalls;
  hints->tx_attr->caps = FI_MSG | FI_ATOMIC;
  hints->rx_attr->caps = FI_TAGGED;
  const Info selected = get_info(hints.get());
  ASSERT_NE(selected, nullptr);
  Node c;
  c.open(domain, selected.get());
  const fi_addr_t from_c = c.insert(b);
  EXPECT_EQ(fi_send(c.ep, &word, 8, nullptr, from_c, nullptr), 0);
  EXPECT_EQ(fi_tsend(c.ep, &word, 8, nullptr, from_c, 1, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_write(c.ep, &word, 8, nullptr, from_c, 0, 5, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_recv(c.ep, &word, 8, nullptr, FI_ADDR_UNSPEC, &word), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_trecv(c.ep, &word, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &word), 0);
  const fi_ioc items{&word, 1};
  const fi_rma_ioc remote{0, 1, 5};
  const fi_msg_atomic atomic{&items, nullptr, 1, from_c, &remote, 1, FI_UINT64, FI_SUM, nullptr, 0};
  EXPECT_EQ(fi_atomicmsg(c.ep, &atomic, FI_TAGGED), -FI_EOPBADSTATE);
  c.close();
}

/// What names none of the calls, and no direction, takes nothing of them away: "if no modifiers are specified for an
/// applicable capability, all relevant modifiers are assumed" (fi_getinfo(3)).
TEST_F(FiEndpointModifiers, Of_a_context_that_name_no_call_limit_none) {
  std::uint64_t memory = 0;
  fid_mr* region = open_memory(&memory, sizeof memory, 5);
  Info hints = make_hints();
  hints->caps = kCalls | FI_SOURCE | FI_DIRECTED_RECV | FI_FENCE;
  hints->tx_attr->caps = FI_FENCE;
  hints->rx_attr->caps = FI_SOURCE | FI_DIRECTED_RECV;
  const Info selected = get_info(hints.get());
  ASSERT_NE(selected, nullptr);
  expect_only(FI_SEND | FI_RECV | FI_READ | FI_WRITE, *selected);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// fi_getinfo(3), FI_DIRECTED_RECV: "If this capability is not set, then the src_addr parameter for msg and tagged
/// receive operations is ignored."
TEST_F(FiEndpointModifiers, Source_of_a_receive_counts_where_the_context_has_directed_receives) {
  Info hints = make_hints();
  hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
  for (const bool directed : {false, true}) {
    hints->rx_attr->caps = FI_MSG | FI_TAGGED | (directed ? FI_DIRECTED_RECV : 0);
    const Info selected = get_info(hints.get());
    ASSERT_NE(selected, nullptr);
    Node c;
    c.open(domain_of_b, selected.get());
    const fi_addr_t to_c = a.insert(c);
    const fi_addr_t nobody = 1000;
    EXPECT_EQ(fi_recv(c.ep, &word, 8, nullptr, nobody, &word), directed ? -FI_EINVAL : 0);
    EXPECT_EQ(fi_trecv(c.ep, &word, 8, nullptr, nobody, 1, 0, &word), directed ? -FI_EINVAL : 0);
    if (!directed) {
      const std::uint64_t sent = 7;
      ASSERT_EQ(fi_tinject(a.ep, &sent, 8, to_c, 1), 0);
      EXPECT_EQ(c.next().op_context, &word);
    }
    c.close();
  }
}

/// Deferred work is by another door what the calls are.
TEST_F(FiEndpointModifiers, Limit_deferred_work_too) {
  Info hints = make_hints();
  hints->caps = FI_MSG | FI_TRIGGER;
  const Info selected = get_info(hints.get());
  ASSERT_NE(selected, nullptr);
  Node c;
  c.open(domain, selected.get());
  fid_cntr* starts = open_cntr(domain);
  const iovec piece{&word, 8};
  fi_op_tagged sent{};
  sent.ep = c.ep;
  sent.msg = {&piece, nullptr, 1, c.insert(b), 1, 0, nullptr, 0};
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = starts;
  work.op_type = FI_OP_TSEND;
  work.op.tagged = &sent;
  EXPECT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &work), -FI_EOPBADSTATE);
  work.op_type = FI_OP_TRECV;
  EXPECT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &work), -FI_EOPBADSTATE);
  c.close();
}

TEST_F(FiEndpointModifiers, Of_a_shared_context_limit_its_calls) {
  fi_rx_attr attr = *info->rx_attr;
  attr.caps = FI_MSG | FI_RECV;
  fid_ep* srx = nullptr;
  ASSERT_EQ(fi_srx_context(domain, &attr, &srx, nullptr), 0);
  EXPECT_EQ(fi_recv(srx, &word, 8, nullptr, FI_ADDR_UNSPEC, &word), 0);
  EXPECT_EQ(fi_trecv(srx, &word, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &word), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&srx->fid), 0);
}

/// A context of another provider (fi_peer(3)) is none of its own.
TEST_F(FiEndpoint, Receives_of_another_provider_are_not_imported) {
  fi_rx_attr attr{};
  fid_ep* srx = nullptr;
  attr.op_flags = FI_PEER;
  EXPECT_EQ(fi_srx_context(domain, &attr, &srx, nullptr), -FI_EBADFLAGS);
}

/// Completion levels that the provider has not are no weaker ones, and an address is none of a group.
TEST_F(FiEndpoint, Flags_that_mean_more_than_it_does_are_refused) {
  int word = 1;
  const iovec piece{&word, sizeof word};
  const fi_msg_tagged msg{&piece, nullptr, 1, to_b, 3, 0, nullptr, 0};
  for (const std::uint64_t flag : {FI_MATCH_COMPLETE, FI_COMMIT_COMPLETE, FI_MULTICAST})
    EXPECT_EQ(fi_tsendmsg(a.ep, &msg, flag), -FI_EBADFLAGS);
  EXPECT_TRUE(a.is_quiet());
}

/// fi_cq(3), FI_TRANSMIT_COMPLETE of reliable endpoints: "Indicates that a completion should be generated when the
/// operation has been delivered to the peer endpoint." One that is closed gets nothing.
TEST_F(FiEndpoint, Transmit_complete_is_said_of_what_the_peer_has) {
  int word = 1;
  const iovec piece{&word, sizeof word};
  Node c;
  c.open(domain_of_b, info.get());
  const fi_msg msg{&piece, nullptr, 1, a.insert(c), &word, 0};
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_TRANSMIT_COMPLETE), 0);
  EXPECT_EQ(a.next().err, 0) << "nobody need have received it";
  c.close();
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_TRANSMIT_COMPLETE), 0);
  const Completion failed = a.next();
  EXPECT_EQ(failed.err, FI_ECONNREFUSED);
  EXPECT_EQ(failed.op_context, &word);
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_INJECT_COMPLETE), 0);
  EXPECT_EQ(a.next().err, 0) << "the buffer may be used again";
}

}  // namespace
}  // namespace portofu::test
