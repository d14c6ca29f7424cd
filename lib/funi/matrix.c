// The matrix product of the thesis (6.2.2, appendix C) on active messages: C = A x B, all three by blocks of columns.
// Each node fetches the columns of A one after the other, and computes with one while the next is under way.
//
//   ptl_run -n 4 ./funi_matrix [N R M [xfer|mfer]]
//
// A is N x R, B is R x M. R and M are multiples of the number of nodes, N is even. "xfer" fetches by the primitives
// that CMAM has on other machines, "mfer" by transfers from memory to memory. Every node compares its columns of C with
// what it computes alone; rank 0 prints the result. Exit status 0: all is right.

#include <cmam.h>
#include <funi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *a_columns, *b_columns, *c_columns;  // Own ones, a column behind the other.
static double* fetched[2];
static uint32_t fetched_address[2];
static int by_mfer;
static int failure;      // A code of funi.h that a handler met.
static int wrong_nodes;  // Of rank 0: nodes whose columns are wrong.
static int results;      // Of rank 0: nodes that have told.

/// Small whole numbers: sums are exact.
static double a_at(int row, int column) { return (row * 7 + column * 3) % 11 - 5; }
static double b_at(int row, int column) { return (row * 5 + column * 2) % 13 - 6; }

static void check(int error, const char* what) {
  if (error >= 0) return;
  fprintf(stderr, "matrix: %s: %s\n", what, funi_error_name(error));
  exit(1);
}

static double* allocate(size_t doubles) {
  void* memory = aligned_alloc(64, (doubles * sizeof(double) + 63) / 64 * 64);
  if (memory == NULL) check(FUNI_ERR_MEMORY, "memory");
  return memory;
}

static int end_transfer(void* info, void* base) {
  (void)base;
  ++*(int*)info;
  return 0;
}

/// Sends a column of A to whoever asks for it.
struct get {
  int seg_addr, offset, who, byte_count;
  uint32_t dest;
};
static void get_handler(const void* arguments, int bytes) {
  struct get get;
  if (bytes != (int)sizeof get) return;
  memcpy(&get, arguments, sizeof get);
  const double* column = a_columns + get.offset;
  const int error = by_mfer ? cmam_reply_mfer(get.who, (unsigned)get.seg_addr, column, get.dest, get.byte_count)
                            : cmam_reply_xfer(get.who, (unsigned)get.seg_addr, column, get.byte_count);
  if (error < 0) failure = error;
}

static void result_handler(int is_wrong, int i2, int i3, int i4) {
  (void)i2, (void)i3, (void)i4;
  wrong_nodes += is_wrong;
  ++results;
}

static void fetch(int column, int n, int own_columns, int buffer, int* flag) {
  const int bytes = n * (int)sizeof(double);
  const int segment = cmam_open_segment(fetched[buffer], bytes, end_transfer, flag);
  check(segment, "segment");
  const struct get get = {segment, n * (column % own_columns), cmam_self_address(), bytes, fetched_address[buffer]};
  check(cmam_n(column / own_columns, get_handler, &get, sizeof get), "request");
}

static void multiply(int n, int r, int m) {
  const int nodes = cmam_partition_size(), own_columns = r / nodes, first = cmam_self_address() * own_columns;
  int arrived = 0;
  fetch(first, n, own_columns, 0, &arrived);
  for (int done = 0; done < r; ++done) {
    const int column = (first + done) % r, next = (column + 1) % r;
    check(cmam_wait(&arrived, 1), "wait");
    const double* v = fetched[done % 2];
    if (next != first) fetch(next, n, own_columns, (done + 1) % 2, &arrived);
    for (int k = 0; k < m / nodes; ++k) {
      for (int i = 0; i < n; ++i) c_columns[k * n + i] += v[i] * b_columns[k * r + column];
      check(cmam_poll(), "poll");
    }
    check(failure, "reply");
  }
}

/// @return whether any element of the own columns is wrong
static int is_wrong(int n, int r, int m) {
  const int own = m / cmam_partition_size(), first = cmam_self_address() * own;
  for (int k = 0; k < own; ++k) {
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int j = 0; j < r; ++j) sum += a_at(i, j) * b_at(j, first + k);
      if (sum != c_columns[k * n + i]) return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  const int n = argc > 3 ? atoi(argv[1]) : 64, r = argc > 3 ? atoi(argv[2]) : 64, m = argc > 3 ? atoi(argv[3]) : 64;
  by_mfer = argc <= 4 || strcmp(argv[4], "xfer") != 0;
  funi_t ni;
  uint32_t node, nodes;
  check(funi_open_job(NULL, &ni, &node, &nodes), "open");
  if (n < 2 || n % 2 != 0 || r < 1 || r % (int)nodes != 0 || m < 1 || m % (int)nodes != 0) {
    fprintf(stderr, "matrix: N must be even, R and M multiples of %u\n", nodes);
    return 2;
  }
  const int a_own = r / (int)nodes, b_own = m / (int)nodes;
  a_columns = allocate((size_t)n * (size_t)a_own);
  b_columns = allocate((size_t)r * (size_t)b_own);
  c_columns = allocate((size_t)n * (size_t)b_own);
  for (int i = 0; i < 2; ++i) {
    fetched[i] = allocate((size_t)n);
    check(funi_map(ni, fetched[i], (size_t)n * sizeof(double), &fetched_address[i]), "map");
  }
  uint32_t address;
  check(funi_map(ni, a_columns, (size_t)n * (size_t)a_own * sizeof(double), &address), "map");
  for (int k = 0; k < a_own; ++k)
    for (int i = 0; i < n; ++i) a_columns[k * n + i] = a_at(i, (int)node * a_own + k);
  for (int k = 0; k < b_own; ++k)
    for (int j = 0; j < r; ++j) b_columns[k * r + j] = b_at(j, (int)node * b_own + k);
  memset(c_columns, 0, (size_t)n * (size_t)b_own * sizeof(double));
  check(cmam_open(ni, node, nodes), "active messages");
  check(cmam_barrier(), "barrier");
  multiply(n, r, m);
  const int wrong = is_wrong(n, r, m);
  check(cmam_4(0, result_handler, wrong, 0, 0, 0), "result");
  while (node == 0 && results < (int)nodes) check(cmam_poll(), "poll");
  check(cmam_barrier(), "barrier");
  if (node == 0) printf("%d x %d x %d on %u nodes: %s\n", n, r, m, nodes, wrong_nodes == 0 ? "right" : "wrong");
  check(cmam_close(), "close");
  check(funi_close(ni), "close");
  return wrong_nodes != 0;
}
