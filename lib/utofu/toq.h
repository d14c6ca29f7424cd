#pragma once
// What start, preparation and batch start share: arguments become cells, cells become descriptors of the engine.

#include "lib/utofu/limits.h"

namespace portofu::utofu {

/// What the arguments of one call say. Most calls have a part of it.
struct Request {
  PacketType kind = PacketType::kTofuNop;
  std::uint64_t remote_vcq_id = 0;
  std::uint64_t local = 0;  ///< STADD; piggyback8: data; ARMW: value.
  std::uint64_t remote_stadd = 0;
  std::size_t length = 0;
  std::uint64_t edata = 0;
  unsigned long flags = 0;
  std::size_t stride = 0;
  std::size_t block_count = 1;
  std::size_t mtu = 0;
  std::size_t gap = 0;
  const void* data = nullptr;  ///< Piggyback.
  bool has_data = false;       ///< Piggyback with a pointer.
  int armw_op = 0;             ///< utofu_armw_op; 0: compare and swap with `compared`.
  std::uint64_t compared = 0;
};

/// The engine's name of an operation of an ARMW. @return false if the guide has no such operation
constexpr bool find_operation(int armw_op, AtomicOperation* operation) {
  switch (armw_op) {
    case UTOFU_ARMW_OP_SWAP: *operation = AtomicOperation::kSwap; return true;
    case UTOFU_ARMW_OP_ADD: *operation = AtomicOperation::kSum; return true;
    case UTOFU_ARMW_OP_XOR: *operation = AtomicOperation::kBxor; return true;
    case UTOFU_ARMW_OP_AND: *operation = AtomicOperation::kBand; return true;
    case UTOFU_ARMW_OP_OR: *operation = AtomicOperation::kBor; return true;
    default: return false;
  }
}

/// Where a call goes: to the TOQ with callback data, or into the caller's memory.
struct Destination {
  void* callback_data = nullptr;
  void* desc = nullptr;
  std::size_t* desc_size = nullptr;
  bool prepares = false;
};

/// Checks the request, and posts or prepares it.
int submit(utofu_vcq_hdl_t vcq_hdl, const Request& request, const Destination& destination);

}  // namespace portofu::utofu
