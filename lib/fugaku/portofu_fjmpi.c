/* The functions of mpi-ext.h. All processes tell each other where they are when MPI begins: MPI_Init and
 * MPI_Init_thread are caught here, by the profiling interface, so that later calls need nobody else. Where a process
 * is, uTofu says (utofu_query_my_coords): from PORTOFU_SHAPE and PORTOFU_PER_NODE, a hosts file, or the address of the
 * node. */
#include "mpi-ext.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utofu.h>

enum { kTofuDims = 6, kSides = 3 };

struct place {
  uint8_t tofu[kTofuDims];
};

/* By rank in MPI_COMM_WORLD; written once, by MPI_Init. */
static struct place* places;
static int* node_of; /* Nodes are numbered as their first ranks are. */
static int place_count;
static int sides[kSides]; /* 0: the shape has no such side. */
static int side_count;
static uint8_t origin[kTofuDims]; /* Lowest of the job, on each axis. */

static int complain(MPI_Comm comm, int code, const char* what) {
  fprintf(stderr, "%s\n", what);
  PMPI_Comm_call_errhandler(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, code);
  return code;
}

static int number_nodes(void) {
  int nodes = 0;
  for (int rank = 0; rank < place_count; rank++) {
    int same = 0;
    while (memcmp(places[same].tofu, places[rank].tofu, kTofuDims) != 0) same++;
    node_of[rank] = same == rank ? nodes++ : node_of[same];
  }
  return nodes;
}

/* Reads "2x3x2" into sides and side_count. @return how many nodes that are; 0: the text is something else, which the
 * engine leaves aside with a warning */
static long read_shape(const char* text) {
  long room = 1;
  for (side_count = 0; side_count < kSides && *text >= '0' && *text <= '9'; text++) {
    char* rest;
    const long side = strtol(text, &rest, 10);
    if (side < 1 || side > 65536) return 0;
    sides[side_count++] = (int)side;
    room *= side;
    if (*rest == '\0') return room;
    if (*rest != 'x') return 0;
    text = rest;
  }
  return 0;
}

/* Without a shape that has room for the nodes there are, they are a line. */
static void choose_shape(int nodes) {
  const char* text = getenv("PORTOFU_SHAPE");
  if (text != NULL && read_shape(text) >= nodes) return;
  side_count = 1;
  sides[0] = nodes;
  sides[1] = sides[2] = 0;
}

static int gather_places(void) {
  struct place own;
  int rc = MPI_SUCCESS;
  if (utofu_query_my_coords(own.tofu) != UTOFU_SUCCESS)
    return complain(MPI_COMM_WORLD, MPI_ERR_OTHER, "FJMPI: utofu_query_my_coords does not say where this process is");
  PMPI_Comm_size(MPI_COMM_WORLD, &place_count);
  places = malloc((size_t)place_count * sizeof *places);
  node_of = malloc((size_t)place_count * sizeof *node_of);
  if (places == NULL || node_of == NULL)
    return complain(MPI_COMM_WORLD, MPI_ERR_NO_MEM, "FJMPI: no memory for the places of all processes");
  rc = PMPI_Allgather(&own, kTofuDims, MPI_BYTE, places, kTofuDims, MPI_BYTE, MPI_COMM_WORLD);
  if (rc != MPI_SUCCESS) return rc;
  memcpy(origin, places[0].tofu, kTofuDims);
  for (int rank = 1; rank < place_count; rank++)
    for (int axis = 0; axis < kTofuDims; axis++)
      if (places[rank].tofu[axis] < origin[axis]) origin[axis] = places[rank].tofu[axis];
  choose_shape(number_nodes());
  return MPI_SUCCESS;
}

int MPI_Init(int* argc, char*** argv) {
  const int rc = PMPI_Init(argc, argv);
  return rc == MPI_SUCCESS ? gather_places() : rc;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  return rc == MPI_SUCCESS ? gather_places() : rc;
}

/* How many coordinates the view has; 0: there is no such view. */
static int dimensions_of(int view) {
  return view == FJMPI_LOGICAL ? side_count : view == FJMPI_TOFU_SYS || view == FJMPI_TOFU_REL ? kTofuDims : 0;
}

static int coordinate(int world_rank, int view, int axis) {
  int node = node_of[world_rank];
  if (view == FJMPI_TOFU_SYS) return places[world_rank].tofu[axis];
  if (view == FJMPI_TOFU_REL) return places[world_rank].tofu[axis] - origin[axis];
  for (int before = 0; before < axis; before++) node /= sides[before];
  return node % sides[axis];
}

static int is_at(int world_rank, int view, const int coords[]) {
  for (int axis = 0; axis < dimensions_of(view); axis++)
    if (coordinate(world_rank, view, axis) != coords[axis]) return 0;
  return 1;
}

/* Ranks in MPI_COMM_WORLD of `count` ranks of a communicator, from `first` on; MPI_UNDEFINED: it is of another world.
 */
static int translate(MPI_Comm comm, int first, int count, int world_ranks[]) {
  MPI_Group group, world;
  int* ranks = malloc((size_t)count * sizeof *ranks);
  if (ranks == NULL) return complain(comm, MPI_ERR_NO_MEM, "FJMPI: no memory for the ranks of a communicator");
  for (int i = 0; i < count; i++) ranks[i] = first + i;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  const int rc = PMPI_Group_translate_ranks(group, count, ranks, world, world_ranks);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  free(ranks);
  return rc;
}

/* What is wrong with a call, or MPI_SUCCESS. */
static int check_call(MPI_Comm comm, int view, const void* array, const char* function) {
  char what[160];
  if (places == NULL) {
    fprintf(stderr, "%s: MPI_Init has not been called, or not the one of portofu_fjmpi.c\n", function);
    return MPI_ERR_OTHER;
  }
  if (comm == MPI_COMM_NULL) {
    snprintf(what, sizeof what, "%s: the communicator is MPI_COMM_NULL", function);
    return complain(MPI_COMM_WORLD, MPI_ERR_COMM, what);
  }
  if (dimensions_of(view) != 0 && array != NULL) return MPI_SUCCESS;
  snprintf(what, sizeof what, array == NULL ? "%s: an array is NULL" : "%s: there is no view %d", function, view);
  return complain(comm, MPI_ERR_ARG, what);
}

int FJMPI_Topology_get_dimension(int* dimension) {
  const int rc = check_call(MPI_COMM_WORLD, FJMPI_LOGICAL, dimension, __func__);
  if (rc == MPI_SUCCESS) *dimension = side_count;
  return rc;
}

int FJMPI_Topology_get_shape(int* x, int* y, int* z) {
  const int rc = check_call(MPI_COMM_WORLD, FJMPI_LOGICAL, sides, __func__);
  if (rc != MPI_SUCCESS) return rc;
  if (x != NULL) *x = sides[0];
  if (y != NULL) *y = sides[1];
  if (z != NULL) *z = sides[2];
  return MPI_SUCCESS;
}

int FJMPI_Topology_get_coords(MPI_Comm comm, int rank, int view, int maxdims, int coords[]) {
  int size, world_rank, rc = check_call(comm, view, coords, __func__);
  if (rc != MPI_SUCCESS) return rc;
  PMPI_Comm_size(comm, &size);
  if (rank < 0 || rank >= size)
    return complain(comm, MPI_ERR_RANK, "FJMPI_Topology_get_coords: the communicator has no such rank");
  if (maxdims < 1) return complain(comm, MPI_ERR_ARG, "FJMPI_Topology_get_coords: maxdims is less than 1");
  rc = translate(comm, rank, 1, &world_rank);
  if (rc != MPI_SUCCESS) return rc;
  if (world_rank == MPI_UNDEFINED)
    return complain(comm, MPI_ERR_RANK, "FJMPI_Topology_get_coords: the rank is not one of MPI_COMM_WORLD");
  for (int axis = 0; axis < dimensions_of(view) && axis < maxdims; axis++)
    coords[axis] = coordinate(world_rank, view, axis);
  return MPI_SUCCESS;
}

int FJMPI_Topology_get_ranks(MPI_Comm comm, int view, int coords[], int maxppn, int* outppn, int ranks[]) {
  int size, found = 0, rc = check_call(comm, view, coords, __func__);
  if (rc != MPI_SUCCESS) return rc;
  if (outppn == NULL || maxppn < 0 || (maxppn > 0 && ranks == NULL))
    return complain(comm, MPI_ERR_ARG, "FJMPI_Topology_get_ranks: outppn or ranks is NULL, or maxppn below 0");
  PMPI_Comm_size(comm, &size);
  int* world_ranks = malloc((size_t)size * sizeof *world_ranks);
  if (world_ranks == NULL)
    return complain(comm, MPI_ERR_NO_MEM, "FJMPI_Topology_get_ranks: no memory for the ranks of the communicator");
  rc = translate(comm, 0, size, world_ranks);
  for (int rank = 0; rc == MPI_SUCCESS && rank < size && found < maxppn; rank++)
    if (world_ranks[rank] != MPI_UNDEFINED && is_at(world_ranks[rank], view, coords)) ranks[found++] = rank;
  free(world_ranks);
  *outppn = found;
  return rc == MPI_SUCCESS && found == 0 && maxppn > 0 ? FJMPI_ERR_TOPOLOGY_NO_PROCESS : rc;
}
