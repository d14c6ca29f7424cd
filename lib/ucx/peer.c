/* Peers: who they are, what they owe each other, and when they are gone (see iface.h). */
#include "iface.h"

#include <ucs/sys/sys.h>

/* Of the control memory of an interface with so many records and doorbells. */
static size_t incarnation_offset(size_t doorbells) {
  return ucs_align_up(doorbells * (sizeof(uct_utofu_record_t) + 1), sizeof(uint64_t));
}

ucs_status_t uct_utofu_peers_init(uct_utofu_iface_t* iface) {
  const size_t alignment = ucs_max(iface->md->caps->stag_address_alignment, 256ul);
  const size_t offset = incarnation_offset(iface->config.max_peers);
  kh_init_inplace(uct_utofu_peers, &iface->peers);
  iface->control_bytes = ucs_align_up(offset + sizeof(uint64_t), alignment);
  iface->peer_table = ucs_calloc(iface->config.max_peers, sizeof *iface->peer_table, "utofu peers");
  if (iface->peer_table == NULL ||
      ucs_posix_memalign((void**)&iface->control, alignment, iface->control_bytes, "utofu control") != 0) {
    return UCS_ERR_NO_MEMORY;
  }
  memset(iface->control, 0, iface->control_bytes);
  *(uint64_t*)(iface->control + offset) = iface->incarnation;
  const int rc = utofu_reg_mem_with_stag(iface->vcq, iface->control, iface->control_bytes, UCT_UTOFU_CONTROL_STAG, 0,
                                         &iface->control_stadd);
  if (rc != UTOFU_SUCCESS) {
    ucs_error("control memory cannot be registered: uTofu says %d", rc);
    iface->control_stadd = UCT_UTOFU_NO_STADD;
    return UCS_ERR_NO_MEMORY;
  }
  return UCS_OK;
}

void uct_utofu_peers_cleanup(uct_utofu_iface_t* iface) {
  uct_utofu_peer_t* peer;
  for (unsigned i = 0; i < iface->chunk_count; i++) {
    utofu_dereg_mem(iface->vcq, iface->chunks[i].stadd, 0);
    ucs_free(iface->chunks[i].memory);
  }
  ucs_free(iface->chunks);
  ucs_free(iface->bells);
  if (iface->control != NULL && iface->control_stadd != UCT_UTOFU_NO_STADD) {
    utofu_dereg_mem(iface->vcq, iface->control_stadd, 0);
  }
  ucs_free(iface->control);
  kh_foreach_value(&iface->peers, peer, ucs_free(peer));
  ucs_free(iface->peer_table);
  kh_destroy_inplace(uct_utofu_peers, &iface->peers);
}

/* Those that were given to others come last: a peer that is taken for dead may write once more. */
static uint32_t free_index(const uct_utofu_iface_t* iface) {
  unsigned index = iface->peer_count < iface->config.max_peers ? iface->peer_count : 0;
  while (index < iface->peer_count && iface->peer_table[index] != NULL) {
    index++;
  }
  return index < iface->config.max_peers ? index : UCT_UTOFU_NO_INDEX;
}

static uct_utofu_peer_t* make_peer(uct_utofu_iface_t* iface, utofu_vcq_id_t id) {
  uct_utofu_peer_t* const peer = ucs_calloc(1, sizeof *peer, "utofu peer");
  if (peer == NULL) {
    return NULL;
  }
  peer->id = id;
  peer->route = id;
  peer->index = free_index(iface);
  peer->epoch = iface->md->vcqs[iface->vcq_slot].epoch;
  peer->failure = UCS_OK;
  ucs_list_head_init(&peer->eps);
  if (utofu_set_vcq_id_path(&peer->route, NULL) != UTOFU_SUCCESS ||
      utofu_query_stadd(peer->route, UCT_UTOFU_CONTROL_STAG, &peer->control) != UTOFU_SUCCESS) {
    ucs_free(peer);
    return NULL;
  }
  return peer;
}

uct_utofu_peer_t* uct_utofu_peer_get(uct_utofu_iface_t* iface, utofu_vcq_id_t id) {
  int what;
  const khiter_t known = kh_get(uct_utofu_peers, &iface->peers, id);
  if (known != kh_end(&iface->peers)) {
    return kh_val(&iface->peers, known);
  }
  uct_utofu_peer_t* const peer = make_peer(iface, id);
  if (peer == NULL) {
    return NULL;
  }
  const khiter_t place = kh_put(uct_utofu_peers, &iface->peers, id, &what);
  if (what < 0) {
    ucs_free(peer);
    return NULL;
  }
  kh_val(&iface->peers, place) = peer;
  if (peer->index == UCT_UTOFU_NO_INDEX) {
    ucs_error("more than %u peers (UCX_UTOFU_MAX_PEERS)", iface->config.max_peers);
    iface->parted = 1;
  } else {
    iface->peer_table[peer->index] = peer;
    iface->peer_count = ucs_max(iface->peer_count, peer->index + 1);
  }
  return peer;
}

/* What was agreed with an earlier interface of the same VCQ id, or before a failure, is void. */
static void forget_sending(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  uct_utofu_drop_early(iface, peer, UCS_ERR_CANCELED); /* Of endpoints that were destroyed. */
  memset(uct_utofu_record_of(iface, peer), 0, sizeof(uct_utofu_record_t));
  peer->tx = UCT_UTOFU_TX_NONE;
  peer->tx_sent = peer->tx_handled = peer->tx_slots = 0;
  peer->failure = UCS_OK;
  peer->epoch = (uint8_t)~peer->epoch;
}

void uct_utofu_peer_meet(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, const uct_utofu_iface_addr_t* addr) {
  if (peer->incarnation != 0 && peer->incarnation != addr->incarnation) {
    if (!ucs_list_is_empty(&peer->eps)) {
      uct_utofu_peer_failed(iface, peer, UCS_ERR_CONNECTION_RESET);
    }
    forget_sending(iface, peer);
  } else if (peer->failure != UCS_OK) {
    forget_sending(iface, peer); /* Who makes a new endpoint to a peer that failed wants to try again. */
  }
  peer->incarnation = addr->incarnation;
  peer->doorbells = addr->doorbells;
}

static int tell_count(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  const uint16_t handled = peer->rx_handled;
  const int rc = utofu_put_piggyback8(iface->vcq, peer->route, uct_utofu_count_of(peer->its_asks, handled),
                                      uct_utofu_record_at(peer, offsetof(uct_utofu_record_t, handled)),
                                      sizeof(uint64_t), peer->epoch, UCT_UTOFU_CONTROL_FLAGS, NULL);
  if (rc == UTOFU_SUCCESS) {
    peer->rx_told = handled;
  }
  return rc;
}

/* @return UTOFU_ERR_BUSY: later */
static int pay(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  int rc = UTOFU_SUCCESS;
  if (peer->owes & UCT_UTOFU_OWES_RING) {
    rc = uct_utofu_ring(iface, peer);
    peer->owes &= rc == UTOFU_ERR_BUSY ? ~0 : ~UCT_UTOFU_OWES_RING;
  }
  if (rc != UTOFU_ERR_BUSY && (peer->owes & UCT_UTOFU_OWES_ANSWER)) {
    rc = uct_utofu_answer(iface, peer);
    peer->owes &= rc == UTOFU_ERR_BUSY ? ~0 : ~UCT_UTOFU_OWES_ANSWER;
  }
  if (rc != UTOFU_ERR_BUSY && (peer->owes & UCT_UTOFU_OWES_COUNT)) {
    /* A message has told it meanwhile, perhaps. */
    rc = peer->rx_told == peer->rx_handled ? UTOFU_SUCCESS : tell_count(iface, peer);
    peer->owes &= rc == UTOFU_ERR_BUSY ? ~0 : ~UCT_UTOFU_OWES_COUNT;
  }
  if (rc != UTOFU_SUCCESS && rc != UTOFU_ERR_BUSY) {
    ucs_error("uTofu refuses a put into control memory: %d", rc);
  }
  if (rc != UTOFU_ERR_BUSY && (peer->owes & UCT_UTOFU_OWES_EARLY)) {
    rc = uct_utofu_send_early(iface, peer);
    peer->owes &= rc == UTOFU_ERR_BUSY ? ~0 : ~UCT_UTOFU_OWES_EARLY;
  }
  if (rc != UTOFU_ERR_BUSY && (peer->owes & UCT_UTOFU_OWES_FETCH)) {
    rc = uct_utofu_fetch(iface, peer);
  }
  return rc;
}

void uct_utofu_peer_owe(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, unsigned what) {
  peer->owes |= (uint8_t)what;
  pay(iface, peer); /* Which may note another debt of this peer. */
  if ((peer->owes != 0) != peer->is_owing) {
    peer->is_owing = !peer->is_owing;
    if (peer->is_owing) {
      ucs_list_add_tail(&iface->owing, &peer->owing);
    } else {
      ucs_list_del(&peer->owing);
    }
  }
}

unsigned uct_utofu_pay_debts(uct_utofu_iface_t* iface) {
  uct_utofu_peer_t *peer, *next;
  unsigned count = 0;
  ucs_list_for_each_safe(peer, next, &iface->owing, owing) {
    if (pay(iface, peer) == UTOFU_ERR_BUSY) {
      break;
    }
    if (peer->owes == 0 && peer->is_owing) {
      peer->is_owing = 0;
      ucs_list_del(&peer->owing);
      count++;
    }
  }
  return count;
}

static void record_written(uct_utofu_iface_t* iface, size_t end) {
  const size_t index = (end - 1) / sizeof(uct_utofu_record_t);
  const uct_utofu_record_t* const record = (const uct_utofu_record_t*)iface->control + index;
  uct_utofu_peer_t* const peer = index < iface->peer_count ? iface->peer_table[index] : NULL;
  if (peer == NULL) {
    return; /* Of an earlier interface on this VCQ, or of a peer that was forgotten. */
  }
  if (end - index * sizeof *record == sizeof *record) {
    uct_utofu_outbox_written(iface, peer);
    return;
  }
  if (end - index * sizeof *record == offsetof(uct_utofu_record_t, alive)) {
    const uint64_t handled = record->handled;
    if (uct_utofu_count_of(record->asks, (uint16_t)handled) == handled) {
      uct_utofu_peer_take_handled(peer, (uint16_t)handled);
    }
  } else if (peer->tx == UCT_UTOFU_TX_RINGING) {
    uct_utofu_answered(iface, peer, record);
  }
}

void uct_utofu_put_arrived(uct_utofu_iface_t* iface, const struct utofu_mrq_notice* notice) {
  const size_t ring = uct_utofu_ring_bytes(iface), records = iface->config.max_peers * sizeof(uct_utofu_record_t);
  /* Of an atomic it says where that begins (guide 3.7.6). */
  const utofu_stadd_t end_stadd =
      notice->rmt_stadd + (notice->notice_type == UTOFU_MRQ_TYPE_RMT_ARMW ? sizeof(uint64_t) : 0);
  for (unsigned i = 0; i < iface->chunk_count; i++) {
    const uct_utofu_chunk_t* const chunk = &iface->chunks[i];
    const size_t offset = end_stadd - 1 - chunk->stadd;
    if (offset < UCT_UTOFU_CHUNK_RINGS * ring && chunk->owners[offset / ring] != NULL) {
      uct_utofu_am_arrived(iface, chunk->owners[offset / ring],
                           chunk->memory + offset / iface->config.slot_bytes * iface->config.slot_bytes);
      return;
    }
  }
  const size_t end = end_stadd - iface->control_stadd;
  if (end - 1 < records) {
    record_written(iface, end);
  } else if (end - 1 < iface->control_bytes) {
    uct_utofu_bell_rung(iface, (uct_utofu_bell_t){.vcq_id = notice->vcq_id, .index = (uint32_t)(end - 1 - records)});
  } else {
    ucs_debug("a put to STADD 0x%lx is for nobody", (unsigned long)end_stadd);
  }
}

void uct_utofu_ep_failed(uct_utofu_ep_t* ep, ucs_status_t status) {
  if (ep->failure == UCS_OK) {
    ep->failure = status;
    ep->untold = 1;
  }
}

static uct_utofu_ep_t* first_untold(const uct_utofu_peer_t* peer) {
  uct_utofu_ep_t* ep;
  ucs_list_for_each(ep, &peer->eps, of_peer) {
    if (ep->untold) {
      return ep;
    }
  }
  return NULL;
}

void uct_utofu_tell_failures(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  uct_utofu_ep_t* ep;
  /* A handler may destroy any endpoint, and make new ones, so each look begins anew. */
  while ((ep = first_untold(peer)) != NULL) {
    const ucs_status_t failure = ep->failure;
    ep->untold = 0;
    if (uct_iface_handle_ep_err(&iface->super.super, &ep->super.super, failure) != UCS_OK) {
      ucs_diag("an endpoint has failed, and nobody handles it: %s", ucs_status_string(failure));
    }
  }
}

void uct_utofu_peer_failed(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, ucs_status_t status) {
  uct_utofu_ep_t* ep;
  if (peer->failure == UCS_OK) {
    ucs_debug("peer 0x%lx failed: %s", (unsigned long)peer->id, ucs_status_string(status));
    peer->failure = status;
  }
  iface->parted |= ucs_list_is_empty(&peer->eps);
  ucs_list_for_each(ep, &peer->eps, of_peer) { uct_utofu_ep_failed(ep, peer->failure); }
  uct_utofu_drop_early(iface, peer, peer->failure);
  uct_utofu_tell_failures(iface, peer);
}

static uct_utofu_op_t* take_question(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, uct_utofu_op_kind_t kind) {
  if (!uct_utofu_is_awake(iface)) {
    uct_utofu_own_to_post(iface);
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ep, 1, 0);
  if (op != NULL) {
    op->kind = (uint8_t)kind;
  }
  return op;
}

/* Compares its incarnation, which changes nothing, and finds what is there. */
static ucs_status_t check(uct_utofu_iface_t* iface, uct_utofu_op_t* op) {
  const uct_utofu_peer_t* const peer = op->peer;
  return uct_utofu_op_posted(iface, op,
                             utofu_cswap8(iface->vcq, peer->route, peer->incarnation, peer->incarnation,
                                          peer->control + incarnation_offset(peer->doorbells), op->tag,
                                          UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
}

ucs_status_t uct_utofu_peer_check(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep) {
  uct_utofu_op_t* const op = take_question(iface, ep, UCT_UTOFU_OP_CHECK);
  return op == NULL ? UCS_ERR_NO_RESOURCE : check(iface, op);
}

/* Puts into the record of whatever peer has the first: nobody reads what is written. */
static ucs_status_t confirm(uct_utofu_iface_t* iface, uct_utofu_op_t* op) {
  const uct_utofu_peer_t* const peer = op->peer;
  return uct_utofu_op_posted(
      iface, op,
      utofu_put_piggyback8(iface->vcq, peer->route, 1, peer->control + offsetof(uct_utofu_record_t, alive),
                           sizeof(uint64_t), op->tag,
                           UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL));
}

ucs_status_t uct_utofu_peer_confirm(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep) {
  uct_utofu_op_t* const op = take_question(iface, ep, UCT_UTOFU_OP_CONFIRM);
  if (op == NULL) {
    return UCS_ERR_NO_RESOURCE;
  }
  const ucs_status_t status = confirm(iface, op);
  if (status == UCS_OK) {
    ep->unconfirmed = 0;
  }
  return status;
}

/* No endpoint has it, and it is owed nothing. Operations of no endpoint may still be on their way to it. */
static int is_left(uct_utofu_peer_t* peer) {
  return ucs_list_is_empty(&peer->eps) && peer->early == NULL && peer->owes == 0 && !peer->is_owing &&
         !peer->fetching && peer->fetch_step == UCT_UTOFU_FETCH_LOOK;
}

/* Whether it will write nothing here: it is gone, one of us has refused the other, or it does not know us. So it is
 * with a later interface that has its VCQ, unless that has rung. */
static int is_over(const uct_utofu_peer_t* peer) {
  return peer->failure == UCS_ERR_ENDPOINT_TIMEOUT || peer->index == UCT_UTOFU_NO_INDEX ||
         (peer->rx_ring == NULL && (peer->tx == UCT_UTOFU_TX_NONE || peer->tx == UCT_UTOFU_TX_REFUSED ||
                                    peer->failure == UCS_ERR_CONNECTION_RESET));
}

static void forget_peer(uct_utofu_iface_t* iface, khiter_t place) {
  uct_utofu_peer_t* const peer = kh_val(&iface->peers, place);
  kh_del(uct_utofu_peers, &iface->peers, place);
  if (peer->rx_ring != NULL) {
    uct_utofu_give_ring(iface, peer->rx_ring);
  }
  if (peer->index != UCT_UTOFU_NO_INDEX) {
    memset(uct_utofu_record_of(iface, peer), 0, sizeof(uct_utofu_record_t));
    iface->peer_table[peer->index] = NULL;
  }
  ucs_free(peer);
}

int uct_utofu_ask(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  uct_utofu_op_t* const op = uct_utofu_op_take_of(iface, peer, 1, 0);
  if (op == NULL) {
    return 0;
  }
  const int is_known = peer->incarnation != 0; /* Some endpoint was made. */
  op->kind = is_known ? UCT_UTOFU_OP_CHECK : UCT_UTOFU_OP_CONFIRM;
  return (is_known ? check(iface, op) : confirm(iface, op)) == UCS_OK;
}

/* Where many have been left, asks some of them whether they are there: of those that are gone nobody would hear. */
static void ask_left(uct_utofu_iface_t* iface, unsigned left) {
  enum { kMostAsked = 16 };
  unsigned asked = 0;
  if (left <= iface->config.max_peers / 2) {
    return;
  }
  iface->parted = 1;
  for (unsigned looks = 0; looks < iface->peer_count && asked < kMostAsked; looks++) {
    uct_utofu_peer_t* const peer = iface->peer_table[iface->next_asked++ % iface->peer_count];
    if (peer == NULL || !is_left(peer)) {
      continue;
    }
    if (!uct_utofu_ask(iface, peer)) {
      return;
    }
    asked++;
  }
}

void uct_utofu_forget_peers(uct_utofu_iface_t* iface) {
  unsigned left = 0;
  if (!iface->parted || iface->left_count > 0) {
    return; /* An operation of no endpoint has a peer. */
  }
  iface->parted = 0;
  for (khiter_t place = kh_begin(&iface->peers); place != kh_end(&iface->peers); ++place) {
    if (!kh_exist(&iface->peers, place) || !is_left(kh_val(&iface->peers, place))) {
      continue;
    }
    if (is_over(kh_val(&iface->peers, place))) {
      forget_peer(iface, place);
    } else {
      left++;
    }
  }
  ask_left(iface, left);
}
