// fi_tagged(3): messages with tags. A tag is the match bits, and what is to be ignored of it the ignore bits.

#include <rdma/fi_tagged.h>

#include "lib/libfabric/receive.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {
namespace {

/// What a tagged message has beside memory and target.
struct Label {
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool has_data = false;  ///< FI_REMOTE_CQ_DATA.
};

ssize_t send_call(fid_ep* fid, const iovec* pieces, std::size_t count, const Label& label, fi_addr_t target,
                  void* context, std::uint64_t flags) {
  Descriptor d;
  d.length = length_of(pieces, count);
  d.match_bits = label.tag;
  d.hdr_data = label.data;
  d.tells_data = label.has_data;
  const TransmitCall call{WordKind::kTaggedSend, PortalUse::kTagged, pieces, count, target, context, flags};
  return transmit(endpoint_of(fid), call, d);
}

ssize_t receive_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t source, std::uint64_t tag,
                       std::uint64_t ignore, void* context) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.rx == nullptr) return -FI_EOPBADSTATE;
  return receive(ep,
                 {pieces, count, source, tag, ignore, context, ep.receiving() & ~std::uint64_t{FI_MULTI_RECV}, true});
}

ssize_t receive_buffer(fid_ep* fid, void* buffer, std::size_t bytes, void* desc, fi_addr_t source, std::uint64_t tag,
                       std::uint64_t ignore, void* context) {
  const iovec piece{buffer, bytes};
  return receive_pieces(fid, &piece, &desc, 1, source, tag, ignore, context);
}

ssize_t receive_message(fid_ep* fid, const fi_msg_tagged* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.rx == nullptr) return -FI_EOPBADSTATE;
  return receive(
      ep, {msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->ignore, msg->context, ep.receiving(flags), true});
}

ssize_t send_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t target, std::uint64_t tag,
                    void* context) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.tx == nullptr) return -FI_EOPBADSTATE;
  return send_call(fid, pieces, count, {tag}, target, context, ep.sending());
}

ssize_t send_buffer(fid_ep* fid, const void* buffer, std::size_t bytes, void* desc, fi_addr_t target, std::uint64_t tag,
                    void* context) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_pieces(fid, &piece, &desc, 1, target, tag, context);
}

ssize_t send_message(fid_ep* fid, const fi_msg_tagged* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.tx == nullptr) return -FI_EOPBADSTATE;
  const Label label{msg->tag, msg->data, (flags & FI_REMOTE_CQ_DATA) != 0};
  return send_call(fid, msg->msg_iov, msg->iov_count, label, msg->addr, msg->context, ep.sending(flags));
}

ssize_t send_data(fid_ep* fid, const void* buffer, std::size_t bytes, void*, std::uint64_t data, fi_addr_t target,
                  std::uint64_t tag, void* context) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.tx == nullptr) return -FI_EOPBADSTATE;
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_call(fid, &piece, 1, {tag, data, true}, target, context, ep.sending());
}

ssize_t inject(fid_ep* fid, const void* buffer, std::size_t bytes, fi_addr_t target, std::uint64_t tag) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_call(fid, &piece, 1, {tag}, target, nullptr, FI_INJECT);
}

ssize_t inject_data(fid_ep* fid, const void* buffer, std::size_t bytes, std::uint64_t data, fi_addr_t target,
                    std::uint64_t tag) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_call(fid, &piece, 1, {tag, data, true}, target, nullptr, FI_INJECT);
}

}  // namespace

fi_ops_tagged tagged_calls = {
    .size = sizeof(fi_ops_tagged),
    .recv = receive_buffer,
    .recvv = receive_pieces,
    .recvmsg = receive_message,
    .send = send_buffer,
    .sendv = send_pieces,
    .sendmsg = send_message,
    .inject = inject,
    .senddata = send_data,
    .injectdata = inject_data,
};

}  // namespace portofu::fabric
