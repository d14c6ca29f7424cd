// Rank 0 sends many messages that nobody has asked for; the others take them in reverse order of tags.
// Usage: unexpected_flood [MESSAGES [BYTES [SECONDS]]]. The last message is awaited first: messages of one pair do not
// overtake, so all others lie unexpected by then. Before that the receivers handle nothing for SECONDS. At most 300
// messages beyond the eager limit of 2 KiB: each occupies its sender until it is received.
#include "check.h"

enum { kEagerBytes = 2048 };

static unsigned char* payload;

static uint64_t seed_of(long number, int to) { return (uint64_t)number * 64 + (unsigned)to; }

// Short messages end at the sender before anybody receives them.
static void send_short(long messages, size_t bytes, int to) {
  for (long i = 0; i < messages; i++) {
    check_fill(payload, bytes, seed_of(i, to));
    MPI_Send(payload, (int)bytes, MPI_BYTE, to, (int)i, MPI_COMM_WORLD);
  }
  MPI_Send(NULL, 0, MPI_BYTE, to, (int)messages, MPI_COMM_WORLD);
}

// Long messages end only when they are received, so none of them may be waited for before all are underway.
static void send_long(long messages, size_t bytes, int to) {
  MPI_Request* requests = check_allocate((size_t)messages * sizeof(MPI_Request));
  unsigned char* out = check_allocate((size_t)messages * bytes);
  for (long i = 0; i < messages; i++) {
    check_fill(out + (size_t)i * bytes, bytes, seed_of(i, to));
    MPI_Isend(out + (size_t)i * bytes, (int)bytes, MPI_BYTE, to, (int)i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Send(NULL, 0, MPI_BYTE, to, (int)messages, MPI_COMM_WORLD);
  MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
  free(out);
  free(requests);
}

static void drain_in_reverse(long messages, size_t bytes, unsigned seconds) {
  sleep(seconds);
  MPI_Recv(NULL, 0, MPI_BYTE, 0, (int)messages, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (long i = messages - 1; i >= 0; i--) {
    MPI_Status status;
    memset(payload, 0, bytes);
    MPI_Recv(payload, (int)bytes, MPI_BYTE, 0, (int)i, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, 0, i, bytes);
    CHECK_CONTENT(payload, bytes, seed_of(i, check_rank), "unexpected message with tag %ld", i);
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "unexpected_flood", 300);
  const long messages = check_argument(argc, argv, 1, 20000);
  const size_t bytes = (size_t)check_argument(argc, argv, 2, 1024);
  const unsigned seconds = (unsigned)check_argument(argc, argv, 3, 0);
  if (check_size < 2) {
    return check_skip("a flood wants two ranks");
  }
  payload = check_allocate(bytes);
  if (check_rank == 0) {
    for (int to = 1; to < check_size; to++) {
      if (bytes <= kEagerBytes) {
        send_short(messages, bytes, to);
      } else {
        send_long(messages, bytes, to);
      }
    }
  } else {
    drain_in_reverse(messages, bytes, seconds);
  }
  free(payload);
  return check_finish();
}
