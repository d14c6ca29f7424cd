// Where the ranks of a job are, by the rank queries of Fujitsu MPI, if the machine stands for nodes in a shape. Every
// rank computes the VCQ ids of the neighbours of its node from their coordinates, and puts a word to each: the rank map
// that programs for Fugaku make. Usage: fjmpi_topology SHAPE PROCESSES_OF_A_NODE
#include "utofu_check.h"

#include "mpi-ext.h"

enum { kStag = 3, kMostRanks = 64, kNeighbours = 6 };

static uint64_t words[kMostRanks] __attribute__((aligned(256)));
static uint64_t source[1] __attribute__((aligned(256)));

// Every rank is where the shape says, and is found there, in its place among those of its node.
static void check_places(const int shape[3], int per_node) {
  for (int rank = 0; rank < check_size; rank++) {
    const int node = rank / per_node;
    int at[3] = {-1, -1, -1}, tofu[6], relative[6], ranks[kMostRanks], count = 0;
    const int expected[3] = {node % shape[0], node / shape[0] % shape[1], node / (shape[0] * shape[1])};
    CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, rank, FJMPI_LOGICAL, 3, at) == MPI_SUCCESS, "logical");
    CHECK(memcmp(at, expected, sizeof at) == 0, "rank %d is at %d,%d,%d", rank, at[0], at[1], at[2]);
    CHECK(FJMPI_Topology_get_ranks(MPI_COMM_WORLD, FJMPI_LOGICAL, at, kMostRanks, &count, ranks) == MPI_SUCCESS,
          "ranks");
    CHECK(ranks[rank % per_node] == rank && count <= per_node, "%d ranks at the place of rank %d", count, rank);
    CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, rank, FJMPI_TOFU_SYS, 6, tofu) == MPI_SUCCESS, "system");
    CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, rank, FJMPI_TOFU_REL, 6, relative) == MPI_SUCCESS, "relative");
    CHECK(memcmp(tofu, relative, sizeof tofu) == 0, "the job begins at the origin");
    CHECK(FJMPI_Topology_get_ranks(MPI_COMM_WORLD, FJMPI_TOFU_SYS, tofu, 1, &count, ranks) == MPI_SUCCESS, "one rank");
    CHECK(count == 1 && ranks[0] == node * per_node, "the first of the node is rank %d", ranks[0]);
  }
}

// Ranks of a communicator are its own.
static void check_reversed(void) {
  MPI_Comm reversed;
  int here[6], there[6];
  MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &reversed);
  CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, 0, FJMPI_TOFU_SYS, 6, here) == MPI_SUCCESS, "first");
  CHECK(FJMPI_Topology_get_coords(reversed, check_size - 1, FJMPI_TOFU_SYS, 6, there) == MPI_SUCCESS, "last");
  CHECK(memcmp(here, there, sizeof here) == 0, "the last of the reversed ranks is the first");
  MPI_Comm_free(&reversed);
}

static void check_errors(void) {
  int at[6] = {200, 0, 0, 0, 0, 0}, count = -1, ranks[1];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(FJMPI_Topology_get_ranks(MPI_COMM_WORLD, FJMPI_TOFU_SYS, at, 1, &count, ranks) == FJMPI_ERR_TOPOLOGY_NO_PROCESS,
        "there is nobody");
  CHECK(count == 0, "%d ranks where nobody is", count);
  CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, check_size, FJMPI_LOGICAL, 3, at) == MPI_ERR_RANK, "no such rank");
  CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, 0, 77, 3, at) == MPI_ERR_ARG, "no such view");
  CHECK(FJMPI_Topology_get_coords(MPI_COMM_WORLD, 0, FJMPI_LOGICAL, 3, NULL) == MPI_ERR_ARG, "no array");
  CHECK(FJMPI_Topology_get_coords(MPI_COMM_NULL, 0, FJMPI_LOGICAL, 3, at) == MPI_ERR_COMM, "no communicator");
  CHECK(FJMPI_Topology_get_dimension(NULL) == MPI_ERR_ARG, "nowhere to write it");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// The VCQ of the rank with the same place on its node, at these coordinates: its CQ is the first of its local rank.
static utofu_vcq_id_t vcq_at(const int tofu[6], int local_rank, int per_node) {
  uint8_t at[6];
  utofu_vcq_id_t id;
  for (int axis = 0; axis < 6; axis++) at[axis] = (uint8_t)tofu[axis];
  UTOFU_OK(utofu_construct_vcq_id(at, 0, (utofu_cq_id_t)(12 / per_node * local_rank), 0, &id));
  return id;
}

// Puts the own rank to the node behind and before on each side, a word for each sender.
static void exchange(utofu_vcq_hdl_t vcq, const int shape[3], int per_node) {
  utofu_stadd_t own, there;
  UTOFU_OK(utofu_reg_mem(vcq, source, sizeof source, 0, &own));
  source[0] = (uint64_t)check_rank + 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int way = 0; way < kNeighbours; way++) {
    int at[3], tofu[6], ranks[kMostRanks], count;
    FJMPI_Topology_get_coords(MPI_COMM_WORLD, check_rank, FJMPI_LOGICAL, 3, at);
    at[way / 2] = (at[way / 2] + (way % 2 ? 1 : shape[way / 2] - 1)) % shape[way / 2];
    FJMPI_Topology_get_ranks(MPI_COMM_WORLD, FJMPI_LOGICAL, at, kMostRanks, &count, ranks);
    FJMPI_Topology_get_coords(MPI_COMM_WORLD, ranks[0], FJMPI_TOFU_SYS, 6, tofu);
    const utofu_vcq_id_t peer = vcq_at(tofu, check_rank % per_node, per_node);
    UTOFU_OK(utofu_query_stadd(peer, kStag, &there));
    UTOFU_POST(vcq, utofu_put(vcq, peer, own, there + 8 * (utofu_stadd_t)check_rank, 8, 0,
                              UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
    CHECK(wait_mrq(vcq, UTOFU_MRQ_TYPE_LCL_PUT).vcq_id == peer, "the notice names another VCQ");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static int is_neighbour(int rank, const int shape[3], int per_node) {
  int a[3], b[3], differing = 0, steps = 0;
  FJMPI_Topology_get_coords(MPI_COMM_WORLD, rank, FJMPI_LOGICAL, 3, a);
  FJMPI_Topology_get_coords(MPI_COMM_WORLD, check_rank, FJMPI_LOGICAL, 3, b);
  for (int side = 0; side < 3; side++) {
    const int step = (a[side] - b[side] + shape[side]) % shape[side];
    differing += step != 0;
    steps += step != 0 && (step == 1 || step == shape[side] - 1);
  }
  // A side of one node has the node itself on both sides.
  const int alone = shape[0] == 1 || shape[1] == 1 || shape[2] == 1;
  return rank % per_node == check_rank % per_node && ((differing == 1 && steps >= 1) || (differing == 0 && alone));
}

int main(int argc, char** argv) {
  int shape[3] = {0, 0, 0}, dimension = 0;
  const int per_node = argc == 3 ? atoi(argv[2]) : 1;
  if (argc == 3) {
    setenv("PORTOFU_SHAPE", argv[1], 1);
    setenv("PORTOFU_PER_NODE", argv[2], 1);
  }
  check_begin(&argc, &argv, "fjmpi_topology", 60);
  CHECK(FJMPI_Topology_get_dimension(&dimension) == MPI_SUCCESS && dimension == 3, "%d dimensions", dimension);
  CHECK(FJMPI_Topology_get_shape(&shape[0], &shape[1], &shape[2]) == MPI_SUCCESS, "shape");
  CHECK(shape[0] * shape[1] * shape[2] * per_node == check_size, "%dx%dx%d", shape[0], shape[1], shape[2]);
  check_places(shape, per_node);
  check_reversed();
  check_errors();
  utofu_vcq_hdl_t vcq;
  utofu_stadd_t stadd;
  UTOFU_OK(utofu_create_vcq(0, 0, &vcq));
  UTOFU_OK(utofu_reg_mem_with_stag(vcq, words, sizeof words, kStag, 0, &stadd));
  exchange(vcq, shape, per_node);
  for (int rank = 0; rank < check_size; rank++) {
    const uint64_t expected = is_neighbour(rank, shape, per_node) ? (uint64_t)rank + 1 : 0;
    CHECK(words[rank] == expected, "word %d is %d", rank, (int)words[rank]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  UTOFU_OK(utofu_free_vcq(vcq));
  return check_finish();
}
