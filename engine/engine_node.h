#pragma once
// What an engine on a real node owns beside its core: its segment and the wires over it.

#include <memory>
#include <string>
#include <vector>

#include "engine/config/settings.h"
#include "engine/engine.h"
#include "engine/segment/process_segment.h"
#include "engine/wire/loopback/loopback_wire.h"
#include "engine/wire/shm/shm_wire.h"
#include "engine/wire/sim/shuffle_wire.h"

namespace portofu {

struct EngineNode {
  std::unique_ptr<ProcessSegment> segment;
  std::unique_ptr<LoopbackWire> loopback;
  std::unique_ptr<ShmWire> shm;
  std::unique_ptr<ShuffleWire> shuffled_loopback;  ///< Over `loopback`; nullptr unless PORTOFU_SHUFFLE is set.
  std::unique_ptr<ShuffleWire> shuffled_shm;       ///< Over `shm`, likewise.

  /// What the engine polls, in this order.
  std::vector<Wire*> wires() const {
    if (shuffled_shm != nullptr) return {shuffled_loopback.get(), shuffled_shm.get()};
    return {loopback.get(), shm.get()};
  }
};

/// @return nullptr on failure, with reason
std::unique_ptr<EngineNode> open_node(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why);

}  // namespace portofu
