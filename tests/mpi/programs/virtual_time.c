// For ptl_sim: what MPI_Wtime tells of messages and collectives, and that their results are right. Rank 0 prints the
// times, which are to be the same in each run.
#include <time.h>

#include "check.h"

enum { kRounds = 10, kLongBytes = 65536 };

static unsigned char* payload;

// Nanoseconds of a message one way, between ranks 0 and 1; the others do nothing.
static double ping_pong(int bytes) {
  const int peer = check_rank ^ 1;
  const double began = MPI_Wtime();
  for (int round = 0; round < kRounds && check_rank < 2; round++) {
    const uint64_t seed = (uint64_t)(bytes + round);
    if (check_rank == 0) {
      check_fill(payload, (size_t)bytes, seed);
      MPI_Send(payload, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD);
    }
    memset(payload, 0, (size_t)bytes);
    MPI_Recv(payload, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CONTENT(payload, (size_t)bytes, seed, "round %d of %d bytes", round, bytes);
    if (check_rank == 1) {
      MPI_Send(payload, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - began) * 1e9 / (2 * kRounds);
}

// For far longer than a rank that polls its memory is left alone, some longer than others. It costs no virtual time.
static void compute(void) {
  struct timespec used = {0, 0};
  struct timespec began;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  const long wanted_ms = 3 + check_rank % 3;
  while ((used.tv_sec - began.tv_sec) * 1000 + (used.tv_nsec - began.tv_nsec) / 1000000 < wanted_ms) {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  }
}

static double sum_up(void) {
  const double began = MPI_Wtime();
  for (int round = 0; round < kRounds; round++) {
    int own = check_rank + round;
    int sum = 0;
    compute();
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == check_size * (check_size - 1) / 2 + check_size * round, "the sum is %d", sum);
  }
  return (MPI_Wtime() - began) * 1e9 / kRounds;
}

static double meet(void) {
  const double began = MPI_Wtime();
  for (int round = 0; round < kRounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - began) * 1e9 / kRounds;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "virtual_time", 60);
  if (check_size < 2) {
    return check_skip("a message wants two ranks");
  }
  payload = check_allocate(kLongBytes);
  int is_there = 0;  // What MPI_Init has left to read is read before time begins.
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  const double short_ns = ping_pong(8);
  MPI_Barrier(MPI_COMM_WORLD);
  const double long_ns = ping_pong(kLongBytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double sum_ns = sum_up();
  const double barrier_ns = meet();
  if (getenv("PORTOFU_SIM") != NULL && check_rank == 0) {
    CHECK(short_ns > 900 && short_ns < 5000, "%.0f ns for 8 bytes: on Tofu-D a put alone takes 980", short_ns);
    CHECK(long_ns > kLongBytes / 6.8, "%.0f ns is more than a link carries", long_ns);
    CHECK(sum_ns > 900 && barrier_ns > 0, "a sum takes %.0f ns, a barrier %.0f", sum_ns, barrier_ns);
  }
  if (check_rank == 0) {
    printf("times: 8 B %.0f ns, %d B %.0f ns, allreduce %.0f ns, barrier %.0f ns\n", short_ns, kLongBytes, long_ns,
           sum_ns, barrier_ns);
  }
  free(payload);
  return check_finish();
}
