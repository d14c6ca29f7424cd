#include "engine/wire/ofi/doorplate.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "tests/process/child_process.h"

namespace portofu {
namespace {

constexpr std::uint32_t kNodeA = 0x7f000002;
constexpr std::uint32_t kNodeB = 0x7f000003;

std::uint16_t test_port() {
  static const auto port = static_cast<std::uint16_t>(10000 + getpid() % 20000);  // Children keep it.
  return port;
}

/// Knocks, and waits a little for what comes back.
bool is_absent(Doorplate& own, std::uint32_t nid) {
  own.knock(nid, test_port());
  std::uint32_t absent = 0;
  std::uint16_t port = 0;
  for (int i = 0; i < 100; ++i) {
    if (own.take_absent(&absent, &port)) return absent == nid && port == test_port();
    usleep(1000);
  }
  return false;
}

TEST(Doorplate, Nobody_there__is_known_soon) {
  Doorplate a;
  ASSERT_TRUE(a.open(kNodeA, test_port()));
  EXPECT_TRUE(is_absent(a, kNodeB));
  EXPECT_TRUE(is_absent(a, kNodeB)) << "once more";
}

TEST(Doorplate, Somebody_there__is_not_absent_however_often_one_knocks) {
  Doorplate a;
  Doorplate b;
  ASSERT_TRUE(a.open(kNodeA, test_port()) && b.open(kNodeB, test_port()));
  for (int i = 0; i < 10000; ++i) a.knock(kNodeB, test_port());
  EXPECT_FALSE(is_absent(a, kNodeB));
}

TEST(Doorplate, Port__has_one_owner) {
  Doorplate a;
  Doorplate again;
  ASSERT_TRUE(a.open(kNodeA, test_port()));
  EXPECT_FALSE(again.open(kNodeA, test_port()));
}

TEST(Doorplate, Stopped_process__is_there_and_a_killed_one_is_not) {
  Doorplate a;
  ASSERT_TRUE(a.open(kNodeA, test_port()));
  ChildProcess child([] {
    Doorplate b;
    if (!b.open(kNodeB, test_port())) return 1;
    for (;;) pause();
  });
  ASSERT_TRUE(eventually([&] { return !is_absent(a, kNodeB); }));
  child.send_signal(SIGSTOP);
  EXPECT_FALSE(is_absent(a, kNodeB));
  child.kill_now();
  EXPECT_TRUE(is_absent(a, kNodeB));
}

}  // namespace
}  // namespace portofu
