// The sending half: links, credits, what the provider takes later, and what it never takes.

#include "engine/wire/ofi/ofi_wire.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/assert.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/segment/names_word.h"
#include "engine/segment/own_segments.h"
#include "engine/topology/node_id.h"

namespace portofu {
namespace {

/// A hello is sent again after this time: the fabric may have lost it with a connection.
constexpr std::uint64_t kGreetAgainNs = 250'000'000;

/// Time between two probes of a peer.
constexpr std::uint64_t kProbeNs = 300'000'000;

/// Letters that one check takes.
constexpr int kMostLetters = 64;

/// What helps who gets no port; empty: what helps anybody.
std::string advice_for_port(int error) {
  if (is_shortage(error)) return {};
  return error == EADDRNOTAVAIL ? "set PORTOFU_NID or PORTOFU_INTERFACE to an address of this machine"
                                : "choose another PORTOFU_FABRIC_BASE_PORT";
}

}  // namespace

OfiWire::OfiWire(OfiOptions options, Counters counters)
    : Wire({kFabricMessageBytes - kOfiHeadBytes, kOfiConnectNs},
           {.loans = this, .copies = nullptr, .peer_memory = nullptr, .completions = nullptr, .other_nodes = this}),
      options_(std::move(options)),
      counters_(counters),
      fork_generation_(fork_generation()) {
  closed_sources_ = 0;
}

OfiWire::~OfiWire() {
  if (fork_generation_ != fork_generation()) {
    (void)endpoint_.release();  // The parent's.
  } else if (endpoint_ != nullptr && !FabricLibrary::is_ending()) {
    linger();
  }
}

bool OfiWire::open(std::string* why) {
  if (endpoint_ != nullptr) return true;
  if (open_failed_) return false;
  const std::uint32_t port = options_.base_port + options_.self.pid;
  if (port > 65535) {
    *why = "the port " + std::to_string(port) + " of the fabric endpoint is above 65535";
  } else if (!doorplate_.open(options_.self.nid, static_cast<std::uint16_t>(port))) {
    const int error = errno;
    *why = system_failure("bind", "the UDP port " + node_id_text(options_.self.nid) + ":" + std::to_string(port), error,
                          advice_for_port(error));
  } else {
    endpoint_ = FabricEndpoint::open(options_.provider, options_.self.nid, static_cast<std::uint16_t>(port), why);
  }
  open_failed_ = endpoint_ == nullptr;
  return !open_failed_;
}

void OfiWire::attend(int fd, std::function<void()> handle) {
  OwnDescriptor both(epoll_create1(EPOLL_CLOEXEC));
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (both && epoll_ctl(both.number(), EPOLL_CTL_ADD, fd, &readable) == 0 &&
      epoll_ctl(both.number(), EPOLL_CTL_ADD, endpoint_->wait_fd(), &readable) == 0) {
    both_fd_ = std::move(both);
  }
  handle_ = std::move(handle);
}

void OfiWire::introduce(std::uint16_t ear, std::function<void(std::uint32_t nid, std::uint16_t port)> note) {
  ear_ = ear;
  note_ = std::move(note);
}

void OfiWire::end_life(ProcessId process, std::uint64_t life) {
  OfiPeer* const peer = find_peer(process);
  if (peer == nullptr || peer->link == nullptr) return;
  if (peer->link->state == OfiLinkState::kGreeting) peer->link->ended_lives.push_back(life);
  if (peer->link->life != life) return;
  peer->link->life_over = true;
  peer->link->seen_names = kNamesMoving;
}

void OfiWire::ask_anew(ProcessId id) {
  OfiPeer* const peer = find_peer(id);
  if (peer == nullptr || peer->link == nullptr || peer->link->given) return;
  // A knock from before is not believed; the hello goes on being repeated, and knocks each time.
  if (peer->link->state == OfiLinkState::kGreeting) peer->since_ns = monotonic_ns();
  if (peer->link->state == OfiLinkState::kEnded) peer->link.reset();
}

bool OfiWire::leads_to_name(Link& given) {
  OfiLink& link = static_cast<OfiLink&>(given);
  if (link.life_over && !link.lost) end_link(*link.owner, false);
  return !link.lost;
}

OfiPeer* OfiWire::find_peer(ProcessId id) {
  const auto found = peers_.find(process_key(id));
  return found == peers_.end() ? nullptr : found->second.get();
}

OfiPeer* OfiWire::make_peer(ProcessId id) {
  auto& place = peers_[process_key(id)];
  if (place != nullptr) return place.get();
  const std::uint32_t port = options_.base_port + id.pid;
  const fi_addr_t address =
      port > 65535 ? FI_ADDR_NOTAVAIL : endpoint_->insert(id.nid, static_cast<std::uint16_t>(port));
  if (address == FI_ADDR_NOTAVAIL) {
    peers_.erase(process_key(id));
    return nullptr;
  }
  place = std::make_unique<OfiPeer>();
  place->id = id;
  place->address = address;
  return place.get();
}

ConnectResult OfiWire::connect(ProcessId id, Link** link) {
  const NoCancellation whole;
  std::string why;
  if (endpoint_ == nullptr && !open(&why)) {
    if (!why.empty()) log_warning("other nodes cannot be reached: %s", why.c_str());
    return ConnectResult::kNoSuchPeer;
  }
  OfiPeer* const peer = make_peer(id);
  if (peer == nullptr) return ConnectResult::kNoSuchPeer;
  progress();
  take_absent();
  // It may have been made as the way back to one who is gone.
  if (peer->link != nullptr && peer->link->life_over && !peer->link->given) peer->link.reset();
  if (peer->link == nullptr) make_link(*peer);
  peer->link->wanted = true;
  switch (peer->link->state) {
    case OfiLinkState::kOpen:
      peer->link->given = true;
      *link = peer->link.get();
      return ConnectResult::kConnected;
    case OfiLinkState::kGreeting: return greet(*peer);
    case OfiLinkState::kEnded: break;
  }
  const bool refused = peer->link->refused;
  peer->link.reset();
  return refused ? ConnectResult::kRefused : ConnectResult::kNoSuchPeer;
}

void OfiWire::make_link(OfiPeer& peer) {
  peer.link = std::make_unique<OfiLink>();
  peer.link->peer = peer.id;
  peer.link->owner = &peer;
  peer.link->number = ++peer.last_link;
  peer.since_ns = monotonic_ns();
}

ConnectResult OfiWire::greet(OfiPeer& peer) {
  if (peer.unsent.empty() && monotonic_ns() - peer.link->greeted_ns > kGreetAgainNs) {
    doorplate_.knock(peer.id.nid, port_of(peer.id), {monotonic_ns()});
    send_hello(peer);
  }
  return ConnectResult::kInProgress;
}

void OfiWire::send_hello(OfiPeer& peer) {
  peer.link->greeted_ns = monotonic_ns();
  const HelloCount hello{options_.node, ear_};
  send_control(peer, OfiKind::kHello, 0, peer.link->number, hello.packed());
}

void OfiWire::disconnect(Link* given) {
  OfiLink& link = static_cast<OfiLink&>(*given);
  OfiPeer& peer = *link.owner;
  PORTOFU_ASSERT(peer.link.get() == &link || peer.former.get() == &link);
  if (link.claimed != nullptr) discard(link);
  hide_until(link, link.sent);
  if (peer.former.get() == &link) return peer.former.reset();
  if (link.state == OfiLinkState::kOpen) {
    peer.ending_link = link.number;
    send_control(peer, OfiKind::kGoodbye, link.life, link.number, link.sent);
  }
  peer.link.reset();
}

void OfiWire::give_up(ProcessId id) {
  OfiPeer* const peer = find_peer(id);
  if (peer == nullptr) return;
  for (const auto& source : peer->sources) {
    if (source->closing) continue;
    send_control(*peer, OfiKind::kRefusal, source->life, source->number, 0);
    close_source(*source);
  }
}

std::byte* OfiWire::claim(Link& given, std::uint32_t payload_bytes) {
  OfiLink& link = static_cast<OfiLink&>(given);
  PORTOFU_ASSERT(link.claimed == nullptr && payload_bytes <= max_payload_bytes());
  if (link.lost) return nullptr;
  if (link.sent - link.released >= link.window) {
    link.blocked = true;
    return nullptr;
  }
  link.claimed = endpoint_->take_buffer();
  return link.claimed->data + kOfiHeadBytes;
}

void OfiWire::publish(Link& given, const PacketHeader& header) {
  OfiLink& link = static_cast<OfiLink&>(given);
  SendBuffer* const buffer = std::exchange(link.claimed, nullptr);
  const bool lends = std::exchange(link.lends, false);
  if (link.lost) return endpoint_->give_buffer(buffer);
  const OfiKind kind = lends ? OfiKind::kLoan : OfiKind::kPacket;
  const OfiEnvelope head = envelope(kind, link.life, link.number, link.sent++);
  std::memcpy(buffer->data, &head, sizeof head);
  std::memcpy(buffer->data + sizeof head, &header, sizeof header);
  buffer->bytes = kOfiHeadBytes + (lends ? static_cast<std::uint32_t>(sizeof(OfiLoan)) : header.payload_bytes);
  transmit(*link.owner, buffer);
}

void OfiWire::discard(Link& given) {
  OfiLink& link = static_cast<OfiLink&>(given);
  endpoint_->give_buffer(std::exchange(link.claimed, nullptr));
  if (std::exchange(link.lends, false)) hide_until(link, link.sent + 1);
}

OfiEnvelope OfiWire::envelope(OfiKind kind, std::uint64_t peer_life, std::uint32_t link, std::uint64_t count) const {
  const std::uint32_t ends = ending_ && kind == OfiKind::kGoodbye ? 1 : 0;
  return {kOfiMagic,
          options_.job_key,
          options_.uid,
          kind,
          options_.self.nid,
          options_.self.pid,
          options_.life,
          peer_life,
          link,
          ends,
          count};
}

void OfiWire::send_control(OfiPeer& peer, OfiKind kind, std::uint64_t peer_life, std::uint32_t link,
                           std::uint64_t count) {
  SendBuffer* const buffer = endpoint_->take_buffer();
  const OfiEnvelope head = envelope(kind, peer_life, link, count);
  std::memcpy(buffer->data, &head, sizeof head);
  buffer->bytes = sizeof head;
  transmit(peer, buffer);
}

void OfiWire::transmit(OfiPeer& peer, SendBuffer* buffer) {
  buffer->owner = &peer;
  peer.unsent.push_back(buffer);
  if (peer.unsent.size() > 1) return;  // Behind what waits already.
  if (!advance_unsent(peer)) stuck_.push_back(&peer);
}

/// Hands to the provider what it takes.
/// @return false if something is left
bool OfiWire::advance_unsent(OfiPeer& peer) {
  while (!peer.unsent.empty()) {
    SendBuffer* const buffer = peer.unsent.front();
    const FabricSend outcome = endpoint_->send(peer.address, buffer);
    switch (outcome) {
      case FabricSend::kTaken:
        peer.unsent.pop_front();
        ++peer.under_way;
        peer.stuck_since_ns = 0;
        peer.far_is_short = false;
        break;
      case FabricSend::kShort:
      case FabricSend::kLater:
        peer.is_short = outcome == FabricSend::kShort;
        if (peer.stuck_since_ns == 0) peer.stuck_since_ns = monotonic_ns();
        return false;
      case FabricSend::kFailed:
        for (SendBuffer* unsent : std::exchange(peer.unsent, {})) endpoint_->give_buffer(unsent);
        note_failed(peer, monotonic_ns());
        return true;
    }
  }
  return true;
}

/// Nobody was there at that time, or the fabric brought messages to nobody; see end_lives.
void OfiWire::note_failed(OfiPeer& peer, std::uint64_t since_ns) {
  const auto known = std::ranges::find(failed_, &peer, &std::pair<OfiPeer*, std::uint64_t>::first);
  if (known == failed_.end()) {
    failed_.emplace_back(&peer, since_ns);
  } else {
    known->second = std::max(known->second, since_ns);
  }
  empty_looks_ = 0;
}

void OfiWire::fail_peer(OfiPeer& peer) {
  for (SendBuffer* buffer : peer.unsent) endpoint_->give_buffer(buffer);
  peer.unsent.clear();
  peer.stuck_since_ns = 0;
  peer.far_is_short = false;
  peer.ending_link = 0;
  end_link(peer, false);
  for (const auto& source : peer.sources) fail_source(*source);
}

void OfiWire::end_link(OfiPeer& peer, bool refused) {
  if (peer.link == nullptr || peer.link->state == OfiLinkState::kEnded) return;
  if (!peer.link->wanted) return peer.link.reset();
  if (peer.link->state == OfiLinkState::kOpen) ++newly_lost_;
  peer.link->state = OfiLinkState::kEnded;
  peer.link->refused = refused;
  peer.link->lost = true;
  hide_until(*peer.link, UINT64_MAX);
  room_again_ = true;
}

bool OfiWire::has_room_again() { return std::exchange(room_again_, false); }

/// Fails the peers of whom their kernel says that they are not there.
void OfiWire::take_absent() {
  Absent absent;
  while (doorplate_.take_absent(&absent)) {
    OfiPeer* const peer = find_peer({absent.nid, absent.port - options_.base_port});
    const std::uint64_t knocked_ns = absent.knocked_ns();
    if (peer != nullptr) note_failed(*peer, knocked_ns != 0 ? knocked_ns : monotonic_ns());
  }
  if (!failed_.empty()) end_lives();
}

/// A process without descriptors accepts no connection, and its fabric is silent about it. So whoever waits for one
/// asks.
void OfiWire::take_letters() {
  std::uint32_t nid = 0;
  std::uint16_t port = 0;
  Letter letter;
  for (int i = 0; i < kMostLetters && doorplate_.take_letter(&nid, &port, &letter); ++i) {
    if (letter.kind == LetterKind::kAsk) {
      const OwnDescriptor spare(fcntl(doorplate_.fd(), F_DUPFD_CLOEXEC, 0));
      if (spare || !is_shortage(errno)) continue;
      static constinit ToldOnce told;
      tell_of_wait(told, "accept", "a connection from another node", errno);
      doorplate_.send(nid, port, LetterKind::kShort, letter.sent_ns);
    } else if (OfiPeer* const peer = find_peer({nid, port - options_.base_port})) {
      peer->far_is_short |= letter.kind == LetterKind::kShort && letter.sent_ns == peer->probed_ns;
    }
  }
}

/// Whether the fabric has refused what goes there for too long.
bool OfiWire::is_stuck(const OfiPeer& peer, std::uint64_t now) const {
  if (peer.unsent.empty()) return false;
  if (now - peer.stuck_since_ns <= (peer.is_short || peer.far_is_short ? kOfiShortNs : kOfiStuckNs)) return false;
  if (peer.far_is_short) {
    static constinit ToldOnce told;
    if (told.is_first()) {
      log_warning(
          "process %u of node %s accepts no connection, because it lacks descriptors or memory; what goes there fails; "
          "raise its limit of open files (ulimit -n)",
          peer.id.pid, node_id_text(peer.id.nid).c_str());
    }
  }
  return true;
}

int OfiWire::check_peers() {
  if (endpoint_ == nullptr) return 0;
  progress();
  take_absent();
  take_letters();
  const std::uint64_t now = monotonic_ns();
  for (const auto& [key, peer] : peers_) {
    if (is_stuck(*peer, now)) {
      note_failed(*peer, now);
    } else {
      probe(*peer, now);
    }
  }
  if (!failed_.empty()) end_lives();
  std::erase_if(stuck_, [](const OfiPeer* peer) { return peer->unsent.empty(); });
  return std::exchange(newly_lost_, 0);
}

/// Asks for a peer from whom, or on whose behalf, something may be awaited.
void OfiWire::probe(OfiPeer& peer, std::uint64_t now) {
  const bool linked = peer.link != nullptr && peer.link->state == OfiLinkState::kOpen;
  const bool greeting = peer.link != nullptr && peer.link->state == OfiLinkState::kGreeting;
  const bool heard = !peer.sources.empty() && !peer.sources.back()->closing;
  if (!linked && !heard && !greeting && peer.unsent.empty() && peer.ending_link == 0) return;
  if (now - peer.probed_ns < kProbeNs) return;
  peer.probed_ns = now;
  doorplate_.knock(peer.id.nid, port_of(peer.id), {now});
  if (!peer.unsent.empty()) doorplate_.send(peer.id.nid, port_of(peer.id), LetterKind::kAsk, now);
  if (!peer.unsent.empty() || peer.under_way != 0) return;
  if (linked) {
    send_control(peer, OfiKind::kProbe, peer.link->life, peer.link->number, peer.link->sent);
  } else if (heard) {
    send_control(peer, OfiKind::kProbe, peer.sources.back()->life, 0, 0);
  }
}

bool OfiWire::is_quiet() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    const OfiPeer& peer = *entry.second;
    return peer.ends || (peer.unsent.empty() && peer.under_way == 0 && peer.ending_link == 0);
  });
}

void OfiWire::linger() {
  ending_ = true;
  for (const auto& [key, peer] : peers_) {
    if (peer->link != nullptr && !peer->ends) disconnect(peer->link.get());
    for (const auto& source : peer->sources) close_source(*source);
  }
  const std::uint64_t deadline = monotonic_ns() + linger_ns_;
  while (!is_quiet() && monotonic_ns() < deadline) {
    progress();
    check_peers();
    if (!endpoint_->may_sleep()) continue;
    pollfd waited{endpoint_->wait_fd(), POLLIN, 0};
    poll(&waited, 1, 1);
  }
}

}  // namespace portofu
