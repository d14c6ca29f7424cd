#include "engine_counters.h"

#include <unistd.h>

#include <vector>

#include "engine/observe/counters.h"
#include "engine/segment/process_segment.h"
#include "engine/segment/segment_view.h"
#include "player.h"

namespace compare {

Traffic look_at_own_engine() {
  std::vector<portofu::SegmentView> views;
  require(portofu::view_segments(portofu::SegmentOptions{}.directory, &views), "the segments cannot be listed");
  const auto own = static_cast<std::uint32_t>(getpid());
  for (const portofu::SegmentView& view : views) {
    if (view.life != portofu::SegmentLife::kLiving || view.descriptor.os_pid != own) continue;
    const auto counted = [&](portofu::Counter counter) { return view.counters[static_cast<std::size_t>(counter)]; };
    return {counted(portofu::Counter::kPacketsSent), counted(portofu::Counter::kBytesSent)};
  }
  fail("the segment of this process was not found");
}

}  // namespace compare
