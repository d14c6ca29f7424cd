// MPI between ranks; built once with each MPI that is compared.
//
//   latency, rate, bandwidth, atomic, overlap   two ranks, as in the other programs
//   flagged     half round trips of two MPI_Put, data and then a flag; each with a lock of its own, or flushed under
//   one many        microseconds of a hop of a ring, an all-to-all, a barrier and an allreduce of 8 bytes, all ranks
//   idle        CPU time of ranks that wait in MPI_Recv

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <fcntl.h>

#include <map>

#include "world.h"

using namespace bench;

namespace {

constexpr int kTag = 9;

void send(void* data, double bytes, int to) {
  MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, kTag, MPI_COMM_WORLD);
}
void receive(void* data, double bytes, int from) {
  MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void run_latency(World& w) {
  Buffer out(w.options, 4 << 20), in(w.options, 4 << 20);
  for (const double bytes : w.options.points_or(kLatencyBytes)) {
    const auto last = static_cast<std::size_t>(std::max(bytes - 1, 0.0));
    out.data[last] = static_cast<char>(out.data[last] + 1);
    w.point("send", bytes, "us", half_us(), [&](long count) {
      for (long i = 0; i < count; ++i) {
        if (w.rank == 0) send(out.data, bytes, 1);
        receive(in.data, bytes, 1 - w.rank);
        if (w.rank == 1) send(out.data, bytes, 0);
      }
    });
    if (bytes > 0 && in.data[last] != out.data[last]) fail("wrong data");
  }
}

/// Windows of messages one way, an empty answer to each; or both ways.
void stream(World& w, Buffer& out, Buffer& in, double bytes, int window, bool both, long count) {
  std::vector<MPI_Request> requests;
  for (long round = 0; round < count; ++round) {
    requests.clear();
    for (int i = 0; i < window; ++i) {
      if (both || w.rank == 1) {
        MPI_Irecv(in.data, static_cast<int>(bytes), MPI_BYTE, 1 - w.rank, kTag, MPI_COMM_WORLD,
                  &requests.emplace_back());
      }
    }
    for (int i = 0; i < window; ++i) {
      if (both || w.rank == 0) {
        MPI_Isend(out.data, static_cast<int>(bytes), MPI_BYTE, 1 - w.rank, kTag, MPI_COMM_WORLD,
                  &requests.emplace_back());
      }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    if (w.rank == 1) send(nullptr, 0, 0);
    if (w.rank == 0) receive(nullptr, 0, 1);
  }
  // Rank 1 stays in MPI until rank 0 has all: Open MPI's own transport tells the end of a long message in later calls.
  if (w.rank == 0) send(nullptr, 0, 1);
  if (w.rank == 1) receive(nullptr, 0, 0);
}

void run_rate(World& w) {
  Buffer out(w.options, 64), in(w.options, 64);
  for (const double window : w.options.points_or(kWindows)) {
    w.point("send", window, "M/s", rate(window),
            [&](long count) { stream(w, out, in, 8, static_cast<int>(window), false, count); });
  }
}

void run_bandwidth(World& w) {
  Buffer out(w.options, 64 << 20), in(w.options, 64 << 20);
  for (const double bytes : w.options.points_or(kBandwidthBytes)) {
    const int window = window_of(bytes);
    for (const bool both : {false, true}) {
      w.point(both ? "send, both ways" : "send", bytes, "GB/s", bandwidth(bytes * window * (both ? 2 : 1)),
              [&](long count) { stream(w, out, in, bytes, window, both, count); });
    }
  }
}

void run_atomic(World& w) {
  Buffer memory(w.options, 64);
  MPI_Win window;
  MPI_Win_create(memory.data, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  const std::uint64_t one = 1;
  std::uint64_t before = 0;
  w.point("fetch-add", 8, "us", us(), [&](long count) {
    for (long i = 0; w.rank == 0 && i < count; ++i) {
      MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 1, 0, MPI_SUM, window);
      MPI_Win_flush(1, window);
    }
    if (w.rank == 0) send(nullptr, 0, 1);
    if (w.rank == 1) receive(nullptr, 0, 0);
  });
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

/// What flagged() wants of a side.
struct Window {
  explicit Window(World& w) : source(w.options, (4 << 20) + 64), sink(w.options, (4 << 20) + 64), other(1 - w.rank) {
    MPI_Win_create(sink.data, static_cast<MPI_Aint>(sink.size), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &handle);
  }
  ~Window() { MPI_Win_free(&handle); }
  static bool busy() { return false; }
  void put(std::size_t at, std::size_t bytes) const {
    const int count = static_cast<int>(bytes);
    MPI_Put(source.data + at, count, MPI_BYTE, other, static_cast<MPI_Aint>(at), count, MPI_BYTE, handle);
  }
  Buffer source, sink;
  int other;
  MPI_Win handle = MPI_WIN_NULL;
};

void run_flagged(World& w) {
  Window window(w);
  const auto look = [] {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  };
  const auto points = w.options.points_or(kFlaggedBytes);
  for (const double point : points) {
    flagged(
        w, window, "data, flag, locked", static_cast<std::size_t>(point),
        [&](std::size_t at, std::size_t bytes) {
          MPI_Win_lock(MPI_LOCK_SHARED, window.other, 0, window.handle);
          window.put(at, bytes);
          MPI_Win_unlock(window.other, window.handle);
        },
        look);
  }
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window.handle);
  for (const double point : points) {
    flagged(
        w, window, "data, flag, flushed", static_cast<std::size_t>(point),
        [&](std::size_t at, std::size_t bytes) {
          window.put(at, bytes);
          MPI_Win_flush(window.other, window.handle);
        },
        look);
  }
  MPI_Win_unlock_all(window.handle);
}

void run_overlap(World& w) {
  Buffer memory(w.options, static_cast<std::size_t>(kOverlapBytes));
  MPI_Request request;
  w.overlap(
      "send", kOverlapBytes, [&] { send(memory.data, kOverlapBytes, 1); },
      [&] { MPI_Irecv(memory.data, static_cast<int>(kOverlapBytes), MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &request); },
      [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
}

void run_many(World& w) {
  const int next = (w.rank + 1) % w.size, previous = (w.rank + w.size - 1) % w.size;
  std::uint64_t token = 0, sum = 0;
  std::vector<std::uint64_t> out(static_cast<std::size_t>(w.size)), in(out.size());
  const auto repeated = [&](const char* what, double divisor, auto&& one) {
    w.point(
        what, w.size, "us", [divisor](double s) { return s * 1e6 / divisor; },
        [&](long count) {
          for (long i = 0; i < count; ++i) one();
        });
  };
  repeated("hop of a ring", w.size, [&] {
    if (w.rank == 0) send(&token, 8, next);
    receive(&token, 8, previous);
    if (w.rank != 0) send(&token, 8, next);
  });
  repeated("all-to-all", 1, [&] { MPI_Alltoall(out.data(), 8, MPI_BYTE, in.data(), 8, MPI_BYTE, MPI_COMM_WORLD); });
  repeated("barrier", 1, [&] { MPI_Barrier(MPI_COMM_WORLD); });
  token = 1;
  repeated("allreduce", 1, [&] { MPI_Allreduce(&token, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD); });
  if (sum != static_cast<std::uint64_t>(w.size)) fail("wrong sum");
}

void run_idle(World& w) {
  w.idle(
      "MPI_Recv", w.options.budget_s, [] { receive(nullptr, 0, 0); }, [](int rank) { send(nullptr, 0, rank); });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const std::map<std::string, void (*)(World&)> groups = {
      {"latency", run_latency}, {"rate", run_rate}, {"bandwidth", run_bandwidth}, {"atomic", run_atomic},
      {"overlap", run_overlap}, {"many", run_many}, {"flagged", run_flagged},     {"idle", run_idle}};
  const auto group = groups.find(options.group);
  if (group == groups.end()) fail("the program for MPI cannot measure " + options.group, kNotApplicable);
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char name[64] = "";
  int file = -1;
  if (rank == 0) {
    std::snprintf(name, sizeof name, "/compare-mpi-%d", getpid());
    file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) fail("no shared memory");
  }
  MPI_Bcast(name, sizeof name, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank != 0) file = shm_open(name, O_RDWR, 0600);
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail("no shared memory");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) shm_unlink(name);
  {
    World w(*static_cast<Shared*>(memory), options, rank, size);  // The pages are zero, and so is a new Shared.
    w.pin();
    group->second(w);
    w.meet();
  }
  MPI_Finalize();
}
