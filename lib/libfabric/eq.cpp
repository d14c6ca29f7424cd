// fi_eq(3): event queues.

#include "lib/libfabric/eq.h"

#include <poll.h>
#include <rdma/fi_errno.h>

#include <chrono>
#include <cstring>
#include <memory>

namespace portofu::fabric {
namespace {

void tell(EventQueueFid& eq) {
  eq.wait.tell();
  eq.sleepers.tell();
}

/// The mutex is held. What says that there is something says so until there is nothing.
void settle(EventQueueFid& eq) {
  if (!eq.events.empty() || !eq.errors.empty()) return;
  eq.wait.settle();
  eq.sleepers.settle();
}

/// The mutex is held.
ssize_t take(EventQueueFid& eq, std::uint32_t* event, void* bytes, std::size_t room, std::uint64_t flags) {
  if (!eq.errors.empty()) return -FI_EAVAIL;
  if (eq.events.empty()) return -FI_EAGAIN;
  const EventQueueFid::Entry& first = eq.events.front();
  if (room < first.bytes.size()) return -FI_ETOOSMALL;
  *event = first.event;
  const auto count = static_cast<ssize_t>(first.bytes.size());
  if (count != 0) std::memcpy(bytes, first.bytes.data(), first.bytes.size());
  if ((flags & FI_PEEK) == 0) {
    eq.events.pop_front();
    settle(eq);
  }
  return count;
}

ssize_t read(fid_eq* fid, std::uint32_t* event, void* bytes, std::size_t room, std::uint64_t flags) {
  auto* eq = object_of<EventQueueFid>(fid);
  const std::lock_guard lock(eq->mutex);
  return take(*eq, event, bytes, room, flags);
}

ssize_t read_error(fid_eq* fid, fi_eq_err_entry* entry, std::uint64_t flags) {
  auto* eq = object_of<EventQueueFid>(fid);
  const std::lock_guard lock(eq->mutex);
  if (eq->errors.empty()) return -FI_EAGAIN;
  // Error data there are none; a buffer for them stays the application's.
  const bool has_buffer = FI_VERSION_GE(eq->fabric->fid.api_version, FI_VERSION(1, 5)) && entry->err_data_size != 0;
  void* const buffer = has_buffer ? entry->err_data : nullptr;
  *entry = eq->errors.front();
  entry->err_data = buffer;
  if ((flags & FI_PEEK) == 0) {
    eq->errors.pop_front();
    settle(*eq);
  }
  return sizeof *entry;
}

ssize_t write(fid_eq* fid, std::uint32_t event, const void* bytes, std::size_t count, std::uint64_t) {
  return guarded([&] {
    object_of<EventQueueFid>(fid)->post_bytes(event, bytes, count);
    return static_cast<ssize_t>(count);
  });
}

/// "If the timeout expires or the calling thread is signaled and no data is available ... -FI_EAGAIN is returned."
ssize_t read_or_wait(fid_eq* fid, std::uint32_t* event, void* bytes, std::size_t room, int timeout_ms,
                     std::uint64_t flags) {
  using Clock = std::chrono::steady_clock;
  auto* eq = object_of<EventQueueFid>(fid);
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const ssize_t result = read(fid, event, bytes, room, flags);
    if (result != -FI_EAGAIN) return result;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (timeout_ms >= 0 && left <= 0) return -FI_EAGAIN;
    pollfd look{eq->sleepers.fd(), POLLIN, 0};
    if (poll(&look, 1, timeout_ms < 0 ? -1 : static_cast<int>(left)) < 0) return -FI_EAGAIN;
  }
}

const char* text_of(fid_eq*, int error, const void*, char* text, std::size_t room) {
  if (text != nullptr && room > 0) {
    std::strncpy(text, fi_strerror(error), room - 1);
    text[room - 1] = 0;
  }
  return fi_strerror(error);
}

int close(fid* object) {
  auto* eq = object_of<EventQueueFid>(object);
  if (eq->users.load() != 0) return -FI_EBUSY;
  eq->wait.leave_set();
  --eq->fabric->users;
  delete eq;
  return 0;
}

int control(fid* object, int command, void* argument) {
  return object_of<EventQueueFid>(object)->wait.control(command, argument);
}

fi_ops object_calls = {sizeof(fi_ops), close, refuse_bind, control, refuse_ops, NotThere{}, NotThere{}};
fi_ops_eq calls = {sizeof(fi_ops_eq), read, read_error, write, read_or_wait, text_of};

}  // namespace

void EventQueueFid::post_bytes(std::uint32_t event, const void* bytes, std::size_t count) {
  const auto* first = static_cast<const std::byte*>(bytes);
  const std::lock_guard lock(mutex);
  events.push_back({event, std::vector<std::byte>(first, first + count)});
  tell(*this);
}

bool EventQueueFid::has_events() {
  const std::lock_guard lock(mutex);
  settle(*this);
  return !events.empty() || !errors.empty();
}

void EventQueueFid::post(std::uint32_t event, const fi_eq_entry& entry) { post_bytes(event, &entry, sizeof entry); }

void EventQueueFid::post_error(const fi_eq_err_entry& entry) {
  const std::lock_guard lock(mutex);
  errors.push_back(entry);
  tell(*this);
}

int open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** opened, void* context) {
  return guarded([&] {
    if (attr != nullptr && (attr->flags & ~std::uint64_t{FI_WRITE | FI_AFFINITY}) != 0) return -FI_EBADFLAGS;
    auto eq = std::make_unique<EventQueueFid>();
    eq->fid.fid = {FI_CLASS_EQ, context, &object_calls};
    int result = eq->sleepers.open(FI_WAIT_FD, nullptr, nullptr);
    if (result == 0 && attr != nullptr) result = eq->wait.open(attr->wait_obj, attr->wait_set, &eq->fid.fid);
    if (result != 0) return result;
    eq->fabric = object_of<Fabric>(fabric);
    ++eq->fabric->users;
    eq->fid.ops = &calls;
    *opened = &eq.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
