#pragma once
// The launcher's end of the connection to one host: the agent that it started, and the frames that go through it.

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/tools/ptl_run/frame.h"
#include "lib/tools/ptl_run/host_list.h"
#include "lib/tools/ptl_run/rank_process.h"

namespace portofu::tools {

/// How far a host is.
enum class HostState : std::uint8_t {
  kStarting,  ///< The agent was started; the helper has not said its address.
  kReady,     ///< It has.
  kRunning,   ///< It has its plan.
  kLost,      ///< The connection is gone.
};

struct HostLink {
  JobHost host;
  int first_rank = 0;  ///< Its ranks follow each other.
  HostState state = HostState::kStarting;
  std::string address;  ///< kReady and later: the node ID of its processes, dotted.
  pid_t agent = -1;     ///< Process, and group, of the agent; -1 once it was taken away.
  std::unique_ptr<FrameStream> stream;

  /// Starts the agent: its words, the host, and a command line that starts this very program as a helper there. A host
  /// that is this one needs no agent.
  /// @param agent_words  empty: no agent
  /// @return 0, or errno
  int start(const std::vector<std::string>& agent_words, const LaunchContext& context);

  /// Looks whether the agent has ended, and takes it away. @return true once
  bool reap_agent();

  /// Ends the connection, and after a while the agent with it.
  void end();
};

}  // namespace portofu::tools
