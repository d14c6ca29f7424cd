// What the UCX programs in this directory share: two processes, a socket between them for addresses, keys and barriers,
// checks that name the process and line, content patterns, a time limit. Exit status: 0 verified, 1 wrong, 3 out of
// time.
#ifndef PORTOFU_TESTS_UCX_PAIR_H
#define PORTOFU_TESTS_UCX_PAIR_H

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int pair_rank;  // 0 or 1
static int pair_socket;
static pid_t pair_child;  // In rank 0.
static const char* pair_program;

#define CHECK(condition, ...)                                                       \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s: rank %d, line %d: ", pair_program, pair_rank, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                                                 \
      fprintf(stderr, "\n");                                                        \
      _exit(1);                                                                     \
    }                                                                               \
  } while (0)

#define UCX_OK(call)                                                                        \
  do {                                                                                      \
    const ucs_status_t ucx_ok_status = (call);                                              \
    CHECK(ucx_ok_status == UCS_OK, "%s gives %s", #call, ucs_status_string(ucx_ok_status)); \
  } while (0)

// For programs that have a `progress`.
#define UNTIL(condition)   \
  do {                     \
    while (!(condition)) { \
      progress();          \
    }                      \
  } while (0)

static inline void pair_out_of_time(int signal_number) {
  static const char text[] = "time limit of the program reached: it hangs\n";
  (void)signal_number;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
    _exit(4);
  }
  _exit(3);
}

// Before anything of UCX: it does not survive a fork.
static inline void pair_begin(const char* program, unsigned seconds) {
  int ends[2];
  pair_program = program;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no pair of sockets");
  pair_child = fork();
  CHECK(pair_child >= 0, "no second process");
  pair_rank = pair_child == 0;
  pair_socket = ends[pair_rank];
  close(ends[!pair_rank]);
  if (getenv("PAIR_FAR") != NULL) {
    // As if on two nodes, for the uTofu of this repository.
    setenv("PORTOFU_FABRIC", "1", 1);
    setenv("PORTOFU_NID", pair_rank == 0 ? "127.9.0.1" : "127.9.0.2", 1);
  }
  signal(SIGALRM, pair_out_of_time);
  alarm(seconds);
}

static inline void pair_send(const void* data, size_t bytes) {
  CHECK(write(pair_socket, data, bytes) == (ssize_t)bytes, "the socket takes nothing");
}

static inline void pair_receive(void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = read(pair_socket, (char*)data + done, bytes - done);
    CHECK(part > 0, "the other process is gone");
    done += (size_t)part;
  }
}

// Of any length: an address, a packed key.
static inline void pair_tell(const void* data, size_t bytes) {
  pair_send(&bytes, sizeof bytes);
  pair_send(data, bytes);
}

// What the other process has told, to be freed.
static inline void* pair_hear(void) {
  size_t bytes;
  pair_receive(&bytes, sizeof bytes);
  void* const data = malloc(bytes);
  pair_receive(data, bytes);
  return data;
}

// Both are here. Calls `progress` while it waits.
static inline void pair_meet(void (*progress)(void)) {
  struct pollfd other = {.fd = pair_socket, .events = POLLIN};
  char sign = '+';
  pair_send(&sign, 1);
  while (poll(&other, 1, 0) == 0) {
    progress();
  }
  pair_receive(&sign, 1);
  CHECK(sign == '+', "the socket is out of step");
}

// In rank 0, at the end: the other process has ended well.
static inline int pair_end(void) {
  int status = 0;
  if (pair_rank == 0) {
    CHECK(waitpid(pair_child, &status, 0) == pair_child, "no second process to wait for");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the second process ended with 0x%x", status);
    printf("%s: verified on 2\n", pair_program);
  }
  return 0;
}

static inline unsigned char pair_byte(uint64_t seed, size_t at) {
  const uint64_t mixed = (seed + at / 8 + 1) * 0x9E3779B97F4A7C15ull;
  return (unsigned char)(mixed >> (8 * (at % 8)));
}

static inline void pair_fill(void* data, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; i++) {
    ((unsigned char*)data)[i] = pair_byte(seed, i);
  }
}

#define CHECK_CONTENT(data, bytes, seed, ...)                                                                  \
  do {                                                                                                         \
    for (size_t check_at = 0; check_at < (bytes); check_at++) {                                                \
      if (((const unsigned char*)(data))[check_at] != pair_byte((seed), check_at)) {                           \
        fprintf(stderr, "%s: rank %d, line %d: byte %zu of %zu is wrong: ", pair_program, pair_rank, __LINE__, \
                check_at, (size_t)(bytes));                                                                    \
        fprintf(stderr, __VA_ARGS__);                                                                          \
        fprintf(stderr, "\n");                                                                                 \
        _exit(1);                                                                                              \
      }                                                                                                        \
    }                                                                                                          \
  } while (0)

#endif
