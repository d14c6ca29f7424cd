#include "lib/tools/ptl_top/look.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <tuple>

#include "engine/door/process.h"

namespace portofu::tools {
namespace {

std::string contents_of(std::uint32_t os_pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(os_pid) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A variable of /proc/PID/environ, whose entries end with zeros.
const char* variable_in(const std::string& environment, const std::string& name) {
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    if (environment.compare(at, name.size() + 1, name + "=") == 0) return environment.data() + at + name.size() + 1;
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return nullptr;
}

ProcessLook begin_process(const SegmentView& view) {
  static const auto ticks_per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  ProcessLook process;
  process.os_pid = view.descriptor.os_pid;
  process.nid = view.descriptor.nid;
  process.job_key = view.descriptor.job_key;
  process.program = contents_of(process.os_pid, "comm");
  while (!process.program.empty() && process.program.back() == '\n') process.program.pop_back();
  read_stat(contents_of(process.os_pid, "stat"), ticks_per_second, &process.state, &process.cpu_ns);
  const std::string environment = contents_of(process.os_pid, "environ");
  process.rank = rank_of([&environment](const char* name) { return variable_in(environment, name); });
  return process;
}

void add_lane(const SegmentView& view, ProcessLook* process) {
  process->pids.push_back(view.descriptor.pid);
  for (std::size_t i = 0; i < kCounterCount; ++i) process->counters[i] += view.counters[i];
  process->channels += static_cast<std::uint32_t>(view.channels.size());
  for (const ChannelView& channel : view.channels) {
    if (channel.waiting_packets == 0) continue;
    const SlotWord word = SlotWord::unpack(channel.slot_word);
    process->waiting.push_back({word.claimer.pid, view.descriptor.pid, channel.waiting_packets});
  }
}

}  // namespace

std::int64_t rank_of(const std::function<const char*(const char* name)>& get_variable) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = get_variable(name);
    if (text == nullptr) continue;
    std::uint32_t rank = 0;
    const char* end = text + std::string_view(text).size();
    if (const auto [stop, error] = std::from_chars(text, end, rank); error == std::errc() && stop == end) return rank;
  }
  return ProcessLook::kNoRank;
}

bool read_stat(const std::string& text, std::uint64_t ticks_per_second, char* state, std::uint64_t* cpu_ns) {
  // The name of the program stands in parentheses and may have any character in it, further ones, too.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  char letter = '?';
  fields >> letter;
  for (int field = 4; field < 14; ++field) fields >> skipped;
  if (!(fields >> user >> system) || ticks_per_second == 0) return false;
  *state = letter;
  *cpu_ns = (user + system) * 1'000'000'000 / ticks_per_second;
  return true;
}

bool look_at_node(const std::string& directory, Look* look) {
  std::vector<SegmentView> views;
  if (!view_segments(directory, &views)) return false;
  look->time_ns = monotonic_ns();
  std::map<std::uint32_t, ProcessLook> found;
  for (const SegmentView& view : views) {
    if (view.life != SegmentLife::kLiving) continue;
    const auto [place, is_new] = found.try_emplace(view.descriptor.os_pid);
    if (is_new) place->second = begin_process(view);
    add_lane(view, &place->second);
  }
  look->processes.clear();
  for (auto& [os_pid, process] : found) look->processes.push_back(std::move(process));
  std::ranges::stable_sort(look->processes, {}, [](const ProcessLook& process) {
    return std::tuple(process.job_key, process.rank, process.os_pid);
  });
  return true;
}

}  // namespace portofu::tools
