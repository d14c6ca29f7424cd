// Three processes, the layer UCT, the transport utofu: a sender is killed while its receiver is stopped, and the next
// one, which has its VCQ, sends at once. What the killed one has sent may arrive behind the doorbell of the next one,
// or not at all; what the next one sends arrives, as it was sent. Usage: uct_killed_check
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

static pid_t start(void (*run)(int), int argument) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(50);
    run(argument);
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

int main(void) {
  pair_program = "uct_killed_check";
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK((void*)shared != MAP_FAILED, "no memory");
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
  printf("uct_killed_check: verified on 3\n");
  return 0;
}
