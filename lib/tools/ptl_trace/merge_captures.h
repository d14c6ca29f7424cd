#pragma once
// Puts captures of processes (PORTOFU_PCAPNG) together, as mergecap does: one section, an interface for each lane, and
// the packets by time.

#include <string>

namespace portofu::tools {

/// @param directory  of files that end in .pcapng; what a killed process has left unfinished is skipped
/// @param output     written anew, readable by its user only
/// @param why        a sentence for people on failure; also if there is no capture
bool merge_captures(const std::string& directory, const std::string& output, std::string* why);

}  // namespace portofu::tools
