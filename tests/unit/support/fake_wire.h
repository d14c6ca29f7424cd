#pragma once
// A wire that is played by the test: what is published is kept for the test to look at, what the engine shall receive
// the test hands in, and every refusal of wire.h can be asked for. Asserts on misuse. Needs no GoogleTest: the fuzzer
// has it too.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "engine/memory/list_entry.h"
#include "engine/queue/assert.h"
#include "engine/topology/process_id.h"
#include "engine/wire/completions.h"
#include "engine/wire/copies.h"
#include "engine/wire/loans.h"
#include "engine/wire/other_nodes.h"
#include "engine/wire/peer_memory.h"
#include "engine/wire/wire.h"

namespace portofu {

/// A packet as the test sees it or makes it.
struct FakePacket {
  ProcessId process;  ///< Who it goes to, or who it comes from.
  PacketHeader header{};
  std::vector<std::byte> payload;
  std::uint64_t life = 0;  ///< Of who it comes from; set by arrive.
};

class FakeWire final : public Wire,
                       public Loans,
                       public Copies,
                       public PeerMemory,
                       public Completions,
                       public OtherNodes {
 public:
  explicit FakeWire(std::uint64_t connect_timeout_ns = kConnectTimeoutNs)
      : Wire({.max_payload_bytes = kMaxPayloadBytes, .connect_timeout_ns = connect_timeout_ns},
             {.loans = this, .copies = this, .peer_memory = this, .completions = this, .other_nodes = this}) {}

  static constexpr std::uint32_t kMaxPayloadBytes = 4096;
  static constexpr std::uint32_t kPlentyOfRoom = UINT32_MAX;

  /// What the test decides.
  ConnectResult connect_result = ConnectResult::kConnected;  ///< Of every connect from now on.
  std::uint32_t room = kPlentyOfRoom;                        ///< Packets that can be published before claims fail.
  bool room_is_back = false;                                 ///< What has_room_again says.
  bool runs_out_of_memory = false;                           ///< The next claim throws.
  int newly_lost = 0;                                        ///< What check_peers returns once.
  MappedRegion mapped;  ///< The one region of peers that is mapped; none while it has no memory.
  static inline const std::atomic<std::uint64_t> kNeverChanges{0};
  /// The one region that peers have published, if it has bytes: any put is good there.
  MappedRegion published{.bytes = UINT64_MAX, .writable = true, .user = kUidAny, .sequence = &kNeverChanges};
  bool looks_rarely = false;               ///< peek finds nothing until has_packets was asked.
  bool lends = false;                      ///< Whether payloads may stay in the engine's memory.
  std::uint64_t due_ns = UINT64_MAX;       ///< For next_due_ns.
  std::uint64_t taken_packets = 0;         ///< Packets that all peers are done with, for has_taken.
  std::uint64_t shares_from = UINT64_MAX;  ///< For shares_from_bytes.
  bool helps = false;                      ///< The next `help` finds something to do.
  int help_count = 0;                      ///< Calls of it.
  std::vector<std::span<std::byte>> offers;
  bool reads_later = false;                 ///< Whether payloads may be read later.
  std::uint32_t unread = 0;                 ///< Bits of those that read_now will not have read.
  std::vector<std::span<std::byte>> late;   ///< Where those that are to be read later go.
  std::function<void()> when_given_back;    ///< Called by give_back_read.
  std::function<void()> when_acknowledged;  ///< Called by acknowledge.
  bool acknowledges = false;                ///< Whether acknowledgements need no packet.
  std::deque<std::uint32_t> acks;           ///< Operations that the peers have acknowledged so.
  std::vector<ProcessId> taken_back;        ///< Sources whose offers were.

  const std::atomic<std::uint64_t>* names = nullptr;  ///< Of the peers that are connected from now on.
  bool other_has_name = false;                        ///< Links lead to none that has the PID.

  /// What the engine did.
  std::vector<FakePacket> sent;  ///< Published and not taken, in order.
  int connect_count = 0;
  int ask_anew_count = 0;
  int disconnect_count = 0;
  int give_up_count = 0;
  int discard_count = 0;
  std::vector<std::uint32_t> acknowledged;  ///< Operations of peers, without a packet.
  int lent_count = 0;                       ///< Packets that were lent; `sent` has copies of them.

  /// What the test does as the peer. A process that has died sends in its next life, which is heard once its former
  /// source is taken.
  void arrive(FakePacket packet) {
    packet.life = life_of(packet.process);
    (is_closing(packet.process) ? next_life_ : inbox_).push_back(std::move(packet));
  }

  /// The peer dies: its link is lost, and its source is closed once its packets are taken.
  void kill(ProcessId peer) {
    ++deaths_[key_of(peer)];
    mark_lost(peer);
    close_source(peer);
  }
  void close_source(ProcessId source) { closed_sources_.push_back(source); }

  /// The link is lost, and the peer lives.
  void lose_link(ProcessId peer) { mark_lost(peer); }

  /// The peer dies, and its link takes packets until check_peers looks.
  void kill_unnoticed(ProcessId peer) {
    ++deaths_[key_of(peer)];
    unnoticed_deaths_.push_back(peer);
    close_source(peer);
  }

  /// Removes the oldest published packet and returns it; a test that expects one that is not there ends.
  FakePacket take() {
    PORTOFU_ASSERT(!sent.empty());
    FakePacket packet = std::move(sent.front());
    sent.erase(sent.begin());
    return packet;
  }

  /// The place that Packet::source_context names.
  SourceContext* context_of(ProcessId source) { return &contexts_[key_of(source)]; }

  /// Links that are connected now.
  int open_links() const {
    int count = 0;
    for (const auto& link : links_) count += link->open ? 1 : 0;
    return count;
  }

  ConnectResult connect(ProcessId peer, Link** link) override {
    ++connect_count;
    if (connect_result != ConnectResult::kConnected) return connect_result;
    links_.push_back(std::make_unique<FakeLink>());
    links_.back()->peer = peer;
    links_.back()->names = names;
    links_.back()->seen_names = links_.back()->names_now();
    links_.back()->life = life_of(peer);
    *link = links_.back().get();
    return ConnectResult::kConnected;
  }

  bool has_unheard(ProcessId peer, std::uint64_t life) override {
    return std::any_of(inbox_.begin(), inbox_.end(),
                       [&](const FakePacket& packet) { return packet.process == peer && packet.life == life; });
  }

  void give_up(ProcessId) override { ++give_up_count; }

  void introduce(std::uint16_t, std::function<void(std::uint32_t, std::uint16_t)>) override {}
  void end_life(ProcessId, std::uint64_t) override {}
  void ask_anew(ProcessId) override { ++ask_anew_count; }
  int wait_fd() const override { return -1; }
  std::uint64_t next_due_ns() const override { return due_ns; }
  bool has_delivered() const override { return true; }

  bool leads_to_name(Link& link) override {
    if (link.lost || other_has_name) link.lost = true;
    link.seen_names = link.names_now();
    return !link.lost;
  }

  void disconnect(Link* link) override {
    FakeLink& own_link = own(*link);
    PORTOFU_ASSERT(own_link.claimed == nullptr);
    own_link.open = false;
    ++disconnect_count;
  }

  std::byte* claim(Link& link, std::uint32_t payload_bytes) override {
    FakeLink& own_link = own(link);
    PORTOFU_ASSERT(own_link.claimed == nullptr && payload_bytes <= kMaxPayloadBytes);
    if (std::exchange(runs_out_of_memory, false)) throw std::bad_alloc();
    if (own_link.lost || room == 0) return nullptr;
    own_link.claimed_bytes = payload_bytes;
    // Exactly as long as was asked for, so that a sanitizer sees who writes more.
    own_link.claimed = std::make_unique<std::byte[]>(payload_bytes);
    return own_link.claimed.get();
  }

  void publish(Link& link, const PacketHeader& header) override {
    FakeLink& own_link = own(link);
    PORTOFU_ASSERT(own_link.claimed != nullptr && header.payload_bytes <= own_link.claimed_bytes);
    if (!is_settled(header.flags)) link.leave_order();
    ++published_;
    FakePacket packet{link.peer, header, std::vector<std::byte>(header.payload_bytes)};
    if (header.payload_bytes > 0) std::memcpy(packet.payload.data(), own_link.claimed.get(), header.payload_bytes);
    own_link.claimed.reset();
    if (room != kPlentyOfRoom) --room;
    sent.push_back(std::move(packet));
  }

  void discard(Link& link) override {
    FakeLink& own_link = own(link);
    PORTOFU_ASSERT(own_link.claimed != nullptr);
    own_link.claimed.reset();
    ++discard_count;
  }

  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }

  std::uint32_t most_lent_bytes(const Link&) const override { return kMostLentBytes; }
  std::uint64_t shares_from_bytes(Link& /*link*/, std::uint64_t /*message*/) override { return shares_from; }
  bool lend(Link& link, const Loan& loan) override {
    if (!lends || loan.bytes > kMostLentBytes) return false;
    FakeLink& own_link = own(link);
    PORTOFU_ASSERT(own_link.claimed == nullptr);
    if (own_link.lost || room == 0) return false;
    own_link.claimed_bytes = loan.bytes;
    own_link.claimed = std::make_unique<std::byte[]>(loan.bytes);
    std::memcpy(own_link.claimed.get(), loan.payload, loan.bytes);
    ++lent_count;
    return true;
  }
  std::uint64_t next_packet(const Link&) const override { return published_; }
  bool has_taken(Link&, std::uint64_t packet) override { return taken_packets >= packet; }
  bool help(Link&) override {
    ++help_count;
    return std::exchange(helps, false);
  }
  void offer(std::byte* target, std::uint64_t bytes) override { offers.push_back({target, bytes}); }
  bool read_later(std::byte* target, std::uint64_t bytes) override {
    if (reads_later) late.push_back({target, bytes});
    return reads_later;
  }
  std::uint32_t read_now() override {
    const std::uint32_t all = (1u << late.size()) - 1;
    late.clear();
    return all & ~unread;
  }
  void give_back_read() override {
    if (when_given_back) when_given_back();
  }
  void take_offers_back(ProcessId source) override { taken_back.push_back(source); }

  bool acknowledge(ProcessId, std::uint32_t operation_id) override {
    if (acknowledges) acknowledged.push_back(operation_id);
    if (when_acknowledged) when_acknowledged();
    return acknowledges;
  }
  bool acknowledge_released(ProcessId, std::uint64_t, std::uint32_t) override { return false; }
  std::uint32_t take_acknowledgement(Link& link) override {
    static_cast<void>(own(link));
    if (acks.empty()) return 0;
    const std::uint32_t id = acks.front();
    acks.pop_front();
    return id;
  }
  bool has_acknowledgement(Link& link) override {
    static_cast<void>(own(link));
    return !acks.empty();
  }

  bool put_directly(Link&, const DirectPut&) override { return false; }
  bool find_mapped(Link&, std::uint64_t, MappedRegion* region) override {
    *region = mapped;
    return mapped.memory != nullptr;
  }
  bool find_published(Link&, std::uint64_t, MappedRegion* region) override {
    *region = published;
    return published.bytes != 0;
  }
  bool has_settled(Link&) override {
    return std::all_of(sent.begin(), sent.end(),
                       [](const FakePacket& packet) { return is_settled(packet.header.flags); });
  }

  bool peek(Packet& packet) override {
    PORTOFU_ASSERT(!held_);
    if (inbox_.empty() || (looks_rarely && !was_asked_)) return false;
    held_ = true;
    const FakePacket& front = inbox_.front();
    packet.source = front.process;
    packet.header = front.header;
    packet.payload = front.payload.data();
    packet.source_context = context_of(front.process);
    packet.source_context->life = front.life;
    return true;
  }

  void release() override {
    PORTOFU_ASSERT(held_);
    held_ = false;
    inbox_.pop_front();
  }

  bool has_packets() override {
    was_asked_ = true;
    return !inbox_.empty();
  }
  bool has_room_again() override { return std::exchange(room_is_back, false); }
  int check_peers() override {
    for (const ProcessId peer : std::exchange(unnoticed_deaths_, {})) mark_lost(peer);
    return std::exchange(newly_lost, 0);
  }

  bool take_closed_source(ProcessId* source, void** engines) override {
    for (auto at = closed_sources_.begin(); at != closed_sources_.end(); ++at) {
      if (has_packet_of(*at)) continue;
      *source = *at;
      *engines = std::exchange(context_of(*at)->engines, nullptr);
      closed_sources_.erase(at);
      for (FakePacket& packet : std::exchange(next_life_, {})) arrive(std::move(packet));
      return true;
    }
    return false;
  }

 private:
  struct FakeLink : Link {
    bool open = true;
    std::uint32_t claimed_bytes = 0;
    std::unique_ptr<std::byte[]> claimed;  ///< Between claim and publish or discard.
  };

  static FakeLink& own(Link& link) {
    auto& own_link = static_cast<FakeLink&>(link);
    PORTOFU_ASSERT(own_link.open);
    return own_link;
  }

  static std::uint64_t key_of(ProcessId process) { return std::uint64_t{process.nid} << 32 | process.pid; }
  std::uint64_t life_of(ProcessId process) { return deaths_[key_of(process)] + 1; }

  void mark_lost(ProcessId peer) {
    for (const auto& link : links_) {
      if (!link->open || link->peer != peer || link->lost) continue;
      link->lost = true;
      ++newly_lost;
    }
  }

  bool is_closing(ProcessId process) const {
    for (const ProcessId source : closed_sources_) {
      if (source == process) return true;
    }
    return false;
  }

  bool has_packet_of(ProcessId source) const {
    for (const FakePacket& packet : inbox_) {
      if (packet.process == source) return true;
    }
    return false;
  }

  std::vector<std::unique_ptr<FakeLink>> links_;  ///< Closed ones stay, so that a use after disconnect is seen.
  std::deque<FakePacket> inbox_;
  std::deque<FakePacket> next_life_;  ///< Of processes whose former source is closed and not taken.
  bool was_asked_ = false;            ///< By has_packets.
  std::vector<ProcessId> closed_sources_;
  std::vector<ProcessId> unnoticed_deaths_;
  std::map<std::uint64_t, SourceContext> contexts_;
  std::map<std::uint64_t, std::uint64_t> deaths_;  ///< Of each process.
  bool held_ = false;
  std::uint64_t published_ = 0;
};

}  // namespace portofu
