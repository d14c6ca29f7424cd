#pragma once
// What tests of FUNi need: an interface with queues that knows its peers, and calls that write and read slots as a
// program does. Every wait ends after kPatienceMs.

#include <funi.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "../harness/process.h"
#include "tests/support/eventually.h"

namespace conformance {

using Words = std::vector<std::uint32_t>;

inline constexpr std::uint32_t kPatienceMs = 1000 * portofu::kLongestWait.count();

enum class Class : unsigned { kReply = 0, kRequest = 1 };

/// The register of a class, from that of replies.
inline funi_register_t of_class(funi_register_t of_replies, Class traffic) {
  return static_cast<funi_register_t>(of_replies + static_cast<unsigned>(traffic));
}

#define EXPECT_FUNI(call, expected) EXPECT_STREQ(funi_error_name(call), funi_error_name(expected)) << #call
#define ASSERT_FUNI(call) ASSERT_STREQ(funi_error_name(call), "FUNI_SUCCESS") << #call

struct Packet {
  std::uint32_t header;
  Words words;  ///< Behind the header, as many as a notice has, or the header says.
};

/// Memory for four queues, as a program allocates it.
class QueueMemory {
 public:
  explicit QueueMemory(std::uint32_t slots) : bytes_(std::size_t{4} * slots * 4 * FUNI_SLOT_WORDS) {
    words_.reset(static_cast<std::uint32_t*>(std::aligned_alloc(4096, (bytes_ + 4095) / 4096 * 4096)));
    std::fill_n(words_.get(), bytes_ / 4, 0xdeadbeefu);
  }
  std::uint32_t* words() const { return words_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::uint32_t* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::uint32_t, Free> words_;
};

class Node {
 public:
  /// Opens the interface. Peers are known after meet().
  explicit Node(std::uint32_t number, std::uint32_t group = 1, std::uint32_t largest_queue = 0) : number_(number) {
    const funi_options_t options{group, number, largest_queue};
    const int error = funi_open(&options, &ni_);
    EXPECT_FUNI(error, FUNI_SUCCESS);
    if (error != FUNI_SUCCESS) throw Stopped{};
  }
  /// Of a process of a test: its rank is its number, and there is a route to every process.
  explicit Node(Process& self, std::uint32_t slots, std::uint32_t group = 1)
      : Node(static_cast<std::uint32_t>(self.rank()), group) {
    funi_address_t mine{};
    funi_get_address(ni_, &mine);
    const auto all = self.share(mine);
    for (std::uint32_t i = 0; i < all.size(); ++i) funi_set_route(ni_, i, &all[i]);
    start_queues(slots);
    self.barrier();
  }
  ~Node() { funi_close(ni_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  operator funi_t() const { return ni_; }
  std::uint32_t number() const { return number_; }
  std::uint32_t slots() const { return slots_; }

  /// As 3.2.1 does it: mask and bases while the queues stand, then they go.
  void start_queues(std::uint32_t slots) {
    memory_ = std::make_unique<QueueMemory>(slots);
    slots_ = slots;
    std::uint32_t address = 0;
    EXPECT_FUNI(funi_map(ni_, memory_->words(), memory_->bytes(), &address), FUNI_SUCCESS);
    halt_queues();
    write(FUNI_QMASK, slots - 1);
    for (unsigned i = 0; i < 4; ++i) write(base_register(i), address + i * slots * 4 * FUNI_SLOT_WORDS);
    head_ = {};
    tail_ = {};
    write(FUNI_CNTL, 0);
  }
  void halt_queues() {
    write(FUNI_CNTL, FUNI_CSQM | FUNI_CRQM);
    expect_soon([&] { return (read(FUNI_CNTL) & (FUNI_CSQR | FUNI_CRQR)) == (FUNI_CSQR | FUNI_CRQR); });
  }

  std::uint32_t read(funi_register_t which) {
    std::uint32_t value = 0;
    EXPECT_FUNI(funi_read(ni_, which, &value), FUNI_SUCCESS);
    return value;
  }
  void write(funi_register_t which, std::uint32_t value) { EXPECT_FUNI(funi_write(ni_, which, value), FUNI_SUCCESS); }
  void write_privileged(funi_register_t which, std::uint32_t value) {
    EXPECT_FUNI(funi_write_privileged(ni_, which, value), FUNI_SUCCESS);
  }

  std::uint32_t* slot(unsigned queue, std::uint32_t index) {
    return memory_->words() + (queue * slots_ + index) * FUNI_SLOT_WORDS;
  }

  /// Puts a packet into a send queue, if there is room.
  bool try_send(Class traffic, std::uint32_t header, const Words& words, bool update = true) {
    const unsigned queue = static_cast<unsigned>(traffic);
    const std::uint32_t next = (head_[queue] + 1) % slots_;
    std::uint32_t tail = 0;
    funi_read(ni_, of_class(FUNI_RPSQ_TL, traffic), &tail);
    if (tail == next) return false;
    std::uint32_t* out = slot(queue, head_[queue]);
    *out++ = header;
    for (const std::uint32_t word : words) *out++ = word;
    head_[queue] = next;
    if (update) last_error_ = funi_write(ni_, of_class(FUNI_RPSQ_HD, traffic), next);
    return true;
  }
  void send(Class traffic, std::uint32_t header, const Words& words) {
    expect_soon([&] { return try_send(traffic, header, words); });
    EXPECT_FUNI(last_error_, FUNI_SUCCESS);
  }
  /// Of the last packet that was sent.
  int last_error() const { return last_error_; }

  /// Takes a packet out of a receive queue, if there is one.
  std::optional<Packet> try_receive(Class traffic) {
    const unsigned queue = static_cast<unsigned>(traffic);
    std::uint32_t head = 0;
    last_error_ = funi_read(ni_, of_class(FUNI_RPRQ_HD, traffic), &head);
    if (head == tail_[queue]) return std::nullopt;
    const std::uint32_t* in = slot(queue + 2, tail_[queue]);
    const bool is_notice = (in[0] & FUNI_XFER) != 0;
    Packet packet{in[0], Words(in + 1, in + 1 + (is_notice ? 3 : FUNI_HEADER_LENGTH(in[0])))};
    tail_[queue] = (tail_[queue] + 1) % slots_;
    funi_write(ni_, of_class(FUNI_RPRQ_TL, traffic), tail_[queue]);
    return packet;
  }
  Packet receive(Class traffic) {
    std::optional<Packet> packet;
    expect_soon([&] { return (packet = try_receive(traffic)).has_value(); });
    EXPECT_FUNI(last_error_, FUNI_SUCCESS);
    return *packet;
  }

  funi_counts_t counts() const {
    funi_counts_t counts{};
    funi_get_counts(ni_, &counts);
    return counts;
  }

  std::uint32_t map(void* start, std::size_t bytes) {
    std::uint32_t address = 0;
    EXPECT_FUNI(funi_map(ni_, start, bytes, &address), FUNI_SUCCESS);
    return address;
  }

  /// Lets the interface work until something is so. Leaves the test if it never is.
  template <class Condition>
  void expect_soon(Condition condition) {
    if (becomes(condition, kPatienceMs)) return;
    ADD_FAILURE() << "it has not come about in " << kPatienceMs << " ms";
    throw Stopped{};
  }
  template <class Condition>
  bool becomes(Condition condition, std::uint32_t within_ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(within_ms);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      funi_wait(ni_, 1);
    }
    return true;
  }

  /// Everything that was sent has been accepted.
  bool is_all_accepted() {
    std::uint32_t ticket = 0;
    funi_read(ni_, FUNI_TICKET, &ticket);
    for (const Class traffic : {Class::kReply, Class::kRequest}) {
      std::uint32_t tail = 0;
      funi_read(ni_, of_class(FUNI_RPSQ_TL, traffic), &tail);
      if (tail != head_[static_cast<unsigned>(traffic)]) return false;
    }
    return ticket == 0xffu;
  }

  /// What the program knows of its queues, for a context that comes back.
  struct Ends {
    std::array<std::uint32_t, 2> head;
    std::array<std::uint32_t, 2> tail;
    std::shared_ptr<QueueMemory> memory;
  };
  Ends swap_ends(Ends other) {
    const Ends mine{head_, tail_, memory_};
    head_ = other.head;
    tail_ = other.tail;
    memory_ = std::move(other.memory);
    return mine;
  }

 private:
  /// Of the queues in memory: reply and request send, reply and request receive.
  static funi_register_t base_register(unsigned queue) { return static_cast<funi_register_t>(FUNI_RPSQ_BASE + queue); }

  funi_t ni_ = nullptr;
  std::uint32_t number_;
  std::uint32_t slots_ = 0;
  std::shared_ptr<QueueMemory> memory_;
  std::array<std::uint32_t, 2> head_{};  ///< Of the send queues.
  std::array<std::uint32_t, 2> tail_{};  ///< Of the receive queues.
  int last_error_ = FUNI_SUCCESS;
};

/// A message of some words that can be recognized.
inline Words counted(std::uint32_t first, std::size_t count) {
  Words words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = first + static_cast<std::uint32_t>(i);
  return words;
}

}  // namespace conformance
