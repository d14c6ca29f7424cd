/* Fetches the first message of a peer that rang and sends nothing: its process does something else, and sees no ring.
 * Each step is a debt (see peer.c); its notice leads to the next one. */
#include "iface.h"

/* How long after its ring a peer has time to send its message itself. */
static const double kFetchSeconds = 1e-3;

void uct_utofu_fetch_later(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  if (peer->fetch_step != UCT_UTOFU_FETCH_LOOK || peer->fetching) {
    peer->fetch_again = 1; /* It is a later interface that rang. */
    return;
  }
  peer->fetch_at = ucs_get_time() + ucs_time_from_sec(kFetchSeconds);
  uct_utofu_peer_owe(iface, peer, UCT_UTOFU_OWES_FETCH);
}

static void next_step(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, uct_utofu_fetch_step_t step) {
  peer->fetch_step = step;
  uct_utofu_peer_owe(iface, peer, UCT_UTOFU_OWES_FETCH);
}

static void finish(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  const int again = peer->fetch_again;
  peer->fetch_again = 0;
  peer->fetch_step = UCT_UTOFU_FETCH_LOOK;
  uct_utofu_give_buffer(iface, peer->fetch_buffer);
  peer->fetch_buffer = NULL;
  if (again) {
    uct_utofu_fetch_later(iface, peer);
  }
}

static uint64_t taken_by(const uct_utofu_iface_t* iface) {
  return uct_utofu_outbox(iface->incarnation, UCT_UTOFU_OUTBOX_TAKEN);
}

static int post_step(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, const uct_utofu_op_t* op) {
  static const unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  const utofu_stadd_t outbox = uct_utofu_record_at(peer, offsetof(uct_utofu_record_t, outbox));
  utofu_stadd_t buffers;
  if (peer->fetch_step == UCT_UTOFU_FETCH_LOOK || peer->fetch_step == UCT_UTOFU_FETCH_CHECK) { /* Changes nothing. */
    return utofu_armw8(iface->vcq, peer->route, UTOFU_ARMW_OP_OR, 0, outbox, op->tag, kLocal, NULL);
  }
  if (peer->fetch_step == UCT_UTOFU_FETCH_TAKE) {
    return utofu_cswap8(iface->vcq, peer->route, peer->fetch_outbox, taken_by(iface), outbox, op->tag, kLocal, NULL);
  }
  const int rc = utofu_query_stadd(peer->route, UCT_UTOFU_BUFFERS_STAG, &buffers);
  const uint64_t number = uct_utofu_outbox_what(peer->fetch_outbox) - UCT_UTOFU_OUTBOX_FIRST;
  return rc != UTOFU_SUCCESS
             ? rc
             : utofu_get(iface->vcq, peer->route, uct_utofu_buffer_stadd(iface, op->buffer),
                         buffers + number * iface->config.slot_bytes, iface->config.slot_bytes, op->tag, kLocal, NULL);
}

/* A sender that has taken us for dead may have another message there by now, of which this says nothing. */
static int tell(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  const int rc = utofu_cswap8(iface->vcq, peer->route, taken_by(iface),
                              uct_utofu_outbox(iface->incarnation, UCT_UTOFU_OUTBOX_FETCHED),
                              uct_utofu_record_at(peer, offsetof(uct_utofu_record_t, outbox)), peer->epoch,
                              UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL);
  if (rc != UTOFU_ERR_BUSY) {
    peer->owes &= ~UCT_UTOFU_OWES_FETCH;
    finish(iface, peer);
  }
  return rc;
}

int uct_utofu_fetch(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  if (peer->fetch_step == UCT_UTOFU_FETCH_TELL) {
    return tell(iface, peer);
  }
  if (peer->fetch_step == UCT_UTOFU_FETCH_LOOK) {
    if (peer->rx_handled != 0) { /* It has come. */
      peer->owes &= ~UCT_UTOFU_OWES_FETCH;
      return UTOFU_SUCCESS;
    }
    if (ucs_get_time() < peer->fetch_at) {
      return UTOFU_SUCCESS;
    }
  }
  uct_utofu_op_t* const op = uct_utofu_op_take_of(iface, peer, 1, peer->fetch_step == UCT_UTOFU_FETCH_GET);
  if (op == NULL) {
    return UTOFU_ERR_BUSY;
  }
  op->kind = UCT_UTOFU_OP_FETCH;
  const ucs_status_t status = uct_utofu_op_posted(iface, op, post_step(iface, peer, op));
  if (status == UCS_ERR_NO_RESOURCE) {
    return UTOFU_ERR_BUSY;
  }
  peer->owes &= ~UCT_UTOFU_OWES_FETCH;
  peer->fetching = status == UCS_OK;
  if (!peer->fetching) {
    finish(iface, peer);
  }
  return UTOFU_SUCCESS;
}

/* @return whether there is a next step */
static int took_step(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, uct_utofu_op_t* op, uint64_t value) {
  if (peer->fetch_step == UCT_UTOFU_FETCH_LOOK) {
    peer->fetch_outbox = value;
    const uint64_t what = uct_utofu_outbox_what(value);
    return what >= UCT_UTOFU_OUTBOX_FIRST && uct_utofu_outbox(iface->incarnation, what) == value;
  }
  if (peer->fetch_step == UCT_UTOFU_FETCH_TAKE) {
    return value == peer->fetch_outbox;
  }
  if (peer->fetch_step == UCT_UTOFU_FETCH_GET) {
    peer->fetch_buffer = op->buffer;
    op->buffer = NULL;
    return 1;
  }
  if (value != taken_by(iface)) {
    return 0;
  }
  uct_utofu_am_deliver(iface, peer, (uct_utofu_am_header_t*)peer->fetch_buffer);
  return 1;
}

void uct_utofu_fetched(uct_utofu_iface_t* iface, uct_utofu_op_t* op, uint64_t value) {
  uct_utofu_peer_t* const peer = op->peer;
  const int goes_on = op->status == UCS_OK && took_step(iface, peer, op, value);
  uct_utofu_op_end_quietly(iface, op);
  peer->fetching = 0;
  if (goes_on) {
    next_step(iface, peer, peer->fetch_step + 1);
  } else {
    finish(iface, peer); /* Its sender has gone, or has sent it itself. */
  }
}
