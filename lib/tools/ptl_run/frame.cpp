#include "lib/tools/ptl_run/frame.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace portofu::tools {
namespace {

constexpr std::string_view kGreeting = "ptl_run host helper 1\n";

struct FrameHead {
  std::uint32_t payload_bytes;
  FrameKind kind;
  std::uint32_t rank;
};

void set_non_blocking(int fd) {
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

template <class Number>
void put(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
bool get(std::string_view& text, Number* number) {
  if (text.size() < sizeof *number) return false;
  std::memcpy(number, text.data(), sizeof *number);
  text.remove_prefix(sizeof *number);
  return true;
}

void put_strings(std::string& text, const std::vector<std::string>& strings) {
  put(text, static_cast<std::uint32_t>(strings.size()));
  for (const std::string& one : strings) {
    put(text, static_cast<std::uint32_t>(one.size()));
    text += one;
  }
}

bool get_strings(std::string_view& text, std::vector<std::string>* strings) {
  std::uint32_t count = 0;
  if (!get(text, &count) || count > text.size()) return false;
  for (; count > 0; --count) {
    std::uint32_t bytes = 0;
    if (!get(text, &bytes) || bytes > text.size()) return false;
    strings->emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

FrameStream::FrameStream(int read_fd, int write_fd, bool greeted)
    : read_fd_(read_fd), write_fd_(write_fd), greeted_(greeted) {
  set_non_blocking(read_fd_);
  set_non_blocking(write_fd_);
}

void FrameStream::close_both() {
  if (read_fd_ >= 0) close(std::exchange(read_fd_, -1));
  if (write_fd_ >= 0) close(std::exchange(write_fd_, -1));
  to_write_.clear();
}

void FrameStream::greet() {
  to_write_ += kGreeting;
  flush();
}

void FrameStream::send(FrameKind kind, std::uint32_t rank, std::string_view payload) {
  if (write_fd_ < 0) return;
  put(to_write_, FrameHead{static_cast<std::uint32_t>(payload.size()), kind, rank});
  to_write_ += payload;
  flush();
}

bool FrameStream::flush() {
  while (!to_write_.empty()) {
    const ssize_t written = write(write_fd_, to_write_.data(), to_write_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno == EAGAIN;
    to_write_.erase(0, static_cast<std::size_t>(written));
  }
  return true;
}

bool FrameStream::receive() {
  char buffer[65536];
  const ssize_t got = read(read_fd_, buffer, sizeof buffer);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  received_.append(buffer, static_cast<std::size_t>(got));
  if (greeted_) {
    const std::size_t at = received_.find(kGreeting);
    if (at == std::string::npos) return got > 0 && received_.size() <= kMaxChatterBytes;
    received_.erase(0, at + kGreeting.size());
    greeted_ = false;
  }
  FrameHead head{};
  if (received_.size() >= sizeof head) std::memcpy(&head, received_.data(), sizeof head);
  return got > 0 && head.payload_bytes <= kMaxFrameBytes;
}

std::optional<Frame> FrameStream::take() {
  FrameHead head{};
  if (greeted_ || received_.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, received_.data(), sizeof head);
  if (received_.size() - sizeof head < head.payload_bytes) return std::nullopt;
  Frame frame{head.kind, head.rank, received_.substr(sizeof head, head.payload_bytes)};
  received_.erase(0, sizeof head + head.payload_bytes);
  return frame;
}

std::string pack_plan(const JobPlan& plan) {
  std::string text;
  for (const int number : {plan.size, plan.first_rank, plan.count, plan.label ? 1 : 0}) put(text, number);
  put_strings(text, {plan.directory, plan.hosts});
  put_strings(text, plan.command);
  put_strings(text, plan.environment);
  return text;
}

std::optional<JobPlan> unpack_plan(std::string_view text) {
  JobPlan plan;
  int label = 0;
  std::vector<std::string> texts;
  const bool good = get(text, &plan.size) && get(text, &plan.first_rank) && get(text, &plan.count) &&
                    get(text, &label) && get_strings(text, &texts) && get_strings(text, &plan.command) &&
                    get_strings(text, &plan.environment) && text.empty();
  if (!good || texts.size() != 2 || plan.command.empty() || plan.first_rank < 0 || plan.count < 1 ||
      plan.size - plan.first_rank < plan.count) {
    return std::nullopt;
  }
  plan.label = label != 0;
  plan.directory = texts[0];
  plan.hosts = texts[1];
  return plan;
}

std::string pack_strings(const std::vector<std::string>& strings) {
  std::string text;
  put_strings(text, strings);
  return text;
}

std::optional<std::vector<std::string>> unpack_strings(std::string_view text) {
  std::vector<std::string> strings;
  if (!get_strings(text, &strings) || !text.empty()) return std::nullopt;
  return strings;
}

std::string pack_numbers(std::int32_t first, std::int32_t second) {
  std::string text;
  put(text, first);
  put(text, second);
  return text;
}

bool unpack_numbers(std::string_view text, std::int32_t* first, std::int32_t* second) {
  return get(text, first) && get(text, second) && text.empty();
}

}  // namespace portofu::tools
