#pragma once
// What was seen of jobs, and what is wrong with them, for people.

#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

std::string plain_text(const std::vector<Explanation>& jobs);

/// All of one process: an empty line, then its lines.
std::string process_text(const ProcessPicture& process);

/// Why nothing of a process is shown, or an empty text.
const char* sight_text(Sight sight);

}  // namespace portofu::tools
