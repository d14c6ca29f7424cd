// Attaching: whom one reaches, whom one refuses, and when a peer counts as dead.

#include "engine/segment/peer_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr ProcessId kPeer{kTestNid, 77};

struct PeerSegmentTest : ::testing::Test {
  AttachResult attach(ProcessId id = kPeer) { return PeerSegment::attach(directory.path(), id, &peer); }
  std::string path() const { return segment_path(directory.path(), kPeer); }

  /// Changes bytes of the descriptor behind the owner's back.
  template <typename Value>
  void overwrite(std::size_t offset, Value value) {
    // Through a second process: opening and closing the file here would drop the owner's lock.
    ASSERT_EQ(in_dying_child([&] {
                const int fd = ::open(path().c_str(), O_RDWR);
                return pwrite(fd, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value ? 0 : 1;
              }),
              0);
  }

  SegmentDirectory directory;
  std::shared_ptr<PeerSegment> peer;
};

TEST_F(PeerSegmentTest, Nobody__is_not_there) { EXPECT_EQ(attach(), AttachResult::kNoSuchSegment); }

TEST_F(PeerSegmentTest, Segment_of_this_process__is_attached_without_dropping_its_lock) {
  const auto own = directory.create(77);
  ASSERT_EQ(attach(), AttachResult::kAttached);
  EXPECT_EQ(peer->id(), kPeer);
  EXPECT_EQ(peer->incarnation(), own->incarnation());
  EXPECT_TRUE(peer->check_alive());
  peer->control().directory_epoch.store(5);
  EXPECT_EQ(own->control().directory_epoch.load(), 5u);
  peer.reset();
  EXPECT_EQ(in_dying_child([&] { return attach() == AttachResult::kAttached ? 0 : 1; }), 0);
}

TEST_F(PeerSegmentTest, Memory_of_the_owner__is_written_to_where_it_is_mapped) {
  const auto own = directory.create(77);
  alignas(64) std::array<std::byte, 300> memory{};
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const int status = in_dying_child([&] {
    if (attach() != AttachResult::kAttached) return 1;
    if (!peer->memory().is_reachable()) return 77;
    std::array<std::byte, 300> data;
    data.fill(std::byte{5});
    if (!peer->memory().write(address + 10, data.data(), 200, 40)) return 2;
    if (!peer->memory().write(address, data.data(), 8, 8)) return 3;
    if (peer->memory().write(4096, data.data(), 8, 8)) return 4;  // Not mapped there.
    return peer->memory().write(address, nullptr, 8, 8) ? 5 : 0;  // Not mapped here.
  });
  if (status == 77) GTEST_SKIP() << "this kernel lets no process write into another one's memory";
  ASSERT_EQ(status, 0);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], i < 8 || (i >= 10 && i < 210) ? std::byte{5} : std::byte{0}) << i;
  }
}

TEST_F(PeerSegmentTest, Memory_of_the_owner__is_read_where_it_is_mapped) {
  const auto own = directory.create(77);
  std::array<std::byte, 300> memory;
  memory.fill(std::byte{7});
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const int status = in_dying_child([&] {
    if (attach() != AttachResult::kAttached) return 1;
    if (!peer->memory().is_reachable()) return 77;
    std::array<std::byte, 300> data{};
    for (int i = 0; i < 3; ++i) {
      if (!peer->memory().read(address + 10, data.data(), 200)) return 2;
    }
    for (std::size_t k = 0; k < data.size(); ++k) {
      if (data[k] != (k < 200 ? std::byte{7} : std::byte{0})) return 3;
    }
    if (peer->memory().read(4096, data.data(), 8)) return 4;  // Not mapped there.
    return peer->memory().read(address, nullptr, 8) ? 5 : 0;  // Not mapped here.
  });
  if (status == 77) GTEST_SKIP() << "this kernel lets no process read another one's memory";
  EXPECT_EQ(status, 0);
}

TEST_F(PeerSegmentTest, Number_of_a_stranger__is_no_way_to_its_memory) {
  const auto own = directory.create(77);
  overwrite(offsetof(SegmentDescriptorShared, probe_address), reinterpret_cast<std::uint64_t>(this));
  ASSERT_EQ(attach(), AttachResult::kAttached);
  EXPECT_FALSE(peer->memory().is_reachable());
  std::array<std::byte, 8> data{};
  EXPECT_FALSE(peer->memory().read(reinterpret_cast<std::uint64_t>(this), data.data(), data.size()));
}

TEST_F(PeerSegmentTest, Segment_of_another_process__is_attached) {
  const auto own = directory.create(77);
  EXPECT_EQ(in_dying_child([&] {
              if (attach() != AttachResult::kAttached || !peer->check_alive()) return 1;
              peer->slot(9).word.store(42);
              return peer->allocate_ring(9) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(own->slot(9).word.load(), 42u);
}

TEST_F(PeerSegmentTest, Dead_owner__is_not_there_and_its_segment_is_removed) {
  leave_dead_segment(directory, 77);
  ASSERT_EQ(directory.name_count(), 1u);
  EXPECT_EQ(attach(), AttachResult::kNoSuchSegment);
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(PeerSegmentTest, Dead_owner__that_wanted_to_be_kept_is_not_there_and_its_segment_stays) {
  leave_dead_segment(directory, 77, true);
  EXPECT_EQ(attach(), AttachResult::kNoSuchSegment);
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST_F(PeerSegmentTest, Owner_that_dies_while_it_is_attached__stays_if_it_wanted_so) {
  std::array<int, 2> ready{}, end{};
  ASSERT_EQ(pipe(ready.data()) + pipe(end.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const auto own = directory.create(77, true);
    if (write(ready[1], "r", 1) != 1 || read(end[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(attach(), AttachResult::kAttached);
  EXPECT_TRUE(peer->check_alive());
  ASSERT_EQ(write(end[1], "e", 1), 1);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(peer->check_alive());
  EXPECT_EQ(directory.name_count(), 1u);
  for (const int fd : {ready[0], ready[1], end[0], end[1]}) close(fd);
}

TEST_F(PeerSegmentTest, Owner_that_closes__is_found_dead_for_good) {
  auto own = directory.create(77);
  ASSERT_EQ(attach(), AttachResult::kAttached);
  own.reset();
  EXPECT_FALSE(peer->check_alive());
  EXPECT_TRUE(peer->is_dead());
  const auto next = directory.create(77);
  EXPECT_FALSE(peer->check_alive()) << "another life";
  EXPECT_EQ(directory.name_count(), 1u) << "the new segment is not removed with the old one";
}

TEST_F(PeerSegmentTest, File_open_to_others__is_refused) {
  const auto own = directory.create(77);
  ASSERT_EQ(chmod(path().c_str(), 0660), 0);
  EXPECT_EQ(attach(), AttachResult::kRefused);
}

TEST_F(PeerSegmentTest, File_of_another_user__is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto own = directory.create(77);
  ASSERT_EQ(chown(path().c_str(), 1, 1), 0);
  EXPECT_EQ(attach(), AttachResult::kRefused);
}

TEST_F(PeerSegmentTest, Symbolic_link__is_not_followed) {
  const auto own = directory.create(78);
  ASSERT_EQ(symlink(segment_path(directory.path(), own->id()).c_str(), path().c_str()), 0);
  EXPECT_EQ(attach(), AttachResult::kRefused);
}

TEST_F(PeerSegmentTest, Descriptor_that_lies__is_refused) {
  using Descriptor = SegmentDescriptorShared;
  const auto own = directory.create(77);
  ASSERT_EQ(attach(), AttachResult::kAttached);
  const auto refuses = [this](std::size_t offset, auto wrong, auto right) {
    overwrite(offset, wrong);
    const bool refused = attach() == AttachResult::kRefused;
    overwrite(offset, right);
    return refused && attach() == AttachResult::kAttached;
  };
  const RingGeometry ring;
  EXPECT_TRUE(refuses(offsetof(Descriptor, magic), std::uint64_t{1}, kSegmentMagic));
  EXPECT_TRUE(refuses(offsetof(Descriptor, layout_version), kLayoutVersion + 1, kLayoutVersion));
  EXPECT_TRUE(refuses(offsetof(Descriptor, descriptor_bytes), 8u, std::uint32_t{sizeof(Descriptor)}));
  EXPECT_TRUE(refuses(offsetof(Descriptor, incarnation), std::uint64_t{0}, own->incarnation()));
  EXPECT_TRUE(refuses(offsetof(Descriptor, nid), kTestNid + 1, kTestNid));
  EXPECT_TRUE(refuses(offsetof(Descriptor, pid), 78u, 77u));
  EXPECT_TRUE(refuses(offsetof(Descriptor, channel_count), 1025u, 1024u));
  EXPECT_TRUE(refuses(offsetof(Descriptor, channel_count), 0u, 1024u));
  EXPECT_TRUE(refuses(offsetof(Descriptor, channel_count), 0xffffffffu, 1024u));
  EXPECT_TRUE(refuses(offsetof(Descriptor, ring), 3u, ring.cell_count));
  EXPECT_TRUE(refuses(offsetof(Descriptor, segment_bytes), std::uint64_t{4096}, own->layout().segment_bytes()));
}

TEST_F(PeerSegmentTest, Short_file__is_refused) {
  const auto own = directory.create(77);
  ASSERT_EQ(truncate(path().c_str(), 4096), 0);
  EXPECT_EQ(attach(), AttachResult::kRefused);
}

TEST_F(PeerSegmentTest, Process_is_gone__tells_lives_apart) {
  EXPECT_TRUE(process_is_gone(directory.path(), kPeer, 0));
  const auto own = directory.create(77);
  EXPECT_FALSE(process_is_gone(directory.path(), kPeer, 0));
  EXPECT_FALSE(process_is_gone(directory.path(), kPeer, own->incarnation()));
  EXPECT_TRUE(process_is_gone(directory.path(), kPeer, own->incarnation() + 2));
}

}  // namespace
}  // namespace portofu
