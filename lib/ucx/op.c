/* Operations: what was posted, and how its end is told. */
#include "iface.h"

#include <ucs/sys/sys.h>

/* Notices of the TCQ that one look takes at most. */
enum { kTcqBatch = 32 };

ucs_status_t uct_utofu_ops_init(uct_utofu_iface_t* iface) {
  const unsigned op_count = iface->config.buffers + UCT_UTOFU_TAGS;
  const size_t bytes = (size_t)iface->config.buffers * iface->config.slot_bytes;
  iface->ops = ucs_calloc(op_count, sizeof *iface->ops, "utofu operations");
  iface->free_buffers = ucs_calloc(iface->config.buffers, sizeof *iface->free_buffers, "utofu free buffers");
  if (iface->ops == NULL || iface->free_buffers == NULL ||
      ucs_posix_memalign((void**)&iface->buffers, ucs_get_page_size(), bytes, "utofu buffers") != 0) {
    return UCS_ERR_NO_MEMORY;
  }
  const int rc =
      utofu_reg_mem_with_stag(iface->vcq, iface->buffers, bytes, UCT_UTOFU_BUFFERS_STAG, 0, &iface->buffers_stadd);
  if (rc != UTOFU_SUCCESS) {
    ucs_error("buffers of %zu bytes cannot be registered: uTofu says %d", bytes, rc);
    iface->buffers_stadd = UCT_UTOFU_NO_STADD;
    return UCS_ERR_NO_MEMORY;
  }
  for (unsigned i = 0; i < op_count; i++) {
    iface->ops[i].next = iface->free_ops;
    iface->free_ops = &iface->ops[i];
  }
  for (unsigned i = 0; i < iface->config.buffers; i++) {
    iface->free_buffers[iface->free_buffer_count++] = iface->buffers + i * iface->config.slot_bytes;
  }
  for (unsigned tag = UCT_UTOFU_TAGS - 2; tag > 0; tag--) {
    iface->free_tags[iface->free_tag_count++] = (uint8_t)tag;
  }
  return UCS_OK;
}

void uct_utofu_ops_cleanup(uct_utofu_iface_t* iface) {
  if (iface->buffers != NULL && iface->buffers_stadd != UCT_UTOFU_NO_STADD) {
    utofu_dereg_mem(iface->vcq, iface->buffers_stadd, 0);
  }
  ucs_free(iface->buffers);
  ucs_free(iface->free_buffers);
  ucs_free(iface->ops);
}

uct_utofu_op_t* uct_utofu_op_take_of(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, int tagged, int buffered) {
  uct_utofu_op_t* const op = iface->free_ops;
  if (op == NULL || (tagged && iface->free_tag_count == 0) || (buffered && iface->free_buffer_count == 0)) {
    return NULL;
  }
  iface->free_ops = op->next;
  op->ep = NULL;
  op->peer = peer;
  op->comp = NULL;
  op->buffer = buffered ? iface->free_buffers[--iface->free_buffer_count] : NULL;
  op->notices = 1;
  op->tag = tagged ? iface->free_tags[--iface->free_tag_count] : 0;
  op->kind = UCT_UTOFU_OP_PLAIN;
  op->what = UCT_UTOFU_OTHER;
  op->epoch = peer->epoch;
  op->striped = 0;
  op->status = UCS_OK;
  if (tagged) {
    iface->tagged[op->tag] = op;
  }
  return op;
}

uct_utofu_op_t* uct_utofu_op_take(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, int tagged, int buffered) {
  uct_utofu_op_t* const op = uct_utofu_op_take_of(iface, ep->peer, tagged, buffered);
  if (ucs_likely(op != NULL)) {
    op->ep = ep;
  }
  return op;
}

void uct_utofu_op_drop(uct_utofu_iface_t* iface, uct_utofu_op_t* op) {
  uct_utofu_give_buffer(iface, op->buffer);
  if (op->tag != 0) {
    iface->tagged[op->tag] = NULL;
    iface->free_tags[iface->free_tag_count++] = op->tag;
  }
  op->next = iface->free_ops;
  iface->free_ops = op;
}

static void note_open(uct_utofu_ep_t* ep, uct_utofu_op_t* op) {
  if (ep->open_count++ == 0) {
    ep->open_what = 0;
    ep->open_to = op->to;
  }
  ep->open_what |= op->to == ep->open_to ? op->what : UCT_UTOFU_OTHER;
  op->number = ep->next_number++;
}

ucs_status_t uct_utofu_op_posted(uct_utofu_iface_t* iface, uct_utofu_op_t* op, int rc) {
  if (ucs_unlikely(rc != UTOFU_SUCCESS)) {
    iface->busy |= rc == UTOFU_ERR_BUSY;
    uct_utofu_op_drop(iface, op);
    if (rc != UTOFU_ERR_BUSY) {
      ucs_error("uTofu refuses an operation: %d", rc);
    }
    return uct_utofu_status(rc);
  }
  iface->talks = 1;
  iface->open_count++;
  iface->tcq_open += op->tag == 0;
  iface->striped += op->striped;
  if (ucs_likely(op->ep != NULL)) {
    note_open(op->ep, op);
  } else {
    iface->left_count++;
  }
  return UCS_OK;
}

static void take_result(uct_utofu_op_t* op, uint64_t value) {
  switch (op->kind) {
    case UCT_UTOFU_OP_UNPACK: op->unpack(op->unpack_arg, op->buffer, op->length); break;
    case UCT_UTOFU_OP_FETCH32: *(uint32_t*)op->result = (uint32_t)value; break;
    case UCT_UTOFU_OP_FETCH64: *(uint64_t*)op->result = value; break;
    default: break;
  }
}

/* Nothing can be wrong with an operation that only asks, whatever is said, nor with the place of a message: the
 * interface of its peer is closed. */
static int is_of_closed(const uct_utofu_op_t* op, ucs_status_t status) {
  return op->kind >= UCT_UTOFU_OP_CONFIRM || (op->kind == UCT_UTOFU_OP_EARLY && status == UCS_ERR_REJECTED);
}

void uct_utofu_op_notice(uct_utofu_iface_t* iface, uct_utofu_op_t* op, ucs_status_t status, uint64_t value) {
  if (ucs_unlikely(status != UCS_OK)) {
    op->status = is_of_closed(op, status) ? UCS_ERR_ENDPOINT_TIMEOUT : status;
  }
  if (--op->notices > 0) {
    return;
  }
  if (ucs_unlikely(op->kind == UCT_UTOFU_OP_FETCH)) {
    uct_utofu_fetched(iface, op, value);
    return;
  }
  if (ucs_unlikely(op->kind == UCT_UTOFU_OP_BELL)) {
    uct_utofu_asked(iface, op, value);
    return;
  }
  const int is_news = op->epoch == op->peer->epoch; /* Otherwise its peer is another one by now, or tried again. */
  if (op->status == UCS_OK) {
    take_result(op, value);
    if (op->kind == UCT_UTOFU_OP_CHECK && is_news && value != op->peer->incarnation) {
      op->status = UCS_ERR_CONNECTION_RESET;
    }
  }
  uct_completion_t* const comp = op->comp;
  if (comp != NULL) {
    op->comp = NULL; /* The completion may destroy the endpoint, which tells whoever waits for its operations. */
    uct_invoke_completion(comp, op->status);
  }
  uct_utofu_ep_t* const ep = op->ep;
  uct_utofu_peer_t* const peer = op->peer;
  const uint64_t number = op->number;
  const ucs_status_t ended = op->status;
  iface->open_count--;
  iface->left_count -= ep == NULL;
  iface->tcq_open -= op->tag == 0;
  iface->striped -= op->striped;
  uct_utofu_op_drop(iface, op);
  if (ucs_unlikely(ended != UCS_OK) && comp == NULL && ep != NULL) {
    uct_utofu_ep_failed(ep, ended); /* The user has no other way to hear of it. */
  }
  if (ep != NULL) {
    uct_utofu_ep_op_ended(ep, number, ended);
  }
  if (ucs_unlikely((ended == UCS_ERR_ENDPOINT_TIMEOUT || ended == UCS_ERR_CONNECTION_RESET) && is_news)) {
    uct_utofu_peer_failed(iface, peer, ended);
  } else if (ucs_unlikely(ended != UCS_OK)) {
    uct_utofu_tell_failures(iface, peer);
  }
}

void uct_utofu_op_end_quietly(uct_utofu_iface_t* iface, uct_utofu_op_t* op) {
  iface->open_count--;
  if (op->ep != NULL) {
    op->ep->open_count--;
  } else {
    iface->left_count--;
  }
  uct_utofu_op_drop(iface, op);
}

int uct_utofu_keep_one_tcq(uct_utofu_iface_t* iface) {
  if (!iface->kept_tcq.is_there) {
    iface->kept_tcq.rc = utofu_poll_tcq(iface->vcq, 0, &iface->kept_tcq.cbdata);
    iface->kept_tcq.is_there = iface->kept_tcq.rc != UTOFU_ERR_NOT_FOUND;
  }
  return iface->kept_tcq.is_there;
}

static int next_tcq(uct_utofu_iface_t* iface, void** cbdata_p) {
  if (ucs_likely(!iface->kept_tcq.is_there)) {
    return utofu_poll_tcq(iface->vcq, 0, cbdata_p);
  }
  iface->kept_tcq.is_there = 0;
  *cbdata_p = iface->kept_tcq.cbdata;
  return iface->kept_tcq.rc;
}

unsigned uct_utofu_poll_tcq(uct_utofu_iface_t* iface) {
  void* cbdata = NULL;
  unsigned count = 0;
  while (count < kTcqBatch) {
    const int rc = next_tcq(iface, &cbdata);
    if (rc == UTOFU_ERR_NOT_FOUND) {
      break;
    }
    count++;
    if (cbdata != NULL) {
      uct_utofu_op_notice(iface, cbdata, uct_utofu_status(rc), 0);
    } else if (rc != UTOFU_SUCCESS) {
      ucs_error("uTofu could not send: %d", rc);
    }
  }
  iface->busy = 0;
  return count;
}
