// Every collective operation that moves or reduces data, with counts from 0 to beyond every protocol change, results
// compared with what arithmetic says. Usage: collectives [LARGEST_COUNT].
#include "check.h"

// Element i of what rank r contributes. Small enough that sums stay exact.
static int element(int rank, long i) { return (int)(check_mix((uint64_t)rank * 1000003 + (uint64_t)i) % 10000); }

static int *out, *in;

static void contribute(int rank, long count) {
  for (long i = 0; i < count; i++) {
    out[i] = element(rank, i);
  }
}

static void forget(long count) { memset(in, 0xEE, (size_t)count * sizeof(int)); }

static void expect_block(const int* block, int rank, long first, long count, const char* operation) {
  for (long i = 0; i < count; i++) {
    CHECK(block[i] == element(rank, first + i), "%s of %ld: element %ld from rank %d is %d instead of %d", operation,
          count, i, rank, block[i], element(rank, first + i));
  }
}

static void expect_sum(const int* block, int ranks, long first, long count, const char* operation) {
  for (long i = 0; i < count; i++) {
    int sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
      sum += element(rank, first + i);
    }
    CHECK(block[i] == sum, "%s of %ld: element %ld is %d instead of %d", operation, count, i, block[i], sum);
  }
}

static void rooted(long count, int root) {
  const int n = (int)count;
  contribute(check_rank, count);
  MPI_Bcast(out, n, MPI_INT, root, MPI_COMM_WORLD);
  expect_block(out, root, 0, count, "bcast");

  contribute(check_rank, count);
  forget(count);
  MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  if (check_rank == root) {
    expect_sum(in, check_size, 0, count, "reduce");
  }

  forget(count * check_size);
  MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
  for (int rank = 0; check_rank == root && rank < check_size; rank++) {
    expect_block(in + rank * count, rank, 0, count, "gather");
  }

  contribute(root, count * check_size);
  forget(count);
  MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
  expect_block(in, root, check_rank * count, count, "scatter");
}

static void symmetric(long count) {
  const int n = (int)count;
  contribute(check_rank, count * check_size);
  forget(count * check_size);
  MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect_sum(in, check_size, 0, count, "allreduce");

  forget(count * check_size);
  MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < check_size; rank++) {
    expect_block(in + rank * count, rank, 0, count, "allgather");
  }

  forget(count * check_size);
  MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < check_size; rank++) {
    expect_block(in + rank * count, rank, check_rank * count, count, "alltoall");
  }

  forget(count);
  MPI_Reduce_scatter_block(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect_sum(in, check_size, check_rank * count, count, "reduce_scatter_block");

  forget(count);
  MPI_Scan(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect_sum(in, check_rank + 1, 0, count, "scan");

  forget(count);
  MPI_Exscan(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (check_rank > 0) {
    expect_sum(in, check_rank, 0, count, "exscan");
  }
}

// Rank r contributes count + r elements, so nobody's block has the length of another's.
static void of_unequal_lengths(long count) {
  int* counts = check_allocate(sizeof(int) * (size_t)check_size);
  int* places = check_allocate(sizeof(int) * (size_t)check_size);
  int total = 0;
  for (int rank = 0; rank < check_size; rank++) {
    counts[rank] = (int)count + rank;
    places[rank] = total;
    total += counts[rank];
  }
  contribute(check_rank, count + check_rank);
  forget(total);
  MPI_Allgatherv(out, counts[check_rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < check_size; rank++) {
    expect_block(in + places[rank], rank, 0, counts[rank], "allgatherv");
  }
  forget(total);
  MPI_Gatherv(out, counts[check_rank], MPI_INT, in, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  for (int rank = 0; check_rank == 0 && rank < check_size; rank++) {
    expect_block(in + places[rank], rank, 0, counts[rank], "gatherv");
  }
  free(places);
  free(counts);
}

// Three operations in flight at once, completed together.
static void without_blocking(long count) {
  MPI_Request requests[3];
  int* sum = check_allocate((size_t)count * sizeof(int));
  int* all = check_allocate((size_t)count * (size_t)check_size * sizeof(int));
  contribute(check_rank, count);
  for (long i = 0; i < count; i++) {
    in[i] = check_rank == 0 ? element(77, i) : -1;
  }
  MPI_Iallreduce(out, sum, (int)count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(in, (int)count, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallgather(out, (int)count, MPI_INT, all, (int)count, MPI_INT, MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  expect_sum(sum, check_size, 0, count, "iallreduce");
  expect_block(in, 77, 0, count, "ibcast");
  for (int rank = 0; rank < check_size; rank++) {
    expect_block(all + rank * count, rank, 0, count, "iallgather");
  }
  free(all);
  free(sum);
}

int main(int argc, char** argv) {
  static const long counts[] = {0, 1, 2, 3, 7, 64, 255, 511, 512, 513, 1024, 4095, 16384, 65537, 262144};
  check_begin(&argc, &argv, "collectives", 300);
  const long largest = check_argument(argc, argv, 1, 65537);
  const size_t room = (size_t)(largest + check_size) * (size_t)check_size * sizeof(int);
  out = check_allocate(room);
  in = check_allocate(room);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0] && counts[i] <= largest; i++) {
    for (int root = 0; root < check_size; root++) {
      rooted(counts[i], root);
    }
    symmetric(counts[i]);
    of_unequal_lengths(counts[i]);
    without_blocking(counts[i]);
  }
  for (int i = 0; i < 1000; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(in);
  free(out);
  return check_finish();
}
