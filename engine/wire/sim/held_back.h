#pragma once
// What wires share that lie over another wire and hold back what it has brought.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/wire/header.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Payload of the message that comes in further packets. An acknowledgement has a length, and no payload at all.
inline std::uint64_t bytes_to_come(const PacketHeader& header) {
  const bool streams = header.type == PacketType::kPut || header.type == PacketType::kTofuPut ||
                       (header.type == PacketType::kAnswer && header.payload_bytes > 0);
  return streams && header.length > header.payload_bytes ? header.length - header.payload_bytes : 0;
}

/// The wire's own source of a packet of the wire below, which keeps its address as the source's context; made anew for
/// the first packet.
/// @param Source  a SourceContext with an `id`
template <class Source>
Source& held_source(std::vector<std::unique_ptr<Source>>& sources, const Packet& packet) {
  if (packet.source_context->engines == nullptr) {
    sources.push_back(std::make_unique<Source>());
    sources.back()->id = packet.source;
    sources.back()->life = packet.source_context->life;
    packet.source_context->engines = sources.back().get();
  }
  return *static_cast<Source*>(packet.source_context->engines);
}

}  // namespace portofu
