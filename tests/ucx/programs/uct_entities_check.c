// One process, the layer UCT, the transport utofu: several interfaces that talk to each other, each with a worker.
//   first    the first message to a peer is taken at once, of each kind, also if the peer is slow, or goes
//   pending  requests that wait: their order, their fairness, those that are purged, those that add themselves again,
//            those that purge; room comes back with progress alone
//   flush    of an endpoint and of an interface, with a completion and from a request, behind all kinds of operations
//   many     sixteen senders flood one receiver
//   memory   keys of memory that is registered twice, and invalidated
//   closed   a receiver that closes: each kind of operation hears of it once, and other receivers do not suffer
//   reuse    endpoints, and interfaces, that come and go
// Usage: uct_entities_check CASE
#include <string.h>
#include <uct/api/v2/uct_v2.h>

#include "uct_entities.h"

// ---- first ----

static void run_first(void) {
  for (unsigned kind = 0; kind < 4; kind++) {
    entity_t *const from = make_entity(), *const to = make_entity();
    const uct_ep_h ep = add_ep(from, to);
    done_t done = expect(1), flushed = expect(1);
    ucs_status_t status = UCS_OK;
    unsigned char payload[100];
    pair_fill(payload, sizeof payload, 77);
    switch (kind) {
      case 0: status = uct_ep_am_short(ep, 0, 77, payload, 16); break;
      case 1: status = uct_ep_am_short(ep, 0, 77, payload, sizeof payload); break;
      case 2: status = send_bcopy(ep, 77, from->attr.cap.am.max_bcopy); break;
      default: status = send_zcopy(from, ep, 77, 5000, &done); break;
    }
    CHECK(status == (kind == 3 ? UCS_INPROGRESS : UCS_OK), "the first message of kind %u gives %s", kind,
          ucs_status_string(status));
    // Behind it, in its order; and a flush that ends behind all that was sent before it.
    for (uint64_t i = 0; i < 50; i++) {
      UCX_OK(TRY(send_bcopy(ep, 1000 + i, 8 + (size_t)i * 100)));
      if (i == 0) {
        CHECK(uct_ep_flush(ep, 0, &flushed.super) == UCS_INPROGRESS, "a flush does not wait for the first message");
      }
    }
    UNTIL(flushed.calls == 1);
    CHECK(to->memory[0] == 0, "nothing was put");
    flush_ep(ep);
    UNTIL(to->taken == 51);
    CHECK(to->sum == 77 + 50 * 1000 + 49 * 50 / 2, "wrong messages");
    CHECK(kind != 3 || (done.calls == 1 && done.super.status == UCS_OK), "the first message does not end");
    close_entities();
  }
  // Two that are closed before they have met: what waits ends, and nobody waits for it.
  entity_t *const from = make_entity(), *const to = make_entity();
  done_t done = expect(1);
  CHECK(send_zcopy(from, add_ep(from, to), 1, 100, &done) == UCS_INPROGRESS, "the first message waits");
  close_iface(from);
  CHECK(done.calls == 1, "a completion is not called with its endpoint");
  close_entities();
}

// ---- pending ----

typedef struct {
  uct_pending_req_t super;
  uct_ep_h ep;
  uint64_t number;
  unsigned* served;
  unsigned* again;  // Or NULL: how often it adds itself again.
} request_t;

static ucs_status_t serve(uct_pending_req_t* self) {
  request_t* const request = (request_t*)self;
  const ucs_status_t status = send_bcopy(request->ep, request->number, 1000);
  if (status != UCS_OK) {
    return status;
  }
  ++*request->served;
  if (request->again != NULL && *request->again > 0) {
    --*request->again;
    const ucs_status_t added = uct_ep_pending_add(request->ep, self, 0);
    CHECK(added == UCS_OK || added == UCS_ERR_BUSY, "it adds itself: %s", ucs_status_string(added));
    return added == UCS_OK ? UCS_OK : UCS_INPROGRESS;
  }
  free(request);
  return UCS_OK;
}

// Until one waits. @return how many were sent
static unsigned fill(uct_ep_h ep, unsigned* served) {
  unsigned sent = 0;
  for (;;) {
    const ucs_status_t status = send_bcopy(ep, 0, 8);
    if (status == UCS_ERR_NO_RESOURCE) {
      request_t* const probe = malloc(sizeof *probe);
      *probe = (request_t){.super.func = serve, .ep = ep, .served = served};
      const ucs_status_t added = uct_ep_pending_add(ep, &probe->super, 0);
      if (added == UCS_OK) {
        return sent;
      }
      CHECK(added == UCS_ERR_BUSY, "a request is refused");
      free(probe);
      continue;
    }
    UCX_OK(status);
    sent++;
  }
}

static void add(uct_ep_h ep, uint64_t number, unsigned* served, unsigned* again) {
  request_t* const request = malloc(sizeof *request);
  *request = (request_t){.super.func = serve, .ep = ep, .number = number, .served = served, .again = again};
  UCX_OK(uct_ep_pending_add(ep, &request->super, 0));
}

static void count_purged(uct_pending_req_t* request, void* arg) {
  ++*(unsigned*)arg;
  free(request);
}

static void run_pending(void) {
  enum { kEps = 16, kEach = 10 };
  entity_t *const from = make_entity(), *const to = make_entity(), *const other = make_entity();
  unsigned served = 0, purged = 0, sent = 0;
  const uct_ep_h first = add_ep(from, to), second = add_ep(from, to), third = add_ep(from, other);
  sent = fill(first, &served);
  CHECK(send_bcopy(first, 0, 8) == UCS_ERR_NO_RESOURCE, "a message overtakes a request");
  CHECK(uct_ep_flush(first, 0, NULL) == UCS_ERR_NO_RESOURCE, "a flush overtakes a request");
  for (unsigned i = 0; i < kEach; i++) {
    add(first, i, &served, NULL);
  }
  fill(second, &served);
  // Another peer has room.
  UCX_OK(TRY(send_bcopy(third, 5, 100)));
  uct_ep_pending_purge(first, count_purged, &purged);
  CHECK(purged + served >= kEach + 1 && purged > 0, "%u are purged, %u were served", purged, served);
  uct_ep_pending_purge(first, count_purged, &purged);
  UNTIL(served + purged == kEach + 2 && other->taken == 1);
  UNTIL(to->taken >= sent + served);
  flush_ep(first);
  // Requests that come back: each endpoint has its turn.
  unsigned turns[kEps], again[kEps];
  uct_ep_h eps[kEps];
  unsigned total = 0;
  for (unsigned i = 0; i < kEps; i++) {
    turns[i] = 0;
    again[i] = 200;
    eps[i] = add_ep(from, to);
  }
  fill(first, &served);
  for (unsigned i = 0; i < kEps; i++) {
    CHECK(send_bcopy(eps[i], 0, 8) == UCS_ERR_NO_RESOURCE, "an endpoint overtakes another one");
    add(eps[i], i, &turns[i], &again[i]);
  }
  for (unsigned looks = 0; total < kEps * 100;) {
    progress();
    total = 0;
    unsigned least = UINT32_MAX, most = 0;
    for (unsigned i = 0; i < kEps; i++) {
      total += turns[i];
      least = turns[i] < least ? turns[i] : least;
      most = turns[i] > most ? turns[i] : most;
    }
    CHECK(most - least <= 64, "after %u looks one endpoint was served %u times, another %u times", looks, most, least);
    looks++;
  }
  for (unsigned i = 0; i < kEps; i++) {
    UNTIL(again[i] == 0 && turns[i] == 201);
  }
  flush_ep(first);
  close_entities();
}

// ---- purging ----

static unsigned purging_calls, purging_purged;

static ucs_status_t purge_once(uct_pending_req_t* self) {
  request_t* const request = (request_t*)self;
  if (purging_calls++ == 0) {
    uct_ep_pending_purge(request->ep, count_purged, &purging_purged);
    return UCS_ERR_NO_RESOURCE;
  }
  return serve(self);
}

// A request that purges all others and wants to be called again.
static void run_purging(void) {
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to);
  unsigned served = 0;
  request_t* const request = malloc(sizeof *request);
  *request = (request_t){.super.func = purge_once, .ep = ep, .number = 3, .served = &served};
  while (send_bcopy(ep, 0, 8) != UCS_ERR_NO_RESOURCE) {
  }
  UCX_OK(uct_ep_pending_add(ep, &request->super, 0));
  add(ep, 4, &served, NULL);
  UNTIL(served == 1);
  CHECK(purging_calls == 2 && purging_purged == 1, "%u calls, %u are purged", purging_calls, purging_purged);
  UCX_OK(TRY(send_bcopy(ep, 5, 8)));
  flush_ep(ep);
  UNTIL(to->sum == 8);
  close_entities();
}

// Nothing of the user is called while he posts.
static void run_no_calls(void) {
  setenv("UCX_UTOFU_TX_BUFFERS", "2", 1);
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to);
  done_t done = expect(1000);
  UCX_OK(TRY(send_bcopy(ep, 1, 64)));
  flush_ep(ep);
  UNTIL(to->taken == 1);
  for (unsigned i = 0; i < 1000; i++) {
    const ucs_status_t status = send_zcopy(from, ep, 2, 100, &done);
    CHECK(status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE, "a message gives %s", ucs_status_string(status));
    CHECK(done.super.count == 1000, "message %u: a completion is called inside of it", i);
  }
  flush_ep(ep);
  CHECK(done.super.count < 1000, "no completion is called");
  UNTIL(to->taken == 1001 - (unsigned)done.super.count);
  close_entities();
  unsetenv("UCX_UTOFU_TX_BUFFERS");
}

static entity_t* put_target;

static ucs_status_t put_once(uct_pending_req_t* self) {
  request_t* const request = (request_t*)self;
  const ucs_status_t status =
      uct_ep_put_short(request->ep, "x", 1, (uintptr_t)put_target->memory, put_target->key.rkey);
  *request->served += status == UCS_OK;
  return status;
}

// A put that waits for puts does not wait for the room that a message has not found, which its receiver never makes.
static void run_put_request(void) {
  entity_t *const from = make_entity(), *const to = put_target = make_entity();
  const uct_ep_h ep = add_ep(from, to);
  unsigned served = 0;
  request_t request = {.super.func = put_once, .ep = ep, .served = &served};
  UCX_OK(TRY(send_bcopy(ep, 1, 64)));
  flush_ep(ep);
  while (send_bcopy(ep, 0, 8) != UCS_ERR_NO_RESOURCE) {
  }
  while (uct_ep_put_short(ep, "y", 1, (uintptr_t)to->memory, to->key.rkey) == UCS_OK) {
  }
  UCX_OK(uct_ep_pending_add(ep, &request.super, 0));
  while (served == 0) {
    uct_worker_progress(from->worker);
  }
  flush_ep(ep);
  CHECK(to->memory[0] == 'x', "a request puts nothing");
  close_entities();
}

static void run_requests(void) {
  run_pending();
  run_put_request();
  run_purging();
  run_no_calls();
}

// ---- flush ----

typedef struct {
  uct_pending_req_t super;
  uct_ep_h ep;
  done_t done;
  int started;
} flush_request_t;

static ucs_status_t start_flush(uct_pending_req_t* self) {
  flush_request_t* const request = (flush_request_t*)self;
  const ucs_status_t status = uct_ep_flush(request->ep, 0, &request->done.super);
  if (status == UCS_ERR_NO_RESOURCE) {
    return status;
  }
  request->started = 1;
  request->done.calls += status == UCS_OK;
  return UCS_OK;
}

static void post_all(entity_t* from, entity_t* to, uct_ep_h ep, uint64_t* old, done_t* done) {
  const uct_iov_t iov = {from->memory, 4096, from->memh, 0, 1};
  const uint64_t at = (uintptr_t)to->memory;
  packed_t what = {4096, 9};
  CHECK(TRY(uct_ep_put_zcopy(ep, &iov, 1, at, to->key.rkey, &done->super)) == UCS_INPROGRESS, "put zcopy");
  CHECK(TRY(uct_ep_put_bcopy(ep, pack, &what, at + 8192, to->key.rkey)) == 4096, "put bcopy");
  UCX_OK(TRY(uct_ep_put_short(ep, "x", 1, at + 16384, to->key.rkey)));
  UCX_OK(TRY(uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, at + 16392, to->key.rkey)));
  CHECK(TRY(uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, old, at + 16400, to->key.rkey, &done->super)) ==
            UCS_INPROGRESS,
        "fetch");
  UCX_OK(TRY(send_bcopy(ep, 4, 200)));
}

// To cancel does not wait for a peer that does nothing, and ends the endpoint, but not another one to the same peer.
static void run_cancel(void) {
  setenv("UCX_UTOFU_TX_BUFFERS", "16", 1);
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to), other = add_ep(from, to);
  done_t done = expect(1), flushed = expect(1), cancelled = expect(1);
  CHECK(send_zcopy(from, ep, 6, 100, &done) == UCS_INPROGRESS, "the first message waits");
  CHECK(uct_ep_flush(ep, 0, &flushed.super) == UCS_INPROGRESS, "a flush does not wait for it");
  const ucs_status_t status = uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &cancelled.super);
  CHECK(done.calls == 1 && done.super.status == UCS_ERR_CANCELED, "a message is not cancelled");
  while (status == UCS_INPROGRESS && cancelled.calls == 0) {
    uct_worker_progress(from->worker);
  }
  CHECK(status == UCS_OK || cancelled.super.status == UCS_OK, "to cancel gives %s", ucs_status_string(status));
  while (flushed.calls == 0) {
    uct_worker_progress(from->worker);
  }
  CHECK(flushed.super.status == UCS_ERR_CANCELED, "a flush of it says %s", ucs_status_string(flushed.super.status));
  CHECK(send_bcopy(ep, 7, 64) == UCS_ERR_CANCELED, "an endpoint that was cancelled sends");
  UCX_OK(TRY(send_bcopy(other, 8, 64)));
  flush_ep(other);
  UNTIL(to->taken == 1);
  CHECK(to->sum == 8 && from->errors == 0, "messages of %lu arrive", (unsigned long)to->sum);
  close_entities();
}

static void run_flush(void) {
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to), idle = add_ep(from, to);
  for (uint64_t round = 1; round <= 200; round++) {
    flush_request_t request = {.super.func = start_flush, .ep = ep, .done = expect(1)};
    done_t done = expect(3), flushed = expect(1);
    uint64_t old = 0;
    pair_fill(from->memory, 4096, round);
    post_all(from, to, ep, &old, &done);
    switch (round % 3) {
      case 0:
        if (TRY(uct_ep_flush(ep, 0, &flushed.super)) == UCS_INPROGRESS) {
          UNTIL(flushed.calls == 1);
          UCX_OK(flushed.super.status);
        }
        break;
      case 1: UNTIL(uct_iface_flush(from->iface, 0, NULL) == UCS_OK); break;
      default: {
        unsigned served = 0;
        fill(ep, &served);
        UCX_OK(uct_ep_pending_add(ep, &request.super, 0));
        CHECK(!request.started, "a request overtakes others");
        UNTIL(request.done.calls == 1);
        CHECK(served == 1, "a flush is complete before a message that waits");
      }
    }
    CHECK(done.super.count == 1, "%u operations are not complete behind a flush", done.super.count - 1);
    CHECK_CONTENT(to->memory, 4096, round, "put of round %lu", (unsigned long)round);
    CHECK(*(uint64_t*)(to->memory + 16392) == round && old == round - 1, "atomics of round %lu", (unsigned long)round);
    CHECK(uct_ep_flush(idle, 0, NULL) == UCS_OK, "an endpoint without operations waits");
  }
  // Two endpoints to one peer: the flush of one does not speak for the other.
  UCX_OK(TRY(uct_ep_am_short(ep, 0, 1, NULL, 0)));
  uct_ep_flush(idle, 0, NULL);
  CHECK(uct_ep_flush(ep, 0, NULL) == UCS_INPROGRESS, "a flush does not wait for a message");
  flush_ep(ep);
  close_entities();
  run_cancel();
}

// ---- many ----

static void run_many(void) {
  enum { kSenders = 16, kMessages = 500 };
  entity_t* const to = make_entity();
  uint64_t sum = 0, sent = 0;
  for (unsigned i = 0; i < kSenders; i++) {
    entity_t* const from = make_entity();
    add_ep(from, to);
  }
  for (unsigned message = 0; message < kMessages; message++) {
    for (unsigned i = 1; i <= kSenders; i++) {
      const uint64_t seed = message * 100 + i;
      const size_t length = 8 + (size_t)(seed * 2654435761u % 8000);
      UCX_OK(TRY(send_bcopy(entities[i].eps[0], seed, length)));
      sum += seed;
      sent++;
    }
  }
  UNTIL(to->taken == sent);
  CHECK(to->sum == sum, "other messages than were sent");
  for (unsigned i = 1; i <= kSenders; i++) {
    flush_ep(entities[i].eps[0]);
  }
  close_entities();
}

// ---- memory ----

static void invalidate(uct_mem_h memh, done_t* done) {
  const uct_md_mem_dereg_params_t params = {
      .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH | UCT_MD_MEM_DEREG_FIELD_FLAGS | UCT_MD_MEM_DEREG_FIELD_COMPLETION,
      .memh = memh,
      .flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE,
      .comp = &done->super};
  UCX_OK(uct_md_mem_dereg_v2(md, &params));
}

static void run_memory(void) {
  enum { kTimes = 5 };
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to);
  uct_md_attr_t md_attr;
  UCX_OK(uct_md_query(md, &md_attr));
  CHECK((md_attr.cap.flags & UCT_MD_FLAG_INVALIDATE) != 0, "memory cannot be invalidated");
  uct_md_mem_attr_t mem_attr = {.field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE};
  CHECK(uct_md_mem_query(md, to->memory, kMemory, &mem_attr) == UCS_ERR_UNSUPPORTED, "memory is described");
  for (unsigned round = 0; round < 50; round++) {
    uct_mem_h memhs[kTimes];
    uct_rkey_bundle_t key;
    unsigned char buffer[256];
    void* memory;
    done_t done = expect(kTimes + 1), put = expect(1);
    const uct_md_mkey_pack_params_t pack_params = {.field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS,
                                                   .flags = UCT_MD_MKEY_PACK_FLAG_INVALIDATE};
    CHECK(posix_memalign(&memory, 4096, 1 << 20) == 0, "no memory");
    for (unsigned i = 0; i < kTimes; i++) {
      UCX_OK(uct_md_mem_reg(md, memory, 1 << 20, UCT_MD_MEM_ACCESS_ALL, &memhs[i]));
    }
    UCX_OK(uct_md_mkey_pack_v2(md, memhs[0], &pack_params, buffer));
    UCX_OK(uct_rkey_unpack(component, buffer, &key));
    const uct_iov_t iov = {from->memory, 4096, from->memh, 0, 1};
    CHECK(TRY(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)memory, key.rkey, &put.super)) == UCS_INPROGRESS, "a put");
    UNTIL(put.calls == 1);
    UCX_OK(put.super.status);
    for (unsigned i = 0; i < kTimes; i++) {
      CHECK(done.calls == 0, "memory with users is invalidated");
      invalidate(memhs[i], &done);
    }
    CHECK(done.super.count == 1, "memory without users is not invalidated: %d", done.super.count);
    put = expect(1);
    CHECK(TRY(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)memory, key.rkey, &put.super)) == UCS_INPROGRESS, "a late put");
    UNTIL(put.calls == 1);
    CHECK(put.super.status != UCS_OK, "a key is good for memory that was invalidated");
    UCX_OK(uct_rkey_release(component, &key));
    free(memory);
  }
  CHECK(from->errors == 0, "the handler hears what completions were told");
  const uct_md_mem_dereg_params_t bad[] = {{.field_mask = UCT_MD_MEM_DEREG_FIELD_FLAGS, .flags = 0},
                                           {.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH | UCT_MD_MEM_DEREG_FIELD_FLAGS,
                                            .memh = to->memh,
                                            .flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE}};
  for (unsigned i = 0; i < 2; i++) {
    CHECK(uct_md_mem_dereg_v2(md, &bad[i]) == UCS_ERR_INVALID_PARAM, "bad parameters %u are taken", i);
  }
  close_entities();
}

// ---- closed ----

static const char* const operations[] = {"am short",  "am bcopy",  "am zcopy", "put short", "put bcopy", "put zcopy",
                                         "get bcopy", "get zcopy", "post",     "fetch",     "check"};
enum { kOperations = sizeof operations / sizeof operations[0], kAm = 3 };

static void unpack(void* to, const void* data, size_t length) { memcpy(to, data, length); }

static ucs_status_t operate(entity_t* from, entity_t* to, uct_ep_h ep, unsigned operation, done_t* done) {
  const uct_iov_t iov = {from->memory, 3000, from->memh, 0, 1};
  const uint64_t at = (uintptr_t)to->memory;
  packed_t what = {500, 3};
  ssize_t status;
  switch (operation) {
    case 0: return uct_ep_am_short(ep, 0, 1, NULL, 0);
    case 1: return send_bcopy(ep, 3, 500);
    case 2: return send_zcopy(from, ep, 3, 500, done);
    case 3: return uct_ep_put_short(ep, "abcdefgh", 8, at, to->key.rkey);
    case 4:
      status = uct_ep_put_bcopy(ep, pack, &what, at, to->key.rkey);
      return status < 0 ? (ucs_status_t)status : UCS_OK;
    case 5: return uct_ep_put_zcopy(ep, &iov, 1, at, to->key.rkey, &done->super);
    case 6: return uct_ep_get_bcopy(ep, unpack, from->memory, 500, at, to->key.rkey, &done->super);
    case 7: return uct_ep_get_zcopy(ep, &iov, 1, at, to->key.rkey, &done->super);
    case 8: return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, at, to->key.rkey);
    case 9:
      return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, (uint64_t*)from->memory, at, to->key.rkey, &done->super);
    default: return uct_ep_check(ep, 0, NULL);
  }
}

static void run_closed(void) {
  for (unsigned operation = 0; operation < kOperations; operation++) {
    for (unsigned met = 0; met < 2; met++) {
      entity_t *const from = make_entity(), *const to = make_entity(), *const good = make_entity();
      const uct_ep_h bad_ep = add_ep(from, to), good_ep = add_ep(from, good);
      done_t done = expect(1);
      uint64_t sent = 0;
      if (met) {
        UCX_OK(TRY(send_bcopy(bad_ep, 7, 100)));
        flush_ep(bad_ep);
        UNTIL(to->taken == 1);
      }
      close_iface(to);
      const ucs_status_t status = operate(from, to, bad_ep, operation, &done);
      CHECK(status == UCS_OK || status == UCS_INPROGRESS, "%s to an interface that is closed gives %s",
            operations[operation], ucs_status_string(status));
      // Memory stays registered with its domain; messages and questions need the interface.
      const int asks = operation + 1 == kOperations, is_lost = operation < kAm || asks;
      if (is_lost) {
        UNTIL(from->errors == 1);
        CHECK(from->failed == bad_ep && from->error == UCS_ERR_ENDPOINT_TIMEOUT, "%s: the handler hears %s",
              operations[operation], ucs_status_string(from->error));
        CHECK(asks || UCS_STATUS_IS_ERR(operate(from, to, bad_ep, operation, &done)), "%s after the failure",
              operations[operation]);
      }
      UNTIL(status != UCS_INPROGRESS || done.calls == 1);
      for (; sent < 100; sent++) {
        UCX_OK(TRY(send_bcopy(good_ep, sent, 300)));
      }
      UNTIL(good->taken == sent);
      flush_ep(good_ep);
      const ucs_status_t flushed = TRY(uct_ep_flush(bad_ep, 0, NULL));
      CHECK(flushed == UCS_OK || flushed == UCS_INPROGRESS || UCS_STATUS_IS_ERR(flushed), "a flush");
      CHECK(from->errors == (unsigned)is_lost, "%s: the handler is told %u times", operations[operation], from->errors);
      close_entities();
    }
  }
}

// ---- reuse ----

static void run_reuse(void) {
  entity_t *const from = make_entity(), *const to = make_entity();
  uint64_t sent = 0;
  for (unsigned round = 0; round < 300; round++) {
    const uct_ep_h ep = connect_ep(from, to);
    for (unsigned i = 0; i < 5; i++, sent++) {
      UCX_OK(TRY(send_bcopy(ep, sent, 64)));
    }
    if (round % 2 == 0) {
      flush_ep(ep);
    }
    uct_ep_destroy(ep);
  }
  UNTIL(to->taken == sent);
  for (unsigned round = 0; round < 20; round++) {
    close_iface(to);
    open_iface(to);
    to->taken = 0;
    const uct_ep_h there = connect_ep(from, to), back = connect_ep(to, from);
    const uint64_t before = from->taken;
    for (uint64_t i = 0; i < 40; i++) {
      UCX_OK(TRY(send_bcopy(there, i, 64)));
      UCX_OK(TRY(send_bcopy(back, i, 64)));
    }
    UNTIL(to->taken == 40 && from->taken == before + 40);
    flush_ep(there);
    flush_ep(back);
    uct_ep_destroy(there);
    uct_ep_destroy(back);
  }
  CHECK(from->errors == 0, "the handler is told %u times: %s", from->errors, ucs_status_string(from->error));
  close_entities();
}

int main(int argc, char** argv) {
  static const test_case_t cases[] = {{"first", run_first}, {"pending", run_requests}, {"flush", run_flush},
                                      {"many", run_many},   {"memory", run_memory},    {"closed", run_closed},
                                      {"reuse", run_reuse}};
  return run_case("uct_entities_check", cases, sizeof cases / sizeof cases[0], argc > 1 ? argv[1] : NULL);
}
