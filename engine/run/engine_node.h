#pragma once
// What an engine on a real node owns beside its core: its segment, the wires over it, and the wire to other nodes.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/check/checker.h"
#include "engine/config/settings.h"
#include "engine/inspect/explanation.h"
#include "engine/inspect/inspection_root.h"
#include "engine/run/engine.h"
#include "engine/run/virtual_nic.h"
#include "engine/segment/node_directory.h"
#include "engine/segment/process_segment.h"
#include "engine/segment/step_file.h"
#include "engine/topology/node_map.h"
#include "engine/wire/capture/capture_wire.h"
#include "engine/wire/loopback/loopback_wire.h"
#include "engine/wire/ofi/directory_socket.h"
#include "engine/wire/ofi/fabric_datagrams.h"
#include "engine/wire/ofi/ofi_wire.h"
#include "engine/wire/reliable/reliable_wire.h"
#include "engine/wire/shm/shm_wire.h"
#include "engine/wire/sim/shuffle_wire.h"
#include "engine/wire/sim/virtual_clock.h"
#include "engine/wire/sim/virtual_wire.h"

namespace portofu {

/// Claims are further names of the segment; for other nodes, any process there that has claimed something is asked.
class SegmentDirectory final : public NodeDirectory {
 public:
  /// @param fabric  nullptr, or where questions of other nodes come in once it is open
  SegmentDirectory(ProcessSegment& segment, NodeMap map, SocketKeeper* fabric, const DirectoryOptions& options);

  /// Says by the wire to other nodes where this process is told of names that move, and notes who knows ours.
  void introduce(Wire& wire);
  ClaimResult claim(std::uint64_t key) override;
  void release(std::uint64_t key) override;
  FindResult find(std::uint64_t key, NameOwner* owner) override;
  std::atomic<std::uint64_t>* stags_given(std::uint64_t key) override { return &segment_.stag_counts().of(key); }
  bool publish(const PublishedRegion& region) override;
  void withdraw(std::uint64_t key) override { withdraw_region(segment_.regions(), key); }
  bool is_visited(std::uint64_t key) override;

  /// From now on nothing is published: what peers do has to be seen.
  void keep_regions() { publishes_ = false; }

 private:
  FindResult find_near(std::uint64_t key, NameOwner* owner);
  int count_stags();
  void tell_of_drawn_stadds(int error) const;
  void attend();
  void listen();
  void release_pending();

  ProcessSegment& segment_;
  const NodeMap map_;
  SocketKeeper* fabric_;
  DirectorySocket socket_;
  const Meanwhile meanwhile_ = [this] { socket_.hear(); };         ///< While others are waited for.
  std::vector<std::uint64_t> pending_;                             ///< Given up, and somebody has not heard yet.
  bool listens_ = false;                                           ///< It was tried.
  bool publishes_ = true;                                          ///< Until keep_regions.
  bool attended_ = false;                                          ///< The fabric looks after the socket.
  std::unordered_map<std::uint32_t, std::uint64_t> silent_until_;  ///< By NID: nobody answered; asked shortly before.
  std::unordered_map<std::uint64_t, std::uint64_t> short_until_;   ///< By key: something is lacking; asked until then.
};

struct EngineNode {
  std::unique_ptr<ProcessSegment> segment;
  std::unique_ptr<StepFile> step_file;  ///< nullptr: nothing is recorded.
  std::unique_ptr<Recorder> recorder;   ///< Into it.
  std::unique_ptr<LoopbackWire> loopback;
  std::unique_ptr<ShmWire> shm;
  std::unique_ptr<ShuffleWire> shuffled_loopback;  ///< Over `loopback`; nullptr unless PORTOFU_SHUFFLE is set.
  std::unique_ptr<ShuffleWire> shuffled_shm;       ///< Over `shm`, likewise.
  std::unique_ptr<VirtualClock> clock;             ///< nullptr unless PORTOFU_SIM is set, and so these:
  std::unique_ptr<VirtualWire> virtual_loopback;   ///< Over `loopback`.
  std::unique_ptr<VirtualWire> virtual_shm;        ///< Over `shm`.

  // To other nodes: one of them, or none, and nothing reaches them.
  std::unique_ptr<OfiWire> fabric;               ///< May be closed.
  std::unique_ptr<ReliableWire> datagrams;       ///< PORTOFU_FABRIC_ENDPOINT=datagram.
  FabricDatagrams* datagram_endpoint = nullptr;  ///< Of `datagrams`.

  // Over those that the engine polls, or all nullptr, unless PORTOFU_PCAPNG is set.
  std::unique_ptr<CaptureFile> capture_file;
  std::unique_ptr<CaptureWire> captured_loopback;
  std::unique_ptr<CaptureWire> captured_shm;
  std::unique_ptr<CaptureWire> captured_other_nodes;  ///< nullptr also if nothing reaches them.

  Wire* to_other_nodes() const {
    if (captured_other_nodes != nullptr) return captured_other_nodes.get();
    return datagrams != nullptr ? static_cast<Wire*>(datagrams.get()) : fabric.get();
  }
  SocketKeeper* keeper() const {
    return datagrams != nullptr ? static_cast<SocketKeeper*>(datagram_endpoint) : fabric.get();
  }

  /// What the engine polls, in this order, beside the fabric.
  std::vector<Wire*> wires() const {
    if (captured_shm != nullptr) return {captured_loopback.get(), captured_shm.get()};
    if (virtual_shm != nullptr) return {virtual_loopback.get(), virtual_shm.get()};
    if (shuffled_shm != nullptr) return {shuffled_loopback.get(), shuffled_shm.get()};
    return {loopback.get(), shm.get()};
  }
  std::unique_ptr<SegmentDirectory> directory;
  InspectionRoot root;                ///< Of the engine.
  std::unique_ptr<Looks> first_look;  ///< On duty: of a loop that lasts (Engine::look_why), until its second one.
  std::unique_ptr<VirtualNic> nic;    ///< Of the engine, in virtual time; nullptr unless PORTOFU_SIM is set.
  std::unique_ptr<Checker> checker;   ///< nullptr unless PORTOFU_CHECK is set.
  Observers observers;                ///< Core::observers, if there is one: the recorder and the checker.
};

/// @return nullptr on failure, with reason
std::unique_ptr<EngineNode> open_node(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why,
                                      NodeReach reach = NodeReach::kAsSet);

}  // namespace portofu
