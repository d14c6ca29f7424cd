// uTofu into memory that both sides map, between two processes on two cores, beside what the machine allows in the same
// run: a bouncing cache line, measured before and after each series (a series between two that disagree is not shown),
// and memcpy through a shared mapping.

#include <portofu.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <vector>

#include "engine/queue/cpu.h"

namespace {

constexpr int kRounds = 50000;
constexpr int kSeries = 9;
constexpr std::size_t kBytes = std::size_t{96} << 20;
constexpr std::size_t kCopyBytes = std::size_t{16} << 20;

struct Place {
  utofu_vcq_id_t vcq_id;
  utofu_stadd_t stadd;
};

struct Shared {
  alignas(128) std::atomic<int> ball{0};
  alignas(128) std::atomic<int> arrived{0};
  alignas(128) Place places[2];
  alignas(4096) std::byte copy[kCopyBytes];
};

void check(int rc, const char* what) {
  if (rc == UTOFU_SUCCESS) return;
  std::fprintf(stderr, "%s: return code %d\n", what, rc);
  std::_Exit(1);
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Side {
  Shared& shared;
  int me;
  int round = 0;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  std::byte* memory = nullptr;
  Place peer{};
  std::uint64_t word = 0;

  std::atomic_ref<std::uint64_t> own_word() const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(memory + 4096));
  }
};

void barrier(Side& side) {
  ++side.round;
  side.shared.arrived.fetch_add(1);
  while (side.shared.arrived.load() < 2 * side.round) sched_yield();
}

/// @return ns a direction
double bounce(Side& side) {
  std::atomic<int>& ball = side.shared.ball;
  const double start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    while (ball.load(std::memory_order_acquire) != side.me) {
    }
    ball.store(1 - side.me, std::memory_order_release);
  }
  return (now_ns() - start) / (2.0 * kRounds);
}

void await_notice(const Side& side) {
  utofu_mrq_notice notice;
  int rc = UTOFU_ERR_NOT_FOUND;
  while ((rc = utofu_poll_mrq(side.vcq, 0, &notice)) == UTOFU_ERR_NOT_FOUND) {
  }
  check(rc, "utofu_poll_mrq");
}

void await_tcq(const Side& side) {
  void* data = nullptr;
  int rc = UTOFU_ERR_NOT_FOUND;
  while ((rc = utofu_poll_tcq(side.vcq, 0, &data)) == UTOFU_ERR_NOT_FOUND) {
  }
  check(rc, "utofu_poll_tcq");
}

/// Sends a growing number to and fro; `send` puts it into the peer's word. @return ns a direction
template <class Send>
double pingpong(Side& side, Send&& send) {
  const double start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    const std::uint64_t next = side.word + 1;
    if (side.me == 0) send(next);
    while (side.own_word().load(std::memory_order_acquire) != next) portofu::pause_cpu();
    if (side.me == 1) send(next);
    side.word = next;
  }
  return (now_ns() - start) / (2.0 * kRounds);
}

/// Only one side works, the other one waits at the barrier. @return ns a call
template <class Call>
double repeat(Side& side, int times, Call&& call) {
  double took = 0;
  if (side.me == 0) {
    const double start = now_ns();
    for (int i = 0; i < times; ++i) call();
    took = (now_ns() - start) / times;
  }
  barrier(side);
  return took;
}

struct Sample {
  double value;
  double line;
};

/// Measures a series between two bounces each. @return those during which the cores kept their distance, by value
std::vector<Sample> measure(Side& side, const std::function<double()>& series) {
  std::vector<Sample> samples;
  for (int i = 0; i < kSeries; ++i) {
    barrier(side);
    const double before = bounce(side);
    const double value = series();
    barrier(side);
    const double after = bounce(side);
    if (std::max(before, after) < 1.5 * std::min(before, after)) samples.push_back({value, (before + after) / 2});
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.value < b.value; });
  return samples;
}

/// @param per  how many times the direction of the line the value is compared with
void show(Side& side, const char* what, double per, const std::function<double()>& series) {
  const std::vector<Sample> samples = measure(side, series);
  if (side.me != 0) return;
  if (samples.empty()) {
    std::printf("%-34s not shown: the cores moved apart during every series\n", what);
    return;
  }
  const Sample& middle = samples[samples.size() / 2];
  std::printf("%-34s %8.1f ns   line %6.1f ns   ratio %5.2f   (%.1f M/s, %zu series)\n", what, middle.value,
              middle.line, middle.value / (per * middle.line), 1000 / middle.value, samples.size());
  std::fflush(stdout);
}

void show_latencies(Side& side) {
  const utofu_stadd_t to = side.peer.stadd + 4096;
  auto* const source = reinterpret_cast<std::uint64_t*>(side.memory);
  show(side, "put 8 B, memory polled", 1, [&] {
    return pingpong(side, [&](std::uint64_t value) {
      *source = value;
      check(utofu_put(side.vcq, side.peer.vcq_id, side.stadd, to, 8, 0, 0, nullptr), "utofu_put");
    });
  });
  show(side, "piggyback 8 B, memory polled", 1, [&] {
    return pingpong(side, [&](std::uint64_t value) {
      check(utofu_put_piggyback8(side.vcq, side.peer.vcq_id, value, to, 8, 0, 0, nullptr), "utofu_put_piggyback8");
    });
  });
}

void show_rates(Side& side) {
  constexpr int kPuts = 1000000;
  const utofu_stadd_t to = side.peer.stadd + 8192;
  show(side, "put 8 B, rate", 1, [&] {
    return repeat(side, kPuts,
                  [&] { check(utofu_put(side.vcq, side.peer.vcq_id, side.stadd, to, 8, 0, 0, nullptr), "utofu_put"); });
  });
  show(side, "put 8 B and its TCQ notice, rate", 1, [&] {
    return repeat(side, kPuts, [&] {
      check(utofu_put(side.vcq, side.peer.vcq_id, side.stadd, to, 8, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr),
            "put");
      await_tcq(side);
    });
  });
  show(side, "piggyback 8 B, rate", 1, [&] {
    return repeat(side, kPuts, [&] {
      check(utofu_put_piggyback8(side.vcq, side.peer.vcq_id, 7, to, 8, 0, 0, nullptr), "utofu_put_piggyback8");
    });
  });
  show(side, "fetch-add 8 B (of a round trip)", 2, [&] {
    return repeat(side, kPuts, [&] {
      check(utofu_armw8(side.vcq, side.peer.vcq_id, UTOFU_ARMW_OP_ADD, 1, to, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE,
                        nullptr),
            "utofu_armw8");
      await_notice(side);
    });
  });
  show(side, "get 8 B (of a round trip)", 2, [&] {
    return repeat(side, kPuts, [&] {
      check(utofu_get(side.vcq, side.peer.vcq_id, side.stadd, to, 8, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
            "utofu_get");
      await_notice(side);
    });
  });
}

/// memcpy and put in turns, so that both meet the same distance of the cores.
void show_bandwidth(Side& side, std::size_t bytes) {
  const int times = static_cast<int>(std::max<std::size_t>(4, (std::size_t{256} << 20) / bytes));
  std::vector<double> copies, puts, gets;
  for (int i = 0; i < kSeries; ++i) {
    copies.push_back(repeat(side, times, [&] {
      std::memcpy(side.shared.copy, side.memory, bytes);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }));
    puts.push_back(repeat(side, times, [&] {
      check(utofu_put(side.vcq, side.peer.vcq_id, side.stadd, side.peer.stadd, bytes, 0, UTOFU_ONESIDED_FLAG_TCQ_NOTICE,
                      nullptr),
            "utofu_put");
      await_tcq(side);
    }));
    gets.push_back(repeat(side, times, [&] {
      check(utofu_get(side.vcq, side.peer.vcq_id, side.stadd, side.peer.stadd, bytes, 0,
                      UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
            "utofu_get");
      await_notice(side);
    }));
  }
  if (side.me != 0) return;
  for (auto* samples : {&copies, &puts, &gets}) std::sort(samples->begin(), samples->end());
  const double size = static_cast<double>(bytes);
  const double copy = size / copies[kSeries / 2], put = size / puts[kSeries / 2], get = size / gets[kSeries / 2];
  std::printf("%9zu B   memcpy %6.1f GB/s   put %6.1f GB/s, ratio %5.2f   get %6.1f GB/s, ratio %5.2f\n", bytes, copy,
              put, put / copy, get, get / copy);
  std::fflush(stdout);
}

void run(Shared& shared, int me) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(me, &one);
  sched_setaffinity(0, sizeof one, &one);
  Side side{shared, me};
  side.memory = static_cast<std::byte*>(portofu_alloc(kBytes, 4096));
  if (side.memory == nullptr) check(-1, "portofu_alloc");
  std::memset(side.memory, 0, kBytes);
  check(utofu_create_vcq(0, 0, &side.vcq), "utofu_create_vcq");
  check(utofu_query_vcq_id(side.vcq, &shared.places[me].vcq_id), "utofu_query_vcq_id");
  check(utofu_reg_mem(side.vcq, side.memory, kBytes, 0, &side.stadd), "utofu_reg_mem");
  shared.places[me].stadd = side.stadd;
  barrier(side);
  side.peer = shared.places[1 - me];
  show_latencies(side);
  show_rates(side);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20, std::size_t{8} << 20})
    show_bandwidth(side, bytes);
  barrier(side);
  check(utofu_free_vcq(side.vcq), "utofu_free_vcq");
}

}  // namespace

int main() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Shared;
  for (int me = 0; me < 2; ++me) {
    if (fork() == 0) {
      run(*shared, me);
      std::exit(0);
    }
  }
  int status = 0;
  while (wait(&status) > 0) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  }
  return 0;
}
