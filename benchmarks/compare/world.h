// What the programs of the comparison share: processes that meet in shared memory, the bouncing cache line that is
// measured before and after every series, batches and their median, and one line of JSON per result.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

namespace bench {

inline constexpr int kMostProcesses = 64;
inline constexpr double kNearNs = 100;       ///< Half round trips of the bouncing line below it are called near.
inline constexpr double kDisagreement = 1.5; ///< A result is dropped when the line before and after differ by more.
inline constexpr int kAttempts = 3;          ///< So often a dropped result is measured again.
inline constexpr int kBatches = 11;          ///< A result is the median of at most so many batches.
inline constexpr int kNotApplicable = 77;    ///< Exit status of a program that cannot measure what was asked for.

[[noreturn]] inline void fail(const std::string& why, int status = 1) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(nullptr);
  std::_Exit(status);
}

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Options {
  std::string group;               ///< What is measured.
  std::vector<double> points;      ///< Where: bytes, windows, depths or processes; empty takes the program's own.
  double budget_s = 0.03;          ///< Measuring time of one point.
  int processes = 2;
  std::string memory = "malloc";   ///< Where buffers lie; see Buffer.
  unsigned limit_s = 60;           ///< The program ends with an error after it.
  std::vector<int> cpus;           ///< For rank 0 and rank 1; by default the first two that the process may use.

  Options(int argc, char** argv) {
    CLI::App app("one program of ./run bench; prints a line of JSON per result");
    double budget_ms = budget_s * 1e3;
    app.add_option("group", group, "what to measure")->required();
    app.add_option("--points", points, "bytes, windows, depths or processes, with commas")->delimiter(',');
    app.add_option("--ms", budget_ms, "measuring time of a point");
    app.add_option("--processes", processes)->check(CLI::Range(1, kMostProcesses));
    app.add_option("--memory", memory, "memory of the buffers")->check(CLI::IsMember({"malloc", "shared"}));
    app.add_option("--limit", limit_s, "seconds after which the program gives up");
    app.add_option("--cpus", cpus, "for rank 0 and rank 1")->delimiter(',')->expected(2);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::exit(app.exit(error));
    }
    budget_s = budget_ms / 1e3;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpus.size() < 2 && cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    }
  }

  std::vector<double> points_or(std::vector<double> own) const { return points.empty() ? own : points; }
};

/// What the processes of a job share.
struct Shared {
  alignas(128) std::atomic<std::uint64_t> ball{0};  ///< The bouncing line; even: rank 0's turn.
  alignas(128) std::atomic<int> arrived{0};         ///< Arrivals at meetings, all together.
  alignas(128) std::atomic<int> released{0};        ///< Ends of what ranks serve in World::serve().
  alignas(128) std::atomic<long> decision{0};       ///< What rank 0 has decided, for the others after a meeting.
  alignas(128) std::byte cards[kMostProcesses][64];  ///< Addresses, by rank.
  double numbers[kMostProcesses];                    ///< Measured by each rank.
};

/// Memory of a buffer, touched. "malloc": ordinary memory. "shared": memory that both sides map.
class Buffer {
 public:
  Buffer(const Options& options, std::size_t bytes) : size(bytes) {
    // The one place that a benchmark takes memory from. An allocator of memory that both sides map comes here.
    if (options.memory == "shared") fail("there is no allocator of memory that both sides map yet", kNotApplicable);
    data = static_cast<char*>(std::malloc(bytes));
    if (data == nullptr) fail("out of memory");
    std::memset(data, 0, bytes);
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* data;
  std::size_t size;
};

class World {
 public:
  World(Shared& shared, const Options& its_options, int its_rank, int its_size)
      : options(its_options), rank(its_rank), size(its_size), shared_(shared) {
    alarm(options.limit_s);
  }

  /// On a core of its own, if this is a pair.
  void pin() const {
    if (size != 2 || options.cpus.size() < 2) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(options.cpus[static_cast<std::size_t>(rank)], &one);
    sched_setaffinity(0, sizeof one, &one);
  }

  /// Nobody goes on before all have come.
  void meet() {
    const int awaited = ++meetings_ * size;
    shared_.arrived.fetch_add(1);
    for (long tries = 0; shared_.arrived.load() < awaited; ++tries) {
      if (size > 2 && tries > 100) usleep(100);
      if (tries > 1000) sched_yield();
    }
  }

  /// Every rank gives a card. @return those of all, by rank
  template <class Card>
  std::vector<Card> share(const Card& mine) {
    static_assert(sizeof(Card) <= 64);
    meet();
    std::memcpy(shared_.cards[rank], &mine, sizeof mine);
    meet();
    std::vector<Card> all(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) std::memcpy(&all[static_cast<std::size_t>(i)], shared_.cards[i], sizeof(Card));
    return all;
  }

  /// Half round trip of one cache line that both processes write in turn, without outliers.
  double line_ns() {
    constexpr int kRoundTrips = 200, kLineBatches = 15;
    std::vector<double> times;
    meet();
    for (int batch = 0; batch < kLineBatches; ++batch) {
      const double start = now_s();
      for (int i = 0; i < kRoundTrips; ++i, balls_ += 2) {
        if (rank == 0) shared_.ball.store(balls_ + 1, std::memory_order_release);
        const std::uint64_t awaited = rank == 0 ? balls_ + 2 : balls_ + 1;
        for (long tries = 0; shared_.ball.load(std::memory_order_acquire) != awaited; ++tries) {
          if (tries > 10000) sched_yield();
        }
        if (rank == 1) shared_.ball.store(balls_ + 2, std::memory_order_release);
      }
      times.push_back((now_s() - start) * 1e9 / (2 * kRoundTrips));
    }
    meet();
    return median(times);
  }

  /// Prints a result that stands for itself; `label` is "near", "far", "dropped" or "any".
  void print(const std::string& what, double x, double value, const char* unit, const char* label = "any",
             double before_ns = 0, double after_ns = 0) const {
    if (rank != 0) return;
    std::printf("{\"what\":\"%s\",\"memory\":\"%s\",\"x\":%.10g,\"value\":%.6g,\"unit\":\"%s\",\"label\":\"%s\","
                "\"line_ns\":[%.1f,%.1f]}\n",
                what.c_str(), options.memory.c_str(), x, value, unit, label, before_ns, after_ns);
    std::fflush(stdout);
  }

  /// Measures `value()` between two measurements of the bouncing line, and prints it. Every rank calls it; what rank 0
  /// returns counts. When the cores moved apart or together meanwhile, it is printed as dropped and measured again.
  template <class Value>
  void labelled(const std::string& what, double x, const char* unit, Value&& value) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double before = size == 2 ? line_ns() : 0;
      const double result = value();
      const double after = size == 2 ? line_ns() : 0;
      const bool agree = std::max(before, after) <= kDisagreement * std::min(before, after) &&
                         (before < kNearNs) == (after < kNearNs);
      print(what, x, result, unit, size != 2 ? "any" : !agree ? "dropped" : before < kNearNs ? "near" : "far", before,
            after);
      if (decide(agree)) return;
    }
  }

  /// Times `step(count)`, which every rank runs, and prints convert(seconds of one).
  template <class Convert, class Step>
  void point(const std::string& what, double x, const char* unit, Convert&& convert, Step&& step) {
    labelled(what, x, unit, [&] { return convert(seconds_of_one(step)); });
  }

  /// Rank 0 decides, everybody learns it.
  long decide(long decision) {
    meet();
    if (rank == 0) shared_.decision.store(decision);
    meet();
    return shared_.decision.load();
  }

  /// Rank 0 runs `work`; the others call `poll` until it is done.
  template <class Work, class Poll>
  void serve(Work&& work, Poll&& poll) {
    const int awaited = ++served_;
    if (rank == 0) {
      work();
      shared_.released.store(awaited);
    }
    while (shared_.released.load(std::memory_order_acquire) < awaited) poll();
  }

  /// How much of a transfer to rank 1 proceeds while rank 1 computes twice as long as the transfer takes, in per cent.
  /// `send` does all of rank 0; rank 1 calls `post`, computes, and calls `wait`.
  void overlap(const std::string& what, double bytes, const std::function<void()>& send,
               const std::function<void()>& post, const std::function<void()>& wait) {
    const auto run = [&](double compute_s) {
      std::vector<double> times;
      for (int i = 0; i < 15; ++i) {
        if (rank == 1) post();
        meet();
        const double start = now_s();
        if (rank == 0) send();
        if (rank == 1) {
          while (now_s() - start < compute_s) {
          }
          wait();
        }
        times.push_back(now_s() - start);
      }
      shared_.numbers[rank] = median(times);
      meet();
      return shared_.numbers[1];
    };
    labelled(what, bytes, "%", [&] {
      run(0);
      const double transfer = run(0), both = run(2 * transfer);
      return 100 * std::clamp((3 * transfer - both) / transfer, 0.0, 1.0);
    });
  }

  /// CPU time of ranks 1.. that wait inside `wait`, the most of any, scaled to ten seconds; rank 0 sleeps, then calls
  /// `release(rank)` for each.
  void idle(const std::string& what, double seconds, const std::function<void()>& wait,
            const std::function<void(int)>& release) {
    meet();
    timespec before{}, after{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    if (rank != 0) wait();
    if (rank == 0) {
      usleep(static_cast<useconds_t>(seconds * 1e6));
      for (int other = 1; other < size; ++other) release(other);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    shared_.numbers[rank] =
        static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 + static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e6;
    meet();
    print(what, size - 1, *std::max_element(shared_.numbers + 1, shared_.numbers + size) * 10 / seconds, "ms");
  }

  const Options& options;
  const int rank;
  const int size;

 private:
  /// The median of batches, each long enough for the clock and together within the budget.
  template <class Step>
  double seconds_of_one(Step& step) {
    long count = 1;
    double seconds = timed(step, count);
    while (const long more = decide(seconds < options.budget_s / kBatches / 2 && count < (1l << 26)
                                        ? std::clamp(static_cast<long>(options.budget_s / kBatches /
                                                                       std::max(seconds, 1e-9) * count),
                                                     2 * count, 50 * count)
                                        : 0)) {
      count = more;
      seconds = timed(step, count);
    }
    std::vector<double> times;
    const double end = now_s() + options.budget_s;
    do {
      times.push_back(timed(step, count) / static_cast<double>(count));
    } while (decide(now_s() < end && times.size() < kBatches));
    return median(times);
  }

  template <class Step>
  double timed(Step& step, long count) {
    meet();
    const double start = now_s();
    step(count);
    return now_s() - start;
  }

  Shared& shared_;
  int meetings_ = 0;
  int served_ = 0;
  std::uint64_t balls_ = 0;
};

/// Runs `body` in so many new processes that share a Shared. @return the exit status of the program
inline int run_processes(const Options& options, int size, const std::function<void(World&)>& body,
                         const std::function<void(const std::vector<pid_t>&, Shared&)>& meanwhile = {}) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no shared memory");
  auto* shared = new (memory) Shared;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      World world(*shared, options, rank, size);
      world.pin();
      body(world);
      std::fflush(stdout);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  if (meanwhile) meanwhile(children, *shared);
  int worst = 0;
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    wait(&status);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0 || worst != 0) continue;
    worst = code;
    for (const pid_t child : children) kill(child, SIGKILL);
  }
  if (worst == 128 + SIGALRM) std::fprintf(stderr, "out of time after %u s\n", options.limit_s);
  munmap(memory, sizeof(Shared));
  return worst;
}

// Conversions from the seconds of one step.
inline auto half_us() {
  return [](double s) { return s * 1e6 / 2; };
}
inline auto us() {
  return [](double s) { return s * 1e6; };
}
inline auto rate(double messages) {
  return [messages](double s) { return messages / s / 1e6; };
}
inline auto bandwidth(double bytes) {
  return [bytes](double s) { return bytes / s / 1e9; };
}

// What is measured, unless somebody asks for other points.
inline const std::vector<double> kLatencyBytes = {0, 8, 64, 1024, 8192, 65536, 1 << 20, 4 << 20};
inline const std::vector<double> kWindows = {1, 4, 16, 64, 256};
inline const std::vector<double> kBandwidthBytes = {4096,    16384,   65536,    262144,
                                                    1 << 20, 4 << 20, 16 << 20, 64 << 20};
inline const std::vector<double> kDepths = {1, 10, 100, 1000, 10000};

/// Messages of a window of long ones.
inline int window_of(double bytes) { return static_cast<int>(std::clamp(16e6 / bytes, 2.0, 64.0)); }

}  // namespace bench
