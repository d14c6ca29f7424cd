// ptl_trace --pcapng: captures of several processes become one.

#include "lib/tools/ptl_trace/merge_captures.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/wire/capture/captured_blocks.h"

namespace portofu::tools {
namespace {

using capture_test::CapturedBlock;
using capture_test::read_blocks;

struct MergeCaptures : testing::Test {
  /// A process that has captured an acknowledgement at each of these times.
  void capture(const std::string& name, std::initializer_list<std::uint64_t> times) const {
    std::string reason;
    const auto file = CaptureFile::create(directory.file(name), name, &reason);
    ASSERT_NE(file, nullptr) << reason;
    CaptureRecord record{};
    record.magic = kCaptureMagic;
    record.kind = CaptureKind::kAcknowledgement;
    for (const std::uint64_t time : times) {
      record.operation_id = static_cast<std::uint32_t>(time);
      file->write(time, record, nullptr, nullptr);
    }
  }

  std::string directory_name() const { return std::filesystem::path(directory.file("x")).parent_path(); }

  capture_test::TemporaryDirectory directory;
  const std::string output = directory.file("merged");
  std::string why;
};

TEST_F(MergeCaptures, Packets_of_all__are_in_the_order_of_time_and_know_their_process) {
  constexpr std::uint64_t kLate = std::uint64_t{5} << 32;
  capture("a.pcapng", {10, 30, kLate + 1});
  capture("b.pcapng", {20, 30, kLate});
  ASSERT_TRUE(merge_captures(directory_name(), output, &why)) << why;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
  for (const CapturedBlock& block : read_blocks(output, 2)) {
    found.emplace_back(block.time_ns, block.interface_number);
    EXPECT_EQ(block.record.operation_id, static_cast<std::uint32_t>(block.time_ns));
  }
  const decltype(found) expected{{10, 0}, {20, 1}, {30, 0}, {30, 1}, {kLate, 1}, {kLate + 1, 0}};
  EXPECT_EQ(found, expected);
  struct stat status {};
  ASSERT_EQ(stat(output.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u) << "it has the job key";
}

TEST_F(MergeCaptures, What_a_killed_process_has_left_unfinished__is_skipped) {
  capture("a.pcapng", {10, 20});
  capture("b.pcapng", {15});
  const std::string cut = directory.file("a.pcapng");
  for (std::uintmax_t bytes = std::filesystem::file_size(cut); bytes > 0;) {
    std::filesystem::resize_file(cut, --bytes);
    ASSERT_TRUE(merge_captures(directory_name(), output, &why)) << why;
  }
  EXPECT_EQ(read_blocks(output).size(), 1u);
}

TEST_F(MergeCaptures, Files_that_are_none__give_nothing) {
  EXPECT_FALSE(merge_captures(directory_name(), output, &why));
  EXPECT_EQ(why, "no process has captured anything");
  std::ofstream(directory.file("a.pcapng")) << "this is no capture of packets, but a text of some length";
  EXPECT_FALSE(merge_captures(directory_name(), output, &why));
  EXPECT_FALSE(merge_captures(directory_name() + "/nowhere", output, &why));
}

TEST_F(MergeCaptures, Output_that_cannot_be_written__is_said) {
  capture("a.pcapng", {10});
  EXPECT_FALSE(merge_captures(directory_name(), directory_name() + "/nowhere/x", &why));
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
}

}  // namespace
}  // namespace portofu::tools
