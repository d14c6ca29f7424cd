#pragma once
// The clock of a rank in virtual time, and its turns. Before it: the engine says what a thread does: sends, looks for
// something and finds nothing, waits. After it: the coordinator (lib/tools/ptl_sim) lets the rank go on, at a time.
//
// One thread of the application calls at a time. What a packet causes happens in the rank's NIC, another thread of the
// library, at the time of the packet, whatever the clock of the application says.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/topology/process_id.h"
#include "engine/wire/sim/virtual_page.h"

namespace portofu {

class VirtualClock {
 public:
  /// Takes part in the job.
  /// @param path  of the file that the coordinator has made
  /// @param rank  of this process; negative: nobody has told it
  /// @param why   a sentence for people, on failure
  /// @return nullptr on failure
  static std::unique_ptr<VirtualClock> open(const std::string& path, std::int64_t rank, ProcessId self,
                                            std::string* why);
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  // ---- The application, without the duty

  /// A call has looked for something and found nothing. Calls that do so in a row wait ever longer: for something to
  /// arrive, or for some time.
  void pass();

  /// A call has looked for something and found nothing. Lets happen what happens until now, if anything may.
  /// @return something may have: it has to look again
  bool let_others_catch_up();

  /// A call has looked for something and found it. On duty, too.
  void find();

  /// A call waits until something arrives. @param deadline_ps  kNeverPs: ever. @return false if that time has come
  /// first
  bool wait(std::uint64_t deadline_ps);

  /// The clock of the application.
  std::uint64_t now_ps() const { return clock_ps_; }

  /// The program starts MPI up, or has: as long as it does, calls cost nothing and give no turn back.
  void start_up(bool begins) {
    starting_up_.store(begins, std::memory_order_relaxed);
    page_.is_mpi.store(1, std::memory_order_relaxed);
  }

  // ---- The program, which reads clocks and sleeps itself

  /// Whether the rank has had a turn, and has not left. Any thread.
  bool has_begun() const;

  /// What the program is shown: virtual time since it opened the clock. It costs nothing, but who reads again and again
  /// without a call waits for a time. Threads that do not call are shown when the other one has called last. Only after
  /// has_begun.
  /// @param in_call  this thread is in the middle of a call: time stands still
  std::uint64_t read(bool in_call);

  /// The same before has_begun, where real time is shown.
  void read_early(bool in_call);
  /// Whether time stands still for this thread until has_begun: it has sent something, so its next wait is for that.
  bool stands() const;

  /// Lets that time pass, or as much as a look in vain, so that who sleeps again and again for no time comes to an end.
  /// @return false if time is real for this thread, because it does not call, or not yet
  bool sleep(std::uint64_t length_ps);

  /// Lets all that was sent arrive, and leaves virtual time for good. Returns at once if it was left before.
  void leave();

  /// The same, but the NIC goes on taking what arrives, until leave. The program does nothing more that counts.
  void retire();

  // ---- On duty

  /// What a call sends costs time. @return when it leaves
  std::uint64_t stamp(VirtualCall call);

  /// The same of what costs nothing, see is_own_word.
  std::uint64_t stamp_own_word();

  /// What this thread has done since the last call that costs time was the library's own work, and is not counted as
  /// the program's. Any thread.
  void end_own_work();

  /// Tells what was sent, and adds who has sent it. Waits, shortly, if the coordinator has much to read.
  void report(VirtualReport report);
  std::uint64_t next_number() { return page_.next_number.fetch_add(1, std::memory_order_relaxed); }

  /// From here to leave_nic what is sent leaves at the time of the delivery.
  void enter_nic(const VirtualDelivery& delivery, std::uint8_t cause);
  void leave_nic() { in_nic_ = false; }
  /// What is sent now is caused by such a packet; 0: by a call.
  std::uint8_t cause() const { return in_nic_ ? cause_ : 0; }
  /// Through which interface answers leave, and where they go.
  std::uint32_t interface() const { return in_nic_ ? nic_.to_interface : 0; }
  std::uint32_t to_interface() const { return in_nic_ ? nic_.interface : 0; }

  // ---- The NIC

  /// Waits until something is to be taken. @param timeout_ns  at most so long; negative: ever
  /// @return false if nothing is
  bool wait_for_delivery(VirtualDelivery* delivery, std::int64_t timeout_ns);
  void delivered();
  /// Whether the process that has sent this has left, or has ended.
  bool has_sender_gone(const VirtualDelivery& delivery) const;
  /// From now on nothing is to be taken.
  void end_nic();

  /// The coordinator could not stop a thread that has blocked its signal. This thread has not, from here on.
  static void admit_freezing();

  /// A signal handler: the coordinator asks whether this thread polls its memory.
  /// @param in_call  it is in the middle of a call, so it does not; else it may, and sleeps until it goes on
  void freeze(bool in_call);

 private:
  VirtualClock(VirtualHeader* header, std::size_t bytes, VirtualPage& page, ProcessId self);
  void charge(bool is_call = true);
  bool is_caller() const;
  bool wait_for_first_turn();
  std::uint64_t since_opened(std::uint64_t clock_ps) const;
  void go_on();
  void end_streaks();
  void note_look();
  void look_ahead();
  void spend(VirtualSpent what, std::uint64_t cost_ps, bool is_empty = false);
  void tell_span(const VirtualSpan& span);
  void catch_up(VirtualSpent what);
  bool is_deserted();
  bool has_turn();
  void give_turn(VirtualState state, std::uint64_t until_ps);
  void end_as(VirtualState state);
  VirtualState state() const { return static_cast<VirtualState>(page_.state.load(std::memory_order_acquire)); }
  std::uint64_t thread_cpu_ps() const;

  VirtualHeader* const header_;
  const std::size_t bytes_;
  VirtualPage& page_;
  const ProcessId self_;
  const std::uint32_t life_;
  const std::uint32_t rank_count_;
  const std::uint32_t coordinator_;
  const VirtualCompute compute_;
  const std::uint64_t compute_word_;
  const bool keeps_spans_;
  std::array<std::uint64_t, kVirtualCallCount> call_ps_{};
  const std::uint64_t poll_ps_;
  const std::uint64_t empty_poll_ps_;
  const std::uint64_t least_wait_ps_;      ///< Of looks and reads of the clock in a row.
  std::uint32_t short_looks_;              ///< In a row and in vain, that cost no more than their own time.
  std::uint64_t clock_ps_;                 ///< Of the application.
  const std::uint64_t opened_ps_;          ///< What it was when it was opened.
  std::atomic<std::uintptr_t> caller_;     ///< The thread that gave the turn back last, at first that which opened.
  std::uint32_t seen_turn_ = 0;            ///< When it was last noted.
  std::uint32_t empty_looks_ = 0;          ///< In a row.
  std::uint32_t reads_ = 0;                ///< Of the clock, since the last call.
  std::uint32_t reads_of_look_ = 0;        ///< The same, before the last look in vain that it was read before.
  std::uint32_t looks_of_read_ = 0;        ///< In vain, since it was read; 0: it was not, or something else has been.
  std::uint32_t looks_between_reads_ = 0;  ///< In vain, between two reads, at most: more of them than kLooksOfRead.
  std::uint32_t paid_looks_ = 0;           ///< Of those, which have taken their time already.
  std::uint64_t streak_from_ps_ = 0;       ///< When looks or reads in a row began, or the last wait by the clock in it.
  bool watches_clock_ = false;             ///< It was read between these looks.
  bool in_turn_change_ = false;            ///< A signal's handler may see it.
  bool has_sent_ = false;                  ///< In this turn.
  std::uint32_t early_looks_ = 0;          ///< In vain, and sleeps, before it has had a turn.
  bool looks_count_ = false;               ///< It has sent something, or has waited for a while before its turn.
  std::atomic<bool> begun_{false};         ///< It has had a turn.
  std::atomic<bool> starting_up_{false};   ///< By start_up.
  std::atomic<bool> left_{false};          ///< Virtual time.
  bool in_nic_ = false;                    ///< On duty.
  std::uint8_t cause_ = 0;                 ///< On duty: PacketType.
  VirtualDelivery nic_{};                  ///< On duty: what the NIC has in hand.
  std::uint32_t seen_deliveries_ = 0;      ///< The NIC.
  std::atomic<bool> nic_ends_{false};      ///< By end_nic.
};

}  // namespace portofu
