// Everything at random on four endpoints of two domains: messages with and without tags of all lengths, that are
// awaited, found by a look, claimed, dropped, cut off or canceled; reads, writes and atomics. What arrives is what was
// sent, once, in the order of fi_endpoint(3), and memory holds what was written there.
// PORTOFU_TEST_OPERATIONS: how many operations; PORTOFU_TEST_SEED: which.

#include <algorithm>
#include <cstdio>
#include <deque>
#include <random>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

constexpr std::size_t kEndpoints = 4;
constexpr std::size_t kSlotBytes = 64 * 1024;       ///< Of each endpoint in the memory of each.
constexpr std::size_t kMultiBytes = 9000;           ///< No message without a tag is longer.
constexpr std::size_t kMostOrderedBytes = 4096;     ///< Of a read that a later write does not change.
constexpr std::uint64_t kNumberBits = 0xffff'ffff;  ///< Of a tag; above it is who sends.

using Bytes = std::vector<char>;

Bytes make_bytes(std::size_t count, std::uint64_t seed) {
  Bytes bytes(count);
  std::minstd_rand random(static_cast<std::uint32_t>(seed % 1'000'003 + 1));
  std::ranges::generate(bytes, [&] { return static_cast<char>(random() >> 8); });
  return bytes;
}

enum class Kind : std::uint8_t { kSend, kAccess, kReceive, kLook, kClaimed, kMany };

/// An operation; its address is the context. It lives until the end, so that no context is used twice.
struct Operation {
  fi_context2 context{};
  Kind kind = Kind::kSend;
  std::size_t owner = 0;
  std::size_t peer = 0;
  Bytes bytes;
  Bytes expected;         ///< Of what reads.
  bool canceled = false;  ///< It was asked for, and will be.
  bool over = false;
  std::uint64_t number = UINT64_MAX;  ///< Of a receive: which message it got.
  std::uint64_t flags = 0;            ///< Of a look.
};

/// From one endpoint to another.
struct Way {
  std::deque<Bytes> sent;           ///< With tags, that nobody has received.
  std::uint64_t received = 0;       ///< Of those, how many are gone.
  std::deque<Operation*> awaiting;  ///< Receives, in the order of posting.
  bool looks = false;
  std::deque<Bytes> untagged;  ///< That nobody has received.
  Bytes memory = Bytes(kSlotBytes, 0);
};

class FiStorm : public Fabric {
 protected:
  void open_all() {
    for (std::size_t i = 0; i < kEndpoints; ++i) {
      fid_domain* owner = i % 2 == 0 ? domain : domain_of_b;
      nodes_[i].open(owner, info.get());
      ASSERT_EQ(fi_setopt(&nodes_[i].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &kMultiBytes, sizeof kMultiBytes),
                0);
      ASSERT_EQ(fi_mr_reg(owner, memory_[i].data(), memory_[i].size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, i, 0,
                          &regions_[i], nullptr),
                0);
    }
    for (std::size_t i = 0; i < kEndpoints; ++i)
      for (std::size_t k = 0; k < kEndpoints; ++k) addresses_[i][k] = nodes_[i].insert(nodes_[k]);
  }
  void close_all() {
    for (Node& node : nodes_) node.close();
    for (fid_mr* region : regions_) EXPECT_EQ(fi_close(&region->fid), 0);
  }

  std::size_t any(std::size_t below) { return random_() % below; }
  std::size_t any_length(std::size_t most) {
    constexpr std::array<std::size_t, 8> kAbout = {2, 60, 200, 200, 4100, 9000, 17000, 200'000};
    return std::min(any(kAbout[any(kAbout.size())]), most);
  }

  Operation& begin(Kind kind, std::size_t owner, std::size_t peer, Bytes bytes) {
    operations_.push_back(std::make_unique<Operation>());
    Operation& made = *operations_.back();
    made.kind = kind;
    made.owner = owner;
    made.peer = peer;
    made.bytes = std::move(bytes);
    ++open_;
    if (is_sending(made)) ++sending_;
    return made;
  }
  /// @return false if it has not begun: it is to be tried later
  bool has_begun(Operation& operation, ssize_t result) {
    EXPECT_TRUE(result == 0 || result == -FI_EAGAIN) << fi_strerror(static_cast<int>(-result));
    if (result != 0) end(operation);
    return result == 0;
  }
  void end(Operation& operation) {
    EXPECT_FALSE(operation.over) << "it ends twice";
    operation.over = true;
    operation.bytes = operation.expected = {};
    --open_;
    if (is_sending(operation)) --sending_;
  }
  static bool is_sending(const Operation& operation) {
    return operation.kind == Kind::kSend || operation.kind == Kind::kAccess;
  }

  static std::uint64_t tag_of(std::size_t from, std::uint64_t number) { return std::uint64_t{from} << 32 | number; }

  void send_tagged(std::size_t from, std::size_t to) {
    Way& way = ways_[from][to];
    Operation& made = begin(Kind::kSend, from, to, make_bytes(any_length(SIZE_MAX), random_()));
    const Bytes copy = made.bytes;
    const bool injects = copy.size() <= 4096 && any(3) == 0;
    iovec piece{made.bytes.data(), copy.size()};
    fi_msg_tagged msg{&piece, nullptr, 1, addresses_[from][to], tag_of(from, way.received + way.sent.size()),
                      0,      &made,   0};
    constexpr std::array<std::uint64_t, 5> kFlags = {0, 0, FI_DELIVERY_COMPLETE, FI_MORE, FI_FENCE};
    const std::uint64_t flags = kFlags[any(kFlags.size())] | FI_COMPLETION | (injects ? FI_INJECT : 0);
    if (!has_begun(made, fi_tsendmsg(nodes_[from].ep, &msg, flags))) return;
    way.sent.push_back(copy);
    if (injects) std::ranges::fill(made.bytes, 'x');
  }

  void send_untagged(std::size_t from, std::size_t to) {
    Bytes bytes = make_bytes(1 + any_length(kMultiBytes - 1), random_());
    bytes[0] = static_cast<char>(from);
    Operation& made = begin(Kind::kSend, from, to, bytes);
    if (has_begun(made,
                  fi_send(nodes_[from].ep, made.bytes.data(), bytes.size(), nullptr, addresses_[from][to], &made)))
      ways_[from][to].untagged.push_back(std::move(bytes));
  }

  void access(std::size_t from, std::size_t to) {
    Bytes& memory = ways_[from][to].memory;
    const bool writes = any(2) == 0;
    const std::size_t length = 1 + any_length((writes ? kSlotBytes : kMostOrderedBytes) - 2);
    const std::size_t at = any(kSlotBytes - length);
    Operation& made = begin(Kind::kAccess, from, to, writes ? make_bytes(length, random_()) : Bytes(length));
    const std::uint64_t address = from * kSlotBytes + at;
    fid_ep* ep = nodes_[from].ep;
    char* data = made.bytes.data();
    if (!has_begun(made, writes ? fi_write(ep, data, length, nullptr, addresses_[from][to], address, to, &made)
                                : fi_read(ep, data, length, nullptr, addresses_[from][to], address, to, &made)))
      return;
    if (writes) std::ranges::copy(made.bytes, memory.begin() + static_cast<std::ptrdiff_t>(at));
    made.expected.assign(memory.begin() + static_cast<std::ptrdiff_t>(at),
                         memory.begin() + static_cast<std::ptrdiff_t>(at + length));
  }

  /// Adds to a number in the slot, and reads what it was.
  void add(std::size_t from, std::size_t to) {
    Bytes& memory = ways_[from][to].memory;
    const std::size_t at = any(kSlotBytes / 8) * 8;
    std::uint64_t value = 0;
    addends_.push_back(random_());
    Operation& made = begin(Kind::kAccess, from, to, Bytes(sizeof value));
    if (!has_begun(made, fi_fetch_atomic(nodes_[from].ep, &addends_.back(), 1, nullptr, made.bytes.data(), nullptr,
                                         addresses_[from][to], from * kSlotBytes + at, to, FI_UINT64, FI_SUM, &made)))
      return;
    std::memcpy(&value, &memory[at], sizeof value);
    made.expected.assign(&memory[at], &memory[at] + sizeof value);
    value += addends_.back();
    std::memcpy(&memory[at], &value, sizeof value);
  }

  void post_many(std::size_t to) {
    Operation& made = begin(Kind::kMany, to, to, Bytes(kMultiBytes * (1 + any(4))));
    iovec piece{made.bytes.data(), made.bytes.size()};
    const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &made, 0};
    if (has_begun(made, fi_recvmsg(nodes_[to].ep, &msg, FI_MULTI_RECV | FI_COMPLETION))) many_[to].push_back(&made);
  }

  void cancel(Operation& operation) {
    if (operation.canceled || operation.over || operation.number != UINT64_MAX) return;
    const ssize_t result = fi_cancel(&nodes_[operation.owner].ep->fid, &operation);
    EXPECT_TRUE(result == 0 || result == -FI_ENOENT) << result;
    operation.canceled = result == 0;
  }

  void receive(std::size_t from, std::size_t to) {
    Way& way = ways_[from][to];
    if (way.looks) return;
    fi_msg_tagged msg{nullptr, nullptr, 0, FI_ADDR_UNSPEC, tag_of(from, 0), kNumberBits, nullptr, 0};
    if (way.awaiting.empty() && any(3) == 0) {
      constexpr std::array<std::uint64_t, 3> kFlags = {0, FI_CLAIM, FI_DISCARD};
      Operation& made = begin(Kind::kLook, to, from, {});
      made.flags = kFlags[any(kFlags.size())];
      msg.context = &made;
      way.looks = has_begun(made, fi_trecvmsg(nodes_[to].ep, &msg, FI_PEEK | FI_COMPLETION | made.flags));
    } else if (!way.awaiting.empty() && any(8) == 0) {
      cancel(*way.awaiting[any(way.awaiting.size())]);
    } else if (way.awaiting.size() < 5) {
      Operation& made = begin(Kind::kReceive, to, from, Bytes(any(3) == 0 ? any(5000) : 200'000));
      iovec piece{made.bytes.data(), made.bytes.size()};
      msg.msg_iov = &piece;
      msg.iov_count = 1;
      msg.context = &made;
      if (has_begun(made, fi_trecvmsg(nodes_[to].ep, &msg, FI_COMPLETION))) way.awaiting.push_back(&made);
    }
  }

  /// What a look has claimed is received by its context.
  void take_claimed(Operation& look, const Bytes& sent) {
    look.kind = Kind::kClaimed;
    look.bytes.resize(any(200'000));
    look.expected = sent;
    iovec piece{look.bytes.data(), look.bytes.size()};
    const fi_msg_tagged msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, 0, kNumberBits, &look, 0};
    EXPECT_EQ(fi_trecvmsg(nodes_[look.owner].ep, &msg, FI_CLAIM | FI_COMPLETION), 0);
  }

  void expect_content(const Operation& operation, const Completion& told, const Bytes& sent) const {
    const std::size_t fits = std::min(sent.size(), operation.bytes.size());
    EXPECT_EQ(told.len, fits);
    EXPECT_EQ(told.err, fits == sent.size() ? 0 : FI_ETRUNC);
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(fits), operation.bytes.begin()));
  }

  void looked(Operation& look, const Completion& told) {
    Way& way = ways_[look.peer][look.owner];
    way.looks = false;
    if (told.err == FI_ENOMSG) return end(look);
    ASSERT_EQ(told.err, 0);
    look.number = told.tag & kNumberBits;
    ASSERT_EQ(look.number, way.received) << "the first message is found";
    EXPECT_EQ(told.len, way.sent.front().size());
    if (look.flags == FI_CLAIM) {
      take_claimed(look, way.sent.front());
    } else {
      end(look);
    }
    if (look.flags == 0) return;
    ++way.received;
    way.sent.pop_front();
  }

  void received(Operation& receive, const Completion& told) {
    Way& way = ways_[receive.peer][receive.owner];
    if (told.err == FI_ECANCELED) {
      EXPECT_TRUE(receive.canceled);
      std::erase(way.awaiting, &receive);
      end(receive);
    } else {
      receive.number = told.tag & kNumberBits;
      ASSERT_LT(receive.number - way.received, way.sent.size()) << "a message that is not under way";
      expect_content(receive, told, way.sent[receive.number - way.received]);
    }
    while (!way.awaiting.empty() && way.awaiting.front()->number != UINT64_MAX) {
      ASSERT_EQ(way.awaiting.front()->number, way.received) << "messages are received in the order of receives";
      end(*way.awaiting.front());
      ++way.received;
      way.awaiting.pop_front();
      way.sent.pop_front();
    }
  }

  void received_many(Operation& buffer, const Completion& told) {
    ASSERT_FALSE(buffer.over) << "a message in a buffer that was given back";
    if ((told.flags & FI_RECV) != 0 && told.err == 0) {
      const auto* const first = static_cast<const char*>(told.buf);
      std::deque<Bytes>& sent = ways_.at(static_cast<std::size_t>(*first)).at(buffer.owner).untagged;
      const auto found = std::ranges::find(sent, Bytes(first, first + told.len));
      ASSERT_NE(found, sent.end()) << "a message that nobody has sent, or that came already";
      sent.erase(found);
    }
    EXPECT_TRUE(told.err == 0 || (told.err == FI_ECANCELED && buffer.canceled)) << told.err;
    if ((told.flags & FI_MULTI_RECV) == 0) return;
    std::erase(many_[buffer.owner], &buffer);
    end(buffer);
  }

  void ended(Operation& operation, const Completion& told) {
    switch (operation.kind) {
      case Kind::kLook: return looked(operation, told);
      case Kind::kReceive: return received(operation, told);
      case Kind::kMany: return received_many(operation, told);
      case Kind::kClaimed: expect_content(operation, told, operation.expected); break;
      case Kind::kAccess: EXPECT_EQ(operation.bytes, operation.expected); [[fallthrough]];
      case Kind::kSend: EXPECT_EQ(told.err, 0) << fi_strerror(told.err);
    }
    end(operation);
  }

  void look_at(const Node& node) {
    Completion told{};
    const ssize_t got = fi_cq_readfrom(node.cq, reinterpret_cast<fi_cq_tagged_entry*>(&told), 1, &told.source);
    if (got == -FI_EAVAIL) {
      ASSERT_EQ(fi_cq_readerr(node.cq, &told, 0), 1);
    } else if (got != 1) {
      ASSERT_EQ(got, -FI_EAGAIN);
      return;
    }
    ended(*static_cast<Operation*>(told.op_context), told);
  }

  bool is_all_over() const {
    return sending_ == 0 && std::ranges::all_of(ways_, [](const auto& from) {
             return std::ranges::all_of(from, [](const Way& way) { return way.sent.empty() && way.untagged.empty(); });
           });
  }

  void do_something(bool sends) {
    const std::size_t from = any(kEndpoints), to = any(kEndpoints);
    if (many_[to].size() < 2) post_many(to);
    if (sends && any(100) == 0) cancel(*many_[to].front());
    if (!sends || open_ > 200 || any(2) == 0) return receive(from, to);
    switch (any(5)) {
      case 0: return send_untagged(from, to);
      case 1: return access(from, to);
      case 2: return add(from, to);
      default: return send_tagged(from, to);
    }
  }

  std::mt19937_64 random_;
  std::array<Node, kEndpoints> nodes_;
  std::array<std::array<fi_addr_t, kEndpoints>, kEndpoints> addresses_{};
  std::array<Bytes, kEndpoints> memory_ = [] {
    std::array<Bytes, kEndpoints> made;
    made.fill(Bytes(kEndpoints * kSlotBytes, 0));
    return made;
  }();
  std::array<fid_mr*, kEndpoints> regions_{};
  std::array<std::array<Way, kEndpoints>, kEndpoints> ways_;
  std::array<std::vector<Operation*>, kEndpoints> many_;  ///< Buffers that are posted.
  std::vector<std::unique_ptr<Operation>> operations_;
  std::deque<std::uint64_t> addends_;
  std::size_t open_ = 0;     ///< Operations that are not over.
  std::size_t sending_ = 0;  ///< Of these, those of senders, which end by themselves.
};

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST_F(FiStorm, everything_at_random) {
  const std::uint64_t seed = number_of("PORTOFU_TEST_SEED", std::random_device{}());
  std::printf("PORTOFU_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  random_.seed(seed);
  ASSERT_NO_FATAL_FAILURE(open_all());
  constexpr std::uint64_t kMost = 100'000;  // In the time of a test.
  const std::uint64_t count = std::min(number_of("PORTOFU_TEST_OPERATIONS", 4000), kMost);
  const auto go_on = [&](bool sends) {
    do_something(sends);
    look_at(nodes_[any(kEndpoints)]);
  };
  for (std::uint64_t i = 0; i < count && !HasFailure(); ++i) go_on(true);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!HasFailure() && !is_all_over() && std::chrono::steady_clock::now() < deadline) go_on(false);
  EXPECT_TRUE(is_all_over());
  close_all();
  for (std::size_t from = 0; from < kEndpoints && !HasFailure(); ++from)
    for (std::size_t to = 0; to < kEndpoints; ++to)
      EXPECT_EQ(std::memcmp(&memory_[to][from * kSlotBytes], ways_[from][to].memory.data(), kSlotBytes), 0);
}

}  // namespace
}  // namespace portofu::test
