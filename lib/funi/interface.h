#pragma once
// The interface: its registers, and the units that move packets. @spec thesis, 3, 4.2, 5.2

#include <funi.h>

#include <array>
#include <cstdint>
#include <unordered_map>

#include "lib/funi/address_map.h"
#include "lib/funi/job.h"
#include "lib/funi/packet.h"
#include "lib/funi/port.h"
#include "lib/funi/undelivered_cache.h"

/// Behind the handle of funi.h.
struct funi_interface {
 public:
  /// @return FUNI_SUCCESS or an error, then it is of no use
  int open(const funi_options_t& options);

  int read(funi_register_t which, std::uint32_t* value);
  int write(funi_register_t which, std::uint32_t value, bool privileged);
  int wait(std::uint32_t timeout_ms);
  int take_fault(funi_fault_t* fault);

  funi_address_t address() const { return port_.address(); }
  void set_route(std::uint32_t node, const funi_address_t& address) { routes_[node] = address; }
  std::uint32_t map(void* start, std::size_t bytes) { return memory_.add(start, bytes); }
  int unmap(std::uint32_t address);
  std::uint32_t address_of(const void* start, std::size_t bytes) const { return memory_.address_of(start, bytes); }
  const funi_counts_t& counts() const { return counts_; }

  /// Works until all that was sent has been accepted. @return whether it has
  bool flush(std::uint32_t timeout_ms);

  /// Who started it, if anybody has.
  portofu::funi::Job& job() { return job_; }

 private:
  using Traffic = portofu::funi::Traffic;

  struct Queue {
    std::uint32_t base = 0;
    std::uint32_t head = 0;
    std::uint32_t tail = 0;
  };
  struct ReceiveQueue : Queue {
    std::uint32_t landed = 0;  ///< Slots up to here have packets; those from `head` on have to be delivered.
    std::uint32_t armed = 0;   ///< Slots up to here are the network's.
  };

  // interface.cpp: registers
  std::uint32_t control() const;
  std::uint32_t* queue_register(funi_register_t which);
  std::uint32_t value_of(funi_register_t which);
  bool has_changed_since_read();
  int write_control(std::uint32_t value, bool privileged);
  int write_system(funi_register_t which, std::uint32_t value);
  int write_base(funi_register_t which, std::uint32_t value);
  int write_mask(std::uint32_t value);
  int write_end(funi_register_t which, std::uint32_t value, bool privileged);
  bool are_queues_mapped(bool send, bool receive) const;
  bool is_receive_ready() const;
  void note(int error, std::uint32_t node, std::uint32_t address);
  int fault_code() const { return fault_.error; }
  /// @return whether anything came
  bool work(std::uint32_t timeout_ms = 0);

  // units.cpp: the retrieval, dispatch and delivery units
  std::uint32_t* slot_of(const Queue& queue, std::uint32_t index) const;
  void retrieve();
  bool retrieve_one(Traffic traffic);
  int fill_line(const std::uint32_t* slot, portofu::funi::Line* line);
  int fill_transfer(const std::uint32_t* slot, portofu::funi::Line* line);
  void dispatch();
  bool take_events(std::uint32_t timeout_ms);
  void take_answer(const portofu::funi::Port::Event& event);
  void take_arrival(const portofu::funi::Port::Event& event);
  void arm_slots(Traffic traffic);
  void deliver(Traffic traffic);
  bool deliver_one(std::uint32_t* slot);
  void change_group(std::uint32_t group);

  portofu::funi::UndeliveredCache cache_;
  portofu::funi::AddressMap memory_;
  std::unordered_map<std::uint32_t, funi_address_t> routes_;
  std::array<Queue, portofu::funi::kClasses> send_;
  std::array<ReceiveQueue, portofu::funi::kClasses> receive_;
  std::uint32_t modes_ = FUNI_CSQM | FUNI_CRQM;  ///< Bits of CNTL that somebody sets: the others follow.
  std::uint32_t mask_ = 1;
  std::uint32_t group_ = 0;
  std::uint32_t node_ = 0;
  std::uint32_t largest_queue_ = 0;
  funi_fault_t fault_{};
  funi_counts_t counts_{};
  std::array<std::uint32_t, FUNI_REGISTERS> read_values_{};  ///< What the program was told last.
  std::uint32_t was_read_ = 0;  ///< By register, since the program has waited last, or has written it.
  portofu::funi::Job job_;
  portofu::funi::Port port_;  ///< Last: its end comes first, and the network leaves the memory of the others alone.
};
