#pragma once
// Programs in virtual time: real processes with the libraries, started by ptl_sim, and the messages that they sent.

#include <cstdint>
#include <string>
#include <vector>

namespace portofu::machines {

struct Sent {
  std::uint32_t from;
  std::uint32_t to;
  std::string kind;  ///< As ptl_sim's report calls it: "put", "get".
  std::uint64_t bytes;
  double sent_us;
  double arrived_us;
};

/// A program and where it runs.
struct Run {
  std::string machine;    ///< As of --machine.
  std::string nodes;      ///< As of --nodes.
  std::string program;    ///< Beside this program.
  std::string arguments;  ///< Words between spaces.
};

/// Runs it to its end. Ends this program if it fails.
/// @return in the order in which they were sent
std::vector<Sent> run_program(const Run& run);

/// The mean from one message of this kind to the next, without the first few. A put is one whether or not its payload
/// is in the command. @return 0: there are too few
double mean_interval_us(const std::vector<Sent>& messages, const std::string& kind);

/// Bytes of all puts of rank 0, from the first one's beginning to the last one's arrival.
double put_rate_gb_s(const std::vector<Sent>& messages);

}  // namespace portofu::machines
