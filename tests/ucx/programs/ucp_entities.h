// What programs of one process share beside pair.h: several entities on UCP, a context and a worker each, and endpoints
// between them.
#ifndef PORTOFU_TESTS_UCX_UCP_ENTITIES_H
#define PORTOFU_TESTS_UCX_UCP_ENTITIES_H

#include <string.h>
#include <ucp/api/ucp.h>

#include "pair.h"

enum { kLong = 3 << 20, kMostEntities = 8, kAmId = 3 };

typedef struct entity {
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_ep_h ep;      // To the other one, or NULL.
  ucp_ep_h failed;  // What the error handler was told of.
  unsigned errors;
  ucs_status_t error;
  ucp_conn_request_h request;
  unsigned ams;
} entity_t;

static entity_t entities[kMostEntities];
static unsigned entity_count;

static void progress(void) {
  for (unsigned i = 0; i < entity_count; i++) {
    if (entities[i].worker != NULL) {
      ucp_worker_progress(entities[i].worker);
    }
  }
}

static ucs_status_t on_am(void* arg, const void* header, size_t header_length, void* data, size_t length,
                          const ucp_am_recv_param_t* param) {
  (void)header, (void)header_length, (void)data, (void)length, (void)param;
  ((entity_t*)arg)->ams++;
  return UCS_OK;
}

static entity_t* make_entity(ucs_thread_mode_t mode) {
  entity_t* const self = &entities[entity_count++];
  const ucp_params_t params = {
      .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
      .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_STREAM | UCP_FEATURE_AM,
      .mt_workers_shared = mode == UCS_THREAD_MODE_MULTI};
  const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = mode};
  const ucp_am_handler_param_t handler = {
      .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
      .id = kAmId,
      .cb = on_am,
      .arg = self};
  memset(self, 0, sizeof *self);
  UCX_OK(ucp_init(&params, NULL, &self->context));
  UCX_OK(ucp_worker_create(self->context, &worker_params, &self->worker));
  UCX_OK(ucp_worker_set_am_recv_handler(self->worker, &handler));
  return self;
}

static void close_worker(entity_t* self) {
  ucp_worker_destroy(self->worker);
  ucp_cleanup(self->context);
  self->worker = NULL;
}

static void on_error(void* arg, ucp_ep_h ep, ucs_status_t status) {
  entity_t* const self = arg;
  self->failed = ep;
  self->error = status;
  self->errors++;
}

static ucp_ep_h connect_to(entity_t* from, entity_t* to, int handles_errors) {
  ucp_address_t* address;
  size_t bytes;
  ucp_ep_h ep;
  UCX_OK(ucp_worker_get_address(to->worker, &address, &bytes));
  ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
  if (handles_errors) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = (ucp_err_handler_t){.cb = on_error, .arg = from};
  }
  UCX_OK(ucp_ep_create(from->worker, &params, &ep));
  ucp_worker_release_address(to->worker, address);
  return ep;
}

static ucs_status_t end_of(ucs_status_ptr_t request) {
  ucs_status_t status = UCS_PTR_STATUS(request);
  if (UCS_PTR_IS_PTR(request)) {
    UNTIL((status = ucp_request_check_status(request)) != UCS_INPROGRESS);
    ucp_request_free(request);
  }
  return status;
}

#define ENDS_OK(request) UCX_OK(end_of(request))

static ucs_status_t close_ep(ucp_ep_h ep, unsigned flags) {
  const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
  return end_of(ucp_ep_close_nbx(ep, &param));
}

static void* memory_of(size_t bytes) {
  void* const memory = malloc(bytes != 0 ? bytes : 1);
  CHECK(memory != NULL, "no memory");
  return memory;
}

#endif
