// What molecular dynamics does: each process owns a part of a periodic box. In each step particles move, go over to
// their new owners, and copies of those near a border go to whom they are near. Several threads share the exchange,
// each with a VCQ of its own, two of which share a CQ; how long a list is, is told by the address in its notice alone
// (a list may be empty). Every process can compute every path, so it knows exactly what it must have got. Usage:
// particle_halo [STEPS]
#include <pthread.h>

#include "utofu_check.h"

enum { kThreads = 4, kParticles = 4096, kMaxRanks = 8, kBox = 1 << 16, kCutoff = 6000 };

struct particle {
  uint32_t id;
  uint32_t at[3];
};

struct list {
  size_t count;
  struct particle entries[kParticles];
};

// What peers write: a list for each source and turn.
static struct particle arrived[2][kMaxRanks][kParticles];
static struct list outgoing[kMaxRanks];
static struct list mine, ghosts;

struct exchanger {
  utofu_vcq_hdl_t vcq;
  utofu_stadd_t outgoing_stadd;
  utofu_stadd_t arrived_stadd;
  struct place places[kMaxRanks];    // The VCQs and `arrived` of the threads with the same number.
  long arrived_count[2][kMaxRanks];  // Particles in a list that is here, or -1.
  pthread_t thread;
  int number;
};

static struct exchanger exchangers[kThreads];
static pthread_barrier_t round_begins, round_ends;
static long round_number;  // -1 ends the threads.
static int grid[3];

static void trajectory(uint32_t id, long step, struct particle* particle) {
  particle->id = id;
  for (uint32_t d = 0; d < 3; d++) {
    const uint64_t random = check_mix((uint64_t)id * 3 + d);
    const uint64_t speed = random >> 40 & 4095;  // At most a sixteenth of the box in a step.
    particle->at[d] = (uint32_t)((random + speed * (uint64_t)step) % kBox);
  }
}

static int owner_of(const struct particle* particle) {
  int rank = 0;
  for (int d = 2; d >= 0; d--) {
    rank = rank * grid[d] + (int)(particle->at[d] / (uint32_t)(kBox / grid[d]));
  }
  return rank;
}

// How far a position is from the part of the box that the process at `cell` of this dimension owns, the ends joined.
static int distance(uint32_t at, int d, int cell) {
  const int side = kBox / grid[d], first = cell * side, last = first + side - 1;
  const int position = (int)at;
  if (position >= first && position <= last) {
    return 0;
  }
  const int below = (first - position + kBox) % kBox, above = (position - last + kBox) % kBox;
  return below < above ? below : above;
}

static int is_ghost_of(const struct particle* particle, int rank) {
  int rest = rank;
  for (int d = 0; d < 3; d++) {
    if (distance(particle->at[d], d, rest % grid[d]) > kCutoff) {
      return 0;
    }
    rest /= grid[d];
  }
  return owner_of(particle) != rank;
}

static void append(struct list* list, const struct particle* particle) {
  CHECK(list->count < kParticles, "too many particles");
  list->entries[list->count++] = *particle;
}

// Which thread serves a pair of ranks; both sides get the same answer.
static int thread_of(int one, int other) { return (one + other) % kThreads; }

static void send_lists(struct exchanger* e, int turn) {
  int posted = 0;
  for (int rank = 0; rank < check_size; rank++) {
    if (rank == check_rank || thread_of(rank, check_rank) != e->number) {
      continue;
    }
    const utofu_stadd_t from = e->outgoing_stadd + (utofu_stadd_t)((char*)outgoing[rank].entries - (char*)outgoing);
    const utofu_stadd_t to = e->places[rank].stadd + (utofu_stadd_t)((char*)arrived[turn][check_rank] - (char*)arrived);
    UTOFU_OK(utofu_put(e->vcq, e->places[rank].vcq_id, from, to, outgoing[rank].count * sizeof(struct particle),
                       (uint64_t)(turn * kMaxRanks + check_rank),
                       UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, NULL));
    posted++;
  }
  while (posted-- > 0) {
    wait_tcq(e->vcq);
  }
}

// Waits for the lists of this turn; those of the next may come early.
static void receive_lists(struct exchanger* e, int turn) {
  for (int rank = 0; rank < check_size; rank++) {
    if (rank == check_rank || thread_of(rank, check_rank) != e->number) {
      continue;
    }
    while (e->arrived_count[turn][rank] < 0) {
      const struct utofu_mrq_notice notice = wait_mrq(e->vcq, UTOFU_MRQ_TYPE_RMT_PUT);
      const int at = (int)(notice.edata / kMaxRanks), source = (int)(notice.edata % kMaxRanks);
      const utofu_stadd_t begin = e->arrived_stadd + (utofu_stadd_t)((char*)arrived[at][source] - (char*)arrived);
      const uint64_t bytes = notice.rmt_stadd - begin;
      CHECK(at < 2 && source < check_size && e->arrived_count[at][source] < 0, "a list too many of rank %d", source);
      CHECK(notice.vcq_id == e->places[source].vcq_id, "the list of rank %d comes from another VCQ", source);
      CHECK(bytes % sizeof(struct particle) == 0 && bytes <= sizeof arrived[at][source], "a list of %lu bytes",
            (unsigned long)bytes);
      e->arrived_count[at][source] = (long)(bytes / sizeof(struct particle));
    }
  }
}

static void* exchange(void* argument) {
  struct exchanger* e = argument;
  for (;;) {
    pthread_barrier_wait(&round_begins);
    if (round_number < 0) {
      return NULL;
    }
    send_lists(e, (int)(round_number % 2));
    receive_lists(e, (int)(round_number % 2));
    pthread_barrier_wait(&round_ends);
  }
}

// Sends `outgoing` and appends to `to` what came.
static void run_round(struct list* to) {
  const int turn = (int)(round_number % 2);
  pthread_barrier_wait(&round_begins);
  pthread_barrier_wait(&round_ends);
  for (int rank = 0; rank < check_size; rank++) {
    outgoing[rank].count = 0;
    if (rank == check_rank) {
      continue;
    }
    long* const count = &exchangers[thread_of(rank, check_rank)].arrived_count[turn][rank];
    for (long i = 0; i < *count; i++) {
      append(to, &arrived[turn][rank][i]);
    }
    *count = -1;
  }
  round_number++;
}

// Each particle of the list is where it must be at this step, and is one of those that are wanted; none is missing.
static void check_list(const struct list* list, long step, int (*is_wanted)(const struct particle*, int)) {
  static unsigned char seen[kParticles];
  size_t wanted = 0;
  memset(seen, 0, sizeof seen);
  for (size_t i = 0; i < list->count; i++) {
    const struct particle* const entry = &list->entries[i];
    struct particle expected;
    CHECK(entry->id < kParticles && !seen[entry->id], "step %ld: particle %u is there twice", step, entry->id);
    seen[entry->id] = 1;
    trajectory(entry->id, step, &expected);
    CHECK(memcmp(entry, &expected, sizeof expected) == 0, "step %ld: particle %u is at the wrong place", step,
          entry->id);
    CHECK(is_wanted(entry, check_rank), "step %ld: particle %u does not belong here", step, entry->id);
  }
  for (uint32_t id = 0; id < kParticles; id++) {
    struct particle particle;
    trajectory(id, step, &particle);
    wanted += (size_t)is_wanted(&particle, check_rank);
  }
  CHECK(list->count == wanted, "step %ld: %zu particles, not %zu", step, list->count, wanted);
}

static int is_owned_by(const struct particle* particle, int rank) { return owner_of(particle) == rank; }

static void run_step(long step) {
  size_t kept = 0;
  for (size_t i = 0; i < mine.count; i++) {
    struct particle particle;
    trajectory(mine.entries[i].id, step, &particle);
    const int owner = owner_of(&particle);
    if (owner == check_rank) {
      mine.entries[kept++] = particle;
    } else {
      append(&outgoing[owner], &particle);
    }
  }
  mine.count = kept;
  run_round(&mine);
  check_list(&mine, step, is_owned_by);
  for (size_t i = 0; i < mine.count; i++) {
    for (int rank = 0; rank < check_size; rank++) {
      if (is_ghost_of(&mine.entries[i], rank)) {
        append(&outgoing[rank], &mine.entries[i]);
      }
    }
  }
  ghosts.count = 0;
  run_round(&ghosts);
  check_list(&ghosts, step, is_ghost_of);
}

static void open_exchangers(void) {
  size_t tni_count;
  utofu_tni_id_t* tnis = all_tnis(&tni_count);
  pthread_barrier_init(&round_begins, NULL, kThreads + 1);
  pthread_barrier_init(&round_ends, NULL, kThreads + 1);
  for (int i = 0; i < kThreads; i++) {
    struct exchanger* const e = &exchangers[i];
    e->number = i;
    memset(e->arrived_count, -1, sizeof e->arrived_count);
    UTOFU_OK(utofu_create_vcq(tnis[(size_t)(i / 2) % tni_count], UTOFU_VCQ_FLAG_THREAD_SAFE, &e->vcq));
    UTOFU_OK(utofu_reg_mem(e->vcq, outgoing, sizeof outgoing, UTOFU_REG_MEM_FLAG_READ_ONLY, &e->outgoing_stadd));
    share_place(e->vcq, arrived, sizeof arrived, e->places);
    e->arrived_stadd = e->places[check_rank].stadd;
    CHECK(pthread_create(&e->thread, NULL, exchange, e) == 0, "no thread");
  }
  free(tnis);
}

static void close_exchangers(void) {
  round_number = -1;
  pthread_barrier_wait(&round_begins);
  for (int i = 0; i < kThreads; i++) {
    struct exchanger* const e = &exchangers[i];
    pthread_join(e->thread, NULL);
    check_queues_empty(e->vcq);
    UTOFU_OK(utofu_dereg_mem(e->vcq, e->outgoing_stadd, 0));
    UTOFU_OK(utofu_dereg_mem(e->vcq, e->arrived_stadd, 0));
    UTOFU_OK(utofu_free_vcq(e->vcq));
  }
}

int main(int argc, char** argv) {
  check_begin_threaded(&argc, &argv, "particle_halo", 90, MPI_THREAD_FUNNELED);
  const long steps = check_argument(argc, argv, 1, 20);
  if (check_size > kMaxRanks || (check_size & (check_size - 1)) != 0) {
    return check_skip("the box is cut into 1, 2, 4 or 8 parts");
  }
  for (int d = 0, left = check_size; d < 3; d++) {
    grid[d] = left > 1 ? 2 : 1;
    left /= grid[d];
  }
  for (uint32_t id = 0; id < kParticles; id++) {
    struct particle particle;
    trajectory(id, 0, &particle);
    if (owner_of(&particle) == check_rank) {
      append(&mine, &particle);
    }
  }
  open_exchangers();
  MPI_Barrier(MPI_COMM_WORLD);
  for (long step = 1; step <= steps; step++) {
    run_step(step);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  close_exchangers();
  return check_finish();
}
