// Every rank tells rank 0 its name; rank 0 hears each of them exactly once.
#include "check.h"

int main(int argc, char** argv) {
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int length = 0;
  check_begin(&argc, &argv, "hello", 60);
  MPI_Get_processor_name(name, &length);
  CHECK(length > 0, "the processor has no name");
  if (check_rank != 0) {
    MPI_Send(name, length + 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
    return check_finish();
  }
  printf("hello from rank 0 of %d on %s\n", check_size, name);
  for (int rank = 1; rank < check_size; rank++) {
    MPI_Status status;
    MPI_Recv(name, sizeof name, MPI_CHAR, rank, 7, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == rank, "greeting of rank %d came from %d", rank, status.MPI_SOURCE);
    printf("hello from rank %d of %d on %s\n", rank, check_size, name);
  }
  return check_finish();
}
