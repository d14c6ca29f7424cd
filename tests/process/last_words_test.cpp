// What a process has answered counts, though it leaves right behind that: Portals' and uTofu's operations to a target
// that ends, tidily, at once or by SIGKILL, as soon as it has heard of them. In rounds, because it is a race between
// two processes.

#include <gtest/gtest.h>
#include <portals4.h>
#include <signal.h>
#include <utofu.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/test_nodes.h"

namespace portofu {
namespace {

constexpr std::uint64_t kValue = 0xc0ffee;

/// How the target ends.
enum class End { kTidy, kAtOnce, kKilled };
const std::vector<End> kAllEnds{End::kTidy, End::kAtOnce, End::kKilled};

/// Ends the process, if it is not to end tidily.
void leave(End end) {
  if (end == End::kAtOnce) _exit(0);
  if (end == End::kKilled) raise(SIGKILL);
}

/// ChildProcess::wait_status of a target that has gone through all.
int status_of(End end) { return end == End::kKilled ? 128 + SIGKILL : 0; }

/// What carries the packets.
enum class Way { kSharedMemory, kShuffled, kFabric, kDatagrams, kLossy };

bool is_between_nodes(Way way) { return way != Way::kSharedMemory && way != Way::kShuffled; }
Place place_of(Way way) { return is_between_nodes(way) ? Place::kNodeEach : Place::kOneNode; }

/// Between nodes each takes about a second.
int rounds_of(Way way) { return is_between_nodes(way) ? 2 : 25; }

enum class Operation { kGet, kLongGet, kFetchAtomic, kSwap, kPut, kLongPut };

/// Leaves the child with the line that went wrong, modulo 256.
#define MUST(condition) \
  if (!(condition)) _exit(__LINE__ % 256 == 0 ? 1 : __LINE__ % 256)

struct Meeting {
  std::atomic<int> ready{0};
  std::atomic<std::uint32_t> pid{0};
  std::atomic<utofu_vcq_id_t> vcq_id{0};
  std::atomic<utofu_stadd_t> stadd{0};
};

void enter(const TestNodes& nodes, Way way, int rank) {
  nodes.enter(rank);
  if (way == Way::kDatagrams || way == Way::kLossy) setenv("PORTOFU_FABRIC_ENDPOINT", "datagram", 1);
  if (way == Way::kLossy) setenv("PORTOFU_DATAGRAM_FAULTS", "loss=50", 1);
  if (way == Way::kShuffled) setenv("PORTOFU_SHUFFLE", "3", 1);
}

bool is_long(Operation operation) { return operation == Operation::kLongGet || operation == Operation::kLongPut; }
std::size_t bytes_of(Operation operation) { return is_long(operation) ? 300'000 : 8; }

// ---- Portals -------------------------------------------------------------------------------------------------------

/// The last byte of an answer is the last to come.
struct Memory {
  explicit Memory(std::size_t bytes, std::uint64_t value) : words(bytes / 8, value) {}
  std::vector<std::uint64_t> words;
};

int run_target(Operation operation, End end, bool warm, Meeting& meeting) {
  Memory memory(bytes_of(operation), kValue);
  ptl_handle_ni_t ni{};
  ptl_handle_ct_t ct{};
  ptl_handle_le_t entry{};
  ptl_pt_index_t pt = 0;
  ptl_process_t own{};
  ptl_ct_event_t count{};
  MUST(PtlInit() == PTL_OK);
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) ==
       PTL_OK);
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt) == PTL_OK);
  MUST(PtlCTAlloc(ni, &ct) == PTL_OK);
  const ptl_le_t le{memory.words.data(), memory.words.size() * 8, ct, PTL_UID_ANY,
                    PTL_LE_OP_GET | PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  MUST(PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK);
  MUST(PtlGetPhysId(ni, &own) == PTL_OK);
  meeting.pid = own.phys.pid;
  meeting.ready = 1;
  MUST(PtlCTWait(ct, warm ? 2 : 1, &count) == PTL_OK && count.failure == 0);
  leave(end);
  MUST(PtlLEUnlink(entry) == PTL_OK && PtlCTFree(ct) == PTL_OK && PtlPTFree(ni, pt) == PTL_OK);
  MUST(PtlNIFini(ni) == PTL_OK);
  PtlFini();
  return 0;
}

void start(Operation operation, ptl_handle_md_t md, ptl_handle_md_t operand_md, ptl_process_t target) {
  const ptl_size_t bytes = bytes_of(operation);
  switch (operation) {
    case Operation::kGet:
    case Operation::kLongGet: MUST(PtlGet(md, 0, bytes, target, 0, 0, 0, nullptr) == PTL_OK); return;
    case Operation::kFetchAtomic:
      MUST(PtlFetchAtomic(md, 0, operand_md, 0, 8, target, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T) == PTL_OK);
      return;
    case Operation::kSwap:
      MUST(PtlSwap(md, 0, operand_md, 0, 8, target, 0, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_UINT64_T) == PTL_OK);
      return;
    case Operation::kPut:
    case Operation::kLongPut:
      MUST(PtlPut(operand_md, 0, bytes, PTL_ACK_REQ, target, 0, 0, 0, nullptr, 0) == PTL_OK);
      return;
  }
}

int run_initiator(Operation operation, std::uint32_t target_nid, bool warm, Meeting& meeting) {
  Memory result(bytes_of(operation), 1);
  Memory operand(bytes_of(operation), 5);
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t eq{};
  ptl_handle_md_t md{};
  ptl_handle_md_t operand_md{};
  ptl_event_t event{};
  MUST(PtlInit() == PTL_OK);
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) ==
       PTL_OK);
  MUST(PtlEQAlloc(ni, 64, &eq) == PTL_OK);
  ptl_md_t described{result.words.data(), result.words.size() * 8, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
  MUST(PtlMDBind(ni, &described, &md) == PTL_OK);
  described.start = operand.words.data();
  MUST(PtlMDBind(ni, &described, &operand_md) == PTL_OK);
  MUST(eventually([&] { return meeting.ready != 0; }));
  ptl_process_t target{};
  target.phys.nid = target_nid;
  target.phys.pid = meeting.pid;
  if (warm) {
    MUST(PtlPut(md, 0, 0, PTL_ACK_REQ, target, 0, 0, 0, nullptr, 0) == PTL_OK);
    MUST(PtlEQWait(eq, &event) == PTL_OK && event.ni_fail_type == PTL_NI_OK);
  }
  start(operation, md, operand_md, target);
  const bool puts = operation == Operation::kPut || operation == Operation::kLongPut;
  MUST(PtlEQWait(eq, &event) == PTL_OK);
  MUST(event.type == (puts ? PTL_EVENT_ACK : PTL_EVENT_REPLY));
  MUST(event.ni_fail_type == PTL_NI_OK);
  MUST(puts || result.words.back() == kValue);
  PtlNIFini(ni);
  PtlFini();
  return 0;
}

/// @param warm  the two have talked before
void expect_answered(Operation operation, End end, Way way, bool warm) {
  const TestNodes nodes(place_of(way));
  for (int round = 0; round < rounds_of(way); ++round) {
    const SharedMemory<Meeting> meeting;
    ChildProcess initiator([&] {
      enter(nodes, way, 0);
      return run_initiator(operation, nodes.nid(1), warm, *meeting);
    });
    ChildProcess target([&] {
      enter(nodes, way, 1);
      return run_target(operation, end, warm, *meeting);
    });
    ASSERT_EQ(target.wait_status(), status_of(end)) << "the target failed in the line of this number, or 256 further";
    ASSERT_EQ(initiator.wait_status(), 0) << "the initiator did, in round " << round;
  }
}

constexpr Operation kAll[] = {Operation::kGet,  Operation::kLongGet, Operation::kFetchAtomic,
                              Operation::kSwap, Operation::kPut,     Operation::kLongPut};

void expect_all_answered(Way way, bool warm) {
  for (const End end : kAllEnds) {
    for (const Operation operation : kAll) {
      SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(operation) << ", end "
                                      << static_cast<int>(end));
      expect_answered(operation, end, way, warm);
    }
  }
}

TEST(LastWords, Portals__on_one_node) { expect_all_answered(Way::kSharedMemory, false); }
TEST(LastWords, Portals__on_one_node_between_those_that_have_talked) { expect_all_answered(Way::kSharedMemory, true); }
TEST(LastWords, Portals__on_one_node_in_another_order) { expect_all_answered(Way::kShuffled, false); }

TEST(LastWords, Portals__between_nodes) { expect_all_answered(Way::kFabric, true); }
TEST(LastWords, Portals__between_nodes_over_datagrams) { expect_all_answered(Way::kDatagrams, true); }

TEST(LastWords, Portals__between_nodes_that_have_not_talked) { expect_all_answered(Way::kFabric, false); }
TEST(LastWords, Portals__between_nodes_that_have_not_talked_over_datagrams) {
  expect_all_answered(Way::kDatagrams, false);
}

// ---- uTofu ---------------------------------------------------------------------------------------------------------

enum class TofuOperation { kPut, kLongPut, kGet, kLongGet, kArmw };

std::size_t bytes_of(TofuOperation operation) {
  return operation == TofuOperation::kLongPut || operation == TofuOperation::kLongGet ? 300'000 : 8;
}

/// A VCQ with registered memory.
struct TofuEnd {
  TofuEnd(std::size_t bytes, std::uint64_t value) : memory(bytes, value) {
    MUST(utofu_create_vcq(0, 0, &vcq) == UTOFU_SUCCESS);
    MUST(utofu_reg_mem(vcq, memory.words.data(), bytes, 0, &stadd) == UTOFU_SUCCESS);
  }

  /// @return the code of the next notice
  int next_notice(utofu_mrq_notice* notice) const {
    int rc = UTOFU_ERR_NOT_FOUND;
    eventually([&] { return (rc = utofu_poll_mrq(vcq, 0, notice)) != UTOFU_ERR_NOT_FOUND; });
    return rc;
  }

  Memory memory;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
};

int run_tofu_target(TofuOperation operation, End end, Meeting& meeting) {
  TofuEnd own(bytes_of(operation), kValue);
  utofu_vcq_id_t id = 0;
  MUST(utofu_query_vcq_id(own.vcq, &id) == UTOFU_SUCCESS);
  meeting.vcq_id = id;
  meeting.stadd = own.stadd;
  meeting.ready = 1;
  utofu_mrq_notice notice{};
  MUST(own.next_notice(&notice) == UTOFU_SUCCESS);
  leave(end);
  MUST(utofu_dereg_mem(own.vcq, own.stadd, 0) == UTOFU_SUCCESS && utofu_free_vcq(own.vcq) == UTOFU_SUCCESS);
  return 0;
}

int run_tofu_initiator(TofuOperation operation, Meeting& meeting) {
  const std::size_t bytes = bytes_of(operation);
  TofuEnd own(bytes, 7);
  MUST(eventually([&] { return meeting.ready != 0; }));
  const utofu_vcq_id_t target = meeting.vcq_id;
  const utofu_stadd_t stadd = meeting.stadd;
  constexpr unsigned long kAllNotices =
      UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  switch (operation) {
    case TofuOperation::kPut:
    case TofuOperation::kLongPut:
      MUST(utofu_put(own.vcq, target, own.stadd, stadd, bytes, 1, kAllNotices, nullptr) == UTOFU_SUCCESS);
      break;
    case TofuOperation::kGet:
    case TofuOperation::kLongGet:
      MUST(utofu_get(own.vcq, target, own.stadd, stadd, bytes, 1, kAllNotices, nullptr) == UTOFU_SUCCESS);
      break;
    case TofuOperation::kArmw:
      MUST(utofu_armw8(own.vcq, target, UTOFU_ARMW_OP_ADD, 2, stadd, 1, kAllNotices, nullptr) == UTOFU_SUCCESS);
      break;
  }
  int rc = UTOFU_ERR_NOT_FOUND;
  void* cbdata = nullptr;
  MUST(eventually([&] { return (rc = utofu_poll_tcq(own.vcq, 0, &cbdata)) != UTOFU_ERR_NOT_FOUND; }));
  MUST(rc == UTOFU_SUCCESS);
  utofu_mrq_notice notice{};
  MUST(own.next_notice(&notice) == UTOFU_SUCCESS);
  const bool gets = operation == TofuOperation::kGet || operation == TofuOperation::kLongGet;
  MUST(!gets || own.memory.words.back() == kValue);
  MUST(operation != TofuOperation::kArmw || notice.rmt_value == kValue);
  return 0;
}

void expect_tofu_answered(Way way, const std::vector<End>& ends) {
  const TestNodes nodes(place_of(way));
  for (const End end : ends) {
    for (const TofuOperation operation : {TofuOperation::kPut, TofuOperation::kLongPut, TofuOperation::kGet,
                                          TofuOperation::kLongGet, TofuOperation::kArmw}) {
      SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(operation) << ", end "
                                      << static_cast<int>(end));
      for (int round = 0; round < rounds_of(way); ++round) {
        const SharedMemory<Meeting> meeting;
        ChildProcess initiator([&] {
          enter(nodes, way, 0);
          std::exit(run_tofu_initiator(operation, *meeting));
          return 0;
        });
        ChildProcess target([&] {
          enter(nodes, way, 1);
          std::exit(run_tofu_target(operation, end, *meeting));
          return 0;
        });
        ASSERT_EQ(target.wait_status(), status_of(end))
            << "the target failed in the line of this number or 256 further";
        ASSERT_EQ(initiator.wait_status(), 0) << "the initiator did, in round " << round;
      }
    }
  }
}

TEST(LastWords, Tofu__on_one_node) { expect_tofu_answered(Way::kSharedMemory, kAllEnds); }
TEST(LastWords, Tofu__on_one_node_in_another_order) { expect_tofu_answered(Way::kShuffled, kAllEnds); }
TEST(LastWords, Tofu__between_nodes) { expect_tofu_answered(Way::kFabric, kAllEnds); }
// The answer has to be said again, after the target's main has returned.
TEST(LastWords, Tofu__between_nodes_over_datagrams_of_which_half_are_lost) {
  expect_tofu_answered(Way::kLossy, {End::kTidy});
}
TEST(LastWords, Tofu__between_nodes_over_datagrams) { expect_tofu_answered(Way::kDatagrams, kAllEnds); }

}  // namespace
}  // namespace portofu
