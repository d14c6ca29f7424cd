// What the programs on UCP share beside pair.h: a worker that finds its peer, and memory that each opens to the other.
#ifndef PORTOFU_TESTS_UCX_UCP_PAIR_H
#define PORTOFU_TESTS_UCX_UCP_PAIR_H

#include <ucp/api/ucp.h>

#include "pair.h"

// Makes an endpoint to the peer's worker. `how` says what is to be set beside its address.
static inline ucp_ep_h ucp_pair_connect(ucp_worker_h worker, ucp_ep_params_t how) {
  ucp_address_t* mine;
  size_t bytes;
  ucp_ep_h ep;
  UCX_OK(ucp_worker_get_address(worker, &mine, &bytes));
  pair_tell(mine, bytes);
  ucp_worker_release_address(worker, mine);
  ucp_address_t* const its = pair_hear();
  how.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  how.address = its;
  UCX_OK(ucp_ep_create(worker, &how, &ep));
  free(its);
  return ep;
}

// Waits until a request has ended, and checks that it did so well.
static inline void ucp_pair_finish(ucp_worker_h worker, ucs_status_ptr_t request, const char* what) {
  ucs_status_t status = UCS_PTR_STATUS(request);
  if (UCS_PTR_IS_PTR(request)) {
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
      ucp_worker_progress(worker);
    }
    ucp_request_free(request);
  }
  CHECK(status == UCS_OK, "%s gives %s", what, ucs_status_string(status));
}

// Opens `bytes` at `window` to the peer. Returns the key to the peer's, which begins at *remote.
static inline ucp_rkey_h ucp_pair_share(ucp_context_h context, ucp_ep_h ep, void* window, size_t bytes,
                                        uint64_t* remote, ucp_mem_h* memh) {
  void* packed;
  size_t packed_bytes;
  ucp_rkey_h key;
  const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                       .address = window,
                                       .length = bytes};
  const uint64_t address = (uintptr_t)window;
  UCX_OK(ucp_mem_map(context, &params, memh));
  UCX_OK(ucp_rkey_pack(context, *memh, &packed, &packed_bytes));
  pair_tell(packed, packed_bytes);
  ucp_rkey_buffer_release(packed);
  packed = pair_hear();
  UCX_OK(ucp_ep_rkey_unpack(ep, packed, &key));
  free(packed);
  pair_send(&address, sizeof address);
  pair_receive(remote, sizeof *remote);
  return key;
}

#endif
