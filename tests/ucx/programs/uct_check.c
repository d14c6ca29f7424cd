// Two processes, the layer UCT, the transport utofu: every operation that is advertised, with data that are checked,
// and what happens at the edges: no byte, the last byte, memory outside of a key, a receiver that does not look, a
// request that waits, a fence, a peer that dies. Usage: uct_check [DEVICE]
#include <pthread.h>
#include <string.h>

#include "uct_pair.h"

enum { kIds = 6, kFlood = 1000 };
enum { kIdShort, kIdBcopy, kIdZcopy, kIdFlood, kIdGets, kIdThreads };

static ucs_status_t handler_saw = UCS_OK;
static unsigned received[kIds];

static ucs_status_t on_error(void* arg, uct_ep_h failed, ucs_status_t status) {
  (void)arg;
  CHECK(failed == ep, "the handler is told of another endpoint");
  handler_saw = status;
  return UCS_OK;
}

// ---- active messages ----

static size_t length_of(unsigned id, unsigned number) {
  const size_t longest = attr.cap.am.max_bcopy;
  const size_t lengths[] = {8, 9, 16, 17, 24, 25, 100, 255, 256, 1000, 4096, longest - 1, longest};
  return id == kIdFlood ? 8 + number % 2000 : lengths[number % (sizeof lengths / sizeof lengths[0])];
}

static uint64_t seed_of(int from, unsigned id, unsigned number) {
  return ((uint64_t)from << 40) + ((uint64_t)id << 32) + (uint64_t)number * 4096;
}

static ucs_status_t on_message(void* arg, void* data, size_t length, unsigned flags) {
  const unsigned id = (unsigned)(uintptr_t)arg, number = received[id]++;
  (void)flags;
  CHECK(length == length_of(id, number), "message %u of id %u has %zu bytes", number, id, length);
  CHECK_CONTENT(data, length, seed_of(!pair_rank, id, number), "message %u of id %u", number, id);
  return UCS_OK;
}

struct packed {
  size_t length;
  uint64_t seed;
};

static size_t pack(void* to, void* arg) {
  const struct packed* const what = arg;
  pair_fill(to, what->length, what->seed);
  return what->length;
}

static void send_message(unsigned id, unsigned number) {
  const size_t length = length_of(id, number);
  struct packed what = {length, seed_of(pair_rank, id, number)};
  uint64_t header;
  pair_fill(source, length, what.seed);
  memcpy(&header, source, sizeof header);
  switch (id) {
    case kIdShort: POST(UCS_OK, uct_ep_am_short(ep, kIdShort, header, source + 8, (unsigned)length - 8)); break;
    case kIdZcopy: {
      // The header, and two pieces, one of which may be empty.
      const size_t rest = length - 8, first = rest / 3;
      const uct_iov_t iov[] = {{source + 8, first, source_memh, 0, 1},
                               {source + 8 + first, rest - first, source_memh, 0, 1}};
      POST(UCS_INPROGRESS, uct_ep_am_zcopy(ep, kIdZcopy, source, 8, iov, 2, 0, expect_completion()));
      wait_completion();
      break;
    }
    default: POST(length, uct_ep_am_bcopy(ep, (uint8_t)id, pack, &what, 0));
  }
}

static void run_messages(void) {
  for (unsigned number = 0; number < 300; number++) {
    for (unsigned id = kIdShort; id <= kIdZcopy; id++) {
      send_message(id, number);
    }
  }
  while (received[kIdShort] < 300 || received[kIdBcopy] < 300 || received[kIdZcopy] < 300) {
    progress();
  }
  flush_and_meet();
}

// ---- a receiver that does not look, and requests that wait ----

static unsigned flood_sent;

static ucs_status_t send_pending(uct_pending_req_t* self) {
  struct packed what = {length_of(kIdFlood, flood_sent), seed_of(pair_rank, kIdFlood, flood_sent)};
  const ssize_t status = uct_ep_am_bcopy(ep, kIdFlood, pack, &what, 0);
  if (status < 0) {
    return (ucs_status_t)status;
  }
  flood_sent++;
  free(self);
  return UCS_OK;
}

static void flood(void) {
  unsigned before_full = 0;
  for (unsigned number = 0; number < kFlood; number++) {
    uct_pending_req_t* const request = calloc(1, sizeof *request);
    request->func = send_pending;
    ucs_status_t status;
    // While others wait, nobody overtakes them.
    while ((status = send_pending(request)) == UCS_ERR_NO_RESOURCE) {
      before_full += before_full == 0 ? flood_sent : 0;
      status = uct_ep_pending_add(ep, request, 0);
      if (status == UCS_OK) {
        break;
      }
      CHECK(status == UCS_ERR_BUSY, "a request is refused: %s", ucs_status_string(status));
    }
    UCX_OK(status);
  }
  CHECK(before_full <= 64, "%u messages went to a peer that takes none", before_full);
}

static void purged(uct_pending_req_t* request, void* count) {
  ++*(unsigned*)count;
  free(request);
}

static void run_flood(int sender) {
  unsigned left = 0;
  if (pair_rank == sender) {
    flood();
    pair_send("x", 1);
    while (flood_sent < kFlood) {
      progress();
    }
    uct_ep_pending_purge(ep, purged, &left);
    CHECK(left == 0, "%u requests are left", left);
  } else {
    char all_asked;
    pair_receive(&all_asked, 1);  // Without any progress until then.
    while (received[kIdFlood] < kFlood) {
      progress();
    }
  }
  flush_and_meet();
}

// ---- puts and gets ----

static const size_t kSizes[] = {1,   2,    7,    8,    9,    31,    32,     33,          255,    256,
                                257, 4096, 8191, 8192, 8193, 65536, 333333, kWindow - 1, kWindow};

static void put(size_t length, uint64_t to, uint64_t seed, int copied) {
  pair_fill(source, length, seed);
  if (!copied) {
    const uct_iov_t iov = {source, length, source_memh, 0, 1};
    POST(UCS_INPROGRESS, uct_ep_put_zcopy(ep, &iov, 1, to, key.rkey, expect_completion()));
    wait_completion();
  } else if (length <= attr.cap.put.max_short) {
    POST(UCS_OK, uct_ep_put_short(ep, source, (unsigned)length, to, key.rkey));
  } else {
    struct packed what = {length, seed};
    POST(length, uct_ep_put_bcopy(ep, pack, &what, to, key.rkey));
  }
}

static void unpack(void* to, const void* data, size_t length) { memcpy(to, data, length); }

static void get(size_t length, uint64_t from, int copied) {
  memset(source, 0, length);
  if (copied) {
    POST(UCS_INPROGRESS, uct_ep_get_bcopy(ep, unpack, source, length, from, key.rkey, expect_completion()));
  } else {
    // In as many pieces as there may be.
    uct_iov_t iov[64];
    const size_t count = attr.cap.get.max_iov, each = length / count;
    CHECK(count == 64, "%zu pieces", count);
    for (size_t i = 0; i < count; i++) {
      const size_t bytes = i + 1 == count ? length - i * each : each;
      iov[i] = (uct_iov_t){source + i * each, bytes, source_memh, 0, 1};
    }
    POST(UCS_INPROGRESS, uct_ep_get_zcopy(ep, iov, count, from, key.rkey, expect_completion()));
  }
  wait_completion();
}

// A short get is complete when it returns, and calls nothing of ours: neither the completion of what was posted before,
// nor the handler of a message, although both are there.
static void run_get_short(void) {
  const size_t sizes[] = {1, 8, 255, attr.cap.get.max_short};
  CHECK((attr.cap.flags & UCT_IFACE_FLAG_GET_SHORT) != 0, "no short get");
  for (unsigned round = 0; round < 400; round++) {
    const size_t length = sizes[round % 4], shift = kWindow - length;
    const uct_iov_t iov = {source, 8, source_memh, 0, 1};
    static unsigned char got[65536];
    pair_fill(window + shift, length, seed_of(pair_rank, 30, round));
    pair_meet(progress);
    struct packed what = {length_of(kIdGets, round), seed_of(pair_rank, kIdGets, round)};
    POST(what.length, uct_ep_am_bcopy(ep, kIdGets, pack, &what, 0));
    POST(UCS_INPROGRESS, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey, expect_completion()));
    unsigned calls;
    ucs_status_t status;
    do {
      calls = received[kIdGets] + completed;
      status = uct_ep_get_short(ep, got, (unsigned)length, remote + shift, key.rkey);
    } while (status == UCS_ERR_NO_RESOURCE && (progress(), 1));
    UCX_OK(status);
    CHECK(received[kIdGets] + completed == calls, "a short get calls back");
    CHECK_CONTENT(got, length, seed_of(!pair_rank, 30, round), "short get of %zu", length);
    wait_completion();
    while (received[kIdGets] <= round) {
      progress();
    }
    flush_and_meet();
  }
  CHECK(uct_ep_get_short(ep, source, 8, remote + kWindow - 7, key.rkey) == UCS_ERR_INVALID_PARAM, "behind the end");
}

static void run_memory(void) {
  for (unsigned i = 0; i < sizeof kSizes / sizeof kSizes[0]; i++) {
    const size_t length = kSizes[i];
    for (int copied = 0; copied <= (length <= attr.cap.put.max_bcopy); copied++) {
      // Once at the beginning, once so that the last byte of the memory is the last of the put.
      for (int end = 0; end < 2; end++) {
        const size_t shift = end ? kWindow - length : 0;
        const uint64_t seed = seed_of(pair_rank, 10 + copied, i);
        memset(window, 0x5A, kWindow);
        pair_meet(progress);
        put(length, remote + shift, seed, copied);
        flush_and_meet();
        CHECK_CONTENT(window + shift, length, seed_of(!pair_rank, 10 + copied, i), "put of %zu", length);
        CHECK(shift == 0 || window[shift - 1] == 0x5A, "a put of %zu wrote before its place", length);
        CHECK(shift + length == kWindow || window[shift + length] == 0x5A, "a put of %zu wrote too much", length);
        get(length, remote + shift, copied);
        CHECK_CONTENT(source, length, seed, "get of %zu", length);
        pair_meet(progress);
      }
    }
  }
}

static size_t pack_nothing(void* to, void* arg) {
  (void)to;
  (void)arg;
  return 0;
}

static void run_edges(void) {
  const uct_iov_t nothing = {source, 0, source_memh, 0, 1};
  UCX_OK(uct_ep_put_short(ep, source, 0, remote, key.rkey));
  UCX_OK(uct_ep_put_zcopy(ep, &nothing, 1, remote, key.rkey, NULL));
  UCX_OK(uct_ep_get_zcopy(ep, &nothing, 1, remote + kWindow, key.rkey, NULL));
  CHECK(uct_ep_put_bcopy(ep, pack_nothing, NULL, remote + kWindow, key.rkey) == 0, "a put of no byte");
  // UCX prints these.
  CHECK(uct_ep_put_short(ep, source, 8, remote + kWindow - 7, key.rkey) == UCS_ERR_INVALID_PARAM, "behind the end");
  CHECK(uct_ep_put_short(ep, source, 8, remote - 1, key.rkey) == UCS_ERR_INVALID_PARAM, "before the beginning");
  CHECK(uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, remote + kWindow - 4, key.rkey) == UCS_ERR_INVALID_PARAM,
        "an atomic behind the end");
  flush_and_meet();
}

// What was put before a fence is seen by a get behind it.
static void run_fence(void) {
  for (unsigned round = 0; round < 200; round++) {
    uint64_t seen = 0, value = round + 1;
    struct packed large = {8192, seed_of(pair_rank, 20, round)};
    POST(8192, uct_ep_put_bcopy(ep, pack, &large, remote + 4096, key.rkey));
    POST(UCS_OK, uct_ep_put_short(ep, &value, sizeof value, remote, key.rkey));
    UCX_OK(uct_ep_fence(ep, 0));
    POST(UCS_INPROGRESS, uct_ep_get_bcopy(ep, unpack, &seen, sizeof seen, remote, key.rkey, expect_completion()));
    wait_completion();
    CHECK(seen == value, "round %u: a get behind a fence sees %lu", round, (unsigned long)seen);
  }
  flush_and_meet();
}

// A put that is spread over several TNIs has no order with puts that went by one, so behind a fence it waits for them.
static void run_striped_fence(void) {
  const uct_iov_t iov = {source, kWindow, source_memh, 0, 1};
  POST(UCS_OK, uct_ep_put_short(ep, source, 8, remote, key.rkey));
  UCX_OK(uct_ep_fence(ep, 0));
  CHECK(uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey, expect_completion()) == UCS_ERR_NO_RESOURCE,
        "stripes overtake a put behind a fence");
  POST(UCS_INPROGRESS, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey, expect_completion()));
  wait_completion();
  flush_and_meet();
}

// Nor does an operation that strong order keeps in its place wait behind a fence: each finds what was before it.
static void run_ordered_fence(void) {
  uint64_t sum = 0, seen = 0;
  memset(window, 0, kWindow);
  pair_meet(progress);
  for (unsigned round = 1; round <= 200; round++) {
    POST(UCS_OK, uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, round, remote, key.rkey));
    sum += round;
    UCX_OK(round % 2 ? uct_ep_fence(ep, 0) : uct_iface_fence(iface, 0));
    POST(UCS_INPROGRESS, uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 0, &seen, remote, key.rkey, expect_completion()));
    wait_completion();
    CHECK(seen == sum, "round %u: an atomic behind a fence sees %lu, not %lu", round, (unsigned long)seen,
          (unsigned long)sum);
  }
  for (unsigned round = 1; round <= 200; round++) {
    const uint64_t before = round, after = round + 1000;
    POST(UCS_OK, uct_ep_put_short(ep, &before, sizeof before, remote, key.rkey));
    UCX_OK(uct_ep_fence(ep, 0));
    POST(UCS_OK, uct_ep_put_short(ep, &after, sizeof after, remote, key.rkey));
    flush();
    POST(UCS_INPROGRESS, uct_ep_get_bcopy(ep, unpack, &seen, sizeof seen, remote, key.rkey, expect_completion()));
    wait_completion();
    CHECK(seen == after, "round %u: a put behind a fence is overtaken: %lu", round, (unsigned long)seen);
  }
  flush_and_meet();
}

// ---- atomics ----

#define ATOMIC_CASES(BITS)                                                                                           \
  static void run_atomics##BITS(void) {                                                                              \
    typedef uint##BITS##_t word;                                                                                     \
    volatile word* const mine = (volatile word*)window;                                                              \
    const word start = (word)0xF0F0F0F0F0F0F0F0ull, operand = (word)0x123456789ABCDEF1ull;                           \
    static const uct_atomic_op_t ops[] = {UCT_ATOMIC_OP_ADD, UCT_ATOMIC_OP_AND, UCT_ATOMIC_OP_OR, UCT_ATOMIC_OP_XOR, \
                                          UCT_ATOMIC_OP_SWAP};                                                       \
    const word results[] = {(word)(start + operand), (word)(start & operand), (word)(start | operand),               \
                            (word)(start ^ operand), operand};                                                       \
    for (unsigned i = 0; i < 9; i++) {                                                                               \
      const unsigned op = i % 5, fetches = i < 5;                                                                    \
      word old = 0;                                                                                                  \
      *mine = start;                                                                                                 \
      pair_meet(progress);                                                                                           \
      if (fetches) {                                                                                                 \
        POST(UCS_INPROGRESS,                                                                                         \
             uct_ep_atomic##BITS##_fetch(ep, ops[op], operand, &old, remote, key.rkey, expect_completion()));        \
        wait_completion();                                                                                           \
        CHECK(old == start, "atomic %u of " #BITS " bits found %llx", ops[op], (unsigned long long)old);             \
      } else {                                                                                                       \
        POST(UCS_OK, uct_ep_atomic##BITS##_post(ep, ops[op], operand, remote, key.rkey));                            \
      }                                                                                                              \
      flush_and_meet();                                                                                              \
      CHECK(*mine == results[op], "atomic %u of " #BITS " bits leaves %llx", ops[op], (unsigned long long)*mine);    \
      pair_meet(progress);                                                                                           \
    }                                                                                                                \
    for (unsigned fits = 0; fits < 2; fits++) {                                                                      \
      word old = 0;                                                                                                  \
      *mine = start;                                                                                                 \
      pair_meet(progress);                                                                                           \
      POST(UCS_INPROGRESS, uct_ep_atomic_cswap##BITS(ep, fits ? start : operand, operand, remote, key.rkey, &old,    \
                                                     expect_completion()));                                          \
      wait_completion();                                                                                             \
      CHECK(old == start, "compare-and-swap of " #BITS " bits found %llx", (unsigned long long)old);                 \
      flush_and_meet();                                                                                              \
      CHECK(*mine == (fits ? operand : start), "compare-and-swap of " #BITS " bits");                                \
      pair_meet(progress);                                                                                           \
    }                                                                                                                \
  }

ATOMIC_CASES(32)
ATOMIC_CASES(64)

// Both add to one word, and the CPU of its owner does: nothing is lost.
static void run_shared_counter(void) {
  uint64_t* const word = (uint64_t*)window;
  *word = 0;
  pair_meet(progress);
  for (unsigned i = 0; i < 5000; i++) {
    POST(UCS_OK, uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 3, remote, key.rkey));
    __atomic_fetch_add(word, 5, __ATOMIC_RELAXED);
  }
  flush_and_meet();
  CHECK(__atomic_load_n(word, __ATOMIC_RELAXED) == 5000 * 8, "the counter has %lu", (unsigned long)*word);
  pair_meet(progress);
}

// ---- several threads, if THREADS says how many: the worker is of UCS_THREAD_MODE_MULTI ----

enum { kThreadRounds = 2000, kMostThreads = 8 };
// Each counts in one word of the peer, has one of its own there, and sends messages; all call progress.
static void* run_thread(void* arg) {
  const uint64_t mine = (uintptr_t)arg, own = remote + 64 + 8 * mine;
  for (uint64_t i = 1; i <= kThreadRounds; i++) {
    POST(UCS_OK, uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, mine + 1, remote, key.rkey));
    POST(UCS_OK, uct_ep_put_short(ep, &i, sizeof i, own, key.rkey));
    POST(UCS_OK, uct_ep_am_short(ep, kIdThreads, i, NULL, 0));
    progress();
  }
  return NULL;
}

static ucs_status_t on_thread_message(void* arg, void* data, size_t length, unsigned flags) {
  (void)arg, (void)data, (void)length, (void)flags;
  received[kIdThreads]++;
  return UCS_OK;
}

static void run_threads(uint64_t count) {
  pthread_t running[kMostThreads];
  memset(window, 0, kWindow);
  UCX_OK(uct_iface_set_am_handler(iface, kIdThreads, on_thread_message, NULL, 0));
  pair_meet(progress);
  for (uint64_t i = 0; i < count; i++) {
    CHECK(pthread_create(&running[i], NULL, run_thread, (void*)i) == 0, "no thread");
  }
  for (uint64_t i = 0; i < count; i++) pthread_join(running[i], NULL);
  while (received[kIdThreads] < count * kThreadRounds) progress();
  flush_and_meet();
  const uint64_t* const words = (const uint64_t*)window;
  CHECK(words[0] == kThreadRounds * count * (count + 1) / 2, "the threads counted %lu", (unsigned long)words[0]);
  for (uint64_t i = 0; i < count; i++) {
    CHECK(words[8 + i] == kThreadRounds, "the last put of thread %lu is not the last", (unsigned long)i);
  }
}

// ---- the end ----

// Whoever waits for an operation of an endpoint that is destroyed is told at once, and nothing is written any more
// where an atomic's result was to go.
static void run_destroy(void) {
  uint64_t result = 0;
  const uct_iov_t iov = {source, 4096, source_memh, 0, 1};
  flush_and_meet();
  completion = (uct_completion_t){.func = on_completion, .count = 2, .status = UCS_OK};
  completed = 0;
  POST(UCS_INPROGRESS, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey, &completion));
  POST(UCS_INPROGRESS, uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &result, remote, key.rkey, &completion));
  const int done = completed;
  uct_ep_destroy(ep);
  CHECK(completed == 1, "a completion is not called with its endpoint");
  CHECK(done || completion.status == UCS_ERR_CANCELED, "it says %s", ucs_status_string(completion.status));
  const uint64_t before = result;
  while (uct_iface_flush(iface, 0, NULL) != UCS_OK) {
    progress();
  }
  CHECK(result == before, "the result came after the endpoint was destroyed");
  UCX_OK(uct_ep_create(&ep_params, &ep));
  pair_meet(progress);
}

static void run_death(void) {
  if (pair_rank == 1) {
    _exit(0);
  }
  while (handler_saw == UCS_OK) {
    const ucs_status_t status = uct_ep_check(ep, 0, NULL);
    CHECK(status == UCS_OK || handler_saw != UCS_OK, "a check says %s", ucs_status_string(status));
    progress();
  }
  CHECK(uct_ep_put_short(ep, source, 8, remote, key.rkey) == handler_saw, "an operation to a dead peer");
  uct_ep_destroy(ep);
}

int main(int argc, char** argv) {
  const char* const tni = argc > 1 ? argv[1] : "tni0";
  pair_begin("uct_check", 50);
  open_component(tni);
  open_iface(tni, on_error);
  make_memories();
  for (unsigned id = 0; id < kIds; id++) {
    UCX_OK(uct_iface_set_am_handler(iface, (uint8_t)id, on_message, (void*)(uintptr_t)id, 0));
  }
  connect_to_peer();
  run_messages();
  run_flood(0);
  run_memory();
  run_get_short();
  run_edges();
  run_fence();
  run_ordered_fence();
  if (strcmp(tni, "tnis") == 0) {
    run_striped_fence();
  }
  run_atomics32();
  run_atomics64();
  run_shared_counter();
  if (getenv("THREADS") != NULL) {
    run_threads((uint64_t)atoi(getenv("THREADS")));
  }
  run_destroy();
  run_death();
  close_all();
  return pair_end();
}
