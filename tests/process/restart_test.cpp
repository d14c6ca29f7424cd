// A process of another node dies or leaves, and the next one under its number begins at once: its operations are
// served, what was asked of the former one is told to have failed, and nothing of one life reaches another.

#include <gtest/gtest.h>
#include <portals4.h>
#include <signal.h>
#include <utofu.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/test_nodes.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

/// Leaves the child with the line that went wrong, modulo 256.
#define MUST(condition) \
  if (!(condition)) _exit(__LINE__ % 256 == 0 ? 1 : __LINE__ % 256)

enum class Way { kFabric, kDatagrams };
enum class End { kKilled, kAtOnce, kTidy };

constexpr int kLives = 4;
constexpr unsigned kTargetPid = 5077;
constexpr unsigned kInitiatorPid = 5088;
constexpr std::size_t kWords = 64;
constexpr std::size_t kBytes = kWords * 8;

struct Meeting {
  std::atomic<int> ready{0};    ///< Lives of the target that can be reached.
  std::atomic<int> served{0};   ///< Lives of the initiator whose operations were all right.
  std::atomic<int> overdue{0};  ///< Puts that came behind those of a later life.
  std::atomic<int> told{0};     ///< Operations of the one who stays that were told to have failed.
  std::atomic<bool> over{false};
  std::atomic<utofu_vcq_id_t> vcq_id{0};
  std::atomic<utofu_stadd_t> stadd{0};
};

/// Two nodes, and what processes of each do.
class Restart : public testing::TestWithParam<std::tuple<Way, End>> {
 protected:
  void enter(int rank) const {
    nodes_.enter(rank);
    if (std::get<Way>(GetParam()) == Way::kDatagrams) setenv("PORTOFU_FABRIC_ENDPOINT", "datagram", 1);
  }
  static End end() { return std::get<End>(GetParam()); }

  /// The way out of a process that may end, once it has done what it is for.
  [[noreturn]] static void leave() {
    if (end() == End::kKilled) raise(SIGKILL);
    if (end() == End::kTidy) std::exit(0);
    _exit(0);
  }
  static int status_of_end() { return end() == End::kKilled ? 128 + SIGKILL : 0; }

  TestNodes nodes_{Place::kNodeEach};
  SharedMemory<Meeting> meeting_;
};

// ---- Portals -------------------------------------------------------------------------------------------------------

/// An interface with an entry that takes puts in front and lets itself be read, and descriptors to put from and to get
/// to.
struct Side {
  Side(unsigned pid, std::uint64_t value) : entry(2 * kWords, value), source(kWords, value), result(kWords) {
    MUST(PtlInit() == PTL_OK);
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni) == PTL_OK);
    MUST(PtlEQAlloc(ni, 1024, &own_eq) == PTL_OK && PtlEQAlloc(ni, 1024, &entry_eq) == PTL_OK);
    ptl_pt_index_t pt = 0;
    MUST(PtlPTAlloc(ni, 0, entry_eq, 0, &pt) == PTL_OK);
    const ptl_le_t le{entry.data(), 2 * kBytes, PTL_CT_NONE, PTL_UID_ANY,
                      PTL_LE_OP_GET | PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
    ptl_handle_le_t le_handle{};
    MUST(PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &le_handle) == PTL_OK);
    ptl_md_t md{source.data(), kBytes, PTL_MD_EVENT_SEND_DISABLE, own_eq, PTL_CT_NONE};
    MUST(PtlMDBind(ni, &md, &source_md) == PTL_OK);
    md.start = result.data();
    MUST(PtlMDBind(ni, &md, &result_md) == PTL_OK);
  }

  void put(ptl_process_t to, std::uint64_t hdr_data) {
    MUST(PtlPut(source_md, 0, kBytes, PTL_ACK_REQ, to, 0, 0, 0, nullptr, hdr_data) == PTL_OK);
  }
  /// @param offset  kBytes: what no put changes
  void get(ptl_process_t from, ptl_size_t offset) {
    result.assign(kWords, 0);
    MUST(PtlGet(result_md, 0, kBytes, from, 0, 0, offset, nullptr) == PTL_OK);
  }

  /// The next event of an own operation, or of the entry. It comes soon, or never.
  ptl_event_t next_event() {
    constexpr ptl_time_t kLongestMs = 1000 * kLongestWait.count();
    const ptl_handle_eq_t queues[] = {own_eq, entry_eq};
    ptl_event_t event{};
    unsigned int which = 0;
    MUST(PtlEQPoll(queues, 2, kLongestMs, &event, &which) == PTL_OK);
    return event;
  }

  std::vector<std::uint64_t> entry;
  std::vector<std::uint64_t> source;
  std::vector<std::uint64_t> result;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t own_eq{};
  ptl_handle_eq_t entry_eq{};
  ptl_handle_md_t source_md{};
  ptl_handle_md_t result_md{};
};

ptl_process_t process_of(std::uint32_t nid, unsigned pid) {
  ptl_process_t process{};
  process.phys = {nid, pid};
  return process;
}

/// Puts and gets, and both are right: what is read is what was put, in this life.
int ask_as(int life, ptl_process_t target, Meeting& meeting) {
  Side self(kInitiatorPid, static_cast<std::uint64_t>(life));
  self.put(target, static_cast<std::uint64_t>(life));
  self.get(target, 0);
  for (int left = 2; left > 0;) {
    const ptl_event_t event = self.next_event();
    if (event.type == PTL_EVENT_PUT) continue;  // The target asks, too.
    MUST(event.ni_fail_type == PTL_NI_OK);
    MUST(event.type == PTL_EVENT_ACK || self.result == self.source);
    --left;
  }
  ++meeting.served;
  // Some are under way all the time until the end.
  for (int i = 0; i < 20; ++i) self.put(target, static_cast<std::uint64_t>(life));
  return 0;
}

/// Takes what the lives of the initiator put, and asks whoever has its number all the time.
int serve_all(ptl_process_t initiator, Meeting& meeting) {
  Side self(kTargetPid, 0);
  meeting.ready = 1;
  std::uint64_t latest = 0;
  for (bool asks = false; !meeting.over;) {
    ptl_event_t event{};
    unsigned int which = 0;
    const ptl_handle_eq_t queues[] = {self.own_eq, self.entry_eq};
    if (PtlEQPoll(queues, 2, 20, &event, &which) == PTL_EQ_EMPTY) continue;
    if (event.type == PTL_EVENT_PUT && event.hdr_data < latest) ++meeting.overdue;
    if (event.type == PTL_EVENT_PUT) latest = event.hdr_data;
    if (event.type == PTL_EVENT_ACK) asks = false;
    // A next life that has no entry yet drops what comes, and says so.
    if (event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_UNDELIVERABLE) ++meeting.told;
    if (!asks && latest != 0) self.put(initiator, 0);
    asks = asks || latest != 0;
  }
  return 0;
}

TEST_P(Restart, Initiators_one_after_the_other__are_served_each) {
  ChildProcess target([&] {
    enter(1);
    return serve_all(process_of(nodes_.nid(0), kInitiatorPid), *meeting_);
  });
  ASSERT_TRUE(eventually([&] { return meeting_->ready == 1; }));
  for (int life = 1; life <= kLives; ++life) {
    ChildProcess initiator([&] {
      enter(0);
      if (const int wrong = ask_as(life, process_of(nodes_.nid(1), kTargetPid), *meeting_)) return wrong;
      leave();
    });
    EXPECT_EQ(initiator.wait_status(), status_of_end()) << "life " << life;
    EXPECT_EQ(meeting_->served, life);
    if (life % 2 == 0) usleep(300'000);
  }
  EXPECT_TRUE(eventually([&] { return meeting_->told > 0; })) << "of its own operations the target hears";
  meeting_->over = true;
  EXPECT_EQ(target.wait_status(), 0);
  EXPECT_EQ(meeting_->overdue, 0);
}

// What the next life puts may be the last that the target sees of it.
TEST_P(Restart, Target_that_leaves_behind_the_first_put_of_a_next_life__has_acknowledged_it) {
  ChildProcess target([&] {
    enter(1);
    Side self(kTargetPid, 0);
    meeting_->ready = 1;
    for (int puts = 0; puts < 2;) puts += self.next_event().type == PTL_EVENT_PUT ? 1 : 0;
    leave();
    return 1;
  });
  ASSERT_TRUE(eventually([&] { return meeting_->ready == 1; }));
  for (int life = 1; life <= 2; ++life) {
    ChildProcess initiator([&] {
      enter(0);
      Side self(kInitiatorPid, static_cast<std::uint64_t>(life));
      self.put(process_of(nodes_.nid(1), kTargetPid), 0);
      const ptl_event_t event = self.next_event();
      MUST(event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK);
      raise(SIGKILL);
      return 1;
    });
    EXPECT_EQ(initiator.wait_status(), 128 + SIGKILL) << "life " << life;
  }
  EXPECT_EQ(target.wait_status(), status_of_end());
}

/// Is there until it has been asked often enough; the last one, until the initiator has what it wants.
int be_target(int life, Meeting& meeting) {
  Side self(kTargetPid, static_cast<std::uint64_t>(life));
  meeting.ready = life;
  if (life == kLives) return eventually([&] { return meeting.over.load(); }) ? 0 : 1;
  for (int asked = 0; asked < 50;) asked += self.next_event().type == PTL_EVENT_PUT ? 1 : 0;
  return 0;
}

/// Asks until it was served by the last life. Each operation ends, and never by the answer of another life.
int ask_all(ptl_process_t target, Meeting& meeting) {
  Side self(kInitiatorPid, 0);
  std::uint64_t latest = 0;
  while (meeting.ready < kLives || latest < kLives) {
    self.get(target, kBytes);
    self.put(target, 0);
    for (int left = 2; left > 0; --left) {
      const ptl_event_t event = self.next_event();
      const bool fails = event.ni_fail_type != PTL_NI_OK;
      // A life that has opened its interface, and has no entry yet, drops what comes.
      MUST(!fails || event.ni_fail_type == PTL_NI_UNDELIVERABLE || event.ni_fail_type == PTL_NI_DROPPED);
      meeting.told += fails ? 1 : 0;
      if (fails || event.type != PTL_EVENT_REPLY) continue;
      MUST(self.result[0] >= latest && self.result[0] == self.result[kWords - 1]);
      latest = self.result[0];
      meeting.served = static_cast<int>(latest);
    }
  }
  meeting.over = true;
  return 0;
}

TEST_P(Restart, Targets_one_after_the_other__serve_each) {
  ChildProcess initiator([&] {
    enter(0);
    MUST(eventually([&] { return meeting_->ready == 1; }));
    return ask_all(process_of(nodes_.nid(1), kTargetPid), *meeting_);
  });
  for (int life = 1; life <= kLives; ++life) {
    ChildProcess target([&] {
      enter(1);
      if (const int wrong = be_target(life, *meeting_)) return wrong;
      leave();
    });
    EXPECT_EQ(target.wait_status(), status_of_end()) << "life " << life;
    if (life % 2 == 0) usleep(300'000);
  }
  EXPECT_EQ(initiator.wait_status(), 0);
  EXPECT_EQ(meeting_->served, kLives);
  EXPECT_GT(meeting_->told, 0);
}

// ---- uTofu ---------------------------------------------------------------------------------------------------------

/// A control queue, and memory that others may write and read.
struct Queue {
  explicit Queue(std::uint64_t value) : words(kWords, value) {
    MUST(utofu_create_vcq(0, 0, &vcq) == UTOFU_SUCCESS && utofu_query_vcq_id(vcq, &id) == UTOFU_SUCCESS);
    MUST(utofu_reg_mem(vcq, words.data(), kBytes, 0, &stadd) == UTOFU_SUCCESS);
  }
  std::vector<std::uint64_t> words;
  utofu_vcq_hdl_t vcq{};
  utofu_vcq_id_t id{};
  utofu_stadd_t stadd{};
};

/// Puts its number, waits for the notice of the TCQ and for that of the MRQ, and gets it back.
int ask_tofu_as(int life, Meeting& meeting) {
  Queue self(static_cast<std::uint64_t>(life));
  const auto notice_of = [&](unsigned long flags, bool puts) {
    const auto begin = puts ? utofu_put : utofu_get;
    const utofu_stadd_t own = self.stadd + (puts ? 0 : 8);
    MUST(begin(self.vcq, meeting.vcq_id, own, meeting.stadd, 8, 0, flags, nullptr) == UTOFU_SUCCESS);
    void* cbdata = nullptr;
    utofu_mrq_notice notice{};
    int tcq = UTOFU_ERR_NOT_FOUND, mrq = UTOFU_ERR_NOT_FOUND;
    MUST(eventually([&] {
      if (tcq == UTOFU_ERR_NOT_FOUND) tcq = utofu_poll_tcq(self.vcq, 0, &cbdata);
      if (mrq == UTOFU_ERR_NOT_FOUND) mrq = utofu_poll_mrq(self.vcq, 0, &notice);
      return tcq != UTOFU_ERR_NOT_FOUND && mrq != UTOFU_ERR_NOT_FOUND;
    }));
    MUST(tcq == UTOFU_SUCCESS);
    MUST(mrq == UTOFU_SUCCESS);
  };
  constexpr unsigned long kBoth = UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  notice_of(kBoth, true);
  self.words[1] = 0;
  notice_of(kBoth, false);
  MUST(self.words[1] == static_cast<std::uint64_t>(life));
  ++meeting.served;
  for (int i = 0; i < 20; ++i) {
    const int rc = utofu_put(self.vcq, meeting.vcq_id, self.stadd, meeting.stadd + 8, 8, 0, kBoth, nullptr);
    MUST(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_BUSY);
  }
  return 0;
}

TEST_P(Restart, Initiators_of_uTofu_one_after_the_other__are_served_each) {
  ChildProcess target([&] {
    enter(1);
    Queue self(0);
    meeting_->vcq_id = self.id;
    meeting_->stadd = self.stadd;
    meeting_->ready = 1;
    while (!meeting_->over) {
      utofu_mrq_notice notice{};
      utofu_poll_mrq(self.vcq, 0, &notice);
    }
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return meeting_->ready == 1; }));
  for (int life = 1; life <= kLives; ++life) {
    ChildProcess initiator([&] {
      enter(0);
      if (const int wrong = ask_tofu_as(life, *meeting_)) return wrong;
      leave();
    });
    EXPECT_EQ(initiator.wait_status(), status_of_end()) << "life " << life;
    EXPECT_EQ(meeting_->served, life);
    if (life % 2 == 0) usleep(300'000);
  }
  meeting_->over = true;
  EXPECT_EQ(target.wait_status(), 0);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Way, End>>& info) {
  const char* const ways[] = {"Fabric", "Datagrams"};
  const char* const ends[] = {"killed", "at_once", "tidy"};
  return std::string(ways[static_cast<int>(std::get<Way>(info.param))]) + "__" +
         ends[static_cast<int>(std::get<End>(info.param))];
}
INSTANTIATE_TEST_SUITE_P(Lives, Restart,
                         testing::Combine(testing::Values(Way::kFabric, Way::kDatagrams),
                                          testing::Values(End::kKilled, End::kAtOnce, End::kTidy)),
                         name_of);

}  // namespace
}  // namespace portofu
