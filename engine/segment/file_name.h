#pragma once
// Names of files that are open: /dev/shm sees a file only once it is complete, because it gets its name last.

#include <string>

namespace portofu {

/// Gives a name to a file that was made without one (O_TMPFILE) or that has another name still.
/// @return 0, or errno: EEXIST if the name is taken, ENOENT if the file has lost its last name
int give_name(int fd, const std::string& path);

/// @return true if `path` is a name of the file that is open as `fd`
bool is_at(const std::string& path, int fd);

}  // namespace portofu
