#include "engine/engine_node.h"

#include <unistd.h>

#include "engine/segment/segment_alias.h"
#include "engine/segment/shared_heap.h"
#include "engine/topology/node_id.h"

namespace portofu {
namespace {

OpenError to_open_error(SegmentError error) {
  switch (error) {
    case SegmentError::kNone: return OpenError::kNone;
    case SegmentError::kPidInUse: return OpenError::kPidInUse;
    case SegmentError::kNoPidFree:
    case SegmentError::kNoMemory: return OpenError::kNoSpace;
    case SegmentError::kSystem: return OpenError::kSystem;
  }
  return OpenError::kSystem;
}

}  // namespace

ClaimResult SegmentDirectory::claim(std::uint64_t key) {
  switch (claim_alias(segment_, key)) {
    case AliasResult::kClaimed: return ClaimResult::kClaimed;
    case AliasResult::kTaken: return ClaimResult::kTaken;
    case AliasResult::kFailed: break;
  }
  return ClaimResult::kFailed;
}

void SegmentDirectory::release(std::uint64_t key) { release_alias(segment_, key); }

void SegmentDirectory::publish(const PublishedRegion& region) {
  if (process_heap().holds(reinterpret_cast<const void*>(region.start), region.bytes)) segment_.publish_heap();
  publish_region(segment_.regions(), region);
}

bool SegmentDirectory::find(std::uint64_t key, ProcessId* owner) { return find_alias(segment_, key, owner); }

std::unique_ptr<EngineNode> open_node(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why) {
  SegmentOptions options;
  options.nid = find_node_id(settings.nid, settings.interface);
  options.pid = pid;
  options.job_key = settings.job_key;
  options.uid = geteuid();
  options.channel_count = settings.channel_count;
  options.ring.cell_count = settings.ring_cells;
  options.ring.data_bytes = settings.ring_data_bytes;
  const auto long_data = static_cast<LongData>(settings.long_data);
  options.area_bytes = long_data == LongData::kRing ? 0 : settings.send_area_bytes;
  SegmentError segment_error = SegmentError::kNone;
  auto node = std::make_unique<EngineNode>();
  node->segment = ProcessSegment::create(options, &segment_error, why);
  *error = to_open_error(segment_error);
  if (node->segment == nullptr) return nullptr;
  node->loopback = std::make_unique<LoopbackWire>(node->segment->id(), options.ring);
  node->shm = std::make_unique<ShmWire>(*node->segment, settings.direct != 0, long_data);
  if (settings.shuffle_seed != 0) {
    // Each process has its own order.
    const std::uint64_t seed = (std::uint64_t{settings.shuffle_seed} << 32) + node->segment->id().pid;
    node->shuffled_loopback = std::make_unique<ShuffleWire>(*node->loopback, seed);
    node->shuffled_shm = std::make_unique<ShuffleWire>(*node->shm, ~seed);
  }
  node->directory = std::make_unique<SegmentDirectory>(*node->segment);
  return node;
}

}  // namespace portofu
