// A process is killed while operations of all kinds are under way to it, or from it. Each of them ends once, as a
// success or as an error, and is counted (fi_cq(3), fi_cntr(3)); what is started later ends with an error.

#include <algorithm>
#include <string>
#include <thread>

#include "tests/conformance/libfabric/peer_process.h"

namespace portofu::test {
namespace {

constexpr std::uint64_t kKey = PeerProcess::kKey;

/// Its address is the context.
struct Operation {
  fi_context2 context{};
  std::string name;
  std::uint64_t flags = 0;
  int ends = 0;
  int error = 0;
};

class FiKill : public Fabric {
 protected:
  // The peer is made before this process has an engine.
  void SetUp() override {}
  void TearDown() override {
    Fabric::TearDown();
    peer.reset();
  }

  void meet_peer(PeerProcess::Script script = nullptr) {
    {
      const OneMib bound;
      peer = std::make_unique<PeerProcess>(script);
    }
    ASSERT_TRUE(peer->is_there());
    info = get_info(make_hints().get());
    ASSERT_NE(info, nullptr);
    ASSERT_NO_FATAL_FAILURE(open_domains());
    cntr = open_cntr(domain);
    a.open(domain, info.get(), 0, cntr, FI_SEND | FI_READ | FI_WRITE);
    b.open(domain_of_b, info.get());
    meet();
    ASSERT_EQ(fi_av_insert(a.av, peer->name().data(), 1, &to_peer, 0, nullptr), 1);
    ASSERT_EQ(fi_write(a.ep, bytes.data(), 8, nullptr, to_peer, 0, kKey, nullptr), 0);
    ASSERT_EQ(a.next().err, 0) << "they have met";
    started = 1;
  }

  Operation& make(const std::string& name, std::uint64_t flags) {
    operations.push_back(std::make_unique<Operation>());
    operations.back()->name = name;
    operations.back()->flags = flags;
    return *operations.back();
  }
  /// @param call  ssize_t(void* context)
  template <class Call>
  void begin(const std::string& name, std::uint64_t flags, Call&& call) {
    const ssize_t result = call(&make(name, flags));
    if (result == 0) {
      ++started;
      return;
    }
    EXPECT_EQ(result, -FI_EAGAIN) << name;
    operations.pop_back();
  }

  void begin_messages(std::size_t length, std::uint64_t flags) {
    const std::string what = " of " + std::to_string(length) + " bytes, flags " + std::to_string(flags);
    const std::array<iovec, 2> halves{{{bytes.data(), length / 2}, {&bytes[length / 2], length / 2}}};
    begin("message" + what, FI_SEND | FI_MSG, [&](void* context) {
      const iovec piece{bytes.data(), length};
      const fi_msg msg{&piece, nullptr, 1, to_peer, context, 0};
      return fi_sendmsg(a.ep, &msg, flags | FI_COMPLETION);
    });
    begin("message with a tag" + what, FI_SEND | FI_TAGGED, [&](void* context) {
      const fi_msg_tagged msg{halves.data(), nullptr, 2, to_peer, 1, 0, context, 0};
      return fi_tsendmsg(a.ep, &msg, flags | FI_COMPLETION);
    });
  }
  void begin_accesses(std::size_t length, std::uint64_t flags) {
    const std::array<fi_rma_iov, 2> parts{{{0, length / 2, kKey}, {length, length / 2, kKey}}};
    const fi_rma_iov whole{0, length, kKey};
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}}) {
      const std::string what = " of " + std::to_string(length) + " bytes in " + std::to_string(count) +
                               " parts, flags " + std::to_string(flags);
      const fi_rma_iov* const remote = count == 1 ? &whole : parts.data();
      begin("write" + what, FI_WRITE | FI_RMA, [&](void* context) {
        const iovec piece{bytes.data(), length};
        const fi_msg_rma msg{&piece, nullptr, 1, to_peer, remote, count, context, 0};
        return fi_writemsg(a.ep, &msg, flags | FI_COMPLETION);
      });
      begin("read" + what, FI_READ | FI_RMA, [&](void* context) {
        const iovec piece{results.data(), length};
        const fi_msg_rma msg{&piece, nullptr, 1, to_peer, remote, count, context, 0};
        return fi_readmsg(a.ep, &msg, flags | FI_COMPLETION);
      });
    }
  }
  void begin_atomics(std::uint64_t flags) {
    const std::string what = ", flags " + std::to_string(flags);
    const fi_ioc operand{bytes.data(), 2}, compared{&bytes[64], 2};
    fi_ioc old{results.data(), 2};
    const fi_rma_ioc place{0, 2, kKey};
    const auto of = [&](fi_op op, void* context) {
      return fi_msg_atomic{&operand, nullptr, 1, to_peer, &place, 1, FI_UINT64, op, context, 0};
    };
    begin("atomic" + what, FI_WRITE | FI_ATOMIC, [&](void* context) {
      const fi_msg_atomic msg = of(FI_SUM, context);
      return fi_atomicmsg(a.ep, &msg, flags | FI_COMPLETION);
    });
    begin("fetching atomic" + what, FI_READ | FI_ATOMIC, [&](void* context) {
      const fi_msg_atomic msg = of(FI_SUM, context);
      return fi_fetch_atomicmsg(a.ep, &msg, &old, nullptr, 1, flags | FI_COMPLETION);
    });
    begin("comparing atomic" + what, FI_READ | FI_ATOMIC, [&](void* context) {
      const fi_msg_atomic msg = of(FI_CSWAP, context);
      return fi_compare_atomicmsg(a.ep, &msg, &compared, nullptr, 1, &old, nullptr, 1, flags | FI_COMPLETION);
    });
  }
  void begin_all() {
    for (const std::uint64_t flags : std::array<std::uint64_t, 4>{0, FI_DELIVERY_COMPLETE, FI_FENCE, FI_INJECT}) {
      for (const std::size_t length : std::array<std::size_t, 3>{8, 4096, 100'000}) {
        if (flags == FI_INJECT && length > 4096) continue;
        begin_messages(length, flags);
        begin_accesses(length, flags);
      }
      begin_atomics(flags);
    }
  }

  /// All that was begun ends once, and nothing else.
  void expect_ends() {
    for (std::size_t left = operations.size(); left > 0 && !HasFailure(); --left) {
      const Completion told = a.next();
      const auto found =
          std::ranges::find(operations, told.op_context, [](const auto& known) -> void* { return known.get(); });
      ASSERT_NE(found, operations.end()) << "nothing is left, or what was not begun has ended";
      Operation& operation = **found;
      EXPECT_EQ(++operation.ends, 1) << operation.name;
      EXPECT_EQ(told.flags, operation.flags) << operation.name;
      EXPECT_TRUE(told.err == 0 || told.err == FI_ECONNABORTED) << operation.name << ": " << fi_strerror(told.err);
      operation.error = told.err;
    }
    EXPECT_TRUE(a.is_quiet());
    EXPECT_EQ(fi_cntr_read(cntr) + fi_cntr_readerr(cntr), started);
  }

  std::unique_ptr<PeerProcess> peer;
  fid_cntr* cntr = nullptr;
  std::uint64_t started = 0;
  fi_addr_t to_peer = FI_ADDR_NOTAVAIL;
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<char> bytes = std::vector<char>(PeerProcess::kMemoryBytes, 1);
  std::vector<char> results = std::vector<char>(PeerProcess::kMemoryBytes, 0);
};

/// A process that is stopped has answered nothing, so all kinds are under way, or wait, when it is killed.
TEST_F(FiKill, Operations_of_all_kinds_end_once) {
  ASSERT_NO_FATAL_FAILURE(meet_peer());
  peer->stop();
  for (int i = 0; i < 12; ++i) begin_all();
  peer->kill();
  expect_ends();
  operations.clear();
  begin_all();
  expect_ends();
  for (const auto& later : operations) EXPECT_EQ(later->error, FI_ECONNABORTED) << later->name;
}

TEST_F(FiKill, Operations_of_all_kinds_end_once_in_the_middle_of_anything) {
  ASSERT_NO_FATAL_FAILURE(meet_peer());
  for (int i = 0; i < 3; ++i) begin_all();
  peer->kill();
  for (int i = 0; i < 3; ++i) begin_all();
  expect_ends();
}

/// fi_trigger(3), fi_cntr(3): "Any change in a counter's error value will unblock any thread inside fi_cntr_wait", and
/// failures start what waits for them.
TEST_F(FiKill, Chain_of_deferred_work_comes_to_its_end) {
  ASSERT_NO_FATAL_FAILURE(meet_peer());
  std::array<fid_cntr*, 4> steps{};
  for (fid_cntr*& step : steps) step = open_cntr(domain);
  const iovec piece{bytes.data(), 8};
  const fi_rma_iov whole{0, 8, kKey};
  fi_op_rma access{a.ep, {&piece, nullptr, 1, to_peer, &whole, 1, nullptr, 0}, 0};
  fi_op_msg message{a.ep, {&piece, nullptr, 1, to_peer, nullptr, 0}, FI_DELIVERY_COMPLETE};
  fi_op_msg last{a.ep, {&piece, nullptr, 1, to_b, nullptr, 0}, 0};
  std::array<fi_deferred_work, 4> works{};
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i].threshold = 1;
    works[i].triggering_cntr = steps[i];
    works[i].completion_cntr = i + 1 < steps.size() ? steps[i + 1] : nullptr;
  }
  works[0].op_type = FI_OP_WRITE;
  works[1].op_type = FI_OP_READ;
  works[0].op.rma = works[1].op.rma = &access;
  works[2].op_type = works[3].op_type = FI_OP_SEND;
  works[2].op.msg = &message;
  works[3].op.msg = &last;
  for (fi_deferred_work& work : works) ASSERT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &work), 0);
  ASSERT_EQ(fi_recv(b.ep, results.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  peer->stop();
  ASSERT_EQ(fi_cntr_add(steps[0], 1), 0);
  std::thread reader([this] {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, -1), -FI_EAVAIL);
  });
  peer->kill();
  reader.join();
  EXPECT_EQ(b.next().err, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a.next().err, FI_ECONNABORTED);
  EXPECT_TRUE(a.is_quiet());
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_EQ(fi_cntr_read(steps[i]), 0u);
    EXPECT_EQ(fi_cntr_readerr(steps[i]), 1u);
  }
}

constexpr std::size_t kLongBytes = std::size_t{8} << 20;
constexpr std::size_t kShorterBytes = std::size_t{1} << 20;

/// Sends long messages until it is killed: with a tag that is received, without a tag, and with one that is not.
void send_long(const Node& node, fi_addr_t parent) {
  static std::vector<char> message(kLongBytes, 'x');
  for (;;) {
    fi_tsend(node.ep, message.data(), kLongBytes, nullptr, parent, 1, nullptr);
    fi_send(node.ep, message.data(), kShorterBytes, nullptr, parent, nullptr);
    fi_tsend(node.ep, message.data(), kLongBytes, nullptr, parent, 2, nullptr);
    for (int i = 0; i < 3; ++i) node.next();
  }
}

/// Of messages that were cut off by the death of their sender.
class FiKillSender : public FiKill, public ::testing::WithParamInterface<int> {
 protected:
  void post(const std::string& name) {
    Operation& made = make(name, 0);
    ++open;
    if (name == "tagged") {
      ASSERT_EQ(fi_trecv(a.ep, tagged.data(), tagged.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, &made), 0);
      return;
    }
    const iovec piece{many.data(), many.size()};
    const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &made, 0};
    ASSERT_EQ(fi_recvmsg(a.ep, &msg, FI_MULTI_RECV | FI_COMPLETION), 0);
  }
  /// A message, or the end of a receive.
  void take_one() {
    const Completion told = a.next();
    ASSERT_NE(told.op_context, nullptr);
    auto& operation = *static_cast<Operation*>(told.op_context);
    EXPECT_EQ(operation.ends, 0) << operation.name;
    const bool is_canceled = told.err == FI_ECANCELED && operation.error == FI_ECANCELED;
    EXPECT_TRUE(told.err == 0 || told.err == FI_ECONNABORTED || is_canceled) << fi_strerror(told.err);
    if (operation.name == "many" && (told.flags & FI_MULTI_RECV) == 0) return;
    operation.ends = 1;
    --open;
  }
  /// What has no message yet is canceled, and nothing else.
  void cancel_all() {
    for (const auto& operation : operations) {
      if (operation->ends != 0) continue;
      const ssize_t result = fi_cancel(&a.ep->fid, operation.get());
      EXPECT_TRUE(result == 0 || result == -FI_ENOENT) << result;
      if (result == 0) operation->error = FI_ECANCELED;
    }
  }

  int open = 0;
  std::vector<char> tagged = std::vector<char>(kLongBytes), many = std::vector<char>(16 * kShorterBytes);
};

TEST_P(FiKillSender, Receives_end_once) {
  ASSERT_NO_FATAL_FAILURE(meet_peer(send_long));
  for (const char* name : {"many", "tagged", "tagged"}) ASSERT_NO_FATAL_FAILURE(post(name));
  peer->begin(a);
  for (int i = 0; i < GetParam(); ++i) {
    ASSERT_NO_FATAL_FAILURE(take_one());
    while (open < 3) ASSERT_NO_FATAL_FAILURE(post("tagged"));
  }
  peer->kill();
  cancel_all();
  while (open > 0 && !HasFailure()) ASSERT_NO_FATAL_FAILURE(take_one());
  // Whatever there is of messages that nobody waited for ends the receive that finds it.
  for (;;) {
    const fi_msg_tagged look{nullptr, nullptr, 0, FI_ADDR_UNSPEC, 2, 0, nullptr, 0};
    ASSERT_EQ(fi_trecvmsg(a.ep, &look, FI_PEEK), 0);
    if (a.next().err == FI_ENOMSG) break;
    ASSERT_EQ(fi_trecv(a.ep, tagged.data(), tagged.size(), nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr), 0);
    const int error = a.next().err;
    ASSERT_TRUE(error == 0 || error == FI_ECONNABORTED) << fi_strerror(error);
  }
  EXPECT_TRUE(a.is_quiet());
}

INSTANTIATE_TEST_SUITE_P(Behind, FiKillSender, ::testing::Range(0, 5));

}  // namespace
}  // namespace portofu::test
