#pragma once
// What was seen of jobs, and what is wrong with them, for people.

#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// @param foreign  foreign_segments
std::string plain_text(const std::vector<Explanation>& jobs, const std::vector<std::string>& foreign);

/// All of one process: an empty line, then its lines.
std::string process_text(const ProcessPicture& process);

/// Names of segments that cannot be read, because another version has made them.
std::vector<std::string> foreign_segments(const std::string& directory);

/// That they are there, for people; an empty text: there are none.
std::string foreign_text(const std::vector<std::string>& segments);

/// Why nothing of a process is shown, or an empty text.
const char* sight_text(Sight sight);

}  // namespace portofu::tools
