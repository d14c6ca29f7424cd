// Latency, message rate and bandwidth between ranks 0 and 1, as key=value lines. Usage: bench [SCALE_PERCENT].
// Times are half round trips; bandwidth streams a window of messages one way. Content is checked outside the timed
// part, once per series. What the caller compares must come from one run of the machine, interleaved. A series goes in
// parts and ends after kMostSeconds, so that a machine that is, or gets, busy with other work gives an answer, too.
#include "check.h"

enum { kWindow = 64, kTag = 9 };

static unsigned char *out, *in;
static long scale_percent;

static long scaled(long iterations) {
  const long wanted = iterations * scale_percent / 100;
  return wanted > 0 ? wanted : 1;
}

static const double kMostSeconds = 1.5;

// What is measured: `count` steps, the time of one. Of that the caller makes a latency or a rate.
struct step {
  double (*run)(const struct step* step, long count);
  size_t bytes;
  int window;
};

// Seconds of one step, of up to `wanted` of them. The first are for warming up.
static double measure(const struct step* step, long wanted) {
  const long part = wanted / 100 > 0 ? wanted / 100 : 1;
  double seconds = 0;
  long count = 0;
  int goes_on = 1;
  step->run(step, part / 10 + 1);
  step->run(step, part);
  while (goes_on) {
    seconds += step->run(step, part) * (double)part;
    count += part;
    goes_on = count < wanted && seconds < kMostSeconds;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  return seconds / (double)count;
}

static void check_series(size_t bytes, const char* series) {
  if (check_rank == 1) {
    CHECK_CONTENT(in, bytes, bytes, "%s, %zu bytes", series, bytes);
  }
}

// One message there and back.
static double ping_pong(const struct step* step, long iterations) {
  const int n = (int)step->bytes;
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
  return (MPI_Wtime() - started) / (double)iterations;
}

// A window of messages one way, and an empty answer.
static double stream(const struct step* step, long windows) {
  MPI_Request requests[kWindow];
  const int n = (int)step->bytes, window = step->window;
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
  return (MPI_Wtime() - started) / (double)windows;
}

static void print_latency(size_t bytes, long iterations) {
  const struct step step = {ping_pong, bytes, 1};
  check_fill(out, bytes, bytes);
  memset(in, 0, bytes);
  const double us = 1e6 * measure(&step, scaled(iterations)) / 2;
  check_series(bytes, "ping-pong");
  if (check_rank == 0) {
    printf("latency_us_%zu=%.4f\n", bytes, us);
  }
}

// Messages per second.
static double measure_stream(size_t bytes, int window, long windows) {
  const struct step step = {stream, bytes, window};
  check_fill(out, bytes, bytes);
  memset(in, 0, bytes);
  const double seconds = measure(&step, scaled(windows));
  check_series(bytes, "stream");
  return (double)window / seconds;
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
  check_begin(&argc, &argv, "bench", 300);
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
