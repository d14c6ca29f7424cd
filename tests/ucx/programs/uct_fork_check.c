// A process, the layer UCT, the transport utofu: children of a process with an interface that sleeps. They end, though
// the thread that looks for it is not theirs, and open interfaces of their own, for which a thread of theirs looks.
#include "uct_entities.h"

// Opens interfaces of its own, of which one sleeps until a message comes.
static void wake_in_child(void) {
  open_component("tni0");
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to);
  int fd;
  UCX_OK(TRY(send_bcopy(ep, 1, 64)));
  flush_ep(ep);
  UNTIL(to->taken == 1);
  UCX_OK(uct_iface_event_fd_get(to->iface, &fd));
  arm(to, UCT_EVENT_RECV);
  UCX_OK(send_bcopy(ep, 2, 64));
  CHECK(is_signaled(fd, 20000), "nothing wakes the child");
  UNTIL(to->taken == 2);
  close_entities();
  uct_md_close(md);
}

static void fork_child(void (*run)(void)) {
  const pid_t child = fork();
  int status;
  if (child == 0) {
    alarm(30);
    if (run != NULL) {
      run();
    }
    exit(0);  // With all that libraries do at the end.
  }
  CHECK(waitpid(child, &status, 0) == child, "no child");
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends with 0x%x", (unsigned)status);
}

int main(void) {
  int fd;
  pair_program = "uct_fork_check";
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  open_component("tni0");
  entity_t* const self = make_entity();
  UCX_OK(uct_iface_event_fd_get(self->iface, &fd));
  for (unsigned round = 0; round < 100; round++) {
    arm(self, UCT_EVENT_RECV);
    fork_child(NULL);
  }
  close_entities();
  uct_md_close(md);
  fork_child(wake_in_child);
  printf("%s: verified on 1\n", pair_program);
  return 0;
}
