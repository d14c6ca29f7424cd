#pragma once
// Requests and answers. A request may have to wait for answers, so answers must never wait for requests: J. C. Hoe's
// thesis (2.10) shows the circle that stands still otherwise. A medium or wire that holds packets keeps room for
// answers that requests cannot take.

#include <cstddef>
#include <cstdint>

#include "engine/wire/header.h"

namespace portofu {

enum class TrafficClass : std::uint8_t {
  kRequest = 0,
  kAnswer = 1,  ///< Also acknowledgements: whatever can be taken without sending anything.
};
inline constexpr std::size_t kTrafficClassCount = 2;

inline TrafficClass traffic_class_of(const PacketHeader& header) {
  return is_of_answer(header) ? TrafficClass::kAnswer : TrafficClass::kRequest;
}

}  // namespace portofu
