// Unexpected messages of all lengths until the receiver has no room for more and refuses some, again and again: flow
// control brings every one of them there, whole, once and in order. The caller gives Open MPI little room, so that this
// happens early. Usage: flow_control [MESSAGES [ROUNDS]].
#include "check.h"

enum { kLongest = 5000, kTag = 3, kNoticeTag = 4 };

static size_t length_of(long message) { return (size_t)(check_mix((uint64_t)message) % 1900) + 8; }

static uint64_t seed_of(int sender, long round, long message) {
  return ((uint64_t)sender << 48) + ((uint64_t)round << 32) + (uint64_t)message;
}

// Every 50th message is long: it stays with its sender until it is received, and must not hold up the others.
static size_t bytes_of(long message) { return message % 50 == 7 ? kLongest : length_of(message); }

static void send_all(int to, long messages, long round) {
  unsigned char* memory = check_allocate((size_t)messages * kLongest);
  MPI_Request* requests = check_allocate((size_t)messages * sizeof(MPI_Request));
  for (long i = 0; i < messages; i++) {
    check_fill(memory + i * kLongest, bytes_of(i), seed_of(check_rank, round, i));
    MPI_Isend(memory + i * kLongest, (int)bytes_of(i), MPI_BYTE, to, kTag, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Send(NULL, 0, MPI_BYTE, to, kNoticeTag, MPI_COMM_WORLD);
  MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
  free(requests);
  free(memory);
}

// All have one tag, so a message that was overtaken shows.
static void receive_all(int from, long messages, long round) {
  unsigned char buffer[kLongest];
  for (long i = 0; i < messages; i++) {
    MPI_Status status;
    MPI_Recv(buffer, kLongest, MPI_BYTE, from, kTag, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, from, kTag, bytes_of(i));
    CHECK_CONTENT(buffer, bytes_of(i), seed_of(from, round, i), "message %ld of round %ld from %d", i, round, from);
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "flow_control", 120);
  const long messages = check_argument(argc, argv, 1, 2000);
  const long rounds = check_argument(argc, argv, 2, 5);
  if (check_size < 2) {
    return check_skip("this wants two ranks");
  }
  for (long round = 0; round < rounds; round++) {
    if (check_rank > 0) {
      send_all(0, messages, round);
    } else {
      // The notices come last, so everything else has been sent, and some of it refused, before the first is received.
      for (int from = check_size - 1; from > 0; from--) {
        MPI_Recv(NULL, 0, MPI_BYTE, from, kNoticeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      for (int from = 1; from < check_size; from++) {
        receive_all(from, messages, round);
      }
    }
  }
  return check_finish();
}
