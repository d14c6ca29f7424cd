#pragma once
// The CQs and barrier gates that this process has, and on which of its engines (engine/run/process_engine.h) each of
// them runs: its lane. All VCQs of a CQ are on one engine and share its duty, and so are all gates of a TNI, which
// signals connect; threads with what is on different ones have nothing in common. The first engine has Portals, and
// what comes first here; later ones go where the fewest are, so there are no more engines than need be. Gates and the
// first CQ of a TNI go together: who uses one is likely to use the other.

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

/// The gates of a TNI, which were allocated in so many sets.
struct OwnGates {
  std::uint32_t tni;
  std::uint32_t engine;
  std::uint32_t sets;
};

/// The list, held: by whoever makes or frees a VCQ or VBGs, before and while it has the duty of an engine. Any thread.
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

  /// A set of gates of a TNI is there, or is gone.
  void add_gates(std::uint32_t tni, std::uint32_t engine);
  void remove_gates(std::uint32_t tni);

  /// The engine that the next CQ of a TNI goes to. Opens it if need be, and does with those that are open if that
  /// fails.
  /// @param number  set to which one it is
  /// @return nullptr if there is none, or a handler has interrupted a call of this thread in it
  Engine* choose_engine(const char* call, std::uint32_t tni, std::uint32_t* number);

  /// The same for gates: where those of the TNI are already, or will be.
  Engine* choose_gate_engine(const char* call, std::uint32_t tni, std::uint32_t* number);

  /// The child of a fork has none.
  static void forget_in_child();

 private:
  OwnGates* gates_of(std::uint32_t tni) const;
  Engine* choose_emptiest(const char* call, std::uint32_t* number);

  const NoCancellation whole_;
  const NoSignals unbroken_;
  const bool held_;
};

}  // namespace portofu::utofu
