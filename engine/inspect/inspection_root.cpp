#include "engine/inspect/inspection_root.h"

#include "engine/core/sleeping_call.h"

namespace portofu {
namespace {

/// FNV-1a.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (value >> 8 * byte & 0xff)) * 0x100000001b3u;
  return hash;
}

constexpr std::uint64_t mix_text(std::uint64_t hash, const char* text) {
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<std::uint8_t>(*text)) * 0x100000001b3u;
  return hash;
}

template <class... Types>
constexpr std::uint64_t mix_sizes(std::uint64_t hash) {
  ((hash = mix(hash, sizeof(Types) << 16 | alignof(Types))), ...);
  return hash;
}

/// Raised by whoever moves a field of these structures without changing the size of any.
constexpr std::uint64_t kFieldOrder = 2;

}  // namespace

// The compiler and its library lay out what is not ours. Builds of the same sources with other options, with the same
// sizes, understand each other: the test programs, which have the engine inside, are read by the tools beside them.
std::uint64_t layout_stamp() {
  constexpr std::uint64_t kOwn =
      mix_sizes<InspectionRoot, Core, Interface, PortalTableEntry, MatchList, ListEntry, UnexpectedList,
                UnexpectedHeader, EventQueue, CountingEvent, TriggeredOperation, MemoryDescriptor, OutstandingTable,
                OutstandingOperation, Peer, Outbox, RankMap, SleepingCall, Tofu, VirtualControlQueue, BarrierGate>(
          mix(0xcbf29ce484222325u, kFieldOrder));
  constexpr std::uint64_t kAll = mix_text(kOwn, __VERSION__);
  return kAll;
}

}  // namespace portofu
