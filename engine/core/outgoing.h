#pragma once
// A message on its way out, whichever API it is of and whether it asks or answers: its header, where its payload lies,
// how far it has come, and what to do when its memory is free again. The steps are those of mailbox/outbox; this is the
// state that they share.

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>

#include "engine/core/incoming.h"
#include "engine/descriptor/descriptor.h"
#include "engine/memory/memory_segment.h"
#include "engine/queue/line_aligned.h"
#include "engine/wire/header.h"

namespace portofu {

struct Core;
struct OutgoingMessage;
struct Peer;

/// What whoever sends a message has to do for it. One constant for each kind of message.
struct OutgoingHooks {
  /// Called before the first packet: opens the operation that the peer will answer, and names it in the header.
  /// Returns false if that cannot be done now. nullptr: there is nothing to open.
  bool (*open)(Core& core, Peer& peer, OutgoingMessage& message) = nullptr;

  /// The memory of the message is free: all has left and was read, or never will (`fail`). Called once, and last.
  /// nullptr: nobody wants to know.
  void (*finish)(Core& core, Peer& peer, OutgoingMessage& message, NiFail fail) = nullptr;
};

/// Of a message that belongs to nobody.
inline constexpr OutgoingHooks kNoHooks{};

/// Where the payload of a message lies until it leaves.
enum class SourceKind : std::uint8_t {
  kNone,     ///< It has no payload, or that is at its place already.
  kSegment,  ///< In memory of the application: `segment`, from `offset` on.
  kCopy,     ///< In `copy`.
  kOperand,  ///< In the operand of the descriptor, from `offset` on.
  kGone,     ///< Its memory was taken away; the message ends with `fail`.
};

/// What a message says first, and what it is about, for its hooks.
union OutgoingWords {
  struct Answer {
    PacketHeader header;  ///< Of the first packet.
    Arrival get;          ///< The get that it answers; meaningful in a message that has hooks.
  };

  Descriptor request;  ///< What was asked for. It begins with the header of the first packet.
  Answer answer;       ///< OutgoingMessage::is_answer.

  explicit OutgoingWords(const Descriptor& asked) : request(asked) {}
  OutgoingWords(const PacketHeader& said, const Arrival& get) : answer{said, get} {}
};

struct OutgoingMessage : LineAligned, boost::intrusive::list_base_hook<> {
  const OutgoingHooks* hooks = &kNoHooks;  ///< Never nullptr.
  const MemorySegment* segment = nullptr;  ///< kSegment. Whoever takes it away calls take_source_away before.
  std::uint64_t offset = 0;                ///< Bytes into the source where the payload begins.
  std::uint64_t length = 0;                ///< Bytes of payload in all, without `front_bytes`.
  std::unique_ptr<std::byte[]> copy;       ///< kCopy: the whole payload.
  std::uint64_t sent = 0;                  ///< Bytes of payload published.
  std::uint64_t first_packet = 0;          ///< Number of its first packet on the link, of a message that may be lent.
  /// Number behind its last packet that was lent, or of its departure (departure_of); 0: its end waits for neither.
  std::uint64_t lent_end = 0;
  SourceKind source = SourceKind::kNone;
  NiFail fail = NiFail::kOk;         ///< kGone: what its end says. Once all has left: how it ended.
  std::uint8_t interface_index = 0;  ///< Of whom it is.
  std::uint8_t front_bytes = 0;      ///< Bytes of the descriptor's operand in front of the payload.
  const bool is_answer;              ///< It is an answer (is_of_answer), and waits for no request.
  bool may_be_lent = false;          ///< Its payload may stay where it is until the peer has read it.
  bool is_copied_to_wait = false;    ///< What its memory holds now shall arrive: it is copied if it has to wait.
  bool is_told_in_order = false;     ///< Its end is told behind the ends of those before it, lent ones too.
  bool is_end_awaited = false;       ///< Somebody notices when its memory is free.
  bool started = false;              ///< The first packet is published.
  /// Posted when the link was known to be lost, or when one was being made: that nobody is there may be older than this
  /// message, so it goes with the next link.
  bool anew = false;
  OutgoingWords words;

  explicit OutgoingMessage(const Descriptor& request) : is_answer(false), words(request) {}
  explicit OutgoingMessage(const PacketHeader& answer, const Arrival& get = {}) : is_answer(true), words(answer, get) {}

  /// Of the first packet. `operation_id` of a request is 0 until `open` has named one.
  PacketHeader& header() { return is_answer ? words.answer.header : words.request; }
  const PacketHeader& header() const { return is_answer ? words.answer.header : words.request; }
};

/// Memory for one more message that has to be kept. It is taken before anything of the message leaves.
class SpareMessage {
 public:
  SpareMessage() = default;
  ~SpareMessage() { OutgoingMessage::operator delete(memory_); }
  SpareMessage(const SpareMessage&) = delete;
  SpareMessage& operator=(const SpareMessage&) = delete;

  /// Throws bad_alloc without memory.
  void ensure() {
    if (memory_ == nullptr) memory_ = OutgoingMessage::operator new(sizeof(OutgoingMessage));
  }

  /// @pre ensure()
  OutgoingMessage* keep(OutgoingMessage&& message) {
    return ::new (std::exchange(memory_, nullptr)) OutgoingMessage(std::move(message));
  }

 private:
  void* memory_ = nullptr;
};

/// All messages of one direction, asking or answering, that are on their way to a peer.
struct Outbox {
  boost::intrusive::list<OutgoingMessage> waiting;  ///< In the order of posting; the first may be partly sent.
  boost::intrusive::list<OutgoingMessage> lent;     ///< All has left, and the peer may still read our memory.

  bool is_empty() const { return waiting.empty() && lent.empty(); }

  /// Calls `visit(message)` for all of them.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (OutgoingMessage& message : lent) visit(message);
    for (OutgoingMessage& message : waiting) visit(message);
  }

  /// Forgets those of which `is_it(message)` is true. Their hooks are not called.
  template <class IsIt>
  void forget_if(IsIt&& is_it) {
    const auto drop = [](OutgoingMessage* message) { delete message; };
    waiting.remove_and_dispose_if(is_it, drop);
    lent.remove_and_dispose_if(is_it, drop);
  }
};

}  // namespace portofu
