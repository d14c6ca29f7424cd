#pragma once
// What bounds the messages that a peer keeps because nobody has received them (Settings::unexpected_mib). Behind each
// MiB of messages goes a mark, an empty put, which its target answers late: when there is memory for more. A sender
// with many marks unanswered holds its next messages back, as triggered operations on the counter of the answers. So
// they leave in order, and a peer that is gone, whose marks fail, lets them go. A target that waits for a message takes
// all that come: the one that it waits for may be behind those that it does not receive. So does one that looks nowhere
// while a receive of it waits, because progress is automatic (ProgressThread).

#include "lib/libfabric/domain.h"

namespace portofu::fabric {

/// For one address. On duty.
struct Credit {
  std::uint64_t bytes = 0;     ///< Sent since the last mark.
  std::uint64_t marks = 0;     ///< Sent.
  std::uint64_t answered = 0;  ///< Of those, as far as we have looked.
  Handle md_handle = 0;        ///< Of the marks; 0: none was needed yet.
  Handle ct_handle = 0;        ///< Counts their answers.
  bool holds = false;          ///< Some message was held back when we looked last.
  bool holds_fence = false;    ///< A fenced operation was, and with it all that was posted later (fi_msg(3), FI_FENCE).
};

/// Marks without an answer with which messages may still leave.
inline constexpr std::uint64_t kMostMarks = 8;
/// What a mark stands for: messages, and for each the memory of its header.
inline constexpr std::uint64_t kMarkBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMessageBytes = 256;

/// The slow half of turn_of.
Trigger look_for_turn(Core& core, Credit& credit);

/// When the next message may leave. @return a trigger without counter: now
inline Trigger turn_of(Core& core, Credit& credit) {
  if (credit.marks - credit.answered < kMostMarks && !credit.holds) [[likely]]
    return {};
  return look_for_turn(core, credit);
}

/// When that may leave which is no message, and waits only for those before it that wait: however many marks have no
/// answer, a message that has left is over. @return a trigger without counter: now
Trigger turn_behind_held(Core& core, Credit& credit);

/// A message has been posted. @return whether a mark is due behind it
inline bool is_mark_due(Credit& credit, std::uint64_t length) {
  credit.bytes += length + kMessageBytes;
  return credit.bytes >= kMarkBytes;
}

/// Makes the next mark, but for its target; whoever sends it counts it. @return false if there is no memory; it does
/// without then
bool make_mark(Core& core, Credit& credit, Descriptor* mark);

/// The slow half of note_vain_look.
void take_if_awaited(Core& core);

/// On duty: the application has looked for something to happen, and nothing has. It may wait for a message, if it has
/// posted a receive.
inline void note_vain_look(Core& core) {
  if (!interface_of(core).late_answers.empty()) [[unlikely]]
    take_if_awaited(core);
}
/// On duty: it has looked for a message that has not come.
void note_miss(Core& core);
/// On duty: it will sleep at the file descriptor of an object, if nothing has happened; else, or if the object is
/// closed, nobody sleeps there.
/// @param is_slept_at  of the object
void note_sleep(Core& core, const Domain& domain, bool& is_slept_at, bool sleeps);
/// On duty: who sleeps may wait for a message. To be called when a receive is posted.
void look_after_sleepers(Core& core, const Lane& lane);

/// Nothing is sent there any more.
void close_credit(Core& core, Domain& domain, Credit& credit);

}  // namespace portofu::fabric
