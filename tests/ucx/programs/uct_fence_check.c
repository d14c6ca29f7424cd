// Two processes, the layer UCT, the transport utofu: a fence keeps what follows it behind messages, also where it goes
// to another VCQ than they do. The receiver has two interfaces, of which the second takes the messages; a key of its
// memory names the VCQ of the first. While the receiver is stopped, nothing that follows a fence leaves; whoever sees
// its data finds the message. Usage: uct_fence_check [ROUNDS]
#include <sched.h>

#include "uct_pair.h"

enum { kPut, kPutOverOther, kAtomic, kGet, kKinds };

static uint64_t taken;

static ucs_status_t on_message(void* arg, void* data, size_t length, unsigned flags) {
  (void)arg, (void)data, (void)length, (void)flags;
  taken++;
  return UCS_OK;
}

static size_t pack_long(void* to, void* arg) {
  memset(to, *(unsigned char*)arg, 4000);
  return 4000;
}

static void send_message(uint64_t round) {
  if (round % 2 == 0) {
    POST(UCS_OK, uct_ep_am_short(ep, 0, round, NULL, 0));
  } else {
    POST(4000, uct_ep_am_bcopy(ep, 0, pack_long, &round, 0));
  }
}

// Something behind a fence, which raises the first word of the receiver's memory, but for a get.
static ucs_status_t follow(unsigned kind, uct_ep_h other, uint64_t* word) {
  switch (kind) {
    case kPut: return uct_ep_put_short(ep, word, sizeof *word, remote, key.rkey);
    case kPutOverOther: return uct_ep_put_short(other, word, sizeof *word, remote, key.rkey);
    case kAtomic: return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, remote, key.rkey);
    default: {
      const uct_iov_t iov = {source, sizeof *word, source_memh, 0, 1};
      return uct_ep_get_zcopy(ep, &iov, 1, remote, key.rkey, expect_completion());
    }
  }
}

static void send_round(unsigned kind, uct_ep_h other, uint64_t round) {
  kill(pair_child, SIGSTOP);
  CHECK(waitpid(pair_child, NULL, WUNTRACED) == pair_child, "the receiver does not stop");
  send_message(round);
  UCX_OK(kind == kPutOverOther ? uct_iface_fence(iface, 0) : uct_ep_fence(ep, 0));
  for (unsigned looks = 0; looks < 1000; looks++) {
    const ucs_status_t status = follow(kind, other, &round);
    CHECK(status == UCS_ERR_NO_RESOURCE, "kind %u leaves behind a fence: %s", kind, ucs_status_string(status));
    progress();
  }
  kill(pair_child, SIGCONT);
  POST(kind == kGet ? UCS_INPROGRESS : UCS_OK, follow(kind, other, &round));
  if (kind == kGet) {
    wait_completion();
    POST(UCS_OK, uct_ep_put_short(ep, &round, sizeof round, remote, key.rkey));
  }
}

// Does not look for messages while it waits for the word.
static void await_round(uint64_t round, uint64_t sent) {
  while (__atomic_load_n((uint64_t*)window, __ATOMIC_ACQUIRE) < round) {
    sched_yield();
  }
  for (unsigned looks = 0; looks < 8; looks++) {
    progress();
  }
  CHECK(taken == sent, "what follows a fence overtakes message %lu", (unsigned long)sent);
}

// The first message takes its time.
static void greet(void) {
  if (pair_rank == 0) {
    send_message(0);
    flush();
  }
  while (pair_rank == 1 && taken == 0) {
    progress();
  }
}

static void play(uct_ep_h other, uint64_t rounds) {
  uint64_t sent = 1;
  greet();
  for (unsigned kind = 0; kind < kKinds; kind++) {
    *(uint64_t*)window = 0;
    flush_and_meet();
    for (uint64_t round = 1; round <= rounds; round++) {
      if (pair_rank == 0) {
        send_round(kind, other, round);
      } else {
        await_round(round, ++sent);
      }
      pair_meet(progress);
    }
  }
}

int main(int argc, char** argv) {
  uct_ep_h other;
  pair_begin("uct_fence_check", 50);
  open_component("tni0");
  open_iface("tni0", NULL);
  const uct_iface_h first = iface;
  const uct_worker_h first_worker = worker;
  ucs_async_context_t* const first_async = async;
  open_iface("tni0", NULL);
  make_memories();
  UCX_OK(uct_iface_set_am_handler(iface, 0, on_message, NULL, 0));
  connect_to_peer();
  UCX_OK(uct_ep_create(&ep_params, &other));
  play(other, argc > 1 ? (uint64_t)atoi(argv[1]) : 50);
  flush_and_meet();
  uct_ep_destroy(other);
  uct_ep_destroy(ep);
  pair_meet(progress);
  uct_iface_close(first);
  uct_worker_destroy(first_worker);
  ucs_async_context_destroy(first_async);
  close_all();
  return pair_end();
}
