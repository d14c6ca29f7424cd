// One-sided operations with requests: more of them under way than a list of eight, of data that is scattered at the
// origin, at the target and at both, beginning behind the address that is given; and an operation that Open MPI does
// not have, after which the window goes on. Usage: one_sided_requests [REQUESTS].
#include "check.h"

enum { kPieces = 40, kStride = 3, kFirst = 2, kWords = kFirst + kPieces * kStride };

static int* memory;
static MPI_Win window;

// Every third word, from the third on.
static MPI_Datatype scattered(void) {
  int lengths[kPieces], places[kPieces];
  MPI_Datatype type;
  for (int i = 0; i < kPieces; i++) {
    lengths[i] = 1;
    places[i] = kFirst + i * kStride;
  }
  MPI_Type_indexed(kPieces, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

// One piece, which begins behind the address.
static MPI_Datatype displaced(void) {
  const int length = kPieces, place = kFirst;
  MPI_Datatype type;
  MPI_Type_indexed(1, &length, &place, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static int place_in(int kind, int i) { return kind == 0 ? i : kind == 1 ? kFirst + i * kStride : kFirst + i; }

static void every_shape(void) {
  const MPI_Datatype types[3] = {MPI_INT, scattered(), displaced()};
  const int counts[3] = {kPieces, 1, 1};
  int own[kWords], back[kWords];
  for (int from = 0; from < 3; from++) {
    for (int to = 0; to < 3; to++) {
      MPI_Request request;
      for (int i = 0; i < kWords; i++) {
        own[i] = i + 1;
        back[i] = -1;
        memory[i] = 0;
      }
      MPI_Win_fence(0, window);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
      MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
      MPI_Rput(own, counts[from], types[from], check_rank, 0, counts[to], types[to], window, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Raccumulate(own, counts[from], types[from], check_rank, 0, counts[to], types[to], MPI_SUM, window, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Win_flush(check_rank, window);
      MPI_Rget(back, counts[from], types[from], check_rank, 0, counts[to], types[to], window, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int i = 0; i < kPieces; i++) {
        CHECK(
            memory[place_in(to, i)] == 2 * own[place_in(from, i)] && back[place_in(from, i)] == memory[place_in(to, i)],
            "shape %d to %d, item %d: %d there and %d back for %d", from, to, i, memory[place_in(to, i)],
            back[place_in(from, i)], own[place_in(from, i)]);
      }
      MPI_Raccumulate(own, counts[from], types[from], check_rank, 0, counts[to], types[to], MPI_REPLACE, window,
                      &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Win_flush(check_rank, window);
      MPI_Rget_accumulate(own, counts[from], types[from], back, counts[from], types[from], check_rank, 0, counts[to],
                          types[to], MPI_MAX, window, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Get_accumulate(own, counts[from], types[from], back, counts[from], types[from], check_rank, 0, counts[to],
                         types[to], MPI_REPLACE, window);
      MPI_Win_unlock(check_rank, window);
      for (int i = 0; i < kPieces; i++) {
        CHECK(memory[place_in(to, i)] == own[place_in(from, i)] && back[place_in(from, i)] == own[place_in(from, i)],
              "shape %d to %d, item %d is %d, and was %d", from, to, i, memory[place_in(to, i)],
              back[place_in(from, i)]);
      }
    }
  }
}

static void many_requests(long count) {
  const int next = (check_rank + 1) % check_size;
  MPI_Request* requests = check_allocate((size_t)count * sizeof(MPI_Request));
  int* values = check_allocate((size_t)count * sizeof(int));
  memory[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (long i = 0; i < count; i++) {
    values[i] = (int)i;
    MPI_Raccumulate(&values[i], 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, window, &requests[i]);
  }
  MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(memory[0] == (int)(count * (count - 1) / 2), "sum of %ld requests is %d", count, memory[0]);
  free(values);
  free(requests);
}

// What is refused must not be waited for.
static void refused_operation(void) {
  int own[2] = {1, 2}, result[2] = {0, 0};
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
  (void)MPI_Fetch_and_op(own, result, MPI_2INT, check_rank, 0, MPI_MAXLOC, window);
  MPI_Win_unlock(check_rank, window);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "one_sided_requests", 120);
  const long requests = check_argument(argc, argv, 1, 500);
  MPI_Win_allocate(kWords * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  every_shape();
  MPI_Barrier(MPI_COMM_WORLD);
  many_requests(requests);
  refused_operation();
  MPI_Win_free(&window);
  return check_finish();
}
