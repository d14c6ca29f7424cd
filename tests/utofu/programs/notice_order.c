// The order of notices (guide 2.2.10): those of a VCQ for one remote VCQ come in the order of posting, local ones and
// remote ones, whatever is mixed: long and short puts, gets and ARMW. EDATA numbers the communications. Two ranks do it
// to each other at the same time.
// Usage: notice_order [ROUNDS]
#include "utofu_check.h"

enum { kLong = 2000000, kInFlight = 64 };

static unsigned char local[kLong], remote[kLong] __attribute__((aligned(8)));

// What is expected of one kind of notices.
struct sequence {
  uint64_t seen;
  uint64_t seed;
};

// The kind of communication number `n`.
static int kind_of(uint64_t seed, uint64_t n) { return (int)(check_mix(seed + n) % 5); }

static void check_next(struct sequence* sequence, const struct utofu_mrq_notice* notice, const char* side) {
  const int kind = kind_of(sequence->seed, sequence->seen);
  const int type = notice->notice_type & ~1;  // The local one of the two.
  const int expected = kind < 2 ? UTOFU_MRQ_TYPE_LCL_PUT : kind < 4 ? UTOFU_MRQ_TYPE_LCL_GET : UTOFU_MRQ_TYPE_LCL_ARMW;
  CHECK(notice->edata == sequence->seen % 256, "%s: notice of communication %lu, not %lu", side,
        (unsigned long)notice->edata, (unsigned long)sequence->seen % 256);
  CHECK(type == expected, "%s: notice of type %d, communication %lu is of type %d", side, notice->notice_type,
        (unsigned long)sequence->seen, expected);
  sequence->seen++;
}

static void poll_once(utofu_vcq_hdl_t vcq, struct sequence* own, struct sequence* peer) {
  struct utofu_mrq_notice notice;
  const int rc = utofu_poll_mrq(vcq, 0, &notice);
  CHECK(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_NOT_FOUND, "the MRQ says %d", rc);
  if (rc == UTOFU_SUCCESS) {
    const int is_local = notice.notice_type % 2 == 0;
    check_next(is_local ? own : peer, &notice, is_local ? "local" : "remote");
  }
}

static void post(utofu_vcq_hdl_t vcq, struct place to, utofu_stadd_t from, int kind, uint64_t number) {
  const unsigned long flags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  const size_t length = kind % 2 == 0 ? kLong : 8;
  const uint64_t edata = number % 256;
  if (kind < 2) {
    UTOFU_POST(vcq, utofu_put(vcq, to.vcq_id, from, to.stadd, length, edata, flags, NULL));
  } else if (kind < 4) {
    UTOFU_POST(vcq, utofu_get(vcq, to.vcq_id, from, to.stadd, length, edata, flags, NULL));
  } else {
    UTOFU_POST(vcq, utofu_armw8(vcq, to.vcq_id, UTOFU_ARMW_OP_ADD, 1, to.stadd, edata, flags, NULL));
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "notice_order", 60);
  const uint64_t count = (uint64_t)check_argument(argc, argv, 1, 300);
  utofu_vcq_hdl_t vcq;
  utofu_stadd_t local_stadd;
  struct place places[2];
  if (check_size != 2) {
    return check_skip("wants two ranks");
  }
  UTOFU_OK(utofu_create_vcq(first_tni(), 0, &vcq));
  UTOFU_OK(utofu_reg_mem(vcq, local, sizeof local, 0, &local_stadd));
  share_place(vcq, remote, sizeof remote, places);
  const struct place to = places[1 - check_rank];
  struct sequence own = {0, (uint64_t)check_rank << 32}, peer = {0, (uint64_t)(1 - check_rank) << 32};
  for (uint64_t i = 0; i < count; i++) {
    post(vcq, to, local_stadd, kind_of(own.seed, i), i);
    while (i + 1 - own.seen >= kInFlight) {
      poll_once(vcq, &own, &peer);
    }
  }
  while (own.seen < count || peer.seen < count) {
    poll_once(vcq, &own, &peer);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  check_queues_empty(vcq);
  UTOFU_OK(utofu_dereg_mem(vcq, local_stadd, 0));
  UTOFU_OK(utofu_dereg_mem(vcq, places[check_rank].stadd, 0));
  UTOFU_OK(utofu_free_vcq(vcq));
  return check_finish();
}
