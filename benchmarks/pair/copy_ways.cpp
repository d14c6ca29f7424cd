// What the machine allows for long data: two processes on two cores move bytes from ordinary memory of the one into
// ordinary memory of the other, in every way that a library could. Prints GB/s by size; use the ratios, and only those
// of one run. The bouncing cache line is measured before and after each line: near below 100 ns, far above.
//
//   one     one memcpy into a mapping that both have; nothing is copied out
//   two     two copies at the same time on both cores, through a ring, named by the bytes of a chunk and their number:
//   by
//           memcpy, rep movsb, 32-byte stores, 64-byte stores; streaming stores into the ring, out of it, or both
//   writev  process_vm_writev by the sender;  readv  process_vm_readv by the receiver
//   halves  both at the same time, half the message each; with a number: the kernel is asked for so much at a time
//
// usage: copy_ways [all] [cold] [odd] [core core]
//   all: every kind of copy; cold: memory changes from message to message; odd: it is aligned to 16 bytes only

#include <immintrin.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using Copy = void (*)(std::byte*, const std::byte*, std::size_t);

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::size_t kSizes[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20};
constexpr std::size_t kMostRingBytes = 4 << 20;
constexpr std::size_t kMostChunks = 1024;

/// What both processes map.
struct Shared {
  alignas(128) std::atomic<std::uint64_t> line;      ///< Bounced; even: the sender's turn.
  alignas(128) std::atomic<std::uint64_t> started;   ///< Messages begun. Writer: sender.
  alignas(128) std::atomic<std::uint64_t> finished;  ///< Messages received. Writer: receiver.
  alignas(128) std::atomic<std::uint64_t> released;  ///< Chunks given back. Writer: receiver.
  struct alignas(128) Word {
    std::atomic<std::uint64_t> position;  ///< 1 + position of the chunk that lies there. Writer: sender.
  } words[kMostChunks];
  alignas(4096) std::byte ring[kMostRingBytes];
};

double now_ns() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void copy_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void copy_movsb(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

[[gnu::target("avx2")]] void copy_stores32(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 128) {
    const auto* source = reinterpret_cast<const __m256i*>(from + i);
    auto* target = reinterpret_cast<__m256i*>(to + i);
    const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
    _mm256_storeu_si256(target, a), _mm256_storeu_si256(target + 1, b);
    _mm256_storeu_si256(target + 2, c), _mm256_storeu_si256(target + 3, d);
  }
}

[[gnu::target("avx512f")]] void copy_stores64(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 256) {
    const __m512i a = _mm512_loadu_si512(from + i), b = _mm512_loadu_si512(from + i + 64);
    const __m512i c = _mm512_loadu_si512(from + i + 128), d = _mm512_loadu_si512(from + i + 192);
    _mm512_storeu_si512(to + i, a), _mm512_storeu_si512(to + i + 64, b);
    _mm512_storeu_si512(to + i + 128, c), _mm512_storeu_si512(to + i + 192, d);
  }
}

[[gnu::target("avx2")]] void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(to) % 32 != 0) {
    const std::size_t head = 128 - reinterpret_cast<std::uintptr_t>(to) % 128;
    std::memcpy(to, from, head);
    std::memcpy(to + bytes - 128, from + bytes - 128, 128);
    to += head, from += head, bytes -= 128;
  }
  for (std::size_t i = 0; i < bytes; i += 128) {
    const auto* source = reinterpret_cast<const __m256i*>(from + i);
    auto* target = reinterpret_cast<__m256i*>(to + i);
    const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
    _mm256_stream_si256(target, a), _mm256_stream_si256(target + 1, b);
    _mm256_stream_si256(target + 2, c), _mm256_stream_si256(target + 3, d);
  }
  _mm_sfence();
}

[[gnu::target("avx2")]] void copy_prefetching(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 128) {
    __builtin_prefetch(to + i + 1024, 1);
    __builtin_prefetch(to + i + 1024 + 64, 1);
    __builtin_prefetch(from + i + 1024);
    __builtin_prefetch(from + i + 1024 + 64);
    copy_stores32(to + i, from + i, 128);
  }
}

struct Way {
  std::string name;
  std::function<void(std::byte* source, std::size_t bytes)> send;     ///< Run by the sender.
  std::function<void(std::byte* target, std::size_t bytes)> receive;  ///< Run by the receiver.
};

/// One of the two processes.
class Side {
 public:
  Side(Shared& shared, std::byte* common, bool sends, int core, pid_t peer)
      : shared_(shared), common_(common), sends_(sends), peer_(peer) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    // Made before the fork, so it lies at the same place on both sides; written here, so it is private.
    std::memset(memory_, sends ? 1 : 2, kMostBytes);
  }

  bool sends() const { return sends_; }

  Way one() {
    return {"one memcpy", [this](std::byte* source, std::size_t bytes) { std::memcpy(common_, source, bytes); },
            [](std::byte*, std::size_t) {}};
  }

  Way two(const char* name, Copy in, Copy out, std::size_t chunk, std::size_t count) {
    return {std::string("two ") + name + " " + std::to_string(chunk >> 10) + "K x " + std::to_string(count),
            [this, in, chunk, count](std::byte* source, std::size_t bytes) {
              for (std::size_t at = 0; at < bytes; at += chunk, ++sent_) {
                while (sent_ - shared_.released.load(std::memory_order_acquire) >= count) wait();
                in(shared_.ring + sent_ % count * chunk, source + at, chunk);
                shared_.words[sent_ % count].position.store(sent_ + 1, std::memory_order_release);
              }
            },
            [this, out, chunk, count](std::byte* target, std::size_t bytes) {
              for (std::size_t at = 0; at < bytes; at += chunk, ++received_) {
                while (shared_.words[received_ % count].position.load(std::memory_order_acquire) != received_ + 1)
                  wait();
                out(target + at, shared_.ring + received_ % count * chunk, chunk);
                shared_.released.store(received_ + 1, std::memory_order_release);
              }
            }};
  }

  /// @param receiver_eighths  of the message that the receiver reads; the sender writes the rest
  Way kernel(const char* name, std::size_t receiver_eighths, std::size_t chunk) {
    const auto split = [receiver_eighths](std::size_t bytes) { return bytes / 8 * receiver_eighths; };
    return {
        name + (chunk != 0 ? " " + std::to_string(chunk >> 10) + "K" : std::string()),
        [this, split, chunk](std::byte* source, std::size_t bytes) { call(false, source, split(bytes), bytes, chunk); },
        [this, split, chunk](std::byte* target, std::size_t bytes) { call(true, target, 0, split(bytes), chunk); }};
  }

  double bounce_ns() {
    constexpr int kRounds = 2000;
    const double start = now_ns();
    for (int i = 0; i < kRounds; ++i) bounce();
    return (now_ns() - start) / (2 * kRounds);
  }

  /// @return GB/s, median of several messages
  double measure(const Way& way, std::size_t bytes, bool cold) {
    const int rounds = static_cast<int>(std::clamp<std::size_t>((std::size_t{96} << 20) / bytes, 5, 300));
    std::vector<double> times;
    std::size_t place = 0;
    for (int i = 0; i < rounds; ++i) {
      std::byte* memory = memory_ + place;
      if (cold && place + 2 * bytes <= kMostBytes)
        place += bytes;
      else
        place = 0;
      bounce();
      ++messages_;
      if (!sends_) {
        while (shared_.started.load(std::memory_order_acquire) < messages_) wait();
        way.receive(memory, bytes);
        shared_.finished.store(messages_, std::memory_order_release);
        continue;
      }
      const double start = now_ns();
      shared_.started.store(messages_, std::memory_order_release);
      way.send(memory, bytes);
      while (shared_.finished.load(std::memory_order_acquire) < messages_) wait();
      times.push_back(now_ns() - start);
    }
    if (!sends_) return 0;
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return static_cast<double>(bytes) / times[static_cast<std::size_t>(rounds) / 2];
  }

  static void make_memory(std::size_t shift) {
    memory_ = static_cast<std::byte*>(std::aligned_alloc(4096, kMostBytes + 4096)) + shift;
    if (memory_ == nullptr) std::exit(1);
  }

 private:
  void wait() {
    if ((++waits_ & 0xfffff) != 0) return;
    sched_yield();
    if (kill(peer_, 0) != 0) std::exit(1);
  }

  void bounce() {
    const std::uint64_t mine = sends_ ? 0 : 1;
    while (shared_.line.load(std::memory_order_acquire) % 2 != mine) wait();
    shared_.line.fetch_add(1, std::memory_order_acq_rel);
    if (sends_)
      while (shared_.line.load(std::memory_order_acquire) % 2 != 0) wait();
  }

  /// Moves [from, to) of the message at `memory`, which lies at the same address on the other side.
  void call(bool read, std::byte* memory, std::size_t from, std::size_t to, std::size_t chunk) {
    if (chunk == 0) chunk = kMostBytes;
    for (; from < to; from += chunk) {
      iovec piece{memory + from, std::min(chunk, to - from)};
      const ssize_t done =
          read ? process_vm_readv(peer_, &piece, 1, &piece, 1, 0) : process_vm_writev(peer_, &piece, 1, &piece, 1, 0);
      if (done != static_cast<ssize_t>(piece.iov_len)) std::perror("process_vm"), std::exit(1);
    }
  }

  Shared& shared_;
  std::byte* common_;
  bool sends_;
  pid_t peer_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t waits_ = 0;
  inline static std::byte* memory_ = nullptr;
};

std::vector<Way> make_ways(Side& side, bool all) {
  std::vector<Way> ways{side.one()};
  const struct {
    const char* name;
    Copy in, out;
    bool always;
  } copies[] = {{"memcpy", copy_memcpy, copy_memcpy, false},
                {"movsb", copy_movsb, copy_movsb, false},
                {"stores32", copy_stores32, copy_stores32, true},
                {"stores64", copy_stores64, copy_stores64, false},
                {"streaming", copy_streaming, copy_streaming, false},
                {"stream in", copy_streaming, copy_stores32, true},
                {"stream in prefetch", copy_streaming, copy_prefetching, false},
                {"stream in movsb", copy_streaming, copy_movsb, false},
                {"stream out", copy_stores32, copy_streaming, true}};
  const struct {
    std::size_t chunk, count;
  } rings[] = {{2, 2}, {8, 4}, {4, 256}, {4, 512}, {8, 128}, {8, 192}, {8, 256}, {8, 384}, {16, 128}};
  for (const auto& ring : rings) {
    for (const auto& copy : copies) {
      if (all || copy.always) ways.push_back(side.two(copy.name, copy.in, copy.out, ring.chunk << 10, ring.count));
    }
  }
  ways.push_back(side.kernel("writev", 0, 0));
  ways.push_back(side.kernel("readv", 8, 0));
  ways.push_back(side.kernel("halves", 4, 0));
  for (const std::size_t chunk : {16, 64, 256}) ways.push_back(side.kernel("readv", 8, chunk << 10));
  for (const std::size_t chunk : {64, 256}) ways.push_back(side.kernel("halves", 4, chunk << 10));
  return ways;
}

void run(Side& side, bool all, bool cold) {
  if (side.sends()) {
    std::printf("%-24s", cold ? "GB/s, cold" : "GB/s, warm");
    for (const std::size_t bytes : kSizes) std::printf("%7zuK", bytes >> 10);
    std::printf("  line before, after\n");
  }
  for (const Way& way : make_ways(side, all)) {
    const double start = now_ns();
    const double before = side.bounce_ns();
    std::vector<double> rates;
    for (const std::size_t bytes : kSizes) rates.push_back(side.measure(way, bytes, cold));
    const double after = side.bounce_ns();
    if (!side.sends()) continue;
    std::printf("%-24s", way.name.c_str());
    for (const double rate : rates) std::printf("%8.1f", rate);
    const double far = 100;
    const char* label = (before > far) != (after > far) ? "dropped" : before > far ? "far" : "near";
    std::printf("  %4.0f %4.0f ns %s  %.1f s\n", before, after, label, (now_ns() - start) / 1e9);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto has = [&](const char* word) { return std::count(arguments.begin(), arguments.end(), word) != 0; };
  const bool placed = arguments.size() >= 2 && std::isdigit(arguments.back()[0]) != 0;
  const int cores[2] = {placed ? std::atoi(arguments[arguments.size() - 2].c_str()) : 0,
                        placed ? std::atoi(arguments.back().c_str()) : 1};
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* common = mmap(nullptr, kMostBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || common == MAP_FAILED) return 1;
  auto* shared = new (memory) Shared{};
  Side::make_memory(has("odd") ? 16 : 0);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return 1;
  {
    Side side(*shared, static_cast<std::byte*>(common), child != 0, cores[child == 0 ? 1 : 0],
              child == 0 ? parent : child);
    run(side, has("all"), has("cold"));
  }
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
