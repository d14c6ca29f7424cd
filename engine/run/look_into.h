#pragma once
// Looks of threads that use several engines of a process in turns.

#include <utility>

#include "engine/run/engine.h"

namespace portofu {

/// Which engine the calling thread looked into last.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local Engine* looked_into = nullptr;

/// Engine::poll for a thread that may look into several engines in turns: it does not sleep at one of them while it
/// waits for what comes to another one.
template <class Ask>
bool look_into(Engine& engine, Ask&& ask) {
  const bool turns = std::exchange(looked_into, &engine) != &engine;
  return engine.poll([&](Core& core) {
    if (turns) [[unlikely]]
      engine.note_other_engines_on_duty();
    return ask(core);
  });
}

}  // namespace portofu
