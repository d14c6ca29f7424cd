#include "lib/tools/ptl_top/look.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/door/process.h"
#include "lib/tools/ptl_info/explanation_text.h"

namespace portofu::tools {
namespace {

ProcessLook begin_process(const SegmentView& view) {
  ProcessLook process;
  process.os_pid = view.descriptor.os_pid;
  process.nid = view.descriptor.nid;
  process.job_key = view.descriptor.job_key;
  process.task = look_at_task("/proc/" + std::to_string(process.os_pid));
  process.rank = rank_of_process(process.os_pid);
  return process;
}

void add_peer(const PeerPicture& peer, ProcessLook* process) {
  const auto known = std::ranges::find(process->peers, peer.id, &PeerPicture::id);
  if (known == process->peers.end()) {
    process->peers.push_back(peer);
    return;
  }
  known->outstanding += peer.outstanding;
  known->waiting_requests += peer.waiting_requests;
  known->waiting_answers += peer.waiting_answers;
}

void add_picture(const ProcessPicture& picture, ProcessLook* process) {
  using Kind = QueueLook::Kind;
  if (picture.sight != Sight::kWhole) process->sight = picture.sight;
  if (process->rank == ProcessLook::kNoRank) process->rank = picture.rank;
  for (const InterfacePicture& ni : picture.core.interfaces) {
    for (const QueuePicture& queue : ni.queues)
      process->queues.push_back({Kind::kEventQueue, queue.handle, queue.size, queue.capacity});
  }
  for (const VcqPicture& vcq : picture.core.vcqs) {
    process->queues.push_back({Kind::kMrq, vcq.id, vcq.mrq_unread, vcq.mrq_entries});
    process->queues.push_back({Kind::kTcq, vcq.id, vcq.tcq_unread, vcq.tcq_entries});
  }
  for (const PeerPicture& peer : picture.core.peers) add_peer(peer, process);
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
  add_picture(look_at_process(view, Depth::kQueues), process);
}

}  // namespace

std::string lists_of_process(const std::string& directory, std::uint32_t os_pid) {
  std::vector<SegmentView> views;
  std::string text;
  view_segments(directory, &views);
  for (const SegmentView& view : views) {
    if (view.life == SegmentLife::kLiving && view.descriptor.os_pid == os_pid)
      text += process_text(look_at_process(view));
  }
  return text;
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
