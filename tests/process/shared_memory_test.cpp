// Shared memory that is missing, short, or of an odd kind. Each test is a row of the table in lib/README.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <utofu.h>

#include "tests/process/scarcity.h"

namespace portofu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Scarcity, Shared_memory_that_is_missing) {
  const Outcome outcome = outcome_of(
      [] { return enter_own_mounts() && mount("tmpfs", "/dev", "tmpfs", 0, "") == 0 ? init_any() : kNoRights; });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  expect_init_fails(outcome, PTL_FAIL, "/dev/shm", "No such file or directory; mount");
}

TEST_F(Scarcity, Shared_memory_that_is_read_only) {
  const Outcome outcome = outcome_of([] { return mount_shared_memory("", MS_RDONLY) ? init_any() : kNoRights; });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  expect_init_fails(outcome, PTL_FAIL, "/dev/shm", "Read-only file system; mount it writable");
}

TEST_F(Scarcity, Shared_memory_without_room_for_a_process) {
  const Outcome outcome = outcome_of([] { return mount_shared_memory("size=64k") ? init_any() : kNoRights; });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  expect_init_fails(outcome, PTL_NO_SPACE, "143360 bytes", "No space left on device; make that file system larger");
}

TEST_F(Scarcity, Failure_that_stays__is_told_once) {
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64k")) return kNoRights;
    for (int i = 0; i < 3; ++i) init_any();
    return init_any();
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
}

// A process that nobody could see to live was taken for dead: what went to it was UNDELIVERABLE, in silence.
TEST_F(Scarcity, Shared_memory_of_a_file_system_whose_mappings_hold_no_lock) {
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("")) return kNoRights;
    for (const char* name : {"/dev/shm/lower", "/dev/shm/upper", "/dev/shm/work"}) mkdir(name, 0700);
    constexpr const char* kPlaces = "lowerdir=/dev/shm/lower,upperdir=/dev/shm/upper,workdir=/dev/shm/work";
    return mount("overlay", "/dev/shm", "overlay", 0, kPlaces) == 0 ? init_any() : kNoRights;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  expect_init_fails(outcome, PTL_FAIL, "fcntl(F_OFD_SETLK) of a new file in /dev/shm",
                    "Operation not supported; mount a tmpfs there");
}

// There is room for the directory and a segment.
TEST_F(Scarcity, Shared_memory_without_room_for_a_name) {
  const Outcome outcome = outcome_of([] {
    setenv("PORTOFU_LANES", "1", 1);
    setenv("PORTOFU_JOB_KEY", "7", 1);
    if (!mount_shared_memory("nr_inodes=2")) return kNoRights;
    utofu_vcq_hdl_t vcq = 0;
    if (utofu_create_vcq(0, 0, &vcq) != UTOFU_ERR_OUT_OF_RESOURCE) return 1;
    if (utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq) != UTOFU_ERR_OUT_OF_RESOURCE) return 2;
    utofu_vbg_id_t gate = 0;
    return utofu_alloc_vbg(0, 1, 0, &gate) == UTOFU_ERR_OUT_OF_RESOURCE ? 0 : 3;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, 0) << outcome.said;
  EXPECT_EQ(outcome.lines(), 1) << "nobody else has them: " << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("link of a name in /dev/shm failed: No space left on device"),
                                  HasSubstr("no control queue or gate")));
}

}  // namespace
}  // namespace portofu
