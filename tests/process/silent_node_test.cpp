// A node that never says who owns its control queues. Operations that go there wait, without keeping anybody: every
// call returns at once, and a neighbour on another node is served meanwhile. Then they end as the guide says (2.2.12).

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utofu.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

using namespace conformance;

/// Its own for the tests that run at the same time.
std::uint16_t directory_port() {
  static const int number = 30000 + static_cast<int>(getpid()) % 20000;
  return static_cast<std::uint16_t>(number);
}

void live_on_node(std::uint8_t number) {
  setenv("PORTOFU_NID", test_address(number).c_str(), 1);
  setenv("PORTOFU_FABRIC", "1", 1);
  setenv("PORTOFU_DIRECTORY_PORT", std::to_string(directory_port()).c_str(), 1);
}

/// A socket that takes questions, and answers none.
int open_silent_node(std::uint8_t number) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(directory_port());
  address.sin_addr.s_addr = htonl(test_network() + number);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

constexpr unsigned long kFlags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;

/// Calls into the library: how many took longer than they should, and the longest. A busy machine takes the core away
/// now and then; a call that waits for the silent node takes five seconds.
struct Watch {
  template <class Call>
  int operator()(Call&& call) {
    const double begin = now_s();
    const int rc = call();
    const double seconds = now_s() - begin;
    longest_s = std::max(longest_s, seconds);
    late += seconds > 0.05 ? 1 : 0;
    ++calls;
    return rc;
  }
  int calls = 0;
  int late = 0;
  double longest_s = 0;
};

TEST(SilentNode, Calls_return_at_once_and_operations_end) {
  test_network();
  directory_port();
  run_processes(2, [](Process& self) {
    live_on_node(static_cast<std::uint8_t>(self.rank() + 1));
    const int silent = self.rank() == 0 ? open_silent_node(9) : -1;
    alignas(256) std::uint64_t memory[32] = {};
    // What waits holds up the TCQ of its VCQ (2.2.1.2), so the neighbour has one of its own.
    utofu_vcq_hdl_t vcq = 0;
    utofu_vcq_hdl_t waiting_vcq = 0;
    struct Place {
      utofu_vcq_id_t vcq_id;
      utofu_stadd_t stadd;
    } own{};
    ASSERT_EQ(utofu_create_vcq(0, 0, &vcq), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_create_vcq(1, 0, &waiting_vcq), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_query_vcq_id(vcq, &own.vcq_id), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_reg_mem(vcq, memory, sizeof memory, 0, &own.stadd), UTOFU_SUCCESS);
    const std::vector<Place> places = self.share(own);
    if (self.rank() == 1) return self.barrier();
    const std::uint32_t absent = test_network() + 9;
    std::uint8_t coords[6] = {9, static_cast<std::uint8_t>(absent >> 8), static_cast<std::uint8_t>(absent >> 16), 0, 0,
                              0};
    utofu_vcq_id_t nobody = 0;
    ASSERT_EQ(utofu_construct_vcq_id(coords, 0, 0, 0, &nobody), UTOFU_SUCCESS);
    Watch watch;
    const auto put = [&](utofu_vcq_hdl_t from, utofu_vcq_id_t target) {
      return watch([&] { return utofu_put_piggyback8(from, target, 5, places[1].stadd, 8, 0, kFlags, nullptr); });
    };
    const auto poll = [&](utofu_vcq_hdl_t of) {
      return watch([&] {
        utofu_mrq_notice notice{};
        return utofu_poll_mrq(of, 0, &notice);
      });
    };
    const double begin = now_s();
    ASSERT_EQ(put(waiting_vcq, nobody), UTOFU_SUCCESS);
    ASSERT_EQ(put(waiting_vcq, nobody), UTOFU_SUCCESS);
    int served = 0;
    int lost = 0;
    bool under_way = false;
    while (lost < 2 && now_s() - begin < kLongestWaitS) {
      if (!under_way) {
        EXPECT_EQ(put(vcq, places[1].vcq_id), UTOFU_SUCCESS);
      }
      const int told = poll(vcq);
      under_way = told == UTOFU_ERR_NOT_FOUND;
      served += told == UTOFU_SUCCESS ? 1 : 0;
      const int ended = poll(waiting_vcq);
      if (ended == UTOFU_ERR_NOT_FOUND) continue;
      EXPECT_EQ(ended, UTOFU_ERR_MRQ_PEER);
      ++lost;
    }
    EXPECT_EQ(lost, 2);
    EXPECT_GT(now_s() - begin, 3) << "slow processes are given time";
    EXPECT_GT(served, 10);
    // The node is known to be silent now. Somebody may have begun there, so it is asked, but not for as long.
    const double again = now_s();
    const FairStopwatch stopwatch;
    ASSERT_EQ(put(waiting_vcq, nobody), UTOFU_SUCCESS);
    int ended = UTOFU_ERR_NOT_FOUND;
    while (ended == UTOFU_ERR_NOT_FOUND && now_s() - again < kLongestWaitS) ended = poll(waiting_vcq);
    EXPECT_EQ(ended, UTOFU_ERR_MRQ_PEER);
    EXPECT_LT(stopwatch.seconds(), 4);
    EXPECT_LT(watch.longest_s, 4);
    EXPECT_LE(watch.late, watch.calls / 100);
    close(silent);
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
