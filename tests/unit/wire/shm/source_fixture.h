#pragma once
// A process that receives, two that send to it, and what becomes of their channels.

#include <gtest/gtest.h>

#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {

struct SourceTest : ::testing::Test {
  /// @return who was reported closed; pid 0 if nobody
  ProcessId take_closed(void** context = nullptr) {
    ProcessId source;
    void* forgotten = nullptr;
    target.wire->take_closed_source(&source, context != nullptr ? context : &forgotten);
    return source;
  }
  SlotState slot_state(std::uint32_t slot_index) { return read_slot(target.segment->slot(slot_index)).state; }

  SegmentDirectory directory;
  WirePeer target{directory.options(1)};
  WirePeer a{directory.options(2)};
  WirePeer b{directory.options(3)};
};

}  // namespace portofu
