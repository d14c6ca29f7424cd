#pragma once
// The connector of the interface to the network, which is Portals (engine/doc/decisions/030-funi-over-portals.md).
//
// A portal table entry for each class. Free slots of the receive queue stand in its priority list, so a packet is
// written where the program will read it. The receive buffer of the thesis (5.5) is its overflow list: ten entries, in
// which packets wait that find no slot. The group is the match bits. The last entry of that list matches everything and
// has no memory: the acknowledgement of Portals says that nothing was taken, and is the negative one of the thesis
// (2.8). All this is done by the engine, also while the program computes.

#include <funi.h>
#include <portals4.h>

#include <array>
#include <cstdint>
#include <deque>

#include "lib/funi/packet.h"

namespace portofu::funi {

/// The receiving side of a class.
class Inlet {
 public:
  /// @param slots  of the largest queue
  /// @return false if Portals refuses
  bool open(ptl_handle_ni_t ni, std::uint32_t slots);
  void close();

  ptl_handle_eq_t events() const { return events_; }
  ptl_pt_index_t entry() const { return entry_; }

  /// Packets of which group may enter. What is armed must have been disarmed.
  bool set_group(std::uint32_t group);

  /// Everything is rejected, or not.
  void reject_all(bool reject);

  /// Gives the next slot of the queue to the network. A packet that waits in the buffer goes into it first.
  bool arm(std::uint32_t* slot);
  std::size_t armed() const { return armed_.size(); }

  /// Takes back what the network has not filled. Events of the filled ones may wait still.
  void disarm();

  /// Gives what the buffer has free again to the network.
  bool refill_buffer();

  /// Packets in the buffer.
  std::size_t held() const { return held_.size(); }

  /// What an event of the queue means.
  /// @return whether the slot that was armed first now has a packet, `bytes` long
  bool take(const ptl_event_t& event, std::uint32_t* bytes, bool* was_held);

 private:
  struct Entry {
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    std::uint32_t* memory = nullptr;
  };

  struct Place {
    enum State : std::uint8_t { kFree, kArmed, kHolds };
    Entry entry;
    State state = kFree;
  };

  bool put_refusal_last();
  void drop_packets();
  Place* place_of(const ptl_event_t& event);
  bool append(std::uint32_t* memory, std::uint32_t group, ptl_list_t list, Entry* entry);

  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t events_ = PTL_INVALID_HANDLE;
  ptl_pt_index_t entry_ = 0;
  std::uint32_t group_ = 0;
  bool rejects_ = false;
  ptl_handle_me_t refusal_ = PTL_INVALID_HANDLE;
  std::deque<Entry> armed_;         ///< Slots, in the order of the queue.
  std::deque<std::uint32_t> held_;  ///< Groups of the packets in the buffer, the oldest first.
  std::array<Place, kHeldPackets> buffer_;
  std::array<Slot, kHeldPackets> buffer_memory_{};
};

/// Both classes, and the sending side.
class Port {
 public:
  /// What the network says of a packet that was sent.
  enum class Answer { kAccepted, kRejected, kLost };

  Port() = default;
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// @param memory  what will be sent, all of it
  bool open(void* memory, std::size_t bytes, std::uint32_t largest_queue);

  funi_address_t address() const;
  Inlet& inlet(Traffic traffic) { return inlets_[traffic]; }
  const Inlet& inlet(Traffic traffic) const { return inlets_[traffic]; }

  struct Packet {
    std::size_t offset;  ///< Into the memory of open.
    std::size_t bytes;
    Traffic traffic;
    std::uint32_t group;
    void* of;  ///< Comes back with the answer.
  };
  /// The place where a packet leaves for the network.
  bool send(const Packet& packet, const funi_address_t& to);

  /// An event: an answer of a packet that was sent, or one for `inlet(traffic).take`.
  struct Event {
    bool is_answer;
    Answer answer;
    void* of;  ///< What the answer is for.
    Traffic traffic;
    ptl_event_t arrival;
  };
  /// @return false if there is none within the time
  bool next(std::uint32_t timeout_ms, Event* event);

 private:
  bool is_open_ = false;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t memory_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t answers_ = PTL_INVALID_HANDLE;
  ptl_process_t self_{};
  std::array<Inlet, kClasses> inlets_;
};

}  // namespace portofu::funi
