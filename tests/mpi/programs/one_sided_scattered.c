// One-sided operations whose data is scattered at the origin, many of them under way at once, also by several threads:
// none may wait for an answer that another's end has taken away. Usage: one_sided_scattered [OPERATIONS].
#include "check.h"

#include <pthread.h>

enum { kPieces = 20, kThreads = 4 };

static MPI_Win window;
static MPI_Datatype every_second;
static long operations;

struct Part {
  int *out, *in;   // Every second word is data; `in` has a guard in the others.
  MPI_Aint first;  // Where this part of the target's memory begins, in words.
  int target;
};

static int value_of(const struct Part* part, long i, int piece) {
  return (int)(part->first * 7 + i * 1000 + piece + check_rank);
}

static void make_part(struct Part* part, int number, int target) {
  const size_t words = (size_t)operations * kPieces * 2;
  part->out = check_allocate(words * sizeof(int));
  part->in = check_allocate(words * sizeof(int));
  part->first = (MPI_Aint)number * operations * kPieces;
  part->target = target;
  for (long i = 0; i < operations; i++) {
    for (int piece = 0; piece < kPieces; piece++) {
      part->out[(i * kPieces + piece) * 2] = value_of(part, i, piece);
    }
  }
  for (size_t i = 0; i < words; i++) part->in[i] = -1;
}

static int* item(int* words, long i) { return words + i * kPieces * 2; }
static MPI_Aint place(const struct Part* part, long i) { return part->first + i * kPieces; }

static void put_all(struct Part* part) {
  for (long i = 0; i < operations; i++) {
    MPI_Put(item(part->out, i), 1, every_second, part->target, place(part, i), kPieces, MPI_INT, window);
  }
  MPI_Win_flush(part->target, window);
}

static void add_all(struct Part* part) {
  for (long i = 0; i < operations; i++) {
    MPI_Accumulate(item(part->out, i), 1, every_second, part->target, place(part, i), kPieces, MPI_INT, MPI_SUM,
                   window);
  }
  MPI_Win_flush(part->target, window);
}

static void get_all(struct Part* part, int factor) {
  for (long i = 0; i < operations; i++) {
    MPI_Get(item(part->in, i), 1, every_second, part->target, place(part, i), kPieces, MPI_INT, window);
  }
  MPI_Win_flush(part->target, window);
  for (long i = 0; i < operations; i++) {
    for (int piece = 0; piece < kPieces; piece++) {
      const int* got = item(part->in, i) + piece * 2;
      CHECK(got[0] == factor * value_of(part, i, piece) && got[1] == -1, "item %ld, piece %d is %d, not %d times %d", i,
            piece, got[0], factor, value_of(part, i, piece));
    }
  }
}

// Requests are waited for only when all are under way.
static void request_all(struct Part* part) {
  MPI_Request* requests = check_allocate((size_t)operations * sizeof(MPI_Request));
  for (long i = 0; i < operations; i++) {
    MPI_Rput(item(part->out, i), 1, every_second, part->target, place(part, i), kPieces, MPI_INT, window, &requests[i]);
  }
  MPI_Waitall((int)operations, requests, MPI_STATUSES_IGNORE);
  MPI_Win_flush(part->target, window);
  for (long i = 0; i < operations; i++) {
    MPI_Raccumulate(item(part->out, i), 1, every_second, part->target, place(part, i), kPieces, MPI_INT, MPI_SUM,
                    window, &requests[i]);
  }
  MPI_Waitall((int)operations, requests, MPI_STATUSES_IGNORE);
  MPI_Win_flush(part->target, window);
  free(requests);
}

static void* all_ways(void* argument) {
  struct Part* part = argument;
  put_all(part);
  get_all(part, 1);
  add_all(part);
  get_all(part, 2);
  request_all(part);
  get_all(part, 2);
  return NULL;
}

int main(int argc, char** argv) {
  const int level = check_begin_threaded(&argc, &argv, "one_sided_scattered", 100, MPI_THREAD_MULTIPLE);
  const int threads = level == MPI_THREAD_MULTIPLE ? kThreads : 1;
  struct Part parts[kThreads];
  pthread_t ids[kThreads];
  int* memory;
  operations = check_argument(argc, argv, 1, 300);
  MPI_Win_allocate((MPI_Aint)(kThreads * operations * kPieces) * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &memory, &window);
  MPI_Type_vector(kPieces, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  for (int i = 0; i < threads; i++) make_part(&parts[i], i, (check_rank + 1) % check_size);
  MPI_Win_lock_all(0, window);
  all_ways(&parts[0]);
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, all_ways, &parts[i]);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  MPI_Win_unlock_all(window);
  for (int i = 0; i < threads; i++) {
    free(parts[i].out);
    free(parts[i].in);
  }
  MPI_Type_free(&every_second);
  MPI_Win_free(&window);
  return check_finish();
}
