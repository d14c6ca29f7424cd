// Watching a computation by Get, after 5.1.2 of the uTofu user's guide: rank 0 computes and counts its steps in a
// variable, without a call of uTofu; rank 1 reads the variable from time to time.
// Usage: get_progress [MILLISECONDS [MILLISECONDS BETWEEN READS]]
//
// Corrected against the print: a line `step = sum` in front of `step++` would spoil the count, and a brace there is one
// too many. The print computes for 60 s and reads every 5 s. Added: what the count must be, at any time and at the end.
#include <time.h>

#include "utofu_check.h"

enum { kAdditions = 10000 };

static volatile unsigned long step;
static volatile unsigned long last_step;  // What rank 0 counted, written when it is done.
static volatile unsigned long sum;        // volatile, so that the additions are made

static long milliseconds_since(const struct timespec* start) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
}

static void compute(long milliseconds) {
  struct timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    for (int i = 0; i < kAdditions; i++) {
      sum += (unsigned long)i;
    }
    step++;
  } while (milliseconds_since(&start) <= milliseconds);
  CHECK(sum == step * ((unsigned long)kAdditions * (kAdditions - 1) / 2), "%lu steps make the sum %lu", step, sum);
  last_step = step;
}

struct reader {
  utofu_vcq_hdl_t vcq_hdl;
  utofu_vcq_id_t rmt_vcq_id;
};

// Copies a variable of rank 0 to the same variable here.
static void read_remote(const struct reader* reader, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd) {
  UTOFU_POST(reader->vcq_hdl, utofu_get(reader->vcq_hdl, reader->rmt_vcq_id, lcl_stadd, rmt_stadd, sizeof step, 0,
                                        UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  const struct utofu_mrq_notice notice = wait_mrq(reader->vcq_hdl, UTOFU_MRQ_TYPE_LCL_GET);
  CHECK(notice.lcl_stadd == lcl_stadd + sizeof step, "the notice does not name the end of the data");
}

static void watch(const struct reader* reader, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, long milliseconds,
                  long pause) {
  struct timespec start;
  unsigned long before = 0;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    usleep((unsigned)pause * 1000);
    read_remote(reader, lcl_stadd, rmt_stadd);
    printf("step: %lu\n", step);
    fflush(stdout);
    CHECK(step >= before, "the count went back from %lu to %lu", before, step);
    before = step;
  } while (milliseconds_since(&start) <= milliseconds);
  CHECK(before > 0, "nothing was counted");
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "get_progress", 120);
  const long milliseconds = check_argument(argc, argv, 1, 60000);
  const long pause = check_argument(argc, argv, 2, 5000);
  utofu_stadd_t lcl_stadds[2], rmt_stadds[2];
  utofu_vcq_id_t lcl_vcq_id;
  struct reader reader;
  if (check_size != 2) {
    return check_skip("one process computes and one watches");
  }
  UTOFU_OK(utofu_create_vcq(first_tni(), 0, &reader.vcq_hdl));
  UTOFU_OK(utofu_reg_mem(reader.vcq_hdl, (void*)&step, sizeof step, 0, &lcl_stadds[0]));
  UTOFU_OK(utofu_reg_mem(reader.vcq_hdl, (void*)&last_step, sizeof last_step, 0, &lcl_stadds[1]));
  if (check_rank == 0) {
    UTOFU_OK(utofu_query_vcq_id(reader.vcq_hdl, &lcl_vcq_id));
    MPI_Send(&lcl_vcq_id, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD);
    MPI_Send(lcl_stadds, 2, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&reader.rmt_vcq_id, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(rmt_stadds, 2, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    UTOFU_OK(utofu_set_vcq_id_path(&reader.rmt_vcq_id, NULL));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    compute(milliseconds);
  } else {
    watch(&reader, lcl_stadds[0], rmt_stadds[0], milliseconds, pause);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 1) {
    read_remote(&reader, lcl_stadds[0], rmt_stadds[0]);
    read_remote(&reader, lcl_stadds[1], rmt_stadds[1]);
    CHECK(step == last_step && step > 0, "read %lu steps, rank 0 made %lu", step, last_step);
    check_queues_empty(reader.vcq_hdl);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  UTOFU_OK(utofu_dereg_mem(reader.vcq_hdl, lcl_stadds[0], 0));
  UTOFU_OK(utofu_dereg_mem(reader.vcq_hdl, lcl_stadds[1], 0));
  UTOFU_OK(utofu_free_vcq(reader.vcq_hdl));
  return check_finish();
}
