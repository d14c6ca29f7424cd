#pragma once
// One line on standard error for each thing that people have to know; every line ends with the action taken. A fault is
// logged once, where it is first decided. Level and rate belong to the process, because standard error does.

#include <atomic>
#include <cstdint>

namespace portofu {

/// What is logged; values of PORTOFU_LOG.
enum class LogLevel : std::uint8_t {
  kError = 0,    ///< Something that the user asked for cannot be done. Always written.
  kWarning = 1,  ///< It goes on, worse than it could.
  kInfo = 2,     ///< What the engine found and chose.
};

/// Sets the level of the process. Any thread, any time; engines that open later change it again.
void set_log_level(LogLevel level);

/// @return true if a line of this level would be written; for lines that are costly to make
bool log_enabled(LogLevel level);

/// Writes one line "portofu[pid]: level: ...". Any thread; one write(2) a line, so lines of processes do not mix. What
/// is longer than kLogLineBytes loses its middle. Not for signal handlers.
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_warning(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_info(const char* format, ...);

/// Most bytes of one line, with its newline.
inline constexpr int kLogLineBytes = 512;

/// Lets a burst of lines through, then a few a second; the first line after a pause says how many were left out.
/// Thread-safe: two threads may each lose one line of the count, never more.
class LogRate {
 public:
  static constexpr std::uint64_t kLinesPerPeriod = 20;
  static constexpr std::uint64_t kPeriodNs = 1'000'000'000;

  /// Asks for one line.
  /// @param now_ns        monotonic time
  /// @param left_out      set to the number of lines refused since the last one that passed
  /// @return true if the line may be written
  bool admit(std::uint64_t now_ns, std::uint64_t* left_out);

 private:
  std::atomic<std::uint64_t> period_start_ns_{0};  ///< When the current period began; 0 before the first line.
  std::atomic<std::uint64_t> lines_{0};            ///< Lines let through in this period.
  std::atomic<std::uint64_t> left_out_{0};         ///< Lines refused and not yet reported.
};

}  // namespace portofu
