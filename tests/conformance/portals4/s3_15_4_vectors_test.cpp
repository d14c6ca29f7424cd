// Portals 4.3, 3.15.4 to 3.15.7: atomics of many items, up to max_atomic_size and max_fetch_atomic_size: every
// operation with every datatype of table 3-4, plain, fetching and PTL_SWAP; and lengths that are no whole items.
#include <string>

#include "../harness/fixture.h"
#include "table_3_4.h"

using namespace conformance;

PORTALS_SUITE(AtomicVectors);

namespace {

constexpr ptl_size_t kMost = 4096;  ///< Bytes, if the limits are higher.
alignas(64) unsigned char target_memory[kMost];

/// The initiator's side for one datatype: as many items as fit, each pair of values many times among them.
template <class T>
class VectorTester {
 public:
  VectorTester(const Ni& ni, ptl_datatype_t type)
      : ni_(ni),
        type_(type),
        items_(std::min({ni.limits().max_atomic_size, ni.limits().max_fetch_atomic_size, kMost}) / sizeof(T)),
        out_(items_),
        in_(items_),
        eq_(alloc_eq(ni)),
        out_md_(bind_quiet(ni, out_.data(), items_ * sizeof(T), eq_)),
        in_md_(bind_quiet(ni, in_.data(), items_ * sizeof(T), eq_)) {}
  ~VectorTester() {
    PtlMDRelease(out_md_);
    PtlMDRelease(in_md_);
    PtlEQFree(eq_);
  }

  void check_all() {
    for (int op = PTL_MIN; op < PTL_OP_LAST; ++op) check(static_cast<ptl_op_t>(op));
    check_ragged_lengths();
  }

 private:
  Message whole(ptl_op_t op = PTL_SUM) const { return {.length = items_ * sizeof(T), .op = op, .type = type_}; }

  T target_value(std::size_t i) const { return values_[i % values_.size()]; }
  T initiator_value(std::size_t i) const { return values_[i / values_.size() % values_.size()]; }

  void write_target() {
    for (std::size_t i = 0; i < items_; ++i) out_[i] = target_value(i);
    put(out_md_, ni_.target(), whole());
    next_event(eq_, PTL_EVENT_ACK);
    for (std::size_t i = 0; i < items_; ++i) out_[i] = initiator_value(i);
  }

  void expect_in_target(ptl_op_t op) {
    get(in_md_, ni_.target(), whole());
    next_event(eq_, PTL_EVENT_REPLY);
    for (std::size_t i = 0; i < items_; ++i) {
      const T expected = op == PTL_SWAP ? initiator_value(i) : *combine(op, target_value(i), initiator_value(i));
      ASSERT_EQ(in_[i], expected) << "item " << i;
    }
  }

  void expect_fetched() {
    EXPECT_EQ(next_event(eq_, PTL_EVENT_REPLY).mlength, whole().length);
    for (std::size_t i = 0; i < items_; ++i) ASSERT_EQ(in_[i], target_value(i)) << "item " << i;
  }

  void check(ptl_op_t op) {
    SCOPED_TRACE("operation " + std::to_string(op) + ", datatype " + std::to_string(type_));
    if (op == PTL_SWAP) {
      write_target();
      swap(in_md_, 0, out_md_, ni_.target(), whole(op));
      expect_fetched();
      expect_in_target(op);
    }
    if (!combine(op, values_[0], values_[0])) return;
    write_target();
    atomic(out_md_, ni_.target(), whole(op));
    EXPECT_EQ(next_event(eq_, PTL_EVENT_ACK).mlength, whole().length);
    expect_in_target(op);
    write_target();
    fetch_atomic(in_md_, 0, out_md_, ni_.target(), whole(op));
    expect_fetched();
    expect_in_target(op);
  }

  /// 3.15.5: for a length that is no multiple of the datatype the spec leaves the choice; portals4.h has made it.
  void check_ragged_lengths() {
    const ptl_process_t to = ni_.target();
    for (ptl_size_t length = 1; length < 2 * sizeof(T) + 2; ++length) {
      if (length % sizeof(T) == 0) continue;
      SCOPED_TRACE("datatype " + std::to_string(type_) + ", length " + std::to_string(length));
      EXPECT_RC(PtlAtomic(out_md_, 0, length, PTL_ACK_REQ, to, kPt, 0, 0, nullptr, 0, PTL_SUM, type_), PTL_ARG_INVALID);
      EXPECT_RC(PtlFetchAtomic(in_md_, 0, out_md_, 0, length, to, kPt, 0, 0, nullptr, 0, PTL_SUM, type_),
                PTL_ARG_INVALID);
      EXPECT_RC(PtlSwap(in_md_, 0, out_md_, 0, length, to, kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, type_),
                PTL_ARG_INVALID);
      EXPECT_RC(PtlSwap(in_md_, 0, out_md_, 0, length, to, kPt, 0, 0, nullptr, 0, out_.data(), PTL_CSWAP, type_),
                PTL_ARG_INVALID);
    }
  }

  const Ni& ni_;
  ptl_datatype_t type_;
  const std::vector<T> values_ = interesting_values<T>();
  std::size_t items_;
  std::vector<T> out_;
  std::vector<T> in_;
  ptl_handle_eq_t eq_;
  ptl_handle_md_t out_md_;
  ptl_handle_md_t in_md_;
};

template <class T>
void check_type(const Ni& ni, ptl_datatype_t type) {
  VectorTester<T> tester(ni, type);
  tester.check_all();
}

void prepare_target(Process& self, const Ni& ni) {
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory)); });
}

}  // namespace

TEST_BOTH_WAYS(AtomicVectors, Section3_15_4__integers) {
  const Ni ni(self);
  prepare_target(self, ni);
  self.initiator([&] {
    check_type<std::int8_t>(ni, PTL_INT8_T);
    check_type<std::uint8_t>(ni, PTL_UINT8_T);
    check_type<std::int16_t>(ni, PTL_INT16_T);
    check_type<std::uint16_t>(ni, PTL_UINT16_T);
    check_type<std::int32_t>(ni, PTL_INT32_T);
    check_type<std::uint32_t>(ni, PTL_UINT32_T);
    check_type<std::int64_t>(ni, PTL_INT64_T);
    check_type<std::uint64_t>(ni, PTL_UINT64_T);
  });
}

TEST_BOTH_WAYS(AtomicVectors, Section3_15_4__floating_point_and_complex) {
  const Ni ni(self);
  prepare_target(self, ni);
  self.initiator([&] {
    check_type<float>(ni, PTL_FLOAT);
    check_type<double>(ni, PTL_DOUBLE);
    check_type<long double>(ni, PTL_LONG_DOUBLE);
    check_type<std::complex<float>>(ni, PTL_FLOAT_COMPLEX);
    check_type<std::complex<double>>(ni, PTL_DOUBLE_COMPLEX);
    check_type<std::complex<long double>>(ni, PTL_LONG_DOUBLE_COMPLEX);
  });
}
