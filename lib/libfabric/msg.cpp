// fi_msg(3) and fi_tagged(3): messages without and with tags. A tag is the match bits, and what is to be ignored of it
// the ignore bits.

#include "lib/libfabric/msg.h"

namespace portofu::fabric {

ssize_t send(Endpoint& ep, PortalUse portal, const fi_msg_tagged& msg, std::uint64_t flags, const Deferral& deferral) {
  if (!has_pieces(msg.msg_iov, msg.iov_count)) return -FI_EINVAL;
  Descriptor d;
  d.length = length_of(msg.msg_iov, msg.iov_count);
  d.match_bits = msg.tag;
  d.hdr_data = msg.data;
  if ((flags & FI_REMOTE_CQ_DATA) != 0) d.flags |= kFlagTellsData;
  TransmitCall call;
  call.word = portal == PortalUse::kTagged ? WordKind::kTaggedSend : WordKind::kSend;
  call.portal = portal;
  call.pieces = msg.msg_iov;
  call.piece_count = msg.iov_count;
  call.target = msg.addr;
  call.context = msg.context;
  call.flags = flags;
  call.deferral = deferral;
  return transmit(ep, call, d);
}

namespace {

/// `Tag` of what follows is nothing, a tag, or a tag and what is to be ignored of it.
template <class... Tag>
constexpr PortalUse kPortalOf = sizeof...(Tag) == 0 ? PortalUse::kMessage : PortalUse::kTagged;

struct Label {
  std::uint64_t tag = kNoTag;
  std::uint64_t ignore = kIgnoresAll;
};
constexpr Label label() { return {}; }
constexpr Label label(std::uint64_t tag, std::uint64_t ignore = 0) { return {tag, ignore}; }

fi_msg_tagged row(const iovec* pieces, std::size_t count, fi_addr_t peer, const Label& of, void* context) {
  return {pieces, nullptr, count, peer, of.tag, of.ignore, context, 0};
}

template <class... Tag>
ssize_t receive_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t source, Tag... tag,
                       void* context) {
  if (!has_pieces(pieces, count)) return -FI_EINVAL;
  Endpoint& ep = endpoint_of(fid);
  const std::uint64_t not_meant = sizeof...(Tag) != 0 ? kNotOfTags : 0;
  return receive(ep,
                 {kPortalOf<Tag...>, row(pieces, count, source, label(tag...), context), ep.receiving() & ~not_meant});
}

template <class Message>
ssize_t receive_message(fid_ep* fid, const Message* msg, std::uint64_t flags) {
  if (!has_pieces(msg->msg_iov, msg->iov_count)) return -FI_EINVAL;
  Endpoint& ep = endpoint_of(fid);
  return receive(ep, {portal_for(*msg), widest(*msg), ep.receiving(flags)});
}

template <class... Tag>
ssize_t send_pieces(fid_ep* fid, const iovec* pieces, void**, std::size_t count, fi_addr_t target, Tag... tag,
                    void* context) {
  Endpoint& ep = endpoint_of(fid);
  return send(ep, kPortalOf<Tag...>, row(pieces, count, target, label(tag...), context), ep.sending());
}

template <class... Tag>
ssize_t send_one(fid_ep* fid, const void* buffer, std::size_t bytes, void*, fi_addr_t target, Tag... tag,
                 void* context) {
  Endpoint& ep = endpoint_of(fid);
  return send_buffer<kPortalOf<Tag...>>(ep, {buffer, bytes, target, label(tag...).tag, 0, context}, ep.sending());
}

template <class Message>
ssize_t send_message(fid_ep* fid, const Message* msg, std::uint64_t flags) {
  Endpoint& ep = endpoint_of(fid);
  return send(ep, portal_for(*msg), widest(*msg), ep.sending(flags));
}

template <class... Tag>
ssize_t send_data(fid_ep* fid, const void* buffer, std::size_t bytes, void*, std::uint64_t data, fi_addr_t target,
                  Tag... tag, void* context) {
  Endpoint& ep = endpoint_of(fid);
  return send_buffer<kPortalOf<Tag...>>(ep, {buffer, bytes, target, label(tag...).tag, data, context},
                                        ep.sending() | FI_REMOTE_CQ_DATA);
}

template <class... Tag>
ssize_t inject(fid_ep* fid, const void* buffer, std::size_t bytes, fi_addr_t target, Tag... tag) {
  Endpoint& ep = endpoint_of(fid);
  return send_buffer<kPortalOf<Tag...>>(ep, {buffer, bytes, target, label(tag...).tag, 0, ep.context()},
                                        ep.injecting());
}

template <class... Tag>
ssize_t inject_data(fid_ep* fid, const void* buffer, std::size_t bytes, std::uint64_t data, fi_addr_t target,
                    Tag... tag) {
  Endpoint& ep = endpoint_of(fid);
  return send_buffer<kPortalOf<Tag...>>(ep, {buffer, bytes, target, label(tag...).tag, data, ep.context()},
                                        ep.injecting() | FI_REMOTE_CQ_DATA);
}

using Bits = std::uint64_t;

}  // namespace

fi_ops_msg message_calls = {
    .size = sizeof(fi_ops_msg),
    .recv = receive_buffer,
    .recvv = receive_pieces<>,
    .recvmsg = receive_message<fi_msg>,
    .send = send_one<>,
    .sendv = send_pieces<>,
    .sendmsg = send_message<fi_msg>,
    .inject = inject<>,
    .senddata = send_data<>,
    .injectdata = inject_data<>,
};

fi_ops_tagged tagged_calls = {
    .size = sizeof(fi_ops_tagged),
    .recv = receive_tagged_buffer,
    .recvv = receive_pieces<Bits, Bits>,
    .recvmsg = receive_message<fi_msg_tagged>,
    .send = send_one<Bits>,
    .sendv = send_pieces<Bits>,
    .sendmsg = send_message<fi_msg_tagged>,
    .inject = inject<Bits>,
    .senddata = send_data<Bits>,
    .injectdata = inject_data<Bits>,
};

}  // namespace portofu::fabric
