// A process that sends to all others.

#include "tests/process/traffic.h"

#include <sched.h>

#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <vector>

#include "engine/segment/shared_heap.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

constexpr int kOutstanding = 48;
constexpr ptl_pt_index_t kPt = 7;
constexpr std::size_t kSendBytes = 131072;
constexpr std::size_t kConstantAt = kSendBytes;  ///< In the target memory: what gets fetch and nobody writes.
constexpr std::size_t kTargetBytes = 2 * kSendBytes;

unsigned char constant_byte(std::size_t at) { return static_cast<unsigned char>(at * 7 + at / 256); }

class Worker {
 public:
  explicit Worker(const WorkerOptions& options) : options_(options), random_(options.seed) {}

  int run() {
    for (std::size_t i = 0; i < kTargetBytes / 2; ++i) target_[kConstantAt + i] = constant_byte(i);
    int operations = 0;
    for (;;) {
      if (!open()) return finish(WorkerEnd::kNoInterface);
      const bool stopped = exchange(operations);
      PtlNIFini(ni_);
      PtlFini();
      outstanding_ = 0;
      for (Slot& slot : slots_) slot.used = false;
      if (end_ != WorkerEnd::kWell) return static_cast<int>(end_) + failure_;
      if (stopped) return 0;
    }
  }

 private:
  struct Slot {
    bool used = false;
    bool is_get = false;
    std::size_t bytes = 0;
    double posted_s = 0;
    std::span<unsigned char> data;
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
  };

  int finish(WorkerEnd end) {
    end_ = end;
    return static_cast<int>(end);
  }
  bool fail(WorkerEnd end, int failure = 0) {
    end_ = end;
    failure_ = failure;
    return false;
  }

  /// Every other worker has its memory in the heap that its peers map.
  std::span<unsigned char> take_memory(std::size_t bytes) {
    if (options_.rank % 2 == 1) {
      if (void* shared = allocate_shared(bytes, 64)) {
        std::memset(shared, 0, bytes);
        return {static_cast<unsigned char*>(shared), bytes};
      }
    }
    return own_memory_.emplace_back(bytes);
  }

  bool open() {
    const double deadline = now_s() + kPatienceS;
    if (PtlInit() != PTL_OK) return false;
    const ptl_pid_t pid = kFirstPid + static_cast<ptl_pid_t>(options_.rank);
    // The segment of a former life is repaired by whoever finds it, which may be just now.
    while (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni_) != PTL_OK) {
      if (now_s() > deadline) return false;
      sched_yield();
    }
    if (PtlEQAlloc(ni_, 256, &eq_) != PTL_OK) return false;
    ptl_pt_index_t index = 0;
    // A put that comes before the entry must be told to its initiator: one that matches nothing is not (2.8).
    if (PtlPTAlloc(ni_, PTL_PT_ALLOC_DISABLED, PTL_EQ_NONE, kPt, &index) != PTL_OK) return false;
    ptl_me_t me{};
    me.start = target_.data();
    me.length = target_.size();
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    ptl_handle_me_t entry = 0;
    if (PtlMEAppend(ni_, kPt, &me, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return false;
    if (PtlPTEnable(ni_, kPt) != PTL_OK) return false;
    for (Slot& slot : slots_) {
      if (slot.data.empty()) slot.data = take_memory(kSendBytes);
      ptl_md_t md{slot.data.data(), slot.data.size(), PTL_MD_EVENT_SEND_DISABLE, eq_, PTL_CT_NONE};
      if (PtlMDBind(ni_, &md, &slot.md) != PTL_OK) return false;
    }
    return true;
  }

  /// Posts and takes events until the board says stop and nothing is outstanding, or the cycle is over.
  /// @return true if it is to end; also when something went wrong
  bool exchange(int& operations) {
    double checked_s = now_s();
    for (;;) {
      const bool stopping = options_.board->stop.load() != 0;
      while (!stopping && outstanding_ < kOutstanding) {
        if (options_.cycle_operations != 0 && ++operations % options_.cycle_operations == 0) return false;
        if (!post()) return true;
      }
      if (stopping && outstanding_ == 0) return true;
      ptl_event_t event{};
      unsigned int which = 0;
      const int rc = PtlEQPoll(&eq_, 1, 100, &event, &which);
      if (rc != PTL_OK && rc != PTL_EQ_EMPTY) return !fail(WorkerEnd::kCallFailed);
      if (rc == PTL_OK && !take(event)) return true;
      if (now_s() - checked_s < 1) continue;
      checked_s = now_s();
      for (const Slot& slot : slots_) {
        if (slot.used && checked_s - slot.posted_s > kPatienceS) return !fail(WorkerEnd::kNeverEnded);
      }
    }
  }

  bool post() {
    std::size_t index = 0;
    while (slots_[index].used) ++index;
    Slot& slot = slots_[index];
    slot.used = true;
    slot.posted_s = now_s();
    slot.bytes = random_() % 4 == 0 ? random_() % kSendBytes : random_() % 512;
    ptl_process_t target{};
    target.phys = {options_.nid, kFirstPid + static_cast<ptl_pid_t>(random_() % static_cast<unsigned>(options_.count))};
    ++outstanding_;
    void* name = reinterpret_cast<void*>(index + 1);
    slot.is_get = random_() % 3 == 0;
    if (slot.is_get) std::memset(slot.data.data(), 0, slot.bytes);
    const int rc = slot.is_get ? PtlGet(slot.md, 0, slot.bytes, target, kPt, 0, kConstantAt, name)
                               : PtlPut(slot.md, 0, slot.bytes, PTL_ACK_REQ, target, kPt, 0, 0, name, 0);
    return rc == PTL_OK || fail(WorkerEnd::kCallFailed);
  }

  bool take(const ptl_event_t& event) {
    const auto index = reinterpret_cast<std::uintptr_t>(event.user_ptr) - 1;
    if (event.type == PTL_EVENT_SEND || index >= slots_.size() || !slots_[index].used)
      return fail(WorkerEnd::kWrongEvent);
    Slot& slot = slots_[index];
    slot.used = false;
    --outstanding_;
    if (event.ni_fail_type == PTL_NI_OK) {
      for (std::size_t i = 0; slot.is_get && i < slot.bytes; ++i) {
        if (slot.data[i] == constant_byte(i)) continue;
        std::fprintf(stderr, "worker %d: byte %zu of %zu is %d, expected %d; mlength %lu, initiator's slot %zu\n",
                     options_.rank, i, slot.bytes, slot.data[i], constant_byte(i), event.mlength, index);
        return fail(WorkerEnd::kWrongData);
      }
      options_.board->delivered[options_.rank].fetch_add(1);
      return true;
    }
    options_.board->lost[options_.rank].fetch_add(1);
    // Dropped or disabled: the target was between PtlNIInit and PtlPTEnable, or between PtlNIFini and its end.
    const bool forgiven = event.ni_fail_type == PTL_NI_UNDELIVERABLE || event.ni_fail_type == PTL_NI_DROPPED ||
                          event.ni_fail_type == PTL_NI_PT_DISABLED;
    return forgiven || fail(WorkerEnd::kWrongFailure, event.ni_fail_type);
  }

  WorkerOptions options_;
  std::mt19937_64 random_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq_ = PTL_INVALID_HANDLE;
  std::array<Slot, kOutstanding> slots_;
  int outstanding_ = 0;
  std::deque<std::vector<unsigned char>> own_memory_;
  std::span<unsigned char> target_ = take_memory(kTargetBytes);
  WorkerEnd end_ = WorkerEnd::kWell;
  int failure_ = 0;
};

}  // namespace

int run_worker(const WorkerOptions& options) { return Worker(options).run(); }

}  // namespace portofu
