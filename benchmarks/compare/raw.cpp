// What the machine itself does, with nothing of ours: the limits that stand beside the other series.
//
//   line       only the bouncing cache line, for programs that cannot measure it themselves
//   latency    half round trips of the bouncing line, and of a payload copied through one fixed place a direction
//   bandwidth  one memcpy into shared memory; two copies, pipelined by both cores through a small ring; copies by the
//              kernel
//   atomic     fetch-add on a line of this process, and on one that the other process adds to as well
//   kernel     process_vm_writev of 8 bytes

#include <sys/uio.h>

#include "world.h"

using namespace bench;

namespace {

constexpr std::size_t kMostBytes = 64 << 20;

/// A ring for the pipelined copies. Which one is better depends on what the two cores share.
struct Ring {
  const char* name;
  std::size_t chunk, slots;
};
constexpr Ring kRings[] = {{"two copies pipelined, ring of 8 KiB", 2048, 4},
                           {"two copies pipelined, ring of 1 MiB", 32768, 32}};

/// Shared memory of the two processes beside what they meet in.
struct Place {
  struct Direction {
    alignas(4096) std::atomic<std::uint64_t> word{0};  ///< Number of the last payload.
    char short_payload[4096 - 8];                      ///< Begins in the line of the word.
    char payload[kMostBytes];                          ///< The place of longer ones; of rank 0 also the ring.

    char* place_of(std::size_t bytes) { return bytes <= sizeof short_payload ? short_payload : payload; }
  } directions[2];                                    ///< By writer.
  alignas(128) std::atomic<std::uint64_t> filled{0};  ///< Slots of the ring, which is the payload of rank 0.
  alignas(128) std::atomic<std::uint64_t> emptied{0};
  alignas(128) std::atomic<std::uint64_t> counter{0};
};

Place* place = nullptr;

void await(const std::atomic<std::uint64_t>& word, std::uint64_t least) {
  for (long tries = 0; word.load(std::memory_order_acquire) < least; ++tries) {
    if (tries > 100000) sched_yield();
  }
}

void run_latency(World& w) {
  Buffer source(w.options, 4 << 20), sink(w.options, 4 << 20);
  w.labelled("bouncing line", 8, "us", [&] { return w.line_ns() / 1e3; });
  std::uint64_t number = 0;
  for (const double bytes : w.options.points_or(kLatencyBytes)) {
    const auto n = static_cast<std::size_t>(bytes);
    const auto send = [&] {
      std::memcpy(place->directions[w.rank].place_of(n), source.data, n);
      place->directions[w.rank].word.store(number, std::memory_order_release);
    };
    w.point("copy in and out", bytes, "us", half_us(), [&](long count) {
      for (long i = 0; i < count; ++i) {
        ++number;
        if (w.rank == 0) send();
        await(place->directions[1 - w.rank].word, number);
        std::memcpy(sink.data, place->directions[1 - w.rank].place_of(n), n);
        if (w.rank == 1) send();
      }
    });
  }
}

/// Rank 0 copies into the ring and rank 1 out of it. @param filled  slots so far @return slots after it
std::uint64_t copy_twice(const World& w, const Ring& ring, std::uint64_t filled, const char* from, char* to,
                         std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += ring.chunk, ++filled) {
    const std::size_t part = std::min(ring.chunk, bytes - at);
    char* slot = place->directions[0].payload + filled % ring.slots * ring.chunk;
    if (w.rank == 0) {
      if (filled >= ring.slots) await(place->emptied, filled + 1 - ring.slots);
      std::memcpy(slot, from + at, part);
      place->filled.store(filled + 1, std::memory_order_release);
    } else {
      await(place->filled, filled + 1);
      std::memcpy(to + at, slot, part);
      place->emptied.store(filled + 1, std::memory_order_release);
    }
  }
  return filled;
}

/// One window of messages, told once.
void run_bandwidth(World& w) {
  Buffer source(w.options, kMostBytes), sink(w.options, kMostBytes);
  struct Card {
    pid_t pid;
    char* sink;
  };
  const Card peer = w.share(Card{getpid(), sink.data})[static_cast<std::size_t>(1 - w.rank)];
  std::uint64_t told = 0, filled = 0;
  for (const double bytes : w.options.points_or(kBandwidthBytes)) {
    const auto n = static_cast<std::size_t>(bytes);
    const int window = window_of(bytes);
    const auto stream = [&](const char* what, auto&& copy) {
      w.point(what, bytes, "GB/s", bandwidth(bytes * window), [&](long count) {
        for (long round = 0; round < count; ++round) {
          ++told;
          if (w.rank == 0) {
            for (int i = 0; i < window; ++i) copy();
            place->directions[0].word.store(told, std::memory_order_release);
            await(place->directions[1].word, told);
          } else {
            await(place->directions[0].word, told);
            place->directions[1].word.store(told, std::memory_order_release);
          }
        }
      });
    };
    stream("one memcpy", [&] { std::memcpy(place->directions[0].payload, source.data, n); });
    const auto kernel = [&](auto call) {
      iovec here{source.data, n}, there{peer.sink, n};
      if (call(peer.pid, &here, 1ul, &there, 1ul, 0ul) != static_cast<ssize_t>(n)) fail("the kernel refuses to copy");
    };
    stream("process_vm_writev", [&] { kernel(process_vm_writev); });
    stream("process_vm_readv", [&] { kernel(process_vm_readv); });
    for (const Ring& ring : kRings) {
      w.point(ring.name, bytes, "GB/s", bandwidth(bytes * window), [&](long count) {
        for (long i = 0; i < count * window; ++i) filled = copy_twice(w, ring, filled, source.data, sink.data, n);
        await(place->emptied, filled);
      });
    }
  }
}

void run_atomic(World& w) {
  std::atomic<std::uint64_t>& counter = place->counter;
  std::uint64_t sum = 0;  // Of old values, so that they have to be fetched.
  const auto add = [&](long count) {
    for (long i = 0; i < count; ++i) sum += counter.fetch_add(1);
  };
  w.point("fetch-add alone", 8, "us", us(), [&](long count) {
    if (w.rank == 0) add(count);
  });
  w.point("fetch-add contended", 8, "us", us(), add);
  if (sum == 0) fail("nothing was fetched");
}

void run_kernel(World& w) {
  Buffer memory(w.options, 64);
  struct Card {
    pid_t pid;
    char* memory;
  };
  const Card peer = w.share(Card{getpid(), memory.data})[1];
  w.point("process_vm_writev", 8, "us", us(), [&](long count) {
    if (w.rank == 1) return;
    iovec here{memory.data, 8}, there{peer.memory, 8};
    for (long i = 0; i < count; ++i) {
      if (process_vm_writev(peer.pid, &here, 1, &there, 1, 0) != 8) fail("the kernel refuses to copy");
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  void* memory = mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no shared memory");
  place = new (memory) Place;  // Its pages are not touched yet.
  return run_processes(options, 2, [&](World& w) {
    const std::string& group = options.group;
    if (group == "line") return w.labelled("bouncing line", 8, "us", [&] { return w.line_ns() / 1e3; });
    if (group == "latency") return run_latency(w);
    if (group == "bandwidth") return run_bandwidth(w);
    if (group == "atomic") return run_atomic(w);
    if (group == "kernel") return run_kernel(w);
    fail("raw cannot measure " + group, kNotApplicable);
  });
}
