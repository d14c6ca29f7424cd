#pragma once
// Makes a wire of a medium that loses, duplicates, reorders, damages and delays datagrams: each packet of a link
// exactly once, in the order of its class, or the link is lost.
//
// Sequence numbers and selective acknowledgement per class (send_window.h, receive_window.h); a frame is sent again
// when others that left well after it have arrived, or when the measured round trip (round_trip.h) is over, each time
// waiting longer. A window per link and class: a peer that takes nothing holds that much memory and nothing that
// others need. A peer that has been silent for a while is asked by one frame at a time, not by all; after longer it
// gets no data at all until it answers, only questions. Kernels say rarely that nobody has an address, and data to the
// dead would use that up.
//
// Who is alive: a link is lost when its receiver says that it does not know it, when the medium says that nobody has
// the address (once, if something has found that out which we sent after the link was made; else twice), or after
// ReliableOptions::silence_limit_ns without any answer. A stopped process is silent but its address is not free: it is
// waited for until then.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/observe/counters.h"
#include "engine/wire/other_nodes.h"
#include "engine/wire/reliable/datagram.h"
#include "engine/wire/reliable/frame.h"
#include "engine/wire/reliable/reliable_link.h"
#include "engine/wire/wire.h"

namespace portofu {

struct ReliableOptions {
  /// Differs from that of every other life of this or another process: 64 random bits.
  std::uint64_t life = 0;
  /// How long a peer may owe us an answer before its link is lost. Longer than any stop that has to be survived; on a
  /// medium that does not tell of addresses that nobody has, it is also how long the dead are waited for.
  std::uint64_t silence_limit_ns = 10'000'000'000;
  /// WireLimits::connect_timeout_ns: how long a stopped process is waited for before the first packet to it.
  std::uint64_t connect_timeout_ns = kConnectTimeoutNs;
};

/// Used by the thread on duty. Time passes in whichever function is called: while is_settled is false, or next_due_ns
/// has come, somebody has to look (peek, has_packets).
class ReliableWire final : public Wire, public OtherNodes {
 public:
  ReliableWire(std::unique_ptr<DatagramEndpoint> endpoint, const ReliableOptions& options, Counters counters);
  /// Tells all peers, once and without waiting, that nobody is here any more.
  ~ReliableWire() override;

  ReliableWire(const ReliableWire&) = delete;
  ReliableWire& operator=(const ReliableWire&) = delete;

  ConnectResult connect(ProcessId peer, Link** link) override;
  void disconnect(Link* link) override;
  void introduce(std::uint16_t ear, std::function<void(std::uint32_t nid, std::uint16_t port)> note) override;
  void end_life(ProcessId process, std::uint64_t life) override;
  void ask_anew(ProcessId peer) override;
  bool leads_to_name(Link& link) override;
  bool has_unheard(ProcessId peer, std::uint64_t life) override;
  void give_up(ProcessId peer) override;
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override;
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link& link) override;
  bool peek(Packet& packet) override;
  void release() override;
  bool has_packets() override;
  bool has_room_again() override;
  int check_peers() override;
  bool take_closed_source(ProcessId* source, void** engines) override;

  /// True if nothing that was published is still to be delivered, and no link is being made or closed.
  bool is_settled() const;
  bool has_delivered() const override { return endpoint_->is_over() || is_settled(); }

  /// When something has to be sent though nothing arrives; UINT64_MAX: never.
  std::uint64_t next_due_ns() const override {
    return acks_.empty() ? next_due_ns_ : std::min(next_due_ns_, acks_due_ns_);
  }
  int wait_fd() const override { return endpoint_->wait_fd(); }

  /// Bytes that are kept for peers which have not acknowledged them, and for the engine which has not taken them.
  HeldBytes send_held() const { return send_held_; }
  HeldBytes receive_held() const { return receive_held_; }

  /// Links that are known, at either end. Bounded by the peers of the last minutes.
  std::size_t link_count() const { return outgoing_.size() + incoming_.size(); }

 private:
  using LinkKey = std::pair<std::uint64_t, std::uint64_t>;  ///< Process at the other end, and id.

  // reliable_wire.cpp
  std::byte* claim_of_class(Link& link, std::uint32_t payload_bytes, TrafficClass traffic);
  template <class Use>
  void for_each_link_to(ProcessId peer, Use&& use);
  template <class Use>
  void for_each_link_from(ProcessId source, Use&& use);
  bool take_front(IncomingLink& link, Packet& packet);
  bool waits_for_older(const IncomingLink& link) const;
  void list_if_ready(IncomingLink& link);
  OutgoingLink& open_link(ProcessId peer);
  bool open_way_back(ProcessId source);
  void close_way_back(ProcessId source);
  void end_of_opening(ProcessId peer);
  void end_incoming(IncomingLink& link);
  void forget_incoming(IncomingLink& link);
  void lose(OutgoingLink& link);
  void refuse_source(ProcessId source);
  std::uint64_t new_number();

  // reliable_receive.cpp: what arrives.
  void read_clock();
  void progress();
  bool receive_frames();
  void receive_frame(ProcessId source, const FrameHeader& frame, std::span<const std::byte> body);
  void receive_open(ProcessId source, const FrameHeader& frame);
  void receive_accept(ProcessId source, const FrameHeader& frame);
  void receive_for_receiver(ProcessId source, const FrameHeader& frame, std::span<const std::byte> body);
  void receive_for_sender(ProcessId source, const FrameHeader& frame, std::span<const std::byte> body);
  void receive_ack(OutgoingLink& link, std::span<const std::byte> body);
  void confirm(IncomingLink& link);
  void take_unreachable();

  // reliable_timers.cpp: what is sent.
  void serve_timers();
  void sweep_outgoing();
  void sweep_incoming();
  std::uint64_t serve(OutgoingLink& link);
  std::uint64_t serve(IncomingLink& link);
  std::uint64_t send_due_data(OutgoingLink& link);
  bool is_silent(const OutgoingLink& link) const;
  bool is_only_asked(const OutgoingLink& link) const;
  bool send_frame(ProcessId peer, FrameHeader& header, std::span<const std::byte> body);
  bool send_plain(ProcessId peer, FrameKind kind, std::uint64_t link, std::uint64_t acceptance);
  bool send_ack(IncomingLink& link);
  void send_acks();
  void want_ack(IncomingLink& link, bool urgent);
  void wake_at(std::uint64_t due_ns) { next_due_ns_ = due_ns < next_due_ns_ ? due_ns : next_due_ns_; }

  std::unique_ptr<DatagramEndpoint> endpoint_;
  const ReliableOptions options_;
  HeldBytes send_held_;
  HeldBytes receive_held_;
  const std::uint32_t frame_bytes_;  ///< Most bytes of a packet in one frame.
  PacketBuffer datagram_;            ///< Where datagrams are received.
  std::map<LinkKey, std::unique_ptr<OutgoingLink>> outgoing_;
  std::map<LinkKey, std::unique_ptr<IncomingLink>> incoming_;
  std::map<std::uint64_t, std::deque<IncomingLink*>> sources_;  ///< Of each process, as they were confirmed.
  std::deque<IncomingLink*> ready_;                             ///< Have a packet for the engine; fairly in turn.
  std::vector<IncomingLink*> acks_;                             ///< Those with ack_wanted.
  IncomingLink* held_link_ = nullptr;                           ///< Of the packet between peek and release.
  ReceiveWindow* held_window_ = nullptr;                        ///< Of the same.
  std::uint64_t numbers_given_ = 0;                             ///< By new_number.
  std::uint64_t now_ns_;                                        ///< As of the last look at the clock.
  std::uint64_t next_due_ns_ = UINT64_MAX;                      ///< When serve_timers has something to do.
  std::uint64_t acks_due_ns_ = 0;                               ///< For acks_; later than now: there was no room.
  std::uint32_t news_withheld_ = 0;                             ///< Looks in a row without news of the unreachable.
  int newly_lost_ = 0;                                          ///< Links since the last check_peers.
  std::uint16_t ear_ = 0;                                       ///< Of introduce.
  std::function<void(std::uint32_t nid, std::uint16_t port)> note_;
  Counters counters_;
};

template <class Use>
void ReliableWire::for_each_link_from(ProcessId source, Use&& use) {
  const std::uint64_t key = process_key(source);
  for (auto at = incoming_.lower_bound({key, 0}); at != incoming_.end() && at->first.first == key;) {
    IncomingLink& link = *at->second;
    ++at;  // The link may be forgotten.
    use(link);
  }
}

template <class Use>
void ReliableWire::for_each_link_to(ProcessId peer, Use&& use) {
  const std::uint64_t key = process_key(peer);
  for (auto at = outgoing_.lower_bound({key, 0}); at != outgoing_.end() && at->first.first == key; ++at)
    use(*at->second);
}

}  // namespace portofu
