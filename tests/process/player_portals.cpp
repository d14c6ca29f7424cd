// The player of Portals.

#include <portals4.h>

#include "tests/process/player_memory.h"

namespace portofu {
namespace {

constexpr ptl_pt_index_t kPt = kPlayerPt;
constexpr ptl_time_t kWaitMs = 5;

class PortalsPlayer final : public Player {
 public:
  PortalsPlayer(const TestNodes& nodes, int rank) : nodes_(nodes), rank_(rank) {}

  bool open() override {
    if (PtlInit() != PTL_OK) return false;
    const ptl_pid_t pid = kPlayerPid + static_cast<ptl_pid_t>(rank_);
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni_) != PTL_OK) {
      PtlFini();
      return false;
    }
    if (open_objects()) return true;
    close();
    return false;
  }

  void close() override {
    PtlNIFini(ni_);
    PtlFini();
  }

  bool post(int slot, int target, Operation operation) override {
    void* const name = reinterpret_cast<void*>(static_cast<std::uintptr_t>(slot) + 1);
    const auto place = static_cast<ptl_size_t>(slot) * kPutBytes;
    is_get_[slot] = operation == Operation::kGet;
    switch (operation) {
      case Operation::kShortPut:
        return PtlPut(md_, place, kShortPutBytes, PTL_ACK_REQ, id(target), kPt, 0, 0, name, 0) == PTL_OK;
      case Operation::kLongPut:
        return PtlPut(md_, place, kLongPutBytes, PTL_ACK_REQ, id(target), kPt, 0, 64, name, 0) == PTL_OK;
      case Operation::kGet:
        memory_.forget(slot);
        return PtlGet(md_, place, kGetBytes, id(target), kReadOnlyPt, 0, 0, name) == PTL_OK;
      case Operation::kFetch:
        return PtlFetchAtomic(md_, place, md_, place + 8, 8, id(target), kPt, 0, kWordOffset, name, 0, PTL_SUM,
                              PTL_UINT64_T) == PTL_OK;
    }
    return false;
  }

  bool next(Outcome* outcome) override {
    ptl_event_t event{};
    unsigned int which = 0;
    const int rc = PtlEQPoll(&eq_, 1, kWaitMs, &event, &which);
    if (rc == PTL_EQ_EMPTY) return false;
    const auto slot = static_cast<int>(reinterpret_cast<std::uintptr_t>(event.user_ptr)) - 1;
    *outcome = {slot, Ending::kWrong, rc != PTL_OK ? rc : event.ni_fail_type};
    if (rc != PTL_OK || slot < 0 || slot >= kSlots || event.type == PTL_EVENT_SEND) return true;
    switch (event.ni_fail_type) {
      case PTL_NI_OK:
        outcome->ending = Ending::kDone;
        if (is_get_[slot] && !memory_.is_constant(slot)) *outcome = {slot, Ending::kWrong, kWrongData};
        break;
      case PTL_NI_UNDELIVERABLE: outcome->ending = Ending::kPeerGone; break;
      case PTL_NI_DROPPED:
      case PTL_NI_PT_DISABLED: outcome->ending = Ending::kNotOpen; break;
      default: break;
    }
    return true;
  }

  bool put_unheard(int target) override {
    return PtlPut(md_, 0, kShortPutBytes, PTL_NO_ACK_REQ, id(target), kPt, 0, 0, nullptr, 0) == PTL_OK;
  }

  /// A chain: the first fires the put and raises the counter on which the second waits.
  void trigger(int target) override {
    const ptl_ct_event_t one{1, 0};
    ptl_ct_event_t count{};
    PtlCTGet(ct_, &count);
    PtlTriggeredPut(md_, 0, kShortPutBytes, PTL_NO_ACK_REQ, id(target), kPt, 0, 0, nullptr, 0, ct_, count.success + 2);
    PtlTriggeredCTInc(ct_, one, ct_, count.success + 1);
    PtlCTInc(ct_, one);
  }

  bool is_untouched() const override { return memory_.is_untouched(); }

 private:
  ptl_process_t id(int rank) const {
    ptl_process_t process{};
    process.phys = {nodes_.nid(rank), kPlayerPid + static_cast<ptl_pid_t>(rank)};
    return process;
  }

  bool open_objects() {
    ptl_pt_index_t index = 0;
    // A put that comes before the entry must be told to its initiator: one that matches nothing is not (2.8).
    if (PtlEQAlloc(ni_, 4 * kSlots, &eq_) != PTL_OK || PtlCTAlloc(ni_, &ct_) != PTL_OK ||
        PtlPTAlloc(ni_, PTL_PT_ALLOC_DISABLED, PTL_EQ_NONE, kPt, &index) != PTL_OK ||
        PtlPTAlloc(ni_, 0, PTL_EQ_NONE, kReadOnlyPt, &index) != PTL_OK)
      return false;
    ptl_me_t me{};
    me.start = memory_.target();
    me.length = kPlayerBytes;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    const ptl_md_t md{memory_.buffers(), PlayerMemory::kBuffersBytes, PTL_MD_EVENT_SEND_DISABLE, eq_, PTL_CT_NONE};
    ptl_me_t sealed = me;
    sealed.start = memory_.read_only();
    sealed.length = kReadOnlyBytes;
    sealed.options = PTL_ME_OP_GET;
    return PtlMDBind(ni_, &md, &md_) == PTL_OK &&
           PtlMEAppend(ni_, kReadOnlyPt, &sealed, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK &&
           PtlMEAppend(ni_, kPt, &me, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK && PtlPTEnable(ni_, kPt) == PTL_OK;
  }

  const TestNodes nodes_;
  const int rank_;
  PlayerMemory memory_;
  bool is_get_[kSlots] = {};
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq_ = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
};

}  // namespace

std::unique_ptr<Player> make_portals_player(const TestNodes& nodes, int rank) {
  return std::make_unique<PortalsPlayer>(nodes, rank);
}

std::unique_ptr<Player> make_player(Api api, const TestNodes& nodes, int rank) {
  return api == Api::kPortals ? make_portals_player(nodes, rank) : make_tofu_player(nodes, rank);
}

int open_and_close(const TestNodes& nodes, int rank) {
  nodes.enter(rank);
  const auto player = make_portals_player(nodes, rank);
  if (!player->open()) return 1;
  player->close();
  return 0;
}

}  // namespace portofu
