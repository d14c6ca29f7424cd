// Shared memory that is missing, short, or of an odd kind. Each test is a row of the table in lib/README.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utofu.h>

#include <functional>

#include "tests/process/scarcity.h"
#include "tests/support/eventually.h"

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

/// Opens, and after a change puts to a process, and to a control queue, that it has not talked to. @return 0 if both
/// fail
int put_after(const std::function<bool()>& change) {
  static std::uint64_t memory = 0;
  constexpr ptl_pid_t kOwnPid = 4242;
  constexpr ptl_time_t kPatienceMs = 1000 * kLongestWait.count();
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t eq{};
  ptl_handle_md_t md{};
  ptl_process_t target{};
  ptl_event_t event{};
  unsigned int which = 0;
  if (init_interface(kOwnPid, &ni) != PTL_OK || PtlEQAlloc(ni, 16, &eq) != PTL_OK) return 1;
  const ptl_md_t described{&memory, sizeof memory, 0, eq, PTL_CT_NONE};
  if (PtlMDBind(ni, &described, &md) != PTL_OK || PtlGetPhysId(ni, &target) != PTL_OK) return 2;
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t queue = 0;
  utofu_stadd_t stadd = 0;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS || utofu_query_vcq_id(vcq, &queue) != UTOFU_SUCCESS) return 3;
  if (utofu_reg_mem(vcq, &memory, sizeof memory, 0, &stadd) != UTOFU_SUCCESS) return 4;
  if (!change()) return kNoRights;
  ++target.phys.pid;
  if (PtlPut(md, 0, 8, PTL_ACK_REQ, target, 0, 0, 0, nullptr, 0) != PTL_OK) return 5;
  if (PtlEQPoll(&eq, 1, kPatienceMs, &event, &which) != PTL_OK || event.ni_fail_type != PTL_NI_UNDELIVERABLE) return 6;
  utofu_vcq_id_t other = 0;
  std::uint8_t coords[6];
  utofu_tni_id_t tni = 0;
  utofu_cq_id_t cq = 0;
  std::uint16_t extra = 0;
  if (utofu_query_vcq_info(queue, coords, &tni, &cq, &extra) != UTOFU_SUCCESS) return 7;
  if (utofu_construct_vcq_id(coords, tni, cq == 0 ? 1 : 0, extra, &other) != UTOFU_SUCCESS) return 8;
  if (utofu_put(vcq, other, stadd, stadd, 8, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr) != UTOFU_SUCCESS)
    return 9;
  utofu_mrq_notice notice{};
  int code = UTOFU_ERR_NOT_FOUND;
  while (code == UTOFU_ERR_NOT_FOUND) code = utofu_poll_mrq(vcq, 0, &notice);
  // It ends as if killed: giving its names back would be the next thing to complain about.
  return code == UTOFU_ERR_MRQ_PEER ? 0 : 10;
}

void expect_hidden(const std::function<bool()>& change, const std::string& reason) {
  const Outcome outcome = outcome_of([&] { return mount_shared_memory("size=64m") ? put_after(change) : kNoRights; });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, 0) << outcome.said;
  EXPECT_EQ(outcome.lines(), reason.empty() ? 0 : 1) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr(reason));
}

// All others were taken for dead, in silence.
TEST_F(Scarcity, Shared_memory_that_goes_out_of_sight) {
  expect_hidden([] { return umount2("/dev/shm", MNT_DETACH) == 0; }, "no longer sees its own name (chroot, umount?)");
}

TEST_F(Scarcity, User_that_changes) {
  expect_hidden([] { return geteuid() == 0 && seteuid(1234) == 0; }, "another user id than when it made its name");
}

TEST_F(Scarcity, Nobody_there__is_nothing_to_speak_of) {
  expect_hidden([] { return true; }, "");
}

}  // namespace
}  // namespace portofu
