// Two processes, the layer UCP over whatever UCX_TLS names: one context with many workers, as programs have that give
// each thread its own. Each worker talks to its like in the other process: a tagged message, and a put into memory that
// was registered before there were that many. Usage: ucp_workers_check [WORKERS]
#include <string.h>

#include "ucp_pair.h"

enum { kWindow = 1 << 20, kMost = 32 };

static ucp_context_h context;
static ucp_worker_h workers[kMost], worker;  // All, and that whose turn it is.
static ucp_ep_h eps[kMost];

static void progress(void) { ucp_worker_progress(worker); }

static void finish(ucs_status_ptr_t request, const char* what) { ucp_pair_finish(worker, request, what); }

static void open_worker(unsigned index) {
  const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                      .thread_mode = UCS_THREAD_MODE_SINGLE};
  const ucs_status_t status = ucp_worker_create(context, &params, &workers[index]);
  CHECK(status == UCS_OK, "worker %u gives %s", index, ucs_status_string(status));
  eps[index] = ucp_pair_connect(workers[index], (ucp_ep_params_t){.field_mask = 0});
}

static void send_and_receive(unsigned index, unsigned char* data, unsigned char* target, size_t bytes) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  pair_fill(data, bytes, (uint64_t)pair_rank * kMost + index);
  memset(target, 0, bytes);
  const ucs_status_ptr_t receive = ucp_tag_recv_nbx(worker, target, bytes, 1, ~0ull, &param);
  const ucs_status_ptr_t send = ucp_tag_send_nbx(eps[index], data, bytes, 1, &param);
  finish(receive, "a receive");
  finish(send, "a send");
  CHECK_CONTENT(target, bytes, (uint64_t)!pair_rank * kMost + index, "worker %u", index);
}

static unsigned char* make_memory(void) {
  void* memory;
  CHECK(posix_memalign(&memory, 4096, kWindow) == 0, "no memory");
  memset(memory, 0, kWindow);
  return memory;
}

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : kMost;
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
  const ucp_request_param_t param = {.op_attr_mask = 0};
  uint64_t remote;
  ucp_mem_h memh;
  pair_begin("ucp_workers_check", 50);
  CHECK(count <= kMost, "too many");
  unsigned char *const window = make_memory(), *const data = make_memory(), *const target = make_memory();
  UCX_OK(ucp_init(&params, NULL, &context));
  open_worker(0);
  ucp_rkey_h keys[kMost];
  keys[0] = ucp_pair_share(context, eps[0], window, kWindow, &remote, &memh);
  void* packed;
  size_t packed_bytes;
  UCX_OK(ucp_rkey_pack(context, memh, &packed, &packed_bytes));
  pair_tell(packed, packed_bytes);
  ucp_rkey_buffer_release(packed);
  packed = pair_hear();
  for (unsigned i = 1; i < count; i++) {
    open_worker(i);
    UCX_OK(ucp_ep_rkey_unpack(eps[i], packed, &keys[i]));
  }
  free(packed);
  for (unsigned round = 0; round < 3; round++) {
    static const size_t sizes[] = {8, 9000, kWindow};
    for (unsigned i = 0; i < count; i++) {
      worker = workers[i];
      send_and_receive(i, data, target, sizes[round]);
      finish(ucp_put_nbx(eps[i], data, sizes[round], remote, keys[i], &param), "a put");
      finish(ucp_ep_flush_nbx(eps[i], &param), "a flush");
      pair_meet(progress);
      CHECK_CONTENT(window, sizes[round], (uint64_t)!pair_rank * kMost + i, "put of worker %u", i);
      pair_meet(progress);
    }
  }
  for (unsigned i = 0; i < count; i++) {
    worker = workers[i];
    ucp_rkey_destroy(keys[i]);
    finish(ucp_ep_close_nbx(eps[i], &param), "the end of an endpoint");
    pair_meet(progress);
  }
  UCX_OK(ucp_mem_unmap(context, memh));
  for (unsigned i = 0; i < count; i++) {
    ucp_worker_destroy(workers[i]);
  }
  ucp_cleanup(context);
  return pair_end();
}
