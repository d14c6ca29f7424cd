// One process, the layer UCT, the transport utofu: what interfaces tell each other comes late, or to somebody else.
//   counts    of handled messages that are taken out of their order: nobody sends more than there are slots
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

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"counts", run_counts}};
  const char* const name = argc > 1 ? argv[1] : "counts";
  pair_program = "uct_strangers_check";
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  setenv("UCX_UTOFU_SLOTS", "16", 1);
  open_component("tni0");
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(cases[i].name, name) == 0) {
      cases[i].run();
      uct_md_close(md);
      printf("%s: verified on 1\n", pair_program);
      return 0;
    }
  }
  CHECK(0, "there is no case %s", name);
}
