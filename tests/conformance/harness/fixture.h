// What nearly every test needs: an open NI that knows its peers, objects with usual values, operations with named
// parameters, and waits that end. Everything stops the test, with the place of the caller, when Portals does not do
// what the caller takes for granted here; what a test is about it checks itself, with EXPECT_*.
//
// Waiting: every wait ends after kPatienceMs. To see that something does NOT happen a test makes something else happen
// that comes later, and then looks; such a check can miss a fault, but it never reports one that is not there.
#pragma once

#include <gtest/gtest.h>
#include <portals4.h>

#include <cstdint>
#include <string>
#include <vector>

#include "names.h"
#include "process.h"
#include "tests/support/eventually.h"

namespace conformance {

struct Where {
  const char* file;
  int line;

  /// Of the caller. std::source_location would be this, but not every clang has what it needs.
  static constexpr Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

inline constexpr ptl_time_t kPatienceMs = 1000 * portofu::kLongestWait.count();
inline constexpr ptl_pt_index_t kPt = 5;       ///< The portal table entry of most tests.
inline constexpr ptl_pt_index_t kOtherPt = 9;  ///< A second one, where a test needs it.
inline constexpr unsigned int kMatching = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
inline constexpr unsigned int kNonMatching = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;

/// Reports a failure and leaves the test.
[[noreturn]] void stop(const std::string& message, Where where = Where::current());

/// Stops unless rc is PTL_OK.
void require(int rc, const char* call, Where where = Where::current());
#define REQUIRE_OK(call) ::conformance::require((call), #call)

// Compares return codes, and prints their names.
#define EXPECT_RC(call, expected) \
  EXPECT_EQ(::conformance::name_of_rc(call), ::conformance::name_of_rc(expected)) << #call

/// One open logical interface. Closes it, with everything made on it, at the end of the test.
class Ni {
 public:
  /// Calls PtlInit and PtlNIInit. On a logical NI every process gets its rank in the test as its rank in the map.
  /// Every process has to call it: the ids are exchanged here.
  explicit Ni(Process& self, unsigned int options = kMatching, const ptl_ni_limits_t* desired = nullptr);
  ~Ni();
  Ni(const Ni&) = delete;
  Ni& operator=(const Ni&) = delete;

  operator ptl_handle_ni_t() const { return handle_; }
  const ptl_ni_limits_t& limits() const { return limits_; }
  bool logical() const { return (options_ & PTL_NI_LOGICAL) != 0; }

  /// Address of a process of the test, as this NI speaks it.
  ptl_process_t id(int rank) const { return ids_[static_cast<std::size_t>(rank)]; }
  ptl_process_t target() const { return id(0); }
  ptl_process_t anyone() const;

  /// Value of a status register.
  ptl_sr_value_t status(ptl_sr_index_t index) const;

 private:
  unsigned int options_;
  ptl_handle_ni_t handle_ = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits_{};
  std::vector<ptl_process_t> ids_;
};

bool same_process(const Ni& ni, ptl_process_t a, ptl_process_t b);

/// Limits as large as a program can ask for; a test then changes the one that it is about.
ptl_ni_limits_t generous_limits();

// ---- Objects -------------------------------------------------------------------------------------------------------

ptl_handle_eq_t alloc_eq(const Ni& ni, ptl_size_t count = 1024, Where where = Where::current());
ptl_handle_ct_t alloc_ct(const Ni& ni, Where where = Where::current());
void alloc_pt(const Ni& ni, ptl_handle_eq_t eq, unsigned int options = 0, ptl_pt_index_t pt_index = kPt,
              Where where = Where::current());

/// An MD without options.
ptl_md_t md_of(const void* start, ptl_size_t length, ptl_handle_eq_t eq = PTL_EQ_NONE, ptl_handle_ct_t ct = PTL_CT_NONE,
               unsigned int options = 0);
ptl_handle_md_t bind_md(const Ni& ni, const ptl_md_t& md, Where where = Where::current());

/// An MD that makes no PTL_EVENT_SEND, so that each operation makes one event: ACK or REPLY.
ptl_handle_md_t bind_quiet(const Ni& ni, const void* start, ptl_size_t length, ptl_handle_eq_t eq,
                           Where where = Where::current());

/// An entry that accepts puts and gets of everyone; it makes no LINK event unless `options` says kLink.
inline constexpr unsigned int kLink = 1u << 31;
ptl_me_t me_of(const Ni& ni, const void* start, ptl_size_t length, unsigned int options = 0);
ptl_le_t le_of(const void* start, ptl_size_t length, unsigned int options = 0);

ptl_handle_me_t append(const Ni& ni, const ptl_me_t& me, ptl_list_t list = PTL_PRIORITY_LIST, void* user_ptr = nullptr,
                       ptl_pt_index_t pt_index = kPt, Where where = Where::current());
ptl_handle_le_t append(const Ni& ni, const ptl_le_t& le, ptl_list_t list = PTL_PRIORITY_LIST, void* user_ptr = nullptr,
                       ptl_pt_index_t pt_index = kPt, Where where = Where::current());

// ---- Operations ----------------------------------------------------------------------------------------------------

/// Parameters of an operation; a call names those that matter: put(md, ni.target(), {.length = 8, .match_bits = 3}).
struct Message {
  ptl_size_t length = 0;
  ptl_size_t local_offset = 0;
  ptl_size_t remote_offset = 0;
  ptl_match_bits_t match_bits = 0;
  ptl_hdr_data_t hdr_data = 0;
  void* user_ptr = nullptr;
  ptl_ack_req_t ack = PTL_ACK_REQ;
  ptl_pt_index_t pt = kPt;
  ptl_op_t op = PTL_SUM;
  ptl_datatype_t type = PTL_INT64_T;
};

void put(ptl_handle_md_t md, ptl_process_t target, const Message& message, Where where = Where::current());
void get(ptl_handle_md_t md, ptl_process_t target, const Message& message, Where where = Where::current());
void atomic(ptl_handle_md_t md, ptl_process_t target, const Message& message, Where where = Where::current());

/// get_offset is where the old value goes; message.local_offset is where the data comes from.
void fetch_atomic(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_process_t target,
                  const Message& message, Where where = Where::current());
void swap(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_process_t target,
          const Message& message, const void* operand = nullptr, Where where = Where::current());

// ---- Events and counts ---------------------------------------------------------------------------------------------

/// Waits for the next event, of any kind; stops if none comes or if events were dropped.
ptl_event_t next_event(ptl_handle_eq_t eq, Where where = Where::current());

/// The same; stops if it is of another kind or has another failure type.
ptl_event_t next_event(ptl_handle_eq_t eq, ptl_event_kind_t kind, ptl_ni_fail_t failure = PTL_NI_OK,
                       Where where = Where::current());

/// Reports a failure if there is an event.
void expect_empty(ptl_handle_eq_t eq, Where where = Where::current());

/// Everything that is in the queue now.
std::vector<ptl_event_t> drain(ptl_handle_eq_t eq);

/// Kinds of the next `count` events, sorted, for events that may come in any order.
std::vector<ptl_event_kind_t> next_kinds(ptl_handle_eq_t eq, int count, Where where = Where::current());

ptl_ct_event_t count_of(ptl_handle_ct_t ct, Where where = Where::current());

/// Waits until the success count is at least `success`, or the failure count is not zero; gives the value.
ptl_ct_event_t wait_for_count(ptl_handle_ct_t ct, ptl_size_t success, Where where = Where::current());

/// Waits until both counts are at least these.
void wait_for_counts(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure, Where where = Where::current());

/// Waits until a status register has the value.
void wait_for_status(const Ni& ni, ptl_sr_index_t index, ptl_sr_value_t value, Where where = Where::current());

/// Waits until a process or thread, named by its directory in /proc, is in a state of proc(5): 'T' is stopped, 'S'
/// asleep. Who sleeps may sleep for a lock on its way: see wait_for_sleep().
void wait_for_state(const std::string& directory, char state, Where where = Where::current());

/// Waits until a thread of this process sleeps for what does not come: it has not run for 20 ms. Who waits for a lock
/// that somebody holds sleeps, too, but not for so long.
void wait_for_sleep(pid_t thread, Where where = Where::current());

// ---- Data ----------------------------------------------------------------------------------------------------------

/// Bytes that differ from place to place and from seed to seed; never zero.
std::vector<unsigned char> pattern(std::size_t bytes, unsigned int seed = 1);

/// A user_ptr that is a number.
inline void* tag(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

/// The objects that most tests use; every process has them, whatever its role.
struct Ends {
  explicit Ends(const Ni& ni, unsigned int pt_options = 0, ptl_size_t target_eq_count = 1024);

  ptl_handle_eq_t target_eq;        ///< Of the portal table entry kPt.
  ptl_handle_eq_t source_eq;        ///< Of md.
  std::vector<unsigned char> data;  ///< 4096 bytes to send from or to fetch into.
  ptl_handle_md_t md;               ///< Over data, without SEND events.
};

/// Puts and waits until the target has processed it; gives the ACK.
ptl_event_t put_and_wait(const Ends& ends, ptl_process_t target, const Message& message,
                         ptl_ni_fail_t failure = PTL_NI_OK, Where where = Where::current());

// ---- Definition of tests -------------------------------------------------------------------------------------------

class BothWays : public testing::TestWithParam<int> {};
std::string name_of_way(const testing::TestParamInfo<int>& info);

// Names the suite of a file. Its tests run in a single process that talks to itself, and with a target and an initiator
// in processes of their own.
#define PORTALS_SUITE(suite)                       \
  class suite : public ::conformance::BothWays {}; \
  INSTANTIATE_TEST_SUITE_P(Portals, suite, testing::Values(1, 2), ::conformance::name_of_way)

#define TEST_BOTH_WAYS(suite, name)                                                 \
  static void suite##_##name(::conformance::Process& self);                         \
  TEST_P(suite, name) { ::conformance::run_processes(GetParam(), suite##_##name); } \
  static void suite##_##name([[maybe_unused]] ::conformance::Process& self)

// A test with a number of processes of its own.
#define TEST_PROCESSES(count, suite, name)                                          \
  static void suite##_##name(::conformance::Process& self);                         \
  TEST(suite##Alone, name) { ::conformance::run_processes(count, suite##_##name); } \
  static void suite##_##name([[maybe_unused]] ::conformance::Process& self)

}  // namespace conformance
