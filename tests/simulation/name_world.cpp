#include "tests/simulation/name_world.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/initiator/tofu_owner.h"

namespace portofu::simulation {
namespace {

constexpr LinkFigures kLink{.latency_ns = 1000, .bytes_per_us = 10'000};
constexpr std::uint64_t kCheckEveryNs = 100'000'000;  ///< As PORTOFU_PEER_CHECK_MS.

/// All that an operation may take: five seconds for a node that does not answer, ten for a peer that is silent.
constexpr std::uint64_t kLongestOperationNs = 20'000'000'000;

}  // namespace

NameWorld::NameWorld(const NameWorldOptions& options)
    : options_(options),
      random_(options.seed),
      network_(random_.next(), Topology::crossbar(options.nodes, kLink), options.network),
      ports_(network_, random_.next(), [](std::uint32_t nid) { return nid - kFirstNid; }),
      processes_(std::size_t{options.nodes} * options.processes_of_node),
      actions_left_(options.actions) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    process.node_index = static_cast<std::uint32_t>(i % options_.nodes);
    process.id = {kFirstNid + process.node_index, kFirstPid + static_cast<std::uint32_t>(i / options_.nodes)};
    process.next_action_ns = 1 + below(kMillisecond);
  }
  // From the beginning nodes say of their ports that nobody has them.
  for (std::uint32_t node = 0; node < options_.nodes; ++node) {
    for (const std::uint16_t port : kPorts) {
      ports_.take({kFirstNid + node, port}, 0);
      ports_.give_back({kFirstNid + node, port}, 0);
    }
  }
}

NameWorld::~NameWorld() {
  for (Process& process : processes_) {
    if (process.node == nullptr) continue;
    const Enter enter(process);
    clear(process);
  }
}

/// PORTOFU_TEST_TRACE: prints what happens, and when, in milliseconds.
void NameWorld::trace(const char* format, ...) const {
  static const bool is_wanted = std::getenv("PORTOFU_TEST_TRACE") != nullptr;
  if (!is_wanted) return;
  std::printf("%9.3f ", static_cast<double>(now_ns()) / kMillisecond);
  va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::printf("\n");
}

void NameWorld::complain(const std::string& what) {
  trace("%s", what.c_str());
  if (complaint_.empty()) complaint_ = what;
}

std::string NameWorld::name_of(std::size_t number) const {
  const Operation& operation = operations_[number];
  const Holding& holding = holdings_[operation.holding];
  char text[160];
  std::snprintf(text, sizeof text, "operation %zu of process %zu (life %llu) to the %s of process %zu (life %llu)",
                number, operation.from, static_cast<unsigned long long>(operation.life),
                holding.vcq_id != 0 ? "queue" : "PID", holding.process, static_cast<unsigned long long>(holding.life));
  return text;
}

// ---- Time ----------------------------------------------------------------------------------------------------------

std::string NameWorld::run() {
  const auto has_acted = [this] { return actions_left_ <= 0 || !complaint_.empty(); };
  go_on_until(now_ns() + 60 * kSecond, has_acted);
  const auto is_over = [this] {
    const auto is_closing = [this](const Process& process) {
      const auto is_left = [this](const Slot& slot) { return slot.vcq != nullptr && !holdings_[slot.holding].is_open; };
      return process.leaves || std::any_of(process.slots.begin(), process.slots.end(), is_left);
    };
    const bool is_busy = open_operations_ != 0 || std::any_of(processes_.begin(), processes_.end(), is_closing);
    return !is_busy || !complaint_.empty();
  };
  actions_left_ = 0;
  go_on_until(now_ns() + 2 * kLongestOperationNs, is_over);
  if (complaint_.empty() && !is_over()) complain("something is still used, and cannot be closed");
  for (std::size_t number = 0; number < operations_.size(); ++number) {
    const Operation& operation = operations_[number];
    if (operation.executed > 1) complain(name_of(number) + " was executed twice");
    const bool is_known = holdings_[operation.holding].is_there && holdings_[operation.holding].vcq_id == 0;
    if (operation.succeeded && is_known && operation.executed != 1) complain(name_of(number) + " was not executed");
  }
  for (const Process& process : processes_) {
    for (const Slot& slot : process.slots) {
      if (slot.vcq != nullptr) check_region(process, slot);
    }
  }
  return complaint_;
}

/// The process is in a call.
void NameWorld::wait(Process& process, const Meanwhile& meanwhile) {
  constexpr std::uint64_t kPauseNs = kMillisecond;  // As in the system.
  const bool was_waiting = std::exchange(process.is_waiting, true);
  const Meanwhile* const before = std::exchange(process.meanwhile, &meanwhile);
  ++waiting_;
  OwnSegments* const own = use_own_segments(nullptr);
  Kernel* const system = use_kernel(nullptr);
  process.is_woken = false;
  go_on_until(now_ns() + (meanwhile ? 1 : 5) * kPauseNs, [&process] { return process.is_woken; });
  use_own_segments(own);
  use_kernel(system);
  --waiting_;
  process.meanwhile = before;
  process.is_waiting = was_waiting;
  if (meanwhile) meanwhile();
}

template <class Stop>
void NameWorld::go_on_until(std::uint64_t until_ns, Stop&& stop) {
  constexpr int kMostCycles = 100;  // At one moment.
  while (now_ns() < until_ns) {
    if (now_ns() >= next_check_ns_) check_peers();
    if (is_cut_ && now_ns() >= cut_until_ns_) {
      trace("the network is whole again");
      is_cut_ = false;
      network_.set_parts({});
    }
    wake_receivers();
    const std::size_t first = below(processes_.size());  // Who comes first is a matter of chance.
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      Process& process = processes_[(first + i) % processes_.size()];
      if (process.is_waiting || now_ns() < process.stopped_until_ns) continue;
      // Or it calls before it looks at what has come.
      if (now_ns() >= process.next_action_ns && below(2) == 0) act(process);
      for (int cycles = 0; cycles < kMostCycles && process.node != nullptr && process.is_woken; ++cycles) step(process);
      if (now_ns() >= process.next_action_ns) act(process);
      if (process.node != nullptr && next_look_ns(process) <= now_ns()) process.is_woken = true;
    }
    if (stop()) return;
    std::uint64_t next_ns = std::min({until_ns, next_check_ns_, network_.next_event_ns()});
    if (is_cut_) next_ns = std::min(next_ns, cut_until_ns_);
    for (const Process& process : processes_) {
      if (!process.is_waiting) next_ns = std::min(next_ns, std::max(next_look_ns(process), process.stopped_until_ns));
    }
    network_.advance(std::max(next_ns, now_ns() + 1));
  }
}

void NameWorld::check_peers() {
  next_check_ns_ = now_ns() + kCheckEveryNs;
  for (Process& process : processes_) {
    if (process.node == nullptr || process.is_waiting || now_ns() < process.stopped_until_ns) continue;
    const Enter enter(process);
    process.node->node().run_timers();
    process.is_woken = true;
  }
}

std::uint64_t NameWorld::next_look_ns(const Process& process) const {
  if (process.node == nullptr) return process.next_action_ns;
  if (process.is_woken) return now_ns();
  std::uint64_t next_ns = std::min(process.next_action_ns, process.wire->next_due_ns());
  if (is_asking_on_duty(process.node->node().core())) next_ns = std::min(next_ns, now_ns() + kAskPauseNs);
  return next_ns;
}

void NameWorld::wake_receivers() {
  for (const ProcessId id : network_.take_receivers()) {
    const auto port = ports_.advance(id);
    for (Process& process : processes_) {
      const bool is_it = process.kernel != nullptr && (port ? process.kernel->has(*port) : process.id == id);
      if (!is_it) continue;
      process.is_woken = true;
      if (!process.is_waiting || process.meanwhile == nullptr || !*process.meanwhile) continue;
      const Enter enter(process);
      (*process.meanwhile)();
    }
  }
}

void NameWorld::step(Process& process) {
  const Enter enter(process);
  process.is_woken = false;
  if (process.keeper->handle) process.keeper->handle();
  if (process.node->node().engine().step() > 0) process.is_woken = true;
  take_ends(process);
  look_for_silent(process);
  take_messages(process);
  if (process.wire->next_due_ns() <= now_ns()) process.is_woken = true;
}

// ---- What is seen --------------------------------------------------------------------------------------------------

void NameWorld::take_ends(Process& process) {
  Notice notice;
  while (process.base != nullptr && process.node->read_mrq(*process.base, &notice)) {
    const std::size_t number = process.under_way[notice.edata % kMostUnderWay];
    if (number == 0) return complain("a notice of nothing");
    if (number == kForgotten) continue;
    end_operation(number - 1, notice.fail);
  }
  EventQueue& own = *process.node->node().interface().eqs.find(process.own_eq);
  for (; !own.empty(); own.remove_oldest_on_duty()) {
    const Event& event = own.oldest_on_duty();
    if (event.type == EventKind::kAck)
      end_operation(reinterpret_cast<std::uintptr_t>(event.user_ptr), event.ni_fail_type);
  }
}

/// Those that were executed have ended; and of those to somebody who is gone nothing is known.
void NameWorld::look_for_silent(Process& process) {
  for (std::size_t& place : process.under_way) {
    if (place == 0 || place == kForgotten || !operations_[place - 1].is_silent) continue;
    const std::size_t number = place - 1;
    const Holding& holding = holdings_[operations_[number].holding];
    if (!holding.is_there || !holding.is_kept) {
      end_operation(number, NiFail::kUndeliverable);
      place = kForgotten;
    } else if (is_executed(number)) {
      end_operation(number, NiFail::kOk);
    } else if (now_ns() - operations_[number].posted_ns > kLongestOperationNs) {
      // It went by a link to a former life of which the cut had kept the news, and was lost with that: nobody is told.
      const bool is_excused = operations_[number].posted_ns < cut_until_ns_ || !has_found_out(operations_[number]);
      if (!is_excused) return complain(name_of(number) + " is lost");
      end_operation(number, NiFail::kUndeliverable);
      place = kForgotten;
    }
  }
}

void NameWorld::take_messages(Process& process) {
  EventQueue& target = *process.node->node().interface().eqs.find(process.target_eq);
  for (; !target.empty(); target.remove_oldest_on_duty()) {
    const Event& event = target.oldest_on_duty();
    if (event.ni_fail_type != NiFail::kOk) continue;
    Operation& operation = operations_[event.hdr_data];
    ++operation.executed;
    // Who had this PID before may have ended meanwhile.
    if (operation.holding > process.holding ||
        holdings_[operation.holding].process != holdings_[process.holding].process)
      complain(name_of(event.hdr_data) + " came to life " + std::to_string(process.life));
  }
}

std::uint64_t NameWorld::region_of(const Process& process, const Slot& slot) const {
  return kRegionBytes * static_cast<std::uint64_t>(1 + (&slot - process.slots.data()));
}

/// Of the operations of a life none has the place of another one that is under way; nor has one of another life.
std::uint64_t NameWorld::word_of(const Operation& operation) const {
  return (operation.life * kMostUnderWay + operation.slot) % kWords;
}

std::uint64_t NameWorld::word_at(const Process& process, std::uint64_t offset) const {
  std::uint64_t word = 0;
  std::memcpy(&word, process.node->memory() + offset, sizeof word);
  return word;
}

/// Looks whether all that has come was for this holding, or for an earlier one of the same name that ended meanwhile.
void NameWorld::check_region(const Process& process, const Slot& slot) {
  for (std::uint64_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = word_at(process, region_of(process, slot) + 8 * i);
    if (word == 0) continue;
    if (word > operations_.size()) return complain("nonsense in memory");
    const Operation& operation = operations_[word - 1];
    const Holding& meant = holdings_[operation.holding];
    const bool is_late = operation.holding < slot.holding && meant.vcq_id == holdings_[slot.holding].vcq_id &&
                         (!meant.is_there || !meant.is_kept);
    if (operation.holding != slot.holding && !is_late)
      complain(name_of(word - 1) + " came to life " + std::to_string(process.life));
  }
}

void NameWorld::end_operation(std::size_t number, NiFail fail) {
  Operation& operation = operations_[number];
  Process& from = processes_[operation.from];
  Holding& holding = holdings_[operation.holding];
  if (operation.ended) return complain(name_of(number) + " has ended twice");
  trace("operation %zu of %zu ends: %d", number, operation.from, static_cast<int>(fail));
  operation.ended = true;
  operation.succeeded = fail == NiFail::kOk;
  from.under_way[operation.slot] = 0;
  --holding.users;
  --open_operations_;
  const std::uint64_t took_ns = now_ns() - operation.posted_ns;
  counts_.longest_ns = std::max(counts_.longest_ns, took_ns);
  counts_.failed += operation.succeeded ? 0 : 1;
  if (took_ns > kLongestOperationNs && !operation.is_silent) complain(name_of(number) + " took too long");
  const bool knew_better = has_found_out(operation);
  if (!holding.is_there || !holding.is_kept) return;
  if (fail != NiFail::kOk && (operation.posted_ns < cut_until_ns_ || !knew_better)) return;
  if (fail != NiFail::kOk && holding.vcq_id == 0 && holding.may_be_refused[operation.from]) return;
  if (fail != NiFail::kOk) return complain(name_of(number) + " has failed: " + std::to_string(static_cast<int>(fail)));
  if (holding.vcq_id != 0 && !is_executed(number)) complain(name_of(number) + " was not executed");
}

/// Whether who posted it knew who has the PID to which it went, also on its way to a queue; he knows from now on.
bool NameWorld::has_found_out(const Operation& operation) {
  const Holding& holding = holdings_[operation.holding];
  const auto is_pid = [&](const Holding& other) {
    return other.vcq_id == 0 && other.process == holding.process && other.life == holding.life;
  };
  Holding& pid = *std::ranges::find_if(holdings_, is_pid);
  if (!pid.may_be_refused[operation.from]) return true;
  std::uint64_t& found_out_ns = pid.found_out_ns[operation.from];
  if (found_out_ns == 0) found_out_ns = now_ns();
  return operation.posted_ns > found_out_ns;
}

/// To a queue that is there.
bool NameWorld::is_executed(std::size_t number) const {
  const Operation& operation = operations_[number];
  const Process& owner = processes_[holdings_[operation.holding].process];
  const auto is_it = [&](const Slot& slot) { return slot.vcq != nullptr && slot.holding == operation.holding; };
  const auto slot = std::find_if(owner.slots.begin(), owner.slots.end(), is_it);
  return slot != owner.slots.end() && word_at(owner, region_of(owner, *slot) + 8 * word_of(operation)) == number + 1;
}

}  // namespace portofu::simulation
