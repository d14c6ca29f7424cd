#pragma once
// Application bypass: puts arrive, gets are answered, triggers fire while the application computes (Portals 4.3, 2.1).
//
// The thread has three moods. It *watches* while application threads run the engine themselves, by calls that look for
// something: once a guard period it looks whether one has since, and twice as rarely each time, down to every 8 ms, as
// long as one has and the core is shared with other processes. If none has, it *serves*: it runs the loop, and listens
// at the doorbell when there is nothing to do, so an idle process costs nothing. Calls that only start something, or
// find at once what they look for, leave it there: a program that puts, and polls its own memory, is served within
// microseconds. It *parks* while an application thread sleeps inside the library, because that thread listens itself.
// It never spins.
//
// A process whose main function has ended by pthread_exit ends with its last thread (pthreads(7)). That must not be
// this one for ever: it ends when no other is left.
//
// Who ends which mood. Serving: any application thread that looks for something (stand_back). Parking: the application
// thread, when it wakes (rearm). Watching: time, or an application thread that goes to sleep elsewhere (stand_in).

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace portofu {

class Attendance;
class Engine;
class Sleepers;
struct Core;

class ProgressThread {
 public:
  /// Starts the thread.
  /// @param processes  of the job on this machine, which have cores of their own; 0: nobody tells
  /// @return nullptr if the system gives no thread
  static std::unique_ptr<ProgressThread> start(Engine& engine, std::size_t processes = 0);

  /// Stops and joins the thread.
  ~ProgressThread();

  /// Stops the thread, unless it waits for somebody who never comes back; nothing else may be called afterwards but
  /// what a call in another thread still calls. @return false if it has not ended before that time of monotonic_ns
  bool stop_until(std::uint64_t deadline_ns);

  /// On duty: an application thread looks for something, messages need not ring any more. One load while nobody
  /// listens.
  void stand_back() {
    if (listening_.load(std::memory_order_relaxed)) [[unlikely]]
      stop_listening();
  }

  /// An application thread is about to sleep where this thread does not see it, at a file descriptor: there is no need
  /// to watch whether it still looks.
  void stand_in();

  /// On duty, after a call that may have left something: whether this thread, which listens, must hear of it. Then ring
  /// the own doorbell when the duty is given. One load while nobody listens.
  bool must_hear(const Core& core) const { return listening_.load(std::memory_order_relaxed) && is_news_on_duty(core); }

  /// An application thread sleeps no longer at the doorbell.
  void rearm();

 private:
  explicit ProgressThread(Engine& engine);
  void run();
  bool watch();
  void park();
  void serve();
  int serve_once();
  void listen(std::uint64_t seen_calls);
  /// How it is to listen.
  struct Listening {
    bool finds_work;  ///< Not at all.
    bool is_asking;   ///< Nodes are being asked, so it is not quiet.
    int fd;           ///< Beside the doorbell; -1: nothing.
    std::int64_t longest_ns;
  };
  Listening begin_to_listen(std::uint64_t seen_calls);
  void stop_listening();
  bool is_news_on_duty(const Core& core) const;
  void ask_to_stop();
  void part();
  bool is_left_alone() const;
  bool is_somebody_asleep();
  void wait_for_nudge(std::uint32_t seen, std::int64_t timeout_ns);
  bool application_is_away(std::uint64_t seen_calls) const;

  Engine& engine_;
  Sleepers& sleepers_;                    ///< Of the engine.
  Attendance& attendance_;                ///< Of the engine.
  std::atomic<std::uint32_t> nudges_{0};  ///< Futex word: raised by rearm, stand_in and the destructor.
  std::atomic<bool> asked_in_{false};     ///< Writer: stand_in sets it, this thread clears it when it watches.
  std::atomic<bool> stopping_{false};     ///< Writer: destructor, and this thread if it is left alone.
  std::atomic<std::uint32_t> ended_{0};   ///< Futex word. 1: this thread does nothing any more. Writer: this thread.
  std::atomic<bool> listening_{false};    ///< Writer: this thread sets it, whoever takes the duty clears it.
  bool listening_long_ = false;           ///< On duty: it does not look after timers meanwhile.
  std::size_t listening_waiting_ = 0;     ///< On duty: peers that waited for room when it began to listen.
  bool listening_asking_ = false;         ///< On duty: nodes were being asked when it began to listen.
  std::int64_t watch_ns_ = 0;             ///< This thread: time until the next look, if the guard period is not longer.
  bool quiet_ = false;                    ///< This thread: nothing happened while it last listened.
  std::uint32_t lost_sleepers_ = 0;       ///< This thread: of Sleepers, who does not come back.
  std::atomic<bool> parked_{false};       ///< Writer: this thread. Reader: rearm.
  std::thread thread_;
};

}  // namespace portofu
