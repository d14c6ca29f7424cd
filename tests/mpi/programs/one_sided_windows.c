// Kinds of windows and of synchronization: dynamic windows over stack, heap and static memory; windows that differ in
// size and unit from rank to rank; many windows at once, freed in another order; exclusive locks that everybody wants
// everywhere; shared locks held by all; post-start-complete-wait around a ring; request-based operations; 8 MiB moved
// by one call. Usage: one_sided_windows [LOCK_ROUNDS].
//
// Left out because of Open MPI's osc/portals4, whatever the library does: exclusive and shared locks that wait for each
// other (it unlocks by writing 0 and loses the count of a waiting reader), more than 8 requests at a time.
#include "check.h"

enum { kWords = 512, kWindows = 24, kRequests = 8, kRingRounds = 100, kLongWords = 1 << 20 };

static long static_words[kWords];

static long word_of(int rank, int i) { return (long)(check_mix((uint64_t)rank * 65536 + (uint64_t)i) >> 2); }

static int next_rank(void) { return (check_rank + 1) % check_size; }
static int previous_rank(void) { return (check_rank + check_size - 1) % check_size; }

// Puts to, adds to and gets from memory that the owner names by its address.
static void use_address(MPI_Win window, long* words, const char* kind) {
  MPI_Aint own_address, next_address;
  long own[kWords], back[kWords];
  const long one = 1;
  MPI_Get_address(words, &own_address);
  MPI_Sendrecv(&own_address, 1, MPI_AINT, previous_rank(), 1, &next_address, 1, MPI_AINT, next_rank(), 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < kWords; i++) {
    own[i] = word_of(check_rank, i);
    words[i] = -1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Put(own, kWords, MPI_LONG, next_rank(), next_address, kWords, MPI_LONG, window);
  MPI_Win_flush(next_rank(), window);
  MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), MPI_Aint_add(next_address, 8), 1, MPI_LONG, MPI_SUM, window);
  MPI_Win_flush(next_rank(), window);
  MPI_Get(back, kWords, MPI_LONG, next_rank(), next_address, kWords, MPI_LONG, window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kWords; i++) {
    CHECK(words[i] == word_of(previous_rank(), i) + (i == 1), "%s memory: word %d is %ld", kind, i, words[i]);
    CHECK(back[i] == own[i] + (i == 1), "%s memory: word %d came back as %ld", kind, i, back[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void dynamic_window(void) {
  long on_stack[kWords];
  long* on_heap = check_allocate(sizeof on_stack);
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_attach(window, static_words, sizeof static_words);
  MPI_Win_attach(window, on_stack, sizeof on_stack);
  MPI_Win_attach(window, on_heap, sizeof on_stack);
  use_address(window, static_words, "static");
  use_address(window, on_stack, "stack");
  use_address(window, on_heap, "heap");
  MPI_Win_detach(window, on_heap);
  MPI_Win_detach(window, on_stack);
  MPI_Win_detach(window, static_words);
  MPI_Win_free(&window);
  free(on_heap);
}

// Odd ranks expose nothing, even ranks expose words in units of 1, 3, 5... bytes.
static void uneven_windows(void) {
  const int bytes = check_rank % 2 == 0 ? kWords : 0;
  unsigned char* memory = check_allocate(kWords);
  MPI_Win window;
  memset(memory, 0xee, kWords);
  MPI_Win_create(memory, bytes, check_rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  for (int target = 0; target < check_size; target += 2) {
    const unsigned char mark = (unsigned char)(check_rank + 1);
    MPI_Put(&mark, 1, MPI_BYTE, target, check_rank, 1, MPI_BYTE, window);
  }
  MPI_Put(NULL, 0, MPI_BYTE, next_rank(), 0, 0, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  for (int rank = 0; check_rank % 2 == 0 && rank < check_size; rank++) {
    CHECK(memory[rank * (check_rank + 1)] == rank + 1, "the byte of rank %d is %d", rank,
          memory[rank * (check_rank + 1)]);
  }
  CHECK(check_rank % 2 == 0 || check_first_other(memory, kWords, 0xee) < 0, "memory outside the window was written");
  MPI_Win_free(&window);
  free(memory);
}

static void many_windows(void) {
  MPI_Win windows[kWindows];
  long* memory[kWindows];
  for (int w = 0; w < kWindows; w++) {
    MPI_Win_allocate(kWords * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory[w],
                     &windows[w]);
    memory[w][0] = -1;
    MPI_Win_fence(0, windows[w]);
  }
  for (int w = 0; w < kWindows; w++) {
    const long value = w * 1000 + check_rank;
    MPI_Put(&value, 1, MPI_LONG, next_rank(), w, 1, MPI_LONG, windows[w]);
    MPI_Win_fence(0, windows[w]);
  }
  for (int step = 0; step < kWindows; step++) {
    const int w = step * 7 % kWindows;
    CHECK(memory[w][w] == w * 1000 + previous_rank(), "window %d holds %ld", w, memory[w][w]);
    MPI_Win_free(&windows[w]);
  }
}

// Everybody adds to everybody's word by get and put: two who hold the lock at the same time lose an update.
static void exclusive_locks(long rounds) {
  long* memory;
  MPI_Win window;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memory[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (long round = 0; round < rounds; round++) {
    for (int step = 0; step < check_size; step++) {
      const int target = (check_rank + step) % check_size;
      long value = -1;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
      MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, window);
      MPI_Win_flush(target, window);
      value++;
      MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, window);
      MPI_Win_unlock(target, window);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, window);
  CHECK(memory[0] == rounds * check_size, "%ld updates instead of %ld", memory[0], rounds * check_size);
  MPI_Win_unlock(check_rank, window);
  MPI_Win_free(&window);
}

// All ranks hold the shared lock of all at the same time: nobody leaves before everybody is in.
static void shared_locks(void) {
  long *memory, sum = 0;
  MPI_Win window;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memory[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int target = 0; target < check_size; target++) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int target = 0; target < check_size; target++) {
    const long one = 1;
    MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, window);
  }
  for (int target = 0; target < check_size; target++) {
    MPI_Win_unlock(target, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
  sum = memory[0];
  MPI_Win_unlock(check_rank, window);
  CHECK(sum == check_size, "%ld of %d ranks were counted", sum, check_size);
  MPI_Win_free(&window);
}

// Everybody exposes to the left and writes to the right.
static void ring_of_epochs(void) {
  const int right = next_rank(), left = previous_rank();
  MPI_Group world, right_group, left_group;
  long* memory;
  MPI_Win window;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &right, &right_group);
  MPI_Group_incl(world, 1, &left, &left_group);
  for (long round = 0; round < kRingRounds; round++) {
    const long value = round * 100 + check_rank;
    MPI_Win_post(left_group, 0, window);
    MPI_Win_start(right_group, 0, window);
    MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    CHECK(memory[0] == round * 100 + left, "round %ld of the ring: the word is %ld", round, memory[0]);
  }
  MPI_Group_free(&left_group);
  MPI_Group_free(&right_group);
  MPI_Group_free(&world);
  MPI_Win_free(&window);
}

static void request_based(void) {
  long *memory, own[kRequests], back[kRequests];
  MPI_Request requests[kRequests];
  MPI_Win window;
  MPI_Win_allocate(kRequests * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kRequests; i++) {
    own[i] = word_of(check_rank, i);
    MPI_Rput(&own[i], 1, MPI_LONG, next_rank(), i, 1, MPI_LONG, window, &requests[i]);
  }
  MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE);
  MPI_Win_flush_all(window);
  for (int i = 0; i < kRequests; i++) {
    MPI_Rget(&back[i], 1, MPI_LONG, next_rank(), i, 1, MPI_LONG, window, &requests[i]);
  }
  MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE);
  MPI_Win_unlock_all(window);
  for (int i = 0; i < kRequests; i++) {
    CHECK(back[i] == own[i], "request %d brought %ld", i, back[i]);
  }
  MPI_Win_free(&window);
}

static void long_transfers(void) {
  const size_t bytes = kLongWords * sizeof(long);
  char *memory, *own = check_allocate(bytes);
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  check_fill(own, bytes, (uint64_t)check_rank);
  MPI_Win_fence(0, window);
  MPI_Put(own, (int)bytes, MPI_BYTE, next_rank(), 0, (int)bytes, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  CHECK_CONTENT(memory, bytes, (uint64_t)previous_rank(), "put of 8 MiB");
  memset(own, 0, bytes);
  MPI_Win_fence(0, window);
  MPI_Get(own, (int)bytes, MPI_BYTE, next_rank(), 0, (int)bytes, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  CHECK_CONTENT(own, bytes, (uint64_t)check_rank, "get of 8 MiB");
  MPI_Win_free(&window);
  free(own);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "one_sided_windows", 120);
  const long lock_rounds = check_argument(argc, argv, 1, 50);
  dynamic_window();
  uneven_windows();
  many_windows();
  exclusive_locks(lock_rounds);
  shared_locks();
  ring_of_epochs();
  request_based();
  long_transfers();
  return check_finish();
}
