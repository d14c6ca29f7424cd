// What a transport module of UCX does with uTofu, with the twelve functions that it uses and no others (no path is set,
// no capability is asked for: limits are those of the guide's table 6.4): puts through bounce buffers, puts and gets of
// registered memory in pieces, atomics with and without a result, active messages with credits, flush, and queues that
// run full. A put's bounce buffer comes back with the TCQ; what is complete at the target is told by the MRQ, and EDATA
// says which operation it was.
// Usage: transport [ACTIVE_MESSAGES]
#include "utofu_check.h"

enum {
  kMaxRanks = 8,
  kLongestPut = 16777215,
  kOperations = 256,  // What EDATA can tell apart.
  kBounces = 32,
  kBounceBytes = 4096,
  kWindow = 1 << 20,
  kCredits = 16,
  kActiveBytes = 256
};

struct operation {
  int in_use;
  uint64_t* result;  // Where the old value of an atomic goes, or NULL.
  int type;          // Of the notice that ends it.
};

struct active_slot {
  uint64_t number;
  uint64_t bytes;
  unsigned char data[kActiveBytes - 16];
};

// What a process registers for its peers.
struct exposed {
  unsigned char windows[kMaxRanks][kWindow];
  struct active_slot slots[kMaxRanks][kCredits];
  uint64_t credits[kMaxRanks];  // Given back by each receiver.
  uint64_t added, ored, anded, xored, swapped, collected, flooded;
  uint32_t small_added;
};

static utofu_vcq_hdl_t vcq;
static struct exposed exposed;
static struct place peers[kMaxRanks];
static unsigned char bounces[kBounces][kBounceBytes];
static utofu_stadd_t bounces_stadd;
static unsigned char* free_bounces[kBounces];
static int free_bounce_count;
static struct operation operations[kOperations];
static int open_count;  // Operations whose MRQ notice is missing.
static uint64_t actives_received[kMaxRanks], actives_sent[kMaxRanks], credits_owed[kMaxRanks];

static utofu_stadd_t at(int rank, const void* field) {
  return peers[rank].stadd + (utofu_stadd_t)((const char*)field - (const char*)&exposed);
}

static uint64_t seed_of(int from, int to, uint64_t what) {
  return check_mix((uint64_t)from * 64 + (uint64_t)to) ^ what;
}

static void active_arrived(utofu_stadd_t end) {
  const size_t offset = end - 1 - peers[check_rank].stadd - offsetof(struct exposed, slots);
  const int from = (int)(offset / sizeof exposed.slots[0]);
  CHECK(from < check_size, "an active message in no slot");
  const struct active_slot* const slot = &exposed.slots[from][actives_received[from] % kCredits];
  CHECK(slot->number == actives_received[from], "active message %lu of rank %d, not %lu", (unsigned long)slot->number,
        from, (unsigned long)actives_received[from]);
  CHECK_CONTENT(slot->data, slot->bytes, seed_of(from, check_rank, slot->number), "active message");
  actives_received[from]++;
  credits_owed[from]++;
}

// Takes one notice of each queue. @return whether there was one
static int progress(void) {
  struct utofu_mrq_notice notice;
  void* bounce;
  int found = 0, rc = utofu_poll_tcq(vcq, 0, &bounce);
  CHECK(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_NOT_FOUND, "the TCQ says %d", rc);
  if (rc == UTOFU_SUCCESS) {
    found = 1;
    if (bounce != NULL) {
      free_bounces[free_bounce_count++] = bounce;
    }
  }
  rc = utofu_poll_mrq(vcq, 0, &notice);
  CHECK(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_NOT_FOUND, "the MRQ says %d", rc);
  if (rc == UTOFU_ERR_NOT_FOUND) {
    return found;
  }
  if (notice.notice_type == UTOFU_MRQ_TYPE_RMT_PUT) {
    active_arrived(notice.rmt_stadd);
    return 1;
  }
  struct operation* const operation = &operations[notice.edata];
  CHECK(operation->in_use && notice.notice_type == operation->type, "a notice of type %d for operation %lu",
        notice.notice_type, (unsigned long)notice.edata);
  if (operation->result != NULL) {
    *operation->result = notice.rmt_value;
  }
  operation->in_use = 0;
  open_count--;
  return 1;
}

static uint64_t open_operation(int type, uint64_t* result) {
  static uint64_t next;
  while (operations[next % kOperations].in_use) {
    progress();
  }
  operations[next % kOperations] = (struct operation){1, result, type};
  open_count++;
  return next++ % kOperations;
}

// Makes progress as long as there is no room. Every descriptor asks for both local notices.
#define POST(call)                                        \
  do {                                                    \
    int rc;                                               \
    while ((rc = (call)) == UTOFU_ERR_BUSY) {             \
      progress();                                         \
    }                                                     \
    CHECK(rc == UTOFU_SUCCESS, "%s gives %d", #call, rc); \
  } while (0)

static const unsigned long notices = UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;

static void put_copied(int rank, const void* data, size_t bytes, utofu_stadd_t to, unsigned long more_flags) {
  while (free_bounce_count == 0) {
    progress();
  }
  unsigned char* const bounce = free_bounces[--free_bounce_count];
  const uint64_t id = open_operation(UTOFU_MRQ_TYPE_LCL_PUT, NULL);
  memcpy(bounce, data, bytes);
  POST(utofu_put(vcq, peers[rank].vcq_id, bounces_stadd + (utofu_stadd_t)(bounce - bounces[0]), to, bytes, id,
                 notices | more_flags, bounce));
}

// A put or get of registered memory, in pieces as long as a descriptor can be.
static void move_registered(int is_get, int rank, utofu_stadd_t local, utofu_stadd_t remote, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const size_t part = bytes - done < kLongestPut ? bytes - done : kLongestPut;
    const uint64_t id = open_operation(is_get ? UTOFU_MRQ_TYPE_LCL_GET : UTOFU_MRQ_TYPE_LCL_PUT, NULL);
    if (is_get) {
      POST(utofu_get(vcq, peers[rank].vcq_id, local + done, remote + done, part, id, notices, NULL));
    } else {
      POST(utofu_put(vcq, peers[rank].vcq_id, local + done, remote + done, part, id, notices, NULL));
    }
    done += part;
  }
}

static void atomic64(int rank, enum utofu_armw_op op, uint64_t operand, const void* word, uint64_t* result) {
  const uint64_t id = open_operation(UTOFU_MRQ_TYPE_LCL_ARMW, result);
  POST(utofu_armw8(vcq, peers[rank].vcq_id, op, operand, at(rank, word), id, notices, NULL));
}

static void atomic32(int rank, enum utofu_armw_op op, uint32_t operand, const void* word, uint64_t* result) {
  const uint64_t id = open_operation(UTOFU_MRQ_TYPE_LCL_ARMW, result);
  POST(utofu_armw4(vcq, peers[rank].vcq_id, op, operand, at(rank, word), id, notices, NULL));
}

// Everything is complete at its target.
static void flush(void) {
  while (open_count > 0 || free_bounce_count < kBounces) {
    progress();
  }
}

static void flush_and_meet(void) {
  flush();
  MPI_Barrier(MPI_COMM_WORLD);
}

// All write to all, read it back, and look at what they got themselves.
static void run_windows(void) {
  static const size_t sizes[] = {1, 3, 8, 64, 255, 256, 257, 1000, 4096, 4097, 65536, 333333, kWindow - 16};
  static unsigned char buffer[kWindow];
  utofu_stadd_t buffer_stadd;
  UTOFU_OK(utofu_reg_mem(vcq, buffer, sizeof buffer, 0, &buffer_stadd));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const size_t bytes = sizes[i], shift = i % 16;
    for (int rank = 0; rank < check_size; rank++) {
      const utofu_stadd_t to = at(rank, exposed.windows[check_rank] + shift);
      check_fill(buffer, bytes, seed_of(check_rank, rank, i));
      if (bytes <= kBounceBytes) {
        put_copied(rank, buffer, bytes, to, 0);
      } else {
        move_registered(0, rank, buffer_stadd, to, bytes);
        flush();
      }
    }
    flush_and_meet();
    for (int rank = 0; rank < check_size; rank++) {
      CHECK_CONTENT(exposed.windows[rank] + shift, bytes, seed_of(rank, check_rank, i), "put by rank %d", rank);
      memset(buffer, 0, bytes);
      move_registered(1, rank, buffer_stadd, at(rank, exposed.windows[check_rank] + shift), bytes);
      flush();
      CHECK_CONTENT(buffer, bytes, seed_of(check_rank, rank, i), "read back from rank %d", rank);
    }
    flush_and_meet();
  }
  UTOFU_OK(utofu_dereg_mem(vcq, buffer_stadd, 0));
}

// Longer than one descriptor may be, from the first rank to the last.
static void run_long(void) {
  const size_t bytes = (size_t)kLongestPut + 4097;
  unsigned char* const memory = check_allocate(bytes);
  utofu_stadd_t stadds[kMaxRanks];
  memset(memory, 0, bytes);
  UTOFU_OK(utofu_reg_mem(vcq, memory, bytes, 0, &stadds[check_rank]));
  MPI_Allgather(MPI_IN_PLACE, 1, MPI_UINT64_T, stadds, 1, MPI_UINT64_T, MPI_COMM_WORLD);
  if (check_rank == 0) {
    check_fill(memory, bytes, 99);
    move_registered(0, check_size - 1, stadds[0], stadds[check_size - 1], bytes);
  }
  flush_and_meet();
  if (check_rank == check_size - 1) {
    CHECK_CONTENT(memory, bytes, 99, "the long put");
  }
  UTOFU_OK(utofu_dereg_mem(vcq, stadds[check_rank], 0));
  free(memory);
}

// All change words of rank 0; the sums say whether an operation was lost or done twice.
static void run_atomics(void) {
  enum { kTimes = 300 };
  static uint64_t old[kTimes];
  const uint64_t size = (uint64_t)check_size, bit = UINT64_C(1) << check_rank;
  exposed.anded = UINT64_MAX;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kTimes; i++) {
    atomic64(0, UTOFU_ARMW_OP_ADD, (uint64_t)i << 32, &exposed.added, NULL);
    atomic32(0, UTOFU_ARMW_OP_ADD, 0x80000001u, &exposed.small_added, NULL);
    atomic64(0, UTOFU_ARMW_OP_SWAP, (uint64_t)(i + 1) * 8 + (uint64_t)check_rank, &exposed.swapped, &old[i]);
  }
  atomic64(0, UTOFU_ARMW_OP_OR, bit, &exposed.ored, NULL);
  atomic64(0, UTOFU_ARMW_OP_AND, ~bit, &exposed.anded, NULL);
  atomic64(0, UTOFU_ARMW_OP_XOR, bit * 257, &exposed.xored, NULL);
  flush();
  for (int i = 0; i < kTimes; i++) {
    atomic64(0, UTOFU_ARMW_OP_ADD, old[i], &exposed.collected, NULL);
  }
  flush_and_meet();
  if (check_rank == 0) {
    const uint64_t steps = (uint64_t)kTimes * (kTimes - 1) / 2;
    const uint64_t all_swapped = (steps + kTimes) * 8 * size + kTimes * size * (size - 1) / 2;
    const uint64_t bits = (UINT64_C(1) << check_size) - 1;
    CHECK(exposed.added == (steps * size) << 32, "64-bit additions: %lx", (unsigned long)exposed.added);
    CHECK(exposed.small_added == (uint32_t)(kTimes * size * 0x80000001u), "32-bit additions: %x", exposed.small_added);
    CHECK(exposed.collected + exposed.swapped == all_swapped, "swaps: %lu, not %lu",
          (unsigned long)(exposed.collected + exposed.swapped), (unsigned long)all_swapped);
    CHECK(exposed.ored == bits && exposed.anded == ~bits && exposed.xored == bits * 257, "bits: %lx %lx %lx",
          (unsigned long)exposed.ored, (unsigned long)exposed.anded, (unsigned long)exposed.xored);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void return_credits(void) {
  for (int rank = 0; rank < check_size; rank++) {
    if (credits_owed[rank] > 0) {
      atomic64(rank, UTOFU_ARMW_OP_ADD, credits_owed[rank], &exposed.credits[check_rank], NULL);
      credits_owed[rank] = 0;
    }
  }
}

static void send_active(int rank) {
  struct active_slot slot;
  const uint64_t number = actives_sent[rank];
  while (number >= __atomic_load_n(&exposed.credits[rank], __ATOMIC_ACQUIRE) + kCredits) {
    progress();
    return_credits();
  }
  slot.number = number;
  slot.bytes = check_mix(number) % (sizeof slot.data + 1);
  check_fill(slot.data, slot.bytes, seed_of(check_rank, rank, number));
  put_copied(rank, &slot, offsetof(struct active_slot, data) + slot.bytes,
             at(rank, &exposed.slots[check_rank][number % kCredits]), UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
  actives_sent[rank]++;
}

static void run_actives(uint64_t count) {
  int missing = 1;
  for (uint64_t i = 0; i < count; i++) {
    for (int rank = 0; rank < check_size; rank++) {
      send_active(rank);
    }
  }
  while (missing) {
    progress();
    return_credits();
    missing = 0;
    for (int rank = 0; rank < check_size; rank++) {
      missing |= actives_received[rank] < count;
    }
  }
  flush_and_meet();
}

// Posts without a look at the queues until there is no room; everything that was accepted must be told, in order.
static void run_full_queue(void) {
  enum { kMost = 200000 };
  uintptr_t posted = 0;
  int rc = UTOFU_SUCCESS;
  while (posted < kMost) {
    rc = utofu_put(vcq, peers[0].vcq_id, bounces_stadd, at(0, exposed.windows[check_rank]), 8, 0,
                   UTOFU_ONESIDED_FLAG_TCQ_NOTICE, (void*)(posted + 1));
    if (rc != UTOFU_SUCCESS) {
      break;
    }
    posted++;
  }
  CHECK(rc == UTOFU_ERR_BUSY, "%lu puts are posted, the last gives %d", (unsigned long)posted, rc);
  for (uintptr_t i = 0; i < posted; i++) {
    const uintptr_t cbdata = (uintptr_t)wait_tcq(vcq);
    CHECK(cbdata == i + 1, "the TCQ tells of put %lu, not %lu", (unsigned long)cbdata, (unsigned long)i + 1);
  }
  atomic64(0, UTOFU_ARMW_OP_ADD, 1, &exposed.flooded, NULL);
  flush_and_meet();
  CHECK(check_rank != 0 || exposed.flooded == (uint64_t)check_size, "%lu floods", (unsigned long)exposed.flooded);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "transport", 90);
  const long actives = check_argument(argc, argv, 1, 200);
  if (check_size < 2 || check_size > kMaxRanks) {
    return check_skip("wants 2 to 8 ranks");
  }
  UTOFU_OK(utofu_create_vcq(first_tni(), 0, &vcq));
  UTOFU_OK(utofu_reg_mem(vcq, bounces, sizeof bounces, 0, &bounces_stadd));
  for (int i = 0; i < kBounces; i++) {
    free_bounces[free_bounce_count++] = bounces[i];
  }
  share_place(vcq, &exposed, sizeof exposed, peers);
  run_windows();
  run_long();
  run_atomics();
  run_actives((uint64_t)actives);
  run_full_queue();
  while (progress()) {
  }
  check_queues_empty(vcq);
  UTOFU_OK(utofu_dereg_mem(vcq, bounces_stadd, 0));
  UTOFU_OK(utofu_dereg_mem(vcq, peers[check_rank].stadd, 0));
  UTOFU_OK(utofu_free_vcq(vcq));
  return check_finish();
}
