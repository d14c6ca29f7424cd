// Thesis, appendix A: active messages on FUNi. And that they go on where one class would not (2.10).
#include <cmam.h>

#include "funi_fixture.h"

using namespace conformance;

namespace {

/// An interface with a route to every process, on which active messages have begun.
class Messages {
 public:
  explicit Messages(Process& self) {
    const auto rank = static_cast<std::uint32_t>(self.rank());
    const funi_options_t options{1, rank, 0};
    if (funi_open(&options, &ni_) != FUNI_SUCCESS) throw Stopped{};
    funi_address_t mine{};
    funi_get_address(ni_, &mine);
    const auto all = self.share(mine);
    for (std::uint32_t i = 0; i < all.size(); ++i) funi_set_route(ni_, i, &all[i]);
    EXPECT_FUNI(cmam_open(ni_, rank, static_cast<std::uint32_t>(all.size())), FUNI_SUCCESS);
    self.barrier();
  }
  ~Messages() {
    EXPECT_FUNI(cmam_close(), FUNI_SUCCESS);
    funi_close(ni_);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  operator funi_t() const { return ni_; }

 private:
  funi_t ni_ = nullptr;
};

std::vector<Words> calls;
int flag = 0;

void note(int i1, int i2, int i3, int i4) {
  calls.push_back({static_cast<std::uint32_t>(i1), static_cast<std::uint32_t>(i2), static_cast<std::uint32_t>(i3),
                   static_cast<std::uint32_t>(i4)});
  ++flag;
}

void note_n(const void* arguments, int bytes) {
  const auto* words = static_cast<const std::uint32_t*>(arguments);
  calls.emplace_back(words, words + bytes / 4);
  ++flag;
}

/// Variables that messages name: what they point to differs from process to process.
cmam_indirect_handler_t indirect = nullptr;
cmam_indirect_n_handler_t indirect_n = nullptr;

void note_indirect(void* pointer, int i1, int i2, int i3, int i4) {
  EXPECT_EQ(pointer, &indirect);
  note(i1, i2, i3, i4);
}
void note_indirect_n(void* pointer, const void* arguments, int bytes) {
  EXPECT_EQ(pointer, &indirect_n);
  note_n(arguments, bytes);
}

void answer(int who, int number, int, int) {
  EXPECT_FUNI(cmam_reply_4(who, note, number, 0, 0, 0), FUNI_SUCCESS);
  EXPECT_FUNI(cmam_4(who, note, 0, 0, 0, 0), FUNI_ERR_HANDLER) << "a handler sends no request";
}

void reply_that_replies(int who, int, int, int) {
  EXPECT_FUNI(cmam_reply_4(who, note, 0, 0, 0, 0), FUNI_ERR_HANDLER);
  EXPECT_FUNI(cmam_poll(), FUNI_ERR_HANDLER);
  EXPECT_FUNI(cmam_barrier(), FUNI_ERR_HANDLER);
  ++flag;
}

constexpr int kParts = 4;

/// An answer of more packets than its request, which is what deadlocks with one class.
void answer_in_parts(int who, int, int, int) {
  for (int i = 0; i < kParts; ++i) EXPECT_FUNI(cmam_reply_4(who, note, i, 0, 0, 0), FUNI_SUCCESS);
}

int count_end(void* info, void* base) {
  EXPECT_NE(base, nullptr);
  ++*static_cast<int*>(info);
  return 0;
}

}  // namespace

TEST(Cmam, Primitives__call_their_handlers) {
  run_processes(2, [](Process& self) {
    const Messages messages(self);
    EXPECT_EQ(cmam_self_address(), self.rank());
    EXPECT_EQ(cmam_partition_size(), 2);
    const Words twenty = counted(100, 20);
    indirect = self.rank() == 1 ? note_indirect : nullptr;
    indirect_n = self.rank() == 1 ? note_indirect_n : nullptr;
    if (self.rank() == 0) {
      EXPECT_FUNI(cmam_4(1, note, 1, 2, 3, -4), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_indirect_4(1, &indirect, 5, 6, 7, 8), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_n(1, note_n, nullptr, 0), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_n(1, note_n, twenty.data(), 80), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_indirect_n(1, &indirect_n, twenty.data(), 4), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_reply_4(1, note, 1, 2, 3, -4), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_reply_indirect_4(1, &indirect, 5, 6, 7, 8), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_reply_n(1, note_n, nullptr, 0), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_reply_n(1, note_n, twenty.data(), 80), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_reply_indirect_n(1, &indirect_n, twenty.data(), 4), FUNI_SUCCESS);
    } else {
      const std::vector<Words> expected{{1, 2, 3, 0xfffffffcu}, {5, 6, 7, 8}, {}, twenty, {100}};
      EXPECT_FUNI(cmam_wait(&flag, 5), FUNI_SUCCESS);
      EXPECT_EQ(calls, expected);
      calls.clear();
      EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_wait(&flag, 5), FUNI_SUCCESS);
      EXPECT_EQ(calls, expected);
    }
    EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
    self.barrier();
  });
}

TEST(Cmam, Handlers__of_requests_reply_and_of_replies_send_nothing) {
  run_processes(2, [](Process& self) {
    const Messages messages(self);
    if (self.rank() == 0) {
      EXPECT_FUNI(cmam_4(1, answer, 0, 4711, 0, 0), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_wait(&flag, 1), FUNI_SUCCESS);
      EXPECT_EQ(calls.at(0).at(0), 4711u);
      EXPECT_FUNI(cmam_reply_4(1, reply_that_replies, 0, 0, 0, 0), FUNI_SUCCESS);
    } else {
      EXPECT_FUNI(cmam_wait(&flag, 1), FUNI_SUCCESS);
    }
    EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
    self.barrier();
  });
}

// All send to all, ten times what the queues and caches hold, and every request has several replies.
TEST(Cmam, Section2_10__requests_in_all_directions_do_not_deadlock) {
  run_processes(3, [](Process& self) {
    const Messages messages(self);
    constexpr int kRequests = 1500;
    for (int i = 0; i < kRequests; ++i) {
      for (int to = 0; to < 3; ++to) {
        EXPECT_FUNI(cmam_4(to, answer_in_parts, self.rank(), 0, 0, 0), FUNI_SUCCESS);
      }
    }
    EXPECT_FUNI(cmam_wait(&flag, kRequests * 3 * kParts), FUNI_SUCCESS);
    EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
    EXPECT_EQ(flag, 0);
    self.barrier();
  });
}

TEST(Cmam, Segments__close_when_all_has_come) {
  run_processes(2, [](Process& self) {
    const Messages messages(self);
    alignas(64) static std::array<std::uint32_t, 1024> field{};
    std::uint32_t address = 0;
    EXPECT_FUNI(funi_map(messages, field.data(), sizeof field, &address), FUNI_SUCCESS);
    const int bytes = static_cast<int>(sizeof field) / 2;
    std::uint32_t* half = field.data() + field.size() / 2;
    for (int way = 0; way < 4; ++way) {
      int segment = 0;
      if (self.rank() == 0) segment = cmam_open_segment(half, bytes, count_end, &flag);
      segment = self.share(segment).at(0);
      EXPECT_GE(segment, 0);
      const auto seg_addr = static_cast<unsigned>(segment);
      if (self.rank() == 1) {
        for (std::size_t i = 0; i < field.size() / 2; ++i) field[i] = static_cast<std::uint32_t>(way * 10000) + i;
        const std::uint32_t dest = address + static_cast<std::uint32_t>(bytes);
        int error = 0;
        if (way == 0) error = cmam_xfer(0, seg_addr, field.data(), bytes);
        if (way == 1) error = cmam_reply_xfer(0, seg_addr, field.data(), bytes);
        if (way == 2) error = cmam_mfer(0, seg_addr, field.data(), dest, bytes);
        if (way == 3) error = cmam_reply_mfer(0, seg_addr, field.data(), dest, bytes);
        EXPECT_FUNI(error, FUNI_SUCCESS);
        while (cmam_is_sent() == 0) cmam_poll();
      } else {
        EXPECT_FUNI(cmam_wait(&flag, 1), FUNI_SUCCESS);
        for (std::size_t i = 0; i < field.size() / 2; ++i) ASSERT_EQ(half[i], way * 10000 + i) << way;
      }
      EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
    }
    self.barrier();
  });
}

TEST(Cmam, Barrier__lets_nobody_go_before_all_are_there) {
  run_processes(5, [](Process& self) {
    const Messages messages(self);
    for (int round = 0; round < 50; ++round) {
      // Everybody tells everybody; what was sent before the barrier by request may come behind it, so count to be sure.
      for (int to = 0; to < 5; ++to) EXPECT_FUNI(cmam_4(to, note, round, 0, 0, 0), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_wait(&flag, 5), FUNI_SUCCESS);
      EXPECT_FUNI(cmam_barrier(), FUNI_SUCCESS);
      for (const Words& call : calls) EXPECT_EQ(call.at(0), static_cast<std::uint32_t>(round));
      EXPECT_EQ(calls.size(), 5u) << "nobody is in the next round";
      calls.clear();
      self.barrier();
    }
  });
}

TEST(Cmam, Arguments) {
  run_processes(1, [](Process& self) {
    EXPECT_FUNI(cmam_poll(), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_4(0, note, 0, 0, 0, 0), FUNI_ERR_ARGUMENT);
    EXPECT_EQ(cmam_self_address(), -1);
    const Messages messages(self);
    EXPECT_FUNI(cmam_open(messages, 0, 1), FUNI_ERR_BUSY);
    EXPECT_FUNI(cmam_4(1, note, 0, 0, 0, 0), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_4(-1, note, 0, 0, 0, 0), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_4(0, nullptr, 0, 0, 0, 0), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_n(0, note_n, &flag, 3), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_n(0, note_n, &flag, 84), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_n(0, note_n, nullptr, 4), FUNI_ERR_ARGUMENT);
    cmam_indirect_handler_t local = note_indirect;
    EXPECT_FUNI(cmam_indirect_4(0, &local, 0, 0, 0, 0), FUNI_ERR_ARGUMENT) << "no static variable";
    alignas(64) std::array<std::uint32_t, 16> field{};
    EXPECT_FUNI(cmam_mfer_n(0, 0, field.data(), 4096, 16), FUNI_ERR_ADDRESS) << "not mapped";
    EXPECT_FUNI(cmam_mfer_n(0, 0, field.data(), 4096, 80), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_mfer_n(0, 0, field.data(), 4100, 16), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_xfer(0, 0, field.data(), 20), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_open_segment(field.data(), 20, nullptr, nullptr), FUNI_ERR_ARGUMENT);
    EXPECT_FUNI(cmam_open_segment(&field[1], 16, nullptr, nullptr), FUNI_ERR_ARGUMENT);
    for (int i = 0; i < CMAM_SEGMENTS; ++i) EXPECT_GE(cmam_open_segment(field.data(), 16, nullptr, nullptr), 0);
    EXPECT_FUNI(cmam_open_segment(field.data(), 16, nullptr, nullptr), FUNI_ERR_MEMORY);
    // Behind the end of a segment, and of one that nobody has opened.
    int error = cmam_xfer_4(0, 16, 1, 2, 3, 4);
    for (int i = 0; i < 1000 && error == FUNI_SUCCESS; ++i) error = cmam_poll();
    EXPECT_FUNI(error, FUNI_ERR_PACKET);
    EXPECT_EQ(field[0], 0u);
  });
}
