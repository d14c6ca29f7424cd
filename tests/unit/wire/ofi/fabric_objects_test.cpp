#include "engine/wire/ofi/fabric_objects.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/unit/wire/ofi/raw_endpoint.h"

namespace portofu {
namespace {

constexpr std::uint64_t kMessages = FI_MSG | FI_SOURCE;

/// libfabric as the engine loads it.
const FabricLibrary& library() {
  std::string why;
  const FabricLibrary* const loaded = FabricLibrary::load(&why);
  if (loaded == nullptr) throw std::runtime_error(why);
  return *loaded;
}

/// What a provider offers for an endpoint of a node.
struct Offer {
  explicit Offer(std::uint32_t nid) {
    const FabricHints hints(library(), FI_EP_RDM, kMessages, "");
    EXPECT_EQ(hints.find(nid, fabric_port(), &info), 0);
  }
  ~Offer() {
    if (info != nullptr) library().freeinfo(info);
  }

  fi_info* info = nullptr;
};

TEST(FabricHints, Hints__ask_for_IPv4_one_thread_and_progress_by_calls) {
  const FabricHints hints(library(), FI_EP_DGRAM, kMessages, "udp");
  ASSERT_NE(hints.info, nullptr);
  EXPECT_EQ(hints.info->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(hints.info->caps, kMessages);
  EXPECT_EQ(hints.info->addr_format, static_cast<std::uint32_t>(FI_SOCKADDR_IN));
  EXPECT_EQ(hints.info->domain_attr->threading, FI_THREAD_DOMAIN);
  EXPECT_EQ(hints.info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(hints.info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
  EXPECT_STREQ(hints.info->fabric_attr->prov_name, "udp");
  const FabricHints any(library(), FI_EP_RDM, kMessages, "");
  EXPECT_EQ(any.info->fabric_attr->prov_name, nullptr);
}

TEST(FabricHints, Found__is_an_endpoint_at_the_address) {
  const Offer offer(kNodeA);
  ASSERT_NE(offer.info, nullptr);
  EXPECT_EQ(offer.info->ep_attr->type, FI_EP_RDM);
  ASSERT_EQ(offer.info->src_addrlen, sizeof(sockaddr_in));
  sockaddr_in address;
  std::memcpy(&address, offer.info->src_addr, sizeof address);
  EXPECT_EQ(ntohl(address.sin_addr.s_addr), kNodeA);
  EXPECT_EQ(ntohs(address.sin_port), fabric_port());
}

TEST(FabricHints, Provider_that_is_not_there__is_not_found) {
  const FabricHints hints(library(), FI_EP_RDM, kMessages, "nothing-of-this-name");
  fi_info* found = nullptr;
  EXPECT_EQ(hints.find(kNodeA, fabric_port(), &found), -FI_ENODATA);
}

/// A libfabric that offers what the test says: providers by their names, in this order.
struct PlayedLibrary {
  explicit PlayedLibrary(std::vector<std::string> providers) : calls(library()) {
    names = std::move(providers);
    freed.clear();
    calls.getinfo = [](auto, auto, auto, auto, auto, fi_info** found) {
      for (auto name = names.rbegin(); name != names.rend(); ++name) {
        fi_info* made = library().dupinfo(nullptr);
        made->fabric_attr->prov_name = strdup(name->c_str());
        made->next = *found;
        *found = made;
      }
      return 0;
    };
    calls.freeinfo = [](fi_info* info) {
      for (const fi_info* one = info; one != nullptr; one = one->next) {
        const char* const name = one->fabric_attr->prov_name;
        if (name != nullptr) freed.emplace_back(name);
      }
      library().freeinfo(info);
    };
  }

  FabricLibrary calls;
  static inline std::vector<std::string> names;
  static inline std::vector<std::string> freed;
};

// Packets of the engine must not go by the provider that stands on it.
TEST(FabricHints, Own_provider__is_left_out) {
  const PlayedLibrary played({"portofu", "portofu", "other", "portofu"});
  const FabricHints hints(played.calls, FI_EP_RDM, kMessages, "");
  fi_info* found = nullptr;
  ASSERT_EQ(hints.find(kNodeA, fabric_port(), &found), 0);
  ASSERT_NE(found, nullptr);
  EXPECT_STREQ(found->fabric_attr->prov_name, "other");
  EXPECT_EQ(played.freed, (std::vector<std::string>{"portofu", "portofu"}));
  library().freeinfo(found);
}

TEST(FabricHints, Own_provider_alone__is_none) {
  const PlayedLibrary played({"portofu"});
  const FabricHints hints(played.calls, FI_EP_RDM, kMessages, "");
  fi_info* found = nullptr;
  EXPECT_EQ(hints.find(kNodeA, fabric_port(), &found), -FI_ENODATA);
  EXPECT_EQ(found, nullptr);
}

class FabricObjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_TRUE(objects.open(library(), offer.info, 64, &why)) << why;
  }
  ~FabricObjectsTest() override {
    objects.close_endpoint();
    objects.close();
  }

  Offer offer{kNodeA};
  FabricObjects objects;
};

TEST_F(FabricObjectsTest, Open__has_all_and_a_descriptor_to_wait_at) {
  EXPECT_TRUE(objects.fabric != nullptr && objects.domain != nullptr && objects.addresses != nullptr);
  EXPECT_TRUE(objects.completions != nullptr && objects.endpoint != nullptr);
  EXPECT_GE(objects.wait_fd, 0);
  EXPECT_TRUE(eventually([this] { return objects.may_sleep(); })) << "nothing is there to be read";
}

TEST_F(FabricObjectsTest, Addresses__are_told_apart) {
  const fi_addr_t one = objects.insert(kNodeB, fabric_port());
  const fi_addr_t other = objects.insert(kNodeB, static_cast<std::uint16_t>(fabric_port() + 1));
  EXPECT_NE(one, FI_ADDR_NOTAVAIL);
  EXPECT_NE(other, FI_ADDR_NOTAVAIL);
  EXPECT_NE(one, other);
}

TEST_F(FabricObjectsTest, Endpoint__is_bound_to_its_completions) {
  RawEndpoint peer(kNodeB);
  const fi_addr_t to = objects.insert(kNodeB, fabric_port());
  char text[] = "hello";
  fi_context2 context{};
  ASSERT_TRUE(eventually([&] {
    peer.look();
    fi_cq_msg_entry entry;
    (void)fi_cq_read(objects.completions, &entry, 0);
    return fi_send(objects.endpoint, text, sizeof text, nullptr, to, &context) == 0;
  }));
  fi_cq_msg_entry entry{};
  ASSERT_TRUE(eventually([&] {
    peer.look();
    return fi_cq_read(objects.completions, &entry, 1) == 1;
  }));
  EXPECT_EQ(entry.op_context, &context) << "in the format of messages";
  EXPECT_TRUE(eventually([&] {
    peer.look();
    return peer.arrived.size() == 1;
  }));
}

TEST_F(FabricObjectsTest, Endpoint__is_closed_once) {
  objects.close_endpoint();
  EXPECT_EQ(objects.endpoint, nullptr);
  objects.close_endpoint();
}

// The kernel has given the address to somebody else.
TEST_F(FabricObjectsTest, Address_that_is_taken__is_a_sentence_with_the_call) {
  FabricObjects second;
  std::string why;
  EXPECT_FALSE(second.open(library(), offer.info, 64, &why));
  EXPECT_NE(why.find(" of " + std::string(offer.info->fabric_attr->prov_name) + " failed: "), std::string::npos) << why;
  second.close_endpoint();
  second.close();
}

TEST(FabricObject, None__is_closed_without_harm) { close_fabric_object(nullptr); }

}  // namespace
}  // namespace portofu
