// Broadcast, gather and scatter, blocking and not, of data that does not lie in one piece where the buffer begins:
// types with holes, with data that begins behind or before the address, and with addresses of their own under
// MPI_BOTTOM; with other types at the root than elsewhere; and with no types at all where MPI does not look at them.
#include "check.h"

enum { kItems = 1500, kStride = 2, kSpace = kItems * kStride + 8, kShapes = 5 };

static int* space;  // Of what a shape of data lies in.

struct shape {
  MPI_Datatype type;
  int count;
  int* buffer;
  int first, stride;  // Where item i lies in `space`: first + i * stride.
};

static MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

static struct shape shape_of(int kind, int items) {
  struct shape shape = {MPI_INT, items, space, 0, 1};
  MPI_Datatype type;
  const int behind = 3;
  MPI_Aint place = behind * (MPI_Aint)sizeof(int);
  switch (kind) {
    case 1:  // Holes.
      MPI_Type_vector(items, 1, kStride, MPI_INT, &type);
      return (struct shape){committed(type), 1, space, 0, kStride};
    case 2:  // One piece that begins behind the address.
      MPI_Type_create_hindexed(1, &items, &place, MPI_INT, &type);
      return (struct shape){committed(type), 1, space, behind, 1};
    case 3:  // One piece that begins before the address.
      place = -place;
      MPI_Type_create_hindexed(1, &items, &place, MPI_INT, &type);
      return (struct shape){committed(type), 1, space + behind, 0, 1};
    case 4:  // An address of its own.
      MPI_Get_address(space, &place);
      MPI_Type_create_hindexed(1, &items, &place, MPI_INT, &type);
      return (struct shape){committed(type), 1, MPI_BOTTOM, 0, 1};
    default: return shape;
  }
}

static void release(struct shape* shape) {
  if (shape->type != MPI_INT) {
    MPI_Type_free(&shape->type);
  }
}

static int value(int seed, int rank, int i) {
  return (int)(check_mix((uint64_t)seed * 1000 + (uint64_t)rank) >> 40) + i;
}

static void check_space(const struct shape* shape, int items, int seed, int rank, const char* what) {
  for (int i = 0; i < items; i++) {
    const int found = space[shape->first + i * shape->stride];
    CHECK(found == value(seed, rank, i), "%s, shape %d %d, item %d of %d: %d instead of %d", what, shape->first,
          shape->stride, i, items, found, value(seed, rank, i));
  }
}

static void fill_space(const struct shape* shape, int items, int seed, int rank) {
  for (int i = 0; i < items; i++) {
    space[shape->first + i * shape->stride] = value(seed, rank, i);
  }
}

static void clear(void) { memset(space, 0xEE, kSpace * sizeof *space); }

static void broadcasts(int at_root, int elsewhere, int items, int root) {
  struct shape shape = shape_of(check_rank == root ? at_root : elsewhere, items);
  for (int way = 0; way < 2; way++) {
    const int seed = at_root * 7 + elsewhere + way * 100;
    clear();
    if (check_rank == root) {
      fill_space(&shape, items, seed, root);
    }
    if (way == 0) {
      MPI_Bcast(shape.buffer, shape.count, shape.type, root, MPI_COMM_WORLD);
    } else {
      MPI_Request request;
      MPI_Ibcast(shape.buffer, shape.count, shape.type, root, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_space(&shape, items, seed, root, way == 0 ? "bcast" : "ibcast");
  }
  release(&shape);
}

// The root's side is items in one piece for each rank; a rank's own side has the shape. What MPI does not look at is
// not there at all.
static void scatters(int kind, int items, int root) {
  struct shape shape = shape_of(kind, items);
  const int is_root = check_rank == root;
  int* all = is_root ? check_allocate((size_t)items * (size_t)check_size * sizeof(int)) : NULL;
  const MPI_Datatype type = is_root ? MPI_INT : MPI_DATATYPE_NULL;
  const int count = is_root ? items : -1;
  for (int way = 0; way < 2; way++) {
    MPI_Request request = MPI_REQUEST_NULL;
    clear();
    for (int i = 0; is_root && i < items * check_size; i++) {
      all[i] = value(way, i / items, i % items);
    }
    if (way == 0) {
      MPI_Scatter(all, count, type, shape.buffer, shape.count, shape.type, root, MPI_COMM_WORLD);
    } else {
      MPI_Iscatter(all, count, type, shape.buffer, shape.count, shape.type, root, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_space(&shape, items, way, check_rank, "scatter");
    if (way == 0) {
      MPI_Gather(shape.buffer, shape.count, shape.type, all, count, type, root, MPI_COMM_WORLD);
    } else {
      MPI_Igather(shape.buffer, shape.count, shape.type, all, count, type, root, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; is_root && i < items * check_size; i++) {
      CHECK(all[i] == value(way, i / items, i % items), "gather of %d items: item %d is wrong", items, i);
    }
  }
  free(all);
  release(&shape);
}

// The root's side has holes, which are not written, and its own part stays or moves.
static void scatters_from_holes(int items, int root, int in_place) {
  MPI_Datatype holes, resized;
  const int is_root = check_rank == root, length = items * kStride;
  int *all = check_allocate((size_t)length * (size_t)check_size * sizeof(int)),
      *own = check_allocate(items * sizeof(int));
  MPI_Type_vector(items, 1, kStride, MPI_INT, &holes);
  MPI_Type_create_resized(holes, 0, length * (MPI_Aint)sizeof(int), &resized);
  MPI_Type_commit(&resized);
  for (int i = 0; i < length * check_size; i++) {
    all[i] = i % kStride == 0 ? value(5, i / length, i % length / kStride) : -9;
  }
  for (int i = 0; i < items; i++) {
    own[i] = in_place ? value(5, check_rank, i) : -1;
  }
  MPI_Scatter(all, 1, resized, is_root && in_place ? MPI_IN_PLACE : own, items, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < items; i++) {
    CHECK(own[i] == value(5, check_rank, i), "scatter from holes: item %d of %d is wrong", i, items);
    own[i]++;
  }
  MPI_Gather(is_root && in_place ? MPI_IN_PLACE : own, items, MPI_INT, all, 1, resized, root, MPI_COMM_WORLD);
  for (int i = 0; is_root && i < length * check_size; i++) {
    const int rank = i / length, moved = !(in_place && rank == root);
    const int expected = i % kStride == 0 ? value(5, rank, i % length / kStride) + moved : -9;
    CHECK(all[i] == expected, "gather into holes: word %d is %d instead of %d", i, all[i], expected);
  }
  MPI_Type_free(&resized);
  MPI_Type_free(&holes);
  free(own);
  free(all);
}

// The request of a collective operation says that it succeeded, whatever was in its memory before.
static void requests_say_success(void) {
  MPI_Request requests[3];
  MPI_Status statuses[3];
  int token = check_rank, sum = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
  CHECK(MPI_Waitall(3, requests, statuses) == MPI_SUCCESS, "requests that did not fail say that they did");
  CHECK(sum == check_size * (check_size - 1) / 2 && token == 0, "sum %d, token %d", sum, token);
}

// Who waits in a blocking operation goes on with what is under way: rank 0 gets to its wait only after the barrier, the
// others to the barrier only after their wait. The sum is long enough for Open MPI to do it by messages.
static void the_rest_goes_on(void) {
  MPI_Request request;
  int *own = check_allocate(kSpace * sizeof *own), *sum = check_allocate(kSpace * sizeof *sum);
  for (int i = 0; i < kSpace; i++) {
    own[i] = value(9, check_rank, i);
  }
  MPI_Iallreduce(own, sum, kSpace, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  if (check_rank == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < kSpace; i++) {
    CHECK(sum[i] >= own[i], "item %d of a maximum is %d, and this rank has %d", i, sum[i], own[i]);
  }
  free(sum);
  free(own);
}

int main(int argc, char** argv) {
  const int counts[] = {1, 100, kItems};
  check_begin(&argc, &argv, "scattered_collectives", 120);
  space = check_allocate(kSpace * sizeof *space);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  requests_say_success();
  the_rest_goes_on();
  for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
    const int root = (int)which % check_size, items = counts[which];
    for (int kind = 0; kind < kShapes; kind++) {
      for (int elsewhere = 0; elsewhere < kShapes; elsewhere++) {
        broadcasts(kind, elsewhere, items, root);
      }
      scatters(kind, items, root);
    }
    scatters_from_holes(items, root, 0);
    scatters_from_holes(items, root, 1);
  }
  free(space);
  return check_finish();
}
