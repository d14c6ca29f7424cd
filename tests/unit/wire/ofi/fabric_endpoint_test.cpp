#include "engine/wire/ofi/fabric_endpoint.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/unit/wire/ofi/raw_endpoint.h"

namespace portofu {
namespace {

class FabricEndpointTest : public testing::Test {
 protected:
  FabricEndpointTest() {
    a.meanwhile = [this] { b.look(); };
  }

  /// Lets both make progress until `done`.
  bool together(const std::function<bool()>& done) {
    return eventually([&] {
      a.look();
      b.look();
      return done();
    });
  }

  RawEndpoint a{kNodeA};
  RawEndpoint b{kNodeB};
  fi_addr_t to_b = a->insert(kNodeB, fabric_port());
};

TEST_F(FabricEndpointTest, Messages__arrive_whole_and_in_order_and_are_reported_as_sent) {
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(a.send(to_b, std::string(1 + i * 160, static_cast<char>('a' + i % 26))));
  ASSERT_TRUE(together([&] { return b.arrived.size() == 100 && a.sent == 100; }));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(b.arrived[i], std::string(1 + i * 160, static_cast<char>('a' + i % 26))) << i;
  }
  EXPECT_EQ(a.failed, 0);
}

TEST_F(FabricEndpointTest, Longest_message__fits) {
  const std::string longest(kFabricMessageBytes, 'x');
  ASSERT_TRUE(a.send(to_b, longest));
  ASSERT_TRUE(together([&] { return b.arrived.size() == 1; }));
  EXPECT_EQ(b.arrived[0], longest);
}

TEST_F(FabricEndpointTest, Source__is_named_if_its_address_was_inserted) {
  ASSERT_TRUE(a.send(to_b, "a stranger"));
  ASSERT_TRUE(together([&] { return b.arrived.size() == 1; }));
  EXPECT_EQ(b.sources[0], FI_ADDR_NOTAVAIL);
  const fi_addr_t from_a = b->insert(kNodeA, fabric_port());
  ASSERT_NE(from_a, FI_ADDR_NOTAVAIL);
  ASSERT_TRUE(a.send(to_b, "an acquaintance"));
  ASSERT_TRUE(together([&] { return b.arrived.size() == 2; }));
  EXPECT_EQ(b.sources[1], from_a);
}

// Each message needs memory to be received into, which is the receiver's until it is given back.
TEST_F(FabricEndpointTest, Receiver_that_gives_nothing_back__gets_no_more_and_loses_nothing) {
  constexpr std::size_t kCount = 200;
  b.keeps = true;
  std::size_t begun = 0;
  const auto send_next = [&] {
    SendBuffer* const buffer = a->take_buffer();
    buffer->bytes = 4;
    std::memcpy(buffer->data, std::to_string(1000 + begun).data(), 4);
    if (a->send(to_b, buffer) == FabricSend::kTaken) {
      ++begun;
    } else {
      a->give_buffer(buffer);
    }
  };
  const auto send_one_more = [&] {
    if (begun < kCount) send_next();
  };
  ASSERT_TRUE(together([&] {
    send_one_more();
    return !b.arrived.empty();
  })) << "they are connected";
  for (int i = 0; i < 2000; ++i) {
    send_one_more();
    a.look();
    b.look();
  }
  const std::size_t most = b.arrived.size();
  EXPECT_GT(most, 0u);
  EXPECT_LT(most, kCount);
  b.keeps = false;
  for (ReceiveBuffer* holder : b.held) b->release(holder);
  EXPECT_TRUE(together([&] {
    send_one_more();
    return b.arrived.size() == kCount;
  }));
  for (std::size_t i = 0; i < b.arrived.size(); ++i) EXPECT_EQ(b.arrived[i], std::to_string(1000 + i));
}

TEST_F(FabricEndpointTest, Buffers__are_used_again) {
  SendBuffer* const first = a->take_buffer();
  SendBuffer* const second = a->take_buffer();
  EXPECT_NE(first, second);
  a->give_buffer(first);
  EXPECT_EQ(a->take_buffer(), first);
  std::vector<SendBuffer*> many;
  for (int i = 0; i < 100; ++i) many.push_back(a->take_buffer());
  std::ranges::sort(many);
  EXPECT_EQ(std::ranges::adjacent_find(many), many.end()) << "one was given out twice";
}

TEST_F(FabricEndpointTest, Descriptor__wakes_who_sleeps_until_something_comes) {
  ASSERT_TRUE(a.send(to_b, "the first makes the connection"));
  ASSERT_TRUE(together([&] { return b.arrived.size() == 1 && a.sent == 1; }));
  ASSERT_TRUE(eventually([&] {
    b.look();
    return b->may_sleep();
  }));
  pollfd waited{b->wait_fd(), POLLIN, 0};
  ASSERT_TRUE(a.send(to_b, "wake"));
  EXPECT_TRUE(eventually([&] {
    a.look();
    return poll(&waited, 1, 1) == 1;
  }));
  EXPECT_TRUE(together([&] { return b.arrived.size() == 2; }));
}

TEST_F(FabricEndpointTest, Unknown_provider__is_a_sentence_and_no_endpoint) {
  std::string why;
  EXPECT_EQ(FabricEndpoint::open("nothing-of-this-name", kNodeA, fabric_port(), &why), nullptr);
  EXPECT_NE(why.find("named nothing-of-this-name"), std::string::npos) << why;
  EXPECT_NE(why.find(test_address(2)), std::string::npos) << why;
}

TEST_F(FabricEndpointTest, Address_that_is_not_this_machines__is_a_sentence_and_no_endpoint) {
  std::string why;
  EXPECT_EQ(FabricEndpoint::open("", 0xc0000201, fabric_port(), &why), nullptr);
  EXPECT_NE(why.find("192.0.2.1"), std::string::npos) << why;
}

/// Memory of b that a reads, where the provider does that.
class FabricFetchTest : public FabricEndpointTest {
 protected:
  void SetUp() override {
    if (!a->can_fetch()) GTEST_SKIP() << "the provider reads no memory of peers";
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

  bool fetch(FetchBuffer* buffer, const ExposedMemory& exposed, std::size_t bytes) {
    FabricSend result = FabricSend::kLater;
    together([&] {
      result = a->fetch(to_b, buffer, bytes, exposed.address, exposed.key);
      return result != FabricSend::kLater;
    });
    return result == FabricSend::kTaken;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kFetchBytes);
};

TEST_F(FabricFetchTest, Exposed_memory__is_read_whole) {
  const ExposedMemory exposed = b->expose(memory.data(), memory.size());
  ASSERT_NE(exposed.registration, nullptr);
  FetchBuffer* const buffer = a->take_fetch_buffer();
  ASSERT_TRUE(fetch(buffer, exposed, memory.size()));
  ASSERT_TRUE(together([&] { return a.fetched == 1; }));
  EXPECT_EQ(a.last_fetch, buffer);
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), buffer->memory.get()));
  b->hide(exposed);
}

TEST_F(FabricFetchTest, Hidden_memory__is_not_there) {
  const ExposedMemory exposed = b->expose(memory.data(), memory.size());
  ASSERT_NE(exposed.registration, nullptr);
  b->hide(exposed);
  FetchBuffer* const buffer = a->take_fetch_buffer();
  ASSERT_TRUE(fetch(buffer, exposed, 4096));
  EXPECT_TRUE(together([&] { return a.missed == 1; }));
  EXPECT_EQ(a.last_fetch, buffer);
  EXPECT_EQ(a.fetched, 0);
}

TEST_F(FabricFetchTest, Keys__are_not_to_be_guessed) {
  const ExposedMemory one = b->expose(memory.data(), 64);
  const ExposedMemory other = b->expose(memory.data(), 64);
  EXPECT_NE(one.key, other.key);
  EXPECT_GT(std::max(one.key, other.key), 65535u) << "they are no small numbers";
  b->hide(one);
  b->hide(other);
}

TEST_F(FabricFetchTest, Buffers__are_few_and_forsaken_ones_do_not_count) {
  std::vector<FetchBuffer*> taken;
  for (std::size_t i = 0; i < kMostFetches; ++i) taken.push_back(a->take_fetch_buffer());
  EXPECT_EQ(std::ranges::count(taken, nullptr), 0);
  EXPECT_EQ(a->take_fetch_buffer(), nullptr);
  int owner = 0;
  for (FetchBuffer* buffer : taken) buffer->owner = &owner;
  a->forsake(taken[0]);
  EXPECT_NE(a->take_fetch_buffer(), nullptr) << "in place of the one that nobody waits for";
  EXPECT_EQ(a->take_fetch_buffer(), nullptr);
  EXPECT_FALSE(a->take_back(taken[1])) << "somebody waits for it";
  EXPECT_TRUE(a->take_back(taken[0]));
  EXPECT_EQ(a->take_fetch_buffer(), taken[0]);
}

}  // namespace
}  // namespace portofu
