#pragma once
// Small programs that lean on something that no section promises, one each, and the same programs without that. Here
// all of them run through; the checker says what is wrong with the bad ones. The ranks of ptl_run play them.

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/process/pmi_roles.h"

namespace portofu {

/// A rank of Portals with what most programs have. What it opens it gives back, unless a role leaves it.
class MisusingRank {
 public:
  static constexpr ptl_pid_t kFirstPid = 730;
  static constexpr ptl_pt_index_t kPt = 4;
  static constexpr ptl_size_t kEvents = 16;
  static constexpr std::size_t kBytes = 300'000;

  MisusingRank() {
    pmi.begin();
    const ptl_pid_t pid = kFirstPid + static_cast<ptl_pid_t>(pmi.rank);
    check(PtlInit());
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni));
    check(PtlGetPhysId(ni, &self_));
    check(PtlEQAlloc(ni, kEvents, &eq));
    check(PtlCTAlloc(ni, &ct));
    ptl_pt_index_t pt = 0;
    check(PtlPTAlloc(ni, 0, eq, kPt, &pt));
    bind(eq, PTL_CT_NONE, 0);
  }

  void bind(ptl_handle_eq_t queue, ptl_handle_ct_t counter, unsigned int options) {
    if (md != PTL_INVALID_HANDLE) check(PtlMDRelease(md));
    const ptl_md_t described{memory.data(), memory.size(), options, queue, counter};
    check(PtlMDBind(ni, &described, &md));
  }

  void post(ptl_list_t list = PTL_PRIORITY_LIST, unsigned int options = 0) {
    ptl_me_t entry{};
    entry.start = target.data();
    entry.length = target.size();
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | options;
    entry.match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}};
    entry.match_bits = 0x10;
    check(PtlMEAppend(ni, kPt, &entry, list, nullptr, &me));
  }

  void put(int rank, ptl_size_t length = 8, ptl_ack_req_t ack = PTL_NO_ACK_REQ) const {
    check(PtlPut(md, 0, length, ack, id_of(rank), kPt, 0x10, 0, nullptr, 0));
  }
  /// To other bytes, with an ACK: what came before is at its place then, which no section promises.
  void put_behind(int rank, ptl_ack_req_t ack) const {
    check(PtlPut(md, 0, 8, ack, id_of(rank), kPt, 0x10, kBytes / 2, nullptr, 0));
  }
  void get(int rank) const { check(PtlGet(md, 0, 8, id_of(rank), kPt, 0x10, 0, nullptr)); }

  ptl_event_t read() const {
    ptl_event_t event{};
    check(PtlEQWait(eq, &event));
    return event;
  }

  /// Gives all back that was not left out.
  void close() {
    if (md != PTL_INVALID_HANDLE) check(PtlMDRelease(md));
    if (me != PTL_INVALID_HANDLE) check(PtlMEUnlink(me));
    if (closes_portal) check(PtlPTFree(ni, kPt));
    if (ct != PTL_INVALID_HANDLE) check(PtlCTFree(ct));
    if (eq != PTL_INVALID_HANDLE) check(PtlEQFree(eq));
    pmi.barrier();
    check(PtlNIFini(ni));
    PtlFini();
    pmi.end();
  }

  ptl_process_t id_of(int rank) const { return {.phys = {self_.phys.nid, kFirstPid + static_cast<ptl_pid_t>(rank)}}; }

  static void check(int rc) {
    if (rc != PTL_OK) std::_Exit(80);
  }

  PmiClient pmi;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  bool closes_portal = true;
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  std::vector<std::byte> target = std::vector<std::byte>(kBytes);

 private:
  ptl_process_t self_{};
};

/// Rank 0 puts `length` bytes to rank 1, and changes one of them before or after it has read SEND.
inline void play_source(bool bad, ptl_size_t length, std::size_t changed, std::byte bits) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, length);
    if (bad) rank.memory[changed] ^= bits;
    if (rank.read().type != PTL_EVENT_SEND) std::_Exit(81);
    if (!bad) rank.memory[changed] ^= bits;
  } else {
    rank.read();
  }
  rank.close();
}

/// The same with a counter of ACKs.
inline void play_source_counted(bool bad) {
  MisusingRank rank;
  rank.bind(PTL_EQ_NONE, rank.ct, PTL_MD_EVENT_CT_ACK);
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    ptl_ct_event_t event{};
    rank.put(1, 8, PTL_CT_ACK_REQ);
    if (bad) rank.memory[5] ^= std::byte{1};
    MisusingRank::check(PtlCTWait(rank.ct, 1, &event));
    if (!bad) rank.memory[5] ^= std::byte{1};
  } else {
    rank.read();
  }
  rank.close();
}

/// Rank 1 writes to the memory of a message before it has read its event.
inline void play_target(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 8, PTL_ACK_REQ);
    for (int i = 0; i < 2; ++i) rank.read();
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    if (bad) rank.target[2] ^= std::byte{2};
    if (rank.read().type != PTL_EVENT_PUT) std::_Exit(81);
    if (!bad) rank.target[2] ^= std::byte{2};
  }
  rank.close();
}

/// Ranks 0 and 2 write to the same bytes of rank 1, which reads both events later. The good ones are in order by an ACK
/// that the first waits for; SEND says nothing of the target.
inline void play_overwrite(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  for (int sender : {0, 2}) {
    rank.pmi.barrier();
    if (rank.pmi.rank != sender) continue;
    rank.memory[0] = static_cast<std::byte>(1 + sender);
    rank.put(1, 8, bad ? PTL_NO_ACK_REQ : PTL_ACK_REQ);
    if (bad) rank.put_behind(1, PTL_ACK_REQ);
    for (int i = 0; i < (bad ? 3 : 2); ++i) rank.read();
  }
  rank.pmi.barrier();
  for (int i = 0; rank.pmi.rank == 1 && i < (bad ? 4 : 2); ++i) rank.read();
  rank.close();
}

/// Rank 0 sends on what it still gets.
inline void play_early_use(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.get(1);
    if (!bad) rank.read();
    rank.put(1);
    for (int i = bad ? 0 : 1; i < 2; ++i) rank.read();
  } else {
    for (int i = 0; i < 2; ++i) rank.read();
  }
  rank.close();
}

/// Rank 0 asks for an ACK that no queue and no counter hears of.
inline void play_ack(bool bad) {
  MisusingRank rank;
  rank.bind(PTL_EQ_NONE, rank.ct, PTL_MD_EVENT_CT_SEND | (bad ? 0 : PTL_MD_EVENT_CT_ACK));
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    ptl_ct_event_t event{};
    rank.put(1, 8, PTL_ACK_REQ);
    MisusingRank::check(PtlCTWait(rank.ct, bad ? 1 : 2, &event));
  } else {
    rank.read();
  }
  rank.close();
}

/// Rank 1 does not read the event of a message.
inline void play_events(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 8, PTL_ACK_REQ);
    for (int i = 0; i < 2; ++i) rank.read();
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1 && !bad) rank.read();
  rank.close();
}

/// The queue of rank 1 is full but for one event before one is read.
inline void play_room(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  const int count = static_cast<int>(MisusingRank::kEvents) - (bad ? 1 : 8);
  for (int i = 0; rank.pmi.rank == 0 && i < count; ++i) {
    rank.put(1, 8, PTL_ACK_REQ);
    for (int event = 0; event < 2; ++event) rank.read();
  }
  rank.pmi.barrier();
  for (int i = 0; rank.pmi.rank == 1 && i < count; ++i) rank.read();
  rank.close();
}

/// Rank 1 gives nothing back.
inline void play_handles(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (bad && rank.pmi.rank == 1) {
    rank.md = rank.me = rank.eq = rank.ct = PTL_INVALID_HANDLE;
    rank.closes_portal = false;
  }
  rank.close();
}

/// A message lies in the overflow list of rank 1, and nobody takes it.
inline void play_message(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post(PTL_OVERFLOW_LIST, PTL_ME_EVENT_COMM_DISABLE);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 8, PTL_ACK_REQ);
    for (int i = 0; i < 2; ++i) rank.read();
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    const ptl_handle_me_t overflow = rank.me;
    if (!bad) {
      rank.post(PTL_PRIORITY_LIST, PTL_ME_USE_ONCE);
      if (rank.read().type != PTL_EVENT_PUT_OVERFLOW) std::_Exit(81);
      rank.me = overflow;
    } else {
      rank.me = rank.eq = PTL_INVALID_HANDLE;  // They are in use.
      rank.closes_portal = false;
    }
  }
  rank.close();
}

/// Rank 0 releases the MD of a put whose SEND it has not read.
inline void play_release(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1);
    if (!bad) rank.read();
    MisusingRank::check(PtlMDRelease(std::exchange(rank.md, PTL_INVALID_HANDLE)));
    if (bad) rank.read();
  } else {
    rank.read();
  }
  rank.close();
}

/// Rank 0 frees the counter, or the queue, of what is still there.
inline void play_free(bool bad, bool is_counter) {
  MisusingRank rank;
  rank.bind(PTL_EQ_NONE, rank.ct, PTL_MD_EVENT_CT_SEND);
  if (bad && rank.pmi.rank == 0 && is_counter)
    MisusingRank::check(PtlCTFree(std::exchange(rank.ct, PTL_INVALID_HANDLE)));
  if (bad && rank.pmi.rank == 0 && !is_counter)
    MisusingRank::check(PtlEQFree(std::exchange(rank.eq, PTL_INVALID_HANDLE)));
  rank.close();
}

/// Rank 0 takes a portal table entry that an interface need not have.
inline void play_portal(bool bad) {
  MisusingRank rank;
  ptl_pt_index_t pt = 0;
  if (rank.pmi.rank == 0) {
    MisusingRank::check(PtlPTAlloc(rank.ni, 0, rank.eq, bad ? 250 : 249, &pt));
    MisusingRank::check(PtlPTFree(rank.ni, pt));
  }
  rank.close();
}

/// A rank of uTofu: a VCQ, and memory that it and the other rank have registered.
class MisusingQueue {
 public:
  static constexpr std::size_t kWords = 512;  ///< The second half is where the other rank writes.
  static constexpr std::size_t kHalf = kWords / 2 * sizeof(std::uint64_t);

  explicit MisusingQueue(int component = -1) {
    pmi.begin();
    if (component < 0) check(utofu_create_vcq(0, 0, &vcq));
    if (component >= 0) check(utofu_create_vcq_with_cmp_id(0, static_cast<utofu_cmp_id_t>(component), 0, &vcq));
    check(utofu_query_vcq_id(vcq, &vcq_id_));
    check(utofu_reg_mem(vcq, words.data(), sizeof words, 0, &stadd));
    pmi.put("id-" + std::to_string(pmi.rank), std::to_string(vcq_id_) + ':' + std::to_string(stadd));
    pmi.barrier();
    const std::string there = PmiClient::field(pmi.get("id-" + std::to_string(1 - pmi.rank)), "value");
    if (std::sscanf(there.c_str(), "%lu:%lu", &other, &other_stadd) != 2) std::_Exit(83);
  }

  /// Puts bytes of the first half into the second half of the other rank.
  void put(std::size_t offset, std::size_t bytes, unsigned long flags) {
    int rc = UTOFU_ERR_BUSY;
    while (rc == UTOFU_ERR_BUSY)
      rc = utofu_put(vcq, other, stadd + offset, other_stadd + kHalf + offset, bytes, 0, flags, nullptr);
    check(rc);
  }

  void read_tcq() const {
    void* data = nullptr;
    int rc = UTOFU_ERR_NOT_FOUND;
    while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_tcq(vcq, 0, &data);
    check(rc);
  }
  void read_mrq() const {
    utofu_mrq_notice notice{};
    int rc = UTOFU_ERR_NOT_FOUND;
    while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_mrq(vcq, 0, &notice);
    check(rc);
  }
  /// Polls memory, as programs do.
  void wait_for_word(std::size_t index, std::uint64_t value) {
    const std::atomic_ref<std::uint64_t> word(words[index]);
    while (word.load(std::memory_order_acquire) != value) usleep(100);
  }

  void close() {
    if (stadd != 0) check(utofu_dereg_mem(vcq, stadd, 0));
    pmi.barrier();
    if (vcq != 0) check(utofu_free_vcq(vcq));
    pmi.end();
  }

  static void check(int rc) {
    if (rc != UTOFU_SUCCESS) std::_Exit(84);
  }

  PmiClient pmi;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  unsigned long other = 0;
  unsigned long other_stadd = 0;
  alignas(256) std::array<std::uint64_t, kWords> words{};

 private:
  utofu_vcq_id_t vcq_id_ = 0;
};

inline void play_tofu_source(bool bad) {
  MisusingQueue rank;
  if (rank.pmi.rank == 0) {
    rank.put(0, 64, UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    if (bad) rank.words[1] ^= 0x400;
    rank.read_tcq();
    if (!bad) rank.words[1] ^= 0x400;
    rank.read_mrq();  // All is there before the memory goes.
  }
  rank.pmi.barrier();
  rank.close();
}

/// Data, then a word that the other rank polls, and its answer.
inline void play_flag(bool bad) {
  MisusingQueue rank;
  constexpr std::size_t kFlag = MisusingQueue::kWords - 1;
  const auto put_flag = [&](unsigned long flags) {
    MisusingQueue::check(
        utofu_put_piggyback8(rank.vcq, rank.other, 1, rank.other_stadd + 8 * kFlag, 8, 0, flags, nullptr));
  };
  if (rank.pmi.rank == 0) {
    rank.put(0, 256, 0);
    put_flag(bad ? 0 : UTOFU_ONESIDED_FLAG_STRONG_ORDER);
    rank.wait_for_word(kFlag, 1);
  } else {
    rank.wait_for_word(kFlag, 1);
    put_flag(0);
  }
  rank.pmi.barrier();
  rank.close();
}

/// Two puts to the same bytes.
inline void play_tofu_overwrite(bool bad) {
  MisusingQueue rank;
  if (rank.pmi.rank == 0) {
    rank.put(0, 64, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    if (!bad) rank.read_mrq();
    rank.put(32, 64, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    for (int i = bad ? 0 : 1; i < 2; ++i) rank.read_mrq();
  }
  rank.pmi.barrier();
  rank.close();
}

/// The same, and a barrier on another TNI tells that the first is over.
inline void play_tofu_barrier(bool bad) {
  MisusingQueue rank;
  std::array<utofu_vbg_id_t, 2> own{}, other{};
  MisusingQueue::check(utofu_alloc_vbg(1, own.size(), 0, own.data()));
  rank.pmi.put("gates-" + std::to_string(rank.pmi.rank), std::to_string(own[0]) + ':' + std::to_string(own[1]));
  rank.pmi.barrier();
  const std::string there = PmiClient::field(rank.pmi.get("gates-" + std::to_string(1 - rank.pmi.rank)), "value");
  if (std::sscanf(there.c_str(), "%lu:%lu", &other[0], &other[1]) != 2) std::_Exit(83);
  std::array<utofu_vbg_setting, 2> gates{};
  gates[0] = {own[0], own[1], UTOFU_VBG_ID_NULL, own[1], other[1], {UTOFU_PATH_COORD_NULL}};
  gates[1] = {own[1], own[0], other[0], own[0], UTOFU_VBG_ID_NULL, {UTOFU_PATH_COORD_NULL}};
  MisusingQueue::check(utofu_set_vbg(gates.data(), gates.size()));
  rank.pmi.barrier();
  for (std::size_t offset : {0, 32}) {
    if (rank.pmi.rank == 0) rank.put(offset, 64, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
    if (rank.pmi.rank == 1) rank.read_mrq();
    if (bad) continue;
    MisusingQueue::check(utofu_barrier(own[0], 0));
    int rc = UTOFU_ERR_NOT_COMPLETED;
    while (rc == UTOFU_ERR_NOT_COMPLETED) rc = utofu_poll_barrier(own[0], 0);
    MisusingQueue::check(rc);
  }
  rank.pmi.barrier();
  MisusingQueue::check(utofu_free_vbg(own.data(), own.size()));
  rank.close();
}

/// Sends on what a get still brings.
inline void play_tofu_early_use(bool bad) {
  MisusingQueue rank;
  if (rank.pmi.rank == 0) {
    MisusingQueue::check(utofu_get(rank.vcq, rank.other, rank.stadd, rank.other_stadd, 64, 1,
                                   UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr));
    if (!bad) rank.read_mrq();
    rank.put(0, 64, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    for (int i = bad ? 0 : 1; i < 2; ++i) rank.read_mrq();
  }
  rank.pmi.barrier();
  rank.close();
}

/// More puts than the TOQ has entries, and the TCQ is never looked at.
inline void play_tcq(bool bad) {
  MisusingQueue rank;
  void* data = nullptr;
  for (int i = 0; rank.pmi.rank == 0 && i < 2100; ++i) {
    rank.put(static_cast<std::size_t>(i) % 16 * 8, 8, UTOFU_ONESIDED_FLAG_STRONG_ORDER);
    if (!bad && i % 100 == 0 && utofu_poll_tcq(rank.vcq, 0, &data) != UTOFU_ERR_NOT_FOUND) std::_Exit(85);
  }
  if (rank.pmi.rank == 0) {
    rank.put(0, 8, UTOFU_ONESIDED_FLAG_STRONG_ORDER | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    rank.read_mrq();  // All is there before the memory goes.
  }
  rank.pmi.barrier();
  rank.close();
}

inline void play_deregistration(bool bad) {
  MisusingQueue rank;
  if (rank.pmi.rank == 0) {
    rank.put(0, 64, UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    if (!bad) rank.read_tcq();
    if (!bad) rank.read_mrq();
    if (bad) MisusingQueue::check(utofu_dereg_mem(rank.vcq, std::exchange(rank.stadd, 0), 0));
    if (bad) rank.read_tcq();
    if (bad) rank.read_mrq();
  }
  rank.pmi.barrier();
  rank.close();
}

/// Rank 0 leaves a TCQ notice, rank 1 an MRQ notice.
inline void play_notices(bool bad) {
  MisusingQueue rank;
  if (rank.pmi.rank == 0) {
    rank.put(
        0, 64,
        UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
    rank.read_tcq();
    rank.read_mrq();
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1 && !bad) rank.read_mrq();
  rank.close();
}

inline void play_registration(bool bad) {
  MisusingQueue rank;
  if (bad && rank.pmi.rank == 0) rank.stadd = 0;
  rank.close();
}

inline void play_queue(bool bad) {
  MisusingQueue rank;
  if (bad && rank.pmi.rank == 0) rank.vcq = 0;
  if (bad && rank.pmi.rank == 0) rank.stadd = 0;
  rank.close();
}

/// With PORTOFU_CMP_IDS=16.
inline void play_component(bool bad) {
  MisusingQueue rank(bad && environment_number("PMI_RANK") == 0 ? 9 : 7);
  rank.close();
}

/// Two threads of rank 0 look at the TCQ of a VCQ that is not thread-safe, in turns if they are good. Bad ones go on
/// until they have met in some calls: on one core that takes a while.
inline void play_threads(bool bad) {
  constexpr int kLooks = 3000;
  constexpr int kMeetings = 10;
  MisusingQueue queue;
  std::mutex turns;
  std::array<std::atomic<int>, 2> steps{};  // Odd: in a call.
  std::atomic<int> meetings{0};
  const auto look = [&](std::size_t me) {
    int met_at = 0;
    for (int i = 0; i < kLooks || (bad && meetings < kMeetings); ++i) {
      std::unique_lock<std::mutex> turn(turns, std::defer_lock);
      if (!bad) turn.lock();
      ++steps[me];
      void* data = nullptr;
      utofu_poll_tcq(queue.vcq, 0, &data);
      const int other = steps[1 - me];
      if (other % 2 != 0 && std::exchange(met_at, other) != other) ++meetings;
      ++steps[me];
    }
  };
  if (queue.pmi.rank == 0) {
    std::thread first(look, 0);
    std::thread second(look, 1);
    first.join();
    second.join();
  }
  queue.close();
}

/// @param role  "source" or "source good"
inline int play_misuse(const std::string& role) {
  const bool bad = !role.ends_with(" good");
  const std::string name = role.substr(0, role.find(' '));
  if (name == "source") play_source(bad, 8, 3, std::byte{0x10});
  if (name == "source_long") play_source(bad, 200'000, 150'000, std::byte{1});
  if (name == "source_counted") play_source_counted(bad);
  if (name == "target") play_target(bad);
  if (name == "overwrite") play_overwrite(bad);
  if (name == "early_use") play_early_use(bad);
  if (name == "ack") play_ack(bad);
  if (name == "events") play_events(bad);
  if (name == "room") play_room(bad);
  if (name == "handles") play_handles(bad);
  if (name == "message") play_message(bad);
  if (name == "release") play_release(bad);
  if (name == "free_counter") play_free(bad, true);
  if (name == "free_queue") play_free(bad, false);
  if (name == "portal") play_portal(bad);
  if (name == "tofu_source") play_tofu_source(bad);
  if (name == "flag") play_flag(bad);
  if (name == "tofu_overwrite") play_tofu_overwrite(bad);
  if (name == "tofu_barrier") play_tofu_barrier(bad);
  if (name == "tofu_early_use") play_tofu_early_use(bad);
  if (name == "tcq") play_tcq(bad);
  if (name == "deregistration") play_deregistration(bad);
  if (name == "notices") play_notices(bad);
  if (name == "registration") play_registration(bad);
  if (name == "queue") play_queue(bad);
  if (name == "threads") play_threads(bad);
  if (name == "component") play_component(bad);
  return 0;
}

}  // namespace portofu
