// Processes that look for each other: each puts a card under a reserved STag of a VCQ with a known component id, and
// reads the cards behind all CQs of the node. Where nobody is, the MRQ says that there is no peer. Then they give each
// other numbers, and half of them go away: the others must find that they are gone, and those that are left must not be
// hurt. MPI is used for barriers only. Usage: vcq_search
#include "utofu_check.h"

enum { kComponent = 3, kStag = 0, kMaxRanks = 8 };

// What a process shows; 256 bytes at a multiple of 256.
struct card {
  uint64_t magic;
  uint64_t rank;
  uint64_t numbers[kMaxRanks];  // Written by each peer.
} __attribute__((aligned(256)));

static struct card card, read_card;
static utofu_vcq_hdl_t vcq;
static utofu_stadd_t read_stadd;

static uint64_t magic_of(uint64_t rank) { return check_mix(rank + 12345); }

// Reads the card behind an id. @return what the MRQ says
static int read_at(utofu_vcq_id_t id, uint64_t edata) {
  struct utofu_mrq_notice notice;
  utofu_stadd_t stadd;
  int rc;
  UTOFU_OK(utofu_query_stadd(id, kStag, &stadd));
  UTOFU_POST(vcq,
             utofu_get(vcq, id, read_stadd, stadd, sizeof card, edata, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  do {
    rc = utofu_poll_mrq(vcq, 0, &notice);
  } while (rc == UTOFU_ERR_NOT_FOUND);
  CHECK(notice.notice_type == UTOFU_MRQ_TYPE_LCL_GET && notice.edata == edata, "a notice of another operation");
  return rc;
}

// Looks behind all CQs. @return how many cards there are; `ids` has the id of each rank, or 0
static int search(utofu_tni_id_t tni, utofu_vcq_id_t ids[kMaxRanks]) {
  uint8_t coordinates[6];
  utofu_vcq_id_t id;
  int found = 0;
  memset(ids, 0, kMaxRanks * sizeof *ids);
  UTOFU_OK(utofu_query_my_coords(coordinates));
  for (utofu_cq_id_t cq = 0; utofu_construct_vcq_id(coordinates, tni, cq, kComponent, &id) == UTOFU_SUCCESS; cq++) {
    const int rc = read_at(id, cq);
    if (rc == UTOFU_ERR_MRQ_PEER) {
      continue;
    }
    CHECK(rc == UTOFU_SUCCESS, "CQ %d: %d", cq, rc);
    CHECK(read_card.rank < (uint64_t)check_size && read_card.magic == magic_of(read_card.rank), "CQ %d: no card", cq);
    CHECK(ids[read_card.rank] == 0, "two CQs show rank %lu", (unsigned long)read_card.rank);
    ids[read_card.rank] = id;
    found++;
  }
  return found;
}

static void send_number(utofu_vcq_id_t id, uint64_t number) {
  utofu_stadd_t stadd;
  UTOFU_OK(utofu_query_stadd(id, kStag, &stadd));
  stadd += offsetof(struct card, numbers) + (utofu_stadd_t)check_rank * sizeof(uint64_t);
  UTOFU_POST(
      vcq, utofu_put_piggyback8(vcq, id, number, stadd, sizeof number, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  wait_mrq(vcq, UTOFU_MRQ_TYPE_LCL_PUT);
}

static void leave(utofu_stadd_t card_stadd) {
  check_queues_empty(vcq);
  UTOFU_OK(utofu_dereg_mem(vcq, read_stadd, 0));
  UTOFU_OK(utofu_dereg_mem(vcq, card_stadd, 0));
  UTOFU_OK(utofu_free_vcq(vcq));
}

// Ranks that are multiples of `step` exchange numbers with each other.
static void exchange(const utofu_vcq_id_t* ids, int step, uint64_t base) {
  for (int rank = 0; rank < check_size; rank += step) {
    send_number(ids[rank], base + (uint64_t)check_rank * 100 + (uint64_t)rank);
  }
}

static void check_numbers(int step, uint64_t base) {
  for (int rank = 0; rank < check_size; rank += step) {
    const uint64_t expected = base + (uint64_t)rank * 100 + (uint64_t)check_rank;
    CHECK(card.numbers[rank] == expected, "rank %d has sent %lu", rank, (unsigned long)card.numbers[rank]);
  }
}

int main(int argc, char** argv) {
  utofu_vcq_id_t ids[kMaxRanks];
  utofu_stadd_t card_stadd;
  check_begin(&argc, &argv, "vcq_search", 60);
  const utofu_tni_id_t tni = first_tni();
  if (check_size > kMaxRanks) {
    return check_skip("at most 8 ranks");
  }
  card.magic = magic_of((uint64_t)check_rank);
  card.rank = (uint64_t)check_rank;
  UTOFU_OK(utofu_create_vcq_with_cmp_id(tni, kComponent, 0, &vcq));
  UTOFU_OK(utofu_reg_mem_with_stag(vcq, &card, sizeof card, kStag, 0, &card_stadd));
  UTOFU_OK(utofu_reg_mem(vcq, &read_card, sizeof read_card, 0, &read_stadd));
  MPI_Barrier(MPI_COMM_WORLD);
  const int found = search(tni, ids);
  CHECK(found == check_size, "%d cards", found);
  exchange(ids, 1, 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  check_numbers(1, 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank % 2 == 1) {
    leave(card_stadd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank % 2 == 0) {
    const int rest = (check_size + 1) / 2, found_again = search(tni, ids);
    CHECK(found_again == rest, "%d cards after some have left, not %d", found_again, rest);
    exchange(ids, 2, 5000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank % 2 == 0) {
    check_numbers(2, 5000);
    leave(card_stadd);
  }
  return check_finish();
}
