// uTofu requests at the target: what is delivered, told and answered.

#include "engine/target/tofu_request.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "engine/memory/guarded_copy.h"
#include "engine/memory/stadd_access.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "engine/segment/peer_segment.h"

#include "tests/unit/segment/segment_directory.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

class TofuRequestTest : public CoreTest {
 protected:
  static constexpr std::uint32_t kNumber = make_queue_number(0, 1, 2);
  static constexpr std::uint64_t kPeerVcq = 0x5000000000100300;

  TofuRequestTest() {
    core.tofu = std::make_unique<Tofu>(Coordinates{}, nullptr);
    ControlQueue* queue = core.tofu->claim_queue(0, 1, CqMode::kSession);
    queue->vcqs[2] = std::make_unique<VirtualControlQueue>(16, 16);
    vcq = queue->vcqs[2].get();
    vcq->session = true;
    vcq->id = make_tofu_id(TofuIdKind::kVcq, {}, kNumber);
    core.tofu->enter(*vcq);
    queue->stadds.add({2, memory.data(), memory.size(), false}, &stadd);
    wire.room = FakeWire::kPlentyOfRoom;
  }

  PacketHeader request(PacketType type, std::uint64_t length, std::uint16_t flags,
                       std::uint32_t operation_id = 0) const {
    PacketHeader header{};
    header.type = type;
    header.flags = operation_id != 0 ? kFlagAnswerWanted : 0;
    header.interface_index = kTofuInterface;
    header.pt_index = flags;
    header.operation_id = operation_id;
    header.hdr_data = kPeerVcq;
    header.remote_offset = stadd;
    header.length = length;
    header.initiator_rank = kNumber;
    header.uid = kPeerUid;
    header.job_key = kJobKey;
    if (type == PacketType::kTofuPut) header.payload_bytes = static_cast<std::uint32_t>(length);
    return header;
  }

  PacketHeader armw(AtomicOperation operation, std::uint32_t operation_id, std::uint16_t flags) const {
    PacketHeader header = request(PacketType::kTofuArmw, 8, flags, operation_id);
    header.atomic_operation = static_cast<std::uint8_t>(operation);
    header.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
    header.payload_bytes = 8;
    return header;
  }
  static std::vector<std::byte> bytes_of(std::initializer_list<std::uint64_t> words) {
    std::vector<std::byte> bytes(8 * words.size());
    std::memcpy(bytes.data(), words.begin(), bytes.size());
    return bytes;
  }

  /// Kinds of all notices in the MRQ.
  std::vector<NoticeKind> told() {
    std::vector<NoticeKind> kinds;
    for (Notice notice; vcq->mrq.read(&notice);) kinds.push_back(notice.kind);
    return kinds;
  }

  VirtualControlQueue* vcq = nullptr;
  std::uint64_t stadd = 0;
};

using Kinds = std::vector<NoticeKind>;

TEST_F(TofuRequestTest, Put__is_delivered_told_and_answered) {
  PacketHeader header = request(PacketType::kTofuPut, 100, kTofuRemoteNotice | 7, 9);
  header.remote_offset += 50;
  receive(header);
  EXPECT_TRUE(holds_pattern(memory.data() + 50, 100));
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.kind, NoticeKind::kRemotePut);
  EXPECT_EQ(notice.vcq_id, kPeerVcq);
  EXPECT_EQ(notice.edata, 7u);
  EXPECT_EQ(notice.remote_stadd, stadd + 150);
  const PacketHeader answer = next_sent();
  EXPECT_EQ(answer.operation_id, 9u);
  EXPECT_EQ(answer.ni_fail_type, 0);
}

TEST_F(TofuRequestTest, Put_that_fails__counts_no_step_and_is_told_without_being_asked) {
  PacketHeader header = request(PacketType::kTofuPut, 100, 3u << kTofuStepsShift | kTofuRemoteNotice);
  header.remote_offset += memory.size() - 99;
  header.match_bits = 0x1234;
  receive(header);
  EXPECT_EQ(vcq->steps.success(), 0u);
  EXPECT_EQ(told(), Kinds{});
  const PacketHeader fault = next_sent();
  EXPECT_EQ(fault.type, PacketType::kTofuFault);
  EXPECT_EQ(fault.ni_fail_type, static_cast<std::uint8_t>(NiFail::kBadLength));
  EXPECT_EQ(fault.initiator_rank, queue_number(kPeerVcq));
  EXPECT_EQ(fault.match_bits, 0x1234u) << "by which the initiator knows its VCQ";
  receive(request(PacketType::kTofuPut, 100, 3u << kTofuStepsShift));
  EXPECT_EQ(vcq->steps.success(), 3u);
}

TEST_F(TofuRequestTest, Put_behind_a_get__is_told_when_the_data_of_the_get_has_left) {
  wire.room = 0;
  receive(request(PacketType::kTofuGet, 8000, kTofuRemoteNotice, 1));
  receive(request(PacketType::kTofuPut, 8, kTofuRemoteNotice | 1u << kTofuStepsShift));
  receive(request(PacketType::kTofuGet, 8, 0, 2));
  receive(request(PacketType::kTofuGet, 8, kTofuRemoteNotice, 3));
  receive(request(PacketType::kTofuPut, 8, kTofuRemoteNotice));
  EXPECT_EQ(told(), Kinds{});
  EXPECT_EQ(vcq->steps.success(), 1u) << "The data is there: what waits for it starts.";
  wire.room = FakeWire::kPlentyOfRoom;
  run_cycle_on_duty(core);
  EXPECT_EQ(told(),
            (Kinds{NoticeKind::kRemoteGet, NoticeKind::kRemotePut, NoticeKind::kRemoteGet, NoticeKind::kRemotePut}));
  EXPECT_TRUE(peer().held_notices.empty());
}

/// 2.2.10: notices of gets come in the order of the gets, and each when its own memory is the program's again.
TEST_F(TofuRequestTest, Get_behind_one_whose_data_is_still_read__is_told_behind_it) {
  wire.lends = true;
  receive(request(PacketType::kTofuGet, 8000, kTofuRemoteNotice | 1, 1));
  ASSERT_EQ(wire.lent_count, 1);
  receive(request(PacketType::kTofuGet, 8, kTofuRemoteNotice | 2, 2));
  EXPECT_EQ(wire.sent.size(), 2u) << "both have left";
  run_cycle_on_duty(core);
  EXPECT_EQ(told(), Kinds{});
  wire.taken_packets = 1;
  run_cycle_on_duty(core);
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.edata, 1u);
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.edata, 2u);
  EXPECT_TRUE(peer().held_notices.empty());
}

TEST_F(TofuRequestTest, Get_that_fails_behind_one_whose_data_is_still_read__takes_no_notice_but_its_own) {
  install_fault_guard();
  void* const gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  std::uint64_t gone_stadd = 0;
  core.tofu->queue(kNumber)->stadds.add({2, static_cast<std::byte*>(gone), 4096, false}, &gone_stadd);
  munmap(gone, 4096);
  wire.lends = true;
  receive(request(PacketType::kTofuGet, 8000, kTofuRemoteNotice | 1, 1));
  PacketHeader failing = request(PacketType::kTofuGet, 8, kTofuRemoteNotice | 2, 2);
  failing.remote_offset = gone_stadd;
  receive(failing);
  EXPECT_EQ(told(), Kinds{});
  wire.taken_packets = 1;
  run_cycle_on_duty(core);
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.edata, 1u);
  EXPECT_FALSE(vcq->mrq.read(&notice));
  EXPECT_TRUE(peer().held_notices.empty());
}

TEST_F(TofuRequestTest, Put_behind_a_get__of_another_process_does_not_wait) {
  wire.room = 0;
  receive(request(PacketType::kTofuGet, 8000, kTofuRemoteNotice, 1));
  receive(request(PacketType::kTofuPut, 8, kTofuRemoteNotice), kOther);
  EXPECT_EQ(told(), Kinds{NoticeKind::kRemotePut});
}

TEST_F(TofuRequestTest, Put_behind_a_get_that_never_leaves__is_told_all_the_same) {
  wire.room = 0;
  receive(request(PacketType::kTofuGet, 8000, kTofuRemoteNotice, 1));
  receive(request(PacketType::kTofuPut, 8, kTofuRemoteNotice));
  lose_peer(core, peer());
  EXPECT_EQ(told(), Kinds{NoticeKind::kRemotePut});
}

/// 2.2.3: the last line is written last, so the sender may bring to their place what packets do not reach into that.
TEST_F(TofuRequestTest, Put_of_several_packets_at_its_sender__is_offered_its_place_but_for_the_last_line) {
  const SegmentDirectory directory;
  const auto segment = directory.create(77);
  std::shared_ptr<PeerSegment> sender;
  ASSERT_EQ(PeerSegment::attach(directory.path(), {kTestNid, 77}, &sender), AttachResult::kAttached);
  if (!sender->memory().is_reachable()) GTEST_SKIP() << "this kernel lets no process read another one's memory";
  const std::vector<std::byte> theirs = pattern_bytes(0, 3000);
  PacketHeader header = request(PacketType::kTofuPut, 3000, kTofuRemoteNotice | 7);
  header.remote_offset += 50;
  header.payload_bytes = 1000;
  receive(header, Payload::in_memory_of(*sender, theirs.data()));
  ASSERT_EQ(wire.offers.size(), 1u);
  EXPECT_EQ(wire.offers[0].data(), memory.data() + 50);
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data()) + 3050;
  EXPECT_EQ(wire.offers[0].size(), 3000 - tofu_tail_bytes(end, 3000));
  receive(data_header(1000, 1000), Payload::placed_by(*sender));
  receive(data_header(2000, 1000), Payload::in_memory_of(*sender, theirs.data() + 2000));
  EXPECT_TRUE(holds_pattern(memory.data() + 50, 1000));
  EXPECT_TRUE(is_untouched(memory.data() + 1050, 1000)) << "the sender writes, not we";
  EXPECT_EQ(memory[3049], theirs[2999]);
  EXPECT_EQ(told(), Kinds{NoticeKind::kRemotePut});

  receive(header, Payload::in_memory_of(*sender, theirs.data()));
  const auto& stadds = core.tofu->queue(kNumber)->stadds;
  NiFail fail = NiFail::kOk;
  const RegisteredRegion* region = find_region(stadds, {stadd, 1, PacketType::kTofuPut}, &fail);
  ASSERT_NE(region, nullptr);
  EXPECT_TRUE(wire.taken_back.empty());
  leave_region(core, *region);
  EXPECT_EQ(wire.taken_back, std::vector<ProcessId>{kPeer});
}

TEST_F(TofuRequestTest, Armw__computes_tells_and_answers_with_the_old_value) {
  std::uint64_t word = 40;
  std::memcpy(memory.data(), &word, sizeof word);
  PacketHeader header = armw(AtomicOperation::kSum, 5, kTofuRemoteNotice);
  receive(header, bytes_of({2}));
  const FakePacket answer = wire.take();
  EXPECT_EQ(answer.header.operation_id, 5u);
  EXPECT_EQ(answer.header.ni_fail_type, 0);
  EXPECT_EQ(answer.header.flags & kFlagUnordered, 0) << "2.2.10";
  EXPECT_EQ(answer.payload, bytes_of({40}));
  std::memcpy(&word, memory.data(), sizeof word);
  EXPECT_EQ(word, 42u);
  EXPECT_EQ(told(), (Kinds{NoticeKind::kRemoteArmw}));
  EXPECT_EQ(vcq->steps.success(), 0u);

  header = armw(AtomicOperation::kCswap, 6, 0);
  header.payload_bytes = kOperandBytes + 8;
  std::vector<std::byte> payload(kOperandBytes + 8);
  word = 42;
  std::memcpy(payload.data(), &word, sizeof word);
  word = 7;
  std::memcpy(payload.data() + kOperandBytes, &word, sizeof word);
  receive(header, payload);
  EXPECT_EQ(wire.take().payload, bytes_of({42}));
  std::memcpy(&word, memory.data(), sizeof word);
  EXPECT_EQ(word, 7u);
  EXPECT_TRUE(told().empty());
}

TEST_F(TofuRequestTest, Armw_that_fails__is_told_to_the_initiator_alone) {
  install_fault_guard();
  const FaultyMemory gone;
  std::uint64_t gone_stadd = 0;
  core.tofu->queue(kNumber)->stadds.add({2, gone.edge(), 64, false}, &gone_stadd);
  const auto fail_of = [&](const PacketHeader& header) {
    receive(header, bytes_of({1}));
    const FakePacket answer = wire.take();
    EXPECT_TRUE(answer.payload.empty());
    EXPECT_EQ(answer.header.length, 0u);
    return static_cast<NiFail>(answer.header.ni_fail_type);
  };
  PacketHeader header = armw(AtomicOperation::kSum, 5, kTofuRemoteNotice);
  header.remote_offset = gone_stadd;
  EXPECT_EQ(fail_of(header), NiFail::kSegv);
  header.remote_offset = stadd;
  receive(header, Payload(gone.edge()));
  EXPECT_EQ(wire.take().header.ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv)) << "the packet was unmade";
  header.remote_offset = stadd + memory.size() - 4;
  EXPECT_EQ(fail_of(header), NiFail::kBadLength);
  header.remote_offset = make_stadd(1);
  EXPECT_EQ(fail_of(header), NiFail::kBadStadd);
  header.remote_offset = stadd;
  header.initiator_rank = make_queue_number(0, 1, 3);
  EXPECT_EQ(fail_of(header), NiFail::kUndeliverable);
  EXPECT_TRUE(told().empty());
  EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
  EXPECT_EQ(counted(Counter::kHeadersDropped), 3u) << "the first one had its memory, as far as anybody knew";
}

/// Its last cache line is written last (6.1.3.1), from wherever it begins.
TEST_F(TofuRequestTest, Put__of_any_length_and_place_is_written_as_it_is) {
  for (const std::uint64_t at : {0u, 1u, 8u, 200u, 255u, 256u, 300u}) {
    for (const std::uint64_t length : {1u, 7u, 8u, 64u, 255u, 256u, 257u, 1000u, 4096u}) {
      std::fill(memory.begin(), memory.end(), std::byte{0});
      PacketHeader header = request(PacketType::kTofuPut, length, 0);
      header.remote_offset = stadd + at;
      receive(header);
      EXPECT_TRUE(is_untouched(memory.data(), at));
      EXPECT_TRUE(holds_pattern(memory.data() + at, length)) << at << ' ' << length;
      EXPECT_TRUE(is_untouched(memory.data() + at + length, memory.size() - at - length));
    }
  }
}

// Whoever cuts a put knows why, but its number is not used anew before the answer.
TEST_F(TofuRequestTest, Put_that_is_cut__is_answered_once_if_an_answer_was_wanted) {
  for (const bool is_good : {true, false}) {
    for (const std::uint32_t operation_id : {7u, 0u}) {
      PacketHeader header = request(PacketType::kTofuPut, 2 * kPacketBytes, 0, operation_id);
      header.payload_bytes = kPacketBytes;
      if (!is_good) header.remote_offset = make_stadd(9999);
      receive(header);
      PacketHeader cut = data_header(kPacketBytes, 0, kFlagCut);
      cut.ni_fail_type = static_cast<std::uint8_t>(NiFail::kSegv);
      receive(cut);
      const std::size_t told_of_fault = !is_good && operation_id == 0 ? 1 : 0;
      ASSERT_EQ(wire.sent.size(), operation_id != 0 ? 1u : told_of_fault);
      if (operation_id != 0) {
        const PacketHeader answer = next_sent();
        EXPECT_EQ(answer.type, PacketType::kAnswer);
        EXPECT_EQ(answer.operation_id, operation_id);
        EXPECT_NE(answer.ni_fail_type, static_cast<std::uint8_t>(NiFail::kOk));
      }
      wire.sent.clear();
      EXPECT_TRUE(told().empty());
    }
  }
}

TEST_F(TofuRequestTest, Unknown_vcq__is_undeliverable) {
  PacketHeader header = request(PacketType::kTofuPut, 8, 0, 5);
  header.initiator_rank = make_queue_number(0, 1, 3);
  receive(header);
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kUndeliverable));
  header.initiator_rank = kNumber;
  header.payload_bytes = 9;  // More than its length.
  receive(header);
  EXPECT_EQ(refused(), 1u);
}

}  // namespace
}  // namespace portofu
