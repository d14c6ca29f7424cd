// Portals 4.3, 3.15.4: every operation with every datatype that table 3-4 allows gives what C++ computes; every other
// combination is refused.
#include <complex>
#include <optional>

#include "../harness/fixture.h"
#include "table_3_4.h"

using namespace conformance;

PORTALS_SUITE(Operations);

namespace {

alignas(64) unsigned char target_memory[64];

// The initiator's side of the test for one datatype. Memory of the initiator: data, operand and result of one item.
template <class T>
class Tester {
 public:
  Tester(const Ni& ni, ptl_datatype_t type)
      : ni_(ni), type_(type), eq_(alloc_eq(ni)), md_(bind_quiet(ni, items_, sizeof items_, eq_)) {}
  ~Tester() {
    PtlMDRelease(md_);
    PtlEQFree(eq_);
  }

  void check_combinations() {
    for (int op = PTL_MIN; op < PTL_OP_LAST; ++op)
      for (T target : interesting_values<T>())
        for (T initiator : interesting_values<T>()) check_combination(static_cast<ptl_op_t>(op), target, initiator);
  }

  void check_exchanges() {
    for (int op = PTL_MIN; op < PTL_OP_LAST; ++op)
      for (T target : interesting_values<T>())
        for (T operand : interesting_values<T>()) check_exchange(static_cast<ptl_op_t>(op), target, operand);
  }

 private:
  static constexpr ptl_size_t kResult = sizeof(T);  // Offset of items_[1].

  Message message(ptl_op_t op) const { return {.length = sizeof(T), .op = op, .type = type_}; }

  int atomic_rc(ptl_op_t op) {
    return PtlAtomic(md_, 0, sizeof(T), PTL_ACK_REQ, ni_.target(), kPt, 0, 0, nullptr, 0, op, type_);
  }
  int fetch_rc(ptl_op_t op) {
    return PtlFetchAtomic(md_, kResult, md_, 0, sizeof(T), ni_.target(), kPt, 0, 0, nullptr, 0, op, type_);
  }
  int swap_rc(ptl_op_t op, const T* operand) {
    return PtlSwap(md_, kResult, md_, 0, sizeof(T), ni_.target(), kPt, 0, 0, nullptr, 0, operand, op, type_);
  }

  void write_target(T value) {
    items_[0] = value;
    put(md_, ni_.target(), {.length = sizeof(T)});
    next_event(eq_, PTL_EVENT_ACK);
  }

  T read_target() {
    get(md_, ni_.target(), {.length = sizeof(T), .local_offset = kResult});
    next_event(eq_, PTL_EVENT_REPLY);
    return items_[1];
  }

  void check_combination(ptl_op_t op, T target, T initiator) {
    SCOPED_TRACE("operation " + std::to_string(op) + ", datatype " + std::to_string(type_));
    const std::optional<T> expected = combine(op, target, initiator);
    if (!expected) {
      EXPECT_RC(atomic_rc(op), PTL_ARG_INVALID);
      EXPECT_RC(fetch_rc(op), PTL_ARG_INVALID);
      return;
    }
    write_target(target);
    items_[0] = initiator;
    REQUIRE_OK(atomic_rc(op));
    next_event(eq_, PTL_EVENT_ACK);
    EXPECT_EQ(read_target(), *expected) << target << ", " << initiator;
    write_target(target);
    items_[0] = initiator;
    REQUIRE_OK(fetch_rc(op));
    next_event(eq_, PTL_EVENT_REPLY);
    EXPECT_EQ(items_[1], target) << "the value before the operation";
    EXPECT_EQ(read_target(), *expected) << target << ", " << initiator;
  }

  void check_exchange(ptl_op_t op, T target, T operand) {
    SCOPED_TRACE("operation " + std::to_string(op) + ", datatype " + std::to_string(type_));
    const T initiator = interesting_values<T>().back();
    const std::optional<T> expected = exchange(op, target, initiator, operand);
    if (!expected) {
      EXPECT_RC(swap_rc(op, &operand), PTL_ARG_INVALID);
      return;
    }
    write_target(target);
    items_[0] = initiator;
    REQUIRE_OK(swap_rc(op, &operand));
    next_event(eq_, PTL_EVENT_REPLY);
    EXPECT_EQ(items_[1], target) << "the value before the operation";
    EXPECT_EQ(read_target(), *expected) << target << ", operand " << operand;
  }

  const Ni& ni_;
  ptl_datatype_t type_;
  alignas(32) T items_[2] = {};
  ptl_handle_eq_t eq_;
  ptl_handle_md_t md_;
};

template <class T>
void check_type(Process& self, const Ni& ni, ptl_datatype_t type) {
  self.initiator([&] {
    Tester<T> tester(ni, type);
    tester.check_combinations();
    tester.check_exchanges();
  });
}

void prepare_target(Process& self, const Ni& ni) {
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory)); });
}

}  // namespace

TEST_BOTH_WAYS(Operations, Section3_15_4__signed_integers) {
  const Ni ni(self);
  prepare_target(self, ni);
  check_type<std::int8_t>(self, ni, PTL_INT8_T);
  check_type<std::int16_t>(self, ni, PTL_INT16_T);
  check_type<std::int32_t>(self, ni, PTL_INT32_T);
  check_type<std::int64_t>(self, ni, PTL_INT64_T);
}

TEST_BOTH_WAYS(Operations, Section3_15_4__unsigned_integers) {
  const Ni ni(self);
  prepare_target(self, ni);
  check_type<std::uint8_t>(self, ni, PTL_UINT8_T);
  check_type<std::uint16_t>(self, ni, PTL_UINT16_T);
  check_type<std::uint32_t>(self, ni, PTL_UINT32_T);
  check_type<std::uint64_t>(self, ni, PTL_UINT64_T);
}

TEST_BOTH_WAYS(Operations, Section3_15_4__floating_point) {
  const Ni ni(self);
  prepare_target(self, ni);
  check_type<float>(self, ni, PTL_FLOAT);
  check_type<double>(self, ni, PTL_DOUBLE);
  check_type<long double>(self, ni, PTL_LONG_DOUBLE);
}

TEST_BOTH_WAYS(Operations, Section3_15_4__complex) {
  const Ni ni(self);
  prepare_target(self, ni);
  check_type<std::complex<float>>(self, ni, PTL_FLOAT_COMPLEX);
  check_type<std::complex<double>>(self, ni, PTL_DOUBLE_COMPLEX);
  check_type<std::complex<long double>>(self, ni, PTL_LONG_DOUBLE_COMPLEX);
}

// 3.4: operations and datatypes that there are not.
TEST_PROCESSES(1, Operations, Section3_15_4__unknown_operation_and_datatype) {
  const Ni ni(self);
  const Ends ends(ni);
  const auto rc = [&](int op, int type) {
    return PtlAtomic(ends.md, 0, 16, PTL_NO_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0, static_cast<ptl_op_t>(op),
                     static_cast<ptl_datatype_t>(type));
  };
  EXPECT_RC(rc(PTL_OP_LAST, PTL_INT32_T), PTL_ARG_INVALID);
  EXPECT_RC(rc(PTL_SUM, PTL_DATATYPE_LAST), PTL_ARG_INVALID);
  EXPECT_RC(rc(PTL_SUM, PTL_INT32_T), PTL_OK);
}
