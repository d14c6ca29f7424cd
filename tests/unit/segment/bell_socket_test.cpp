#include "engine/segment/bell_socket.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace portofu {
namespace {

bool is_readable(const BellSocket& socket) {
  pollfd waited{socket.fd(), POLLIN, 0};
  return poll(&waited, 1, 0) == 1;
}

TEST(BellSocket, Ring__makes_it_readable_until_it_is_drained) {
  BellSocket socket;
  ASSERT_TRUE(socket.open());
  EXPECT_NE(socket.name(), 0u);
  EXPECT_FALSE(is_readable(socket));
  ring_socket(socket.name());
  ring_socket(socket.name());
  EXPECT_TRUE(is_readable(socket));
  socket.drain();
  EXPECT_FALSE(is_readable(socket));
}

TEST(BellSocket, Many_rings__never_block_the_ringer) {
  BellSocket socket;
  ASSERT_TRUE(socket.open());
  for (int i = 0; i < 5000; ++i) ring_socket(socket.name());
  socket.drain();
  EXPECT_FALSE(is_readable(socket));
}

TEST(BellSocket, Names__differ_and_nobody_else_is_rung) {
  BellSocket one;
  BellSocket other;
  ASSERT_TRUE(one.open() && other.open());
  EXPECT_NE(one.name(), other.name());
  ring_socket(one.name());
  EXPECT_FALSE(is_readable(other));
}

TEST(BellSocket, Name_that_nobody_has__is_rung_without_harm) {
  ring_socket(0);
  ring_socket(UINT32_MAX);
  std::uint32_t name = 0;
  {
    BellSocket socket;
    ASSERT_TRUE(socket.open());
    name = socket.name();
  }
  ring_socket(name);
}

}  // namespace
}  // namespace portofu
