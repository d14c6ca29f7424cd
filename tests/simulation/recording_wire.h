#pragma once
// A wire that tells an observer of every packet, at the moment when it leaves and just before the engine handles it.

#include "engine/wire/wire.h"

namespace portofu::simulation {

/// Who is told.
class WireObserver {
 public:
  virtual ~WireObserver() = default;
  virtual void published(std::size_t process, ProcessId peer, const PacketHeader& header) = 0;
  virtual void peeked(std::size_t process, ProcessId source, const PacketHeader& header) = 0;
};

/// Passes everything on to another wire.
class RecordingWire final : public Wire {
 public:
  /// @param inner     outlives this wire
  /// @param observer  nullptr: nobody is told
  RecordingWire(Wire& inner, WireObserver* observer, std::size_t process)
      : Wire(inner.limits(), inner.facets()), inner_(inner), observer_(observer), process_(process) {}

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
    inner_.publish(link, header);
    if (observer_ != nullptr) observer_->published(process_, link.peer, header);
  }
  void discard(Link& link) override { inner_.discard(link); }
  bool peek(Packet& packet) override {
    if (!inner_.peek(packet)) return false;
    if (observer_ != nullptr) observer_->peeked(process_, packet.source, packet.header);
    return true;
  }
  void release() override { inner_.release(); }
  bool has_packets() override { return inner_.has_packets(); }
  bool has_room_again() override { return inner_.has_room_again(); }
  int check_peers() override { return inner_.check_peers(); }
  bool take_closed_source(ProcessId* source, void** engines) override {
    return inner_.take_closed_source(source, engines);
  }

 private:
  Wire& inner_;
  WireObserver* observer_;
  std::size_t process_;  ///< For the observer.
};

}  // namespace portofu::simulation
