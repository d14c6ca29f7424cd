/* Endpoints: their pending requests, flushes and fences. */
#include "iface.h"

static UCS_CLASS_INIT_FUNC(uct_utofu_ep_t, const uct_ep_params_t* params) {
  uct_utofu_iface_t* const iface = ucs_derived_of(params->iface, uct_utofu_iface_t);
  uct_utofu_iface_addr_t addr;
  UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);
  UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);
  memcpy(&addr, params->iface_addr, sizeof addr);
  self->peer = uct_utofu_peer_get(iface, addr.vcq_id);
  if (self->peer == NULL || self->peer->index >= addr.doorbells) {
    return UCS_ERR_NO_RESOURCE;
  }
  uct_utofu_peer_meet(iface, self->peer, &addr);
  ucs_queue_head_init(&self->pending);
  ucs_queue_head_init(&self->flushes);
  self->next_number = 0;
  self->fenced = 0;
  self->open_count = 0;
  self->unconfirmed = 0;
  self->dispatching = 0;
  self->is_waiting = 0;
  self->wants_slot = 0;
  self->untold = 0;
  self->failure = UCS_OK;
  ucs_list_add_tail(&self->peer->eps, &self->of_peer);
  ucs_list_add_tail(&iface->eps, &self->of_iface);
  return UCS_OK;
}

static void warn_purged(uct_pending_req_t* req, void* arg) {
  ucs_warn("an endpoint is destroyed with pending request %p", req);
}

/* Its operations go on without it, but whoever waits for them is told now: their completions may go with the endpoint.
 */
static void leave_op(uct_utofu_iface_t* iface, uct_utofu_op_t* op) {
  uct_completion_t* const comp = op->comp;
  iface->left_count++;
  op->ep = NULL;
  op->comp = NULL;
  if (op->kind < UCT_UTOFU_OP_EARLY) {
    op->kind = UCT_UTOFU_OP_PLAIN; /* Nothing is left to unpack to. */
  }
  if (comp != NULL) {
    uct_invoke_completion(comp, UCS_ERR_CANCELED);
  }
}

static UCS_CLASS_CLEANUP_FUNC(uct_utofu_ep_t) {
  uct_utofu_iface_t* const iface = ucs_derived_of(self->super.super.iface, uct_utofu_iface_t);
  uct_utofu_flush_t* flush;
  uct_utofu_ep_pending_purge(&self->super.super, warn_purged, NULL);
  ucs_list_del(&self->of_peer);
  ucs_list_del(&self->of_iface);
  iface->parted |= ucs_list_is_empty(&self->peer->eps);
  for (unsigned i = 0; self->open_count > 0 && i < iface->config.buffers + UCT_UTOFU_TAGS; i++) {
    if (iface->ops[i].ep == self) {
      leave_op(iface, &iface->ops[i]);
    }
  }
  while (!ucs_queue_is_empty(&self->flushes)) {
    flush = ucs_queue_pull_elem_non_empty(&self->flushes, uct_utofu_flush_t, elem);
    uct_invoke_completion(flush->comp, UCS_ERR_CANCELED);
    ucs_free(flush);
  }
}

UCS_CLASS_DEFINE(uct_utofu_ep_t, uct_base_ep_t)
UCS_CLASS_DEFINE_NEW_FUNC(uct_utofu_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DEFINE_DELETE_FUNC(uct_utofu_ep_t, uct_ep_t);

/* What the interface has for every kind of operation. */
static int has_room(const uct_utofu_iface_t* iface) {
  return !iface->busy && iface->free_tag_count > 0 && iface->free_buffer_count > 0 && iface->free_ops != NULL;
}

/* Whether strong order keeps an operation behind all that are open at this endpoint, as seen at the target. A put that
 * is written later is behind puts and atomics. An atomic, which reads, too, is behind atomics: none is inside another.
 * No get is behind a put, and nothing behind what goes to another VCQ (guide 2.2.10, STRONG_ORDER). */
static int is_ordered(const uct_utofu_ep_t* ep, unsigned what, utofu_vcq_id_t to) {
  if (to != ep->open_to || what >= UCT_UTOFU_OTHER) {
    return 0;
  }
  return what == UCT_UTOFU_PUT ? (ep->open_what & UCT_UTOFU_OTHER) == 0 : ep->open_what == UCT_UTOFU_ATOMIC;
}

/* Messages tell nothing of their end. Before the first operation behind a fence that may overtake them, something
 * confirms them, for which it waits. @return 0: there was no room for that */
static int confirm_messages(uct_utofu_iface_t* iface, uct_utofu_ep_t* self) {
  uct_utofu_ep_t* ep;
  ucs_list_for_each(ep, &self->peer->eps, of_peer) {
    if (ep->unconfirmed && uct_utofu_peer_confirm(iface, ep) == UCS_ERR_NO_RESOURCE) {
      return 0;
    }
    if (ep->open_count > 0) {
      ep->fenced |= UCT_UTOFU_FENCED_OPS;
      iface->fenced |= ep != self;
    }
  }
  self->fenced &= ~UCT_UTOFU_FENCED_MESSAGES;
  return 1;
}

static int is_fenced(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, unsigned what, utofu_vcq_id_t to) {
  if (ucs_likely(!ep->fenced && !iface->fenced)) {
    return 0;
  }
  if ((ep->fenced & UCT_UTOFU_FENCED_MESSAGES) && what != UCT_UTOFU_MESSAGE &&
      (what != UCT_UTOFU_PUT || to != ep->peer->route) && !confirm_messages(iface, ep)) {
    return 1;
  }
  const unsigned open_count = iface->open_count - iface->left_count;
  ep->fenced &= ep->open_count > 0 ? ~0u : ~(unsigned)UCT_UTOFU_FENCED_OPS;
  iface->fenced = iface->fenced && open_count > 0;
  if (!(ep->fenced & UCT_UTOFU_FENCED_OPS) && !iface->fenced) {
    return 0;
  }
  return (iface->fenced && open_count > ep->open_count) || !is_ordered(ep, what, to);
}

ucs_status_t uct_utofu_ep_may_post(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, unsigned what, utofu_vcq_id_t to) {
  if (ucs_unlikely(!uct_utofu_is_awake(iface))) {
    uct_utofu_own_to_post(iface);
  }
  if (ucs_unlikely(ep->failure != UCS_OK || ep->peer->failure != UCS_OK)) {
    return ep->failure != UCS_OK ? ep->failure : ep->peer->failure;
  }
  if (ucs_unlikely(!ucs_queue_is_empty(&ep->pending) && !ep->dispatching)) {
    return UCS_ERR_NO_RESOURCE;
  }
  /* Room that notices would give back comes with progress: they call the user. */
  if (ucs_unlikely(!has_room(iface) || is_fenced(iface, ep, what, to))) {
    ep->wants_slot = 0; /* It may be no message, which needs none. */
    return UCS_ERR_NO_RESOURCE;
  }
  return UCS_OK;
}

/* Whether a request that found nothing would find something now. */
static int would_find(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep) {
  if (ep->failure != UCS_OK || ep->peer->failure != UCS_OK) {
    return 1; /* The failure. */
  }
  if (!has_room(iface) || is_fenced(iface, ep, UCT_UTOFU_OTHER, 0)) {
    return 0;
  }
  return !ep->wants_slot || uct_utofu_peer_has_room(iface, ep->peer);
}

static void join_waiting(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep) {
  if (!ep->is_waiting) {
    ep->is_waiting = 1;
    ucs_list_add_tail(&iface->waiting, &ep->waiting);
  }
}

ucs_status_t uct_utofu_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t* req, unsigned flags) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  if (ucs_queue_is_empty(&ep->pending) && would_find(iface, ep)) {
    return UCS_ERR_BUSY;
  }
  join_waiting(iface, ep);
  UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_queue_t) <= UCT_PENDING_REQ_PRIV_LEN);
  uct_pending_req_queue_push(&ep->pending, req);
  return UCS_OK;
}

static void leave_waiting(uct_utofu_ep_t* ep) {
  if (ep->is_waiting && ucs_queue_is_empty(&ep->pending)) {
    ep->is_waiting = 0;
    ucs_list_del(&ep->waiting);
  }
}

void uct_utofu_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb, void* arg) {
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  uct_pending_req_priv_queue_t* priv;
  if (ucs_queue_is_empty(&ep->pending)) {
    return;
  }
  ucs_queue_head_t purged;
  ucs_queue_head_init(&purged);
  ucs_queue_splice(&purged, &ep->pending);
  ep->wants_slot = 0;
  leave_waiting(ep);
  while (!ucs_queue_is_empty(&purged)) {
    priv = ucs_queue_pull_elem_non_empty(&purged, uct_pending_req_priv_queue_t, queue_elem);
    cb(ucs_container_of(priv, uct_pending_req_t, priv), arg);
  }
}

/* Calls the next request of an endpoint. It is taken off meanwhile, because it may free itself. A request may fail its
 * endpoint and purge it, but not destroy it.
 * @return whether it has done something */
static int dispatch_one(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep) {
  if (ucs_queue_is_empty(&ep->pending) || !would_find(iface, ep)) {
    return 0;
  }
  uct_pending_req_priv_queue_t* const priv =
      ucs_queue_pull_elem_non_empty(&ep->pending, uct_pending_req_priv_queue_t, queue_elem);
  uct_pending_req_t* const req = ucs_container_of(priv, uct_pending_req_t, priv);
  ep->dispatching = 1;
  const ucs_status_t status = req->func(req);
  ep->dispatching = 0;
  if (status == UCS_OK) {
    return 1;
  }
  ucs_queue_push_head(&ep->pending, &priv->queue_elem);
  join_waiting(iface, ep); /* It has left, if the request has purged all others. */
  return status == UCS_INPROGRESS;
}

int uct_utofu_ep_could_dispatch(uct_utofu_iface_t* iface) {
  uct_utofu_ep_t* ep;
  ucs_list_for_each(ep, &iface->waiting, waiting) {
    if (!ucs_queue_is_empty(&ep->pending) && would_find(iface, ep)) {
      return 1;
    }
  }
  return 0;
}

/* One turn. Those that found nothing are the first of the next one. @return whether any has done something */
static int dispatch_each(uct_utofu_iface_t* iface) {
  ucs_list_link_t unserved;
  int served = 0;
  ucs_list_head_init(&unserved);
  for (size_t left = ucs_list_length(&iface->waiting); left > 0 && !ucs_list_is_empty(&iface->waiting); left--) {
    uct_utofu_ep_t* const ep = ucs_list_head(&iface->waiting, uct_utofu_ep_t, waiting);
    ucs_list_del(&ep->waiting);
    ucs_list_add_tail(&iface->waiting, &ep->waiting);
    if (dispatch_one(iface, ep)) {
      served = 1;
    } else if (ep->is_waiting) {
      ucs_list_del(&ep->waiting);
      ucs_list_add_tail(&unserved, &ep->waiting);
    }
    leave_waiting(ep);
  }
  ucs_list_splice_tail(&unserved, &iface->waiting);
  ucs_list_head_init(&iface->waiting);
  ucs_list_splice_tail(&iface->waiting, &unserved);
  return served;
}

/* A request of each endpoint in turn, as long as any finds something: who adds requests all the time keeps nobody from
 * it. */
void uct_utofu_ep_dispatch(uct_utofu_iface_t* iface) {
  while (dispatch_each(iface)) {
  }
}

void uct_utofu_ep_op_ended(uct_utofu_ep_t* ep, uint64_t number, ucs_status_t status) {
  ucs_queue_iter_t iter;
  uct_utofu_flush_t* flush;
  ucs_queue_head_t ended;
  ep->open_count--;
  if (ucs_likely(ucs_queue_is_empty(&ep->flushes))) {
    return;
  }
  ucs_queue_head_init(&ended);
  const ucs_status_t outcome = status == UCS_ERR_ENDPOINT_TIMEOUT ? status : ep->failure; /* It may go meanwhile. */
  ucs_queue_for_each_safe(flush, iter, &ep->flushes, elem) {
    if (number < flush->below && --flush->left == 0) {
      ucs_queue_del_iter(&ep->flushes, iter);
      ucs_queue_push(&ended, &flush->elem);
    }
  }
  while (!ucs_queue_is_empty(&ended)) {
    flush = ucs_queue_pull_elem_non_empty(&ended, uct_utofu_flush_t, elem);
    uct_invoke_completion(flush->comp, flush->cancels && outcome == UCS_ERR_CANCELED ? UCS_OK : outcome);
    ucs_free(flush);
  }
}

/* What was put, got and changed tells its own end. Messages do not: an operation behind them does. A flush that
 * cancels does not wait for a peer that has not even made a ring, but for what reaches memory of the user it has to. */
ucs_status_t uct_utofu_ep_flush(uct_ep_h tl_ep, unsigned flags, uct_completion_t* comp) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  if (flags & UCT_FLUSH_FLAG_CANCEL) {
    ep->failure = ep->failure != UCS_OK ? ep->failure : UCS_ERR_CANCELED;
    if (ep->peer->early != NULL && ep->peer->early->ep == ep) {
      uct_utofu_cancel_early(iface, ep->peer);
    }
  }
  const int failed = ep->failure != UCS_OK || ep->peer->failure != UCS_OK;
  if (!failed && !ucs_queue_is_empty(&ep->pending) && !ep->dispatching) {
    return UCS_ERR_NO_RESOURCE;
  }
  if (!failed && ep->unconfirmed) {
    const ucs_status_t status = uct_utofu_peer_confirm(iface, ep);
    if (status != UCS_OK) {
      return status;
    }
  }
  if (ep->open_count == 0) {
    return UCS_OK;
  }
  if (comp != NULL) {
    uct_utofu_flush_t* const flush = ucs_malloc(sizeof *flush, "utofu flush");
    if (flush == NULL) {
      return UCS_ERR_NO_MEMORY;
    }
    *flush = (uct_utofu_flush_t){.comp = comp,
                                 .below = ep->next_number,
                                 .left = ep->open_count,
                                 .cancels = (flags & UCT_FLUSH_FLAG_CANCEL) != 0};
    ucs_queue_push(&ep->flushes, &flush->elem);
  }
  return UCS_INPROGRESS;
}

ucs_status_t uct_utofu_ep_fence(uct_ep_h tl_ep, unsigned flags) {
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  ep->fenced |= (ep->open_count > 0 ? UCT_UTOFU_FENCED_OPS : 0) | (ep->unconfirmed ? UCT_UTOFU_FENCED_MESSAGES : 0);
  return UCS_OK;
}

ucs_status_t uct_utofu_ep_check(uct_ep_h tl_ep, unsigned flags, uct_completion_t* comp) {
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  UCT_EP_KEEPALIVE_CHECK_PARAM(flags, comp);
  if (ep->failure != UCS_OK || ep->peer->failure != UCS_OK || (ep->open_count > 0 && ep->peer->early == NULL)) {
    return UCS_OK; /* It is known, or will be. */
  }
  const ucs_status_t status = uct_utofu_peer_check(uct_utofu_iface_of(tl_ep), ep);
  return status == UCS_ERR_NO_RESOURCE ? UCS_OK : status;
}
