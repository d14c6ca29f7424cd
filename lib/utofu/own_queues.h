#pragma once
// The CQs that this process has, and on which of its engines (engine/run/process_engine.h) each of them runs: its lane.
// All VCQs of a CQ are on one engine and share its duty; threads with CQs on different ones have nothing in common. The
// first engine has Portals and the barrier gates, too, and the first CQ; later ones go where the fewest are, so there
// are no more engines than CQs.

#include <vector>

#include "engine/door/tofu.h"
#include "lib/utofu/library.h"

namespace portofu::utofu {

struct OwnQueue {
  std::uint32_t tni;
  std::uint32_t cq;
  std::uint32_t engine;  ///< Number of the engine that it is on.
  ControlQueue* queue;   ///< Its mode and VCQs change on duty, and only while the list is held, too.
};

/// The list, held: by whoever makes or frees a VCQ, before and while it has the duty of an engine. Any thread.
class OwnQueues {
 public:
  OwnQueues();
  ~OwnQueues();
  OwnQueues(const OwnQueues&) = delete;
  OwnQueues& operator=(const OwnQueues&) = delete;

  /// false: this is a signal handler that has interrupted this thread while it held the list. Then it is not to be
  /// used.
  bool is_held() const { return held_; }

  const std::vector<OwnQueue>& all() const;
  std::uint32_t count(std::uint32_t tni, CqMode mode) const;
  void add(const OwnQueue& queue);
  void remove(const ControlQueue& queue);

  /// The engine that the next CQ goes to: that with the fewest. Opens it if need be, and does with those that are open
  /// if that fails.
  /// @param number  set to which one it is
  /// @return nullptr if there is none, or a handler has interrupted a call of this thread in it
  Engine* choose_engine(const char* call, std::uint32_t* number);

  /// The child of a fork has none.
  static void forget_in_child();

 private:
  const NoCancellation whole_;
  const bool held_;
};

}  // namespace portofu::utofu
