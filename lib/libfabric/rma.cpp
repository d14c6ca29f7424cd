// fi_rma(3): reads and writes of registered memory. The key is the match bits.

#include "lib/libfabric/rma.h"

#include <array>

#include "lib/libfabric/cutter.h"
#include "lib/libfabric/info.h"
#include "lib/libfabric/parts.h"

namespace portofu::fabric {
namespace {

std::uint64_t length_of(const fi_rma_iov* remote, std::size_t count) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length = sum_of(length, remote[i].len);
  return length;
}

TransmitCall call_of(PacketType type, const iovec* pieces, std::size_t count, fi_addr_t target, void* context,
                     std::uint64_t flags) {
  TransmitCall call;
  call.word = type == PacketType::kGet ? WordKind::kRead : WordKind::kWrite;
  call.portal = PortalUse::kMemory;
  call.pieces = pieces;
  call.piece_count = count;
  call.target = target;
  call.context = context;
  call.flags = flags;
  return call;
}

/// What a call says of remote memory when it is one piece.
struct Remote {
  std::uint64_t address;
  std::uint64_t key;
};

ssize_t access(fid_ep* fid, PacketType type, const iovec* pieces, std::size_t count, fi_addr_t target,
               const Remote& remote, void* context) {
  if (!has_pieces(pieces, count)) return -FI_EINVAL;
  Endpoint& ep = endpoint_of(fid);
  Descriptor d;
  d.type = type;
  const fi_rma_iov one{remote.address, fabric::length_of(pieces, count), remote.key};
  return access_memory(ep, call_of(type, pieces, count, target, context, ep.sending()), d, &one, 1);
}

ssize_t read_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t target,
                    std::uint64_t address, std::uint64_t key, void* context) {
  return access(fid, PacketType::kGet, pieces, count, target, {address, key}, context);
}

ssize_t read_buffer(fid_ep* fid, void* buffer, std::size_t bytes, void* desc, fi_addr_t target, std::uint64_t address,
                    std::uint64_t key, void* context) {
  const iovec piece{buffer, bytes};
  return read_pieces(fid, &piece, &desc, 1, target, address, key, context);
}

ssize_t write_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t target,
                     std::uint64_t address, std::uint64_t key, void* context) {
  return access(fid, PacketType::kPut, pieces, count, target, {address, key}, context);
}

ssize_t write_buffer(fid_ep* fid, const void* buffer, std::size_t bytes, void* desc, fi_addr_t target,
                     std::uint64_t address, std::uint64_t key, void* context) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return write_pieces(fid, &piece, &desc, 1, target, address, key, context);
}

ssize_t access_message(fid_ep* fid, PacketType type, const fi_msg_rma* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  Descriptor d;
  d.type = type;
  d.hdr_data = msg->data;
  if (type == PacketType::kPut && (flags & FI_REMOTE_CQ_DATA) != 0) d.flags |= kFlagTellsData;
  return access_memory(ep, call_of(type, msg->msg_iov, msg->iov_count, msg->addr, msg->context, ep.sending(flags)), d,
                       msg->rma_iov, msg->rma_iov_count);
}

ssize_t read_message(fid_ep* fid, const fi_msg_rma* msg, std::uint64_t flags) {
  return access_message(fid, PacketType::kGet, msg, flags);
}
ssize_t write_message(fid_ep* fid, const fi_msg_rma* msg, std::uint64_t flags) {
  return access_message(fid, PacketType::kPut, msg, flags);
}

/// A write from one piece, with flags of its own.
/// @param data  nullptr: none
ssize_t write_with(fid_ep* fid, const iovec& piece, const std::uint64_t* data, fi_addr_t target, const Remote& remote,
                   const TransmitCall& like) {
  Descriptor d;
  d.type = PacketType::kPut;
  d.hdr_data = data != nullptr ? *data : 0;
  if (data != nullptr) d.flags |= kFlagTellsData;
  const fi_rma_iov one{remote.address, piece.iov_len, remote.key};
  return access_memory(endpoint_of(fid), call_of(d.type, &piece, 1, target, like.context, like.flags), d, &one, 1);
}

ssize_t inject(fid_ep* fid, const void* buffer, std::size_t bytes, fi_addr_t target, std::uint64_t address,
               std::uint64_t key) {
  TransmitCall like;
  like.context = endpoint_of(fid).context();
  like.flags = endpoint_of(fid).injecting();
  return write_with(fid, {const_cast<void*>(buffer), bytes}, nullptr, target, {address, key}, like);
}

ssize_t write_data(fid_ep* fid, const void* buffer, std::size_t bytes, void*, std::uint64_t data, fi_addr_t target,
                   std::uint64_t address, std::uint64_t key, void* context) {
  TransmitCall like;
  like.context = context;
  like.flags = endpoint_of(fid).sending();
  return write_with(fid, {const_cast<void*>(buffer), bytes}, &data, target, {address, key}, like);
}

ssize_t inject_data(fid_ep* fid, const void* buffer, std::size_t bytes, std::uint64_t data, fi_addr_t target,
                    std::uint64_t address, std::uint64_t key) {
  TransmitCall like;
  like.context = endpoint_of(fid).context();
  like.flags = endpoint_of(fid).injecting();
  return write_with(fid, {const_cast<void*>(buffer), bytes}, &data, target, {address, key}, like);
}

}  // namespace

ssize_t access_memory(Endpoint& ep, const TransmitCall& call, const Descriptor& like, const fi_rma_iov* remote,
                      std::size_t remote_count) {
  if (remote == nullptr || remote_count == 0 || remote_count > kMostRemotePieces) return -FI_EINVAL;
  if (!has_pieces(call.pieces, call.piece_count)) return -FI_EINVAL;
  if (length_of(remote, remote_count) != fabric::length_of(call.pieces, call.piece_count)) return -FI_EINVAL;
  Parts parts;
  if (const ssize_t result = parts.open(ep, call, like.type, remote_count); result != 0) return result;
  Cutter cutter(call.pieces, call.piece_count);
  for (std::size_t i = 0; i < remote_count; ++i) {
    std::array<iovec, kMostPieces> pieces;
    TransmitCall part = parts.cut(call, i);
    if (remote_count > 1) {
      part.piece_count = cutter.take(remote[i].len, pieces);
      part.pieces = pieces.data();
    }
    Descriptor d = like;
    d.match_bits = remote[i].key;
    d.remote_offset = remote[i].addr;
    d.length = remote[i].len;
    parts.tell_at_end(d, i);
    if (const ssize_t result = transmit(ep, part, d); result != 0) return parts.give_up(result, i);
  }
  return 0;
}

fi_ops_rma memory_calls = {
    .size = sizeof(fi_ops_rma),
    .read = read_buffer,
    .readv = read_pieces,
    .readmsg = read_message,
    .write = write_buffer,
    .writev = write_pieces,
    .writemsg = write_message,
    .inject = inject,
    .writedata = write_data,
    .injectdata = inject_data,
};

}  // namespace portofu::fabric
