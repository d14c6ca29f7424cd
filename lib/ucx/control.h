/* What interfaces write into the memory of each other, and words that say between whom it is: who is killed leaves its
 * VCQ to others, and what was for it comes to them. */
#ifndef UCT_UTOFU_CONTROL_H
#define UCT_UTOFU_CONTROL_H

#include <stdint.h>
#include <ucs/sys/compiler_def.h>
#include <utofu.h>

/* The address of an interface. */
typedef struct uct_utofu_iface_addr {
  utofu_vcq_id_t vcq_id;
  uint64_t incarnation; /* Of the interface: VCQ ids are used again. */
  uint32_t doorbells;
  uint32_t slot_bytes;
} UCS_S_PACKED uct_utofu_iface_addr_t;

/* In the control memory of an interface, one for each of its peers, which writes it, but for `asks`. */
typedef struct uct_utofu_record {
  utofu_stadd_t ring; /* At the peer, for us. */
  uint64_t answer;    /* See uct_utofu_answer_of. */
  uint64_t asked;     /* What the answer is to: `asks` of then. Written together with the two before it, as the last. */
  uint64_t handled;   /* Messages of ours; see uct_utofu_count_of. */
  uint64_t alive;     /* Whoever wants to know whether we are there writes here. */
  uint64_t asks;      /* See uct_utofu_asks_of; 0: nothing. Ours, for the peer to read. */
  uint64_t outbox;    /* Of the first message; by atomics of both. See uct_utofu_outbox, and the following. */
} uct_utofu_record_t;

/* What is with the message of an outbox. Of one that waits: the number of its buffer, behind the others. */
enum { UCT_UTOFU_OUTBOX_EMPTY, UCT_UTOFU_OUTBOX_TAKEN, UCT_UTOFU_OUTBOX_FETCHED, UCT_UTOFU_OUTBOX_FIRST };

/* What an outbox that is not empty says: for which interface its message is, and what is with it. */
static inline uint64_t uct_utofu_outbox(uint64_t incarnation, uint64_t what) {
  return (incarnation & ~0xffffffull) | what;
}
static inline uint64_t uct_utofu_outbox_what(uint64_t outbox) { return outbox & 0xffffff; }

/* What an interface asks for by a doorbell: a ring of whom, for whom, for which time. */
static inline uint64_t uct_utofu_asks_of(uint64_t of, uint64_t by, uint16_t time) {
  return (of & ~0xffffffffffull) | (by >> 40) << 16 | time;
}
static inline int uct_utofu_is_asked(uint64_t asks, uint64_t incarnation) { return (asks ^ incarnation) >> 40 == 0; }
static inline int uct_utofu_is_asker(uint64_t asks, uint64_t incarnation) {
  return (uint32_t)(asks >> 16 & 0xffffff) == incarnation >> 40;
}

/* What a peer answers: who it is, and how many slots it has for us, 0 if it has no room. */
static inline uint64_t uct_utofu_answer_of(uint64_t incarnation, uint16_t slots) {
  return (incarnation & ~0xffffull) | slots;
}

/* How many messages were handled, of those that came into the ring that was asked for. */
static inline uint64_t uct_utofu_count_of(uint64_t asks, uint16_t handled) { return asks << 24 | handled; }

/* Before the payload of a message, in its slot. */
typedef struct uct_utofu_am_header {
  uint8_t id;
  uint8_t zero;
  uint16_t handled; /* Messages of the receiver that the sender has handled. */
  uint32_t length;
} uct_utofu_am_header_t;

#endif
