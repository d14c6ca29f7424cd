// A halo exchange by prepared strides of puts, after 5.1.4 of the uTofu user's guide: each process computes on a
// rectangle, and gives its second column to the preceding rank and its last but one to the next. Descriptors are made
// once; only the last of a column asks for notices.
// Usage: stride_halo [ITERATIONS]
//
// Corrected against the print:
// - its remote offsets are swapped: the second column belongs into the last column of the preceding rank, the last but
//   one into the first column of the next;
// - a neighbour may be one iteration ahead: it has our columns of this iteration, but we may not have computed with
//   its columns yet, which its next ones would overwrite. So there are two rectangles, which take turns, and
//   descriptors for both;
// - the rectangle is never filled, and compute_center and compute_edge are empty. Here they compute (each value from
// its
//   left and right neighbours and itself), and the end is compared with what one process alone computes;
// - return values are not looked at.
#include "utofu_check.h"

#define NX 100
#define NY 100

typedef uint64_t rectangle[NY][NX];

static rectangle data[2];

static uint64_t first_value(int column, int row) { return check_mix((uint64_t)column << 32 | (uint64_t)row); }

// Different factors, so that sides that are exchanged do not pass.
static uint64_t next_value(uint64_t left, uint64_t own, uint64_t right) {
  return 3 * left + 5 * own + 7 * right + (own >> 32);
}

static void compute_columns(rectangle to, rectangle from, int first, int last) {
  for (int y = 0; y < NY; y++) {
    for (int x = first; x <= last; x++) {
      to[y][x] = next_value(from[y][x - 1], from[y][x], from[y][x + 1]);
    }
  }
}

// What does not need received data.
static void compute_center(rectangle to, rectangle from) { compute_columns(to, from, 2, NX - 3); }

// What does.
static void compute_edge(rectangle to, rectangle from) {
  compute_columns(to, from, 1, 1);
  compute_columns(to, from, NX - 2, NX - 2);
}

// All rectangles side by side without halos, row by row, the ends joined.
static void check_against_one_process(rectangle result, long iterations) {
  const int own = NX - 2, width = own * check_size;
  uint64_t* row = check_allocate((size_t)width * sizeof *row);
  uint64_t* next = check_allocate((size_t)width * sizeof *next);
  for (int y = 0; y < NY; y++) {
    for (int x = 0; x < width; x++) {
      row[x] = first_value(x, y);
    }
    for (long i = 0; i < iterations; i++) {
      for (int x = 0; x < width; x++) {
        next[x] = next_value(row[(x + width - 1) % width], row[x], row[(x + 1) % width]);
      }
      uint64_t* const swapped = row;
      row = next;
      next = swapped;
    }
    for (int x = 0; x < own; x++) {
      CHECK(result[y][x + 1] == row[check_rank * own + x], "wrong value in row %d, column %d", y, x + 1);
    }
  }
  free(row);
  free(next);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "stride_halo", 60);
  const long iterations = check_argument(argc, argv, 1, 100);
  const unsigned long last_flags = UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  const size_t length = sizeof data[0][0][0], stride = length * NX;
  utofu_tni_id_t* tni_ids;
  size_t num_tnis, toq_desc_sizes[2][2];
  utofu_vcq_hdl_t vcq_hdls[2];
  utofu_vcq_id_t lcl_vcq_ids[2], rmt_vcq_ids[2];
  utofu_stadd_t lcl_stadds[2], rmt_stadds[2];
  struct utofu_onesided_caps* caps[2];
  char* toq_descs[2][2];
  if (check_size < 3) {
    return check_skip("two different neighbours want three ranks");
  }
  const int rmt_ranks[2] = {(check_rank + check_size - 1) % check_size, (check_rank + 1) % check_size};

  UTOFU_OK(utofu_get_onesided_tnis(&tni_ids, &num_tnis));
  CHECK(num_tnis > 0, "no TNI");
  for (int i = 0; i < 2; i++) {
    // A TNI for each neighbour, if there are two.
    const utofu_tni_id_t tni_id = i == 0 || num_tnis == 1 ? tni_ids[0] : tni_ids[1];
    UTOFU_OK(utofu_query_onesided_caps(tni_id, &caps[i]));
    UTOFU_OK(utofu_create_vcq(tni_id, 0, &vcq_hdls[i]));
    UTOFU_OK(utofu_query_vcq_id(vcq_hdls[i], &lcl_vcq_ids[i]));
    UTOFU_OK(utofu_reg_mem(vcq_hdls[i], data, sizeof data, 0, &lcl_stadds[i]));
  }
  free(tni_ids);
  for (int i = 0; i < 2; i++) {
    MPI_Sendrecv(&lcl_vcq_ids[i], 1, MPI_UINT64_T, rmt_ranks[i], 0, &rmt_vcq_ids[1 - i], 1, MPI_UINT64_T,
                 rmt_ranks[1 - i], 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&lcl_stadds[i], 1, MPI_UINT64_T, rmt_ranks[i], 0, &rmt_stadds[1 - i], 1, MPI_UINT64_T,
                 rmt_ranks[1 - i], 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  UTOFU_OK(utofu_set_vcq_id_path(&rmt_vcq_ids[0], NULL));
  UTOFU_OK(utofu_set_vcq_id_path(&rmt_vcq_ids[1], NULL));

  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < 2; i++) {
      const utofu_stadd_t base = (utofu_stadd_t)turn * sizeof data[0], last_row = stride * (NY - 1);
      const utofu_stadd_t from = lcl_stadds[i] + base + length * (i == 0 ? 1 : NX - 2);
      const utofu_stadd_t to = rmt_stadds[i] + base + length * (i == 0 ? NX - 1 : 0);
      size_t size = 0;
      toq_descs[turn][i] = check_allocate(caps[i]->max_toq_desc_size * NY);
      UTOFU_OK(utofu_prepare_put_stride(vcq_hdls[i], rmt_vcq_ids[i], from, to, length, stride, NY - 1, 0, 0,
                                        toq_descs[turn][i], &toq_desc_sizes[turn][i]));
      UTOFU_OK(utofu_prepare_put(vcq_hdls[i], rmt_vcq_ids[i], from + last_row, to + last_row, length, 0, last_flags,
                                 toq_descs[turn][i] + toq_desc_sizes[turn][i], &size));
      toq_desc_sizes[turn][i] += size;
    }
  }
  for (int y = 0; y < NY; y++) {
    for (int x = 1; x <= NX - 2; x++) {
      data[0][y][x] = first_value(check_rank * (NX - 2) + x - 1, y);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);

  for (long i = 0; i < iterations; i++) {
    const int turn = (int)(i % 2);
    UTOFU_OK(utofu_post_toq(vcq_hdls[0], toq_descs[turn][0], toq_desc_sizes[turn][0], NULL));
    UTOFU_OK(utofu_post_toq(vcq_hdls[1], toq_descs[turn][1], toq_desc_sizes[turn][1], NULL));
    wait_tcq(vcq_hdls[0]);
    wait_tcq(vcq_hdls[1]);
    compute_center(data[1 - turn], data[turn]);
    wait_mrq(vcq_hdls[0], UTOFU_MRQ_TYPE_RMT_PUT);
    wait_mrq(vcq_hdls[1], UTOFU_MRQ_TYPE_RMT_PUT);
    compute_edge(data[1 - turn], data[turn]);
  }
  check_against_one_process(data[iterations % 2], iterations);

  for (int i = 0; i < 2; i++) {
    check_queues_empty(vcq_hdls[i]);
    UTOFU_OK(utofu_dereg_mem(vcq_hdls[i], lcl_stadds[i], 0));
    UTOFU_OK(utofu_free_vcq(vcq_hdls[i]));
    free(toq_descs[0][i]);
    free(toq_descs[1][i]);
  }
  return check_finish();
}
