#pragma once
// What ptl_run and its helper on another host say to each other, over standard input and output of the launch agent.
// Numbers are in the byte order of the machine: all hosts of a job have the same.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace portofu::tools {

/// H: from the helper, L: from the launcher.
enum class FrameKind : std::uint32_t {
  kHost = 1,  ///< L, first: its address ("" if that is not how it is named), the network interface ("": any).
  kHello,     ///< H: the address by which the processes of this host are known.
  kJob,       ///< L, once: JobPlan.
  kStarted,   ///< H: a rank runs; its process number, or 0 and errno. @see put_numbers
  kPmi,       ///< Both: bytes of the dialogue of a rank.
  kOutput,    ///< H: bytes of its standard output.
  kError,     ///< H: bytes of its standard error.
  kEnded,     ///< H: a rank has ended, and all that it has said has been sent: by a signal or not, which one or status.
  kSignal,    ///< L: to all ranks of the host.
  kInput,     ///< L: bytes for the standard input of rank 0; none: its end.
  kInputTaken  ///< H: so many of them are in the rank's hands.
};

struct Frame {
  FrameKind kind = FrameKind::kHost;
  std::uint32_t rank = 0;
  std::string payload;
};

inline constexpr std::uint32_t kMaxFrameBytes = 16u << 20;
inline constexpr std::size_t kMaxChatterBytes = 1u << 20;  ///< What a login shell may say before the helper begins.

/// Two directions of frames, over descriptors that it makes non-blocking and closes.
class FrameStream {
 public:
  /// @param greeted  the other side begins with a greeting, and what comes before that is not for us
  FrameStream(int read_fd, int write_fd, bool greeted);
  ~FrameStream() { close_both(); }
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  int read_fd() const { return read_fd_; }    ///< -1 once closed.
  int write_fd() const { return write_fd_; }  ///< -1 once closed.
  std::size_t queued_bytes() const { return to_write_.size(); }

  /// Says who we are; the first thing that the greeting side sends.
  void greet();

  /// Queues a frame, and writes what can be written now.
  void send(FrameKind kind, std::uint32_t rank, std::string_view payload);

  /// Writes what can be written now. @return false if nobody reads any more
  bool flush();

  /// Reads one buffer. @return false at the end, or if what comes makes no sense
  bool receive();

  /// @return nothing if no whole frame is there
  std::optional<Frame> take();

  void close_both();

 private:
  int read_fd_;
  int write_fd_;
  bool greeted_;
  std::string received_;
  std::string to_write_;
};

/// What a helper has to know of its part of a job.
struct JobPlan {
  int size = 1;                          ///< Ranks of the job.
  int first_rank = 0;                    ///< Of this host; they follow each other.
  int count = 0;                         ///< Of this host.
  bool label = false;                    ///< Each line of output begins with its rank.
  std::string directory;                 ///< Where the ranks run.
  std::string hosts;                     ///< Text of the file that PORTOFU_HOSTS names.
  std::vector<std::string> command;      ///< Program and arguments.
  std::vector<std::string> environment;  ///< NAME=VALUE, for the ranks.

  friend bool operator==(const JobPlan&, const JobPlan&) = default;
};

std::string pack_plan(const JobPlan& plan);
std::optional<JobPlan> unpack_plan(std::string_view text);

/// Strings one behind the other. @return nothing if the text is something else
std::string pack_strings(const std::vector<std::string>& strings);
std::optional<std::vector<std::string>> unpack_strings(std::string_view text);

/// Two numbers as a payload.
std::string pack_numbers(std::int32_t first, std::int32_t second);
bool unpack_numbers(std::string_view text, std::int32_t* first, std::int32_t* second);

}  // namespace portofu::tools
