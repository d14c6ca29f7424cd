// Active messages. All of it goes by the registers and queues of funi.h, as a program's would. @spec thesis, appendix A
//
// SPEC: not copied from appendix A: cmam_service_reply hands its handler the second doubleword twice; lengths of cmam_n
// and cmam_mfer_n that do not fit are cut by a mask; the last packet of a block writes behind its segment.

#include <cmam.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "lib/funi/packet.h"
#include "lib/funi/program_image.h"

namespace portofu::funi {
namespace {

/// Types of packets, numbered as in the handler table of appendix A.
enum Type : std::uint32_t { kFour, kIndirectFour, kXfer, kN, kIndirectN, kMfer, kBarrier };

enum class Handling { kNothing, kRequest, kReply };

constexpr std::uint32_t kQueueSlots = 256;
constexpr std::uint32_t kQueueBytes = kQueueSlots * kSlotBytes;
constexpr unsigned kSegmentShift = 24;
constexpr int kTransferBytes = 4 * FUNI_TRANSFER_WORDS;
constexpr unsigned kBarrierRounds = 16;

struct Segment {
  std::byte* base;
  int bytes;
  int remain;
  cmam_end_t fun;
  void* info;
  bool is_open;
};

struct Free {
  void operator()(std::uint32_t* memory) const { std::free(memory); }
};

/// What the program knows of its queues. It remembers the ends that the interface moves (3.2.2): they only go further.
struct Messages {
  funi_t ni;
  std::uint32_t node;
  std::uint32_t nodes;
  std::unique_ptr<std::uint32_t, Free> memory;
  std::uint32_t address;
  std::array<std::uint32_t, kClasses> send_head;
  std::array<std::uint32_t, kClasses> send_tail;
  std::array<std::uint32_t, kClasses> receive_head;
  std::array<std::uint32_t, kClasses> receive_tail;
  Handling handling;
  std::array<Segment, CMAM_SEGMENTS> segments;
  std::array<std::uint32_t, kBarrierRounds> arrived;
  std::uint32_t barriers;

  /// Queues in memory: reply and request send, reply and request receive.
  std::uint32_t* slot(std::size_t queue, std::uint32_t index) const {
    return memory.get() + (queue * kQueueSlots + index) * FUNI_SLOT_WORDS;
  }
};

Messages* messages = nullptr;

funi_register_t of_class(funi_register_t of_replies, Traffic traffic) {
  return static_cast<funi_register_t>(static_cast<unsigned>(of_replies) + traffic);
}

// ---- what comes ----------------------------------------------------------------------------------------------------

Segment* segment_of(std::uint32_t seg_addr) {
  const std::uint32_t number = seg_addr >> kSegmentShift;
  if (number >= CMAM_SEGMENTS || !messages->segments[number].is_open) return nullptr;
  return &messages->segments[number];
}

void count_bytes(Segment& segment, int bytes) {
  segment.remain -= bytes;
  if (segment.remain > 0) return;
  segment.is_open = false;
  if (segment.fun != nullptr) segment.fun(segment.info, segment.base);
}

int take_xfer(const Slot& slot) {
  Segment* segment = segment_of(slot[1]);
  const std::uint32_t offset = slot[1] & ((1u << kSegmentShift) - 1);
  if (segment == nullptr || offset % 16 != 0 || offset + 16 > static_cast<std::uint32_t>(segment->bytes)) {
    return FUNI_ERR_PACKET;
  }
  std::memcpy(segment->base + offset, &slot[2], 16);
  count_bytes(*segment, 16);
  return FUNI_SUCCESS;
}

int take_mfer(const Slot& slot) {
  Segment* segment = segment_of(slot[3]);
  if (segment == nullptr || !is_transfer(slot[0])) return FUNI_ERR_PACKET;
  count_bytes(*segment, static_cast<int>(4 * FUNI_HEADER_LENGTH(slot[0])));
  return FUNI_SUCCESS;
}

template <class Function>
std::uint32_t code(Function function) {
  return offset_in_program(reinterpret_cast<std::uintptr_t>(function), /*code=*/true);
}

template <class Function>
Function function_at(std::uint32_t offset) {
  return reinterpret_cast<Function>(address_in_program(offset, /*code=*/true));
}

/// The function that a variable points to, if both are the program's.
template <class Function>
Function function_of_variable(std::uint32_t offset, void** variable) {
  *variable = address_in_program(offset, /*code=*/false);
  if (*variable == nullptr) return nullptr;
  Function function{};
  std::memcpy(&function, *variable, sizeof function);
  return code(function) != 0 ? function : nullptr;
}

template <class Function, class... Arguments>
int call(Function function, Arguments... arguments) {
  if (function == nullptr) return FUNI_ERR_PACKET;
  function(arguments...);
  return FUNI_SUCCESS;
}

/// Calls the handler of a message. It works on a copy: handlers may take further messages out of the same queue.
int handle(const Slot& slot) {
  const std::uint32_t length = FUNI_HEADER_LENGTH(slot[0]);
  const std::uint32_t type = FUNI_HEADER_TYPE(slot[0]);
  if (type == kMfer) return take_mfer(slot);
  const bool is_four = type == kFour || type == kIndirectFour || type == kXfer;
  if (length == 0 || (is_four && length != 5) || is_transfer(slot[0])) return FUNI_ERR_PACKET;
  std::array<int, 4> four{};
  std::memcpy(four.data(), &slot[2], sizeof four);
  const int bytes = static_cast<int>(4 * (length - 1));
  void* variable = nullptr;
  switch (type) {
    case kFour: return call(function_at<cmam_handler_t>(slot[1]), four[0], four[1], four[2], four[3]);
    case kN: return call(function_at<cmam_n_handler_t>(slot[1]), &slot[2], bytes);
    case kIndirectFour: {
      const auto fun = function_of_variable<cmam_indirect_handler_t>(slot[1], &variable);
      return call(fun, variable, four[0], four[1], four[2], four[3]);
    }
    case kIndirectN: {
      const auto fun = function_of_variable<cmam_indirect_n_handler_t>(slot[1], &variable);
      return call(fun, variable, &slot[2], bytes);
    }
    case kXfer: return take_xfer(slot);
    case kBarrier:
      if (slot[1] >= kBarrierRounds) return FUNI_ERR_PACKET;
      ++messages->arrived[slot[1]];
      return FUNI_SUCCESS;
    default: return FUNI_ERR_PACKET;
  }
}

/// Takes one message of a class and handles it.
/// @return 1 if there was one, 0, or an error
int service_one(Traffic traffic) {
  Messages& m = *messages;
  std::uint32_t& tail = m.receive_tail[traffic];
  if (tail == m.receive_head[traffic]) {
    const int error = funi_read(m.ni, of_class(FUNI_RPRQ_HD, traffic), &m.receive_head[traffic]);
    if (error != FUNI_SUCCESS) return error;
    if (tail == m.receive_head[traffic]) return 0;
  }
  Slot slot;
  std::memcpy(slot.data(), m.slot(kClasses + traffic, tail), sizeof slot);
  tail = (tail + 1) % kQueueSlots;
  int error = funi_write(m.ni, of_class(FUNI_RPRQ_TL, traffic), tail);
  const Handling before = m.handling;
  m.handling = traffic == kReply ? Handling::kReply : Handling::kRequest;
  const int handled = handle(slot);
  m.handling = before;
  if (error == FUNI_SUCCESS) error = handled;
  return error == FUNI_SUCCESS ? 1 : error;
}

/// All that has come, replies first. @return how many, or an error
int service(bool requests) {
  int count = 0;
  for (;;) {
    int found = service_one(kReply);
    if (found == 0 && requests) found = service_one(kRequest);
    if (found < 0) return found;
    if (found == 0) return count;
    ++count;
  }
}

/// The same; sleeps a little if nothing has come.
int service_or_sleep(bool requests) {
  const int found = service(requests);
  if (found != 0) return found < 0 ? found : FUNI_SUCCESS;
  const int error = funi_wait(messages->ni, 1);
  return error == FUNI_ERR_TIMEOUT ? FUNI_SUCCESS : error;
}

// ---- what goes -----------------------------------------------------------------------------------------------------

int send(Traffic traffic, const Slot& slot, std::size_t words) {
  Messages& m = *messages;
  if (m.handling == Handling::kReply || (m.handling == Handling::kRequest && traffic == kRequest)) {
    return FUNI_ERR_HANDLER;
  }
  const bool both = traffic == kRequest;
  while ((m.send_head[traffic] + 1) % kQueueSlots == m.send_tail[traffic]) {
    int error = funi_read(m.ni, of_class(FUNI_RPSQ_TL, traffic), &m.send_tail[traffic]);
    if (error != FUNI_SUCCESS) return error;
    if ((m.send_head[traffic] + 1) % kQueueSlots != m.send_tail[traffic]) break;
    error = service_or_sleep(both);
    if (error != FUNI_SUCCESS) return error;
  }
  std::memcpy(m.slot(traffic, m.send_head[traffic]), slot.data(), 4 * words);
  m.send_head[traffic] = (m.send_head[traffic] + 1) % kQueueSlots;
  const int error = funi_write(m.ni, of_class(FUNI_RPSQ_HD, traffic), m.send_head[traffic]);
  if (error != FUNI_SUCCESS) return error;
  const int found = service(both);
  return found < 0 ? found : FUNI_SUCCESS;
}

bool is_node(int node) {
  return messages != nullptr && node >= 0 && static_cast<std::uint32_t>(node) < messages->nodes;
}

/// A message of a first word and others.
int send_words(Traffic traffic, std::uint32_t header, std::uint32_t first, const void* rest) {
  Slot slot;
  const std::uint32_t length = FUNI_HEADER_LENGTH(header);
  slot[0] = header;
  slot[1] = first;
  if (length > 1) std::memcpy(&slot[2], rest, std::size_t{4} * (length - 1));
  return send(traffic, slot, 1 + length);
}

using Four = std::array<int, 4>;

int send_four(Traffic traffic, Type type, int node, std::uint32_t first, const Four& words) {
  if (!is_node(node) || (type != kXfer && first == 0)) return FUNI_ERR_ARGUMENT;
  return send_words(traffic, FUNI_HEADER(type, 5, node), first, words.data());
}

struct Bytes {
  const void* start;
  int count;
};

int send_n(Traffic traffic, Type type, int node, std::uint32_t first, Bytes bytes) {
  const bool is_good = is_node(node) && first != 0 && bytes.count >= 0 && bytes.count <= CMAM_MOST_BYTES &&
                       bytes.count % 4 == 0 && (bytes.count == 0 || bytes.start != nullptr);
  if (!is_good) return FUNI_ERR_ARGUMENT;
  return send_words(traffic, FUNI_HEADER(type, 1 + bytes.count / 4, node), first, bytes.start);
}

std::uint32_t variable(const void* pointer) {
  return offset_in_program(reinterpret_cast<std::uintptr_t>(pointer), /*code=*/false);
}

int send_xfer(Traffic traffic, int node, unsigned seg_addr, Bytes block) {
  if (!is_node(node) || block.start == nullptr || block.count < 0 || block.count % 16 != 0) return FUNI_ERR_ARGUMENT;
  for (int at = 0; at < block.count; at += 16) {
    Four words{};
    std::memcpy(words.data(), static_cast<const std::byte*>(block.start) + at, sizeof words);
    const int error = send_four(traffic, kXfer, node, seg_addr + static_cast<unsigned>(at), words);
    if (error != FUNI_SUCCESS) return error;
  }
  return FUNI_SUCCESS;
}

int send_mfer(Traffic traffic, int node, unsigned seg_addr, Bytes block, std::uint32_t dest) {
  if (!is_node(node) || block.count < 0 || block.count % 16 != 0 || dest == 0 || dest % 16 != 0) {
    return FUNI_ERR_ARGUMENT;
  }
  std::uint32_t source = 0;
  const int error = funi_address_of(messages->ni, block.start, static_cast<std::size_t>(block.count), &source);
  if (error != FUNI_SUCCESS) return error;
  if (source % 16 != 0) return FUNI_ERR_ARGUMENT;
  for (int at = 0; at < block.count; at += kTransferBytes) {
    const int bytes = block.count - at < kTransferBytes ? block.count - at : kTransferBytes;
    const auto offset = static_cast<std::uint32_t>(at);
    const Slot slot{FUNI_XFER | FUNI_HEADER(kMfer, bytes / 4, node), source + offset, dest + offset, seg_addr};
    const int sent = send(traffic, slot, kTransferHead);
    if (sent != FUNI_SUCCESS) return sent;
  }
  return FUNI_SUCCESS;
}

int send_mfer_n(Traffic traffic, int node, unsigned seg_addr, Bytes block, std::uint32_t dest) {
  return block.count > kTransferBytes ? FUNI_ERR_ARGUMENT : send_mfer(traffic, node, seg_addr, block, dest);
}

int set_up_queues(Messages& m) {
  m.memory.reset(static_cast<std::uint32_t*>(std::aligned_alloc(4096, 2 * kClasses * kQueueBytes)));
  if (m.memory == nullptr) return FUNI_ERR_MEMORY;
  int error = funi_map(m.ni, m.memory.get(), 2 * kClasses * kQueueBytes, &m.address);
  const auto write = [&](funi_register_t which, std::uint32_t value) {
    if (error == FUNI_SUCCESS) error = funi_write(m.ni, which, value);
  };
  write(FUNI_QMASK, kQueueSlots - 1);
  for (std::uint32_t i = 0; i < 2 * kClasses; ++i) {
    write(static_cast<funi_register_t>(FUNI_RPSQ_BASE + i), m.address + i * kQueueBytes);
  }
  write(FUNI_CNTL, 0);
  return error;
}

}  // namespace
}  // namespace portofu::funi

using namespace portofu::funi;

int cmam_open(funi_t ni, uint32_t node, uint32_t nodes) {
  if (messages != nullptr) return FUNI_ERR_BUSY;
  if (ni == nullptr || node >= nodes || nodes > FUNI_NODES) return FUNI_ERR_ARGUMENT;
  try {
    auto made = std::make_unique<Messages>();
    made->ni = ni;
    made->node = node;
    made->nodes = nodes;
    const int error = set_up_queues(*made);
    if (error == FUNI_SUCCESS) messages = made.release();
    return error;
  } catch (const std::bad_alloc&) {
    return FUNI_ERR_MEMORY;
  }
}

int cmam_close(void) {
  if (messages == nullptr) return FUNI_ERR_ARGUMENT;
  if (messages->handling != Handling::kNothing) return FUNI_ERR_BUSY;
  const std::unique_ptr<Messages> ended(messages);
  messages = nullptr;
  funi_write(ended->ni, FUNI_CNTL, FUNI_CSQM | FUNI_CRQM);
  return funi_unmap(ended->ni, ended->address);
}

int cmam_self_address(void) { return messages != nullptr ? static_cast<int>(messages->node) : -1; }
int cmam_partition_size(void) { return messages != nullptr ? static_cast<int>(messages->nodes) : 0; }

int cmam_4(int node, cmam_handler_t fun, int i1, int i2, int i3, int i4) {
  return send_four(kRequest, kFour, node, code(fun), {i1, i2, i3, i4});
}
int cmam_reply_4(int node, cmam_handler_t fun, int i1, int i2, int i3, int i4) {
  return send_four(kReply, kFour, node, code(fun), {i1, i2, i3, i4});
}
int cmam_indirect_4(int node, cmam_indirect_handler_t* fun, int i1, int i2, int i3, int i4) {
  return send_four(kRequest, kIndirectFour, node, variable(fun), {i1, i2, i3, i4});
}
int cmam_reply_indirect_4(int node, cmam_indirect_handler_t* fun, int i1, int i2, int i3, int i4) {
  return send_four(kReply, kIndirectFour, node, variable(fun), {i1, i2, i3, i4});
}
int cmam_n(int node, cmam_n_handler_t fun, const void* arguments, int nbyte) {
  return send_n(kRequest, kN, node, code(fun), {arguments, nbyte});
}
int cmam_reply_n(int node, cmam_n_handler_t fun, const void* arguments, int nbyte) {
  return send_n(kReply, kN, node, code(fun), {arguments, nbyte});
}
int cmam_indirect_n(int node, cmam_indirect_n_handler_t* fun, const void* arguments, int nbyte) {
  return send_n(kRequest, kIndirectN, node, variable(fun), {arguments, nbyte});
}
int cmam_reply_indirect_n(int node, cmam_indirect_n_handler_t* fun, const void* arguments, int nbyte) {
  return send_n(kReply, kIndirectN, node, variable(fun), {arguments, nbyte});
}
int cmam_xfer_4(int node, unsigned int seg_addr, int i1, int i2, int i3, int i4) {
  return send_four(kRequest, kXfer, node, seg_addr, {i1, i2, i3, i4});
}
int cmam_reply_xfer_4(int node, unsigned int seg_addr, int i1, int i2, int i3, int i4) {
  return send_four(kReply, kXfer, node, seg_addr, {i1, i2, i3, i4});
}
int cmam_mfer_n(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte) {
  return send_mfer_n(kRequest, node, seg_addr, {source, nbyte}, dest);
}
int cmam_reply_mfer_n(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte) {
  return send_mfer_n(kReply, node, seg_addr, {source, nbyte}, dest);
}
int cmam_xfer(int node, unsigned int seg_addr, const void* source, int nbyte) {
  return send_xfer(kRequest, node, seg_addr, {source, nbyte});
}
int cmam_reply_xfer(int node, unsigned int seg_addr, const void* source, int nbyte) {
  return send_xfer(kReply, node, seg_addr, {source, nbyte});
}
int cmam_mfer(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte) {
  return send_mfer(kRequest, node, seg_addr, {source, nbyte}, dest);
}
int cmam_reply_mfer(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte) {
  return send_mfer(kReply, node, seg_addr, {source, nbyte}, dest);
}

int cmam_is_sent(void) {
  if (messages == nullptr) return FUNI_ERR_ARGUMENT;
  for (const Traffic traffic : {kReply, kRequest}) {
    const int error = funi_read(messages->ni, of_class(FUNI_RPSQ_TL, traffic), &messages->send_tail[traffic]);
    if (error != FUNI_SUCCESS) return error;
    if (messages->send_tail[traffic] != messages->send_head[traffic]) return 0;
  }
  return 1;
}

int cmam_open_segment(void* base, int nbyte, cmam_end_t fun, void* info) {
  const bool is_good = messages != nullptr && base != nullptr && reinterpret_cast<std::uintptr_t>(base) % 16 == 0 &&
                       nbyte > 0 && nbyte <= CMAM_SEGMENT_BYTES && nbyte % 16 == 0;
  if (!is_good) return FUNI_ERR_ARGUMENT;
  for (std::size_t i = 0; i < CMAM_SEGMENTS; ++i) {
    if (messages->segments[i].is_open) continue;
    messages->segments[i] = {static_cast<std::byte*>(base), nbyte, nbyte, fun, info, true};
    return static_cast<int>(i << kSegmentShift);
  }
  return FUNI_ERR_MEMORY;
}

int cmam_poll(void) {
  if (messages == nullptr) return FUNI_ERR_ARGUMENT;
  if (messages->handling == Handling::kReply) return FUNI_ERR_HANDLER;
  const int found = service(/*requests=*/messages->handling == Handling::kNothing);
  return found < 0 ? found : FUNI_SUCCESS;
}

int cmam_wait(int* flag, int value) {
  if (messages == nullptr || flag == nullptr) return FUNI_ERR_ARGUMENT;
  if (messages->handling != Handling::kNothing) return FUNI_ERR_HANDLER;
  while (*flag < value) {
    const int error = service_or_sleep(/*requests=*/true);
    if (error != FUNI_SUCCESS) return error;
  }
  *flag = *flag - value;
  return FUNI_SUCCESS;
}

/// By dissemination: in round r a node tells the one 2^r further.
int cmam_barrier(void) {
  if (messages == nullptr) return FUNI_ERR_ARGUMENT;
  Messages& m = *messages;
  if (m.handling != Handling::kNothing) return FUNI_ERR_HANDLER;
  ++m.barriers;
  std::uint32_t round = 0;
  for (std::uint32_t step = 1; step < m.nodes; step *= 2, ++round) {
    const std::uint32_t to = (m.node + step) % m.nodes;
    int error = send_words(kRequest, FUNI_HEADER(kBarrier, 1, to), round, nullptr);
    // Counts only grow: who is ahead has told of the next barrier already.
    while (error == FUNI_SUCCESS && static_cast<std::int32_t>(m.arrived[round] - m.barriers) < 0) {
      error = service_or_sleep(/*requests=*/true);
    }
    if (error != FUNI_SUCCESS) return error;
  }
  return FUNI_SUCCESS;
}
