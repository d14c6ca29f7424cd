#include "engine/segment/segment_view.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "engine/queue/cell_layout.h"
#include "engine/segment/heap_file.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_alias.h"
#include "engine/segment/segment_file.h"
#include "engine/segment/signpost.h"

namespace portofu {
namespace {

/// Reads `bytes` bytes at `offset`. @return nothing if the file does not have them
std::vector<std::byte> read_at(int fd, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  const ssize_t got = pread(fd, data.data(), bytes, static_cast<off_t>(offset));
  if (got != static_cast<ssize_t>(bytes)) data.clear();
  return data;
}

template <class Value>
Value value_at(const std::vector<std::byte>& data, std::size_t offset) {
  Value value{};
  if (offset + sizeof value <= data.size()) std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

/// Counts the cells that are published from the first one that is not released on.
std::uint32_t count_waiting(int fd, const SegmentLayout& layout, std::uint32_t slot_index, RingSize size) {
  const std::uint64_t start = layout.ring_offset(slot_index) + layout.ring_start(slot_index, size);
  const std::size_t cell_count = layout.ring_of(size).cell_count;
  const std::vector<std::byte> ring = read_at(fd, start, kRingControlBytes + cell_count * kCellBytes);
  const auto released = value_at<std::uint64_t>(ring, offsetof(RingControlShared, released));
  std::uint32_t waiting = 0;
  while (waiting < cell_count) {
    const std::uint64_t position = released + waiting;
    const std::size_t cell = kRingControlBytes + position % cell_count * kCellBytes;
    const auto word = value_at<std::uint32_t>(ring, cell + offsetof(CellShared, wire_word));
    if ((word & 0xffff) != lap_of(position)) break;
    ++waiting;
  }
  return waiting;
}

void view_channels(int fd, const SegmentLayout& layout, std::uint32_t slots_used, SegmentView* view) {
  const std::size_t count = std::min(slots_used, layout.channel_count);
  const std::vector<std::byte> slots = read_at(fd, layout.slots_offset(), count * sizeof(ChannelSlotShared));
  for (std::uint32_t index = 0; index < count; ++index) {
    const auto word =
        value_at<std::uint64_t>(slots, index * sizeof(ChannelSlotShared) + offsetof(ChannelSlotShared, word));
    constexpr std::uint64_t kStateBits = 0xff;
    if ((word & kStateBits) == 0) continue;  // Free.
    const auto is_small =
        value_at<std::uint32_t>(slots, index * sizeof(ChannelSlotShared) + offsetof(ChannelSlotShared, is_small));
    const RingSize size = is_small != 0 ? RingSize::kSmallest : RingSize::kUsual;
    view->channels.push_back({index, word, count_waiting(fd, layout, index, size)});
  }
}

/// Whether a segment of this process lives is known here only (segment_file.h).
std::shared_ptr<SegmentFile> find_or_open(const std::string& path) {
  if (std::shared_ptr<SegmentFile> own = find_own_segment(path)) return own;
  const int fd = open_named_segment(path);
  return fd >= 0 ? std::make_shared<SegmentFile>(fd, FileOwner::kOtherProcess) : nullptr;
}

SegmentView view_segment(const std::string& directory, const std::string& name) {
  SegmentView view;
  view.name = name;
  const OwnSegmentsLock lock;
  const std::shared_ptr<SegmentFile> file = find_or_open(directory + "/" + name);
  if (file == nullptr) return view;
  const int fd = file->fd();
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return view;
  const auto descriptor = value_at<SegmentDescriptorShared>(read_at(fd, 0, sizeof(SegmentDescriptorShared)), 0);
  if (!is_sound(descriptor, static_cast<std::uint64_t>(status.st_size))) return view;
  view.life = file->is_alive() ? SegmentLife::kLiving : SegmentLife::kDead;
  view.descriptor = descriptor;
  const SegmentLayout layout{descriptor.channel_count, descriptor.ring, descriptor.area_bytes};
  const std::vector<std::byte> control = read_at(fd, layout.control_offset(), sizeof(SegmentControlShared));
  for (std::size_t i = 0; i < view.counters.size(); ++i)
    view.counters[i] = value_at<std::uint64_t>(control, offsetof(SegmentControlShared, counters) + i * 8);
  view.endpoints = value_at<std::uint64_t>(control, offsetof(SegmentControlShared, endpoints));
  view.inspection_root = value_at<std::uint64_t>(control, offsetof(SegmentControlShared, inspection_root));
  view_channels(fd, layout, value_at<std::uint32_t>(control, offsetof(SegmentControlShared, slots_used)), &view);
  return view;
}

}  // namespace

bool view_segments(const std::string& directory, std::vector<SegmentView>* views) {
  views->clear();
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return false;
  const std::string prefix = segment_name_prefix();
  std::vector<std::string> names;
  while (names.size() < kMaxViewedNames) {
    const dirent* entry = readdir(listing);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    const bool is_other = is_alias_name(name) || is_heap_name(name) || is_stag_counts_name(name);
    if (name.starts_with(prefix) && !is_other) names.push_back(name);
  }
  closedir(listing);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) views->push_back(view_segment(directory, name));
  return true;
}

}  // namespace portofu
