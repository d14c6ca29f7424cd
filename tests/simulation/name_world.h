#pragma once
// Processes of several nodes that make and free control queues, begin and end under their PIDs, and put to each other's
// names all the time, at random: what stands between a name and its owner is the real thing (directory, knowers, names
// word, hellos, segments in files), over a network in virtual time that loses, doubles and delays datagrams.
//
// Who has a name is written on a board that all see at once, as if the application had told everybody. What is put to
// a name while its owner holds it for others has to arrive there. While a process waits in a call for others to hear,
// the others go on.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/engine_node.h"
#include "engine/segment/own_segments.h"
#include "engine/wire/reliable/reliable_wire.h"
#include "engine/wire/sim/lossy_network.h"
#include "tests/simulation/lossy_kernel.h"
#include "tests/simulation/tofu_node.h"

namespace portofu::simulation {

/// Fixed for a world.
struct NameWorldOptions {
  std::uint64_t seed = 0;
  std::uint32_t nodes = 2;
  std::uint32_t processes_of_node = 3;
  std::uint32_t queues = 3;                     ///< CQs of a node that its processes take from each other.
  int actions = 150;                            ///< Of all together.
  std::uint64_t longest_rest_ns = 0;            ///< Between two actions of a process.
  bool is_cut = false;                          ///< Once no node reaches another one, for longer than a question lasts.
  std::uint64_t longest_stop_ns = 200'000'000;  ///< For which a process is not given the core, now and then.
  LossyOptions network;
  bool news_are_lost = false;  ///< `network` may lose what is told for longer than kTellShortlyMs.
  /// Directories of the nodes' shared memory, empty.
  std::vector<std::string> directories;
};

/// Used by one thread; one at a time.
class NameWorld {
 public:
  explicit NameWorld(const NameWorldOptions& options);
  ~NameWorld();

  /// Runs to the end. @return what is wrong; empty if nothing
  std::string run();

  /// What has happened, for who wants to know whether anything does.
  struct Counts {
    std::uint64_t operations = 0, failed = 0, owners = 0, lives = 0, longest_ns = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t kFirstNid = 0x0a000001;
  static constexpr std::uint32_t kFirstPid = 11;
  static constexpr std::array<std::uint16_t, 2> kPorts{20001, 25001};  ///< Of the directory.
  static constexpr std::uint64_t kMillisecond = 1'000'000;
  static constexpr std::uint64_t kSecond = 1'000'000'000;
  static constexpr std::uint64_t kRegionBytes = 8192;
  static constexpr std::size_t kSlots = 2;  ///< VCQs of a process, beside the one from which it puts.
  static constexpr std::uint32_t kMostUnderWay = 16;
  static constexpr std::size_t kForgotten = SIZE_MAX;  ///< Silent, to who is gone: whether it has failed may be told.
  static constexpr std::uint64_t kWords = 1024;  ///< Of a region; each life has some of its own, by what is under way.

  /// Somebody's holding of a name.
  struct Holding {
    std::size_t process = 0;
    std::uint64_t life = 0;
    std::uint64_t vcq_id = 0;  ///< 0: it is the PID.
    std::uint64_t stadd = 0;
    int users = 0;         ///< Operations that have to arrive before it ends.
    bool is_open = true;   ///< May be used.
    bool is_kept = true;   ///< Users are waited for.
    bool is_there = true;  ///< The owner lives, and has it.
    /// PID: by process, one who may have missed that the former owner is gone. It is refused, and finds out by that:
    /// nobody waits longer than kTellShortlyMs for others to hear before a PID is given out anew.
    std::vector<bool> may_be_refused{};
    std::vector<std::uint64_t> found_out_ns{};  ///< PID: when the first operation of each to this life ended; 0: none.
  };

  struct Operation {
    std::size_t from = 0;
    std::uint64_t life = 0;
    std::size_t holding = 0;
    std::uint32_t slot = 0;  ///< Among those under way of the life.
    std::uint64_t posted_ns = 0;
    int executed = 0;        ///< PID: messages that came to the owner.
    bool is_silent = false;  ///< Nothing tells that it was executed, only that it has failed.
    bool ended = false;
    bool succeeded = false;
  };

  struct Slot {
    VirtualControlQueue* vcq = nullptr;
    std::size_t holding = 0;
  };

  /// Keeps what the directory wants to have served.
  struct Keeper final : SocketKeeper {
    bool is_open() const override { return true; }
    void attend(int, std::function<void()> serve) override { handle = std::move(serve); }
    std::function<void()> handle;
  };

  /// A process, or the place of one.
  struct Process {
    ProcessId id;
    std::uint32_t node_index = 0;
    std::uint64_t life = 0;  ///< By number, from 1; of the latest.
    std::unique_ptr<OwnSegments, OwnSegmentsDelete> own;
    std::unique_ptr<LossyKernel> kernel;
    std::unique_ptr<ProcessSegment> segment;
    std::unique_ptr<Keeper> keeper;
    std::unique_ptr<TofuNode> node;  ///< nullptr: it does not live.
    ReliableWire* wire = nullptr;
    VirtualControlQueue* base = nullptr;  ///< From which it puts; nullptr: not yet.
    std::uint64_t base_stadd = 0;
    Handle md = 0, own_eq = 0, target_eq = 0;
    std::array<Slot, kSlots> slots;
    std::size_t holding = 0;                             ///< Of the PID.
    std::array<std::size_t, kMostUnderWay> under_way{};  ///< Operations + 1; 0: free; kForgotten.
    bool leaves = false;                                 ///< It ends when nobody uses it.
    bool is_waiting = false;                             ///< In a call, for others to hear.
    const Meanwhile* meanwhile = nullptr;                ///< What it does while it waits.
    bool is_woken = false;
    std::uint64_t next_action_ns = 0;
    std::uint64_t stopped_until_ns = 0;
    std::uint64_t ended_ns = 0;  ///< The former life.
  };

  /// From here to its end this process is the one that runs.
  class Enter {
   public:
    explicit Enter(const Process& process)
        : own_(use_own_segments(process.own.get())), kernel_(use_kernel(process.kernel.get())) {}
    ~Enter() {
      use_own_segments(own_);
      use_kernel(kernel_);
    }
    Enter(const Enter&) = delete;
    Enter& operator=(const Enter&) = delete;

   private:
    OwnSegments* const own_;
    Kernel* const kernel_;
  };

  // name_world.cpp: time, and what is seen.
  void wait(Process& process, const Meanwhile& meanwhile);
  void check_peers();
  template <class Stop>
  void go_on_until(std::uint64_t until_ns, Stop&& stop);
  void wake_receivers();
  void step(Process& process);
  void take_ends(Process& process);
  void look_for_silent(Process& process);
  void take_messages(Process& process);
  std::uint64_t next_look_ns(const Process& process) const;

  // name_actions.cpp: what is done.
  void act(Process& process);
  void begin(Process& process);
  void make_segment(Process& process);
  void make_engine(Process& process);
  void make_portals(Process& process);
  void make_base(Process& process);
  void leave(Process& process);
  void die(Process& process);
  void cut();
  void end(Process& process);
  void clear(Process& process);
  void forget(Process& process);
  void open(Process& process, Slot& slot);
  void advance_closing(Process& process);
  void close(Process& process, Slot& slot);
  void put(Process& process);
  void post_to_queue(Process& process, std::size_t number);
  void post_to_pid(Process& process, std::size_t number);
  void end_operation(std::size_t number, NiFail fail);
  bool has_found_out(const Operation& operation);
  bool is_executed(std::size_t number) const;
  void check_region(const Process& process, const Slot& slot);
  std::uint64_t word_at(const Process& process, std::uint64_t offset) const;
  std::uint64_t region_of(const Process& process, const Slot& slot) const;
  std::uint64_t word_of(const Operation& operation) const;
  bool may_wait(const Process& process) const;
  void complain(const std::string& what);
  [[gnu::format(printf, 2, 3)]] void trace(const char* format, ...) const;
  std::string name_of(std::size_t operation) const;
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  std::uint64_t now_ns() const { return network_.now_ns(); }

  const NameWorldOptions options_;
  SimRandom random_;
  LossyNetwork network_;
  LossyPorts ports_;
  std::vector<Process> processes_;
  std::vector<Holding> holdings_;
  std::vector<Operation> operations_;
  int waiting_ = 0;  ///< Processes in calls that wait.
  int actions_left_ = 0;
  std::uint64_t cut_until_ns_ = 0;  ///< 0: there was no cut.
  bool is_cut_ = false;
  std::uint64_t next_check_ns_ = 0;
  std::uint64_t lives_ = 0;
  std::uint64_t open_operations_ = 0;
  std::string complaint_;
  Counts counts_;
};

}  // namespace portofu::simulation
