// What ptl_info, and the process itself, says of a process that speaks libfabric.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/conformance/libfabric/fabric_fixture.h"
#include "tests/process/command_output.h"

namespace portofu::test {
namespace {

/// The line on endpoints, or an empty text.
std::string endpoints_line(const Node& node) {
  std::array<std::uint32_t, 4> name{};
  std::size_t bytes = sizeof name;
  EXPECT_EQ(fi_getname(&node.ep->fid, name.data(), &bytes), 0);
  std::array<char, 64> text{};
  bytes = text.size();
  const std::string address = fi_av_straddr(node.av, name.data(), text.data(), &bytes);
  const std::size_t pid = address.find(':') + 1;
  std::string command = PORTOFU_PTL_INFO " --pid ";
  command += address.substr(pid, address.find('/') - pid);
  const std::string shown = output_of(command);
  const std::size_t line = shown.find("endpoints of libfabric");
  return line == std::string::npos ? "" : shown.substr(line, shown.find('\n', line) - line);
}

class PtlInfoEndpoints : public Fabric {};

TEST_F(PtlInfoEndpoints, Are_shown_while_they_are_open) {
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0 1");
  Node c;
  c.open(domain, info.get());
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0 1 2");
  b.close();
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0 2");
  c.close();
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0");
}

/// Standard error, as far as it was read.
class ErrorOutput {
 public:
  ErrorOutput() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK), 0);
    dup2(pipe_[1], STDERR_FILENO);
  }
  ~ErrorOutput() {
    dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, pipe_[0], pipe_[1]}) close(fd);
  }
  ErrorOutput(const ErrorOutput&) = delete;
  ErrorOutput& operator=(const ErrorOutput&) = delete;

  bool has(const std::string& words) {
    std::array<char, 4096> some{};
    for (ssize_t got; (got = read(pipe_[0], some.data(), some.size())) > 0;)
      text_.append(some.data(), static_cast<std::size_t>(got));
    return text_.find(words) != std::string::npos;
  }
  const std::string& text() const { return text_; }

 private:
  int before_;
  std::array<int, 2> pipe_{};
  std::string text_;
};

class StalledEndpoints : public Fabric {
 protected:
  StalledEndpoints() { setenv("PORTOFU_STALL_S", "1", 1); }
  ~StalledEndpoints() override { unsetenv("PORTOFU_STALL_S"); }

  /// Calls that find nothing, until the process says that it waits.
  template <class Look>
  static std::string said_in_loop(Look&& look) {
    ErrorOutput said;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!said.has("it goes on waiting") && std::chrono::steady_clock::now() < deadline) {
      for (int looks = 0; looks < 100; ++looks) look();
    }
    return said.text();
  }
};

TEST_F(StalledEndpoints, Loop_of_fi_cq_read__says_why_it_finds_nothing) {
  std::uint64_t word = 0;
  ASSERT_EQ(fi_trecv(b.ep, &word, sizeof word, nullptr, to_a, 0x10, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, &word, sizeof word, nullptr, to_b, 0x11, nullptr), 0);
  fi_cq_tagged_entry entry{};
  const std::string said = said_in_loop([&] { EXPECT_EQ(fi_cq_read(b.cq, &entry, 1), -FI_EAGAIN); });
  EXPECT_NE(said.find("fi_trecv of endpoint 1; the nearest receive differs in bit 0 (0x11 instead of 0x10)"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("a loop of calls of PID "), std::string::npos) << said;
  EXPECT_NE(said.find(" s at completion queue 0x"), std::string::npos) << said;
}

TEST_F(StalledEndpoints, Loop_of_short_waits__says_that_it_waits) {
  fi_cq_tagged_entry entry{};
  const std::string said = said_in_loop([&] { EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 1), -FI_EAGAIN); });
  EXPECT_NE(said.find("a loop of calls of PID "), std::string::npos) << said;
}

TEST_F(StalledEndpoints, Loop_of_fi_cntr_read__says_that_it_waits) {
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(domain, nullptr, &cntr, nullptr), 0);
  const std::string said = said_in_loop([&] { EXPECT_EQ(fi_cntr_read(cntr), 0u); });
  EXPECT_NE(said.find(" s at counter 0x"), std::string::npos) << said;
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

}  // namespace
}  // namespace portofu::test
