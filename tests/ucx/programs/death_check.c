// Two processes, the layer UCP over whatever UCX_TLS names: the second is killed, and the error handler of the first
// one's endpoint says so, whether the first sends, gets, only asks now and then (UCX_KEEPALIVE_INTERVAL), or sends its
// first message. What was begun ends with an error, and the endpoint closes.
// Usage: death_check sending|getting|idle|unmet

#include <string.h>

#include "ucp_pair.h"

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

// A message each way, so that the connection is whole.
static void greet(void) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  char mine = 'm', its;
  const ucs_status_ptr_t receive = ucp_tag_recv_nbx(worker, &its, 1, 1, ~0ull, &param);
  UCX_OK(finish(ucp_tag_send_nbx(ep, &mine, 1, 1, &param)));
  UCX_OK(finish(receive));
  pair_meet(progress);
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "sending";
  const ucp_request_param_t param = {.op_attr_mask = 0};
  unsigned char *window = NULL, *data = NULL;
  uint64_t remote;
  ucp_rkey_h key = NULL;
  ucp_mem_h memh;
  pair_begin("death_check", 50);
  CHECK(posix_memalign((void**)&window, 4096, kWindow) == 0 && (data = malloc(kWindow)) != NULL, "no memory");
  memset(window, 1, kWindow);
  memset(data, 2, kWindow);
  open_worker();
  ep = ucp_pair_connect(
      worker, (ucp_ep_params_t){.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                .err_handler.cb = on_error});
  const int unmet = strcmp(how, "unmet") == 0;
  if (!unmet) {
    greet();
    key = ucp_pair_share(context, ep, window, kWindow, &remote, &memh);
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
