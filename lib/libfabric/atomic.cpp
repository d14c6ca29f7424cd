// fi_atomic(3): all 354 combinations of operation, type and family, done by the engine's atomic unit.

#include "lib/libfabric/atomic.h"

#include <algorithm>
#include <array>

#include "engine/door/libfabric.h"
#include "lib/libfabric/cutter.h"
#include "lib/libfabric/info.h"
#include "lib/libfabric/parts.h"

namespace portofu::fabric {
namespace {

constexpr std::array kTypes = {AtomicType::kInt8,         AtomicType::kUint8,
                               AtomicType::kInt16,        AtomicType::kUint16,
                               AtomicType::kInt32,        AtomicType::kUint32,
                               AtomicType::kInt64,        AtomicType::kUint64,
                               AtomicType::kFloat,        AtomicType::kDouble,
                               AtomicType::kFloatComplex, AtomicType::kDoubleComplex,
                               AtomicType::kLongDouble,   AtomicType::kLongDoubleComplex};
static_assert(kTypes.size() == FI_DATATYPE_LAST && FI_FLOAT == 8 && FI_LONG_DOUBLE_COMPLEX == 13);

constexpr std::array kOperations = {
    AtomicOperation::kMin,     AtomicOperation::kMax,     AtomicOperation::kSum,        AtomicOperation::kProd,
    AtomicOperation::kLor,     AtomicOperation::kLand,    AtomicOperation::kBor,        AtomicOperation::kBand,
    AtomicOperation::kLxor,    AtomicOperation::kBxor,    AtomicOperation::kAtomicRead, AtomicOperation::kAtomicWrite,
    AtomicOperation::kCswap,   AtomicOperation::kCswapNe, AtomicOperation::kCswapLe,    AtomicOperation::kCswapLt,
    AtomicOperation::kCswapGe, AtomicOperation::kCswapGt, AtomicOperation::kMswap};
static_assert(kOperations.size() == FI_ATOMIC_OP_LAST && FI_ATOMIC_READ == 10 && FI_MSWAP == 18);

constexpr AtomicUse use_of(AtomicFamily family) {
  switch (family) {
    case AtomicFamily::kFetch: return AtomicUse::kFetchAtomic;
    case AtomicFamily::kCompare: return AtomicUse::kSwap;
    default: return AtomicUse::kAtomic;
  }
}

constexpr PacketType type_of(AtomicFamily family) {
  switch (family) {
    case AtomicFamily::kFetch: return PacketType::kFetchAtomic;
    case AtomicFamily::kCompare: return PacketType::kSwap;
    default: return PacketType::kAtomic;
  }
}

/// Items as bytes.
struct Pieces {
  std::array<iovec, kMostPieces> pieces;
  std::size_t count = 0;
  std::uint64_t items = 0;

  /// @return false if there are too many pieces
  bool fill(const fi_ioc* from, std::size_t from_count, std::size_t item_bytes) {
    if (from_count > kMostPieces || (from_count != 0 && from == nullptr)) return false;
    for (std::size_t i = 0; i < from_count; ++i) {
      items = sum_of(items, from[i].count);
      if (from[i].count != 0) pieces[count++] = {from[i].addr, from[i].count * item_bytes};
    }
    return true;
  }
};

struct Operands {
  std::size_t item_bytes = 0;
  Pieces source;
  Pieces results;
  Pieces compares;
  std::uint64_t remote_items = 0;
  std::size_t remote_pieces = 0;  ///< That are not empty.

  /// @return false if there are too many pieces, or it is an atomic on a receive in several
  bool fill_remote(const fi_msg_atomic& msg, bool tagged) {
    if (msg.rma_iov == nullptr || msg.rma_iov_count > (tagged ? 1 : kMostRemotePieces)) return false;
    for (std::size_t i = 0; i < msg.rma_iov_count; ++i) {
      remote_items = sum_of(remote_items, msg.rma_iov[i].count);
      remote_pieces += msg.rma_iov[i].count != 0 ? 1 : 0;
    }
    return true;
  }
};

/// @param operands  `item_bytes` is set
/// @return 0 | -FI_EINVAL | -FI_EMSGSIZE
ssize_t collect(const AtomicCall& call, std::size_t most, Operands* operands) {
  const fi_msg_atomic& msg = *call.msg;
  const std::size_t item_bytes = operands->item_bytes;
  const bool fetches = call.family != AtomicFamily::kBase;
  const bool only_reads = msg.op == FI_ATOMIC_READ;
  if (!operands->fill_remote(msg, (call.flags & FI_TAGGED) != 0)) return -FI_EINVAL;
  if (fetches && !operands->results.fill(call.results, call.result_count, item_bytes)) return -FI_EINVAL;
  // What only reads has no source: anything that may be read does as one.
  const bool filled = only_reads ? operands->source.fill(call.results, call.result_count, item_bytes)
                                 : operands->source.fill(msg.msg_iov, msg.iov_count, item_bytes);
  const std::uint64_t items = operands->source.items;
  if (call.family == AtomicFamily::kCompare &&
      (!operands->compares.fill(call.compares, call.compare_count, item_bytes) || operands->compares.items != items))
    return -FI_EINVAL;
  if (!filled || items != operands->remote_items || (fetches && items != operands->results.items)) return -FI_EINVAL;
  if (items > most) return -FI_EMSGSIZE;
  return items != 0 ? 0 : -FI_EINVAL;
}

/// Items that one operation compares: what is compared travels beside the data, in a place of its own.
constexpr std::uint64_t compared_at_once(std::size_t item_bytes) { return kMaxOperandBytes / item_bytes; }

/// Each remote piece is an operation of its own, and of a call that compares as many items as go at once.
std::size_t count_parts(const AtomicCall& call, const Operands& operands) {
  if (call.family != AtomicFamily::kCompare) return operands.remote_pieces;
  const std::uint64_t most = compared_at_once(operands.item_bytes);
  std::size_t count = 0;
  for (std::size_t i = 0; i < call.msg->rma_iov_count; ++i) count += (call.msg->rma_iov[i].count + most - 1) / most;
  return count;
}

/// Transmits a part with what it compares, which of deferred work is read when that starts.
ssize_t transmit_comparing(Endpoint& ep, const TransmitCall& part, Cutter& compared, Descriptor& d) {
  std::array<iovec, kMostPieces> pieces;
  const std::size_t count = compared.take(d.length, pieces);
  d.portals.operand_bytes = static_cast<std::uint8_t>(d.length);
  d.operand = {};
  if (part.deferral.owner != nullptr) return transmit_compared(ep, part, d, {pieces.data(), count});
  std::byte* at = d.operand.data();
  for (std::size_t i = 0; i < count; ++i)
    at = std::copy_n(static_cast<const std::byte*>(pieces[i].iov_base), pieces[i].iov_len, at);
  return transmit(ep, part, d);
}

ssize_t transmit_parts(Endpoint& ep, const AtomicCall& call, const TransmitCall& whole, const Descriptor& like,
                       const Operands& operands) {
  const bool compares = call.family == AtomicFamily::kCompare;
  Parts parts;
  const bool fetches = call.family != AtomicFamily::kBase;
  if (const ssize_t opened = parts.open(ep, whole, like.type, count_parts(call, operands)); opened != 0) return opened;
  Cutter source(operands.source.pieces.data(), operands.source.count);
  Cutter results(operands.results.pieces.data(), operands.results.count);
  Cutter compared(operands.compares.pieces.data(), operands.compares.count);
  std::array<iovec, kMostPieces> source_pieces, result_pieces;
  std::size_t index = 0;
  for (std::size_t i = 0; i < call.msg->rma_iov_count; ++i) {
    const fi_rma_ioc& remote = call.msg->rma_iov[i];
    const std::uint64_t most = compares ? compared_at_once(operands.item_bytes) : remote.count;
    for (std::uint64_t item = 0; item < remote.count; item += most, ++index) {
      TransmitCall part = parts.cut(whole, index);
      Descriptor d = like;
      d.match_bits = remote.key;
      d.remote_offset = remote.addr + item * operands.item_bytes;
      d.length = std::min(most, remote.count - item) * operands.item_bytes;
      parts.tell_at_end(d, index);
      part.pieces = source_pieces.data();
      part.piece_count = source.take(d.length, source_pieces);
      if (fetches) part.result_count = results.take(d.length, result_pieces);
      part.results = result_pieces.data();
      const ssize_t posted = compares ? transmit_comparing(ep, part, compared, d) : transmit(ep, part, d);
      if (posted != 0) return parts.give_up(posted, index);
    }
  }
  return 0;
}

}  // namespace

std::size_t most_items(AtomicFamily family, fi_datatype datatype, fi_op op, bool tagged) {
  if (static_cast<std::size_t>(datatype) >= kTypes.size() || static_cast<std::size_t>(op) >= kOperations.size())
    return 0;
  if (!fabric_atomic_is_legal(kOperations[op], kTypes[datatype], use_of(family))) return 0;
  const std::uint32_t item_bytes = atomic_type_bytes(kTypes[datatype]);
  // More items are compared by several operations, and the first would end the receive.
  if (tagged && family == AtomicFamily::kCompare) return compared_at_once(item_bytes);
  return kMaxAtomicBytes / item_bytes;
}

ssize_t run_atomic(Endpoint& ep, const AtomicCall& call) {
  const fi_msg_atomic& msg = *call.msg;
  const bool tagged = (call.flags & FI_TAGGED) != 0;
  const std::size_t most = most_items(call.family, msg.datatype, msg.op, tagged);
  if (most == 0) return -FI_EOPNOTSUPP;
  Operands operands;
  operands.item_bytes = atomic_type_bytes(kTypes[msg.datatype]);
  if (const ssize_t result = collect(call, most, &operands); result != 0) return result;
  Descriptor d;
  d.type = type_of(call.family);
  d.atomic_operation = static_cast<std::uint8_t>(kOperations[msg.op]);
  d.atomic_type = static_cast<std::uint8_t>(kTypes[msg.datatype]);
  d.hdr_data = msg.data;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) d.flags |= kFlagTellsData;
  TransmitCall whole;
  whole.word = call.family == AtomicFamily::kBase ? WordKind::kAtomic : WordKind::kFetchAtomic;
  whole.portal = tagged ? PortalUse::kTagged : PortalUse::kMemory;
  whole.target = msg.addr;
  whole.context = msg.context;
  whole.flags = call.flags;
  whole.deferral = call.deferral;
  return transmit_parts(ep, call, whole, d, operands);
}

namespace {

/// What the calls with arguments of their own have in common.
struct Plain {
  fi_rma_ioc remote;
  fi_msg_atomic msg;

  Plain(const fi_ioc* pieces, std::size_t count, fi_addr_t target, std::uint64_t address, std::uint64_t key,
        fi_datatype datatype, fi_op op, void* context)
      : remote{address, 0, key}, msg{pieces, nullptr, count, target, &remote, 1, datatype, op, context, 0} {
    for (std::size_t i = 0; pieces != nullptr && i < count; ++i) remote.count = sum_of(remote.count, pieces[i].count);
  }
};

ssize_t write_pieces(fid_ep* fid, const fi_ioc* pieces, void**, std::size_t count, fi_addr_t target,
                     std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op op, void* context) {
  Endpoint& ep = endpoint_of(fid);
  const Plain plain(pieces, count, target, address, key, datatype, op, context);
  AtomicCall call{AtomicFamily::kBase, &plain.msg};
  call.flags = ep.sending();
  return run_atomic(ep, call);
}

ssize_t write_items(fid_ep* fid, const void* items, std::size_t count, void*, fi_addr_t target, std::uint64_t address,
                    std::uint64_t key, fi_datatype datatype, fi_op op, void* context) {
  const fi_ioc piece{const_cast<void*>(items), count};
  return write_pieces(fid, &piece, nullptr, 1, target, address, key, datatype, op, context);
}

ssize_t write_message(fid_ep* fid, const fi_msg_atomic* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  AtomicCall call{AtomicFamily::kBase, msg};
  call.flags = ep.sending(flags);
  return run_atomic(ep, call);
}

ssize_t inject(fid_ep* fid, const void* items, std::size_t count, fi_addr_t target, std::uint64_t address,
               std::uint64_t key, fi_datatype datatype, fi_op op) {
  Endpoint& ep = endpoint_of(fid);
  const fi_ioc piece{const_cast<void*>(items), count};
  const Plain plain(&piece, 1, target, address, key, datatype, op, ep.context());
  AtomicCall call{AtomicFamily::kBase, &plain.msg};
  call.flags = ep.injecting();
  return run_atomic(ep, call);
}

ssize_t fetch_message(fid_ep* fid, const fi_msg_atomic* msg, fi_ioc* results, void**, std::size_t result_count,
                      std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  AtomicCall call{AtomicFamily::kFetch, msg, results, result_count};
  call.flags = ep.sending(flags);
  return run_atomic(ep, call);
}

ssize_t fetch_pieces(fid_ep* fid, const fi_ioc* pieces, void**, std::size_t count, fi_ioc* results, void**,
                     std::size_t result_count, fi_addr_t target, std::uint64_t address, std::uint64_t key,
                     fi_datatype datatype, fi_op op, void* context) {
  Endpoint& ep = endpoint_of(fid);
  const bool reads = op == FI_ATOMIC_READ;
  const Plain plain(reads ? results : pieces, reads ? result_count : count, target, address, key, datatype, op,
                    context);
  AtomicCall call{AtomicFamily::kFetch, &plain.msg, results, result_count};
  call.flags = ep.sending();
  return run_atomic(ep, call);
}

ssize_t fetch_items(fid_ep* fid, const void* items, std::size_t count, void*, void* result, void*, fi_addr_t target,
                    std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op op, void* context) {
  const fi_ioc piece{const_cast<void*>(items), count};
  fi_ioc fetched{result, count};
  return fetch_pieces(fid, &piece, nullptr, 1, &fetched, nullptr, 1, target, address, key, datatype, op, context);
}

ssize_t compare_message(fid_ep* fid, const fi_msg_atomic* msg, const fi_ioc* compares, void**,
                        std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                        std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  AtomicCall call{AtomicFamily::kCompare, msg, results, result_count, compares, compare_count};
  call.flags = ep.sending(flags);
  return run_atomic(ep, call);
}

ssize_t compare_pieces(fid_ep* fid, const fi_ioc* pieces, void**, std::size_t count, const fi_ioc* compares, void**,
                       std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count, fi_addr_t target,
                       std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op op, void* context) {
  Endpoint& ep = endpoint_of(fid);
  const Plain plain(pieces, count, target, address, key, datatype, op, context);
  AtomicCall call{AtomicFamily::kCompare, &plain.msg, results, result_count, compares, compare_count};
  call.flags = ep.sending();
  return run_atomic(ep, call);
}

ssize_t compare_items(fid_ep* fid, const void* items, std::size_t count, void*, const void* compare, void*,
                      void* result, void*, fi_addr_t target, std::uint64_t address, std::uint64_t key,
                      fi_datatype datatype, fi_op op, void* context) {
  const fi_ioc piece{const_cast<void*>(items), count};
  const fi_ioc compared{const_cast<void*>(compare), count};
  fi_ioc fetched{result, count};
  return compare_pieces(fid, &piece, nullptr, 1, &compared, nullptr, 1, &fetched, nullptr, 1, target, address, key,
                        datatype, op, context);
}

template <AtomicFamily kFamily>
int is_valid(fid_ep*, fi_datatype datatype, fi_op op, std::size_t* count) {
  const std::size_t most = most_items(kFamily, datatype, op, false);
  if (most == 0) return -FI_EOPNOTSUPP;
  if (count != nullptr) *count = most;
  return 0;
}

}  // namespace

int query_atomic(fid_domain*, fi_datatype datatype, fi_op op, fi_atomic_attr* attr, std::uint64_t flags) {
  if (attr == nullptr || (flags & ~std::uint64_t{FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED}) != 0)
    return -FI_EINVAL;
  const bool fetches = (flags & FI_FETCH_ATOMIC) != 0;
  const bool compares = (flags & FI_COMPARE_ATOMIC) != 0;
  if (fetches && compares) return -FI_EINVAL;
  const AtomicFamily family = fetches ? AtomicFamily::kFetch : compares ? AtomicFamily::kCompare : AtomicFamily::kBase;
  attr->count = most_items(family, datatype, op, (flags & FI_TAGGED) != 0);
  if (attr->count == 0) return -FI_EOPNOTSUPP;
  attr->size = atomic_type_bytes(kTypes[datatype]);
  return 0;
}

fi_ops_atomic atomic_calls = {
    .size = sizeof(fi_ops_atomic),
    .write = write_items,
    .writev = write_pieces,
    .writemsg = write_message,
    .inject = inject,
    .readwrite = fetch_items,
    .readwritev = fetch_pieces,
    .readwritemsg = fetch_message,
    .compwrite = compare_items,
    .compwritev = compare_pieces,
    .compwritemsg = compare_message,
    .writevalid = is_valid<AtomicFamily::kBase>,
    .readwritevalid = is_valid<AtomicFamily::kFetch>,
    .compwritevalid = is_valid<AtomicFamily::kCompare>,
};

}  // namespace portofu::fabric
