#pragma once
// More small programs with an error, and without it (planted_errors.h): those that look again and again instead of
// sleeping in a call, and those that wait for somebody who is elsewhere.

#include <thread>

#include "tests/process/planted_errors.h"

namespace portofu {

/// Rank 0 looks for the count of an ACK that it has not asked for.
/// @param rest_us  between two looks
[[noreturn]] inline void play_looks(bool bad, useconds_t rest_us) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 0x10, bad ? PTL_NO_ACK_REQ : PTL_CT_ACK_REQ);
    if (bad) print_ready();
    for (ptl_ct_event_t event{}; event.success < 1;) {
      PtlCTGet(rank.answered, &event);
      if (rest_us != 0) usleep(rest_us);
    }
  }
  PlantedRank::stay();
}

/// Three threads of rank 0 wait: for a message that is counted, for an event, and by looks for an ACK.
[[noreturn]] inline void play_several(bool bad) {
  PlantedRank rank(bad);
  rank.post(0x10, -1, PTL_PRIORITY_LIST, 0);
  rank.pmi.barrier();
  if (rank.pmi.rank == 1 && !bad) rank.put(0, 0x10);
  if (rank.pmi.rank == 0) {
    if (bad) print_ready();
    std::thread counts([&rank] {
      ptl_ct_event_t event{};
      PtlCTWait(rank.arrived, 1, &event);
    });
    std::thread reads([&rank] {
      ptl_event_t event{};
      PtlEQWait(rank.eq, &event);
    });
    if (!bad) rank.put(1, 0x10, PTL_CT_ACK_REQ);
    for (ptl_ct_event_t event{}; event.success < 1;) PtlCTGet(rank.answered, &event);
    counts.join();
    reads.join();
  }
  PlantedRank::stay();
}

/// Rank 0 looks for a success, and its put is refused.
[[noreturn]] inline void play_failure(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1 && !bad) rank.post(0x10);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 0x10, PTL_ACK_REQ, bad ? 5 : PlantedRank::kPt);
    if (bad) print_ready();
    ptl_ct_event_t event{};
    while (event.success < 1) PtlCTGet(rank.answered, &event);
  }
  PlantedRank::stay();
}

/// Rank 1 looks at another queue than the one that has the event.
[[noreturn]] inline void play_other_queue(bool bad) {
  PlantedRank rank(bad);
  ptl_handle_eq_t other = PTL_INVALID_HANDLE;
  if (PtlEQAlloc(rank.ni, 4, &other) != PTL_OK) std::_Exit(86);
  if (rank.pmi.rank == 1) rank.post(0x10, -1, PTL_PRIORITY_LIST, 0);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10);
  if (rank.pmi.rank == 1) {
    if (bad) print_ready();
    ptl_event_t event{};
    while (PtlEQGet(bad ? other : rank.eq, &event) != PTL_OK) continue;
  }
  PlantedRank::stay();
}

/// Rank 1 searches for another tag than that which rank 0 sends.
[[noreturn]] inline void play_search(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0, -1, PTL_OVERFLOW_LIST);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10);
  if (rank.pmi.rank == 1) {
    if (bad) print_ready();
    rank.search(bad ? 0x12 : 0x10);
  }
  PlantedRank::stay();
}

/// A message of rank 2 is to trigger the one of rank 0 that rank 1 waits for, and does not come.
[[noreturn]] inline void play_chain(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x11, 0);
  if (rank.pmi.rank == 0) {
    rank.post(0x10, 2);
    if (PtlTriggeredPut(rank.md, 0, 8, PTL_NO_ACK_REQ, rank.id_of(1), PlantedRank::kPt, 0x11, 0, nullptr, 0,
                        rank.arrived, 1) != PTL_OK)
      std::_Exit(86);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 2 && !bad) rank.put(0, 0x10);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Rank 1 waits for an event of something else, and posts nothing for the message of rank 0.
[[noreturn]] inline void play_untaken(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) {
    rank.post(0, -1, PTL_OVERFLOW_LIST);
    if (!bad) rank.post(0x10, -1, PTL_PRIORITY_LIST, 0);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10);
  ptl_event_t event{};
  if (rank.pmi.rank == 1) {
    if (bad) print_ready();
    PtlEQWait(rank.eq, &event);
  }
  PlantedRank::stay();
}

/// Rank 1 computes for ever before it sends.
[[noreturn]] inline void play_computes(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 0) rank.post(0x10, 1);
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    if (bad) print_ready();
    volatile unsigned long i = 0;
    while (bad) i = i + 1;
    rank.put(0, 0x10);
  }
  if (rank.pmi.rank == 0) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Rank 1 looks for the notice of a put that brings none.
[[noreturn]] inline void play_no_notice(bool bad) {
  const PlantedQueue rank(0);
  if (rank.pmi.rank == 0) {
    if (bad) rank.put_step();
    if (!bad) rank.put_notice();
    PlantedRank::stay();
  }
  await_notice(rank, bad);
}

/// Rank 0 looks for the entry in the TCQ of a put that makes none.
[[noreturn]] inline void play_no_entry(bool bad) {
  const PlantedQueue rank(0);
  if (rank.pmi.rank == 0) {
    rank.put_notice(0, bad ? 0 : UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
    if (bad) print_ready();
    void* data = nullptr;
    while (utofu_poll_tcq(rank.vcq, 0, &data) == UTOFU_ERR_NOT_FOUND) continue;
  }
  PlantedRank::stay();
}

/// Rank 1 looks for what nobody owes it: by short waits, or by looks at two queues and a counter.
[[noreturn]] inline void play_idle(bool bad) {
  PlantedRank rank(bad);
  ptl_handle_eq_t other = PTL_INVALID_HANDLE;
  if (PtlEQAlloc(rank.ni, 4, &other) != PTL_OK) std::_Exit(86);
  rank.pmi.barrier();
  print_ready();
  ptl_event_t event{};
  ptl_ct_event_t count{};
  unsigned int which = 0;
  while (rank.pmi.rank == 0) PtlEQPoll(&rank.eq, 1, 10, &event, &which);
  while (true) {
    PtlEQGet(rank.eq, &event);
    PtlEQGet(other, &event);
    PtlCTGet(rank.arrived, &count);
  }
}

/// @param role  as play_planted has it, which plays all others
inline int play_planted_or_loop(const std::string& role) {
  const bool bad = !role.ends_with(" good");
  const std::string name = role.substr(0, role.find(' '));
  if (name == "looks") play_looks(bad, 0);
  if (name == "several") play_several(bad);
  if (name == "rare_looks") play_looks(bad, 50'000);
  if (name == "failure") play_failure(bad);
  if (name == "other_queue") play_other_queue(bad);
  if (name == "search") play_search(bad);
  if (name == "chain") play_chain(bad);
  if (name == "untaken") play_untaken(bad);
  if (name == "computes") play_computes(bad);
  if (name == "no_notice") play_no_notice(bad);
  if (name == "no_entry") play_no_entry(bad);
  if (name == "idle") play_idle(bad);
  return play_planted(role);
}

}  // namespace portofu
