// Synchronous, buffered, ready and persistent sends, sends to oneself, and data that does not lie in one piece.
#include "check.h"

enum { kLargest = 50000 };

static const size_t kSizes[] = {0, 1, 2048, 2049, kLargest};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

static unsigned char out[kLargest], in[kLargest];

static void receive_and_check(size_t bytes, int from, int tag) {
  MPI_Status status;
  memset(in, 0, bytes);
  MPI_Recv(in, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, from, tag, bytes);
  CHECK_CONTENT(in, bytes, bytes + (unsigned)tag, "%zu bytes, tag %d", bytes, tag);
}

// A synchronous send ends only after its receive has begun: the flag set before the receive must be seen.
static void synchronous(size_t bytes, int peer) {
  MPI_Request request;
  int done = 0;
  check_fill(out, bytes, bytes + 1);
  if (check_rank % 2 == 0) {
    MPI_Issend(out, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 1000; i++) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      CHECK(!done, "a synchronous send of %zu bytes ended before its receive began", bytes);
    }
    MPI_Send(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive_and_check(bytes, peer, 1);
  }
}

static void buffered(size_t bytes, int peer) {
  int size = 0;
  void* space = check_allocate(kLargest + MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(space, kLargest + MPI_BSEND_OVERHEAD);
  check_fill(out, bytes, bytes + 3);
  MPI_Bsend(out, (int)bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
  memset(out, 0xDD, bytes);
  receive_and_check(bytes, peer, 3);
  MPI_Buffer_detach(&space, &size);
  free(space);
}

static void ready(size_t bytes, int peer) {
  MPI_Request request;
  if (check_rank % 2 != 0) {
    memset(in, 0, bytes);
    MPI_Irecv(in, (int)bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_CONTENT(in, bytes, bytes + 4, "ready send of %zu bytes", bytes);
  } else {
    check_fill(out, bytes, bytes + 4);
    MPI_Recv(NULL, 0, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Rsend(out, (int)bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
  }
}

static void persistent(size_t bytes, int peer) {
  MPI_Request requests[2];
  MPI_Recv_init(in, (int)bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(out, (int)bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &requests[1]);
  for (unsigned round = 0; round < 20; round++) {
    check_fill(out, bytes, bytes + round);
    memset(in, 0, bytes);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_CONTENT(in, bytes, bytes + round, "persistent request of %zu bytes, round %u", bytes, round);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void to_oneself(size_t bytes) {
  MPI_Request request;
  check_fill(out, bytes, bytes + 7);
  MPI_Isend(out, (int)bytes, MPI_BYTE, check_rank, 7, MPI_COMM_WORLD, &request);
  receive_and_check(bytes, check_rank, 7);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Every second of `count` integers, sent from gaps into gaps: what lies between stays.
static void in_pieces(int count, int peer) {
  MPI_Datatype every_second;
  int* from = check_allocate((size_t)count * 2 * sizeof(int));
  int* to = check_allocate((size_t)count * 2 * sizeof(int));
  for (int i = 0; i < 2 * count; i++) {
    from[i] = check_rank * 1000000 + i;
    to[i] = -1;
  }
  MPI_Type_vector(count, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  MPI_Sendrecv(from, 1, every_second, peer, 8, to, 1, every_second, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2 * count; i++) {
    const int wanted = i % 2 == 0 ? peer * 1000000 + i : -1;
    CHECK(to[i] == wanted, "element %d of a vector of %d is %d instead of %d", i, count, to[i], wanted);
  }
  MPI_Type_free(&every_second);
  free(to);
  free(from);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "send_modes", 120);
  const int peer = check_rank ^ 1;
  for (int i = 0; i < kSizeCount; i++) {
    to_oneself(kSizes[i]);
    if (check_size % 2 == 0) {
      synchronous(kSizes[i], peer);
      buffered(kSizes[i], peer);
      ready(kSizes[i], peer);
      persistent(kSizes[i], peer);
    }
  }
  if (check_size % 2 == 0) {
    in_pieces(10, peer);
    in_pieces(10000, peer);
  }
  return check_finish();
}
