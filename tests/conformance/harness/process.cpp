#include "process.h"

#include <fcntl.h>

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "stacks.h"

namespace conformance {
namespace {

// What a process tells the gtest process, and the answers to kMeet.
enum class Kind : char { meet, failure, skip, dying, ended, go, stop };

constexpr std::size_t kPacketBytes = 16384;
constexpr std::size_t kTextBytes = 8000;

void send_packet(int socket, Kind kind, const std::string& text) {
  const std::string packet = std::string(1, static_cast<char>(kind)) + text;
  // A gtest process that is gone kills us anyway (PR_SET_PDEATHSIG), so a failed send needs no answer.
  while (send(socket, packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

// Gives false at the end of the connection.
bool receive_packet(int socket, Kind* kind, std::string* text) {
  char packet[kPacketBytes];
  ssize_t bytes = 0;
  do {
    bytes = recv(socket, packet, sizeof packet, 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes <= 0) return false;
  *kind = static_cast<Kind>(packet[0]);
  text->assign(packet + 1, static_cast<std::size_t>(bytes - 1));
  return true;
}

// ---- In the forked process -----------------------------------------------------------------------------------------

// Sends every failure of gtest's macros to the gtest process; a fatal one leaves the body.
class FailureSender : public testing::EmptyTestEventListener {
 public:
  explicit FailureSender(int socket) : socket_(socket) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* file = result.file_name() != nullptr ? result.file_name() : "unknown";
    std::string text = std::string(file) + '\n' + std::to_string(result.line_number()) + '\n' + result.message();
    text.resize(std::min(text.size(), kTextBytes));
    send_packet(socket_, Kind::failure, text);
    if (result.fatally_failed()) throw Stopped{};
  }

 private:
  int socket_;
};

[[noreturn]] void run_body(int rank, int count, int socket, const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailureSender(socket));
  try {
    Process self(rank, count, socket);
    body(self);
  } catch (const Stopped&) {
    // Reported already.
  } catch (const std::exception& error) {
    send_packet(socket, Kind::failure, std::string("unknown\n0\nunexpected exception: ") + error.what());
  }
  send_packet(socket, Kind::ended, "");
  _exit(0);  // Not exit(): what gtest has registered belongs to the parent.
}

// ---- In the gtest process ------------------------------------------------------------------------------------------

struct Child {
  pid_t pid = -1;
  int socket = -1;
  bool connected = true;
  bool ended = false;    // It has said that its body is over.
  bool dying = false;    // It has said that it will kill itself.
  bool waiting = false;  // It waits at a barrier, with `value`.
  int barrier_count = 0;
  std::string value;
};

class Supervisor {
 public:
  Supervisor(std::vector<Child>* children, int limit_s) : children_(*children), limit_s_(limit_s) {}

  void run() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s_);
    while (any_connected()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return kill_all();
      wait_for_packets(static_cast<int>(left.count()));
      answer_barrier();
    }
  }

  // Collects the exit status of every child; all of them are gone or going.
  void reap() {
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      int status = 0;
      while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
      }
      close(child.socket);
      if (child.dying || killed_) continue;
      if (WIFSIGNALED(status)) {
        fail(rank, "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
                       ") after barrier " + std::to_string(child.barrier_count));
      } else if (!child.ended) {
        fail(rank, "ended with status " + std::to_string(WEXITSTATUS(status)) + " inside the test");
      }
    }
  }

  const Outcome& outcome() const { return outcome_; }

 private:
  void fail(std::size_t rank, const std::string& text) {
    outcome_.failures.push_back({"unknown", 0, "process " + std::to_string(rank) + ' ' + text});
  }

  bool any_connected() const {
    for (const Child& child : children_)
      if (child.connected) return true;
    return false;
  }

  void wait_for_packets(int timeout_ms) {
    std::vector<pollfd> polled;
    for (const Child& child : children_) polled.push_back({child.connected ? child.socket : -1, POLLIN, 0});
    if (poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
    for (std::size_t rank = 0; rank < children_.size(); ++rank)
      if (polled[rank].revents != 0) handle_packet(rank);
  }

  void handle_packet(std::size_t rank) {
    Child& child = children_[rank];
    Kind kind{};
    std::string text;
    if (!receive_packet(child.socket, &kind, &text)) {
      child.connected = false;
      return;
    }
    if (kind == Kind::meet) {
      child.waiting = true;
      child.value = text;
    } else if (kind == Kind::failure) {
      report(rank, text);
    } else if (kind == Kind::skip) {
      outcome_.skip_reason = text;
    } else if (kind == Kind::dying) {
      child.dying = true;
    } else if (kind == Kind::ended) {
      child.ended = true;
    }
  }

  void report(std::size_t rank, const std::string& text) {
    const std::size_t file_end = text.find('\n');
    const std::size_t line_end = text.find('\n', file_end + 1);
    outcome_.failures.push_back({text.substr(0, file_end), std::atoi(text.c_str() + file_end + 1),
                                 "[process " + std::to_string(rank) + " of " + std::to_string(children_.size()) +
                                     ", after barrier " + std::to_string(children_[rank].barrier_count) + "] " +
                                     text.substr(line_end + 1)});
  }

  // Lets everyone go when all that are alive wait; stops the waiting ones when somebody has left the test early.
  void answer_barrier() {
    std::size_t value_bytes = 0;
    bool somebody_left = false;
    for (const Child& child : children_) {
      if (child.ended || (!child.connected && !child.dying)) {
        somebody_left = true;
      } else if (child.connected && !child.waiting) {
        return;  // Still on its way, to the barrier or to its death.
      }
      if (child.waiting) value_bytes = child.value.size();
    }
    std::string values;
    for (Child& child : children_) {
      child.value.resize(value_bytes);
      values += child.value;
    }
    for (Child& child : children_) {
      if (!child.waiting) continue;
      child.waiting = false;
      ++child.barrier_count;
      send_packet(child.socket, somebody_left ? Kind::stop : Kind::go, values);
    }
  }

  /// Where those hang that hang, of the first ones: gdb takes seconds for each.
  void kill_all() {
    killed_ = true;
    int stacks_left = 2;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      const Child& child = children_[rank];
      if (!child.connected || child.ended) continue;
      std::string text = child.waiting ? "waits at barrier " : "hangs after barrier ";
      text += std::to_string(child.barrier_count) + "; killed after " + std::to_string(limit_s_) + " s";
      if (!child.waiting && stacks_left-- > 0) text += '\n' + stacks_of(child.pid);
      fail(rank, text);
    }
    for (const Child& child : children_) kill(child.pid, SIGKILL);
  }

  std::vector<Child>& children_;
  const int limit_s_;
  bool killed_ = false;
  Outcome outcome_;
};

}  // namespace

void Process::target(const std::function<void()>& step) {
  if (is_target()) step();
  barrier();
}

void Process::initiator(const std::function<void()>& step) {
  if (is_initiator()) step();
  barrier();
}

void Process::everywhere(const std::function<void()>& step) {
  step();
  barrier();
}

std::string Process::meet(const void* value, std::size_t bytes) {
  send_packet(socket_, Kind::meet, std::string(static_cast<const char*>(value), bytes));
  Kind kind{};
  std::string values;
  if (!receive_packet(socket_, &kind, &values) || kind != Kind::go) throw Stopped{};
  return values;
}

void Process::announce_death() { send_packet(socket_, Kind::dying, ""); }

void Process::die() {
  announce_death();
  kill(getpid(), SIGKILL);
  _exit(1);  // Not reached.
}

void Process::skip(const std::string& reason) {
  send_packet(socket_, Kind::skip, reason);
  throw Stopped{};
}

bool enter_node(int rank) {
  if (const char* nodes = std::getenv("PORTOFU_TEST_NODES")) {
    const std::string text = nodes;
    const std::size_t network_end = std::min(text.find(','), text.size());
    if (network_end < text.size()) {
      const std::size_t endpoint_end = std::min(text.find(',', network_end + 1), text.size());
      const std::string endpoint = text.substr(network_end + 1, endpoint_end - network_end - 1);
      setenv("PORTOFU_FABRIC_ENDPOINT", endpoint.c_str(), 1);
      if (endpoint_end < text.size()) setenv("PORTOFU_DATAGRAM_FAULTS", text.c_str() + endpoint_end + 1, 1);
    }
    setenv("PORTOFU_FABRIC", "1", 1);
    return setenv("PORTOFU_NID", (text.substr(0, network_end) + "." + std::to_string(rank + 1)).c_str(), 1) == 0;
  }
  const char* names = std::getenv("PORTOFU_TEST_NETNS");
  if (names == nullptr) return true;
  setenv("PORTOFU_FABRIC", "1", 1);
  std::vector<std::string> namespaces(1);
  for (const char* c = names; *c != '\0'; ++c) {
    if (*c == ',') {
      namespaces.emplace_back();
    } else {
      namespaces.back() += *c;
    }
  }
  const std::string& name = namespaces[static_cast<std::size_t>(rank) % namespaces.size()];
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && close(fd) == 0;
}

Outcome collect_outcome(int count, const Body& body, int limit_s) {
  std::fflush(nullptr);  // Else the children would print what is still in the buffers once more.
  std::vector<Child> children(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) std::abort();
    Child& child = children[static_cast<std::size_t>(rank)];
    child.socket = sockets[0];
    child.pid = fork();
    if (child.pid < 0) std::abort();
    if (child.pid == 0) {
      if (!enter_node(rank)) std::abort();
      for (int i = 0; i <= rank; ++i) close(children[static_cast<std::size_t>(i)].socket);
      run_body(rank, count, sockets[1], body);
    }
    close(sockets[1]);
  }
  Supervisor supervisor(&children, limit_s);
  supervisor.run();
  supervisor.reap();
  return supervisor.outcome();
}

void run_processes(int count, const Body& body) {
  const Outcome outcome = collect_outcome(count, body);
  for (const Failure& failure : outcome.failures) ADD_FAILURE_AT(failure.file.c_str(), failure.line) << failure.text;
  if (!outcome.skip_reason.empty()) GTEST_SKIP() << outcome.skip_reason;
}

}  // namespace conformance
