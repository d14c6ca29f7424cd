#pragma once
// The same for programs.

#include "lib/tools/ptl_info/explanation_text.h"

namespace portofu::tools {

/// {"jobs": [{"job_key": ..., "processes": [...], "findings": [...]}]}. Match bits and handles are texts in
/// hexadecimal, because a number of JSON need not have 64 bits.
std::string json_text(const std::vector<Explanation>& jobs);

}  // namespace portofu::tools
