// What lattice QCD does: a four-dimensional lattice over the processes, eight faces that go to the neighbours in each
// iteration, a VCQ for each direction, spread over all TNIs, two receive buffers a direction that take turns. Arrival
// is seen by spinning on the last word of a face, which STRONG_ORDER writes last (guide 6.1.3.1); no MRQ is used. Where
// a dimension has one process, it is its own neighbour. The result is compared with what one process alone computes.
// Usage: lattice_halo [ITERATIONS]
#include "utofu_check.h"

enum { kDims = 4, kDirections = 8, kSide = 6, kSites = 1296, kFaceSites = 216, kWords = 12 };

// Direction 2d goes to the next process of dimension d, 2d+1 to the previous one.
struct face {
  uint64_t words[kFaceSites][kWords];
  uint64_t iteration;  // Counted from 1; behind the words, so that it is written last.
};

// What the neighbours write; the first index is the turn.
static struct face received[2][kDirections];
static struct face sent[2][kDirections];

struct neighbours {
  utofu_vcq_hdl_t vcq[kDirections];
  utofu_stadd_t local[kDirections];  // Of `sent`.
  struct place remote[kDirections];  // Where a face in this direction arrives: `received` of the neighbour.
  utofu_stadd_t received[kDirections];
};

static int grid[kDims];  // Processes in each dimension.
static int own[kDims];   // This process in it.

static void make_grid(void) {
  int dim = 0;
  int left = check_size;
  for (int d = 0; d < kDims; d++) {
    grid[d] = 1;
  }
  for (int factor = 2; left > 1; factor++) {
    for (; left % factor == 0; left /= factor) {
      grid[dim++ % kDims] *= factor;
    }
  }
  for (int d = 0, rest = check_rank; d < kDims; d++) {
    own[d] = rest % grid[d];
    rest /= grid[d];
  }
}

static int neighbour(int direction) {
  int rank = 0;
  for (int d = kDims - 1; d >= 0; d--) {
    const int step = d != direction / 2 ? 0 : direction % 2 == 0 ? 1 : grid[d] - 1;
    rank = rank * grid[d] + (own[d] + step) % grid[d];
  }
  return rank;
}

// Each rank tells where faces of each direction arrive at it.
static void connect(struct neighbours* n) {
  size_t tni_count;
  struct place mine[kDirections];
  struct place* all = check_allocate(sizeof mine * (size_t)check_size);
  utofu_tni_id_t* tnis = all_tnis(&tni_count);
  for (int d = 0; d < kDirections; d++) {
    UTOFU_OK(utofu_create_vcq(tnis[(size_t)d % tni_count], 0, &n->vcq[d]));
    UTOFU_OK(utofu_reg_mem(n->vcq[d], sent, sizeof sent, 0, &n->local[d]));
    UTOFU_OK(utofu_reg_mem(n->vcq[d], received, sizeof received, 0, &n->received[d]));
    UTOFU_OK(utofu_query_vcq_id(n->vcq[d], &mine[d].vcq_id));
    mine[d].stadd = n->received[d];
  }
  free(tnis);
  MPI_Allgather(mine, 2 * kDirections, MPI_UINT64_T, all, 2 * kDirections, MPI_UINT64_T, MPI_COMM_WORLD);
  for (int d = 0; d < kDirections; d++) {
    n->remote[d] = all[neighbour(d) * kDirections + d];
    UTOFU_OK(utofu_set_vcq_id_path(&n->remote[d].vcq_id, NULL));
  }
  free(all);
}

static int site_coordinate(int site, int dim, const int side[kDims]) {
  for (int d = 0; d < dim; d++) {
    site /= side[d];
  }
  return site % side[dim];
}

// The site one further in a direction, the ends joined. @return whether it is beyond the end
static int step_site(int site, int direction, const int side[kDims], int* to) {
  const int dim = direction / 2, at = site_coordinate(site, dim, side);
  int stride = 1;
  for (int d = 0; d < dim; d++) {
    stride *= side[d];
  }
  if (direction % 2 == 0) {
    *to = at + 1 < side[dim] ? site + stride : site - stride * (side[dim] - 1);
    return at + 1 == side[dim];
  }
  *to = at > 0 ? site - stride : site + stride * (side[dim] - 1);
  return at == 0;
}

// The place of a site in a face across `dim`.
static int face_index(int site, int dim) {
  int stride = 1;
  for (int d = 0; d < dim; d++) {
    stride *= kSide;
  }
  return site / (stride * kSide) * stride + site % stride;
}

// What a site becomes from itself and its eight neighbours; different factors, so that no two may be exchanged.
static void compute_site(uint64_t* to, const uint64_t* from, const uint64_t* around[kDirections]) {
  for (int w = 0; w < kWords; w++) {
    uint64_t value = 3 * from[w] + (from[w] >> 32);
    for (int d = 0; d < kDirections; d++) {
      value += (uint64_t)(2 * d + 5) * around[d][w];
    }
    to[w] = value;
  }
}

static const int own_sides[kDims] = {kSide, kSide, kSide, kSide};
typedef uint64_t lattice[kSites][kWords];

// Sites at the border are those that need a face. A face that went in direction d comes from the neighbour behind.
static void compute_sites(lattice to, lattice from, int turn, int border) {
  for (int site = 0; site < kSites; site++) {
    const uint64_t* around[kDirections];
    int beyond = 0;
    for (int d = 0; d < kDirections; d++) {
      int next;
      if (step_site(site, d, own_sides, &next)) {
        beyond = 1;
        around[d] = received[turn][d ^ 1].words[face_index(site, d / 2)];
      } else {
        around[d] = from[next];
      }
    }
    if (beyond == border) {
      compute_site(to[site], from[site], around);
    }
  }
}

static void fill_face(struct face* face, lattice from, int direction, long iteration) {
  for (int site = 0; site < kSites; site++) {
    int next;
    if (step_site(site, direction, own_sides, &next)) {
      memcpy(face->words[face_index(site, direction / 2)], from[site], sizeof from[site]);
    }
  }
  face->iteration = (uint64_t)iteration + 1;
}

static void send_faces(struct neighbours* n, lattice from, long iteration) {
  const unsigned long flags =
      UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER | UTOFU_ONESIDED_FLAG_CACHE_INJECTION;
  const int turn = (int)(iteration % 2);
  for (int d = 0; d < kDirections; d++) {
    const utofu_stadd_t offset = (utofu_stadd_t)((char*)&sent[turn][d] - (char*)sent);
    if (iteration >= 2) {
      // The put before the last one has left this buffer.
      const long left = (long)(intptr_t)wait_tcq(n->vcq[d]);
      CHECK(left == iteration - 2, "in iteration %ld the TCQ tells of %ld", iteration, left);
    }
    fill_face(&sent[turn][d], from, d, iteration);
    UTOFU_OK(utofu_put(n->vcq[d], n->remote[d].vcq_id, n->local[d] + offset, n->remote[d].stadd + offset,
                       sizeof(struct face), 0, flags, (void*)(intptr_t)iteration));
  }
}

static uint64_t first_word(int global_site, int word) {
  return check_mix((uint64_t)global_site * kWords + (uint64_t)word);
}

static int global_site(int site, const int sides[kDims]) {
  int global = 0;
  for (int d = kDims - 1; d >= 0; d--) {
    global = global * sides[d] + own[d] * kSide + site_coordinate(site, d, own_sides);
  }
  return global;
}

static void check_against_one_process(lattice result, const int sides[kDims], long iterations) {
  const int count = kSites * check_size;
  uint64_t(*from)[kWords] = check_allocate((size_t)count * sizeof *from);
  uint64_t(*to)[kWords] = check_allocate((size_t)count * sizeof *to);
  for (int site = 0; site < count; site++) {
    for (int w = 0; w < kWords; w++) {
      from[site][w] = first_word(site, w);
    }
  }
  for (long i = 0; i < iterations; i++) {
    for (int site = 0; site < count; site++) {
      const uint64_t* around[kDirections];
      for (int d = 0; d < kDirections; d++) {
        int next;
        step_site(site, d, sides, &next);
        around[d] = from[next];
      }
      compute_site(to[site], from[site], around);
    }
    uint64_t(*const swapped)[kWords] = from;
    from = to;
    to = swapped;
  }
  for (int site = 0; site < kSites; site++) {
    CHECK(memcmp(result[site], from[global_site(site, sides)], sizeof result[site]) == 0, "site %d is wrong", site);
  }
  free(from);
  free(to);
}

int main(int argc, char** argv) {
  static lattice field[2];
  static struct neighbours n;
  int sides[kDims];
  check_begin(&argc, &argv, "lattice_halo", 90);
  const long iterations = check_argument(argc, argv, 1, 20);
  make_grid();
  for (int d = 0; d < kDims; d++) {
    sides[d] = grid[d] * kSide;
  }
  connect(&n);
  for (int site = 0; site < kSites; site++) {
    for (int w = 0; w < kWords; w++) {
      field[0][site][w] = first_word(global_site(site, sides), w);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 0; i < iterations; i++) {
    const int turn = (int)(i % 2);
    send_faces(&n, field[turn], i);
    compute_sites(field[1 - turn], field[turn], turn, 0);
    for (int d = 0; d < kDirections; d++) {
      spin_until(&received[turn][d].iteration, (uint64_t)i + 1);
    }
    compute_sites(field[1 - turn], field[turn], turn, 1);
  }
  for (long i = iterations < 2 ? 0 : iterations - 2; i < iterations; i++) {
    for (int d = 0; d < kDirections; d++) {
      wait_tcq(n.vcq[d]);
    }
  }
  check_against_one_process(field[iterations % 2], sides, iterations);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int d = 0; d < kDirections; d++) {
    check_queues_empty(n.vcq[d]);
    UTOFU_OK(utofu_dereg_mem(n.vcq[d], n.local[d], 0));
    UTOFU_OK(utofu_dereg_mem(n.vcq[d], n.received[d], 0));
    UTOFU_OK(utofu_free_vcq(n.vcq[d]));
  }
  return check_finish();
}
