#include "engine/inspect/core_picture.h"

#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/inspect/inspected_fields.h"

namespace portofu {
namespace {

/// Calls, operations and peers of one engine.
class CoreWalk {
 public:
  /// @param core  a copy
  CoreWalk(FarMemory& memory, const Core& core, CorePicture* picture)
      : memory_(memory), core_(core), picture_(picture) {}

  /// A call lies on the stack of its thread, which goes on with that when the call has ended: what was copied is
  /// taken for calls when none has ended meanwhile, and not before.
  void look_at_sleeps(const SleepingCalls* far) {
    for (int tries = 0; tries < kTries; ++tries) {
      const Copy<std::atomic<std::uint64_t>> before = memory_.copy(&far->changes);
      const std::vector<Copy<SleepingCall>> calls = copy_sleeps(memory_.copy(&far->first));
      const Copy<std::atomic<std::uint64_t>> after = memory_.copy(&far->changes);
      if (!before || !after || before->load() != after->load()) continue;
      for (const Copy<SleepingCall>& call : calls)
        picture_->sleeps.push_back({call->subject, call->since_ns, call->thread, call->tells_itself});
      return;
    }
  }

  void look_at_operations() {
    const auto& far = InspectedFields::chunks(core_.outstanding);
    if (core_.outstanding.open_count() == 0) return;
    const auto chunks = memory_.copy(far.data(), far.size());
    for (std::size_t i = 0; i < chunks.size() && picture_->operations.size() < kMostInspected; ++i) {
      const auto chunk = memory_.copy(chunks[i].get());
      if (!chunk) continue;
      for (const auto& slot : *chunk) {
        if (slot.operation.peer != nullptr) add(slot.id, slot.operation);
      }
    }
  }

  void look_at_peers() {
    each_in_map(memory_, core_.peers, [this](const auto& pair) {
      const Copy<Peer> peer = memory_.copy(pair.second.get());
      if (!peer) return;
      picture_->peers.push_back(
          {peer->id, peer->state, peer->requests.waiting.size(), peer->answers.waiting.size(), peer->outstanding});
    });
  }

 private:
  std::vector<Copy<SleepingCall>> copy_sleeps(const Copy<SleepingCall*>& first) {
    std::vector<Copy<SleepingCall>> calls;
    const SleepingCall* far = first ? *first : nullptr;
    while (far != nullptr && calls.size() < kMostInspected) {
      Copy<SleepingCall> call = memory_.copy(far);
      if (!call) break;
      far = call->next;
      calls.push_back(std::move(call));
    }
    return calls;
  }

  void add(std::uint32_t id, const OutstandingOperation& operation) {
    OperationPicture seen;
    seen.id = id;
    seen.kind = operation.kind;
    seen.interface_index = operation.interface_index;
    seen.target = id_of(operation.peer);
    seen.length = operation.length;
    seen.sent = operation.sent;
    seen.ack_req = operation.ack_req;
    if (operation.interface_index == kTofuInterface) {
      seen.peer_vcq = operation.tofu.peer_vcq;
    } else if (operation.interface_index != kForsaken) {
      seen.md_handle = operation.portals.md_handle;
      seen.reply_md_handle = operation.portals.reply_md_handle;
    }
    picture_->operations.push_back(seen);
  }

  ProcessId id_of(const Peer* far) {
    const auto [known, is_new] = ids_.try_emplace(far);
    if (is_new) {
      if (const Copy<ProcessId> id = memory_.copy(&far->id)) known->second = *id;
    }
    return known->second;
  }

  FarMemory& memory_;
  const Core& core_;
  CorePicture* picture_;
  std::unordered_map<const Peer*, ProcessId> ids_;
};

}  // namespace

bool look_at_core(FarMemory& memory, const Core* far, CorePicture* picture, Depth depth) {
  const Copy<Core> core = memory.copy(far);
  if (!core) return false;
  for (const auto& ni : core->interfaces) {
    InterfacePicture seen;
    if (ni != nullptr && look_at_interface(memory, ni.get(), &seen, depth))
      picture->interfaces.push_back(std::move(seen));
  }
  picture->last_astray = core->last_astray;
  CoreWalk walk(memory, *core, picture);
  walk.look_at_sleeps(&far->sleeping_calls);
  if (depth == Depth::kAll) {
    walk.look_at_operations();
    for (const PolledObject& polled : core->polled.places()) {
      if (polled.kind != WaitKind::kOther) picture->polls.push_back({polled});
    }
    for (const WordUse& use : core->swapped_words.places()) {
      if (use.initiator != ProcessId{}) picture->words.push_back({use});
    }
  }
  walk.look_at_peers();
  if (core->tofu != nullptr) look_at_tofu(memory, core->tofu.get(), picture, depth);
  return true;
}

}  // namespace portofu
