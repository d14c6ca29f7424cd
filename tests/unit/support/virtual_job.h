#pragma once
// The memory of a job in virtual time, and a coordinator that a test plays itself.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>

#include "engine/wire/sim/virtual_clock.h"
#include "tests/support/eventually.h"

namespace portofu {

class VirtualJob {
 public:
  static constexpr std::uint64_t kPutPs = 100;
  static constexpr std::uint64_t kGetPs = 200;
  static constexpr std::uint64_t kAtomicPs = 300;
  static constexpr std::uint64_t kBarrierPs = 400;
  static constexpr std::uint64_t kPollPs = 10;
  static constexpr std::uint64_t kEmptyPollPs = 4;

  explicit VirtualJob(std::uint32_t ranks) : bytes_(virtual_file_bytes(ranks)), fd_(memfd_create("virtual-job", 0)) {
    if (ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) ADD_FAILURE() << "no memory";
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    header_ = static_cast<VirtualHeader*>(mapped);
    header_->magic = kVirtualMagic;
    header_->version = kVirtualVersion;
    header_->page_bytes = sizeof(VirtualPage);
    header_->rank_count = ranks;
    header_->coordinator = static_cast<std::uint32_t>(getpid());
    header_->poll_ps = kPollPs;
    header_->empty_poll_ps = kEmptyPollPs;
    header_->call_ps[0] = kPutPs;
    header_->call_ps[1] = kGetPs;
    header_->call_ps[2] = kAtomicPs;
    header_->call_ps[3] = kBarrierPs;
  }
  ~VirtualJob() {
    munmap(header_, bytes_);
    close(fd_);
  }
  VirtualJob(const VirtualJob&) = delete;
  VirtualJob& operator=(const VirtualJob&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  VirtualHeader& header() const { return *header_; }
  VirtualPage& page(std::uint32_t rank = 0) const { return *virtual_page(header_, rank); }
  VirtualState state(std::uint32_t rank = 0) const { return static_cast<VirtualState>(page(rank).state.load()); }
  int fd() const { return fd_; }

  /// Waits until a rank has got into a state.
  bool await(VirtualState wanted, std::uint32_t rank = 0) const {
    return eventually([&] { return state(rank) == wanted; });
  }
  void grant(std::uint64_t time_ps, std::uint64_t horizon_ps = kNeverPs, std::uint32_t rank = 0) const {
    VirtualPage& own = page(rank);
    own.granted_ps.store(time_ps);
    own.horizon_ps.store(horizon_ps);
    own.state.store(static_cast<std::uint32_t>(VirtualState::kRunning));
    own.turn.fetch_add(1);
    virtual_wake(own.turn);
    virtual_wake(own.state);
  }
  void deliver(const VirtualDelivery& delivery, std::uint32_t rank = 0) const {
    VirtualPage& own = page(rank);
    own.delivery = delivery;
    own.delivery_count.fetch_add(1);
    own.nic_bell.fetch_add(1);
    virtual_wake(own.nic_bell);
  }
  bool has_taken_all(std::uint32_t rank = 0) const {
    const VirtualPage& own = page(rank);
    return eventually([&] { return own.deliveries_taken.load() == own.delivery_count.load(); });
  }

 private:
  std::size_t bytes_;
  int fd_;
  VirtualHeader* header_ = nullptr;
};

/// Has a turn that nothing else ends.
inline void begin(VirtualJob& job, VirtualClock& clock) {
  std::thread coordinator([&] {
    if (job.await(VirtualState::kWaiting)) job.grant(1000);
  });
  clock.wait(1000);
  coordinator.join();
}

}  // namespace portofu
