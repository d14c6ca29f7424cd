// Persistent buffered sends (MPI 3.1, 3.6 and 3.9): each start sends what the buffer holds then, all of it and no more.
#include "check.h"

enum { kElements = 300, kRounds = 12, kTag = 6 };

// As integers, whose packed size is not their number; every second one, to be packed anew at each start.
static void rounds_of(MPI_Datatype type, int count, int step, int peer) {
  static int out[2 * kElements], in[kElements + 1];
  MPI_Request request;
  MPI_Status status;
  int size = 0;
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &size);
  const int room = kRounds * (size + MPI_BSEND_OVERHEAD);
  void* space = check_allocate((size_t)room);
  MPI_Buffer_attach(space, room);
  MPI_Bsend_init(out, count, type, peer, kTag, MPI_COMM_WORLD, &request);
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < kElements; i++) out[i * step] = check_rank * 1000000 + round * 1000 + i;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (int round = 0; round < kRounds; round++) {
    int received = 0;
    MPI_Recv(in, kElements + 1, MPI_INT, peer, kTag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &received);
    CHECK(received == kElements, "start %d brought %d integers instead of %d", round, received, kElements);
    for (int i = 0; i < kElements; i++) {
      const int wanted = peer * 1000000 + round * 1000 + i;
      CHECK(in[i] == wanted, "start %d, integer %d is %d instead of %d", round, i, in[i], wanted);
    }
  }
  MPI_Request_free(&request);
  MPI_Buffer_detach(&space, &size);
  free(space);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "persistent_buffered", 60);
  MPI_Datatype every_second;
  MPI_Type_vector(kElements, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  rounds_of(MPI_INT, kElements, 1, check_rank ^ 1);
  rounds_of(every_second, 1, 2, check_rank ^ 1);
  MPI_Type_free(&every_second);
  return check_finish();
}
