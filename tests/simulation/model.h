#pragma once
// What the engines of a simulated network have to do, in the plainest form: vectors that are searched from the front,
// no hashing, no handles that are used again, no packets. The order in which things happen is the engines' own: the
// model is told of each packet that leaves or arrives, of each call of an application and of each triggered operation
// that starts, and says what must follow. What a packet carries is never believed but compared with what was posted.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/interface.h"
#include "engine/descriptor/descriptor.h"
#include "engine/descriptor/status.h"
#include "engine/target/list_entries.h"
#include "engine/wire/header.h"

namespace portofu::simulation {

/// Part of the memory of a process; offsets run through the pieces in order.
struct ModelRegion {
  struct Piece {
    std::size_t at;     ///< Index into the memory.
    std::size_t bytes;  ///< May be 0.
  };
  std::vector<Piece> pieces;

  std::uint64_t length() const;
  /// Index into the memory of the byte at `offset`, which lies inside.
  std::size_t place(std::uint64_t offset) const;
};

/// A list entry as the application asks for it.
struct EntryPlan {
  ModelRegion region;
  MatchCriteria criteria;  ///< Non-matching interface: not looked at.
  std::uint64_t min_free = 0;
  std::uintptr_t name = 0;  ///< `user_ptr`; no two entries or searches have the same.
  std::uint32_t options = 0;
  std::uint32_t uid = kUidAny;
  Handle ct = 0;
  std::uint16_t pt_index = 0;
  ListKind list = ListKind::kPriority;
};

struct ModelEntry {
  EntryPlan plan;
  Handle handle = 0;
  EntryState state = EntryState::kLinked;
  std::uint64_t local_offset = 0;  ///< MANAGE_LOCAL.
  int pending = 0;                 ///< Messages matched, or whose headers it claimed, and not complete.
  int headers = 0;                 ///< Unexpected headers that refer to it.
  bool unlink_promised = false;    ///< A place for AUTO_UNLINK in its queue, until its last message is complete.
  bool is_linked() const { return state == EntryState::kLinked; }
};

struct ModelMessage;

/// An unexpected header.
struct ModelHeader {
  ModelMessage* message = nullptr;
  ModelEntry* entry = nullptr;  ///< Where it was delivered.
  bool complete = false;
  bool claimed = false;  ///< Taken by `claimer` before it was complete.
  EntryPlan claimer;
  ModelEntry* appended = nullptr;  ///< The claimer, whose `pending` counts it; nullptr: a search.
  std::shared_ptr<int> unended;    ///< Of a persistent search: how many such headers it has claimed.
};

/// What the target answers.
struct ModelAnswer {
  NiFail fail = NiFail::kOk;
  ListKind list = ListKind::kPriority;
  bool silent = false;
  std::uint64_t mlength = 0;
  std::uint64_t remote_offset = 0;
};

/// One transfer, from its start at the initiator to its end there. Kept until the end of the test.
struct ModelMessage {
  Descriptor descriptor;
  std::size_t initiator = 0;  ///< Index of the process.
  std::size_t target = 0;
  std::vector<std::byte> data;     ///< What is to be sent.
  std::uint32_t operation_id = 0;  ///< From its first packet; 0 if no answer is wanted.
  std::uint64_t published = 0;     ///< Bytes of `data` that have left.
  bool started = false;            ///< Its first packet has left.
  bool sent = false;               ///< All have, and the target is done with what was lent.
  std::uint64_t lent_end = 0;      ///< Behind the last packet that was lent; 0: none was.
  std::uint64_t lent_bytes = 0;    ///< Of `data`, up to the end of that packet.

  ModelEntry* entry = nullptr;    ///< Where it matched.
  ModelHeader* header = nullptr;  ///< Unexpected header that was kept, until it is complete.
  std::uint64_t offset = 0;       ///< Bytes into the entry.
  std::uint64_t received = 0;     ///< Bytes of `data` that have arrived.
  std::uint32_t promised = 0;     ///< Events of its own that it will still post at a queue with flow control.
  bool arrived = false;           ///< All data has arrived, or was refused with the first packet.

  bool answer_due = false;              ///< The target has to answer now.
  ModelAnswer answer;                   ///< Meaningful then.
  std::vector<std::byte> reply;         ///< Data of the answer, as far as it has been read.
  std::uint64_t answered = 0;           ///< Bytes of it that have left the target.
  std::uint64_t reply_taken = 0;        ///< Bytes of it that have arrived at the initiator.
  std::uint64_t answer_lent_end = 0;    ///< As lent_end.
  std::uint64_t answer_lent_bytes = 0;  ///< As lent_bytes, of `reply`.
  bool answer_sent = false;
  bool answer_taken = false;  ///< The answer is at the initiator, with all its data.
  bool over = false;          ///< Everything was told at the initiator.
};

struct ModelPortal {
  std::vector<ModelEntry*> priority;
  std::vector<ModelEntry*> overflow;
  std::vector<ModelHeader*> unexpected;
  Handle eq = 0;
  bool flow_control = false;
  bool enabled = true;
};

struct ModelQueue {
  std::vector<Event> events;  ///< All that were ever posted.
  std::uint64_t taken = 0;    ///< How many of them the application has, or are lost.
  std::uint64_t capacity = 0;
  std::uint64_t promised = 0;
  bool overflowed = false;  ///< Events were lost, which a local call may do (2.8): its contents say no more.
                            ///< Messages at a portal table entry with flow control never do it (3.13.5).

  /// Events that the application has not taken and that use up `capacity`: the place of PT_DISABLED comes on top
  /// (implementation note 13).
  std::uint64_t used() const;
};

/// An operation that waits for a count.
struct ModelTrigger {
  std::uint64_t threshold;
  Descriptor descriptor;
};

struct ModelCounter {
  std::uint64_t success = 0;
  std::uint64_t failure = 0;
  std::vector<ModelTrigger> waiting;  ///< In the order of the calls.
};

struct ModelMd {
  ModelRegion region;
  std::uint32_t options = 0;
  Handle eq = 0;
  Handle ct = 0;
  int pending = 0;
  bool released = false;
};

/// One process with one logical interface.
struct ModelProcess {
  ProcessId id;            ///< Physical.
  ProcessId initiator_id;  ///< As its targets see it: physical, or the rank in `nid`.
  std::uint32_t uid = 0;
  Limits limits{};
  std::byte* real = nullptr;  ///< Where the engine's memory lies, for `start` of events. Never touched.
  std::vector<std::byte> memory;
  std::map<std::uint16_t, ModelPortal> portals;
  std::map<Handle, ModelQueue> queues;
  std::map<Handle, ModelCounter> counters;
  std::map<Handle, ModelMd> mds;
  std::vector<std::unique_ptr<ModelEntry>> entries;  ///< Of all times.
  std::vector<std::unique_ptr<ModelHeader>> headers;
  int header_count = 0;  ///< Live headers.
  std::array<std::int64_t, kStatusRegisterCount> status{};
  std::deque<Descriptor> fired;     ///< Triggered operations that may start, in order.
  std::uint64_t started_count = 0;  ///< Triggered operations started ever.
  std::uint32_t waiting_count = 0;  ///< Triggered operations below their thresholds, or not yet started.
};

/// The whole network.
class Model {
 public:
  /// @param interface_index  of every process: bit 0 is matching, bit 1 is logical
  explicit Model(std::uint32_t interface_index) : interface_index_(interface_index) {}

  std::deque<ModelProcess> processes;
  std::vector<std::unique_ptr<ModelMessage>> messages;

  /// The first thing that went otherwise; empty as long as all is well. Nothing may be called after that.
  const std::string& complaint() const { return complaint_; }
  void complain(const std::string& text);

  // What applications do. Each is called at the moment when the engine does it.
  void start(std::size_t process, const Descriptor& descriptor);
  Status append(std::size_t process, const EntryPlan& plan, Handle handle);
  Status unlink(std::size_t process, Handle handle);
  void search(std::size_t process, const EntryPlan& plan, SearchOperation operation);
  void arm(std::size_t process, Handle ct, const ModelTrigger& trigger);
  void cancel(std::size_t process, Handle ct);
  void free_counter(std::size_t process, Handle ct);

  /// The engine has started so many triggered operations in all.
  void start_fired_until(std::size_t process, std::uint64_t started_count);

  // What wires see.
  /// @param lent_end  not 0: the payload is still in the memory of `process`, until `taken` says that number
  void published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end);
  void taken(std::size_t process, ProcessId peer, std::uint64_t lent_end);
  /// The target tells the initiator, without a packet, that all is done as it was asked for.
  void acknowledged(std::size_t process, ProcessId peer, std::uint32_t operation_id);
  void acknowledgement_taken(std::size_t process, ProcessId peer, std::uint32_t operation_id);
  void peeked(std::size_t process, ProcessId source, const PacketHeader& header);

  std::size_t index_of(ProcessId id) const;

 private:
  struct Pair {
    std::deque<ModelMessage*> unsent;        ///< Started and not completely sent, in order.
    std::deque<ModelMessage*> in_flight;     ///< First packet sent, data not completely arrived, in order.
    std::deque<ModelMessage*> lent;          ///< All has left, and the target may still read it, in order.
    std::deque<ModelMessage*> lent_answers;  ///< Gets whose answer has left, and may still be read, in order.
    ModelMessage* answering = nullptr;       ///< Whose answer (of the second to the first) is partly sent.
    ModelMessage* taking = nullptr;          ///< Whose answer has partly arrived.
  };
  Pair& pair(std::size_t initiator, std::size_t target) { return pairs_[{initiator, target}]; }
  bool matching() const { return (interface_index_ & 1) != 0; }
  bool logical() const { return (interface_index_ & 2) != 0; }

  // model.cpp: events and counts.
  void post(ModelProcess& process, Handle eq, const Event& event, bool has_passed = false);
  void count(ModelProcess& process, Handle ct, bool good, std::uint64_t amount);
  void fire(ModelProcess& process, ModelCounter& counter);
  void start_next_fired(std::size_t process);
  void change_counter(ModelProcess& process, const Descriptor& descriptor);

  // model_initiator.cpp
  void publish_request(std::size_t process, std::size_t peer, const PacketHeader& header, std::uint64_t lent_end);
  void publish_more(std::size_t process, std::size_t peer, const PacketHeader& header, std::uint64_t lent_end);
  void check_first_packet(const ModelMessage& message, const PacketHeader& header);
  void sent(ModelMessage& message);
  void take_answer(std::size_t process, std::size_t source, const PacketHeader& header);
  void take_answer_data(ModelMessage& message, const PacketHeader& header);
  void finish(ModelMessage& message);
  bool wants_notice(const ModelMessage& message);
  void report_send(ModelMessage& message);
  void report_ack(ModelMessage& message);
  void report_reply(ModelMessage& message);
  ModelMd* md_of(const ModelMessage& message, Handle handle);
  ModelMessage* find_operation(std::size_t initiator, std::size_t target, std::uint32_t operation_id);

  // model_target.cpp
  void arrive(std::size_t process, std::size_t source, const PacketHeader& header);
  void arrive_more(std::size_t process, std::size_t source, const PacketHeader& header);
  void publish_answer(std::size_t process, std::size_t peer, const PacketHeader& header, std::uint64_t lent_end);
  ModelMessage* check_answer(std::size_t process, std::size_t peer, const PacketHeader& header);
  void publish_answer_data(ModelProcess& process, ModelMessage& message, const PacketHeader& header,
                           std::uint64_t lent_end);
  bool matches_entry(const ModelEntry& entry, const ModelMessage& message);
  ModelEntry* find_entry(const std::vector<ModelEntry*>& list, const ModelMessage& message);
  bool match(ModelProcess& process, ModelMessage& message);
  bool refuse(ModelProcess& process, ModelMessage& message, NiFail fail, bool silent);
  bool exhausted(ModelProcess& process, ModelMessage& message, const ModelEntry* entry);
  bool judge(ModelProcess& process, ModelMessage& message, const ModelEntry& entry);
  struct Place {
    std::uint64_t offset;
    std::uint64_t mlength;
  };
  static Place place_in(const ModelEntry& entry, const ModelMessage& message);
  static bool is_used_up_by(const ModelEntry& entry, const ModelMessage& message);
  static bool is_aligned(const ModelProcess& process, const ModelMessage& message, const ModelEntry& entry);
  void take(ModelProcess& process, ModelPortal& portal, ModelMessage& message);
  void deliver(ModelProcess& process, ModelMessage& message, std::uint64_t bytes);
  void execute(ModelProcess& process, ModelMessage& message);
  void read(ModelProcess& process, ModelMessage& message, std::uint64_t bytes);
  void complete(ModelProcess& process, ModelMessage& message);
  Event event_of(const ModelProcess& process, const ModelMessage& message) const;
  void tell_overflow(ModelProcess& process, ModelHeader& header);
  void claim(ModelProcess& process, ModelPortal& portal, ModelHeader& header, const EntryPlan& claimer);
  void end_search(ModelProcess& process, const EntryPlan& plan);
  void forget(ModelProcess& process, ModelHeader& header);
  void advance_unlink(ModelProcess& process, ModelEntry& entry, bool has_passed = false);
  bool withdraw_unlink_promise(ModelProcess& process, ModelEntry& entry);
  bool header_matches(const EntryPlan& plan, const ModelHeader& header);
  ModelEntry* find_handle(ModelProcess& process, Handle handle);

  std::uint32_t interface_index_;
  std::string complaint_;
  std::map<std::pair<std::size_t, std::size_t>, Pair> pairs_;  ///< By initiator and target.
};

}  // namespace portofu::simulation
