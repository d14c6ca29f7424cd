#pragma once
// Writes down the steps of a lane. An engine has one or none; whoever has a step to tell asks that first
// (core/steps.h). All functions but the constructor: on duty.

#include <cstdint>
#include <span>

#include "engine/observe/step_probe.h"
#include "engine/observe/step_record.h"
#include "engine/queue/clock.h"
#include "engine/queue/cpu.h"

namespace portofu {

/// Where records go.
class StepMemory {
 public:
  virtual ~StepMemory() = default;
  virtual StepFileHead& head() = 0;
  /// Where the next records go, all that were written before being behind it. An empty one: no more can be written.
  virtual std::span<StepRecord> next() = 0;
};

/// The fields of a StepRecord that not every step has.
struct StepFields {
  std::uint64_t amount = 0;
  std::uint32_t nid = 0;
  std::uint16_t pid = 0;
  std::uint32_t id = 0;
  std::uint32_t more = 0;
};

class Recorder {
 public:
  /// @param memory  outlives this object
  explicit Recorder(StepMemory& memory);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The clock of records. Any thread.
  std::uint64_t now() const { return counts_cycles_ ? cpu_ticks() : monotonic_ns(); }

  [[gnu::always_inline]] void add(Step step, std::uint8_t kind, const StepFields& fields) {
    add_at(now(), step, kind, fields);
  }
  /// The same for a step that has been made before.
  /// Inline, so that the fields are written from registers: those that are put together in memory first are read again
  /// before they are there (fresh_line.h). With a step that is known where it is compiled, its probe alone is passed.
  [[gnu::always_inline]] void add_at(std::uint64_t ticks, Step step, std::uint8_t kind, const StepFields& fields) {
    if (next_ == end_) [[unlikely]]
      return add_after_turn({ticks, fields.amount, fields.nid, fields.id, fields.more, fields.pid, step, kind});
    StepRecord& record = *next_++;
    record.ticks = ticks;
    record.amount = fields.amount;
    record.nid = fields.nid;
    record.id = fields.id;
    record.more = fields.more;
    record.pid = fields.pid;
    record.step = step;
    record.kind = kind;
    head_.count.store(++count_, std::memory_order_release);
    pass_probe(record, step);
  }

  /// A step of the calling thread.
  [[gnu::always_inline]] void add_of_thread(Step step, std::uint8_t kind, std::uint64_t amount = 0,
                                            std::uint32_t more = 0) {
    const std::uint32_t thread = this_thread();
    add(step, kind, {.amount = amount, .nid = thread, .more = more});
  }

  /// A look of the application found nothing: with the first one it begins to wait.
  void note_empty_look();
  /// A look found something, or the application calls for something else.
  void end_looks() {
    if (empty_looks_ != 0) add_end_of_looks();
  }

  /// Writes down what time it is by both clocks.
  void note_time();

 private:
  static constexpr std::uint64_t kLooksPerTime = 1024;

  bool turn();
  [[gnu::cold, gnu::noinline]] void add_after_turn(StepRecord record);
  void add_end_of_looks();
  std::uint32_t this_thread() const;

  StepMemory& memory_;
  StepFileHead& head_;
  const std::uint64_t name_;  ///< Tells recorders of a process apart.
  const bool counts_cycles_;  ///< The clock is that of the processors.
  StepRecord* next_ = nullptr;
  StepRecord* end_ = nullptr;
  bool is_full_ = false;  ///< The memory has given all that it has.
  std::uint64_t count_ = 0;
  std::uint64_t empty_looks_ = 0;     ///< In a row.
  std::uint32_t looking_thread_ = 0;  ///< Whose looks they are, the first of them.
};

}  // namespace portofu
