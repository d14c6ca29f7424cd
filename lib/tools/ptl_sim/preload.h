#pragma once
// What ranks load before all else, so that they see virtual time.

namespace portofu::tools {

/// LD_PRELOAD for the ranks gets libportofu_clock.so, before what it has already.
/// @return false: the library is not there, as in builds with sanitizers; nothing has changed
bool preload_clock();

}  // namespace portofu::tools
