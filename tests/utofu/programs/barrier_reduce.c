// Barriers and sums of doubles on a circuit of gates, after 5.2.1 of the uTofu user's guide: eight processes, three
// gates each, a butterfly. Usage: barrier_reduce [ROUNDS]
//
// Corrected against the print: nothing; but it looks at no result. Here the sums must be right, and the same bits in
// all processes; and nobody may leave a barrier before the last one has come (the clock is the same for all, on one
// node).
#include <math.h>
#include <time.h>

#include "utofu_check.h"

enum { kProcesses = 8, kGates = 3 };

static uint64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Gate g of the circuit hears from the partner of the stage before, and tells the one of its own stage.
static void build_circuit(utofu_vbg_id_t own[kGates], utofu_vbg_id_t all[kProcesses][kGates]) {
  struct utofu_vbg_setting settings[kGates];
  for (int g = 0; g < kGates; g++) {
    const int before = (g + kGates - 1) % kGates, behind = (g + 1) % kGates;
    settings[g].vbg_id = own[g];
    settings[g].src_lcl_vbg_id = own[before];
    settings[g].src_rmt_vbg_id = all[check_rank ^ 1 << before][before];
    settings[g].dst_lcl_vbg_id = own[behind];
    settings[g].dst_rmt_vbg_id = all[check_rank ^ 1 << g][behind];
    settings[g].dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
  }
  UTOFU_OK(utofu_set_vbg(settings, kGates));
}

// Compares what every process noted for every round. `mine` has `rounds` entries.
static uint64_t* gather(uint64_t* mine, long rounds) {
  uint64_t* all = check_allocate((size_t)rounds * kProcesses * sizeof *all);
  MPI_Allgather(mine, (int)rounds, MPI_UINT64_T, all, (int)rounds, MPI_UINT64_T, MPI_COMM_WORLD);
  return all;
}

static void run_barriers(utofu_vbg_id_t gate, long rounds) {
  uint64_t* came = check_allocate((size_t)rounds * sizeof *came);
  uint64_t* left = check_allocate((size_t)rounds * sizeof *left);
  for (long i = 0; i < rounds; i++) {
    int rc;
    came[i] = nanoseconds();
    UTOFU_OK(utofu_barrier(gate, 0));
    do {
      rc = utofu_poll_barrier(gate, 0);
    } while (rc == UTOFU_ERR_NOT_COMPLETED);
    left[i] = nanoseconds();
    CHECK(rc == UTOFU_SUCCESS, "barrier %ld ends with %d", i, rc);
  }
  uint64_t* const all_came = gather(came, rounds);
  for (long i = 0; i < rounds; i++) {
    for (int rank = 0; rank < kProcesses; rank++) {
      CHECK(left[i] >= all_came[rank * rounds + i], "left barrier %ld before rank %d came", i, rank);
    }
  }
  free(came);
  free(left);
  free(all_came);
}

static void run_sums(utofu_vbg_id_t gate, long rounds) {
  uint64_t* sums = check_allocate((size_t)rounds * sizeof *sums);
  for (long i = 0; i < rounds; i++) {
    double in = (double)i + 0.1 * check_rank, out = -1;
    int rc;
    UTOFU_OK(utofu_reduce_double(gate, UTOFU_REDUCE_OP_BFPSUM, &in, 1, 0));
    do {
      rc = utofu_poll_reduce_double(gate, 0, &out);
    } while (rc == UTOFU_ERR_NOT_COMPLETED);
    CHECK(rc == UTOFU_SUCCESS, "sum %ld ends with %d", i, rc);
    const double expected = 8.0 * (double)i + 2.8;
    CHECK(fabs(out - expected) <= 1e-13 * expected, "sum %ld is %.17g, not %.17g", i, out, expected);
    memcpy(&sums[i], &out, sizeof out);
  }
  uint64_t* const all_sums = gather(sums, rounds);
  for (long i = 0; i < rounds; i++) {
    for (int rank = 0; rank < kProcesses; rank++) {
      CHECK(sums[i] == all_sums[rank * rounds + i], "rank %d has other bits in sum %ld", rank, i);
    }
  }
  free(sums);
  free(all_sums);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "barrier_reduce", 60);
  const long rounds = check_argument(argc, argv, 1, 100);
  utofu_tni_id_t* tni_ids;
  size_t num_tnis;
  utofu_vbg_id_t own[kGates], all[kProcesses][kGates];
  if (check_size != kProcesses) {
    return check_skip("the butterfly is one of eight processes");
  }
  UTOFU_OK(utofu_get_barrier_tnis(&tni_ids, &num_tnis));
  CHECK(num_tnis > 0, "no TNI for barriers");
  const utofu_tni_id_t tni_id = tni_ids[(size_t)check_rank % num_tnis];
  free(tni_ids);
  UTOFU_OK(utofu_alloc_vbg(tni_id, kGates, 0, own));
  MPI_Allgather(own, kGates, MPI_UINT64_T, all, kGates, MPI_UINT64_T, MPI_COMM_WORLD);
  build_circuit(own, all);
  MPI_Barrier(MPI_COMM_WORLD);
  run_barriers(own[0], rounds);
  run_sums(own[0], rounds);
  MPI_Barrier(MPI_COMM_WORLD);
  UTOFU_OK(utofu_free_vbg(own, kGates));
  return check_finish();
}
