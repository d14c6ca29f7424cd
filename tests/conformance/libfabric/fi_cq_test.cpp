// fi_cq(3): completion queues.

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiCq : public Fabric {};

TEST_F(FiCq, Blocking_read_ends_with_a_completion_a_signal_or_its_time) {
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 10), -FI_EAGAIN);
  ASSERT_EQ(fi_cq_signal(b.cq), 0);
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
  int received = 0;
  const int sent = 9;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &received), 0);
  std::thread sender([&] { EXPECT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0); });
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, kPatienceMs), 1);
  sender.join();
  EXPECT_EQ(entry.op_context, &received);
}

/// Whether a thread of this process sleeps in the kernel.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.find(") S ") != std::string::npos;
}

/// fi_cq(3): "The fi_cq_signal call will unblock any thread waiting in fi_cq_sread or fi_cq_sreadfrom."
TEST_F(FiCq, Signal_wakes_all_who_wait) {
  std::array<std::atomic<pid_t>, 3> ids{};
  std::array<std::thread, 3> threads;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([&, i] {
      ids[i].store(gettid());
      fi_cq_tagged_entry entry{};
      EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
    });
  }
  const auto sleeps = [](const std::atomic<pid_t>& id) { return id.load() != 0 && is_asleep(id.load()); };
  while (!std::ranges::all_of(ids, sleeps)) std::this_thread::yield();
  ASSERT_EQ(fi_cq_signal(b.cq), 0);
  for (std::thread& thread : threads) thread.join();
}

/// "If the timeout expires or the calling thread is signaled and no data is available to be read from the completion
/// queue, returns -FI_EAGAIN."
TEST_F(FiCq, Blocking_read_ends_with_a_signal_of_the_system) {
  fi_cq_tagged_entry entry{};
  send_signals_during([&] { EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, -1), -FI_EAGAIN); });
}

TEST_F(FiCq, File_descriptor_wakes) {
  Node c;
  c.open(domain_of_b, info.get(), 0, nullptr, 0, FI_WAIT_FD);
  const fi_addr_t to_c = a.insert(c);
  int fd = -1;
  ASSERT_EQ(fi_control(&c.cq->fid, FI_GETWAIT, &fd), 0);
  int received = 0;
  const int sent = 9;
  ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &received), 0);
  fid* waited = &c.cq->fid;
  ASSERT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  pollfd look{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_c), 0);
  EXPECT_EQ(::poll(&look, 1, kPatienceMs), 1);
  EXPECT_EQ(fi_trywait(fabric_of_b, &waited, 1), -FI_EAGAIN);
  EXPECT_EQ(c.next().op_context, &received);
  EXPECT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  c.close();
}

TEST_F(FiCq, More_completions_than_its_size_are_kept) {
  constexpr int kCount = 5000;
  int word = 0;
  for (int i = 0; i < kCount; ++i) {
    ssize_t result = 0;
    while ((result = fi_send(a.ep, &word, sizeof word, nullptr, to_b, nullptr)) == -FI_EAGAIN) continue;
    ASSERT_EQ(result, 0);
  }
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(a.next().err, 0);
  EXPECT_TRUE(a.is_quiet());
}

/// Bytes of address space that this process has.
std::uint64_t address_space() {
  std::ifstream pages("/proc/self/statm");
  std::uint64_t count = 0;
  pages >> count;
  return count * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Bytes of memory of its own that this process may write.
std::uint64_t data_bytes() {
  std::ifstream pages("/proc/self/statm");
  std::uint64_t count = 0;
  for (int field = 0; field < 6; ++field) pages >> count;  // The sixth is data and stack.
  return count * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// There is memory for everything but a queue of a hundred thousand completions. Address space would be no limit: an
/// arena of malloc, which comes with a thread, has much of it that is not used yet.
class LittleMemory {
 public:
  LittleMemory() {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit now{data_bytes() + (24 << 20), before_.rlim_max};
    setrlimit(RLIMIT_DATA, &now);
  }
  ~LittleMemory() { setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

/// fi_cq(3): "After all valid completions have been retrieved, any attempt to read the CQ will result in it returning
/// an FI_EOVERRUN error event."
TEST_F(FiCq, Overrun__is_told_behind_the_completions_that_are_left) {
  if (std::getenv("PORTOFU_TEST_NODES") != nullptr) GTEST_SKIP() << "between nodes the fabric runs out of memory first";
  if (std::getenv("PORTOFU_SHUFFLE") != nullptr) GTEST_SKIP() << "so many writes take more than a minute in disorder";
  constexpr int kCount = 300'000;
  std::uint64_t word = 0;
  fid_mr* const region = open_memory(&word, sizeof word, 5);
  {
    const LittleMemory limit;
    for (int i = 0; i < kCount; ++i) {
      ssize_t result = 0;
      while ((result = fi_write(a.ep, &word, sizeof word, nullptr, to_b, 0, 5, nullptr)) == -FI_EAGAIN) {
        ASSERT_EQ(fi_cq_read(a.cq, nullptr, 0), -FI_EAGAIN);
      }
      ASSERT_EQ(result, 0);
    }
  }
  int taken = 0;
  fi_cq_tagged_entry entry{};
  ssize_t result = 0;
  for (int i = 0; i < 100'000; ++i) fi_cq_read(a.cq, nullptr, 0);  // All of them have arrived.
  while ((result = fi_cq_read(a.cq, &entry, 1)) == 1) ++taken;
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, kCount);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), -FI_EAVAIL);
    EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, -1), -FI_EAVAIL);
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_readerr(a.cq, &error, 0), 1);
    EXPECT_EQ(error.err, FI_EOVERRUN);
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiCq, Memory_is_that_of_completions_not_of_sizes) {
  std::vector<fid_cq*> queues(2000);
  fi_cq_attr attr{};
  attr.size = info->rx_attr->size;
  ASSERT_GE(attr.size, 65536u);
  const std::uint64_t before = address_space();
  for (fid_cq*& opened : queues) ASSERT_EQ(fi_cq_open(domain, &attr, &opened, nullptr), 0);
  EXPECT_LT(address_space() - before, std::uint64_t{1} << 28);
  for (fid_cq* opened : queues) EXPECT_EQ(fi_close(&opened->fid), 0);
  attr.size = SIZE_MAX;
  EXPECT_EQ(fi_cq_open(domain, &attr, &queues[0], nullptr), -FI_EINVAL);
}

/// Who imports a queue of another provider (fi_peer(3)) would wait at one that nobody fills.
TEST_F(FiCq, What_it_cannot_do_is_refused) {
  fid_cq* cq = nullptr;
  fi_cq_attr attr{};
  attr.flags = FI_AFFINITY;
  ASSERT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  attr.flags = FI_PEER;
  EXPECT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), -FI_EBADFLAGS);
  attr.flags = 0;
  attr.format = static_cast<fi_cq_format>(FI_CQ_FORMAT_TAGGED + 1);
  EXPECT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), -FI_ENOSYS);
}

TEST_F(FiCq, Formats_end_where_they_say) {
  struct Case {
    fi_cq_format format;
    std::size_t bytes;
  };
  for (const Case& one :
       {Case{FI_CQ_FORMAT_CONTEXT, sizeof(fi_cq_entry)}, Case{FI_CQ_FORMAT_MSG, sizeof(fi_cq_msg_entry)},
        Case{FI_CQ_FORMAT_DATA, sizeof(fi_cq_data_entry)}}) {
    fi_cq_attr attr{};
    attr.format = one.format;
    fid_cq* cq = nullptr;
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep), 0);
    const int sent = 1;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(fi_send(ep, &sent, sizeof sent, nullptr, to_b, &attr), 0);
    std::array<std::byte, 256> entries;
    entries.fill(std::byte{0xee});
    ssize_t got = 0;
    while (got < 2) {
      const ssize_t more = fi_cq_read(cq, entries.data() + static_cast<std::size_t>(got) * one.bytes, 2);
      ASSERT_TRUE(more > 0 || more == -FI_EAGAIN) << more;
      got += more > 0 ? more : 0;
    }
    EXPECT_EQ(got, 2);
    void* context = nullptr;
    std::memcpy(&context, entries.data() + one.bytes, sizeof context);
    EXPECT_EQ(context, &attr);
    EXPECT_EQ(entries[2 * one.bytes], std::byte{0xee});
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
}

/// Threads of this process that take a signal.
int threads_that_take(int number) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::uint64_t blocked = 0;
    for (std::string word; status >> word;) {
      if (word == "SigBlk:" && status >> std::hex >> blocked) count += (blocked >> (number - 1) & 1) == 0 ? 1 : 0;
    }
  }
  return count;
}

TEST_F(FiCq, Condition_wakes) {
  Node c;
  c.open(domain_of_b, info.get(), 0, nullptr, 0, FI_WAIT_MUTEX_COND);
  const fi_addr_t to_c = a.insert(c);
  const int takers = threads_that_take(SIGUSR1);
  fi_mutex_cond wait{};
  ASSERT_EQ(fi_control(&c.cq->fid, FI_GETWAIT, &wait), 0);
  fi_wait_obj kind = FI_WAIT_NONE;
  ASSERT_EQ(fi_control(&c.cq->fid, FI_GETWAITOBJ, &kind), 0);
  EXPECT_EQ(kind, FI_WAIT_MUTEX_COND);
  int received = 0;
  const int sent = 9;
  ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &received), 0);
  fid* waited = &c.cq->fid;
  pthread_mutex_lock(wait.mutex);
  ASSERT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_c), 0);
  pthread_cond_wait(wait.cond, wait.mutex);
  pthread_mutex_unlock(wait.mutex);
  EXPECT_EQ(c.next().op_context, &received);
  // One that met the thread which tells the condition would end its poll(2).
  EXPECT_EQ(threads_that_take(SIGUSR1), takers) << "signals are for the threads of the program";
  c.close();
}

// close(2) and pthread_join(3) are places where a thread is cancelled (pthreads(7)); fi_close(3) is none.
TEST_F(FiCq, Closed_by_a_thread_that_is_to_be_cancelled__is_closed) {
  for (const fi_wait_obj kind : {FI_WAIT_FD, FI_WAIT_MUTEX_COND}) {
    Node c;
    c.open(domain_of_b, info.get(), 0, nullptr, 0, kind);
    union {
      int fd;
      fi_mutex_cond condition;
    } wait{};
    ASSERT_EQ(fi_control(&c.cq->fid, FI_GETWAIT, &wait), 0);
    bool is_closed = false;
    std::thread closer([&c, &is_closed] {
      pthread_cancel(pthread_self());
      c.close();
      is_closed = true;
    });
    closer.join();
    EXPECT_TRUE(is_closed) << kind;
  }
}

TEST_F(FiCq, Without_a_wait_object_there_is_none_to_get) {
  int fd = -1;
  EXPECT_NE(fi_control(&a.cq->fid, FI_GETWAIT, &fd), 0);
  Node c;
  c.open(domain, info.get(), 0, nullptr, 0, FI_WAIT_YIELD);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(c.cq, &entry, 1, nullptr, 1), -FI_EAGAIN);
  EXPECT_NE(fi_control(&c.cq->fid, FI_GETWAIT, &fd), 0);
  c.close();
}

/// Error data of a queue whose fabric was opened for some version.
class FiCqErrors : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    const Info hints = make_hints();
    ASSERT_EQ(fi_getinfo(GetParam(), nullptr, nullptr, 0, hints.get(), &info_), 0);
    ASSERT_EQ(fi_fabric(info_->fabric_attr, &fabric_, nullptr), 0);
    ASSERT_EQ(fi_domain(fabric_, info_, &domain_, nullptr), 0);
    node.open(domain_, info_);
  }
  void TearDown() override {
    node.close();
    EXPECT_EQ(fi_close(&domain_->fid), 0);
    EXPECT_EQ(fi_close(&fabric_->fid), 0);
    fi_freeinfo(info_);
  }

  /// Makes an error entry. @return what fi_cq_readerr writes over `entry`
  fi_cq_err_entry fail(fi_cq_err_entry entry) const {
    const fi_msg_tagged peek{nullptr, nullptr, 0, FI_ADDR_UNSPEC, 11, 0, nullptr, 0};
    EXPECT_EQ(fi_trecvmsg(node.ep, &peek, FI_PEEK), 0);
    EXPECT_EQ(fi_cq_readerr(node.cq, &entry, 0), 1);
    EXPECT_EQ(entry.err, FI_ENOMSG);
    EXPECT_EQ(fi_cq_readerr(node.cq, &entry, 0), -FI_EAGAIN);
    return entry;
  }

  bool knows_sizes() const { return FI_VERSION_GE(GetParam(), FI_VERSION(1, 5)); }

  Node node;

 private:
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
};

/// "If err_data_size is 0 on input, or the fabric was opened with release < 1.5, then any buffer referenced by err_data
/// will be ignored on input. In this situation, on output err_data will be set to a data buffer owned by the provider."
/// It has no data. The entry of those releases ends with err_data.
TEST_P(FiCqErrors, Data_are_where_the_release_has_them) {
  int data = 0;
  fi_cq_err_entry given{};
  given.err_data = &data;
  given.err_data_size = sizeof data;
  const fi_cq_err_entry sized = fail(given);
  EXPECT_EQ(sized.err_data, knows_sizes() ? &data : nullptr);
  EXPECT_EQ(sized.err_data_size, knows_sizes() ? 0 : sizeof data) << "it is no part of the entry before 1.5";
  given.err_data_size = 0;
  const fi_cq_err_entry unsized = fail(given);
  EXPECT_EQ(unsized.err_data, nullptr);
  EXPECT_EQ(unsized.err_data_size, 0u);
}

INSTANTIATE_TEST_SUITE_P(Releases, FiCqErrors,
                         ::testing::Values(FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 17)));

/// fi_endpoint(3): "Operations that complete in error that are not associated with valid operational context will use
/// the endpoint context in any error reporting structures."
TEST_F(FiCq, Failure_without_a_context_has_that_of_the_endpoint) {
  int context = 0;
  int other = 0;
  a.ep->fid.context = &context;
  ASSERT_EQ(fi_inject_write(a.ep, &other, sizeof other, to_b, 0, 99), 0);
  Completion failed = a.next();
  EXPECT_EQ(failed.err, FI_EKEYREJECTED);
  EXPECT_EQ(failed.op_context, &context);
  ASSERT_EQ(fi_inject_atomic(a.ep, &other, 1, to_b, 0, 99, FI_INT32, FI_SUM), 0);
  failed = a.next();
  EXPECT_EQ(failed.err, FI_EKEYREJECTED);
  EXPECT_EQ(failed.op_context, &context);
}

/// "Error completions are generated for all operations, including those for which a completion was not requested."
TEST_F(FiCq, Failure_is_told_though_no_completion_was_asked_for) {
  TearDown();
  a = b = {};
  open(make_hints().get(), FI_SELECTIVE_COMPLETION);
  int word = 0;
  ASSERT_EQ(fi_write(a.ep, &word, sizeof word, nullptr, to_b, 0, 99, &word), 0);
  EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
  ASSERT_EQ(fi_read(a.ep, &word, sizeof word, nullptr, to_b, 0, 99, &word), 0);
  EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
  ASSERT_EQ(fi_recv(b.ep, &word, 1, nullptr, FI_ADDR_UNSPEC, &word), 0);
  ASSERT_EQ(fi_inject(a.ep, &word, sizeof word, to_b), 0);
  EXPECT_EQ(b.next().err, FI_ETRUNC);
}

/// "If the topmost completion is for a failed transfer (an error entry), returns -FI_EAVAIL."
TEST_F(FiCq, Failure_comes_in_its_turn) {
  int word = 0;
  ASSERT_EQ(fi_recv(b.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &a), 0);
  ASSERT_EQ(fi_recv(b.ep, &word, 1, nullptr, FI_ADDR_UNSPEC, &b), 0);
  ASSERT_EQ(fi_recv(b.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &word), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(fi_inject(a.ep, &word, sizeof word, to_b), 0);
  std::array<fi_cq_tagged_entry, 3> entries{};
  ASSERT_EQ(fi_cq_sread(b.cq, entries.data(), 1, nullptr, kPatienceMs), 1);
  EXPECT_EQ(entries[0].op_context, &a);
  EXPECT_EQ(fi_cq_sread(b.cq, entries.data(), 3, nullptr, kPatienceMs), -FI_EAVAIL);
  fi_cq_err_entry error{};
  ASSERT_EQ(fi_cq_readerr(b.cq, &error, 0), 1);
  EXPECT_EQ(error.op_context, &b);
  EXPECT_EQ(error.olen, 3u);
  EXPECT_NE(fi_cq_strerror(b.cq, error.prov_errno, error.err_data, nullptr, 0), nullptr);
  ASSERT_EQ(fi_cq_sread(b.cq, entries.data(), 3, nullptr, kPatienceMs), 1);
  EXPECT_EQ(entries[0].op_context, &word);
}

/// "Source addresses which cannot be mapped to a usable fi_addr_t will be reported as FI_ADDR_NOTAVAIL."
TEST_F(FiCq, Source_that_is_in_no_vector_is_not_available) {
  int word = 0;
  const auto source = [&] {
    EXPECT_EQ(fi_recv(b.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(fi_inject(a.ep, &word, sizeof word, to_b), 0);
    return b.next().source;
  };
  EXPECT_EQ(source(), to_a);
  ASSERT_EQ(fi_av_remove(b.av, &to_a, 1, 0), 0);
  EXPECT_EQ(source(), FI_ADDR_NOTAVAIL);
  to_a = b.insert(a);
  EXPECT_EQ(source(), to_a);
}

/// fi_endpoint(3): operations with flags of their own "override the op_flags value", others have it.
TEST_F(FiCq, Default_of_an_endpoint_may_be_a_completion) {
  TearDown();
  a = b = {};
  Info hints = make_hints();
  hints->tx_attr->op_flags = FI_COMPLETION;
  open(hints.get(), FI_SELECTIVE_COMPLETION);
  int word = 0;
  const iovec piece{&word, sizeof word};
  const fi_msg msg{&piece, nullptr, 1, to_b, &word, 0};
  ASSERT_EQ(fi_inject(a.ep, &word, sizeof word, to_b), 0);
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, 0), 0);
  ASSERT_EQ(fi_send(a.ep, &word, sizeof word, nullptr, to_b, &a), 0);
  EXPECT_EQ(a.next().op_context, &a);
  EXPECT_TRUE(a.is_quiet());
  fid_ep* alias = nullptr;
  ASSERT_EQ(fi_ep_alias(a.ep, &alias, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_send(alias, &word, sizeof word, nullptr, to_b, &word), 0);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

/// fi_poll(3): "-FI_EAGAIN if there are events queued on the fabric descriptor"; an error is one.
TEST_F(FiCq, File_descriptor_wakes_for_a_failure) {
  Node c;
  c.open(domain, info.get(), 0, nullptr, 0, FI_WAIT_FD);
  const fi_addr_t from_c = c.insert(b);
  int fd = -1;
  int word = 0;
  ASSERT_EQ(fi_control(&c.cq->fid, FI_GETWAIT, &fd), 0);
  fid* waited = &c.cq->fid;
  ASSERT_EQ(fi_trywait(fabric, &waited, 1), 0);
  ASSERT_EQ(fi_inject_write(c.ep, &word, sizeof word, from_c, 0, 99), 0);
  pollfd look{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, kPatienceMs), 1);
  EXPECT_EQ(fi_trywait(fabric, &waited, 1), -FI_EAGAIN);
  EXPECT_EQ(c.next().err, FI_EKEYREJECTED);
  EXPECT_EQ(fi_trywait(fabric, &waited, 1), 0);
  ASSERT_EQ(fi_recv(c.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &word), 0);
  ASSERT_EQ(fi_cancel(&c.ep->fid, &word), 0);
  EXPECT_EQ(::poll(&look, 1, kPatienceMs), 1) << "a canceled receive is an error entry";
  EXPECT_EQ(c.next().err, FI_ECANCELED);
  c.close();
}

/// A source that is not known is FI_ADDR_NOTAVAIL (fi_cq(3)): after an endpoint was closed it is none of the addresses
/// that the next one knows, whether that has the same queue or another.
TEST_F(FiCq, Source_is_no_address_of_another_endpoint) {
  for (const bool same_queue : {false, true}) {
    Node closed;
    int word = 1;
    int received = 0;
    closed.open(domain_of_b, info.get());
    EXPECT_NE(closed.insert(b), FI_ADDR_NOTAVAIL);
    EXPECT_NE(closed.insert(a), FI_ADDR_NOTAVAIL);
    fi_addr_t to_closed = a.insert(closed);
    const iovec piece{&word, sizeof word};
    const fi_msg msg{&piece, nullptr, 1, to_closed, nullptr, 0};
    ASSERT_EQ(fi_recv(closed.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &received), 0);
    ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
    ASSERT_EQ(a.next().err, 0);
    ASSERT_EQ(fi_close(&closed.ep->fid), 0);
    closed.ep = nullptr;
    Node next;
    fi_av_attr attr{};
    ASSERT_EQ(fi_av_open(domain_of_b, &attr, &next.av, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain_of_b, info.get(), &next.ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(next.ep, &next.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(next.ep, same_queue ? &closed.cq->fid : &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(next.ep), 0);
    EXPECT_NE(next.insert(a), FI_ADDR_NOTAVAIL);
    const Completion told = closed.next();
    EXPECT_EQ(told.op_context, &received);
    EXPECT_EQ(told.source, FI_ADDR_NOTAVAIL);
    next.close();
    closed.close();
    ASSERT_EQ(fi_av_remove(a.av, &to_closed, 1, 0), 0);
  }
}

}  // namespace
}  // namespace portofu::test
