#include "fixture.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <fstream>
#include <thread>

#include "tests/support/eventually.h"

namespace conformance {
namespace {

using portofu::eventually;

std::string describe(ptl_ct_event_t value) {
  return "success " + std::to_string(value.success) + ", failure " + std::to_string(value.failure);
}

}  // namespace

void stop(const std::string& message, Where where) {
  ADD_FAILURE_AT(where.file, where.line) << message;
  throw Stopped{};
}

void require(int rc, const char* call, Where where) {
  if (rc != PTL_OK) stop(std::string(call) + " gave " + name_of_rc(rc), where);
}

// ---- Ni ------------------------------------------------------------------------------------------------------------

Ni::Ni(Process& self, unsigned int options, const ptl_ni_limits_t* desired) : options_(options) {
  REQUIRE_OK(PtlInit());
  REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, desired, &limits_, &handle_));
  ptl_process_t mine{};
  REQUIRE_OK(PtlGetPhysId(handle_, &mine));
  ids_ = self.share(mine);
  if (!logical()) return;
  REQUIRE_OK(PtlSetMap(handle_, ids_.size(), ids_.data()));
  for (std::size_t rank = 0; rank < ids_.size(); ++rank) {
    ids_[rank] = ptl_process_t{};
    ids_[rank].rank = static_cast<ptl_rank_t>(rank);
  }
  self.barrier();  // Nobody may be spoken to by rank before its own map is there.
}

Ni::~Ni() {
  PtlNIFini(handle_);
  PtlFini();
}

ptl_process_t Ni::anyone() const {
  ptl_process_t id{};
  if (logical()) {
    id.rank = PTL_RANK_ANY;
  } else {
    id.phys.nid = PTL_NID_ANY;
    id.phys.pid = PTL_PID_ANY;
  }
  return id;
}

ptl_sr_value_t Ni::status(ptl_sr_index_t index) const {
  ptl_sr_value_t value = -1;
  REQUIRE_OK(PtlNIStatus(handle_, index, &value));
  return value;
}

bool same_process(const Ni& ni, ptl_process_t a, ptl_process_t b) {
  return ni.logical() ? a.rank == b.rank : a.phys.nid == b.phys.nid && a.phys.pid == b.phys.pid;
}

ptl_ni_limits_t generous_limits() {
  ptl_ni_limits_t limits{};
  limits.max_entries = limits.max_unexpected_headers = limits.max_mds = limits.max_cts = limits.max_eqs = INT_MAX;
  limits.max_pt_index = limits.max_iovecs = limits.max_list_size = limits.max_triggered_ops = INT_MAX;
  limits.max_msg_size = limits.max_atomic_size = limits.max_fetch_atomic_size = PTL_SIZE_MAX;
  limits.max_waw_ordered_size = limits.max_war_ordered_size = limits.max_volatile_size = PTL_SIZE_MAX;
  limits.features = PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS;
  return limits;
}

// ---- Objects -------------------------------------------------------------------------------------------------------

ptl_handle_eq_t alloc_eq(const Ni& ni, ptl_size_t count, Where where) {
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  require(PtlEQAlloc(ni, count, &eq), "PtlEQAlloc", where);
  return eq;
}

ptl_handle_ct_t alloc_ct(const Ni& ni, Where where) {
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  require(PtlCTAlloc(ni, &ct), "PtlCTAlloc", where);
  return ct;
}

void alloc_pt(const Ni& ni, ptl_handle_eq_t eq, unsigned int options, ptl_pt_index_t pt_index, Where where) {
  ptl_pt_index_t got = PTL_PT_ANY;
  require(PtlPTAlloc(ni, options, eq, pt_index, &got), "PtlPTAlloc", where);
  if (got != pt_index) stop("PtlPTAlloc gave index " + std::to_string(got), where);
}

ptl_md_t md_of(const void* start, ptl_size_t length, ptl_handle_eq_t eq, ptl_handle_ct_t ct, unsigned int options) {
  ptl_md_t md{};
  md.start = const_cast<void*>(start);
  md.length = length;
  md.options = options;
  md.eq_handle = eq;
  md.ct_handle = ct;
  return md;
}

ptl_handle_md_t bind_md(const Ni& ni, const ptl_md_t& md, Where where) {
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  require(PtlMDBind(ni, &md, &handle), "PtlMDBind", where);
  return handle;
}

ptl_handle_md_t bind_quiet(const Ni& ni, const void* start, ptl_size_t length, ptl_handle_eq_t eq, Where where) {
  return bind_md(ni, md_of(start, length, eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE), where);
}

ptl_le_t le_of(const void* start, ptl_size_t length, unsigned int options) {
  ptl_le_t le{};
  le.start = const_cast<void*>(start);
  le.length = length;
  le.ct_handle = PTL_CT_NONE;
  le.uid = PTL_UID_ANY;
  le.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | (options & ~kLink);
  if ((options & kLink) == 0) le.options |= PTL_LE_EVENT_LINK_DISABLE;
  return le;
}

ptl_me_t me_of(const Ni& ni, const void* start, ptl_size_t length, unsigned int options) {
  const ptl_le_t le = le_of(start, length, options);
  ptl_me_t me{};
  me.start = le.start;
  me.length = le.length;
  me.ct_handle = le.ct_handle;
  me.uid = le.uid;
  me.options = le.options;
  me.match_id = ni.anyone();
  return me;
}

ptl_handle_me_t append(const Ni& ni, const ptl_me_t& me, ptl_list_t list, void* user_ptr, ptl_pt_index_t pt_index,
                       Where where) {
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  require(PtlMEAppend(ni, pt_index, &me, list, user_ptr, &handle), "PtlMEAppend", where);
  return handle;
}

ptl_handle_le_t append(const Ni& ni, const ptl_le_t& le, ptl_list_t list, void* user_ptr, ptl_pt_index_t pt_index,
                       Where where) {
  ptl_handle_le_t handle = PTL_INVALID_HANDLE;
  require(PtlLEAppend(ni, pt_index, &le, list, user_ptr, &handle), "PtlLEAppend", where);
  return handle;
}

// ---- Operations ----------------------------------------------------------------------------------------------------

void put(ptl_handle_md_t md, ptl_process_t target, const Message& m, Where where) {
  require(
      PtlPut(md, m.local_offset, m.length, m.ack, target, m.pt, m.match_bits, m.remote_offset, m.user_ptr, m.hdr_data),
      "PtlPut", where);
}

void get(ptl_handle_md_t md, ptl_process_t target, const Message& m, Where where) {
  require(PtlGet(md, m.local_offset, m.length, target, m.pt, m.match_bits, m.remote_offset, m.user_ptr), "PtlGet",
          where);
}

void atomic(ptl_handle_md_t md, ptl_process_t target, const Message& m, Where where) {
  require(PtlAtomic(md, m.local_offset, m.length, m.ack, target, m.pt, m.match_bits, m.remote_offset, m.user_ptr,
                    m.hdr_data, m.op, m.type),
          "PtlAtomic", where);
}

void fetch_atomic(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_process_t target,
                  const Message& m, Where where) {
  require(PtlFetchAtomic(get_md, get_offset, put_md, m.local_offset, m.length, target, m.pt, m.match_bits,
                         m.remote_offset, m.user_ptr, m.hdr_data, m.op, m.type),
          "PtlFetchAtomic", where);
}

void swap(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_process_t target, const Message& m,
          const void* operand, Where where) {
  require(PtlSwap(get_md, get_offset, put_md, m.local_offset, m.length, target, m.pt, m.match_bits, m.remote_offset,
                  m.user_ptr, m.hdr_data, operand, m.op, m.type),
          "PtlSwap", where);
}

// ---- Events and counts ---------------------------------------------------------------------------------------------

ptl_event_t next_event(ptl_handle_eq_t eq, Where where) {
  ptl_event_t event{};
  unsigned int which = 0;
  require(PtlEQPoll(&eq, 1, kPatienceMs, &event, &which), "waiting for an event: PtlEQPoll", where);
  return event;
}

ptl_event_t next_event(ptl_handle_eq_t eq, ptl_event_kind_t kind, ptl_ni_fail_t failure, Where where) {
  const ptl_event_t event = next_event(eq, where);
  if (event.type != kind || event.ni_fail_type != failure)
    stop("expected " + name_of_event(kind) + ' ' + name_of_failure(failure) + ", got " + describe(event), where);
  return event;
}

void expect_empty(ptl_handle_eq_t eq, Where where) {
  ptl_event_t event{};
  const int rc = PtlEQGet(eq, &event);
  if (rc == PTL_EQ_EMPTY) return;
  ADD_FAILURE_AT(where.file, where.line) << "expected an empty queue: PtlEQGet gave " << name_of_rc(rc)
                                         << (rc == PTL_OK || rc == PTL_EQ_DROPPED ? ", " + describe(event) : "");
}

std::vector<ptl_event_t> drain(ptl_handle_eq_t eq) {
  std::vector<ptl_event_t> events;
  ptl_event_t event{};
  while (PtlEQGet(eq, &event) == PTL_OK) events.push_back(event);
  return events;
}

std::vector<ptl_event_kind_t> next_kinds(ptl_handle_eq_t eq, int count, Where where) {
  std::vector<ptl_event_kind_t> kinds;
  for (int i = 0; i < count; ++i) kinds.push_back(next_event(eq, where).type);
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

ptl_ct_event_t count_of(ptl_handle_ct_t ct, Where where) {
  ptl_ct_event_t value{};
  require(PtlCTGet(ct, &value), "PtlCTGet", where);
  return value;
}

ptl_ct_event_t wait_for_count(ptl_handle_ct_t ct, ptl_size_t success, Where where) {
  ptl_ct_event_t value{};
  unsigned int which = 0;
  const int rc = PtlCTPoll(&ct, &success, 1, kPatienceMs, &value, &which);
  if (rc != PTL_OK)
    stop("waiting for success " + std::to_string(success) + ": PtlCTPoll gave " + name_of_rc(rc) + " at " +
             describe(count_of(ct, where)),
         where);
  return value;
}

void wait_for_counts(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure, Where where) {
  ptl_ct_event_t value{};
  const bool reached = eventually([&] {
    value = count_of(ct, where);
    return value.success >= success && value.failure >= failure;
  });
  if (!reached)
    stop("expected success " + std::to_string(success) + ", failure " + std::to_string(failure) + ", got " +
             describe(value),
         where);
}

void wait_for_status(const Ni& ni, ptl_sr_index_t index, ptl_sr_value_t value, Where where) {
  if (!eventually([&] { return ni.status(index) == value; }))
    stop("expected status register " + std::to_string(index) + " to be " + std::to_string(value) + ", it is " +
             std::to_string(ni.status(index)),
         where);
}

void wait_for_state(const std::string& directory, char state, Where where) {
  const auto is_there = [&] {
    std::ifstream file(directory + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");  // The name may hold anything.
    return name_end != std::string::npos && line[name_end + 2] == state;
  };
  if (!eventually(is_there)) stop(directory + " never came to state " + state, where);
}

void wait_for_sleep(pid_t thread, Where where) {
  const std::string directory = "/proc/self/task/" + std::to_string(thread);
  // How often it has begun to sleep, and how often it was put aside.
  const auto switches = [&directory] {
    std::ifstream file(directory + "/status");
    std::string counts;
    for (std::string line; std::getline(file, line);)
      if (line.find("ctxt_switches") != std::string::npos) counts += line;
    return counts;
  };
  std::string before;
  const auto sleeps_on = [&] {
    before = switches();
    wait_for_state(directory, 'S', where);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return switches() == before;
  };
  if (!eventually(sleeps_on)) stop("thread " + std::to_string(thread) + " never slept for 20 ms: " + before, where);
}

Ends::Ends(const Ni& ni, unsigned int pt_options, ptl_size_t target_eq_count)
    : target_eq(alloc_eq(ni, target_eq_count)), source_eq(alloc_eq(ni)), data(pattern(4096)) {
  alloc_pt(ni, target_eq, pt_options);
  md = bind_quiet(ni, data.data(), data.size(), source_eq);
}

ptl_event_t put_and_wait(const Ends& ends, ptl_process_t target, const Message& message, ptl_ni_fail_t failure,
                         Where where) {
  put(ends.md, target, message, where);
  return next_event(ends.source_eq, PTL_EVENT_ACK, failure, where);
}

// ---- Data ----------------------------------------------------------------------------------------------------------

std::vector<unsigned char> pattern(std::size_t bytes, unsigned int seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<unsigned char>(1 + (i * 31 + (i >> 8) * 7 + (i >> 16) * 3 + seed * 101) % 255);
  return data;
}

std::string name_of_way(const testing::TestParamInfo<int>& info) { return info.param == 1 ? "self" : "two_processes"; }

}  // namespace conformance
