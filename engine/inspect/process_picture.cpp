#include "engine/inspect/process_picture.h"

#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>

#include "engine/inspect/core_picture.h"
#include "engine/inspect/inspection_root.h"

namespace portofu {
namespace {

/// Where launchers say the rank.
constexpr std::array<std::string_view, 3> kRankVariables{"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID="};

std::string text_of(std::uint32_t os_pid, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(os_pid) + "/" + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The letter behind the name, which stands in parentheses and may hold any.
RunState run_state_of(std::uint32_t os_pid) {
  const std::string line = text_of(os_pid, "stat");
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos || end + 2 >= line.size()) return RunState::kGone;
  switch (line[end + 2]) {
    case 'T':
    case 't': return RunState::kStopped;
    case 'Z':
    case 'X': return RunState::kGone;
    default: return RunState::kRuns;
  }
}

std::int64_t rank_of_launcher(std::uint32_t os_pid) {
  const std::string environment = text_of(os_pid, "environ");
  for (const std::string_view name : kRankVariables) {
    std::size_t at = environment.starts_with(name) ? 0 : environment.find('\0' + std::string(name));
    if (at == std::string::npos) continue;
    at += name.size() + (at != 0 ? 1 : 0);
    std::int64_t rank = -1;
    std::from_chars(environment.data() + at, environment.data() + environment.size(), rank);
    return rank;
  }
  return -1;
}

Sight look_behind_root(const SegmentView& view, ProcessPicture* picture) {
  const SegmentDescriptorShared& owner = view.descriptor;
  FarMemory memory(static_cast<pid_t>(owner.os_pid), owner.probe_address, owner.incarnation);
  const auto root = memory.copy(std::bit_cast<const InspectionRoot*>(view.inspection_root));
  if (!root) return memory.is_forbidden() ? Sight::kForbidden : Sight::kNothing;
  if (root->stamp != layout_stamp()) return Sight::kOtherBuild;
  if (const auto looks = memory.copy(root->application_looks)) picture->application_looks = looks->load();
  return look_at_core(memory, root->core, &picture->core) ? Sight::kWhole : Sight::kNothing;
}

}  // namespace

ProcessPicture look_at_process(const SegmentView& view) {
  ProcessPicture picture;
  picture.descriptor = view.descriptor;
  if (view.life != SegmentLife::kLiving) {
    picture.sight = Sight::kDead;
    return picture;
  }
  const std::uint32_t os_pid = view.descriptor.os_pid;
  picture.run_state = run_state_of(os_pid);
  picture.program = text_of(os_pid, "comm");
  if (!picture.program.empty()) picture.program.pop_back();
  picture.sight = look_behind_root(view, &picture);
  for (const InterfacePicture& ni : picture.core.interfaces) {
    if (ni.own_rank != RankMap::kNoRank) picture.rank = ni.own_rank;
  }
  if (picture.rank < 0) picture.rank = rank_of_launcher(os_pid);
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
