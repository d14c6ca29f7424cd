// fi_getinfo(3): what an application gets for what it asks.

#include <arpa/inet.h>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

TEST(FiGetinfo, Says_what_the_provider_can_do) {
  const Info info = get_info(make_hints().get());
  ASSERT_NE(info, nullptr);
  const std::uint64_t wanted = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_MULTI_RECV |
                               FI_RMA_EVENT | FI_SOURCE | FI_FENCE | FI_TRIGGER | FI_LOCAL_COMM | FI_REMOTE_COMM;
  EXPECT_EQ(info->caps & wanted, wanted);
  EXPECT_EQ(info->mode, 0u);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  EXPECT_GE(info->tx_attr->inject_size, 4096u);
  EXPECT_EQ(info->domain_attr->cq_data_size, 8u);
  EXPECT_STREQ(info->fabric_attr->prov_name, "portofu");
  EXPECT_EQ(info->next, nullptr);
}

TEST(FiGetinfo, Capabilities_that_are_asked_for_come_with_their_directions) {
  Info hints = make_hints();
  hints->caps = FI_TAGGED;
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->caps & (FI_TAGGED | FI_SEND | FI_RECV), FI_TAGGED | FI_SEND | FI_RECV);
  EXPECT_EQ(info->caps & (FI_RMA | FI_ATOMIC), 0u);
}

TEST(FiGetinfo, What_is_not_there_is_not_found) {
  const auto is_refused = [](auto change) {
    Info hints = make_hints();
    change(*hints);
    int result = 0;
    get_info(hints.get(), &result);
    return result == -FI_ENODATA;
  };
  EXPECT_TRUE(is_refused([](fi_info& hints) { hints.caps = FI_MULTICAST; }));
  EXPECT_TRUE(is_refused([](fi_info& hints) { hints.ep_attr->type = FI_EP_MSG; }));
  EXPECT_TRUE(is_refused([](fi_info& hints) { hints.addr_format = FI_SOCKADDR_IN6; }));
  EXPECT_TRUE(is_refused([](fi_info& hints) { hints.tx_attr->inject_size = std::size_t{1} << 40; }));
  EXPECT_TRUE(is_refused([](fi_info& hints) { hints.domain_attr->cq_data_size = 16; }));
}

TEST(FiGetinfo, Old_modes_of_memory_are_as_asked) {
  Info hints = make_hints();
  hints->domain_attr->mr_mode = FI_MR_BASIC;
  const Info basic = get_info(hints.get());
  ASSERT_NE(basic, nullptr);
  EXPECT_EQ(basic->domain_attr->mr_mode, FI_MR_BASIC);
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL | FI_MR_ENDPOINT;
  const Info none = get_info(hints.get());
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->domain_attr->mr_mode, 0);
}

/// What is given must be enough for what then happens: so much may be asked for, and no more.
TEST(FiGetinfo, Most_that_a_domain_takes_is_not_exceeded) {
  const Info all = get_info(make_hints().get());
  ASSERT_NE(all, nullptr);
  for (std::size_t fi_domain_attr::*const field :
       {&fi_domain_attr::ep_cnt, &fi_domain_attr::max_ep_tx_ctx, &fi_domain_attr::max_ep_rx_ctx,
        &fi_domain_attr::mr_iov_limit, &fi_domain_attr::mr_key_size, &fi_domain_attr::cq_data_size,
        &fi_domain_attr::cq_cnt, &fi_domain_attr::cntr_cnt, &fi_domain_attr::mr_cnt, &fi_domain_attr::tx_ctx_cnt,
        &fi_domain_attr::rx_ctx_cnt, &fi_domain_attr::max_ep_stx_ctx, &fi_domain_attr::max_ep_srx_ctx,
        &fi_domain_attr::max_err_data}) {
    Info hints = make_hints();
    hints->domain_attr->*field = all->domain_attr->*field;
    EXPECT_NE(get_info(hints.get()), nullptr);
    ++(hints->domain_attr->*field);
    EXPECT_EQ(get_info(hints.get()), nullptr);
  }
}

TEST(FiGetinfo, Node_and_service_become_addresses) {
  const Info info = get_info(make_hints().get(), nullptr, "127.0.0.1", "4711");
  ASSERT_NE(info, nullptr);
  EXPECT_NE(info->dest_addr, nullptr);
  EXPECT_GT(info->dest_addrlen, 0u);
  const Info source = get_info(make_hints().get(), nullptr, nullptr, "4711", FI_SOURCE);
  ASSERT_NE(source, nullptr);
  EXPECT_NE(source->src_addr, nullptr);
  int result = 0;
  get_info(make_hints().get(), &result, "127.0.0.1", "no_number");
  EXPECT_EQ(result, -FI_ENODATA);
}

TEST(FiGetinfo, What_was_given_is_given_again) {
  const Info all = get_info(make_hints().get());
  const Info again = get_info(all.get());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->ep_attr->protocol, all->ep_attr->protocol);
  Info hints = make_hints();
  hints->ep_attr->protocol = FI_PROTO_RXM;
  EXPECT_EQ(get_info(hints.get()), nullptr);
}

TEST(FiGetinfo, Target_of_the_hints_stays_when_the_source_is_named) {
  const Info target = get_info(make_hints().get(), nullptr, "127.0.0.1", "4711");
  ASSERT_NE(target, nullptr);
  const Info both = get_info(target.get(), nullptr, nullptr, "4712", FI_SOURCE);
  ASSERT_NE(both, nullptr);
  ASSERT_EQ(both->dest_addrlen, target->dest_addrlen);
  EXPECT_EQ(std::memcmp(both->dest_addr, target->dest_addr, both->dest_addrlen), 0);
  EXPECT_NE(both->src_addr, nullptr);
}

sockaddr_in internet_address(const char* host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
  return address;
}

TEST(FiGetinfo, Internet_addresses_are_for_who_asks_for_them) {
  for (const std::uint32_t format : {FI_SOCKADDR, FI_SOCKADDR_IN}) {
    Info hints = make_hints();
    hints->addr_format = format;
    const Info info = get_info(hints.get(), nullptr, "10.1.1.1", "5000");
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->addr_format, std::uint32_t{FI_SOCKADDR_IN});
    sockaddr_in target{};
    ASSERT_EQ(info->dest_addrlen, sizeof target);
    std::memcpy(&target, info->dest_addr, sizeof target);
    EXPECT_EQ(target.sin_family, AF_INET);
    EXPECT_EQ(ntohs(target.sin_port), 5000);
    EXPECT_EQ(target.sin_addr.s_addr, internet_address("10.1.1.1", 0).sin_addr.s_addr);
  }
  EXPECT_NE(get_info(make_hints().get())->addr_format, std::uint32_t{FI_SOCKADDR_IN});
}

/// What becomes of a target that the hints bring.
template <class Foreign>
Info bring_target(const Foreign& address, int* result = nullptr) {
  Info hints = make_hints();
  hints->dest_addr = std::malloc(sizeof address);
  hints->dest_addrlen = sizeof address;
  std::memcpy(hints->dest_addr, &address, sizeof address);
  return get_info(hints.get(), result);
}

TEST(FiGetinfo, Addresses_of_the_hints_are_read_or_refused) {
  const Info ours = get_info(make_hints().get(), nullptr, "10.1.1.1", "5000");
  const Info read = bring_target(internet_address("10.1.1.1", 5000));
  ASSERT_NE(read, nullptr);
  ASSERT_EQ(read->dest_addrlen, ours->dest_addrlen);
  EXPECT_EQ(std::memcmp(read->dest_addr, ours->dest_addr, ours->dest_addrlen), 0);
  int result = 0;
  EXPECT_EQ(bring_target(std::array<char, 16>{1, 2, 3}, &result), nullptr);
  EXPECT_EQ(result, -FI_ENODATA);
  EXPECT_EQ(bring_target(sockaddr_in6{}, &result), nullptr);
  EXPECT_EQ(result, -FI_ENODATA);
}

TEST(FiGetinfo, Vectors_may_be_shared) {
  Info hints = make_hints();
  hints->domain_attr->caps = FI_SHARED_AV;
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->caps & FI_SHARED_AV, FI_SHARED_AV);
}

TEST(FiGetinfo, Settings_are_documented) {
  get_info(make_hints().get());
  fi_param* params = nullptr;
  int count = 0;
  ASSERT_EQ(fi_getparams(&params, &count), 0);
  int found = 0;
  for (int i = 0; i < count; ++i) {
    if (std::string(params[i].name) != "FI_PORTOFU_UNEXPECTED_MIB") continue;
    ++found;
    EXPECT_EQ(params[i].type, FI_PARAM_INT);
    EXPECT_NE(std::string(params[i].help_string).find("256"), std::string::npos) << params[i].help_string;
  }
  EXPECT_EQ(found, 1);
  fi_freeparams(params);
}

/// The NID of a host, as a process sees it that has a NID of the loopback network. It is asked of the second copy of
/// the provider: the first may have looked for its own NID already.
std::uint32_t nid_seen_on_loopback(const char* host) {
  setenv("PORTOFU_NID", "127.9.0.1", 1);
  fi_info* found = nullptr;
  std::uint32_t nid = 0;
  if (second_provider()->getinfo(FI_VERSION(1, 17), host, "4711", 0, nullptr, &found) == 0)
    std::memcpy(&nid, found->dest_addr, sizeof nid);
  fi_freeinfo(found);
  unsetenv("PORTOFU_NID");
  return nid;
}

TEST(FiGetinfo, Nodes_of_one_machine_are_told_apart) {
  EXPECT_EQ(nid_seen_on_loopback("127.9.0.2"), 0x7f09'0002u);
  EXPECT_EQ(nid_seen_on_loopback("127.0.0.1"), 0x7f09'0001u) << "this node";
}

/// "Must be paired with FI_SOURCE" and "requires that FI_RMA and/or FI_ATOMIC be set" are said of what is asked for;
/// what is not there is refused in each place.
TEST(FiGetinfo, Attributes_that_ask_for_more_are_refused) {
  const auto is_found = [](auto change) {
    Info hints = make_hints();
    change(*hints);
    return get_info(hints.get()) != nullptr;
  };
  EXPECT_TRUE(is_found([](fi_info& hints) { hints.ep_attr->protocol_version = 1; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.ep_attr->protocol_version = 2; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.caps = FI_MSG | FI_HMEM; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.tx_attr->comp_order = FI_ORDER_STRICT; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.rx_attr->comp_order = FI_ORDER_STRICT; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.tx_attr->op_flags = FI_MATCH_COMPLETE; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.tx_attr->iov_limit = 1000; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.tx_attr->rma_iov_limit = 1000; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.rx_attr->iov_limit = 1000; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.ep_attr->msg_prefix_size = 8; }));
  EXPECT_FALSE(is_found([](fi_info& hints) { hints.ep_attr->max_msg_size = SIZE_MAX; }));
}

/// "Specifying a non-zero value for input hints indicates that a provider must support the requested value or fail the
/// operation with -FI_ENODATA."
TEST(FiGetinfo, Values_that_no_enumeration_has_are_refused) {
  const auto is_found = [](auto fi_domain_attr::*field, auto value) {
    Info hints = make_hints();
    hints->domain_attr->*field = value;
    return get_info(hints.get()) != nullptr;
  };
  const auto next = [](auto last) { return static_cast<decltype(last)>(static_cast<int>(last) + 1); };
  EXPECT_TRUE(is_found(&fi_domain_attr::threading, FI_THREAD_ENDPOINT));
  EXPECT_FALSE(is_found(&fi_domain_attr::threading, next(FI_THREAD_ENDPOINT)));
  for (fi_progress fi_domain_attr::*const field : {&fi_domain_attr::control_progress, &fi_domain_attr::data_progress}) {
    EXPECT_TRUE(is_found(field, FI_PROGRESS_MANUAL));
    EXPECT_FALSE(is_found(field, next(FI_PROGRESS_MANUAL)));
  }
  EXPECT_TRUE(is_found(&fi_domain_attr::resource_mgmt, FI_RM_ENABLED));
  EXPECT_FALSE(is_found(&fi_domain_attr::resource_mgmt, next(FI_RM_ENABLED)));
  EXPECT_TRUE(is_found(&fi_domain_attr::av_type, FI_AV_TABLE));
  EXPECT_FALSE(is_found(&fi_domain_attr::av_type, next(FI_AV_TABLE)));
}

/// fi_domain(3) of libfabric 1.20 has one more: FI_PROGRESS_CONTROL_UNIFIED. It asks for less than there is.
TEST(FiGetinfo, Progress_of_later_releases_is_for_those_who_know_it) {
  const auto found_by = [](std::uint32_t version, fi_progress fi_domain_attr::*field) {
    Info hints = make_hints();
    hints->domain_attr->*field = static_cast<fi_progress>(FI_PROGRESS_MANUAL + 1);
    fi_info* found = nullptr;
    const int result = second_provider()->getinfo(version, nullptr, nullptr, 0, hints.get(), &found);
    return result == 0 ? Info(found) : nullptr;
  };
  const Info unified = found_by(FI_VERSION(1, 20), &fi_domain_attr::control_progress);
  ASSERT_NE(unified, nullptr);
  EXPECT_EQ(unified->domain_attr->control_progress, static_cast<fi_progress>(FI_PROGRESS_MANUAL + 1));
  EXPECT_NE(found_by(FI_VERSION(2, 0), &fi_domain_attr::control_progress), nullptr);
  EXPECT_EQ(found_by(FI_VERSION(1, 19), &fi_domain_attr::control_progress), nullptr);
  EXPECT_EQ(found_by(FI_VERSION(2, 0), &fi_domain_attr::data_progress), nullptr);
}

/// fi_endpoint(3): FI_TC_BEST_EFFORT "is the default in the absence of any other local or fabric configuration", and
/// FI_TC_UNSPEC is that of the domain. There is no other class.
/// Unspecified it is "the default traffic class associated with the domain", and there "best effort ... in the absence
/// of any other configuration". Of what has a name, programs ask for what they are: latency, or bulk data.
TEST(FiGetinfo, Traffic_is_of_the_class_that_is_asked_for) {
  const auto found_for = [](std::uint32_t of_context, std::uint32_t of_domain) {
    Info hints = make_hints();
    hints->tx_attr->tclass = of_context;
    hints->domain_attr->tclass = of_domain;
    return get_info(hints.get());
  };
  const Info unspecified = found_for(FI_TC_UNSPEC, FI_TC_UNSPEC);
  ASSERT_NE(unspecified, nullptr);
  EXPECT_EQ(unspecified->tx_attr->tclass, std::uint32_t{FI_TC_BEST_EFFORT});
  EXPECT_EQ(unspecified->domain_attr->tclass, std::uint32_t{FI_TC_BEST_EFFORT});
  for (const std::uint32_t asked : {FI_TC_BEST_EFFORT, FI_TC_LOW_LATENCY, FI_TC_DEDICATED_ACCESS, FI_TC_BULK_DATA,
                                    FI_TC_SCAVENGER, FI_TC_NETWORK_CTRL}) {
    const Info of_context = found_for(asked, FI_TC_UNSPEC);
    const Info of_domain = found_for(FI_TC_UNSPEC, asked);
    ASSERT_TRUE(of_context != nullptr && of_domain != nullptr) << asked;
    EXPECT_EQ(of_context->tx_attr->tclass, asked);
    EXPECT_EQ(of_context->domain_attr->tclass, std::uint32_t{FI_TC_BEST_EFFORT});
    EXPECT_EQ(of_domain->tx_attr->tclass, asked);
    EXPECT_EQ(of_domain->domain_attr->tclass, asked);
  }
  for (const std::uint32_t asked : {std::uint32_t{FI_TC_NETWORK_CTRL} + 1, fi_tc_dscp_set(8), std::uint32_t{1}}) {
    EXPECT_EQ(found_for(asked, 0), nullptr) << asked;
    EXPECT_EQ(found_for(0, asked), nullptr) << asked;
  }
}

/// fi_getinfo(3): FI_READ, FI_WRITE and the remote ones each "requires that FI_RMA and/or FI_ATOMIC be set", and
/// FI_RMA_EVENT "that FI_REMOTE_READ and/or FI_REMOTE_WRITE be enabled".
TEST(FiGetinfo, Capabilities_that_require_others_are_refused_without_them) {
  const auto result_of = [](std::uint64_t caps) {
    Info hints = make_hints();
    hints->caps = caps;
    int result = 0;
    get_info(hints.get(), &result);
    return result;
  };
  for (const std::uint64_t modifier : {FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE}) {
    EXPECT_EQ(result_of(modifier), -FI_ENODATA);
    EXPECT_EQ(result_of(FI_MSG | FI_TAGGED | modifier), -FI_ENODATA);
    EXPECT_EQ(result_of(FI_RMA | modifier), 0);
    EXPECT_EQ(result_of(FI_ATOMIC | modifier), 0);
  }
  EXPECT_EQ(result_of(FI_RMA_EVENT), -FI_ENODATA);
  EXPECT_EQ(result_of(FI_MSG | FI_RMA_EVENT), -FI_ENODATA);
  EXPECT_EQ(result_of(FI_RMA | FI_READ | FI_RMA_EVENT), -FI_ENODATA);
  EXPECT_EQ(result_of(FI_RMA | FI_RMA_EVENT), 0);
  EXPECT_EQ(result_of(FI_ATOMIC | FI_REMOTE_WRITE | FI_RMA_EVENT), 0);
}

/// fi_getinfo(3), FI_SOURCE: "If specified, either the node and/or service parameter must be non-NULL."
TEST(FiGetinfo, Source_has_a_node_or_a_service) {
  const Info hints = make_hints();
  int result = 0;
  EXPECT_EQ(get_info(hints.get(), &result, nullptr, nullptr, FI_SOURCE), nullptr);
  EXPECT_EQ(result, -FI_ENODATA);
  EXPECT_NE(get_info(hints.get(), &result, "127.0.0.1", nullptr, FI_SOURCE), nullptr);
  EXPECT_NE(get_info(hints.get(), &result, nullptr, "4711", FI_SOURCE), nullptr);
}

/// As with sockets: who binds to 0.0.0.0 takes what this node has. Nobody else is there.
TEST(FiGetinfo, Source_of_any_node_is_this_one) {
  const auto nid_of = [](const void* bytes) {
    sockaddr_in address{};
    std::memcpy(&address, bytes, sizeof address);
    return address.sin_addr.s_addr;
  };
  Info hints = make_hints();
  hints->addr_format = FI_SOCKADDR_IN;
  const Info own = get_info(hints.get());
  const Info named = get_info(hints.get(), nullptr, "0.0.0.0", "4711", FI_SOURCE);
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(nid_of(named->src_addr), nid_of(own->src_addr));
  int result = 0;
  EXPECT_EQ(get_info(hints.get(), &result, "0.0.0.0", "4711"), nullptr);
  EXPECT_EQ(result, -FI_ENODATA);
  auto* any = static_cast<sockaddr_in*>(std::malloc(sizeof(sockaddr_in)));
  *any = internet_address("0.0.0.0", 4712);
  hints->src_addr = any;
  hints->src_addrlen = sizeof *any;
  const Info given = get_info(hints.get());
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(nid_of(given->src_addr), nid_of(own->src_addr));
  any->sin_family = AF_INET6;
  EXPECT_EQ(get_info(hints.get()), nullptr);
}

/// fi_endpoint(3), caps of a context: "The capabilities must be a subset of those requested of the associated
/// endpoint."
TEST(FiGetinfo, Capabilities_of_a_context_are_those_of_its_endpoint) {
  Info hints = make_hints();
  hints->caps = FI_MSG;
  hints->tx_attr->caps = FI_MSG | FI_SEND;
  hints->rx_attr->caps = FI_MSG | FI_RECV;
  EXPECT_NE(get_info(hints.get()), nullptr);
  hints->tx_attr->caps = FI_MSG | FI_TAGGED;
  EXPECT_EQ(get_info(hints.get()), nullptr);
  hints->tx_attr->caps = 0;
  hints->rx_attr->caps = FI_RMA;
  EXPECT_EQ(get_info(hints.get()), nullptr);
}

/// "auth_key_size: This field is ignored unless the fabric is opened with API version 1.5 or greater."
TEST(FiGetinfo, Callers_before_1_5_have_no_keys_and_two_modes_of_memory) {
  const Info hints = make_hints();
  hints->ep_attr->auth_key_size = hints->domain_attr->auth_key_size = 8;
  fi_info* found = nullptr;
  EXPECT_EQ(fi_getinfo(FI_VERSION(1, 5), nullptr, nullptr, 0, hints.get(), &found), -FI_ENODATA);
  for (const int mode : {FI_MR_UNSPEC, FI_MR_BASIC, FI_MR_SCALABLE}) {
    hints->domain_attr->mr_mode = mode;
    ASSERT_EQ(fi_getinfo(FI_VERSION(1, 4), nullptr, nullptr, 0, hints.get(), &found), 0);
    EXPECT_EQ(found->domain_attr->mr_mode, mode == FI_MR_UNSPEC ? FI_MR_SCALABLE : mode);
    EXPECT_EQ(found->fabric_attr->api_version, FI_VERSION(1, 4));
    fi_freeinfo(found);
  }
  hints->ep_attr->auth_key_size = hints->domain_attr->auth_key_size = 0;  // No key is to be freed.
}

/// fi_fabric(3): "On input to fi_getinfo, a user may set this to an opened fabric instance to restrict output to the
/// given fabric. On output from fi_getinfo, if no fabric was specified, but the user has an opened instance of the
/// named fabric, this will reference the first opened instance." fi_domain(3) says the same of domains.
TEST(FiGetinfo, Names_what_is_open) {
  const Info none = get_info(make_hints().get());
  EXPECT_EQ(none->fabric_attr->fabric, nullptr);
  EXPECT_EQ(none->domain_attr->domain, nullptr);
  std::array<fid_fabric*, 2> fabrics{};
  std::array<fid_domain*, 2> domains{};
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_fabric(none->fabric_attr, &fabrics[i], nullptr), 0);
    ASSERT_EQ(fi_domain(fabrics[i], none.get(), &domains[i], nullptr), 0);
  }
  const Info first = get_info(make_hints().get());
  EXPECT_EQ(first->fabric_attr->fabric, fabrics[0]);
  EXPECT_EQ(first->domain_attr->domain, domains[0]);
  Info hints = make_hints();
  hints->fabric_attr->fabric = fabrics[1];
  EXPECT_EQ(get_info(hints.get())->fabric_attr->fabric, fabrics[1]);
  EXPECT_EQ(get_info(hints.get())->domain_attr->domain, domains[1]) << "the first one of this fabric";
  hints->domain_attr->domain = domains[0];
  EXPECT_EQ(get_info(hints.get()), nullptr) << "it is not of that fabric";
  hints->domain_attr->domain = domains[1];
  EXPECT_EQ(get_info(hints.get())->domain_attr->domain, domains[1]);
  hints->fabric_attr->fabric = nullptr;
  EXPECT_EQ(get_info(hints.get())->fabric_attr->fabric, fabrics[1]) << "that of the domain";
  fid_domain of_another_provider{};
  hints->domain_attr->domain = &of_another_provider;
  EXPECT_EQ(get_info(hints.get()), nullptr);
  fid_fabric another_provider{};
  hints->domain_attr->domain = nullptr;
  hints->fabric_attr->fabric = &another_provider;
  EXPECT_EQ(get_info(hints.get()), nullptr);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fi_close(&domains[i]->fid), 0);
    EXPECT_EQ(fi_close(&fabrics[i]->fid), 0);
  }
  EXPECT_EQ(get_info(make_hints().get())->fabric_attr->fabric, nullptr);
}

/// "Applications may also pass in an FI_ADDR_STR formatted address as the node parameter. In such cases, the service
/// parameter must be NULL."
TEST(FiGetinfo, Node_may_be_a_whole_address) {
  const Info apart = get_info(make_hints().get(), nullptr, "10.1.1.1", "5000");
  for (const char* whole :
       {"fi_sockaddr_in://10.1.1.1:5000", "fi_sockaddr://10.1.1.1:5000", "fi_sockaddr_in://10.1.1.1:5000?qos=3"}) {
    const Info info = get_info(make_hints().get(), nullptr, whole);
    ASSERT_NE(info, nullptr) << whole;
    ASSERT_EQ(info->dest_addrlen, apart->dest_addrlen);
    EXPECT_EQ(std::memcmp(info->dest_addr, apart->dest_addr, info->dest_addrlen), 0) << whole;
    EXPECT_EQ(get_info(make_hints().get(), nullptr, whole, "5000"), nullptr);
  }
  EXPECT_EQ(get_info(make_hints().get(), nullptr, "fi_sockaddr_in6://[::1]:5000"), nullptr);
}

TEST(FiGetinfo, Duplicate_is_a_copy_of_all) {
  const Info info = get_info(make_hints().get(), nullptr, "10.1.1.1", "5000");
  const Info copy(fi_dupinfo(info.get()));
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy->dest_addr, info->dest_addr);
  EXPECT_EQ(std::memcmp(copy->dest_addr, info->dest_addr, info->dest_addrlen), 0);
  EXPECT_STREQ(copy->domain_attr->name, info->domain_attr->name);
  EXPECT_NE(copy->domain_attr->name, info->domain_attr->name);
  EXPECT_NE(get_info(copy.get()), nullptr);
}

}  // namespace
}  // namespace portofu::test
