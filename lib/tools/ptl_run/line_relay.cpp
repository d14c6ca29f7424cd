#include "lib/tools/ptl_run/line_relay.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace portofu::tools {
namespace {

constexpr int kBufferBytes = 16384;

}  // namespace

LineRelay::LineRelay(int from_fd, TakeOutput take, std::string label)
    : from_fd_(from_fd), take_(std::move(take)), label_(std::move(label)) {}

LineRelay::~LineRelay() { end(); }

bool LineRelay::carry() {
  if (from_fd_ < 0) return false;
  char buffer[kBufferBytes];
  const ssize_t got = read(from_fd_, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR;
  if (got == 0) {
    end();
    return false;
  }
  std::string_view rest(buffer, static_cast<std::size_t>(got));
  if (label_.empty()) {
    take_(rest);
    return true;
  }
  std::string lines;
  for (std::size_t end_of_line; (end_of_line = rest.find('\n')) != std::string_view::npos;) {
    begun_.append(rest.substr(0, end_of_line));
    end_line(&lines);
    rest.remove_prefix(end_of_line + 1);
  }
  begun_.append(rest);
  if (begun_.size() >= kMaxRelayedLineBytes) end_line(&lines);
  if (!lines.empty()) take_(lines);
  return true;
}

void LineRelay::carry_rest() {
  int left = 0;
  if (from_fd_ < 0 || ioctl(from_fd_, FIONREAD, &left) != 0) return;
  // One turn more sees the end of the pipe, if nobody has it any more.
  for (int turns = left / kBufferBytes + 2; turns > 0 && carry(); --turns) continue;
}

void LineRelay::end_line(std::string* lines) {
  lines->append(label_).append(begun_).push_back('\n');
  begun_.clear();
}

void LineRelay::end() {
  if (from_fd_ < 0) return;
  std::string last;
  if (!begun_.empty()) end_line(&last);
  if (!last.empty()) take_(last);
  close(std::exchange(from_fd_, -1));
}

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace portofu::tools
