#include "engine/wire/reliable/frame.h"

#include <cstring>

#include "engine/wire/reliable/crc32c.h"

namespace portofu {
namespace {

std::uint32_t checksum_of(const FrameHeader& header, std::span<const std::byte> body) {
  const auto bytes = std::as_bytes(std::span(&header, 1)).subspan(sizeof header.checksum);
  return crc32c(body, crc32c(bytes));
}

}  // namespace

void seal_frame(FrameHeader& header, std::span<const std::byte> body) {
  header.format = kFrameFormat;
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  header.checksum = checksum_of(header, body);
}

bool open_frame(std::span<const std::byte> datagram, FrameHeader* header, std::span<const std::byte>* body) {
  if (datagram.size() < sizeof(FrameHeader)) return false;
  FrameHeader copy;
  std::memcpy(&copy, datagram.data(), sizeof copy);
  const auto rest = datagram.subspan(sizeof copy);
  if (copy.format != kFrameFormat || copy.body_bytes != rest.size()) return false;
  if (copy.checksum != checksum_of(copy, rest)) return false;
  if (static_cast<std::size_t>(copy.traffic) >= kTrafficClassCount) return false;
  *header = copy;
  *body = rest;
  return true;
}

}  // namespace portofu
