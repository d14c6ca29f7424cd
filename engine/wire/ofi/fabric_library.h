#pragma once
// libfabric, loaded when the first endpoint opens: a process that stays on its node pays neither for it nor for the
// libraries of the providers. Everything else of libfabric is reached through what these calls return.

#include <rdma/fabric.h>

#include <string>

#include "engine/queue/fork_mutex.h"

namespace portofu {

/// The calls of libfabric that are symbols and not entries of an object's table.
struct FabricLibrary {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  /// Loads the library, once in a process; any thread.
  /// @param why  a sentence for people on failure
  /// @return nullptr if there is none, or one of another major version than it was compiled with
  static const FabricLibrary* load(std::string* why);

  /// To be held around load, and while anything of libfabric is opened or closed. A fork by another thread waits until
  /// it is free: libfabric has locks of the whole process, which a child would find locked for ever.
  static ForkMutex& gate();

  /// Has `act` called when the process ends and libfabric is still there: the last time that anything can be sent. The
  /// destructors of libraries, ours too, come after libfabric's own. Any thread; the last one that was named is called.
  static void before_end(void (*act)());

  /// The process is ending, and libfabric may be gone already: what is open is left to the kernel.
  static bool is_ending();
};

}  // namespace portofu
