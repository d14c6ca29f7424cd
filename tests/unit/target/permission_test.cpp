// Who may do what with an entry: usage ID first, then what the entry allows.

#include "engine/target/permission.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

Refusal verdict(PacketType type, std::uint32_t options, std::uint32_t entry_uid = kUidAny, std::uint32_t uid = 5) {
  ListEntry entry;
  entry.options = options;
  entry.uid = entry_uid;
  PacketHeader header{};
  header.type = type;
  header.uid = uid;
  return judge(entry, header, header.type);
}

constexpr std::uint32_t kBoth = kEntryOpPut | kEntryOpGet;

TEST(PermissionTest, Operation__needs_what_it_does) {
  EXPECT_EQ(verdict(PacketType::kPut, kEntryOpPut), Refusal::kNone);
  EXPECT_EQ(verdict(PacketType::kPut, kEntryOpGet), Refusal::kOperation);
  EXPECT_EQ(verdict(PacketType::kAtomic, kEntryOpPut), Refusal::kNone);
  EXPECT_EQ(verdict(PacketType::kAtomic, kEntryOpGet), Refusal::kOperation);
  EXPECT_EQ(verdict(PacketType::kGet, kEntryOpGet), Refusal::kNone);
  EXPECT_EQ(verdict(PacketType::kGet, kEntryOpPut), Refusal::kOperation);
}

TEST(PermissionTest, Fetching__needs_both) {
  for (const PacketType type : {PacketType::kFetchAtomic, PacketType::kSwap}) {
    EXPECT_EQ(verdict(type, kBoth), Refusal::kNone);
    EXPECT_EQ(verdict(type, kEntryOpPut), Refusal::kOperation);
    EXPECT_EQ(verdict(type, kEntryOpGet), Refusal::kOperation);
  }
}

TEST(PermissionTest, Atomic_that_only_reads__needs_no_right_to_put) {
  ListEntry entry;
  entry.options = kEntryOpGet;
  PacketHeader header{};
  header.type = PacketType::kFetchAtomic;
  header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kAtomicRead);
  EXPECT_EQ(judge(entry, header, header.type), Refusal::kNone);
  entry.options = kEntryOpPut;
  EXPECT_EQ(judge(entry, header, header.type), Refusal::kOperation);
}

TEST(PermissionTest, Atomic_beyond_an_entry_that_takes_data__is_refused) {
  std::array<std::byte, 16> memory;
  ListEntry entry;
  entry.segment.describe(memory.data(), memory.size());
  for (const PacketType type : {PacketType::kAtomic, PacketType::kFetchAtomic, PacketType::kSwap}) {
    PacketHeader header{};
    header.type = type;
    header.length = 16;
    entry.options = kBoth | kEntryTakesData;
    EXPECT_EQ(judge(entry, header, type), Refusal::kNone);
    header.remote_offset = 8;
    EXPECT_EQ(judge(entry, header, type), Refusal::kNoMatch);
    entry.options = kBoth;
    EXPECT_EQ(judge(entry, header, type), Refusal::kNone) << "Portals does what fits (3.15.4)";
  }
  entry.options = kBoth | kEntryTakesData;
  PacketHeader put{};
  put.length = 32;
  EXPECT_EQ(judge(entry, put, PacketType::kPut), Refusal::kNone) << "of a message it takes what fits";
}

TEST(PermissionTest, Entry_that_allows_nothing__refuses_everything) {
  for (const PacketType type :
       {PacketType::kPut, PacketType::kGet, PacketType::kAtomic, PacketType::kFetchAtomic, PacketType::kSwap}) {
    EXPECT_EQ(verdict(type, ~kBoth), Refusal::kOperation) << packet_type_name(type);
  }
}

TEST(PermissionTest, Usage_id__has_to_fit_unless_any_will_do) {
  EXPECT_EQ(verdict(PacketType::kPut, kBoth, 5, 5), Refusal::kNone);
  EXPECT_EQ(verdict(PacketType::kPut, kBoth, 5, 6), Refusal::kPermission);
  EXPECT_EQ(verdict(PacketType::kPut, kBoth, 0, 6), Refusal::kPermission);
  EXPECT_EQ(verdict(PacketType::kPut, kBoth, kUidAny, 6), Refusal::kNone);
  EXPECT_EQ(verdict(PacketType::kPut, kBoth, 5, kUidAny), Refusal::kPermission) << "an initiator is never anybody";
}

TEST(PermissionTest, Usage_id__comes_before_the_operation) {
  EXPECT_EQ(verdict(PacketType::kPut, 0, 5, 6), Refusal::kPermission);
}

}  // namespace
}  // namespace portofu
