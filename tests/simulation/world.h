#pragma once
// Engines of a simulated network and the model, side by side: every call is made on both, every packet is shown to the
// model, and what an application can see of both is compared.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/model.h"
#include "tests/simulation/network.h"
#include "tests/simulation/node.h"

namespace portofu::simulation {

/// What the sequences of one world have in common.
struct WorldOptions {
  std::uint64_t seed = 0;
  std::size_t process_count = 2;
  SimOptions network;
  std::optional<LossyOptions> lossy;  ///< Set: reliable wires over a lossy network carry everything, in virtual time.
  NodeOptions node;                   ///< `id`, `index`, `uid` and `clock_ns` are set for each process.
};

/// Used by one thread. After the first disagreement, which complaint() tells, nothing may be called any more.
class World final : private WireObserver {
 public:
  explicit World(const WorldOptions& options);
  ~World() override;

  const std::string& complaint() const { return model_.complaint(); }
  std::size_t process_count() const { return nodes_.size(); }
  const ModelProcess& model_of(std::size_t process) const { return model_.processes[process]; }
  bool is_live_entry(std::size_t process, Handle handle) const;

  // Set-up, before anything is sent.
  Handle make_queue(std::size_t process, std::uint64_t count);
  Handle make_counter(std::size_t process);
  Handle make_md(std::size_t process, const ModelRegion& region, std::uint32_t md_options, Handle eq, Handle ct);
  void make_portal(std::size_t process, std::uint16_t pt_index, Handle eq, bool flow_control);

  // Calls of applications.
  void step(std::size_t process);
  void post(std::size_t process, const Descriptor& descriptor);
  Status append(std::size_t process, const EntryPlan& plan, Handle* handle);
  void unlink(std::size_t process, Handle handle);
  void search(std::size_t process, const EntryPlan& plan, SearchOperation operation);
  void enable_portal(std::size_t process, std::uint16_t pt_index, bool enabled);
  void arm(std::size_t process, Handle ct, std::uint64_t threshold, const Descriptor& descriptor);
  void cancel(std::size_t process, Handle ct);
  void free_counter(std::size_t process, Handle ct);
  void release_md(std::size_t process, Handle md);
  /// Takes up to `most` events, which are compared at the end.
  void take_events(std::size_t process, Handle eq, std::size_t most);
  /// Changes memory that the application has back.
  void write_memory(std::size_t process, std::size_t at, std::byte value);

  /// The address of a process as operations name it.
  ProcessId target_id(std::size_t process) const;

  /// Runs all engines until nothing is under way; complains if that never comes.
  void settle();

  /// Lossy: how much the wires had to do, all together.
  std::uint64_t frames_sent_again() const { return network_.frames_sent_again(); }

  /// Compares everything, once all is settled.
  void compare();

 private:
  struct Taken {
    std::vector<Event> events;
    bool dropped = false;
  };

  void published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end) override;
  void peeked(std::size_t process, ProcessId source, const PacketHeader& header) override;
  void taken(std::size_t process, ProcessId peer, std::uint64_t lent_end) override;
  void acknowledged(std::size_t process, ProcessId peer, std::uint32_t operation_id) override;
  void acknowledgement_taken(std::size_t process, ProcessId peer, std::uint32_t operation_id) override;
  /// Prints a packet if PORTOFU_TEST_TRACE is set.
  void trace(const char* what, std::size_t process, ProcessId peer, const PacketHeader& header) const;
  void follow_triggers(std::size_t process);
  bool is_quiet();
  void compare_counters(std::size_t process);
  void compare_queue(std::size_t process, Handle eq);
  void compare_substream(const std::vector<Event>& seen, const std::vector<Event>& expected);
  void compare_memory(std::size_t process);
  void check_nothing_left(std::size_t process);
  void complain(std::size_t process, const std::string& text);

  WorldOptions options_;
  Network network_;
  Model model_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::map<Handle, Taken>> taken_;  ///< By process and event queue.
};

}  // namespace portofu::simulation
