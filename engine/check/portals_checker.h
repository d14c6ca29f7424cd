#pragma once
// What a program of Portals does that no section allows, seen at its calls. On duty.
//
// The engine knows when a source is free; the program knows it when it reads SEND or ACK, or a counter that has counted
// them. What changes between is found by comparing the source then with what it was at the call. In the same way the
// memory of a message is compared when its event is read with what it was when the event was posted.

#include <cstdint>
#include <deque>
#include <list>
#include <set>
#include <unordered_map>

#include "engine/check/finding.h"
#include "engine/check/fingerprint.h"
#include "engine/core/core.h"

namespace portofu {

class PortalsChecker {
 public:
  explicit PortalsChecker(FindingLog& log) : log_(log) {}

  /// Before a transfer starts. Not of a triggered one, whose source may change until it fires (3.16).
  void starts(const Interface& ni, const MemoryDescriptor& md, const Descriptor& descriptor);

  /// Before the oldest event of a queue is handed to the program.
  void reads_event(Core& core, const EventQueue& queue);

  /// The program has seen these counts, or may have: an operation has started that waited for them.
  void reads_count(const CountingEvent* counter, std::uint64_t success, std::uint64_t failure);
  /// The program changes a counter itself: what its numbers mean is unknown from now on.
  void changes_count(const CountingEvent* counter);

  void releases(const MemoryDescriptor& md);
  void frees(const Interface& ni, Handle eq_handle, EventQueue& queue);
  void frees(Interface& ni, Handle ct_handle, const CountingEvent& counter);
  /// Scattered entries tell in their events only where they begin, so what arrives there is not looked at.
  /// @param ct_handle  which counts the messages of the entry; 0: none does
  void appends(const Interface& ni, std::uint32_t pt_index, bool is_scattered, Handle ct_handle);
  void allocates_portal(std::uint32_t pt_index);

  /// Before an interface is closed with what it has.
  /// @param call  that closes it
  void closes(Interface& ni, const char* call);

  /// An event has been posted, and nobody else knows of it yet: keeps what its memory holds.
  void posts_event(const Interface& ni, const EventQueue& queue) { look_at(ni, queue); }
  /// A message that is no get is complete; its event, if it has one, is the next that is posted.
  void takes(const Arrival& arrival);
  /// Events may have come.
  void look(Core& core);

 private:
  /// What counts an end of a transfer.
  struct Counted {
    const CountingEvent* counter;  ///< nullptr: nothing does.
    std::uint64_t reached;         ///< The counter has counted it from this value on.
  };
  /// A transfer whose end the program does not know yet.
  struct Started {
    const char* call;
    PacketType type;
    const MemoryDescriptor* md;
    Handle md_handle;
    const EventQueue* queue;        ///< Where SEND and ACK go; nullptr: nowhere.
    const EventQueue* reply_queue;  ///< Where REPLY goes.
    std::array<Counted, 2> counts;  ///< Of its SEND or ACK; of its REPLY.
    void* user_ptr;
    bool is_counted() const { return counts[0].counter != nullptr || counts[1].counter != nullptr; }
    bool is_counted_at(const CountingEvent* counter) const {
      return counts[0].counter == counter || counts[1].counter == counter;
    }
    bool tells_end;           ///< SEND or REPLY is posted.
    bool tells_ack;           ///< So is ACK.
    Fingerprint source;       ///< Of a get: none.
    Fingerprint destination;  ///< Of what brings data.
    std::uint64_t local_offset;
    std::uint64_t remote_offset;
    std::uint64_t length;
  };
  /// An event that is not read yet, of data that has arrived.
  struct Arrived {
    Fingerprint memory;
    ProcessId initiator;
    EventKind type = EventKind::kPut;
    std::uint64_t place = 0;  ///< place_of.
    std::uint64_t match_bits = 0;
    bool watched = false;
    bool acknowledged = false;  ///< Its initiator may know that it is complete.
  };
  struct Unread {
    std::deque<Arrived> events;  ///< One for each in the queue, oldest first.
    bool lossy = false;          ///< Events were pushed out: which is which is unknown.
  };

  static std::uint64_t place_of(const Interface& ni, std::uint32_t pt_index) {
    return std::uint64_t{ni.index} << 32 | pt_index;
  }

  void learns(std::list<Started>::iterator started);
  /// The same of all that are it.
  template <class IsIt>
  void learns_of_all(IsIt is_it);
  Counted count_at(const Interface& ni, const MemoryDescriptor& md);
  void learns(Arrived& arrived, const char* call);
  /// A message that no event tells of has changed memory, so that what is there then says nothing of the program.
  void overwrites(const Arrival& arrival);
  void look_at(const Interface& ni, const EventQueue& queue);
  void arrives(Unread& unread, const Interface& ni, const Event& event);
  void check_room(const EventQueue& queue);
  void check_ack(const MemoryDescriptor& md, const Descriptor& descriptor);
  void check_early_use(const MemoryDescriptor& md, const Descriptor& descriptor);
  void check_overlap(const MemoryDescriptor& md, const MemoryDescriptor& reply_md, const Descriptor& descriptor);
  std::list<Started>::iterator ended_by(const EventQueue& queue, const Event& event);
  void tell_unread(const EventQueue& queue, Handle eq_handle, const char* call);

  static constexpr std::size_t kMostStarted = 4096;  ///< Further ones are not looked at.

  FindingLog& log_;
  std::list<Started> started_;                                       ///< In the order of the calls.
  std::unordered_map<const CountingEvent*, std::uint64_t> counted_;  ///< What the counter has when all have ended.
  std::unordered_map<const EventQueue*, Unread> unread_;
  /// Portal table entries (place_of) whose messages a counter tells of.
  std::unordered_map<const CountingEvent*, std::set<std::uint64_t>> counted_places_;
  std::array<bool, kInterfaceCount> scattered_{};
  bool is_acknowledged_ = false;  ///< Arrived::acknowledged of the next.
};

}  // namespace portofu
