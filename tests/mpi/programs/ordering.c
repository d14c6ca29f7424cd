// Messages of one pair and one tag do not overtake, however short and long ones alternate, posted or unexpected.
#include "check.h"

enum { kMessages = 300, kLargest = 300000, kRounds = 4 };

static unsigned char payload[kLargest];

// The eager limit is 2 KiB: lengths around it, and some far beyond.
static size_t length_of(int number) {
  static const size_t lengths[] = {8, 2048, 2049, 16, 100000, 2047, 0, 300000, 4096, 1};
  return lengths[number % 10];
}

static void send_in_order(int peer) {
  for (int number = 0; number < kMessages; number++) {
    check_fill(payload, length_of(number), (uint64_t)number);
    MPI_Send(payload, (int)length_of(number), MPI_BYTE, peer, 4, MPI_COMM_WORLD);
  }
}

static void receive_in_order(int peer) {
  for (int number = 0; number < kMessages; number++) {
    MPI_Status status;
    MPI_Recv(payload, kLargest, MPI_BYTE, peer, number % 3 == 0 ? MPI_ANY_TAG : 4, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, peer, 4, length_of(number));
    CHECK_CONTENT(payload, length_of(number), (uint64_t)number, "message %d of a stream with one tag", number);
  }
}

// All receives are posted before the first message is sent.
static void receive_posted(int peer) {
  enum { kPosted = 20 };
  unsigned char* buffers = check_allocate((size_t)kPosted * kLargest);
  MPI_Request requests[kPosted];
  MPI_Status statuses[kPosted];
  for (int number = 0; number < kPosted; number++) {
    MPI_Irecv(buffers + (size_t)number * kLargest, kLargest, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &requests[number]);
  }
  MPI_Send(NULL, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
  MPI_Waitall(kPosted, requests, statuses);
  for (int number = 0; number < kPosted; number++) {
    CHECK_STATUS(statuses[number], peer, 6, length_of(number));
    CHECK_CONTENT(buffers + (size_t)number * kLargest, length_of(number), (uint64_t)number, "posted receive %d",
                  number);
  }
  free(buffers);
}

static void send_posted(int peer) {
  MPI_Request requests[20];
  unsigned char* buffers = check_allocate((size_t)20 * kLargest);
  MPI_Recv(NULL, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int number = 0; number < 20; number++) {
    check_fill(buffers + (size_t)number * kLargest, length_of(number), (uint64_t)number);
    MPI_Isend(buffers + (size_t)number * kLargest, (int)length_of(number), MPI_BYTE, peer, 6, MPI_COMM_WORLD,
              &requests[number]);
  }
  MPI_Waitall(20, requests, MPI_STATUSES_IGNORE);
  free(buffers);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "ordering", 120);
  const int peer = check_rank ^ 1;
  if (check_size % 2 != 0) {
    return check_skip("this wants pairs of ranks");
  }
  for (int round = 0; round < kRounds; round++) {
    if ((check_rank + round) % 2 == 0) {
      send_in_order(peer);
      send_posted(peer);
    } else {
      receive_in_order(peer);
      receive_posted(peer);
    }
  }
  return check_finish();
}
