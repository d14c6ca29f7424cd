// One-sided atomics of every datatype: accumulate, get-accumulate, fetch-and-op and compare-and-swap with every
// operation, on one item up to more than one message holds; and data that is scattered in memory, at the origin, at the
// target, and at both, in more pieces than a list of vectors usually has. Usage: one_sided_types [PIECES].
//
// Left out because Open MPI's osc/portals4 refuses them: MINLOC and MAXLOC.
#include "check.h"

enum { kMostItems = 3000, kTickets = 20 };

// The values are small integers, so that every type holds them exactly; integers wrap.
#define DEFINE_ACCESS(T, name)                                                      \
  static long long load_##name(const void* at) { return (long long)*(const T*)at; } \
  static void store_##name(void* at, long long value) { *(T*)at = (T)value; }
DEFINE_ACCESS(int8_t, int8)
DEFINE_ACCESS(uint8_t, uint8)
DEFINE_ACCESS(int16_t, int16)
DEFINE_ACCESS(uint16_t, uint16)
DEFINE_ACCESS(int32_t, int32)
DEFINE_ACCESS(uint32_t, uint32)
DEFINE_ACCESS(int64_t, int64)
DEFINE_ACCESS(uint64_t, uint64)
DEFINE_ACCESS(float, float)
DEFINE_ACCESS(double, double)
DEFINE_ACCESS(long double, long_double)
DEFINE_ACCESS(float _Complex, float_complex)
DEFINE_ACCESS(double _Complex, double_complex)
DEFINE_ACCESS(long double _Complex, long_double_complex)

enum kind { kInteger, kAddress, kFloating, kComplex, kCharacter };

struct type {
  const char* name;
  MPI_Datatype mpi;
  int bytes;
  enum kind kind;
  long long (*load)(const void*);
  void (*store)(void*, long long);
};

// Every predefined type of C, by the names that MPI has for it.
static struct type types[] = {
    {"int8", MPI_INT8_T, 1, kInteger, load_int8, store_int8},
    {"uint8", MPI_UINT8_T, 1, kInteger, load_uint8, store_uint8},
    {"int16", MPI_INT16_T, 2, kInteger, load_int16, store_int16},
    {"uint16", MPI_UINT16_T, 2, kInteger, load_uint16, store_uint16},
    {"int32", MPI_INT32_T, 4, kInteger, load_int32, store_int32},
    {"uint32", MPI_UINT32_T, 4, kInteger, load_uint32, store_uint32},
    {"int64", MPI_INT64_T, 8, kInteger, load_int64, store_int64},
    {"uint64", MPI_UINT64_T, 8, kInteger, load_uint64, store_uint64},
    {"signed char", MPI_SIGNED_CHAR, 1, kInteger, load_int8, store_int8},
    {"unsigned char", MPI_UNSIGNED_CHAR, 1, kInteger, load_uint8, store_uint8},
    {"short", MPI_SHORT, 2, kInteger, load_int16, store_int16},
    {"unsigned short", MPI_UNSIGNED_SHORT, 2, kInteger, load_uint16, store_uint16},
    {"int", MPI_INT, 4, kInteger, load_int32, store_int32},
    {"unsigned", MPI_UNSIGNED, 4, kInteger, load_uint32, store_uint32},
    {"long", MPI_LONG, 8, kInteger, load_int64, store_int64},
    {"unsigned long", MPI_UNSIGNED_LONG, 8, kInteger, load_uint64, store_uint64},
    {"long long", MPI_LONG_LONG, 8, kInteger, load_int64, store_int64},
    {"unsigned long long", MPI_UNSIGNED_LONG_LONG, 8, kInteger, load_uint64, store_uint64},
    {"MPI_Aint", MPI_AINT, 8, kAddress, load_int64, store_int64},
    {"MPI_Offset", MPI_OFFSET, 8, kAddress, load_int64, store_int64},
    {"MPI_Count", MPI_COUNT, 8, kAddress, load_int64, store_int64},
    {"wchar_t", MPI_WCHAR, sizeof(wchar_t), kCharacter, load_int32, store_int32},
    {"float", MPI_FLOAT, sizeof(float), kFloating, load_float, store_float},
    {"double", MPI_DOUBLE, sizeof(double), kFloating, load_double, store_double},
    {"long double", MPI_LONG_DOUBLE, sizeof(long double), kFloating, load_long_double, store_long_double},
    {"complex", MPI_C_COMPLEX, 8, kComplex, load_float_complex, store_float_complex},
    {"float complex", MPI_C_FLOAT_COMPLEX, 8, kComplex, load_float_complex, store_float_complex},
    {"double complex", MPI_C_DOUBLE_COMPLEX, 16, kComplex, load_double_complex, store_double_complex},
    {"long double complex", MPI_C_LONG_DOUBLE_COMPLEX, 32, kComplex, load_long_double_complex,
     store_long_double_complex},
};

enum operation { kSum, kProd, kMin, kMax, kLand, kLor, kLxor, kBand, kBor, kBxor, kReplace, kNoOp, kOperations };

static MPI_Op mpi_operation(enum operation operation) {
  const MPI_Op all[kOperations] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_LAND,    MPI_LOR,
                                   MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE, MPI_NO_OP};
  return all[operation];
}

// MPI 3.1, 5.9.2: which operation a kind of types has.
static int has(enum kind kind, enum operation operation) {
  if (kind == kCharacter) return operation == kReplace || operation == kNoOp;
  switch (operation) {
    case kMin:
    case kMax: return kind != kComplex;
    case kLand:
    case kLor:
    case kLxor: return kind == kInteger;
    case kBand:
    case kBor:
    case kBxor: return kind == kInteger || kind == kAddress;
    default: return 1;
  }
}

// A uint64 is in order as such, also where a long long holds it.
static int is_less(const struct type* type, long long a, long long b) {
  return type->load == load_uint64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static long long apply(const struct type* type, enum operation operation, long long a, long long b) {
  switch (operation) {
    case kSum: return a + b;
    case kProd: return a * b;
    case kMin: return is_less(type, b, a) ? b : a;
    case kMax: return is_less(type, a, b) ? b : a;
    case kLand: return a && b;
    case kLor: return a || b;
    case kLxor: return !a != !b;
    case kBand: return a & b;
    case kBor: return a | b;
    case kBxor: return a ^ b;
    case kReplace: return b;
    default: return a;
  }
}

// A value as the type holds it.
static long long wrapped(const struct type* type, long long value) {
  long double _Complex room;
  type->store(&room, value);
  return type->load(&room);
}

// Item `i` of rank `rank`: 0 to 3.
static long long element(int rank, int i) { return (long long)(check_mix((uint64_t)rank * 1000003 + (uint64_t)i) % 4); }

// As the type holds it: of types with a sign -2 to 1, of others the same, wrapped, for every second item.
static long long value_of(const struct type* type, int rank, int i) {
  return wrapped(type, element(rank, i) - (type->kind == kComplex ? 0 : i % 2 * 2));
}

static char* memory;
static MPI_Win window;

static void fill(const struct type* type, char* items, int count, int rank) {
  for (int i = 0; i < count; i++) {
    type->store(items + (size_t)i * (size_t)type->bytes, value_of(type, rank, i));
  }
}

static long long item(const struct type* type, const char* items, int i) {
  return type->load(items + (size_t)i * (size_t)type->bytes);
}

// All ranks accumulate on all ranks at once. The order is free: only for operations that commute.
static void accumulate(const struct type* type, enum operation operation, int count) {
  char* own = check_allocate((size_t)count * (size_t)type->bytes);
  fill(type, own, count, check_rank);
  fill(type, memory, count, 99);
  MPI_Win_fence(0, window);
  for (int target = 0; target < check_size; target++) {
    MPI_Accumulate(own, count, type->mpi, target, 0, count, type->mpi, mpi_operation(operation), window);
  }
  MPI_Win_fence(0, window);
  for (int i = 0; i < count; i++) {
    long long expected = value_of(type, 99, i);
    for (int rank = 0; rank < check_size; rank++) {
      expected = wrapped(type, apply(type, operation, expected, value_of(type, rank, i)));
    }
    CHECK(item(type, memory, i) == expected, "accumulate of %d %s, operation %d: item %d is %lld instead of %lld",
          count, type->name, (int)operation, i, item(type, memory, i), expected);
  }
  free(own);
}

// Each rank alone on its right neighbour: what is fetched is what was there.
static void get_accumulate(const struct type* type, enum operation operation, int count) {
  const int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
  char* own = check_allocate((size_t)count * (size_t)type->bytes);
  char* old = check_allocate((size_t)count * (size_t)type->bytes);
  fill(type, own, count, check_rank);
  fill(type, memory, count, 100 + check_rank);
  memset(old, 0x77, (size_t)count * (size_t)type->bytes);
  MPI_Win_fence(0, window);
  MPI_Get_accumulate(own, count, type->mpi, old, count, type->mpi, next, 0, count, type->mpi, mpi_operation(operation),
                     window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < count; i++) {
    const long long expected =
        wrapped(type, apply(type, operation, value_of(type, 100 + check_rank, i), value_of(type, previous, i)));
    CHECK(item(type, memory, i) == expected, "get_accumulate of %d %s, operation %d: item %d is %lld instead of %lld",
          count, type->name, (int)operation, i, item(type, memory, i), expected);
    CHECK(item(type, old, i) == value_of(type, 100 + next, i),
          "get_accumulate of %d %s, operation %d: item %d fetched %lld", count, type->name, (int)operation, i,
          item(type, old, i));
  }
  free(old);
  free(own);
}

// Every rank draws tickets from rank 0: each is drawn once. There are few enough for the smallest type.
static void draw_tickets(const struct type* type) {
  const long long tickets = (long long)check_size * kTickets;
  long long sum = 0, total = 0;
  long double _Complex one, ticket;
  type->store(&one, 1);
  if (tickets > 127) {
    return;
  }
  type->store(memory, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kTickets; i++) {
    MPI_Fetch_and_op(&one, &ticket, type->mpi, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    sum += type->load(&ticket);
  }
  MPI_Win_unlock_all(window);
  MPI_Allreduce(&sum, &total, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(total == tickets * (tickets - 1) / 2, "tickets of type %s add up to %lld", type->name, total);
  CHECK(check_rank != 0 || type->load(memory) == tickets, "tickets of type %s end at %lld", type->name,
        type->load(memory));
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every rank adds 1 at every rank by compare-and-swap.
static void compare_and_swap(const struct type* type) {
  type->store(memory, 5);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < check_size; target++) {
    int64_t expected, wanted, found;
    long long seen = 5, guess;
    do {
      guess = seen;
      type->store(&expected, guess);
      type->store(&wanted, guess + 1);
      MPI_Compare_and_swap(&wanted, &expected, &found, type->mpi, target, 0, window);
      MPI_Win_flush(target, window);
      seen = type->load(&found);
    } while (seen != guess);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(type->load(memory) == 5 + check_size, "compare_and_swap of type %s ends at %lld", type->name,
        type->load(memory));
  MPI_Barrier(MPI_COMM_WORLD);
}

static void every_type(void) {
  const int counts[] = {1, 3, 7, 513, kMostItems};
  for (size_t at = 0; at < sizeof types / sizeof *types; at++) {
    const struct type* type = &types[at];
    for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
      for (enum operation operation = 0; operation < kOperations; operation++) {
        if (!has(type->kind, operation)) {
          continue;
        }
        if (operation < kReplace) {
          accumulate(type, operation, counts[which]);
        }
        get_accumulate(type, operation, counts[which]);
      }
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    if (has(type->kind, kSum)) {
      draw_tickets(type);
    }
    if (type->kind == kInteger || type->kind == kAddress) {
      compare_and_swap(type);
    }
    MPI_Win_fence(0, window);
  }
}

// Scattered data: pieces of 3 of 5 ints.
enum { kPiece = 3, kStride = 5 };

static int is_in_piece(int at) { return at % kStride < kPiece; }

// Where item `i` of the data lies.
static int place(int is_scattered, int i) { return is_scattered ? i / kPiece * kStride + i % kPiece : i; }

static void move_scattered(int at_origin, int at_target, int pieces) {
  const int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
  const int items = pieces * kPiece, room = pieces * kStride;
  const int origin_count = at_origin ? 1 : items, target_count = at_target ? 1 : items;
  int *own = check_allocate((size_t)room * sizeof(int)), *exposed = (int*)(void*)memory;
  MPI_Datatype scattered, origin, target;
  MPI_Type_vector(pieces, kPiece, kStride, MPI_INT, &scattered);
  MPI_Type_commit(&scattered);
  origin = at_origin ? scattered : MPI_INT;
  target = at_target ? scattered : MPI_INT;
  for (int i = 0; i < room; i++) {
    own[i] = exposed[i] = -1;
  }
  for (int i = 0; i < items; i++) {
    own[place(at_origin, i)] = (int)element(check_rank, i);
  }
  MPI_Win_fence(0, window);
  MPI_Put(own, origin_count, origin, next, 0, target_count, target, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < items; i++) {
    const int found = exposed[place(at_target, i)];
    CHECK(found == element(previous, i), "put of %d pieces: item %d is %d", pieces, i, found);
  }
  MPI_Win_fence(0, window);
  MPI_Accumulate(own, origin_count, origin, next, 0, target_count, target, MPI_SUM, window);
  MPI_Win_fence(0, window);
  memset(own, 0xff, (size_t)room * sizeof(int));
  MPI_Get(own, origin_count, origin, next, 0, target_count, target, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < items; i++) {
    const int found = own[place(at_origin, i)];
    CHECK(found == 2 * element(check_rank, i), "get of %d pieces: item %d is %d", pieces, i, found);
  }
  for (int i = 0; i < room; i++) {
    CHECK(!at_origin || is_in_piece(i) || own[i] == -1, "get of %d pieces wrote between them", pieces);
    CHECK(!at_target || is_in_piece(i) || exposed[i] == -1, "put of %d pieces wrote between them", pieces);
  }
  MPI_Win_fence(0, window);
  MPI_Type_free(&scattered);
  free(own);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "one_sided_types", 120);
  const int most_pieces = (int)check_argument(argc, argv, 1, 2000);
  const size_t for_types = kMostItems * sizeof(long double _Complex),
               for_pieces = (size_t)most_pieces * kStride * sizeof(int);
  const size_t bytes = for_types > for_pieces ? for_types : for_pieces;
  MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  every_type();
  for (int round = 0; round < 9; round++) {
    const int pieces = round / 3 == 0 ? 1 : round / 3 == 1 ? 60 : most_pieces;
    move_scattered(round % 3 != 1, round % 3 != 0, pieces);
  }
  MPI_Win_free(&window);
  return check_finish();
}
