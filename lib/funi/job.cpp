#include "lib/funi/job.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace portofu::funi {
namespace {

/// @return -1 if the variable is not a number
int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  return *end == '\0' && number >= 0 && number <= 1 << 20 ? static_cast<int>(number) : -1;
}

/// What stands behind `key=` in an answer.
std::string field(const std::string& answer, const std::string& key) {
  const std::string wanted = " " + key + "=";
  const std::string line = " " + answer;
  const std::size_t at = line.find(wanted);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + wanted.size();
  return line.substr(begin, line.find_first_of(" \n", begin) - begin);
}

constexpr std::size_t kLongestAnswer = 4096;

}  // namespace

Job::~Job() { end(); }

std::string Job::ask(const std::string& request) {
  const std::string line = request + '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t wrote = write(socket_, line.data() + sent, line.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return "";
    sent += static_cast<std::size_t>(wrote);
  }
  std::string answer;
  for (char c = 0; c != '\n' && answer.size() < kLongestAnswer;) {
    const ssize_t got = ::read(socket_, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return "";
    answer += c;
  }
  return answer;
}

bool Job::begin() {
  const int socket = number_in_environment("PMI_FD");
  if (socket < 0) return true;
  const int rank = number_in_environment("PMI_RANK");
  const int size = number_in_environment("PMI_SIZE");
  if (rank < 0 || size <= rank) return false;
  socket_ = socket;
  rank_ = static_cast<std::uint32_t>(rank);
  size_ = static_cast<std::uint32_t>(size);
  if (field(ask("cmd=init pmi_version=1 pmi_subversion=1"), "rc") == "0") {
    space_ = field(ask("cmd=get_my_kvsname"), "kvsname");
  }
  return !space_.empty();
}

bool Job::put(const std::string& key, const std::string& value) {
  return field(ask("cmd=put kvsname=" + space_ + " key=" + key + " value=" + value), "rc") == "0";
}

std::string Job::get(const std::string& key) {
  return field(ask("cmd=get kvsname=" + space_ + " key=" + key), "value");
}

bool Job::barrier() { return field(ask("cmd=barrier_in"), "cmd") == "barrier_out"; }

void Job::end() {
  if (socket_ < 0) return;
  ask("cmd=finalize");
  socket_ = -1;
}

}  // namespace portofu::funi
