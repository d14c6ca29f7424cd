// The receiving half, hearing a peer that the test plays: messages as nobody of ours would send them.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/ofi/doorplate.h"
#include "tests/support/eventually.h"
#include "tests/unit/wire/ofi/raw_endpoint.h"

namespace portofu {
namespace {

class OfiReceiveTest : public testing::Test {
 protected:
  OfiReceiveTest() {
    peer.meanwhile = [this] { look(); };
  }

  /// What the peer, a process of node B, may say to the wire of node A.
  static OfiEnvelope word(OfiKind kind, std::uint64_t count = 0) {
    OfiEnvelope head{};
    head.magic = kOfiMagic;
    head.job_key = 77;
    head.uid = geteuid();
    head.kind = kind;
    head.nid = kNodeB;
    head.pid = test_pid();
    head.life = kLife;
    head.peer_life = kind == OfiKind::kHello ? 0 : kOwnLife;
    head.link = 1;
    head.count = count;
    return head;
  }
  static std::string text_of(const OfiEnvelope& head) { return {reinterpret_cast<const char*>(&head), sizeof head}; }
  void say(const OfiEnvelope& head) { EXPECT_TRUE(peer.send(to_wire, text_of(head))); }

  /// A packet of the link, with some payload.
  static std::string packet_text(const OfiEnvelope& head, std::uint64_t hdr_data, std::uint32_t payload_bytes = 5) {
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.hdr_data = hdr_data;
    header.payload_bytes = payload_bytes;
    header.uid = head.uid;
    return text_of(head) + std::string(reinterpret_cast<const char*>(&header), sizeof header) + "bytes";
  }
  void send_packet(std::uint64_t number) {
    EXPECT_TRUE(peer.send(to_wire, packet_text(word(OfiKind::kPacket, number), number)));
  }

  /// Lets the wire hear what there is, be there packets that nobody has taken or not.
  void look() { a.wire->has_unheard({kNodeB, test_pid()}, kLife); }

  /// Lets both make progress until `done`.
  bool together(const std::function<bool()>& done) {
    return eventually([&] {
      look();
      peer.look();
      return done();
    });
  }
  bool is_counted(Counter counter, std::uint64_t times) {
    return together([&] { return a.count(counter) == times; });
  }
  /// The next message of the wire, of those that were not asked for yet.
  OfiEnvelope next_message() {
    OfiEnvelope head{};
    EXPECT_TRUE(together([&] { return peer.arrived.size() > heard; }));
    if (peer.arrived.size() > heard) std::memcpy(&head, peer.arrived[heard++].data(), sizeof head);
    return head;
  }
  /// The same, but for its hello.
  OfiEnvelope answer() {
    const OfiEnvelope head = next_message();
    return head.kind == OfiKind::kHello ? next_message() : head;
  }
  /// What is said before is answered with this alone.
  void expect_only_answer(OfiKind kind) {
    EXPECT_EQ(answer().kind, kind);
    say(word(OfiKind::kHello));  // Its answer comes behind all others.
    EXPECT_NE(answer().magic, 0u);
    EXPECT_EQ(heard, peer.arrived.size());
  }
  void greet() {
    say(word(OfiKind::kHello));
    const OfiEnvelope welcome = answer();
    ASSERT_EQ(welcome.kind, OfiKind::kWelcome);
  }
  /// A life of the peer says hello, and hears that of the wire in front of the welcome; so the link to it opens.
  void meet(std::uint64_t life) {
    OfiEnvelope head = word(OfiKind::kHello);
    head.life = life;
    say(head);
    const OfiEnvelope hello = next_message();
    ASSERT_EQ(hello.kind, OfiKind::kHello);
    const OfiEnvelope welcome = next_message();
    ASSERT_EQ(welcome.kind, OfiKind::kWelcome);
    EXPECT_EQ(welcome.peer_life, life);
    head = word(OfiKind::kWelcome, kOfiWindowPackets);
    head.life = life;
    head.link = hello.link;
    say(head);
  }
  Link* link_to_peer() {
    Link* link = nullptr;
    EXPECT_TRUE(together([&] { return a.wire->connect(peer_id, &link) == ConnectResult::kConnected; }));
    return link;
  }
  bool has_ended() {
    ProcessId source;
    void* context = nullptr;
    return a.wire->take_closed_source(&source, &context);
  }

  static constexpr std::uint64_t kOwnLife = 1;
  static constexpr std::uint64_t kLife = 9;
  const ProcessId peer_id{kNodeB, test_pid()};
  OfiEnd a{ofi_options(kNodeA, kOwnLife)};
  RawEndpoint peer{kNodeB};
  fi_addr_t to_wire = peer->insert(kNodeA, fabric_port());
  std::size_t heard = 0;  ///< Answers that were looked at.
  std::vector<std::uint64_t> got;
};

TEST_F(OfiReceiveTest, Hello__is_welcome_and_opens_a_link) {
  say(word(OfiKind::kHello));
  const OfiEnvelope welcome = answer();
  EXPECT_EQ(welcome.kind, OfiKind::kWelcome);
  EXPECT_EQ(welcome.count, kOfiWindowPackets);
  EXPECT_EQ(welcome.life, kOwnLife);
  EXPECT_EQ(welcome.peer_life, kLife);
  EXPECT_EQ(welcome.link, 1u);
  send_packet(0);
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_EQ(a.last_source, (ProcessId{kNodeB, test_pid()}));
  EXPECT_EQ(a.last_payload.size(), 5u);
}

// Of what is sent behind the welcome, the answer may have to leave at once: then the link back is there.
TEST_F(OfiReceiveTest, Hello__of_a_stranger_is_answered_by_one_in_front_of_the_welcome) {
  say(word(OfiKind::kHello));
  const OfiEnvelope hello = next_message();
  EXPECT_EQ(hello.kind, OfiKind::kHello);
  EXPECT_EQ(next_message().kind, OfiKind::kWelcome);
  OfiEnvelope welcome = word(OfiKind::kWelcome, kOfiWindowPackets);
  welcome.link = hello.link;
  say(welcome);
  send_packet(0);
  ASSERT_TRUE(together([this] { return a.take(&got); }));
  Link* link = nullptr;
  EXPECT_EQ(a.wire->connect({kNodeB, test_pid()}, &link), ConnectResult::kConnected);
  say(word(OfiKind::kHello));
  EXPECT_EQ(next_message().kind, OfiKind::kWelcome) << "there is one already";
}

TEST_F(OfiReceiveTest, Hello__that_is_said_again_is_answered_again_and_changes_nothing) {
  greet();
  send_packet(0);
  ASSERT_TRUE(together([this] { return a.take(&got); }));
  greet();
  send_packet(1);
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_FALSE(has_ended());
}

TEST_F(OfiReceiveTest, Nonsense__is_counted_and_not_answered) {
  ASSERT_TRUE(peer.send(to_wire, "short"));
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedMalformed, 1));
  OfiEnvelope other_format = word(OfiKind::kHello);
  other_format.magic ^= 1u << 24;
  say(other_format);
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedMalformed, 2));
  greet();
  say(word(static_cast<OfiKind>(77)));
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedMalformed, 3));
  say(word(OfiKind::kHello));
  EXPECT_EQ(answer().kind, OfiKind::kWelcome) << "nothing was said before";
}

TEST_F(OfiReceiveTest, Other_jobs_and_users__are_refused) {
  OfiEnvelope head = word(OfiKind::kHello);
  head.job_key = 78;
  say(head);
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedKey, 1));
  head = word(OfiKind::kHello);
  ++head.uid;
  say(head);
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedKey, 2));
  EXPECT_TRUE(peer.arrived.empty());
}

TEST_F(OfiReceiveTest, Senders_that_cannot_be__are_refused) {
  const std::vector<std::function<void(OfiEnvelope&)>> lies = {
      [](OfiEnvelope& head) { head.nid = kNodeA; }, [](OfiEnvelope& head) { head.pid = 0; },
      [](OfiEnvelope& head) { head.pid = kMaxPid + 1; }, [](OfiEnvelope& head) { head.life = 0; }};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    OfiEnvelope head = word(OfiKind::kHello);
    lies[i](head);
    say(head);
    EXPECT_TRUE(is_counted(Counter::kPacketsRefusedSource, i + 1)) << i;
  }
  EXPECT_TRUE(peer.arrived.empty());
}

// The fabric tells who sent a message, once it knows the address.
TEST_F(OfiReceiveTest, Sender_in_the_name_of_another__is_refused) {
  greet();
  RawEndpoint liar(kNodeB, static_cast<std::uint16_t>(fabric_port() + 1));
  const fi_addr_t from_liar = liar->insert(kNodeA, fabric_port());
  liar.meanwhile = peer.meanwhile;
  ASSERT_TRUE(liar.send(from_liar, packet_text(word(OfiKind::kPacket, 0), 7)));
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedSource, 1));
  send_packet(0);
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0}));
}

// He knows a life of ours that is over, and would wait for ever.
TEST_F(OfiReceiveTest, Stranger_who_does_not_greet__is_told_that_there_is_no_link) {
  send_packet(0);
  const OfiEnvelope refusal = answer();
  EXPECT_EQ(refusal.kind, OfiKind::kRefusal);
  EXPECT_EQ(refusal.peer_life, kLife);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedSource), 1u);
  EXPECT_FALSE(a.take(&got));
}

TEST_F(OfiReceiveTest, Stranger_who_waits_for_nothing__is_not_answered) {
  say(word(OfiKind::kCredit));
  EXPECT_TRUE(is_counted(Counter::kPacketsRefusedSource, 1));
  greet();
  EXPECT_EQ(heard, peer.arrived.size());
}

TEST_F(OfiReceiveTest, Packet_for_a_former_life__is_refused) {
  greet();
  OfiEnvelope head = word(OfiKind::kPacket, 0);
  head.peer_life = kOwnLife + 1;
  ASSERT_TRUE(peer.send(to_wire, packet_text(head, 7)));
  expect_only_answer(OfiKind::kRefusal);
  EXPECT_FALSE(a.take(&got));
}

TEST_F(OfiReceiveTest, Gap__ends_the_link_behind_what_has_come) {
  greet();
  send_packet(0);
  send_packet(2);
  EXPECT_EQ(answer().kind, OfiKind::kRefusal);
  EXPECT_FALSE(has_ended()) << "one packet is to be taken";
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0}));
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(a.count(Counter::kSourcesEvicted), 0u) << "the fabric may lose a connection";
}

// Whoever waits for such an answer would wait for ever: the peer does not know that it was lost.
TEST_F(OfiReceiveTest, Gap__ends_the_own_link_too_because_answers_may_be_lost) {
  meet(kLife);
  const Link* const link = link_to_peer();
  ASSERT_NE(link, nullptr);
  send_packet(0);
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_FALSE(link->lost);
  send_packet(2);
  EXPECT_TRUE(together([link] { return link->lost; }));
}

TEST_F(OfiReceiveTest, Probe_that_tells_of_a_lost_packet__ends_the_own_link_too) {
  meet(kLife);
  const Link* const link = link_to_peer();
  ASSERT_NE(link, nullptr);
  say(word(OfiKind::kProbe, 0));
  say(word(OfiKind::kProbe, 1));
  EXPECT_TRUE(together([link] { return link->lost; }));
}

TEST_F(OfiReceiveTest, Packet_that_is_shorter_than_it_says__ends_the_link) {
  greet();
  ASSERT_TRUE(peer.send(to_wire, packet_text(word(OfiKind::kPacket, 0), 7, 6)));
  EXPECT_EQ(answer().kind, OfiKind::kRefusal);
  EXPECT_EQ(a.count(Counter::kSourcesEvicted), 1u);
  EXPECT_TRUE(has_ended());
  EXPECT_FALSE(a.take(&got));
}

TEST_F(OfiReceiveTest, Credit__is_given_for_half_a_window_at_once) {
  greet();
  for (std::uint64_t i = 0; i < kOfiWindowPackets / 2; ++i) send_packet(i);
  ASSERT_TRUE(together([this] {
    a.take(&got);
    return got.size() == kOfiWindowPackets / 2 - 1;
  }));
  EXPECT_EQ(peer.arrived.size(), heard) << "one less than half";
  ASSERT_TRUE(together([this] { return a.take(&got); }));
  const OfiEnvelope credit = answer();
  EXPECT_EQ(credit.kind, OfiKind::kCredit);
  EXPECT_EQ(credit.count, kOfiWindowPackets / 2);
}

TEST_F(OfiReceiveTest, Goodbye__is_answered_when_the_last_packet_is_taken) {
  greet();
  send_packet(0);
  say(word(OfiKind::kGoodbye, 1));
  ASSERT_TRUE(together([this] { return a.take(&got); }));
  ASSERT_TRUE(together([this] { return has_ended(); }));
  const OfiEnvelope credit = answer();
  EXPECT_EQ(credit.kind, OfiKind::kCredit);
  EXPECT_EQ(credit.count, 1u);
}

TEST_F(OfiReceiveTest, Probe__is_answered_only_if_something_is_wrong) {
  greet();
  send_packet(0);
  ASSERT_TRUE(together([this] { return a.take(&got); }));
  say(word(OfiKind::kProbe, 1));  // All is as the peer believes.
  OfiEnvelope former = word(OfiKind::kProbe, 1);
  former.peer_life = kOwnLife + 1;
  say(former);
  EXPECT_EQ(answer().kind, OfiKind::kRefusal) << "another life is meant";
  EXPECT_FALSE(has_ended());
  say(word(OfiKind::kProbe, 2));
  EXPECT_EQ(answer().kind, OfiKind::kRefusal) << "a packet was lost";
  EXPECT_TRUE(together([this] { return has_ended(); }));
  EXPECT_EQ(heard, peer.arrived.size());
}

// What its former life has sent is delivered; what is under way of it is not.
TEST_F(OfiReceiveTest, Next_life_of_the_peer__has_a_link_of_its_own_behind_the_former_one) {
  greet();
  send_packet(0);
  OfiEnvelope head = word(OfiKind::kHello);
  head.life = kLife + 1;
  say(head);
  EXPECT_EQ(answer().peer_life, kLife + 1);
  head = word(OfiKind::kPacket, 0);
  head.life = kLife + 1;
  ASSERT_TRUE(peer.send(to_wire, packet_text(head, 100)));
  ASSERT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_FALSE(a.take(&got)) << "the former life has to be taken first";
  EXPECT_TRUE(together([this] { return has_ended(); }));
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 100}));
}

// It may be all that it asks for, and this process be gone behind that: as with a stranger, the link comes first.
TEST_F(OfiReceiveTest, Next_life_of_the_peer__has_a_link_back_while_the_engine_holds_the_former_one) {
  Doorplate plate;  // The peer is there.
  ASSERT_TRUE(plate.open(kNodeB, fabric_port()));
  meet(kLife);
  Link* const former = link_to_peer();
  ASSERT_NE(former, nullptr);
  ASSERT_NO_FATAL_FAILURE(meet(kLife + 1));
  EXPECT_TRUE(former->lost);
  EXPECT_EQ(a.wire->check_peers(), 1) << "the end of the former one is told";
  EXPECT_EQ(a.wire->claim(*former, 0), nullptr);
  EXPECT_FALSE(a.wire->leads_to_name(*former));
  a.wire->disconnect(former);
  Link* const next = link_to_peer();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->life, kLife + 1);
  EXPECT_FALSE(next->lost) << "what became of the former one is not its business";
  EXPECT_TRUE(send(a, *next, 2));
}

TEST_F(OfiReceiveTest, Several_lives__each_have_a_link_back_before_the_first_is_given_back) {
  meet(kLife);
  Link* const former = link_to_peer();
  ASSERT_NE(former, nullptr);
  ASSERT_NO_FATAL_FAILURE(meet(kLife + 1));
  ASSERT_NO_FATAL_FAILURE(meet(kLife + 2));
  EXPECT_TRUE(former->lost);
  a.wire->disconnect(former);
  Link* const next = link_to_peer();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->life, kLife + 2);
}

// Nobody was there when it was greeted; it has come, and said hello, before the engine asks again.
TEST_F(OfiReceiveTest, Peer_that_comes_when_it_was_found_absent__is_reached_by_the_next_look) {
  Link* link = nullptr;
  ASSERT_EQ(a.wire->connect(peer_id, &link), ConnectResult::kInProgress);
  a.wire->check_peers();
  Doorplate plate;
  ASSERT_TRUE(plate.open(kNodeB, fabric_port()));
  ASSERT_NO_FATAL_FAILURE(meet(kLife));
  ASSERT_TRUE(together([&] {
    const ConnectResult result = a.wire->connect(peer_id, &link);
    EXPECT_NE(result, ConnectResult::kNoSuchPeer);
    return result != ConnectResult::kInProgress;
  }));
  EXPECT_NE(link, nullptr);
}

// A knock found nobody, because the former life was over and the next not there yet. What it says is read late.
TEST_F(OfiReceiveTest, Absence_from_before_the_hello__does_not_end_the_life_that_has_said_it) {
  Link* link = nullptr;
  ASSERT_EQ(a.wire->connect(peer_id, &link), ConnectResult::kInProgress);  // Knocks.
  auto plate = std::make_unique<Doorplate>();
  ASSERT_TRUE(plate->open(kNodeB, fabric_port()));
  EXPECT_EQ(next_message().kind, OfiKind::kHello);
  greet();
  a.wire->check_peers();
  send_packet(0);
  EXPECT_TRUE(together([this] { return a.take(&got); }));
  EXPECT_FALSE(has_ended());
  plate.reset();
  EXPECT_TRUE(together([this] {
    a.wire->check_peers();
    return has_ended();
  })) << "one from behind the hello ends it";
}

TEST_F(OfiReceiveTest, Credit_for_more_than_was_sent__gives_no_room) {
  Doorplate plate;  // The peer is there.
  ASSERT_TRUE(plate.open(kNodeB, fabric_port()));
  Link* link = nullptr;
  ASSERT_TRUE(together([&] {
    const ConnectResult result = a.wire->connect({kNodeB, test_pid()}, &link);
    if (result == ConnectResult::kConnected) return true;
    if (peer.arrived.size() == heard) return false;
    const OfiEnvelope hello = next_message();
    OfiEnvelope welcome = word(OfiKind::kWelcome, 2);
    welcome.link = hello.link;
    say(welcome);
    return false;
  }));
  EXPECT_TRUE(send(a, *link, 0));
  EXPECT_TRUE(send(a, *link, 1));
  EXPECT_FALSE(send(a, *link, 2)) << "the peer has a window of two";
  OfiEnvelope credit = word(OfiKind::kCredit, 3);
  credit.link = 1;
  say(credit);
  say(word(static_cast<OfiKind>(77)));
  ASSERT_TRUE(is_counted(Counter::kPacketsRefusedMalformed, 1)) << "what came before is heard";
  EXPECT_FALSE(send(a, *link, 2));
  credit.count = 1;
  say(credit);
  EXPECT_TRUE(together([&] { return send(a, *link, 2); }));
}

}  // namespace
}  // namespace portofu
