// Whoever knows the job key and is the same user may send what he likes: no byte outside of registered memory changes,
// nobody crashes or grows, others are served, and what is foreign or malformed is counted, packet by packet.
// PORTOFU_TEST_PACKETS says how many packets go through shared memory; a fifth of that goes over the fabric.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <optional>

#include "engine/config/settings.h"
#include "engine/segment/peer_segment.h"
#include "engine/topology/socket_address.h"
#include "engine/wire/ofi/directory_socket.h"
#include "engine/wire/ofi/fabric_endpoint.h"
#include "engine/wire/ofi/ofi_message.h"
#include "engine/wire/shm/shm_wire.h"
#include "tests/process/child_process.h"
#include "tests/process/correspondence.h"
#include "tests/process/forged_packet.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

constexpr int kTarget = 0;
constexpr int kHonest = 1;
constexpr int kForger = 2;
constexpr int kApis = 2;
constexpr double kPatienceS = 30;
constexpr long kMostGrowthBytes = 48 << 20;  ///< What one liar may make its victim hold: answers that wait for it.

constexpr bool talks(int rank, int api) { return rank == kHonest || static_cast<Api>(api) == Api::kPortals; }

struct ForgeryBoard {
  std::atomic<int> stop{0};
  std::atomic<int> stopped{0};              ///< Talkers that post and take nothing more.
  PlayerCounts counts[2][kApis];            ///< By rank and API.
  std::atomic<std::uint64_t> sent[3] = {};  ///< Packets by Forgery.
  std::atomic<std::uint64_t> claimed{0};    ///< Messages that claimed to come from elsewhere.
  std::atomic<std::uint64_t> broken{0};     ///< Messages without a sound envelope.
};

/// The honest one talks to the target through both APIs until it is told to stop. The target answers through one:
/// whoever may send to an MRQ of uTofu may put any notice there.
int run_talker(const TestNodes& nodes, int rank, std::uint64_t seed, ForgeryBoard& board) {
  alarm(0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  nodes.enter(rank);
  std::unique_ptr<Player> players[kApis];
  std::optional<Correspondence> correspondences[kApis];
  for (int api = 0; api < kApis; ++api) {
    players[api] = make_player(static_cast<Api>(api), nodes, rank);
    if (!players[api]->open()) return 2;
    correspondences[api].emplace(*players[api], board.counts[rank][api]);
  }
  std::mt19937_64 random(seed);
  while (board.stop == 0) {
    for (int api = 0; api < kApis; ++api) {
      Outcome ignored;
      if (!talks(rank, api)) {
        players[api]->next(&ignored);
        continue;
      }
      correspondences[api]->post(1 - rank, any_operation(random), 4);
      if (correspondences[api]->take()) continue;
      std::fprintf(stderr, "rank %d, API %d: code %d\n", rank, api, correspondences[api]->code());
      return 3;
    }
  }
  // Whose memory is gone answers with a fault, which the other one must not see.
  board.stopped.fetch_add(1);
  eventually([&] { return board.stopped == 2; });
  for (const auto& player : players) {
    if (!player->is_untouched()) return 4;
  }
  return 0;
}

class ForgeryTest : public testing::Test {
 protected:
  void start(Place place) {
    nodes_.emplace(place);
    for (int rank = kTarget; rank <= kHonest; ++rank) {
      talkers_[rank].emplace([this, rank] { return run_talker(*nodes_, rank, seed_ + 1, *board_); });
    }
    expect_service("at the start");
    bytes_ = data_bytes(talkers_[kTarget]->pid());
  }

  /// Runs a forger, who ends by itself.
  void forge(const std::function<int()>& body) {
    ChildProcess forger([&] {
      alarm(0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      nodes_->enter(kForger);
      return body();
    });
    EXPECT_EQ(forger.wait_status(), 0);
  }

  /// The target and the honest one get something done for each other.
  void expect_service(const char* when) {
    std::uint64_t before[2][kApis];
    const auto done = [this](int rank, int api) { return board_->counts[rank][api].done[1 - rank].load(); };
    for (int rank = 0; rank < 2; ++rank) {
      for (int api = 0; api < kApis; ++api) before[rank][api] = done(rank, api);
    }
    const double begin = clock_.seconds();
    bool served = false;
    while (!served && clock_.tick() - begin < kPatienceS) {
      served = true;
      for (int rank = 0; rank < 2; ++rank) {
        for (int api = 0; api < kApis; ++api)
          served = served && (!talks(rank, api) || done(rank, api) > before[rank][api] + 8);
      }
    }
    EXPECT_TRUE(served) << when;
  }

  void stop() {
    const long growth = data_bytes(talkers_[kTarget]->pid()) - bytes_;
    std::printf("  the target grew by %ld KiB\n", growth / 1024);
    EXPECT_LT(growth, kMostGrowthBytes);
    board_->stop = 1;
    for (auto& talker : talkers_) EXPECT_EQ(talker->wait_status(), 0) << "4: bytes that nobody may write have changed";
    // They have ended without a word; what they have left is removed by whoever opens next.
    for (int rank = kTarget; rank <= kForger; ++rank) {
      ChildProcess next([&] { return open_and_close(*nodes_, rank); });
      EXPECT_EQ(next.wait_status(), 0);
    }
    EXPECT_EQ(nodes_->names_left(kForger + 1), 0);
  }

  ProcessId target_id() const { return {nodes_->nid(kTarget), kPlayerPid + kTarget}; }

  std::uint64_t counter(Counter which) const {
    std::shared_ptr<PeerSegment> segment;
    if (PeerSegment::attach("/dev/shm", target_id(), &segment) != AttachResult::kAttached) return 0;
    return Counters(segment->control().counters).get(which);
  }

  void expect_counter(Counter which, std::uint64_t value) {
    const double begin = clock_.seconds();
    while (counter(which) < value && clock_.tick() - begin < kPatienceS) {
    }
    EXPECT_EQ(counter(which), value) << counter_table()[static_cast<std::size_t>(which)].label;
  }

  const std::uint64_t seed_ = process_test_seed();
  std::optional<TestNodes> nodes_;
  SharedMemory<ForgeryBoard> board_;
  FairClock clock_;
  std::optional<ChildProcess> talkers_[2];
  long bytes_ = 0;
};

// ---- Through shared memory -----------------------------------------------------------------------------------------

/// A wire with a segment of its own, and a link to the target.
struct ShmForger {
  ShmForger(const TestNodes& nodes, ProcessId target_id, std::uint64_t seed)
      : target(target_id), forger(seed, nodes.job_key(), geteuid()) {
    const Settings settings;
    SegmentOptions options;
    options.nid = nodes.nid(kForger);
    options.job_key = nodes.job_key();
    options.uid = geteuid();
    options.ring.cell_count = settings.ring_cells;
    options.ring.data_bytes = settings.ring_data_bytes;
    SegmentError error = SegmentError::kNone;
    segment = ProcessSegment::create(options, &error, nullptr);
    wire = std::make_unique<ShmWire>(*segment);
  }

  bool connect() {
    return eventually([&] { return wire->connect(target, &link) == ConnectResult::kConnected; });
  }

  /// Takes answers: who takes none gets no more of them than a bounded number, and then none.
  void listen() {
    Packet packet;
    while (wire->peek(packet)) wire->release();
    ProcessId source;
    void* context = nullptr;
    while (wire->take_closed_source(&source, &context)) {
    }
  }

  /// @return false if the target is not there any more
  bool send(ForgeryBoard& board) {
    const auto bytes =
        static_cast<std::uint32_t>(forger.once_in(4) ? forger.below(wire->max_payload_bytes()) : forger.below(100));
    std::byte* room = nullptr;
    if (!eventually([&] {
          if (link->lost) {
            wire->disconnect(link);
            if (!connect()) return false;
          }
          listen();
          room = wire->claim(*link, bytes);
          if (room == nullptr) wire->check_peers();
          return room != nullptr;
        }))
      return false;
    for (std::uint32_t i = 0; i + 8 <= bytes; i += 8) {
      const std::uint64_t word = forger.any();
      std::memcpy(room + i, &word, sizeof word);
    }
    Forgery what{};
    const PacketHeader header = forger.header(bytes, &what);
    wire->publish(*link, header);
    board.sent[static_cast<int>(what)].fetch_add(1);
    return true;
  }

  ProcessId target;
  Forger forger;
  std::unique_ptr<ProcessSegment> segment;
  std::unique_ptr<ShmWire> wire;
  Link* link = nullptr;
};

TEST_F(ForgeryTest, Packets_in_shared_memory__change_nothing_that_is_not_registered_and_are_counted) {
  const int packets = test_amount("PORTOFU_TEST_PACKETS", 200'000);
  start(Place::kOneNode);
  forge([&] {
    ShmForger forger(*nodes_, target_id(), seed_);
    if (!forger.connect()) return 1;
    for (int i = 0; i < packets; ++i) {
      if (!forger.send(*board_)) return 2;
    }
    return 0;
  });
  expect_service("after the forged packets");
  const std::uint64_t foreign = board_->sent[static_cast<int>(Forgery::kForeign)];
  const std::uint64_t malformed = board_->sent[static_cast<int>(Forgery::kMalformed)];
  std::printf("  %d packets: %llu foreign, %llu malformed, %llu refused as malformed\n", packets,
              static_cast<unsigned long long>(foreign), static_cast<unsigned long long>(malformed),
              static_cast<unsigned long long>(counter(Counter::kPacketsRefusedMalformed)));
  expect_counter(Counter::kPacketsRefusedKey, foreign);
  EXPECT_GE(counter(Counter::kPacketsRefusedMalformed), malformed);
  stop();
}

// ---- Over the fabric -----------------------------------------------------------------------------------------------

/// An endpoint of the forger's own address.
class FabricForger {
 public:
  FabricForger(const TestNodes& nodes, ProcessId target, std::uint64_t seed)
      : own_{nodes.nid(kForger), kPlayerPid + kForger},
        nowhere_{nodes.nid(kForger) + 1, kPlayerPid},
        target_(target),
        key_(nodes.job_key()),
        forger_(seed, nodes.job_key(), geteuid()) {}

  bool open() {
    std::string why;
    endpoint_ = FabricEndpoint::open("", own_.nid, static_cast<std::uint16_t>(own_.pid), &why);
    if (endpoint_ == nullptr) return false;
    address_ = endpoint_->insert(target_.nid, static_cast<std::uint16_t>(target_.pid));
    return true;
  }

  /// @return false if the target takes nothing any more
  bool send(ForgeryBoard& board) {
    SendBuffer* const buffer = endpoint_->take_buffer();
    fill(*buffer, board);
    return eventually([&] {
             listen();
             return endpoint_->send(address_, buffer) == FabricSend::kTaken;
           }) &&
           eventually([&] {
             // Before the hello is answered the fabric does not name us to the target.
             listen();
             return life_ != 0;
           });
  }

  /// Messages may be loans, of memory that nobody may read. The fabric ends a connection on which somebody tries, and
  /// what else is under way there is lost and counted by nobody.
  bool lends = false;

  /// Takes what the target says.
  void listen() {
    std::array<FabricEvent, 16> events;
    const std::size_t count = endpoint_->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      if (events[i].kind != FabricEvent::Kind::kArrived) {
        endpoint_->give_buffer(events[i].buffer);
        continue;
      }
      OfiEnvelope head{};
      if (events[i].bytes >= sizeof head) std::memcpy(&head, events[i].data, sizeof head);
      endpoint_->release(events[i].holder);
      life_ = head.life;
      if (head.kind == OfiKind::kRefusal && head.link == link_) {
        ++link_;
        sent_ = 0;
        greeted_ = false;
      }
    }
  }

 private:
  void fill(SendBuffer& buffer, ForgeryBoard& board) {
    OfiEnvelope head{kOfiMagic, key_, geteuid(), OfiKind::kPacket, own_.nid, own_.pid, 77, life_, link_, 0, sent_};
    Forgery what = Forgery::kWild;
    const auto bytes = static_cast<std::uint32_t>(forger_.once_in(4) ? forger_.below(8192) : forger_.below(100));
    PacketHeader header = forger_.header(bytes, &what);
    buffer.bytes = kOfiHeadBytes + bytes;
    switch (greeted_ ? forger_.below(kWays) : kWays) {
      case 0: head.magic = static_cast<std::uint32_t>(forger_.any() | 1u << 31), board.broken.fetch_add(1); break;
      case 1: buffer.bytes = static_cast<std::uint32_t>(forger_.below(sizeof head)), board.broken.fetch_add(1); break;
      case 2: head.kind = static_cast<OfiKind>(kKinds + 1 + forger_.below(1000)), board.broken.fetch_add(1); break;
      case 3: head.job_key += 1, board.sent[0].fetch_add(1); break;
      case 4: head.uid += 1, board.sent[0].fetch_add(1); break;
      case 5: head.nid = nowhere_.nid, board.claimed.fetch_add(1); break;
      case 6: head.pid = static_cast<std::uint32_t>(65536 + forger_.below(1000)), board.claimed.fetch_add(1); break;
      case 7: head.nid = target_.nid, head.pid = target_.pid, board.claimed.fetch_add(1); break;
      case 8: head.life = 0, board.claimed.fetch_add(1); break;
      case 9: wild(head); break;
      case kWays:
        head.kind = OfiKind::kHello;
        head.peer_life = 0;
        head.count = 0;
        greeted_ = true;
        break;
      default:
        ++sent_;
        if (lends) head.kind = OfiKind::kLoan;
    }
    header.uid = head.uid;
    header.job_key = key_;  // A packet that its link has lost is counted by nobody, so keys are forged in front of it.
    std::memcpy(buffer.data, &head, sizeof head);
    std::memcpy(buffer.data + sizeof head, &header, sizeof header);
  }

  static constexpr std::uint64_t kWays = 24;  ///< Most of them are packets on the link.
  static constexpr std::uint64_t kKinds = static_cast<std::uint64_t>(OfiKind::kLoan);  ///< The last one.

  /// From the right address, and else anything.
  void wild(OfiEnvelope& head) {
    head.kind = static_cast<OfiKind>(1 + forger_.below(lends ? kKinds : kKinds - 1));
    if (forger_.once_in(2)) head.peer_life = forger_.any();
    if (forger_.once_in(2)) head.link = static_cast<std::uint32_t>(forger_.any());
    if (forger_.once_in(2)) head.count = forger_.any();
    if (forger_.once_in(4)) head.life = 1 + forger_.below(100);
    head.ends = static_cast<std::uint32_t>(forger_.below(3));
  }

  const ProcessId own_;
  const ProcessId nowhere_;
  const ProcessId target_;
  const std::uint32_t key_;
  Forger forger_;
  std::unique_ptr<FabricEndpoint> endpoint_;
  fi_addr_t address_ = FI_ADDR_NOTAVAIL;
  std::uint64_t life_ = 0;  ///< Of the target, once it has said so.
  std::uint32_t link_ = 1;
  std::uint64_t sent_ = 0;  ///< Packets on the link.
  bool greeted_ = false;
};

TEST_F(ForgeryTest, Messages_over_the_fabric__change_nothing_that_is_not_registered_and_are_counted) {
  const int messages = test_amount("PORTOFU_TEST_PACKETS", 100'000) / 5;
  start(Place::kNodeEach);
  // A hello that was sent again before the first was answered comes from an address that has no name yet.
  const std::uint64_t refused_before = counter(Counter::kPacketsRefusedSource);
  forge([&] {
    FabricForger forger(*nodes_, target_id(), seed_);
    if (!forger.open()) return 1;
    const auto have_arrived = [&] {
      return eventually([&] {
        forger.listen();
        return counter(Counter::kPacketsRefusedKey) >= board_->sent[0] &&
               counter(Counter::kPacketsRefusedSource) >= refused_before + board_->claimed;
      });
    };
    // What comes faster than it is taken the fabric's library keeps, and it sets no bound to that. And whoever leaves
    // takes with him what the target has not read yet.
    constexpr int kMostUnderWay = 256;
    for (int i = 1; i <= messages; ++i) {
      if (!forger.send(*board_)) return 2;
      if ((i % kMostUnderWay == 0 || i == messages) && !have_arrived()) return 3;
    }
    return 0;
  });
  expect_service("after the forged messages");
  std::printf("  %d messages: %llu foreign, %llu from elsewhere, %llu broken\n", messages,
              static_cast<unsigned long long>(board_->sent[0]), static_cast<unsigned long long>(board_->claimed),
              static_cast<unsigned long long>(board_->broken));
  expect_counter(Counter::kPacketsRefusedKey, board_->sent[0]);
  expect_counter(Counter::kPacketsRefusedSource, refused_before + board_->claimed);
  EXPECT_GE(counter(Counter::kPacketsRefusedMalformed), board_->broken);
  stop();
}

TEST_F(ForgeryTest, Loans_of_memory_that_nobody_may_read__harm_nobody) {
  const int messages = test_amount("PORTOFU_TEST_PACKETS", 100'000) / 50;
  start(Place::kNodeEach);
  forge([&] {
    FabricForger forger(*nodes_, target_id(), seed_);
    if (!forger.open()) return 1;
    forger.lends = true;
    // Time to take them, which is long enough mostly; what is lost nobody can wait for.
    constexpr int kMostUnderWay = 64;
    constexpr double kPauseS = 0.01;
    for (int i = 1; i <= messages; ++i) {
      if (!forger.send(*board_)) return 2;
      for (const double end = now_s() + kPauseS; i % kMostUnderWay == 0 && now_s() < end;) forger.listen();
    }
    return 0;
  });
  expect_service("after the loans");
  stop();
}

// ---- Datagrams -----------------------------------------------------------------------------------------------------

/// Sends garbage, some of it beginning like a message of ours.
void send_garbage(int fd, const sockaddr* to, socklen_t length, Forger& forger, int count) {
  std::array<std::uint64_t, 32> words{};
  for (int i = 0; i < count; ++i) {
    for (auto& word : words) word = forger.any();
    if (forger.once_in(2)) words[0] = 0x01446f50 | words[0] << 32;
    sendto(fd, words.data(), forger.once_in(2) ? 40 : forger.below(sizeof words), MSG_NOSIGNAL | MSG_DONTWAIT, to,
           length);
    if (i % 64 == 0) usleep(100);
  }
}

TEST_F(ForgeryTest, Garbage_at_every_datagram_port__harms_nobody) {
  const int datagrams = test_amount("PORTOFU_TEST_PACKETS", 100'000) / 10;
  start(Place::kNodeEach);
  Forger forger(seed_, nodes_->job_key(), geteuid());
  const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = socket_address(target_id().nid, DirectorySocket::default_ports(nodes_->job_key(), geteuid())[0]);
  const auto refused = [this] {
    return counter(Counter::kPacketsRefusedKey) + counter(Counter::kPacketsRefusedMalformed);
  };
  // No more at a time than the kernel keeps for a socket: each one is read, refused and counted.
  constexpr int kMostUnderWay = 64;
  const std::uint64_t before = refused();
  for (int sent = 0; sent < datagrams; sent += kMostUnderWay) {
    send_garbage(udp, reinterpret_cast<const sockaddr*>(&to), sizeof to, forger, kMostUnderWay);
    const std::uint64_t all = before + static_cast<std::uint64_t>(sent + kMostUnderWay);
    ASSERT_TRUE(eventually([&] { return refused() >= all; })) << "of " << all << " only " << refused();
    ASSERT_EQ(refused(), all);
  }
  to.sin_port = htons(static_cast<std::uint16_t>(target_id().pid));
  send_garbage(udp, reinterpret_cast<const sockaddr*>(&to), sizeof to, forger, datagrams);
  close(udp);
  std::shared_ptr<PeerSegment> segment;
  ASSERT_EQ(PeerSegment::attach("/dev/shm", target_id(), &segment), AttachResult::kAttached);
  const int bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (int i = 0; i < 100; ++i) {
    // It has a name only while its engine sleeps.
    sockaddr_un bell_address{};
    bell_address.sun_family = AF_UNIX;
    const std::uint32_t name = segment->control().doorbell.watcher.load();
    if (name == 0) continue;
    std::snprintf(bell_address.sun_path + 1, 9, "%05x", name - 1);
    send_garbage(bell, reinterpret_cast<const sockaddr*>(&bell_address), offsetof(sockaddr_un, sun_path) + 6, forger,
                 datagrams / 100);
  }
  close(bell);
  expect_service("after the garbage");
  // Whoever comes now still finds out who owns a control queue of the target's node.
  forge([&] {
    const auto player = make_tofu_player(*nodes_, kForger);
    if (!player->open() || !player->post(0, kTarget, Operation::kGet)) return 1;
    Outcome outcome;
    if (!eventually([&] { return player->next(&outcome); })) return 2;
    return outcome.ending == Ending::kDone ? 0 : 3;
  });
  stop();
}

// ---- Segments that lie ---------------------------------------------------------------------------------------------

/// What the liar and its victim pass to and fro.
struct LiarBoard {
  std::atomic<int> round{0};     ///< 2 * i + 1: the i-th segment is there; 2 * i + 2: the victim is done with it.
  std::atomic<int> is_sound{0};  ///< Its descriptor is as it should be.
};

/// Makes segments, one after the other, whose descriptors are mostly wrong and whose contents are anything.
int make_lying_segments(const std::string& path, ProcessId id, int count, std::uint64_t seed, LiarBoard& board) {
  alarm(0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Forger forger(seed, 0, geteuid());
  for (int i = 0; i < count; ++i) {
    SegmentDescriptorShared descriptor{kSegmentMagic,
                                       kLayoutVersion,
                                       sizeof descriptor,
                                       1 + forger.any() / 2,
                                       id.nid,
                                       id.pid,
                                       static_cast<std::uint32_t>(getpid()),
                                       geteuid(),
                                       0,
                                       16,
                                       {},
                                       65536,
                                       0,
                                       0,
                                       -1,
                                       0,
                                       0};
    const SegmentLayout layout{descriptor.channel_count, descriptor.ring, descriptor.area_bytes};
    descriptor.segment_bytes = layout.segment_bytes();
    const SegmentDescriptorShared good = descriptor;
    for (std::uint64_t wrong = forger.below(3); wrong > 0; --wrong) {
      const std::uint64_t word = forger.once_in(2) ? forger.any() : forger.below(100'000);
      const auto at = forger.below(sizeof descriptor / 4) * 4;
      std::memcpy(reinterpret_cast<std::byte*>(&descriptor) + at, &word, 4);
    }
    const bool whole = !forger.once_in(8);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(whole ? good.segment_bytes : forger.below(200'000))) != 0) return 1;
    // Everything behind the descriptor: doorbell, regions, directory. Most words stay zero, or nobody would go on.
    std::vector<std::uint64_t> words((layout.rings_offset() - kPageBytes) / 8);
    for (std::uint64_t k = forger.below(200); k > 0; --k) {
      words[forger.below(words.size())] = forger.once_in(2) ? forger.any() : forger.below(6);
    }
    const bool written =
        pwrite(fd, &descriptor, sizeof descriptor, 0) == sizeof descriptor &&
        (!whole || pwrite(fd, words.data(), words.size() * 8, kPageBytes) == static_cast<ssize_t>(words.size() * 8));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (!written || fcntl(fd, F_SETLK, &lock) != 0) return 2;
    board.is_sound =
        whole && is_sound(descriptor, good.segment_bytes) && descriptor.nid == id.nid && descriptor.pid == id.pid;
    board.round = 2 * i + 1;
    if (!eventually([&] { return board.round == 2 * i + 2; })) return 3;
    ::unlink(path.c_str());
    ::close(fd);
  }
  return 0;
}

/// Talks to whoever that is, as long as there is a link, and leaves it.
void talk_to_liar(WirePeer& self, ProcessId liar) {
  Link* link = nullptr;
  if (self.wire->connect(liar, &link) != ConnectResult::kConnected) return;
  for (int i = 0; i < 20 && !link->lost; ++i) self.send(link, std::string(static_cast<std::size_t>(i) * 200, 'x'));
  MappedRegion region;
  for (std::uint32_t stag = 0; stag < 4; ++stag) self.wire->find_mapped(*link, region_key(0, stag), &region);
  self.wire->check_peers();
  self.wire->has_room_again();
  self.receive();
  self.wire->disconnect(link);
}

TEST(LyingSegments, Attach_to_any_of_them__is_refused_or_harmless) {
  const int count = test_amount("PORTOFU_TEST_PACKETS", 100'000) / 50;
  const std::uint64_t seed = process_test_seed();
  const SegmentDirectory directory;
  WirePeer self(directory.options(1));
  WirePeer friendly(directory.options(3));
  const ProcessId liar{kTestNid, 2};
  const SharedMemory<LiarBoard> board;
  ChildProcess child(
      [&] { return make_lying_segments(segment_path(directory.path(), liar), liar, count, seed, *board); });
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(eventually([&] { return board->round == 2 * i + 1; })) << i;
    std::shared_ptr<PeerSegment> segment;
    const AttachResult result = PeerSegment::attach(directory.path(), liar, &segment);
    ASSERT_EQ(result, board->is_sound != 0 ? AttachResult::kAttached : AttachResult::kRefused) << i;
    refused += result == AttachResult::kRefused ? 1 : 0;
    segment.reset();
    talk_to_liar(self, liar);
    board->round = 2 * i + 2;
  }
  EXPECT_EQ(child.wait_status(), 0);
  std::printf("  %d segments, %d refused\n", count, refused);
  Link* link = self.connect(friendly);
  ASSERT_TRUE(self.send(link, "still here"));
  EXPECT_EQ(friendly.receive(), "still here");
}

}  // namespace
}  // namespace portofu
