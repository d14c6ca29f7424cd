// A cancelled receive takes nothing: the message that would have matched goes to the next one. A receive that has
// completed cannot be cancelled. When both race, exactly one of them wins.
#include "check.h"

enum { kBytes = 4096, kRounds = 200 };

static unsigned char first[kBytes], second[kBytes];

static int cancel_and_wait(MPI_Request* request) {
  MPI_Status status;
  int cancelled = 0;
  MPI_Cancel(request);
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  return cancelled;
}

// Rank 1 sends only after the cancel, so the cancel must succeed.
static void cancel_before_message(size_t bytes) {
  MPI_Request request;
  if (check_rank == 0) {
    memset(first, 7, kBytes);
    MPI_Irecv(first, (int)bytes, MPI_BYTE, 1, 20, MPI_COMM_WORLD, &request);
    CHECK(cancel_and_wait(&request), "a receive that nothing matches was not cancelled");
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(second, (int)bytes, MPI_BYTE, 1, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CONTENT(second, bytes, bytes, "message after a cancelled receive");
    CHECK(check_first_other(first, kBytes, 7) < 0, "the buffer of a cancelled receive was written");
  } else if (check_rank == 1) {
    check_fill(first, bytes, bytes);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(first, (int)bytes, MPI_BYTE, 0, 20, MPI_COMM_WORLD);
  }
}

// The message is there before the receive: nothing is left to cancel.
static void cancel_after_message(void) {
  MPI_Request request;
  if (check_rank == 0) {
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(first, 100, MPI_BYTE, 1, 21, MPI_COMM_WORLD, &request);
    CHECK(!cancel_and_wait(&request), "a receive whose message had arrived was cancelled");
    CHECK_CONTENT(first, 100, 21, "message that could not be cancelled");
  } else if (check_rank == 1) {
    check_fill(first, 100, 21);
    MPI_Send(first, 100, MPI_BYTE, 0, 21, MPI_COMM_WORLD);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 22, MPI_COMM_WORLD);
  }
}

// The message comes at any moment around the cancel.
static void cancel_in_a_race(int round) {
  MPI_Request request;
  if (check_rank == 0) {
    MPI_Irecv(first, 100, MPI_BYTE, 1, 23, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    for (const double until = MPI_Wtime() + 1e-7 * round; MPI_Wtime() < until;) {
    }
    if (cancel_and_wait(&request)) {
      MPI_Recv(first, 100, MPI_BYTE, 1, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    CHECK_CONTENT(first, 100, (unsigned)round, "message of round %d", round);
  } else if (check_rank == 1) {
    check_fill(first, 100, (unsigned)round);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(first, 100, MPI_BYTE, 0, 23, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "cancel_receive", 120);
  if (check_size < 2) {
    return check_skip("this wants two ranks");
  }
  for (int round = 0; round < kRounds; round++) {
    cancel_before_message(round % 2 == 0 ? 100 : kBytes);
    cancel_after_message();
    cancel_in_a_race(round);
  }
  return check_finish();
}
