#pragma once
// More small programs that lean on what no section promises, and right ones beside them (planted_misuse.h): those that
// learn from counters, or of several things at once, what they may do.

#include "tests/process/planted_misuse.h"

namespace portofu {

/// A rank that counts: the MD counts ACKs, the entry its messages, and both tell it by events, too, where a role wants.
class CountingRank : public MisusingRank {
 public:
  CountingRank() {
    check(PtlCTAlloc(ni, &last));
    bind(PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_ACK);
  }
  void post_counted(unsigned int options = 0, ptl_size_t length = kBytes) {
    ptl_me_t entry{};
    entry.start = target.data();
    entry.length = length;
    entry.ct_handle = last;
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE |
                    PTL_ME_EVENT_UNLINK_DISABLE | options;
    entry.match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}};
    entry.match_bits = 0x10;
    check(PtlMEAppend(ni, kPt, &entry, PTL_PRIORITY_LIST, nullptr, &me));
  }
  static void wait(ptl_handle_ct_t counter, ptl_size_t test) {
    ptl_ct_event_t event{};
    check(PtlCTWait(counter, test, &event));
  }
  void close_all() {
    pmi.barrier();  // All has arrived.
    if (me != PTL_INVALID_HANDLE) check(PtlMEUnlink(std::exchange(me, PTL_INVALID_HANDLE)));
    check(PtlCTFree(last));
    close();
  }

  ptl_handle_ct_t last = PTL_INVALID_HANDLE;  ///< Messages of the entry; at initiators the end of a chain.
};

/// An entry counts its messages and tells of them by events. The count says that the data is there.
inline void play_counted_event(bool bad) {
  CountingRank rank;
  if (rank.pmi.rank == 1) rank.post_counted();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 8, PTL_CT_ACK_REQ);
    CountingRank::wait(rank.ct, 1);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    if (bad) rank.target[3] ^= std::byte{4};
    CountingRank::wait(rank.last, 1);
    if (!bad) rank.target[3] ^= std::byte{4};
    rank.read();
  }
  rank.close_all();
}

/// What four ACKs trigger says that the sources are free. The counter of the ACKs is never looked at, and set back.
inline void play_chain() {
  CountingRank rank;
  if (rank.pmi.rank == 1) rank.post_counted(PTL_ME_EVENT_COMM_DISABLE);
  rank.pmi.barrier();
  for (ptl_size_t round = 1; rank.pmi.rank == 0 && round < 4; ++round) {
    MisusingRank::check(PtlTriggeredCTInc(rank.last, {1, 0}, rank.ct, 4));
    for (int i = 0; i < 4; ++i) rank.put(1, 8, PTL_CT_ACK_REQ);
    CountingRank::wait(rank.last, round);
    rank.memory[1] ^= std::byte{8};
    MisusingRank::check(PtlCTSet(rank.ct, {0, 0}));
  }
  rank.close_all();
}

/// The target cuts each message, so that its ACK counts fewer bytes than were sent.
inline void play_cut(bool bad) {
  CountingRank rank;
  constexpr ptl_size_t kRoom = 32;
  rank.bind(PTL_EQ_NONE, rank.ct, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES);
  if (rank.pmi.rank == 1) rank.post_counted(PTL_ME_EVENT_COMM_DISABLE, kRoom);
  rank.pmi.barrier();
  for (ptl_size_t i = 1; rank.pmi.rank == 0 && i < 4; ++i) {
    rank.put(1, 2 * kRoom, PTL_CT_ACK_REQ);
    if (bad) rank.memory[5] ^= std::byte{1};
    CountingRank::wait(rank.ct, kRoom * i);
    if (!bad) rank.memory[5] ^= std::byte{1};
  }
  rank.close_all();
}

/// Ranks 0 and 2 write the same token, or tokens of their own, to the same bytes.
inline void play_token(bool bad) {
  CountingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank != 1) {
    rank.memory[0] = static_cast<std::byte>(bad ? 1 + rank.pmi.rank : 1);
    rank.put(1, 8);
    rank.put_behind(1, PTL_CT_ACK_REQ);
    CountingRank::wait(rank.ct, 1);
  }
  rank.pmi.barrier();
  for (int i = 0; rank.pmi.rank == 1 && i < 4; ++i) rank.read();
  rank.close_all();
}

/// As play_overwrite; the first has no ACK, and rank 1 reads its event in between if it is good.
inline void play_overwrite_read(bool bad) {
  MisusingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  for (int sender : {0, 2}) {
    rank.pmi.barrier();
    if (rank.pmi.rank == sender) {
      rank.memory[0] = static_cast<std::byte>(1 + sender);
      rank.put(1, 8, sender == 0 ? PTL_NO_ACK_REQ : PTL_ACK_REQ);
      if (sender == 0) rank.put_behind(1, PTL_ACK_REQ);
      for (int i = 0; i < (sender == 0 ? 3 : 2); ++i) rank.read();
    }
    for (int i = 0; rank.pmi.rank == 1 && !bad && i < (sender == 0 ? 2 : 1); ++i) rank.read();
  }
  rank.pmi.barrier();
  for (int i = 0; bad && rank.pmi.rank == 1 && i < 3; ++i) rank.read();
  rank.close();
}

/// Rank 0 sends on what it still gets, by a put of which neither side hears.
inline void play_early_use_unheard(bool bad) {
  MisusingRank rank;
  ptl_handle_md_t silent = PTL_INVALID_HANDLE;
  const ptl_md_t described{rank.memory.data(), rank.memory.size(), 0, PTL_EQ_NONE, PTL_CT_NONE};
  MisusingRank::check(PtlMDBind(rank.ni, &described, &silent));
  if (rank.pmi.rank == 1) rank.post(PTL_PRIORITY_LIST, PTL_ME_EVENT_COMM_DISABLE);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.get(1);
    if (!bad) rank.read();
    MisusingRank::check(PtlPut(silent, 0, 8, PTL_NO_ACK_REQ, rank.id_of(1), MisusingRank::kPt, 0x10, 0, nullptr, 0));
    if (bad) rank.read();
    rank.put(1, 8, PTL_ACK_REQ);  // Behind the other one.
    for (int i = 0; i < 2; ++i) rank.read();
  }
  rank.pmi.barrier();
  MisusingRank::check(PtlMDRelease(silent));
  rank.close();
}

/// ACKs of several targets, which say by their offset which put they are of. No user pointer does.
inline void play_offsets(bool bad) {
  CountingRank rank;
  rank.bind(rank.eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
  if (rank.pmi.rank != 0) rank.post_counted(PTL_ME_EVENT_COMM_DISABLE);
  rank.pmi.barrier();
  for (int round = 0; rank.pmi.rank == 0 && round < 50; ++round) {
    for (int to = 1; to < rank.pmi.size; ++to) {
      const auto offset = static_cast<ptl_size_t>(64 * to);
      MisusingRank::check(
          PtlPut(rank.md, offset, 8, PTL_ACK_REQ, rank.id_of(to), MisusingRank::kPt, 0x10, offset, nullptr, 0));
    }
    if (bad) rank.memory[65] ^= std::byte{1};
    for (int to = 1; to < rank.pmi.size; ++to) {
      const ptl_event_t event = rank.read();
      if (!bad) rank.memory[event.remote_offset] ^= std::byte{1};
    }
  }
  rank.close_all();
}

/// A word that is put with an event, and changed by a message that tells of itself in another way before that is read.
inline void play_silent_update() {
  CountingRank rank;
  if (rank.pmi.rank == 1) rank.post();
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 8, PTL_CT_ACK_REQ);
  if (rank.pmi.rank == 0) CountingRank::wait(rank.ct, 1);
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    MisusingRank::check(PtlMEUnlink(rank.me));
    rank.post_counted(PTL_ME_EVENT_COMM_DISABLE);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.memory[0] = std::byte{9};
    rank.put(1, 8, PTL_CT_ACK_REQ);
    CountingRank::wait(rank.ct, 2);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) rank.read();
  rank.close_all();
}

/// What a fetch brings back goes where its operands are, or beside them.
inline void play_in_place(bool bad) {
  CountingRank rank;
  if (rank.pmi.rank == 1) rank.post_counted(PTL_ME_EVENT_COMM_DISABLE);
  rank.bind(rank.eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    MisusingRank::check(PtlFetchAtomic(rank.md, bad ? 4 : 8, rank.md, 0, 8, rank.id_of(1), MisusingRank::kPt, 0x10, 0,
                                       nullptr, 0, PTL_SUM, PTL_INT64_T));
    rank.read();
  }
  rank.close_all();
}

/// @param role  as play_misuse has it, which plays all others
inline int play_misuse_or_counts(const std::string& role) {
  const bool bad = !role.ends_with(" good");
  const std::string name = role.substr(0, role.find(' '));
  if (name == "counted_event") play_counted_event(bad);
  if (name == "chain") play_chain();
  if (name == "cut") play_cut(bad);
  if (name == "token") play_token(bad);
  if (name == "overwrite_read") play_overwrite_read(bad);
  if (name == "early_use_unheard") play_early_use_unheard(bad);
  if (name == "offsets") play_offsets(bad);
  if (name == "silent_update") play_silent_update();
  if (name == "in_place") play_in_place(bad);
  return play_misuse(role);
}

}  // namespace portofu
