// Receives from any source and with any tag: every message once, those of one sender in the order of sending, and a
// posted wildcard takes what a later, more exact receive would also have taken.
#include "check.h"

enum { kMessages = 200, kBytes = 300, kLongBytes = 9000 };

static unsigned char payload[kLongBytes];

// Short and long messages alternate: they travel differently and must still not overtake.
static size_t length_of(int number) { return number % 5 == 4 ? kLongBytes : kBytes; }

static uint64_t seed_of(int source, int number) { return (uint64_t)source * 100000 + (unsigned)number; }

static void send_numbered(void) {
  for (int number = 0; number < kMessages; number++) {
    check_fill(payload, length_of(number), seed_of(check_rank, number));
    MPI_Send(payload, (int)length_of(number), MPI_BYTE, 0, number, MPI_COMM_WORLD);
  }
}

static void receive_any(void) {
  int* expected = check_allocate(sizeof(int) * (size_t)check_size);
  memset(expected, 0, sizeof(int) * (size_t)check_size);
  for (int i = 0; i < kMessages * (check_size - 1); i++) {
    MPI_Status status;
    MPI_Recv(payload, kLongBytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    const int source = status.MPI_SOURCE;
    CHECK(source > 0 && source < check_size, "source %d", source);
    CHECK_STATUS(status, source, expected[source], length_of(expected[source]));
    CHECK_CONTENT(payload, length_of(status.MPI_TAG), seed_of(source, status.MPI_TAG), "wildcard from %d, tag %d",
                  source, status.MPI_TAG);
    expected[source]++;
  }
  free(expected);
}

// Three receives are posted before rank 1 sends: (any, 5), (1, any), (1, 5). Two messages with tag 5 and one with
// tag 9 must land in the order of posting.
static void posted_order(void) {
  static const int tags[3] = {5, 5, 9};
  static const int wanted[3] = {0, 1, 2};
  unsigned char in[3][kBytes];
  MPI_Request requests[3];
  MPI_Status status[3];
  if (check_rank == 0) {
    MPI_Irecv(in[0], kBytes, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], kBytes, MPI_BYTE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(in[2], kBytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Waitall(3, requests, status);
    for (int i = 0; i < 3; i++) {
      CHECK_STATUS(status[i], 1, tags[i], kBytes);
      CHECK_CONTENT(in[i], kBytes, (uint64_t)wanted[i] + 900, "posted receive %d", i);
    }
  } else if (check_rank == 1) {
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
      check_fill(payload, kBytes, (uint64_t)i + 900);
      MPI_Send(payload, kBytes, MPI_BYTE, 0, tags[i], MPI_COMM_WORLD);
    }
  }
}

// The largest tag that there is, found by its number, by any, and by a probe that does not ask for more.
static void largest_tag(void) {
  int *limit = NULL, is_set = 0, found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &is_set);
  CHECK(is_set && *limit >= 32767, "no MPI_TAG_UB");
  for (int round = 0; round < 3; round++) {
    int token = check_rank;
    if (check_rank == 1) {
      MPI_Send(&token, 1, MPI_INT, 0, *limit, MPI_COMM_WORLD);
    } else if (check_rank == 0) {
      MPI_Status status;
      MPI_Message message;
      if (round < 2) {
        MPI_Recv(&token, 1, MPI_INT, 1, round == 0 ? *limit : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      } else {
        while (!found) {
          MPI_Improbe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
        }
        MPI_Mrecv(&token, 1, MPI_INT, &message, &status);
      }
      CHECK_STATUS(status, 1, *limit, sizeof token);
      CHECK(token == 1, "round %d: token %d", round, token);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "wildcards", 120);
  if (check_size < 2) {
    return check_skip("wildcards want two ranks");
  }
  if (check_rank == 0) {
    receive_any();
  } else {
    send_numbered();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 50; round++) {
    posted_order();
  }
  largest_tag();
  return check_finish();
}
