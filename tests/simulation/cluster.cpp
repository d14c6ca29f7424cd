// Death, restart and closing.

#include "tests/simulation/cluster.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "engine/atomic/atomic_unit.h"
#include "engine/run/loop.h"

namespace portofu::simulation {
namespace {

constexpr std::size_t kSendBytes = 32768;
constexpr std::size_t kReceiveAt = kSendBytes;
constexpr std::size_t kReceiveBytes = 32768;
constexpr std::size_t kTargetAt = kReceiveAt + kReceiveBytes;
constexpr std::size_t kTargetBytes = 32768;
constexpr std::uint16_t kPt = 3;
constexpr std::uint32_t kInterface = 1;  // Matching, physical.
constexpr int kMostRounds = 5000;
constexpr std::uint32_t kMostProcesses = 5;

/// Round of the end of a run: on the plain network, where nothing takes time, and on the lossy one.
constexpr std::uint64_t kPlainRoundNs = 100'000'000;
constexpr std::uint64_t kLossyRoundNs = 5'000'000;

// Match bits: what the priority list always takes, and what waits in the unexpected list until somebody asks for it.
constexpr std::uint64_t kExpected = 1;
constexpr std::uint64_t kUnexpected = 2;

bool is_get(PacketType kind) { return kind == PacketType::kGet; }

SimOptions draw_network(std::uint64_t seed) {
  SimRandom random(seed ^ 0xdead);
  SimOptions options = draw_links(random, 3);
  options.max_ack_slots = static_cast<std::uint32_t>(random.below(6));
  if (random.below(2) == 0) options.max_lent_bytes = static_cast<std::uint32_t>(kTargetBytes);
  return options;
}

std::optional<LossyOptions> draw_lossy(std::uint64_t seed, const Fate& fate) {
  if (!fate.lossy) return std::nullopt;
  SimRandom random(seed ^ 0x1055);
  LossyOptions options = bad_network();
  options.delay = static_cast<DelayKind>(random.below(4));
  options.mean_delay_ns = 1 + random.below(3'000'000);
  return options;
}

}  // namespace

Cluster::Cluster(std::uint64_t seed, const Fate& fate)
    : random_(seed),
      fate_(fate),
      lends_(draw_network(seed).max_lent_bytes != 0),
      network_(seed + 1, draw_network(seed), draw_lossy(seed, fate), kMostProcesses),
      processes_(2 + random_.below(kMostProcesses - 1)) {
  for (std::size_t i = 0; i < processes_.size(); ++i) start_process(i);
}

Cluster::~Cluster() {
  for (Process& process : processes_) {
    if (process.alive && random_.below(2) == 0) process.node->close_interface();
  }
}

void Cluster::complain(const std::string& text) {
  if (complaint_.empty()) complaint_ = text + ", at action " + std::to_string(action_);
}

void Cluster::trace(const char* what, std::size_t process, ProcessId peer, const PacketHeader& header) const {
  static const bool wanted = std::getenv("PORTOFU_TEST_TRACE") != nullptr;
  if (!wanted) return;
  std::cerr << "  " << action_ << ": process " << 100 + process << " " << what << " " << peer.pid << ": "
            << packet_type_name(header.type) << " hdr_data " << header.hdr_data << " id " << header.operation_id
            << " length " << header.length << " payload " << header.payload_bytes << " fail "
            << int{header.ni_fail_type} << " flags " << int{header.flags} << "\n";
}

void Cluster::published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end) {
  trace(lent_end != 0 ? "lends to" : "sends to", process, peer, header);
  count_down(process);
}

void Cluster::peeked(std::size_t process, ProcessId source, const PacketHeader& header) {
  trace("takes from", process, source, header);
  count_down(process);
}

/// Dies in the middle of whatever its engine is doing. The engine goes on for a while, as nobody's.
void Cluster::count_down(std::size_t process) {
  if (packets_to_death_ < 0 || packets_to_death_-- > 0) return;
  kill(process);
}

void Cluster::kill(std::size_t process) {
  if (!processes_[process].alive) return;
  if (std::getenv("PORTOFU_TEST_TRACE") != nullptr) std::cerr << "  " << action_ << ": " << 100 + process << " dies\n";
  network_.kill(processes_[process].node->id());
  processes_[process].alive = false;
  processes_[process].died_at = action_;
}

void Cluster::start_process(std::size_t index) {
  Process& process = processes_[index];
  if (process.node != nullptr) {
    take_events(index);  // What the dead had completed counts as delivered.
    graveyard_.push_back(std::move(process.node));
  }
  NodeOptions options;
  options.id = {0x0a000001, 100 + static_cast<std::uint32_t>(index)};
  options.index = index;
  options.interface_index = kInterface;
  options.memory_bytes = kTargetAt + kTargetBytes;
  options.own_loopback = random_.below(2) == 0;
  options.ring = {16, 16384, 8192};
  options.settings.window_operations = random_.below(2) == 0 ? 4 : 1024;
  options.clock_ns = network_.clock_ns();
  WireObserver* observer = this;
  process.node =
      std::make_unique<Node>(network_.attach(options.id, static_cast<std::uint32_t>(index)), options, observer);
  process.checked_at = action_;
  process.alive = true;
  if (std::getenv("PORTOFU_TEST_TRACE") != nullptr) std::cerr << "  " << action_ << ": " << 100 + index << " starts\n";
  open_term(process);
}

void Cluster::open_term(Process& process) {
  Node& node = *process.node;
  process.steady_since = action_;
  process.term = {};
  process.term.eq = node.make_queue(512);
  process.term.ct = node.make_counter();
  process.term.send_md = node.make_md({{{0, kSendBytes}}}, kMdEventCtAck, process.term.eq, process.term.ct);
  process.term.receive_md = node.make_md({{{kReceiveAt, kReceiveBytes}}}, 0, process.term.eq, 0);
  node.make_portal(kPt, process.term.eq, false);
  append(process, kExpected, ListKind::kPriority, 0);
  append(process, kUnexpected, ListKind::kOverflow, 0);
}

void Cluster::append(Process& process, std::uint64_t match_bits, ListKind list, std::uint32_t options) {
  EntryPlan plan;
  plan.region = {{{kTargetAt, kTargetBytes}}};
  plan.criteria = {match_bits, 0, {}, true, true};
  plan.options = options | kEntryOpPut | kEntryOpGet | kEntryEventLinkDisable;
  plan.pt_index = kPt;
  plan.list = list;
  Handle handle = 0;
  const Engine::Duty duty(process.node->engine());
  append_entry(process.node->core(), process.node->interface(), process.node->request_of(plan), &handle);
}

void Cluster::post(std::size_t index) {
  Process& process = processes_[index];
  const std::uint64_t id = next_id_++;
  Operation operation;
  operation.kind = static_cast<PacketType>(1 + random_.below(4));
  operation.target = random_.below(processes_.size());
  operation.posted_at = action_;
  operation.checked_at = process.checked_at;
  const bool has_ack = operation.kind == PacketType::kPut || operation.kind == PacketType::kAtomic;
  if (has_ack) operation.ack_req = static_cast<AckRequest>(random_.below(4));
  Descriptor d;
  d.type = operation.kind;
  d.interface_index = kInterface;
  d.portals.target = processes_[operation.target].node->id();
  d.pt_index = kPt;
  d.portals.ack_req = operation.ack_req;
  d.portals.md_handle = is_get(d.type) ? process.term.receive_md : process.term.send_md;
  d.portals.get_md_handle = is_fetching(d.type) ? process.term.receive_md : 0;
  d.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
  d.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  const bool moves = d.type == PacketType::kPut || is_get(d.type);
  d.length = moves ? random_.below(random_.below(2) == 0 ? 200 : kTargetBytes) : 8 * random_.below(60);
  d.match_bits = random_.below(3) == 0 ? kUnexpected : kExpected;
  d.hdr_data = id;
  d.portals.user_ptr = reinterpret_cast<void*>(id);
  if (has_ack && d.portals.ack_req != AckRequest::kNone) ++process.term.counted;
  process.term.operations[id] = operation;
  process.node->post(d);
}

/// PtlNIFini and PtlNIInit. Nobody is told of the operations of the old interface.
void Cluster::close_and_open(std::size_t index) {
  Process& process = processes_[index];
  take_events(index);
  process.node->close_interface();
  // A while without an interface: what arrives is dropped, and nobody writes to what was its memory.
  const std::vector<std::byte> before(process.node->memory_bytes(), static_cast<std::byte>(random_.below(256)));
  std::memcpy(process.node->memory(), before.data(), before.size());
  for (std::uint64_t i = random_.below(30); i > 0; --i) {
    const Process& one = processes_[random_.below(processes_.size())];
    if (one.alive) one.node->engine().step();
  }
  if (std::memcmp(before.data(), process.node->memory(), before.size()) != 0)
    complain("memory changes while there is no interface");
  process.node->open_interface();
  open_term(process);
}

void Cluster::act() {
  const std::size_t index = random_.below(processes_.size());
  Process& process = processes_[index];
  network_.pass(random_.below(2'000'000));
  const std::uint64_t dice = random_.below(100);
  if (!process.alive) {
    if (dice < 20) start_process(index);
    return;
  }
  packets_to_death_ = fate_.kills && random_.below(60) == 0 ? static_cast<int>(random_.below(12)) : -1;
  if (dice < 50) {
    process.node->engine().step();
  } else if (dice < 82) {
    post(index);
  } else if (dice < 90) {
    process.node->run_timers();
    process.checked_at = action_;
  } else if (dice < 94) {
    append(process, kUnexpected, ListKind::kPriority, kEntryUseOnce);
  } else if (dice < 95 && fate_.closings) {
    close_and_open(index);
  } else if (dice < 96 && fate_.kills) {
    kill(index);
  } else {
    take_events(index);
  }
  packets_to_death_ = -1;
}

/// On a lossy network time has to pass before a death is known.
bool Cluster::awaits_something(const Process& process) const {
  const Core& core = process.node->core();
  return !core.waiting_peers.empty() || !core.awaited_peers.empty() || (fate_.lossy && needs_timers_on_duty(core));
}

bool Cluster::settle() {
  for (int round = 0; round < kMostRounds; ++round) {
    bool busy = false;
    for (Process& process : processes_) {
      if (!process.alive) continue;
      busy = process.node->engine().step() > 0 || busy;
      process.node->run_timers();
      busy = busy || process.node->core().wires[0]->has_packets() || awaits_something(process);
    }
    if (!busy && network_.is_quiet()) return true;
    network_.pass(fate_.lossy ? kLossyRoundNs : kPlainRoundNs);
  }
  complain("the network never comes to rest");
  return false;
}

// ---- What survivors see --------------------------------------------------------------------------------------------

void Cluster::take_events(std::size_t index) {
  Process& process = processes_[index];
  if (!process.node->has_interface()) return;
  const Engine::Duty duty(process.node->engine());
  EventQueue& queue = *process.node->interface().eqs.find(process.term.eq);
  while (!queue.empty()) {
    const Event event = queue.oldest_on_duty();
    queue.remove_oldest_on_duty();
    take_event(process, event);
  }
}

void Cluster::take_event(Process& process, const Event& event) {
  const auto id = reinterpret_cast<std::uintptr_t>(event.user_ptr);
  switch (event.type) {
    case EventKind::kSend:
    case EventKind::kAck:
    case EventKind::kReply: {
      const auto found = process.term.operations.find(id);
      if (found == process.term.operations.end()) return complain("an event of an operation that nobody knows");
      Operation& operation = found->second;
      if (event.type == EventKind::kSend) {
        ++operation.sends;
      } else {
        ++operation.answers;
        operation.fail = event.ni_fail_type;
      }
      return;
    }
    case EventKind::kPut:
    case EventKind::kGet:
    case EventKind::kAtomic:
    case EventKind::kFetchAtomic:
      if (event.ni_fail_type == NiFail::kOk) ++delivered_[event.hdr_data];
      if (event.ni_fail_type != NiFail::kOk && event.ni_fail_type != NiFail::kUndeliverable) {
        complain("a target event with failure " + std::to_string(static_cast<int>(event.ni_fail_type)));
      }
      return;
    default: return;
  }
}

void Cluster::check_operation(const Process& process, std::uint64_t id, const Operation& operation) {
  const std::string name = "operation " + std::to_string(id) + " of " + std::to_string(process.node->id().pid) +
                           " to " + std::to_string(processes_[operation.target].node->id().pid) + " kind " +
                           std::to_string(static_cast<int>(operation.kind));
  const bool asks = is_get(operation.kind) || is_fetching(operation.kind) || operation.ack_req == AckRequest::kFull;
  if (operation.sends != (is_get(operation.kind) ? 0 : 1))
    complain(name + ": " + std::to_string(operation.sends) + " SEND");
  if (operation.answers != (asks ? 1 : 0)) complain(name + ": " + std::to_string(operation.answers) + " ACK or REPLY");
  const int times = delivered_.contains(id) ? delivered_.at(id) : 0;
  if (times > 1) complain(name + " was delivered twice");
  if (!asks) return;
  const Process& target = processes_[operation.target];
  // What is posted before the initiator knows of a death goes to the dead.
  const bool death_is_known = target.died_at == 0 || (!fate_.lossy && target.died_at < operation.checked_at);
  const bool steady = target.alive && target.steady_since <= operation.posted_at && death_is_known;
  // A get that was read before the interface closed is answered, and nobody is left to be told. So is one that was
  // read from the memory of a process that died before it saw that.
  const bool may_be_untold = (fate_.closings || lends_) && !steady && is_get(operation.kind);
  if (operation.fail == NiFail::kOk && times != 1 && !may_be_untold)
    complain(name + " was said to be delivered and was not");
  if (steady && operation.fail != NiFail::kOk) {
    complain(name + ": failure " + std::to_string(static_cast<int>(operation.fail)) + " though the target was there");
  }
  const bool may_be_dropped = fate_.closings && operation.fail == NiFail::kDropped;
  if (operation.fail != NiFail::kOk && operation.fail != NiFail::kUndeliverable && !may_be_dropped) {
    complain(name + ": failure " + std::to_string(static_cast<int>(operation.fail)));
  }
}

void Cluster::check_nothing_left(Process& process) {
  Core& core = process.node->core();
  Interface& ni = process.node->interface();
  const std::string name = "process " + std::to_string(process.node->id().pid);
  if (core.outstanding.open_count() != 0 || ni.outstanding != 0) complain(name + ": operations stay open");
  ni.mds.for_each([&](Handle, const MemoryDescriptor& md) {
    if (md.pending != 0) complain(name + ": a memory descriptor stays in use");
  });
  ni.entries.for_each([&](Handle, const ListEntry& entry) {
    if (entry.pending != 0) complain(name + ": a list entry stays in use");
  });
  if (ni.portal(kPt)->in_progress != 0) complain(name + ": the portal table entry stays in use");
  for (const auto& [key, peer] : core.peers) {
    if (peer->outstanding != 0 || !peer->answers.waiting.empty() || !peer->requests.waiting.empty())
      complain(name + ": a peer stays in use");
    if (peer->request_stream.mode != ArrivalMode::kIdle) complain(name + ": a message stays under way");
    if (peer->answer_stream.mode != ArrivalMode::kIdle) complain(name + ": an answer stays under way");
  }
}

void Cluster::check(std::size_t index) {
  Process& process = processes_[index];
  if (!process.alive) return;
  for (const auto& [id, operation] : process.term.operations) check_operation(process, id, operation);
  const CountingEvent& counter = *process.node->interface().cts.find(process.term.ct);
  if (counter.success() + counter.failure() != process.term.counted) complain("acknowledgements are miscounted");
  check_nothing_left(process);
}

std::string Cluster::run(int action_count) {
  for (action_ = 1; action_ <= static_cast<std::uint64_t>(action_count) && complaint_.empty(); ++action_) act();
  if (!complaint_.empty() || !settle()) return complaint_;
  for (std::size_t i = 0; i < processes_.size(); ++i) take_events(i);
  for (std::size_t i = 0; i < processes_.size() && complaint_.empty(); ++i) check(i);
  return complaint_;
}

}  // namespace portofu::simulation
