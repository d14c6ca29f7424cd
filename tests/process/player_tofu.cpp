// The player of uTofu. Rank R owns CQ 0 of TNI R, so that everybody knows its VCQ.

#include <sched.h>
#include <utofu.h>

#include "tests/process/player_memory.h"

namespace portofu {
namespace {

constexpr std::uint64_t kUnheard = 200;  ///< EDATA of operations that have no slot.
constexpr int kLooks = 200;

class TofuPlayer final : public Player {
 public:
  TofuPlayer(const TestNodes& nodes, int rank) : nodes_(nodes), rank_(rank) {}

  bool open() override {
    const auto tni = static_cast<utofu_tni_id_t>(rank_);
    utofu_stadd_t stadd = 0;
    if (utofu_create_vcq_with_cmp_id(tni, kPlayerComponent, 0, &vcq_) != UTOFU_SUCCESS) return false;
    utofu_vcq_id_t own = 0;
    // What a former life had may not be free yet; another queue would be found by nobody.
    if (utofu_query_vcq_id(vcq_, &own) == UTOFU_SUCCESS && own == vcq_id(rank_) &&
        utofu_reg_mem(vcq_, memory_.buffers(), PlayerMemory::kBuffersBytes, 0, &buffers_) == UTOFU_SUCCESS &&
        utofu_reg_mem_with_stag(vcq_, memory_.target(), kPlayerBytes, kPlayerStag, 0, &stadd) == UTOFU_SUCCESS &&
        utofu_reg_mem_with_stag(vcq_, memory_.read_only(), kReadOnlyBytes, kReadOnlyStag, UTOFU_REG_MEM_FLAG_READ_ONLY,
                                &stadd) == UTOFU_SUCCESS)
      return true;
    utofu_free_vcq(vcq_);
    return false;
  }

  void close() override {
    if (session_ != 0) utofu_free_vcq(session_);
    session_ = 0;
    utofu_free_vcq(vcq_);
  }

  bool post(int slot, int target, Operation operation) override {
    const auto edata = static_cast<std::uint64_t>(slot);
    const utofu_stadd_t local = buffers_ + edata * kPutBytes;
    const utofu_vcq_id_t to = vcq_id(target);
    const utofu_stadd_t remote = stadd(to);
    is_get_[slot] = operation == Operation::kGet;
    int rc = UTOFU_SUCCESS;
    switch (operation) {
      case Operation::kShortPut: rc = utofu_put(vcq_, to, local, remote, kShortPutBytes, edata, kTell, nullptr); break;
      case Operation::kLongPut:
        rc = utofu_put(vcq_, to, local, remote + 64, kLongPutBytes, edata, kTell, nullptr);
        break;
      case Operation::kGet:
        memory_.forget(slot);
        rc = utofu_get(vcq_, to, local, stadd(to, kReadOnlyStag), kGetBytes, edata, kTell, nullptr);
        break;
      case Operation::kFetch:
        rc = utofu_armw8(vcq_, to, UTOFU_ARMW_OP_ADD, 1, remote + kWordOffset, edata, kTell, nullptr);
        break;
    }
    return rc == UTOFU_SUCCESS;
  }

  bool next(Outcome* outcome) override {
    utofu_mrq_notice notice{};
    for (int looks = 0; looks < kLooks; ++looks) {
      const int rc = utofu_poll_mrq(vcq_, 0, &notice);
      if (rc == UTOFU_ERR_NOT_FOUND) {
        sched_yield();
        continue;
      }
      if (notice.edata == kUnheard && (rc == UTOFU_ERR_MRQ_PEER || rc == UTOFU_ERR_MRQ_RMT_STADD)) continue;
      *outcome = read(notice, rc);
      return true;
    }
    return false;
  }

  bool put_unheard(int target) override {
    const utofu_vcq_id_t to = vcq_id(target);
    return utofu_put(vcq_, to, buffers_, stadd(to), kShortPutBytes, kUnheard, 0, nullptr) == UTOFU_SUCCESS;
  }

  void trigger(int target) override {
    if (session_ == 0 && !open_session()) return;
    const utofu_vcq_id_t to = vcq_id(target);
    utofu_put_piggyback8(session_, to, 1, stadd(to), 8, kUnheard, 0, nullptr);
    utofu_put_piggyback8(vcq_, session_id_, 1, step_, 8, kUnheard, UTOFU_ONESIDED_FLAG_SPS(1), nullptr);
  }

  bool is_untouched() const override { return memory_.is_untouched(); }

 private:
  static constexpr unsigned long kTell = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;

  /// A second VCQ, whose descriptors wait for puts to `word_`.
  bool open_session() {
    const auto tni = static_cast<utofu_tni_id_t>(rank_);
    if (utofu_create_vcq(tni, UTOFU_VCQ_FLAG_SESSION_MODE, &session_) != UTOFU_SUCCESS) {
      session_ = 0;
      return false;
    }
    return utofu_query_vcq_id(session_, &session_id_) == UTOFU_SUCCESS &&
           utofu_reg_mem(session_, &word_, sizeof word_, 0, &step_) == UTOFU_SUCCESS;
  }

  Outcome read(const utofu_mrq_notice& notice, int rc) {
    const auto slot = static_cast<int>(notice.edata);
    if (slot >= kSlots) return {0, Ending::kWrong, rc};
    switch (rc) {
      case UTOFU_SUCCESS:
        if (is_get_[slot] && !memory_.is_constant(slot)) return {slot, Ending::kWrong, kWrongData};
        return {slot, Ending::kDone, 0};
      case UTOFU_ERR_MRQ_PEER: return {slot, Ending::kPeerGone, 0};
      case UTOFU_ERR_MRQ_RMT_STADD: return {slot, Ending::kNotOpen, 0};
      default: return {slot, Ending::kWrong, rc};
    }
  }

  utofu_vcq_id_t vcq_id(int rank) const {
    std::uint8_t coordinates[6];
    nodes_.coordinates(rank, coordinates);
    utofu_vcq_id_t id = 0;
    utofu_construct_vcq_id(coordinates, static_cast<utofu_tni_id_t>(rank), 0, kPlayerComponent, &id);
    return id;
  }

  static utofu_stadd_t stadd(utofu_vcq_id_t vcq_id, unsigned stag = kPlayerStag) {
    utofu_stadd_t found = 0;
    utofu_query_stadd(vcq_id, stag, &found);
    return found;
  }

  const TestNodes nodes_;
  const int rank_;
  PlayerMemory memory_;
  bool is_get_[kSlots] = {};
  utofu_vcq_hdl_t vcq_ = 0;
  utofu_vcq_hdl_t session_ = 0;  ///< 0: not needed yet.
  utofu_vcq_id_t session_id_ = 0;
  std::uint64_t word_ = 0;
  utofu_stadd_t step_ = 0;  ///< Of word_.
  utofu_stadd_t buffers_ = 0;
};

}  // namespace

std::unique_ptr<Player> make_tofu_player(const TestNodes& nodes, int rank) {
  return std::make_unique<TofuPlayer>(nodes, rank);
}

}  // namespace portofu
