#pragma once
// Shows what another wire carries: a wire over it that writes every packet, sent and received, to a file that Wireshark
// reads. The setting PORTOFU_PCAPNG puts it between an engine and each of its wires, above the disorder of
// PORTOFU_SHUFFLE.
//
// What needs no packet would be missing in the file, so it is switched off: memory of peers is reached by packets only.
// Acknowledgements without packets are written as such. The payload that is lent is written by its sender.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "engine/topology/process_id.h"
#include "engine/wire/capture/capture_file.h"
#include "engine/wire/completions.h"
#include "engine/wire/loans.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Wire over another wire. Used by the thread on duty.
class CaptureWire final : public Wire, public Loans, public Completions {
 public:
  /// @param inner  outlives this wire; nobody else uses it
  /// @param self   whose wire it is
  /// @param file   outlives this wire
  CaptureWire(Wire& inner, ProcessId self, CaptureMedium medium, CaptureFile& file)
      : Wire(inner.limits(), {.loans = inner.loans() != nullptr ? this : nullptr,
                              .copies = inner.copies(),
                              .peer_memory = nullptr,
                              .completions = inner.completions() != nullptr ? this : nullptr,
                              .other_nodes = inner.other_nodes()}),
        inner_(inner),
        self_(self),
        medium_(medium),
        file_(file) {}

  ConnectResult connect(ProcessId peer, Link** link) override { return inner_.connect(peer, link); }
  void disconnect(Link* link) override;
  bool leads_to_name(Link& link) override { return inner_.leads_to_name(link); }
  bool has_unheard(ProcessId peer, std::uint64_t life) override { return inner_.has_unheard(peer, life); }
  void give_up(ProcessId peer) override { inner_.give_up(peer); }
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override;
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link& link) override;
  bool peek(Packet& packet) override;
  void release() override { inner_.release(); }
  bool has_packets() override { return inner_.has_packets(); }
  bool has_room_again() override { return inner_.has_room_again(); }
  int check_peers() override { return inner_.check_peers(); }
  bool take_closed_source(ProcessId* source, void** engines) override {
    return inner_.take_closed_source(source, engines);
  }

  std::uint32_t most_lent_bytes(const Link& link) const override { return inner_.loans()->most_lent_bytes(link); }
  bool lend(Link& link, const Loan& loan) override;
  std::uint64_t next_packet(const Link& link) const override { return inner_.loans()->next_packet(link); }
  bool has_taken(Link& link, std::uint64_t packet) override { return inner_.loans()->has_taken(link, packet); }

  bool acknowledge(ProcessId sender, std::uint32_t operation_id) override;
  bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) override;
  std::uint32_t take_acknowledgement(Link& link) override;
  bool has_acknowledgement(Link& link) override { return inner_.completions()->has_acknowledgement(link); }

 private:
  CaptureRecord record_of(CaptureDirection direction, ProcessId peer) const;
  void note_acknowledgement(std::uint64_t time_ns, CaptureDirection direction, ProcessId peer,
                            std::uint32_t operation_id);

  Wire& inner_;
  const ProcessId self_;
  const CaptureMedium medium_;
  CaptureFile& file_;
  std::unordered_map<const Link*, const std::byte*> claimed_;  ///< Between claim and publish: the payload.
};

}  // namespace portofu
