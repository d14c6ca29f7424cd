// A game with ARMW, after 5.1.3 of the uTofu user's guide: all ranks but 0 increment a number of rank 0, and the one
// that finds it at the lucky value has won. Rank 0 calls nothing of uTofu while they do. Usage: armw_game
// [LUCKY_NUMBER]
//
// Corrected against the print: a comment is broken in two lines there, the second of which is no comment. Added: who
// has won is told to rank 0, every old value must be larger than the one before, and the number must be right at the
// end.
#include "utofu_check.h"

// What rank 0 registers.
struct table {
  uint64_t number;
  uint64_t winners;  // A bit for each rank.
};

// Makes one ARMW on a word of rank 0. @return what was there before
static uint64_t change(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t vcq_id, enum utofu_armw_op op, uint64_t operand,
                       utofu_stadd_t stadd) {
  UTOFU_POST(vcq_hdl, utofu_armw8(vcq_hdl, vcq_id, op, operand, stadd, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
  const struct utofu_mrq_notice notice = wait_mrq(vcq_hdl, UTOFU_MRQ_TYPE_LCL_ARMW);
  CHECK(notice.rmt_stadd == stadd, "the notice does not name the word");
  return notice.rmt_value;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "armw_game", 120);
  const uint64_t lucky_number = (uint64_t)check_argument(argc, argv, 1, 10000);
  struct table table = {1, 0};
  utofu_vcq_hdl_t vcq_hdl;
  utofu_vcq_id_t vcq_id;
  utofu_stadd_t stadd = 0;
  if (check_size < 2) {
    return check_skip("the game wants two ranks");
  }
  UTOFU_OK(utofu_create_vcq(first_tni(), 0, &vcq_hdl));
  UTOFU_OK(utofu_query_vcq_id(vcq_hdl, &vcq_id));
  if (check_rank == 0) {
    UTOFU_OK(utofu_reg_mem(vcq_hdl, &table, sizeof table, 0, &stadd));
  }
  MPI_Bcast(&vcq_id, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  MPI_Bcast(&stadd, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);

  if (check_rank != 0) {
    uint64_t before = 0, found;
    UTOFU_OK(utofu_set_vcq_id_path(&vcq_id, NULL));
    do {
      found = change(vcq_hdl, vcq_id, UTOFU_ARMW_OP_ADD, 1, stadd + offsetof(struct table, number));
      CHECK(found > before, "found %lu after %lu", (unsigned long)found, (unsigned long)before);
      before = found;
      if (found == lucky_number) {
        printf("The winner is rank %d!\n", check_rank);
        change(vcq_hdl, vcq_id, UTOFU_ARMW_OP_OR, UINT64_C(1) << check_rank, stadd + offsetof(struct table, winners));
      }
    } while (found < lucky_number);
  }
  MPI_Barrier(MPI_COMM_WORLD);

  if (check_rank == 0) {
    // Every player stops with the first value that is not below the lucky number.
    const uint64_t expected = lucky_number + (uint64_t)check_size - 1;
    CHECK(table.number == expected, "the number is %lu, not %lu", (unsigned long)table.number, (unsigned long)expected);
    CHECK(table.winners != 0 && (table.winners & (table.winners - 1)) == 0, "winners: %lx",
          (unsigned long)table.winners);
    UTOFU_OK(utofu_dereg_mem(vcq_hdl, stadd, 0));
  }
  check_queues_empty(vcq_hdl);
  UTOFU_OK(utofu_free_vcq(vcq_hdl));
  return check_finish();
}
