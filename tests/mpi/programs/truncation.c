// A message longer than the buffer is an error of the receive, writes nothing behind the buffer, and leaves everything
// else in order: short and long messages, posted and unexpected, with little room and with none.
// Open MPI's own ob1 over vader fails this program: it writes behind the buffer of a long unexpected message.
#include "check.h"

enum { kBuffer = 16384, kGuardValue = 0x5A };

static unsigned char buffer[kBuffer];

static void receive_truncated(size_t room, int unexpected, int tag) {
  MPI_Request request;
  MPI_Status status;
  int error;
  memset(buffer, kGuardValue, kBuffer);
  if (unexpected) {
    MPI_Recv(NULL, 0, MPI_BYTE, 1, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    error = MPI_Recv(buffer, (int)room, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &status);
  } else {
    MPI_Irecv(buffer, (int)room, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    error = MPI_Wait(&request, &status);
  }
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  CHECK(error_class == MPI_ERR_TRUNCATE, "room for %zu bytes, %s: error class %d instead of MPI_ERR_TRUNCATE", room,
        unexpected ? "unexpected" : "posted", error_class);
  CHECK(check_first_other(buffer + room, kBuffer - room, kGuardValue) < 0, "bytes behind a buffer of %zu", room);
}

// A long send may wait for its receive, so the notice that it is underway must not wait for it.
static void send_too_long(size_t bytes, int unexpected, int tag) {
  MPI_Request request;
  check_fill(buffer, bytes, bytes);
  if (!unexpected) {
    MPI_Recv(NULL, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Isend(buffer, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
  if (unexpected) {
    MPI_Send(NULL, 0, MPI_BYTE, 0, tag + 1, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// An ordinary message afterwards: the failed one is gone, its successor arrives whole.
static void exchange_ordinary(int tag) {
  if (check_rank == 0) {
    MPI_Recv(buffer, kBuffer, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CONTENT(buffer, kBuffer, 4711, "message after a truncated one");
  } else if (check_rank == 1) {
    check_fill(buffer, kBuffer, 4711);
    MPI_Send(buffer, kBuffer, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  }
}

static void one_case(size_t bytes, size_t room, int unexpected) {
  if (check_rank == 0) {
    receive_truncated(room, unexpected, 30);
  } else if (check_rank == 1) {
    send_too_long(bytes, unexpected, 30);
  }
  exchange_ordinary(30);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "truncation", 120);
  if (check_size < 2) {
    return check_skip("this wants two ranks");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < 20; round++) {
    one_case(64, 16, 0);
    one_case(64, 0, 0);
    one_case(2000, 1999, 0);
    one_case(64, 16, 1);
    one_case(2000, 0, 1);
    one_case(8192, 4096, 1);
    one_case(8192, 100, 1);
    one_case(8192, 0, 1);
    one_case(8192, 4096, 0);
    one_case(8192, 100, 0);
    one_case(8192, 0, 0);
  }
  return check_finish();
}
