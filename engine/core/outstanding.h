#pragma once
// Operations that wait for an answer: opened in step 3 of a Put, closed in step 9.

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/descriptor/descriptor.h"
#include "engine/descriptor/handle.h"
#include "engine/event/event.h"

namespace portofu {

struct Peer;

/// What ACK or REPLY says.
struct AnswerReport {
  union {
    void* user_ptr = nullptr;  ///< Portals, libfabric.
    std::uint64_t tcq_place;   ///< uTofu: operations of a VCQ were posted in this order.
  };
  std::uint64_t mlength = 0;        ///< From the answer.
  std::uint64_t remote_offset = 0;  ///< From the answer.
  AckRequest ack_req = AckRequest::kNone;
  NiFail fail = NiFail::kOk;  ///< From the answer, or of storing its data.
  bool silent = false;        ///< From the answer, or because SEND tells a failure: raises no ACK.
  ListKind list = ListKind::kPriority;
};

/// What is kept of an operation of Portals or libfabric for its answer.
struct AskedOfEntry {
  Handle md_handle = 0;            ///< For ACK.
  Handle reply_md_handle = 0;      ///< kGet, kFetchAtomic, kSwap: for the data and REPLY; 0: no data comes back.
  std::uint64_t reply_offset = 0;  ///< Bytes into reply_md_handle.
  std::uint64_t put_offset = 0;    ///< Remote offset asked for.
};

/// What is kept of an operation of uTofu for its answer.
struct AskedOfRegion {
  Handle vcq_handle;       ///< Who asked.
  std::uint32_t edata;     ///< For the notice.
  std::uint64_t peer_vcq;  ///< Id of the VCQ that was asked, with the path of its own node.
  union {
    std::uint64_t local_stadd;  ///< kTofuGet: where the data goes.
    std::uint64_t old_value;    ///< kTofuArmw: from the answer.
  };
};

/// In place of the index of an interface: nobody wants the answer any more.
inline constexpr std::uint8_t kForsaken = kTofuInterface + 1;

/// One operation that a target has to answer.
struct OutstandingOperation : AnswerReport {
  std::uint32_t md_use = 0;  ///< Of Portals or libfabric: MemoryDescriptor::use of `md_handle`.
  Peer* peer = nullptr;      ///< Who has to answer; nullptr: the slot is free.
  PacketType kind = PacketType::kPut;
  std::uint8_t interface_index = 0;  ///< Says which member of the union there is; or kForsaken.
  bool sent = false;                 ///< All data has left.
  bool answered = false;             ///< The answer came before all data had left (the target refused early).
  bool expects_data = false;         ///< The answer brings data.
  bool is_mark = false;              ///< Of lib/libfabric/credit: it may be answered late, and nothing waits for it.
  std::uint64_t length = 0;          ///< Bytes asked for.
  union {
    AskedOfEntry portals{};
    AskedOfRegion tofu;
  };

  /// Whoever asked has gone, and the answer is still due. The slot is kept until it has come, or the peer is lost: the
  /// answer must not find a later operation of the same id.
  void forsake() {
    interface_index = kForsaken;
    sent = false;  // Nothing of it is reported (initiator/answer_in).
  }
};
static_assert(std::is_trivially_copyable_v<OutstandingOperation>);

/// Ids are never 0 and change their upper bits with every use of a slot, so a forged answer finds nothing. A slot is
/// free when its answer has come or its peer is lost, so a late one finds nothing either, however often the bits wrap.
class OutstandingTable {
 public:
  /// Lets the ids start elsewhere than those of another life of this process, for which answers may still come in.
  /// @param life  any number that differs from life to life; to be called before the first open
  void tell_apart(std::uint64_t life) {
    first_id_ = static_cast<std::uint32_t>(life * 0x9e3779b97f4a7c15u >> 32) & ~(kMaxOperations - 1);
  }

  /// Another number in each life.
  std::uint32_t first_id() const { return first_id_; }

  /// @return nullptr if kMaxOperations are open, or there is no memory for one more
  OutstandingOperation* open(std::uint32_t* operation_id);

  /// @return nullptr for an id that is not open
  OutstandingOperation* find(std::uint32_t operation_id) {
    const std::uint32_t index = operation_id & (kMaxOperations - 1);
    if (index / kChunkSlots >= chunks_.size()) return nullptr;
    Slot& slot = slot_at(index);
    return slot.operation.peer != nullptr && slot.id == operation_id ? &slot.operation : nullptr;
  }

  void close(std::uint32_t operation_id);

  std::uint32_t open_count() const { return open_count_; }

  /// Calls `visit(id, operation)`, which opens none, for every open operation.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& chunk : chunks_) {
      for (Slot& slot : *chunk) {
        if (slot.operation.peer != nullptr) visit(slot.id, slot.operation);
      }
    }
  }

  static constexpr std::uint32_t kMaxOperations = 1u << 20;

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  struct Slot {
    OutstandingOperation operation;
    std::uint32_t id = 0;  ///< Index in the lower bits, uses of the slot in the upper ones.
  };
  static constexpr std::uint32_t kChunkSlots = 64;
  using Chunk = std::array<Slot, kChunkSlots>;

  Slot& slot_at(std::uint32_t index) { return (*chunks_[index / kChunkSlots])[index % kChunkSlots]; }
  bool add_chunk();

  std::vector<std::unique_ptr<Chunk>> chunks_;  ///< Never fewer; slots do not move.
  std::vector<std::uint32_t> free_;             ///< Indices; the one used last comes first, while it is in the cache.
  std::uint32_t open_count_ = 0;
  std::uint32_t first_id_ = 0;  ///< Upper bits with which a new slot starts.
};

}  // namespace portofu
