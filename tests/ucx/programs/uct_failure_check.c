// Two processes, the layer UCT, the transport utofu: endpoints that end or fail while others go on.
//   alive    an endpoint destroyed by the completion of its own operation; a key whose memory is gone, which fails no
//            other endpoint; a new endpoint behind one that failed
//   blocked  a peer that takes no messages any more dies: its sender, which has nothing under way, is told once, and so
//            is who makes one more endpoint
//   getting  a short get from a dead peer gives an error, and the handler is told, too
//   unmet    so does who waits for a peer that dies before it has answered the first message
//   fetched  so does who cancels a message that the peer is fetching when it dies; nobody else has to be told
//   closing  nor does who closes the interface: it has its VCQ again at once
//   left     nobody waits for operations of an endpoint that was destroyed, whose peer is stopped: no flush, no fence
// Usage: uct_failure_check alive|blocked|getting|unmet|fetched|closing|left
#include <string.h>

#include "uct_pair.h"

enum { kRounds = 20, kMessages = 20 };

static uct_ep_h failed_ep;
static unsigned told;
static ucs_status_t told_status;

static ucs_status_t on_error(void* arg, uct_ep_h failed, ucs_status_t status) {
  (void)arg;
  CHECK(failed == failed_ep, "the handler is told of another endpoint");
  told++;
  told_status = status;
  return UCS_OK;
}

static uint64_t sent, taken;

static ucs_status_t on_message(void* arg, void* data, size_t length, unsigned flags) {
  uint64_t number;
  (void)arg, (void)flags;
  CHECK(length == sizeof number, "a message of %zu bytes", length);
  memcpy(&number, data, sizeof number);
  CHECK(number == taken, "message %lu, not %lu", (unsigned long)number, (unsigned long)taken);
  taken++;
  return UCS_OK;
}

static uct_ep_h connect_again(void) {
  uct_ep_h made;
  UCX_OK(uct_ep_create(&ep_params, &made));
  return made;
}

// ---- alive ----

typedef struct {
  uct_completion_t super;
  uct_ep_h ep;
  unsigned calls;
} destroyer_t;

static void destroy_ep(uct_completion_t* self) {
  destroyer_t* const destroyer = (destroyer_t*)self;
  destroyer->calls++;
  uct_ep_destroy(destroyer->ep);
}

// The endpoint leaves its operations, of which one is that whose completion is being called.
static void run_destroyed_by_completion(void) {
  const uct_iov_t iov = {source, 4096, source_memh, 0, 1};
  uint64_t result;
  for (unsigned round = 0; round < 2 * kRounds; round++) {
    destroyer_t destroyer = {.super = {.func = destroy_ep, .count = 1, .status = UCS_OK}, .ep = connect_again()};
    POST(UCS_INPROGRESS, round % 2 ? uct_ep_put_zcopy(destroyer.ep, &iov, 1, remote, key.rkey, &destroyer.super)
                                   : uct_ep_atomic64_fetch(destroyer.ep, UCT_ATOMIC_OP_ADD, 1, &result, remote,
                                                           key.rkey, &destroyer.super));
    while (destroyer.calls == 0) {
      progress();
    }
    CHECK(destroyer.calls == 1 && destroyer.super.count == 0, "a completion is called twice");
    UCX_OK(destroyer.super.status);
  }
  flush_and_meet();
}

// The peer's key of memory that it registers no longer.
static uct_rkey_bundle_t hear_stale_key(void) {
  unsigned char packed[256];
  uct_md_attr_t md_attr;
  uct_rkey_bundle_t stale;
  uct_mem_h memh;
  UCX_OK(uct_md_query(md, &md_attr));
  unsigned char* const memory = make_memory(&memh);
  UCX_OK(uct_md_mkey_pack(md, memh, packed));
  pair_tell(packed, md_attr.rkey_packed_size);
  pair_tell(&memory, sizeof memory);
  UCX_OK(uct_md_mem_dereg(md, memh));
  void* const its = pair_hear();
  UCX_OK(uct_rkey_unpack(component, its, &stale));
  free(its);
  free(memory);
  return stale;
}

// A put that nobody waits for fails its endpoint. What is sent over the next one, and over the one that was there
// before, arrives.
static void run_stale_key(void) {
  const uct_iov_t iov = {source, 4096, source_memh, 0, 1};
  uct_rkey_bundle_t stale = hear_stale_key();
  unsigned char** const address = pair_hear();
  const uint64_t at = (uintptr_t)*address;
  free(address);
  for (unsigned round = 0; round < kRounds; round++) {
    failed_ep = connect_again();
    told = 0;
    for (unsigned i = 0; i < kMessages; i++, sent++) {
      POST(UCS_OK, uct_ep_am_short(failed_ep, 0, sent, NULL, 0));
    }
    POST(UCS_OK, uct_ep_put_short(failed_ep, source, 8, at, stale.rkey));
    while (told == 0) {
      progress();
    }
    CHECK(told_status == UCS_ERR_REJECTED, "the handler hears %s", ucs_status_string(told_status));
    CHECK(uct_ep_put_short(failed_ep, source, 8, remote, key.rkey) == told_status, "an endpoint that failed puts");
    POST(UCS_INPROGRESS, uct_ep_put_zcopy(ep, &iov, 1, at, stale.rkey, expect_completion()));
    while (completed == 0) {
      progress();
    }
    CHECK(completion.status == UCS_ERR_REJECTED, "a completion hears %s", ucs_status_string(completion.status));
    POST(UCS_INPROGRESS, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey, expect_completion()));
    wait_completion();
    CHECK(told == 1, "the handler is told %u times", told);
    uct_ep_destroy(failed_ep);
  }
  uct_rkey_release(component, &stale);
  while (taken < sent) {
    progress();
  }
  flush_and_meet();
}

// ---- dead ----

static void await_failure(void) {
  while (told == 0) {
    progress();
  }
  CHECK(told_status == UCS_ERR_ENDPOINT_TIMEOUT, "the handler hears %s", ucs_status_string(told_status));
}

// Nothing of ours is under way when it dies: what it could take has arrived, and the rest waits here.
static void run_blocked(void) {
  ucs_status_t status;
  while ((status = uct_ep_am_short(ep, 0, sent, NULL, 0)) == UCS_OK) {
    sent++;
  }
  CHECK(status == UCS_ERR_NO_RESOURCE, "a message gives %s", ucs_status_string(status));
  flush();
  kill(pair_child, SIGKILL);
  await_failure();
}

static void run_getting(void) {
  unsigned char got[8];
  kill(pair_child, SIGKILL);
  ucs_status_t status;
  while ((status = uct_ep_get_short(ep, got, sizeof got, remote, key.rkey)) == UCS_OK) {
  }
  CHECK(status == UCS_ERR_ENDPOINT_TIMEOUT, "a short get from a dead peer gives %s", ucs_status_string(status));
  CHECK(told == 0, "a short get calls the handler");
  await_failure();
}

// The message waits here for room at the peer, which has done nothing yet.
static void run_unmet(void) {
  UCX_OK(uct_ep_am_short(ep, 0, 0, NULL, 0));
  CHECK(uct_ep_flush(ep, 0, expect_completion()) == UCS_INPROGRESS, "a flush does not wait for the first message");
  for (unsigned looks = 0; looks < 10000; looks++) {
    progress();
  }
  kill(pair_child, SIGKILL);
  await_failure();
  while (completed == 0) {
    progress();
  }
  CHECK(completion.status == UCS_ERR_ENDPOINT_TIMEOUT, "a flush says %s", ucs_status_string(completion.status));
}

// Of the peer: it has the message, and has not said so yet.
static ucs_status_t stop_at_message(void* arg, void* data, size_t length, unsigned flags) {
  (void)arg, (void)data, (void)length, (void)flags;
  raise(SIGSTOP);
  return UCS_OK;
}

static void fetch_and_stop(void) {
  UCX_OK(uct_iface_set_am_handler(iface, 0, stop_at_message, NULL, 0));
  for (;;) {
    progress();
  }
}

static void run_fetched(void) {
  UCX_OK(uct_ep_am_short(ep, 0, 0, NULL, 0));
  CHECK(waitpid(pair_child, NULL, WUNTRACED) == pair_child, "the peer does not stop");
  CHECK(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, expect_completion()) == UCS_INPROGRESS, "nothing is being fetched");
  for (unsigned looks = 0; looks < 10000; looks++) {
    progress();
  }
  CHECK(completed == 0, "a flush ends while a message is being fetched");
  kill(pair_child, SIGKILL);
  while (completed == 0) {
    progress();
  }
  CHECK(told == 0, "who has cancelled is told of a failure");
}

// What it posts stays under way, and holds up nothing that goes elsewhere, here to itself.
static void run_left(void) {
  static uct_ep_params_t self_params;
  unsigned char address[256], packed[256];
  uint64_t result = 0;
  uct_rkey_bundle_t self_key;
  uct_ep_h self;
  UCX_OK(uct_iface_get_address(iface, (uct_iface_addr_t*)address));
  self_params = ep_params;
  self_params.iface_addr = (const uct_iface_addr_t*)address;
  UCX_OK(uct_ep_create(&self_params, &self));
  UCX_OK(uct_md_mkey_pack(md, window_memh, packed));
  UCX_OK(uct_rkey_unpack(component, packed, &self_key));
  kill(pair_child, SIGSTOP);
  CHECK(waitpid(pair_child, NULL, WUNTRACED) == pair_child, "the peer does not stop");
  const uct_ep_h left = connect_again();
  POST(UCS_INPROGRESS,
       uct_ep_atomic64_fetch(left, UCT_ATOMIC_OP_ADD, 1, &result, remote, key.rkey, expect_completion()));
  POST(UCS_OK, uct_ep_am_short(left, 0, sent, NULL, 0));
  for (unsigned looks = 0; looks < 10000; looks++) {
    progress();
  }
  CHECK(uct_iface_flush(iface, 0, NULL) == UCS_INPROGRESS, "a stopped process answers");
  uct_ep_destroy(left);
  CHECK(completed == 1 && completion.status == UCS_ERR_CANCELED, "a completion hears %s",
        ucs_status_string(completion.status));
  while (uct_iface_flush(iface, 0, NULL) != UCS_OK) {
    progress();
  }
  for (unsigned round = 0; round < kRounds; round++) {
    POST(UCS_OK, uct_ep_put_short(self, &result, sizeof result, (uintptr_t)window, self_key.rkey));
    UCX_OK(uct_iface_fence(iface, 0));
    POST(UCS_INPROGRESS, uct_ep_atomic64_fetch(self, UCT_ATOMIC_OP_ADD, 1, &result, (uintptr_t)window, self_key.rkey,
                                               expect_completion()));
    wait_completion();
    result++;
  }
  CHECK(*(uint64_t*)window == kRounds, "%lu atomics", (unsigned long)*(uint64_t*)window);
  uct_ep_destroy(self);
  uct_rkey_release(component, &self_key);
  kill(pair_child, SIGKILL);
  await_failure();
}

static int end_closing(void) {
  uint64_t before, after;  // Which VCQ an interface has: its address begins with that.
  unsigned char address[256];
  if (pair_rank == 1) {
    fetch_and_stop();
  }
  UCX_OK(uct_iface_get_address(iface, (uct_iface_addr_t*)address));
  memcpy(&before, address, sizeof before);
  UCX_OK(uct_ep_am_short(ep, 0, 0, NULL, 0));
  CHECK(waitpid(pair_child, NULL, WUNTRACED) == pair_child, "the peer does not stop");
  uct_ep_destroy(ep);
  kill(pair_child, SIGKILL);
  CHECK(waitpid(pair_child, NULL, 0) == pair_child, "no second process to wait for");
  uct_iface_close(iface);
  open_iface("tni0", on_error);
  UCX_OK(uct_iface_get_address(iface, (uct_iface_addr_t*)address));
  memcpy(&after, address, sizeof after);
  CHECK(after == before, "an interface closes with operations that have not ended");
  CHECK(told == 0, "the handler of no endpoint is told");
  // The next one finds out for itself.
  ep_params.iface = iface;
  failed_ep = connect_again();
  UCX_OK(uct_ep_check(failed_ep, 0, NULL));
  await_failure();
  uct_ep_destroy(failed_ep);
  close_all();
  printf("%s: verified on 2\n", pair_program);
  return 0;
}

static int end_with_dead(void (*run)(void)) {
  // The first message waits until the peer has made room.
  const int is_first = run == run_unmet || run == run_fetched;
  for (; sent < kMessages && !is_first; sent++) {
    POST(UCS_OK, uct_ep_am_short(ep, 0, sent, NULL, 0));
  }
  if (!is_first) {
    flush_and_meet();
  }
  if (pair_rank == 1 && run == run_fetched) {
    fetch_and_stop();
  }
  if (pair_rank == 1) {
    pause();
  }
  failed_ep = ep;
  run();
  CHECK(told == (run != run_fetched), "the handler is told %u times", told);
  // It was told before this one was made, which finds out for itself.
  failed_ep = connect_again();
  told = 0;
  UCX_OK(uct_ep_check(failed_ep, 0, NULL));
  await_failure();
  CHECK(told == 1, "the handler is told %u times of a new endpoint", told);
  uct_ep_destroy(failed_ep);
  uct_ep_destroy(ep);
  close_all();
  CHECK(waitpid(pair_child, NULL, 0) == pair_child, "no second process to wait for");
  printf("%s: verified on 2\n", pair_program);
  return 0;
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "alive";
  pair_begin("uct_failure_check", 50);
  // A registration that is kept for later would still be there.
  setenv("UCX_UTOFU_RCACHE", "n", 1);
  open_component("tni0");
  open_iface("tni0", on_error);
  make_memories();
  UCX_OK(uct_iface_set_am_handler(iface, 0, on_message, NULL, 0));
  connect_to_peer();
  if (strcmp(what, "closing") == 0) {
    return end_closing();
  }
  if (strcmp(what, "alive") != 0) {
    return end_with_dead(strcmp(what, "blocked") == 0   ? run_blocked
                         : strcmp(what, "getting") == 0 ? run_getting
                         : strcmp(what, "fetched") == 0 ? run_fetched
                         : strcmp(what, "left") == 0    ? run_left
                                                        : run_unmet);
  }
  run_destroyed_by_completion();
  run_stale_key();
  uct_ep_destroy(ep);
  pair_meet(progress);
  close_all();
  return pair_end();
}
