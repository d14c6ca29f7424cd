#pragma once
// The file behind the heap of a process (shared_heap.h), as its owner makes it and as peers map it. It has no name
// until the first region in it is registered; from then on it is named, locked and swept like a segment.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/segment/mapping.h"
#include "engine/segment/segment_file.h"

namespace portofu {

/// Most bytes of a heap: offsets of registered memory have 40 bits.
inline constexpr std::uint64_t kMaxHeapBytes = std::uint64_t{1} << 40;

/// Where a heap is found, and where its owner has it. Published in the owner's segment.
struct HeapPlace {
  std::uint64_t id = 0;     ///< Random, part of its name; 0: there is none.
  std::uint64_t start = 0;  ///< Address in the owner's memory.
  std::uint64_t bytes = 0;  ///< Length of the file.
};

std::string heap_path(const std::string& directory, std::uint64_t id);

/// Whether a file name is that of a heap, which tools that list segments leave out.
bool is_heap_name(const std::string& name);

/// Makes a sparse file of `bytes` bytes without a name: 0600, locked by this process.
/// @return the descriptor, -1 if that cannot be done. Async-signal-safe: the child of a fork makes its own with it
int open_heap_file(const char* directory, std::uint64_t bytes);

/// Gives the file a name, once. The name goes when the process ends. @return its id; 0 if it cannot be named
std::uint64_t name_heap_file(const std::string& directory, const std::shared_ptr<SegmentFile>& file);

/// Takes the name away at the end of the process.
void unname_heap_file(const std::string& directory, std::uint64_t id, const SegmentFile& file);

/// Maps the heap of another process, or of another engine of this one, if it is what its owner has published.
/// @return an empty mapping if it is not, or if the kernel refuses
Mapping map_heap(const std::string& directory, const HeapPlace& place);

}  // namespace portofu
