// Several threads per rank play ping-pong at once: first each with a communicator of its own, then all on one
// communicator with tags of their own. Usage: thread_multiple [ROUNDS [THREADS]].
#include <pthread.h>

#include "check.h"

enum { kMostThreads = 16, kLargest = 20000 };

struct Player {
  int number;
  long rounds;
  MPI_Comm communicator;
};

// Lengths on both sides of the eager limit.
static size_t length_of(long round) { return (size_t)(round * 977 % kLargest); }

static uint64_t seed_of(const struct Player* player, long round, int direction) {
  return ((uint64_t)player->number << 40) + (uint64_t)round * 2 + (unsigned)direction;
}

static void receive_round(const struct Player* player, unsigned char* buffer, int peer, long round, int direction) {
  MPI_Status status;
  memset(buffer, 0, length_of(round));
  MPI_Recv(buffer, (int)length_of(round), MPI_BYTE, peer, player->number, player->communicator, &status);
  CHECK_STATUS(status, peer, player->number, length_of(round));
  CHECK_CONTENT(buffer, length_of(round), seed_of(player, round, direction), "thread %d, round %ld", player->number,
                round);
}

static void send_round(const struct Player* player, unsigned char* buffer, int peer, long round, int direction) {
  check_fill(buffer, length_of(round), seed_of(player, round, direction));
  MPI_Send(buffer, (int)length_of(round), MPI_BYTE, peer, player->number, player->communicator);
}

static void* play(void* argument) {
  const struct Player* player = argument;
  const int peer = check_rank ^ 1;
  unsigned char* buffer = check_allocate(kLargest);
  for (long round = 0; round < player->rounds; round++) {
    if (check_rank % 2 == 0) {
      send_round(player, buffer, peer, round, 0);
      receive_round(player, buffer, peer, round, 1);
    } else {
      receive_round(player, buffer, peer, round, 0);
      send_round(player, buffer, peer, round, 1);
    }
  }
  free(buffer);
  return NULL;
}

static void play_together(long threads, long rounds, int own_communicators) {
  struct Player players[kMostThreads];
  pthread_t ids[kMostThreads];
  for (int i = 0; i < threads; i++) {
    players[i] = (struct Player){.number = i, .rounds = rounds, .communicator = MPI_COMM_WORLD};
    if (own_communicators) {
      MPI_Comm_dup(MPI_COMM_WORLD, &players[i].communicator);
    }
  }
  for (int i = 0; i < threads; i++) {
    CHECK(pthread_create(&ids[i], NULL, play, &players[i]) == 0, "thread %d does not start", i);
  }
  for (int i = 0; i < threads; i++) {
    pthread_join(ids[i], NULL);
    if (own_communicators) {
      MPI_Comm_free(&players[i].communicator);
    }
  }
}

int main(int argc, char** argv) {
  const int provided = check_begin_threaded(&argc, &argv, "thread_multiple", 240, MPI_THREAD_MULTIPLE);
  const long rounds = check_argument(argc, argv, 1, 200);
  const long threads = check_argument(argc, argv, 2, 4);
  CHECK(threads <= kMostThreads, "at most %d threads", kMostThreads);
  if (provided < MPI_THREAD_MULTIPLE) {
    return check_skip("this MPI does not provide MPI_THREAD_MULTIPLE here");
  }
  if (check_size % 2 != 0) {
    return check_skip("ping-pong wants an even number of ranks");
  }
  play_together(threads, rounds, 1);
  play_together(threads, rounds, 0);
  return check_finish();
}
