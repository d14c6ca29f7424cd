#pragma once
// A process with an endpoint, for tests that stop or kill it.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {

/// Says its name, gets that of its parent if it is to do something, and then goes on reading its queue. Some of its
/// memory may be reached.
class PeerProcess {
 public:
  using Name = std::array<std::byte, 64>;
  /// What it does. @param parent  who made it
  using Script = void (*)(const Node& node, fi_addr_t parent);

  static constexpr std::uint64_t kKey = 9;
  static constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

  explicit PeerProcess(Script script = nullptr) {
    std::array<int, 2> up{}, down{};
    if (pipe(up.data()) != 0 || pipe(down.data()) != 0) return;
    pid_ = fork();
    if (pid_ == 0) live(up[1], down[0], script);
    close(up[1]);
    close(down[0]);
    to_it_ = down[1];
    is_there_ = read(up[0], name_.data(), name_.size()) == static_cast<ssize_t>(name_.size());
    close(up[0]);
  }
  ~PeerProcess() {
    kill();
    close(to_it_);
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  bool is_there() const { return is_there_; }
  const Name& name() const { return name_; }

  /// Its script begins.
  void begin(const Node& parent) const {
    Name name{};
    std::size_t bytes = name.size();
    ASSERT_EQ(fi_getname(&parent.ep->fid, name.data(), &bytes), 0);
    ASSERT_EQ(write(to_it_, name.data(), name.size()), static_cast<ssize_t>(name.size()));
  }

  /// Returns when it has stopped.
  void stop() const {
    int status = 0;
    ::kill(pid_, SIGSTOP);
    EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  [[noreturn]] static void live(int up, int down, Script script) {
    const Info info = get_info(make_hints().get());
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_mr* region = nullptr;
    Node node;
    static std::array<char, kMemoryBytes> memory;
    if (!conformance::enter_node(2)) _exit(1);
    if (info == nullptr || fi_fabric(info->fabric_attr, &fabric, nullptr) != 0) _exit(1);
    if (fi_domain(fabric, info.get(), &domain, nullptr) != 0) _exit(1);
    node.open(domain, info.get());
    if (fi_mr_reg(domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region,
                  nullptr) != 0)
      _exit(1);
    Name name{};
    std::size_t bytes = name.size();
    if (fi_getname(&node.ep->fid, name.data(), &bytes) != 0) _exit(1);
    if (write(up, name.data(), name.size()) < 0) _exit(1);
    fi_addr_t parent = FI_ADDR_NOTAVAIL;
    if (script != nullptr) {
      if (read(down, name.data(), name.size()) != static_cast<ssize_t>(name.size())) _exit(1);
      if (fi_av_insert(node.av, name.data(), 1, &parent, 0, nullptr) != 1) _exit(1);
      script(node, parent);
    }
    fi_cq_tagged_entry entry{};
    for (;;) fi_cq_sread(node.cq, &entry, 1, nullptr, -1);
  }

  pid_t pid_ = -1;
  int to_it_ = -1;
  bool is_there_ = false;
  Name name_{};
};

/// Processes that are made meanwhile keep one MiB of messages that nobody has received.
struct OneMib {
  OneMib() { setenv("PORTOFU_UNEXPECTED_MIB", "1", 1); }
  ~OneMib() { unsetenv("PORTOFU_UNEXPECTED_MIB"); }
};

}  // namespace portofu::test
