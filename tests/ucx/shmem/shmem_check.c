// OpenSHMEM over UCX: each PE puts to the next and gets from the one before, all change one counter, one waits for a
// flag behind data, and collectives have the right results.
#include <shmem.h>
#include <stdio.h>

enum { kWords = 100000, kAdds = 1000 };

static int me, pes;

#define CHECK(condition, ...)                                           \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "shmem_check: rank %d, line %d: ", me, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                                     \
      fprintf(stderr, "\n");                                            \
      shmem_global_exit(1);                                             \
    }                                                                   \
  } while (0)

static long word_of(int pe, int at) { return pe * 1000000L + at; }

static void run_puts_and_gets(long* field, long* own) {
  static long source[kWords], target[kWords];
  const int next = (me + 1) % pes, before = (me + pes - 1) % pes;
  for (int i = 0; i < kWords; i++) {
    source[i] = own[i] = word_of(me, i);
    field[i] = -1;
  }
  shmem_barrier_all();
  shmem_long_put(field, source, kWords, next);
  shmem_quiet();
  shmem_barrier_all();
  shmem_long_get(target, own, kWords, before);
  for (int i = 0; i < kWords; i++) {
    CHECK(field[i] == word_of(before, i), "word %d of a put is %ld", i, field[i]);
    CHECK(target[i] == word_of(before, i), "word %d of a get is %ld", i, target[i]);
  }
}

static void run_counter(long* counter) {
  *counter = 0;
  shmem_barrier_all();
  for (int i = 0; i < kAdds; i++) {
    shmem_long_atomic_add(counter, 1, 0);
  }
  shmem_quiet();
  shmem_barrier_all();
  CHECK(me != 0 || *counter == (long)kAdds * pes, "the counter has %ld", *counter);
  shmem_barrier_all();
  const long old = shmem_long_atomic_fetch_inc(counter, 0);
  CHECK(old >= (long)kAdds * pes && old < (long)(kAdds + 1) * pes, "an increment found %ld", old);
  shmem_barrier_all();
}

// Whoever sees the flag sees the data that were put before it.
static void run_flags(long* field, long* flag) {
  static long source[100];
  const int next = (me + 1) % pes, before = (me + pes - 1) % pes;
  *flag = 0;
  shmem_barrier_all();
  for (long round = 1; round <= 200; round++) {
    for (int i = 0; i < 100; i++) {
      source[i] = word_of(me, i) + round;
    }
    shmem_long_put(field, source, 100, next);
    shmem_fence();
    shmem_long_p(flag, round, next);
    shmem_long_wait_until(flag, SHMEM_CMP_GE, round);
    for (int i = 0; i < 100; i++) {
      CHECK(field[i] == word_of(before, i) + round, "round %ld: word %d behind a flag is %ld", round, i, field[i]);
    }
    shmem_barrier_all();
  }
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  long* const field = shmem_malloc(kWords * sizeof(long));
  long* const own = shmem_malloc(kWords * sizeof(long));
  long* const word = shmem_malloc(sizeof(long));
  CHECK(field != NULL && own != NULL && word != NULL, "no symmetric memory");
  run_puts_and_gets(field, own);
  run_counter(word);
  run_flags(field, word);
  if (me == 0) {
    printf("shmem_check: verified on %d\n", pes);
  }
  shmem_finalize();
  return 0;
}
