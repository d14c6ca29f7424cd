#pragma once
// Outcome of a call that an application makes of the engine; lib/ turns it into the API's return code.

#include <cstdint>

namespace portofu {

enum class Status : std::uint8_t {
  kOk,
  kArgInvalid,   ///< The caller's mistake.
  kNoSpace,      ///< No memory, or a limit of the interface is reached.
  kInUse,        ///< Something still refers to the object.
  kListTooLong,  ///< Limits::max_list_size.
};

}  // namespace portofu
