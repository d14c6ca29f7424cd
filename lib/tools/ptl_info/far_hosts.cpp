#include "lib/tools/ptl_info/far_hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>

#include "engine/door/process.h"
#include "lib/tools/ptl_run/agent.h"
#include "lib/tools/ptl_run/host_list.h"

namespace portofu::tools {
namespace {

/// A ptl_info on another host. Its agent, and what that has started here, is killed at the end.
class FarLook {
 public:
  FarLook(const FarHosts& hosts, std::string name) : name_(std::move(name)) {
    const std::vector<std::string> words = command_on_host(hosts.agent, name_, kLooksOption);
    int answer[2] = {-1, -1};
    if (pipe2(answer, O_CLOEXEC) != 0) return;
    agent_ = fork();
    if (agent_ == 0) become(words, answer[1]);
    close(answer[1]);
    fd_ = answer[0];
  }
  ~FarLook() {
    if (fd_ >= 0) close(fd_);
    if (agent_ <= 0) return;
    kill(-agent_, SIGKILL);
    waitpid(agent_, nullptr, 0);
  }
  FarLook(const FarLook&) = delete;
  FarLook& operator=(const FarLook&) = delete;

  /// Reads until it has ended, or the time is over.
  void read_until(std::uint64_t deadline_ns) {
    char buffer[65536];
    while (fd_ >= 0) {
      const std::uint64_t now = monotonic_ns();
      if (now >= deadline_ns) return;
      pollfd readable{fd_, POLLIN, 0};
      poll(&readable, 1, static_cast<int>((deadline_ns - now) / 1'000'000 + 1));
      if (readable.revents == 0) continue;
      const ssize_t got = read(fd_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      answer_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  const std::string& name() const { return name_; }
  const std::string& answer() const { return answer_; }

 private:
  [[noreturn]] static void become(const std::vector<std::string>& words, int output) {
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }

  std::string name_;
  pid_t agent_ = -1;
  int fd_ = -1;
  std::string answer_;
};

}  // namespace

int write_looks() {
  Looks looks;
  if (!look_twice(SegmentOptions{}.directory, &looks)) return 1;
  const std::string text = pack_looks(looks);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}

std::vector<std::string> hosts_of_jobs_here(const std::string& directory) {
  std::vector<SegmentView> views;
  view_segments(directory, &views);
  std::set<std::string> files;
  std::set<std::string> here;
  for (const SegmentView& view : views) {
    if (view.life != SegmentLife::kLiving) continue;
    here.insert(node_id_text(view.descriptor.nid));
    const std::string file = variable_of_process(view.descriptor.os_pid, "PORTOFU_HOSTS");
    if (!file.empty()) files.insert(file);
  }
  std::set<std::string> others;
  for (const std::string& file : files) {
    std::string why;
    const auto hosts = read_hosts(file.find('/') != std::string::npos ? file : "./" + file, &why);
    if (!hosts) {
      std::fprintf(stderr, "ptl_info: %s\n", why.c_str());
      continue;
    }
    for (const JobHost& host : *hosts) {
      if (!here.contains(host.name)) others.insert(host.name);
    }
  }
  return {others.begin(), others.end()};
}

bool look_everywhere(const std::string& directory, const FarHosts& hosts, Looks* looks,
                     std::vector<std::string>* silent) {
  std::vector<std::unique_ptr<FarLook>> far;
  for (const std::string& name : hosts.names) far.push_back(std::make_unique<FarLook>(hosts, name));
  if (!look_twice(directory, looks)) return false;
  const std::uint64_t deadline_ns = monotonic_ns() + std::uint64_t{kAnswerMs} * 1'000'000;
  for (const auto& look : far) {
    look->read_until(deadline_ns);
    Looks there;
    if (unpack_looks(look->answer(), &there)) {
      add_looks(std::move(there), looks);
    } else {
      silent->push_back(look->name());
    }
  }
  return true;
}

}  // namespace portofu::tools
