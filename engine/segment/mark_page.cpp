#include "engine/segment/mark_page.h"

#include <sys/mman.h>

#include "engine/queue/random_bytes.h"

namespace portofu {
namespace {

constexpr std::uint64_t kMarkPageBytes = 4096;
/// Programs lie below and above. Where a kernel has shorter addresses, it chooses itself.
constexpr std::uint64_t kLowest = std::uint64_t{1} << 32;
constexpr std::uint64_t kHighest = std::uint64_t{1} << 46;

}  // namespace

MarkPage::~MarkPage() {
  if (mark_ != nullptr) munmap(mark_, kMarkPageBytes);
}

bool MarkPage::take(std::uint64_t mark) {
  if (mark_ != nullptr) return false;
  std::uint64_t drawn = 0;
  draw_random(&drawn, sizeof drawn);  // 0 is no address, and the kernel chooses.
  const std::uint64_t wanted = drawn == 0 ? 0 : (kLowest + drawn % (kHighest - kLowest)) / kMarkPageBytes;
  void* const page = mmap(reinterpret_cast<void*>(wanted * kMarkPageBytes), kMarkPageBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  mark_ = static_cast<std::uint64_t*>(page);
  *mark_ = mark;
  return true;
}

}  // namespace portofu
