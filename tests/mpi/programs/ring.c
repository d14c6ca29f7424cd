// A token goes round: each rank adds one, so rank 0 knows how many hands it went through.
// Usage: ring [LAPS]. Prints hop_us, the time of one hop.
#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "ring", 300);
  const long laps = check_argument(argc, argv, 1, 1000);
  const int next = (check_rank + 1) % check_size;
  const int previous = (check_rank + check_size - 1) % check_size;
  long token = 0;
  if (check_size == 1) {
    return check_skip("a ring wants two ranks");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  for (long lap = 0; lap < laps; lap++) {
    if (check_rank == 0) {
      token++;
      MPI_Send(&token, 1, MPI_LONG, next, 1, MPI_COMM_WORLD);
      MPI_Recv(&token, 1, MPI_LONG, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(token == (lap + 1) * check_size, "after lap %ld the token is %ld", lap, token);
    } else {
      MPI_Recv(&token, 1, MPI_LONG, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(token == lap * check_size + check_rank, "in lap %ld the token is %ld", lap, token);
      token++;
      MPI_Send(&token, 1, MPI_LONG, next, 1, MPI_COMM_WORLD);
    }
  }
  const double seconds = MPI_Wtime() - started;
  if (check_rank == 0) {
    printf("laps=%ld\nseconds=%.6f\nhop_us=%.4f\n", laps, seconds,
           laps > 0 ? 1e6 * seconds / (double)(laps * check_size) : 0.0);
  }
  return check_finish();
}
