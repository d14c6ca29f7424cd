#include "engine/segment/kernel.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace portofu {
namespace {

constexpr std::uint32_t kHere = 0x7f4d0005;  ///< 127.77.0.5.
constexpr std::uint32_t kThere = 0x7f4d0006;

std::span<const std::byte> bytes_of(const std::uint32_t& word) { return std::as_bytes(std::span(&word, 1)); }

/// Takes one that is there or comes soon. @return its length, or -1
ssize_t take(DatagramSocket& socket, std::uint32_t* word, PortAddress* from) {
  constexpr int kMostLooks = 1000;
  DatagramSocket* const waited[] = {&socket};
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const ssize_t bytes = socket.receive(std::as_writable_bytes(std::span(word, 1)), from);
    if (bytes >= 0 || errno != EAGAIN) return bytes;
    kernel().wait(waited, [] {});
  }
  return -1;
}

TEST(Kernel, Datagram__comes_with_its_sender_and_is_answered) {
  const auto here = kernel().open_socket({kHere, 0});
  const auto there = kernel().open_socket({kThere, 0});
  ASSERT_TRUE(here != nullptr && there != nullptr);
  ASSERT_TRUE(here->connect({kThere, there->port()}));
  EXPECT_TRUE(here->send(bytes_of(5)));
  std::uint32_t word = 0;
  PortAddress from;
  EXPECT_EQ(take(*there, &word, &from), 4);
  EXPECT_EQ(word, 5u);
  EXPECT_EQ(from, (PortAddress{kHere, here->port()}));
  EXPECT_TRUE(there->send_to(from, bytes_of(6)));
  EXPECT_EQ(take(*here, &word, nullptr), 4);
  EXPECT_EQ(word, 6u);
}

TEST(Kernel, Port_that_nobody_has__is_an_error_for_who_is_connected_to_it) {
  auto there = kernel().open_socket({kThere, 0});
  const std::uint16_t port = there->port();
  there.reset();
  const auto here = kernel().open_socket({kHere, 0});
  ASSERT_TRUE(here->connect({kThere, port}));
  EXPECT_TRUE(here->send(bytes_of(5)));
  std::uint32_t word = 0;
  EXPECT_EQ(take(*here, &word, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST(Kernel, Named_port__is_shared) {
  const auto any = kernel().open_socket({kThere, 0});
  EXPECT_EQ(kernel().open_socket({kThere, any->port()}), nullptr) << "it is one socket's own";
  const auto port = static_cast<std::uint16_t>(any->port() == 20999 ? 20998 : 20999);
  const auto first = kernel().open_socket({kThere, port});
  const auto second = kernel().open_socket({kThere, port});
  EXPECT_TRUE(first != nullptr && second != nullptr);
}

TEST(Kernel, Address_of_another_node__cannot_be_had) {
  EXPECT_EQ(kernel().open_socket({0x08080808, 0}), nullptr);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

struct PlayedKernel : Kernel {
  std::unique_ptr<DatagramSocket> open_socket(PortAddress) override { return nullptr; }
  std::uint64_t now_ns() override { return 77; }
  bool draw_random(void*, std::size_t) override { return false; }
  void wait(std::span<DatagramSocket* const>, const Meanwhile&) override {}
};

TEST(Kernel, Another_one__is_used_until_it_is_taken_back) {
  PlayedKernel played;
  EXPECT_EQ(use_kernel(&played), nullptr);
  EXPECT_EQ(kernel().now_ns(), 77u);
  EXPECT_EQ(use_kernel(nullptr), &played);
  EXPECT_GT(kernel().now_ns(), 77u);
}

}  // namespace
}  // namespace portofu
