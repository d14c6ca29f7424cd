// Mapping and unmapping, and what fork does to it.

#include "engine/segment/mapping.h"

#include <sys/mman.h>

#include <utility>

#include "engine/segment/own_segments.h"

namespace portofu {

Mapping::~Mapping() {
  // In a forked child the range is not ours: it was not inherited, and something else may lie there by now.
  if (base_ != nullptr && fork_generation_ == fork_generation()) munmap(base_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      fork_generation_(other.fork_generation_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(fork_generation_, other.fork_generation_);
  return *this;
}

Mapping Mapping::map(int fd, std::uint64_t offset, std::uint64_t bytes) {
  Mapping mapping;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (base == MAP_FAILED) return mapping;
  madvise(base, bytes, MADV_DONTFORK);
  mapping.base_ = static_cast<std::byte*>(base);
  mapping.bytes_ = bytes;
  mapping.fork_generation_ = fork_generation();
  return mapping;
}

void Mapping::populate() {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14.
  madvise(base_, bytes_, kPopulateWrite);
}

void Mapping::let_go() {
  mmap(base_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  madvise(base_, bytes_, MADV_DONTFORK);
}

void Mapping::protect_front(std::uint64_t bytes) { mprotect(base_, bytes, PROT_READ); }

}  // namespace portofu
