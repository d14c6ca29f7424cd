// The three units that move packets (5.2.2 to 5.2.4): retrieval, dispatch and delivery.

#include <cstring>

#include "lib/funi/interface.h"

using namespace portofu::funi;

namespace {

constexpr std::uint32_t kTransferAlignment = 16;  ///< "Four-word aligned", or truncated (3.2.4).

/// Events that one step takes at most, so that a flood cannot keep a call for ever.
constexpr int kMostEvents = 4096;

}  // namespace

std::uint32_t* funi_interface::slot_of(const Queue& queue, std::uint32_t index) const {
  return static_cast<std::uint32_t*>(memory_.find(queue.base + index * kSlotBytes, kSlotBytes));
}

/// "If both conditions are met, precedence is given to the reply packet."
void funi_interface::retrieve() {
  while (retrieve_one(kReply) || retrieve_one(kRequest)) {
  }
  dispatch();
}

/// One packet from a send queue into the cache.
/// @return whether there was one, and room
bool funi_interface::retrieve_one(Traffic traffic) {
  Queue& queue = send_[traffic];
  if ((modes_ & (FUNI_CTXM | FUNI_CSQM | FUNI_MERR)) != 0 || queue.head == queue.tail) return false;
  if (!cache_.has_room_for(traffic)) return false;
  const std::uint32_t* slot = slot_of(queue, queue.tail);
  if (slot == nullptr) {
    modes_ |= FUNI_MERR;
    note(FUNI_ERR_ADDRESS, node_, queue.base + queue.tail * kSlotBytes);
    return false;
  }
  const unsigned number = cache_.free_line();
  Line& line = cache_.line(number);
  line.traffic = traffic;
  line.node = FUNI_HEADER_NODE(slot[0]);
  int error = fill_line(slot, &line);
  if (error == FUNI_ERR_ADDRESS) return false;  // Again when the system has cleared MERR.
  if (error == FUNI_SUCCESS && !routes_.contains(line.node)) {
    error = FUNI_ERR_NODE;
    note(error, line.node, 0);
  }
  queue.tail = (queue.tail + 1) & mask_;
  if (error != FUNI_SUCCESS) return true;
  cache_.keep(number);
  ++counts_.retrieved[traffic];
  return true;
}

/// The packet as it travels, from what the program has written. The four cases of figure 3.4.
int funi_interface::fill_line(const std::uint32_t* slot, Line* line) {
  const std::uint32_t header = slot[0];
  if (is_transfer(header)) return fill_transfer(slot, line);
  const std::uint32_t words = message_words(header);
  line->words[0] = with_length(header, words, false);
  std::memcpy(&line->words[1], slot + 1, 4 * words);
  line->used = 1 + words;
  counts_.words_read += 1 + words;
  return FUNI_SUCCESS;
}

int funi_interface::fill_transfer(const std::uint32_t* slot, Line* line) {
  const std::uint32_t words = FUNI_HEADER_LENGTH(slot[0]);
  if (words > FUNI_TRANSFER_WORDS || words % 4 != 0) {
    note(FUNI_ERR_PACKET, line->node, 0);
    return FUNI_ERR_PACKET;
  }
  // Source 0: "the payload will be loaded from the send queue following the XFER request block".
  const std::uint32_t source = slot[1] & ~(kTransferAlignment - 1);
  const void* data = slot[1] == 0 ? slot + kTransferHead : memory_.find(source, 4 * words);
  if (data == nullptr) {
    modes_ |= FUNI_MERR;
    note(FUNI_ERR_ADDRESS, line->node, source);
    return FUNI_ERR_ADDRESS;
  }
  // Destination 0: "delivered as a normal message-passing packet", of the argument and the data.
  const bool as_message = slot[2] == 0;
  std::uint32_t* out = line->words.data();
  *out++ = with_length(slot[0], as_message ? words + 1 : words, !as_message);
  if (!as_message) {
    *out++ = 0;
    *out++ = slot[2] & ~(kTransferAlignment - 1);
  }
  *out++ = slot[3];
  std::memcpy(out, data, 4 * words);
  line->used = static_cast<std::uint32_t>(out - line->words.data()) + words;
  counts_.words_read += kTransferHead + words;
  return FUNI_SUCCESS;
}

/// All lines that wait leave, again or for the first time. This is where a packet leaves: a machine charges it here.
void funi_interface::dispatch() {
  if ((modes_ & FUNI_CTXM) != 0) return;
  const auto* memory = reinterpret_cast<const std::byte*>(&cache_.memory());
  for (unsigned i = 0; i < kLines; ++i) {
    const unsigned number = cache_.line_to_dispatch();
    if (number == kLines) return;
    Line& line = cache_.line(number);
    if (line.used == 0) {  // The system has taken the line for occupied, and nothing was ever in it.
      cache_.acknowledge(number, true);
      continue;
    }
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(line.words.data()) - memory);
    const Port::Packet packet{offset, std::size_t{4} * line.used, line.traffic, group_, &line};
    cache_.mark_sent(number);
    ++counts_.dispatched[line.traffic];
    const auto route = routes_.find(line.node);
    if (route != routes_.end() && port_.send(packet, route->second)) continue;
    note(FUNI_ERR_NETWORK, line.node, 0);
    cache_.acknowledge(number, true);
  }
}

bool funi_interface::take_events(std::uint32_t timeout_ms) {
  Port::Event event{};
  int count = 0;
  for (; count < kMostEvents && port_.next(count == 0 ? timeout_ms : 0, &event); ++count) {
    if (event.is_answer) {
      take_answer(event);
    } else {
      take_arrival(event);
    }
  }
  for (const Traffic traffic : {kReply, kRequest}) {
    deliver(traffic);
    arm_slots(traffic);
    if (!port_.inlet(traffic).refill_buffer()) note(FUNI_ERR_NETWORK, node_, 0);
  }
  return count != 0;
}

/// "A mismatched acknowledgment is discarded" (5.6.2): its context has been switched out without it.
void funi_interface::take_answer(const Port::Event& event) {
  const unsigned number = cache_.number_of(*static_cast<const Line*>(event.of));
  if (number == kLines || !cache_.is_outstanding(number)) return;
  const Line& line = cache_.line(number);
  switch (event.answer) {
    case Port::Answer::kAccepted: ++counts_.accepted[line.traffic]; break;
    case Port::Answer::kRejected: ++counts_.rejected[line.traffic]; break;
    case Port::Answer::kLost: note(FUNI_ERR_PEER, line.node, 0);
  }
  cache_.acknowledge(number, event.answer != Port::Answer::kRejected);
}

/// A packet has come into a slot. What it says of itself becomes what it is: nothing that a peer writes is trusted.
void funi_interface::take_arrival(const Port::Event& event) {
  ReceiveQueue& queue = receive_[event.traffic];
  std::uint32_t bytes = 0;
  bool was_held = false;
  if (!port_.inlet(event.traffic).take(event.arrival, &bytes, &was_held)) return;
  std::uint32_t* slot = slot_of(queue, queue.landed);
  queue.landed = (queue.landed + 1) & mask_;
  counts_.held[event.traffic] += was_held ? 1 : 0;
  if (slot == nullptr) return;
  const std::uint32_t words = bytes / 4;
  std::uint32_t header = words == 0 ? 0 : slot[0];
  header = (header & 0xffff0000u) | node_;
  const std::uint32_t head = is_transfer(header) ? kTransferHead : 1;
  const bool transfer = is_transfer(header) && words >= kTransferHead;
  const std::uint32_t there = words <= head ? 0 : words - head;
  std::uint32_t length = FUNI_HEADER_LENGTH(header);
  length = length < there ? length : there;
  const std::uint32_t most = transfer ? FUNI_TRANSFER_WORDS : FUNI_MESSAGE_WORDS;
  slot[0] = with_length(header, length < most ? length : most, transfer);
}

/// Slots that are free become the network's; one stays empty, for a full queue has its head before its tail.
void funi_interface::arm_slots(Traffic traffic) {
  ReceiveQueue& queue = receive_[traffic];
  Inlet& inlet = port_.inlet(traffic);
  if ((modes_ & FUNI_CRQM) != 0) return;
  // A context that is switched out takes what the buffer holds, and no more (4.2).
  const bool only_held = (modes_ & FUNI_CTXM) != 0;
  while (((queue.armed + 1) & mask_) != queue.tail && (!only_held || inlet.armed() < inlet.held())) {
    std::uint32_t* slot = slot_of(queue, queue.armed);
    if (slot == nullptr || !inlet.arm(slot)) {
      note(slot == nullptr ? FUNI_ERR_ADDRESS : FUNI_ERR_NETWORK, node_, queue.base + queue.armed * kSlotBytes);
      return;
    }
    queue.armed = (queue.armed + 1) & mask_;
  }
}

/// This is where a packet arrives, and the program can see it: a machine charges it here.
void funi_interface::deliver(Traffic traffic) {
  ReceiveQueue& queue = receive_[traffic];
  while (queue.head != queue.landed && (modes_ & FUNI_MERR) == 0) {
    std::uint32_t* slot = slot_of(queue, queue.head);
    if (slot == nullptr) {
      modes_ |= FUNI_MERR;
      note(FUNI_ERR_ADDRESS, node_, queue.base + queue.head * kSlotBytes);
      return;
    }
    if (!deliver_one(slot)) return;
    queue.head = (queue.head + 1) & mask_;
    ++counts_.delivered[traffic];
  }
}

/// SPEC: 5.2.3 writes the notice at the *tail* of the receive queue. That slot is the next that the program reads; the
/// interface is the producer, and writes at the head.
bool funi_interface::deliver_one(std::uint32_t* slot) {
  const std::uint32_t words = FUNI_HEADER_LENGTH(slot[0]);
  if (!is_transfer(slot[0])) {
    counts_.words_written += 1 + words;
    return true;
  }
  slot[1] = 0;
  counts_.words_written += kTransferHead + words;
  if ((modes_ & FUNI_DRAIN) != 0) return true;
  void* destination = memory_.find(slot[2] & ~(kTransferAlignment - 1), 4 * words);
  if (destination == nullptr) {
    modes_ |= FUNI_MERR;
    note(FUNI_ERR_ADDRESS, node_, slot[2]);
    return false;
  }
  std::memcpy(destination, slot + kTransferHead, 4 * words);
  return true;
}

void funi_interface::change_group(std::uint32_t group) {
  group_ = group;
  cache_.set_context(group);
  for (const Traffic traffic : {kReply, kRequest}) {
    if (!port_.inlet(traffic).set_group(group)) note(FUNI_ERR_NETWORK, node_, 0);
  }
}
