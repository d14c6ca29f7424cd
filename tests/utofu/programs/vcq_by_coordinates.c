// Processes that exchange nothing: each computes the VCQ ids of all others from coordinates, TNI, CQ and component id,
// and their STADDs from a reserved STag. MPI gives ranks and makes barriers. The CQs of a node are divided evenly among
// its local ranks, as on Fugaku; all ranks are on one node here. All TNIs are used. Usage: vcq_by_coordinates
#include "utofu_check.h"

enum { kComponent = 5, kStag = 7, kMaxRanks = 8, kMaxTnis = 16, kBytes = 1024, kTofuCqs = 12 };

// What a VCQ registers: a row for each peer, and a counter. A multiple of 256 bytes at a multiple of 256.
struct memory {
  unsigned char rows[kMaxRanks][kBytes];
  uint64_t count;
} __attribute__((aligned(256)));

static struct memory memory[kMaxTnis];
static unsigned char row[kBytes];

static uint64_t seed_of(int from, int to, size_t tni) { return ((uint64_t)from * 64 + (uint64_t)to) * 64 + tni; }

static utofu_cq_id_t cq_of(int rank) { return (utofu_cq_id_t)(kTofuCqs / check_size * rank); }

static utofu_vcq_id_t compute_id(int rank, utofu_tni_id_t tni) {
  uint8_t coordinates[6];
  utofu_vcq_id_t id;
  UTOFU_OK(utofu_query_my_coords(coordinates));
  UTOFU_OK(utofu_construct_vcq_id(coordinates, tni, cq_of(rank), kComponent, &id));
  return id;
}

static void check_id(utofu_vcq_id_t id, int rank, utofu_tni_id_t expected_tni) {
  uint8_t coordinates[6], own[6];
  utofu_tni_id_t tni;
  utofu_cq_id_t cq;
  uint16_t extra;
  UTOFU_OK(utofu_query_my_coords(own));
  UTOFU_OK(utofu_query_vcq_info(id, coordinates, &tni, &cq, &extra));
  CHECK(memcmp(coordinates, own, sizeof own) == 0 && tni == expected_tni && cq == cq_of(rank),
        "TNI %d and CQ %d in the id", tni, cq);
}

// Writes a row at every peer, on every TNI, and counts there.
static void write_rows(const utofu_vcq_hdl_t* vcq, const utofu_stadd_t* row_stadd, const utofu_tni_id_t* tnis,
                       size_t tni_count) {
  for (size_t t = 0; t < tni_count; t++) {
    for (int rank = 0; rank < check_size; rank++) {
      const utofu_vcq_id_t peer = compute_id(rank, tnis[t]);
      utofu_stadd_t stadd;
      UTOFU_OK(utofu_query_stadd(peer, kStag, &stadd));
      check_fill(row, kBytes, seed_of(check_rank, rank, t));
      UTOFU_POST(vcq[t], utofu_put(vcq[t], peer, row_stadd[t], stadd + (utofu_stadd_t)check_rank * kBytes, kBytes, 0,
                                   UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
      CHECK(wait_mrq(vcq[t], UTOFU_MRQ_TYPE_LCL_PUT).vcq_id == peer, "the notice names another VCQ");
      UTOFU_POST(vcq[t], utofu_armw8(vcq[t], peer, UTOFU_ARMW_OP_ADD, 1, stadd + offsetof(struct memory, count), 0,
                                     UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
      wait_mrq(vcq[t], UTOFU_MRQ_TYPE_LCL_ARMW);
    }
  }
}

// Looks at the own rows, and reads at every peer what the one behind it has written there.
static void check_rows(const utofu_vcq_hdl_t* vcq, const utofu_stadd_t* row_stadd, const utofu_tni_id_t* tnis,
                       size_t tni_count) {
  for (size_t t = 0; t < tni_count; t++) {
    CHECK(memory[t].count == (uint64_t)check_size, "%lu peers have counted", (unsigned long)memory[t].count);
    for (int rank = 0; rank < check_size; rank++) {
      const int writer = (rank + 1) % check_size;
      const utofu_vcq_id_t peer = compute_id(rank, tnis[t]);
      utofu_stadd_t stadd;
      CHECK_CONTENT(memory[t].rows[rank], kBytes, seed_of(rank, check_rank, t), "the row of rank %d", rank);
      UTOFU_OK(utofu_query_stadd(peer, kStag, &stadd));
      UTOFU_POST(vcq[t], utofu_get(vcq[t], peer, row_stadd[t], stadd + (utofu_stadd_t)writer * kBytes, kBytes, 0,
                                   UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
      wait_mrq(vcq[t], UTOFU_MRQ_TYPE_LCL_GET);
      CHECK_CONTENT(row, kBytes, seed_of(writer, rank, t), "read at rank %d", rank);
    }
  }
}

int main(int argc, char** argv) {
  size_t tni_count;
  utofu_vcq_hdl_t vcq[kMaxTnis];
  utofu_stadd_t stadd[kMaxTnis], row_stadd[kMaxTnis];
  check_begin(&argc, &argv, "vcq_by_coordinates", 60);
  utofu_tni_id_t* const tnis = all_tnis(&tni_count);
  if (check_size > kMaxRanks || tni_count > kMaxTnis) {
    return check_skip("at most 8 ranks and 16 TNIs");
  }
  for (size_t t = 0; t < tni_count; t++) {
    utofu_vcq_id_t id;
    utofu_stadd_t computed;
    UTOFU_OK(utofu_create_vcq_with_cmp_id(tnis[t], kComponent, 0, &vcq[t]));
    UTOFU_OK(utofu_query_vcq_id(vcq[t], &id));
    CHECK(id == compute_id(check_rank, tnis[t]), "the id is %lx, not %lx", (unsigned long)id,
          (unsigned long)compute_id(check_rank, tnis[t]));
    check_id(id, check_rank, tnis[t]);
    UTOFU_OK(utofu_reg_mem_with_stag(vcq[t], &memory[t], sizeof memory[t], kStag, 0, &stadd[t]));
    UTOFU_OK(utofu_query_stadd(id, kStag, &computed));
    CHECK(computed == stadd[t], "the STADD is not the computed one");
    UTOFU_OK(utofu_reg_mem(vcq[t], row, sizeof row, 0, &row_stadd[t]));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  write_rows(vcq, row_stadd, tnis, tni_count);
  MPI_Barrier(MPI_COMM_WORLD);
  check_rows(vcq, row_stadd, tnis, tni_count);
  MPI_Barrier(MPI_COMM_WORLD);
  for (size_t t = 0; t < tni_count; t++) {
    check_queues_empty(vcq[t]);
    UTOFU_OK(utofu_dereg_mem(vcq[t], stadd[t], 0));
    UTOFU_OK(utofu_dereg_mem(vcq[t], row_stadd[t], 0));
    UTOFU_OK(utofu_free_vcq(vcq[t]));
  }
  free(tnis);
  return check_finish();
}
