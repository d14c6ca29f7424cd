#pragma once
// Orders a job in virtual time: one thread that lets ranks run, one at a time, and carries their messages over the
// network of a machine. Before it: pages of the ranks (engine/wire/sim/virtual_page.h). After it: their times.
//
// What happens next is what is earliest: a message that leaves, one that arrives, a rank that wants to go on. Of those
// at the same time, messages come first, then ranks by their number. So the same program has the same times.

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/sim/network.h"
#include "lib/tools/ptl_run/job_watcher.h"
#include "lib/tools/ptl_sim/evidence.h"
#include "lib/tools/ptl_sim/history.h"
#include "lib/tools/ptl_sim/shared_time.h"

namespace portofu::tools {

struct CoordinatorOptions {
  std::uint32_t rank_count = 1;
  std::uint32_t per_node = 1;
  std::uint64_t look_ps = 0;    ///< From data in memory to a loop over it that has seen it.
  std::uint64_t notice_ps = 0;  ///< From data in memory to a notice that a call finds.
  bool keeps_history = false;
  bool is_quiet = false;                ///< Nothing is said on standard error.
  bool has_launcher = false;            ///< The job is one program, which starts the ranks.
  std::uint64_t patience_ns = 200'000;  ///< CPU time without a call after which a rank polls its memory.
  /// The same of ranks of MPI, until one has shown that it does.
  std::uint64_t mpi_patience_ns = 1'000'000'000;
  std::uint64_t hang_ns = 60'000'000'000;  ///< Real time without anything that happens, after which the job hangs.
};

/// What has become of a rank.
struct RankTimes {
  std::uint64_t clock_ps = 0;                                ///< At its end.
  std::array<std::uint64_t, kVirtualSpentCount> spent_ps{};  ///< By VirtualSpent.
  std::array<std::uint64_t, kVirtualSpentCount> count{};
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t late_calls = 0;  ///< That came when others had gone beyond their time already.
};

class Coordinator final : public JobWatcher {
 public:
  /// @param time, network  outlive it
  Coordinator(CoordinatorOptions options, const SharedTime& time, sim::Network& network);
  ~Coordinator() override;

  void begin() override;
  void rank_ended(int rank) override;
  void rank_meets(int rank, bool waits) override;
  int complaint_fd() const override { return complaint_fd_; }
  std::string complaint() override;
  void end() override;

  // After end():
  const std::vector<RankTimes>& times() const { return times_; }
  std::vector<ProcessId> ids() const;                  ///< By rank; of one that never was, 0.
  const History& history() const { return history_; }  ///< Empty if it is not kept.
  std::uint64_t end_ps() const;  ///< Of all: the last rank has ended, the last message has arrived.
  std::uint64_t message_count() const { return message_count_; }
  bool has_begun() const;  ///< Some rank has used the library.

 private:
  /// Pauses of who looks at what nobody rings for.
  static constexpr std::uint64_t kPauseNs = 5'000'000;
  /// What a look at something that lasts counts for: twice such a pause.
  static constexpr std::uint64_t kMostOfLookNs = 2 * kPauseNs;

  enum class What : std::uint8_t { kArrival, kLost, kLeft, kDeparture };
  struct Happening {
    std::uint64_t time_ps;
    What what;
    std::uint32_t rank;  ///< The sender.
    VirtualReport report;
    std::uint32_t target;
    std::uint32_t target_life;
    /// In the history: of an arrival or one that has left itself, of a departure what it answers; kNoMessage: nothing,
    /// or it is not kept.
    std::uint32_t message = kNoMessage;
    bool operator>(const Happening& other) const;
  };
  struct Seat {
    std::atomic<bool> ended{false};
    std::atomic<bool> meets{false};     ///< By rank_meets.
    int ended_process = 0;              ///< With a launcher: which process of the rank has.
    std::uint64_t place_ps = kNeverPs;  ///< When it wants to go on; kNeverPs: it is not in `places_`.
    bool is_busy = false;               ///< It does more than look again: it counts in `busy_places_`.
    std::uint32_t waker = kNoMessage;   ///< The message because of which it does.
    std::uint64_t under_way = 0;        ///< Messages that it has sent and that have not arrived.
    std::uint64_t arrived_ps = 0;       ///< When the last message that it has sent has arrived.
    std::uint64_t reaches_ps = 0;       ///< When those that have departed all will have.
    bool told = false;                  ///< Since its turn something has arrived for it.
    bool is_deaf = false;               ///< It takes no signals: it was asked, and has not answered.
    PollingEvidence evidence;           ///< Of this turn, or before the first one.
    std::uint64_t patience_ns = 0;      ///< What it has taught; 0: nothing yet, so that of the options counts.
    std::uint64_t untried_ns = 0;       ///< What that was before something woke it; 0: it has called since.
    std::uint64_t calls = 0;            ///< That it had made then.
  };

  /// Of the rank that had the turn when nobody else could go on, and seemed to poll its memory, too.
  struct Last {
    std::uint32_t rank = 0;
    std::uint64_t cpu_ns = 0;    ///< That it was given at last; 0: there is none.
    std::uint64_t since_ns = 0;  ///< In real time.
  };

  struct Roll;

  void run();
  void order();
  bool wait_for_start();
  Roll call_roll(bool is_late);
  void ask_who_polls(std::uint64_t still_ns);
  void wait_for_rest();
  void tell_of_missing() const;
  bool step();
  VirtualState state(std::uint32_t rank) const;
  void look_at(std::uint32_t rank);
  void look_at_outsiders();
  void note_outsider(std::uint32_t rank, bool is_one);
  bool look_at_all();
  void count_last_look(std::uint32_t rank);
  void set_place(std::uint32_t rank, std::uint64_t time_ps, std::uint32_t waker = kNoMessage);
  void grant(std::uint32_t rank, std::uint64_t time_ps);
  void wait_for_turn_end(std::uint32_t rank);
  bool leave_alone(std::uint32_t rank, Lasting& nap);
  std::uint64_t calls_of(std::uint32_t rank) const;
  std::uint64_t patience_of(std::uint32_t rank) const;
  void try_as_poller(std::uint32_t rank);
  bool has_failed_as_poller(std::uint32_t rank);
  bool let_frozen_compute();
  bool share_time();
  void give_time(std::uint32_t rank, std::uint64_t cpu_ns);
  void fail_without_call(std::uint32_t rank);
  bool may_somebody_come() const;
  bool can_others_go_on() const { return !happenings_.empty() || !places_.empty(); }
  bool may_poll(std::uint32_t rank, std::uint64_t cpu_between_ns);
  bool polls_memory(std::uint32_t rank, std::uint64_t cpu_between_ns);
  bool ask(std::uint32_t rank, VirtualState from);
  bool await_answer(std::uint32_t rank, VirtualState from);
  bool let_go_on(std::uint32_t rank, VirtualState as);
  bool thaw();
  bool drain(std::uint32_t rank, std::uint32_t answered = kNoMessage);
  bool drain_spans(std::uint32_t rank);
  bool find_rank(std::uint32_t nid, std::uint32_t pid, std::uint32_t* rank);
  void depart(const Happening& departure);
  void arrive(const Happening& arrival);
  void leave(const Happening& left);
  void come_back(const Happening& arrival);
  void lose(const Happening& lost);
  bool hand_to_nic(std::uint32_t rank, std::uint32_t life, const VirtualDelivery& delivery);
  void tell(std::uint32_t rank, std::uint64_t notice_ps, std::uint32_t message);
  bool is_quiet() const;
  bool wait_for_news(std::uint64_t timeout_ns);
  bool has_all_ended() const;
  bool may_others_follow() const { return options_.has_launcher && !launcher_ended_.load(); }
  bool is_missing(std::uint32_t rank) const;
  void look_for_ended();
  void look_for_end_of(std::uint32_t rank);
  void fail(const std::string& why);
  void fail_after_hang();
  std::string who_waits() const;

  const CoordinatorOptions options_;
  const SharedTime& time_;
  sim::Network& network_;
  std::vector<Seat> seats_;
  std::vector<RankTimes> times_;
  History history_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> places_;  ///< Ranks that want to go on, by time.
  std::size_t busy_places_ = 0;                               ///< Of those.
  std::set<std::uint32_t> frozen_;
  std::set<std::uint32_t> outsiders_;  ///< Away, or gone: whether they have come back is looked at.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ranks_by_id_;  ///< By NID and PID.
  std::uint64_t now_ps_ = 0;
  std::uint64_t message_count_ = 0;
  std::uint32_t seen_bell_ = 0;
  std::uint64_t looked_for_ended_ns_ = 0;
  std::uint64_t last_event_ps_ = 0;   ///< When something arrived last.
  std::uint64_t vain_turns_ = 0;      ///< Since something was under way, or somebody frozen was given time.
  std::uint64_t vain_factor_ = 1;     ///< Grows each time.
  std::uint64_t quiet_since_ns_ = 0;  ///< In real time, since when ranks do nothing but look; 0: they do.
  Last last_;
  bool shares_time_ = false;  ///< In share_time.
  bool some_poll_ = false;    ///< A rank of MPI has shown that it polls its memory, so that others of its program may.
  bool failed_ = false;
  bool follows_ = false;  ///< All ranks have ended, and others have come for the launcher's next program.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> launcher_ended_{false};
  int complaint_fd_;
  std::mutex mutex_;
  std::string complaint_;  ///< Guarded by mutex_.
  std::thread thread_;
};

}  // namespace portofu::tools
