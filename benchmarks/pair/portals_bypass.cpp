// Application bypass: how long a put, a get and a fetching atomic take whose target computes and never calls. The
// target burns its core without a system call; the initiator issues an operation, waits for its acknowledgement or
// reply, and sleeps for a random time, so that the target's engine is found asleep as well as awake. Once with a core
// for each process, once with both on one core, where the operating system's scheduler is part of the answer.
//
// usage: pair_portals_bypass [SECONDS]     how long the target computes in each part; 5 without it

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
#include <random>
#include <vector>

namespace {

constexpr ptl_pt_index_t kIndex = 4;

struct Shared {
  std::atomic<int> target_computes{0};
  std::atomic<int> initiator_is_done{0};
  ptl_process_t target;
};

void check(int rc, const char* what) {
  if (rc == PTL_OK) return;
  std::fprintf(stderr, "%s: return code %d\n", what, rc);
  std::_Exit(1);
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void use_cpu(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

ptl_handle_ni_t open_interface() {
  ptl_handle_ni_t ni = 0;
  check(PtlInit(), "PtlInit");
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni),
        "PtlNIInit");
  return ni;
}

void run_target(Shared& shared, double seconds) {
  alignas(64) static char memory[65536];
  const ptl_handle_ni_t ni = open_interface();
  ptl_pt_index_t index = 0;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, kIndex, &index), "PtlPTAlloc");
  ptl_le_t le{memory, sizeof memory, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_OP_GET};
  ptl_handle_le_t entry = 0;
  check(PtlLEAppend(ni, index, &le, PTL_PRIORITY_LIST, nullptr, &entry), "PtlLEAppend");
  check(PtlGetPhysId(ni, &shared.target), "PtlGetPhysId");
  const double end = now_us() + seconds * 1e6;
  shared.target_computes.store(1);
  volatile double work = 1;
  while (now_us() < end) {
    for (int i = 0; i < 1000; ++i) work = work * 1.0000001;
  }
  shared.target_computes.store(2);
  while (shared.initiator_is_done.load() == 0) usleep(1000);
  PtlNIFini(ni);
  PtlFini();
}

struct Operation {
  const char* name;
  std::vector<double> latencies_us;
};

void issue(int kind, ptl_handle_md_t md, ptl_process_t target) {
  if (kind == 0) check(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, target, kIndex, 0, 0, nullptr, 0), "PtlPut");
  if (kind == 1) check(PtlGet(md, 0, 8, target, kIndex, 0, 0, nullptr), "PtlGet");
  if (kind == 2)
    check(PtlFetchAtomic(md, 8, md, 16, 8, target, kIndex, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T), "PtlFetchAtomic");
}

void print_latencies(Operation& operation) {
  std::vector<double>& all = operation.latencies_us;
  if (all.empty()) return;
  std::sort(all.begin(), all.end());
  std::size_t late = 0;
  for (const double one : all) late += one > 1000 ? 1 : 0;
  std::printf("  %-16s %6zu times: median %7.1f us, 99 %% %7.1f us, longest %7.1f us, %zu over 1 ms\n", operation.name,
              all.size(), all[all.size() / 2], all[all.size() * 99 / 100], all.back(), late);
}

void run_initiator(Shared& shared) {
  alignas(64) static char memory[64];
  const ptl_handle_ni_t ni = open_interface();
  ptl_handle_ct_t ct = 0;
  check(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
  ptl_md_t description{memory, sizeof memory, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, ct};
  ptl_handle_md_t md = 0;
  check(PtlMDBind(ni, &description, &md), "PtlMDBind");
  while (shared.target_computes.load() == 0) usleep(100);
  std::minstd_rand random(1);
  std::uniform_int_distribution<unsigned> pause_us(0, 2000);
  Operation operations[] = {{"put with ack", {}}, {"get", {}}, {"fetching atomic", {}}};
  ptl_size_t count = 0;
  for (int i = 0; shared.target_computes.load() == 1; ++i) {
    const double start = now_us();
    issue(i % 3, md, shared.target);
    ptl_ct_event_t event;
    check(PtlCTWait(ct, ++count, &event), "PtlCTWait");
    const double latency = now_us() - start;
    if (i == 0) {
      std::printf("  first contact: %.1f us\n", latency);
    } else if (shared.target_computes.load() == 1) {
      operations[i % 3].latencies_us.push_back(latency);
    }
    usleep(pause_us(random));
  }
  for (Operation& operation : operations) print_latencies(operation);
  shared.initiator_is_done.store(1);
  PtlNIFini(ni);
  PtlFini();
}

}  // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 5;
  for (const bool same_core : {false, true}) {
    std::printf("target computes for %.0f s on %s\n", seconds, same_core ? "the initiator's core" : "its own core");
    std::fflush(stdout);
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* shared = new (memory) Shared;
    for (int me = 0; me < 2; ++me) {
      if (fork() != 0) continue;
      use_cpu(same_core ? 0 : me);
      if (me == 0) {
        run_initiator(*shared);
      } else {
        run_target(*shared, seconds);
      }
      std::fflush(stdout);
      std::_Exit(0);
    }
    int status = 0;
    while (wait(&status) > 0) {
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
    }
    munmap(memory, sizeof(Shared));
  }
  return 0;
}
