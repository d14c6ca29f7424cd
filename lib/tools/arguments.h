#pragma once
// The words of a command as execvp(3) wants them.

#include <string>
#include <vector>

namespace portofu::tools {

/// @param words  outlive what is returned, and are not written to
/// @return a pointer to each, and nullptr behind the last
inline std::vector<char*> argument_pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace portofu::tools
