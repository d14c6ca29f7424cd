// Latency, message rate and bandwidth between ranks 0 and 1, as key=value lines. Usage: bench [SCALE_PERCENT].
// Times are half round trips; bandwidth streams a window of messages one way. Content is checked outside the timed
// part, once per series. What the caller compares must come from one run of the machine, interleaved. A series that
// would take more than kMostSeconds is made shorter, so that a machine busy with other work gives an answer, too.
#include "check.h"

enum { kWindow = 64, kTag = 9 };

static unsigned char *out, *in;
static long scale_percent;

static long scaled(long iterations) {
  const long wanted = iterations * scale_percent / 100;
  return wanted > 0 ? wanted : 1;
}

static const double kMostSeconds = 1.5;

// How often a step may be repeated, of the number that is wanted, if `tried` of them took `seconds` at rank 0.
static long affordable(long wanted, long tried, double seconds) {
  long count = wanted;
  if (seconds * (double)wanted > kMostSeconds * (double)tried) {
    count = (long)(kMostSeconds * (double)tried / seconds);
  }
  MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return count > 0 ? count : 1;
}

static void check_series(size_t bytes, const char* series) {
  if (check_rank == 1) {
    CHECK_CONTENT(in, bytes, bytes, "%s, %zu bytes", series, bytes);
  }
}

// One message there and back, `iterations` times; returns microseconds of half a round trip.
static double ping_pong(size_t bytes, long iterations) {
  const int n = (int)bytes;
  const int peer = 1 - check_rank;
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  for (long i = 0; i < iterations; i++) {
    if (check_rank == 0) {
      MPI_Send(out, n, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
      MPI_Recv(in, n, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, n, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, n, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
    }
  }
  return 1e6 * (MPI_Wtime() - started) / (double)iterations / 2;
}

// Windows of messages one way, an empty answer per window; returns messages per second.
static double stream(size_t bytes, int window, long windows) {
  MPI_Request requests[kWindow];
  const int n = (int)bytes;
  const int peer = 1 - check_rank;
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  for (long round = 0; round < windows; round++) {
    for (int i = 0; i < window; i++) {
      if (check_rank == 0) {
        MPI_Isend(out, n, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(in, n, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (check_rank == 0) {
      MPI_Recv(NULL, 0, MPI_BYTE, peer, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(NULL, 0, MPI_BYTE, peer, kTag + 1, MPI_COMM_WORLD);
    }
  }
  return (double)(windows * window) / (MPI_Wtime() - started);
}

static void print_latency(size_t bytes, long iterations) {
  check_fill(out, bytes, bytes);
  const long tried = scaled(iterations / 500);
  const double trial_us = ping_pong(bytes, tried);
  const long count = affordable(scaled(iterations), tried, 2e-6 * trial_us * (double)tried);
  ping_pong(bytes, count / 10 + 1);
  memset(in, 0, bytes);
  const double us = ping_pong(bytes, count);
  check_series(bytes, "ping-pong");
  if (check_rank == 0) {
    printf("latency_us_%zu=%.4f\n", bytes, us);
  }
}

// Messages per second.
static double measure_stream(size_t bytes, int window, long windows) {
  check_fill(out, bytes, bytes);
  const long tried = scaled(windows / 500);
  const double trial = stream(bytes, window, tried);
  const long count = affordable(scaled(windows), tried, (double)(tried * window) / trial);
  stream(bytes, window, count / 10 + 1);
  memset(in, 0, bytes);
  const double rate = stream(bytes, window, count);
  check_series(bytes, "stream");
  return rate;
}

static void print_rate(size_t bytes, long windows) {
  const double rate = measure_stream(bytes, kWindow, windows);
  if (check_rank == 0) {
    printf("rate_millions_per_s_%zu=%.4f\n", bytes, rate / 1e6);
  }
}

static void print_bandwidth(size_t bytes, int window, long windows) {
  const double rate = measure_stream(bytes, window, windows);
  if (check_rank == 0) {
    printf("bandwidth_gb_per_s_%zu=%.4f\n", bytes, rate * (double)bytes / 1e9);
  }
}

int main(int argc, char** argv) {
  const size_t largest = 4u << 20;
  check_begin(&argc, &argv, "bench", 120);
  scale_percent = check_argument(argc, argv, 1, 100);
  if (check_size != 2) {
    return check_skip("this measures two ranks");
  }
  out = check_allocate(largest);
  in = check_allocate(largest);
  print_latency(8, 50000);
  print_latency(1024, 30000);
  print_rate(8, 10000);
  print_bandwidth(64 << 10, kWindow, 100);
  print_bandwidth(1 << 20, 16, 30);
  print_bandwidth(4 << 20, 8, 15);
  free(in);
  free(out);
  return check_finish();
}
