// Names that go from one process to another while a third one knows them: control queues that are freed and made in
// random order by four processes, queues whose owner dies, PIDs. What is sent to a name reaches who has it (uTofu guide
// 2.2.1, 3.3.2; Portals 4.3, 2.1).

#include <gtest/gtest.h>
#include <portals4.h>
#include <portofu.h>
#include <utofu.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <tuple>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/test_nodes.h"

namespace portofu {
namespace {

constexpr int kProcesses = 4;
constexpr int kSlots = 2;  ///< VCQs that a process makes and frees, each on a TNI of its own.
constexpr std::size_t kWords = 1 + kProcesses;

/// What is done with one VCQ of a process: one that uses it is counted first and looks then whether it is there.
struct Seat {
  std::atomic<int> users{0};
  std::atomic<bool> is_open{false};
  std::atomic<utofu_vcq_id_t> id{0};
  std::atomic<utofu_stadd_t> stadd{0};
  std::atomic<std::uint64_t> added{0};  ///< By all, to the first word.
};

struct Board {
  std::array<std::array<Seat, kSlots>, kProcesses> seats;
  std::atomic<int> ready{0};
  std::atomic<int> finished{0};
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> owners{0};
};

/// Ends the process with a line that says why; its number is the exit status.
[[noreturn]] void give_up(const char* what, int rc) {
  std::printf("process %d: %s: %d\n", getpid(), what, rc);
  std::fflush(stdout);
  _exit(3);
}
void need(const char* what, int rc) {
  if (rc != UTOFU_SUCCESS) give_up(what, rc);
}

/// Lanes of each process of a test. Set before the processes begin.
void set_lanes(int count) { setenv("PORTOFU_LANES", std::to_string(count).c_str(), 1); }

/// The first lane is taken, so what comes next is on another one if there are several.
void take_first_lane() {
  utofu_vcq_hdl_t vcq = 0;
  need("create_vcq", utofu_create_vcq(5, 0, &vcq));
}

/// Memory of the heap that peers map, or not.
std::uint64_t* words_of(bool mapped) {
  void* const memory = mapped ? portofu_alloc(4096, 256) : aligned_alloc(4096, 4096);
  if (memory == nullptr) give_up("memory", 0);
  std::memset(memory, 0, 4096);
  return static_cast<std::uint64_t*>(memory);
}

class Player {
 public:
  Player(Board& board, int rank, std::uint64_t seed, bool mapped) : board_(board), rank_(rank), random_(seed) {
    own_ = words_of(mapped);
    need("create_vcq", utofu_create_vcq(5, 0, &base_));
    need("reg_mem", utofu_reg_mem(base_, own_, 4096, 0, &own_stadd_));
    for (Slot& slot : slots_) slot.memory = words_of(mapped);
  }

  void run(double seconds) {
    board_.ready.fetch_add(1);
    if (!eventually([&] { return board_.ready.load() == kProcesses; })) give_up("the others", 0);
    for (const double end = now_s() + seconds; now_s() < end;) {
      const int what = pick(12);
      const int slot = pick(kSlots);
      what == 0 && slots_[slot].vcq == 0 ? open(slot) : what == 1 && slots_[slot].vcq != 0 ? close(slot) : use();
    }
    board_.finished.fetch_add(1);
    if (!eventually([&] { return board_.finished.load() == kProcesses; })) give_up("the others' end", 0);
    for (int slot = 0; slot < kSlots; ++slot) {
      if (slots_[slot].vcq != 0) close(slot);
    }
    board_.operations.fetch_add(operations_);
  }

 private:
  struct Slot {
    std::uint64_t* memory = nullptr;
    utofu_vcq_hdl_t vcq = 0;
  };

  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  Seat& seat(int slot) { return board_.seats[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(slot)]; }

  void open(int slot) {
    Slot& mine = slots_[slot];
    std::memset(mine.memory, 0, kWords * 8);
    need("create_vcq", utofu_create_vcq(static_cast<utofu_tni_id_t>(slot), 0, &mine.vcq));
    utofu_vcq_id_t id = 0;
    utofu_stadd_t stadd = 0;
    need("query", utofu_query_vcq_id(mine.vcq, &id));
    need("reg_mem", utofu_reg_mem(mine.vcq, mine.memory, 4096, 0, &stadd));
    seat(slot).id = id;
    seat(slot).stadd = stadd;
    seat(slot).added = 0;
    seat(slot).is_open = true;
    board_.owners.fetch_add(1);
  }

  void close(int slot) {
    seat(slot).is_open = false;
    if (!eventually([&] { return seat(slot).users.load() == 0; })) give_up("users", seat(slot).users.load());
    const std::uint64_t there = std::atomic_ref<std::uint64_t>(slots_[slot].memory[0]).load();
    if (there != seat(slot).added.load()) give_up("lost additions", static_cast<int>(seat(slot).added - there));
    need("free_vcq", utofu_free_vcq(slots_[slot].vcq));
    slots_[slot].vcq = 0;
  }

  void use() {
    Seat& one = board_.seats[static_cast<std::size_t>(pick(kProcesses))][static_cast<std::size_t>(pick(kSlots))];
    one.users.fetch_add(1);
    if (one.is_open.load()) {
      const utofu_vcq_id_t id = one.id;
      const utofu_stadd_t stadd = one.stadd;
      const auto column = static_cast<utofu_stadd_t>(8 * (1 + rank_));
      constexpr unsigned long kFlags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
      const std::uint64_t value = random_();
      own_[0] = value;
      own_[1] = ~value;
      finish("put", utofu_put(base_, id, own_stadd_, stadd + column, 8, 0, kFlags, nullptr));
      finish("armw", utofu_armw8(base_, id, UTOFU_ARMW_OP_ADD, 1, stadd, 0, kFlags, nullptr));
      one.added.fetch_add(1);
      finish("get", utofu_get(base_, id, own_stadd_ + 8, stadd + column, 8, 0, kFlags, nullptr));
      if (std::atomic_ref<std::uint64_t>(own_[1]).load() != value) give_up("what was put is not what was got", 0);
      operations_ += 3;
    }
    one.users.fetch_sub(1);
  }

  /// The operation has been started with this code; it has to succeed.
  void finish(const char* what, int rc) {
    need(what, rc);
    utofu_mrq_notice notice{};
    const auto is_told = [&] { return (rc = utofu_poll_mrq(base_, 0, &notice)) != UTOFU_ERR_NOT_FOUND; };
    if (!eventually(is_told)) give_up("no notice", 0);
    need(what, rc);
  }

  Board& board_;
  const int rank_;
  std::mt19937_64 random_;
  std::uint64_t* own_ = nullptr;
  utofu_vcq_hdl_t base_ = 0;
  utofu_stadd_t own_stadd_ = 0;
  std::array<Slot, kSlots> slots_;
  std::uint64_t operations_ = 0;
};

/// PORTOFU_NAMES_TEST_S, or a few seconds.
double test_seconds() {
  const char* given = std::getenv("PORTOFU_NAMES_TEST_S");
  return given != nullptr ? std::atof(given) : 3;
}

/// The processes of one test take as long as it asks for; a hang ends later than that.
void move_queues(int nodes, bool mapped) {
  set_lanes(kSlots);
  const TestNodes test_nodes(nodes == 1 ? Place::kOneNode : Place::kNodeEach);
  const SharedMemory<Board> board;
  const std::uint64_t seed = process_test_seed();
  const double seconds = test_seconds();
  std::deque<ChildProcess> players;
  for (int rank = 0; rank < kProcesses; ++rank) {
    players.emplace_back([&, rank] {
      alarm(static_cast<unsigned>(seconds) + 90);
      test_nodes.enter(rank % nodes);
      Player(*board, rank, seed + static_cast<std::uint64_t>(rank), mapped).run(seconds);
      return 0;
    });
  }
  for (ChildProcess& player : players) EXPECT_EQ(player.wait_status(), 0);
  EXPECT_GT(board->operations.load(), 0u);
  EXPECT_GT(board->owners.load(), static_cast<std::uint64_t>(kProcesses));
  std::printf("%llu operations, %llu queues\n", static_cast<unsigned long long>(board->operations.load()),
              static_cast<unsigned long long>(board->owners.load()));
}

TEST(Names, Queues_that_move_between_four_processes__lose_and_refuse_nothing) { move_queues(1, false); }
TEST(Names, Queues_that_move_between_four_processes__lose_and_refuse_nothing_in_mapped_memory) { move_queues(1, true); }
TEST(Names, Queues_that_move_between_two_nodes__lose_and_refuse_nothing) { move_queues(2, false); }

/// One process that obeys by turns.
struct Stage {
  std::atomic<int> turn{0};
  std::atomic<utofu_vcq_id_t> id{0};
  std::atomic<utofu_stadd_t> stadd{0};
  std::atomic<std::uint64_t> seen{0};

  void await(int number) {
    if (!eventually([&] { return turn.load() == number; })) _exit(9);
  }
};

enum class Leaving { kFrees, kDies };

/// @return exit status of a process that opens a VCQ at `turn`, gives it up at the next one, and says what it got
int own_queue(Stage& stage, int turn, bool mapped, Leaving leaving) {
  take_first_lane();
  std::uint64_t* const memory = words_of(mapped);
  stage.await(turn);
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
  const auto has_number = [&] {
    need("create_vcq", utofu_create_vcq(0, 0, &vcq));
    need("query", utofu_query_vcq_id(vcq, &id));
    if (stage.id == 0 || id == stage.id) return true;
    // It stays taken until all have heard who know it, which may be long on a busy machine.
    need("free_vcq", utofu_free_vcq(vcq));
    return false;
  };
  eventually(has_number);
  need("reg_mem", utofu_reg_mem(vcq, memory, 4096, 0, &stadd));
  stage.id = id;
  stage.stadd = stadd;
  stage.turn = turn + 1;
  stage.await(turn + 2);
  if (leaving == Leaving::kDies) return 0;
  eventually([&] { return std::atomic_ref<std::uint64_t>(memory[0]).load() != 0; });
  stage.seen = memory[0];
  need("free_vcq", utofu_free_vcq(vcq));
  stage.turn = turn + 3;
  stage.await(100);
  return 0;
}

/// Without any notice, so that nothing tells of a refusal.
int put_to_both(Stage& stage, bool mapped) {
  take_first_lane();
  std::uint64_t* const memory = words_of(mapped);
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  need("create_vcq", utofu_create_vcq(1, 0, &vcq));
  need("reg_mem", utofu_reg_mem(vcq, memory, 4096, 0, &stadd));
  const auto put = [&](std::uint64_t value) {
    memory[0] = value;
    need("put", utofu_put(vcq, stage.id, stadd, stage.stadd, 8, 0, 0, nullptr));
  };
  stage.turn = 1;
  stage.await(2);
  const utofu_vcq_id_t id = stage.id;
  put(11);
  stage.turn = 3;
  stage.await(12);
  if (stage.id != id) give_up("another number", 0);
  put(22);
  stage.turn = 13;
  stage.await(14);
  if (stage.seen != 22) give_up("what the second owner got", static_cast<int>(stage.seen));
  stage.turn = 100;
  return 0;
}

class MovedQueue : public testing::TestWithParam<std::tuple<bool, Leaving, Place, int>> {};

TEST_P(MovedQueue, Put__reaches_who_has_the_number_now) {
  const auto mapped = std::get<0>(GetParam());
  const auto leaving = std::get<1>(GetParam());
  const auto place = std::get<2>(GetParam());
  set_lanes(std::get<3>(GetParam()));
  const TestNodes nodes(place);
  const SharedMemory<Stage> stage;
  ChildProcess first([&] {
    nodes.enter(0);
    return own_queue(*stage, 1, mapped, leaving);
  });
  ChildProcess second([&] {
    nodes.enter(0);
    return own_queue(*stage, 11, mapped, Leaving::kFrees);
  });
  ChildProcess third([&] {
    nodes.enter(1);
    return put_to_both(*stage, mapped);
  });
  leaving == Leaving::kDies ? first.wait_death() : (stage->await(4), 0);
  stage->turn = 11;
  EXPECT_EQ(third.wait_status(), 0);
  EXPECT_EQ(second.wait_status(), 0);
  EXPECT_EQ(first.wait_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, MovedQueue,
                         testing::Combine(testing::Bool(), testing::Values(Leaving::kFrees, Leaving::kDies),
                                          testing::Values(Place::kOneNode, Place::kNodeEach), testing::Values(1, 2)));

/// One gate, which is the whole part of its process in a barrier of two.
struct Gate {
  /// @param wanted  0: any. The number of a dead process is free once all who know it have heard.
  explicit Gate(utofu_vbg_id_t wanted = 0) {
    const bool has_it = eventually([&] {
      need("alloc_vbg", utofu_alloc_vbg(0, 1, 0, &id));
      if (wanted == 0 || id == wanted) return true;
      need("free_vbg", utofu_free_vbg(&id, 1));
      return false;
    });
    if (!has_it) give_up("another number", 0);
  }
  void join(utofu_vbg_id_t other) const {
    utofu_vbg_setting setting{};
    setting.vbg_id = setting.src_lcl_vbg_id = setting.dst_lcl_vbg_id = id;
    setting.src_rmt_vbg_id = setting.dst_rmt_vbg_id = other;
    setting.dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
    need("set_vbg", utofu_set_vbg(&setting, 1));
  }
  int run() const {
    need("barrier", utofu_barrier(id, 0));
    int rc = UTOFU_ERR_NOT_COMPLETED;
    if (!eventually([&] { return (rc = utofu_poll_barrier(id, 0)) != UTOFU_ERR_NOT_COMPLETED; }))
      give_up("barrier", rc);
    return rc;
  }
  void pass() const { need("barrier", run()); }
  utofu_vbg_id_t id = 0;
};

/// A process that has a gate from `turn` on, passes a barrier, and gives the gate up.
int own_gate(Stage& stage, int turn, Leaving leaving) {
  take_first_lane();
  stage.await(turn);
  Gate gate(stage.id);
  const utofu_vbg_id_t other = stage.seen;
  stage.id = gate.id;
  gate.join(other);
  stage.turn = turn + 1;
  stage.await(turn + 2);
  gate.pass();
  if (leaving == Leaving::kDies) return 0;
  need("free_vbg", utofu_free_vbg(&gate.id, 1));
  stage.turn = turn + 3;
  stage.await(100);
  return 0;
}

/// Passes a barrier with the first process, and waits until another one has its number.
void pass_with_first(Stage& stage, const Gate& gate) {
  stage.seen = gate.id;
  stage.turn = 1;
  stage.await(2);
  const utofu_vbg_id_t id = stage.id;
  gate.join(id);
  stage.turn = 3;
  gate.pass();
  stage.await(12);
  if (stage.id != id) give_up("another number", 0);
}

int pass_with_both(Stage& stage) {
  take_first_lane();
  const Gate gate;
  pass_with_first(stage, gate);
  gate.join(stage.id);
  stage.turn = 13;
  gate.pass();
  stage.await(14);
  stage.turn = 100;
  return 0;
}

class MovedGate : public testing::TestWithParam<std::tuple<Leaving, Place, int>> {};

TEST_P(MovedGate, Barrier__goes_on_with_who_has_the_number_now) {
  const auto leaving = std::get<0>(GetParam());
  const auto place = std::get<1>(GetParam());
  set_lanes(std::get<2>(GetParam()));
  const TestNodes nodes(place);
  const SharedMemory<Stage> stage;
  const auto own = [&](int turn, Leaving how) {
    nodes.enter(0);
    return own_gate(*stage, turn, how);
  };
  ChildProcess first([&] { return own(1, leaving); });
  ChildProcess second([&] { return own(11, Leaving::kFrees); });
  ChildProcess third([&] {
    nodes.enter(1);
    return pass_with_both(*stage);
  });
  leaving == Leaving::kDies ? first.wait_death() : (stage->await(4), 0);
  stage->turn = 11;
  EXPECT_EQ(third.wait_status(), 0);
  EXPECT_EQ(second.wait_status(), 0);
  EXPECT_EQ(first.wait_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, MovedGate,
                         testing::Combine(testing::Values(Leaving::kFrees, Leaving::kDies),
                                          testing::Values(Place::kOneNode, Place::kNodeEach), testing::Values(1, 2)));

/// Has the number of a gate when its process has died, and is of no circuit.
int take_number(Stage& stage) {
  take_first_lane();
  stage.await(11);
  const Gate gate(stage.id);
  stage.id = gate.id;
  stage.turn = 12;
  stage.await(100);
  return 0;
}

int start_with_the_dead(Stage& stage) {
  take_first_lane();
  const Gate gate;
  pass_with_first(stage, gate);
  const int rc = gate.run();
  if (rc != UTOFU_ERR_BARRIER_OTHER) give_up("barrier with the dead", rc);
  stage.turn = 100;
  return 0;
}

class NumberOfTheDead : public testing::TestWithParam<std::tuple<Place, int>> {};

TEST_P(NumberOfTheDead, Barrier__fails_though_another_process_has_the_number) {
  const auto place = std::get<0>(GetParam());
  set_lanes(std::get<1>(GetParam()));
  const TestNodes nodes(place);
  const SharedMemory<Stage> stage;
  ChildProcess first([&] {
    nodes.enter(0);
    return own_gate(*stage, 1, Leaving::kDies);
  });
  ChildProcess second([&] {
    nodes.enter(0);
    return take_number(*stage);
  });
  ChildProcess third([&] {
    nodes.enter(1);
    return start_with_the_dead(*stage);
  });
  first.wait_death();
  stage->turn = 11;
  EXPECT_EQ(third.wait_status(), 0);
  EXPECT_EQ(second.wait_status(), 0);
  EXPECT_EQ(first.wait_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, NumberOfTheDead,
                         testing::Combine(testing::Values(Place::kOneNode, Place::kNodeEach), testing::Values(1, 2)));

constexpr ptl_pid_t kPid = 77;

/// An interface with an event queue.
struct Ni {
  explicit Ni(ptl_pid_t pid) {
    need("PtlInit", PtlInit());
    need("PtlNIInit", PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni));
    need("PtlEQAlloc", PtlEQAlloc(ni, 64, &eq));
    need("PtlGetPhysId", PtlGetPhysId(ni, &id));
  }
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t eq{};
  ptl_process_t id{};
};

/// How a process ends that has a PID.
struct PidEnd {
  bool clean = false;        ///< By PtlFini.
  bool loses_queue = false;  ///< It has given up a control queue before: who knows the PID by a link has heard of that.
};

void make_and_free_queue() {
  utofu_vcq_hdl_t vcq = 0;
  need("create_vcq", utofu_create_vcq(0, 0, &vcq));
  need("free_vcq", utofu_free_vcq(vcq));
}

/// The process has the PID from `turn` on, and shows the first word of its entry.
int own_pid(Stage& stage, int turn, bool published, PidEnd end) {
  std::uint64_t* const memory = words_of(published);
  stage.await(turn);
  const Ni here(kPid);
  ptl_pt_index_t index = 0;
  // Nobody is told of a message to the entry, so in the heap it may be published.
  need("PtlPTAlloc", PtlPTAlloc(here.ni, 0, PTL_EQ_NONE, 3, &index));
  ptl_le_t entry{};
  entry.start = memory;
  entry.length = 4096;
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_LE_OP_PUT;
  ptl_handle_le_t handle{};
  need("PtlLEAppend", PtlLEAppend(here.ni, index, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
  stage.id = here.id.phys.nid;
  stage.turn = turn + 1;
  stage.await(turn + 2);
  stage.seen = memory[0];
  if (end.loses_queue) make_and_free_queue();
  stage.turn = turn + 3;
  if (turn != 1) stage.await(100);
  if (end.clean) PtlNIFini(here.ni);
  if (end.clean) PtlFini();
  return 0;
}

/// @param may_not_have_heard  of the new owner, when it sends: between nodes a PID is given out anew after a fifth of a
///                            second, and on a busy machine the news may take longer (engine/doc/death_and_names.md)
int put_to_pid(Stage& stage, bool may_not_have_heard) {
  const Ni here(PTL_PID_ANY);
  static std::uint64_t value = 0;
  ptl_md_t memory{};
  memory.start = &value;
  memory.length = sizeof value;
  memory.eq_handle = here.eq;
  memory.ct_handle = PTL_CT_NONE;
  ptl_handle_md_t md{};
  need("PtlMDBind", PtlMDBind(here.ni, &memory, &md));
  const auto put = [&](std::uint64_t what) {
    value = what;
    ptl_process_t to{};
    to.phys.nid = static_cast<ptl_nid_t>(stage.id.load());
    to.phys.pid = kPid;
    need("PtlPut", PtlPut(md, 0, 8, PTL_ACK_REQ, to, 3, 0, 0, nullptr, 0));
    ptl_event_t event{};
    const auto is_told = [&] { return PtlEQGet(here.eq, &event) == PTL_OK && event.type == PTL_EVENT_ACK; };
    if (!eventually(is_told)) give_up("no ACK", 0);
    return event.ni_fail_type;
  };
  stage.turn = 1;
  stage.await(2);
  for (int i = 0; i < 4; ++i) need("ACK of the first owner", put(11));
  stage.turn = 3;
  stage.await(12);
  const auto told = put(22);
  if (told == PTL_NI_UNDELIVERABLE && may_not_have_heard)
    need("ACK of the second owner, once its name is known", put(22));
  else
    need("ACK of the second owner", told);
  stage.turn = 13;
  stage.await(14);
  if (stage.seen != 22) give_up("what the second owner got", static_cast<int>(stage.seen));
  stage.turn = 100;
  return 0;
}

class MovedPid : public testing::TestWithParam<std::tuple<bool, bool, bool, Place>> {};

TEST_P(MovedPid, Put__reaches_who_has_the_PID_now) {
  const auto published = std::get<0>(GetParam());
  const PidEnd end{std::get<1>(GetParam()), std::get<2>(GetParam())};
  const auto place = std::get<3>(GetParam());
  const TestNodes nodes(place);
  const SharedMemory<Stage> stage;
  const auto own = [&](int turn) {
    nodes.enter(0);
    return own_pid(*stage, turn, published, end);
  };
  ChildProcess first([&] { return own(1); });
  ChildProcess second([&] { return own(11); });
  ChildProcess third([&] {
    nodes.enter(1);
    return put_to_pid(*stage, place == Place::kNodeEach);
  });
  first.wait_death();
  stage->turn = 11;
  EXPECT_EQ(third.wait_status(), 0);
  EXPECT_EQ(second.wait_status(), 0);
  EXPECT_EQ(first.wait_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, MovedPid,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool(),
                                          testing::Values(Place::kOneNode, Place::kNodeEach)));

}  // namespace
}  // namespace portofu
