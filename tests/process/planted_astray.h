#pragma once
// More small programs with an error, and without it (planted_errors.h): messages, steps and packets that go to a place
// where nobody waits for them, and waits in which a process, or a counter, stands in its own way.

#include <atomic>
#include <thread>
#include <utility>

#include "tests/process/planted_loops.h"

namespace portofu {

/// Rank 0 sends from an interface of another kind than rank 1 has.
[[noreturn]] inline void play_interface(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10);
  ptl_handle_ni_t other = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = rank.md;
  std::uint64_t word = 0;
  if (rank.pmi.rank == 0 && bad) {
    const ptl_md_t described{&word, sizeof word, 0, PTL_EQ_NONE, PTL_CT_NONE};
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &other) !=
            PTL_OK ||
        PtlMDBind(other, &described, &md) != PTL_OK)
      std::_Exit(86);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank.id_of(1), PlantedRank::kPt, 0x10, 0, nullptr, 0);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Rank 0 sends to rank 2 what rank 1 waits for.
[[noreturn]] inline void play_other_rank(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank != 0) rank.post(0, -1, PTL_OVERFLOW_LIST);
  if (rank.pmi.rank == 1) rank.post(0x10, 0);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(bad ? 2 : 1, 0x10);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Rank 0 sends to a PID that nobody has what rank 1 waits for.
[[noreturn]] inline void play_nobody(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10, 0);
  rank.pmi.barrier();
  ptl_process_t target = rank.id_of(1);
  if (bad) target.phys.pid = 333;
  const unsigned int silent = PTL_MD_EVENT_SEND_DISABLE;
  std::uint64_t word = 0;
  const ptl_md_t described{&word, sizeof word, silent, PTL_EQ_NONE, PTL_CT_NONE};
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  if (PtlMDBind(rank.ni, &described, &md) != PTL_OK) std::_Exit(86);
  if (rank.pmi.rank == 0) PtlPut(md, 0, 8, PTL_NO_ACK_REQ, target, PlantedRank::kPt, 0x10, 0, nullptr, 0);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// More events come to rank 1 than its queue has room for, and it counts those that it gets without an error.
[[noreturn]] inline void play_lost(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10, -1, PTL_PRIORITY_LIST, 0);
  rank.pmi.barrier();
  const ptl_size_t count = PlantedRank::kEvents + (bad ? 2 : 0);
  for (ptl_size_t i = 0; rank.pmi.rank == 0 && i < count; ++i) rank.put(1, 0x10, PTL_CT_ACK_REQ);
  ptl_ct_event_t acks{};
  if (rank.pmi.rank == 0) PtlCTWait(rank.answered, count, &acks);
  rank.pmi.barrier();
  if (bad && rank.pmi.rank == 1) print_ready();
  ptl_event_t event{};
  for (ptl_size_t read = 0; rank.pmi.rank == 1 && read < count;) read += PtlEQWait(rank.eq, &event) == PTL_OK ? 1 : 0;
  PlantedRank::stay();
}

/// Of two counters of rank 0 each is to be raised by what waits for the other.
[[noreturn]] inline void play_counters(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 0) {
    if (PtlTriggeredCTInc(rank.arrived, {1, 0}, rank.answered, 1) != PTL_OK) std::_Exit(86);
    if (bad && PtlTriggeredCTInc(rank.answered, {1, 0}, rank.arrived, 1) != PTL_OK) std::_Exit(86);
    if (!bad) PtlCTInc(rank.answered, {1, 0});
    rank.wait(rank.arrived, 1);
  }
  PlantedRank::stay();
}

/// Rank 0 waits for the count of a reply, and binds its memory without counting any.
[[noreturn]] inline void play_uncounted(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10, -1, PTL_PRIORITY_LIST, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    std::array<std::byte, 8> reply{};
    const unsigned int options = bad ? 0 : PTL_MD_EVENT_CT_REPLY;
    const ptl_md_t described{reply.data(), reply.size(), options, PTL_EQ_NONE, rank.arrived};
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    if (PtlMDBind(rank.ni, &described, &md) != PTL_OK) std::_Exit(86);
    PtlGet(md, 0, 8, rank.id_of(1), PlantedRank::kPt, 0x10, 0, nullptr);
    rank.wait(rank.arrived, 1);
  }
  PlantedRank::stay();
}

/// Rank 1 searches for what an entry has taken.
[[noreturn]] inline void play_search_taken(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) {
    if (bad) rank.post(0x10);
    rank.post(0, -1, PTL_OVERFLOW_LIST);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10, PTL_CT_ACK_REQ);
  if (rank.pmi.rank == 1) {
    if (bad) print_ready();
    rank.search(0x10);
  }
  PlantedRank::stay();
}

/// Takes and gives locks in the memory of ranks that have posted it for that.
class PlantedLock {
 public:
  static constexpr unsigned kEntryOptions = PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE;

  /// @param counter  counts the replies
  PlantedLock(PlantedRank& rank, ptl_handle_ct_t counter) : rank_(rank), counter_(counter) {
    const ptl_md_t described{words_.data(), sizeof words_, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, counter};
    if (PtlMDBind(rank.ni, &described, &md_) != PTL_OK) std::_Exit(86);
  }

  /// @return whether the word of that rank was `from`, and is `to` now
  bool swap(int owner, std::uint64_t from, std::uint64_t to) {
    words_[1] = to;
    ptl_ct_event_t event{};
    PtlSwap(md_, 0, md_, 8, 8, rank_.id_of(owner), PlantedRank::kPt, 0x10, 8, nullptr, 0, &from, PTL_CSWAP,
            PTL_UINT64_T);
    PtlCTWait(counter_, ++replies_, &event);
    return words_[0] == from;
  }

 private:
  PlantedRank& rank_;
  const ptl_handle_ct_t counter_;
  std::array<std::uint64_t, 2> words_{};  ///< What was there, what shall be there.
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  ptl_size_t replies_ = 0;
};

/// Ranks 1 and 2 take a lock that lies at rank 0, and rank 1 does not give it back.
[[noreturn]] inline void play_lock(bool bad) {
  PlantedRank rank(bad);
  PlantedLock lock(rank, rank.arrived);
  if (rank.pmi.rank == 0) rank.post(0x10, -1, PTL_PRIORITY_LIST, PlantedLock::kEntryOptions);
  rank.pmi.barrier();
  const auto own = static_cast<std::uint64_t>(rank.pmi.rank);
  for (int turn = 1; turn < 3; ++turn) {
    if (bad && turn == 2 && rank.pmi.rank == 2) print_ready();
    while (rank.pmi.rank == turn && !lock.swap(0, 0, own)) continue;
    if (rank.pmi.rank == turn && !bad) lock.swap(0, own, 0);
    if (turn == 1) rank.pmi.barrier();
  }
  PlantedRank::stay();
}

/// Each rank takes the lock in its own memory, and then that of the other one.
[[noreturn]] inline void play_locks(bool bad) {
  PlantedRank rank(bad);
  PlantedLock lock(rank, rank.answered);
  rank.post(0x10, -1, PTL_PRIORITY_LIST, PlantedLock::kEntryOptions);
  for (int turn = 0; turn < 2; ++turn) {
    rank.pmi.barrier();
    if (bad && turn == 1) print_ready();
    const int owner = bad ? (rank.pmi.rank + turn) % 2 : turn;
    while (!lock.swap(owner, 0, 1)) continue;
    if (!bad) lock.swap(owner, 1, 0);
  }
  PlantedRank::stay();
}

/// Rank 1 waits for a message of rank 0, while another thread of it has much to do with rank 2.
[[noreturn]] inline void play_busy_thread(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10, 0);
  std::swap(rank.arrived, rank.answered);  // What posted entries count at.
  if (rank.pmi.rank != 0) rank.post(0x20, 3 - rank.pmi.rank);
  std::swap(rank.arrived, rank.answered);
  rank.pmi.barrier();
  const auto exchange = [&rank] {
    ptl_ct_event_t event{};
    for (ptl_size_t turn = 1;; ++turn) {
      if (rank.pmi.rank == 2) rank.put(1, 0x20);
      PtlCTWait(rank.answered, turn, &event);
      if (rank.pmi.rank == 1) rank.put(2, 0x20);
    }
  };
  if (rank.pmi.rank == 0 && !bad) rank.put(1, 0x10);
  if (rank.pmi.rank == 1) {
    std::thread(exchange).detach();
    rank.wait(rank.arrived, 1);
  }
  if (rank.pmi.rank == 2) {
    print_ready();
    exchange();
  }
  PlantedRank::stay();
}

/// Rank 0 sends a step to a VCQ of rank 1 that is not in session mode, and not to the one that is.
[[noreturn]] inline void play_steps(bool bad) {
  const PlantedQueue rank(0);
  utofu_vcq_hdl_t session = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
  alignas(256) static std::array<std::uint64_t, 32> memory{};
  if (utofu_create_vcq(1, UTOFU_VCQ_FLAG_SESSION_MODE, &session) != UTOFU_SUCCESS ||
      utofu_query_vcq_id(session, &id) != UTOFU_SUCCESS ||
      utofu_reg_mem(session, memory.data(), sizeof memory, 0, &stadd) != UTOFU_SUCCESS)
    std::_Exit(86);
  rank.pmi.put("session-" + std::to_string(rank.pmi.rank), std::to_string(id) + ':' + std::to_string(stadd));
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    const std::string there = PmiClient::field(rank.pmi.get("session-1"), "value");
    unsigned long target = 0;
    unsigned long target_stadd = 0;
    if (std::sscanf(there.c_str(), "%lu:%lu", &target, &target_stadd) != 2) std::_Exit(83);
    if (bad) rank.put_step();
    if (!bad) utofu_put_piggyback8(rank.vcq, target, 1, target_stadd, 8, 0, UTOFU_ONESIDED_FLAG_SPS(1), nullptr);
    PlantedRank::stay();
  }
  if (utofu_nop(session, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr) != UTOFU_SUCCESS) std::_Exit(86);
  if (bad) print_ready();
  void* data = nullptr;
  while (utofu_poll_tcq(session, 0, &data) != UTOFU_SUCCESS) continue;
  PlantedRank::stay();
}

/// Rank 0 looks at the TCQ of another VCQ than the one that has the entry.
[[noreturn]] inline void play_other_tcq(bool bad) {
  const PlantedQueue rank(0);
  utofu_vcq_hdl_t other = 0;
  if (utofu_create_vcq(0, 0, &other) != UTOFU_SUCCESS) std::_Exit(86);
  if (rank.pmi.rank == 0) {
    rank.put_notice(0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
    if (bad) print_ready();
    void* data = nullptr;
    while (utofu_poll_tcq(bad ? other : rank.vcq, 0, &data) != UTOFU_SUCCESS) continue;
  }
  PlantedRank::stay();
}

/// A second barrier of both ranks, on gates of its own.
class SecondBarrier {
 public:
  /// @param astray  sends its packets to the gate of the first barrier
  SecondBarrier(const PlantedQueue& rank, bool astray) {
    if (utofu_alloc_vbg(0, 1, 0, &gate) != UTOFU_SUCCESS) std::_Exit(86);
    const auto exchange = [&](const std::string& name, utofu_vbg_id_t own) {
      rank.pmi.put(name + std::to_string(rank.pmi.rank), std::to_string(own));
      rank.pmi.barrier();
      return std::strtoul(PmiClient::field(rank.pmi.get(name + std::to_string(1 - rank.pmi.rank)), "value").c_str(),
                          nullptr, 10);
    };
    const utofu_vbg_id_t first = exchange("first-", rank.gate);
    const utofu_vbg_id_t second = exchange("second-", gate);
    utofu_vbg_setting setting{gate, gate, second, gate, astray ? first : second, {UTOFU_PATH_COORD_NULL, 0, 0}};
    if (utofu_set_vbg(&setting, 1) != UTOFU_SUCCESS) std::_Exit(86);
    rank.pmi.barrier();
  }

  static void pass(utofu_vbg_id_t gate) {
    if (utofu_barrier(gate, 0) != UTOFU_SUCCESS) std::_Exit(86);
    while (utofu_poll_barrier(gate, 0) == UTOFU_ERR_NOT_COMPLETED) continue;
  }

  utofu_vbg_id_t gate = 0;
};

/// A gate of rank 0 sends its packets to another gate than the one that waits for them.
[[noreturn]] inline void play_gate_astray(bool bad) {
  const PlantedQueue rank(0);
  const SecondBarrier second(rank, bad && rank.pmi.rank == 0);
  if (bad && rank.pmi.rank == 1) print_ready();
  SecondBarrier::pass(second.gate);
  PlantedRank::stay();
}

/// The ranks come to two barriers in different order.
[[noreturn]] inline void play_gate_order(bool bad) {
  const PlantedQueue rank(0);
  const SecondBarrier second(rank, false);
  const bool turned = bad && rank.pmi.rank == 1;
  if (bad) print_ready();
  SecondBarrier::pass(turned ? second.gate : rank.gate);
  SecondBarrier::pass(turned ? rank.gate : second.gate);
  PlantedRank::stay();
}

/// Rank 1 polls its own memory for what rank 0 sends into another one of its words.
[[noreturn]] inline void play_polled_memory(bool bad) {
  PlantedRank rank(bad);
  alignas(8) static std::array<std::uint64_t, 2> words{};
  std::uint64_t one = 1;
  if (rank.pmi.rank == 1) {
    ptl_me_t me{};
    me.start = words.data();
    me.length = sizeof words;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    if (PtlMEAppend(rank.ni, PlantedRank::kPt, &me, PTL_PRIORITY_LIST, nullptr, &handle) != PTL_OK) std::_Exit(86);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    const ptl_md_t described{&one, sizeof one, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, rank.answered};
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    ptl_ct_event_t event{};
    if (PtlMDBind(rank.ni, &described, &md) != PTL_OK) std::_Exit(86);
    PtlPut(md, 0, 8, PTL_CT_ACK_REQ, rank.id_of(1), PlantedRank::kPt, 0, bad ? 8 : 0, nullptr, 0);
    PtlCTWait(rank.answered, 1, &event);
  } else {
    if (bad) print_ready();
    const std::atomic_ref<std::uint64_t> word(words[0]);
    while (word.load(std::memory_order_acquire) == 0) continue;
  }
  PlantedRank::stay();
}

/// @param role  as play_planted_or_loop has it, which plays all others
inline int play_any_planted(const std::string& role) {
  const bool bad = !role.ends_with(" good");
  const std::string name = role.substr(0, role.find(' '));
  if (name == "interface") play_interface(bad);
  if (name == "other_rank") play_other_rank(bad);
  if (name == "nobody") play_nobody(bad);
  if (name == "lost") play_lost(bad);
  if (name == "counters") play_counters(bad);
  if (name == "uncounted") play_uncounted(bad);
  if (name == "search_taken") play_search_taken(bad);
  if (name == "lock") play_lock(bad);
  if (name == "locks") play_locks(bad);
  if (name == "busy_thread") play_busy_thread(bad);
  if (name == "steps") play_steps(bad);
  if (name == "other_tcq") play_other_tcq(bad);
  if (name == "gate_astray") play_gate_astray(bad);
  if (name == "gate_order") play_gate_order(bad);
  if (name == "polled_memory") play_polled_memory(bad);
  return play_planted_or_loop(role);
}

}  // namespace portofu
