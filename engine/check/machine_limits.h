#pragma once
// What Fugaku has of that which settings can raise here. @spec uTofu guide, tables 6.2 to 6.4

#include <cstdint>

namespace portofu {

/// One limit of the machine.
struct MachineLimit {
  const char* what;     ///< As findings name it.
  std::uint64_t most;   ///< Largest value that the machine takes.
  const char* section;  ///< Of the guide.
};

inline constexpr MachineLimit kTniLimit{"TNI", 5, "uTofu guide, table 6.2"};
inline constexpr MachineLimit kComponentLimit{"component ID", 7, "uTofu guide, tables 6.3, 6.4"};
inline constexpr MachineLimit kStagLimit{"reserved STag", 255, "uTofu guide, table 6.4"};
inline constexpr MachineLimit kLengthLimit{"length", 16'777'215, "uTofu guide, table 6.4"};
inline constexpr MachineLimit kMtuLimit{"mtu", 1920, "uTofu guide, table 6.4"};
inline constexpr MachineLimit kGapLimit{"gap", 255, "uTofu guide, table 6.4"};

}  // namespace portofu
