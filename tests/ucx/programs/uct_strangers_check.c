// One process, the layer UCT, the transport utofu: what interfaces tell each other comes late, or to somebody else.
//   counts    of handled messages that are taken out of their order: nobody sends more than there are slots
//   late      errors of messages to an interface that is closed do not fail an endpoint to the next one
//   answered  nor does an answer that an earlier interface has not taken
//   closed    a sender hears of an interface that closes between its answer and the first message
//   replaced  a first message to an interface that closed before it took it, and whose VCQ the next one has: its sender
//             hears of it, and the next one takes nothing
//   restarted so does who asks, and who waits for room there
//   returned an interface to which nothing could be sent has a successor, which sends
//   inherited  an interface rings, and its process ends; what is answered is not for the next one that has its VCQ
//   silent   the first message arrives though its sender does nothing more; or it cancels it, and sends others
//   mistaken  a receiver is taken for dead while it fetches the first message: what is sent then it takes, too, and
//             nothing that is for others
//   refused   an interface that knows as many peers as it can says so to one more
//   parted    it forgets those that are gone, and those that it has sent no messages to
// Usage: uct_strangers_check CASE
#include "uct_entities.h"

// ---- counts ----

static uct_ep_h flooded;
static unsigned flood_count;

// Sends as many messages as there is room for.
static ucs_status_t flood(void* arg, void* data, size_t length, unsigned flags) {
  (void)arg, (void)data, (void)length, (void)flags;
  while (flood_count < 1000 && send_bcopy(flooded, flood_count, 64) == UCS_OK) {
    flood_count++;
  }
  return UCS_OK;
}

static void send_some(entity_t* to, uct_ep_h ep, unsigned count) {
  const uint64_t before = to->taken;
  for (unsigned i = 0; i < count; i++) {
    UCX_OK(send_bcopy(ep, i, 64));
  }
  while (to->taken < before + count) {
    uct_worker_progress(to->worker);
  }
}

// The sender finds in its queue: that eight were handled, by a record; a message of somebody else; a message that says
// the same; that sixteen were, by the record, which has said so from the first on. It sends whenever it is called.
static void run_counts(void) {
  enum { kSlots = 16 };
  entity_t *const from = make_entity(), *const to = make_entity(), *const other = make_entity();
  const uct_ep_h back = add_ep(to, from), third = add_ep(other, from);
  flooded = add_ep(from, to);
  UCX_OK(TRY(send_bcopy(third, 1, 64)));
  UCX_OK(TRY(send_bcopy(flooded, 1, 64)));
  flush_ep(flooded);
  UNTIL(to->taken == 1);
  UCX_OK(TRY(send_bcopy(back, 1, 64)));
  flush_ep(back);
  UNTIL(from->taken == 2);
  UCX_OK(uct_iface_set_am_handler(from->iface, 0, flood, NULL, 0));
  send_some(to, flooded, kSlots / 2);
  UCX_OK(send_bcopy(third, 2, 64));
  UCX_OK(send_bcopy(back, 2, 64));
  send_some(to, flooded, kSlots / 2);
  for (unsigned looks = 0; looks < 1000; looks++) {
    uct_worker_progress(from->worker);
  }
  CHECK(flood_count <= kSlots, "%u messages are sent into %d slots", flood_count, kSlots);
  UNTIL(to->taken == 1 + kSlots + flood_count);
  close_entities();
}

// ---- late ----

// What the earlier interface on a VCQ has sent to one that is closed fails no endpoint of the next one.
static void run_late_of_earlier(void) {
  for (unsigned round = 0; round < 20; round++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h gone = add_ep(from, to);
    UCX_OK(TRY(send_bcopy(gone, 1, 64)));
    flush_ep(gone);
    UNTIL(to->taken == 1);
    close_iface(to);
    for (unsigned i = 0; i < 4; i++) {
      UCX_OK(uct_ep_am_short(gone, 0, 1, NULL, 0));
    }
    close_iface(from);
    open_iface(from);
    open_iface(to);
    to->taken = 0;
    const uct_ep_h ep = add_ep(from, to);
    UCX_OK(TRY(send_bcopy(ep, 1, 64)));
    UNTIL(to->taken == 1 || from->errors > 0);
    CHECK(from->errors == 0, "an interface hears of messages of an earlier one: %s", ucs_status_string(from->error));
    flush_ep(ep);
    close_entities();
  }
}

static void run_late(void) {
  run_late_of_earlier();
  entity_t *const from = make_entity(), *const to = make_entity();
  for (uint64_t round = 0; round < 20; round++) {
    const uct_ep_h gone = connect_ep(from, to);
    UCX_OK(TRY(send_bcopy(gone, 1, 64)));
    flush_ep(gone);
    UNTIL(to->taken == 1);
    close_iface(to);
    for (unsigned i = 0; i < 6; i++) {
      UCX_OK(i % 2 ? send_bcopy(gone, 1, 64) : uct_ep_am_short(gone, 0, 1, NULL, 0));
    }
    const ucs_status_t status = uct_ep_flush(gone, 0, NULL);
    CHECK(status == UCS_OK || status == UCS_INPROGRESS, "a flush gives %s", ucs_status_string(status));
    uct_ep_destroy(gone);
    open_iface(to);
    to->taken = 0;
    const uct_ep_h ep = connect_ep(from, to);
    UCX_OK(TRY(send_bcopy(ep, round, 64)));
    UNTIL(to->taken == 1 || from->errors > 0);
    flush_ep(ep);
    CHECK(from->errors == 0, "an endpoint hears of messages that it has not sent: %s", ucs_status_string(from->error));
    uct_ep_destroy(ep);
    to->taken = 0;
  }
  close_entities();
}

// ---- answered ----

static void look(entity_t* self, unsigned times) {
  for (unsigned looks = 0; looks < times; looks++) {
    uct_worker_progress(self->worker);
  }
}

static void run_answered(void) {
  for (unsigned round = 0; round < 10; round++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    UCX_OK(send_bcopy(add_ep(from, to), 1, 64));
    while (uct_worker_progress(to->worker) == 0) {
    }
    close_iface(from);
    open_iface(from);
    const uct_ep_h ep = add_ep(from, to);
    UCX_OK(send_bcopy(ep, 2, 64));
    look(from, 200);
    CHECK(from->errors == 0, "an interface takes an answer that is another one's: %s", ucs_status_string(from->error));
    UNTIL(to->taken == 1);
    CHECK(to->sum == 2, "message %lu arrives", (unsigned long)to->sum);
    flush_ep(ep);
    close_entities();
  }
}

// A receiver that has answered, and closes before it gets the first message.
static void run_closed(void) {
  for (unsigned round = 0; round < 10; round++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h ep = add_ep(from, to);
    UCX_OK(send_bcopy(ep, 1, 64));
    while (uct_worker_progress(to->worker) == 0) {
    }
    close_iface(to);
    UNTIL(from->errors > 0);
    CHECK(from->failed == ep && from->error == UCS_ERR_ENDPOINT_TIMEOUT, "the handler hears %s",
          ucs_status_string(from->error));
    close_entities();
  }
}

// ---- replaced ----

static void run_replaced(void) {
  for (unsigned round = 0; round < 10; round++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h ep = add_ep(from, to);
    UCX_OK(send_bcopy(ep, 1, 64));
    close_iface(to);
    open_iface(to);
    UNTIL(from->errors > 0 || to->taken > 0);
    CHECK(to->taken == 0, "an interface takes a message that was sent to another one");
    CHECK(from->failed == ep, "another endpoint fails");
    CHECK(UCS_STATUS_IS_ERR(send_bcopy(ep, 1, 64)), "an endpoint of which its user was told that it failed sends");
    const uct_ep_h next = add_ep(from, to);
    UCX_OK(TRY(send_bcopy(next, 2, 64)));
    UNTIL(to->taken == 1);
    CHECK(to->sum == 2 && from->errors == 1, "message %lu arrives, %u errors", (unsigned long)to->sum, from->errors);
    flush_ep(next);
    close_entities();
  }
}

// ---- restarted ----

// The next interface has the VCQ. Who asks, or waits for room at the earlier one, hears that it is not the one that he
// knows; nothing of his is under way.
static void run_restarted(void) {
  for (unsigned round = 0; round < 4; round++) {
    const int waits = round % 2 != 0;
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h ep = add_ep(from, to);
    UCX_OK(TRY(send_bcopy(ep, 1, 64)));
    flush_ep(ep);
    UNTIL(to->taken == 1);
    for (ucs_status_t status = UCS_OK; waits && status != UCS_ERR_NO_RESOURCE;) {
      status = send_bcopy(ep, 2, 64);
    }
    while (uct_ep_flush(ep, 0, NULL) != UCS_OK) {
      uct_worker_progress(from->worker);
    }
    close_iface(to);
    open_iface(to);
    if (!waits) {
      UCX_OK(uct_ep_check(ep, 0, NULL));
    }
    UNTIL(from->errors > 0);
    CHECK(from->failed == ep && from->errors == 1, "%u errors", from->errors);
    CHECK(UCS_STATUS_IS_ERR(send_bcopy(ep, 1, 64)), "an endpoint of which its user was told that it failed sends");
    const uct_ep_h next = add_ep(from, to);
    to->sum = to->taken = 0;
    UCX_OK(uct_ep_check(next, 0, NULL));
    UCX_OK(TRY(send_bcopy(next, 3, 64)));
    flush_ep(next);
    UNTIL(to->taken == 1);
    CHECK(to->sum == 3 && from->errors == 1, "message %lu arrives, %u errors", (unsigned long)to->sum, from->errors);
    close_entities();
  }
}

// ---- returned ----

// An endpoint to the earlier one has failed. The next one has its VCQ, and asks for a ring.
static void run_returned(void) {
  for (unsigned round = 0; round < 10; round++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h ep = add_ep(from, to);
    UCX_OK(TRY(send_bcopy(ep, 1, 64)));
    flush_ep(ep);
    UNTIL(to->taken == 1);
    close_iface(to);
    UCX_OK(send_bcopy(ep, 1, 64));
    UNTIL(from->errors == 1);
    open_iface(to);
    const uct_ep_h back = add_ep(to, from);
    for (uint64_t i = 0; i < 40; i++) {
      UCX_OK(TRY(send_bcopy(back, i, 64)));
    }
    UNTIL(from->taken == 40);
    flush_ep(back);
    CHECK(from->errors == 1 && to->errors == 0, "%u and %u errors", from->errors, to->errors);
    close_entities();
  }
}

// ---- inherited ----

// Each has a domain of its own, as another process has, so that nothing is known of the earlier one on the VCQ.
static entity_t* make_elsewhere(uct_md_h* own_md) {
  const uct_md_h here = md;
  open_component("tni0");
  entity_t* const self = make_entity();
  close_memory(self);
  self->memory = NULL;
  *own_md = md;
  md = here;
  return self;
}

static void end_elsewhere(entity_t* self, uct_md_h own_md) {
  close_iface(self);
  uct_md_close(own_md);
}

// The bell of the earlier one is heard when the next one has the VCQ, at any time of what that does: before it rings,
// then before it looks for an answer, and behind.
static void run_inherited(void) {
  enum { kMessages = 40 };
  for (unsigned round = 0; round < 12; round++) {
    uct_md_h first_md, next_md;
    entity_t *const to = make_entity(), *const first = make_elsewhere(&first_md);
    UCX_OK(send_bcopy(add_ep(first, to), 1000000, 64));
    end_elsewhere(first, first_md);
    entity_t* const next = make_elsewhere(&next_md);
    CHECK(memcmp(first->address, next->address, sizeof(uint64_t)) == 0, "it has another VCQ");
    const uct_ep_h ep = add_ep(next, to);
    look(to, round / 4);
    UCX_OK(send_bcopy(ep, 1, 64));
    for (unsigned i = 0; i < 4; i++) {
      look(round & 1 << i % 2 ? next : to, 1);
    }
    for (uint64_t i = 2; i <= kMessages; i++) {
      UCX_OK(TRY(send_bcopy(ep, i, 64)));
    }
    flush_ep(ep);
    UNTIL(to->taken == kMessages);
    CHECK(to->sum == kMessages * (kMessages + 1) / 2, "messages of %lu arrive", (unsigned long)to->sum);
    CHECK(next->errors == 0 && to->errors == 0, "%u and %u errors", next->errors, to->errors);
    end_elsewhere(next, next_md);
    close_iface(to);
    close_memory(to);
    entity_count = 0;
  }
}

// ---- silent ----

static ucs_status_t send_kind(entity_t* from, uct_ep_h ep, unsigned kind, uint64_t seed, done_t* done) {
  unsigned char payload[8];
  pair_fill(payload, sizeof payload, seed);
  switch (kind) {
    case 0: return uct_ep_am_short(ep, 0, seed, payload, sizeof payload);
    case 1: return send_bcopy(ep, seed, from->attr.cap.am.max_bcopy);
    default: return send_zcopy(from, ep, seed, 5000, done);
  }
}

// Only the receiver looks.
static void take_from_silent(entity_t* to, uint64_t count) {
  while (to->taken < count) {
    uct_worker_progress(to->worker);
  }
}

static void run_silent(void) {
  enum { kSenders = 3 };
  for (unsigned round = 0; round < 30; round++) {
    entity_t* const to = make_entity();
    entity_t* from[kSenders];
    done_t done[kSenders];
    for (unsigned kind = 0; kind < kSenders; kind++) {
      from[kind] = make_entity();
      done[kind] = expect(1);
      const ucs_status_t status =
          send_kind(from[kind], add_ep(from[kind], to), kind, round * kSenders + kind, &done[kind]);
      CHECK(status == UCS_OK || status == UCS_INPROGRESS, "the first message gives %s", ucs_status_string(status));
    }
    take_from_silent(to, kSenders);
    // What they send now comes behind it, and what they have sent has ended.
    for (uint64_t i = 1; i <= 40; i++) {
      for (unsigned kind = 0; kind < kSenders; kind++) {
        UCX_OK(TRY(send_bcopy(from[kind]->eps[0], 1000, 8 + 100 * i)));
      }
    }
    for (unsigned kind = 0; kind < kSenders; kind++) {
      flush_ep(from[kind]->eps[0]);
      CHECK(kind < 2 || done[kind].calls == 1, "a message that was fetched does not end");
    }
    UNTIL(to->taken == 41 * kSenders);
    CHECK(to->sum == 40000 * kSenders + round * kSenders * kSenders + 3, "other messages than were sent");
    close_entities();
  }
  // While it is fetched its sender cancels it, and uses the buffer for others: it arrives, or ends as cancelled.
  for (unsigned round = 0; round < 100; round++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h ep = add_ep(from, to), other = add_ep(from, to);
    done_t done = expect(1);
    CHECK(send_zcopy(from, ep, 1, 5000, &done) == UCS_INPROGRESS, "the first message waits");
    for (unsigned looks = 0; to->taken == 0 && looks < round * 100; looks++) {
      uct_worker_progress(to->worker);
    }
    UNTIL(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, NULL) == UCS_OK);
    CHECK(done.calls == 1, "a message that is cancelled does not end");
    for (uint64_t i = 0; i < 20; i++) {
      UCX_OK(TRY(send_bcopy(other, 100, 64)));
    }
    flush_ep(other);
    const uint64_t arrived = done.super.status == UCS_OK;
    UNTIL(to->taken == 20 + arrived);
    CHECK(to->sum == 2000 + arrived, "messages of %lu arrive", (unsigned long)to->sum);
    close_entities();
  }
}

// ---- mistaken ----

static entity_t *doubter, *mistaken;

// An address with the VCQ of a living interface that seems to be of a later one: what goes to the living one fails.
static void take_for_dead(void) {
  enum { kIncarnation = 15 };
  static entity_t later;
  later = *mistaken;
  later.address[kIncarnation] ^= 1;
  uct_ep_destroy(connect_ep(doubter, &later));
}

static ucs_status_t doubt(void* arg, void* data, size_t length, unsigned flags) {
  UCX_OK(uct_iface_set_am_handler(mistaken->iface, 0, on_message, mistaken, 0));
  take_for_dead();
  UCX_OK(send_bcopy(add_ep(doubter, mistaken), 2, 64));
  return on_message(arg, data, length, flags);
}

static void run_mistaken(void) {
  // When it has the message, and has not said so yet.
  for (unsigned round = 0; round < 10; round++) {
    doubter = make_entity();
    mistaken = make_entity();
    UCX_OK(uct_iface_set_am_handler(mistaken->iface, 0, doubt, mistaken, 0));
    UCX_OK(send_bcopy(add_ep(doubter, mistaken), 1, 64));
    take_from_silent(mistaken, 1);
    CHECK(doubter->errors == 1, "%u errors", doubter->errors);
    UNTIL(mistaken->taken == 2);
    flush_ep(doubter->eps[1]);
    CHECK(mistaken->sum == 3, "messages of %lu arrive", (unsigned long)mistaken->sum);
    close_entities();
  }
  // At any time. The next message has the buffer.
  for (unsigned round = 0; round < 40; round++) {
    doubter = make_entity();
    mistaken = make_entity();
    entity_t* const other = make_entity();
    UCX_OK(send_bcopy(add_ep(doubter, mistaken), 1, 64));
    look(mistaken, 1);
    poll(NULL, 0, 2);  // Longer than it waits before it fetches.
    look(mistaken, round);
    take_for_dead();
    UCX_OK(send_bcopy(add_ep(doubter, other), 4, 64));
    look(mistaken, 1000);
    UNTIL(other->taken == 1);
    CHECK(other->sum == 4 && mistaken->sum <= 1, "it takes a message of another one: %lu",
          (unsigned long)mistaken->sum);
    flush_ep(doubter->eps[1]);
    close_entities();
  }
}

// ---- refused ----

static void run_refused(void) {
  setenv("UCX_UTOFU_MAX_PEERS", "1", 1);
  entity_t *const to = make_entity(), *const known = make_entity(), *const stranger = make_entity();
  const uct_ep_h good = add_ep(known, to), bad = add_ep(stranger, to);
  done_t flushed = expect(1);
  UCX_OK(TRY(send_bcopy(good, 1, 64)));
  UNTIL(to->taken == 1);
  UCX_OK(send_bcopy(bad, 2, 64));
  CHECK(uct_ep_flush(bad, 0, &flushed.super) == UCS_INPROGRESS, "a flush does not wait");
  // It is not fetched either.
  for (unsigned looks = 0; looks < 100; looks++) {
    uct_worker_progress(to->worker);
    poll(NULL, 0, looks < 5 ? 2 : 0);  // Longer than it waits before it fetches.
  }
  UNTIL(flushed.calls == 1);
  CHECK(flushed.super.status == UCS_ERR_EXCEEDS_LIMIT, "a flush of messages that were refused says %s",
        ucs_status_string(flushed.super.status));
  UNTIL(stranger->errors > 0);
  CHECK(stranger->errors == 1 && stranger->failed == bad, "%u errors", stranger->errors);
  // Not that it may try again: it would do so for ever.
  CHECK(send_bcopy(bad, 2, 64) == UCS_ERR_EXCEEDS_LIMIT, "an endpoint that was refused sends");
  UCX_OK(TRY(send_bcopy(good, 3, 64)));
  UNTIL(to->taken == 2);
  flush_ep(good);
  CHECK(to->sum == 4 && known->errors == 0, "others suffer");
  close_entities();
}

// ---- parted ----

// Endpoints come and go, to more interfaces one after the other than are known at a time.
static void run_parted(void) {
  enum { kKnown = 4, kRounds = 24 };
  setenv("UCX_UTOFU_MAX_PEERS", "4", 1);
  entity_t *const from = make_entity(), *const stays = make_entity();
  const uct_ep_h there = add_ep(from, stays);
  entity_t* others[kKnown * 2];
  for (unsigned i = 0; i < kKnown * 2; i++) {
    others[i] = make_entity();
  }
  for (unsigned round = 0; round < kRounds; round++) {
    entity_t* const to = others[round % (kKnown * 2)];
    const int sends = round % 3 != 0;  // Otherwise it puts, of which the peer hears nothing.
    uct_ep_h ep = NULL;
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface = from->iface,
        .dev_addr = (const uct_device_addr_t*)to->address,
        .iface_addr = (const uct_iface_addr_t*)to->address};
    while (uct_ep_create(&params, &ep) != UCS_OK) {
      look(from, 100);
      poll(NULL, 0, 1);
    }
    UCX_OK(TRY(uct_ep_put_short(ep, &round, sizeof round, (uintptr_t)to->memory, to->key.rkey)));
    if (sends) {
      to->taken = to->sum = 0;
      UCX_OK(TRY(send_bcopy(ep, round, 64)));
      UNTIL(to->taken == 1);
      CHECK(to->sum == round, "message %lu arrives", (unsigned long)to->sum);
    }
    flush_ep(ep);
    CHECK(memcmp(to->memory, &round, sizeof round) == 0, "a put does not arrive");
    uct_ep_destroy(ep);
    if (sends) {
      close_iface(to);
      open_iface(to);
    }
    UCX_OK(TRY(send_bcopy(there, round, 64)));
  }
  UNTIL(stays->taken == kRounds);
  flush_ep(there);
  CHECK(from->errors == 0, "%u errors", from->errors);
  close_entities();
}

int main(int argc, char** argv) {
  static const test_case_t cases[] = {
      {"counts", run_counts},     {"late", run_late},           {"answered", run_answered},
      {"closed", run_closed},     {"replaced", run_replaced},   {"restarted", run_restarted},
      {"returned", run_returned}, {"inherited", run_inherited}, {"silent", run_silent},
      {"mistaken", run_mistaken}, {"refused", run_refused},     {"parted", run_parted}};
  setenv("UCX_UTOFU_SLOTS", "16", 1);
  return run_case("uct_strangers_check", cases, sizeof cases / sizeof cases[0], argc > 1 ? argv[1] : NULL);
}
