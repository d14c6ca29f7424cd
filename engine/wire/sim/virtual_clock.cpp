#include "engine/wire/sim/virtual_clock.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace portofu {
namespace {

/// Empty looks in a row that cost no more than their own time, at first. On a machine whose looks take long there are
/// more: whoever waits makes fewer of them there.
constexpr std::uint32_t kShortLooks = 8;
constexpr std::uint32_t kMostShortLooks = 256;
/// Whoever has gone on after so many looks in vain may do so again. Who looks more often waits.
constexpr std::uint32_t kMostLearnedLooks = 512;
/// Looks in vain before its first turn, after which a rank waits for that turn. Until then, or until it sends
/// something, looks cost nothing: how many there are may depend on when the ranks of a launcher have met.
constexpr std::uint32_t kEarlyLooks = 64;
/// A sleep before the first turn counts for so many of them: who only looks into its memory waits so, too.
constexpr std::uint32_t kLooksOfSleep = 4;
/// The same by reads of the clock in a row: a wait with a timeout, and hardly a program that starts.
constexpr std::uint32_t kEarlyReads = 4096;
/// So many more wait twice as long: a program that looks a few dozen times while it works loses little by that.
constexpr std::uint32_t kLooksOfDoubling = 8;
/// The first of them wait for as long as a look takes, or so long; so it is with reads of the clock, and with sleeps of
/// no length. On a machine whose calls cost nothing a rank would look thousands of times otherwise. What arrives ends
/// such a wait, so that it is not found later.
constexpr std::uint64_t kLeastWaitPs = 20'000;
/// Reads of the clock since the last call that cost nothing. Each further one costs that part of the time since then,
/// and no more than that, so that who waits by the clock waits hardly too long. But who waits for seconds
/// would read it some ten million times then, so each costs a small part of it at least.
constexpr std::uint32_t kFreeReads = 64;
constexpr std::uint64_t kPartOfRead = 1024;
constexpr std::uint64_t kMostReadPs = 100'000;
constexpr std::uint64_t kPartOfLateRead = 8192;
/// So many reads in a row without giving the turn back: far less CPU time than the coordinator's patience.
constexpr std::uint32_t kReadsOfTurn = 256;
/// The same for looks between which the clock is read. The second one after a read waits for a fourth of that, the
/// third one for a ninth, and so on: together they wait no longer than twice as long as the first, however many there
/// are.
constexpr std::uint64_t kPartOfLook = 8;
/// After so many looks since the last read the clock is not watched, unless it has turned out that it was.
constexpr std::uint32_t kLooksOfRead = 64;
/// What is learned of that, at most. So many looks since a read wait for no longer than this: it may be read again.
constexpr std::uint32_t kMostLooksOfRead = 4096;
constexpr std::uint64_t kLongestOfReadPs = 20'000'000;
/// The longest that one waits for while somebody may still send something: so long as others have sent, and until it
/// has looked so often in a row, because it may look a number of times, and then go on and send.
constexpr std::uint64_t kLongestLookPs = 1'000'000'000;
constexpr std::uint32_t kCountedLooks = 2048;
/// No call costs more: a second.
constexpr std::uint64_t kMostCallPs = 1'000'000'000'000;
/// How often one that waits for its turn looks whether there is still somebody to give it.
constexpr std::int64_t kLookAtCoordinatorNs = 1'000'000'000;

std::uintptr_t this_thread() { return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()); }

/// CPU time of this thread that is charged, or is not to be; 0: it has not called yet. Several threads may call within
/// a turn, and each has a clock of its own.
__attribute__((tls_model("initial-exec"))) thread_local std::uint64_t charged_cpu_ps = 0;

}  // namespace

bool virtual_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t timeout_ns) {
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  return syscall(SYS_futex, &word, FUTEX_WAIT, seen, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}

void virtual_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ring_coordinator(VirtualHeader& header) {
  header.bell.fetch_add(1, std::memory_order_seq_cst);
  virtual_wake(header.bell);
}

namespace {

/// @return nullptr, for whoever returns that
std::nullptr_t refuse(const std::string& path, const std::string& reason, std::string* why) {
  *why = "PORTOFU_SIM=" + path + ": " + reason +
         "; ptl_sim sets it for the ranks that it starts, for as long as it runs: unset it elsewhere";
  return nullptr;
}

/// Maps the file of the coordinator. @return nullptr on failure
VirtualHeader* map_page_file(const std::string& path, std::size_t* bytes, std::string* why) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return refuse(path, std::string("open of it failed: ") + std::strerror(errno), why);
  struct stat status {};
  const bool has_size = fstat(fd, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(VirtualHeader));
  *bytes = has_size ? static_cast<std::size_t>(status.st_size) : 0;
  void* const mapped = has_size ? mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int error = errno;
  close(fd);
  if (!has_size) return refuse(path, "it has no virtual time in it", why);
  if (mapped == MAP_FAILED) return refuse(path, std::string("mmap of it failed: ") + std::strerror(error), why);
  auto* const header = static_cast<VirtualHeader*>(mapped);
  const std::uint32_t ranks = header->rank_count;
  if (header->magic == kVirtualMagic && header->version == kVirtualVersion &&
      header->page_bytes == sizeof(VirtualPage) && ranks <= kMostVirtualRanks && *bytes >= virtual_file_bytes(ranks))
    return header;
  munmap(mapped, *bytes);
  return refuse(path, "it is not of a ptl_sim of this release", why);
}

}  // namespace

std::unique_ptr<VirtualClock> VirtualClock::open(const std::string& path, std::int64_t rank, ProcessId self,
                                                 std::string* why) {
  std::size_t bytes = 0;
  VirtualHeader* const header = map_page_file(path, &bytes, why);
  if (header == nullptr) return nullptr;
  const std::uint32_t ranks = header->rank_count;
  if (rank < 0 || rank >= static_cast<std::int64_t>(ranks)) {
    *why = "ptl_sim has " + std::to_string(ranks) + " ranks, and this process is none of them";
    munmap(header, bytes);
    return nullptr;
  }
  VirtualPage& page = *virtual_page(header, static_cast<std::uint32_t>(rank));
  std::uint32_t process = page.process.load(std::memory_order_acquire);
  const auto own = static_cast<std::uint32_t>(getpid());
  const bool is_taken = process != 0 && process != own && kill(static_cast<pid_t>(process), 0) == 0;
  if (is_taken || !page.process.compare_exchange_strong(process, own)) {
    *why = "another process is rank " + std::to_string(rank) +
           " in virtual time; a program that starts the ranks itself, as mpirun does, needs ptl_sim --launcher";
    munmap(header, bytes);
    return nullptr;
  }
  page.life.fetch_add(1, std::memory_order_release);  // Before the names by which others find it.
  page.nid.store(self.nid, std::memory_order_relaxed);
  page.pid.store(self.pid, std::memory_order_release);
  page.thread.store(static_cast<std::uint32_t>(gettid()), std::memory_order_relaxed);
  page.state.store(static_cast<std::uint32_t>(VirtualState::kAway), std::memory_order_release);
  ring_coordinator(*header);
  return std::unique_ptr<VirtualClock>(new VirtualClock(header, bytes, page, self));
}

VirtualClock::VirtualClock(VirtualHeader* header, std::size_t bytes, VirtualPage& page, ProcessId self)
    : header_(header),
      bytes_(bytes),
      page_(page),
      self_(self),
      life_(page.life.load(std::memory_order_relaxed)),
      rank_count_(header->rank_count),
      coordinator_(header->coordinator),
      compute_(static_cast<VirtualCompute>(header->compute)),
      compute_word_(header->compute_word),
      keeps_spans_(header->keeps_spans != 0),
      poll_ps_(std::clamp(header->poll_ps, std::uint64_t{1}, kMostCallPs)),
      empty_poll_ps_(std::clamp(header->empty_poll_ps, std::uint64_t{1}, kMostCallPs)),
      least_wait_ps_(std::max(poll_ps_, kLeastWaitPs)),
      short_looks_(static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(empty_poll_ps_ / kLeastWaitPs, kShortLooks, kMostShortLooks))),
      clock_ps_(std::min(page.clock_ps.load(std::memory_order_relaxed), kLatestPs)),
      opened_ps_(clock_ps_),
      caller_(this_thread()),
      seen_turn_(page.turn.load(std::memory_order_acquire)),
      seen_deliveries_(page.delivery_count.load(std::memory_order_acquire)) {
  for (std::size_t i = 0; i < kVirtualCallCount; ++i) call_ps_[i] = std::min(header->call_ps[i], kMostCallPs);
  charged_cpu_ps = 0;
}

VirtualClock::~VirtualClock() { munmap(header_, bytes_); }

// ---- The application ------------------------------------------------------------------------------------------------

std::uint64_t VirtualClock::thread_cpu_ps() const {
  timespec used{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
  return (static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec)) * 1000;
}

void VirtualClock::spend(VirtualSpent what, std::uint64_t cost_ps, bool is_empty) {
  const std::uint64_t from_ps = clock_ps_;
  clock_ps_ = std::min(clock_ps_ + std::min(cost_ps, kLatestPs), kLatestPs);
  const auto index = static_cast<std::size_t>(what);
  page_.spent_ps[index].fetch_add(cost_ps, std::memory_order_relaxed);
  page_.count[index].fetch_add(1, std::memory_order_relaxed);
  page_.clock_ps.store(clock_ps_, std::memory_order_relaxed);
  if (!keeps_spans_ || left_ || clock_ps_ == from_ps) return;
  tell_span({from_ps, clock_ps_, static_cast<std::uint8_t>(what), static_cast<std::uint8_t>(is_empty ? 1 : 0), 0, 0});
}

/// Waits, shortly, if the coordinator has much to read.
void VirtualClock::tell_span(const VirtualSpan& span) {
  const std::uint32_t given = page_.spans_given.load(std::memory_order_relaxed);
  while (given - page_.spans_taken.load(std::memory_order_acquire) >= kSpanCount) {
    if (is_deserted()) return;
    ring_coordinator(*header_);
    sched_yield();
  }
  page_.spans[given % kSpanCount] = span;
  page_.spans_given.store(given + 1, std::memory_order_release);
}

/// A new turn begins at a time that the coordinator has said.
void VirtualClock::catch_up(VirtualSpent what) {
  begun_.store(true, std::memory_order_release);
  seen_turn_ = page_.turn.load(std::memory_order_acquire);
  const std::uint64_t granted = std::min(page_.granted_ps.load(std::memory_order_relaxed), kLatestPs);
  if (granted > clock_ps_) spend(what, granted - clock_ps_);
  if (compute_ == VirtualCompute::kCpu) charged_cpu_ps = thread_cpu_ps();
}

/// The program has not waited by its looks, it seems: it goes on, and nothing has come. The next such looks cost no
/// more than their own time.
void VirtualClock::go_on() {
  looks_of_read_ = 0;
  if (empty_looks_ <= kMostLearnedLooks && !watches_clock_) short_looks_ = std::max(short_looks_, empty_looks_);
  end_streaks();
}

/// Something else than a look or a read of the clock has happened.
void VirtualClock::end_streaks() {
  empty_looks_ = 0;
  reads_ = 0;
  reads_of_look_ = 0;
  watches_clock_ = false;
  streak_from_ps_ = clock_ps_;
}

/// What the program has done since its last call costs time, but for polling memory.
void VirtualClock::charge(bool is_call) {
  if (page_.turn.load(std::memory_order_acquire) != seen_turn_) {
    catch_up(VirtualSpent::kMemory);
    end_streaks();
  }
  if (compute_ == VirtualCompute::kFixed && is_call) spend(VirtualSpent::kCompute, compute_word_);
  if (compute_ != VirtualCompute::kCpu) return;
  const std::uint64_t used = thread_cpu_ps();
  if (used > charged_cpu_ps && charged_cpu_ps != 0) {
    const auto cost = static_cast<unsigned __int128>(used - charged_cpu_ps) * compute_word_ / 1000;
    spend(VirtualSpent::kCompute, static_cast<std::uint64_t>(std::min<unsigned __int128>(cost, kLatestPs)));
  }
  charged_cpu_ps = used;
}

void VirtualClock::end_own_work() {
  if (compute_ == VirtualCompute::kCpu) charged_cpu_ps = thread_cpu_ps();
}

/// Without the coordinator nobody would ever go on: time is real from now on.
bool VirtualClock::is_deserted() {
  if (kill(static_cast<pid_t>(coordinator_), 0) == 0 || errno != ESRCH) return false;
  left_ = true;
  return true;
}

void VirtualClock::admit_freezing() {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, kFreezeSignal);
  pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
}

/// Says that the rank does not run, and sleeps until it does.
void VirtualClock::give_turn(VirtualState state, std::uint64_t until_ps) {
  in_turn_change_ = true;
  admit_freezing();
  const std::uint32_t seen = page_.turn.load(std::memory_order_acquire);
  caller_.store(this_thread(), std::memory_order_relaxed);
  page_.thread.store(static_cast<std::uint32_t>(gettid()), std::memory_order_relaxed);
  page_.clock_ps.store(clock_ps_, std::memory_order_relaxed);
  page_.until_ps.store(until_ps, std::memory_order_relaxed);
  page_.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  ring_coordinator(*header_);
  while (page_.turn.load(std::memory_order_acquire) == seen) {
    if (!virtual_wait(page_.turn, seen, kLookAtCoordinatorNs) && is_deserted()) break;
  }
  catch_up(VirtualSpent::kWait);
  has_sent_ = false;
  in_turn_change_ = false;
}

/// Whether it still has the turn. Whoever is asked meanwhile whether it polls its memory does not, since it is in a
/// call.
bool VirtualClock::has_turn() {
  auto asked = static_cast<std::uint32_t>(VirtualState::kAsked);
  if (page_.state.compare_exchange_strong(asked, static_cast<std::uint32_t>(VirtualState::kRunning)))
    ring_coordinator(*header_);
  return state() == VirtualState::kRunning;
}

/// Whether it watches the clock. Whoever begins a new wait by the clock reads the clock once more than before looks of
/// the last one. Whoever reads it no more waits for something else, if at all.
void VirtualClock::note_look() {
  if (reads_ != 0) {
    if (std::exchange(reads_of_look_, reads_) < reads_) streak_from_ps_ = clock_ps_;
    reads_ = 0;
    looks_of_read_ = 1;
    paid_looks_ = 0;
  } else if (looks_of_read_ != 0 && looks_of_read_ <= kMostLooksOfRead) {
    ++looks_of_read_;
  }
  if (watches_clock_ && looks_of_read_ > std::max(kLooksOfRead, looks_between_reads_)) end_streaks();
}

/// It will read the clock after a known number of looks, so it looks as often as it has since the last read, all at
/// once.
void VirtualClock::look_ahead() {
  const std::uint32_t looks = std::min(looks_of_read_, looks_between_reads_ - looks_of_read_);
  const std::uint64_t until = std::min(clock_ps_ + looks * empty_poll_ps_, kLatestPs);
  give_turn(VirtualState::kPolling, until);
  paid_looks_ = clock_ps_ < until ? 0 : looks;
  if (clock_ps_ < until) end_streaks();
  end_own_work();
}

void VirtualClock::pass() {
  if (left_ || starting_up_) return;
  charge();
  note_look();
  if (!begun_.load(std::memory_order_relaxed)) {
    if (++early_looks_ >= kEarlyLooks) looks_count_ = true;
    if (looks_count_) give_turn(VirtualState::kPolling, clock_ps_);
    return;
  }
  if (empty_looks_ == 0) streak_from_ps_ = clock_ps_;
  const bool is_before_read = looks_of_read_ > 1 && looks_of_read_ <= looks_between_reads_;
  const bool is_paid = is_before_read && paid_looks_ != 0 && has_turn();
  spend(VirtualSpent::kLook, is_paid ? 0 : empty_poll_ps_, true);
  if (is_paid) {
    --paid_looks_;
    return end_own_work();
  }
  if (is_before_read && looks_of_read_ > kShortLooks) return look_ahead();
  if (is_before_read || ++empty_looks_ <= short_looks_) {
    const std::uint64_t horizon = page_.horizon_ps.load(std::memory_order_relaxed);
    if (!has_turn() || has_sent_ || clock_ps_ > horizon) {
      give_turn(VirtualState::kPolling, clock_ps_);
    }
    return end_own_work();
  }
  const std::uint32_t doublings = std::min((empty_looks_ - short_looks_) / kLooksOfDoubling, 40u);
  const bool may_send = empty_looks_ <= kCountedLooks && !watches_clock_;
  const bool is_quiet = page_.is_quiet.load(std::memory_order_relaxed) != 0;
  // Nothing is under way, and nobody else goes on: a wait would be for nothing, and would only make it late.
  const bool is_alone = is_quiet && !has_sent_ && page_.horizon_ps.load(std::memory_order_relaxed) == kNeverPs;
  std::uint64_t longest = is_quiet && !may_send ? kLatestPs / 4 : kLongestLookPs;
  if (!watches_clock_ && looks_of_read_ != 0 && looks_of_read_ <= kMostLooksOfRead) longest = kLongestOfReadPs;
  std::uint64_t most = std::min(least_wait_ps_, kLatestPs >> 41) << doublings;
  if (is_alone && may_send) most = least_wait_ps_;
  if (watches_clock_) {
    const std::uint64_t part = kPartOfLook * looks_of_read_ * looks_of_read_;
    most = std::max(least_wait_ps_, (clock_ps_ - streak_from_ps_) / part);
  }
  const std::uint64_t until = std::min(clock_ps_ + std::min(most, longest), kLatestPs);
  give_turn(VirtualState::kPolling, until);
  if (clock_ps_ < until) end_streaks();
}

bool VirtualClock::let_others_catch_up() {
  if (left_ || starting_up_ || !begun_.load(std::memory_order_relaxed)) return false;
  charge(false);
  const bool is_ahead = has_sent_ || clock_ps_ > page_.horizon_ps.load(std::memory_order_relaxed);
  if (is_ahead) give_turn(VirtualState::kReady, clock_ps_);
  end_own_work();
  return is_ahead;
}

/// It does not give the turn back: the next call that finds nothing, or waits, does.
void VirtualClock::find() {
  if (left_) return;
  charge();
  looks_of_read_ = 0;
  end_streaks();
  if (begun_.load(std::memory_order_relaxed) || looks_count_) spend(VirtualSpent::kLook, poll_ps_);
  end_own_work();
}

bool VirtualClock::is_caller() const { return caller_.load(std::memory_order_relaxed) == this_thread(); }

/// Whoever was frozen before its first turn has had it when it goes on.
bool VirtualClock::has_begun() const {
  if (left_.load(std::memory_order_relaxed)) return false;
  return begun_.load(std::memory_order_acquire) ||
         (is_caller() && page_.turn.load(std::memory_order_acquire) != seen_turn_);
}

std::uint64_t VirtualClock::since_opened(std::uint64_t clock_ps) const {
  return clock_ps > opened_ps_ ? clock_ps - opened_ps_ : 0;
}

std::uint64_t VirtualClock::read(bool in_call) {
  if (!is_caller()) return since_opened(std::min(page_.clock_ps.load(std::memory_order_relaxed), kLatestPs));
  if (in_call || in_turn_change_) return since_opened(clock_ps_);
  charge(false);
  if (!has_turn()) give_turn(VirtualState::kReady, clock_ps_);
  watches_clock_ = true;
  if (reads_ == 0 && looks_of_read_ > kLooksOfRead && looks_of_read_ <= kMostLooksOfRead) {
    looks_between_reads_ = std::max(looks_between_reads_, looks_of_read_);
  }
  if (reads_ == 0 && empty_looks_ == 0) streak_from_ps_ = clock_ps_;
  if (++reads_ <= kFreeReads) return since_opened(clock_ps_);
  const std::uint64_t since_ps = clock_ps_ - streak_from_ps_;
  const std::uint64_t early_ps = std::min(since_ps / kPartOfRead, kMostReadPs);
  spend(VirtualSpent::kLook, std::max({least_wait_ps_, early_ps, since_ps / kPartOfLateRead}), true);
  if (has_sent_ || clock_ps_ > page_.horizon_ps.load(std::memory_order_relaxed) || reads_ % kReadsOfTurn == 0) {
    give_turn(VirtualState::kReady, clock_ps_);
  }
  return since_opened(clock_ps_);
}

/// Whoever sleeps before its first turn, or reads the clock again and again, and has sent something, waits for that
/// turn: it may wait for an answer so. So does who has slept or read so often that it waits for others, it seems.
/// @return false if it goes on in real time
bool VirtualClock::wait_for_first_turn() {
  if (!is_caller() || in_turn_change_ || left_ || starting_up_) return false;
  looks_count_ = looks_count_ || early_looks_ >= kEarlyLooks || reads_ > kEarlyReads;
  if (!looks_count_) return false;
  give_turn(VirtualState::kReady, clock_ps_);
  return true;
}

void VirtualClock::read_early(bool in_call) {
  if (!in_call && !starting_up_ && is_caller() && ++reads_ > kFreeReads) wait_for_first_turn();
}

bool VirtualClock::stands() const { return is_caller() && looks_count_ && !left_ && !starting_up_; }

bool VirtualClock::sleep(std::uint64_t length_ps) {
  if (!is_caller() || in_turn_change_) return false;
  if (!has_begun()) {
    if (!starting_up_) early_looks_ += kLooksOfSleep;
    if (!wait_for_first_turn()) return false;
  }
  charge(false);
  go_on();
  spend(VirtualSpent::kWait, std::max(length_ps, least_wait_ps_));
  give_turn(VirtualState::kReady, clock_ps_);
  return true;
}

bool VirtualClock::wait(std::uint64_t deadline_ps) {
  if (left_ || starting_up_) {
    sched_yield();
    return true;
  }
  charge();
  go_on();
  if (clock_ps_ >= deadline_ps) return false;
  give_turn(VirtualState::kWaiting, std::min(deadline_ps, kNeverPs));
  if (clock_ps_ >= deadline_ps) return false;
  spend(VirtualSpent::kLook, poll_ps_);
  return true;
}

/// Lets all that was sent arrive before, unless that was done. What the program has done since its last call counts:
/// it may have polled its memory, and computed.
void VirtualClock::end_as(VirtualState end) {
  if (!left_) {
    charge(false);
    give_turn(VirtualState::kLeaving, kNeverPs);
    left_ = true;
    page_.clock_ps.store(clock_ps_, std::memory_order_relaxed);
  }
  page_.state.store(static_cast<std::uint32_t>(end), std::memory_order_release);
  ring_coordinator(*header_);
}

void VirtualClock::leave() {
  if (!left_ || state() == VirtualState::kRetired) end_as(VirtualState::kGone);
}

void VirtualClock::retire() {
  if (!left_) end_as(VirtualState::kRetired);
}

/// In the middle of a change of turns it would lose its turn, or keep one that it has given back.
void VirtualClock::freeze(bool in_call) {
  page_.polled_cpu_ns.store(thread_cpu_ps() / 1000, std::memory_order_relaxed);
  auto asked = static_cast<std::uint32_t>(VirtualState::kAsked);
  const auto answer =
      static_cast<std::uint32_t>(in_call || in_turn_change_ ? VirtualState::kRunning : VirtualState::kFrozen);
  if (!page_.state.compare_exchange_strong(asked, answer)) return;
  ring_coordinator(*header_);
  constexpr auto kFrozen = static_cast<std::uint32_t>(VirtualState::kFrozen);
  while (state() == VirtualState::kFrozen) {
    if (!virtual_wait(page_.state, kFrozen, kLookAtCoordinatorNs) && is_deserted()) break;
  }
}

// ---- On duty --------------------------------------------------------------------------------------------------------

std::uint64_t VirtualClock::stamp(VirtualCall call) {
  if (in_nic_) return nic_.time_ps;
  if (starting_up_) return clock_ps_;
  charge();
  go_on();
  admit_freezing();  // Whoever has sent something may poll its memory next.
  has_sent_ = true;
  looks_count_ = true;
  spend(static_cast<VirtualSpent>(call), call_ps_[static_cast<std::size_t>(call)]);
  return clock_ps_;
}

std::uint64_t VirtualClock::stamp_own_word() {
  if (in_nic_) return nic_.time_ps;
  if (!starting_up_) has_sent_ = looks_count_ = true;
  return clock_ps_;
}

void VirtualClock::report(VirtualReport report) {
  report.source_nid = self_.nid;
  report.source_pid = self_.pid;
  report.source_life = life_;
  const std::uint32_t given = page_.reports_given.load(std::memory_order_relaxed);
  while (!left_ && given - page_.reports_taken.load(std::memory_order_acquire) >= kReportCount) {
    ring_coordinator(*header_);
    sched_yield();
  }
  page_.reports[given % kReportCount] = report;
  page_.reports_given.store(given + 1, std::memory_order_release);
  if (state() != VirtualState::kRunning) ring_coordinator(*header_);
}

void VirtualClock::enter_nic(const VirtualDelivery& delivery, std::uint8_t cause) {
  nic_ = delivery;
  cause_ = cause;
  in_nic_ = true;
}

// ---- The NIC --------------------------------------------------------------------------------------------------------

bool VirtualClock::wait_for_delivery(VirtualDelivery* delivery, std::int64_t timeout_ns) {
  const std::uint32_t seen = page_.nic_bell.load(std::memory_order_acquire);
  if (nic_ends_.load(std::memory_order_acquire)) return false;
  if (page_.delivery_count.load(std::memory_order_acquire) == seen_deliveries_) {
    virtual_wait(page_.nic_bell, seen, timeout_ns);
  }
  if (page_.delivery_count.load(std::memory_order_acquire) == seen_deliveries_) return false;
  *delivery = page_.delivery;
  delivery->time_ps = std::min(delivery->time_ps, kLatestPs);
  return true;
}

void VirtualClock::delivered() {
  page_.deliveries_taken.store(++seen_deliveries_, std::memory_order_release);
  ring_coordinator(*header_);
}

bool VirtualClock::has_sender_gone(const VirtualDelivery& delivery) const {
  if (delivery.source_rank >= rank_count_) return true;
  const VirtualPage& page = *virtual_page(header_, delivery.source_rank);
  if (static_cast<VirtualState>(page.state.load(std::memory_order_acquire)) == VirtualState::kGone) return true;
  if (page.life.load(std::memory_order_acquire) != delivery.source_life) return true;
  return kill(static_cast<pid_t>(page.process.load(std::memory_order_relaxed)), 0) != 0 && errno == ESRCH;
}

void VirtualClock::end_nic() {
  nic_ends_.store(true, std::memory_order_release);
  page_.nic_bell.fetch_add(1, std::memory_order_seq_cst);
  virtual_wake(page_.nic_bell);
}

}  // namespace portofu
