#pragma once
// The checksum of frames: CRC32C (Castagnoli), which CPUs have an instruction for.

#include <cstddef>
#include <cstdint>
#include <span>

namespace portofu {

/// @param crc  of the bytes before these; 0 for none
/// @return of all bytes so far
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

/// The same without the instruction of the CPU.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace portofu
