#pragma once
// Makes a medium of datagrams worse than it is, for tests of real processes: what is sent through it is lost, sent
// twice, overtaken and damaged by chance. There are no timers in it: what is overtaken leaves when later datagrams to
// the same peer have gone, and if there are none, never.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/wire/reliable/datagram.h"
#include "engine/wire/sim/sim_random.h"

namespace portofu {

/// Chances are in hundredths, per datagram.
struct DatagramFaults {
  std::uint32_t loss = 0;
  std::uint32_t duplicate = 0;
  std::uint32_t corrupt = 0;  ///< Some bits change, or the end is missing.
  /// One datagram in kReorderedOneIn is overtaken by up to so many later ones to the same peer; 0: none is.
  std::uint32_t reorder = 0;
  std::uint32_t seed = 1;

  static constexpr std::uint32_t kReorderedOneIn = 8;
  static constexpr std::uint32_t kMostHundredths = 90;
  static constexpr std::uint32_t kMostReorder = 1024;
};

/// Reads "loss=10,duplicate=5,reorder=64,corrupt=1,seed=7"; what is not named keeps its default.
/// @param why  a sentence for people on failure
std::optional<DatagramFaults> parse_datagram_faults(const std::string& text, std::string* why);

class FaultyDatagrams final : public DatagramEndpoint {
 public:
  /// @param salt  gives each process a sequence of its own
  FaultyDatagrams(std::unique_ptr<DatagramEndpoint> inner, const DatagramFaults& faults, std::uint64_t salt)
      : inner_(std::move(inner)), faults_(faults), random_(salt << 32 ^ faults.seed) {}

  std::uint32_t max_bytes() const override { return inner_->max_bytes(); }
  bool send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
            std::span<const std::byte> body) override;
  std::uint32_t receive(std::byte* buffer, ProcessId* source) override { return inner_->receive(buffer, source); }
  bool has_datagrams() override { return inner_->has_datagrams(); }
  bool take_unreachable(ProcessId* peer) override { return inner_->take_unreachable(peer); }
  std::uint64_t unreachable_since_ns() const override { return inner_->unreachable_since_ns(); }
  std::uint64_t now_ns() const override { return inner_->now_ns(); }
  int wait_fd() const override { return inner_->wait_fd(); }
  bool may_sleep() override { return inner_->may_sleep(); }
  bool is_over() const override { return inner_->is_over(); }

 private:
  /// A datagram that is being overtaken.
  struct Aside {
    std::vector<std::byte> bytes;
    TrafficClass traffic = TrafficClass::kRequest;
    std::uint64_t overtakers = 0;  ///< That are still to come.
  };

  bool chance(std::uint32_t hundredths) { return random_.below(100) < hundredths; }
  void damage(std::vector<std::byte>& bytes);
  void set_free(ProcessId peer);

  std::unique_ptr<DatagramEndpoint> inner_;
  const DatagramFaults faults_;
  SimRandom random_;
  std::unordered_map<std::uint64_t, std::vector<Aside>> aside_;  ///< By peer; at most `reorder` each.
};

}  // namespace portofu
