// A process of uTofu that dies on a lossy network: whoever waits for it gets UTOFU_ERR_MRQ_PEER within a second.

#include <gtest/gtest.h>

#include "engine/descriptor/tofu_descriptor.h"
#include "tests/simulation/lossy_group.h"
#include "tests/simulation/seed.h"
#include "tests/simulation/tofu_node.h"

namespace portofu::simulation {
namespace {

constexpr std::size_t kMemoryBytes = 4096;

struct TofuPair {
  explicit TofuPair(std::uint64_t seed) : network(seed, Topology::crossbar(2, kLossyLink), bad_network()) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      NodeOptions options;
      options.id = {1 + i, 100};
      options.memory_bytes = kMemoryBytes;
      options.clock_ns = network.clock_ns();
      Coordinates at{};
      at[0] = static_cast<std::uint8_t>(i);
      nodes[i] = std::make_unique<TofuNode>(network.attach(options.id, i), options, claims, at);
      vcqs[i] = &nodes[i]->make_vcq(make_queue_number(0, 0, 0), CqMode::kShared, 64);
      stadds[i] = nodes[i]->register_memory(*vcqs[i], 0, kMemoryBytes, false);
    }
  }

  void put() {
    Descriptor d;
    d.type = PacketType::kTofuPut;
    d.tofu = {};
    d.tofu_meta = kTofuLocalNotice;
    d.tofu.remote_vcq_id = vcqs[1]->id;
    d.tofu.local_stadd = stadds[0];
    d.remote_stadd = stadds[1];
    d.length = 64;
    nodes[0]->post(*vcqs[0], d, nullptr, false);
  }

  /// @return failures of the notices that come within a second, in order
  std::vector<NiFail> notices(bool target_lives) {
    std::vector<NiFail> fails;
    const std::uint64_t end_ns = network.now_ns() + kSecondNs;
    for (std::uint64_t next_check_ns = 0; network.now_ns() < end_ns;) {
      nodes[0]->step();
      if (target_lives) nodes[1]->step();
      if (network.now_ns() >= next_check_ns) {
        nodes[0]->node().run_timers();
        next_check_ns = network.now_ns() + 100 * kMillisecondNs;
      }
      Notice notice;
      while (nodes[0]->read_mrq(*vcqs[0], &notice)) fails.push_back(notice.fail);
      network.pass_to_next(std::min(end_ns, next_check_ns) - network.now_ns());
    }
    return fails;
  }

  Network network;
  TofuClaims claims;
  std::unique_ptr<TofuNode> nodes[2];
  VirtualControlQueue* vcqs[2] = {};
  std::uint64_t stadds[2] = {};
};

TEST(TofuDeath, Puts_to_the_dead__are_told_within_a_second) {
  run_seeds(50, [](std::uint64_t seed) -> std::string {
    TofuPair pair(seed);
    for (int i = 0; i < 3; ++i) pair.put();
    if (pair.notices(true) != std::vector<NiFail>(3, NiFail::kOk)) return "puts to the living fail";
    for (int i = 0; i < 3; ++i) pair.put();  // On their way when it dies.
    pair.network.kill(pair.nodes[1]->node().id());
    if (pair.notices(false) != std::vector<NiFail>(3, NiFail::kUndeliverable)) return "its death is not told";
    pair.put();
    if (pair.notices(false) != std::vector<NiFail>(1, NiFail::kUndeliverable)) return "later puts are not told";
    return {};
  });
}

}  // namespace
}  // namespace portofu::simulation
