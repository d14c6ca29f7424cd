#pragma once
// Counters of the engine of this process, for tests that want to know which way something went.

#include <cstdint>
#include <string>

#include "engine/observe/counters.h"
#include "engine/run/process_engine.h"

namespace portofu {

inline std::uint64_t engine_counter(Counter which) {
  OpenError error = OpenError::kNone;
  std::string why;
  Engine* engine = hold_process_engine(0, &error, &why);
  std::uint64_t count = 0;
  {
    const Engine::Duty duty(*engine);
    count = duty.core().counters.get(which);
  }
  release_process_engine();
  return count;
}

}  // namespace portofu
