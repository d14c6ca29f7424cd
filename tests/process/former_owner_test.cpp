// A control queue becomes another process's, and somebody who has not heard of it still uses the STADDs of the former
// owner: it gets an error, and the memory of the next owner stays as it is (uTofu guide 2.2.1, 2.2.2, 2.2.10).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <portofu.h>
#include <signal.h>
#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/test_nodes.h"

namespace portofu {
namespace {

/// Leaves the child with the line that went wrong, modulo 256.
#define MUST(condition) \
  if (!(condition)) _exit(__LINE__ % 256 == 0 ? 1 : __LINE__ % 256)

constexpr std::size_t kRegions = 3;
constexpr std::size_t kBytes = 256 * 1024;
constexpr unsigned char kUntouched = 0x5a;
constexpr utofu_stadd_t kFirstStadd = utofu_stadd_t{0x1000} << 40;

/// How the first owner loses the queue.
enum class Leaving {
  kKilled,
  kExits,  ///< And frees nothing.
  kFrees,  ///< And lives on.
};

/// What of the first owner a process knows that uses its STADDs.
enum class Acquaintance {
  kTold,  ///< The numbers.
  kMet,   ///< It has written there before.
};

using Stadds = std::array<std::atomic<utofu_stadd_t>, kRegions>;

struct Scene {
  std::atomic<int> turn{0};
  std::atomic<utofu_vcq_id_t> id{0};
  Stadds first, next;

  void await(int number) {
    MUST(eventually([&] { return turn.load() >= number; }));
  }
};

/// A VCQ with registered memory.
class Queue {
 public:
  /// @param wanted  0: any. It stays taken until all have heard who know it.
  Queue(utofu_tni_id_t tni, bool mapped, utofu_vcq_id_t wanted = 0) {
    MUST(eventually([&] {
      MUST(utofu_create_vcq(tni, 0, &vcq) == UTOFU_SUCCESS);
      MUST(utofu_query_vcq_id(vcq, &id) == UTOFU_SUCCESS);
      if (wanted == 0 || id == wanted) return true;
      MUST(utofu_free_vcq(vcq) == UTOFU_SUCCESS);
      return false;
    }));
    for (std::size_t i = 0; i < kRegions; ++i) {
      void* const taken = mapped ? portofu_alloc(kBytes, 256) : std::aligned_alloc(4096, kBytes);
      MUST(taken != nullptr);
      memory[i] = static_cast<unsigned char*>(taken);
      std::memset(taken, kUntouched, kBytes);
      MUST(utofu_reg_mem(vcq, taken, kBytes, 0, &stadds[i]) == UTOFU_SUCCESS);
    }
  }

  void publish(Stadds& seen) const {
    for (std::size_t i = 0; i < kRegions; ++i) seen[i] = stadds[i];
  }

  bool is_untouched() const {
    return std::ranges::all_of(memory, [](const unsigned char* bytes) {
      return std::all_of(bytes, bytes + kBytes, [](unsigned char byte) { return byte == kUntouched; });
    });
  }

  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  std::array<utofu_stadd_t, kRegions> stadds{};
  std::array<unsigned char*, kRegions> memory{};
};

/// One of each kind to one place, and what its notice says.
int post(const Queue& from, int kind, utofu_vcq_id_t id, utofu_stadd_t stadd) {
  constexpr unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  constexpr unsigned long kBoth = kLocal | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  const auto edata = static_cast<std::uint64_t>(kind);
  std::uint32_t data = 3;
  switch (kind) {
    case 0: return utofu_put(from.vcq, id, from.stadds[0], stadd, 8, edata, 0, nullptr);
    case 1: return utofu_put(from.vcq, id, from.stadds[0], stadd, 8, edata, kBoth, nullptr);
    case 2: return utofu_put(from.vcq, id, from.stadds[0], stadd, kBytes, edata, 0, nullptr);
    case 3: return utofu_put(from.vcq, id, from.stadds[0], stadd, kBytes, edata, kBoth, nullptr);
    case 4: return utofu_put_piggyback(from.vcq, id, &data, stadd, sizeof data, edata, kLocal, nullptr);
    case 5: return utofu_get(from.vcq, id, from.stadds[0], stadd, 8, edata, kLocal, nullptr);
    case 6: return utofu_get(from.vcq, id, from.stadds[0], stadd, kBytes, edata, kBoth, nullptr);
    case 7: return utofu_armw8(from.vcq, id, UTOFU_ARMW_OP_ADD, 1, stadd, edata, kLocal, nullptr);
    case 8: return utofu_armw4(from.vcq, id, UTOFU_ARMW_OP_SWAP, 1, stadd, edata, kBoth, nullptr);
    default: {
      std::uint64_t old = 0;
      std::memset(&old, kUntouched, sizeof old);
      return utofu_cswap8(from.vcq, id, old, 1, stadd, edata, kLocal, nullptr);
    }
  }
}
constexpr int kKinds = 10;

/// What the end of an operation says.
int end_of(const Queue& from, int kind) {
  utofu_mrq_notice notice{};
  int rc = UTOFU_ERR_NOT_FOUND;
  MUST(eventually([&] { return (rc = utofu_poll_mrq(from.vcq, 0, &notice)) != UTOFU_ERR_NOT_FOUND; }));
  MUST(notice.edata == static_cast<std::uint64_t>(kind));
  return rc;
}

class FormerOwner : public testing::TestWithParam<std::tuple<Place, Leaving, Acquaintance, bool>> {
 protected:
  static Leaving leaving() { return std::get<1>(GetParam()); }
  static Acquaintance acquaintance() { return std::get<2>(GetParam()); }
  static bool mapped() { return std::get<3>(GetParam()); }

  int be_first() {
    nodes_.enter(0);
    const Queue queue(0, mapped());
    for (std::size_t i = 0; i < kRegions; ++i) MUST(queue.stadds[i] == kFirstStadd + (std::uint64_t{i} << 40));
    queue.publish(scene_->first);
    scene_->id = queue.id;
    scene_->turn = 2;
    scene_->await(10);
    if (leaving() == Leaving::kExits) std::exit(0);
    if (leaving() == Leaving::kFrees) MUST(utofu_free_vcq(queue.vcq) == UTOFU_SUCCESS);
    scene_->turn = 11;
    scene_->await(100);
    return 0;
  }

  int be_next() {
    nodes_.enter(0);
    scene_->await(11);
    const Queue queue(0, mapped(), scene_->id);
    queue.publish(scene_->next);
    scene_->turn = 20;
    scene_->await(30);
    MUST(queue.is_untouched());
    scene_->turn = 31;
    MUST(eventually([&] { return !queue.is_untouched(); }));
    scene_->turn = 100;
    return 0;
  }

  int use_both() {
    nodes_.enter(1);
    const Queue queue(1, mapped());
    scene_->turn = 1;
    scene_->await(2);
    if (acquaintance() == Acquaintance::kMet) {
      MUST(post(queue, 1, scene_->id, scene_->first[0]) == UTOFU_SUCCESS);
      MUST(end_of(queue, 1) == UTOFU_SUCCESS);
    }
    scene_->turn = 9;
    scene_->await(20);
    for (const utofu_stadd_t stadd : scene_->first) {
      for (int kind = 0; kind < kKinds; ++kind) {
        MUST(post(queue, kind, scene_->id, stadd) == UTOFU_SUCCESS);
        MUST(end_of(queue, kind) == UTOFU_ERR_MRQ_RMT_STADD);
      }
    }
    MUST(queue.is_untouched());
    scene_->turn = 30;
    scene_->await(31);
    std::memset(queue.memory[0], 1, 8);
    MUST(post(queue, 1, scene_->id, scene_->next[0]) == UTOFU_SUCCESS);
    MUST(end_of(queue, 1) == UTOFU_SUCCESS);
    scene_->await(100);
    return 0;
  }

  const TestNodes nodes_{std::get<0>(GetParam())};
  const SharedMemory<Scene> scene_;
};

TEST_P(FormerOwner, Its_STADDs__reach_nothing_of_who_has_the_queue_now) {
  ChildProcess user([&] { return use_both(); });
  // On the node of the owners somebody knows them, too.
  ChildProcess neighbour([&] {
    nodes_.enter(0);
    const Queue queue(2, false);
    scene_->await(1);
    scene_->await(100);
    return 0;
  });
  scene_->await(1);
  ChildProcess first([&] { return be_first(); });
  scene_->await(9);
  if (leaving() == Leaving::kKilled) first.kill_unreaped();
  scene_->turn = leaving() == Leaving::kKilled ? 11 : 10;
  if (leaving() == Leaving::kExits) {
    EXPECT_EQ(first.wait_death(), 0);
    scene_->turn = 11;
  }
  ChildProcess next([&] { return be_next(); });
  EXPECT_EQ(user.wait_status(), 0);
  EXPECT_EQ(next.wait_status(), 0);
  scene_->turn = 100;
  EXPECT_EQ(neighbour.wait_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, FormerOwner,
                         testing::Combine(testing::Values(Place::kOneNode, Place::kNodeEach),
                                          testing::Values(Leaving::kKilled, Leaving::kExits, Leaving::kFrees),
                                          testing::Values(Acquaintance::kTold, Acquaintance::kMet), testing::Bool()));

/// Whether nobody holds the counts of the job. Who is killed does, for as long as somebody looks into its memory.
bool is_left(std::uint32_t job_key) {
  char path[64];
  std::snprintf(path, sizeof path, "/dev/shm/portofu-%u-stags-%08x", geteuid(), job_key);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return true;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool is_free = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
  close(fd);
  return is_free;
}

/// Nobody is left who might know the STADDs of the one before.
TEST(FirstOwner, STADDs__count_from_the_first_again) {
  const TestNodes nodes(Place::kOneNode);
  for (int life = 0; life < 3; ++life) {
    ChildProcess owner([&] {
      nodes.enter(0);
      const Queue queue(0, false);
      for (std::size_t i = 0; i < kRegions; ++i) MUST(queue.stadds[i] == kFirstStadd + (std::uint64_t{i} << 40));
      if (life == 1) std::exit(0);
      raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(owner.wait_status(), life == 1 ? 0 : 128 + SIGKILL);
    EXPECT_TRUE(eventually([&] { return is_left(nodes.job_key()); }));
  }
  ChildProcess last([&] {
    nodes.enter(0);
    { const Queue queue(0, false); }
    std::exit(0);
    return 0;
  });
  EXPECT_EQ(last.wait_status(), 0);
  EXPECT_EQ(nodes.names_left(1), 0);
}

}  // namespace
}  // namespace portofu
