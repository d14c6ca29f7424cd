#pragma once
// What an application sleeps at while nothing happens: each queue and each counter has one, and a wait set is one for
// several of them. @spec fi_poll(3), fi_cq(3), fi_cntr(3), fi_eq(3)

#include <pthread.h>
#include <rdma/fi_eq.h>

#include <memory>
#include <thread>

#include "lib/libfabric/domain.h"

namespace portofu::fabric {

/// Tells at a condition what comes at a file descriptor. The engine never takes the application's mutex: it might be
/// held by a thread that waits for the duty.
class ConditionBridge {
 public:
  ConditionBridge();
  ~ConditionBridge();
  ConditionBridge(const ConditionBridge&) = delete;
  ConditionBridge& operator=(const ConditionBridge&) = delete;

  /// @param fd  an eventfd, or an epoll set of some
  /// @return false if no thread can be made, or there is no file descriptor left
  bool start(int fd);
  fi_mutex_cond names() { return {&mutex_, &condition_}; }

 private:
  void run();

  pthread_mutex_t mutex_;
  pthread_cond_t condition_;
  int stop_fd_ = -1;
  int edge_fd_ = -1;  ///< Tells each event of the other one once.
  std::thread thread_;
};

struct WaitSet;

/// Of one queue or counter.
class WaitObject {
 public:
  WaitObject() = default;
  ~WaitObject();
  WaitObject(const WaitObject&) = delete;
  WaitObject& operator=(const WaitObject&) = delete;

  /// @param set    of FI_WAIT_SET
  /// @param owner  the queue or counter
  /// @return 0 | -FI_ENOSYS | -FI_EINVAL | -FI_EMFILE
  int open(fi_wait_obj kind, fid_wait* set, fid* owner);

  /// The owner is about to close: a set that somebody waits at asks it no more.
  void leave_set();

  /// FI_GETWAIT and FI_GETWAITOBJ of fi_control.
  int control(int command, void* argument);

  /// Where the next event is to be told; -1: nowhere.
  int fd() const { return fd_; }
  /// Something happened.
  void tell() const;
  /// What happened has been seen.
  void settle() const;

 private:
  fi_wait_obj kind_ = FI_WAIT_NONE;
  int fd_ = -1;
  WaitSet* set_ = nullptr;
  fid* owner_ = nullptr;
  std::unique_ptr<ConditionBridge> bridge_;  ///< Once somebody asks for the condition.
};

/// Whether nobody should sleep at an object: something has happened that has not been seen. Else the next thing that
/// happens is told.
bool has_news_or_arms(fid* object);

/// The functions of fi_ops_fabric.
int open_wait(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** opened);
int try_wait(fid_fabric* fabric, fid** fids, int count);

}  // namespace portofu::fabric
