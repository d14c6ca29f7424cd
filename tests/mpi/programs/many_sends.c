// More sends under way than Open MPI's MTL has slots for, so that most of them wait in its list: of several threads at
// once, in both directions at once with all of them long and unexpected, and around one long or synchronous message
// that its receiver leaves for last. Nothing is lost, nothing overtakes, everything holds what it should.
// Usage: many_sends [SENDS [THREADS]].
#include <pthread.h>

#include "check.h"

enum { kMostThreads = 16, kShortBytes = 64, kLongBytes = 6000, kTag = 5, kNoticeTag = 6, kLateTag = 7 };

struct flood {
  int number;
  long sends;
  MPI_Comm comm;
};

static uint64_t seed_of(int number, long message, int sender) {
  return ((uint64_t)number << 40) + (uint64_t)message * 2 + (unsigned)sender;
}

// Every message has the same tag, so that one that is overtaken shows as wrong content.
static void* flood_thread(void* argument) {
  const struct flood* flood = argument;
  unsigned char* memory = check_allocate((size_t)flood->sends * kShortBytes);
  MPI_Request* requests = check_allocate((size_t)flood->sends * sizeof(MPI_Request));
  for (long i = 0; i < flood->sends; i++) {
    unsigned char* at = memory + i * kShortBytes;
    if (check_rank == 0) {
      check_fill(at, kShortBytes, seed_of(flood->number, i, 0));
      MPI_Isend(at, kShortBytes, MPI_BYTE, 1, kTag, flood->comm, &requests[i]);
    } else {
      MPI_Irecv(at, kShortBytes, MPI_BYTE, 0, kTag, flood->comm, &requests[i]);
    }
  }
  MPI_Waitall((int)flood->sends, requests, MPI_STATUSES_IGNORE);
  for (long i = 0; check_rank == 1 && i < flood->sends; i++) {
    CHECK_CONTENT(memory + i * kShortBytes, kShortBytes, seed_of(flood->number, i, 0), "thread %d, message %ld",
                  flood->number, i);
  }
  free(requests);
  free(memory);
  return NULL;
}

static void floods_of_threads(long sends, long threads) {
  struct flood floods[kMostThreads];
  pthread_t ids[kMostThreads];
  for (int i = 0; i < threads; i++) {
    floods[i] = (struct flood){.number = i, .sends = sends};
    MPI_Comm_dup(MPI_COMM_WORLD, &floods[i].comm);
  }
  for (int i = 0; i < threads; i++) {
    CHECK(pthread_create(&ids[i], NULL, flood_thread, &floods[i]) == 0, "thread %d does not start", i);
  }
  for (int i = 0; i < threads; i++) {
    pthread_join(ids[i], NULL);
    MPI_Comm_free(&floods[i].comm);
  }
}

// Both ranks have all their slots taken by long messages that the other has not asked for yet; then both ask.
static void long_floods_of_both(long sends) {
  const int peer = 1 - check_rank;
  unsigned char* out = check_allocate((size_t)sends * kLongBytes);
  unsigned char* in = check_allocate((size_t)sends * kLongBytes);
  MPI_Request* requests = check_allocate(2 * (size_t)sends * sizeof(MPI_Request));
  for (long i = 0; i < sends; i++) {
    check_fill(out + i * kLongBytes, kLongBytes, seed_of(0, i, check_rank));
    MPI_Isend(out + i * kLongBytes, kLongBytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 0; i < sends; i++) {
    MPI_Irecv(in + i * kLongBytes, kLongBytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &requests[sends + i]);
  }
  MPI_Waitall(2 * (int)sends, requests, MPI_STATUSES_IGNORE);
  for (long i = 0; i < sends; i++) {
    CHECK_CONTENT(in + i * kLongBytes, kLongBytes, seed_of(0, i, peer), "long message %ld", i);
  }
  free(requests);
  free(in);
  free(out);
}

// A message that waits for its receiver while `between` others come and go, and then another of the same length: each
// is read, or answered, for itself.
static void late_receiver(long between, size_t bytes, int synchronous) {
  unsigned char early[kLongBytes], late[kLongBytes], token = 0;
  MPI_Request requests[2];
  if (check_rank == 0) {
    check_fill(early, bytes, 1);
    check_fill(late, bytes, 2);
    (synchronous ? MPI_Issend : MPI_Isend)(early, (int)bytes, MPI_BYTE, 1, kLateTag, MPI_COMM_WORLD, &requests[0]);
    for (long i = 1; i < between; i++) {
      MPI_Send(&token, 1, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
    }
    (synchronous ? MPI_Issend : MPI_Isend)(late, (int)bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (synchronous) {
      int done = 1;
      MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
      CHECK(!done, "a synchronous send is complete before its receive");
    }
    MPI_Send(NULL, 0, MPI_BYTE, 1, kNoticeTag, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  } else {
    for (long i = 1; i < between; i++) {
      MPI_Recv(&token, 1, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Probe(0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(late, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CONTENT(late, bytes, 2, "the message that was sent last");
    MPI_Recv(NULL, 0, MPI_BYTE, 0, kNoticeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(early, (int)bytes, MPI_BYTE, 0, kLateTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CONTENT(early, bytes, 1, "the message that was sent first");
  }
}

int main(int argc, char** argv) {
  const int provided = check_begin_threaded(&argc, &argv, "many_sends", 180, MPI_THREAD_MULTIPLE);
  const long sends = check_argument(argc, argv, 1, 3000);
  const long threads = check_argument(argc, argv, 2, 8);
  CHECK(threads <= kMostThreads, "at most %d threads", kMostThreads);
  if (check_size != 2) {
    return check_skip("this wants two ranks");
  }
  if (provided == MPI_THREAD_MULTIPLE) {
    floods_of_threads(sends, threads);
  }
  long_floods_of_both(sends);
  // 2^15 is how far the MTL of Open MPI 4.1.4 counts its sends.
  late_receiver(1L << 15, kLongBytes, 0);
  late_receiver(1L << 15, kShortBytes, 1);
  return check_finish();
}
