/* The objects of the UCT transport `utofu` that its files share.
 *
 * An interface has one VCQ. What an interface knows of another one is a peer: a ring of slots at each side, through
 * which active messages go, and a record and a doorbell in the control memory of each side. Endpoints are users of a
 * peer. An operation is something posted whose end a notice tells: of the TCQ, which gives its address back, or of the
 * MRQ, which gives its tag back as EDATA.
 *
 * How two interfaces meet (bell.c): the first active message to a peer waits in a buffer. Its sender notes in its
 * record for this peer whom it asks, and rings: it puts one byte at the doorbell whose number is that of the record.
 * The notice tells the receiver the number, by its address, and the sender's VCQ id, and with it the STADD of the
 * sender's control memory, which has a chosen STag. The receiver reads what is asked, makes a ring, and puts its STADD
 * into the record, with who it is and what it was asked. From then on the sender fills slots in turn, each by a put
 * with a remote notice, whose address tells the receiver the slot. Slots come back as a count of messages that were
 * handled: in the header of each message of the other direction, and by a put into the record when half of the slots
 * are owed.
 *
 * A process that is killed leaves its VCQ id to another one, and bells, answers and counts of its time may still be
 * under way. So each of them says, or can be asked, between whom it is (control.h).
 *
 * A sender that looks nowhere meanwhile does not see the ring. So its first message can be fetched (fetch.c): the
 * outbox of the record says in which buffer it waits, and for whom. A receiver to which it does not come looks there,
 * takes it by an atomic, gets it, and says so by another one. The sender takes its own message in the same way, before
 * it sends it.
 */
#ifndef UCT_UTOFU_IFACE_H
#define UCT_UTOFU_IFACE_H

#include "control.h"
#include "memory.h"

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/queue.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>
#include <uct/base/uct_iface.h>

#define UCT_UTOFU_TAGS 256u     /* What one byte of EDATA can tell apart; 0 and 255 are no operations. */
#define UCT_UTOFU_MAX_IOV 64u   /* Pieces of a zero-copy operation. */
#define UCT_UTOFU_PIGGYBACK 32u /* Bytes that a descriptor carries (guide, table 6.4). */
#define UCT_UTOFU_DESC_BYTES 64u
#define UCT_UTOFU_MAX_ZCOPY ((1ul << 24) - 4096) /* What one descriptor moves, in whole pages. */
#define UCT_UTOFU_LEAST_STRIPE 16384ul           /* Bytes of one, of several TNIs. */
#define UCT_UTOFU_CHUNK_RINGS 8u                 /* Rings of one registered piece of memory. */
#define UCT_UTOFU_NO_INDEX UINT32_MAX
/* What goes into the control memory of a peer wakes it, but nobody here waits for it. */
#define UCT_UTOFU_CONTROL_FLAGS (UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER)

typedef struct uct_utofu_iface uct_utofu_iface_t;
typedef struct uct_utofu_ep uct_utofu_ep_t;
typedef struct uct_utofu_peer uct_utofu_peer_t;
typedef struct uct_utofu_op uct_utofu_op_t;

typedef struct uct_utofu_iface_config {
  uct_iface_config_t super;
  size_t slot_bytes;
  unsigned slots;
  unsigned max_peers;
  unsigned buffers;
  int strong_order;
  double bandwidth;
  double latency;
} uct_utofu_iface_config_t;

typedef enum {
  UCT_UTOFU_TX_NONE,
  UCT_UTOFU_TX_RINGING, /* The doorbell is rung, or will be. */
  UCT_UTOFU_TX_READY,
  UCT_UTOFU_TX_REFUSED
} uct_utofu_tx_state_t;

/* What is to be put into the control memory of a peer when there is room, or is to be fetched from it. */
enum {
  UCT_UTOFU_OWES_RING = 1,
  UCT_UTOFU_OWES_ANSWER = 2,
  UCT_UTOFU_OWES_COUNT = 4,
  UCT_UTOFU_OWES_EARLY = 8,
  UCT_UTOFU_OWES_FETCH = 16
};

/* How far a first message has been fetched: what is to be done next. */
typedef enum {
  UCT_UTOFU_FETCH_LOOK, /* Into the outbox. */
  UCT_UTOFU_FETCH_TAKE, /* What is there. */
  UCT_UTOFU_FETCH_GET,
  UCT_UTOFU_FETCH_CHECK, /* That it was still there: its sender may have taken us for dead, and use the buffer. */
  UCT_UTOFU_FETCH_TELL
} uct_utofu_fetch_step_t;

struct uct_utofu_peer {
  utofu_vcq_id_t id;     /* As notices name it. */
  utofu_vcq_id_t route;  /* With the path from here. */
  utofu_stadd_t control; /* Its control memory. */
  uint64_t incarnation;  /* 0: not known, no endpoint was made. */
  uint32_t index;        /* Of our record for it, and of its doorbell that we ring. */
  uint32_t doorbells;    /* How many it has; 0: not known. */
  uint32_t its_index;    /* Of its record for us; known once it has rung. */
  uint64_t its_asks;     /* What it asked for when it got its ring; 0: it has not rung. */
  uint8_t epoch;         /* 0 or 255 in turns: EDATA of what is sent without a tag, since all was forgotten last. */
  ucs_status_t failure;  /* UCS_OK, or why it cannot be reached any longer. */
  uct_utofu_tx_state_t tx;
  utofu_stadd_t tx_ring;
  uint16_t tx_slots, tx_sent, tx_handled;
  uint8_t owes;          /* UCT_UTOFU_OWES_* */
  uct_utofu_op_t* early; /* A message that was sent before there was a ring, and lies in a buffer; it goes first. */
  ucs_time_t asked;      /* iface->next_confirm when it was last asked whether it is there. */
  uct_utofu_fetch_step_t fetch_step;
  uint8_t fetching;      /* The step is under way. */
  uint8_t fetch_again;   /* Another ring has come meanwhile. */
  ucs_time_t fetch_at;   /* The first step is not taken before. */
  uint64_t fetch_outbox; /* What was found. */
  char* fetch_buffer;    /* With the message, until its sender is told. */
  char* rx_ring;         /* NULL: it has not rung. */
  utofu_stadd_t rx_stadd;
  uint16_t rx_handled, rx_told; /* Counts of messages; what the peer knows of them. */
  uint8_t is_owing;
  ucs_list_link_t owing; /* In iface->owing if is_owing, which it is while `owes` is not 0. */
  ucs_list_link_t eps;
};

typedef struct uct_utofu_chunk {
  char* memory;
  utofu_stadd_t stadd;
  uct_utofu_peer_t* owners[UCT_UTOFU_CHUNK_RINGS];
} uct_utofu_chunk_t;

/* How an operation ends. */
typedef enum {
  UCT_UTOFU_OP_PLAIN,   /* Its completion, if it has one, is called. */
  UCT_UTOFU_OP_UNPACK,  /* Before that, the buffer is unpacked. */
  UCT_UTOFU_OP_FETCH32, /* Before that, the notice has the result. */
  UCT_UTOFU_OP_FETCH64,
  UCT_UTOFU_OP_EARLY,   /* Its completion is called; a message that goes when the peer has made a ring. */
  UCT_UTOFU_OP_CONFIRM, /* Nobody waits but flushes; it shows that the peer is there. */
  UCT_UTOFU_OP_CHECK,   /* The same; the notice has who it is. */
  UCT_UTOFU_OP_FETCH,   /* A step of a fetch. */
  UCT_UTOFU_OP_BELL     /* Its notice has what is asked by who has rung; `length` is the index of the record. */
} uct_utofu_op_kind_t;

/* What strong order can keep in order, for fences. */
enum { UCT_UTOFU_PUT = 1, UCT_UTOFU_ATOMIC = 2, UCT_UTOFU_OTHER = 4, UCT_UTOFU_MESSAGE = 8 };

/* Before a fence there were operations, whose notices tell their end, or messages, which an operation has to confirm.
 */
enum { UCT_UTOFU_FENCED_OPS = 1, UCT_UTOFU_FENCED_MESSAGES = 2 };

struct uct_utofu_op {
  uct_utofu_op_t* next; /* In iface->free_ops. */
  uct_utofu_ep_t* ep;   /* NULL: it has been destroyed, or the operation is of no endpoint. */
  uct_utofu_peer_t* peer;
  uct_completion_t* comp;
  char* buffer;     /* Of iface->buffers, or NULL. */
  uint64_t number;  /* Of the operations of the endpoint. */
  uint16_t notices; /* That are to come. */
  uint8_t tag;      /* 0: its notice is of the TCQ. */
  uint8_t kind;     /* uct_utofu_op_kind_t */
  uint8_t what;     /* UCT_UTOFU_PUT, ... */
  uint8_t epoch;    /* Of the peer. */
  uint8_t striped;
  ucs_status_t status;
  utofu_vcq_id_t to; /* The remote VCQ, but for others. */
  void* result;      /* Of a fetch. */
  uct_unpack_callback_t unpack;
  void* unpack_arg;
  size_t length;
};

KHASH_MAP_INIT_INT64(uct_utofu_peers, uct_utofu_peer_t*)

/* A notice of the MRQ that was read before it could be handled. */
typedef struct uct_utofu_kept {
  struct utofu_mrq_notice notice;
  int rc;
} uct_utofu_kept_t;

/* A doorbell that has rung. */
typedef struct uct_utofu_bell {
  utofu_vcq_id_t vcq_id; /* Of who rang. */
  uint32_t index;        /* Of its record for us. */
} uct_utofu_bell_t;

/* Who may touch the VCQ of an interface; see wakeup.c. */
enum {
  UCT_UTOFU_AWAKE,    /* Its user. */
  UCT_UTOFU_ARMED,    /* The thread that looks, or whoever takes it back. */
  UCT_UTOFU_LOOKED_AT /* The thread, now. */
};

struct uct_utofu_iface {
  uct_base_iface_t super;
  uct_utofu_md_t* md;
  unsigned vcq_slot;   /* In md->vcqs. */
  utofu_vcq_hdl_t vcq; /* Of rail 0, by which all goes but stripes. */
  utofu_vcq_id_t vcq_id;
  utofu_vcq_hdl_t rails[UCT_UTOFU_MAX_RAILS];
  unsigned striped; /* Operations under way that are spread over all rails. */
  uint64_t incarnation;
  struct {
    size_t slot_bytes;
    size_t payload; /* Of a slot, behind the header. */
    unsigned slots;
    unsigned max_peers;
    unsigned buffers;
    unsigned long put_order; /* UTOFU_ONESIDED_FLAG_STRONG_ORDER or 0. */
    double bandwidth;
    double latency;
  } config;

  /* Records, behind them one byte per doorbell, and at last the incarnation. */
  char* control;
  size_t control_bytes;
  utofu_stadd_t control_stadd;

  khash_t(uct_utofu_peers) peers; /* By VCQ id. */
  uct_utofu_peer_t** peer_table;  /* By index; NULL: it has been forgotten. */
  unsigned peer_count;            /* Indices that were given. */
  unsigned next_asked;            /* Index behind that of the peer without endpoints that was asked last. */
  int parted;                     /* Some peer may be one that can be forgotten. */
  uct_utofu_chunk_t* chunks;
  unsigned chunk_count;
  unsigned ring_count;     /* In use, of all chunks. */
  unsigned next_place;     /* Where a free one is looked for first. */
  uct_utofu_bell_t* bells; /* What they ask for is still to be read. */
  unsigned bell_count, bell_room;
  uint16_t rings; /* How often this interface has rung. */

  uct_utofu_op_t* ops;
  uct_utofu_op_t* free_ops;
  uct_utofu_op_t* tagged[UCT_UTOFU_TAGS]; /* NULL: the tag is free. */
  uint8_t free_tags[UCT_UTOFU_TAGS];
  unsigned free_tag_count;
  char* buffers; /* Registered memory for data that are copied; one of slot_bytes each. */
  utofu_stadd_t buffers_stadd;
  char** free_buffers;
  unsigned free_buffer_count;
  uct_utofu_kept_t* kept; /* From kept_first on, in their order. */
  unsigned kept_first, kept_count, kept_room;
  struct {
    int is_there;
    int rc;
    void* cbdata;
  } kept_tcq;
  struct {
    int fd;             /* -1: nobody has asked for one. */
    int state;          /* Atomic. */
    ucs_time_t since;   /* It has been armed. */
    ucs_time_t wake_at; /* Whatever has come; 0: never. */
    ucs_list_link_t watched;
  } wakeup;
  unsigned tcq_open; /* Of the operations under way, those whose notices are of the TCQ. */
  ucs_time_t next_confirm, next_rare, rare_time;
  uct_iface_ops_t unlocked; /* For a worker of several threads: what is called with the lock. */
  pthread_mutex_t lock;
  int talks;           /* Something was posted, or a peer has rung. */
  unsigned calls;      /* Of its progress. */
  int busy;            /* The TOQ was full, and no notice of the TCQ has been read since. */
  unsigned open_count; /* Operations whose notices are missing. */
  unsigned left_count; /* Of these, those of no endpoint, for which nobody waits. */
  int fenced;          /* Later operations wait until those that are open are complete. */

  ucs_list_link_t owing;   /* Peers that owe something. */
  ucs_list_link_t waiting; /* Endpoints with pending requests. */
  ucs_list_link_t eps;
};

typedef struct uct_utofu_flush {
  ucs_queue_elem_t elem;
  uct_completion_t* comp;
  uint64_t below; /* Waits for operations with lower numbers. */
  unsigned left;
  int cancels;
} uct_utofu_flush_t;

struct uct_utofu_ep {
  uct_base_ep_t super;
  uct_utofu_peer_t* peer;
  ucs_list_link_t of_peer, of_iface;
  ucs_queue_head_t pending;
  ucs_list_link_t waiting; /* In iface->waiting if is_waiting. */
  uint8_t is_waiting;      /* It has pending requests, or is looked at. */
  ucs_queue_head_t flushes;
  uint64_t next_number;
  unsigned fenced;     /* UCT_UTOFU_FENCED_*: later operations wait until earlier ones are complete. */
  unsigned open_count; /* Operations whose notices are missing. */
  uint8_t open_what;   /* What they are, and, unless there are others, to which VCQ they all go. */
  utofu_vcq_id_t open_to;
  uint8_t unconfirmed;  /* A message was sent that no confirmed operation follows. */
  uint8_t dispatching;  /* A pending request is being called. */
  uint8_t wants_slot;   /* The last active message found none. */
  uint8_t untold;       /* Its user has not been told of its failure yet. */
  ucs_status_t failure; /* UCS_OK, or why it is of no use any longer. */
};

UCS_CLASS_DECLARE_NEW_FUNC(uct_utofu_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_utofu_ep_t, uct_ep_t);

static inline uct_utofu_iface_t* uct_utofu_iface_of(uct_ep_h ep) {
  return ucs_derived_of(ep->iface, uct_utofu_iface_t);
}

/* ---- iface.c ---- */

unsigned uct_utofu_iface_progress(uct_iface_h tl_iface);
extern ucs_config_field_t uct_utofu_iface_config_table[];
ucs_status_t uct_utofu_query_devices(uct_md_h md, uct_tl_device_resource_t** devices_p, unsigned* count_p);
UCS_CLASS_DECLARE_NEW_FUNC(uct_utofu_iface_t, uct_iface_t, uct_md_h, uct_worker_h, const uct_iface_params_t*,
                           const uct_iface_config_t*);

/* ---- multi.c ---- */

/* Makes a new interface one that several threads may use at the same time. */
void uct_utofu_multi_init(uct_utofu_iface_t* iface);

/* ---- op.c ---- */

ucs_status_t uct_utofu_ops_init(uct_utofu_iface_t* iface);
void uct_utofu_ops_cleanup(uct_utofu_iface_t* iface);

/* Takes an operation for something that is going to be posted.
 * @param tagged    its notices come through the MRQ; otherwise one comes through the TCQ
 * @param buffered  with a buffer
 * @return NULL: none is left */
uct_utofu_op_t* uct_utofu_op_take(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, int tagged, int buffered);

/* The same for something that no endpoint has asked for. */
uct_utofu_op_t* uct_utofu_op_take_of(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, int tagged, int buffered);

/* Gives back an operation that was not posted. */
void uct_utofu_op_drop(uct_utofu_iface_t* iface, uct_utofu_op_t* op);

/* Judges the return code of a post. Counts the operation if it was posted; drops it otherwise.
 * @return UCS_OK, UCS_ERR_NO_RESOURCE, or what is wrong */
ucs_status_t uct_utofu_op_posted(uct_utofu_iface_t* iface, uct_utofu_op_t* op, int rc);

/* A notice of an operation has come. `value` is what an atomic found. */
void uct_utofu_op_notice(uct_utofu_iface_t* iface, uct_utofu_op_t* op, ucs_status_t status, uint64_t value);

/* Takes notices of the TCQ. @return how many */
unsigned uct_utofu_poll_tcq(uct_utofu_iface_t* iface);

/* Reads one notice of the TCQ, for a later look. @return whether one is there */
int uct_utofu_keep_one_tcq(uct_utofu_iface_t* iface);

/* Ends an operation whose notice has been read, without a word to anybody. */
void uct_utofu_op_end_quietly(uct_utofu_iface_t* iface, uct_utofu_op_t* op);

/* Gives a buffer back. */
static inline void uct_utofu_give_buffer(uct_utofu_iface_t* iface, char* buffer) {
  if (buffer != NULL) {
    iface->free_buffers[iface->free_buffer_count++] = buffer;
  }
}

static inline utofu_stadd_t uct_utofu_buffer_stadd(const uct_utofu_iface_t* iface, const char* buffer) {
  return iface->buffers_stadd + (utofu_stadd_t)(buffer - iface->buffers);
}

/* ---- notice.c ---- */

/* Takes notices of the MRQ, those that were kept first. @return how many */
unsigned uct_utofu_poll_mrq(uct_utofu_iface_t* iface);

/* Reads one notice of the MRQ, for a later look. @return whether one is there */
int uct_utofu_keep_one(uct_utofu_iface_t* iface);

/* Waits for the only notice of an operation, and keeps all others. Calls nothing of the user.
 * @return what the notice says, and the operation is still to be ended; or UCS_ERR_TIMED_OUT or UCS_ERR_NO_MEMORY: it
 *         has not come, and the operation will end by itself */
ucs_status_t uct_utofu_op_await(uct_utofu_iface_t* iface, uct_utofu_op_t* op, int* came_p);

/* ---- wakeup.c ---- */

ucs_status_t uct_utofu_event_fd_get(uct_iface_h tl_iface, int* fd_p);
ucs_status_t uct_utofu_event_arm(uct_iface_h tl_iface, unsigned events);
void uct_utofu_wakeup_cleanup(uct_utofu_iface_t* iface);

/* @return whether it was armed */
int uct_utofu_take_back(uct_utofu_iface_t* iface);

/* Takes an interface back to post something; its user is woken, if it was armed. */
void uct_utofu_own_to_post(uct_utofu_iface_t* iface);

/* Behind a progress of an interface that was armed: it is again, or its user is woken. */
void uct_utofu_after_progress(uct_utofu_iface_t* iface, unsigned count);

static inline int uct_utofu_is_awake(const uct_utofu_iface_t* iface) {
  return ucs_likely(__atomic_load_n(&iface->wakeup.state, __ATOMIC_ACQUIRE) == UCT_UTOFU_AWAKE);
}

/* Makes an interface its user's. @return whether it was armed */
static inline int uct_utofu_own(uct_utofu_iface_t* iface) {
  return uct_utofu_is_awake(iface) ? 0 : uct_utofu_take_back(iface);
}

/* ---- peer.c ---- */

ucs_status_t uct_utofu_peers_init(uct_utofu_iface_t* iface);
void uct_utofu_peers_cleanup(uct_utofu_iface_t* iface);

/* Beyond config.max_peers a peer has no record, and its index is UCT_UTOFU_NO_INDEX: it can only be refused.
 * @return NULL: no memory, or no such VCQ */
uct_utofu_peer_t* uct_utofu_peer_get(uct_utofu_iface_t* iface, utofu_vcq_id_t id);

/* Forgets peers that nothing here refers to, and that will write nothing here any more. Not to be called from a
 * callback of the user, which others may have called for a peer. */
void uct_utofu_forget_peers(uct_utofu_iface_t* iface);

/* Makes a peer the interface that an address names, which may be a later one with the VCQ id of an earlier one. */
void uct_utofu_peer_meet(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, const uct_utofu_iface_addr_t* addr);

/* Notes a debt, which is paid at once if there is room. */
void uct_utofu_peer_owe(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, unsigned what);
/* @return to how many peers nothing is owed any more */
unsigned uct_utofu_pay_debts(uct_utofu_iface_t* iface);

/* Whether a notice is of something that a peer has done here, not of an operation of ours. */
static inline int uct_utofu_is_of_peer(const struct utofu_mrq_notice* notice, int rc) {
  return rc == UTOFU_SUCCESS &&
         (notice->notice_type == UTOFU_MRQ_TYPE_RMT_PUT || notice->notice_type == UTOFU_MRQ_TYPE_RMT_ARMW);
}

/* A put of a peer has arrived, or an atomic. */
void uct_utofu_put_arrived(uct_utofu_iface_t* iface, const struct utofu_mrq_notice* notice);

/* Asks a peer whether it is there, for no endpoint. @return 0: there is no room for that */
int uct_utofu_ask(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

/* Something that was sent to a peer came back with an error. The endpoints that it has now hear of it once. */
void uct_utofu_peer_failed(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, ucs_status_t status);

/* One endpoint is of no use any longer, whose user is to be told; its peer is as good as before. */
void uct_utofu_ep_failed(uct_utofu_ep_t* ep, ucs_status_t status);
void uct_utofu_tell_failures(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

/* The record of ours that a peer has the index of. */
static inline uct_utofu_record_t* uct_utofu_record_of(const uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer) {
  return (uct_utofu_record_t*)iface->control + peer->index;
}

/* Where the peer has a field of a record, and of that for us. */
static inline utofu_stadd_t uct_utofu_any_record_at(const uct_utofu_peer_t* peer, size_t index, size_t field) {
  return peer->control + index * sizeof(uct_utofu_record_t) + field;
}
static inline utofu_stadd_t uct_utofu_record_at(const uct_utofu_peer_t* peer, size_t field) {
  return uct_utofu_any_record_at(peer, peer->its_index, field);
}

/* Whether an endpoint wants to know if its peer is there: it has sent something that nothing confirms, or waits for the
 * peer to take a message, or to make a ring, which a dead one never does. Who cancels waits for a peer that fetches. */
static inline int uct_utofu_ep_wonders(const uct_utofu_ep_t* ep) {
  return ((ep->unconfirmed || ep->wants_slot) && ep->failure == UCS_OK) ||
         (ep->peer->early != NULL && ep->peer->failure == UCS_OK);
}

/* Puts into the record `alive` of the peer, behind all messages, with a local notice. @return as uct_utofu_op_posted */
ucs_status_t uct_utofu_peer_confirm(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep);

/* Asks who the peer is: a later interface with its VCQ id confirms, too. @return as uct_utofu_op_posted */
ucs_status_t uct_utofu_peer_check(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep);

static inline unsigned uct_utofu_peer_free_slots(const uct_utofu_peer_t* peer) {
  return peer->tx_slots - (uint16_t)(peer->tx_sent - peer->tx_handled);
}

/* Takes a count of messages that the peer has handled, unless it is an older one: a record has the newest, also if
 * it is read before messages that were sent earlier. */
static inline void uct_utofu_peer_take_handled(uct_utofu_peer_t* peer, uint16_t handled) {
  const uint16_t more = handled - peer->tx_handled, most = peer->tx_sent - peer->tx_handled;
  if (more <= most && peer->tx == UCT_UTOFU_TX_READY) {
    peer->tx_handled = handled;
  }
}

/* Whether there is room for a message: a slot, or, for the first one, a buffer. Half of the buffers are for others:
 * nobody waits for them because a peer does not answer. */
static inline int uct_utofu_peer_has_room(const uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer) {
  if (ucs_likely(peer->tx == UCT_UTOFU_TX_READY)) {
    return peer->early == NULL && uct_utofu_peer_free_slots(peer) > 0;
  }
  return peer->tx == UCT_UTOFU_TX_NONE && iface->free_buffer_count > ucs_div_round_up(iface->config.buffers, 2);
}

/* ---- bell.c ---- */

static inline size_t uct_utofu_ring_bytes(const uct_utofu_iface_t* iface) {
  return iface->config.slots * iface->config.slot_bytes;
}

/* Gives back the slots that were made for a peer. */
void uct_utofu_give_ring(uct_utofu_iface_t* iface, const char* ring);

/* Rings at the peer. @return of uTofu */
int uct_utofu_ring(uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer);

/* A doorbell has rung. */
void uct_utofu_bell_rung(uct_utofu_iface_t* iface, uct_utofu_bell_t bell);

/* Reads what is asked for, for as many bells as there is room. @return for how many */
unsigned uct_utofu_ask_ringers(uct_utofu_iface_t* iface);

/* It was read. */
void uct_utofu_asked(uct_utofu_iface_t* iface, uct_utofu_op_t* op, uint64_t asks);

/* Puts the answer into the record of who has rung. @return of uTofu */
int uct_utofu_answer(uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer);

/* The peer has answered, if it was asked by this very interface. */
void uct_utofu_answered(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, const uct_utofu_record_t* record);

/* ---- ep.c ---- */

/* Whether an operation may be posted, or what stands in its way.
 * @param what  UCT_UTOFU_PUT or UCT_UTOFU_ATOMIC with strong order, UCT_UTOFU_MESSAGE, or UCT_UTOFU_OTHER
 * @param to    the remote VCQ, of puts and atomics */
ucs_status_t uct_utofu_ep_may_post(uct_utofu_iface_t* iface, uct_utofu_ep_t* ep, unsigned what, utofu_vcq_id_t to);
void uct_utofu_ep_dispatch(uct_utofu_iface_t* iface);

/* Whether a pending request would find something now. */
int uct_utofu_ep_could_dispatch(uct_utofu_iface_t* iface);
void uct_utofu_ep_op_ended(uct_utofu_ep_t* ep, uint64_t number, ucs_status_t status);

ucs_status_t uct_utofu_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t* req, unsigned flags);
void uct_utofu_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb, void* arg);
ucs_status_t uct_utofu_ep_flush(uct_ep_h tl_ep, unsigned flags, uct_completion_t* comp);
ucs_status_t uct_utofu_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_utofu_ep_check(uct_ep_h tl_ep, unsigned flags, uct_completion_t* comp);

/* ---- am.c ---- */

/* Sends what has waited for a ring. @return UTOFU_ERR_BUSY: later */
int uct_utofu_send_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

/* Ends what waits for a ring of a peer that failed, or of which nothing is known any more. */
void uct_utofu_drop_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, ucs_status_t status);

/* Ends it, unless the peer is fetching it. */
void uct_utofu_cancel_early(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

/* The peer has written our outbox. */
void uct_utofu_outbox_written(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

void uct_utofu_am_arrived(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, char* slot);

/* Hands over a message that was fetched. */
void uct_utofu_am_deliver(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, uct_utofu_am_header_t* header);

ucs_status_t uct_utofu_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header, const void* payload, unsigned length);
ucs_status_t uct_utofu_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t* iov, size_t iovcnt);
ssize_t uct_utofu_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned flags);
ucs_status_t uct_utofu_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void* header, unsigned header_length,
                                   const uct_iov_t* iov, size_t iovcnt, unsigned flags, uct_completion_t* comp);

/* ---- fetch.c ---- */

/* A peer has rung. */
void uct_utofu_fetch_later(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

/* Whether all that is owed to a peer is to look into its outbox, which has time. */
static inline int uct_utofu_is_fetched_later(const uct_utofu_peer_t* peer) {
  return peer->owes == UCT_UTOFU_OWES_FETCH && peer->fetch_step == UCT_UTOFU_FETCH_LOOK;
}

/* Takes the next step, and pays the debt, unless it is too early for it. @return UTOFU_ERR_BUSY: later */
int uct_utofu_fetch(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer);

/* A step has ended. */
void uct_utofu_fetched(uct_utofu_iface_t* iface, uct_utofu_op_t* op, uint64_t value);

/* ---- rma.c ---- */

ucs_status_t uct_utofu_ep_put_short(uct_ep_h tl_ep, const void* buffer, unsigned length, uint64_t remote_addr,
                                    uct_rkey_t rkey);
ssize_t uct_utofu_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack, void* arg, uint64_t remote_addr,
                               uct_rkey_t rkey);
ucs_status_t uct_utofu_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t* iov, size_t iovcnt, uint64_t remote_addr,
                                    uct_rkey_t rkey, uct_completion_t* comp);
/* Waits until it has the data, ten seconds at most. */
ucs_status_t uct_utofu_ep_get_short(uct_ep_h tl_ep, void* buffer, unsigned length, uint64_t remote_addr,
                                    uct_rkey_t rkey);
ucs_status_t uct_utofu_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack, void* arg, size_t length,
                                    uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);
ucs_status_t uct_utofu_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t* iov, size_t iovcnt, uint64_t remote_addr,
                                    uct_rkey_t rkey, uct_completion_t* comp);

/* ---- atomic.c ---- */

ucs_status_t uct_utofu_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode, uint32_t value, uint64_t remote_addr,
                                        uct_rkey_t rkey);
ucs_status_t uct_utofu_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode, uint64_t value, uint64_t remote_addr,
                                        uct_rkey_t rkey);
ucs_status_t uct_utofu_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode, uint32_t value, uint32_t* result,
                                         uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);
ucs_status_t uct_utofu_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode, uint64_t value, uint64_t* result,
                                         uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);
ucs_status_t uct_utofu_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
                                         uct_rkey_t rkey, uint32_t* result, uct_completion_t* comp);
ucs_status_t uct_utofu_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
                                         uct_rkey_t rkey, uint64_t* result, uct_completion_t* comp);

#endif
