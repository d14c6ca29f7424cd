#pragma once
// What was seen of jobs, and what is wrong with them, for programs.

#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// {"jobs": [{"job_key": ..., "processes": [...], "findings": [...]}], "foreign_segments": [...]}. Match bits and
/// handles are texts in hexadecimal, because a number of JSON need not have 64 bits.
/// @param foreign  foreign_segments
std::string json_text(const std::vector<Explanation>& jobs, const std::vector<std::string>& foreign);

}  // namespace portofu::tools
