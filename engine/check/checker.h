#pragma once
// The checker of an engine: it is told of calls, and says what in them works here by luck (PORTOFU_CHECK). An engine
// without one has a null pointer in Core. Used on duty.

#include <cstdint>

#include "engine/check/finding.h"
#include "engine/check/portals_checker.h"
#include "engine/check/tofu_checker.h"

namespace portofu {

class Checker {
 public:
  Checker(const std::string& setting, std::int64_t rank) : log_(setting, rank) {}

  /// A cycle has ended: what has arrived is looked at before the program can touch it.
  void look(Core& core) {
    portals.look(core);
    tofu.look(core);
  }

  /// The engine ends, or the process does.
  void ends(Core& core) {
    for (std::uint32_t index = 0; index < kPortalsInterfaceCount; ++index) {
      if (Interface* ni = core.interface(index)) portals.closes(*ni, "exit");
    }
    tofu.ends(core);
  }

 private:
  FindingLog log_;

 public:
  PortalsChecker portals{log_};
  TofuChecker tofu{log_};
};

}  // namespace portofu
