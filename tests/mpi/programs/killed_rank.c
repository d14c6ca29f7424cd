// The last rank dies at once, in the middle of traffic, as after kill -9. The job is expected to end with an error and
// soon: what is tested is that mpirun's clean-up finds everybody able to end, and what is left behind afterwards.
#include "check.h"

enum { kBytes = 20000, kRoundsToLive = 50 };

int main(int argc, char** argv) {
  static unsigned char payload[kBytes];
  check_begin(&argc, &argv, "killed_rank", 60);
  for (long round = 0;; round++) {
    const int next = (check_rank + 1) % check_size;
    const int previous = (check_rank + check_size - 1) % check_size;
    if (check_rank == check_size - 1 && round == kRoundsToLive) {
      kill(getpid(), SIGKILL);
    }
    MPI_Sendrecv_replace(payload, (int)(round % 2 == 0 ? 100 : kBytes), MPI_BYTE, next, 1, previous, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  }
}
