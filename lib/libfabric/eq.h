#pragma once
// Event queues of libfabric: what is told of addresses and regions, not of messages. @spec fi_eq(3)

#include <rdma/fi_eq.h>

#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "lib/libfabric/wait.h"

namespace portofu::fabric {

struct EventQueueFid {
  fid_eq fid{};
  Inheritable inherited{fid.fid};
  Fabric* fabric = nullptr;
  Users users{0};
  WaitObject wait;
  WaitObject sleepers;  ///< Of blocking reads.

  struct Entry {
    std::uint32_t event = 0;
    std::vector<std::byte> bytes;
  };

  std::mutex mutex;  ///< Guards what follows.
  std::deque<Entry> events;
  std::deque<fi_eq_err_entry> errors;

  bool has_events();
  void post(std::uint32_t event, const fi_eq_entry& entry);
  void post_error(const fi_eq_err_entry& entry);
  void post_bytes(std::uint32_t event, const void* bytes, std::size_t count);
};

}  // namespace portofu::fabric
