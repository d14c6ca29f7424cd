// What the uTofu programs in this directory share, on top of check.h of the MPI programs: calls that must succeed, and
// polls that wait. MPI gives them their ranks, carries ids and STADDs to the others, and makes barriers; data go by
// uTofu.
#ifndef PORTOFU_TESTS_UTOFU_CHECK_H
#define PORTOFU_TESTS_UTOFU_CHECK_H

#include <utofu.h>

#include "check.h"

#define UTOFU_OK(call)                                                                         \
  do {                                                                                         \
    const int utofu_ok_rc = (call);                                                            \
    CHECK(utofu_ok_rc == UTOFU_SUCCESS, "%s gives %d, not UTOFU_SUCCESS", #call, utofu_ok_rc); \
  } while (0)

// Posts once more as long as the queues of `vcq` are full; polling the TCQ is what makes room. Only for descriptors
// without a TCQ notice, because notices that are found meanwhile are dropped.
#define UTOFU_POST(vcq, call)                                                                      \
  do {                                                                                             \
    int utofu_post_rc;                                                                             \
    while ((utofu_post_rc = (call)) == UTOFU_ERR_BUSY) {                                           \
      void* utofu_post_cbdata;                                                                     \
      const int utofu_poll_rc = utofu_poll_tcq((vcq), 0, &utofu_post_cbdata);                      \
      CHECK(utofu_poll_rc == UTOFU_SUCCESS || utofu_poll_rc == UTOFU_ERR_NOT_FOUND,                \
            "the TCQ says %d while "                                                               \
            "there is no room for %s",                                                             \
            utofu_poll_rc, #call);                                                                 \
    }                                                                                              \
    CHECK(utofu_post_rc == UTOFU_SUCCESS, "%s gives %d, not UTOFU_SUCCESS", #call, utofu_post_rc); \
  } while (0)

// A VCQ and memory of it, as the other processes need to know them.
struct place {
  utofu_vcq_id_t vcq_id;
  utofu_stadd_t stadd;
};

// Waits for the next TCQ notice and gives its callback data.
static inline void* wait_tcq(utofu_vcq_hdl_t vcq) {
  void* cbdata = NULL;
  int rc;
  do {
    rc = utofu_poll_tcq(vcq, 0, &cbdata);
  } while (rc == UTOFU_ERR_NOT_FOUND);
  CHECK(rc == UTOFU_SUCCESS, "the TCQ says %d", rc);
  return cbdata;
}

// Waits for the next MRQ notice, which must be of `type`.
static inline struct utofu_mrq_notice wait_mrq(utofu_vcq_hdl_t vcq, int type) {
  struct utofu_mrq_notice notice;
  int rc;
  do {
    rc = utofu_poll_mrq(vcq, 0, &notice);
  } while (rc == UTOFU_ERR_NOT_FOUND);
  CHECK(rc == UTOFU_SUCCESS, "the MRQ says %d", rc);
  CHECK(notice.notice_type == type, "a notice of type %d, not %d", notice.notice_type, type);
  return notice;
}

// At the end nobody may have sent what was not asked for.
static inline void check_queues_empty(utofu_vcq_hdl_t vcq) {
  struct utofu_mrq_notice notice;
  void* cbdata;
  int rc = utofu_poll_tcq(vcq, 0, &cbdata);
  CHECK(rc == UTOFU_ERR_NOT_FOUND, "at the end the TCQ says %d", rc);
  rc = utofu_poll_mrq(vcq, 0, &notice);
  CHECK(rc == UTOFU_ERR_NOT_FOUND, "at the end the MRQ says %d, type %d", rc, notice.notice_type);
}

// The TNIs for one-sided communication; the caller frees them.
static inline utofu_tni_id_t* all_tnis(size_t* count) {
  utofu_tni_id_t* tnis = NULL;
  UTOFU_OK(utofu_get_onesided_tnis(&tnis, count));
  CHECK(*count > 0, "no TNI for one-sided communication");
  return tnis;
}

static inline utofu_tni_id_t first_tni(void) {
  size_t count = 0;
  utofu_tni_id_t* tnis = all_tnis(&count);
  const utofu_tni_id_t first = tnis[0];
  free(tnis);
  return first;
}

// Registers memory with a VCQ, and tells everybody about both: `places` has an entry for every rank.
static inline void share_place(utofu_vcq_hdl_t vcq, void* memory, size_t bytes, struct place* places) {
  struct place mine;
  UTOFU_OK(utofu_query_vcq_id(vcq, &mine.vcq_id));
  UTOFU_OK(utofu_reg_mem(vcq, memory, bytes, 0, &mine.stadd));
  MPI_Allgather(&mine, 2, MPI_UINT64_T, places, 2, MPI_UINT64_T, MPI_COMM_WORLD);
}

// Spins on memory that other processes write, without a call of uTofu or of the system.
static inline void spin_until(const uint64_t* word, uint64_t value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
  }
}

#endif
