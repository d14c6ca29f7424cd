#pragma once
// A wire that tells an observer of every packet, at the moment when it leaves and just before the engine handles it, of
// memory that comes back, and of acknowledgements without packets.

#include <optional>
#include <utility>

#include "engine/wire/completions.h"
#include "engine/wire/loans.h"
#include "engine/wire/wire.h"

namespace portofu::simulation {

/// Who is told.
class WireObserver {
 public:
  virtual ~WireObserver() = default;
  /// @param lent_end  0, or the payload was lent: the number behind the packet, for Loans::has_taken
  virtual void published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end) = 0;
  virtual void peeked(std::size_t process, ProcessId source, const PacketHeader& header) = 0;
  /// The engine hears that a peer is done with what was lent before `lent_end`.
  virtual void taken(std::size_t process, ProcessId peer, std::uint64_t lent_end) = 0;
  /// The engine tells a peer that an operation of it is complete, or takes such a word of a peer.
  virtual void acknowledged(std::size_t process, ProcessId peer, std::uint32_t operation_id) = 0;
  virtual void acknowledgement_taken(std::size_t process, ProcessId peer, std::uint32_t operation_id) = 0;
};

/// Passes everything on to another wire.
class RecordingWire final : public Wire, public Loans, public Completions {
 public:
  /// @param inner     outlives this wire
  /// @param observer  nullptr: nobody is told
  RecordingWire(Wire& inner, WireObserver* observer, std::size_t process)
      : Wire(inner.limits(), {.loans = inner.loans() != nullptr ? this : nullptr,
                              .copies = inner.copies(),
                              .peer_memory = inner.peer_memory(),
                              .completions = inner.completions() != nullptr ? this : nullptr,
                              .other_nodes = inner.other_nodes()}),
        inner_(inner),
        observer_(observer),
        process_(process) {}

  ConnectResult connect(ProcessId peer, Link** link) override { return inner_.connect(peer, link); }
  void disconnect(Link* link) override { inner_.disconnect(link); }
  bool leads_to_name(Link& link) override { return inner_.leads_to_name(link); }
  bool has_unheard(ProcessId peer, std::uint64_t life) override { return inner_.has_unheard(peer, life); }
  void give_up(ProcessId peer) override { inner_.give_up(peer); }
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override { return inner_.claim(link, payload_bytes); }
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override {
    return inner_.claim_answer(link, payload_bytes);
  }
  void publish(Link& link, const PacketHeader& header) override {
    tell_packet();
    const std::uint64_t lent_end = std::exchange(lends_, false) ? inner_.loans()->next_packet(link) + 1 : 0;
    inner_.publish(link, header);
    if (observer_ != nullptr) observer_->published(process_, link.peer, header, lent_end);
  }
  void discard(Link& link) override {
    lends_ = false;
    inner_.discard(link);
  }
  bool peek(Packet& packet) override {
    if (!inner_.peek(packet)) return false;
    in_hand_.emplace(packet.source, packet.header);
    return true;
  }
  void release() override {
    tell_packet();
    inner_.release();
  }
  bool has_packets() override { return inner_.has_packets(); }
  bool has_room_again() override { return inner_.has_room_again(); }
  int check_peers() override { return inner_.check_peers(); }
  bool take_closed_source(ProcessId* source, void** engines) override {
    return inner_.take_closed_source(source, engines);
  }

  std::uint32_t most_lent_bytes(const Link& link) const override { return inner_.loans()->most_lent_bytes(link); }
  bool lend(Link& link, const Loan& loan) override { return lends_ = inner_.loans()->lend(link, loan); }
  std::uint64_t next_packet(const Link& link) const override { return inner_.loans()->next_packet(link); }
  bool has_taken(Link& link, std::uint64_t packet) override {
    if (!inner_.loans()->has_taken(link, packet)) return false;
    if (observer_ != nullptr) observer_->taken(process_, link.peer, packet);
    return true;
  }

  bool acknowledge(ProcessId sender, std::uint32_t operation_id) override {
    tell_packet();
    if (!inner_.completions()->acknowledge(sender, operation_id)) return false;
    if (observer_ != nullptr) observer_->acknowledged(process_, sender, operation_id);
    return true;
  }
  bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) override {
    tell_packet();
    if (!inner_.completions()->acknowledge_released(sender, life, operation_id)) return false;
    if (observer_ != nullptr) observer_->acknowledged(process_, sender, operation_id);
    return true;
  }
  std::uint32_t take_acknowledgement(Link& link) override {
    const std::uint32_t operation_id = inner_.completions()->take_acknowledgement(link);
    if (operation_id != 0 && observer_ != nullptr) observer_->acknowledgement_taken(process_, link.peer, operation_id);
    return operation_id;
  }
  bool has_acknowledgement(Link& link) override { return inner_.completions()->has_acknowledgement(link); }

 private:
  /// A packet is told of when the engine does something about it, or gives it back: what its sender has given back
  /// before, the engine asks first, and tells of first.
  void tell_packet() {
    if (!in_hand_) return;
    const auto [source, header] = *std::exchange(in_hand_, std::nullopt);
    if (observer_ != nullptr) observer_->peeked(process_, source, header);
  }

  Wire& inner_;
  WireObserver* observer_;
  std::size_t process_;                                        ///< For the observer.
  std::optional<std::pair<ProcessId, PacketHeader>> in_hand_;  ///< Of which the observer has not been told.
  bool lends_ = false;                                         ///< The claim that was made last is one by lend.
};

}  // namespace portofu::simulation
