#pragma once
// The job key of processes that nobody gave one: the first process of a user on a node draws it, and keeps it where the
// segments are, in a file that only this user can read. So processes of a user that are started by hand meet, and those
// of others do not.

#include <cstdint>
#include <string>

namespace portofu {

/// @param directory  of shared memory
/// @param why        a sentence for people on failure
/// @return the key, the same for all processes of this effective user; 0 if there is none: the file cannot be made, or
///         is somebody else's, or others may read it
std::uint32_t find_user_key(const std::string& directory, std::string* why);

/// @return path of the file for this effective user; the names of segments begin otherwise
std::string user_key_path(const std::string& directory);

}  // namespace portofu
