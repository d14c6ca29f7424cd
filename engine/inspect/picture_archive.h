#pragma once
// Pictures on their way from one host to another, between tools of the same build.

#include <string>
#include <string_view>

#include "engine/inspect/explanation.h"

namespace portofu {

/// The looks as bytes.
std::string pack_looks(const Looks& looks);

/// Reads what pack_looks has written, perhaps on another host; times of its clock become those of the clock here.
/// @param text  anything may stand in front, as a login shell says it
/// @return false if it is something else, or of another build
bool unpack_looks(std::string_view text, Looks* looks);

}  // namespace portofu
