/* The interface: what it can do, and the loop that takes its notices. */
#include "iface.h"

#include <ucs/sys/string.h>

/* Pieces of an active message. UCP has room for 29 on its stack, and stops a program that is told of more. */
enum { kMessageIov = 16 };
/* An interface without endpoints looks for a doorbell once in so many seconds at most: UCP calls those of all TNIs,
 * and uses few. So rarely, too, an interface looks into a TCQ in which it expects nothing. Calls are no measure: where
 * a core is shared, one may take milliseconds. */
static const double kRareSeconds = 20e-6;
/* An interface with endpoints that has sent and received nothing may be the target of puts, of which it is not told. It
 * looks at every fourth call: UCP makes endpoints on TNIs that it uses for long messages only. */
enum { kIdleCalls = 4 };
/* An interface that is busy reads the clock at every 16th call. */
enum { kTimeCalls = 16 };
/* A message to a process that dies before it takes it is lost without a report, and one that waits for a slot there
 * waits for ever. So an operation asks so often, in seconds, whether the process is there. */
static const double kConfirmSeconds = 0.1;
/* How long an interface that closes waits for its operations. */
static const double kCloseSeconds = 1.0;

static uct_iface_ops_t iface_ops;

ucs_config_field_t uct_utofu_iface_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_utofu_iface_config_t, super), UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},
    {"SEG_SIZE", "8k", "Bytes of a slot for an active message, and of a buffer for copied data. The same everywhere",
     ucs_offsetof(uct_utofu_iface_config_t, slot_bytes), UCS_CONFIG_TYPE_MEMUNITS},
    {"SLOTS", "16", "Active messages of a peer that may be under way; a power of two",
     ucs_offsetof(uct_utofu_iface_config_t, slots), UCS_CONFIG_TYPE_UINT},
    {"MAX_PEERS", "4096",
     "Interfaces that one may know. Times (SLOTS + 4), and times the interfaces of a process on a TNI, it has to stay "
     "below the entries of an MRQ (UTOFU_NUM_MRQ_ENTRIES), which must never be full",
     ucs_offsetof(uct_utofu_iface_config_t, max_peers), UCS_CONFIG_TYPE_UINT},
    {"TX_BUFFERS", "128", "Buffers for copied data", ucs_offsetof(uct_utofu_iface_config_t, buffers),
     UCS_CONFIG_TYPE_UINT},
    {"STRONG_ORDER", "y", "Puts to a peer become visible in their order, and each with its last bytes last",
     ucs_offsetof(uct_utofu_iface_config_t, strong_order), UCS_CONFIG_TYPE_BOOL},
    {"BANDWIDTH", "6340MBs", "Bandwidth of a TNI, for the choice of protocols",
     ucs_offsetof(uct_utofu_iface_config_t, bandwidth), UCS_CONFIG_TYPE_BW},
    {"LATENCY", "0.97us", "Latency of a put, for the choice of protocols",
     ucs_offsetof(uct_utofu_iface_config_t, latency), UCS_CONFIG_TYPE_TIME},
    {NULL}};

ucs_status_t uct_utofu_query_devices(uct_md_h tl_md, uct_tl_device_resource_t** devices_p, unsigned* count_p) {
  char name[UCT_DEVICE_NAME_MAX];
  ucs_snprintf_zero(name, sizeof name, "%s", ucs_derived_of(tl_md, uct_utofu_md_t)->name);
  return uct_single_device_resource(tl_md, name, UCT_DEVICE_TYPE_NET, UCS_SYS_DEVICE_ID_UNKNOWN, devices_p, count_p);
}

static ucs_status_t get_address(uct_iface_h tl_iface, uct_iface_addr_t* addr_p) {
  const uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  const uct_utofu_iface_addr_t addr = {.vcq_id = iface->vcq_id,
                                       .incarnation = iface->incarnation,
                                       .doorbells = iface->config.max_peers,
                                       .slot_bytes = (uint32_t)iface->config.slot_bytes};
  memcpy(addr_p, &addr, sizeof addr);
  return UCS_OK;
}

static int is_reachable(const uct_iface_h tl_iface, const uct_device_addr_t* dev_addr,
                        const uct_iface_addr_t* iface_addr) {
  const uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  uct_utofu_iface_addr_t addr;
  if (iface_addr == NULL) {
    return 1;
  }
  memcpy(&addr, iface_addr, sizeof addr);
  return addr.slot_bytes == iface->config.slot_bytes;
}

static void query_sizes(const uct_utofu_iface_t* iface, uct_iface_attr_t* attr) {
  attr->cap.put.max_short = UCT_UTOFU_PIGGYBACK;
  attr->cap.put.max_bcopy = iface->config.slot_bytes;
  attr->cap.put.max_zcopy = UCT_UTOFU_MAX_ZCOPY;
  attr->cap.put.opt_zcopy_align = 1;
  attr->cap.put.align_mtu = 1;
  attr->cap.put.max_iov = UCT_UTOFU_MAX_IOV;
  attr->cap.get.max_short = iface->config.slot_bytes;
  attr->cap.get.max_bcopy = iface->config.slot_bytes;
  attr->cap.get.max_zcopy = UCT_UTOFU_MAX_ZCOPY;
  attr->cap.get.opt_zcopy_align = 1;
  attr->cap.get.align_mtu = 1;
  attr->cap.get.max_iov = UCT_UTOFU_MAX_IOV;
  attr->cap.am.max_short = iface->config.payload;
  attr->cap.am.max_bcopy = iface->config.payload;
  attr->cap.am.max_zcopy = iface->config.payload;
  attr->cap.am.opt_zcopy_align = 1;
  attr->cap.am.align_mtu = 1;
  attr->cap.am.max_hdr = iface->config.payload;
  attr->cap.am.max_iov = kMessageIov;
}

static void query_atomics(const uct_utofu_iface_t* iface, uct_iface_attr_t* attr) {
  const unsigned long ops = iface->md->caps->armw_ops;
  uint64_t post = 0, fetch = 0;
  post |= (ops & UTOFU_ONESIDED_CAP_ARMW_OP_ADD) ? UCS_BIT(UCT_ATOMIC_OP_ADD) : 0;
  post |= (ops & UTOFU_ONESIDED_CAP_ARMW_OP_AND) ? UCS_BIT(UCT_ATOMIC_OP_AND) : 0;
  post |= (ops & UTOFU_ONESIDED_CAP_ARMW_OP_OR) ? UCS_BIT(UCT_ATOMIC_OP_OR) : 0;
  post |= (ops & UTOFU_ONESIDED_CAP_ARMW_OP_XOR) ? UCS_BIT(UCT_ATOMIC_OP_XOR) : 0;
  fetch |= (ops & UTOFU_ONESIDED_CAP_ARMW_OP_SWAP) ? UCS_BIT(UCT_ATOMIC_OP_SWAP) : 0;
  fetch |= (ops & UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP) ? UCS_BIT(UCT_ATOMIC_OP_CSWAP) : 0;
  attr->cap.atomic32.op_flags = attr->cap.atomic64.op_flags = post;
  attr->cap.atomic32.fop_flags = attr->cap.atomic64.fop_flags = post | fetch;
}

static ucs_status_t query(uct_iface_h tl_iface, uct_iface_attr_t* attr) {
  uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  uct_base_iface_query(&iface->super, attr);
  query_sizes(iface, attr);
  query_atomics(iface, attr);
  attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_PENDING |
                    UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
                    UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                    UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                    UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_EP_CHECK | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE;
  if (iface->md->wakeup) {
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_FD | UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV;
  }
  attr->iface_addr_len = sizeof(uct_utofu_iface_addr_t);
  attr->bandwidth.dedicated = iface->config.bandwidth * iface->md->rails;
  attr->latency = ucs_linear_func_make(iface->config.latency, 0);
  attr->overhead = 100e-9;
  return UCS_OK;
}

static void confirm_messages(uct_utofu_iface_t* iface, ucs_time_t now) {
  uct_utofu_ep_t* ep;
  iface->next_confirm = now + ucs_time_from_sec(kConfirmSeconds);
  ucs_list_for_each(ep, &iface->eps, of_iface) {
    if (uct_utofu_ep_wonders(ep) && ep->peer->asked != iface->next_confirm) {
      if ((ep->unconfirmed ? uct_utofu_peer_confirm(iface, ep) : uct_utofu_peer_check(iface, ep)) != UCS_OK) {
        return;
      }
      ep->peer->asked = iface->next_confirm;
    }
  }
}

/* Whether it is time for what is done rarely. */
static int rare_time_has_come(uct_utofu_iface_t* iface) {
  const ucs_time_t now = ucs_get_time();
  if (now < iface->next_rare) {
    return 0;
  }
  iface->next_rare = now + iface->rare_time;
  return 1;
}

/* @return whether this call looks for notices
 * @param rarely_p  whether it does what is done rarely, too */
static int looks_now(uct_utofu_iface_t* iface, int* rarely_p) {
  const unsigned call = iface->calls++;
  if (iface->wakeup.fd >= 0) { /* Something may be kept. */
    *rarely_p = rare_time_has_come(iface);
    return 1;
  }
  const int idle = !iface->talks && iface->open_count == 0, met = !ucs_list_is_empty(&iface->eps);
  if (idle && met && call % kIdleCalls != 0) {
    return 0;
  }
  *rarely_p = (idle || call % kTimeCalls == 0) && rare_time_has_come(iface);
  return !idle || met || *rarely_p;
}

unsigned uct_utofu_iface_progress(uct_iface_h tl_iface) {
  uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  int rarely = 0;
  if (!looks_now(iface, &rarely)) {
    return 0;
  }
  const int armed = uct_utofu_own(iface);
  unsigned count = uct_utofu_poll_mrq(iface);
  if (rarely || iface->tcq_open > 0 || iface->busy) {
    count += uct_utofu_poll_tcq(iface);
  }
  if (ucs_unlikely(rarely)) {
    const ucs_time_t now = ucs_get_time();
    if (now >= iface->next_confirm) {
      confirm_messages(iface, now);
      uct_utofu_forget_peers(iface);
    }
  }
  if (ucs_unlikely(iface->bell_count > 0)) {
    count += uct_utofu_ask_ringers(iface);
  }
  if (ucs_unlikely(!ucs_list_is_empty(&iface->owing))) {
    count += uct_utofu_pay_debts(iface);
  }
  if (ucs_unlikely(!ucs_list_is_empty(&iface->waiting))) {
    uct_utofu_ep_dispatch(iface);
  }
  if (ucs_unlikely(armed)) {
    uct_utofu_after_progress(iface, count);
  }
  return count;
}

static ucs_status_t flush(uct_iface_h tl_iface, unsigned flags, uct_completion_t* comp) {
  uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  uct_utofu_ep_t* ep;
  ucs_status_t flushed = UCS_OK;
  if (comp != NULL) {
    return UCS_ERR_UNSUPPORTED;
  }
  ucs_list_for_each(ep, &iface->eps, of_iface) {
    const ucs_status_t status = uct_utofu_ep_flush(&ep->super.super, 0, NULL);
    if (status != UCS_OK && status != UCS_ERR_NO_RESOURCE && status != UCS_INPROGRESS) {
      return status;
    }
    flushed = status == UCS_OK ? flushed : UCS_INPROGRESS;
  }
  return flushed;
}

static ucs_status_t fence(uct_iface_h tl_iface, unsigned flags) {
  uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  uct_utofu_ep_t *ep, *other;
  iface->fenced = iface->open_count > iface->left_count;
  ucs_list_for_each(ep, &iface->eps, of_iface) {
    if (ep->unconfirmed) { /* Endpoints to one peer are one, for what is told by no notice. */
      ucs_list_for_each(other, &ep->peer->eps, of_peer) { other->fenced |= UCT_UTOFU_FENCED_MESSAGES; }
    }
  }
  return UCS_OK;
}

static ucs_status_t configure(uct_utofu_iface_t* iface, const uct_utofu_iface_config_t* config) {
  iface->config.slot_bytes = ucs_align_up(ucs_max(config->slot_bytes, 512ul), 256);
  iface->config.payload = iface->config.slot_bytes - sizeof(uct_utofu_am_header_t);
  iface->config.slots = (unsigned)ucs_roundup_pow2(ucs_min(ucs_max(config->slots, 2u), 1024u));
  iface->config.max_peers = ucs_max(config->max_peers, 1u);
  iface->config.buffers = ucs_min(ucs_max(config->buffers, 1u), 1u << 20); /* An outbox has 24 bits for a number. */
  iface->config.put_order = config->strong_order ? UTOFU_ONESIDED_FLAG_STRONG_ORDER : 0;
  iface->config.bandwidth = config->bandwidth;
  iface->config.latency = config->latency;
  return iface->config.slot_bytes <= UINT32_MAX / iface->config.slots ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

/* Gives back what the interface has. Also after an incomplete beginning. */
static void take_apart(uct_utofu_iface_t* iface) {
  uct_utofu_peers_cleanup(iface);
  uct_utofu_ops_cleanup(iface);
  ucs_free(iface->kept);
  if (iface->open_count == 0) {
    uct_utofu_md_give_vcq(iface->md, iface->vcq_slot);
  } else {
    /* Their notices would be read by the next interface on this VCQ. */
    ucs_debug("%u operations have not ended; their VCQ is not used again", iface->open_count);
  }
}

/* Messages are handed over where they lie, so nothing has to be aligned; but the wish has to make sense. */
static int alignment_makes_sense(const uct_iface_params_t* params) {
  if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT)) {
    return !(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET);
  }
  return ucs_is_pow2(params->am_alignment);
}

/* Of two that begin soon one after the other, the upper bits differ, too: some words have room for those only. */
static uint64_t new_incarnation(const uct_utofu_iface_t* iface) {
  uint64_t mixed = ucs_generate_uuid((uintptr_t)iface);
  mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ull;
  return (mixed ^ mixed >> 32) | 1;
}

static UCS_CLASS_INIT_FUNC(uct_utofu_iface_t, uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                           const uct_iface_config_t* config) {
  UCT_CHECK_PARAM(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                  "UCT_IFACE_PARAM_FIELD_OPEN_MODE is not defined");
  if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
    return UCS_ERR_UNSUPPORTED;
  }
  if (!alignment_makes_sense(params)) {
    ucs_error("an alignment of messages that is none");
    return UCS_ERR_INVALID_PARAM;
  }
  UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &iface_ops, &uct_base_iface_internal_ops, md, worker, params, config);
  memset((char*)self + sizeof self->super, 0, sizeof *self - sizeof self->super);
  ucs_list_head_init(&self->owing);
  ucs_list_head_init(&self->waiting);
  ucs_list_head_init(&self->eps);
  self->md = ucs_derived_of(md, uct_utofu_md_t);
  self->wakeup.fd = -1;
  self->rare_time = ucs_time_from_sec(kRareSeconds);
  self->incarnation = new_incarnation(self);
  ucs_status_t status = configure(self, ucs_derived_of(config, uct_utofu_iface_config_t));
  if (status != UCS_OK || (status = uct_utofu_md_take_vcq(self->md, &self->vcq_slot)) != UCS_OK) {
    return status;
  }
  self->vcq = self->md->vcqs[self->vcq_slot].hdl;
  self->vcq_id = self->md->vcqs[self->vcq_slot].id;
  for (unsigned rail = 0; rail < self->md->rails; rail++) {
    self->rails[rail] = self->md->vcqs[self->vcq_slot + rail].hdl;
  }
  status = uct_utofu_ops_init(self);
  if (status == UCS_OK) {
    status = uct_utofu_peers_init(self);
  }
  if (status != UCS_OK) {
    take_apart(self);
  } else if (ucs_derived_of(worker, uct_priv_worker_t)->thread_mode == UCS_THREAD_MODE_MULTI) {
    uct_utofu_multi_init(self);
  }
  return status;
}

static UCS_CLASS_CLEANUP_FUNC(uct_utofu_iface_t) {
  const ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(kCloseSeconds);
  uct_utofu_wakeup_cleanup(self);
  uct_base_iface_progress_disable(&self->super.super, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
  for (unsigned i = 0; i < self->peer_count; i++) { /* Nobody has asked for what does not even have a ring. */
    if (self->peer_table[i] == NULL) {
      continue;
    }
    uct_utofu_cancel_early(self, self->peer_table[i]);
    if (self->peer_table[i]->early != NULL) { /* It was being fetched by somebody who may be dead. */
      uct_utofu_ask(self, self->peer_table[i]);
    }
  }
  while (self->open_count > 0 && ucs_get_time() < deadline) {
    uct_utofu_iface_progress(&self->super.super);
  }
  take_apart(self);
  if (self->unlocked.iface_progress != NULL) {
    pthread_mutex_destroy(&self->lock);
  }
}

UCS_CLASS_DEFINE(uct_utofu_iface_t, uct_base_iface_t);
UCS_CLASS_DEFINE_NEW_FUNC(uct_utofu_iface_t, uct_iface_t, uct_md_h, uct_worker_h, const uct_iface_params_t*,
                          const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_utofu_iface_t, uct_iface_t);

static uct_iface_ops_t iface_ops = {
    .ep_put_short = uct_utofu_ep_put_short,
    .ep_put_bcopy = uct_utofu_ep_put_bcopy,
    .ep_put_zcopy = uct_utofu_ep_put_zcopy,
    .ep_get_short = uct_utofu_ep_get_short,
    .ep_get_bcopy = uct_utofu_ep_get_bcopy,
    .ep_get_zcopy = uct_utofu_ep_get_zcopy,
    .ep_am_short = uct_utofu_ep_am_short,
    .ep_am_short_iov = uct_utofu_ep_am_short_iov,
    .ep_am_bcopy = uct_utofu_ep_am_bcopy,
    .ep_am_zcopy = uct_utofu_ep_am_zcopy,
    .ep_atomic_cswap64 = uct_utofu_ep_atomic_cswap64,
    .ep_atomic_cswap32 = uct_utofu_ep_atomic_cswap32,
    .ep_atomic32_post = uct_utofu_ep_atomic32_post,
    .ep_atomic64_post = uct_utofu_ep_atomic64_post,
    .ep_atomic32_fetch = uct_utofu_ep_atomic32_fetch,
    .ep_atomic64_fetch = uct_utofu_ep_atomic64_fetch,
    .ep_flush = uct_utofu_ep_flush,
    .ep_fence = uct_utofu_ep_fence,
    .ep_check = uct_utofu_ep_check,
    .ep_pending_add = uct_utofu_ep_pending_add,
    .ep_pending_purge = uct_utofu_ep_pending_purge,
    .ep_create = UCS_CLASS_NEW_FUNC_NAME(uct_utofu_ep_t),
    .ep_destroy = UCS_CLASS_DELETE_FUNC_NAME(uct_utofu_ep_t),
    .iface_flush = flush,
    .iface_fence = fence,
    .iface_progress_enable = uct_base_iface_progress_enable,
    .iface_progress_disable = uct_base_iface_progress_disable,
    .iface_event_fd_get = uct_utofu_event_fd_get,
    .iface_event_arm = uct_utofu_event_arm,
    .iface_progress = uct_utofu_iface_progress,
    .iface_close = UCS_CLASS_DELETE_FUNC_NAME(uct_utofu_iface_t),
    .iface_query = query,
    .iface_get_address = get_address,
    .iface_get_device_address = (uct_iface_get_device_address_func_t)ucs_empty_function_return_success,
    .iface_is_reachable = is_reachable,
};
