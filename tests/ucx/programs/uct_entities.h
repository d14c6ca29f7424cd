// What programs of one process share beside pair.h: several entities on UCT, an interface each, with a worker and
// memory, endpoints between them, and messages.
#ifndef PORTOFU_TESTS_UCX_UCT_ENTITIES_H
#define PORTOFU_TESTS_UCX_UCT_ENTITIES_H

#include <string.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include "uct_component.h"

enum { kMemory = 1 << 16, kMostEps = 64, kMostEntities = 20 };

typedef struct entity {
  ucs_async_context_t* async;
  uct_worker_h worker;
  uct_iface_h iface;
  uct_iface_attr_t attr;
  unsigned char* memory;
  uct_mem_h memh;
  uct_rkey_bundle_t key;
  unsigned char address[64];
  uct_ep_h eps[kMostEps];
  unsigned ep_count;
  unsigned errors;  // That its error handler was told of.
  uct_ep_h failed;
  ucs_status_t error;
  uint64_t taken, sum;
} entity_t;

static entity_t entities[kMostEntities];
static unsigned entity_count;

static void progress(void) {
  for (unsigned i = 0; i < entity_count; i++) {
    if (entities[i].worker != NULL) {
      uct_worker_progress(entities[i].worker);
    }
  }
}

#define TRY(call)                                          \
  ({                                                       \
    ssize_t try_status;                                    \
    while ((try_status = (call)) == UCS_ERR_NO_RESOURCE) { \
      progress();                                          \
    }                                                      \
    try_status;                                            \
  })

static ucs_status_t on_error(void* arg, uct_ep_h failed, ucs_status_t status) {
  entity_t* const self = arg;
  self->errors++;
  self->failed = failed;
  self->error = status;
  return UCS_OK;
}

static ucs_status_t on_message(void* arg, void* data, size_t length, unsigned flags) {
  entity_t* const self = arg;
  uint64_t first;
  (void)flags;
  memcpy(&first, data, sizeof first);
  CHECK_CONTENT((char*)data + sizeof first, length - sizeof first, first, "message %lu", (unsigned long)self->taken);
  self->taken++;
  self->sum += first;
  return UCS_OK;
}

static void open_memory(entity_t* self) {
  unsigned char packed[256];
  void* memory;
  CHECK(posix_memalign(&memory, 4096, kMemory) == 0, "no memory");
  self->memory = memory;
  memset(memory, 0, kMemory);
  UCX_OK(uct_md_mem_reg(md, memory, kMemory, UCT_MD_MEM_ACCESS_ALL, &self->memh));
  UCX_OK(uct_md_mkey_pack(md, self->memh, packed));
  UCX_OK(uct_rkey_unpack(component, packed, &self->key));
}

static void close_memory(entity_t* self) {
  UCX_OK(uct_rkey_release(component, &self->key));
  UCX_OK(uct_md_mem_dereg(md, self->memh));
  free(self->memory);
}

static void open_iface(entity_t* self) {
  uct_iface_config_t* config;
  const uct_iface_params_t params = {.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                                                   UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                                   UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG,
                                     .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
                                     .mode.device = {.tl_name = "utofu", .dev_name = "tni0"},
                                     .err_handler = on_error,
                                     .err_handler_arg = self};
  UCX_OK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &self->async));
  UCX_OK(uct_worker_create(self->async, UCS_THREAD_MODE_SINGLE, &self->worker));
  UCX_OK(uct_md_iface_config_read(md, "utofu", NULL, NULL, &config));
  UCX_OK(uct_iface_open(md, self->worker, &params, config, &self->iface));
  uct_config_release(config);
  UCX_OK(uct_iface_query(self->iface, &self->attr));
  CHECK(self->attr.iface_addr_len <= sizeof self->address, "a long address");
  UCX_OK(uct_iface_get_address(self->iface, (uct_iface_addr_t*)self->address));
  UCX_OK(uct_iface_set_am_handler(self->iface, 0, on_message, self, 0));
  uct_iface_progress_enable(self->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

static entity_t* make_entity(void) {
  entity_t* const self = &entities[entity_count++];
  memset(self, 0, sizeof *self);
  open_iface(self);
  open_memory(self);
  return self;
}

static uct_ep_h connect_ep(entity_t* from, const entity_t* to) {
  const uct_ep_params_t params = {
      .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR,
      .iface = from->iface,
      .dev_addr = (const uct_device_addr_t*)to->address,
      .iface_addr = (const uct_iface_addr_t*)to->address};
  uct_ep_h made;
  UCX_OK(uct_ep_create(&params, &made));
  return made;
}

static uct_ep_h add_ep(entity_t* from, const entity_t* to) {
  return from->eps[from->ep_count++] = connect_ep(from, to);
}

static void close_iface(entity_t* self) {
  while (self->ep_count > 0) {
    uct_ep_destroy(self->eps[--self->ep_count]);
  }
  uct_iface_close(self->iface);
  uct_worker_destroy(self->worker);
  ucs_async_context_destroy(self->async);
  self->worker = NULL;
}

static void close_entities(void) {
  for (unsigned i = 0; i < entity_count; i++) {
    if (entities[i].worker != NULL) {
      close_iface(&entities[i]);
    }
    close_memory(&entities[i]);
  }
  entity_count = 0;
}

// ---- messages ----

typedef struct {
  size_t length;
  uint64_t seed;
} packed_t;

static size_t pack(void* to, void* arg) {
  const packed_t* const what = arg;
  memcpy(to, &what->seed, sizeof what->seed);
  pair_fill((char*)to + sizeof what->seed, what->length - sizeof what->seed, what->seed);
  return what->length;
}

static ucs_status_t send_bcopy(uct_ep_h ep, uint64_t seed, size_t length) {
  packed_t what = {length, seed};
  const ssize_t sent = uct_ep_am_bcopy(ep, 0, pack, &what, 0);
  CHECK(sent < 0 || sent == (ssize_t)length, "%zd bytes are sent of %zu", sent, length);
  return sent < 0 ? (ucs_status_t)sent : UCS_OK;
}

typedef struct {
  uct_completion_t super;
  unsigned calls;
} done_t;

static void on_done(uct_completion_t* self) { ((done_t*)self)->calls++; }

static done_t expect(int count) { return (done_t){.super = {.func = on_done, .count = count, .status = UCS_OK}}; }

static ucs_status_t send_zcopy(entity_t* from, uct_ep_h ep, uint64_t seed, size_t length, done_t* done) {
  const uct_iov_t iov[] = {{from->memory, length / 2, from->memh, 0, 1},
                           {from->memory + length / 2, length - length / 2, from->memh, 0, 1}};
  pair_fill(from->memory, length, seed);
  return uct_ep_am_zcopy(ep, 0, &seed, sizeof seed, iov, 2, 0, &done->super);
}

static void flush_ep(uct_ep_h ep) { UNTIL(uct_ep_flush(ep, 0, NULL) == UCS_OK); }

// ---- sleep ----

static int is_signaled(int fd, int timeout_ms) {
  struct pollfd look = {.fd = fd, .events = POLLIN};
  return poll(&look, 1, timeout_ms) == 1;
}

// Until nothing comes, then it sleeps.
static void arm(entity_t* self, unsigned events) {
  ucs_status_t status;
  while ((status = uct_iface_event_arm(self->iface, events)) == UCS_ERR_BUSY) {
    uct_worker_progress(self->worker);
  }
  UCX_OK(status);
}

// ---- cases ----

typedef struct test_case {
  const char* name;
  void (*run)(void);
} test_case_t;

// Runs the case that the command line names, or the first, for 50 seconds at most.
static int run_case(const char* program, const test_case_t* cases, unsigned count, const char* name) {
  pair_program = program;
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  open_component("tni0");
  for (unsigned i = 0; i < count; i++) {
    if (name == NULL || strcmp(cases[i].name, name) == 0) {
      cases[i].run();
      uct_md_close(md);
      printf("%s: verified on 1\n", pair_program);
      return 0;
    }
  }
  CHECK(0, "there is no case %s", name);
}

#endif
