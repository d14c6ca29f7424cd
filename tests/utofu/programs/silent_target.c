// A target that calls nothing: each rank in turn spins on words of its own memory, without a call of uTofu or of the
// system, while all others put, add and draw numbers there. More processes than cores make it worse. The target looks
// at the data only when the last word says that all is there. Usage: silent_target [ROUNDS]
#include "utofu_check.h"

enum { kMaxRanks = 16, kLong = 50000, kPieces = 20, kPieceBytes = 97 };

// What a rank registers. Words that are spun on stand alone.
struct memory {
  uint64_t finished __attribute__((aligned(256)));  // Added by each peer, by its last operation.
  uint64_t sum __attribute__((aligned(256)));
  uint32_t small_sum;
  uint64_t drawn;
  unsigned char pieces[kMaxRanks][kPieces * kPieceBytes];
  unsigned char large[kMaxRanks][kLong];
  uint64_t flags[kMaxRanks] __attribute__((aligned(256)));  // Set by each peer behind its data.
};

static struct memory memory;
static unsigned char source[kLong];

static uint64_t seed_of(long round, int from, int target, int kind) {
  return (((uint64_t)round * kMaxRanks + (uint64_t)from) * kMaxRanks + (uint64_t)target) * 2 + (uint64_t)kind;
}

static utofu_stadd_t at(struct place target, const void* field) {
  return target.stadd + (utofu_stadd_t)((const char*)field - (const char*)&memory);
}

// Everything that a peer does to the target; the draws of one peer must rise.
static void attack(utofu_vcq_hdl_t vcq, utofu_stadd_t source_stadd, struct place target, long round, int target_rank) {
  const unsigned long local = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  uint64_t before = 0;
  check_fill(source, sizeof source, seed_of(round, check_rank, target_rank, 0));
  UTOFU_POST(vcq,
             utofu_put(vcq, target.vcq_id, source_stadd, at(target, memory.large[check_rank]), kLong, 1, local, NULL));
  CHECK(wait_mrq(vcq, UTOFU_MRQ_TYPE_LCL_PUT).edata == 1, "the notice of another put");
  check_fill(source, kPieces * kPieceBytes, seed_of(round, check_rank, target_rank, 1));
  UTOFU_POST(vcq, utofu_put_stride(vcq, target.vcq_id, source_stadd, at(target, memory.pieces[check_rank]), kPieceBytes,
                                   kPieceBytes, kPieces, 0, 0, NULL));
  for (int i = 0; i < kPieces; i++) {
    UTOFU_POST(vcq, utofu_armw8(vcq, target.vcq_id, UTOFU_ARMW_OP_ADD, (uint64_t)check_rank + 1,
                                at(target, &memory.sum), 0, 0, NULL));
    UTOFU_POST(
        vcq, utofu_armw4(vcq, target.vcq_id, UTOFU_ARMW_OP_ADD, UINT32_MAX, at(target, &memory.small_sum), 0, 0, NULL));
    UTOFU_POST(vcq, utofu_armw8(vcq, target.vcq_id, UTOFU_ARMW_OP_ADD, 1, at(target, &memory.drawn), 2, local, NULL));
    const uint64_t drawn = wait_mrq(vcq, UTOFU_MRQ_TYPE_LCL_ARMW).rmt_value + 1;
    CHECK(drawn > before, "drew %lu after %lu", (unsigned long)drawn, (unsigned long)before);
    before = drawn;
  }
  UTOFU_POST(vcq, utofu_put_piggyback8(vcq, target.vcq_id, (uint64_t)round + 1, at(target, &memory.flags[check_rank]),
                                       8, 0, UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL));
  UTOFU_POST(vcq, utofu_armw8(vcq, target.vcq_id, UTOFU_ARMW_OP_ADD, 1, at(target, &memory.finished), 3,
                              local | UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL));
  CHECK(wait_mrq(vcq, UTOFU_MRQ_TYPE_LCL_ARMW).edata == 3, "the notice of another ARMW");
}

// Spins until all peers are done, and checks what they left.
static void suffer(long round) {
  const uint64_t peers = (uint64_t)check_size - 1;
  for (int rank = 0; rank < check_size; rank++) {
    if (rank != check_rank) {
      spin_until(&memory.flags[rank], (uint64_t)round + 1);
    }
  }
  spin_until(&memory.finished, peers);
  uint64_t sum = 0;
  for (int rank = 0; rank < check_size; rank++) {
    if (rank == check_rank) {
      continue;
    }
    CHECK_CONTENT(memory.large[rank], kLong, seed_of(round, rank, check_rank, 0), "the large put of rank %d", rank);
    CHECK_CONTENT(memory.pieces[rank], kPieces * kPieceBytes, seed_of(round, rank, check_rank, 1),
                  "the pieces of rank %d", rank);
    sum += kPieces * ((uint64_t)rank + 1);
  }
  CHECK(memory.sum == sum, "the sum is %lu, not %lu", (unsigned long)memory.sum, (unsigned long)sum);
  CHECK(memory.small_sum == (uint32_t)(0 - kPieces * peers), "the sum of 32 bits is %u", memory.small_sum);
  CHECK(memory.drawn == kPieces * peers, "%lu numbers were drawn", (unsigned long)memory.drawn);
  memset(&memory, 0, offsetof(struct memory, flags));
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "silent_target", 90);
  const long rounds = check_argument(argc, argv, 1, 3);
  struct place places[kMaxRanks];
  utofu_vcq_hdl_t vcq;
  utofu_stadd_t source_stadd;
  if (check_size < 2 || check_size > kMaxRanks) {
    return check_skip("wants 2 to 16 ranks");
  }
  UTOFU_OK(utofu_create_vcq(first_tni(), 0, &vcq));
  UTOFU_OK(utofu_reg_mem(vcq, source, sizeof source, UTOFU_REG_MEM_FLAG_READ_ONLY, &source_stadd));
  share_place(vcq, &memory, sizeof memory, places);
  const utofu_stadd_t own_stadd = places[check_rank].stadd;
  for (int rank = 0; rank < check_size; rank++) {
    UTOFU_OK(utofu_set_vcq_id_path(&places[rank].vcq_id, NULL));
  }
  for (long round = 0; round < rounds; round++) {
    for (int target = 0; target < check_size; target++) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (target == check_rank) {
        suffer(round);
      } else {
        attack(vcq, source_stadd, places[target], round, target);
      }
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  check_queues_empty(vcq);
  UTOFU_OK(utofu_dereg_mem(vcq, source_stadd, 0));
  UTOFU_OK(utofu_dereg_mem(vcq, own_stadd, 0));
  UTOFU_OK(utofu_free_vcq(vcq));
  return check_finish();
}
