// A control queue goes from one process to another while operations to it are under way: whoever has posted to both is
// told how those to the first one have ended before any to the second one (uTofu guide 2.2.10).

#include <gtest/gtest.h>
#include <signal.h>
#include <utofu.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/test_nodes.h"

namespace portofu {
namespace {

/// Leaves the child with the line that went wrong, modulo 256.
#define MUST(condition) \
  if (!(condition)) _exit(__LINE__ % 256 == 0 ? 1 : __LINE__ % 256)

constexpr int kEach = 12;  ///< Operations to each owner.
constexpr std::size_t kBytes = 64 * 1024;

/// Who has the queue next.
enum class Heir {
  kOther,     ///< A process that was there before.
  kNextLife,  ///< One that begins when the first is gone, and may have its PID.
  kPoster,    ///< Who posts.
};

struct Scene {
  std::atomic<int> turn{0};
  std::atomic<utofu_vcq_id_t> id{0};
  std::atomic<utofu_stadd_t> stadd{0};

  void await(int number) {
    MUST(eventually([&] { return turn.load() >= number; }));
  }
};

class Queue {
 public:
  /// @param wanted  0: any. It stays taken until all have heard who know it.
  explicit Queue(utofu_tni_id_t tni, utofu_vcq_id_t wanted = 0) : memory_(kBytes) {
    MUST(eventually([&] {
      MUST(utofu_create_vcq(tni, 0, &vcq) == UTOFU_SUCCESS);
      MUST(utofu_query_vcq_id(vcq, &id) == UTOFU_SUCCESS);
      if (wanted == 0 || id == wanted) return true;
      MUST(utofu_free_vcq(vcq) == UTOFU_SUCCESS);
      return false;
    }));
    MUST(utofu_reg_mem(vcq, memory_.data(), kBytes, 0, &stadd) == UTOFU_SUCCESS);
  }

  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;

 private:
  std::vector<unsigned char> memory_;
};

/// Has the queue from `turn` on.
std::unique_ptr<Queue> own(Scene& scene, int turn) {
  scene.await(turn);
  auto queue = std::make_unique<Queue>(0, scene.id);
  scene.id = queue->id;
  scene.stadd = queue->stadd;
  scene.turn = turn + 1;
  return queue;
}

/// Operations of all kinds, with the numbers [first, first + kEach).
void post(const Scene& scene, const Queue& from, int first) {
  constexpr unsigned long kFlags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  const utofu_vcq_id_t id = scene.id;
  const utofu_stadd_t stadd = scene.stadd;
  for (int i = 0; i < kEach; ++i) {
    const auto edata = static_cast<std::uint64_t>(first + i);
    const std::size_t bytes = i % 2 == 0 ? 8 : kBytes;
    int rc = UTOFU_SUCCESS;
    switch (i % 3) {
      case 0: rc = utofu_put(from.vcq, id, from.stadd, stadd, bytes, edata, kFlags, nullptr); break;
      case 1: rc = utofu_get(from.vcq, id, from.stadd, stadd, bytes, edata, kFlags, nullptr); break;
      default: rc = utofu_armw8(from.vcq, id, UTOFU_ARMW_OP_ADD, 1, stadd, edata, kFlags, nullptr);
    }
    MUST(rc == UTOFU_SUCCESS);
  }
}

bool is_local(const utofu_mrq_notice& notice) {
  return notice.notice_type == UTOFU_MRQ_TYPE_LCL_PUT || notice.notice_type == UTOFU_MRQ_TYPE_LCL_GET ||
         notice.notice_type == UTOFU_MRQ_TYPE_LCL_ARMW;
}

/// The ends come in the order of posting, those towards the second owner all well.
void expect_ends(const Queue& from, bool first_is_dead) {
  for (int number = 0; number < 2 * kEach; ++number) {
    utofu_mrq_notice notice{};
    int rc = UTOFU_ERR_NOT_FOUND;
    MUST(eventually([&] {
      rc = utofu_poll_mrq(from.vcq, 0, &notice);
      return rc != UTOFU_ERR_NOT_FOUND && (rc != UTOFU_SUCCESS || is_local(notice));
    }));
    MUST(notice.edata == static_cast<std::uint64_t>(number));
    if (number >= kEach) MUST(rc == UTOFU_SUCCESS);
    if (number < kEach && first_is_dead) MUST(rc == UTOFU_ERR_MRQ_PEER);
  }
}

class NameOrder : public testing::TestWithParam<std::tuple<Place, Heir>> {
 protected:
  void enter(int rank) const { nodes_.enter(rank); }
  static Heir heir() { return std::get<Heir>(GetParam()); }

  const TestNodes nodes_{std::get<Place>(GetParam())};
  const SharedMemory<Scene> scene_;
};

TEST_P(NameOrder, Ends_at_a_dead_owner__are_told_before_those_at_the_next_one) {
  ChildProcess first([&] {
    enter(0);
    const auto queue = own(*scene_, 1);
    raise(SIGSTOP);
    return 0;
  });
  const auto inherit = [&] {
    enter(0);
    const auto queue = own(*scene_, 11);
    scene_->await(20);
    return 0;
  };
  ChildProcess other([&] { return heir() == Heir::kOther ? inherit() : 0; });
  ChildProcess poster([&] {
    enter(1);
    const Queue queue(1);
    scene_->turn = 1;
    scene_->await(5);
    post(*scene_, queue, 0);
    scene_->turn = 6;
    std::unique_ptr<Queue> inherited;
    if (heir() == Heir::kPoster) inherited = own(*scene_, 11);
    scene_->await(12);
    post(*scene_, queue, kEach);
    expect_ends(queue, true);
    scene_->turn = 20;
    return 0;
  });
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(first.pid()), &info, WSTOPPED | WNOWAIT);
  scene_->turn = 5;
  ASSERT_TRUE(eventually([&] { return scene_->turn.load() == 6 || poster.has_ended(); }));
  first.kill_unreaped();
  scene_->turn = 11;
  ChildProcess next([&] { return heir() == Heir::kNextLife ? inherit() : 0; });
  EXPECT_EQ(poster.wait_status(), 0);
  scene_->turn = 20;
  EXPECT_EQ(other.wait_status(), 0);
  EXPECT_EQ(next.wait_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, NameOrder,
                         testing::Values(std::tuple(Place::kOneNode, Heir::kOther),
                                         std::tuple(Place::kOneNode, Heir::kNextLife),
                                         std::tuple(Place::kOneNode, Heir::kPoster),
                                         std::tuple(Place::kNodeEach, Heir::kOther),
                                         std::tuple(Place::kNodeEach, Heir::kNextLife)));

}  // namespace
}  // namespace portofu
