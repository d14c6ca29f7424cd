// One long message from rank 0 to rank 1, checked byte for byte. Usage: one_message [BYTES]. Prints mb_per_s.
#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "one_message", 300);
  const size_t bytes = (size_t)check_argument(argc, argv, 1, 1 << 30);
  if (check_size < 2) {
    return check_skip("a message wants two ranks");
  }
  unsigned char* const memory = check_allocate(bytes);
  if (check_rank == 0) {
    check_fill(memory, bytes, 7);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  if (check_rank == 0) {
    MPI_Send(memory, (int)bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
  } else if (check_rank == 1) {
    MPI_Recv(memory, (int)bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 1) {
    printf("mb_per_s=%.1f\n", (double)bytes / 1e6 / (MPI_Wtime() - started));
    CHECK_CONTENT(memory, bytes, 7, "%zu bytes", bytes);
  }
  free(memory);
  return check_finish();
}
