#pragma once
// Small programs with an error that makes them hang, one each, and the same programs without it. The ranks of ptl_run
// play them. Without the error all ranks say "ready" when they are through; with it, before they hang.

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/pmi_roles.h"

namespace portofu {

/// A rank of Portals: matching, physical, with one portal table entry, an event queue, two counters and an MD.
class PlantedRank {
 public:
  static constexpr ptl_pid_t kFirstPid = 700;
  static constexpr ptl_pt_index_t kPt = 4;
  static constexpr ptl_size_t kEvents = 2;
  static constexpr ptl_size_t kBytes = 64;

  explicit PlantedRank(bool bad, unsigned int pt_options = 0) : bad_(bad) {
    pmi.begin();
    ptl_pt_index_t pt = 0;
    const ptl_pid_t pid = kFirstPid + static_cast<ptl_pid_t>(pmi.rank);
    check(PtlInit());
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni));
    check(PtlGetPhysId(ni, &self));
    pmi.put("nid-" + std::to_string(pmi.rank), std::to_string(self.phys.nid));
    pmi.barrier();
    for (int rank = 0; rank < pmi.size; ++rank) {
      const std::string nid = PmiClient::field(pmi.get("nid-" + std::to_string(rank)), "value");
      nids_.push_back(static_cast<ptl_nid_t>(std::strtoul(nid.c_str(), nullptr, 10)));
    }
    check(PtlEQAlloc(ni, kEvents, &eq));
    check(PtlCTAlloc(ni, &arrived));
    check(PtlCTAlloc(ni, &answered));
    check(PtlPTAlloc(ni, pt_options, eq, kPt, &pt));
    const ptl_md_t described{memory.data(), memory.size(), PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, answered};
    check(PtlMDBind(ni, &described, &md));
  }

  /// @param source  rank; -1: any
  void post(ptl_match_bits_t bits, int source = -1, ptl_list_t list = PTL_PRIORITY_LIST,
            unsigned int options = PTL_ME_EVENT_COMM_DISABLE, ptl_size_t length = kBytes) {
    ptl_me_t me{};
    me.start = memory.data();
    me.length = length;
    me.ct_handle = list == PTL_PRIORITY_LIST ? arrived : PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                 PTL_ME_EVENT_OVER_DISABLE | options;
    me.match_id = source >= 0 ? id_of(source) : ptl_process_t{.phys = {PTL_NID_ANY, PTL_PID_ANY}};
    me.match_bits = bits;
    me.ignore_bits = list == PTL_PRIORITY_LIST ? 0 : ~ptl_match_bits_t{0};
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    check(PtlMEAppend(ni, kPt, &me, list, nullptr, &handle));
  }

  /// Asks again and again for an unexpected message with these bits until there is one.
  void search(ptl_match_bits_t bits) const {
    ptl_me_t me{};
    me.ct_handle = PTL_CT_NONE;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    me.match_bits = bits;
    me.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
    ptl_event_t event{};
    for (bool found = false; !found; found = event.ni_fail_type == PTL_NI_OK) {
      if (PtlMESearch(ni, kPt, &me, PTL_SEARCH_ONLY, nullptr) != PTL_OK) std::_Exit(86);
      PtlEQWait(eq, &event);
    }
  }

  void put(int rank, ptl_match_bits_t bits, ptl_ack_req_t ack = PTL_NO_ACK_REQ, ptl_pt_index_t pt = kPt) const {
    check(PtlPut(md, 0, 8, ack, id_of(rank), pt, bits, 0, nullptr, 0));
  }

  ptl_process_t id_of(int rank) const {
    return {.phys = {nids_[static_cast<std::size_t>(rank)], kFirstPid + static_cast<ptl_pid_t>(rank)}};
  }

  void wait(ptl_handle_ct_t counter, ptl_size_t test) const {
    if (bad_) print_ready();
    ptl_ct_event_t event{};
    check(PtlCTWait(counter, test, &event));
  }

  /// Stays, so that it can be looked at.
  [[noreturn]] static void stay() {
    print_ready();
    sleep_for_ever();
  }

  PmiClient pmi;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t arrived = PTL_INVALID_HANDLE;   ///< Messages at posted entries.
  ptl_handle_ct_t answered = PTL_INVALID_HANDLE;  ///< ACKs.
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_process_t self{};

 private:
  static void check(int rc) {
    if (rc != PTL_OK) std::_Exit(80);
  }

  bool bad_;
  std::vector<ptl_nid_t> nids_;  ///< Of all ranks.
  std::array<std::byte, kBytes> memory{};
};

/// Rank 0 sends with another tag than rank 1 receives.
[[noreturn]] inline void play_tag(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) {
    rank.post(0, -1, PTL_OVERFLOW_LIST);
    rank.post(0x10, 0);
    rank.post(0x12345600, 0);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, bad ? 0x11 : 0x10);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Rank 0 sends to a portal table entry that rank 1 has not allocated.
[[noreturn]] inline void play_portal(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10, PTL_NO_ACK_REQ, bad ? 5 : PlantedRank::kPt);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Rank 0 waits for an ACK that it has not asked for.
[[noreturn]] inline void play_ack(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 0x10, bad ? PTL_NO_ACK_REQ : PTL_CT_ACK_REQ);
    rank.wait(rank.answered, 1);
  }
  PlantedRank::stay();
}

/// Four messages come, and what rank 1 waits for is triggered by the fifth.
[[noreturn]] inline void play_threshold(bool bad) {
  PlantedRank rank(bad);
  ptl_handle_ct_t last = PTL_INVALID_HANDLE;
  if (rank.pmi.rank == 1) {
    rank.post(0x10);
    if (PtlCTAlloc(rank.ni, &last) != PTL_OK || PtlTriggeredCTInc(last, {1, 0}, rank.arrived, bad ? 5 : 4) != PTL_OK)
      std::_Exit(81);
  }
  rank.pmi.barrier();
  for (int i = 0; rank.pmi.rank == 0 && i < 4; ++i) rank.put(1, 0x10);
  if (rank.pmi.rank == 1) rank.wait(last, 1);
  PlantedRank::stay();
}

/// Everybody receives from the next rank before it sends to the one before it.
[[noreturn]] inline void play_circle(bool bad) {
  PlantedRank rank(bad);
  const int size = rank.pmi.size;
  const int own = rank.pmi.rank;
  rank.post(0x10, (own + 1) % size);
  rank.pmi.barrier();
  const bool first = !bad && own == 0;
  if (first) rank.put((own + size - 1) % size, 0x10);
  rank.wait(rank.arrived, 1);
  if (!first) rank.put((own + size - 1) % size, 0x10);
  PlantedRank::stay();
}

/// Rank 1 is stopped while rank 0 waits for its ACK.
[[noreturn]] inline void play_stopped(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10);
  if (rank.pmi.rank == 1) rank.pmi.put("stopped", std::to_string(getpid()));
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    if (!bad) PlantedRank::stay();
    print_ready();
    raise(SIGSTOP);
  }
  if (rank.pmi.rank == 0) {
    const std::string tasks = "/proc/" + PmiClient::field(rank.pmi.get("stopped"), "value") + "/task";
    if (bad) {  // One of its threads may answer else.
      for (const auto& task : std::filesystem::directory_iterator(tasks))
        conformance::wait_for_state(task.path().string(), 'T');
    }
    rank.put(1, 0x10, PTL_CT_ACK_REQ);
    rank.wait(rank.answered, 1);
  }
  PlantedRank::stay();
}

/// Rank 1 dies before it sends what rank 0 waits for. Who speaks with the launcher lives on, so that the job does.
[[noreturn]] inline void play_dead(bool bad) {
  if (environment_number("PMI_RANK") == 1 && fork() != 0) sleep_for_ever();
  PlantedRank rank(bad);
  rank.post(0x10, 1 - rank.pmi.rank);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 0x10, PTL_CT_ACK_REQ);
    ptl_ct_event_t event{};
    PtlCTWait(rank.answered, 1, &event);
  }
  rank.pmi.barrier();
  if (rank.pmi.rank == 1) {
    if (bad) {
      print_ready();
      raise(SIGKILL);
    }
    rank.put(0, 0x10);
  }
  if (rank.pmi.rank == 0) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Nobody reads the events of rank 1.
[[noreturn]] inline void play_events(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1) rank.post(0x10, -1, PTL_PRIORITY_LIST, 0);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    for (ptl_size_t i = 0; i < PlantedRank::kEvents; ++i) rank.put(1, 0x10, PTL_CT_ACK_REQ);
    ptl_ct_event_t event{};
    PtlCTWait(rank.answered, PlantedRank::kEvents, &event);
  }
  ptl_event_t event{};
  for (ptl_size_t i = 0; !bad && rank.pmi.rank == 1 && i < PlantedRank::kEvents; ++i) PtlEQWait(rank.eq, &event);
  PlantedRank::stay();
}

/// A message finds no entry, and nobody ends the flow control that follows.
[[noreturn]] inline void play_disabled(bool bad) {
  PlantedRank rank(bad, PTL_PT_FLOWCTRL);
  if (rank.pmi.rank == 1 && !bad) rank.post(0x10);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) {
    rank.put(1, 0x10, PTL_CT_ACK_REQ);
    ptl_ct_event_t event{};
    PtlCTWait(rank.answered, 1, &event);
  }
  PlantedRank::stay();
}

/// A rank of uTofu: one VCQ, some memory, one barrier gate that is connected to that of the other rank.
class PlantedQueue {
 public:
  explicit PlantedQueue(unsigned long vcq_flags) {
    pmi.begin();
    check(utofu_create_vcq(0, vcq_flags, &vcq));
    check(utofu_query_vcq_id(vcq, &vcq_id_));
    check(utofu_reg_mem(vcq, memory_.data(), sizeof memory_, 0, &stadd_));
    check(utofu_alloc_vbg(0, 1, 0, &gate));
    const std::string own = std::to_string(vcq_id_) + ':' + std::to_string(stadd_) + ':' + std::to_string(gate);
    pmi.put("id-" + std::to_string(pmi.rank), own);
    pmi.barrier();
    const std::string there = PmiClient::field(pmi.get("id-" + std::to_string(1 - pmi.rank)), "value");
    if (std::sscanf(there.c_str(), "%lu:%lu:%lu", &other_vcq_, &other_stadd_, &other_gate_) != 3) std::_Exit(83);
    utofu_vbg_setting setting{gate, gate, other_gate_, gate, other_gate_, {UTOFU_PATH_COORD_NULL, 0, 0}};
    check(utofu_set_vbg(&setting, 1));
    pmi.barrier();
  }

  /// Puts a word to the other rank, which gets a notice.
  void put_notice(std::uint64_t offset = 0, unsigned long flags = 0) const {
    while (utofu_put_piggyback8(vcq, other_vcq_, 1, other_stadd_ + offset, 8, 0,
                                UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | flags, nullptr) == UTOFU_ERR_BUSY) {
      void* data = nullptr;
      utofu_poll_tcq(vcq, 0, &data);
    }
  }

  /// Puts a word to the other rank, with one session progress step.
  void put_step() const {
    check(utofu_put_piggyback8(vcq, other_vcq_, 1, other_stadd_, 8, 0, UTOFU_ONESIDED_FLAG_SPS(1), nullptr));
  }

  PmiClient pmi;
  utofu_vcq_hdl_t vcq = 0;
  utofu_vbg_id_t gate = 0;

 private:
  static void check(int rc) {
    if (rc != UTOFU_SUCCESS) std::_Exit(84);
  }

  utofu_vcq_id_t vcq_id_ = 0;
  utofu_stadd_t stadd_ = 0;
  unsigned long other_vcq_ = 0;
  unsigned long other_stadd_ = 0;
  unsigned long other_gate_ = 0;
  alignas(256) std::array<std::uint64_t, 32> memory_{};
};

/// Two descriptors of rank 1 wait for a step each, and rank 0 brings one.
[[noreturn]] inline void play_session(bool bad) {
  const bool relays = environment_number("PMI_RANK") == 1;
  const PlantedQueue rank(relays ? UTOFU_VCQ_FLAG_SESSION_MODE : 0);
  if (!relays) {
    for (int i = 0; i < (bad ? 1 : 2); ++i) rank.put_step();
    PlantedRank::stay();
  }
  for (int i = 0; i < 2; ++i) {
    if (utofu_nop(rank.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr) != UTOFU_SUCCESS) std::_Exit(85);
  }
  if (bad) print_ready();
  void* data = nullptr;
  for (int done = 0; done < 2;) done += utofu_poll_tcq(rank.vcq, 0, &data) == UTOFU_SUCCESS ? 1 : 0;
  PlantedRank::stay();
}

/// Rank 1 reads none of its notices.
[[noreturn]] inline void play_notices(bool bad) {
  const PlantedQueue rank(0);
  for (int i = 0; rank.pmi.rank == 0 && i < (bad ? environment_number("UTOFU_NUM_MRQ_ENTRIES") : 2); ++i)
    rank.put_notice();
  PlantedRank::stay();
}

/// Rank 1 does not come to the barrier.
[[noreturn]] inline void play_gate(bool bad) {
  const PlantedQueue rank(0);
  if (!bad || rank.pmi.rank == 0) {
    if (utofu_barrier(rank.gate, 0) != UTOFU_SUCCESS) std::_Exit(86);
    if (bad) print_ready();
    while (utofu_poll_barrier(rank.gate, 0) == UTOFU_ERR_NOT_COMPLETED) continue;
  }
  PlantedRank::stay();
}

/// Rank 1 has room for less than rank 0 sends, and does not truncate.
[[noreturn]] inline void play_room(bool bad) {
  PlantedRank rank(bad);
  const unsigned int options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_NO_TRUNCATE;
  if (rank.pmi.rank == 1) rank.post(0x10, -1, PTL_PRIORITY_LIST, options, bad ? 4 : 8);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10);
  if (rank.pmi.rank == 1) rank.wait(rank.arrived, 1);
  PlantedRank::stay();
}

/// Polls for a notice, which a bad program does not get.
[[noreturn]] inline void await_notice(const PlantedQueue& rank, bool bad) {
  if (bad) print_ready();
  utofu_mrq_notice notice{};
  while (utofu_poll_mrq(rank.vcq, 0, &notice) != UTOFU_SUCCESS) continue;
  PlantedRank::stay();
}

/// Rank 0 puts behind the end of what rank 1 has registered, and does not look whether that went well.
[[noreturn]] inline void play_region(bool bad) {
  const PlantedQueue rank(0);
  if (rank.pmi.rank == 0) {
    rank.put_notice(bad ? 252 : 0);
    PlantedRank::stay();
  }
  await_notice(rank, bad);
}

/// Rank 0 forgets to start what it has delayed.
[[noreturn]] inline void play_delay(bool bad) {
  const PlantedQueue rank(0);
  if (rank.pmi.rank == 0) {
    rank.put_notice(0, UTOFU_ONESIDED_FLAG_DELAY_START);
    if (!bad) utofu_post_toq(rank.vcq, nullptr, 0, nullptr);
    PlantedRank::stay();
  }
  await_notice(rank, bad);
}

/// Rank 1 waits for an event that its entry does not make.
[[noreturn]] inline void play_silent(bool bad) {
  PlantedRank rank(bad);
  if (rank.pmi.rank == 1)
    rank.post(0x10, -1, PTL_PRIORITY_LIST, bad ? static_cast<unsigned>(PTL_ME_EVENT_COMM_DISABLE) : 0);
  rank.pmi.barrier();
  if (rank.pmi.rank == 0) rank.put(1, 0x10);
  ptl_event_t event{};
  if (rank.pmi.rank == 1) {
    if (bad) print_ready();
    PtlEQWait(rank.eq, &event);
  }
  PlantedRank::stay();
}

/// @param role  "tag" or "tag good"
inline int play_planted(const std::string& role) {
  const bool bad = !role.ends_with(" good");
  const std::string name = role.substr(0, role.find(' '));
  if (name == "tag") play_tag(bad);
  if (name == "portal") play_portal(bad);
  if (name == "ack") play_ack(bad);
  if (name == "threshold") play_threshold(bad);
  if (name == "circle") play_circle(bad);
  if (name == "stopped") play_stopped(bad);
  if (name == "dead") play_dead(bad);
  if (name == "notices") play_notices(bad);
  if (name == "events") play_events(bad);
  if (name == "disabled") play_disabled(bad);
  if (name == "session") play_session(bad);
  if (name == "gate") play_gate(bad);
  if (name == "room") play_room(bad);
  if (name == "region") play_region(bad);
  if (name == "delay") play_delay(bad);
  if (name == "silent") play_silent(bad);
  return 82;
}

}  // namespace portofu
