// What the tests of processes (tests/process/check_test.cpp) cannot bring about at will: orders, and arrivals.

#include "engine/check/tofu_checker.h"

#include <memory>

#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/found.h"

namespace portofu {
namespace {

class TofuCheckerTest : public CoreTest {
 protected:
  static constexpr Coordinates kHere{};
  static constexpr std::uint64_t kLine = 256;

  TofuCheckerTest() {
    core.tofu = std::make_unique<Tofu>(kHere, nullptr);
    ControlQueue* const queue = core.tofu->claim_queue(0, 0, CqMode::kShared);
    queue->vcqs[0] = std::make_unique<VirtualControlQueue>(16, 8);
    vcq = queue->vcqs[0].get();
    vcq->id = make_tofu_id(TofuIdKind::kVcq, kHere, make_queue_number(0, 0, 0));
    EXPECT_TRUE(core.tofu->enter(*vcq));
    const RegionRequest request{0, memory.data(), memory.size(), false};
    EXPECT_EQ(core.tofu->stadds(*vcq).add(request, &stadd), Status::kOk);
  }

  static std::uint64_t peer_vcq(std::uint32_t path = 0) {
    return with_path(make_tofu_id(TofuIdKind::kVcq, {1, 0, 0, 0, 0, 0}, make_queue_number(1, 1, 0)), path);
  }
  void post(PacketType type, std::uint64_t remote, std::uint64_t length, std::uint16_t meta = 0,
            std::uint32_t path = 0) {
    Descriptor d;
    d.type = type;
    d.interface_index = kTofuInterface;
    d.tofu_meta = meta;
    d.remote_stadd = remote;
    d.length = length;
    d.tofu = {vcq->handle, type == PacketType::kTofuArmw, peer_vcq(path), stadd, 0};
    d.tofu.tcq_place = vcq->tcq.take(nullptr, (meta & kTofuTcqNotice) != 0);
    vcq->tcq.complete(d.tofu.tcq_place, NiFail::kOk);
    checker.starts(core, *vcq, d);
  }
  void put(std::uint64_t remote, std::uint64_t length, std::uint16_t meta = 0, std::uint32_t path = 0) {
    post(PacketType::kTofuPut, remote, length, meta, path);
  }
  void something_arrives() { core.counters.add(Counter::kPutsMatched); }
  void read(NoticeKind kind, std::uint8_t edata = 0) {
    Notice notice;
    notice.kind = kind;
    notice.vcq_id = peer_vcq();
    notice.edata = edata;
    checker.reads(*vcq, notice);
  }

  Found found;
  TofuChecker checker{found.log};
  VirtualControlQueue* vcq = nullptr;
  std::uint64_t stadd = 0;
};

TEST_F(TofuCheckerTest, Threads__that_meet_at_a_CQ_are_told) {
  VirtualControlQueue other(16, 8);
  other.id = make_tofu_id(TofuIdKind::kVcq, kHere, make_queue_number(0, 0, 1));
  checker.meets(*vcq, other);
  EXPECT_NE(found.text().find("threads_at_once"), std::string::npos) << found.text();
  EXPECT_NE(found.text().find("which shares its CQ"), std::string::npos) << found.text();
}

TEST_F(TofuCheckerTest, Overlap__without_order_is_told) {
  put(0, kLine);
  put(kLine, kLine);
  EXPECT_TRUE(found.is_empty()) << "neighbours: " << found.text();
  put(kLine - 1, 1);
  EXPECT_TRUE(found.has("overwrites_unordered")) << found.text();
}

TEST_F(TofuCheckerTest, Strong_order__orders_on_the_same_path_only) {
  put(0, kLine);
  put(0, kLine, kTofuStrongOrder);
  EXPECT_TRUE(found.is_empty()) << found.text();
  put(0, kLine, kTofuStrongOrder, 3);
  EXPECT_TRUE(found.has("overwrites_unordered")) << found.text();
}

TEST_F(TofuCheckerTest, Gets__do_not_disturb_each_other) {
  post(PacketType::kTofuGet, 0, kLine);
  post(PacketType::kTofuGet, 0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
  put(0, kLine);
  EXPECT_TRUE(found.has("an earlier utofu_get of 256 bytes")) << found.text();
}

TEST_F(TofuCheckerTest, Atomics__of_one_word_need_no_order) {
  post(PacketType::kTofuArmw, 0, 8);
  post(PacketType::kTofuArmw, 0, 8);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Message_that_arrives__may_have_told_that_it_is_over) {
  put(0, kLine);
  something_arrives();
  put(0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Local_notice__ends_the_doubt) {
  put(0, kLine, kTofuLocalNotice | 5);
  read(NoticeKind::kLocalPut, 5);
  put(0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Local_notice_of_strong_order__ends_the_doubts_before_it_on_its_path) {
  put(0, kLine);
  put(kLine, 8, kTofuStrongOrder | kTofuLocalNotice | 5);
  read(NoticeKind::kLocalPut, 5);
  put(0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
  put(4 * kLine, 8, kTofuStrongOrder | kTofuLocalNotice | 6, 3);
  read(NoticeKind::kLocalPut, 6);
  put(0, kLine);
  EXPECT_TRUE(found.has("overwrites_unordered")) << "another path: " << found.text();
}

TEST_F(TofuCheckerTest, Local_notice_without_order__tells_of_itself_only) {
  put(0, kLine);
  put(kLine, 8, kTofuLocalNotice | 5);
  read(NoticeKind::kLocalPut, 5);
  put(0, kLine);
  EXPECT_TRUE(found.has("overwrites_unordered")) << found.text();
}

TEST_F(TofuCheckerTest, What_was_fetched__may_have_told_that_it_is_over) {
  put(0, kLine);
  post(PacketType::kTofuGet, 2 * kLine, 8, kTofuLocalNotice | 5);
  read(NoticeKind::kLocalGet, 5);
  put(0, kLine);
  post(PacketType::kTofuArmw, 2 * kLine, 8, kTofuLocalNotice | 5);
  read(NoticeKind::kLocalArmw, 5);
  put(0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Barrier__may_have_told_that_it_is_over) {
  put(0, kLine);
  TofuChecker::passes_barrier();
  put(0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Message_in_another_lane__may_have_told_that_it_is_over) {
  TofuChecker other_checker(found.log);
  put(0, kLine);
  something_arrives();
  other_checker.look(core);
  put(0, kLine);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Flag__is_told_when_the_target_has_answered) {
  put(0, kLine);
  put(kLine, 8);
  put(2 * kLine, kLine);
  put(3 * kLine, 8);
  EXPECT_TRUE(found.is_empty()) << found.text();
  something_arrives();
  put(4 * kLine, kLine);
  put(5 * kLine, 8);
  EXPECT_TRUE(found.has("\"kind\":\"flag_unordered\"")) << found.text();
}

TEST_F(TofuCheckerTest, Flag__is_told_with_the_call_that_it_was) {
  put(0, kLine);
  post(PacketType::kTofuArmw, kLine, 8);
  something_arrives();
  checker.frees(core, *vcq, "utofu_free_vcq");
  EXPECT_TRUE(found.has("\"call\":\"utofu_armw\"")) << found.text();
}

TEST_F(TofuCheckerTest, Flag__behind_which_something_ordered_goes_is_none) {
  put(0, kLine);
  put(kLine, 8);
  something_arrives();  // From anybody, between the parts of a message.
  checker.look(core);
  put(2 * kLine, 8, kTofuStrongOrder);
  something_arrives();
  checker.frees(core, *vcq, "utofu_free_vcq");
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Word_behind_a_message_that_has_its_flag__is_none) {
  put(0, kLine);
  put(kLine, 32, kTofuStrongOrder);           // Is polled itself.
  post(PacketType::kTofuArmw, 2 * kLine, 8);  // As a credit.
  something_arrives();
  checker.frees(core, *vcq, "utofu_free_vcq");
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Session__takes_its_source_when_its_step_comes) {
  vcq->session = true;
  put(0, kLine, kTofuTcqNotice);
  put(0, kLine, kTofuTcqNotice);
  memory[0] = std::byte{2};
  void* data = nullptr;
  NiFail fail = NiFail::kOk;
  while (vcq->tcq.read(&data, &fail)) checker.polls_tcq(*vcq);
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Data_with_a_notice__needs_no_flag) {
  for (const std::uint16_t meta : {kTofuLocalNotice, kTofuRemoteNotice}) {
    put(0, kLine, meta);
    put(kLine, 8);
    something_arrives();
  }
  checker.frees(core, *vcq, "utofu_free_vcq");
  EXPECT_TRUE(found.is_empty()) << found.text();
}

TEST_F(TofuCheckerTest, Tcq_notice__tells_of_all_before_it) {
  put(0, 8, kTofuTcqNotice);
  memory[0] = std::byte{2};
  void* data = nullptr;
  NiFail fail = NiFail::kOk;
  EXPECT_TRUE(vcq->tcq.read(&data, &fail));
  checker.polls_tcq(*vcq);
  EXPECT_TRUE(found.has("\"byte\":0,\"bit\":1")) << found.text();
}

TEST_F(TofuCheckerTest, Tcq__has_room_for_what_was_read) {
  const std::uint64_t entries = core.settings.toq_entries;
  std::uint64_t at = 0;
  void* data = nullptr;
  NiFail fail = NiFail::kOk;
  for (std::uint64_t i = 0; i < 2 * entries; ++i) {
    put(at += 8, 8, kTofuTcqNotice);
    EXPECT_TRUE(vcq->tcq.read(&data, &fail));
    checker.polls_tcq(*vcq);
  }
  EXPECT_TRUE(found.is_empty()) << "never empty, but read: " << found.text();
  for (std::uint64_t i = 0; i < entries; ++i) put(at += 8, 8);
  EXPECT_TRUE(found.is_empty()) << found.text();
  put(at += 8, 8);
  EXPECT_TRUE(found.has("tcq_not_polled")) << found.text();
}

TEST_F(TofuCheckerTest, Mrq__that_is_nearly_full_is_told) {
  for (int i = 0; i < 6; ++i) vcq->mrq.post({});
  checker.polls_mrq(*vcq);
  EXPECT_TRUE(found.is_empty()) << found.text();
  vcq->mrq.post({});
  checker.polls_mrq(*vcq);
  EXPECT_TRUE(found.has("mrq_nearly_full")) << found.text();
}

TEST_F(TofuCheckerTest, Limits__of_the_machine_are_told_beyond_them) {
  checker.uses("utofu_put", kLengthLimit, 16'777'215);
  EXPECT_TRUE(found.is_empty()) << found.text();
  checker.uses("utofu_put", kLengthLimit, 16'777'216);
  EXPECT_TRUE(found.has("length 16777216")) << found.text();
}

}  // namespace
}  // namespace portofu
