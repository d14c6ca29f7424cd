// Formats a line into the stack and writes it at once. Off the short path: a line costs a system call. What the line
// tells of, a setting or a path, is whatever somebody wrote.

#include "engine/observe/log.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"

namespace portofu {
namespace {

std::atomic<LogLevel> process_level{LogLevel::kWarning};
LogRate process_rate;

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kError: return "error";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kInfo: return "info";
  }
  return "unknown";
}

/// A full or closed standard error is nothing that the engine can mend: the line is lost.
void write_line(const char* line, int bytes) {
  const NoCancellation whole;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<std::size_t>(bytes));
}

constexpr int kMostBytes = kLogLineBytes - 2;  ///< Of a line without its newline and the zero of snprintf.

/// Makes room for the newline in a line that snprintf wanted to make `wanted` bytes long, and writes it as one.
void finish_line(char* line, int wanted) {
  const int bytes = std::clamp(wanted, 0, kMostBytes);
  std::replace_if(
      line, line + bytes, [](unsigned char letter) { return letter < ' ' || letter == '\x7f'; }, '?');
  line[bytes] = '\n';
  write_line(line, bytes + 1);
}

/// The end of a line says what to do, and what happens now: one that is too long loses its middle instead.
/// @param text_bytes  of what the format makes
void keep_end(char* line, int text_bytes, const char* format, std::va_list arguments) {
  const std::size_t room = static_cast<std::size_t>(text_bytes) + 1;
  const std::unique_ptr<char[]> text(new (std::nothrow) char[room]);
  if (text == nullptr) return;
  std::vsnprintf(text.get(), room, format, arguments);
  static constexpr char kGap[] = " ... ";
  constexpr int kEndBytes = kMostBytes / 2;
  char* const end = line + kMostBytes - kEndBytes;
  std::memcpy(end, text.get() + text_bytes - kEndBytes, kEndBytes);
  std::memcpy(end - std::strlen(kGap), kGap, std::strlen(kGap));
}

void log_list(LogLevel level, const char* format, std::va_list arguments) {
  if (!log_enabled(level)) return;
  std::uint64_t left_out = 0;
  if (!process_rate.admit(monotonic_ns(), &left_out)) return;
  char line[kLogLineBytes];
  if (left_out != 0) {
    finish_line(line, std::snprintf(line, sizeof line, "portofu[%d]: warning: %" PRIu64 " lines were left out",
                                    getpid(), left_out));
  }
  const int prefix = std::snprintf(line, sizeof line, "portofu[%d]: %s: ", getpid(), level_name(level));
  std::va_list again;
  va_copy(again, arguments);
  const int wanted = std::vsnprintf(line + prefix, sizeof line - static_cast<std::size_t>(prefix), format, arguments);
  if (prefix + wanted > kMostBytes) keep_end(line, wanted, format, again);
  va_end(again);
  finish_line(line, prefix + wanted);
}

}  // namespace

// Order of the level does not matter to anybody: it guards no data, hence relaxed on both sides.
void set_log_level(LogLevel level) { process_level.store(level, std::memory_order_relaxed); }

bool log_enabled(LogLevel level) { return level <= process_level.load(std::memory_order_relaxed); }

void log_error(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log_list(LogLevel::kError, format, arguments);
  va_end(arguments);
}

void log_warning(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log_list(LogLevel::kWarning, format, arguments);
  va_end(arguments);
}

void log_info(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log_list(LogLevel::kInfo, format, arguments);
  va_end(arguments);
}

bool LogRate::admit(std::uint64_t now, std::uint64_t* left_out) {
  // All relaxed: the three numbers steer only how much is written, and guard no data.
  std::uint64_t start = period_start_ns_.load(std::memory_order_relaxed);
  if (start == 0 || now - start >= kPeriodNs) {
    if (period_start_ns_.compare_exchange_strong(start, now, std::memory_order_relaxed)) {
      lines_.store(0, std::memory_order_relaxed);
    }
  }
  if (lines_.fetch_add(1, std::memory_order_relaxed) >= kLinesPerPeriod) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  *left_out = left_out_.exchange(0, std::memory_order_relaxed);
  return true;
}

}  // namespace portofu
