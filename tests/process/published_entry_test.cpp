// Portals in memory that both sides map, between real processes: entries that their owner has published, while they are
// unlinked, their portal table entry or interface is closed, and processes stop or die in the middle of a put.

#include <gtest/gtest.h>
#include <portals4.h>
#include <portofu.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/process/child_process.h"
#include "tests/process/engine_counter.h"
#include "tests/process/own_node.h"
#include "tests/process/owner_and_initiator.h"
#include "tests/process/resources.h"

namespace portofu {
namespace {

constexpr std::size_t kBytes = 4 << 20;
constexpr std::size_t kEndBytes = 4096;
constexpr ptl_pt_index_t kPt = 3;

/// What the processes of a test tell each other.
struct Meeting {
  std::atomic<int> ready{0};
  std::atomic<int> go_on{0};
  std::atomic<int> stop{0};
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<std::uint32_t> nid{0}, pid{0};                ///< Of the owner.
  std::atomic<std::uint32_t> source_nid{0}, source_pid{0};  ///< Of an initiator that has entries, too.
};

void require(int rc) {
  if (rc != PTL_OK) _exit(90);
}

/// An interface, memory of the heap, and what initiator or owner need.
struct End {
  End() {
    memory = static_cast<std::byte*>(portofu_alloc(kBytes, 256));
    second_memory = static_cast<std::byte*>(portofu_alloc(kBytes, 256));
    if (memory == nullptr || second_memory == nullptr) _exit(91);
    std::memset(memory, 0, kBytes);
    require(PtlInit());
    require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni));
    require(PtlCTAlloc(ni, &ct));
    ptl_md_t md{memory, kBytes, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, ct};
    require(PtlMDBind(ni, &md, &md_handle));
  }

  /// Two entries: whoever finds the first one unlinked finds the second one.
  void give_entries() {
    ptl_pt_index_t pt = 0;
    require(PtlPTAlloc(ni, 0, PTL_EQ_NONE, kPt, &pt));
    append();
    go_to_next();
    append();
    go_to_next();
  }
  void append() {
    ptl_le_t le{memory, kBytes, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_COMM_DISABLE};
    require(PtlLEAppend(ni, kPt, &le, PTL_PRIORITY_LIST, nullptr, &entry));
  }
  /// The first entry has been unlinked and appended anew, behind the other one.
  void go_to_next() {
    std::swap(memory, second_memory);
    std::swap(entry, second_entry);
  }
  /// PTL_IN_USE says: try again.
  bool unlink() const {
    return eventually([&] {
      const int rc = PtlLEUnlink(entry);
      if (rc != PTL_OK && rc != PTL_IN_USE) _exit(92);
      return rc == PTL_OK;
    });
  }
  void introduce(Meeting& meeting) {
    give_entries();
    ptl_process_t id;
    require(PtlGetPhysId(ni, &id));
    meeting.nid = id.phys.nid;
    meeting.pid = id.phys.pid;
    meeting.ready = 1;
  }

  /// A put that is acknowledged. @return false if it failed
  bool put(const Meeting& meeting, std::uint64_t bytes, std::uint64_t offset = 0) {
    ptl_process_t id;
    id.phys = {meeting.nid, meeting.pid};
    require(PtlPut(md_handle, 0, bytes, PTL_ACK_REQ, id, kPt, 0, offset, nullptr, 0));
    return answered();
  }
  bool answered() {
    ptl_ct_event_t count;
    require(PtlCTWait(ct, ++awaited, &count));
    return count.failure == 0;
  }

  /// Looks for packets until the condition holds.
  template <class Condition>
  bool serves_until(Condition&& condition) const {
    return eventually([&] {
      ptl_ct_event_t count;
      require(PtlCTGet(ct, &count));
      return condition();
    });
  }

  /// Whether nothing is written any more. @pre nobody is allowed to
  bool is_quiet() const {
    // The end first: somebody who is on the way there will write it behind us.
    std::memset(memory + kBytes - kEndBytes, 0x55, kEndBytes);
    std::memset(memory, 0x55, kBytes - kEndBytes);
    spend_us(20000);
    return std::all_of(memory, memory + kBytes, [](std::byte byte) { return byte == std::byte{0x55}; });
  }

  std::byte* memory = nullptr;
  ptl_handle_ni_t ni = 0;
  ptl_handle_ct_t ct = 0;
  ptl_handle_md_t md_handle = 0;
  ptl_handle_le_t entry = 0;  ///< Over `memory`; of the owner the first in the list.
  std::byte* second_memory = nullptr;
  ptl_handle_le_t second_entry = 0;
  ptl_size_t awaited = 0;
};

class PublishedEntries : public OwnerAndInitiator<End, Meeting> {
 protected:
  /// Puts all of the memory, over and over, until one fails or the test wants no more.
  std::function<int()> flood() {
    return initiator([this](End& end) {
      while (meeting->stop == 0 && end.put(*meeting, kBytes)) ++meeting->rounds;
      return 0;
    });
  }
  bool is_flooded() {
    const std::uint64_t before = meeting->rounds;
    return eventually([&] { return meeting->rounds > before + 3; });
  }
};

/// 3.15: data, results and counts are those of any other entry; and the owner does not have to do anything.
TEST_F(PublishedEntries, Initiator__works_in_memory_of_an_owner_that_only_reads_it) {
  constexpr std::uint64_t kRounds = 5000;
  ChildProcess target(owner([&](End& end) {
    auto* words = reinterpret_cast<std::uint64_t*>(end.memory);
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      if (!eventually([&] { return std::atomic_ref(words[0]).load() == round; })) return 1;
      if (words[512] != 7 * round) return 2;  // It was put before.
      meeting->rounds = round;
    }
    return 0;
  }));
  ChildProcess source(initiator([&](End& end) {
    ptl_process_t id;
    id.phys = {meeting->nid, meeting->pid};
    auto* words = reinterpret_cast<std::uint64_t*>(end.memory);
    words[1] = 1;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      words[0] = 7 * round;
      if (!end.put(*meeting, 8, 4096)) return 1;
      require(PtlFetchAtomic(end.md_handle, 16, end.md_handle, 8, 8, id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
      if (!end.answered() || words[2] != round - 1) return 2;
      require(PtlGet(end.md_handle, 24, 8, id, kPt, 0, 4096, nullptr));
      if (!end.answered() || words[3] != 7 * round) return 3;
      if (!eventually([&] { return meeting->rounds == round; })) return 4;
    }
    return engine_counter(Counter::kPutsDirect) == kRounds - 1 ? 0 : 5;  // All but the first.
  }));
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

/// 2.9: a program that finds at once all that it waits for is one that the others can talk to, even without a thread
/// of the library that looks for it.
TEST_F(PublishedEntries, Initiator_that_never_has_to_wait__answers_all_the_same) {
  for (const char* threads : {"0", "1"}) {
    setenv("PORTOFU_PROGRESS_THREAD", threads, 1);
    meeting->ready = meeting->stop = meeting->go_on = 0;
    meeting->source_pid = 0;
    ChildProcess target(owner([&](End& end) {
      if (!end.serves_until([&] { return meeting->source_pid != 0; })) return 1;
      ptl_process_t id;
      id.phys = {meeting->source_nid, meeting->source_pid};
      for (int i = 0; i < 100; ++i) {
        require(PtlGet(end.md_handle, 0, 8, id, kPt, 0, 8, nullptr));
        if (!end.answered()) return 2;
      }
      meeting->stop = 1;
      return end.serves_until([&] { return meeting->go_on != 0; }) ? 0 : 3;
    }));
    ChildProcess source(initiator([&](End& end) {
      end.give_entries();
      ptl_process_t own;
      require(PtlGetPhysId(end.ni, &own));
      if (!end.put(*meeting, 8)) return 1;
      meeting->source_nid = own.phys.nid;
      meeting->source_pid = own.phys.pid;
      const bool told = eventually([&] {
        for (int i = 0; i < 1000; ++i) {
          if (!end.put(*meeting, 8)) _exit(94);
        }
        return meeting->stop != 0;
      });
      meeting->go_on = 1;
      return told ? 0 : 2;
    }));
    EXPECT_EQ(source.wait_status(), 0) << "PORTOFU_PROGRESS_THREAD=" << threads;
    EXPECT_EQ(target.wait_status(), 0) << "PORTOFU_PROGRESS_THREAD=" << threads;
    unsetenv("PORTOFU_PROGRESS_THREAD");
  }
}

/// 3.11.3: once it is unlinked the memory is the owner's own.
TEST_F(PublishedEntries, Unlinked_entry__is_not_written_any_more) {
  ChildProcess target(owner([&](End& end) {
    for (int round = 0; round < 30; ++round) {
      if (!is_flooded()) return 1;
      if (!end.unlink()) return 2;
      if (!end.is_quiet()) return 3;
      end.append();
      end.go_to_next();
    }
    const bool goes_on = is_flooded();
    meeting->go_on = 1;
    return goes_on && eventually([&] { return meeting->stop != 0; }) ? 0 : 4;
  }));
  ChildProcess source(flood());
  EXPECT_TRUE(eventually([&] { return meeting->go_on != 0 || target.has_ended(); }));
  meeting->stop = 1;
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

/// 3.11.3: "PTL_IN_USE: the list entry has pending operations and cannot be unlinked".
TEST_F(PublishedEntries, Initiator_that_is_stopped_in_the_middle__keeps_the_entry_in_use) {
  ChildProcess target(owner([&](End& end) {
    for (int trial = 1;; ++trial) {
      if (!eventually([&] { return meeting->go_on == trial; })) return 1;
      const int rc = PtlLEUnlink(end.entry);
      if (rc == PTL_IN_USE && PtlLEUnlink(end.entry) != PTL_IN_USE) return 2;
      meeting->ready = rc == PTL_IN_USE ? 3 : 2;
      if (!eventually([&] { return meeting->go_on == -trial; })) return 3;
      if (rc == PTL_IN_USE) {
        const bool gone = end.unlink() && end.is_quiet();
        return gone && eventually([&] { return meeting->stop != 0; }) ? 0 : 4;
      }
      end.append();
      end.go_to_next();
      meeting->ready = 1;
    }
  }));
  ChildProcess source(flood());
  bool was_in_use = false;
  for (int trial = 1; trial < 200 && !was_in_use; ++trial) {
    ASSERT_TRUE(is_flooded());
    spend_us(static_cast<unsigned>(trial) * 37);
    source.send_signal(SIGSTOP);
    meeting->go_on = trial;
    ASSERT_TRUE(eventually([&] { return meeting->ready != 1; }));
    was_in_use = meeting->ready == 3;
    source.send_signal(SIGCONT);
    meeting->go_on = -trial;
    ASSERT_TRUE(was_in_use || eventually([&] { return meeting->ready == 1; }));
  }
  EXPECT_TRUE(was_in_use) << "in none of the trials it was stopped in the middle of a put";
  meeting->stop = 1;
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

TEST_F(PublishedEntries, Initiator_killed_in_the_middle__holds_up_nobody) {
  ChildProcess target(owner([&](End& end) {
    if (!eventually([&] { return meeting->go_on != 0; })) return 1;
    return end.unlink() && end.is_quiet() ? 0 : 2;
  }));
  for (int life = 0; life < 20; ++life) {
    ChildProcess source(flood());
    ASSERT_TRUE(is_flooded());
    spend_us(static_cast<unsigned>(life) * 37);
    source.kill_now();
  }
  meeting->go_on = 1;
  EXPECT_EQ(target.wait_status(), 0);
}

TEST_F(PublishedEntries, Owner_killed_in_the_middle__is_told_within_a_second) {
  ChildProcess target(owner([](End&) {
    pause();
    return 0;
  }));
  ChildProcess source(flood());
  ASSERT_TRUE(is_flooded());
  const FairStopwatch watch({source.pid()});
  target.kill_unreaped();
  source.wait_death();
  EXPECT_LT(watch.seconds(), 1.0);
  EXPECT_EQ(source.wait_status(), 0);
}

/// 3.7.3: "The function blocks until ... all messages being actively processed are completed".
TEST_F(PublishedEntries, Disabled_portal_table_entry__is_not_written_any_more) {
  ChildProcess target(owner([&](End& end) {
    if (!is_flooded() || PtlPTDisable(end.ni, kPt) != PTL_OK) return 1;
    return end.is_quiet() ? 0 : 2;
  }));
  ChildProcess source(flood());
  EXPECT_EQ(target.wait_status(), 0);
  EXPECT_EQ(source.wait_status(), 0);
}

TEST_F(PublishedEntries, Closed_interface__is_not_written_any_more) {
  ChildProcess target(owner([&](End& end) {
    if (!is_flooded() || PtlNIFini(end.ni) != PTL_OK) return 1;
    const bool quiet = end.is_quiet();
    PtlFini();
    return quiet ? 0 : 2;
  }));
  ChildProcess source(flood());
  EXPECT_EQ(target.wait_status(), 0);
  EXPECT_EQ(source.wait_status(), 0);
}

}  // namespace
}  // namespace portofu
