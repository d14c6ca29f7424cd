#pragma once
// Small programs that never end and do not hang: at each look everybody waits for somebody. They say "ready" first.

#include "tests/process/planted_astray.h"

namespace portofu {

/// Turns of two ranks: each of rank 0 begins with a put, and each of rank 1 ends with one.
template <class Put, class Await>
[[noreturn]] void take_turns(int rank, Put put, Await await) {
  print_ready();
  for (ptl_size_t turn = 1;; ++turn) {
    if (rank == 0) put();
    await(turn);
    if (rank == 1) put();
  }
}

/// By a counter, which is awaited, or looked at, or set back before each turn.
[[noreturn]] inline void play_count_traffic(const std::string& how) {
  PlantedRank rank(false);
  rank.post(0x10, 1 - rank.pmi.rank);
  rank.pmi.barrier();
  take_turns(
      rank.pmi.rank, [&rank] { rank.put(1 - rank.pmi.rank, 0x10); },
      [&](ptl_size_t turn) {
        ptl_ct_event_t count{};
        if (how == "looks")
          while (count.success < turn) PtlCTGet(rank.arrived, &count);
        if (how == "waits") PtlCTWait(rank.arrived, turn, &count);
        if (how != "sets") return;
        PtlCTWait(rank.arrived, 1, &count);
        PtlCTSet(rank.arrived, {0, 0});
      });
}

/// By events. Rank 0 rests between its turns, so that rank 1 sleeps.
[[noreturn]] inline void play_event_traffic(const std::string& how) {
  PlantedRank rank(false);
  rank.post(0x10, 1 - rank.pmi.rank, PTL_PRIORITY_LIST, 0);
  rank.pmi.barrier();
  take_turns(
      rank.pmi.rank,
      [&] {
        if (rank.pmi.rank == 0) usleep(1000);
        rank.put(1 - rank.pmi.rank, 0x10);
      },
      [&](ptl_size_t) {
        ptl_event_t event{};
        if (how == "waits") PtlEQWait(rank.eq, &event);
        while (how == "looks" && PtlEQGet(rank.eq, &event) != PTL_OK) continue;
      });
}

/// By operations that wait for what the rank before has sent.
[[noreturn]] inline void play_trigger_traffic() {
  PlantedRank rank(false);
  const int next = (rank.pmi.rank + 1) % rank.pmi.size;
  rank.post(0x10, (rank.pmi.rank + rank.pmi.size - 1) % rank.pmi.size);
  rank.pmi.barrier();
  print_ready();
  for (ptl_size_t turn = 1;; ++turn) {
    if (rank.pmi.rank == 0) rank.put(next, 0x10);
    if (rank.pmi.rank != 0)
      PtlTriggeredPut(rank.md, 0, 8, PTL_NO_ACK_REQ, rank.id_of(next), PlantedRank::kPt, 0x10, 0, nullptr, 0,
                      rank.arrived, turn);
    rank.wait(rank.arrived, turn);
  }
}

/// By unexpected messages: all of a turn lie in the overflow list of rank 1 before it takes one.
[[noreturn]] inline void play_unexpected_traffic() {
  PlantedRank rank(false);
  if (rank.pmi.rank == 1) rank.post(0, -1, PTL_OVERFLOW_LIST);
  if (rank.pmi.rank == 0) rank.post(0x20, 1);
  rank.pmi.barrier();
  print_ready();
  for (ptl_size_t turn = 1;; ++turn) {
    if (rank.pmi.rank == 0) {
      for (ptl_match_bits_t bits = 0x10; bits < 0x18; ++bits) rank.put(1, bits, PTL_CT_ACK_REQ);
      rank.wait(rank.answered, 8 * turn);
      rank.wait(rank.arrived, turn);
      continue;
    }
    for (ptl_match_bits_t bits = 0x17; bits >= 0x10; --bits) {
      usleep(1000);
      rank.post(bits, 0, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_OVERFLOW);
      rank.wait(rank.arrived, 8 * (turn - 1) + 0x18 - bits);
    }
    rank.put(0, 0x20);
  }
}

/// By notices.
[[noreturn]] inline void play_notice_traffic() {
  const PlantedQueue rank(0);
  take_turns(
      rank.pmi.rank, [&rank] { rank.put_notice(0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE); },
      [&rank](ptl_size_t turn) {
        void* data = nullptr;
        utofu_mrq_notice notice{};
        if (rank.pmi.rank == 0 || turn > 1)
          while (utofu_poll_tcq(rank.vcq, 0, &data) == UTOFU_ERR_NOT_FOUND) continue;
        while (utofu_poll_mrq(rank.vcq, 0, &notice) == UTOFU_ERR_NOT_FOUND) continue;
      });
}

[[noreturn]] inline void play_gate_traffic() {
  const PlantedQueue rank(0);
  print_ready();
  while (true) SecondBarrier::pass(rank.gate);
}

/// @param role  "traffic counts waits"; or as play_any_planted has it
inline int play_planted_or_traffic(const std::string& role) {
  if (!role.starts_with("traffic ")) return play_any_planted(role);
  const std::string how = role.substr(role.rfind(' ') + 1);
  if (role.starts_with("traffic counts")) play_count_traffic(how);
  if (role.starts_with("traffic events")) play_event_traffic(how);
  if (how == "triggers") play_trigger_traffic();
  if (how == "unexpected") play_unexpected_traffic();
  if (how == "notices") play_notice_traffic();
  if (how == "gates") play_gate_traffic();
  return 87;
}

}  // namespace portofu
