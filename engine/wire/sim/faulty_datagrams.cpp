#include "engine/wire/sim/faulty_datagrams.h"

#include <charconv>
#include <string_view>

namespace portofu {
namespace {

struct Part {
  std::string_view name;
  std::uint32_t DatagramFaults::*value;
  std::uint32_t maximum;
};

constexpr Part kParts[] = {{"loss", &DatagramFaults::loss, DatagramFaults::kMostHundredths},
                           {"duplicate", &DatagramFaults::duplicate, DatagramFaults::kMostHundredths},
                           {"corrupt", &DatagramFaults::corrupt, DatagramFaults::kMostHundredths},
                           {"reorder", &DatagramFaults::reorder, DatagramFaults::kMostReorder},
                           {"seed", &DatagramFaults::seed, UINT32_MAX}};

/// @param text  "loss=10"
bool take_part(std::string_view text, DatagramFaults& faults) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  for (const Part& part : kParts) {
    if (part.name != text.substr(0, equals)) continue;
    const std::string_view number = text.substr(equals + 1);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc{} || end != number.data() + number.size() || value > part.maximum) return false;
    faults.*part.value = value;
    return true;
  }
  return false;
}

}  // namespace

std::optional<DatagramFaults> parse_datagram_faults(const std::string& text, std::string* why) {
  DatagramFaults faults;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    if (!take_part(part, faults)) {
      *why = "PORTOFU_DATAGRAM_FAULTS=" + text + ": \"" + std::string(part) + "\" is not one of";
      for (const Part& known : kParts) {
        why->append(" ").append(known.name).append("=0..").append(std::to_string(known.maximum));
      }
      return std::nullopt;
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return faults;
}

void FaultyDatagrams::damage(std::vector<std::byte>& bytes) {
  if (random_.below(8) == 0) return bytes.resize(1 + random_.below(bytes.size()));
  for (std::uint64_t bits = 1 + random_.below(8); bits > 0; --bits) {
    bytes[random_.below(bytes.size())] ^= static_cast<std::byte>(1u << random_.below(8));
  }
}

bool FaultyDatagrams::send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
                           std::span<const std::byte> body) {
  const int copies = chance(faults_.loss) ? 0 : chance(faults_.duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    if (chance(faults_.corrupt)) damage(bytes);
    if (faults_.reorder > 0 && random_.below(DatagramFaults::kReorderedOneIn) == 0) {
      aside_[process_key(peer)].push_back({std::move(bytes), traffic, 1 + random_.below(faults_.reorder)});
    } else if (!inner_->send(peer, traffic, bytes, {}) && copy == 0) {
      return false;
    }
  }
  set_free(peer);
  return true;
}

/// One more has been sent to the peer.
void FaultyDatagrams::set_free(ProcessId peer) {
  const auto found = aside_.find(process_key(peer));
  if (found == aside_.end()) return;
  std::erase_if(found->second, [&](Aside& aside) {
    if (aside.overtakers-- > 0) return false;
    inner_->send(peer, aside.traffic, aside.bytes, {});  // If there is no room it is lost.
    return true;
  });
}

}  // namespace portofu
