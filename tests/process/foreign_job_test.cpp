// Jobs and users on one node do not touch each other: another job key is refused, and counted where a packet could get
// so far; another user finds nothing that it may open.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/config/settings.h"
#include "engine/segment/peer_segment.h"
#include "engine/segment/process_segment.h"
#include "engine/wire/shm/shm_wire.h"
#include "tests/conformance/harness/fixture.h"
#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr std::uint32_t kKey = 4711;

struct KeyOfJob {
  explicit KeyOfJob(std::uint32_t key) { setenv("PORTOFU_JOB_KEY", std::to_string(key).c_str(), 1); }
  ~KeyOfJob() { unsetenv("PORTOFU_JOB_KEY"); }
};

std::uint64_t counter_of(ProcessId id, Counter counter) {
  std::shared_ptr<PeerSegment> segment;
  if (PeerSegment::attach("/dev/shm", id, &segment) != AttachResult::kAttached) return 0;
  return Counters(segment->control().counters).get(counter);
}

/// The target expects that nothing at all has happened.
void expect_untouched(const Ends& ends, const std::vector<unsigned char>& memory) {
  expect_empty(ends.target_eq);
  EXPECT_EQ(memory, std::vector<unsigned char>(memory.size()));
}

TEST(ForeignJob, Put_get_and_atomic__end_as_undeliverable) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    // Children of one test share the environment, so each sets its own.
    const KeyOfJob key(self.is_target() ? kKey : kKey + 1);
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<unsigned char> memory(4096);
    append(ni, me_of(ni, memory.data(), memory.size()));
    self.barrier();
    self.initiator([&] {
      std::vector<unsigned char> fetched(64);
      const ptl_handle_md_t get_md = bind_quiet(ni, fetched.data(), fetched.size(), ends.source_eq);
      for (int i = 0; i < 3; ++i) {
        put_and_wait(ends, ni.target(), {.length = 64}, PTL_NI_UNDELIVERABLE);
        get(get_md, ni.target(), {.length = 64});
        next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
        fetch_atomic(get_md, 0, ends.md, ni.target(), {.length = 8});
        next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
      }
      EXPECT_EQ(fetched, std::vector<unsigned char>(64));
    });
    if (self.is_target()) expect_untouched(ends, memory);
    self.barrier();
  });
}

// A process that claims the right key in its segment and writes another one into its packets.
TEST(ForeignJob, Packets_with_another_key__are_refused_and_counted) {
  const OwnNode node;
  const KeyOfJob key(kKey);
  constexpr int kPackets = 50;
  run_processes(2, [&](Process& self) {
    std::vector<unsigned char> memory(4096);
    if (self.is_target()) {
      const Ni ni(self);
      const Ends ends(ni);
      append(ni, me_of(ni, memory.data(), memory.size()));
      self.barrier();
      const ProcessId id{ni.target().phys.nid, ni.target().phys.pid};
      EXPECT_TRUE(eventually([&] { return counter_of(id, Counter::kPacketsRefusedKey) == kPackets; }));
      expect_untouched(ends, memory);
      self.barrier();
      return;
    }
    const ptl_process_t target = self.share(ptl_process_t{})[0];
    self.barrier();
    SegmentOptions options;
    options.nid = node.nid();
    options.job_key = kKey;
    const Settings settings;
    options.ring.cell_count = settings.ring_cells;
    options.ring.data_bytes = settings.ring_data_bytes;
    SegmentError error = SegmentError::kNone;
    const auto segment = ProcessSegment::create(options, &error, nullptr);
    ASSERT_NE(segment, nullptr);
    ShmWire wire(*segment);
    Link* link = nullptr;
    ASSERT_EQ(wire.connect({target.phys.nid, target.phys.pid}, &link), ConnectResult::kConnected);
    for (int i = 0; i < kPackets; ++i) {
      std::byte* payload = nullptr;
      ASSERT_TRUE(eventually([&] { return (payload = wire.claim(*link, 64)) != nullptr; }));
      std::memset(payload, 0xff, 64);
      PacketHeader header{};
      header.type = PacketType::kPut;
      header.interface_index = 1;
      header.pt_index = kPt;
      header.payload_bytes = 64;
      header.length = 64;
      header.job_key = kKey + 1 + static_cast<std::uint32_t>(i);
      wire.publish(*link, header);
    }
    self.barrier();
  });
}

// Another user's process on the node: the kernel keeps it out of the memory, and the engine does not look for it there.
TEST(ForeignUser, Neither_reaches_the_other_nor_opens_its_memory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run a process as another user";
  constexpr uid_t kNobody = 65534;
  const OwnNode node;
  const KeyOfJob key(kKey);  // The same for both.
  run_processes(2, [&](Process& self) {
    if (!self.is_target()) {
      ASSERT_EQ(setresuid(kNobody, kNobody, kNobody), 0);
    }
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<unsigned char> memory(4096);
    append(ni, me_of(ni, memory.data(), memory.size()));
    self.barrier();
    const ptl_process_t other = ni.id(1 - self.rank());
    put_and_wait(ends, other, {.length = 64}, PTL_NI_UNDELIVERABLE);
    self.initiator([&] {
      char path[96];
      const ProcessId id{other.phys.nid, other.phys.pid};
      std::snprintf(path, sizeof path, "/dev/shm/portofu-0-%08x-%u", id.nid, id.pid);
      EXPECT_EQ(access(path, F_OK), 0) << path;
      EXPECT_EQ(open(path, O_RDONLY | O_CLOEXEC), -1);
      EXPECT_EQ(errno, EACCES);
    });
    self.barrier();
    expect_untouched(ends, memory);
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
