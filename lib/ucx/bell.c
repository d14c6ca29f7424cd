/* How interfaces meet (see iface.h): doorbells, what is asked for by them, and rings of slots. */
#include "iface.h"

#include <ucs/sys/sys.h>

static ucs_status_t add_chunk(uct_utofu_iface_t* iface) {
  const size_t bytes = UCT_UTOFU_CHUNK_RINGS * uct_utofu_ring_bytes(iface);
  uct_utofu_chunk_t* const chunks =
      ucs_realloc(iface->chunks, (iface->chunk_count + 1) * sizeof *chunks, "utofu ring table");
  if (chunks == NULL) {
    return UCS_ERR_NO_MEMORY;
  }
  iface->chunks = chunks;
  uct_utofu_chunk_t* const chunk = &chunks[iface->chunk_count];
  memset(chunk, 0, sizeof *chunk);
  if (ucs_posix_memalign((void**)&chunk->memory, ucs_get_page_size(), bytes, "utofu rings") != 0) {
    return UCS_ERR_NO_MEMORY;
  }
  if (utofu_reg_mem(iface->vcq, chunk->memory, bytes, 0, &chunk->stadd) != UTOFU_SUCCESS) {
    ucs_free(chunk->memory);
    return UCS_ERR_NO_MEMORY;
  }
  iface->chunk_count++;
  return UCS_OK;
}

/* Places that were given back last come last: what a process that is gone has put there may still arrive.
 * @return a chunk with room for a ring, at *place_p; NULL: no memory */
static uct_utofu_chunk_t* find_place(uct_utofu_iface_t* iface, unsigned* place_p) {
  if (iface->ring_count == iface->chunk_count * UCT_UTOFU_CHUNK_RINGS && add_chunk(iface) != UCS_OK) {
    return NULL;
  }
  for (;;) {
    const unsigned next = iface->next_place++ % (iface->chunk_count * UCT_UTOFU_CHUNK_RINGS);
    uct_utofu_chunk_t* const chunk = &iface->chunks[next / UCT_UTOFU_CHUNK_RINGS];
    *place_p = next % UCT_UTOFU_CHUNK_RINGS;
    if (chunk->owners[*place_p] == NULL) {
      return chunk;
    }
  }
}

static ucs_status_t make_ring(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  unsigned place;
  uct_utofu_chunk_t* const chunk = find_place(iface, &place);
  if (chunk == NULL) {
    return UCS_ERR_NO_MEMORY;
  }
  chunk->owners[place] = peer;
  peer->rx_ring = chunk->memory + place * uct_utofu_ring_bytes(iface);
  peer->rx_stadd = chunk->stadd + place * uct_utofu_ring_bytes(iface);
  iface->ring_count++;
  return UCS_OK;
}

void uct_utofu_give_ring(uct_utofu_iface_t* iface, const char* ring) {
  const size_t ring_bytes = uct_utofu_ring_bytes(iface);
  for (unsigned i = 0; i < iface->chunk_count; i++) {
    const size_t offset = (size_t)(ring - iface->chunks[i].memory);
    if (offset < UCT_UTOFU_CHUNK_RINGS * ring_bytes) {
      iface->chunks[i].owners[offset / ring_bytes] = NULL;
      iface->ring_count--;
    }
  }
}

int uct_utofu_ring(uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer) {
  const utofu_stadd_t doorbell = peer->control + peer->doorbells * sizeof(uct_utofu_record_t) + peer->index;
  iface->talks = 1;
  /* The peer reads it behind the ring. */
  __atomic_store_n(&uct_utofu_record_of(iface, peer)->asks,
                   uct_utofu_asks_of(peer->incarnation, iface->incarnation, ++iface->rings), __ATOMIC_RELEASE);
  return utofu_put_piggyback8(iface->vcq, peer->route, 0, doorbell, 1, peer->epoch, UCT_UTOFU_CONTROL_FLAGS, NULL);
}

/* @return 0: there is no room for that */
static int ask_ringer(uct_utofu_iface_t* iface, const uct_utofu_bell_t* bell) {
  uct_utofu_peer_t* const peer = uct_utofu_peer_get(iface, bell->vcq_id);
  if (peer == NULL) {
    return 1;
  }
  uct_utofu_op_t* const op = uct_utofu_op_take_of(iface, peer, 1, 0);
  if (op == NULL) {
    return 0;
  }
  op->kind = UCT_UTOFU_OP_BELL;
  op->length = bell->index;
  const utofu_stadd_t at = uct_utofu_any_record_at(peer, bell->index, offsetof(uct_utofu_record_t, asks));
  return uct_utofu_op_posted(iface, op,
                             utofu_armw8(iface->vcq, peer->route, UTOFU_ARMW_OP_OR, 0, at, op->tag,
                                         UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL)) != UCS_ERR_NO_RESOURCE;
}

unsigned uct_utofu_ask_ringers(uct_utofu_iface_t* iface) {
  unsigned count = 0;
  while (count < iface->bell_count && ask_ringer(iface, &iface->bells[count])) {
    count++;
  }
  iface->bell_count -= count;
  memmove(iface->bells, iface->bells + count, iface->bell_count * sizeof *iface->bells);
  return count;
}

void uct_utofu_bell_rung(uct_utofu_iface_t* iface, uct_utofu_bell_t bell) {
  iface->talks = 1;
  if (iface->bell_count == iface->bell_room) {
    const unsigned room = ucs_max(2 * iface->bell_room, 16u);
    uct_utofu_bell_t* const bells = ucs_realloc(iface->bells, room * sizeof *bells, "utofu bells");
    if (bells == NULL) {
      ucs_error("no memory for messages of one more peer");
      return;
    }
    iface->bells = bells;
    iface->bell_room = room;
  }
  iface->bells[iface->bell_count++] = bell;
  uct_utofu_ask_ringers(iface);
}

/* Something else than before is that of a later interface, or of one that begins anew: what it had not sent before will
 * never come. What it has sent may come after this, so it gets other slots. */
static void give_slots(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer) {
  const char* const earlier = peer->rx_ring;
  if (peer->index != UCT_UTOFU_NO_INDEX && make_ring(iface, peer) != UCS_OK) {
    ucs_error("no memory for messages of one more peer");
  } else if (earlier != NULL) {
    uct_utofu_give_ring(iface, earlier);
  }
  peer->rx_handled = peer->rx_told = 0;
}

void uct_utofu_asked(uct_utofu_iface_t* iface, uct_utofu_op_t* op, uint64_t asks) {
  uct_utofu_peer_t* const peer = op->peer;
  const int is_there = op->status == UCS_OK;
  const uint32_t its_index = (uint32_t)op->length;
  uct_utofu_op_end_quietly(iface, op);
  if (!is_there || !uct_utofu_is_asked(asks, iface->incarnation) || asks == peer->its_asks) {
    iface->parted = 1; /* Who has rung is gone, or has been answered by its successor's bell. */
    return;
  }
  peer->its_asks = asks;
  peer->its_index = its_index;
  give_slots(iface, peer);
  uct_utofu_peer_owe(iface, peer, UCT_UTOFU_OWES_ANSWER);
  if (peer->rx_ring != NULL) { /* Otherwise it is refused. */
    uct_utofu_fetch_later(iface, peer);
  }
}

int uct_utofu_answer(uct_utofu_iface_t* iface, const uct_utofu_peer_t* peer) {
  const unsigned slots = peer->rx_ring == NULL ? 0 : iface->config.slots;
  uct_utofu_record_t record = {
      .ring = peer->rx_stadd, .answer = uct_utofu_answer_of(iface->incarnation, slots), .asked = peer->its_asks};
  return utofu_put_piggyback(iface->vcq, peer->route, &record, uct_utofu_record_at(peer, 0),
                             offsetof(uct_utofu_record_t, handled), peer->epoch, UCT_UTOFU_CONTROL_FLAGS, NULL);
}

void uct_utofu_answered(uct_utofu_iface_t* iface, uct_utofu_peer_t* peer, const uct_utofu_record_t* record) {
  const uint16_t slots = (uint16_t)record->answer;
  if (record->asked != record->asks || record->answer != uct_utofu_answer_of(peer->incarnation, slots)) {
    return; /* To an earlier ring, or to who had this VCQ before. */
  }
  peer->tx_ring = record->ring;
  peer->tx_slots = slots;
  peer->tx = slots == 0 ? UCT_UTOFU_TX_REFUSED : UCT_UTOFU_TX_READY;
  if (peer->tx == UCT_UTOFU_TX_REFUSED) {
    uct_utofu_peer_failed(iface, peer, UCS_ERR_EXCEEDS_LIMIT); /* Not one that says: later. */
  } else if (peer->early != NULL) {
    uct_utofu_peer_owe(iface, peer, UCT_UTOFU_OWES_EARLY);
  }
}
