#pragma once
// Which engine of the process something goes to that may be on any: a control queue, a domain. Each frontend has a
// choice of its own.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "engine/observe/log.h"
#include "engine/run/process_engine.h"

namespace portofu {

/// Not thread-safe.
class LaneChoice {
 public:
  /// The engine with the fewest users, opened if need be. Where one cannot be opened there are fewer from then on,
  /// which is said.
  /// @param call   of the application
  /// @param users  what is on each engine
  /// @param open   bool(std::uint32_t number, std::string* why): whether that engine is open now; not asked for the
  /// first
  /// @pre the caller has a reference to the first
  /// @return its number
  template <class Open>
  std::uint32_t choose(const char* call, const std::array<std::uint32_t, kMostEngines>& users, Open&& open) {
    for (;;) {
      const auto end = users.begin() + std::min(most_process_engines(), most_);
      const auto number = static_cast<std::uint32_t>(std::min_element(users.begin(), end) - users.begin());
      std::string why;
      if (number == 0 || open(number, &why)) return number;
      log_warning("%s goes on with %u %s: %s", call, number, number == 1 ? "lane" : "lanes", why.c_str());
      most_ = number;
    }
  }

 private:
  std::uint32_t most_ = kMostEngines;  ///< Those from here on could not be opened.
};

}  // namespace portofu
