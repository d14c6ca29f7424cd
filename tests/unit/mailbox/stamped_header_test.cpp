// Tests of engine/mailbox/stamped_header.h.

#include "engine/mailbox/stamped_header.h"

#include <gtest/gtest.h>

#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

class StampedHeaderTest : public CoreTest {};

TEST_F(StampedHeaderTest, Header__is_stamped) {
  const PacketHeader header = stamped_header(core, PacketType::kData);
  EXPECT_EQ(header.type, PacketType::kData);
  EXPECT_EQ(header.uid, kUid);
  EXPECT_EQ(header.job_key, kJobKey);
}

}  // namespace
}  // namespace portofu
