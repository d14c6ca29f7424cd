// Reduce, Ireduce, Allreduce and Iallreduce of every predefined type of C with every operation that MPI allows for it:
// in place and not, on one item and several, on buffers that are aligned and that are not. What the network interface
// does and what it leaves to others must not differ, and no type may be taken for another.
#include <complex.h>
#include <stdbool.h>

#include "check.h"

enum { kMostItems = 300, kMostBytes = 32, kWays = 8 };

enum operation { kMin, kMax, kSum, kProd, kLand, kLor, kLxor, kBand, kBor, kBxor, kMinloc, kMaxloc, kOperations };
static const char* const operation_names[kOperations] = {"min",  "max",  "sum", "prod", "land",   "lor",
                                                         "lxor", "band", "bor", "bxor", "minloc", "maxloc"};

static MPI_Op mpi_operation(enum operation operation) {
  const MPI_Op all[kOperations] = {MPI_MIN,  MPI_MAX,  MPI_SUM, MPI_PROD, MPI_LAND,   MPI_LOR,
                                   MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
  return all[operation];
}

// Sets of operations, by what MPI calls the groups of types (MPI 3.1, 5.9.2).
enum {
  kOrder = 1 << kMin | 1 << kMax,
  kArithmetic = 1 << kSum | 1 << kProd,
  kLogic = 1 << kLand | 1 << kLor | 1 << kLxor,
  kBits = 1 << kBand | 1 << kBor | 1 << kBxor,
  kPlaces = 1 << kMinloc | 1 << kMaxloc
};

// Small numbers of both signs, different for each rank and item; of wider types with more than one byte in use. Zero is
// frequent where truth counts, factors are few where a product has to fit, equal values are frequent where places
// count.
static long long number(enum operation operation, size_t bytes, int rank, int item) {
  const uint64_t random = check_mix((uint64_t)rank * 7919 + (uint64_t)item);
  const long long small = (long long)(random % 61) - 30;
  switch (operation) {
    case kProd: return (long long)(random % 3) + 1;
    case kLand:
    case kLor:
    case kLxor: return random % 2 == 0 ? 0 : small;
    case kMinloc:
    case kMaxloc: return (long long)(random % 4) - 2;
    default: break;
  }
  switch (bytes) {
    case 1: return small;
    case 2: return small * 257 + 3;
    case 4: return small * 0x100007 + 5;
    default: return small * 0x1000000007 + 9;
  }
}

#define DEFINE_REAL(T, name, bytes)                                                \
  static void set_##name(void* to, enum operation operation, int rank, int item) { \
    const T value = (T)number(operation, bytes, rank, item);                       \
    memcpy(to, &value, sizeof value);                                              \
  }                                                                                \
  static int same_##name(const void* a, const void* b) { return *(const T*)a == *(const T*)b; }

#define DEFINE_NUMBER(T, name, bytes)                                                \
  DEFINE_REAL(T, name, bytes)                                                        \
  static void combine_##name(enum operation operation, void* to, const void* from) { \
    T* a = to;                                                                       \
    const T b = *(const T*)from;                                                     \
    switch (operation) {                                                             \
      case kMin: *a = *a < b ? *a : b; break;                                        \
      case kMax: *a = *a > b ? *a : b; break;                                        \
      case kSum: *a = (T)(*a + b); break;                                            \
      default: *a = (T)(*a * b); break;                                              \
    }                                                                                \
  }

#define DEFINE_INTEGER(T, name)                                                               \
  DEFINE_NUMBER(T, name##_number, sizeof(T))                                                  \
  static void set_##name(void* to, enum operation operation, int rank, int item) {            \
    set_##name##_number(to, operation, rank, item);                                           \
  }                                                                                           \
  static int same_##name(const void* a, const void* b) { return same_##name##_number(a, b); } \
  static void combine_##name(enum operation operation, void* to, const void* from) {          \
    T* a = to;                                                                                \
    const T b = *(const T*)from;                                                              \
    switch (operation) {                                                                      \
      case kLand: *a = (T)(*a && b); break;                                                   \
      case kLor: *a = (T)(*a || b); break;                                                    \
      case kLxor: *a = (T)(!*a != !b); break;                                                 \
      case kBand: *a = (T)(*a & b); break;                                                    \
      case kBor: *a = (T)(*a | b); break;                                                     \
      case kBxor: *a = (T)(*a ^ b); break;                                                    \
      default: combine_##name##_number(operation, to, from); break;                           \
    }                                                                                         \
  }

#define DEFINE_COMPLEX(T, name)                                                                                        \
  static void set_##name(void* to, enum operation operation, int rank, int item) {                                     \
    const T value = (T)((double)number(operation, 1, rank, item) + (double)number(operation, 1, rank + 50, item) * I); \
    memcpy(to, &value, sizeof value);                                                                                  \
  }                                                                                                                    \
  static int same_##name(const void* a, const void* b) { return *(const T*)a == *(const T*)b; }                        \
  static void combine_##name(enum operation operation, void* to, const void* from) {                                   \
    const T b = *(const T*)from;                                                                                       \
    *(T*)to = operation == kSum ? *(T*)to + b : *(T*)to * b;                                                           \
  }

// A value and the rank that it comes from. Padding is not the type's, and is never looked at.
#define DEFINE_PAIR(T, name)                                                             \
  struct name {                                                                          \
    T value;                                                                             \
    int place;                                                                           \
  };                                                                                     \
  static void set_##name(void* to, enum operation operation, int rank, int item) {       \
    struct name pair;                                                                    \
    memset(&pair, 0, sizeof pair);                                                       \
    pair.value = (T)number(operation, 1, rank, item);                                    \
    pair.place = rank + 1;                                                               \
    memcpy(to, &pair, sizeof pair);                                                      \
  }                                                                                      \
  static int same_##name(const void* a, const void* b) {                                 \
    const struct name *x = a, *y = b;                                                    \
    return x->value == y->value && x->place == y->place;                                 \
  }                                                                                      \
  static void combine_##name(enum operation operation, void* to, const void* from) {     \
    struct name* a = to;                                                                 \
    const struct name* b = from;                                                         \
    const int better = operation == kMinloc ? b->value < a->value : b->value > a->value; \
    if (better || (b->value == a->value && b->place < a->place)) {                       \
      memcpy(a, b, sizeof *b);                                                           \
    }                                                                                    \
  }

DEFINE_INTEGER(signed char, signed_char)
DEFINE_INTEGER(unsigned char, unsigned_char)
DEFINE_INTEGER(short, short)
DEFINE_INTEGER(unsigned short, unsigned_short)
DEFINE_INTEGER(int, int)
DEFINE_INTEGER(unsigned, unsigned)
DEFINE_INTEGER(long, long)
DEFINE_INTEGER(unsigned long, unsigned_long)
DEFINE_INTEGER(long long, long_long)
DEFINE_INTEGER(unsigned long long, unsigned_long_long)
DEFINE_INTEGER(int8_t, int8)
DEFINE_INTEGER(uint8_t, uint8)
DEFINE_INTEGER(int16_t, int16)
DEFINE_INTEGER(uint16_t, uint16)
DEFINE_INTEGER(int32_t, int32)
DEFINE_INTEGER(uint32_t, uint32)
DEFINE_INTEGER(int64_t, int64)
DEFINE_INTEGER(uint64_t, uint64)
DEFINE_INTEGER(MPI_Aint, aint)
DEFINE_INTEGER(MPI_Offset, offset)
DEFINE_INTEGER(MPI_Count, count)
DEFINE_REAL(bool, c_bool, 1)
DEFINE_NUMBER(float, float, 1)
DEFINE_NUMBER(double, double, 1)
DEFINE_NUMBER(long double, long_double, 1)
DEFINE_COMPLEX(float _Complex, float_complex)
DEFINE_COMPLEX(double _Complex, double_complex)
DEFINE_COMPLEX(long double _Complex, long_double_complex)
DEFINE_PAIR(float, float_int)
DEFINE_PAIR(double, double_int)
DEFINE_PAIR(long, long_int)
DEFINE_PAIR(int, two_int)
DEFINE_PAIR(short, short_int)
DEFINE_PAIR(long double, long_double_int)

static void combine_c_bool(enum operation operation, void* to, const void* from) {
  bool* a = to;
  const bool b = *(const bool*)from;
  *a = operation == kLand ? *a && b : operation == kLor ? *a || b : *a != b;
}

struct type {
  const char* name;
  MPI_Datatype mpi;
  size_t bytes;
  int operations;
  void (*set)(void*, enum operation, int rank, int item);
  void (*combine)(enum operation, void*, const void*);
  int (*same)(const void*, const void*);
};

#define TYPE(mpi_type, T, name, operations) \
  { #mpi_type, mpi_type, sizeof(T), operations, set_##name, combine_##name, same_##name }
enum { kInteger = kOrder | kArithmetic | kLogic | kBits, kMultiLanguage = kOrder | kArithmetic | kBits };

static const struct type* all_types(size_t* count) {
  static struct type types[64];
  const struct type here[] = {
      TYPE(MPI_SIGNED_CHAR, signed char, signed_char, kInteger),
      TYPE(MPI_UNSIGNED_CHAR, unsigned char, unsigned_char, kInteger),
      TYPE(MPI_SHORT, short, short, kInteger),
      TYPE(MPI_UNSIGNED_SHORT, unsigned short, unsigned_short, kInteger),
      TYPE(MPI_INT, int, int, kInteger),
      TYPE(MPI_UNSIGNED, unsigned, unsigned, kInteger),
      TYPE(MPI_LONG, long, long, kInteger),
      TYPE(MPI_UNSIGNED_LONG, unsigned long, unsigned_long, kInteger),
      TYPE(MPI_LONG_LONG, long long, long_long, kInteger),
      TYPE(MPI_LONG_LONG_INT, long long, long_long, kInteger),
      TYPE(MPI_UNSIGNED_LONG_LONG, unsigned long long, unsigned_long_long, kInteger),
      TYPE(MPI_INT8_T, int8_t, int8, kInteger),
      TYPE(MPI_UINT8_T, uint8_t, uint8, kInteger),
      TYPE(MPI_INT16_T, int16_t, int16, kInteger),
      TYPE(MPI_UINT16_T, uint16_t, uint16, kInteger),
      TYPE(MPI_INT32_T, int32_t, int32, kInteger),
      TYPE(MPI_UINT32_T, uint32_t, uint32, kInteger),
      TYPE(MPI_INT64_T, int64_t, int64, kInteger),
      TYPE(MPI_UINT64_T, uint64_t, uint64, kInteger),
      TYPE(MPI_AINT, MPI_Aint, aint, kMultiLanguage),
      TYPE(MPI_OFFSET, MPI_Offset, offset, kMultiLanguage),
      TYPE(MPI_COUNT, MPI_Count, count, kMultiLanguage),
      TYPE(MPI_BYTE, uint8_t, uint8, kBits),
      TYPE(MPI_C_BOOL, bool, c_bool, kLogic),
      TYPE(MPI_FLOAT, float, float, kOrder | kArithmetic),
      TYPE(MPI_DOUBLE, double, double, kOrder | kArithmetic),
      TYPE(MPI_LONG_DOUBLE, long double, long_double, kOrder | kArithmetic),
      TYPE(MPI_C_COMPLEX, float _Complex, float_complex, kArithmetic),
      TYPE(MPI_C_FLOAT_COMPLEX, float _Complex, float_complex, kArithmetic),
      TYPE(MPI_C_DOUBLE_COMPLEX, double _Complex, double_complex, kArithmetic),
      TYPE(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, long_double_complex, kArithmetic),
      TYPE(MPI_FLOAT_INT, struct float_int, float_int, kPlaces),
      TYPE(MPI_DOUBLE_INT, struct double_int, double_int, kPlaces),
      TYPE(MPI_LONG_INT, struct long_int, long_int, kPlaces),
      TYPE(MPI_2INT, struct two_int, two_int, kPlaces),
      TYPE(MPI_SHORT_INT, struct short_int, short_int, kPlaces),
      TYPE(MPI_LONG_DOUBLE_INT, struct long_double_int, long_double_int, kPlaces),
  };
  *count = sizeof here / sizeof *here;
  memcpy(types, here, sizeof here);
  return types;
}

// One reduction in one of the ways in which MPI has it. Returns whether this rank has the result.
static int reduce_one_way(int way, const void* own, void* result, size_t bytes, int count, MPI_Datatype type,
                          MPI_Op op) {
  const int root = way % check_size, here = root == check_rank;
  const void* from = way % 2 == 1 && (way >= 4 || here) ? MPI_IN_PLACE : own;
  MPI_Request request = MPI_REQUEST_NULL;
  if (from == MPI_IN_PLACE) {
    memcpy(result, own, bytes);
  }
  switch (way) {
    case 0:
    case 1: MPI_Reduce(from, result, count, type, op, root, MPI_COMM_WORLD); break;
    case 2:
    case 3: MPI_Ireduce(from, result, count, type, op, root, MPI_COMM_WORLD, &request); break;
    case 4:
    case 5: MPI_Allreduce(from, result, count, type, op, MPI_COMM_WORLD); break;
    default: MPI_Iallreduce(from, result, count, type, op, MPI_COMM_WORLD, &request); break;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return way >= 4 || here;
}

// `crooked` is how many bytes the buffers lie beside an aligned address.
static void check_reduction(const struct type* type, enum operation operation, int way, int count, size_t crooked) {
  static _Alignas(64) unsigned char own_memory[kMostItems * kMostBytes + 64];
  static _Alignas(64) unsigned char result_memory[sizeof own_memory];
  _Alignas(64) unsigned char expected[kMostBytes], item[kMostBytes];
  unsigned char *own = own_memory + crooked, *result = result_memory + crooked;
  memset(result_memory, 0xA5, sizeof result_memory);
  for (int i = 0; i < count; i++) {
    type->set(item, operation, check_rank, i);
    memcpy(own + (size_t)i * type->bytes, item, type->bytes);
  }
  if (!reduce_one_way(way, own, result, (size_t)count * type->bytes, count, type->mpi, mpi_operation(operation))) {
    return;
  }
  for (int i = 0; i < count; i++) {
    type->set(expected, operation, 0, i);
    for (int rank = 1; rank < check_size; rank++) {
      type->set(item, operation, rank, i);
      type->combine(operation, expected, item);
    }
    memcpy(item, result + (size_t)i * type->bytes, type->bytes);
    CHECK(type->same(item, expected), "%s, %s, way %d, %zu bytes beside an aligned address: item %d of %d is wrong",
          type->name, operation_names[operation], way, crooked, i, count);
  }
  CHECK(check_first_other(result + (size_t)count * type->bytes, 32, 0xA5) < 0, "%s, %s, way %d: written behind the end",
        type->name, operation_names[operation], way);
}

int main(int argc, char** argv) {
  size_t count = 0;
  check_begin(&argc, &argv, "predefined_types", 180);
  const struct type* types = all_types(&count);
  for (const struct type* type = types; type < types + count; type++) {
    for (enum operation operation = 0; operation < kOperations; operation++) {
      for (int way = 0; (type->operations >> operation & 1) != 0 && way < kWays; way++) {
        check_reduction(type, operation, way, 1, 0);
        check_reduction(type, operation, way, kMostItems, 0);
        check_reduction(type, operation, way, 3, 1);
      }
    }
  }
  return check_finish();
}
