// Half round trip of a Portals put between two processes on two cores, beside a bouncing cache line in the same run,
// which is measured before and after each series: a series between two that disagree is not shown.

#include <portals4.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 20000;
constexpr int kSeries = 5;
constexpr ptl_pt_index_t kIndex = 4;

struct Shared {
  alignas(128) std::atomic<int> ball{0};
  alignas(128) std::atomic<int> arrived{0};
  alignas(128) ptl_process_t ids[2];
};

void check(int rc, const char* what) {
  if (rc == PTL_OK) return;
  std::fprintf(stderr, "%s: return code %d\n", what, rc);
  std::_Exit(1);
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void barrier(Shared& shared, int round) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < 2 * round) sched_yield();
}

double bounce(Shared& shared, int me) {
  const double start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    while (shared.ball.load(std::memory_order_acquire) != me) {
    }
    shared.ball.store(1 - me, std::memory_order_release);
  }
  return (now_ns() - start) / (2.0 * kRounds);
}

struct Side {
  ptl_handle_ni_t ni;
  ptl_handle_eq_t eq;
  ptl_handle_ct_t ct;
  ptl_handle_md_t md;
  ptl_process_t peer;
  int me;
  bool events;
};

void await(Side& side, ptl_size_t count) {
  if (side.events) {
    ptl_event_t event;
    while (PtlEQGet(side.eq, &event) != PTL_OK) {
    }
    if (event.type != PTL_EVENT_PUT) check(PTL_FAIL, "unexpected event");
    return;
  }
  ptl_ct_event_t value;
  do {
    check(PtlCTGet(side.ct, &value), "PtlCTGet");
  } while (value.success < count);
}

double pingpong(Side& side, ptl_size_t bytes, ptl_size_t* count) {
  const double start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    if (side.me == 1) await(side, ++*count);
    check(PtlPut(side.md, 0, bytes, PTL_NO_ACK_REQ, side.peer, kIndex, 7, 0, nullptr, 0), "PtlPut");
    if (side.me == 0) await(side, ++*count);
  }
  return (now_ns() - start) / (2.0 * kRounds);
}

void run(Shared& shared, int me, unsigned int matching, bool events) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(me, &one);
  sched_setaffinity(0, sizeof one, &one);
  Side side{};
  side.me = me;
  side.events = events;
  static char buffer[65536];
  check(PtlInit(), "PtlInit");
  check(PtlNIInit(PTL_IFACE_DEFAULT, matching | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &side.ni), "PtlNIInit");
  check(PtlGetPhysId(side.ni, &shared.ids[me]), "PtlGetPhysId");
  check(PtlEQAlloc(side.ni, 128, &side.eq), "PtlEQAlloc");
  check(PtlCTAlloc(side.ni, &side.ct), "PtlCTAlloc");
  ptl_pt_index_t index = 0;
  check(PtlPTAlloc(side.ni, 0, events ? side.eq : PTL_EQ_NONE, kIndex, &index), "PtlPTAlloc");
  const unsigned int options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | (events ? 0u : PTL_ME_EVENT_CT_COMM);
  ptl_handle_any_t entry = 0;
  if (matching == PTL_NI_MATCHING) {
    ptl_me_t me_arg{};
    me_arg = {buffer, sizeof buffer, side.ct, PTL_UID_ANY, options, {}, 7, 0, 0};
    me_arg.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    check(PtlMEAppend(side.ni, index, &me_arg, PTL_PRIORITY_LIST, nullptr, &entry), "PtlMEAppend");
  } else {
    ptl_le_t le{buffer, sizeof buffer, side.ct, PTL_UID_ANY, options};
    check(PtlLEAppend(side.ni, index, &le, PTL_PRIORITY_LIST, nullptr, &entry), "PtlLEAppend");
  }
  static char source[65536];
  ptl_md_t md{source, sizeof source, 0, PTL_EQ_NONE, PTL_CT_NONE};
  check(PtlMDBind(side.ni, &md, &side.md), "PtlMDBind");
  int round = 0;
  barrier(shared, ++round);
  side.peer = shared.ids[1 - me];
  ptl_size_t count = 0;
  for (const ptl_size_t bytes : {0, 8, 64, 1024, 8192, 65536}) {
    std::vector<std::pair<double, double>> ratios;
    for (int series = 0; series < kSeries; ++series) {
      barrier(shared, ++round);
      const double before = bounce(shared, me);
      const double ours = pingpong(side, bytes, &count);
      barrier(shared, ++round);
      const double after = bounce(shared, me);
      if (std::max(before, after) < 1.5 * std::min(before, after)) ratios.push_back({ours, (before + after) / 2});
    }
    if (me != 0) continue;
    std::sort(ratios.begin(), ratios.end());
    if (ratios.empty()) {
      std::printf("  %6lu B  not shown: the cores moved apart during every series\n", bytes);
      continue;
    }
    const auto [ours, line] = ratios[ratios.size() / 2];
    std::printf("  %6lu B  %8.1f ns   bouncing line %6.1f ns   ratio %5.2f\n", bytes, ours, line, ours / line);
  }
  barrier(shared, ++round);
  PtlNIFini(side.ni);
  PtlFini();
}

}  // namespace

int main() {
  for (const bool events : {false, true}) {
    for (const unsigned int matching : {PTL_NI_NO_MATCHING, PTL_NI_MATCHING}) {
      std::printf("put, %s, %s\n", matching == PTL_NI_MATCHING ? "matching" : "non-matching",
                  events ? "full events" : "counting events");
      std::fflush(stdout);
      void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      auto* shared = new (memory) Shared;
      for (int me = 0; me < 2; ++me) {
        if (fork() == 0) {
          run(*shared, me, matching, events);
          std::fflush(stdout);
          std::_Exit(0);
        }
      }
      int status = 0;
      while (wait(&status) > 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
      }
      munmap(memory, sizeof(Shared));
    }
  }
  return 0;
}
