#pragma once
// The launcher's side of PMI-1, the text dialogue by which MPICH-style programs learn rank and size from whoever
// started them and exchange addresses: one line a request, one line an answer. Before it: the job reads lines from the
// ranks. After it: the job writes the answers, or ends. Knows no files and no processes.
//
// When you add a command: (1) its method, (2) its row in kCommands.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace portofu::tools {

inline constexpr std::size_t kMaxPmiLineBytes = 4096;     ///< Longer requests are nonsense.
inline constexpr std::size_t kMaxPmiKeyBytes = 64;        ///< Told to clients, with the closing zero of C.
inline constexpr std::size_t kMaxPmiValueBytes = 1024;    ///< Told to clients, with the closing zero of C.
inline constexpr std::size_t kMaxPmiNameBytes = 256;      ///< Told to clients, with the closing zero of C.
inline constexpr std::size_t kMaxPmiPairCount = 262'144;  ///< Keys that a job may put.

/// How far a rank is in its dialogue.
enum class PmiState : std::uint8_t {
  kSilent,     ///< It has not said `init`; perhaps it never will.
  kActive,     ///< Between `init` and `finalize`.
  kAtBarrier,  ///< It has said `barrier_in` and has no answer yet.
  kFinalized,  ///< It has said `finalize`.
  kEnded,      ///< Its process is gone.
};

/// Name for messages and tests.
const char* pmi_state_name(PmiState state);

/// One line for one rank, with its newline.
struct PmiAnswer {
  int rank;
  std::string line;
};

/// What follows from a line, or from the end of a rank.
struct PmiOutcome {
  std::vector<PmiAnswer> answers;
  bool ends_job = false;  ///< Somebody has aborted, or the dialogue cannot go on.
  int exit_status = 0;    ///< Of the job, if it ends.
  std::string complaint;  ///< Why it ends, for people.
};

/// The dialogue with all ranks of one job, and the pairs that they have put. One thread.
class PmiServer {
 public:
  /// @param size  number of ranks, at least 1
  /// @param name  name of the one space of pairs; without blanks, below kMaxPmiNameBytes
  PmiServer(int size, std::string name);

  /// Ranks are on several nodes, in blocks of these sizes. Without it all are on one.
  void place_ranks(const std::vector<int>& counts);

  /// @param line  one request, without its newline
  PmiOutcome take_line(int rank, std::string_view line);

  /// The process of the rank has ended. A barrier that somebody waits at can then not be reached any more.
  PmiOutcome rank_ended(int rank);

  PmiState state(int rank) const { return states_[static_cast<std::size_t>(rank)]; }

 private:
  using Fields = std::map<std::string, std::string, std::less<>>;
  using Method = PmiOutcome (PmiServer::*)(int rank, const Fields& fields);
  struct Command {
    const char* name;
    Method method;
  };
  static const Command kCommands[];

  PmiOutcome init(int rank, const Fields& fields);
  PmiOutcome get_maxes(int rank, const Fields& fields);
  PmiOutcome get_appnum(int rank, const Fields& fields);
  PmiOutcome get_universe_size(int rank, const Fields& fields);
  PmiOutcome get_my_kvsname(int rank, const Fields& fields);
  PmiOutcome put(int rank, const Fields& fields);
  PmiOutcome get(int rank, const Fields& fields);
  PmiOutcome get_by_index(int rank, const Fields& fields);
  PmiOutcome barrier_in(int rank, const Fields& fields);
  PmiOutcome finalize(int rank, const Fields& fields);
  PmiOutcome abort(int rank, const Fields& fields);
  PmiOutcome publish_name(int rank, const Fields& fields);
  PmiOutcome unpublish_name(int rank, const Fields& fields);
  PmiOutcome lookup_name(int rank, const Fields& fields);

  PmiOutcome check_barrier();

  std::vector<PmiState> states_;              ///< By rank.
  std::string name_;                          ///< Of the space of pairs.
  std::map<std::string, std::string> pairs_;  ///< What was put, and what the launcher knows; visible at once.
};

}  // namespace portofu::tools
