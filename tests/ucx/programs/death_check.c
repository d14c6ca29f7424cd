// Two processes, the layer UCP over whatever UCX_TLS names: the second is killed, and the error handler of the first
// one's endpoint says so, whether the first sends, gets, only asks now and then (UCX_KEEPALIVE_INTERVAL), or sends its
// first message. What was begun ends with an error, and the endpoint closes.
// Usage: death_check sending|getting|idle|unmet
#include <ucp/api/ucp.h>

#include "pair.h"

enum { kWindow = 1 << 20 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static ucs_status_t handler_saw = UCS_OK;

static void progress(void) { ucp_worker_progress(worker); }
static void nothing(void) {}

static void on_error(void* arg, ucp_ep_h failed, ucs_status_t status) {
  (void)arg;
  CHECK(failed == ep, "the handler is told of another endpoint");
  CHECK(handler_saw == UCS_OK, "the handler is told twice");
  handler_saw = status;
}

static ucs_status_t finish(ucs_status_ptr_t request) {
  ucs_status_t status = UCS_PTR_STATUS(request);
  if (UCS_PTR_IS_PTR(request)) {
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
      progress();
    }
    ucp_request_free(request);
  }
  return status;
}

static void open_worker(void) {
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
  const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                             .thread_mode = UCS_THREAD_MODE_SINGLE};
  UCX_OK(ucp_init(&params, NULL, &context));
  UCX_OK(ucp_worker_create(context, &worker_params, &worker));
}

static void connect_to_peer(void) {
  ucp_address_t* mine;
  size_t bytes;
  UCX_OK(ucp_worker_get_address(worker, &mine, &bytes));
  pair_tell(mine, bytes);
  ucp_worker_release_address(worker, mine);
  ucp_address_t* const its = pair_hear();
  const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                                                UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                  .address = its,
                                  .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                  .err_handler.cb = on_error};
  UCX_OK(ucp_ep_create(worker, &params, &ep));
  free(its);
}

// A message each way, so that the connection is whole.
static void greet(void) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  char mine = 'm', its;
  const ucs_status_ptr_t receive = ucp_tag_recv_nbx(worker, &its, 1, 1, ~0ull, &param);
  UCX_OK(finish(ucp_tag_send_nbx(ep, &mine, 1, 1, &param)));
  UCX_OK(finish(receive));
  pair_meet(progress);
}

static ucp_rkey_h share_memory(unsigned char* window, uint64_t* remote) {
  void* packed;
  size_t bytes;
  ucp_mem_h memh;
  ucp_rkey_h key;
  const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                       .address = window,
                                       .length = kWindow};
  const uint64_t address = (uintptr_t)window;
  UCX_OK(ucp_mem_map(context, &params, &memh));
  UCX_OK(ucp_rkey_pack(context, memh, &packed, &bytes));
  pair_tell(packed, bytes);
  ucp_rkey_buffer_release(packed);
  packed = pair_hear();
  UCX_OK(ucp_ep_rkey_unpack(ep, packed, &key));
  free(packed);
  pair_send(&address, sizeof address);
  pair_receive(remote, sizeof *remote);
  return key;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "sending";
  const ucp_request_param_t param = {.op_attr_mask = 0};
  unsigned char *window = NULL, *data = NULL;
  uint64_t remote;
  ucp_rkey_h key = NULL;
  pair_begin("death_check", 50);
  CHECK(posix_memalign((void**)&window, 4096, kWindow) == 0 && (data = malloc(kWindow)) != NULL, "no memory");
  memset(window, 1, kWindow);
  memset(data, 2, kWindow);
  open_worker();
  connect_to_peer();
  const int unmet = strcmp(how, "unmet") == 0;
  if (!unmet) {
    greet();
    key = share_memory(window, &remote);
  }
  pair_meet(nothing);
  if (pair_rank == 1) {
    raise(SIGKILL);
  }
  ucs_status_t last = UCS_OK;
  for (unsigned i = 0; handler_saw == UCS_OK; i++) {
    if (unmet || strcmp(how, "sending") == 0) {
      const ucs_status_ptr_t request = ucp_tag_send_nbx(ep, data, i % 3 == 2 ? kWindow : 100, 2, &param);
      last = finish(request);
    } else if (strcmp(how, "getting") == 0) {
      last = finish(ucp_get_nbx(ep, data, kWindow, remote, key, &param));
    }
    progress();
  }
  CHECK(strcmp(how, "getting") != 0 || last != UCS_OK, "a get from a dead peer went well");
  if (key != NULL) {
    ucp_rkey_destroy(key);
  }
  const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
  finish(ucp_ep_close_nbx(ep, &force));
  ucp_worker_destroy(worker);
  CHECK(waitpid(pair_child, NULL, 0) == pair_child, "no second process to wait for");
  printf("death_check: verified on 2: %s\n", ucs_status_string(handler_saw));
  return 0;
}
