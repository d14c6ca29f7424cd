#pragma once
// Carries the output of one rank to the launcher's own, line by line, each behind a label.

#include <string>

namespace portofu::tools {

/// A line that is longer goes out in pieces, each on a line of its own.
inline constexpr std::size_t kMaxRelayedLineBytes = 65536;

class LineRelay {
 public:
  /// @param from_fd  read end of a pipe, non-blocking; closed at the end
  /// @param to_fd    where lines go; not closed
  /// @param label    stands before each line
  LineRelay(int from_fd, int to_fd, std::string label);
  ~LineRelay();
  LineRelay(const LineRelay&) = delete;
  LineRelay& operator=(const LineRelay&) = delete;

  /// -1 once everything has been carried.
  int fd() const { return from_fd_; }

  /// Carries what is there, one buffer at most. @return false if nothing was there
  bool carry();

 private:
  void write_line(std::string_view line) const;
  void end();

  int from_fd_;
  int to_fd_;
  std::string label_;
  std::string begun_;  ///< The beginning of a line whose end has not come yet; below kMaxRelayedLineBytes.
};

/// Writes all of it, also to a non-blocking descriptor; gives up when the reader is gone.
void write_all(int fd, std::string_view text);

}  // namespace portofu::tools
