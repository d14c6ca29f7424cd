// One-sided synchronization where ranks are ahead of each other: posts of an epoch that nobody has started yet, of
// ranks that are started to later, and without checks; MPI_Win_test before and after completion; exclusive and shared
// locks that exclude each other, and several targets locked at a time. Usage: one_sided_epochs [ROUNDS].
#include "check.h"

enum { kCells = 4, kCounter = 0, kLeft = 1, kRight = 2 };

static MPI_Win window;
static long* memory;

static MPI_Group group_of(int count, const int* ranks) {
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, count, ranks, &group);
  MPI_Group_free(&world);
  return group;
}

// Ranks 1 and 2 expose their windows to rank 0 at once, round after round; rank 0 takes them one after the other, the
// last first, and late. What it puts must lie there when the exposure ends, and never before it begins.
static void posts_that_come_early(long rounds) {
  for (long round = 0; round < rounds; round++) {
    if (check_rank == 0) {
      for (int target = 2; target >= 1; target--) {
        const long value = round * 10 + target;
        MPI_Group group = group_of(1, &target);
        MPI_Win_start(group, 0, window);
        MPI_Put(&value, 1, MPI_LONG, target, kCounter, 1, MPI_LONG, window);
        MPI_Win_complete(window);
        MPI_Group_free(&group);
      }
    } else if (check_rank <= 2) {
      const int origin = 0;
      MPI_Group group = group_of(1, &origin);
      memory[kCounter] = -1;
      MPI_Win_post(group, 0, window);
      if (check_rank == 2) {
        int done = 0;
        while (!done) {
          done = 77;  // It has to be set, whatever the answer is.
          MPI_Win_test(window, &done);
          CHECK(done == 0 || done == 1, "MPI_Win_test left its flag at %d", done);
        }
      } else {
        MPI_Win_wait(window);
      }
      CHECK(memory[kCounter] == round * 10 + check_rank, "round %ld: %ld after the exposure", round, memory[kCounter]);
      MPI_Group_free(&group);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// With MPI_MODE_NOCHECK the post has to be over before the start, which a barrier sees to.
static void posts_without_checks(long rounds) {
  for (long round = 0; round < rounds; round++) {
    const int target = 1, origin = 0;
    const long value = 100 + round;
    if (check_rank == target) {
      MPI_Group group = group_of(1, &origin);
      memory[kCounter] = -1;
      MPI_Win_post(group, MPI_MODE_NOCHECK, window);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Win_wait(window);
      CHECK(memory[kCounter] == value, "round %ld: %ld after an exposure without checks", round, memory[kCounter]);
      MPI_Group_free(&group);
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
      if (check_rank == origin) {
        MPI_Group group = group_of(1, &target);
        MPI_Win_start(group, MPI_MODE_NOCHECK, window);
        usleep(200);
        MPI_Put(&value, 1, MPI_LONG, target, kCounter, 1, MPI_LONG, window);
        MPI_Win_complete(window);
        MPI_Group_free(&group);
      }
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// All but rank 0 change two cells of rank 0: who has the exclusive lock makes them differ for a moment, who has a
// shared lock must not see that. No change may be lost.
static void locks_that_exclude(long rounds) {
  long expected = 0;
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    memset(memory, 0, kCells * sizeof *memory);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (long round = 0; check_rank > 0 && round < rounds; round++) {
    long cells[kCells];
    const int exclusive = (round + check_rank) % 2;
    MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(cells, kCells, MPI_LONG, 0, 0, kCells, MPI_LONG, window);
    MPI_Win_flush(0, window);
    CHECK(cells[kLeft] == cells[kRight], "round %ld: a lock let somebody in: %ld and %ld", round, cells[kLeft],
          cells[kRight]);
    if (exclusive) {
      const long more = cells[kLeft] + 1;
      MPI_Put(&more, 1, MPI_LONG, 0, kLeft, 1, MPI_LONG, window);
      MPI_Win_flush(0, window);
      MPI_Put(&more, 1, MPI_LONG, 0, kRight, 1, MPI_LONG, window);
    }
    MPI_Win_unlock(0, window);
  }
  for (int rank = 1; rank < check_size; rank++) {
    for (long round = 0; round < rounds; round++) {
      expected += (round + rank) % 2;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    CHECK(memory[kLeft] == expected && memory[kRight] == expected, "%ld and %ld after %ld changes", memory[kLeft],
          memory[kRight], expected);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// An unlock of one target does not end the access to another.
static void locks_of_several_targets(void) {
  const int next = (check_rank + 1) % check_size;
  long value = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
  MPI_Win_unlock(check_rank, window);
  MPI_Get(&value, 1, MPI_LONG, next, kCounter, 1, MPI_LONG, window);
  MPI_Win_flush(next, window);
  MPI_Win_unlock(next, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "one_sided_epochs", 120);
  const long rounds = check_argument(argc, argv, 1, 200);
  if (check_size < 3) {
    return check_skip("this wants three ranks");
  }
  MPI_Win_allocate(kCells * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  posts_that_come_early(rounds);
  posts_without_checks(rounds);
  locks_that_exclude(rounds);
  locks_of_several_targets();
  MPI_Win_free(&window);
  return check_finish();
}
