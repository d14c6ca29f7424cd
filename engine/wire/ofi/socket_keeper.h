#pragma once
// Whoever waits for the fabric can wait for another socket of this process, too, that other nodes talk to.

#include <functional>

namespace portofu {

class SocketKeeper {
 public:
  virtual ~SocketKeeper() = default;

  /// Whether attend may be called: the fabric is open.
  virtual bool is_open() const = 0;

  /// From now on wait_fd is readable when `fd` is, too, and `handle` is called on duty, often enough. Once.
  virtual void attend(int fd, std::function<void()> handle) = 0;
};

}  // namespace portofu
