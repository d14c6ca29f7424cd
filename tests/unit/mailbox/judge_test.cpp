// Which headers that begin a message are believed: one honest header of each type, and each slip from it.

#include "engine/mailbox/judge.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/atomic/atomic_unit.h"
#include "engine/memory/stadd_table.h"

namespace portofu {
namespace {

bool is_believed(const PacketHeader& header) { return is_sane(header, rule_of_request(header)); }

/// An honest request. Atomics are sums of 64 bits.
PacketHeader honest(PacketType type) {
  PacketHeader header{};
  header.type = type;
  header.interface_index = is_tofu(type) ? kTofuInterface : 1;
  header.length = 8;
  header.flags = kFlagAnswerWanted;
  header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  header.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
  if (type == PacketType::kSwap) header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSwap);
  header.payload_bytes = type == PacketType::kGet || type == PacketType::kTofuGet ? 0 : 8;
  return header;
}

constexpr std::array kRequests{PacketType::kPut,  PacketType::kGet,     PacketType::kAtomic,  PacketType::kFetchAtomic,
                               PacketType::kSwap, PacketType::kTofuPut, PacketType::kTofuGet, PacketType::kTofuArmw};

TEST(Judge, Honest_request__is_believed) {
  for (const PacketType type : kRequests) EXPECT_TRUE(is_believed(honest(type))) << packet_type_name(type);
}

TEST(Judge, What_is_no_request__is_not) {
  for (const PacketType type : {PacketType::kInvalid, PacketType::kData, PacketType::kAnswer, PacketType::kTofuFault}) {
    EXPECT_FALSE(is_believed(honest(type))) << packet_type_name(type);
  }
}

TEST(Judge, Interface__is_one_of_its_api) {
  for (const PacketType type : kRequests) {
    PacketHeader header = honest(type);
    header.interface_index = is_tofu(type) ? 0 : kTofuInterface;
    EXPECT_FALSE(is_believed(header)) << packet_type_name(type);
    header.interface_index = kInterfaceCount;
    EXPECT_FALSE(is_believed(header)) << packet_type_name(type);
  }
}

TEST(Judge, Payload__is_no_longer_than_the_message) {
  for (const PacketType type : kRequests) {
    PacketHeader header = honest(type);
    ++header.payload_bytes;
    EXPECT_FALSE(is_believed(header)) << packet_type_name(type);
  }
}

TEST(Judge, Payload_of_a_put__may_be_its_beginning_and_that_of_an_atomic_may_not) {
  for (const PacketType type : kRequests) {
    PacketHeader header = honest(type);
    if (header.payload_bytes == 0) continue;
    --header.payload_bytes;
    const bool is_put = type == PacketType::kPut || type == PacketType::kTofuPut;
    EXPECT_EQ(is_believed(header), is_put) << packet_type_name(type);
  }
}

TEST(Judge, Length__is_bounded) {
  for (const PacketType type : kRequests) {
    PacketHeader header = honest(type);
    header.length = UINT64_MAX;
    EXPECT_FALSE(is_believed(header)) << packet_type_name(type);
  }
  PacketHeader put = honest(PacketType::kTofuPut);
  put.length = kMaxRegionBytes;
  EXPECT_TRUE(is_believed(put));
  ++put.length;
  EXPECT_FALSE(is_believed(put));
}

TEST(Judge, Answer__is_wanted_by_what_brings_data_back) {
  for (const PacketType type : kRequests) {
    PacketHeader header = honest(type);
    header.flags = 0;
    const bool needs_none = type == PacketType::kPut || type == PacketType::kAtomic || type == PacketType::kTofuPut;
    EXPECT_EQ(is_believed(header), needs_none) << packet_type_name(type);
  }
}

TEST(Judge, Atomic__is_one_that_its_call_has) {
  PacketHeader header = honest(PacketType::kFetchAtomic);
  header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kCswap);
  EXPECT_FALSE(is_believed(header));
  header = honest(PacketType::kTofuArmw);
  header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kMin);
  EXPECT_FALSE(is_believed(header));
  header = honest(PacketType::kTofuArmw);
  header.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint32);
  EXPECT_FALSE(is_believed(header)) << "of eight bytes";
}

TEST(Judge, Operand__lies_in_front_of_what_compares) {
  for (const PacketType type : {PacketType::kSwap, PacketType::kTofuArmw}) {
    PacketHeader header = honest(type);
    header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kCswap);
    EXPECT_FALSE(is_believed(header)) << packet_type_name(type);
    header.payload_bytes += kOperandBytes;
    EXPECT_TRUE(is_believed(header)) << packet_type_name(type);
    EXPECT_EQ(operand_bytes(header), kOperandBytes);
  }
  PacketHeader of_several = honest(PacketType::kSwap);
  of_several.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kCswap);
  of_several.length = kOperandBytes;
  of_several.payload_bytes = 2 * kOperandBytes;
  EXPECT_TRUE(is_believed(of_several));
  of_several.length += 8;
  of_several.payload_bytes += 8;
  EXPECT_FALSE(is_believed(of_several)) << "the last item has no operand";
  EXPECT_EQ(operand_bytes(honest(PacketType::kPut)), 0u);
}

TEST(Judge, Placed_put__has_no_payload_and_nothing_else_is_placed) {
  PacketHeader put = honest(PacketType::kTofuPut);
  put.flags |= kFlagPlaced;
  EXPECT_FALSE(is_believed(put));
  put.payload_bytes = 0;
  EXPECT_TRUE(is_believed(put));
  for (const PacketType type : {PacketType::kTofuGet, PacketType::kTofuArmw}) {
    PacketHeader header = honest(type);
    header.flags |= kFlagPlaced;
    EXPECT_FALSE(is_believed(header)) << packet_type_name(type);
  }
}

TEST(Judge, Outcome__is_one_that_the_api_has) {
  const HeaderRule rule{8, PayloadRule::kUpToLength, false, 0, UINT8_MAX, kNiFailCount};
  PacketHeader answer{};
  answer.ni_fail_type = kNiFailCount - 1;
  EXPECT_TRUE(is_sane(answer, rule));
  answer.ni_fail_type = kNiFailCount;
  EXPECT_FALSE(is_sane(answer, rule));
}

}  // namespace
}  // namespace portofu
