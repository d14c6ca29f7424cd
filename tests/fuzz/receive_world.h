#pragma once
// An engine core with everything on it that an application can put there, its peers, and what both of them may do next.
// One object is one run of the receive fuzzer; `receive_fuzz.cpp` says in which order things happen.

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/core/core.h"
#include "engine/memory/guarded_copy.h"
#include "engine/segment/lender.h"
#include "engine/target/list_entries.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/unit/support/fake_wire.h"

namespace portofu::fuzz {

/// Queues and gates of TNI 0 are ours; of TNI 1 and 2 those of the two peers. Nobody has others.
class FuzzDirectory final : public NodeDirectory {
 public:
  ClaimResult claim(std::uint64_t) override { return ClaimResult::kClaimed; }
  void release(std::uint64_t) override {}
  FindResult find(std::uint64_t key, NameOwner* owner) override {
    *owner = {{1, 1 + tni_of(key)}, 0};
    return tni_of(key) < 3 ? FindResult::kFound : FindResult::kNobody;
  }
};

class ReceiveWorld {
 public:
  explicit ReceiveWorld(FuzzInput& input);
  ~ReceiveWorld();
  ReceiveWorld(const ReceiveWorld&) = delete;
  ReceiveWorld& operator=(const ReceiveWorld&) = delete;

  /// Does the next thing: a packet, a call of the application, or something that happens to a link.
  void step();

  /// Lets everything come to its end in good order, and checks that nothing is left.
  void come_to_rest();

  /// Checks everything that has to hold between two steps.
  void check();

 private:
  using Act = void (ReceiveWorld::*)();
  static const std::array<Act, 45> kActs;

  static constexpr std::uint32_t kPortals = 4;
  static constexpr std::uint32_t kSourceCount = 3;
  static constexpr std::array<ProcessId, kSourceCount> kSources{{{1, 1}, {1, 2}, {1, 3}}};  ///< The first is ourselves.

  // What peers send.
  void receive_request_packet();
  void receive_put_packet();
  void receive_next_data();
  void receive_answer_packet();
  void receive_next_answer_data();
  void receive_raw_packet();
  void receive(ProcessId source, const PacketHeader& header);
  void receive(ProcessId source, const PacketHeader& header, std::span<const std::byte> payload);
  PacketHeader request_header(PacketType type);
  void spoil(PacketHeader& header);
  ProcessId source() { return input_.one_of(kSources); }

  // What the application does.
  void open_interface();
  void close_interface();
  void append();
  void unlink();
  void search();
  void bind_md();
  void release_md();
  void start_put();
  void start_get();
  void start_atomic();
  void start_fetching();
  void arm();
  void cancel_triggered();
  void change_counter();
  void take_events();
  void change_portal();
  void free_queue();

  // uTofu: what peers send, and what the application does.
  void receive_tofu_request();
  void receive_tofu_fault();
  void receive_gate_packet();
  void post_tofu();
  void register_memory();
  void deregister_memory();
  void replace_vcq();
  void use_gate();
  void configure_gates();
  void take_notices();
  void open_tofu();
  VirtualControlQueue* any_vcq();
  void create_vcq(std::uint32_t number);
  void free_vcq(VirtualControlQueue& vcq);
  std::uint64_t any_stadd();
  std::uint64_t any_vcq_id();
  BarrierGate& gate(std::uint32_t index);
  std::uint64_t tofu_length();
  void check_tofu();

  // What happens to links and time.
  void cycle();
  void timers();
  void receive_acknowledgement();
  void change_room();
  void change_connect();
  void change_copies();
  void kill_peer();
  void lose_source();

  Interface* any_interface();
  EntryRequest entry_request(Interface& ni);
  Range any_range();
  void describe(MemorySegment& segment, bool writable);
  bool fill_descriptor(Descriptor& d, PacketType kind);
  Handle any_md(const Interface& ni);
  void start(Descriptor& d);
  void notice_sent();
  void run_until_quiet();
  void drain_queues();
  void check_rest(Interface& ni);

  /// Where the payloads of peers are.
  enum class PayloadPlace : std::uint8_t { kHere, kReadable, kUnreadable, kPlaced };
  static constexpr std::uint32_t kPayloadPlaces = 4;

  /// The memory of peers that have lent it.
  class PeersMemory final : public Lender {
   public:
    bool read_lent(std::uint64_t address, std::byte* target, std::uint64_t bytes) const override {
      return is_readable && guarded_copy(target, reinterpret_cast<const std::byte*>(address), bytes);
    }
    bool is_gone() const override { return !is_there; }

    bool is_readable = true;
    bool is_there = true;
  };

  /// A request of ours that somebody has to answer.
  struct Asked {
    ProcessId target;
    std::uint32_t operation_id;
    std::uint64_t length;
    bool wants_data;
  };

  FuzzInput& input_;
  FuzzMemory memory_;
  std::uint64_t now_ns_ = 1;
  FakeWire loopback_;
  FakeWire wire_;
  PayloadPlace payload_place_ = PayloadPlace::kHere;
  PeersMemory peers_memory_;
  CountersShared counters_{};
  FuzzDirectory directory_;
  Core core_;
  std::vector<Asked> asked_;
  std::vector<Handle> entries_;                                  ///< Of all interfaces, gone ones included.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> stadds_;  ///< Number of the VCQ and STADD, stale ones included.
};

}  // namespace portofu::fuzz
