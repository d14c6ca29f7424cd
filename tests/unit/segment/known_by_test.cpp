// Who is told that names of a segment are given up, and who has heard.

#include "engine/segment/known_by.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/queue/clock.h"
#include "engine/segment/layout.h"
#include "engine/segment/mapping.h"
#include "engine/segment/segment_alias.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr std::uint32_t kNode = 0x7f4d0002;   ///< 127.77.0.2, of every machine.
constexpr std::uint32_t kOther = 0x7f4d0003;  ///< 127.77.0.3.

/// A process of the other node that knows something.
class Ear {
 public:
  Ear() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(kOther);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Ear() { close_it(); }
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;

  Knower knower() const { return {kOther, port_}; }
  void close_it() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  /// Takes what has come, and answers.
  void hear() {
    NamesNews news{};
    sockaddr_in from{};
    socklen_t length = sizeof from;
    while (recvfrom(fd_, &news, sizeof news, 0, reinterpret_cast<sockaddr*>(&from), &length) == sizeof news) {
      if (news.nonce != nonce_) heard.push_back({news.nid, news.pid});  // Who answers slowly is told again.
      nonce_ = news.nonce;
      life = news.life;
      if (!answers) continue;
      news.kind = NewsKind::kHeard;
      sendto(fd_, &news, sizeof news, 0, reinterpret_cast<const sockaddr*>(&from), sizeof from);
    }
  }

  std::vector<ProcessId> heard;
  bool answers = true;
  std::uint64_t life = 1;  ///< Of what was heard last.

 private:
  int fd_;
  std::uint16_t port_ = 0;
  std::uint64_t nonce_ = 0;
};

/// The places of a segment's table.
class Places {
 public:
  explicit Places(int fd) {
    SegmentDescriptorShared descriptor{};
    EXPECT_EQ(pread(fd, &descriptor, sizeof descriptor, 0), static_cast<ssize_t>(sizeof descriptor));
    const SegmentLayout layout{descriptor.channel_count, descriptor.ring, descriptor.area_bytes};
    mapping_ = Mapping::map(fd, layout.known_by_offset(), sizeof(KnownByShared));
  }
  std::atomic<std::uint64_t>& first() { return reinterpret_cast<KnownByShared*>(mapping_.at(0))->places[0]; }
  /// As if it had not answered for so long.
  void age(std::uint64_t seconds) {
    const std::uint64_t since = (monotonic_ns() / 1'000'000'000 - seconds) & 0x3fff;
    first() = (first() & ~std::uint64_t{0xfffe}) | 2 | since << 2;
  }

 private:
  Mapping mapping_;
};

struct KnownByTest : ::testing::Test {
  std::unique_ptr<ProcessSegment> create(std::uint32_t pid) const {
    SegmentOptions options = directory.options(pid);
    options.nid = kNode;
    SegmentError error{};
    return ProcessSegment::create(options, &error, nullptr);
  }
  bool tell(int timeout_ms = 5000, NamesLost lost = NamesLost::kSome) {
    return tell_knowers(mine->file()->fd(), lost, timeout_ms, [this] { ear.hear(); });
  }
  /// A process claims number 5, which the other node knows, and dies.
  bool die_known(std::uint32_t pid) const {
    return in_dying_child([this, pid] {
             auto child = create(pid);
             const bool made = child != nullptr && claim_alias(*child, 5) == AliasResult::kClaimed &&
                               note_knower(child->file()->fd(), ear.knower());
             child.release();
             return made ? 0 : 1;
           }) == 0;
  }
  bool note() const { return note_knower(mine->file()->fd(), ear.knower()); }

  SegmentDirectory directory;
  std::unique_ptr<ProcessSegment> mine = create(7);
  std::unique_ptr<ProcessSegment> other = create(8);
  Ear ear;
};

TEST_F(KnownByTest, Nobody__has_to_hear) {
  EXPECT_TRUE(tell());
  EXPECT_TRUE(ear.heard.empty());
}

// It may have a link, and has to hear when the PID is another process's.
TEST_F(KnownByTest, Knower__hears_once_of_all_that_it_knows_and_of_the_end) {
  ASSERT_TRUE(note());
  ASSERT_TRUE(note());
  EXPECT_TRUE(tell());
  EXPECT_EQ(ear.heard, (std::vector<ProcessId>{{kNode, 7}}));
  EXPECT_EQ(ear.life, 0u) << "it lives";
  EXPECT_TRUE(tell());
  EXPECT_EQ(ear.heard.size(), 1u) << "it knows no queue or gate any more";
  ASSERT_TRUE(note());
  EXPECT_TRUE(tell());
  EXPECT_EQ(ear.heard.size(), 2u);
  EXPECT_TRUE(tell(5000, NamesLost::kAllWithItsLife));
  EXPECT_EQ(ear.heard.size(), 3u);
  EXPECT_NE(ear.life, 0u);
  EXPECT_TRUE(tell(5000, NamesLost::kAllWithItsLife));
  EXPECT_EQ(ear.heard.size(), 3u) << "it knows nothing any more";
}

TEST_F(KnownByTest, Who_is_gone__need_not_hear) {
  ASSERT_TRUE(note());
  ear.close_it();
  EXPECT_TRUE(tell());
}

TEST_F(KnownByTest, Who_does_not_answer__keeps_the_name_where_it_is) {
  ear.answers = false;
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  ASSERT_TRUE(note());
  EXPECT_FALSE(tell(30));
  EXPECT_FALSE(ear.heard.empty());
  EXPECT_FALSE(release_alias(*mine, 5, [this] { ear.hear(); }));
  EXPECT_EQ(claim_alias(*other, 5), AliasResult::kTaken);
  ear.answers = true;
  EXPECT_TRUE(release_alias(*mine, 5, [this] { ear.hear(); }));
  EXPECT_EQ(claim_alias(*other, 5), AliasResult::kClaimed);
}

TEST_F(KnownByTest, While_somebody_is_told__other_threads_claim_and_release_names) {
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  ASSERT_TRUE(note());
  std::atomic<bool> is_through{false};
  bool was_taken = false, was_moving = false;
  std::thread thread;
  const bool released = release_alias(*mine, 5, [&] {
    if (!thread.joinable()) {
      thread = std::thread([&] {
        NameOwner owner;
        was_taken = claim_alias(*other, 5) == AliasResult::kTaken;
        was_moving = find_alias(*other, 5, &owner) && owner.names == kNamesMoving;
        is_through = claim_alias(*other, 6) == AliasResult::kClaimed && release_alias(*other, 6);
      });
    }
    if (is_through) ear.hear();  // Not before.
  });
  thread.join();
  EXPECT_TRUE(released) << "nobody came through while it was told";
  EXPECT_TRUE(is_through);
  EXPECT_TRUE(was_taken) << "until all have heard, the number stays taken";
  EXPECT_TRUE(was_moving);
  EXPECT_EQ(claim_alias(*other, 5), AliasResult::kClaimed);
}

TEST_F(KnownByTest, Name_of_the_dead_of_another_version__is_told_too) {
  ASSERT_TRUE(die_known(9));
  become_unknown(segment_path(directory.path(), {kNode, 9}));
  EXPECT_EQ(claim_alias(*mine, 5, [this] { ear.hear(); }), AliasResult::kClaimed);
  ASSERT_FALSE(ear.heard.empty());
  EXPECT_EQ(ear.heard.back(), (ProcessId{kNode, 9}));
}

TEST_F(KnownByTest, Name_of_the_dead__is_taken_when_those_have_heard_who_know_it) {
  ASSERT_TRUE(die_known(9));
  ear.answers = false;
  EXPECT_EQ(claim_alias(*mine, 5, [this] { ear.hear(); }), AliasResult::kTaken);
  const auto sweeper = create(10);
  EXPECT_TRUE(std::filesystem::exists(alias_path(directory.path(), mine->job_key(), 5))) << "a sweep leaves it, too";
  ear.answers = true;
  EXPECT_EQ(claim_alias(*mine, 5, [this] { ear.hear(); }), AliasResult::kClaimed);
  EXPECT_EQ(ear.heard.back(), (ProcessId{kNode, 9}));
  EXPECT_NE(ear.life, 0u);
}

TEST_F(KnownByTest, Who_has_been_silent_for_long__need_not_hear_of_a_death) {
  ear.answers = false;
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  ASSERT_TRUE(note());
  Places places(mine->file()->fd());
  EXPECT_FALSE(tell(30));
  places.age(28);
  const std::uint64_t silent = places.first();
  EXPECT_FALSE(tell(30));
  EXPECT_EQ(places.first(), silent) << "it is silent since the first time";
  places.age(40);
  EXPECT_FALSE(tell(30)) << "of a living process it has to hear";
  mine.reset();
  const auto sweeper = create(10);
  EXPECT_FALSE(std::filesystem::exists(alias_path(directory.path(), other->job_key(), 5)));
}

TEST_F(KnownByTest, Who_is_noted_anew__is_not_silent) {
  ear.answers = false;
  ASSERT_TRUE(note());
  EXPECT_FALSE(tell(30));
  Places places(mine->file()->fd());
  places.age(40);
  ASSERT_TRUE(note());
  EXPECT_EQ(places.first() & 0xffff, 1u);
}

/// As on a laptop that has left its network.
TEST_F(KnownByTest, Names_of_the_dead__do_not_stay_for_ever_when_the_address_of_the_node_is_gone) {
  SegmentOptions options = directory.options(9);
  options.nid = 0xc0000201;  // 192.0.2.1, which nobody has.
  SegmentError error{};
  auto gone = ProcessSegment::create(options, &error, nullptr);
  ASSERT_EQ(claim_alias(*gone, 5), AliasResult::kClaimed);
  ASSERT_TRUE(note_knower(gone->file()->fd(), ear.knower()));
  Places places(gone->file()->fd());
  gone.reset();
  EXPECT_NE(places.first() & 2, 0u);
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kTaken);
  places.age(31);
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
}

/// As in a container: our addresses are those of others there, and so is that nobody is at a port.
bool enter_own_network() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  const bool is_up = ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
  close(fd);
  return is_up;
}

TEST_F(KnownByTest, Who_is_in_another_network__does_not_take_a_knower_for_gone) {
  ASSERT_TRUE(note());
  constexpr int kNoNetwork = 77;
  const int status = in_dying_child([this] {
    if (!enter_own_network()) return kNoNetwork;
    return tell_knowers(mine->file()->fd(), NamesLost::kAllWithItsLife, 1000) ? 1 : 0;
  });
  if (status == kNoNetwork) GTEST_SKIP() << "no network of one's own here";
  EXPECT_EQ(status, 0) << "nobody has heard";
  EXPECT_TRUE(tell());
  EXPECT_EQ(ear.heard.size(), 1u) << "it still knew";
}

TEST_F(KnownByTest, Knower_that_is_found_a_name__is_noted_with_it) {
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  NameOwner owner;
  const Knower knower = ear.knower();
  ASSERT_TRUE(find_alias(*other, 5, &owner, &knower));
  EXPECT_NE(owner.names, kNamesMoving);
  EXPECT_TRUE(release_alias(*mine, 5, [this] { ear.hear(); }));
  EXPECT_EQ(ear.heard.size(), 1u);
  const Knower nowhere{kOther, 0};
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  ASSERT_TRUE(find_alias(*other, 5, &owner, &nowhere));
  EXPECT_EQ(owner.names, kNamesMoving) << "who cannot be told must not remember";
}

TEST_F(KnownByTest, Full_table__lets_nobody_remember) {
  for (std::uint32_t i = 0; i < kKnownByPlaces; ++i) {
    ASSERT_TRUE(note_knower(mine->file()->fd(), {kOther + 1 + i, 1}));
  }
  EXPECT_FALSE(note());
}

TEST_F(KnownByTest, End__tells_and_leaves_the_names_that_somebody_still_knows) {
  ear.answers = false;
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  ASSERT_TRUE(note());
  mine.reset();
  EXPECT_TRUE(std::filesystem::exists(alias_path(directory.path(), other->job_key(), 5)));
  NameOwner owner;
  EXPECT_FALSE(find_alias(*other, 5, &owner));
  ear.answers = true;
  EXPECT_EQ(claim_alias(*other, 5, [this] { ear.hear(); }), AliasResult::kClaimed);
}

}  // namespace
}  // namespace portofu
