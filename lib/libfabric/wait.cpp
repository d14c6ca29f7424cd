// fi_poll(3): wait objects, wait sets and fi_trywait.

#include "lib/libfabric/wait.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "engine/door/process.h"
#include "lib/libfabric/cntr.h"
#include "lib/libfabric/cq.h"
#include "lib/libfabric/eq.h"

namespace portofu::fabric {
namespace {

/// A thread is about to sleep at what has no news.
void leave_to_progress_thread(const fid* object);

}  // namespace

/// Its file descriptor is ready when that of a member is.
struct WaitSet {
  fid_wait fid{};
  Inheritable inherited{fid.fid};
  Fabric* fabric = nullptr;
  fi_wait_obj kind = FI_WAIT_UNSPEC;
  int epoll_fd = -1;
  std::mutex mutex;  ///< Guards what follows.
  std::vector<struct fid*> members;
  std::unique_ptr<ConditionBridge> bridge;

  /// Throws bad_alloc without memory.
  bool add(struct fid* member, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    const std::lock_guard lock(mutex);
    members.push_back(member);
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) return true;
    members.pop_back();
    return false;
  }
  /// The end of the descriptor would not end the watch: children of a fork may have it, too.
  void remove(const struct fid* member, int fd) {
    const std::lock_guard lock(mutex);
    std::erase(members, member);
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, nullptr);
  }
  bool has_news() {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(members, has_news_or_arms);
  }
  /// A thread is about to sleep.
  void leave() {
    const std::lock_guard lock(mutex);
    std::ranges::for_each(members, leave_to_progress_thread);
  }
};

ConditionBridge::ConditionBridge() {
  pthread_mutex_init(&mutex_, nullptr);
  pthread_cond_init(&condition_, nullptr);
}

ConditionBridge::~ConditionBridge() {
  const NoCancellation whole;
  if (thread_.joinable()) {
    eventfd_write(stop_fd_, 1);
    thread_.join();
  }
  for (const int fd : {stop_fd_, edge_fd_})
    if (fd >= 0) close(fd);
  pthread_cond_destroy(&condition_);
  pthread_mutex_destroy(&mutex_);
}

bool ConditionBridge::start(int fd) {
  stop_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  edge_fd_ = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN | EPOLLET, {.fd = fd}};
  epoll_event end{EPOLLIN, {.fd = stop_fd_}};
  if (stop_fd_ < 0 || edge_fd_ < 0 || epoll_ctl(edge_fd_, EPOLL_CTL_ADD, fd, &event) != 0 ||
      epoll_ctl(edge_fd_, EPOLL_CTL_ADD, stop_fd_, &end) != 0)
    return false;
  try {
    const NoSignals inherited;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

/// Each event is told once, and stays where it is for who waits there: who looks next settles it.
void ConditionBridge::run() {
  epoll_event event{};
  for (;;) {
    const int count = epoll_wait(edge_fd_, &event, 1, -1);
    if (count < 0 && errno == EINTR) continue;  // The process was stopped and goes on.
    if (count != 1 || event.data.fd == stop_fd_) return;
    pthread_mutex_lock(&mutex_);
    pthread_cond_broadcast(&condition_);
    pthread_mutex_unlock(&mutex_);
  }
}

namespace {

/// FI_GETWAIT of an object whose events come at a file descriptor.
int get_wait(fi_wait_obj kind, int fd, std::unique_ptr<ConditionBridge>& bridge, void* argument) {
  if (kind == FI_WAIT_FD) {
    *static_cast<int*>(argument) = fd;
    return 0;
  }
  if (kind != FI_WAIT_MUTEX_COND) return -FI_ENODATA;
  if (bridge == nullptr) {
    auto made = std::make_unique<ConditionBridge>();
    if (!made->start(fd)) return -FI_EMFILE;
    bridge = std::move(made);
  }
  *static_cast<fi_mutex_cond*>(argument) = bridge->names();
  return 0;
}

}  // namespace

WaitObject::~WaitObject() {
  const NoCancellation whole;
  bridge_.reset();
  leave_set();
  if (fd_ >= 0) close(fd_);
}

void WaitObject::leave_set() {
  if (set_ != nullptr) std::exchange(set_, nullptr)->remove(owner_, fd_);
}

int WaitObject::open(fi_wait_obj kind, fid_wait* set, fid* owner) {
  if (kind == FI_WAIT_POLLFD) return -FI_ENOSYS;
  const bool is_set = set != nullptr && set->fid.fclass == FI_CLASS_WAIT;
  if (kind > FI_WAIT_POLLFD || (kind == FI_WAIT_SET && !is_set)) return -FI_EINVAL;
  kind_ = kind;
  owner_ = owner;
  if (kind != FI_WAIT_FD && kind != FI_WAIT_MUTEX_COND && kind != FI_WAIT_SET) return 0;
  fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd_ < 0) return -FI_EMFILE;
  if (kind != FI_WAIT_SET) return 0;
  auto& joined = *object_of<WaitSet>(set);
  return guarded([&] {
    if (!joined.add(owner, fd_)) return -FI_ENOMEM;
    set_ = &joined;
    return 0;
  });
}

int WaitObject::control(int command, void* argument) {
  switch (command) {
    case FI_GETWAIT: return guarded([&] { return get_wait(kind_, fd_, bridge_, argument); });
    case FI_GETWAITOBJ: *static_cast<fi_wait_obj*>(argument) = kind_; return 0;
    default: return -FI_ENOSYS;
  }
}

void WaitObject::tell() const {
  if (fd_ >= 0) eventfd_write(fd_, 1);
}

void WaitObject::settle() const {
  eventfd_t count = 0;
  if (fd_ >= 0) eventfd_read(fd_, &count);
}

bool has_news_or_arms(fid* object) {
  switch (object->fclass) {
    case FI_CLASS_CQ: return object_of<CompletionQueue>(object)->has_news_or_arms();
    case FI_CLASS_CNTR: return object_of<CounterFid>(object)->has_news_or_arms();
    case FI_CLASS_EQ: return object_of<EventQueueFid>(object)->has_events();
    case FI_CLASS_WAIT: return object_of<WaitSet>(object)->has_news();
    default: return false;
  }
}

namespace {

void leave_to_progress_thread(const fid* object) {
  switch (object->fclass) {
    case FI_CLASS_CQ: return object_of<const CompletionQueue>(object)->domain->engine->leave_to_progress_thread();
    case FI_CLASS_CNTR: return object_of<const CounterFid>(object)->domain->engine->leave_to_progress_thread();
    default: return;
  }
}

int wait(fid_wait* fid, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  auto* set = object_of<WaitSet>(fid);
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!set->has_news()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (timeout_ms >= 0 && left <= 0) return -FI_ETIMEDOUT;
    set->leave();
    pollfd look{set->epoll_fd, POLLIN, 0};
    poll(&look, 1, timeout_ms < 0 ? -1 : static_cast<int>(left));
  }
  return 0;
}

int close_wait(fid* object) {
  auto* set = object_of<WaitSet>(object);
  {
    const std::lock_guard lock(set->mutex);
    if (!set->members.empty()) return -FI_EBUSY;
  }
  const NoCancellation whole;
  set->bridge.reset();
  close(set->epoll_fd);
  --set->fabric->users;
  delete set;
  return 0;
}

int control_wait(fid* object, int command, void* argument) {
  auto* set = object_of<WaitSet>(object);
  switch (command) {
    case FI_GETWAIT: return guarded([&] { return get_wait(set->kind, set->epoll_fd, set->bridge, argument); });
    case FI_GETWAITOBJ: *static_cast<fi_wait_obj*>(argument) = set->kind; return 0;
    default: return -FI_ENOSYS;
  }
}

fi_ops object_calls = {sizeof(fi_ops), close_wait, refuse_bind, control_wait, refuse_ops, NotThere{}, NotThere{}};
fi_ops_wait calls = {sizeof(fi_ops_wait), wait};

}  // namespace

int open_wait(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** opened) {
  return guarded([&] {
    const fi_wait_attr none{};
    const fi_wait_attr& wanted = attr != nullptr ? *attr : none;
    if (wanted.flags != 0 || wanted.wait_obj > FI_WAIT_POLLFD) return -FI_EINVAL;
    if (wanted.wait_obj == FI_WAIT_SET || wanted.wait_obj == FI_WAIT_POLLFD) return -FI_ENOSYS;
    auto set = std::make_unique<WaitSet>();
    set->kind = wanted.wait_obj;
    set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (set->epoll_fd < 0) return -FI_EMFILE;
    set->fabric = object_of<Fabric>(fabric);
    ++set->fabric->users;
    set->fid.fid = {FI_CLASS_WAIT, nullptr, &object_calls};
    set->fid.ops = &calls;
    *opened = &set.release()->fid;
    return 0;
  });
}

int try_wait(fid_fabric*, fid** fids, int count) {
  if (std::any_of(fids, fids + count, has_news_or_arms)) return -FI_EAGAIN;
  std::for_each(fids, fids + count, [](fid* object) {
    if (object->fclass == FI_CLASS_WAIT) return object_of<WaitSet>(object)->leave();
    leave_to_progress_thread(object);
  });
  return 0;
}

}  // namespace portofu::fabric
