// Many communicators alive at once, each with a message of the same tag underway, received in reverse order: nothing
// crosses from one into another, neither messages nor collective operations. Then many made and freed one after the
// other. Usage: many_communicators [COUNT].
#include "check.h"

enum { kBytes = 200 };

static uint64_t seed_of(int sender, long communicator) { return (uint64_t)sender * 65536 + (uint64_t)communicator; }

static void exchange_on_all(MPI_Comm* communicators, long count) {
  const int next = (check_rank + 1) % check_size;
  const int previous = (check_rank + check_size - 1) % check_size;
  unsigned char* out = check_allocate((size_t)count * kBytes);
  unsigned char in[kBytes];
  MPI_Request* requests = check_allocate((size_t)count * sizeof(MPI_Request));
  for (long i = 0; i < count; i++) {
    check_fill(out + i * kBytes, kBytes, seed_of(check_rank, i));
    MPI_Isend(out + i * kBytes, kBytes, MPI_BYTE, next, 3, communicators[i], &requests[i]);
  }
  for (long i = count - 1; i >= 0; i--) {
    MPI_Status status;
    MPI_Recv(in, kBytes, MPI_BYTE, i % 2 == 0 ? previous : MPI_ANY_SOURCE, 3, communicators[i], &status);
    CHECK_STATUS(status, previous, 3, kBytes);
    CHECK_CONTENT(in, kBytes, seed_of(previous, i), "message of communicator %ld", i);
  }
  MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
  free(requests);
  free(out);
}

// A collective operation on each of them, all under way at once, with other values on each. The ranks begin them in the
// same order, as they must; a communicator whose operation is taken for another's has the wrong sum.
static void sum_on_all(MPI_Comm* communicators, long count) {
  long* in = check_allocate((size_t)count * sizeof *in);
  long* out = check_allocate((size_t)count * sizeof *out);
  MPI_Request* requests = check_allocate((size_t)count * sizeof(MPI_Request));
  for (long i = 0; i < count; i++) {
    in[i] = i * check_size + check_rank;
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_LONG, MPI_SUM, communicators[i], &requests[i]);
  }
  MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
  for (long i = 0; i < count; i++) {
    const long expected = i * check_size * check_size + (long)check_size * (check_size - 1) / 2;
    CHECK(out[i] == expected, "sum on communicator %ld is %ld instead of %ld", i, out[i], expected);
  }
  free(requests);
  free(out);
  free(in);
}

// Odd and even ranks, in reverse order: rank numbers differ from those of the world.
static void split_and_sum(void) {
  MPI_Comm half;
  int sum = 0, expected = 0;
  MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half);
  MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, half);
  for (int rank = check_rank % 2; rank < check_size; rank += 2) {
    expected += rank;
  }
  CHECK(sum == expected, "sum over half of the ranks is %d instead of %d", sum, expected);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "many_communicators", 180);
  long count = check_argument(argc, argv, 1, 300);
  MPI_Comm* communicators = check_allocate((size_t)count * sizeof(MPI_Comm));
  // An MPI may refuse to make as many, from 4000 on, but not mix them up.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (long i = 0; i < count; i++) {
    if (MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]) != MPI_SUCCESS) {
      CHECK(i >= 4000, "communicator %ld cannot be made", i);
      count = i;
    }
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  exchange_on_all(communicators, count);
  sum_on_all(communicators, count);
  for (long i = 0; i < count; i++) {
    MPI_Comm_free(&communicators[i]);
  }
  free(communicators);
  for (long i = 0; i < count; i++) {
    split_and_sum();
  }
  return check_finish();
}
