#include "engine/engine_node.h"

#include <unistd.h>

#include <cstdlib>

#include "engine/observe/log.h"
#include "engine/segment/segment_alias.h"
#include "engine/segment/shared_heap.h"
#include "engine/topology/launcher.h"
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
  SegmentControlShared& control = segment_.control();
  // Without an engine nobody needs the heap's name; from its first region on peers do.
  if (control.heap_id.load(std::memory_order_relaxed) == 0 &&
      process_heap().holds(reinterpret_cast<const void*>(region.start), region.bytes)) {
    const HeapPlace place = process_heap().publish();
    control.heap_start.store(place.start, std::memory_order_relaxed);
    control.heap_bytes.store(place.bytes, std::memory_order_relaxed);
    control.heap_id.store(place.id, std::memory_order_relaxed);
  }
  publish_region(segment_.regions(), region);
}

bool SegmentDirectory::find(std::uint64_t key, ProcessId* owner) { return find_alias(segment_, key, owner); }

namespace {

/// A port of the fabric may belong to somebody else while the PID is free; where any PID will do another one is tried.
constexpr int kFabricTries = 32;

SegmentOptions segment_options(const Settings& settings, std::uint32_t pid) {
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
  return options;
}

/// The wires that every node has.
void make_wires(EngineNode& node, const Settings& settings, const SegmentOptions& options) {
  node.loopback = std::make_unique<LoopbackWire>(node.segment->id(), options.ring);
  const auto long_data = static_cast<LongData>(settings.long_data);
  node.shm = std::make_unique<ShmWire>(*node.segment, settings.direct != 0, long_data);
  if (settings.shuffle_seed != 0) {
    // Each process has its own order.
    const std::uint64_t seed = (std::uint64_t{settings.shuffle_seed} << 32) + node.segment->id().pid;
    node.shuffled_loopback = std::make_unique<ShuffleWire>(*node.loopback, seed);
    node.shuffled_shm = std::make_unique<ShuffleWire>(*node.shm, ~seed);
  }
}

/// @return nothing, with the reason, if there is a hosts file that cannot be understood
std::optional<std::vector<Host>> find_hosts(const Settings& settings, std::string* why) {
  if (settings.hosts.empty()) return std::vector<Host>();
  auto hosts = read_host_file(settings.hosts, why);
  if (!hosts) *why = "PORTOFU_HOSTS=" + settings.hosts + ": " + *why;
  return hosts;
}

OfiOptions fabric_options(const Settings& settings, const ProcessSegment& segment, const std::vector<Host>& hosts) {
  OfiOptions options;
  options.self = segment.id();
  options.life = segment.incarnation();
  options.job_key = settings.job_key;
  options.uid = geteuid();
  options.provider = settings.fabric_provider;
  options.base_port = settings.fabric_base_port;
  for (const Host& host : hosts) options.nodes.push_back(host.nid);
  return options;
}

bool wants_fabric_now(const Settings& settings, const std::vector<Host>& hosts) {
  if (settings.fabric == static_cast<std::uint32_t>(FabricUse::kOn)) return true;
  return settings.fabric == static_cast<std::uint32_t>(FabricUse::kAuto) &&
         (hosts.size() > 1 || launcher_spans_nodes([](const char* name) { return std::getenv(name); }));
}

}  // namespace

std::unique_ptr<EngineNode> open_node(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why) {
  const auto hosts = find_hosts(settings, why);
  *error = OpenError::kSystem;
  if (!hosts) return nullptr;
  SegmentOptions options = segment_options(settings, pid);
  auto node = std::make_unique<EngineNode>();
  for (int tries = 1;; ++tries) {
    SegmentError segment_error = SegmentError::kNone;
    node->segment = ProcessSegment::create(options, &segment_error, why);
    *error = to_open_error(segment_error);
    if (node->segment == nullptr) return nullptr;
    if (settings.fabric == static_cast<std::uint32_t>(FabricUse::kOff)) break;
    node->fabric = std::make_unique<OfiWire>(fabric_options(settings, *node->segment, *hosts),
                                             Counters(node->segment->counters()));
    if (!wants_fabric_now(settings, *hosts) || node->fabric->open(why)) break;
    const std::uint32_t next_pid = node->segment->id().pid % kMaxPid + 1;
    node->fabric.reset();
    if (pid == 0 && tries < kFabricTries) {
      node->segment.reset();
      options.pid = next_pid;
      continue;
    }
    *error = OpenError::kSystem;
    if (settings.fabric == static_cast<std::uint32_t>(FabricUse::kOn)) return nullptr;
    log_warning("other nodes cannot reach this process: %s", why->c_str());
    break;
  }
  *error = OpenError::kNone;
  make_wires(*node, settings, options);
  node->directory = std::make_unique<SegmentDirectory>(*node->segment);
  return node;
}

}  // namespace portofu
