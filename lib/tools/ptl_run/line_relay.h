#pragma once
// Carries the output of one rank on: line by line, each behind a label, or as it comes.

#include <functional>
#include <string>
#include <string_view>

namespace portofu::tools {

/// A line that is longer goes out in pieces, each on a line of its own.
inline constexpr std::size_t kMaxRelayedLineBytes = 65536;

using TakeOutput = std::function<void(std::string_view text)>;

class LineRelay {
 public:
  /// @param from_fd  read end of a pipe, non-blocking; closed at the end
  /// @param take     gets whole lines, each behind the label and with its newline
  /// @param label    stands before each line; empty: `take` gets everything as it comes
  LineRelay(int from_fd, TakeOutput take, std::string label);
  ~LineRelay();
  LineRelay(const LineRelay&) = delete;
  LineRelay& operator=(const LineRelay&) = delete;

  /// -1 once everything has been carried.
  int fd() const { return from_fd_; }

  /// Carries what is there, one buffer at most. @return false if nothing was there
  bool carry();

  /// Carries what is there now, and not what somebody goes on writing.
  void carry_rest();

 private:
  void end_line(std::string* lines);
  void end();

  int from_fd_;
  TakeOutput take_;
  std::string label_;
  std::string begun_;  ///< The beginning of a line whose end has not come yet; below kMaxRelayedLineBytes.
};

/// Writes all of it, also to a non-blocking descriptor.
/// @return 0, or the errno of why it cannot be written: the reader is gone, or the disk is full
int write_all(int fd, std::string_view text);

}  // namespace portofu::tools
