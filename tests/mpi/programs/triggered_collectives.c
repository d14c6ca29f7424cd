// What Open MPI can leave to the network interface: barrier, broadcast, reduce, allreduce, gather and scatter, blocking
// and not, with sizes on both sides of each change of algorithm, from every root, on several communicators, many in
// flight at once, and between messages that wait. Usage: triggered_collectives [LARGEST_BYTES] [ROUNDS].
#include "check.h"

// Broadcasts of coll/portals4 go in segments of 4 KiB, by a tree up to 4 of them, then through a pipeline of at most
// 32; reductions are offloaded up to the largest atomic, which is 4 KiB.
static const long kSizes[] = {0, 1, 8, 4095, 4096, 4097, 8192, 16384, 16385, 65536, 131072, 131073, 300000, 1048576};
enum { kSizeCount = sizeof kSizes / sizeof *kSizes, kMostInFlight = 6 };

struct group {
  MPI_Comm comm;
  int rank;
  int size;
};

static long largest_bytes;
static char* bytes_buffer;

static struct group group_of(MPI_Comm comm) {
  struct group group = {comm, 0, 0};
  MPI_Comm_rank(comm, &group.rank);
  MPI_Comm_size(comm, &group.size);
  return group;
}

static void broadcasts(const struct group* group) {
  for (int which = 0; which < kSizeCount; which++) {
    const size_t bytes = (size_t)kSizes[which];
    if (kSizes[which] > largest_bytes) {
      continue;
    }
    for (int root = 0; root < group->size; root++) {
      const uint64_t seed = bytes * 64 + (uint64_t)root;
      MPI_Request request;
      memset(bytes_buffer, 0, bytes);
      if (group->rank == root) {
        check_fill(bytes_buffer, bytes, seed);
      }
      MPI_Bcast(bytes_buffer, (int)bytes, MPI_BYTE, root, group->comm);
      CHECK_CONTENT(bytes_buffer, bytes, seed, "bcast of %zu from %d of %d", bytes, root, group->size);
      if (group->rank == root) {
        check_fill(bytes_buffer, bytes, ~seed);
      }
      MPI_Ibcast(bytes_buffer, (int)bytes, MPI_BYTE, root, group->comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK_CONTENT(bytes_buffer, bytes, ~seed, "ibcast of %zu from %d of %d", bytes, root, group->size);
    }
  }
}

// Small values, so that sums are exact in every type.
static int element(int rank, int i) { return (int)(check_mix((uint64_t)rank * 1000003 + (uint64_t)i) % 4); }

// A reduction of `count` items of type T: into all, into all in place, and into each root.
#define DEFINE_REDUCTIONS(T, name, MPI_T)                                                                      \
  static void reduce_##name(const struct group* group, int count) {                                            \
    T *own = check_allocate((size_t)count * sizeof(T)), *sum = check_allocate((size_t)count * sizeof(T));      \
    MPI_Request request;                                                                                       \
    for (int root = -3; root < group->size; root++) {                                                          \
      for (int i = 0; i < count; i++) {                                                                        \
        own[i] = sum[i] = (T)element(group->rank, i);                                                          \
      }                                                                                                        \
      if (root == -3) {                                                                                        \
        MPI_Allreduce(own, sum, count, MPI_T, MPI_SUM, group->comm);                                           \
      } else if (root == -2) {                                                                                 \
        MPI_Allreduce(MPI_IN_PLACE, sum, count, MPI_T, MPI_SUM, group->comm);                                  \
      } else if (root == -1) {                                                                                 \
        MPI_Iallreduce(own, sum, count, MPI_T, MPI_SUM, group->comm, &request);                                \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                 \
      } else if (root % 2 == 0) {                                                                              \
        MPI_Reduce(own, sum, count, MPI_T, MPI_SUM, root, group->comm);                                        \
      } else {                                                                                                 \
        MPI_Ireduce(own, sum, count, MPI_T, MPI_SUM, root, group->comm, &request);                             \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                 \
      }                                                                                                        \
      for (int i = 0; (root < 0 || root == group->rank) && i < count; i++) {                                   \
        int expected = 0;                                                                                      \
        for (int rank = 0; rank < group->size; rank++) {                                                       \
          expected += element(rank, i);                                                                        \
        }                                                                                                      \
        CHECK(sum[i] == (T)expected, #name ", %d items, root %d: item %d is %g instead of %d", count, root, i, \
              (double)sum[i], expected);                                                                       \
      }                                                                                                        \
    }                                                                                                          \
    free(sum);                                                                                                 \
    free(own);                                                                                                 \
  }
DEFINE_REDUCTIONS(int8_t, int8, MPI_INT8_T)
DEFINE_REDUCTIONS(uint8_t, uint8, MPI_UINT8_T)
DEFINE_REDUCTIONS(int16_t, int16, MPI_INT16_T)
DEFINE_REDUCTIONS(uint16_t, uint16, MPI_UINT16_T)
DEFINE_REDUCTIONS(int32_t, int32, MPI_INT32_T)
DEFINE_REDUCTIONS(uint32_t, uint32, MPI_UINT32_T)
DEFINE_REDUCTIONS(int64_t, int64, MPI_INT64_T)
DEFINE_REDUCTIONS(uint64_t, uint64, MPI_UINT64_T)
DEFINE_REDUCTIONS(float, float, MPI_FLOAT)
DEFINE_REDUCTIONS(double, double, MPI_DOUBLE)
DEFINE_REDUCTIONS(long double, long_double, MPI_LONG_DOUBLE)

static void reductions(const struct group* group) {
  const int counts[] = {1, 5, 512, 513, 4096, 5000};
  for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
    reduce_int8(group, counts[which]);
    reduce_uint8(group, counts[which]);
    reduce_int16(group, counts[which]);
    reduce_uint16(group, counts[which]);
    reduce_int32(group, counts[which]);
    reduce_uint32(group, counts[which]);
    reduce_int64(group, counts[which]);
    reduce_uint64(group, counts[which]);
    reduce_float(group, counts[which]);
    reduce_double(group, counts[which]);
    reduce_long_double(group, counts[which]);
  }
}

// The operations that are offloaded, on one type.
static void operations(const struct group* group) {
  const MPI_Op all[] = {MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  enum { kCount = 100 };
  int own[kCount], result[kCount];
  for (size_t which = 0; which < sizeof all / sizeof *all; which++) {
    for (int i = 0; i < kCount; i++) {
      own[i] = element(group->rank, i);
    }
    MPI_Allreduce(own, result, kCount, MPI_INT, all[which], group->comm);
    for (int i = 0; i < kCount; i++) {
      int expected = element(0, i);
      for (int rank = 1; rank < group->size; rank++) {
        const int next = element(rank, i);
        MPI_Reduce_local(&next, &expected, 1, MPI_INT, all[which]);
      }
      CHECK(result[i] == expected, "operation %zu: item %d is %d instead of %d", which, i, result[i], expected);
    }
  }
}

static void gathers_and_scatters(const struct group* group, int count) {
  int* own = check_allocate((size_t)count * sizeof(int));
  int* all = check_allocate((size_t)count * (size_t)group->size * sizeof(int));
  for (int root = 0; root < group->size; root++) {
    MPI_Request request;
    for (int i = 0; i < count; i++) {
      own[i] = group->rank * 100000 + i;
    }
    memset(all, 0xff, (size_t)count * (size_t)group->size * sizeof(int));
    if (root % 2 == 0) {
      MPI_Gather(own, count, MPI_INT, all, count, MPI_INT, root, group->comm);
    } else {
      MPI_Igather(own, count, MPI_INT, all, count, MPI_INT, root, group->comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; group->rank == root && i < count * group->size; i++) {
      CHECK(all[i] == i / count * 100000 + i % count, "gather of %d to %d: item %d is %d", count, root, i, all[i]);
      all[i] += 7;
    }
    if (root % 2 == 0) {
      MPI_Scatter(all, count, MPI_INT, own, count, MPI_INT, root, group->comm);
    } else {
      MPI_Iscatter(all, count, MPI_INT, own, count, MPI_INT, root, group->comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < count; i++) {
      CHECK(own[i] == group->rank * 100000 + i + 7, "scatter of %d from %d: item %d is %d", count, root, i, own[i]);
    }
  }
  free(all);
  free(own);
}

// Each rank frees what a collective used as soon as that is over for itself; others may be behind.
static void back_to_back(const struct group* group, long rounds) {
  for (long round = 0; round < rounds; round++) {
    int value = group->rank == 0 ? (int)round : -1, sum = 0;
    MPI_Barrier(group->comm);
    MPI_Bcast(&value, 1, MPI_INT, 0, group->comm);
    CHECK(value == (int)round, "round %ld: broadcast of %d", round, value);
    value = group->rank;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, group->comm);
    CHECK(sum == group->size * (group->size - 1) / 2, "round %ld: sum is %d", round, sum);
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_MAX, (int)(round % group->size), group->comm);
    CHECK(group->rank != round % group->size || sum == group->size - 1, "round %ld: maximum is %d", round, sum);
  }
}

// Collectives of two communicators and a message that arrives last, all in flight.
static void in_flight(const struct group* one, const struct group* other) {
  const int next = (one->rank + 1) % one->size, previous = (one->rank + one->size - 1) % one->size;
  int sums[2] = {-1, -1}, values[2], message = -1, minimum = -1;
  MPI_Request requests[kMostInFlight], receive;
  values[0] = one->rank;
  values[1] = other->rank;
  minimum = other->rank + 5;
  MPI_Irecv(&message, 1, MPI_INT, previous, 3, one->comm, &receive);
  MPI_Ibarrier(one->comm, &requests[0]);
  MPI_Iallreduce(&values[0], &sums[0], 1, MPI_INT, MPI_SUM, one->comm, &requests[1]);
  MPI_Iallreduce(&values[1], &sums[1], 1, MPI_INT, MPI_SUM, other->comm, &requests[2]);
  MPI_Ibcast(&minimum, 1, MPI_INT, 0, other->comm, &requests[3]);
  MPI_Ibarrier(other->comm, &requests[4]);
  MPI_Ibarrier(one->comm, &requests[5]);
  MPI_Waitall(kMostInFlight, requests, MPI_STATUSES_IGNORE);
  MPI_Barrier(one->comm);
  MPI_Send(&one->rank, 1, MPI_INT, next, 3, one->comm);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  CHECK(message == previous, "the message that waited says %d", message);
  CHECK(sums[0] == one->size * (one->size - 1) / 2, "sum of the first communicator is %d", sums[0]);
  CHECK(sums[1] == other->size * (other->size - 1) / 2, "sum of the second communicator is %d", sums[1]);
  CHECK(minimum == 5, "broadcast of the second communicator is %d", minimum);
}

static void everything(const struct group* group, long rounds) {
  broadcasts(group);
  reductions(group);
  operations(group);
  gathers_and_scatters(group, 1);
  gathers_and_scatters(group, 3000);
  back_to_back(group, rounds);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "triggered_collectives", 120);
  largest_bytes = check_argument(argc, argv, 1, 300000);
  const long rounds = check_argument(argc, argv, 2, 200);
  MPI_Comm comm;
  struct group world = group_of(MPI_COMM_WORLD), backwards, half;
  bytes_buffer = check_allocate((size_t)largest_bytes + 1);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &comm);
  backwards = group_of(comm);
  MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, check_rank, &comm);
  half = group_of(comm);
  everything(&world, rounds);
  everything(&backwards, rounds);
  everything(&half, rounds);
  for (long round = 0; round < rounds; round++) {
    in_flight(&world, &backwards);
    in_flight(&backwards, &half);
  }
  MPI_Comm_free(&half.comm);
  MPI_Comm_free(&backwards.comm);
  free(bytes_buffer);
  return check_finish();
}
