// A small library of messages, as people write them on uTofu: each process has one queue for all senders. ARMW ADD
// draws a ticket, a put fills the slot of the ticket, a piggyback with STRONG_ORDER sets its flag; the receiver looks
// at flags in memory only. Where the receiver is, senders find out by Get. Long messages are fetched by the receiver,
// which sets a word of the sender when it is done. On top: send and receive with sources, tags and messages that nobody
// waits for yet. First many send to one, then all to all, with tags out of order. Usage: message_queues [MESSAGES]
#include "utofu_check.h"

enum { kSlots = 8, kShort = 216, kAnySource = -1, kAnyTag = -1, kLongest = 100000 };

struct slot_header {
  uint32_t source;
  int32_t tag;
  uint64_t bytes;
  utofu_stadd_t long_stadd;  // Where a long message lies at the sender.
  utofu_stadd_t done_stadd;  // The sender's word that says that it was fetched.
};

// One message in the queue; a cache line of the machine.
struct slot {
  struct slot_header header;
  unsigned char data[kShort];
  uint64_t flag;  // The ticket + 1 when the slot is full.
};

// What a process registers once.
struct box {
  uint64_t next_ticket __attribute__((aligned(256)));  // Senders, by ARMW.
  uint64_t taken __attribute__((aligned(256)));        // The receiver: slots that are free again. Senders read it.
  struct slot slots[kSlots] __attribute__((aligned(256)));
  struct slot outgoing;     // Where a slot is made before it is put.
  uint64_t taken_of_other;  // What a Get of `taken` brought.
  uint64_t done;            // A receiver has fetched the long message.
};

struct message {
  struct slot_header header;
  unsigned char data[kShort];
  struct message* next;
};

static struct box box;
static utofu_vcq_hdl_t vcq;
static struct place* places;
static utofu_stadd_t own_stadd;
static struct message* waiting;  // Arrived, not received; the oldest first.
static uint64_t* known_taken;    // By rank: what was last seen of `taken`.

static utofu_stadd_t in_box(int rank, const void* field) {
  return places[rank].stadd + (utofu_stadd_t)((const char*)field - (const char*)&box);
}

// Moves what is in the own queue to the list, so that senders go on.
static void progress(void) {
  for (;;) {
    struct slot* const slot = &box.slots[box.taken % kSlots];
    struct message** end = &waiting;
    if (__atomic_load_n(&slot->flag, __ATOMIC_ACQUIRE) != box.taken + 1) {
      return;
    }
    struct message* const message = check_allocate(sizeof *message);
    message->header = slot->header;
    memcpy(message->data, slot->data, kShort);
    message->next = NULL;
    while (*end != NULL) {
      end = &(*end)->next;
    }
    *end = message;
    __atomic_store_n(&box.taken, box.taken + 1, __ATOMIC_RELEASE);
  }
}

// Waits for the notice of what was posted last, and serves the own queue meanwhile.
static struct utofu_mrq_notice finish(int type) {
  struct utofu_mrq_notice notice;
  int rc;
  while ((rc = utofu_poll_mrq(vcq, 0, &notice)) == UTOFU_ERR_NOT_FOUND) {
    progress();
  }
  CHECK(rc == UTOFU_SUCCESS && notice.notice_type == type, "the MRQ says %d, type %d, not %d", rc, notice.notice_type,
        type);
  return notice;
}

static uint64_t draw_ticket(int rank) {
  UTOFU_POST(vcq, utofu_armw8(vcq, places[rank].vcq_id, UTOFU_ARMW_OP_ADD, 1, in_box(rank, &box.next_ticket), 0,
                              UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  return finish(UTOFU_MRQ_TYPE_LCL_ARMW).rmt_value;
}

static void wait_for_slot(int rank, uint64_t ticket) {
  while (ticket >= known_taken[rank] + kSlots) {
    UTOFU_POST(vcq,
               utofu_get(vcq, places[rank].vcq_id, in_box(check_rank, &box.taken_of_other), in_box(rank, &box.taken),
                         sizeof(uint64_t), 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
    finish(UTOFU_MRQ_TYPE_LCL_GET);
    CHECK(box.taken_of_other >= known_taken[rank], "the queue of rank %d went back", rank);
    known_taken[rank] = box.taken_of_other;
    progress();
  }
}

// Puts `box.outgoing` into the slot of a ticket, and then the flag.
static void fill_slot(int rank, uint64_t ticket) {
  const struct slot* const slot = &box.slots[ticket % kSlots];
  UTOFU_POST(vcq, utofu_put(vcq, places[rank].vcq_id, in_box(check_rank, &box.outgoing), in_box(rank, slot),
                            offsetof(struct slot, flag), 0, 0, NULL));
  UTOFU_POST(vcq,
             utofu_put_piggyback8(vcq, places[rank].vcq_id, ticket + 1, in_box(rank, &slot->flag), sizeof slot->flag, 0,
                                  UTOFU_ONESIDED_FLAG_STRONG_ORDER | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  finish(UTOFU_MRQ_TYPE_LCL_PUT);
}

static void send_message(int rank, int tag, void* data, size_t bytes) {
  struct slot_header* const header = &box.outgoing.header;
  const uint64_t ticket = draw_ticket(rank);
  *header = (struct slot_header){(uint32_t)check_rank, tag, bytes, 0, 0};
  if (bytes > kShort) {
    UTOFU_OK(utofu_reg_mem(vcq, data, bytes, 0, &header->long_stadd));
    header->done_stadd = in_box(check_rank, &box.done);
    __atomic_store_n(&box.done, 0, __ATOMIC_RELEASE);
  } else if (bytes > 0) {
    memcpy(box.outgoing.data, data, bytes);
  }
  wait_for_slot(rank, ticket);
  fill_slot(rank, ticket);
  if (bytes > kShort) {
    while (__atomic_load_n(&box.done, __ATOMIC_ACQUIRE) == 0) {
      progress();
    }
    UTOFU_OK(utofu_dereg_mem(vcq, header->long_stadd, 0));
  }
}

// Takes a message that fits out of the list, or waits for one.
static struct message* find_message(int source, int tag) {
  for (;;) {
    for (struct message** at = &waiting; *at != NULL; at = &(*at)->next) {
      struct message* const found = *at;
      if ((source == kAnySource || (int)found->header.source == source) &&
          (tag == kAnyTag || found->header.tag == tag)) {
        *at = found->next;
        return found;
      }
    }
    progress();
  }
}

static void fetch_long(const struct slot_header* header, void* to) {
  const utofu_vcq_id_t sender = places[header->source].vcq_id;
  utofu_stadd_t stadd;
  UTOFU_OK(utofu_reg_mem(vcq, to, header->bytes, 0, &stadd));
  UTOFU_POST(vcq, utofu_get(vcq, sender, stadd, header->long_stadd, header->bytes, 0,
                            UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  finish(UTOFU_MRQ_TYPE_LCL_GET);
  UTOFU_OK(utofu_dereg_mem(vcq, stadd, 0));
  UTOFU_POST(vcq, utofu_put_piggyback8(vcq, sender, 1, header->done_stadd, sizeof(uint64_t), 0,
                                       UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  finish(UTOFU_MRQ_TYPE_LCL_PUT);
}

static struct slot_header receive_message(int source, int tag, void* to, size_t room) {
  struct message* const message = find_message(source, tag);
  const struct slot_header header = message->header;
  CHECK(header.bytes <= room, "a message of %lu bytes", (unsigned long)header.bytes);
  if (header.bytes > kShort) {
    fetch_long(&header, to);
  } else {
    memcpy(to, message->data, header.bytes);
  }
  free(message);
  return header;
}

// What message `tag` of a source to a destination is. Every seventh is long; many are empty or fill a slot.
static uint64_t seed_of(int source, int to, long tag) {
  return ((uint64_t)source * 64 + (uint64_t)to) << 32 | (uint64_t)tag;
}
static size_t bytes_of(int source, int to, long tag) {
  const uint64_t random = check_mix(~seed_of(source, to, tag));
  return tag % 7 == 3 ? kShort + 1 + random % (kLongest - kShort) : random % 4 == 0 ? kShort : random % kShort;
}

static void send_numbered(unsigned char* buffer, int to, long tag) {
  const size_t bytes = bytes_of(check_rank, to, tag);
  check_fill(buffer, bytes, seed_of(check_rank, to, tag));
  send_message(to, (int)tag, buffer, bytes);
}

static int receive_numbered(unsigned char* buffer, int source, long tag) {
  const struct slot_header header = receive_message(source, (int)tag, buffer, kLongest);
  const int from = (int)header.source;
  CHECK(from < check_size && header.bytes == bytes_of(from, check_rank, header.tag), "wrong length");
  CHECK_CONTENT(buffer, header.bytes, seed_of(from, check_rank, header.tag), "message %d of rank %d", header.tag, from);
  return header.tag << 8 | from;
}

static void many_to_one(unsigned char* buffer, long messages) {
  if (check_rank != 0) {
    for (long tag = 0; tag < messages; tag++) {
      send_numbered(buffer, 0, tag);
    }
    return;
  }
  long* next_tag = calloc((size_t)check_size, sizeof *next_tag);
  for (long i = 0; i < messages * (check_size - 1); i++) {
    const int got = receive_numbered(buffer, kAnySource, kAnyTag);
    CHECK(got >> 8 == next_tag[got & 255], "message %d of rank %d comes out of order", got >> 8, got & 255);
    next_tag[got & 255]++;
  }
  free(next_tag);
}

// In each round the processes are in pairs, and one of a pair sends first. Tags are received from behind within groups
// that hold no long message, because its sender waits.
static void all_to_all(unsigned char* buffer, long messages) {
  for (int round = 0; round < check_size; round++) {
    const int partner = (round - check_rank + check_size) % check_size;
    for (int part = 0; part < 2 && partner != check_rank; part++) {
      const int sends = (check_rank < partner) == (part == 0);
      for (long tag = 0; tag < messages; tag++) {
        if (sends) {
          send_numbered(buffer, partner, tag);
        } else if (tag % 7 == 2) {
          receive_numbered(buffer, partner, tag);
          receive_numbered(buffer, partner, tag - 1);
          receive_numbered(buffer, partner, tag - 2);
        } else if (tag % 7 > 2 || tag - tag % 7 + 2 >= messages) {
          receive_numbered(buffer, partner, tag);
        }
      }
    }
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "message_queues", 90);
  const long messages = check_argument(argc, argv, 1, 200);
  unsigned char* buffer = check_allocate(kLongest);
  if (check_size < 2) {
    return check_skip("messages want two ranks");
  }
  places = check_allocate((size_t)check_size * sizeof *places);
  known_taken = calloc((size_t)check_size, sizeof *known_taken);
  UTOFU_OK(utofu_create_vcq(first_tni(), 0, &vcq));
  share_place(vcq, &box, sizeof box, places);
  own_stadd = places[check_rank].stadd;
  for (int rank = 0; rank < check_size; rank++) {
    UTOFU_OK(utofu_set_vcq_id_path(&places[rank].vcq_id, NULL));
  }
  many_to_one(buffer, messages);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(waiting == NULL, "messages that nobody received");
  all_to_all(buffer, messages / 4);
  MPI_Barrier(MPI_COMM_WORLD);
  progress();
  CHECK(waiting == NULL, "messages that nobody received");
  CHECK(box.taken == box.next_ticket, "%lu tickets, %lu messages", (unsigned long)box.next_ticket,
        (unsigned long)box.taken);
  check_queues_empty(vcq);
  UTOFU_OK(utofu_dereg_mem(vcq, own_stadd, 0));
  UTOFU_OK(utofu_free_vcq(vcq));
  free(places);
  free(known_taken);
  free(buffer);
  return check_finish();
}
