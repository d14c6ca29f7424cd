#pragma once
// Processes that die, come back and close their interfaces at any moment, while all of them send to each other. What is
// checked is what survivors may rely on: each operation ends once, as delivered or as undeliverable, nothing is
// delivered twice, and nothing stays in use.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/sim/sim_random.h"
#include "tests/simulation/network.h"
#include "tests/simulation/node.h"

namespace portofu::simulation {

/// What a run of the cluster does to its processes.
struct Fate {
  bool kills = true;      ///< Processes are killed, between any two packets, and restarted.
  bool closings = false;  ///< Interfaces are closed and opened again; the process lives on.
  bool lossy = false;     ///< Over reliable wires on a bad network.
};

/// Used by one thread.
class Cluster final : private WireObserver {
 public:
  Cluster(std::uint64_t seed, const Fate& fate);
  ~Cluster() override;

  /// Acts at random, lets everything end, and checks.
  /// @return what went wrong; empty if nothing
  std::string run(int action_count);

 private:
  /// One operation of a survivor.
  struct Operation {
    PacketType kind = PacketType::kPut;
    AckRequest ack_req = AckRequest::kNone;
    std::size_t target = 0;
    std::uint64_t posted_at = 0;   ///< Number of the action.
    std::uint64_t checked_at = 0;  ///< Of the last look after the dead before that.
    int sends = 0;
    int answers = 0;            ///< ACK or REPLY.
    NiFail fail = NiFail::kOk;  ///< Of the answer.
  };

  /// From one opening of the interface to its closing, or to the death of the process.
  struct Term {
    Handle eq = 0;
    Handle ct = 0;
    Handle send_md = 0;
    Handle receive_md = 0;
    std::map<std::uint64_t, Operation> operations;  ///< By id.
    std::uint64_t counted = 0;                      ///< Acknowledgements that the counter should see.
  };

  /// One process, dead or alive.
  struct Process {
    std::unique_ptr<Node> node;
    Term term;
    bool alive = true;
    std::uint64_t steady_since = 0;  ///< Action of its last start or opening.
    std::uint64_t died_at = 0;       ///< Action of its last death; 0: it never died.
    std::uint64_t checked_at = 0;    ///< Action in which it last looked after the dead.
  };

  void published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end) override;
  void peeked(std::size_t process, ProcessId source, const PacketHeader& header) override;
  void taken(std::size_t process, ProcessId, std::uint64_t) override { count_down(process); }
  void acknowledged(std::size_t process, ProcessId, std::uint32_t) override { count_down(process); }
  void acknowledgement_taken(std::size_t process, ProcessId, std::uint32_t) override { count_down(process); }
  /// Prints a packet if PORTOFU_TEST_TRACE is set.
  void trace(const char* what, std::size_t process, ProcessId peer, const PacketHeader& header) const;
  void count_down(std::size_t process);

  void start_process(std::size_t process);
  void open_term(Process& process);
  void append(Process& process, std::uint64_t match_bits, ListKind list, std::uint32_t options);
  void kill(std::size_t process);
  void post(std::size_t process);
  void close_and_open(std::size_t process);
  void act();
  bool settle();
  bool awaits_something(const Process& process) const;
  void take_events(std::size_t process);
  void take_event(Process& process, const Event& event);
  void check(std::size_t process);
  void check_operation(const Process& process, std::uint64_t id, const Operation& operation);
  void check_nothing_left(Process& process);
  void complain(const std::string& text);

  SimRandom random_;
  Fate fate_;
  const bool lends_;  ///< Payloads may stay in the memory of their senders.
  Network network_;
  std::vector<Process> processes_;
  std::vector<std::unique_ptr<Node>> graveyard_;  ///< Wires of the dead stay valid until the end.
  std::map<std::uint64_t, int> delivered_;        ///< Completed at a target, by id of the operation.
  std::uint64_t action_ = 0;
  std::uint64_t next_id_ = 1;
  int packets_to_death_ =
      -1;  ///< Packets, or what a wire says without one, until the acting process is killed; < 0: it is not.
  std::string complaint_;
};

}  // namespace portofu::simulation
