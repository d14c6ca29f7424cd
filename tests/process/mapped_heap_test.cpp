// uTofu in memory that both sides map, between real processes: what is seen, what is told, and what is left when a
// process dies, deregisters or forks in the middle.

#include <gtest/gtest.h>
#include <portofu.h>
#include <utofu.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/segment/shared_heap.h"
#include "tests/process/child_process.h"
#include "tests/process/engine_counter.h"
#include "tests/process/own_node.h"
#include "tests/process/owner_and_initiator.h"
#include "tests/process/resources.h"

namespace portofu {
namespace {

constexpr std::size_t kBytes = 1 << 20;

/// What the processes of a test tell each other.
struct Meeting {
  std::atomic<int> ready{0};
  std::atomic<int> go_on{0};
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<std::uint64_t> heap_id{0};
  std::atomic<utofu_vcq_id_t> vcq_id{0};
  std::atomic<utofu_stadd_t> stadd{0};
};

/// A VCQ with registered memory of the heap.
struct End {
  End() {
    memory = static_cast<std::uint64_t*>(portofu_alloc(kBytes, 256));
    if (memory == nullptr || utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS) _exit(90);
    std::memset(memory, 0, kBytes);
    if (utofu_reg_mem(vcq, memory, kBytes, 0, &stadd) != UTOFU_SUCCESS) _exit(91);
  }

  void introduce(Meeting& meeting) const {
    utofu_vcq_id_t id = 0;
    if (utofu_query_vcq_id(vcq, &id) != UTOFU_SUCCESS) _exit(92);
    meeting.vcq_id = id;
    meeting.stadd = stadd;
    meeting.heap_id = process_heap().publish().id;
    meeting.ready = 1;
  }

  std::uint64_t word(std::size_t index) const { return std::atomic_ref<std::uint64_t>(memory[index]).load(); }

  /// @return the code of the next notice
  int next_notice(utofu_mrq_notice* notice) const {
    int rc = UTOFU_ERR_NOT_FOUND;
    eventually([&] { return (rc = utofu_poll_mrq(vcq, 0, notice)) != UTOFU_ERR_NOT_FOUND; });
    return rc;
  }

  std::uint64_t* memory = nullptr;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
};

class MappedHeap : public OwnerAndInitiator<End, Meeting> {
 protected:
  MappedHeap() { setenv("PORTOFU_JOB_KEY", std::to_string(getpid()).c_str(), 1); }  // CQs belong to jobs of a machine.
  ~MappedHeap() override { unsetenv("PORTOFU_JOB_KEY"); }

  bool heap_has_name() const { return access(heap_path("/dev/shm", meeting->heap_id).c_str(), F_OK) == 0; }
};

/// 2.2.3, 6.1.3.1: a target that only reads its memory sees a put, the last line last.
TEST_F(MappedHeap, Target_that_only_reads__sees_whole_puts) {
  constexpr std::uint64_t kRounds = 2000;
  constexpr std::size_t kWords = 1000;
  ChildProcess target(owner([&](End& end) {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      if (!eventually([&] { return end.word(kWords - 1) == round; })) return 1;
      for (std::size_t i = 0; i < kWords; ++i) {
        if (end.word(i) != round) return 2;
      }
      meeting->rounds = round;
    }
    return 0;
  }));
  ChildProcess source(initiator([&](End& end) {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      std::fill_n(end.memory, kWords, round);
      const int rc = utofu_put(end.vcq, meeting->vcq_id, end.stadd, meeting->stadd, 8 * kWords, 0,
                               UTOFU_ONESIDED_FLAG_STRONG_ORDER, nullptr);
      if (rc != UTOFU_SUCCESS) return 1;
      if (!eventually([&] { return meeting->rounds == round; })) return 2;
    }
    return utofu_free_vcq(end.vcq) == UTOFU_SUCCESS && engine_counter(Counter::kPutsDirect) == kRounds ? 0 : 3;
  }));
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

/// 2.2.5: atomic against the ARMW of others and against the instructions of the owner's CPU.
TEST_F(MappedHeap, Atomics__of_initiators_and_of_the_owner_lose_nothing) {
  constexpr std::uint64_t kAdds = 20000;
  ChildProcess target(owner([&](End& end) {
    for (std::uint64_t i = 0; i < kAdds; ++i) std::atomic_ref<std::uint64_t>(end.memory[0]).fetch_add(1);
    return eventually([&] { return end.word(0) == 3 * kAdds; }) ? 0 : 1;
  }));
  const auto adds = initiator([&](End& end) {
    for (std::uint64_t i = 0; i < kAdds; ++i) {
      if (utofu_armw8(end.vcq, meeting->vcq_id, UTOFU_ARMW_OP_ADD, 1, meeting->stadd, 0,
                      UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr) != UTOFU_SUCCESS)
        return 1;
      utofu_mrq_notice notice{};
      if (end.next_notice(&notice) != UTOFU_SUCCESS || notice.notice_type != UTOFU_MRQ_TYPE_LCL_ARMW) return 2;
    }
    return 0;
  });
  ChildProcess first(adds);
  ChildProcess second(adds);
  EXPECT_EQ(first.wait_status(), 0);
  EXPECT_EQ(second.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

/// 2.2.10: local notices come in the order of posting, whichever way each communication takes.
TEST_F(MappedHeap, Mixed_communication__is_told_in_order) {
  ChildProcess target(owner([&](End&) { return eventually([&] { return meeting->go_on != 0; }) ? 0 : 1; }));
  ChildProcess source(initiator([&](End& end) {
    constexpr unsigned long kNotices = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
    const utofu_vcq_id_t to = meeting->vcq_id;
    const utofu_stadd_t there = meeting->stadd;
    for (std::uint64_t i = 0; i < 3000; i += 6) {
      const auto edata = [i](std::uint64_t more) { return (i + more) % 256; };
      void* const first = reinterpret_cast<void*>(i + 1);
      int rc = utofu_put(end.vcq, to, end.stadd, there, 8, edata(0), kNotices, first);
      rc += utofu_put(end.vcq, to, end.stadd, there, 3000, edata(1), kNotices | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE,
                      nullptr);
      rc += utofu_get(end.vcq, to, end.stadd + 8192, there, 5000, edata(2), kNotices, nullptr);
      rc += utofu_armw8(end.vcq, to, UTOFU_ARMW_OP_ADD, 1, there, edata(3), kNotices, nullptr);
      rc += utofu_put_piggyback8(end.vcq, to, i, there, 8, edata(4), kNotices, nullptr);
      rc += utofu_get(end.vcq, to, end.stadd + 8192, there, 8, edata(5), kNotices, nullptr);
      if (rc != 0) return 1;
      for (std::uint64_t k = 0; k < 6; ++k) {
        utofu_mrq_notice notice{};
        if (end.next_notice(&notice) != UTOFU_SUCCESS || notice.edata != edata(k)) return 2;
        void* data = nullptr;
        if (!eventually([&] { return utofu_poll_tcq(end.vcq, 0, &data) == UTOFU_SUCCESS; })) return 3;
        if (data != (k == 0 ? first : nullptr)) return 4;
      }
      if (end.word(1024) != i) return 5;  // The last get saw the piggyback before it.
    }
    meeting->go_on = 1;
    return 0;
  }));
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

/// 3.6: the memory of the owner is its own again; what is put there afterwards ends with an error.
TEST_F(MappedHeap, Deregistration_in_the_middle__ends_the_puts_with_an_error) {
  ChildProcess target(owner([&](End& end) {
    if (!eventually([&] { return meeting->rounds > 100000; })) return 1;
    if (utofu_dereg_mem(end.vcq, end.stadd, 0) != UTOFU_SUCCESS) return 2;
    // A put that was on its way may still arrive; once the initiator was told, none does.
    if (!eventually([&] { return meeting->go_on == 1; })) return 3;
    end.memory[0] = 0;
    meeting->go_on = 2;
    return eventually([&] { return meeting->go_on == 3; }) && end.word(0) == 0 ? 0 : 4;
  }));
  ChildProcess source(initiator([&](End& end) {
    utofu_mrq_notice notice{};
    int rc = UTOFU_ERR_NOT_FOUND;
    for (std::uint64_t i = 1; rc == UTOFU_ERR_NOT_FOUND; ++i) {
      const int put = utofu_put_piggyback8(end.vcq, meeting->vcq_id, i, meeting->stadd, 8, 7, 0, nullptr);
      // Once the area is gone they go as packets, and the owner may not be on a core to take them.
      if (put != UTOFU_SUCCESS && put != UTOFU_ERR_BUSY) break;
      if (i % 1000 == 0 || put == UTOFU_ERR_BUSY) rc = utofu_poll_mrq(end.vcq, 0, &notice);
      meeting->rounds = i;
    }
    if (rc != UTOFU_ERR_MRQ_RMT_STADD || notice.edata != 7) return 1;
    meeting->go_on = 1;
    if (!eventually([&] { return meeting->go_on == 2; })) return 2;
    for (int i = 0; i < 100; ++i) utofu_put_piggyback8(end.vcq, meeting->vcq_id, 1, meeting->stadd, 8, 7, 0, nullptr);
    eventually([&] { return utofu_poll_mrq(end.vcq, 0, &notice) == UTOFU_ERR_NOT_FOUND; });
    meeting->go_on = 3;
    return 0;
  }));
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

/// Nobody waits for the dead, and nothing of theirs is left.
TEST_F(MappedHeap, Owner_killed_in_the_middle__is_told_within_a_second_and_leaves_nothing) {
  ChildProcess target(owner([](End&) {
    pause();
    return 0;
  }));
  ChildProcess source(initiator([&](End& end) {
    utofu_mrq_notice notice{};
    int rc = UTOFU_ERR_NOT_FOUND;
    for (std::uint64_t i = 1; rc == UTOFU_ERR_NOT_FOUND; ++i) {
      // Once the owner is dead the packets to it wait, until that is found out.
      const int put =
          utofu_put(end.vcq, meeting->vcq_id, end.stadd, meeting->stadd, i % 2 == 0 ? 8 : 100000, 7, 0, nullptr);
      if (put != UTOFU_SUCCESS && put != UTOFU_ERR_BUSY) return 1;
      if (i % 64 == 0) rc = utofu_poll_mrq(end.vcq, 0, &notice);
      meeting->rounds = i;
    }
    meeting->go_on = 1;
    return rc == UTOFU_ERR_MRQ_PEER ? 0 : 2;
  }));
  ASSERT_TRUE(eventually([&] { return meeting->rounds > 5000; }));
  EXPECT_TRUE(heap_has_name());
  const FairStopwatch watch({source.pid()});
  target.kill_unreaped();
  ASSERT_TRUE(eventually([&] { return meeting->go_on != 0; }));
  EXPECT_LT(watch.seconds(), 1.0);
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_FALSE(heap_has_name());
}

/// An initiator dies at any instruction of a put: the owner goes on, and serves the next one.
TEST_F(MappedHeap, Initiator_killed_in_the_middle__harms_nobody) {
  ChildProcess target(owner([&](End& end) {
    void* more = portofu_alloc(1000, 0);
    if (!eventually([&] { return meeting->go_on != 0; }) || more == nullptr) return 1;
    portofu_free(more);
    return end.word(kBytes / 8 - 1) == 42 ? 0 : 2;
  }));
  for (int life = 0; life < 20; ++life) {
    meeting->rounds = 0;
    ChildProcess source(initiator([&](End& end) {
      for (;; ++meeting->rounds)
        utofu_put(end.vcq, meeting->vcq_id, end.stadd, meeting->stadd, kBytes - 8, 0, 0, nullptr);
      return 0;
    }));
    ASSERT_TRUE(eventually([&] { return meeting->rounds > 3; }));
    spend_us(static_cast<unsigned>(life) * 37);
    source.kill_now();
  }
  ChildProcess last(initiator([&](End& end) {
    return utofu_put_piggyback8(end.vcq, meeting->vcq_id, 42, meeting->stadd + kBytes - 8, 8, 0, 0, nullptr) |
           utofu_free_vcq(end.vcq);
  }));
  EXPECT_EQ(last.wait_status(), 0);
  meeting->go_on = 1;
  EXPECT_EQ(target.wait_status(), 0);
}

/// 6.1.4.1: what a child does with its memory is its own affair.
TEST_F(MappedHeap, Child_of_a_fork__harms_nothing) {
  ChildProcess target(owner([&](End& end) {
    int failed = 0;
    for (int i = 0; i < 10; ++i) {
      ChildProcess child([&] {
        std::memset(end.memory, 0xff, kBytes);
        portofu_free(end.memory);
        void* own = portofu_alloc(kBytes, 0);
        std::memset(own, 0xee, kBytes);
        return own != nullptr ? 0 : 1;
      });
      failed += child.wait_status();
    }
    meeting->go_on = 1;
    return eventually([&] { return end.word(0) == 10; }) && end.word(1) == 0 ? failed : 50;
  }));
  ChildProcess source(initiator([&](End& end) {
    while (meeting->go_on == 0) utofu_put_piggyback8(end.vcq, meeting->vcq_id, 9, meeting->stadd, 8, 0, 0, nullptr);
    return utofu_armw8(end.vcq, meeting->vcq_id, UTOFU_ARMW_OP_ADD, 1, meeting->stadd, 0, 0, nullptr);
  }));
  EXPECT_EQ(source.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

}  // namespace
}  // namespace portofu
