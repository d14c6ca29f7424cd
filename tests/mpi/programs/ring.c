// A token goes round: each rank adds one, so rank 0 knows how many hands it went through. It stops early when the time
// is over, for machines that are busy. Usage: ring [LAPS [SECONDS]]. Prints hop_us, the time of one hop.
#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "ring", 300);
  const long most_laps = check_argument(argc, argv, 1, 1000);
  const double most_seconds = (double)check_argument(argc, argv, 2, 3600);
  const int next = (check_rank + 1) % check_size;
  const int previous = (check_rank + check_size - 1) % check_size;
  const long last_token = -1;
  long token = 0, laps = 0;
  if (check_size == 1) {
    return check_skip("a ring wants two ranks");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  while (token != last_token && laps < most_laps + 1) {
    if (check_rank == 0) {
      const int is_over = laps == most_laps || MPI_Wtime() - started > most_seconds;
      token = is_over ? last_token : token + 1;
      MPI_Send(&token, 1, MPI_LONG, next, 1, MPI_COMM_WORLD);
      MPI_Recv(&token, 1, MPI_LONG, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      laps += !is_over;
      CHECK(token == (is_over ? last_token : laps * check_size), "after lap %ld the token is %ld", laps, token);
    } else {
      MPI_Recv(&token, 1, MPI_LONG, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(token == last_token || token == laps * check_size + check_rank, "in lap %ld the token is %ld", laps, token);
      token += token != last_token;
      laps++;
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
