#pragma once
// Step 8, last part: the target answers. An acknowledgement is a header; a reply is a header and data, read from the
// matched entry as it leaves. What cannot leave now waits at the peer, ahead of our own requests to it.

#include "engine/core/core.h"

namespace portofu {

/// What an answer says.
struct AnswerContent {
  std::uint32_t operation_id = 0;
  NiFail fail = NiFail::kOk;
  ListKind list = ListKind::kPriority;
  bool ordered = false;             ///< uTofu: no other answer may overtake it, nor it others.
  bool silent = false;              ///< The initiator gets its buffer back and no ACK (2.8, 3.13.3).
  bool published = false;           ///< The initiator may use the entry itself: that of
  std::uint16_t pt_index = 0;       ///< this portal table entry which
  std::uint64_t match_bits = 0;     ///< these match.
  std::uint64_t mlength = 0;        ///< Bytes moved at the target.
  std::uint64_t remote_offset = 0;  ///< Offset used at the target.
};

/// Answers without data.
void send_answer(Core& core, Peer& peer, const AnswerContent& content);

/// Answers with data that has been read already (old values of an atomic), at most kMaxAtomicBytes.
void send_answer_data(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data);

/// Answers a get: the data is read from the entry while it leaves, and then the arrival is completed.
void send_reply(Core& core, Peer& peer, std::uint32_t interface_index, const AnswerContent& content, Arrival& arrival);

/// Tells of the failure of a uTofu put that wanted no answer, in order with the answers. `header` is a kTofuFault.
void send_fault(Core& core, Peer& peer, const PacketHeader& header);

}  // namespace portofu
