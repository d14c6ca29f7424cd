#pragma once
// What uTofu has in an engine: control queues with their VCQs and registered memory, and barrier gates. Made when the
// first of them is asked for; touched on duty only. Limits and claims stand here, policy in lib/utofu.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/core/direct_lane.h"
#include "engine/descriptor/handle.h"
#include "engine/event/barrier_gate.h"
#include "engine/event/counting_event.h"
#include "engine/event/notice_queue.h"
#include "engine/memory/stadd_table.h"
#include "engine/queue/direct_mapped.h"
#include "engine/segment/node_directory.h"
#include "engine/topology/tofu_id.h"

namespace portofu {

struct Peer;

/// What a CQ is used for; fixed when it is claimed. @spec uTofu guide, 2.2.7, 2.2.8, 3.3.4.1
enum class CqMode : std::uint8_t { kShared, kExclusive, kSession };

/// The communication of a VCQ that failed last, for onlookers.
struct FailedCommunication {
  NiFail fail = NiFail::kOk;  ///< kOk: there was none.
  bool remote = true;         ///< It is the remote side's memory or STADD; false: ours.
  std::uint64_t vcq_id = 0;   ///< Of the other side.
  std::uint64_t stadd = 0;    ///< End of the range at that side.
  std::uint64_t at_ns = 0;
};

/// @spec uTofu guide, 2.2.1
struct VirtualControlQueue {
  VirtualControlQueue(std::uint32_t toq_entries, std::uint32_t mrq_entries) : tcq(toq_entries), mrq(mrq_entries) {}

  std::uint64_t id = 0;  ///< With the node's own path.
  Handle handle = 0;     ///< Names it in descriptors and operations; never that of another VCQ soon.
  bool session = false;
  bool thread_safe = false;  ///< UTOFU_VCQ_FLAG_THREAD_SAFE.
  TransmitCompleteQueue tcq;
  MessageReceiveQueue mrq;
  DirectLane direct{tcq, mrq};
  std::deque<Descriptor> delayed;  ///< Held back by DELAY_START, in order.
  std::uint32_t ownerless = 0;     ///< Descriptors that wait for their owner (Tofu::ownerless). Its lane is empty then.
  CountingEvent steps;             ///< Session mode: descriptors that may have started.
  std::uint64_t posted = 0;        ///< Session mode: descriptors posted.
  FailedCommunication last_failed;
  std::uint64_t astray_steps = 0;  ///< For onlookers: not in session mode, and got them all the same.
  ProcessId astray_from;           ///< Who sent the last of them.

  /// Notices of both kinds: those of the MRQ, and those that the user of the lane has made for itself. To be read and
  /// counted on duty while nobody is inside the lane: any thread may read what another one has asked for (2.1).
  std::uint64_t unread_notices() const { return mrq.unread() + direct.notices.size(); }

  /// Reads the next notice. @return false if there is none
  bool read_notice(Notice* notice) {
    const Notice* const own = direct.notices.front(mrq);
    if (own == nullptr) [[likely]]
      return mrq.read(notice);
    *notice = *own;
    direct.notices.drop();
    return true;
  }
};

struct ControlQueue {
  /// @param queue_key  queue number without component
  ControlQueue(std::uint32_t components, NodeDirectory* directory, std::uint32_t queue_key)
      : key(queue_key), stadds(directory, queue_key), vcqs(components) {}

  const std::uint32_t key;
  CqMode mode = CqMode::kShared;
  StaddTable stadds;
  std::vector<std::unique_ptr<VirtualControlQueue>> vcqs;  ///< By component ID.

  bool is_empty() const {
    for (const auto& vcq : vcqs) {
      if (vcq != nullptr) return false;
    }
    return true;
  }
};

/// That a communication has ended with its peer, to be told in the order of posting.
struct LostNotice {
  Handle vcq_handle;
  std::uint64_t tcq_place;  ///< Of its descriptor.
  Notice notice;
};

/// A descriptor, or the packet of a gate, whose target is not known yet. @see initiator/tofu_owner
struct OwnerlessRequest {
  Descriptor descriptor;
  std::unique_ptr<std::byte[]> gate_value;  ///< kTofuGate with one: its payload; else nullptr.
  bool is_late = false;  ///< Posted when its node was being asked already: the answer may be older than this.
};

class Tofu {
 public:
  /// @param node  nullptr: everything is claimed successfully, and only this process is known
  /// @param components  VCQs of a CQ, 1..256
  Tofu(const Coordinates& at, NodeDirectory* node, std::uint32_t components = 8)
      : coordinates(at), directory(node), components_(components) {
    if (node != nullptr) node->when_moved = [this](ProcessId process) { distrust_owner(process); };
  }
  ~Tofu() {
    if (directory != nullptr) directory->when_moved = nullptr;
  }
  Tofu(const Tofu&) = delete;
  Tofu& operator=(const Tofu&) = delete;

  const Coordinates coordinates;   ///< Of this node.
  NodeDirectory* const directory;  ///< Outlives this object.

  /// Claims a CQ for this process. @return nullptr if another process has it, or nothing can be claimed (is_refused)
  ControlQueue* claim_queue(std::uint32_t tni, std::uint32_t cq, CqMode mode);
  void release_queue(std::uint32_t tni, std::uint32_t cq);
  ControlQueue* queue(std::uint32_t number) {
    ControlQueue* const near = near_queues_.place(number >> 8);
    return near != nullptr && near->key == number >> 8 ? near : look_up_queue(number);
  }

  /// The STADDs of the CQ of a VCQ.
  StaddTable& stadds(const VirtualControlQueue& vcq) { return queue(queue_number(vcq.id))->stadds; }

  /// The VCQ of a queue number of this process; nullptr if there is none.
  VirtualControlQueue* vcq_of_number(std::uint32_t number) {
    ControlQueue* const cq = queue(number);
    const std::uint32_t component = number & 0xff;
    return cq == nullptr || component >= cq->vcqs.size() ? nullptr : cq->vcqs[component].get();
  }

  /// The VCQ of a handle; nullptr if it was freed.
  VirtualControlQueue* vcq(Handle handle) const {
    const std::uint32_t index = handle & (kMaxVcqs - 1);
    if (index >= by_handle_.size()) return nullptr;
    VirtualControlQueue* found = by_handle_[index];
    return found != nullptr && found->handle == handle ? found : nullptr;
  }

  /// Lets the handles start elsewhere than those of another life of this process: what failed of its puts may be told
  /// late.
  /// @param life  any number that differs from life to life; to be called before the first VCQ
  void tell_apart(std::uint64_t life) {
    handles_given_ = static_cast<std::uint32_t>(life * 0x9e3779b97f4a7c15u >> 32) % kHandleUses;
  }

  /// Gives a new VCQ its handle. @return false if there are kMaxVcqs
  bool enter(VirtualControlQueue& vcq);
  void leave(const VirtualControlQueue& vcq) { by_handle_[vcq.handle & (kMaxVcqs - 1)] = nullptr; }

  BarrierGate* claim_gate(std::uint64_t id);

  /// Whether the system has refused the name of what was last claimed. It would refuse that of another one, too.
  bool is_refused() const { return is_refused_; }

  void release_gate(std::uint64_t id);
  BarrierGate* gate(std::uint32_t number) const {
    const auto found = gates_.find(number);
    return found == gates_.end() ? nullptr : found->second.get();
  }

  /// Calls `visit(gate)` for every gate of this process.
  template <class Visit>
  void for_each_gate(Visit&& visit) {
    for (const auto& [number, gate] : gates_) visit(*gate);
  }

  /// Calls `visit(vcq)` for every VCQ of this process.
  template <class Visit>
  void for_each_vcq(Visit&& visit) {
    for (VirtualControlQueue* vcq : by_handle_) {
      if (vcq != nullptr) visit(*vcq);
    }
  }

  /// Who owns a queue or gate, from memory, which is good while the names word of that process has not moved; or asked
  /// anew, which may have to be repeated.
  bool recall_owner(std::uint64_t id, NameOwner* owner) const;
  FindResult ask_owner(std::uint64_t id, NameOwner* owner);
  /// What the process has is asked for before it is used again.
  void distrust_owner(ProcessId process);
  /// An id is asked for before it is used again. If nobody has it, the last owner is known still, and answers for it.
  void distrust_owner_of(std::uint64_t id) {
    near_owners_.clear();
    const auto found = owners_.find(claim_key(id));
    if (found != owners_.end()) found->second.names = kNamesMoving;
  }

  /// The other process that was found to own an id, while its names word was that.
  struct alignas(32) NearOwner {
    std::uint64_t id = 0;  ///< 0: none.
    Peer* peer = nullptr;
    std::uint64_t names = 0;
  };

  /// Of this very id, if nothing has been learnt of owners since; else nullptr.
  const NearOwner* near_owner(std::uint64_t id) const {
    const NearOwner& near = near_owners_.place(id);
    return near.id == id && near.peer != nullptr ? &near : nullptr;
  }
  void keep_near_owner(const NearOwner& near) { near_owners_.place(near.id) = near; }

  static constexpr std::uint32_t kMaxVcqs = 1u << 16;
  static constexpr std::uint32_t kHandleUses = 1u << 14;  ///< Handles of one place, in turns.

  // Of initiator/tofu_owner.
  std::unordered_map<std::uint64_t, std::deque<OwnerlessRequest>> ownerless;  ///< By claim key, in order of posting.
  std::uint64_t ask_again_ns = 0;                                             ///< When nodes are asked again.

  // Of initiator/circuit.
  std::uint32_t gate_settings = 0;         ///< Numbers given to settings of gates.
  bool circuits_over = false;              ///< Some circuit has an end, or some gate has left its own.
  bool has_doubts = false;                 ///< Some gate may have.
  std::uint64_t ask_sources_again_ns = 0;  ///< When sources to whom a link was lost are asked again.
  /// What was the last setting of a source in a circuit that a gate has left, 0: not known; by number of the gate, and
  /// id and process_key of the source, {0, 0}: not known. The source 0: there were others, which are forgotten.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> former_sources;

  // Of initiator/tofu_report.
  std::vector<LostNotice> lost_notices;  ///< In any order.
  bool loses_peer = false;               ///< A peer is being lost: its notices are gathered there.

  // Of initiator/tofu_direct.
  std::uint64_t lanes_opened = 0;  ///< Names the latest stretch, see Peer::lane.
  std::uint64_t lane_uses = 0;     ///< By all VCQs, when the timers looked last.
  bool has_lanes = false;          ///< Some lane may be open.

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  ClaimResult claim(std::uint64_t id) {
    const ClaimResult result = directory == nullptr ? ClaimResult::kClaimed : directory->claim(claim_key(id));
    is_refused_ = result == ClaimResult::kFailed;
    return result;
  }
  std::uint64_t queue_id(std::uint32_t tni, std::uint32_t cq) const {
    return make_tofu_id(TofuIdKind::kVcq, coordinates, make_queue_number(tni, cq, 0));
  }

  template <class Object>
  using Claimed = std::unordered_map<std::uint32_t, std::unique_ptr<Object>>;
  /// Throws bad_alloc without memory. @return nullptr if another process has the name, or the system refuses it
  template <class Object>
  Object* claim_for(std::uint64_t id, Claimed<Object>& objects, std::uint32_t number, std::unique_ptr<Object> made);

  static constexpr std::size_t kNearQueues = 256;
  static constexpr std::size_t kNearOwners = 64;
  ControlQueue* look_up_queue(std::uint32_t number);

  std::uint32_t components_;
  Claimed<ControlQueue> queues_;                          ///< By queue number without component.
  DirectMapped<ControlQueue*, kNearQueues> near_queues_;  ///< Some of them, by the same; nullptr: none yet.
  Claimed<BarrierGate> gates_;                            ///< By queue number.
  std::unordered_map<std::uint64_t, NameOwner> owners_;   ///< By claim key; may be out of date.
  DirectMapped<NearOwner, kNearOwners> near_owners_;      ///< Some of them, by whole id; no process of our own.
  std::vector<VirtualControlQueue*> by_handle_;
  std::uint32_t handles_given_ = 0;
  bool is_refused_ = false;
};

}  // namespace portofu
