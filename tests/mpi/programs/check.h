// What the MPI programs in this directory share: checks that name rank and line, content patterns, a time limit, and
// the exit status: 0 verified, 1 wrong, 3 out of time, 77 not applicable (the line that starts with SKIP says why).
#ifndef PORTOFU_TESTS_MPI_CHECK_H
#define PORTOFU_TESTS_MPI_CHECK_H

#include <mpi.h>

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_rank;
static int check_size;
static const char* check_program;

// Ends the whole job when a statement about the results does not hold.
#define CHECK(condition, ...)                                                         \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s: rank %d, line %d: ", check_program, check_rank, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                                                   \
      fprintf(stderr, "\n");                                                          \
      fflush(stderr);                                                                 \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
      _exit(1);                                                                       \
    }                                                                                 \
  } while (0)

// Runs in a signal handler, so it may only write and leave.
static inline void check_out_of_time(int signal_number) {
  static const char text[] = "time limit of the program reached: it hangs\n";
  (void)signal_number;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
    _exit(4);
  }
  _exit(3);
}

// A hang must end as a failure by itself, also without a runner. PORTOFU_TEST_SECONDS overrides the limit.
static inline void check_limit_time(unsigned seconds) {
  const char* wish = getenv("PORTOFU_TEST_SECONDS");
  signal(SIGALRM, check_out_of_time);
  alarm(wish != NULL ? (unsigned)strtoul(wish, NULL, 10) : seconds);
}

static inline int check_begin_threaded(int* argc, char*** argv, const char* program, unsigned seconds, int level) {
  int provided = 0;
  check_program = program;
  check_limit_time(seconds);
  MPI_Init_thread(argc, argv, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  return provided;
}

static inline void check_begin(int* argc, char*** argv, const char* program, unsigned seconds) {
  check_begin_threaded(argc, argv, program, seconds, MPI_THREAD_SINGLE);
}

// Everybody has got here, so everything was verified. The value is main's.
static inline int check_finish(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    printf("%s: verified on %d ranks\n", check_program, check_size);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}

// The program cannot say anything here, for example because it wants more ranks.
static inline int check_skip(const char* reason) {
  if (check_rank == 0) {
    printf("SKIP: %s\n", reason);
    fflush(stdout);
  }
  MPI_Finalize();
  return 77;
}

// The argument at `index` as a number, or `fallback` when it is not given.
static inline long check_argument(int argc, char** argv, int index, long fallback) {
  char* end = NULL;
  long value;
  if (index >= argc) {
    return fallback;
  }
  errno = 0;
  value = strtol(argv[index], &end, 10);
  CHECK(errno == 0 && end != argv[index] && *end == '\0' && value >= 0, "argument %d is no count: %s", index,
        argv[index]);
  return value;
}

static inline void* check_allocate(size_t bytes) {
  void* memory = malloc(bytes > 0 ? bytes : 1);
  CHECK(memory != NULL, "out of memory: %zu bytes", bytes);
  return memory;
}

// Bijective mixing of 64 bits (the finaliser of splitmix64): neighbouring seeds and positions look unrelated, so a
// message in the wrong place, or shifted, does not pass.
static inline uint64_t check_mix(uint64_t value) {
  value += UINT64_C(0x9e3779b97f4a7c15);
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

// Fills `bytes` bytes with the pattern of `seed`; word i depends on seed and i only.
static inline void check_fill(void* buffer, size_t bytes, uint64_t seed) {
  unsigned char* to = buffer;
  const uint64_t base = check_mix(seed);
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = check_mix(base ^ at);
    memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

// The offset of the first byte that is not the pattern of `seed`, or -1.
static inline long check_first_difference(const void* buffer, size_t bytes, uint64_t seed) {
  const unsigned char* from = buffer;
  const uint64_t base = check_mix(seed);
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = check_mix(base ^ at);
    const size_t part = bytes - at < 8 ? bytes - at : 8;
    if (memcmp(from + at, &word, part) != 0) {
      for (size_t i = 0; i < part; i++) {
        if (from[at + i] != ((const unsigned char*)&word)[i]) {
          return (long)(at + i);
        }
      }
    }
  }
  return -1;
}

// The offset of the first byte that is not `value`, or -1: for memory that nobody may have written.
static inline long check_first_other(const void* buffer, size_t bytes, unsigned char value) {
  const unsigned char* from = buffer;
  for (size_t at = 0; at < bytes; at++) {
    if (from[at] != value) {
      return (long)at;
    }
  }
  return -1;
}

#define CHECK_CONTENT(buffer, bytes, seed, ...)                                                        \
  do {                                                                                                 \
    const long check_at = check_first_difference((buffer), (bytes), (seed));                           \
    char check_text[160];                                                                              \
    snprintf(check_text, sizeof check_text, __VA_ARGS__);                                              \
    CHECK(check_at < 0, "wrong byte at offset %ld of %zu: %s", check_at, (size_t)(bytes), check_text); \
  } while (0)

// Where a message came from, what tag it had and how long it was.
#define CHECK_STATUS(status, source, tag, bytes)                                                                 \
  do {                                                                                                           \
    int check_count = -1;                                                                                        \
    MPI_Get_count(&(status), MPI_BYTE, &check_count);                                                            \
    CHECK((status).MPI_SOURCE == (source) && (status).MPI_TAG == (tag) && check_count == (int)(bytes),           \
          "status says source %d, tag %d, %d bytes; expected %d, %d, %d", (status).MPI_SOURCE, (status).MPI_TAG, \
          check_count, (int)(source), (int)(tag), (int)(bytes));                                                 \
  } while (0)

#endif
