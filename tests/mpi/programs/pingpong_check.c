// Ping-pong between neighbours (0-1, 2-3, …) of every power of two and its neighbours, 0 B to 4 MiB, each byte checked
// at both ends, and the bytes around the buffer too. Usage: pingpong_check [LARGEST_BYTES].
#include "check.h"

enum { kGuardBytes = 64, kGuardValue = 0xA5 };

static unsigned char* buffer_with_guards;
static unsigned char* payload;

// A fresh receive buffer: old content must not look like the answer.
static void spoil(size_t bytes) {
  memset(buffer_with_guards, kGuardValue, kGuardBytes);
  memset(payload, 0, bytes);
  memset(payload + bytes, kGuardValue, kGuardBytes);
}

static void check_guards(size_t bytes) {
  CHECK(check_first_other(buffer_with_guards, kGuardBytes, kGuardValue) < 0, "bytes before a buffer of %zu", bytes);
  CHECK(check_first_other(payload + bytes, kGuardBytes, kGuardValue) < 0, "bytes after a buffer of %zu", bytes);
}

static void send_pattern(size_t bytes, int peer, int tag) {
  check_fill(payload, bytes, bytes * 4 + (unsigned)tag);
  MPI_Send(payload, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
}

static void receive_pattern(size_t bytes, int peer, int tag) {
  MPI_Status status;
  spoil(bytes);
  MPI_Recv(payload, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, peer, tag, bytes);
  CHECK_CONTENT(payload, bytes, bytes * 4 + (unsigned)tag, "ping-pong of %zu bytes, tag %d", bytes, tag);
  check_guards(bytes);
}

static void exchange(size_t bytes) {
  const int peer = check_rank ^ 1;
  if (check_rank % 2 == 0) {
    send_pattern(bytes, peer, 1);
    receive_pattern(bytes, peer, 2);
  } else {
    receive_pattern(bytes, peer, 1);
    send_pattern(bytes, peer, 2);
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "pingpong_check", 300);
  const size_t largest = (size_t)check_argument(argc, argv, 1, 4l << 20);
  if (check_size % 2 != 0) {
    return check_skip("ping-pong wants an even number of ranks");
  }
  buffer_with_guards = check_allocate(largest + 2 * kGuardBytes);
  payload = buffer_with_guards + kGuardBytes;
  exchange(0);
  for (size_t size = 1; size <= largest; size *= 2) {
    if (size > 4) {
      exchange(size - 1);
    }
    exchange(size);
    if (size > 2 && size + 1 <= largest) {
      exchange(size + 1);
    }
  }
  free(buffer_with_guards);
  return check_finish();
}
