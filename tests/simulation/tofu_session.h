#pragma once
// A plan of descriptors carried out by engines over the simulated wire, in a random order of posting, steps and polls.
// What is told and what lies in memory is compared with the plan.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/network.h"
#include "tests/simulation/tofu_node.h"
#include "tests/simulation/tofu_plan.h"

namespace portofu::simulation {

/// Used by one thread.
class TofuSession {
 public:
  TofuSession(std::uint64_t seed, const SessionTaste& taste);

  /// Carries the plan out. @return what went wrong; empty if nothing
  std::string run();

 private:
  /// A VCQ of the plan in its engine.
  struct Place {
    VirtualControlQueue* vcq = nullptr;
    std::size_t posted = 0;        ///< Messages of its TOQ that are written.
    std::deque<std::size_t> told;  ///< Messages whose TCQ entries are to come, in order.
    std::map<NoticeStream, std::vector<PlannedNotice>> expected;
    std::map<NoticeStream, std::size_t> seen;
  };

  void start_processes(std::uint64_t seed);
  Descriptor descriptor_of(std::size_t index) const;
  bool can_post(std::size_t v) const;
  void post(std::size_t v);
  void act();
  bool come_to_rest();
  bool wake_late();
  void poll(std::size_t v);
  void check_tcq(std::size_t v, void* callback_data, NiFail fail);
  void check_notice(std::size_t v, const Notice& notice);
  void check_data(std::size_t index);
  void check_end();
  TofuNode& node_of(std::size_t v) { return *nodes_[plan_.vcqs[v].process]; }
  std::string name_of(std::size_t message) const;
  void complain(const std::string& text);

  SimRandom random_;
  TofuPlan plan_;
  Network network_;
  TofuClaims claims_;
  std::vector<std::unique_ptr<TofuNode>> nodes_;
  std::vector<Place> places_;  ///< By VCQ.
  std::string complaint_;
};

}  // namespace portofu::simulation
