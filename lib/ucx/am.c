/* Active messages: a slot each, in the ring that the peer has made for us. */
#include "iface.h"

#include <uct/base/uct_iov.inl>

static const unsigned long kMessageFlags = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_CACHE_INJECTION;

static utofu_stadd_t next_slot(const uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer) {
  return peer->tx_ring + (peer->tx_sent % peer->tx_slots) * iface->config.slot_bytes;
}

/* @return UCS_OK: the next slot is ours, at *slot_p, or UCT_UTOFU_NO_STADD: the message may wait for a ring */
static ucs_status_t find_slot(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, utofu_stadd_t* slot_p) {
  uct_utofu_peer_t* const peer = ep->peer;
  const ucs_status_t status = uct_utofu_ep_may_post(iface, ep, UCT_UTOFU_MESSAGE, 0);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  if (ucs_unlikely(!uct_utofu_peer_has_room(iface, peer))) {
    ep->wants_slot = 1;
    if (peer->tx == UCT_UTOFU_TX_NONE) {
      peer->tx = UCT_UTOFU_TX_RINGING;
      ep->unconfirmed = 1; /* So is the ring of a doorbell. */
      uct_utofu_peer_owe(iface, peer, UCT_UTOFU_OWES_RING);
    }
    return UCS_ERR_NO_RESOURCE;
  }
  *slot_p = ucs_unlikely(peer->tx != UCT_UTOFU_TX_READY) ? UCT_UTOFU_NO_STADD : next_slot(iface, peer);
  return UCS_OK;
}

static void fill_header(const uct_utofu_peer_t* peer, void* slot, uint8_t id, size_t length) {
  *(uct_utofu_am_header_t*)slot =
      (uct_utofu_am_header_t){.id = id, .handled = peer->rx_handled, .length = (uint32_t)length};
}

static void slot_filled(uct_utofu_peer_t* peer) {
  peer->tx_sent++;
  peer->rx_told = peer->rx_handled;
}

static void message_left(uct_utofu_ep_t* ep) {
  slot_filled(ep->peer);
  ep->unconfirmed = 1;
  ep->wants_slot = 0;
}

/* Sends what a descriptor carries. */
static ucs_status_t send_small(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, utofu_stadd_t slot, void* message,
                               size_t bytes) {
  const int rc = utofu_put_piggyback(iface->vcq, ep->peer->route, message, slot, bytes, ep->peer->epoch,
                                     kMessageFlags | UTOFU_ONESIDED_FLAG_PADDING, NULL);
  if (ucs_unlikely(rc != UTOFU_SUCCESS)) {
    iface->busy |= rc == UTOFU_ERR_BUSY;
    return uct_utofu_status(rc);
  }
  message_left(ep);
  return UCS_OK;
}

static int put_buffer(uct_utofu_iface_t* iface, uct_utofu_op_t* op, utofu_stadd_t slot, size_t bytes) {
  const unsigned long notice = op->tag != 0 ? UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE : UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
  return utofu_put(iface->vcq, op->peer->route, uct_utofu_buffer_stadd(iface, op->buffer), slot, bytes,
                   op->tag != 0 ? op->tag : op->epoch, kMessageFlags | notice, op);
}

static void set_outbox(uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer, uint64_t value) {
  __atomic_store_n(&uct_utofu_record_of(iface, peer)->outbox, value, __ATOMIC_RELEASE);
}

/* It is under way for all but its peer. What a flush asks now overtakes it, so it tells itself that it has arrived. */
static ucs_status_t keep_early(uct_utofu_iface_t* iface, uct_utofu_op_t* op) {
  uct_utofu_peer_t* const peer = op->peer;
  const size_t number = (size_t)(op->buffer - iface->buffers) / iface->config.slot_bytes;
  /* The peer looks behind the ring. */
  set_outbox(iface, peer, uct_utofu_outbox(peer->incarnation, UCT_UTOFU_OUTBOX_FIRST + number));
  const int rc = uct_utofu_ring(iface, peer);
  if (rc == UTOFU_SUCCESS) {
    op->kind = UCT_UTOFU_OP_EARLY;
    op->ep->wants_slot = 0;
    op->ep->unconfirmed = 1; /* So is the ring of a doorbell. */
    peer->tx = UCT_UTOFU_TX_RINGING;
    peer->early = op;
  } else {
    set_outbox(iface, peer, UCT_UTOFU_OUTBOX_EMPTY);
  }
  return uct_utofu_op_posted(iface, op, rc);
}

/* Sends what lies in the buffer of an operation. */
static ucs_status_t send_buffer(uct_utofu_iface_t* iface, uct_utofu_op_t* op, utofu_stadd_t slot, size_t bytes) {
  uct_utofu_ep_t* const ep = op->ep;
  if (ucs_unlikely(slot == UCT_UTOFU_NO_STADD)) {
    return keep_early(iface, op);
  }
  const ucs_status_t status = uct_utofu_op_posted(iface, op, put_buffer(iface, op, slot, bytes));
  if (status == UCS_OK) {
    message_left(ep);
  }
  return status;
}

/* Takes it out of the outbox. @return 0: the peer is fetching it */
static int take_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  uint64_t* const outbox = &uct_utofu_record_of(iface, peer)->outbox;
  uint64_t found = __atomic_load_n(outbox, __ATOMIC_ACQUIRE);
  return found == UCT_UTOFU_OUTBOX_EMPTY ||
         (uct_utofu_outbox_what(found) >= UCT_UTOFU_OUTBOX_FIRST &&
          __atomic_compare_exchange_n(outbox, &found, UCT_UTOFU_OUTBOX_EMPTY, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static void end_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, ucs_status_t status) {
  uct_utofu_op_t* const op = peer->early;
  peer->early = NULL;
  uct_utofu_op_notice(iface, op, status, 0);
}

int uct_utofu_send_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  if (peer->early == NULL || peer->tx != UCT_UTOFU_TX_READY || !take_early(iface, peer)) {
    return UTOFU_SUCCESS;
  }
  uct_utofu_am_header_t* const header = (uct_utofu_am_header_t*)peer->early->buffer;
  header->handled = peer->rx_handled;
  const int rc = put_buffer(iface, peer->early, next_slot(iface, peer), sizeof *header + header->length);
  if (rc == UTOFU_ERR_BUSY) {
    iface->busy = 1;
    return rc;
  }
  if (rc == UTOFU_SUCCESS) {
    peer->early = NULL;
    slot_filled(peer);
  } else {
    ucs_error("uTofu refuses a message: %d", rc);
    end_early(iface, peer, uct_utofu_status(rc));
  }
  return UTOFU_SUCCESS;
}

void uct_utofu_drop_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, ucs_status_t status) {
  if (peer->early != NULL) {
    set_outbox(iface, peer, UCT_UTOFU_OUTBOX_EMPTY);
    end_early(iface, peer, status);
  }
}

void uct_utofu_cancel_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  if (peer->early != NULL && take_early(iface, peer)) {
    end_early(iface, peer, UCS_ERR_CANCELED);
  }
}

void uct_utofu_outbox_written(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  const uint64_t found = __atomic_load_n(&uct_utofu_record_of(iface, peer)->outbox, __ATOMIC_ACQUIRE);
  if (peer->early != NULL && found == uct_utofu_outbox(peer->incarnation, UCT_UTOFU_OUTBOX_FETCHED)) {
    end_early(iface, peer, UCS_OK);
  }
}

ucs_status_t uct_utofu_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header, const void* payload, unsigned length) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  const size_t bytes = sizeof(uct_utofu_am_header_t) + sizeof header + length;
  uint64_t small[UCT_UTOFU_PIGGYBACK / sizeof(uint64_t)];
  utofu_stadd_t slot;
  UCT_CHECK_AM_ID(id);
  UCT_CHECK_LENGTH(sizeof header + length, 0, iface->config.payload, "am_short");
  const ucs_status_t status = find_slot(iface, ep, &slot);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  if (bytes <= sizeof small && slot != UCT_UTOFU_NO_STADD) {
    fill_header(ep->peer, small, id, sizeof header + length);
    uct_am_short_fill_data(small + 1, header, payload, length);
    return send_small(iface, ep, slot, small, bytes);
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ep, slot == UCT_UTOFU_NO_STADD, 1);
  if (op == NULL) {
    return UCS_ERR_NO_RESOURCE;
  }
  fill_header(ep->peer, op->buffer, id, sizeof header + length);
  uct_am_short_fill_data(op->buffer + sizeof(uct_utofu_am_header_t), header, payload, length);
  return send_buffer(iface, op, slot, bytes);
}

ucs_status_t uct_utofu_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t* iov, size_t iovcnt) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  const size_t length = uct_iov_total_length(iov, iovcnt), bytes = sizeof(uct_utofu_am_header_t) + length;
  ucs_iov_iter_t iter;
  uint64_t small[UCT_UTOFU_PIGGYBACK / sizeof(uint64_t)];
  utofu_stadd_t slot;
  UCT_CHECK_AM_ID(id);
  UCT_CHECK_LENGTH(length, 0, iface->config.payload, "am_short_iov");
  const ucs_status_t status = find_slot(iface, ep, &slot);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  ucs_iov_iter_init(&iter);
  if (bytes <= sizeof small && slot != UCT_UTOFU_NO_STADD) {
    fill_header(ep->peer, small, id, length);
    uct_iov_to_buffer(iov, iovcnt, &iter, small + 1, SIZE_MAX);
    return send_small(iface, ep, slot, small, bytes);
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ep, slot == UCT_UTOFU_NO_STADD, 1);
  if (op == NULL) {
    return UCS_ERR_NO_RESOURCE;
  }
  fill_header(ep->peer, op->buffer, id, length);
  uct_iov_to_buffer(iov, iovcnt, &iter, op->buffer + sizeof(uct_utofu_am_header_t), SIZE_MAX);
  return send_buffer(iface, op, slot, bytes);
}

ssize_t uct_utofu_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned flags) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  utofu_stadd_t slot;
  UCT_CHECK_AM_ID(id);
  ucs_status_t status = find_slot(iface, ep, &slot);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ep, slot == UCT_UTOFU_NO_STADD, 1);
  if (op == NULL) {
    return UCS_ERR_NO_RESOURCE;
  }
  const size_t length = pack(op->buffer + sizeof(uct_utofu_am_header_t), arg);
  ucs_assertv(length <= iface->config.payload, "%zu bytes", length);
  fill_header(ep->peer, op->buffer, id, length);
  status = send_buffer(iface, op, slot, sizeof(uct_utofu_am_header_t) + length);
  if (ucs_unlikely(flags & UCT_SEND_FLAG_PEER_CHECK) && status == UCS_OK) {
    uct_utofu_peer_confirm(iface, ep); /* Without room for it the next one will do. */
  }
  return status == UCS_OK ? (ssize_t)length : (ssize_t)status;
}

/* Prepares a put of each piece into the slot. Each has a notice, so that the operation ends once whatever fails.
 * @return bytes of descriptors, or SIZE_MAX: a piece is not registered */
static size_t prepare_pieces(uct_utofu_iface_t* iface, uct_utofu_op_t* op, const uct_iov_t* iov, size_t iovcnt,
                             utofu_stadd_t to, char* descs) {
  size_t used = 0;
  for (size_t i = 0; i < iovcnt; i++) {
    const size_t length = uct_iov_get_length(&iov[i]);
    uct_utofu_mem_t* const mem = iov[i].memh;
    size_t desc_bytes;
    if (length == 0) {
      continue;
    }
    const utofu_stadd_t from = uct_utofu_mem_stadd(iface->md, mem, iface->vcq_slot);
    if (from == UCT_UTOFU_NO_STADD ||
        utofu_prepare_put(iface->vcq, op->peer->route, from + ((uintptr_t)iov[i].buffer - mem->start), to, length,
                          op->epoch, UTOFU_ONESIDED_FLAG_CACHE_INJECTION | UTOFU_ONESIDED_FLAG_TCQ_NOTICE, descs + used,
                          &desc_bytes) != UTOFU_SUCCESS) {
      return SIZE_MAX;
    }
    used += desc_bytes;
    to += length;
    op->notices++;
  }
  return used;
}

/* The pieces go first, then the headers with the notice: strong order keeps them behind. */
ucs_status_t uct_utofu_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void* header, unsigned header_length,
                                   const uct_iov_t* iov, size_t iovcnt, unsigned flags, uct_completion_t* comp) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  const size_t head = sizeof(uct_utofu_am_header_t) + header_length;
  const size_t length = header_length + uct_iov_total_length(iov, iovcnt);
  char descs[(UCT_UTOFU_MAX_IOV + 1) * UCT_UTOFU_DESC_BYTES] UCS_V_ALIGNED(8);
  ucs_iov_iter_t iter;
  utofu_stadd_t slot;
  size_t desc_bytes = 0;
  UCT_CHECK_AM_ID(id);
  UCT_CHECK_IOV_SIZE(iovcnt, (size_t)UCT_UTOFU_MAX_IOV, "am_zcopy");
  UCT_CHECK_LENGTH(length, 0, iface->config.payload, "am_zcopy");
  ucs_status_t status = find_slot(iface, ep, &slot);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ep, slot == UCT_UTOFU_NO_STADD, 1);
  if (op == NULL) {
    return UCS_ERR_NO_RESOURCE;
  }
  fill_header(ep->peer, op->buffer, id, length);
  memcpy(op->buffer + sizeof(uct_utofu_am_header_t), header, header_length);
  op->comp = comp;
  if (ucs_unlikely(slot == UCT_UTOFU_NO_STADD)) {
    ucs_iov_iter_init(&iter);
    uct_iov_to_buffer(iov, iovcnt, &iter, op->buffer + head, SIZE_MAX);
    status = keep_early(iface, op);
    return status == UCS_OK ? UCS_INPROGRESS : status;
  }
  const size_t used = prepare_pieces(iface, op, iov, iovcnt, slot + head, descs);
  if (used == SIZE_MAX ||
      utofu_prepare_put(iface->vcq, ep->peer->route, uct_utofu_buffer_stadd(iface, op->buffer), slot, head, op->epoch,
                        kMessageFlags | UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER, descs + used,
                        &desc_bytes) != UTOFU_SUCCESS) {
    uct_utofu_op_drop(iface, op);
    return UCS_ERR_INVALID_PARAM;
  }
  status = uct_utofu_op_posted(iface, op, utofu_post_toq(iface->vcq, descs, used + desc_bytes, op));
  if (status != UCS_OK) {
    return status;
  }
  message_left(ep);
  return UCS_INPROGRESS;
}

void uct_utofu_am_deliver(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, uct_utofu_am_header_t* header) {
  if (header->length > iface->config.payload || header->id >= UCT_AM_ID_MAX) {
    ucs_error("peer 0x%lx has a message that is none", (unsigned long)peer->id);
    return;
  }
  uct_iface_invoke_am(&iface->super, header->id, header + 1, header->length, 0);
}

void uct_utofu_am_arrived(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, char* slot) {
  uct_utofu_am_header_t* const header = (uct_utofu_am_header_t*)slot;
  char* const expected = peer->rx_ring + (peer->rx_handled % iface->config.slots) * iface->config.slot_bytes;
  if (ucs_unlikely(slot != expected || header->length > iface->config.payload || header->id >= UCT_AM_ID_MAX)) {
    ucs_error("peer 0x%lx sent a message that is none", (unsigned long)peer->id);
    return;
  }
  if (uct_utofu_is_asker(peer->its_asks, peer->incarnation)) { /* Otherwise it has another count of another sender. */
    uct_utofu_peer_take_handled(peer, header->handled);
  }
  uct_iface_invoke_am(&iface->super, header->id, header + 1, header->length, 0);
  peer->rx_handled++;
  if ((uint16_t)(peer->rx_handled - peer->rx_told) >= iface->config.slots / 2) {
    uct_utofu_peer_owe(iface, peer, UCT_UTOFU_OWES_COUNT);
  }
}
