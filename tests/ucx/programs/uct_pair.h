// What the programs on UCT share beside pair.h: an interface of the transport utofu, an endpoint to the other process,
// memory that each opens to the other, and completions.
#ifndef PORTOFU_TESTS_UCX_UCT_PAIR_H
#define PORTOFU_TESTS_UCX_UCT_PAIR_H

#include <string.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include "uct_component.h"

enum { kWindow = 1 << 20 };

static ucs_async_context_t* async;
static uct_worker_h worker;
static uct_iface_h iface;
static uct_iface_attr_t attr;
static uct_ep_params_t ep_params;
static uct_ep_h ep;
static unsigned char *window, *source;  // Ours for the peer; what we send from.
static uct_mem_h window_memh, source_memh;
static uct_rkey_bundle_t key;
static uint64_t remote;  // The peer's window.

static void progress(void) { uct_worker_progress(worker); }

static uct_completion_t completion;
static unsigned completed;

static void on_completion(uct_completion_t* self) {
  (void)self;
  completed++;
}

static uct_completion_t* expect_completion(void) {
  completion = (uct_completion_t){.func = on_completion, .count = 1, .status = UCS_OK};
  completed = 0;
  return &completion;
}

static void wait_completion(void) {
  while (completed == 0) {
    progress();
  }
  UCX_OK(completion.status);
}

// Tries again while there is no room.
#define POST(expected, call)                                                                                     \
  do {                                                                                                           \
    ssize_t post_status;                                                                                         \
    while ((post_status = (call)) == UCS_ERR_NO_RESOURCE) {                                                      \
      progress();                                                                                                \
    }                                                                                                            \
    CHECK(post_status == (ssize_t)(expected), "%s gives %zd, not %zd", #call, post_status, (ssize_t)(expected)); \
  } while (0)

static void flush(void) {
  while (uct_ep_flush(ep, 0, NULL) != UCS_OK) {
    progress();
  }
}

static void flush_and_meet(void) {
  flush();
  pair_meet(progress);
}

static void open_iface(const char* tni, uct_error_handler_t on_error) {
  uct_iface_config_t* config;
  UCX_OK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
  UCX_OK(uct_worker_create(async, getenv("THREADS") ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE, &worker));
  const uct_iface_params_t params = {
      .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE | UCT_IFACE_PARAM_FIELD_ERR_HANDLER,
      .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
      .mode.device = {.tl_name = "utofu", .dev_name = tni},
      .err_handler = on_error};
  UCX_OK(uct_md_iface_config_read(md, "utofu", NULL, NULL, &config));
  UCX_OK(uct_iface_open(md, worker, &params, config, &iface));
  uct_config_release(config);
  UCX_OK(uct_iface_query(iface, &attr));
  uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

static void connect_to_peer(void) {
  static unsigned char its[256];
  unsigned char mine[256], key_buffer[256];
  uct_md_attr_t md_attr;
  UCX_OK(uct_md_query(md, &md_attr));
  CHECK(attr.iface_addr_len <= sizeof its && md_attr.rkey_packed_size <= sizeof key_buffer, "long addresses");
  UCX_OK(uct_iface_get_address(iface, (uct_iface_addr_t*)mine));
  pair_send(mine, attr.iface_addr_len);
  pair_receive(its, attr.iface_addr_len);
  ep_params = (uct_ep_params_t){
      .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR,
      .iface = iface,
      .dev_addr = (const uct_device_addr_t*)its,
      .iface_addr = (const uct_iface_addr_t*)its};
  CHECK(uct_iface_is_reachable(iface, NULL, ep_params.iface_addr), "the peer is not reachable");
  UCX_OK(uct_ep_create(&ep_params, &ep));

  UCX_OK(uct_md_mkey_pack(md, window_memh, key_buffer));
  const uint64_t address = (uintptr_t)window;
  pair_send(key_buffer, md_attr.rkey_packed_size);
  pair_send(&address, sizeof address);
  pair_receive(key_buffer, md_attr.rkey_packed_size);
  pair_receive(&remote, sizeof remote);
  UCX_OK(uct_rkey_unpack(component, key_buffer, &key));
}

static unsigned char* make_memory(uct_mem_h* memh) {
  void* memory;
  CHECK(posix_memalign(&memory, 4096, kWindow) == 0, "no memory");
  memset(memory, 0, kWindow);
  UCX_OK(uct_md_mem_reg(md, memory, kWindow, UCT_MD_MEM_ACCESS_ALL, memh));
  return memory;
}

static void make_memories(void) {
  window = make_memory(&window_memh);
  source = make_memory(&source_memh);
}

static void close_all(void) {
  uct_rkey_release(component, &key);
  UCX_OK(uct_md_mem_dereg(md, window_memh));
  UCX_OK(uct_md_mem_dereg(md, source_memh));
  uct_iface_close(iface);
  uct_worker_destroy(worker);
  ucs_async_context_destroy(async);
  uct_md_close(md);
}

#endif
