// Two processes, the layer UCP, contexts with UCP_FEATURE_WAKEUP: whoever has nothing to do sleeps until the descriptor
// of his worker is readable, and no wake-up is lost. Messages of all protocols, puts, gets and atomics, whose ends are
// waited for asleep, with pauses that let the other fall asleep at every moment. Usage: wakeup_check [ROUNDS]
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ucp_pair.h"

enum { kWindow = 1 << 18, kSleepMs = 10000 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static int descriptor;
static unsigned sleeps;

static void progress(void) { ucp_worker_progress(worker); }

// Sleeps once, until something has happened, unless something has. One that lasts too long is a wake-up that was lost.
static void sleep_once(void) {
  if (ucp_worker_progress(worker) != 0) {
    return;
  }
  const ucs_status_t status = ucp_worker_arm(worker);
  if (status == UCS_ERR_BUSY) {
    return;
  }
  UCX_OK(status);
  struct pollfd slept = {.fd = descriptor, .events = POLLIN};
  int ready;
  do {
    ready = poll(&slept, 1, kSleepMs);
  } while (ready < 0 && errno == EINTR);
  CHECK(ready == 1, "nobody wakes a worker that sleeps for %d ms", kSleepMs);
  sleeps++;
}

static void finish(ucs_status_ptr_t request) {
  ucs_status_t status = UCS_PTR_STATUS(request);
  if (UCS_PTR_IS_PTR(request)) {
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
      sleep_once();
    }
    ucp_request_free(request);
  }
  UCX_OK(status);
}

static void open_worker(void) {
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                               .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_WAKEUP};
  const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                             .thread_mode = UCS_THREAD_MODE_SINGLE};
  UCX_OK(ucp_init(&params, NULL, &context));
  UCX_OK(ucp_worker_create(context, &worker_params, &worker));
  UCX_OK(ucp_worker_get_efd(worker, &descriptor));
}

// Mostly none, now and then up to 3 ms.
static void pause_a_while(unsigned* seed) {
  const long us = rand_r(seed) % 4 == 0 ? rand_r(seed) % 3000 : rand_r(seed) % 60;
  nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static const size_t kSizes[] = {1, 8, 100, 2000, 9000, 100000, kWindow};

static void send_to_peer(const unsigned char* data, size_t bytes, unsigned tag) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  finish(ucp_tag_send_nbx(ep, data, bytes, tag, &param));
}

static void receive_from_peer(unsigned char* data, size_t bytes, unsigned tag) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  finish(ucp_tag_recv_nbx(worker, data, bytes, tag, ~0ull, &param));
}

static void play(unsigned rounds) {
  static unsigned char data[kWindow];
  unsigned seed = 7 + (unsigned)pair_rank;
  for (unsigned round = 0; round < rounds; round++) {
    const size_t bytes = kSizes[round % (sizeof kSizes / sizeof kSizes[0])];
    for (int turn = 0; turn < 2; turn++) {
      if (turn == pair_rank) {
        pair_fill(data, bytes, round * 2 + turn);
        pause_a_while(&seed);
        send_to_peer(data, bytes, round);
      } else {
        receive_from_peer(data, bytes, round);
        CHECK_CONTENT(data, bytes, round * 2 + turn, "round %u", round);
      }
    }
  }
}

// One side works on the memory of the other, which sleeps until a message says that all is done.
static void work_on_memory(ucp_rkey_h key, uint64_t remote, unsigned char* window, unsigned rounds) {
  static unsigned char data[kWindow];
  const ucp_request_param_t param = {.op_attr_mask = 0};
  const ucp_request_param_t word = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(8)};
  unsigned seed = 99;
  for (unsigned round = 0; pair_rank == 0 && round < rounds; round++) {
    const size_t bytes = kSizes[round % (sizeof kSizes / sizeof kSizes[0])];
    const uint64_t one = 1;
    pair_fill(data, bytes, round);
    finish(ucp_put_nbx(ep, data, bytes, remote, key, &param));
    finish(ucp_ep_flush_nbx(ep, &param));
    memset(data, 0, bytes);
    pause_a_while(&seed);
    finish(ucp_get_nbx(ep, data, bytes, remote, key, &param));
    CHECK_CONTENT(data, bytes, round, "get %u", round);
    finish(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1, remote + kWindow - 8, key, &word));
    finish(ucp_worker_flush_nbx(worker, &param));
    pair_fill(data, kWindow, 0);
  }
  if (pair_rank == 0) {
    send_to_peer(data, 8, 1000000);
  } else {
    receive_from_peer(data, 8, 1000000);
    uint64_t count;
    memcpy(&count, window + kWindow - 8, sizeof count);
    CHECK(count != 0, "no atomic has arrived");
  }
}

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 400;
  unsigned char* window = NULL;
  uint64_t remote;
  ucp_mem_h memh;
  pair_begin("wakeup_check", 50);
  CHECK(posix_memalign((void**)&window, 4096, kWindow) == 0, "no memory");
  memset(window, 0, kWindow);
  open_worker();
  ep = ucp_pair_connect(worker, (ucp_ep_params_t){.field_mask = 0});
  play(rounds);
  const ucp_rkey_h key = ucp_pair_share(context, ep, window, kWindow, &remote, &memh);
  work_on_memory(key, remote, window, rounds / 4);
  CHECK(sleeps > rounds / 10, "it slept %u times only", sleeps);
  pair_meet(progress);
  ucp_rkey_destroy(key);
  const ucp_request_param_t param = {.op_attr_mask = 0};
  finish(ucp_ep_close_nbx(ep, &param));
  pair_meet(progress);
  UCX_OK(ucp_mem_unmap(context, memh));
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  return pair_end();
}
