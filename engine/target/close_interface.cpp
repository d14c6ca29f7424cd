#include "engine/target/close_interface.h"

#include <vector>

#include "engine/mailbox/inbox.h"
#include "engine/mailbox/outbox.h"
#include "engine/target/answer_out.h"
#include "engine/target/complete.h"
#include "engine/target/published_entry.h"

namespace portofu {
namespace {

/// A header that was taken before its message is complete is in no list any more; it ends with its interface.
void forget_entry(Arrival& arrival, ArrivalMode mode) {
  arrival.unexpected = nullptr;
  arrival.entry = nullptr;
  arrival.mode = mode;
}

/// The message that is arriving is refused after all; whoever asked is told so at once.
void refuse_arriving(Core& core, Peer& peer) {
  const PacketHeader& header = peer.request_stream.header;
  forget_entry(peer.request_stream, ArrivalMode::kDiscard);
  if ((header.flags & kFlagAnswerWanted) == 0) return;
  AnswerContent content;
  content.operation_id = header.operation_id;
  content.fail = NiFail::kDropped;
  send_answer(core, peer, content);
}

void let_go(Core& core, Peer& peer, std::uint32_t index) {
  if (peer.request_stream.mode == ArrivalMode::kDeliver && peer.request_stream.header.interface_index == index) {
    take_offers_back(peer);
    refuse_arriving(core, peer);
  }
  const auto is_of = [index](const OutgoingMessage& message) { return message.interface_index == index; };
  peer.answers.for_each([&](OutgoingMessage& message) {
    if (is_of(message)) disown(message, NiFail::kDropped);
  });
  for (OutgoingMessage& message : peer.requests.waiting) {
    if (!is_of(message)) continue;
    if (message.started) {
      disown(message, NiFail::kUndeliverable);
    } else if (message.header().operation_id != 0) {  // Who was to answer never hears of it.
      forget_outstanding(core, message.header().operation_id, false);
    }
  }
  peer.requests.forget_if([&](const OutgoingMessage& message) {
    return is_of(message) && (!message.started || message.sent == message.length);
  });
}

void close_operations(Core& core, std::uint32_t index) {
  std::vector<std::uint32_t> ids;
  core.outstanding.for_each([&](std::uint32_t id, const OutstandingOperation& operation) {
    if (operation.interface_index == index) ids.push_back(id);
  });
  for (const std::uint32_t id : ids) {
    OutstandingOperation* operation = core.outstanding.find(id);
    Arrival& reply = operation->peer->answer_stream;
    const bool arrives = reply.mode == ArrivalMode::kDeliver && reply.header.operation_id == id;
    if (arrives) {
      take_offers_back(*operation->peer);
      reply.mode = ArrivalMode::kDiscard;
    }
    forget_outstanding(core, id, !arrives);
  }
}

void empty_lists(Interface& ni, PortalTableEntry& portal) {
  for (UnexpectedList* list : {&portal.unexpected, &portal.held}) {
    while (UnexpectedEntry* first = list->first()) {
      auto* header = static_cast<UnexpectedHeader*>(first);
      list->remove(*header);
      if ((header->entry->options & kEntryOwnMemory) != 0 && header->start != nullptr)
        ni.message_memory.give(header->start, header->rlength);
      ni.spare_headers.give(header);
    }
  }
  portal.priority.clear();
  portal.overflow.clear();
}

}  // namespace

void close_interface_on_duty(Core& core, std::uint32_t index) {
  Interface& ni = *core.interfaces[index];
  for (const auto& portal : ni.portal_table) {
    if (portal == nullptr) continue;
    withdraw_entries(core, ni, *portal);
    end_visits(core, ni, *portal);
  }
  for (auto& [key, peer] : core.peers) let_go(core, *peer, index);
  close_operations(core, index);
  core.fired.remove_and_dispose_if(
      [index](const TriggeredOperation& operation) { return operation.descriptor.interface_index == index; },
      [](TriggeredOperation* operation) { delete operation; });
  for (auto& portal : ni.portal_table) {
    if (portal != nullptr) empty_lists(ni, *portal);
  }
  give_late_answers(core, ni, true);
  core.interfaces[index].reset();
  ++core.activity;
}

}  // namespace portofu
