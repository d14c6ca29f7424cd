// Ping-pong by Put, after 5.1.1 of the uTofu user's guide: two processes put 8 bytes to each other in turn. In the
// first half arrival is seen by remote MRQ notices, in the second by polling the memory that is written. Usage:
// put_pingpong [ROUNDS]
//
// Corrected against the print:
// - tni_ids is a pointer, and a variable for the chosen TNI is missing there (it declares `utofu_tni_id_t tni_ids`);
// - its comments call the largest EDATA 8 bytes; it is max_edata_size bytes, here 1, and so repeats after 256 rounds;
// - it takes for granted that the local notice of a put comes before the remote notice of the put that answers it; the
//   guide orders notices only among communications of one VCQ (2.2.10), so here they may come either way round;
// - `send` and `recv` are names of POSIX functions; the braces behind its `send` do not balance;
// - assert() does nothing with NDEBUG, and return values are not looked at; here everything is checked.
#include "utofu_check.h"

struct peer {
  utofu_vcq_hdl_t vcq_hdl;
  utofu_vcq_id_t rmt_vcq_id;
  utofu_stadd_t lcl_send_stadd;
  utofu_stadd_t rmt_recv_stadd;
};

// Waits for a notice of `type`; one of the other type that comes before it is kept for the next wait.
static struct utofu_mrq_notice wait_either(utofu_vcq_hdl_t vcq_hdl, int type) {
  static struct utofu_mrq_notice kept;
  static int has_kept;
  if (has_kept && kept.notice_type == type) {
    has_kept = 0;
    return kept;
  }
  for (;;) {
    struct utofu_mrq_notice notice;
    const int rc = utofu_poll_mrq(vcq_hdl, 0, &notice);
    if (rc == UTOFU_ERR_NOT_FOUND) {
      continue;
    }
    CHECK(rc == UTOFU_SUCCESS, "the MRQ says %d", rc);
    if (notice.notice_type == type) {
      return notice;
    }
    CHECK(!has_kept, "a second notice of type %d", notice.notice_type);
    kept = notice;
    has_kept = 1;
  }
}

// Sends the registered word and waits for the notices that were asked for.
static void send_word(const struct peer* peer, size_t length, uint64_t edata, uintptr_t cbvalue, unsigned long flags) {
  UTOFU_OK(utofu_put(peer->vcq_hdl, peer->rmt_vcq_id, peer->lcl_send_stadd, peer->rmt_recv_stadd, length, edata, flags,
                     (void*)cbvalue));
  if (flags & UTOFU_ONESIDED_FLAG_TCQ_NOTICE) {
    const uintptr_t cbdata = (uintptr_t)wait_tcq(peer->vcq_hdl);
    CHECK(cbdata == cbvalue, "callback data %lu, not %lu", (unsigned long)cbdata, (unsigned long)cbvalue);
  }
  if (flags & UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE) {
    const struct utofu_mrq_notice notice = wait_either(peer->vcq_hdl, UTOFU_MRQ_TYPE_LCL_PUT);
    CHECK(notice.edata == edata, "edata %lu, not %lu", (unsigned long)notice.edata, (unsigned long)edata);
    CHECK(notice.rmt_stadd == peer->rmt_recv_stadd + length, "the notice does not name the end of the data");
  }
}

// Waits until the word of the peer is here.
static void receive_word(const struct peer* peer, volatile uint64_t* recv_buffer, uint64_t expected, uint64_t edata,
                         unsigned long flags) {
  if (flags & UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE) {
    const struct utofu_mrq_notice notice = wait_either(peer->vcq_hdl, UTOFU_MRQ_TYPE_RMT_PUT);
    CHECK(notice.edata == edata, "edata %lu, not %lu", (unsigned long)notice.edata, (unsigned long)edata);
    CHECK(*recv_buffer == expected, "received %lu, not %lu", (unsigned long)*recv_buffer, (unsigned long)expected);
  } else {
    while (*recv_buffer != expected) {
    }
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "put_pingpong", 60);
  const long rounds = check_argument(argc, argv, 1, 100);
  const size_t length = sizeof(uint64_t);
  uint64_t send_buffer = 0;
  volatile uint64_t recv_buffer = UINT64_MAX;
  utofu_tni_id_t tni_id, *tni_ids;
  size_t num_tnis;
  utofu_vcq_id_t lcl_vcq_id;
  utofu_stadd_t lcl_recv_stadd;
  struct utofu_onesided_caps* caps;
  struct peer peer;
  if (check_size != 2) {
    return check_skip("a ping-pong wants two ranks");
  }
  const int rmt_rank = check_rank == 0 ? 1 : 0;

  UTOFU_OK(utofu_get_onesided_tnis(&tni_ids, &num_tnis));
  CHECK(num_tnis > 0, "no TNI");
  tni_id = tni_ids[0];
  free(tni_ids);
  UTOFU_OK(utofu_query_onesided_caps(tni_id, &caps));
  UTOFU_OK(utofu_create_vcq(tni_id, 0, &peer.vcq_hdl));
  UTOFU_OK(utofu_query_vcq_id(peer.vcq_hdl, &lcl_vcq_id));
  UTOFU_OK(utofu_reg_mem(peer.vcq_hdl, &send_buffer, length, 0, &peer.lcl_send_stadd));
  UTOFU_OK(utofu_reg_mem(peer.vcq_hdl, (void*)&recv_buffer, length, 0, &lcl_recv_stadd));

  MPI_Sendrecv(&lcl_vcq_id, 1, MPI_UINT64_T, rmt_rank, 0, &peer.rmt_vcq_id, 1, MPI_UINT64_T, rmt_rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&lcl_recv_stadd, 1, MPI_UINT64_T, rmt_rank, 0, &peer.rmt_recv_stadd, 1, MPI_UINT64_T, rmt_rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  UTOFU_OK(utofu_set_vcq_id_path(&peer.rmt_vcq_id, NULL));

  const unsigned long ways[] = {
      UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE,
      UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE};
  for (int way = 0; way < 2; way++) {
    const unsigned long flags = ways[way];
    recv_buffer = UINT64_MAX;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < rounds; i++) {
      const uint64_t edata = (uint64_t)i % (1UL << (8 * caps->max_edata_size));
      const uint64_t expected = (uint64_t)i;
      send_buffer = expected;
      if (check_rank == 0) {
        send_word(&peer, length, edata, (uintptr_t)i, flags);
        receive_word(&peer, &recv_buffer, expected, edata, flags);
        recv_buffer = UINT64_MAX;
      } else {
        receive_word(&peer, &recv_buffer, expected, edata, flags);
        recv_buffer = UINT64_MAX;
        send_word(&peer, length, edata, (uintptr_t)i, flags);
      }
    }
  }
  check_queues_empty(peer.vcq_hdl);

  UTOFU_OK(utofu_dereg_mem(peer.vcq_hdl, peer.lcl_send_stadd, 0));
  UTOFU_OK(utofu_dereg_mem(peer.vcq_hdl, lcl_recv_stadd, 0));
  UTOFU_OK(utofu_free_vcq(peer.vcq_hdl));
  return check_finish();
}
