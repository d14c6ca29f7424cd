// MPI between ranks; built once with each MPI that is compared.
//
//   latency, rate, bandwidth, atomic, overlap   two ranks, as in the other programs
//   many        microseconds of a hop of a ring, an all-to-all, a barrier and an allreduce of 8 bytes, all ranks
//   idle        CPU time of ranks that wait in MPI_Recv

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <fcntl.h>

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

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Options options(argc, argv);
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
    const std::string& group = options.group;
    if (group == "latency") {
      run_latency(w);
    } else if (group == "rate") {
      run_rate(w);
    } else if (group == "bandwidth") {
      run_bandwidth(w);
    } else {
      fail("the program for MPI cannot measure " + group, kNotApplicable);
    }
    w.meet();
  }
  MPI_Finalize();
}
