#pragma once
// Messages of fi_msg(3) and fi_tagged(3). The two pages differ by the tag only: a message without one has the tag 0, a
// receive without one ignores all of it, and they meet at a portal table entry of their own.

#include <rdma/fi_tagged.h>

#include "lib/libfabric/receive.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {

/// A message of either page in its widest form.
inline fi_msg_tagged widest(const fi_msg& msg) {
  return {msg.msg_iov, msg.desc, msg.iov_count, msg.addr, kNoTag, kIgnoresAll, msg.context, msg.data};
}
inline const fi_msg_tagged& widest(const fi_msg_tagged& msg) { return msg; }

template <class Message>
constexpr PortalUse portal_for(const Message&) {
  return std::is_same_v<Message, fi_msg> ? PortalUse::kMessage : PortalUse::kTagged;
}

/// @param flags  as the call counts them, FI_COMPLETION included
ssize_t send(Endpoint& ep, PortalUse portal, const fi_msg_tagged& msg, std::uint64_t flags,
             const Deferral& deferral = {});

}  // namespace portofu::fabric
