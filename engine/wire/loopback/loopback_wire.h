#pragma once
// The wire to oneself: the ring of the shared-memory wire in private memory, one link, one source.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/queue/cell_ring.h"
#include "engine/topology/process_id.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Carries packets of a process to itself. Reliable and ordered. Used by the thread on duty, which never sleeps on it:
/// who sends is who receives.
class LoopbackWire final : public Wire {
 public:
  explicit LoopbackWire(ProcessId self, const RingGeometry& ring = {});

  ConnectResult connect(ProcessId peer, Link** link) override;
  void disconnect(Link* link) override;
  bool leads_to_name(Link& link) override { return !link.lost; }

  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link& link) override;

  bool peek(Packet& packet) override;
  void release() override;
  bool has_packets() override;
  bool has_room_again() override;
  int check_peers() override { return 0; }

  /// Whoever asks for the dead is alive.
  bool has_unheard(ProcessId, std::uint64_t) override { return false; }
  void give_up(ProcessId) override {}

  /// The one source is closed after a disconnect, once all its packets are taken.
  bool take_closed_source(ProcessId* source, void** engines) override;

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const;
  };

  RingGeometry ring_;
  std::unique_ptr<std::byte, FreeMemory> memory_;  ///< ring_.bytes() bytes.
  CellProducer<PacketHeader> producer_;
  CellConsumer<PacketHeader> consumer_;
  Link link_;
  bool connected_ = false;    ///< Between connect and disconnect.
  bool source_open_ = false;  ///< From connect until take_closed_source.
  bool blocked_ = false;      ///< A claim has failed since has_room_again said so.
  SourceContext source_;
};

}  // namespace portofu
