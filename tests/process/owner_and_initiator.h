#pragma once
// A process that owns memory and introduces itself, and others that wait for it before they reach that memory.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "tests/process/own_node.h"
#include "tests/support/eventually.h"

namespace portofu {

/// @tparam End      what a process has of the library; introduce(meeting) tells the others where it is
/// @tparam Meeting  what they tell each other; `ready` is not 0 when the owner has introduced itself
template <class End, class Meeting>
class OwnerAndInitiator : public testing::Test {
 protected:
  OwnerAndInitiator() { setenv("PORTOFU_PEER_CHECK_MS", "20", 1); }
  ~OwnerAndInitiator() override { unsetenv("PORTOFU_PEER_CHECK_MS"); }

  /// A process that introduces itself and then does `rest`.
  std::function<int()> owner(const std::function<int(End&)>& rest) {
    return [this, rest] {
      End end;
      end.introduce(*meeting);
      return leave(rest(end));
    };
  }

  /// A process that waits for the owner and then does `rest`.
  std::function<int()> initiator(const std::function<int(End&)>& rest) {
    return [this, rest] {
      End end;
      return leave(eventually([this] { return meeting->ready != 0; }) ? rest(end) : 93);
    };
  }

  /// A child that returns ends without closing anything; a program ends so.
  static int leave(int status) { std::exit(status); }

  OwnNode node;
  SharedMemory<Meeting> meeting;
};

}  // namespace portofu
