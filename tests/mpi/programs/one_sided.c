// One-sided communication: put, get and accumulate between fences, by post-start-complete-wait, and under locks with
// flush; fetch-and-op and compare-and-swap that all ranks throw at rank 0 at once.
#include "check.h"

enum { kWords = 3000, kRounds = 200 };

static long* memory;
static MPI_Win window;

static long word_of(int rank, int i) { return (long)(check_mix((uint64_t)rank * 65536 + (uint64_t)i) >> 2); }

static void put_and_get_between_fences(void) {
  const int next = (check_rank + 1) % check_size;
  const int previous = (check_rank + check_size - 1) % check_size;
  long* own = check_allocate(kWords * sizeof(long));
  long* back = check_allocate(kWords * sizeof(long));
  for (int i = 0; i < kWords; i++) {
    own[i] = word_of(check_rank, i);
    memory[i] = -1;
  }
  MPI_Win_fence(0, window);
  MPI_Put(own, kWords, MPI_LONG, next, 0, kWords, MPI_LONG, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kWords; i++) {
    CHECK(memory[i] == word_of(previous, i), "word %d of a put is %ld", i, memory[i]);
  }
  MPI_Get(back, kWords, MPI_LONG, next, 0, kWords, MPI_LONG, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kWords; i++) {
    CHECK(back[i] == own[i], "word %d of a get is %ld", i, back[i]);
  }
  free(back);
  free(own);
}

static void accumulate_from_all(void) {
  long* own = check_allocate(kWords * sizeof(long));
  for (int i = 0; i < kWords; i++) {
    own[i] = check_rank + i;
    memory[i] = 5;
  }
  MPI_Win_fence(0, window);
  for (int target = 0; target < check_size; target++) {
    MPI_Accumulate(own, kWords, MPI_LONG, target, 0, kWords, MPI_LONG, MPI_SUM, window);
  }
  MPI_Win_fence(0, window);
  for (int i = 0; i < kWords; i++) {
    const long sum = 5 + (long)check_size * i + (long)check_size * (check_size - 1) / 2;
    CHECK(memory[i] == sum, "word %d of an accumulate is %ld instead of %ld", i, memory[i], sum);
  }
  MPI_Win_fence(0, window);
  free(own);
}

// Even ranks expose, odd ranks write into their left neighbour.
static void post_start_complete_wait(void) {
  MPI_Group world, peer_group;
  const int peer = check_rank ^ 1;
  if (check_size % 2 != 0) {
    return;
  }
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &peer, &peer_group);
  for (long round = 0; round < kRounds; round++) {
    if (check_rank % 2 == 0) {
      memory[1] = -1;
      MPI_Win_post(peer_group, 0, window);
      MPI_Win_wait(window);
      CHECK(memory[1] == round * 10 + peer, "round %ld: exposed word is %ld", round, memory[1]);
    } else {
      const long value = round * 10 + check_rank;
      MPI_Win_start(peer_group, 0, window);
      MPI_Put(&value, 1, MPI_LONG, peer, 1, 1, MPI_LONG, window);
      MPI_Win_complete(window);
    }
  }
  MPI_Group_free(&peer_group);
  MPI_Group_free(&world);
}

// A plain read and write under an exclusive lock: lost updates show when the lock lets two in.
static void count_under_locks(void) {
  memory[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < kRounds; round++) {
    long value = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    value++;
    MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    CHECK(memory[0] == (long)check_size * kRounds, "%ld updates instead of %d", memory[0], check_size * kRounds);
    memory[0] = 0;
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Each of the tickets is drawn by exactly one rank, and each rank draws them in rising order.
static void draw_tickets(void) {
  const long one = 1;
  long last = -1, sum = 0, total = 0;
  const long tickets = (long)check_size * kRounds;
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < kRounds; round++) {
    long ticket = -1;
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    CHECK(ticket > last && ticket < tickets, "ticket %ld after %ld", ticket, last);
    last = ticket;
    sum += ticket;
  }
  MPI_Win_unlock_all(window);
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(total == tickets * (tickets - 1) / 2, "the tickets add up to %ld: one was drawn twice", total);
}

// Adds by compare-and-swap until it succeeds.
static void add_by_compare_and_swap(void) {
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    memory[0] = 0;
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < kRounds / 4; round++) {
    long expected = 0, found = -1;
    while (1) {
      const long wanted = expected + 1;
      MPI_Compare_and_swap(&wanted, &expected, &found, MPI_LONG, 0, 0, window);
      MPI_Win_flush(0, window);
      if (found == expected) {
        break;
      }
      expected = found;
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    CHECK(memory[0] == (long)check_size * (kRounds / 4), "compare-and-swap counted %ld", memory[0]);
    MPI_Win_unlock(0, window);
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "one_sided", 240);
  memory = check_allocate(kWords * sizeof(long));
  MPI_Win_create(memory, kWords * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  put_and_get_between_fences();
  accumulate_from_all();
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  post_start_complete_wait();
  count_under_locks();
  draw_tickets();
  add_by_compare_and_swap();
  MPI_Win_free(&window);
  free(memory);
  return check_finish();
}
