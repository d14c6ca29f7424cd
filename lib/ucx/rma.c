/* Puts and gets. Each asks for the local notice of the MRQ, which says that it is complete at the target. */
#include "iface.h"

#include <uct/base/uct_iov.inl>

static const unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;

static ucs_status_t check_range(const uct_utofu_rkey_t* key, uint64_t remote_addr, size_t length) {
  if (ucs_unlikely(remote_addr < key->start || length > key->length ||
                   remote_addr - key->start > key->length - length)) {
    ucs_error("%zu bytes at 0x%lx are outside of the memory of the key", length, (unsigned long)remote_addr);
    return UCS_ERR_INVALID_PARAM;
  }
  return UCS_OK;
}

static unsigned put_kind(const uct_utofu_iface_t* iface) {
  return iface->config.put_order != 0 ? UCT_UTOFU_PUT : UCT_UTOFU_OTHER;
}

/* @param what   what is to be posted
 * @param key_p  the key, if the range lies in what it is for and the endpoint may post */
static ucs_status_t begin_access(uct_ep_h tl_ep, unsigned what, uint64_t remote_addr, size_t length, uct_rkey_t rkey,
                                 const uct_utofu_rkey_t** key_p) {
  *key_p = (const uct_utofu_rkey_t*)rkey;
  const ucs_status_t status = check_range(*key_p, remote_addr, length);
  return status != UCS_OK ? status
                          : uct_utofu_ep_may_post(uct_utofu_iface_of(tl_ep), ucs_derived_of(tl_ep, uct_utofu_ep_t),
                                                  what, (*key_p)->rails[0].vcq_id);
}

static void note_put(const uct_utofu_iface_t* iface, uct_utofu_op_t* op, const uct_utofu_rkey_t* key) {
  op->what = (uint8_t)put_kind(iface);
  op->to = key->rails[0].vcq_id;
}

static utofu_stadd_t remote_stadd(const uct_utofu_rkey_t* key, uint64_t remote_addr) {
  return key->rails[0].stadd + (remote_addr - key->start);
}

ucs_status_t uct_utofu_ep_put_short(uct_ep_h tl_ep, const void* buffer, unsigned length, uint64_t remote_addr,
                                    uct_rkey_t rkey) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  const uct_utofu_rkey_t* key;
  UCT_CHECK_LENGTH(length, 0, UCT_UTOFU_PIGGYBACK, "put_short");
  UCT_SKIP_ZERO_LENGTH(length);
  const ucs_status_t status = begin_access(tl_ep, put_kind(iface), remote_addr, length, rkey, &key);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ucs_derived_of(tl_ep, uct_utofu_ep_t), 1, 0);
  if (ucs_unlikely(op == NULL)) {
    return UCS_ERR_NO_RESOURCE;
  }
  note_put(iface, op, key);
  return uct_utofu_op_posted(
      iface, op,
      utofu_put_piggyback(iface->vcq, key->rails[0].vcq_id, (void*)buffer, remote_stadd(key, remote_addr), length,
                          op->tag, kLocal | iface->config.put_order, op));
}

ssize_t uct_utofu_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack, void* arg, uint64_t remote_addr,
                               uct_rkey_t rkey) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  const uct_utofu_rkey_t* key;
  ucs_status_t status = begin_access(tl_ep, put_kind(iface), remote_addr, 0, rkey, &key);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ucs_derived_of(tl_ep, uct_utofu_ep_t), 1, 1);
  if (ucs_unlikely(op == NULL)) {
    return UCS_ERR_NO_RESOURCE;
  }
  const size_t length = pack(op->buffer, arg);
  if (length == 0) {
    uct_utofu_op_drop(iface, op);
    return 0;
  }
  status = check_range(key, remote_addr, length);
  if (ucs_unlikely(status != UCS_OK)) {
    uct_utofu_op_drop(iface, op);
    return status;
  }
  note_put(iface, op, key);
  status = uct_utofu_op_posted(
      iface, op,
      utofu_put(iface->vcq, key->rails[0].vcq_id, uct_utofu_buffer_stadd(iface, op->buffer),
                remote_stadd(key, remote_addr), length, op->tag, kLocal | iface->config.put_order, op));
  return status == UCS_OK ? (ssize_t)length : (ssize_t)status;
}

/* Takes an operation for a get into its own buffer. */
static ucs_status_t take_get(uct_ep_h tl_ep, uint64_t remote_addr, size_t length, uct_rkey_t rkey,
                             const uct_utofu_rkey_t** key_p, uct_utofu_op_t** op_p) {
  const ucs_status_t status = begin_access(tl_ep, UCT_UTOFU_OTHER, remote_addr, length, rkey, key_p);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  *op_p = uct_utofu_op_take(uct_utofu_iface_of(tl_ep), ucs_derived_of(tl_ep, uct_utofu_ep_t), 1, 1);
  return *op_p != NULL ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

static ucs_status_t post_get(uct_utofu_iface_t* iface, uct_utofu_op_t* op, const uct_utofu_rkey_t* key,
                             uint64_t remote_addr, size_t length) {
  return uct_utofu_op_posted(iface, op,
                             utofu_get(iface->vcq, key->rails[0].vcq_id, uct_utofu_buffer_stadd(iface, op->buffer),
                                       remote_stadd(key, remote_addr), length, op->tag, kLocal, op));
}

/* UCT has no way to tell the end of a short get, so it ends here. Other notices wait for the progress of the interface:
 * nothing of the user is called inside of an operation. */
ucs_status_t uct_utofu_ep_get_short(uct_ep_h tl_ep, void* buffer, unsigned length, uint64_t remote_addr,
                                    uct_rkey_t rkey) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  const uct_utofu_rkey_t* key;
  int came;
  UCT_CHECK_LENGTH(length, 0, iface->config.slot_bytes, "get_short");
  UCT_SKIP_ZERO_LENGTH(length);
  uct_utofu_op_t* op;
  ucs_status_t status = take_get(tl_ep, remote_addr, length, rkey, &key, &op);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  status = post_get(iface, op, key, remote_addr, length);
  if (status != UCS_OK) {
    return status;
  }
  status = uct_utofu_op_await(iface, op, &came);
  if (status == UCS_OK) {
    memcpy(buffer, op->buffer, length);
  }
  if (came) {
    if (status == UCS_ERR_ENDPOINT_TIMEOUT) {
      op->ep->unconfirmed = 1; /* The next question tells the error handler, as this may not. */
    }
    uct_utofu_op_end_quietly(iface, op);
  }
  return status;
}

ucs_status_t uct_utofu_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack, void* arg, size_t length,
                                    uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  const uct_utofu_rkey_t* key;
  UCT_CHECK_LENGTH(length, 0, iface->config.slot_bytes, "get_bcopy");
  UCT_SKIP_ZERO_LENGTH(length);
  uct_utofu_op_t* op;
  ucs_status_t status = take_get(tl_ep, remote_addr, length, rkey, &key, &op);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  op->kind = UCT_UTOFU_OP_UNPACK;
  op->unpack = unpack;
  op->unpack_arg = arg;
  op->length = length;
  op->comp = comp;
  status = post_get(iface, op, key, remote_addr, length);
  return status == UCS_OK ? UCS_INPROGRESS : status;
}

typedef int (*start_t)(utofu_vcq_hdl_t, utofu_vcq_id_t, utofu_stadd_t, utofu_stadd_t, size_t, uint64_t, unsigned long,
                       void*);
typedef int (*prepare_t)(utofu_vcq_hdl_t, utofu_vcq_id_t, utofu_stadd_t, utofu_stadd_t, size_t, uint64_t, unsigned long,
                         void*, size_t*);

/* What a zero-copy operation is, besides its pieces. */
typedef struct zcopy {
  start_t start;     /* One piece. */
  prepare_t prepare; /* One of several. */
  unsigned long flags;
  unsigned kind; /* UCT_UTOFU_PUT or UCT_UTOFU_OTHER */
  const uct_utofu_rkey_t* key;
  utofu_stadd_t remote;
} zcopy_t;

/* @return bytes of descriptors, or SIZE_MAX: a piece is not registered, or not whole */
static size_t prepare_pieces(uct_utofu_iface_t* iface, uct_utofu_op_t* op, zcopy_t what, const uct_iov_t* iov,
                             char* descs) {
  size_t used = 0;
  const size_t iovcnt = op->length;
  op->notices = 0;
  for (size_t i = 0; i < iovcnt; i++) {
    const size_t length = uct_iov_get_length(&iov[i]);
    uct_utofu_mem_t* const mem = iov[i].memh;
    size_t desc_bytes;
    if (length == 0) {
      continue;
    }
    const utofu_stadd_t local = uct_utofu_mem_stadd(iface->md, mem, iface->vcq_slot);
    if (local == UCT_UTOFU_NO_STADD ||
        what.prepare(iface->vcq, what.key->rails[0].vcq_id, local + ((uintptr_t)iov[i].buffer - mem->start),
                     what.remote, length, op->tag, what.flags, descs + used, &desc_bytes) != UTOFU_SUCCESS) {
      return SIZE_MAX;
    }
    used += desc_bytes;
    what.remote += length;
    op->notices++;
  }
  return used;
}

/* @return as uct_utofu_op_posted; the operation is dropped if it is not posted */
static ucs_status_t post_one(uct_utofu_iface_t* iface, uct_utofu_op_t* op, const zcopy_t* what, const uct_iov_t* iov) {
  uct_utofu_mem_t* const mem = iov->memh;
  const utofu_stadd_t local = uct_utofu_mem_stadd(iface->md, mem, iface->vcq_slot);
  if (local == UCT_UTOFU_NO_STADD) {
    uct_utofu_op_drop(iface, op);
    return UCS_ERR_INVALID_PARAM;
  }
  return uct_utofu_op_posted(
      iface, op,
      what->start(iface->vcq, what->key->rails[0].vcq_id, local + ((uintptr_t)iov->buffer - mem->start), what->remote,
                  uct_iov_get_length(iov), op->tag, what->flags, op));
}

/* A stripe of one piece on each rail. What another than the first rail has no room for now it has soon, since it has
 * nothing but stripes. */
static void post_stripes(uct_utofu_iface_t* iface, uct_utofu_op_t* op, const zcopy_t* what, const uct_iov_t* iov,
                         const utofu_stadd_t* locals, size_t stripe) {
  const size_t length = uct_iov_get_length(iov), shift = (uintptr_t)iov->buffer - ((uct_utofu_mem_t*)iov->memh)->start;
  const size_t remote = what->remote - what->key->rails[0].stadd;
  for (unsigned rail = 1; rail * stripe < length; rail++) {
    const size_t at = rail * stripe;
    int rc;
    while ((rc = what->start(iface->rails[rail], what->key->rails[rail].vcq_id, locals[rail] + shift + at,
                             what->key->rails[rail].stadd + remote + at, ucs_min(stripe, length - at), op->tag,
                             what->flags, op)) == UTOFU_ERR_BUSY) {
      void* nobody;
      utofu_poll_tcq(iface->rails[rail], 0, &nobody);
    }
    if (rc == UTOFU_SUCCESS) {
      op->notices++;
    } else {
      ucs_error("uTofu refuses a stripe: %d", rc);
      op->status = uct_utofu_status(rc);
    }
  }
}

static int is_striped(const uct_utofu_iface_t* iface, const uct_utofu_rkey_t* key, const uct_iov_t* iov,
                      size_t iovcnt) {
  return iovcnt == 1 && iface->md->rails > 1 && key->count == iface->md->rails &&
         uct_iov_get_length(iov) >= iface->md->rails * UCT_UTOFU_LEAST_STRIPE;
}

/* @return as post_one */
static ucs_status_t post_striped(uct_utofu_iface_t* iface, uct_utofu_op_t* op, const zcopy_t* what,
                                 const uct_iov_t* iov) {
  utofu_stadd_t locals[UCT_UTOFU_MAX_RAILS];
  const size_t stripe = ucs_align_up(ucs_div_round_up(uct_iov_get_length(iov), iface->md->rails), 4096);
  for (unsigned rail = 0; rail < iface->md->rails; rail++) {
    locals[rail] = uct_utofu_mem_stadd(iface->md, iov->memh, iface->vcq_slot + rail);
    if (locals[rail] == UCT_UTOFU_NO_STADD) {
      uct_utofu_op_drop(iface, op);
      return UCS_ERR_INVALID_PARAM;
    }
  }
  op->striped = 1;
  const uct_iov_t first = {.buffer = iov->buffer, .length = stripe, .memh = iov->memh, .count = 1};
  const ucs_status_t status = post_one(iface, op, what, &first);
  if (status == UCS_OK) {
    post_stripes(iface, op, what, iov, locals, stripe);
  }
  return status;
}

/* All are posted at once or none is. @return as post_one */
static ucs_status_t post_several(uct_utofu_iface_t* iface, uct_utofu_op_t* op, const zcopy_t* what,
                                 const uct_iov_t* iov) {
  char descs[UCT_UTOFU_MAX_IOV * UCT_UTOFU_DESC_BYTES] UCS_V_ALIGNED(8);
  const size_t used = prepare_pieces(iface, op, *what, iov, descs);
  if (used == SIZE_MAX) {
    uct_utofu_op_drop(iface, op);
    return UCS_ERR_INVALID_PARAM;
  }
  return uct_utofu_op_posted(iface, op, utofu_post_toq(iface->vcq, descs, used, op));
}

static ucs_status_t post_pieces(uct_ep_h tl_ep, const zcopy_t* what, const uct_iov_t* iov, size_t iovcnt,
                                uct_completion_t* comp) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ucs_derived_of(tl_ep, uct_utofu_ep_t), 1, 0);
  if (ucs_unlikely(op == NULL)) {
    return UCS_ERR_NO_RESOURCE;
  }
  op->comp = comp;
  op->length = iovcnt;
  op->what = (uint8_t)what->kind;
  op->to = what->key->rails[0].vcq_id;
  const ucs_status_t status = iovcnt > 1                                  ? post_several(iface, op, what, iov)
                              : is_striped(iface, what->key, iov, iovcnt) ? post_striped(iface, op, what, iov)
                                                                          : post_one(iface, op, what, iov);
  return status == UCS_OK ? UCS_INPROGRESS : status;
}

ucs_status_t uct_utofu_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t* iov, size_t iovcnt, uint64_t remote_addr,
                                    uct_rkey_t rkey, uct_completion_t* comp) {
  const uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  const size_t length = uct_iov_total_length(iov, iovcnt);
  zcopy_t what = {.start = utofu_put,
                  .prepare = utofu_prepare_put,
                  .kind = put_kind(iface),
                  .flags = kLocal | iface->config.put_order};
  UCT_CHECK_IOV_SIZE(iovcnt, (size_t)UCT_UTOFU_MAX_IOV, "put_zcopy");
  UCT_CHECK_LENGTH(length, 0, UCT_UTOFU_MAX_ZCOPY, "put_zcopy");
  UCT_SKIP_ZERO_LENGTH(length);
  if (is_striped(iface, (const uct_utofu_rkey_t*)rkey, iov, iovcnt)) {
    what.kind = UCT_UTOFU_OTHER; /* Strong order is one of each rail alone. */
  }
  const ucs_status_t status = begin_access(tl_ep, what.kind, remote_addr, length, rkey, &what.key);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  what.remote = remote_stadd(what.key, remote_addr);
  return post_pieces(tl_ep, &what, iov, iovcnt, comp);
}

ucs_status_t uct_utofu_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t* iov, size_t iovcnt, uint64_t remote_addr,
                                    uct_rkey_t rkey, uct_completion_t* comp) {
  const size_t length = uct_iov_total_length(iov, iovcnt);
  zcopy_t what = {.start = utofu_get, .prepare = utofu_prepare_get, .kind = UCT_UTOFU_OTHER, .flags = kLocal};
  UCT_CHECK_IOV_SIZE(iovcnt, (size_t)UCT_UTOFU_MAX_IOV, "get_zcopy");
  UCT_CHECK_LENGTH(length, 0, UCT_UTOFU_MAX_ZCOPY, "get_zcopy");
  UCT_SKIP_ZERO_LENGTH(length);
  const ucs_status_t status = begin_access(tl_ep, what.kind, remote_addr, length, rkey, &what.key);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  what.remote = remote_stadd(what.key, remote_addr);
  return post_pieces(tl_ep, &what, iov, iovcnt, comp);
}
