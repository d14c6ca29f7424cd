#pragma once
// What ranks do that tests start in virtual time.

#include <portals4.h>
#include <utofu.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/pmi_roles.h"

namespace portofu {

/// Memory of a rank that another one writes to: the first word. Its words 32 and further are its own.
alignas(256) inline std::atomic<std::uint64_t> sim_memory[64];

/// A rank with a VCQ, and that of its partner: rank 2n and 2n + 1.
struct TofuPair {
  PmiClient pmi;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t own = 0;
  utofu_vcq_id_t partner = 0;
  utofu_stadd_t there = 0;

  /// @param odd_tni  of odd ranks; even ones use TNI 0
  /// @param key      by which partners find each other
  bool open(utofu_tni_id_t odd_tni = 0, const std::string& key = "id-") {
    utofu_vcq_id_t id = 0;
    pmi.begin();
    if (utofu_create_vcq(is_even() ? 0 : odd_tni, 0, &vcq) != UTOFU_SUCCESS ||
        utofu_query_vcq_id(vcq, &id) != UTOFU_SUCCESS)
      return false;
    if (utofu_reg_mem(vcq, sim_memory, sizeof sim_memory, 0, &own) != UTOFU_SUCCESS) return false;
    pmi.put(key + std::to_string(pmi.rank), std::to_string(id) + ':' + std::to_string(own));
    pmi.barrier();
    const std::string other = PmiClient::field(pmi.get(key + std::to_string(pmi.rank ^ 1)), "value");
    return std::sscanf(other.c_str(), "%lu:%lu", &partner, &there) == 2;
  }
  int close() {
    const bool closed = utofu_dereg_mem(vcq, own, 0) == UTOFU_SUCCESS && utofu_free_vcq(vcq) == UTOFU_SUCCESS;
    pmi.end();
    return closed ? 0 : 9;
  }
  bool is_even() const { return pmi.rank % 2 == 0; }

  /// Puts a word to the partner's first.
  bool put(std::uint64_t word, unsigned long flags) {
    sim_memory[32] = word;
    return utofu_put(vcq, partner, own + 256, there, 8, 0, flags, nullptr) == UTOFU_SUCCESS;
  }
  bool await_notice(std::uint8_t kind) const {
    utofu_mrq_notice notice{};
    int rc = UTOFU_ERR_NOT_FOUND;
    while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_mrq(vcq, 0, &notice);
    return rc == UTOFU_SUCCESS && notice.notice_type == kind;
  }
  bool await_memory(std::uint64_t word) const {
    while (sim_memory[0] != word) {
    }
    return true;
  }
};

/// A word goes to and fro.
/// @param polls_memory  else notices are polled
/// @param closes        what it has opened; else it just ends
inline int play_ping_pong(std::uint64_t rounds, bool polls_memory, bool closes = true) {
  TofuPair pair;
  if (!pair.open()) return 1;
  const unsigned long flags = polls_memory ? 0 : UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    if (pair.is_even() && !pair.put(i, flags)) return 2;
    if (!(polls_memory ? pair.await_memory(i) : pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT))) return 3;
    if (sim_memory[0] != i) return 4;
    if (!pair.is_even() && !pair.put(i, flags)) return 5;
  }
  return closes ? pair.close() : 0;
}

/// The same twice, by two programs: the second takes the place of the first, which does not leave, and of whose words
/// the last may be on its way.
inline int play_one_after_the_other() {
  constexpr const char* kSecond = "SIM_TEST_SECOND";
  const bool is_second = std::getenv(kSecond) != nullptr;
  TofuPair pair;
  if (!pair.open(0, is_second ? "second-" : "first-")) return 1;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    if (pair.is_even() && !pair.put(i, 0)) return 2;
    pair.await_memory(i);
    if (!pair.is_even() && !pair.put(i, 0)) return 3;
  }
  if (is_second) return pair.close();
  setenv(kSecond, "1", 1);
  execl("/proc/self/exe", "one after the other", nullptr);
  return 4;
}

inline void handle_signals() {
  signal(SIGURG, [](int) {});
}
inline void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

/// The same, a few times, by a program that keeps off the signal by which it would be stopped.
/// @param keep_off  called before each put
inline int play_with_signals(void (*keep_off)()) {
  TofuPair pair;
  if (!pair.open()) return 1;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    if (pair.is_even()) keep_off();
    if (pair.is_even() && !pair.put(i, 0)) return 2;
    pair.await_memory(i);
    if (!pair.is_even()) keep_off();
    if (!pair.is_even() && !pair.put(i, 0)) return 3;
  }
  return pair.close();
}

/// Odd ranks leave the library as soon as they have heard of their partners, which go on to send to them.
inline int play_leaves_early() {
  TofuPair pair;
  if (!pair.open() || !pair.put(1, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE)) return 1;
  if (!pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT)) return 2;
  utofu_mrq_notice notice{};
  int rc = pair.is_even() ? UTOFU_SUCCESS : UTOFU_ERR_MRQ_PEER;
  while (rc == UTOFU_SUCCESS) {
    if (!pair.put(2, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE)) return 3;
    do rc = utofu_poll_mrq(pair.vcq, 0, &notice);
    while (rc == UTOFU_ERR_NOT_FOUND);
  }
  return rc == UTOFU_ERR_MRQ_PEER ? pair.close() : 4;
}

/// Both sleep in the kernel. The even one comes back first, and polls its memory for what the odd one sends then.
inline int play_comes_back() {
  TofuPair pair;
  if (!pair.open() || !pair.put(1, 0) || !pair.await_memory(1)) return 1;
  signal(SIGALRM, [](int) {});
  sigset_t rest, alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarms, &rest);
  const itimerval timer{{0, 0}, {0, pair.is_even() ? 300'000 : 900'000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  sigdelset(&rest, SIGALRM);
  sigsuspend(&rest);
  if (!pair.put(2, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE) || !pair.await_notice(UTOFU_MRQ_TYPE_LCL_PUT)) return 3;
  return !pair.is_even() || pair.await_memory(2) ? pair.close() : 4;
}

/// All look a thousand times for what nobody has sent, and then send, as progress loops do.
inline int play_looks_and_goes_on() {
  TofuPair pair;
  utofu_mrq_notice notice{};
  if (!pair.open()) return 1;
  for (std::uint64_t word = 1; word <= 2; ++word) {
    if (!pair.put(word, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE) || !pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT)) return 2;
    for (int look = 0; word == 1 && look < 1000; ++look)
      if (utofu_poll_mrq(pair.vcq, 0, &notice) == UTOFU_SUCCESS) break;
  }
  return pair.close();
}

/// Even ranks put words to TNI 3 of odd ones, which add to words of TNI 0.
inline int play_two_tnis() {
  TofuPair pair;
  if (!pair.open(3)) return 1;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const bool even = pair.is_even();
    if (even && utofu_put_piggyback8(pair.vcq, pair.partner, i, pair.there, 8, 0, 0, nullptr) != UTOFU_SUCCESS)
      return 2;
    pair.await_memory(i);
    if (!even && utofu_armw8(pair.vcq, pair.partner, UTOFU_ARMW_OP_ADD, 1, pair.there, 0,
                             UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr) != UTOFU_SUCCESS)
      return 3;
    if (!even && !pair.await_notice(UTOFU_MRQ_TYPE_LCL_ARMW)) return 4;
  }
  pair.pmi.barrier();
  return pair.close();
}

/// Even ranks put words, and take the notice of each.
/// @param ahead  puts whose notice is still to be taken when the next one begins
inline int play_rate(int ahead) {
  TofuPair pair;
  if (!pair.open()) return 1;
  constexpr int kPuts = 20;
  for (int put = 1; put <= kPuts + ahead && pair.is_even(); ++put) {
    void* data = nullptr;
    int rc = UTOFU_ERR_NOT_FOUND;
    if (put <= kPuts && !pair.put(static_cast<unsigned>(put), UTOFU_ONESIDED_FLAG_TCQ_NOTICE)) return 2;
    while (rc == UTOFU_ERR_NOT_FOUND && put > ahead) rc = utofu_poll_tcq(pair.vcq, 0, &data);
    if (rc != UTOFU_SUCCESS && put > ahead) return 3;
  }
  if (!pair.is_even()) pair.await_memory(20);
  pair.pmi.barrier();
  return pair.close();
}

/// Even ranks get from odd ones, which call nothing but a clock of their own meanwhile.
inline int play_get_and_armw() {
  TofuPair pair;
  sim_memory[0] = 7;
  if (!pair.open()) return 1;
  if (pair.is_even()) {
    for (int i = 0; i < 10; ++i) {
      if (utofu_get(pair.vcq, pair.partner, pair.own + 256, pair.there, 8, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE,
                    nullptr) != UTOFU_SUCCESS ||
          !pair.await_notice(UTOFU_MRQ_TYPE_LCL_GET) || sim_memory[32] != 7u + static_cast<unsigned>(i)) {
        return 2;
      }
      if (utofu_armw8(pair.vcq, pair.partner, UTOFU_ARMW_OP_ADD, 1, pair.there, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE,
                      nullptr) != UTOFU_SUCCESS ||
          !pair.await_notice(UTOFU_MRQ_TYPE_LCL_ARMW)) {
        return 3;
      }
    }
    if (!pair.put(1, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE)) return 4;
  } else if (!pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT)) {
    return 5;
  }
  return pair.close();
}

/// Tells where the rank is by its uTofu, then lets a word go to and fro.
inline int play_coordinates() {
  std::uint8_t at[6] = {};
  if (utofu_query_my_coords(at) != UTOFU_SUCCESS) return 10;
  std::printf("rank %d at %d,%d,%d,%d,%d,%d.\n", environment_number("PMI_RANK"), at[0], at[1], at[2], at[3], at[4],
              at[5]);
  std::fflush(stdout);
  return play_ping_pong(2, false);
}

/// A matching interface with a counter that counts what comes, and the next rank.
struct PortalsRing {
  PmiClient pmi;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t next{};
  std::vector<std::uint64_t> received;
  std::vector<std::uint64_t> sent;

  explicit PortalsRing(std::size_t words) : received(words), sent(words) {}

  bool open() {
    ptl_process_t self{};
    pmi.begin();
    if (PtlInit() != PTL_OK) return false;
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) !=
            PTL_OK ||
        PtlGetPhysId(ni, &self) != PTL_OK || PtlCTAlloc(ni, &ct) != PTL_OK || PtlEQAlloc(ni, 64, &eq) != PTL_OK ||
        PtlPTAlloc(ni, 0, eq, 4, &pt) != PTL_OK) {
      return false;
    }
    const ptl_size_t bytes = received.size() * sizeof received[0];
    const ptl_le_t le{received.data(), bytes, ct, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_CT_COMM};
    const ptl_md_t described{sent.data(), bytes, 0, PTL_EQ_NONE, PTL_CT_NONE};
    if (PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return false;
    if (PtlMDBind(ni, &described, &md) != PTL_OK) return false;
    pmi.put("id-" + std::to_string(pmi.rank), std::to_string(self.phys.nid) + ':' + std::to_string(self.phys.pid));
    pmi.barrier();
    const std::string id = PmiClient::field(pmi.get("id-" + std::to_string((pmi.rank + 1) % pmi.size)), "value");
    return std::sscanf(id.c_str(), "%u:%u", &next.phys.nid, &next.phys.pid) == 2;
  }
  bool put() const {
    return PtlPut(md, 0, sent.size() * sizeof sent[0], PTL_NO_ACK_REQ, next, pt, 0, 0, nullptr, 0) == PTL_OK;
  }
  int close() const {
    PtlNIFini(ni);
    PtlFini();
    pmi.end();
    return 0;
  }
};

/// Everybody puts to the next one and waits at its counter. Then the same, event by event.
inline int play_portals_ring(std::size_t words) {
  PortalsRing ring(words);
  if (!ring.open()) return 1;
  for (ptl_size_t round = 1; round <= 3; ++round) {
    ring.sent.back() = 100 * round + static_cast<unsigned>(ring.pmi.rank);
    ptl_ct_event_t value{};
    if (!ring.put() || PtlCTWait(ring.ct, round, &value) != PTL_OK || value.failure != 0) return 2;
    const int left = (ring.pmi.rank + ring.pmi.size - 1) % ring.pmi.size;
    // The left one may be a round ahead.
    const std::uint64_t ahead = ring.received.back() - 100 * round;
    if (ahead != static_cast<unsigned>(left) && ahead != 100 + static_cast<unsigned>(left)) return 3;
  }
  ptl_event_t event{};
  for (int i = 0; i < 3; ++i) {
    int rc = PTL_EQ_EMPTY;
    while (rc == PTL_EQ_EMPTY) rc = PtlEQGet(ring.eq, &event);
    if (rc == PTL_OK && event.type == PTL_EVENT_LINK) --i;
    if (rc != PTL_OK || (event.type != PTL_EVENT_PUT && event.type != PTL_EVENT_LINK)) return 4;
  }
  return ring.close();
}

/// Everybody puts to the next, then appends entries, and reads the events of these and of the put.
inline int play_portals_links(int entries) {
  PortalsRing ring(1);
  ptl_ct_event_t value{};
  if (!ring.open() || !ring.put() || PtlCTWait(ring.ct, 1, &value) != PTL_OK) return 1;
  const ptl_le_t le{ring.received.data(), 8, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
  ptl_handle_le_t handle = PTL_INVALID_HANDLE;
  for (int i = 0; i < entries; ++i) {
    if (PtlLEAppend(ring.ni, ring.pt, &le, PTL_PRIORITY_LIST, nullptr, &handle) != PTL_OK) return 2;
  }
  int links = 0;
  for (int i = 0; i < entries + 2; ++i) {
    ptl_event_t event{};
    if (PtlEQGet(ring.eq, &event) != PTL_OK) return 3;
    if (event.type == PTL_EVENT_LINK) ++links;
  }
  ptl_event_t none{};
  if (PtlEQGet(ring.eq, &none) != PTL_EQ_EMPTY) return 4;
  return links == entries + 1 ? ring.close() : 5;
}

/// Everybody puts to rank 0, which waits for all.
inline int play_portals_incast(std::size_t words) {
  PortalsRing ring(words);
  if (!ring.open()) return 1;
  const std::string id = PmiClient::field(ring.pmi.get("id-0"), "value");
  if (std::sscanf(id.c_str(), "%u:%u", &ring.next.phys.nid, &ring.next.phys.pid) != 2) return 2;
  ptl_ct_event_t value{};
  if (ring.pmi.rank != 0) {
    if (!ring.put()) return 3;
  } else if (PtlCTWait(ring.ct, static_cast<unsigned>(ring.pmi.size - 1), &value) != PTL_OK) {
    return 4;
  }
  return ring.close();
}

/// Rank 0 puts 32 KiB five times, and waits for each SEND before the next.
inline int play_portals_sends() {
  PortalsRing ring(1u << 12);
  if (!ring.open()) return 1;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_md_t described{ring.sent.data(), ring.sent.size() * 8, 0, PTL_EQ_NONE, PTL_CT_NONE};
  if (PtlEQAlloc(ring.ni, 64, &eq) != PTL_OK) return 2;
  described.eq_handle = eq;
  if (PtlMDBind(ring.ni, &described, &ring.md) != PTL_OK) return 3;
  for (int i = 0; i < 5 && ring.pmi.rank == 0; ++i) {
    ptl_event_t event{};
    if (!ring.put() || PtlEQWait(eq, &event) != PTL_OK || event.type != PTL_EVENT_SEND) return 4;
  }
  ptl_ct_event_t value{};
  if (ring.pmi.rank == 1 && PtlCTWait(ring.ct, 5, &value) != PTL_OK) return 5;
  return ring.close();
}

/// Rank 0 puts, and the count of that SEND triggers another put.
inline int play_portals_send_triggers() {
  PortalsRing ring(1u << 12);
  if (!ring.open()) return 1;
  ptl_handle_ct_t sends = PTL_INVALID_HANDLE;
  ptl_md_t described{ring.sent.data(), ring.sent.size() * 8, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, PTL_CT_NONE};
  const ptl_handle_md_t silent = ring.md;
  if (PtlCTAlloc(ring.ni, &sends) != PTL_OK) return 2;
  described.ct_handle = sends;
  if (PtlMDBind(ring.ni, &described, &ring.md) != PTL_OK) return 3;
  if (ring.pmi.rank == 0) {
    if (PtlTriggeredPut(silent, 0, 8, PTL_NO_ACK_REQ, ring.next, ring.pt, 0, 0, nullptr, 0, sends, 1) != PTL_OK)
      return 4;
    if (!ring.put()) return 5;
  }
  ptl_ct_event_t value{};
  if (ring.pmi.rank == 1 && PtlCTWait(ring.ct, 2, &value) != PTL_OK) return 6;
  return ring.close();
}

/// Rank 1 gets 32 KiB from rank 0, which puts to it when its event of that has come.
inline int play_portals_get_events() {
  PortalsRing ring(1u << 12);
  if (!ring.open()) return 1;
  ptl_event_t event{};
  event.type = PTL_EVENT_LINK;
  if (ring.pmi.rank == 1 && PtlGet(ring.md, 0, ring.sent.size() * 8, ring.next, ring.pt, 0, 0, nullptr) != PTL_OK)
    return 2;
  while (ring.pmi.rank == 0 && event.type != PTL_EVENT_GET) {
    if (PtlEQWait(ring.eq, &event) != PTL_OK) return 3;
  }
  if (ring.pmi.rank == 0 && !ring.put()) return 4;
  ptl_ct_event_t value{};
  if (ring.pmi.rank == 1 && PtlCTWait(ring.ct, 1, &value) != PTL_OK) return 5;
  return ring.close();
}

/// Waits in vain for 1 ms.
inline int play_alone() {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_event_t event{};
  unsigned which = 0;
  const bool is_open =
      PtlInit() == PTL_OK &&
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) == PTL_OK &&
      PtlEQAlloc(ni, 1, &eq) == PTL_OK;
  if (!is_open || PtlEQPoll(&eq, 1, 1, &event, &which) != PTL_EQ_EMPTY) return 1;
  PtlNIFini(ni);
  PtlFini();
  return 0;
}

inline constexpr rlim_t kFewFiles = 200;

/// Whether signals get through to it, and it has the limit of the shell.
inline bool is_as_started() {
  sigset_t blocked;
  rlimit files{};
  if (sigprocmask(SIG_BLOCK, nullptr, &blocked) != 0 || getrlimit(RLIMIT_NOFILE, &files) != 0) return false;
  for (const int number : {SIGTERM, SIGCHLD, SIGUSR1}) {
    if (sigismember(&blocked, number) != 0) return false;
  }
  return files.rlim_cur == kFewFiles;
}

/// Rank 1 waits in vain twice, 3 ms and 5 ms, while rank 0 waits for the word of rank 1.
inline int play_portals_timeouts() {
  PortalsRing ring(1);
  if (!ring.open()) return 1;
  ptl_event_t event{};
  unsigned which = 0;
  if (ring.pmi.rank == 1) {
    if (PtlEQGet(ring.eq, &event) != PTL_OK || event.type != PTL_EVENT_LINK) return 2;
    for (const ptl_time_t timeout : {3, 5}) {
      if (PtlEQPoll(&ring.eq, 1, timeout, &event, &which) != PTL_EQ_EMPTY) return 3;
    }
    if (!ring.put()) return 4;
  } else {
    ptl_ct_event_t value{};
    if (PtlCTWait(ring.ct, 1, &value) != PTL_OK) return 5;
  }
  return ring.close();
}

/// Wants one CQ more than a TNI has.
inline int play_full_tni() {
  utofu_vcq_hdl_t vcq = 0;
  int rc = UTOFU_SUCCESS;
  for (int i = 0; i < 10 && rc == UTOFU_SUCCESS; ++i) rc = utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq);
  return rc == UTOFU_ERR_NOT_AVAILABLE ? 0 : 1;
}

/// Another thread calls and ends. Then rank 0 computes for long without a call, while rank 1 looks for what comes next.
inline int play_thread_ends() {
  PortalsRing ring(1);
  if (!ring.open()) return 1;
  ptl_ct_event_t value{};
  bool came = false;
  std::thread([&] { came = ring.put() && PtlCTWait(ring.ct, 1, &value) == PTL_OK; }).join();
  if (!came) return 2;
  const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 5;
  while (ring.pmi.rank == 0 && std::clock() < until) {
  }
  if (ring.pmi.rank == 0 && !ring.put()) return 3;
  while (ring.pmi.rank == 1 && value.success != 2) {
    if (PtlCTGet(ring.ct, &value) != PTL_OK) return 4;
  }
  return ring.close();
}

/// A triggered chain: rank 0 puts to 1, whose NIC puts on when the counter says so, and so on, round the ring.
inline int play_portals_triggered() {
  PortalsRing ring(1);
  if (!ring.open()) return 1;
  ptl_ct_event_t value{};
  if (ring.pmi.rank != 0) {
    if (PtlTriggeredPut(ring.md, 0, 8, PTL_NO_ACK_REQ, ring.next, ring.pt, 0, 0, nullptr, 0, ring.ct, 1) != PTL_OK)
      return 2;
    ring.pmi.barrier();
  } else {
    ring.pmi.barrier();
    if (!ring.put()) return 3;
  }
  if (PtlCTWait(ring.ct, 1, &value) != PTL_OK) return 4;
  return ring.close();
}

inline int play_sim(const std::string& role) {
  const int rank = environment_number("PMI_RANK");
  if (role == "mrq") return play_ping_pong(20, false);
  if (role == "memory") return play_ping_pong(20, true);
  if (role == "memory_and_no_close") return play_ping_pong(20, true, false);
  if (role == "memory_beside_a_thread") {
    static std::atomic<std::uint64_t> counted{0};
    std::thread([] {
      for (;;) counted.fetch_add(1, std::memory_order_relaxed);
    }).detach();
    return play_ping_pong(20, true);
  }
  if (role == "memory_and_own_handler") return play_with_signals(handle_signals);
  if (role == "memory_and_blocked_signals") return play_with_signals(block_signals);
  if (role == "one_after_the_other") return play_one_after_the_other();
  if (role == "two_tnis") return play_two_tnis();
  if (role == "rate") return play_rate(4);
  if (role == "notice_by_notice") return play_rate(0);
  if (role == "sends") return play_portals_sends();
  if (role == "send_triggers") return play_portals_send_triggers();
  if (role == "get_events") return play_portals_get_events();
  if (role == "coordinates") return play_coordinates();
  if (role == "get_armw") return play_get_and_armw();
  if (role == "ring") return play_portals_ring(1);
  if (role == "long_ring") return play_portals_ring(1u << 20);
  if (role == "links") return play_portals_links(50);
  if (role == "no_links") return play_portals_links(0);
  if (role == "incast") return play_portals_incast(1u << 13);
  if (role == "timeouts") return play_portals_timeouts();
  if (role == "thread_ends") return play_thread_ends();
  if (role == "triggered") return play_portals_triggered();
  if (role == "never") return 0;
  if (role == "alone") return play_alone();
  if (role == "one_never") return rank == 1 ? usleep(3'000'000) : play_alone();
  if (role == "hangs") {
    PortalsRing ring(1);
    ptl_ct_event_t value{};
    return ring.open() && PtlCTWait(ring.ct, 1, &value) == PTL_OK ? 1 : 2;
  }
  if (role == "polls_in_vain") {
    TofuPair pair;
    return pair.open() && pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT) ? 1 : 2;
  }
  if (role == "memory_in_vain") {
    TofuPair pair;
    return pair.open() && pair.put(1, 0) && pair.await_memory(1) && pair.await_memory(2) ? 1 : 2;
  }
  if (role == "memory_without_a_call" || role == "memory_and_notices") {
    TofuPair pair;
    if (!pair.open()) return 1;
    return rank == 1 && role == "memory_and_notices" ? pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT) : pair.await_memory(1);
  }
  if (role == "one_ends") {
    TofuPair pair;
    if (!pair.open()) return 1;
    return rank == 1 ? 0 : pair.await_memory(1);
  }
  if (role == "leaves_early") return play_leaves_early();
  if (role == "comes_back") return play_comes_back();
  if (role == "as_started") return is_as_started() ? play_alone() : 9;
  if (role == "full_tni") return play_full_tni();
  if (role == "looks_and_goes_on") return play_looks_and_goes_on();
  if (role == "dies") {
    TofuPair pair;
    if (!pair.open() || !pair.put(1, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE)) return 1;
    if (!pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT)) return 2;
    if (rank == 1) raise(SIGKILL);
    return pair.await_notice(UTOFU_MRQ_TYPE_RMT_PUT) ? 3 : 4;
  }
  return 100;
}

}  // namespace portofu
