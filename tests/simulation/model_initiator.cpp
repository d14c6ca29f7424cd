// The model: the initiator's side of a transfer. Portals 4.3, 3.13.1, 3.15, 3.16.

#include "tests/simulation/model.h"

namespace portofu::simulation {
namespace {

bool is_fetching(const ModelMessage& message) {
  return message.descriptor.type == PacketType::kFetchAtomic || message.descriptor.type == PacketType::kSwap;
}
bool is_get(const ModelMessage& message) { return message.descriptor.type == PacketType::kGet; }

Event answer_event(const ModelMessage& message, EventKind kind) {
  Event event;
  event.type = kind;
  event.user_ptr = message.descriptor.portals.user_ptr;
  event.ni_fail_type = message.answer.fail;
  event.ptl_list = message.answer.list;
  event.mlength = message.answer.mlength;
  event.remote_offset = message.answer.remote_offset;
  return event;
}

}  // namespace

void Model::start(std::size_t process, const Descriptor& descriptor) {
  ModelProcess& own = processes[process];
  if (descriptor.type == PacketType::kCountIncrement || descriptor.type == PacketType::kCountSet) {
    return change_counter(own, descriptor);
  }
  auto message = std::make_unique<ModelMessage>();
  message->descriptor = descriptor;
  message->initiator = process;
  message->target = logical() ? descriptor.portals.target.nid : index_of(descriptor.portals.target);
  ModelMd* md = md_of(*message, descriptor.portals.md_handle);
  ModelMd* get_md = is_fetching(*message) ? md_of(*message, descriptor.portals.get_md_handle) : md;
  if (md == nullptr || get_md == nullptr) return;  // A triggered operation whose MD is gone.
  ++md->pending;
  if (is_fetching(*message)) ++get_md->pending;
  for (std::uint64_t i = 0; !is_get(*message) && i < descriptor.length; ++i) {
    message->data.push_back(own.memory[md->region.place(descriptor.portals.local_offset + i)]);
  }
  pair(process, message->target).unsent.push_back(message.get());
  messages.push_back(std::move(message));
}

ModelMd* Model::md_of(const ModelMessage& message, Handle handle) {
  auto& mds = processes[message.initiator].mds;
  const auto found = mds.find(handle);
  return found != mds.end() && !found->second.released ? &found->second : nullptr;
}

/// Whether somebody would see the acknowledgement.
bool Model::wants_notice(const ModelMessage& message) {
  const AckRequest ack_req = message.descriptor.portals.ack_req;
  const ModelMd* md = md_of(message, message.descriptor.portals.md_handle);
  if (md == nullptr || is_get(message) || ack_req == AckRequest::kNone) return false;
  return (md->ct != 0 && (md->options & kMdEventCtAck) != 0) || (ack_req == AckRequest::kFull && md->eq != 0);
}

void Model::check_first_packet(const ModelMessage& message, const PacketHeader& header) {
  const Descriptor& d = message.descriptor;
  if (header.type != d.type) {
    complain(std::string("a packet of type ") + packet_type_name(header.type) + ", and posted was " +
             packet_type_name(d.type) + " with hdr_data " + std::to_string(d.hdr_data));
  }
  if (header.pt_index != d.pt_index || header.match_bits != d.match_bits || header.hdr_data != d.hdr_data ||
      header.remote_offset != d.remote_offset || header.length != d.length) {
    complain("message out of order, or with other arguments than were posted: hdr_data " +
             std::to_string(header.hdr_data) + ", expected " + std::to_string(d.hdr_data));
  }
  if (header.atomic_operation != d.atomic_operation || header.atomic_type != d.atomic_type) {
    complain("an atomic with another operation or type than was posted");
  }
  if (header.uid != processes[message.initiator].uid || header.interface_index != interface_index_) {
    complain("a packet with the wrong uid or interface");
  }
}

void Model::publish_request(std::size_t process, std::size_t peer, const PacketHeader& header, std::uint64_t lent_end) {
  Pair& own = pair(process, peer);
  while (complaint_.empty() && own.unsent.empty()) start_next_fired(process);
  if (!complaint_.empty()) return;
  ModelMessage& message = *own.unsent.front();
  if (message.started) return complain("a message begins inside another one");
  check_first_packet(message, header);
  message.started = true;
  if ((header.flags & kFlagAnswerWanted) != 0) message.operation_id = header.operation_id;
  const bool must_ask = is_get(message) || is_fetching(message) || wants_notice(message);
  if (must_ask && message.operation_id == 0) complain("no answer is asked for");
  own.in_flight.push_back(&message);
  publish_more(process, peer, header, lent_end);
}

void Model::publish_more(std::size_t process, std::size_t peer, const PacketHeader& header, std::uint64_t lent_end) {
  Pair& own = pair(process, peer);
  if (own.unsent.empty() || !own.unsent.front()->started) return complain("data of no message");
  ModelMessage& message = *own.unsent.front();
  const bool first = header.type != PacketType::kData;
  if (!first && header.remote_offset != message.published) complain("data with a gap");
  message.published +=
      header.payload_bytes - (first ? message.descriptor.portals.operand_bytes == 0 ? 0 : kOperandBytes : 0);
  if (message.published > message.data.size()) return complain("more data than was posted");
  if (lent_end != 0) {
    message.lent_end = lent_end;
    message.lent_bytes = message.published;
  }
  if (message.published < message.data.size()) return;
  own.unsent.pop_front();
  if (message.lent_end != 0) return own.lent.push_back(&message);
  sent(message);
}

void Model::sent(ModelMessage& message) {
  message.sent = true;
  ModelMd* md = md_of(message, message.descriptor.portals.md_handle);
  if (!is_get(message) && md != nullptr) {
    ModelProcess& own = processes[message.initiator];
    const bool in_bytes = (md->options & kMdEventCtBytes) != 0;
    if ((md->options & kMdEventCtSend) != 0) count(own, md->ct, true, in_bytes ? message.descriptor.length : 1);
    report_send(message);
  }
  if (message.operation_id == 0) message.over = true;
  if (message.answer_taken) finish(message);
}

void Model::report_send(ModelMessage& message) {
  ModelMd& md = *md_of(message, message.descriptor.portals.md_handle);
  Event event;
  event.type = EventKind::kSend;
  event.user_ptr = message.descriptor.portals.user_ptr;
  event.mlength = message.descriptor.length;
  const bool hidden = (md.options & (kMdEventSendDisable | kMdEventSuccessDisable)) != 0;
  if (!hidden) post(processes[message.initiator], md.eq, event);
  --md.pending;
}

ModelMessage* Model::find_operation(std::size_t initiator, std::size_t target, std::uint32_t operation_id) {
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    ModelMessage& one = **message;
    const bool is_pair = one.initiator == initiator && one.target == target;
    if (is_pair && one.operation_id == operation_id && operation_id != 0 && !one.over) return &one;
  }
  return nullptr;
}

void Model::take_answer(std::size_t process, std::size_t source, const PacketHeader& header) {
  Pair& own = pair(process, source);
  ModelMessage* message = find_operation(process, source, header.operation_id);
  if (message == nullptr || message->answer_taken) return complain("an answer arrives that nobody waits for");
  if (own.taking != nullptr) return complain("an answer begins inside another one");
  own.taking = message;
  take_answer_data(*message, header);
}

void Model::take_answer_data(ModelMessage& message, const PacketHeader& header) {
  message.reply_taken += header.payload_bytes;
  const bool fetches = is_get(message) || is_fetching(message);
  if (message.reply_taken < (fetches ? message.answer.mlength : 0)) return;
  pair(message.initiator, message.target).taking = nullptr;
  message.answer_taken = true;
  if (message.sent) finish(message);
}

void Model::finish(ModelMessage& message) {
  message.over = true;
  if (wants_notice(message)) report_ack(message);
  if (is_get(message) || is_fetching(message)) report_reply(message);
}

void Model::report_ack(ModelMessage& message) {
  ModelMd& md = *md_of(message, message.descriptor.portals.md_handle);
  ModelProcess& own = processes[message.initiator];
  const bool counted = (md.options & kMdEventCtAck) != 0;
  const bool good = message.answer.fail == NiFail::kOk;
  if (message.descriptor.portals.ack_req == AckRequest::kOperation) {
    // Processed, whatever the outcome (3.15.1), or not processed (3.13.3).
    if (counted) count(own, md.ct, message.answer.fail != NiFail::kPtDisabled, 1);
    return;
  }
  if (message.answer.silent) return;
  if (counted) count(own, md.ct, good, (md.options & kMdEventCtBytes) != 0 ? message.answer.mlength : 1);
  const bool hidden = (md.options & kMdEventSuccessDisable) != 0 && good;
  if (message.descriptor.portals.ack_req == AckRequest::kFull && !hidden)
    post(own, md.eq, answer_event(message, EventKind::kAck));
}

void Model::report_reply(ModelMessage& message) {
  const Descriptor& d = message.descriptor;
  ModelMd& md = *md_of(message, is_get(message) ? d.portals.md_handle : d.portals.get_md_handle);
  ModelProcess& own = processes[message.initiator];
  const std::uint64_t offset = is_get(message) ? d.portals.local_offset : d.portals.local_get_offset;
  for (std::uint64_t i = 0; i < message.answer.mlength; ++i) own.memory[md.region.place(offset + i)] = message.reply[i];
  const bool good = message.answer.fail == NiFail::kOk;
  const bool in_bytes = (md.options & kMdEventCtBytes) != 0;
  if ((md.options & kMdEventCtReply) != 0) count(own, md.ct, good, in_bytes ? message.answer.mlength : 1);
  if ((md.options & kMdEventSuccessDisable) == 0 || !good) post(own, md.eq, answer_event(message, EventKind::kReply));
  --md.pending;
}

}  // namespace portofu::simulation
