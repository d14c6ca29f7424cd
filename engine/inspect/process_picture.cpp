#include "engine/inspect/process_picture.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "engine/inspect/core_picture.h"
#include "engine/inspect/inspection_root.h"
#include "engine/inspect/system_task.h"

namespace portofu {
namespace {

RunState run_state_of(const SystemTask& task) {
  if (task.name.empty()) return RunState::kGone;
  switch (task.state) {
    case 'T':
    case 't': return RunState::kStopped;
    case 'Z':
    case 'X': return RunState::kGone;
    case 'S': return RunState::kSleeps;
    default: return RunState::kRuns;
  }
}

Sight look_behind_root(const SegmentView& view, Depth depth, ProcessPicture* picture) {
  const SegmentDescriptorShared& owner = view.descriptor;
  FarMemory memory(static_cast<pid_t>(owner.os_pid), owner.probe_address, owner.incarnation);
  const auto root = memory.copy(std::bit_cast<const InspectionRoot*>(view.inspection_root));
  if (!root) return memory.is_forbidden() ? Sight::kForbidden : Sight::kNothing;
  if (root->stamp != layout_stamp()) return Sight::kOtherBuild;
  if (const auto looks = memory.copy(root->application_looks)) picture->application_looks = looks->load();
  return look_at_core(memory, root->core, &picture->core, depth) ? Sight::kWhole : Sight::kNothing;
}

}  // namespace

const GatePicture* ProcessPicture::find_gate(std::uint64_t gate_id) const {
  const auto is_it = [gate_id](const GatePicture& gate) { return with_own_path(gate.id) == with_own_path(gate_id); };
  const auto found = std::ranges::find_if(core.gates, is_it);
  return found != core.gates.end() ? &*found : nullptr;
}

ProcessPicture look_at_process(const SegmentView& view, Depth depth) {
  ProcessPicture picture;
  picture.descriptor = view.descriptor;
  picture.rank = view.descriptor.rank;
  picture.events_lost = view.counters[static_cast<std::size_t>(Counter::kEventsDropped)];
  std::ranges::copy_if(view.channels, std::back_inserter(picture.waiting),
                       [](const ChannelView& channel) { return channel.waiting_packets != 0; });
  if (view.life != SegmentLife::kLiving) {
    picture.sight = Sight::kDead;
    return picture;
  }
  const std::uint32_t os_pid = view.descriptor.os_pid;
  const SystemTask task = look_at_task("/proc/" + std::to_string(os_pid));
  picture.run_state = run_state_of(task);
  picture.program = task.name;
  picture.sight = look_behind_root(view, depth, &picture);
  for (const InterfacePicture& ni : picture.core.interfaces) {
    if (ni.own_rank != RankMap::kNoRank) picture.rank = ni.own_rank;
  }
  if (picture.rank < 0) picture.rank = rank_of_process(os_pid);
  return picture;
}

bool look_at_processes(const std::string& directory, std::vector<ProcessPicture>* pictures) {
  pictures->clear();
  std::vector<SegmentView> views;
  if (!view_segments(directory, &views)) return false;
  for (const SegmentView& view : views) {
    if (view.life != SegmentLife::kUnknown) pictures->push_back(look_at_process(view));
  }
  return true;
}

}  // namespace portofu
