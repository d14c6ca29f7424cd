// Every rank sends many messages of all lengths to every rank, itself included, without waiting, and receives as many
// in a different order. Usage: storm [MESSAGES_PER_PAIR [ROUNDS]].
#include "check.h"

enum { kLargest = 40000 };

static long messages;

static size_t length_of(long number) {
  return number % 16 == 15 ? (size_t)(kLargest - number % 1000) : (size_t)(number * 131 % 3000);
}

static uint64_t seed_of(int from, int to, long number, long round) {
  return (((uint64_t)from * 1024 + (uint64_t)to) << 40) + (uint64_t)round * 100000 + (uint64_t)number;
}

static long slot_of(int peer, long number) { return peer * messages + number; }

static void run_round(unsigned char* out, unsigned char* in, MPI_Request* requests, long round) {
  const long slots = messages * check_size;
  memset(in, 0, (size_t)slots * kLargest);
  // Odd rounds post half of the receives after the sends, so that much arrives unexpected.
  for (long number = 0; number < messages; number++) {
    for (int peer = 0; peer < check_size; peer++) {
      const long slot = slot_of(peer, number);
      check_fill(out + slot * kLargest, length_of(number), seed_of(check_rank, peer, number, round));
      if (round % 2 == 0) {
        MPI_Irecv(in + slot * kLargest, kLargest, MPI_BYTE, peer, (int)number, MPI_COMM_WORLD, &requests[slot]);
      }
      MPI_Isend(out + slot * kLargest, (int)length_of(number), MPI_BYTE, peer, (int)number, MPI_COMM_WORLD,
                &requests[slots + slot]);
    }
  }
  for (long slot = slots - 1; round % 2 != 0 && slot >= 0; slot--) {
    MPI_Irecv(in + slot * kLargest, kLargest, MPI_BYTE, (int)(slot / messages), (int)(slot % messages), MPI_COMM_WORLD,
              &requests[slot]);
  }
  MPI_Waitall((int)(2 * slots), requests, MPI_STATUSES_IGNORE);
  for (int peer = 0; peer < check_size; peer++) {
    for (long number = 0; number < messages; number++) {
      CHECK_CONTENT(in + slot_of(peer, number) * kLargest, length_of(number), seed_of(peer, check_rank, number, round),
                    "round %ld, message %ld from rank %d", round, number, peer);
    }
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "storm", 240);
  messages = check_argument(argc, argv, 1, 100);
  const long rounds = check_argument(argc, argv, 2, 10);
  const size_t bytes = (size_t)messages * (size_t)check_size * kLargest;
  unsigned char* out = check_allocate(bytes);
  unsigned char* in = check_allocate(bytes);
  MPI_Request* requests = check_allocate(2 * (size_t)messages * (size_t)check_size * sizeof(MPI_Request));
  for (long round = 0; round < rounds; round++) {
    run_round(out, in, requests, round);
  }
  free(requests);
  free(in);
  free(out);
  return check_finish();
}
