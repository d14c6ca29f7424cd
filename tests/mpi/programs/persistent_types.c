// Persistent sends (MPI 3.1, 3.9) of data that begins behind the address that is given, or before it, in one piece and
// in several: each start sends what the type names then, in every mode of sending.
#include "check.h"

enum { kWords = 600, kMiddle = 300, kRounds = 3, kTag = 7 };

// Two blocks of words at these places; the second may be empty, or touch the first.
static const int shapes[][4] = {{10, 40, 0, 0}, {-20, 40, 0, 0}, {10, 40, 50, 40}, {10, 40, 90, 7}, {-90, 7, 10, 40}};

static int is_data(const int* shape, int word) {
  return (word >= shape[0] && word < shape[0] + shape[1]) || (word >= shape[2] && word < shape[2] + shape[3]);
}

static int value_of(int rank, int round, int word) { return rank * 1000000 + round * 10000 + word; }

static MPI_Datatype type_of(const int* shape) {
  const int places[2] = {shape[0], shape[2]}, lengths[2] = {shape[1], shape[3]};
  MPI_Datatype type;
  MPI_Type_indexed(shape[3] == 0 ? 1 : 2, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

typedef int (*SendInit)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

static void rounds_of(const int* shape, SendInit send_init, int peer) {
  static int out[kWords], in[kWords];
  MPI_Datatype type = type_of(shape);
  MPI_Request requests[2];
  MPI_Recv_init(in + kMiddle, 1, type, peer, kTag, MPI_COMM_WORLD, &requests[0]);
  send_init(out + kMiddle, 1, type, peer, kTag, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < kWords; i++) {
      out[i] = value_of(check_rank, round, i);
      in[i] = -1;
    }
    MPI_Start(&requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);  // For ready sends.
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kWords; i++) {
      const int wanted = is_data(shape, i - kMiddle) ? value_of(peer, round, i) : -1;
      CHECK(in[i] == wanted, "blocks at %d and %d, start %d: word %d is %d instead of %d", shape[0], shape[2], round,
            i - kMiddle, in[i], wanted);
    }
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  static const SendInit ways[] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};
  int room = 100000;
  check_begin(&argc, &argv, "persistent_types", 60);
  void* space = check_allocate((size_t)room);
  MPI_Buffer_attach(space, room);
  for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
      rounds_of(shapes[shape], ways[way], check_rank ^ 1);
    }
  }
  MPI_Buffer_detach(&space, &room);
  free(space);
  return check_finish();
}
