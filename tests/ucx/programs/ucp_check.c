// Two processes, the layer UCP over whatever UCX_TLS names: tagged messages, streams, active messages, puts, gets and
// atomics, of sizes for which UCP takes one protocol or another, with data that are checked.
// Usage: ucp_check [ROUNDS]

#include <string.h>

#include "ucp_pair.h"

enum { kWindow = 8 << 20, kAmId = 7 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static unsigned char *window, *target;
static ucp_mem_h window_memh;
static ucp_rkey_h key;
static uint64_t remote;

static const size_t kSizes[] = {0, 1, 8, 9, 100, 1000, 8000, 8184, 8185, 9000, 20000, 65536, 300001, 1 << 20, 5000000};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

static void progress(void) { ucp_worker_progress(worker); }

static void finish(ucs_status_ptr_t request, const char* what) { ucp_pair_finish(worker, request, what); }

static void flush(void) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  finish(ucp_ep_flush_nbx(ep, &param), "a flush");
}

static uint64_t seed_of(int from, unsigned round, unsigned index) {
  return ((uint64_t)from << 40) + ((uint64_t)round << 32) + ((uint64_t)index << 24);
}

// ---- beginning ----

static unsigned ams_seen;
static size_t am_bytes;
static unsigned char* am_data;
static int am_open;

static void am_fetched(void* request, ucs_status_t status, size_t length, void* arg) {
  (void)length;
  (void)arg;
  UCX_OK(status);
  ucp_request_free(request);
  am_open = 0;
  ams_seen++;
}

static ucs_status_t on_am(void* arg, const void* header, size_t header_length, void* data, size_t length,
                          const ucp_am_recv_param_t* param) {
  (void)arg;
  CHECK(header_length == sizeof(uint64_t) && *(const uint64_t*)header == length, "the header of an active message");
  CHECK(!am_open, "two at once");
  am_bytes = length;
  if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
    const ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv_am = am_fetched};
    const ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker, data, am_data, length, &fetch);
    CHECK(!UCS_PTR_IS_ERR(request), "the data of an active message");
    am_open = request != NULL;
    ams_seen += request == NULL;
    return UCS_INPROGRESS;
  }
  memcpy(am_data, data, length);
  ams_seen++;
  return UCS_OK;
}

static void open_worker(void) {
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                               .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 |
                                           UCP_FEATURE_STREAM | UCP_FEATURE_AM};
  const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                             .thread_mode = UCS_THREAD_MODE_SINGLE};
  const ucp_am_handler_param_t handler = {
      .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = kAmId, .cb = on_am};
  UCX_OK(ucp_init(&params, NULL, &context));
  UCX_OK(ucp_worker_create(context, &worker_params, &worker));
  UCX_OK(ucp_worker_set_am_recv_handler(worker, &handler));
}

static unsigned char* make_memory(void) {
  void* memory;
  CHECK(posix_memalign(&memory, 4096, kWindow) == 0, "no memory");
  memset(memory, 0, kWindow);
  return memory;
}

// ---- messages ----

// Each sends to the other, and receives: expected where the receive is posted first.
static void run_tags(unsigned round) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  for (unsigned i = 0; i < kSizeCount; i++) {
    const size_t bytes = kSizes[i];
    ucs_status_ptr_t receive = NULL;
    memset(target, 0, bytes);
    pair_fill(window, bytes, seed_of(pair_rank, round, i));
    const int early = (int)(i + round) % 2;
    if (early) {
      receive = ucp_tag_recv_nbx(worker, target, bytes, i, ~0ull, &param);
      pair_meet(progress);
    }
    const ucs_status_ptr_t send = ucp_tag_send_nbx(ep, window, bytes, i, &param);
    if (!early) {
      pair_meet(progress);
      receive = ucp_tag_recv_nbx(worker, target, bytes, i, ~0ull, &param);
    }
    finish(receive, "a receive");
    finish(send, "a send");
    CHECK_CONTENT(target, bytes, seed_of(!pair_rank, round, i), "message with tag %u", i);
    pair_meet(progress);
  }
}

// Many that nobody has asked for yet.
static void run_unexpected(unsigned round) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  enum { kCount = 500, kBytes = 700 };
  ucs_status_ptr_t sends[kCount];
  for (unsigned i = 0; i < kCount; i++) {
    pair_fill(window + i * kBytes, kBytes, seed_of(pair_rank, round, i));
    sends[i] = ucp_tag_send_nbx(ep, window + i * kBytes, kBytes, 1000 + i, &param);
  }
  pair_meet(progress);
  for (unsigned i = kCount; i-- > 0;) {
    finish(ucp_tag_recv_nbx(worker, target, kBytes, 1000 + i, ~0ull, &param), "a late receive");
    CHECK_CONTENT(target, kBytes, seed_of(!pair_rank, round, i), "unexpected message %u", i);
  }
  for (unsigned i = 0; i < kCount; i++) {
    finish(sends[i], "a send of many");
  }
  pair_meet(progress);
}

static void run_streams(unsigned round) {
  const ucp_request_param_t send_param = {.op_attr_mask = 0};
  for (unsigned i = 1; i < kSizeCount; i++) {
    const size_t bytes = kSizes[i];
    size_t length;
    pair_fill(window, bytes, seed_of(pair_rank, round, i));
    const ucs_status_ptr_t send = ucp_stream_send_nbx(ep, window, bytes, &send_param);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_STREAM_RECV_FLAG_WAITALL};
    finish(ucp_stream_recv_nbx(ep, target, bytes, &length, &param), "a receive from the stream");
    finish(send, "a send to the stream");
    CHECK_CONTENT(target, bytes, seed_of(!pair_rank, round, i), "stream, part %u", i);
    pair_meet(progress);
  }
}

static void run_ams(unsigned round) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  for (unsigned i = 1; i < kSizeCount; i++) {
    const uint64_t bytes = kSizes[i];
    const unsigned before = ams_seen;
    pair_fill(window, bytes, seed_of(pair_rank, round, i));
    pair_meet(progress);
    finish(ucp_am_send_nbx(ep, kAmId, &bytes, sizeof bytes, window, bytes, &param), "an active message");
    while (ams_seen == before) {
      progress();
    }
    CHECK(am_bytes == bytes, "an active message of %zu bytes, not %lu", am_bytes, (unsigned long)bytes);
    CHECK_CONTENT(am_data, bytes, seed_of(!pair_rank, round, i), "active message %u", i);
    pair_meet(progress);
  }
}

// ---- memory ----

static void run_memory(unsigned round) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  for (unsigned i = 1; i < kSizeCount; i++) {
    const size_t bytes = kSizes[i], shift = (i + round) % 2 ? kWindow - bytes : 3;
    const uint64_t seed = seed_of(pair_rank, round, i);
    pair_fill(target, bytes, seed);
    pair_meet(progress);
    finish(ucp_put_nbx(ep, target, bytes, remote + shift, key, &param), "a put");
    flush();
    pair_meet(progress);
    CHECK_CONTENT(window + shift, bytes, seed_of(!pair_rank, round, i), "put of %zu", bytes);
    memset(target, 0, bytes);
    finish(ucp_get_nbx(ep, target, bytes, remote + shift, key, &param), "a get");
    CHECK_CONTENT(target, bytes, seed, "get of %zu", bytes);
    pair_meet(progress);
  }
}

static uint64_t change(ucp_atomic_op_t op, uint64_t operand, size_t bytes, uint64_t reply) {
  ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                               .datatype = ucp_dt_make_contig(bytes),
                               .reply_buffer = &reply};
  finish(ucp_atomic_op_nbx(ep, op, &operand, 1, remote, key, &param), "an atomic");
  return reply;
}

static void run_atomics(void) {
  static const ucp_atomic_op_t ops[] = {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_OR, UCP_ATOMIC_OP_XOR,
                                        UCP_ATOMIC_OP_SWAP};
  const uint64_t start = 0x7070707070707070ull, operand = 0x123456789ABCDEF1ull;
  const uint64_t results[] = {start + operand, start & operand, start | operand, start ^ operand, operand};
  for (unsigned bytes = 4; bytes <= 8; bytes += 4) {
    const uint64_t mask = bytes == 4 ? UINT32_MAX : UINT64_MAX;
    for (unsigned i = 0; i < 6; i++) {
      memcpy(window, &start, sizeof start);
      pair_meet(progress);
      // The sixth is a compare-and-swap, which fits.
      const uint64_t old =
          i < 5 ? change(ops[i], operand, bytes, 0) : change(UCP_ATOMIC_OP_CSWAP, start & mask, bytes, operand);
      CHECK((old & mask) == (start & mask), "atomic %u found %lx", i, (unsigned long)old);
      flush();
      pair_meet(progress);
      uint64_t now = 0;
      memcpy(&now, window, bytes);
      CHECK(now == (results[i < 5 ? i : 4] & mask), "atomic %u leaves %lx", i, (unsigned long)now);
      pair_meet(progress);
    }
  }
}

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
  const ucp_request_param_t param = {.op_attr_mask = 0};
  pair_begin("ucp_check", 50);
  window = make_memory();
  target = make_memory();
  am_data = make_memory();
  open_worker();
  ep = ucp_pair_connect(worker, (ucp_ep_params_t){.field_mask = 0});
  key = ucp_pair_share(context, ep, window, kWindow, &remote, &window_memh);
  for (unsigned round = 0; round < rounds; round++) {
    run_tags(round);
    run_unexpected(round);
    run_streams(round);
    run_ams(round);
    run_memory(round);
    run_atomics();
  }
  ucp_rkey_destroy(key);
  flush();
  pair_meet(progress);
  UCX_OK(ucp_mem_unmap(context, window_memh));
  finish(ucp_ep_close_nbx(ep, &param), "the end of the endpoint");
  pair_meet(progress);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  return pair_end();
}
