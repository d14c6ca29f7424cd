// Barriers of four processes: a tree of triggered puts against a circuit of barrier gates.

#include <array>

#include "engine_counters.h"
#include "world.h"

namespace compare {

namespace {

constexpr std::uint64_t kMostRounds = 200;

/// Takes part in rounds of a barrier. @param pass  (round from 1) enters and waits, @return the library calls that
/// started it, without those that wait
template <class Pass>
Facts pass_rounds(World& w, Pass&& pass) {
  const std::uint64_t rounds = w.self.quick() ? 20 : kMostRounds;
  Stage& stage = w.self.stage();
  std::uint64_t calls = 0, early = 0;
  calls = pass(1);  // Opens the channels.
  w.self.meet();
  const Traffic before = look_at_own_engine();
  w.self.meet();
  for (std::uint64_t round = 2; round <= rounds + 1; ++round) {
    stage.counts[w.rank()] = round;
    calls = pass(round);
    for (int rank = 0; rank < w.self.size(); ++rank) early += stage.counts[rank] < round;
  }
  w.self.meet();
  const auto mine = look_at_own_engine() - before;
  std::uint64_t packets = 0, left_early = 0, least = calls, most = calls;
  for (const Traffic& traffic : w.self.share(mine)) packets += traffic.packets;
  for (const std::uint64_t count : w.self.share(early)) left_early += count;
  for (const std::uint64_t count : w.self.share(calls)) least = std::min(least, count), most = std::max(most, count);
  if (w.rank() != 0) return {};
  return {{"processes that left before all had come", std::to_string(left_early)},
          {"calls that start a round, of each process",
           least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most)},
          {"packets of a round, all processes", std::to_string((packets + rounds / 2) / rounds)}};
}

// ---- A tree of triggered puts --------------------------------------------------------------------------------------

/// Puts of nothing go up the tree when a process and its children have come, and down when its parent lets it go.
class Tree {
 public:
  explicit Tree(World& w) : w_(w), up_(w.portals.alloc_ct()), down_(w.portals.alloc_ct()) {
    w.portals.open_pt(kOtherPt, PTL_EQ_NONE);
    w.portals.append(kOtherPt, PortalsSide::entry(nullptr, 0, PTL_ME_OP_PUT, up_));
    w.portals.open_pt(kThirdPt, PTL_EQ_NONE);
    w.portals.append(kThirdPt, PortalsSide::entry(nullptr, 0, PTL_ME_OP_PUT, down_));
    for (int child = 2 * w.rank() + 1; child <= 2 * w.rank() + 2 && child < w.self.size(); ++child) {
      children_.push_back(child);
    }
    w.self.meet();
  }

  std::uint64_t pass(std::uint64_t round) {
    const ptl_size_t come = round * (children_.size() + 1);
    const bool root = w_.rank() == 0;
    std::uint64_t calls = 1;
    if (!root) calls += arm((w_.rank() - 1) / 2, kOtherPt, up_, come);
    for (const int child : children_)
      calls += root ? arm(child, kThirdPt, up_, come) : arm(child, kThirdPt, down_, round);
    MUST_PTL(PtlCTInc(up_, {1, 0}));
    root ? PortalsSide::wait(up_, come) : PortalsSide::wait(down_, round);
    return calls;
  }

 private:
  std::uint64_t arm(int to, ptl_pt_index_t pt, ptl_handle_ct_t ct, ptl_size_t threshold) {
    MUST_PTL(PtlTriggeredPut(w_.portals.silent_md, 0, 0, PTL_NO_ACK_REQ, w_.portals.id(to), pt, 0, 0, nullptr, 0, ct,
                             threshold));
    return 1;
  }

  World& w_;
  ptl_handle_ct_t up_;    ///< Arrivals of this process and of its children.
  ptl_handle_ct_t down_;  ///< Rounds that the parent has let go.
  std::vector<int> children_;
};

Facts barrier_portals(World& w) {
  Tree tree(w);
  return pass_rounds(w, [&](std::uint64_t round) { return tree.pass(round); });
}

// ---- A circuit of gates --------------------------------------------------------------------------------------------

constexpr std::size_t kStages = 2;  ///< Of a butterfly of four processes.
using Gates = std::array<utofu_vbg_id_t, kStages>;

/// Gate i of a process sends to its partner of stage i, whose next gate receives it. @return the start/end gate
utofu_vbg_id_t build_butterfly(World& w, Gates* mine) {
  MUST_TOFU(utofu_alloc_vbg(0, kStages, 0, mine->data()));
  const auto all = w.self.share(*mine);
  const auto partner = [&](std::size_t stage) { return all[static_cast<std::size_t>(w.rank() ^ (1 << stage))]; };
  std::array<utofu_vbg_setting, kStages> settings{};
  for (std::size_t i = 0; i < kStages; ++i) {
    const std::size_t before = (i + kStages - 1) % kStages, after = (i + 1) % kStages;
    settings[i] = {(*mine)[i],     (*mine)[before],   partner(before)[before],
                   (*mine)[after], partner(i)[after], {UTOFU_PATH_COORD_NULL, 0, 0}};
  }
  MUST_TOFU(utofu_set_vbg(settings.data(), kStages));
  w.self.meet();
  return mine->front();
}

Facts barrier_utofu(World& w) {
  Gates gates{};
  const utofu_vbg_id_t start = build_butterfly(w, &gates);
  Facts facts = pass_rounds(w, [&](std::uint64_t) -> std::uint64_t {
    MUST_TOFU(utofu_barrier(start, 0));
    await([&] { return utofu_poll_barrier(start, 0) == UTOFU_SUCCESS; }, "the barrier");
    return 1;
  });
  w.self.meet();
  MUST_TOFU(utofu_free_vbg(gates.data(), gates.size()));
  return facts;
}

}  // namespace

Theme barrier_theme() {
  return {"Barriers",
          {{"A barrier",
            "Four processes meet again and again: a tree of PtlTriggeredPut on two counters each, against a butterfly "
            "of two barrier gates each.",
            barrier_portals,
            barrier_utofu,
            {{"processes that left before all had come", "0", "0"},
             {"calls that start a round, of each process", "2 to 3", "1"},
             {"packets of a round, all processes", "6", "8"}},
            "A circuit is connected once and each round is one call; triggered operations are used up and armed again "
            "for every round, with thresholds that go up, but tree, counters and data are the program's own choice.",
            /*processes=*/4}}};
}

}  // namespace compare
