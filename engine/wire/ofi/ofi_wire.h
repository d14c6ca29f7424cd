#pragma once
// The wire between nodes: messages over one reliable datagram endpoint of libfabric (fabric_endpoint.h), with links,
// credits and lives on top (ofi_message.h). A peer is reached from its (NID, PID) alone: its address is the NID, its
// port follows from the PID.
//
// Death. While something is awaited check_peers knocks at the peer's door (doorplate.h), and sends a probe that finds
// out whether the life that was known is still there. No message is an answer to a probe, so a stopped peer is not
// taken for a dead one, and costs at most a window of packets.
//
// A next life. Its hello is the end of the former one, and the link to it is made at once, be that to the former one
// given back or not. What is found out late about the former one does not end the next: nobody was there when a knock
// arrived, but that counts only if the knock left behind the hello.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/observe/counters.h"
#include "engine/segment/own_descriptor.h"
#include "engine/wire/loans.h"
#include "engine/wire/ofi/doorplate.h"
#include "engine/wire/ofi/fabric_endpoint.h"
#include "engine/wire/ofi/fabric_options.h"
#include "engine/wire/ofi/ofi_peer.h"
#include "engine/wire/ofi/socket_keeper.h"
#include "engine/wire/other_nodes.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Fixed for the life of a wire.
struct OfiOptions : FabricOptions {
  std::uint64_t life = 0;  ///< Differs from that of any other process that had or will have this id.
  std::uint64_t node = 0;  ///< node_identity; 0: peers are not told.
};

/// Packets of one link that may be under way.
inline constexpr std::uint64_t kOfiWindowPackets = 64;

/// A peer whose sends stall for so long is declared dead, whatever its kernel reports.
inline constexpr std::uint64_t kOfiStuckNs = 10'000'000'000;

/// For so long this process tries to get what it lacks, or waits for a peer that says it lacks something.
inline constexpr std::uint64_t kOfiShortNs = 1'000'000'000;

class OfiWire final : public Wire, public Loans, public OtherNodes, public SocketKeeper {
 public:
  OfiWire(OfiOptions options, Counters counters);

  /// Lets what is published arrive, for kOfiLingerNs at most, or its share of that; closes the endpoint.
  ~OfiWire() override;
  OfiWire(const OfiWire&) = delete;
  OfiWire& operator=(const OfiWire&) = delete;

  /// Opens the endpoint, if it is not open: from then on peers can reach this process. connect does it, too.
  /// @param why  a sentence for people on failure
  bool open(std::string* why);
  bool is_open() const override { return endpoint_ != nullptr; }

  /// One of so many wires of a process, which end one after another: all together linger no longer than one alone.
  void share_linger(std::uint32_t wires) { linger_ns_ = kOfiLingerNs / wires; }

  void attend(int fd, std::function<void()> handle) override;

  /// For the thread that is about to sleep: what to wait at beside the doorbell. Valid after has_packets was false.
  /// @return -1 while the endpoint is not open
  int wait_fd() const override {
    if (both_fd_) return both_fd_.number();
    return endpoint_ != nullptr ? endpoint_->wait_fd() : -1;
  }
  std::uint64_t next_due_ns() const override { return UINT64_MAX; }

  /// What is published lies at the provider, and the destructor lets it arrive.
  bool has_delivered() const override { return true; }

  ConnectResult connect(ProcessId peer, Link** link) override;
  void disconnect(Link* link) override;
  void introduce(std::uint16_t ear, std::function<void(std::uint32_t nid, std::uint16_t port)> note) override;
  void end_life(ProcessId process, std::uint64_t life) override;
  void ask_anew(ProcessId peer) override;
  bool leads_to_name(Link& link) override;
  bool has_unheard(ProcessId peer, std::uint64_t life) override;
  void give_up(ProcessId peer) override;
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }
  std::uint32_t most_lent_bytes(const Link&) const override { return longest_fetch(); }
  bool lend(Link& link, const Loan& loan) override;
  std::uint64_t next_packet(const Link& link) const override { return static_cast<const OfiLink&>(link).sent; }
  bool has_taken(Link& link, std::uint64_t packet) override {
    const auto& own = static_cast<const OfiLink&>(link);
    if (link.lost) return own.released >= packet;  // Nothing is exposed any more.
    return own.exposed.empty() || own.exposed.front().packet >= packet;
  }
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link& link) override;
  bool peek(Packet& packet) override;
  void release() override;
  bool has_packets() override;
  bool has_room_again() override;
  int check_peers() override;
  bool take_closed_source(ProcessId* source, void** engines) override;

  /// Bounds a connect where the fabric does not say that nobody is there: packets of the handshake may get lost.
  static constexpr std::uint64_t kOfiConnectNs = 10'000'000'000;
  static constexpr std::uint64_t kOfiLingerNs = 1'000'000'000;

 private:
  // Sending half.
  std::uint16_t port_of(ProcessId id) const { return static_cast<std::uint16_t>(options_.base_port + id.pid); }
  OfiPeer* find_peer(ProcessId id);
  OfiPeer* make_peer(ProcessId id);
  void make_link(OfiPeer& peer);
  ConnectResult greet(OfiPeer& peer);
  void send_hello(OfiPeer& peer);
  void send_control(OfiPeer& peer, OfiKind kind, std::uint64_t peer_life, std::uint32_t link, std::uint64_t count);
  OfiEnvelope envelope(OfiKind kind, std::uint64_t peer_life, std::uint32_t link, std::uint64_t count) const;
  void transmit(OfiPeer& peer, SendBuffer* buffer);
  bool advance_unsent(OfiPeer& peer);
  void note_failed(OfiPeer& peer, std::uint64_t since_ns);
  void fail_peer(OfiPeer& peer);
  void end_link(OfiPeer& peer, bool refused);
  bool hide_until(OfiLink& link, std::uint64_t packet);
  void probe(OfiPeer& peer, std::uint64_t now_ns);
  void linger();
  bool is_quiet() const;
  void take_absent();
  void take_letters();
  bool is_stuck(const OfiPeer& peer, std::uint64_t now_ns) const;

  // Receiving half.
  void progress();
  std::size_t take_events();
  void end_lives();
  void take_message(const FabricEvent& event);
  OfiPeer* authenticate(const FabricEvent& event, const OfiEnvelope& envelope);
  void take_hello(OfiPeer& peer, const OfiEnvelope& envelope);
  bool is_of_one_node(const OfiPeer& peer, std::uint64_t node);
  void tell_of_same_nid(std::uint32_t nid);
  void take_word(OfiPeer& peer, const OfiEnvelope& envelope);
  bool take_packet(OfiPeer& peer, const OfiEnvelope& envelope, const FabricEvent& event);
  void take_answer(OfiPeer& peer, const OfiEnvelope& envelope);
  void take_probe(OfiPeer& peer, const OfiEnvelope& envelope);
  void take_goodbye(OfiPeer& peer, const OfiEnvelope& envelope);
  OfiSource* find_source(OfiPeer& peer, const OfiEnvelope& envelope);
  void begin_fetches();
  bool begin_fetch(OfiSource& source, OfiArrival& arrival);
  std::uint32_t longest_fetch() const;
  void take_fetched(const FabricEvent& event);
  void deliver(OfiSource& source, const OfiArrival& arrival);
  void refuse(OfiPeer& peer, const OfiEnvelope& envelope);
  void close_source(OfiSource& source);
  void fail_source(OfiSource& source);
  void lose_source(OfiSource& source);
  void lose_packets(OfiSource& source, const OfiEnvelope& head);
  void note_end(OfiSource& source);
  void tell_released(OfiSource& source);

  const OfiOptions options_;
  Counters counters_;
  std::uint64_t fork_generation_;  ///< Of the process that made the wire.
  std::unique_ptr<FabricEndpoint> endpoint_;
  Doorplate doorplate_;       ///< Open when the endpoint is.
  bool open_failed_ = false;  ///< Not tried again.
  bool ending_ = false;       ///< The destructor runs: nobody takes packets any more.
  bool told_same_nid_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<OfiPeer>> peers_;  ///< By (nid, pid).
  std::vector<OfiPeer*> stuck_;                                        ///< Peers with `unsent`.
  std::vector<std::pair<OfiPeer*, std::uint64_t>> failed_;             ///< And since when, for end_lives.
  std::vector<std::pair<OfiPeer*, OfiEnvelope>> new_lives_;            ///< Their first words, for end_lives.
  std::deque<OfiSource*> arrived_;                                     ///< One entry a packet that may be peeked.
  std::vector<OfiSource*> ended_;                                      ///< For take_closed_source.
  std::vector<OfiSource*> fetching_;                                   ///< Sources with something `behind`.
  OfiSource* held_ = nullptr;  ///< Source of the packet between peek and release.
  OfiArrival held_arrival_;
  bool room_again_ = false;       ///< A blocked link has got room, or was lost; or what was lent is taken.
  bool fetch_refused_ = false;    ///< The provider did not take the last one: it has to be tried again.
  int newly_lost_ = 0;            ///< Links lost since check_peers said so.
  OwnDescriptor both_fd_;         ///< An epoll over the fabric and what attend was given; none: only the fabric.
  std::function<void()> handle_;  ///< Of attend.
  std::uint16_t ear_ = 0;         ///< Of introduce.
  std::function<void(std::uint32_t nid, std::uint16_t port)> note_;
  std::uint32_t empty_looks_ = 0;  ///< In a row.
  std::uint64_t linger_ns_ = kOfiLingerNs;
};

}  // namespace portofu
