// Attaching to a peer's segment. Nothing that the file says is believed before it is checked.

#include "engine/segment/peer_segment.h"

#include <unistd.h>

#include <cerrno>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/assert.h"
#include "engine/queue/cancellation.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/signpost.h"

namespace portofu {
namespace {

constinit ToldOnce told_of_system;

/// Something is lacking here. It says nothing about the peer.
AttachResult tell_of_system(const char* call, const std::string& path, int error) {
  if (told_of_system.is_first()) {
    log_warning("%s; what is to go to that process waits, and fails after a second",
                system_failure(call, path + ", the segment of a process that this one talks to,", error).c_str());
  }
  return AttachResult::kSystem;
}

AttachResult result_of_open_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT: return AttachResult::kNoSuchSegment;
    case EACCES:
    case EPERM:
    case ELOOP:
    case EISDIR: return AttachResult::kRefused;
    default: return tell_of_system("open", path, error);
  }
}

/// Finds or opens the file of a peer. The caller holds an OwnSegmentsLock.
AttachResult open_file(const std::string& directory, const std::string& path, std::shared_ptr<SegmentFile>* file) {
  *file = find_own_segment(path);
  if (*file != nullptr) return AttachResult::kAttached;
  const int fd = open_named_segment(path);
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT) tell_if_names_are_hidden(directory);
    return result_of_open_error(path, error);
  }
  *file = std::make_shared<SegmentFile>(fd, FileOwner::kOtherProcess, path);
  return AttachResult::kAttached;
}

bool describes(const SegmentDescriptorShared& descriptor, ProcessId id, std::uint64_t file_bytes) {
  return is_sound(descriptor, file_bytes) && descriptor.nid == id.nid && descriptor.pid == id.pid;
}

}  // namespace

PeerSegment::PeerSegment(const SegmentDescriptorShared& descriptor)
    : descriptor_(descriptor),
      memory_(static_cast<pid_t>(descriptor.os_pid), descriptor.probe_address, descriptor.incarnation) {}

AttachResult PeerSegment::attach(const std::string& directory, ProcessId id, std::shared_ptr<PeerSegment>* peer) {
  const NoCancellation whole;
  const OwnSegmentsLock lock;
  const std::string path = segment_path(directory, id);
  std::shared_ptr<SegmentFile> file;
  const AttachResult opened = open_file(directory, path, &file);
  if (opened != AttachResult::kAttached) return opened;
  std::uint64_t file_bytes = 0;
  if (!is_private_file(file->fd(), &file_bytes)) return AttachResult::kRefused;
  SegmentDescriptorShared descriptor{};
  const ssize_t got = pread(file->fd(), &descriptor, sizeof descriptor, 0);
  const bool is_sound = got == static_cast<ssize_t>(sizeof descriptor) && describes(descriptor, id, file_bytes);
  if (!file->is_alive()) {
    const bool is_kept =
        got == static_cast<ssize_t>(sizeof descriptor) && has_head(descriptor, file_bytes) && descriptor.keep_dead != 0;
    if (!is_kept) remove_if_dead(path);
    return AttachResult::kNoSuchSegment;
  }
  if (!is_sound) return AttachResult::kRefused;
  std::shared_ptr<PeerSegment> made(new PeerSegment(descriptor));
  made->directory_ = directory;
  made->path_ = path;
  made->file_ = std::move(file);
  made->layout_ = {descriptor.channel_count, descriptor.ring, descriptor.area_bytes};
  made->header_ = Mapping::map(made->file_->fd(), 0, made->layout_.rings_offset());
  if (!made->header_) return tell_of_system("mmap", path, errno);
  made->header_.protect_front(kPageBytes);
  *peer = std::move(made);
  return AttachResult::kAttached;
}

SegmentControlShared& PeerSegment::control() {
  return *reinterpret_cast<SegmentControlShared*>(header_.at(layout_.control_offset()));
}

ChannelSlotShared& PeerSegment::slot(std::uint32_t slot_index) {
  PORTOFU_ASSERT(slot_index < layout_.channel_count);
  return reinterpret_cast<ChannelSlotShared*>(header_.at(layout_.slots_offset()))[slot_index];
}

const RegionTableShared& PeerSegment::regions() {
  return *reinterpret_cast<const RegionTableShared*>(header_.at(layout_.regions_offset()));
}

std::span<std::byte> PeerSegment::heap() {
  if (heap_place_.id == 0) {
    heap_place_.id = control().heap_id.load(std::memory_order_acquire);  // (G2)
    heap_place_.start = control().heap_start.load(std::memory_order_relaxed);
    heap_place_.bytes = control().heap_bytes.load(std::memory_order_relaxed);
    heap_ = map_heap(directory_, heap_place_);
  }
  if (!heap_) return {};
  return {heap_.at(0), heap_place_.bytes};
}

std::byte* PeerSegment::find_mapped(std::uint64_t address, std::uint64_t bytes) {
  const std::span<std::byte> all = heap();
  const std::uint64_t offset = address - heap_place_.start;
  if (offset >= all.size() || bytes > all.size() - offset) return nullptr;
  return all.data() + offset;
}

Mapping PeerSegment::allocate_ring(std::uint32_t slot_index, RingSize size) const {
  PORTOFU_ASSERT(slot_index < layout_.channel_count);
  const std::uint64_t bytes = layout_.ring_pages_bytes(size);
  if (!file_->allocate(layout_.ring_offset(slot_index), bytes)) return {};
  return Mapping::map(file_->fd(), layout_.ring_offset(slot_index), bytes);
}

Mapping PeerSegment::map_send_area() const {
  if (layout_.area_bytes == 0) return {};
  Mapping area = Mapping::map(file_->fd(), layout_.area_offset(), layout_.area_bytes);
  if (!area) return area;
  area.protect_front(layout_.area_bytes);
  return area;
}

bool PeerSegment::check_alive() {
  if (dead_) return false;
  if (file_->is_alive()) return true;
  dead_ = true;
  const std::uint64_t heap_id = control().heap_id.load(std::memory_order_relaxed);
  const OwnSegmentsLock lock;
  if (descriptor_.keep_dead == 0) remove_if_dead(path_);
  if (heap_id != 0) remove_if_dead(heap_path(directory_, heap_id));
  return false;
}

bool PeerSegment::is_replaced() const { return access(path_.c_str(), F_OK) == 0 && !stands_for(path_, file_->fd()); }

bool process_is_gone(const std::string& directory, ProcessId id, std::uint64_t incarnation) {
  std::shared_ptr<PeerSegment> peer;
  switch (PeerSegment::attach(directory, id, &peer)) {
    case AttachResult::kNoSuchSegment: return true;
    case AttachResult::kAttached: return incarnation != 0 && peer->incarnation() != incarnation;
    case AttachResult::kRefused:
    case AttachResult::kSystem: return false;
  }
  return false;
}

}  // namespace portofu
