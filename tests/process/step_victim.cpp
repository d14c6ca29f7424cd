#include "tests/process/step_victim.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <random>

#include "tests/process/own_node.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

/// Time for a death in the steps that are loops.
constexpr std::uint64_t kMostStepNs = 2'000'000;
constexpr int kMostLives = 200;

class Victim {
 public:
  Victim(const TestNodes& nodes, const VictimOptions& options, VictimBoard& board, PlayerCounts& counts)
      : options_(options),
        board_(board),
        player_(make_player(options.api, nodes, options.rank)),
        correspondence_(*player_, counts),
        random_(options.seed) {}

  int run() {
    sigevent by_kill{};
    by_kill.sigev_notify = SIGEV_SIGNAL;
    by_kill.sigev_signo = SIGKILL;
    if (timer_create(CLOCK_MONOTONIC, &by_kill, &timer_) != 0) return 2;
    if (!open()) return 3;
    while (board_.may_die == 0) {
      if (!exchange()) return 4;
    }
    return die_in_step();
  }

 private:
  bool open() {
    const double begin = now_s();
    if (!eventually([&] { return player_->open(); })) return false;
    open_ns_ = static_cast<std::uint64_t>((now_s() - begin) * 1e9);
    return true;
  }

  bool exchange() {
    for (int target = 0; target < options_.rank; ++target) correspondence_.post(target, any_operation(random_), 4);
    return correspondence_.take();
  }

  /// Death comes within that time.
  void begin(std::uint64_t most_ns) {
    itimerspec due{};
    due.it_value.tv_nsec = static_cast<long>(1 + random_() % std::min<std::uint64_t>(most_ns, 900'000'000));
    board_.step_now = static_cast<int>(options_.step);
    timer_settime(timer_, 0, &due, nullptr);
  }
  void leave() {
    const itimerspec never{};
    timer_settime(timer_, 0, &never, nullptr);
    board_.step_now = -1;
  }

  int die_in_step() {
    if (options_.step == Step::kAttach || options_.step == Step::kDetach) return die_in_open_or_close();
    begin(kMostStepNs);
    for (int target = 0;; target = (target + 1) % options_.rank) {
      switch (options_.step) {
        case Step::kClaim:
          if (!player_->put_unheard(target)) correspondence_.take();
          break;
        case Step::kPublish:
          if (!correspondence_.post(target, Operation::kLongPut, 8)) correspondence_.take();
          break;
        case Step::kFetch:
          if (!correspondence_.post(target, random_() % 2 == 0 ? Operation::kGet : Operation::kFetch, 8))
            correspondence_.take();
          break;
        default: player_->trigger(target); break;
      }
    }
  }

  /// The time of death is chosen by what the step took before.
  int die_in_open_or_close() {
    std::uint64_t close_ns = open_ns_;
    for (int life = 0; life < kMostLives; ++life) {
      for (int i = 0; i < 4; ++i) exchange();
      for (int target = 0; target < options_.rank; ++target) correspondence_.post(target, Operation::kLongPut, 8);
      const double before = now_s();
      if (options_.step == Step::kDetach) begin(close_ns + close_ns / 8);
      player_->close();
      leave();
      close_ns = static_cast<std::uint64_t>((now_s() - before) * 1e9) + 1000;
      correspondence_.forget();
      if (options_.step == Step::kAttach) begin(open_ns_ + open_ns_ / 4 + 1000);
      if (!open()) return 5;
      for (int target = 0; target < options_.rank; ++target) correspondence_.post(target, Operation::kShortPut, 1);
      leave();
    }
    kill(getpid(), SIGKILL);
    return 6;
  }

  const VictimOptions options_;
  VictimBoard& board_;
  std::unique_ptr<Player> player_;
  Correspondence correspondence_;
  std::mt19937_64 random_;
  timer_t timer_{};
  std::uint64_t open_ns_ = 0;
};

}  // namespace

const char* step_name(Step step) {
  switch (step) {
    case Step::kClaim: return "claim";
    case Step::kPublish: return "publish";
    case Step::kFetch: return "fetch";
    case Step::kTrigger: return "trigger";
    case Step::kAttach: return "attach";
    case Step::kDetach: return "detach";
  }
  return "unknown";
}

int run_victim(const TestNodes& nodes, const VictimOptions& options, VictimBoard& board, PlayerCounts& counts) {
  nodes.enter(options.rank);
  return Victim(nodes, options, board, counts).run();
}

}  // namespace portofu
