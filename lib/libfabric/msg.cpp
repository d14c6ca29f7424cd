// fi_msg(3): messages without tags.

#include "lib/libfabric/receive.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {
namespace {

struct Data {
  std::uint64_t value = 0;
  bool wanted = false;  ///< FI_REMOTE_CQ_DATA.
};

ssize_t send_call(fid_ep* fid, const iovec* pieces, std::size_t count, Data data, fi_addr_t target, void* context,
                  std::uint64_t flags) {
  Descriptor d;
  d.length = length_of(pieces, count);
  d.hdr_data = data.value;
  d.tells_data = data.wanted;
  const TransmitCall call{WordKind::kSend, PortalUse::kMessage, pieces, count, target, context, flags};
  return transmit(endpoint_of(fid), call, d);
}

std::uint64_t sending(fid_ep* fid) { return endpoint_of(fid).sending(); }
std::uint64_t receiving(fid_ep* fid) { return endpoint_of(fid).receiving(); }

ssize_t receive_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t source, void* context) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.rx == nullptr) return -FI_EOPBADSTATE;
  return receive(ep, {pieces, count, source, 0, 0, context, receiving(fid), false});
}

ssize_t receive_buffer(fid_ep* fid, void* buffer, std::size_t bytes, void* desc, fi_addr_t source, void* context) {
  const iovec piece{buffer, bytes};
  return receive_pieces(fid, &piece, &desc, 1, source, context);
}

ssize_t receive_message(fid_ep* fid, const fi_msg* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.rx == nullptr) return -FI_EOPBADSTATE;
  return receive(ep, {msg->msg_iov, msg->iov_count, msg->addr, 0, 0, msg->context, ep.receiving(flags), false});
}

ssize_t send_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t target, void* context) {
  if (endpoint_of(fid).tx == nullptr) return -FI_EOPBADSTATE;
  return send_call(fid, pieces, count, {}, target, context, sending(fid));
}

ssize_t send_buffer(fid_ep* fid, const void* buffer, std::size_t bytes, void* desc, fi_addr_t target, void* context) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_pieces(fid, &piece, &desc, 1, target, context);
}

ssize_t send_message(fid_ep* fid, const fi_msg* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  if (ep.tx == nullptr) return -FI_EOPBADSTATE;
  const Data data{msg->data, (flags & FI_REMOTE_CQ_DATA) != 0};
  return send_call(fid, msg->msg_iov, msg->iov_count, data, msg->addr, msg->context, ep.sending(flags));
}

ssize_t send_data(fid_ep* fid, const void* buffer, std::size_t bytes, void*, std::uint64_t data, fi_addr_t target,
                  void* context) {
  if (endpoint_of(fid).tx == nullptr) return -FI_EOPBADSTATE;
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_call(fid, &piece, 1, {data, true}, target, context, sending(fid));
}

ssize_t inject(fid_ep* fid, const void* buffer, std::size_t bytes, fi_addr_t target) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_call(fid, &piece, 1, {}, target, nullptr, FI_INJECT);
}

ssize_t inject_data(fid_ep* fid, const void* buffer, std::size_t bytes, std::uint64_t data, fi_addr_t target) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return send_call(fid, &piece, 1, {data, true}, target, nullptr, FI_INJECT);
}

}  // namespace

fi_ops_msg message_calls = {
    .size = sizeof(fi_ops_msg),
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
