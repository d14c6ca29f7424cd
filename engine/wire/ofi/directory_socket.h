#pragma once
// Which process of another node owns a control queue or a barrier gate. Every process that owns one listens on the same
// datagram port of its node (SO_REUSEPORT), so that the kernel hands a question to one of them, and any of them can
// answer from the names in shared memory. The port may belong to another program, so there is a second one; questions
// go to both in turns until one of them has an answer. A question that is not answered soon is repeated from another
// port, which most likely reaches another process, so one that is stopped or slow does not matter.
//
// Who has asked is told when an answer is no longer good (known_by.h), by datagrams to a socket of its own, its ear.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/observe/counters.h"
#include "engine/segment/kernel.h"
#include "engine/segment/known_by.h"
#include "engine/segment/names_word.h"
#include "engine/segment/own_descriptor.h"

namespace portofu {

/// Fixed for the life of the socket, and alike in all processes of the job.
struct DirectoryOptions {
  std::uint32_t nid = 0;             ///< Of this node.
  std::vector<std::uint16_t> ports;  ///< One or two, in order: the first that is free is taken.
  std::uint32_t job_key = 0;
  std::uint32_t uid = 0;
};

/// Outcome of DirectorySocket::ask.
enum class AskResult : std::uint8_t {
  kFound,
  kNobody,    ///< The node says that no process has it, or its kernel that no process has any.
  kNoAnswer,  ///< Nobody has answered in time, or the question cannot be sent.
  kAsking,    ///< There is no answer yet: ask again.
};

/// For how long a question is put.
enum class Patience : std::uint8_t {
  kFull,   ///< Five seconds.
  kShort,  ///< Two seconds: the node has not answered of late.
};

/// Used by one thread at a time. What is not of this job, or no message of a directory, is counted as a refused packet.
class DirectorySocket {
 public:
  /// Answers from what this process can see, and notes who has asked. @return false if no process of this node has the
  /// key
  using Find = std::function<bool(std::uint64_t key, const Knower& asker, NameOwner* owner)>;

  /// Nothing that is known of the names of a process is good any more.
  /// @param life  of it, which is over; 0: it lives
  using WhenMoved = std::function<void(ProcessId process, std::uint64_t life)>;

  DirectorySocket(const DirectoryOptions& options, Counters counters, Find find, WhenMoved when_moved);
  ~DirectorySocket();
  DirectorySocket(const DirectorySocket&) = delete;
  DirectorySocket& operator=(const DirectorySocket&) = delete;

  /// Answers questions from now on, and hears news.
  /// @return false if its ports belong to others, or this process lacks descriptors: errno says it
  bool listen();

  const std::vector<std::uint16_t>& ports() const { return options_.ports; }

  /// Hears news from now on.
  /// @return the port where others tell them; 0: they cannot
  std::uint16_t open_ear();

  /// Readable when there is a question, or news; -1 while there is nothing to wait at.
  int fd() const { return both_fd_.number(); }

  /// Answers what has been asked, at most kMostAnswers questions, and hears what is told.
  void serve();

  /// Only the latter. Opens no segment.
  void hear();

  /// Asks a node, or looks whether it has answered; never waits. Whoever has begun to ask goes on until the result is
  /// another one than kAsking. What must not be remembered has kNamesMoving.
  /// @param patience  if it is a new question
  AskResult ask(std::uint32_t nid, std::uint64_t key, NameOwner* owner, Patience patience = Patience::kFull);

  /// The ports for those who configured none: between 20000 and 29999, by user and job.
  static std::vector<std::uint16_t> default_ports(std::uint32_t job_key, std::uint32_t uid);

  static constexpr int kMostAnswers = 16;

  /// Questions under way; others are put when one of them has ended. Each has up to seven sockets.
  static constexpr std::size_t kMostQuestions = 32;

 private:
  struct Question;

  bool add(std::unique_ptr<DatagramSocket> made, std::unique_ptr<DatagramSocket>* place);

  const DirectoryOptions options_;
  Counters counters_;
  const Find find_;
  const WhenMoved when_moved_;
  std::unique_ptr<DatagramSocket> questions_socket_;  ///< Of others; nullptr: not open.
  std::unique_ptr<DatagramSocket> ear_;               ///< News; the same.
  OwnDescriptor both_fd_;                             ///< An epoll over both.
  std::uint16_t ear_port_ = 0;                        ///< 0: nobody can tell us.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::unique_ptr<Question>> questions_;  ///< By NID and key.
};

}  // namespace portofu
