#include "engine/run/engine_node.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/asymmetric_guard.h"
#include "engine/segment/kernel.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_alias.h"
#include "engine/segment/shared_heap.h"
#include "engine/topology/launcher.h"
#include "engine/topology/near_cpus.h"
#include "engine/topology/node_id.h"
#include "engine/topology/tofu_id.h"
#include "engine/wire/other_nodes.h"
#include "engine/wire/sim/faulty_datagrams.h"

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

void tell_who_cannot_ask(const std::vector<std::uint16_t>& taken, int error) {
  std::string ports;
  for (const std::uint16_t port : taken) ports += (ports.empty() ? "" : ", ") + std::to_string(port);
  if (is_shortage(error)) {
    return log_warning("other nodes cannot ask this process who owns control queues: %s",
                       system_failure("socket", "the UDP port " + ports, error).c_str());
  }
  log_warning(
      "other nodes cannot find control queues of this one: other programs have its UDP ports (%s); set "
      "PORTOFU_DIRECTORY_PORT to a free one, alike on all nodes",
      ports.c_str());
}

/// A node where nobody has answered is asked for two seconds only, for so long: what goes there ends soon meanwhile,
/// but not at once, because somebody may have begun there.
constexpr std::uint64_t kSilenceNs = 5'000'000'000;

}  // namespace

SegmentDirectory::SegmentDirectory(ProcessSegment& segment, NodeMap map, SocketKeeper* fabric,
                                   const DirectoryOptions& options)
    : segment_(segment),
      map_(std::move(map)),
      fabric_(fabric),
      socket_(
          options, Counters(segment.counters()),
          [this](std::uint64_t key, const Knower& asker, NameOwner* owner) {
            return find_alias(segment_, key, owner, &asker);
          },
          [this](ProcessId process, std::uint64_t life) {
            if (when_moved) when_moved(process);
            if (when_ended && life != 0) when_ended(process, life);
          }) {}

void SegmentDirectory::attend() {
  if (attended_ || socket_.fd() < 0) return;
  attended_ = true;
  fabric_->attend(socket_.fd(), [this] { socket_.serve(); });
}

void SegmentDirectory::introduce(Wire& wire) {
  if (fabric_ == nullptr || !fabric_->is_open()) return;
  const std::uint16_t ear = socket_.open_ear();
  attend();
  wire.other_nodes()->introduce(ear, [this](std::uint32_t nid, std::uint16_t port) {
    note_knower(segment_.file()->fd(), {nid, port});
  });
}

/// From the first claim on other nodes may ask. What this process lacks it may have at the next one.
void SegmentDirectory::listen() {
  if (listens_ || fabric_ == nullptr || !fabric_->is_open()) return;
  const bool done = socket_.listen();
  const int error = errno;
  listens_ = done || !is_shortage(error);
  attend();
  static constinit ToldOnce told;
  if (!done && told.is_first()) tell_who_cannot_ask(socket_.ports(), error);
}

/// Tries again to give up names that somebody of another node still knows.
void SegmentDirectory::release_pending() {
  std::erase_if(pending_, [this](std::uint64_t key) { return release_alias(segment_, key, meanwhile_); });
}

/// Before a queue is claimed, so that whoever has it next finds the counts in use. @return 0, or errno
int SegmentDirectory::count_stags() {
  const OwnSegmentsLock lock;
  return segment_.stag_counts().open(segment_.directory(), segment_.job_key()) ? 0 : errno;
}

void SegmentDirectory::tell_of_drawn_stadds(int error) const {
  static constinit ToldOnce told;
  if (!told.is_first()) return;
  const std::string path = stag_counts_path(segment_.directory(), segment_.job_key());
  log_warning("%s; the STADDs of this process begin at a drawn place", system_failure("open", path, error).c_str());
}

ClaimResult SegmentDirectory::claim(std::uint64_t key) {
  listen();
  const int error = is_kind(key, TofuIdKind::kVcq) ? count_stags() : 0;
  if (std::erase(pending_, key) != 0) return ClaimResult::kClaimed;
  switch (claim_alias(segment_, key, meanwhile_)) {
    case AliasResult::kClaimed:
      if (error != 0) tell_of_drawn_stadds(error);
      return ClaimResult::kClaimed;
    case AliasResult::kTaken: return ClaimResult::kTaken;
    case AliasResult::kFailed: break;
  }
  static constinit ToldOnce told;
  if (told.is_first()) {
    log_warning("%s; this process gets no control queue or gate",
                system_failure("link", "a name in " + segment_.directory(), errno).c_str());
  }
  return ClaimResult::kFailed;
}

void SegmentDirectory::release(std::uint64_t key) {
  release_pending();
  if (!release_alias(segment_, key, meanwhile_)) pending_.push_back(key);
}

bool SegmentDirectory::publish(const PublishedRegion& region) {
  if (!publishes_) return false;
  // Without it an entry could not be taken back.
  if (is_entry_key(region.key) && segment_.node_guard() != NodeGuard::kMembarrier) return false;
  if (process_heap().holds(reinterpret_cast<const void*>(region.start), region.bytes)) segment_.publish_heap();
  return publish_region(segment_.regions(), region);
}

bool SegmentDirectory::is_visited(std::uint64_t key) {
  // (V1) Who does not see by now that it was withdrawn is seen here.
  if (!before_rare_look_at_processes()) return true;
  const std::uint32_t used =
      std::min(segment_.control().slots_used.load(std::memory_order_acquire), segment_.layout().channel_count);
  for (std::uint32_t i = 0; i < used; ++i) {
    const ChannelSlotShared& slot = segment_.slot(i);
    if (slot.visited.load(std::memory_order_acquire) != key) continue;
    const SlotWord word = read_slot(slot);
    const bool open = word.state == SlotState::kPublished || word.state == SlotState::kEvicted;
    const std::uint64_t incarnation = slot.claimer_incarnation.load(std::memory_order_relaxed);
    if (open && !process_is_gone(segment_.directory(), word.claimer, incarnation)) return true;
  }
  return false;
}

/// What this process lacks says nothing about the owner: it is asked for again, for as long as a connection is.
FindResult SegmentDirectory::find_near(std::uint64_t key, NameOwner* owner) {
  errno = 0;
  const bool found = find_alias(segment_, key, owner);
  const int error = errno;
  if (found || !is_shortage(error)) {
    short_until_.erase(key);
    return found ? FindResult::kFound : FindResult::kNobody;
  }
  static constinit ToldOnce told;
  tell_of_wait(told, "open", "the name of a control queue or gate in " + segment_.directory(), error);
  const std::uint64_t now = kernel().now_ns();
  const auto [deadline, is_new] = short_until_.try_emplace(key, now + kConnectTimeoutNs);
  if (now < deadline->second) return FindResult::kLater;
  short_until_.erase(deadline);
  return FindResult::kNobody;
}

FindResult SegmentDirectory::find(std::uint64_t key, NameOwner* owner) {
  const std::uint32_t nid = map_.nid_at(coordinates_of(key));
  if (nid == 0 || nid == map_.own_nid() || fabric_ == nullptr) {
    return find_near(key, owner);
  }
  listen();
  const std::uint64_t now = kernel().now_ns();
  std::uint64_t& silent_until = silent_until_[nid];
  const AskResult result = socket_.ask(nid, key, owner, now < silent_until ? Patience::kShort : Patience::kFull);
  if (result == AskResult::kAsking) return FindResult::kLater;
  silent_until = result == AskResult::kNoAnswer ? now + kSilenceNs : 0;
  return result == AskResult::kFound ? FindResult::kFound : FindResult::kNobody;
}

namespace {

/// A port of the fabric may belong to somebody else while the PID is free; where any PID will do another one is tried.
constexpr int kFabricTries = 32;

SegmentOptions segment_options(const Settings& settings, std::uint32_t nid, std::uint32_t pid) {
  SegmentOptions options;
  options.nid = nid;
  options.pid = pid;
  options.job_key = settings.job_key;
  options.uid = geteuid();
  options.rank = static_cast<std::int32_t>(rank_of_launcher());
  options.keep_dead = settings.keep_dead != 0;
  options.memory_node = only_node_of(usable_cpus());
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
  if (node.clock != nullptr) {
    node.virtual_loopback = std::make_unique<VirtualWire>(*node.loopback, *node.clock);
    node.virtual_shm = std::make_unique<VirtualWire>(*node.shm, *node.clock);
  } else if (settings.shuffle_seed != 0) {
    // Each process has its own order.
    const std::uint64_t seed = (std::uint64_t{settings.shuffle_seed} << 32) + node.segment->id().pid;
    node.shuffled_loopback = std::make_unique<ShuffleWire>(*node.loopback, seed);
    node.shuffled_shm = std::make_unique<ShuffleWire>(*node.shm, ~seed);
  }
}

/// Writes what the wires carry to a file of this process. Without one it goes on all the same.
void capture(EngineNode& node, const Settings& settings) {
  const ProcessId self = node.segment->id();
  const std::string name = node_id_text(self.nid) + "-" + std::to_string(self.pid);
  const std::string path =
      settings.pcapng + "/portofu-" + name + "-" + std::to_string(node.segment->incarnation()) + ".pcapng";
  std::string why;
  node.capture_file = CaptureFile::create(path, name, &why);
  if (node.capture_file == nullptr) {
    static constinit ToldOnce told;
    if (told.is_first()) log_error("%s; packets are not captured", why.c_str());
    return;
  }
  CaptureFile& file = *node.capture_file;
  const std::vector<Wire*> wires = node.wires();
  Wire* const to_other_nodes = node.to_other_nodes();
  node.captured_loopback = std::make_unique<CaptureWire>(*wires[0], self, CaptureMedium::kLoopback, file);
  node.captured_shm = std::make_unique<CaptureWire>(*wires[1], self, CaptureMedium::kSharedMemory, file);
  if (to_other_nodes == nullptr) return;
  node.captured_other_nodes = std::make_unique<CaptureWire>(*to_other_nodes, self, CaptureMedium::kOtherNodes, file);
}

FabricOptions fabric_options(const Settings& settings, const ProcessSegment& segment, const NodeMap& map) {
  FabricOptions options;
  options.self = segment.id();
  options.job_key = settings.job_key;
  options.uid = geteuid();
  options.provider = settings.fabric_provider;
  options.base_port = settings.fabric_base_port;
  options.nodes = map.nids();
  return options;
}

/// @return false on failure, with reason
bool open_datagrams(EngineNode& node, const Settings& settings, const NodeMap& map, std::string* why) {
  const auto faults = parse_datagram_faults(settings.datagram_faults, why);
  if (!faults) return false;
  auto endpoint =
      FabricDatagrams::open(fabric_options(settings, *node.segment, map), Counters(node.segment->counters()), why);
  if (endpoint == nullptr) return false;
  node.datagram_endpoint = endpoint.get();
  std::unique_ptr<DatagramEndpoint> medium = std::move(endpoint);
  if (!settings.datagram_faults.empty()) {
    medium = std::make_unique<FaultyDatagrams>(std::move(medium), *faults, process_key(node.segment->id()));
  }
  ReliableOptions options;
  options.life = node.segment->incarnation();
  options.connect_timeout_ns = OfiWire::kOfiConnectNs;
  node.datagrams = std::make_unique<ReliableWire>(std::move(medium), options, Counters(node.segment->counters()));
  return true;
}

/// What a node is opened by.
struct NodeWish {
  const Settings& settings;
  const NodeMap& map;
  NodeReach reach;
};

/// Opens the way to other nodes, or makes it ready to open.
/// @return false on failure, with reason, and there is none
bool open_fabric(EngineNode& node, const NodeWish& wish, std::string* why) {
  const auto& [settings, map, reach] = wish;
  if (settings.fabric_endpoint == static_cast<std::uint32_t>(EndpointKind::kDatagram)) {
    return open_datagrams(node, settings, map, why);
  }
  const OfiOptions options{fabric_options(settings, *node.segment, map), node.segment->incarnation(), node_identity()};
  node.fabric = std::make_unique<OfiWire>(options, Counters(node.segment->counters()));
  const bool may_wait = !map.spans_nodes() && reach != NodeReach::kRequired;
  if (may_wait || node.fabric->open(why)) return true;
  node.fabric.reset();
  return false;
}

/// Writes down the steps of the engine from now on, if that is wanted and possible.
void open_recorder(EngineNode& node, const Settings& settings) {
  if (settings.record.empty() || settings.record == "off") return;
  StepFileOptions options;
  options.grows = settings.record != "last";
  options.directory = options.grows ? settings.record : node.segment->directory();
  options.keeps_dead = settings.keep_dead != 0;
  std::string why;
  node.step_file = StepFile::create(options, node.segment->id(), &why);
  if (node.step_file == nullptr) {
    static constinit ToldOnce told;
    if (told.is_first()) log_warning("PORTOFU_RECORD: %s; nothing is recorded", why.c_str());
    return;
  }
  node.recorder = std::make_unique<Recorder>(*node.step_file);
}

DirectoryOptions directory_options(const Settings& settings, std::uint32_t nid) {
  auto ports = DirectorySocket::default_ports(settings.job_key, geteuid());
  if (settings.directory_port != 0) ports = {static_cast<std::uint16_t>(settings.directory_port)};
  return {nid, std::move(ports), settings.job_key, geteuid()};
}

/// Claims a PID, and the port of the same number on the fabric if there is one.
/// @param options  `pid` is set to another one if any will do
OpenError claim_pid(EngineNode& node, const NodeWish& wish, SegmentOptions* options, std::string* why) {
  const auto use = static_cast<FabricUse>(wish.settings.fabric);
  const bool has_fabric = wish.reach != NodeReach::kNone && use != FabricUse::kOff;
  const std::uint32_t wanted = options->pid;
  int tries = 1;
  const auto try_next = [&](std::uint32_t taken) {
    if (wanted != 0 || ++tries > kFabricTries) return false;
    options->pid = taken % kMaxPid + 1;
    return true;
  };
  for (;;) {
    SegmentError error = SegmentError::kNone;
    node.segment.reset();
    node.segment = ProcessSegment::create(*options, &error, why);
    if (node.segment == nullptr) {
      const bool next_is_taken = error == SegmentError::kPidInUse && options->pid != wanted;
      if (!next_is_taken || !try_next(options->pid)) return to_open_error(error);
    } else if (!has_fabric || open_fabric(node, wish, why)) {
      return OpenError::kNone;
    } else if (!try_next(node.segment->id().pid)) {
      break;
    }
  }
  if (wish.reach == NodeReach::kRequired || use == FabricUse::kOn) return OpenError::kSystem;
  log_warning("other nodes cannot reach this process: %s", why->c_str());
  return OpenError::kNone;
}

}  // namespace

std::unique_ptr<EngineNode> open_node(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why,
                                      NodeReach reach) {
  const auto map = NodeMap::find(settings, why);
  *error = OpenError::kSystem;
  if (!map) return nullptr;
  if (!parse_datagram_faults(settings.datagram_faults, why)) return nullptr;
  SegmentOptions options = segment_options(settings, map->own_nid(), pid);
  auto node = std::make_unique<EngineNode>();
  *error = claim_pid(*node, {settings, *map, reach}, &options, why);
  if (*error != OpenError::kNone) return nullptr;
  if (!settings.sim.empty()) {
    *error = OpenError::kSystem;
    node->clock = VirtualClock::open(settings.sim, rank_of_launcher(), node->segment->id(), why);
    if (node->clock == nullptr) return nullptr;
  }
  *error = OpenError::kNone;
  make_wires(*node, settings, options);
  if (!settings.pcapng.empty()) capture(*node, settings);
  open_recorder(*node, settings);
  node->directory = std::make_unique<SegmentDirectory>(*node->segment, *map, node->keeper(),
                                                       directory_options(settings, map->own_nid()));
  if (node->capture_file != nullptr) node->directory->keep_regions();
  if (node->to_other_nodes() != nullptr) node->directory->introduce(*node->to_other_nodes());
  return node;
}

}  // namespace portofu
