// One process, the layer UCT, the transport utofu: interfaces that sleep in turns, until a message or the end of an
// operation wakes them. With UCX_UTOFU_WAKEUP=y.
#include "uct_entities.h"

int main(void) {
  pair_program = "uct_armed_check";
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  open_component("tni0");
  entity_t *const from = make_entity(), *const to = make_entity();
  const uct_ep_h ep = add_ep(from, to);
  int from_fd, to_fd;
  CHECK((to->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD) != 0, "nobody can wait");
  UCX_OK(uct_iface_event_fd_get(from->iface, &from_fd));
  UCX_OK(uct_iface_event_fd_get(to->iface, &to_fd));
  for (uint64_t round = 0; round < 200; round++) {
    arm(to, UCT_EVENT_RECV);
    // It looks all the same, and sleeps without arming itself once more.
    for (unsigned looks = 0; round % 20 == 0 && looks < 50000; looks++) {
      uct_worker_progress(to->worker);
    }
    CHECK(!is_signaled(to_fd, 0), "round %lu: it is woken for nothing", (unsigned long)round);
    ucs_status_t status;
    // Its sender does not sleep, and the receiver is not called but when it is woken.
    while ((status = send_bcopy(ep, round, 2000)) == UCS_ERR_NO_RESOURCE) {
      uct_worker_progress(from->worker);
    }
    UCX_OK(status);
    while (to->taken <= round) {
      while (!is_signaled(to_fd, 10)) {
        uct_worker_progress(from->worker);
      }
      uct_worker_progress(to->worker);
      if (to->taken <= round) {
        arm(to, UCT_EVENT_RECV);
      }
    }
    // The end of an operation wakes who has posted it.
    done_t done = expect(1);
    const uct_iov_t iov = {from->memory, 4096, from->memh, 0, 1};
    CHECK(TRY(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)to->memory, to->key.rkey, &done.super)) == UCS_INPROGRESS,
          "put");
    while (done.calls == 0) {
      if (uct_iface_event_arm(from->iface, UCT_EVENT_SEND_COMP) == UCS_OK) {
        CHECK(is_signaled(from_fd, 20000), "round %lu: an operation does not wake", (unsigned long)round);
      }
      uct_worker_progress(from->worker);
    }
  }
  flush_ep(ep);
  close_entities();
  uct_md_close(md);
  printf("%s: verified on 1\n", pair_program);
  return 0;
}
