// What the programs of the comparison share: processes that meet in shared memory, the bouncing cache line that is
// measured before and after every series, batches and their median, and one line of JSON per result.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <random>

#include "options.h"

namespace bench {

inline constexpr double kNearNs = 100;        ///< Half round trips of the bouncing line below it are called near.
inline constexpr double kDisagreement = 1.5;  ///< A result is dropped when the line before and after differ by more.
inline constexpr int kAttempts = 3;           ///< So often a dropped result is measured again.
inline constexpr int kBatches = 11;           ///< A result is the median of at most so many batches.
inline constexpr int kLeastSteps = 16;        ///< In a batch of more than two processes whose median is taken.

/// What the processes of a job share.
struct Shared {
  alignas(128) std::atomic<std::uint64_t> ball{0};   ///< The bouncing line; even: rank 0's turn.
  alignas(128) std::atomic<int> arrived{0};          ///< Arrivals at meetings, all together.
  alignas(128) std::atomic<int> released{0};         ///< Ends of what ranks serve in World::serve().
  alignas(128) std::atomic<long> decision{0};        ///< What rank 0 has decided, for the others after a meeting.
  alignas(128) std::byte cards[kMostProcesses][64];  ///< Addresses, by rank.
  double numbers[kMostProcesses];                    ///< Measured by each rank.
};

class World {
 public:
  /// @param labelled  whether the results of a pair say near or far
  World(Shared& shared, const Options& its_options, int its_rank, int its_size, bool labelled = true)
      : options(its_options), rank(its_rank), size(its_size), shared_(shared), labelled_(labelled) {
    alarm(options.limit_s);
  }

  /// On a core of its own, if this is a pair.
  void pin() const {
    if (is_pair() && options.cpus.size() == 2) use_cpu(options.cpus[static_cast<std::size_t>(rank)]);
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
    const int round_trips = options.is_test() ? 10 : 200, line_batches = options.is_test() ? 1 : 15;
    std::vector<double> times;
    meet();
    for (int batch = 0; batch < line_batches; ++batch) {
      const double start = now_s();
      for (int i = 0; i < round_trips; ++i, balls_ += 2) {
        if (rank == 0) shared_.ball.store(balls_ + 1, std::memory_order_release);
        const std::uint64_t awaited = rank == 0 ? balls_ + 2 : balls_ + 1;
        for (long tries = 0; shared_.ball.load(std::memory_order_acquire) != awaited; ++tries) {
          if (tries > 10000) sched_yield();
        }
        if (rank == 1) shared_.ball.store(balls_ + 2, std::memory_order_release);
      }
      times.push_back((now_s() - start) * 1e9 / (2 * round_trips));
    }
    meet();
    return median(times);
  }

  /// Prints a result that stands for itself; `label` is "near", "far", "dropped" or "any".
  void print(const std::string& what, double x, double value, const char* unit, const char* label = "any",
             double before_ns = 0, double after_ns = 0) const {
    if (rank != 0) return;
    std::printf(
        "{\"what\":\"%s\",\"memory\":\"%s\",\"x\":%.10g,\"value\":%.6g,\"unit\":\"%s\",\"label\":\"%s\","
        "\"line_ns\":[%.1f,%.1f]}\n",
        what.c_str(), options.memory.c_str(), x, value, unit, label, before_ns, after_ns);
    std::fflush(stdout);
  }

  /// Measures `value()` between two measurements of the bouncing line, and prints it. Every rank calls it; what rank 0
  /// returns counts. When the cores moved apart or together meanwhile, it is printed as dropped and measured again.
  template <class Value>
  void labelled(const std::string& what, double x, const char* unit, Value&& value) {
    for (int attempt = 0; attempt < (options.is_test() ? 1 : kAttempts); ++attempt) {
      const double before = is_pair() ? line_ns() : 0;
      const double result = value();
      const double after = is_pair() ? line_ns() : 0;
      const bool agree =
          std::max(before, after) <= kDisagreement * std::min(before, after) && (before < kNearNs) == (after < kNearNs);
      print(what, x, result, unit,
            !is_pair()         ? "any"
            : !agree           ? "dropped"
            : before < kNearNs ? "near"
                               : "far",
            before, after);
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

  /// `count` round trips, begun by rank 0. Rank 1 goes on looking until the last of its messages has arrived: what of
  /// it is still to be sent does not wait for somebody who notices that the process is away.
  template <class Send, class Receive, class Look>
  void round_trips(long count, Send&& send, Receive&& receive, Look&& look) {
    long left = count;
    serve(
        [&] {
          for (; left > 0; --left) send(), receive();
        },
        [&] {
          for (; left > 0; --left) receive(), send();
          look();
        });
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

  /// CPU time of ranks 1.. that wait inside `wait`, the most of any, in ten seconds: looked at for `seconds`, when they
  /// have waited a while. Rank 0 then calls `release(rank)` for each.
  void idle(const std::string& what, double seconds, const std::function<void()>& wait,
            const std::function<void(int)>& release) {
    const std::vector<pid_t> pids = share(getpid());
    const auto used_ms = [](pid_t pid) {
      clockid_t clock{};
      timespec used{};
      if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) fail("no CPU clock of a process");
      return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
    };
    if (rank != 0) return wait();
    usleep(300000);
    std::vector<double> used;
    for (const pid_t pid : pids) used.push_back(-used_ms(pid));
    const double start = now_s();
    usleep(static_cast<useconds_t>(seconds * 1e6));
    for (std::size_t i = 0; i < pids.size(); ++i) used[i] += used_ms(pids[i]);
    const double slept = now_s() - start;  // Longer than wanted, if the others leave no core.
    print(what, size - 1, *std::max_element(used.begin() + 1, used.end()) * 10 / slept, "ms");
    for (int other = 1; other < size; ++other) release(other);
  }

  /// How long `operation` of rank 0, which is answered, takes while rank 1 computes and never calls. Rank 0 sleeps for
  /// a random time before each, so that the target's engine is found asleep as well as awake. First with a core free,
  /// then with a process that keeps each core busy.
  void bypass(const std::string& what, const std::function<void()>& operation) {
    for (const bool busy : {false, true}) {
      serve(
          [&] {
            const std::vector<pid_t> hogs = busy ? keep_cores_busy() : std::vector<pid_t>{};
            std::minstd_rand random(1);
            std::vector<double> latencies;
            operation();
            for (const double end = now_s() + 20 * options.budget_s; now_s() < end && latencies.size() < 500;) {
              usleep(static_cast<useconds_t>(random() % 2000));
              const double start = now_s();
              operation();
              latencies.push_back((now_s() - start) * 1e6);
            }
            for (const pid_t hog : hogs) kill(hog, SIGKILL), waitpid(hog, nullptr, 0);
            std::sort(latencies.begin(), latencies.end());
            const std::string suffix = busy ? ", all cores busy" : ", a core free";
            print(what + suffix + ", median", 8, latencies[latencies.size() / 2], "us");
            print(what + suffix + ", 99 %", 8, latencies[latencies.size() * 99 / 100], "us");
          },
          [] {
            for (const double end = now_s() + 20e-6; now_s() < end;) {
            }
          });
    }
  }

  /// For worlds of the threads of a process.
  Shared& shared() const { return shared_; }

  const Options& options;
  const int rank;
  const int size;

 private:
  /// Two processes, pinned, with their results labelled near or far; the others have more, or no cores of their own.
  bool is_pair() const { return labelled_ && size == 2 && options.group != "barrier" && options.group != "many"; }

  std::vector<pid_t> keep_cores_busy() const {
    std::vector<pid_t> hogs;
    for (const int cpu : options.allowed) {
      const pid_t hog = fork();
      if (hog == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        use_cpu(cpu);
        for (std::atomic<int> spins{0};; spins.fetch_add(1, std::memory_order_relaxed)) {
        }
      }
      hogs.push_back(hog);
    }
    return hogs;
  }

  static void use_cpu(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }

  /// The median of batches, each long enough for the clock and together within the budget; of more than two processes
  /// their mean, if they are of few steps. How many steps that are is found by the better of two tries: the first step
  /// of all may map and touch megabytes.
  template <class Step>
  double seconds_of_one(Step& step) {
    const auto try_twice = [&](long count) {
      const double first = timed(step, count);
      return std::min(first, timed(step, count));
    };
    long count = 1;
    double seconds = try_twice(count);
    while (const long more =
               decide(seconds < options.budget_s / kBatches / 2 && count < (1l << 26)
                          ? std::clamp(static_cast<long>(options.budget_s / kBatches / std::max(seconds, 1e-9) * count),
                                       2 * count, 50 * count)
                          : 0)) {
      count = more;
      seconds = try_twice(count);
    }
    std::vector<double> times;
    const double end = now_s() + options.budget_s;
    do {
      times.push_back(timed(step, count) / static_cast<double>(count));
    } while (decide(now_s() < end && times.size() < kBatches));
    // Where processes wait for a core, single steps are those that did not have to, or those that did.
    return !is_pair() && count < kLeastSteps ? mean(times) : median(times);
  }

  template <class Step>
  double timed(Step& step, long count) {
    meet();
    const double start = now_s();
    step(count);
    return now_s() - start;
  }

  Shared& shared_;
  const bool labelled_;
  int meetings_ = 0;
  int served_ = 0;
  std::uint64_t balls_ = 0;
};

/// Half round trips of two puts, as a paper on UCX and uTofu measured them: the data, and then a flag of 8 bytes, which
/// stands behind the longest data. The other side polls the flag. Both sides go on when their own puts are done.
/// @param what  the name of the series
/// @param side  has buffers `source` and `sink`, and says whether it is `busy()` with puts
/// @param put   puts so many bytes from a place in the source to the same place in the sink of the other, in order
template <class Side, class Put, class Look>
void flagged(World& w, Side& side, const char* what, std::size_t bytes, Put&& put, Look&& look) {
  const auto word = [](Buffer& buffer, std::size_t at) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(buffer.data + at));
  };
  const std::size_t flag_at = side.sink.size - 64, last = bytes - 8;
  word(side.sink, flag_at).store(0);
  std::uint64_t number = 0;
  const auto send = [&] {
    if (w.rank == 0) ++number;
    for (const std::size_t at : {std::size_t{0}, last, flag_at}) {
      word(side.source, at).store(number, std::memory_order_relaxed);
    }
    put(0, bytes);
    put(flag_at, 8);
  };
  const auto receive = [&] {
    if (w.rank == 1) ++number;
    while (word(side.sink, flag_at).load(std::memory_order_acquire) != number || side.busy()) look();
    for (const std::size_t at : {std::size_t{0}, last}) {
      if (word(side.sink, at).load(std::memory_order_relaxed) != number) fail("the flag overtook the data");
    }
  };
  w.point(what, static_cast<double>(bytes), "us", half_us(),
          [&](long count) { w.round_trips(count, send, receive, look); });
}

/// Runs `body` in so many new processes that share a Shared. @return the exit status of the program
inline int run_processes(const Options& options, int size, const std::function<void(World&)>& body) {
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

}  // namespace bench
