/* Interfaces of a worker of several threads (UCS_THREAD_MODE_MULTI): a lock each, held through every call. Handlers and
 * completions are called with it, so it is one that its holder may take again. */
#include "iface.h"

#define LOCKED(type, name, interface, params, ...)           \
  static type locked_##name params {                         \
    uct_utofu_iface_t* const iface = interface;              \
    pthread_mutex_lock(&iface->lock);                        \
    const type returned = iface->unlocked.name(__VA_ARGS__); \
    pthread_mutex_unlock(&iface->lock);                      \
    return returned;                                         \
  }
#define OF_EP(type, name, params, ...) LOCKED(type, name, uct_utofu_iface_of(ep), params, __VA_ARGS__)
#define OF_IFACE(type, name, params, ...) \
  LOCKED(type, name, ucs_derived_of(tl_iface, uct_utofu_iface_t), params, __VA_ARGS__)

OF_EP(ucs_status_t, ep_put_short, (uct_ep_h ep, const void* buffer, unsigned length, uint64_t to, uct_rkey_t rkey), ep,
      buffer, length, to, rkey)
OF_EP(ssize_t, ep_put_bcopy, (uct_ep_h ep, uct_pack_callback_t pack, void* arg, uint64_t to, uct_rkey_t rkey), ep, pack,
      arg, to, rkey)
OF_EP(ucs_status_t, ep_put_zcopy,
      (uct_ep_h ep, const uct_iov_t* iov, size_t count, uint64_t to, uct_rkey_t rkey, uct_completion_t* comp), ep, iov,
      count, to, rkey, comp)
OF_EP(ucs_status_t, ep_get_short, (uct_ep_h ep, void* buffer, unsigned length, uint64_t from, uct_rkey_t rkey), ep,
      buffer, length, from, rkey)
OF_EP(ucs_status_t, ep_get_bcopy,
      (uct_ep_h ep, uct_unpack_callback_t unpack, void* arg, size_t length, uint64_t from, uct_rkey_t rkey,
       uct_completion_t* comp),
      ep, unpack, arg, length, from, rkey, comp)
OF_EP(ucs_status_t, ep_get_zcopy,
      (uct_ep_h ep, const uct_iov_t* iov, size_t count, uint64_t from, uct_rkey_t rkey, uct_completion_t* comp), ep,
      iov, count, from, rkey, comp)
OF_EP(ucs_status_t, ep_am_short, (uct_ep_h ep, uint8_t id, uint64_t header, const void* payload, unsigned length), ep,
      id, header, payload, length)
OF_EP(ucs_status_t, ep_am_short_iov, (uct_ep_h ep, uint8_t id, const uct_iov_t* iov, size_t count), ep, id, iov, count)
OF_EP(ssize_t, ep_am_bcopy, (uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned flags), ep, id,
      pack, arg, flags)
OF_EP(ucs_status_t, ep_am_zcopy,
      (uct_ep_h ep, uint8_t id, const void* header, unsigned header_length, const uct_iov_t* iov, size_t count,
       unsigned flags, uct_completion_t* comp),
      ep, id, header, header_length, iov, count, flags, comp)
OF_EP(ucs_status_t, ep_atomic_cswap64,
      (uct_ep_h ep, uint64_t compare, uint64_t swap, uint64_t at, uct_rkey_t rkey, uint64_t* result,
       uct_completion_t* comp),
      ep, compare, swap, at, rkey, result, comp)
OF_EP(ucs_status_t, ep_atomic_cswap32,
      (uct_ep_h ep, uint32_t compare, uint32_t swap, uint64_t at, uct_rkey_t rkey, uint32_t* result,
       uct_completion_t* comp),
      ep, compare, swap, at, rkey, result, comp)
OF_EP(ucs_status_t, ep_atomic32_post, (uct_ep_h ep, uct_atomic_op_t op, uint32_t value, uint64_t at, uct_rkey_t rkey),
      ep, op, value, at, rkey)
OF_EP(ucs_status_t, ep_atomic64_post, (uct_ep_h ep, uct_atomic_op_t op, uint64_t value, uint64_t at, uct_rkey_t rkey),
      ep, op, value, at, rkey)
OF_EP(ucs_status_t, ep_atomic32_fetch,
      (uct_ep_h ep, uct_atomic_op_t op, uint32_t value, uint32_t* result, uint64_t at, uct_rkey_t rkey,
       uct_completion_t* comp),
      ep, op, value, result, at, rkey, comp)
OF_EP(ucs_status_t, ep_atomic64_fetch,
      (uct_ep_h ep, uct_atomic_op_t op, uint64_t value, uint64_t* result, uint64_t at, uct_rkey_t rkey,
       uct_completion_t* comp),
      ep, op, value, result, at, rkey, comp)
OF_EP(ucs_status_t, ep_flush, (uct_ep_h ep, unsigned flags, uct_completion_t* comp), ep, flags, comp)
OF_EP(ucs_status_t, ep_fence, (uct_ep_h ep, unsigned flags), ep, flags)
OF_EP(ucs_status_t, ep_check, (uct_ep_h ep, unsigned flags, uct_completion_t* comp), ep, flags, comp)
OF_EP(ucs_status_t, ep_pending_add, (uct_ep_h ep, uct_pending_req_t* request, unsigned flags), ep, request, flags)
OF_IFACE(ucs_status_t, iface_flush, (uct_iface_h tl_iface, unsigned flags, uct_completion_t* comp), tl_iface, flags,
         comp)
OF_IFACE(ucs_status_t, iface_fence, (uct_iface_h tl_iface, unsigned flags), tl_iface, flags)
OF_IFACE(ucs_status_t, iface_event_fd_get, (uct_iface_h tl_iface, int* fd_p), tl_iface, fd_p)
OF_IFACE(ucs_status_t, iface_event_arm, (uct_iface_h tl_iface, unsigned events), tl_iface, events)
OF_IFACE(unsigned, iface_progress, (uct_iface_h tl_iface), tl_iface)
LOCKED(ucs_status_t, ep_create, ucs_derived_of(params->iface, uct_utofu_iface_t),
       (const uct_ep_params_t* params, uct_ep_h* ep_p), params, ep_p)

static void locked_ep_destroy(uct_ep_h ep) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(ep);
  pthread_mutex_lock(&iface->lock);
  iface->unlocked.ep_destroy(ep);
  pthread_mutex_unlock(&iface->lock);
}

static void locked_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void* arg) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(ep);
  pthread_mutex_lock(&iface->lock);
  iface->unlocked.ep_pending_purge(ep, cb, arg);
  pthread_mutex_unlock(&iface->lock);
}

void uct_utofu_multi_init(uct_utofu_iface_t* iface) {
  uct_iface_ops_t* const ops = &iface->super.super.ops;
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&iface->lock, &attr);
  pthread_mutexattr_destroy(&attr);
  iface->unlocked = *ops;
  ops->ep_put_short = locked_ep_put_short;
  ops->ep_put_bcopy = locked_ep_put_bcopy;
  ops->ep_put_zcopy = locked_ep_put_zcopy;
  ops->ep_get_short = locked_ep_get_short;
  ops->ep_get_bcopy = locked_ep_get_bcopy;
  ops->ep_get_zcopy = locked_ep_get_zcopy;
  ops->ep_am_short = locked_ep_am_short;
  ops->ep_am_short_iov = locked_ep_am_short_iov;
  ops->ep_am_bcopy = locked_ep_am_bcopy;
  ops->ep_am_zcopy = locked_ep_am_zcopy;
  ops->ep_atomic_cswap64 = locked_ep_atomic_cswap64;
  ops->ep_atomic_cswap32 = locked_ep_atomic_cswap32;
  ops->ep_atomic32_post = locked_ep_atomic32_post;
  ops->ep_atomic64_post = locked_ep_atomic64_post;
  ops->ep_atomic32_fetch = locked_ep_atomic32_fetch;
  ops->ep_atomic64_fetch = locked_ep_atomic64_fetch;
  ops->ep_flush = locked_ep_flush;
  ops->ep_fence = locked_ep_fence;
  ops->ep_check = locked_ep_check;
  ops->ep_pending_add = locked_ep_pending_add;
  ops->ep_pending_purge = locked_ep_pending_purge;
  ops->ep_create = locked_ep_create;
  ops->ep_destroy = locked_ep_destroy;
  ops->iface_flush = locked_iface_flush;
  ops->iface_fence = locked_iface_fence;
  ops->iface_event_fd_get = locked_iface_event_fd_get;
  ops->iface_event_arm = locked_iface_event_arm;
  ops->iface_progress = locked_iface_progress;
}
