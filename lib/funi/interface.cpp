#include "lib/funi/interface.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

using namespace portofu::funi;

namespace {

// "Bits 0, 1, 2 and 6 are privileged control bits"; of the others a program sets these.
constexpr std::uint32_t kUserModes = FUNI_CRQM | FUNI_CSQM;
constexpr std::uint32_t kSystemModes = kUserModes | FUNI_MERR | FUNI_CTXM | FUNI_DRAIN;
constexpr std::uint32_t kReset = 1u << 1;

constexpr std::uint32_t kDefaultQueue = 256;
constexpr std::uint32_t kLargestQueue = 1u << 16;
constexpr std::uint32_t kDrainQueue = FUNI_DRAIN_SLOTS;  ///< Every interface can drain.

bool is_one_of(funi_register_t which, funi_register_t first) { return which >= first && which < first + 4; }

/// Of the four registers of a kind, those of a class and of a direction.
bool is_of_request(funi_register_t which) { return (which & 1) != 0; }
bool is_of_receive_queue(funi_register_t which) { return (which & 2) != 0; }
static_assert((FUNI_RPSQ_BASE & 3) == 0 && FUNI_RQSQ_BASE == FUNI_RPSQ_BASE + 1 &&
              FUNI_RPRQ_BASE == FUNI_RPSQ_BASE + 2 && FUNI_RPSQ_HD == 8 && FUNI_RPSQ_TL == 12 && FUNI_REGISTERS == 16);

}  // namespace

int funi_interface::open(const funi_options_t& options) {
  largest_queue_ = options.largest_queue == 0 ? kDefaultQueue : options.largest_queue;
  const bool is_good = options.group < FUNI_GROUPS && options.group % kContexts != kContexts - 1 &&
                       options.node < FUNI_NODES && largest_queue_ <= kLargestQueue && largest_queue_ >= 2 &&
                       std::has_single_bit(largest_queue_);
  if (!is_good) return FUNI_ERR_ARGUMENT;
  largest_queue_ = std::max(largest_queue_, kDrainQueue);
  node_ = options.node;
  auto& lines = cache_.memory();
  if (!port_.open(&lines, sizeof lines, largest_queue_)) return FUNI_ERR_NETWORK;
  change_group(options.group);
  return fault_code();
}

/// Modes as they were set, and what has come of them.
std::uint32_t funi_interface::control() const {
  std::uint32_t value = modes_;
  const bool is_switching = (modes_ & FUNI_CTXM) != 0;
  if (is_switching) value |= FUNI_CTXR1_PRIME | (cache_.has_outstanding() ? 0u : FUNI_CTXR1);
  bool is_drained = true;
  for (std::size_t i = 0; i < kClasses; ++i) {
    is_drained =
        is_drained && port_.inlet(static_cast<Traffic>(i)).held() == 0 && receive_[i].landed == receive_[i].head;
  }
  if (is_switching && is_drained) value |= FUNI_CTXR2;
  if ((modes_ & FUNI_CSQM) != 0) value |= FUNI_CSQR;
  if ((modes_ & FUNI_CRQM) != 0 && is_receive_ready()) value |= FUNI_CRQR;
  return value;
}

bool funi_interface::is_receive_ready() const {
  for (const ReceiveQueue& queue : receive_) {
    if (queue.landed != queue.head || queue.armed != queue.landed) return false;
  }
  return true;
}

std::uint32_t* funi_interface::queue_register(funi_register_t which) {
  const std::size_t traffic = is_of_request(which) ? kRequest : kReply;
  Queue& queue = is_of_receive_queue(which) ? receive_[traffic] : send_[traffic];
  if (is_one_of(which, FUNI_RPSQ_BASE)) return &queue.base;
  return is_one_of(which, FUNI_RPSQ_HD) ? &queue.head : &queue.tail;
}

std::uint32_t funi_interface::value_of(funi_register_t which) {
  switch (which) {
    case FUNI_CNTL: return control();
    case FUNI_QMASK: return mask_;
    case FUNI_GID: return group_;
    case FUNI_TICKET: return cache_.ticket();
    default: return *queue_register(which);
  }
}

int funi_interface::read(funi_register_t which, std::uint32_t* value) {
  if (static_cast<unsigned>(which) >= FUNI_REGISTERS || value == nullptr) return FUNI_ERR_ARGUMENT;
  ++(which == FUNI_RPRQ_HD || which == FUNI_RQRQ_HD ? counts_.cached_reads : counts_.register_reads);
  work();
  *value = value_of(which);
  read_values_[which] = *value;
  was_read_ |= 1u << which;
  return fault_code();
}

int funi_interface::write(funi_register_t which, std::uint32_t value, bool privileged) {
  if (static_cast<unsigned>(which) >= FUNI_REGISTERS) return FUNI_ERR_ARGUMENT;
  ++counts_.register_writes;
  was_read_ &= ~(1u << which);
  work();
  int error = FUNI_SUCCESS;
  if (which == FUNI_CNTL) {
    error = write_control(value, privileged);
  } else if (which == FUNI_GID || which == FUNI_TICKET) {
    error = privileged ? write_system(which, value) : FUNI_ERR_PRIVILEGE;
  } else if (which == FUNI_QMASK) {
    error = write_mask(value);
  } else if (is_one_of(which, FUNI_RPSQ_BASE)) {
    error = write_base(which, value);
  } else {
    error = write_end(which, value, privileged);
  }
  if (error != FUNI_SUCCESS) return error;
  work();
  return fault_code();
}

int funi_interface::write_control(std::uint32_t value, bool privileged) {
  if (privileged && (value & kReset) != 0) return FUNI_ERR_ARGUMENT;  // A program's is ignored, as those below.
  const std::uint32_t may_set = privileged ? kSystemModes : kUserModes;
  // MERR is cleared by the system and set by the interface.
  const std::uint32_t wanted = ((value & may_set) | (modes_ & ~may_set)) & (modes_ | ~FUNI_MERR);
  const bool starts_send = (modes_ & FUNI_CSQM) != 0 && (wanted & FUNI_CSQM) == 0;
  const bool starts_receive = (modes_ & FUNI_CRQM) != 0 && (wanted & FUNI_CRQM) == 0;
  if (!are_queues_mapped(starts_send, starts_receive)) return FUNI_ERR_ADDRESS;
  if ((modes_ & ~wanted & FUNI_MERR) != 0 && fault_.error == FUNI_ERR_ADDRESS) fault_ = {};
  modes_ = wanted;
  for (std::size_t i = 0; i < kClasses; ++i) {
    Inlet& inlet = port_.inlet(static_cast<Traffic>(i));
    inlet.reject_all((modes_ & FUNI_CTXM) != 0);
    // Slots of the queue that is switched out, or changed, must not be filled any more.
    if ((modes_ & (FUNI_CTXM | FUNI_CRQM)) != 0) inlet.disarm();
    receive_[i].armed = (receive_[i].landed + static_cast<std::uint32_t>(inlet.armed())) & mask_;
  }
  return FUNI_SUCCESS;
}

bool funi_interface::are_queues_mapped(bool send, bool receive) const {
  const std::size_t bytes = std::size_t{mask_ + 1} * kSlotBytes;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (send && memory_.find(send_[i].base, bytes) == nullptr) return false;
    if (receive && memory_.find(receive_[i].base, bytes) == nullptr) return false;
  }
  return true;
}

int funi_interface::write_system(funi_register_t which, std::uint32_t value) {
  const bool may = (control() & FUNI_CTXR1) != 0;
  if (!may) return FUNI_ERR_BUSY;
  if (which == FUNI_TICKET) {
    if (value > 0xffu) return FUNI_ERR_ARGUMENT;
    cache_.set_ticket(value);
    return FUNI_SUCCESS;
  }
  if (value >= FUNI_GROUPS) return FUNI_ERR_ARGUMENT;
  change_group(value);
  return FUNI_SUCCESS;
}

int funi_interface::write_mask(std::uint32_t value) {
  const bool is_good = value >= 1 && value < largest_queue_ && std::has_single_bit(value + 1);
  if (!is_good) return FUNI_ERR_ARGUMENT;
  // The system may: with CTXR1 nothing is retrieved, and the receive queues have no armed slots.
  const std::uint32_t now = control();
  const bool has_halted = (now & FUNI_CSQR) != 0 || (now & FUNI_CTXR1) != 0;
  if (!has_halted || !is_receive_ready() || (now & (FUNI_CRQM | FUNI_CTXM)) == 0) return FUNI_ERR_BUSY;
  mask_ = value;
  for (std::size_t i = 0; i < kClasses; ++i) {
    for (std::uint32_t* end : {&send_[i].head, &send_[i].tail, &receive_[i].head, &receive_[i].tail}) *end &= mask_;
    receive_[i].landed = receive_[i].armed = receive_[i].head;
  }
  return FUNI_SUCCESS;
}

int funi_interface::write_base(funi_register_t which, std::uint32_t value) {
  const std::uint32_t now = control();
  const bool has_halted = is_of_receive_queue(which) ? is_receive_ready() && (now & (FUNI_CRQM | FUNI_CTXM)) != 0
                                                     : (now & FUNI_CSQR) != 0 || (now & FUNI_CTXR1) != 0;
  if (!has_halted) return FUNI_ERR_BUSY;
  const std::size_t traffic = is_of_request(which) ? kRequest : kReply;
  // "Each address must be 32-word aligned, or will be automatically truncated" (3.1.2).
  const std::uint32_t base = value & ~(kSlotBytes - 1);
  if (is_of_receive_queue(which)) {
    receive_[traffic] = {};
    receive_[traffic].base = base;
  } else {
    send_[traffic] = {base, 0, 0};
  }
  return FUNI_SUCCESS;
}

int funi_interface::write_end(funi_register_t which, std::uint32_t value, bool privileged) {
  if (value > mask_) return FUNI_ERR_ARGUMENT;
  const bool is_head = is_one_of(which, FUNI_RPSQ_HD);
  // The producer moves the head, the consumer the tail: the program is both, of two queues each.
  const bool is_programs = is_head != is_of_receive_queue(which);
  if (!is_programs && !privileged) return FUNI_ERR_PRIVILEGE;
  ReceiveQueue& queue = receive_[is_of_request(which) ? kRequest : kReply];
  if (is_of_receive_queue(which) && is_head) {
    if (!is_receive_ready()) return FUNI_ERR_BUSY;
    queue.landed = queue.armed = value;
  }
  // A tail goes as far as the head: what lies beyond has not been delivered.
  const bool is_beyond =
      is_of_receive_queue(which) && is_programs && ((value - queue.tail) & mask_) > ((queue.head - queue.tail) & mask_);
  if (is_beyond && !privileged) return FUNI_ERR_ARGUMENT;
  *queue_register(which) = value;
  return FUNI_SUCCESS;
}

int funi_interface::unmap(std::uint32_t address) {
  AddressMap rest = memory_;
  if (!rest.remove(address)) return FUNI_ERR_ADDRESS;
  const std::size_t bytes = std::size_t{mask_ + 1} * kSlotBytes;
  for (const ReceiveQueue& queue : receive_) {
    // The network writes there.
    if (queue.armed != queue.landed && rest.find(queue.base, bytes) == nullptr) return FUNI_ERR_BUSY;
  }
  memory_ = rest;
  return FUNI_SUCCESS;
}

void funi_interface::note(int error, std::uint32_t node, std::uint32_t address) {
  if (fault_.error == FUNI_SUCCESS) fault_ = {error, node, address};
}

int funi_interface::take_fault(funi_fault_t* fault) {
  *fault = fault_;
  // One that lasts stays.
  if ((modes_ & FUNI_MERR) == 0 || fault_.error != FUNI_ERR_ADDRESS) fault_ = {};
  return FUNI_SUCCESS;
}

bool funi_interface::work(std::uint32_t timeout_ms) {
  const bool any = take_events(timeout_ms);
  retrieve();
  return any;
}

/// Each register that is read may take in what changes another one, which was read before. Whoever sleeps then would
/// sleep over it.
bool funi_interface::has_changed_since_read() {
  std::uint32_t left = std::exchange(was_read_, 0);
  for (; left != 0; left &= left - 1) {
    const auto which = static_cast<funi_register_t>(std::countr_zero(left));
    if (value_of(which) != read_values_[which]) return true;
  }
  return false;
}

int funi_interface::wait(std::uint32_t timeout_ms) {
  const bool has_changed = has_changed_since_read();
  bool any = work() || has_changed;
  if (fault_code() != FUNI_SUCCESS) return fault_code();
  if (!any && timeout_ms != 0) any = work(timeout_ms);
  if (fault_code() != FUNI_SUCCESS) return fault_code();
  return any ? FUNI_SUCCESS : FUNI_ERR_TIMEOUT;
}

bool funi_interface::flush(std::uint32_t timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto is_empty = [&] {
    return send_[kReply].head == send_[kReply].tail && send_[kRequest].head == send_[kRequest].tail &&
           cache_.ticket() == 0xffu;
  };
  work();
  while (!is_empty() && (modes_ & FUNI_MERR) == 0 && std::chrono::steady_clock::now() < end) {
    fault_ = {};
    wait(1);
  }
  return is_empty();
}
