// The names word of segments that are not mapped here.

#include "engine/segment/names_word.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/segment/file_limit.h"
#include "engine/segment/layout.h"
#include "engine/segment/mapping.h"

namespace portofu {
namespace {

constexpr off_t kNamesAt = kNamesOffset;
constexpr off_t kRegionsAt = SegmentLayout().regions_offset();
constexpr std::size_t kWordsPerSlot = sizeof(RegionSlotShared) / sizeof(std::uint64_t);
static_assert(offsetof(RegionSlotShared, sequence) == 0 && offsetof(RegionSlotShared, key) == sizeof(std::uint64_t));

bool read_word(int fd, off_t at, std::uint64_t* word) { return pread(fd, word, sizeof *word, at) == sizeof *word; }

/// What cannot be written is cut off, and nobody can read it either. Memory has no limit of files.
void write_word(int fd, off_t at, std::uint64_t word) {
  const auto offset = static_cast<std::uint64_t>(at);
  if (is_allowed_length(offset + sizeof word)) return (void)!pwrite(fd, &word, sizeof word, at);
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const Mapping page = Mapping::map(fd, offset / page_bytes * page_bytes, page_bytes);
  if (page) reinterpret_cast<std::atomic<std::uint64_t>*>(page.at(offset % page_bytes))->store(word);
}

bool is_segment(int fd) {
  SegmentDescriptorShared descriptor{};
  struct stat status {};
  return fstat(fd, &status) == 0 && pread(fd, &descriptor, sizeof descriptor, 0) == sizeof descriptor &&
         has_head(descriptor, static_cast<std::uint64_t>(status.st_size));
}

/// Peers find nothing in the table any more, and what they have found is no longer good.
void withdraw_regions(int fd) {
  const auto table = std::make_unique<std::array<std::uint64_t, kRegionSlots * kWordsPerSlot>>();
  if (pread(fd, table->data(), sizeof *table, kRegionsAt) != static_cast<ssize_t>(sizeof *table)) return;
  for (std::size_t i = 0; i < kRegionSlots; ++i) {
    const std::uint64_t sequence = (*table)[i * kWordsPerSlot];
    if ((*table)[i * kWordsPerSlot + 1] == 0) continue;
    const auto at = static_cast<off_t>(kRegionsAt + i * sizeof(RegionSlotShared));
    // The key first: who sees the new number must not find the region by it (G1).
    write_word(fd, at + static_cast<off_t>(sizeof sequence), 0);
    write_word(fd, at, (sequence | 1) + 1);
  }
}

}  // namespace

LastNamesChange::LastNamesChange(int fd) : fd_(is_segment(fd) ? fd : -1) {
  if (fd_ < 0 || !read_word(fd_, kNamesAt, &names_)) return;
  // The owner may have died in the middle of a change.
  names_ = (names_ + 1) | 1;
  write_word(fd_, kNamesAt, names_);
  withdraw_regions(fd_);
}

LastNamesChange::~LastNamesChange() {
  if (fd_ >= 0) write_word(fd_, kNamesAt, names_ + 1);
}

std::uint64_t read_names(int fd) {
  std::uint64_t names = 0;
  return read_word(fd, kNamesAt, &names) && names % 2 == 0 ? names : kNamesMoving;
}

}  // namespace portofu
