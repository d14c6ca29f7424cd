// Three processes, the layer UCT, the transport utofu: a sender is killed while its receiver is stopped, and the next
// one, which has its VCQ, sends at once. What the killed one has sent may arrive behind the doorbell of the next one,
// or not at all; what the next one sends arrives, as it was sent. With `keys` one is killed whose remote key another
// one uses still, when the next one has its VCQ: each operation ends with an error, and the memory of the next one
// stays as it is. Usage: uct_killed_check [keys]
#include <sys/mman.h>

#include "uct_entities.h"

enum { kRounds = 8, kTaken = 10, kEarlier = 12, kNext = 40, kOfEarlier = 1000000 };

typedef enum { kNothing, kFirstSent, kAllSent } step_t;

// What all three see.
static volatile struct {
  unsigned char address[64];
  int is_open;
  int goes_on;  // The killed sender may send the rest.
  step_t step;  // Of the sender.
  uint64_t taken, sum;
  unsigned char key[256];
  uint64_t at;  // Address of what the key is for.
  int is_used;  // The user of the key is done with this owner.
} * shared;

#define AWAIT(condition)   \
  do {                     \
    while (!(condition)) { \
      usleep(100);         \
    }                      \
  } while (0)

static void receive(void) {
  open_component("tni0");
  entity_t* const self = make_entity();
  memcpy((void*)shared->address, self->address, sizeof self->address);
  shared->is_open = 1;
  for (;;) {
    progress();
    shared->taken = self->taken;
    shared->sum = self->sum;
  }
}

static void send_messages(int is_next) {
  entity_t to;
  open_component("tni0");
  entity_t* const self = make_entity();
  memcpy(to.address, (const void*)shared->address, sizeof to.address);
  const uct_ep_h ep = add_ep(self, &to);
  const uint64_t before = shared->taken;
  const unsigned first = is_next ? 1 : kTaken;
  for (uint64_t i = 1; i <= first; i++) {
    UCX_OK(TRY(send_bcopy(ep, is_next ? i : kOfEarlier, 64)));
  }
  UNTIL(is_next || shared->taken == before + kTaken);
  shared->step = kFirstSent;
  AWAIT(is_next || shared->goes_on);
  for (uint64_t i = first + 1; i <= (is_next ? kNext : kTaken + kEarlier); i++) {
    UCX_OK(TRY(send_bcopy(ep, is_next ? i : kOfEarlier, 64 + 150 * i)));
  }
  if (is_next) {
    flush_ep(ep);
    CHECK(self->errors == 0, "%u errors", self->errors);
  }
  shared->step = kAllSent;
  AWAIT(0);
}

static void own_memory(int is_next) {
  open_component("tni0");
  entity_t* const self = make_entity();
  memset(self->memory, 7, kMemory);
  if (is_next) {
    CHECK(memcmp((const void*)shared->address, self->address, sizeof(uint64_t)) == 0, "another VCQ");
  } else {
    UCX_OK(uct_md_mkey_pack(md, self->memh, (void*)shared->key));
    shared->at = (uintptr_t)self->memory;
  }
  memcpy((void*)shared->address, self->address, sizeof self->address);
  shared->step = kAllSent;
  UNTIL(is_next && shared->is_used);
  for (size_t i = 0; i < kMemory; i++) {
    CHECK(self->memory[i] == 7, "byte %zu is %u", i, self->memory[i]);
  }
}

// @return how one operation ends; those of no completion by the error handler
static ucs_status_t use(entity_t* self, unsigned what, const entity_t* of, uct_rkey_t key) {
  const uct_ep_h ep = connect_ep(self, of);
  const uct_iov_t iov = {self->memory, kMemory, self->memh, 0, 1};
  const uint64_t value = 1;
  packed_t packed = {1000, 1};
  uint64_t old = 0;
  done_t done = expect(1);
  uct_completion_t* const end = &done.super;
  ssize_t status = UCS_OK;
  self->errors = 0;
  self->error = UCS_OK;
  switch (what) {
    case 0: status = TRY(uct_ep_put_short(ep, &value, sizeof value, shared->at, key)); break;
    case 1: status = TRY(uct_ep_put_bcopy(ep, pack, &packed, shared->at, key)); break;
    case 2: status = TRY(uct_ep_put_zcopy(ep, &iov, 1, shared->at, key, end)); break;
    case 3: status = TRY(uct_ep_get_zcopy(ep, &iov, 1, shared->at, key, end)); break;
    case 4: status = TRY(uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, shared->at, key)); break;
    case 5: status = TRY(uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_SWAP, 1, &old, shared->at, key, end)); break;
    default: status = TRY(uct_ep_atomic_cswap64(ep, 0x0707070707070707, 1, shared->at, key, &old, end));
  }
  const int has_end = status == UCS_INPROGRESS;
  if (has_end) {
    UNTIL(done.calls == 1);
  } else if (status >= 0) {
    UNTIL((status = uct_ep_flush(ep, 0, NULL)) != UCS_INPROGRESS && status != UCS_ERR_NO_RESOURCE);
  }
  uct_ep_destroy(ep);
  return has_end ? done.super.status : self->error;
}

static void use_key(int ignored) {
  enum { kOperations = 7 };
  entity_t of;
  uct_rkey_bundle_t key;
  (void)ignored;
  open_component("tni0");
  entity_t* const self = make_entity();
  shared->is_open = 1;
  AWAIT(shared->step == kAllSent);
  memcpy(of.address, (const void*)shared->address, sizeof of.address);
  UCX_OK(uct_rkey_unpack(component, (const void*)shared->key, &key));
  const uct_ep_h ep = add_ep(self, &of);
  const uint64_t seven = 0x0707070707070707;
  UCX_OK(TRY(uct_ep_put_short(ep, &seven, sizeof seven, shared->at, key.rkey)));
  flush_ep(ep);
  shared->step = kFirstSent;
  AWAIT(shared->step == kAllSent);
  memcpy(of.address, (const void*)shared->address, sizeof of.address);
  for (unsigned what = 0; what < kOperations; what++) {
    const ucs_status_t status = use(self, what, &of, key.rkey);
    CHECK(status == UCS_ERR_REJECTED, "operation %u: %s", what, ucs_status_string(status));
  }
  shared->is_used = 1;
}

static pid_t start(void (*run)(int), int argument) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(50);
    run(argument);
    _exit(0);
  }
  return child;
}

static void start_receiving(int ignored) {
  (void)ignored;
  receive();
}

static void end(pid_t child) {
  kill(child, SIGKILL);
  CHECK(waitpid(child, NULL, 0) == child, "no process to wait for");
}

static void end_well(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "a process ends with %d", status);
}

static void check_keys(void) {
  const pid_t user = start(use_key, 0);
  AWAIT(shared->is_open);
  const pid_t first = start(own_memory, 0);
  AWAIT(shared->step == kFirstSent);
  end(first);
  const pid_t next = start(own_memory, 1);
  end_well(user);
  end_well(next);
}

static void check_messages(void) {
  const pid_t receiver = start(start_receiving, 0);
  AWAIT(shared->is_open);
  for (uint64_t round = 1; round <= kRounds; round++) {
    shared->step = kNothing;
    shared->goes_on = 0;
    const pid_t killed = start(send_messages, 0);
    AWAIT(shared->step == kFirstSent);
    kill(receiver, SIGSTOP);
    CHECK(waitpid(receiver, NULL, WUNTRACED) == receiver, "the receiver does not stop");
    shared->goes_on = 1;
    AWAIT(shared->step == kAllSent);
    end(killed);
    shared->step = kNothing;
    const pid_t next = start(send_messages, 1);
    AWAIT(shared->step == kFirstSent);
    kill(receiver, SIGCONT);
    AWAIT(shared->step == kAllSent && shared->sum % kOfEarlier >= round * kNext * (kNext + 1) / 2);
    CHECK(shared->sum % kOfEarlier == round * kNext * (kNext + 1) / 2, "other messages than were sent");
    end(next);
  }
  end(receiver);
}

int main(int argc, char** argv) {
  pair_program = "uct_killed_check";
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK((void*)shared != MAP_FAILED, "no memory");
  const int is_keys = argc > 1 && strcmp(argv[1], "keys") == 0;
  is_keys ? check_keys() : check_messages();
  printf("uct_killed_check: verified on 3\n");
  return 0;
}
