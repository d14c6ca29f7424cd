// Claims and names of queues and gates. Nothing here is on the short path.

#include "engine/core/tofu.h"

namespace portofu {

/// Its place is made first: who has no memory for it claims no name. It is found only once the name is claimed.
template <class Object>
Object* Tofu::claim_for(std::uint64_t id, Claimed<Object>& objects, std::uint32_t number,
                        std::unique_ptr<Object> made) {
  Claimed<Object> place;
  place.emplace(number, std::move(made));
  objects.reserve(objects.size() + 1);
  if (claim(id) != ClaimResult::kClaimed) return nullptr;
  near_owners_.clear();
  return objects.insert(place.extract(number)).position->second.get();
}

ControlQueue* Tofu::claim_queue(std::uint32_t tni, std::uint32_t cq, CqMode mode) {
  const std::uint32_t key = make_queue_number(tni, cq, 0) >> 8;
  if (queues_.contains(key)) return nullptr;
  auto made = std::make_unique<ControlQueue>(components_, directory, key);
  made->mode = mode;
  const std::uint64_t id = queue_id(tni, cq);
  ControlQueue* const queue = claim_for(id, queues_, key, std::move(made));
  if (queue != nullptr && directory != nullptr) queue->stadds.count_in(directory->stags_given(claim_key(id)));
  // What was posted to another owner may be under way: what is posted to it from now on waits for its turn.
  if (queue != nullptr && owners_.contains(claim_key(id))) ownerless.try_emplace(claim_key(id));
  return queue;
}

ControlQueue* Tofu::look_up_queue(std::uint32_t number) {
  const auto found = queues_.find(number >> 8);
  if (found == queues_.end()) return nullptr;
  return near_queues_.place(number >> 8) = found->second.get();
}

void Tofu::release_queue(std::uint32_t tni, std::uint32_t cq) {
  const std::uint32_t number = make_queue_number(tni, cq, 0);
  near_queues_.place(number >> 8) = nullptr;
  queues_.erase(number >> 8);
  if (directory != nullptr) directory->release(claim_key(queue_id(tni, cq)));
}

bool Tofu::enter(VirtualControlQueue& vcq) {
  std::uint32_t index = 0;
  while (index < by_handle_.size() && by_handle_[index] != nullptr) ++index;
  if (index >= kMaxVcqs) return false;
  if (index == by_handle_.size()) by_handle_.push_back(nullptr);
  handles_given_ = handles_given_ % kHandleUses + 1;  // Never 0, so no handle is.
  vcq.handle = handles_given_ * kMaxVcqs + index;
  by_handle_[index] = &vcq;
  return true;
}

BarrierGate* Tofu::claim_gate(std::uint64_t id) {
  const std::uint32_t number = queue_number(id);
  if (gates_.contains(number)) return nullptr;
  auto made = std::make_unique<BarrierGate>();
  made->id = id;
  return claim_for(id, gates_, number, std::move(made));
}

void Tofu::release_gate(std::uint64_t id) {
  gates_.erase(queue_number(id));
  if (directory != nullptr) directory->release(claim_key(id));
}

bool Tofu::recall_owner(std::uint64_t id, NameOwner* owner) const {
  const auto found = owners_.find(claim_key(id));
  if (found == owners_.end()) return false;
  *owner = found->second;
  return true;
}

void Tofu::distrust_owner(ProcessId process) {
  near_owners_.clear();
  for (auto& [key, owner] : owners_) {
    if (owner == process) owner.names = kNamesMoving;
  }
}

FindResult Tofu::ask_owner(std::uint64_t id, NameOwner* owner) {
  if (directory == nullptr) return FindResult::kNobody;
  near_owners_.clear();
  const FindResult found = directory->find(claim_key(id), owner);
  if (found != FindResult::kFound) return found;
  owners_[claim_key(id)] = *owner;
  return found;
}

}  // namespace portofu
