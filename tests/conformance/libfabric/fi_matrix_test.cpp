// Every call that starts an operation, in every way to be told of its end: by queues, counters or both, that are asked,
// waited for, or slept at in each of the ways of fi_cq(3), fi_cntr(3) and fi_poll(3), and with each level of
// completion. Kinds of vectors, of registration, of progress and of threading take turns. All data are looked at.

#include <poll.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

enum class Told : std::uint8_t { kQueue, kCounter, kBoth };
enum class Way : std::uint8_t { kRead, kBlock, kDescriptor, kCondition, kWaitSet, kPollSet };

constexpr std::array kTold = {Told::kQueue, Told::kCounter, Told::kBoth};
constexpr std::array kWays = {Way::kRead, Way::kBlock, Way::kDescriptor, Way::kCondition, Way::kWaitSet, Way::kPollSet};
constexpr std::array<std::uint64_t, 4> kLevels = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE};
constexpr std::array<std::size_t, 3> kLengths = {8, 4096, 70'000};
constexpr std::size_t kMostInjected = 4096;
constexpr std::size_t kMostBytes = 70'000;
constexpr std::uint64_t kKey = 5;
constexpr std::uint64_t kTag = 0x1234'5678'9abc'def0;
constexpr std::uint64_t kData = 0xfedc'ba98'7654'3210;

constexpr std::uint64_t kTransmits = FI_SEND | FI_WRITE | FI_READ;

fi_wait_obj wait_object_of(Way way) {
  switch (way) {
    case Way::kRead:
    case Way::kPollSet: return FI_WAIT_NONE;
    case Way::kBlock: return FI_WAIT_UNSPEC;
    case Way::kDescriptor: return FI_WAIT_FD;
    case Way::kCondition: return FI_WAIT_MUTEX_COND;
    default: return FI_WAIT_SET;
  }
}

/// A queue or counter, and how to wait until it may have news.
class Place {
 public:
  void open(fid_fabric* fabric, fid_domain* domain, Way way) {
    fabric_ = fabric;
    way_ = way;
    if (way == Way::kWaitSet) {
      fi_wait_attr attr{};
      attr.wait_obj = FI_WAIT_UNSPEC;
      ASSERT_EQ(fi_wait_open(fabric, &attr, &set_), 0);
    }
    if (way == Way::kPollSet) {
      fi_poll_attr attr{};
      ASSERT_EQ(fi_poll_open(domain, &attr, &polled_), 0);
    }
  }
  fid_wait* set() const { return set_; }
  void watch(fid* object) {
    object_ = object;
    if (way_ == Way::kPollSet) {
      ASSERT_EQ(fi_poll_add(polled_, object, 0), 0);
    }
    if (way_ == Way::kDescriptor) {
      ASSERT_EQ(fi_control(object, FI_GETWAIT, &descriptor_), 0);
    }
    if (way_ == Way::kCondition) {
      ASSERT_EQ(fi_control(object, FI_GETWAIT, &condition_), 0);
    }
  }
  /// Returns when there may be news; with kRead and kBlock at once.
  void sleep() {
    if (way_ == Way::kWaitSet) {
      EXPECT_EQ(fi_wait(set_, kPatienceMs), 0);
    } else if (way_ == Way::kPollSet) {
      void* context = nullptr;
      EXPECT_GE(fi_poll(polled_, &context, 1), 0);
    } else if (way_ == Way::kDescriptor && fi_trywait(fabric_, &object_, 1) == 0) {
      pollfd look{descriptor_, POLLIN, 0};
      EXPECT_EQ(poll(&look, 1, kPatienceMs), 1);
    } else if (way_ == Way::kCondition) {
      pthread_mutex_lock(condition_.mutex);
      if (fi_trywait(fabric_, &object_, 1) == 0) {
        timespec until{};
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += kPatienceMs / 1000;
        EXPECT_EQ(pthread_cond_timedwait(condition_.cond, condition_.mutex, &until), 0);
      }
      pthread_mutex_unlock(condition_.mutex);
    }
  }
  void close() {
    if (polled_ != nullptr) {
      EXPECT_EQ(fi_poll_del(polled_, object_, 0), 0);
      EXPECT_EQ(fi_close(&polled_->fid), 0);
    }
    EXPECT_EQ(fi_close(object_), 0);
    if (set_ != nullptr) {
      EXPECT_EQ(fi_close(&set_->fid), 0);
    }
  }

 private:
  fid_fabric* fabric_ = nullptr;
  Way way_ = Way::kRead;
  fid* object_ = nullptr;
  fid_wait* set_ = nullptr;
  fid_poll* polled_ = nullptr;
  int descriptor_ = -1;
  fi_mutex_cond condition_{};
};

struct QueueOfWay {
  void open(fid_fabric* fabric, fid_domain* domain, Way wanted) {
    way = wanted;
    place.open(fabric, domain, way);
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_TAGGED;
    attr.wait_obj = wait_object_of(way);
    attr.wait_set = place.set();
    ASSERT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), 0);
    place.watch(&cq->fid);
  }
  fi_cq_tagged_entry next() {
    fi_cq_tagged_entry entry{};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const ssize_t got = way == Way::kBlock ? fi_cq_sread(cq, &entry, 1, nullptr, kPatienceMs)  //
                                             : fi_cq_read(cq, &entry, 1);
      if (got == 1) return entry;
      EXPECT_EQ(got, -FI_EAGAIN);
      if (got != -FI_EAGAIN) return entry;
      place.sleep();
    }
    ADD_FAILURE() << "no completion came";
    return entry;
  }

  Way way = Way::kRead;
  Place place;
  fid_cq* cq = nullptr;
};

struct CounterOfWay {
  void open(fid_fabric* fabric, fid_domain* domain, Way wanted) {
    way = wanted;
    place.open(fabric, domain, way);
    fi_cntr_attr attr{};
    attr.wait_obj = wait_object_of(way);
    attr.wait_set = place.set();
    ASSERT_EQ(fi_cntr_open(domain, &attr, &cntr, nullptr), 0);
    place.watch(&cntr->fid);
  }
  /// Waits for one more.
  void next() {
    ++expected;
    if (way == Way::kBlock) {
      EXPECT_EQ(fi_cntr_wait(cntr, expected, kPatienceMs), 0);
    }
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (fi_cntr_read(cntr) < expected && std::chrono::steady_clock::now() < deadline) place.sleep();
    EXPECT_EQ(fi_cntr_read(cntr), expected);
    EXPECT_EQ(fi_cntr_readerr(cntr), 0);
  }

  Way way = Way::kRead;
  Place place;
  fid_cntr* cntr = nullptr;
  std::uint64_t expected = 0;
};

struct Setting {
  Told told;
  Way way;
  std::uint64_t level;
  fi_av_type av_type;
  int mr_mode;
  fi_progress progress;
  fi_threading threading;
};

/// An endpoint that is told of its operations in one of the ways.
struct Side {
  void open(fid_fabric* fabric, fid_domain* domain, fi_info* info, const Setting& setting) {
    told = setting.told;
    fi_av_attr attr{};
    attr.type = setting.av_type;
    ASSERT_EQ(fi_av_open(domain, &attr, &av, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain, info, &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    if (told != Told::kCounter) {
      queue.open(fabric, domain, setting.way);
      ASSERT_EQ(fi_ep_bind(ep, &queue.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    }
    if (told != Told::kQueue) {
      sends.open(fabric, domain, setting.way);
      receives.open(fabric, domain, setting.way);
      ASSERT_EQ(fi_ep_bind(ep, &sends.cntr->fid, kTransmits), 0);
      ASSERT_EQ(fi_ep_bind(ep, &receives.cntr->fid, FI_RECV), 0);
    }
    ASSERT_EQ(fi_enable(ep), 0);
  }
  void close() {
    EXPECT_EQ(fi_close(&ep->fid), 0);
    if (told != Told::kCounter) queue.place.close();
    if (told != Told::kQueue) {
      sends.place.close();
      receives.place.close();
    }
    EXPECT_EQ(fi_close(&av->fid), 0);
  }
  fi_addr_t insert(const Side& other) const { return insert_endpoint(av, other.ep); }
  /// One operation that was started here has ended. @param is_told  of a call that injects only counters are
  void expect_end(std::uint64_t flags, const void* context, bool is_told) {
    if (told != Told::kCounter && is_told) {
      const fi_cq_tagged_entry entry = queue.next();
      EXPECT_EQ(entry.flags, flags);
      EXPECT_EQ(entry.op_context, context);
    }
    if (told != Told::kQueue) sends.next();
  }
  void expect_message(const fi_cq_tagged_entry& expected) {
    if (told != Told::kCounter) {
      const fi_cq_tagged_entry entry = queue.next();
      EXPECT_EQ(entry.flags, expected.flags);
      EXPECT_EQ(entry.op_context, expected.op_context);
      EXPECT_EQ(entry.len, expected.len);
      EXPECT_EQ(entry.buf, expected.buf);
      if ((expected.flags & FI_REMOTE_CQ_DATA) != 0) {
        EXPECT_EQ(entry.data, kData);
      }
      if ((expected.flags & FI_TAGGED) != 0) {
        EXPECT_EQ(entry.tag, kTag);
      }
    }
    if (told != Told::kQueue) receives.next();
  }

  Told told = Told::kQueue;
  fid_av* av = nullptr;
  fid_ep* ep = nullptr;
  QueueOfWay queue;
  CounterOfWay sends;
  CounterOfWay receives;
};

class FiMatrix : public Fabric, public ::testing::WithParamInterface<std::tuple<Told, Way>> {
 protected:
  void SetUp() override {}
  void TearDown() override {}

  void open_setting(const Setting& setting) {
    const Info hints = make_hints();
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    hints->domain_attr->mr_mode = setting.mr_mode;
    hints->domain_attr->av_type = setting.av_type;
    hints->domain_attr->data_progress = hints->domain_attr->control_progress = setting.progress;
    hints->domain_attr->threading = setting.threading;
    hints->tx_attr->op_flags = setting.level;
    info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    // What the application can do it may ask for, whether it is needed or not.
    info->domain_attr->mr_mode = setting.mr_mode;
    ASSERT_NO_FATAL_FAILURE(open_domains());
    initiator.open(fabric, domain, info.get(), setting);
    target.open(fabric_of_b, domain_of_b, info.get(), setting);
    to_target = initiator.insert(target);
    level = setting.level;
    open_region(setting.mr_mode);
  }

  void open_region(int mode) {
    ASSERT_EQ(fi_mr_reg(domain_of_b, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0,
                        &region, nullptr),
              0);
    if (mode != FI_MR_BASIC && (mode & FI_MR_ENDPOINT) != 0) {
      ASSERT_EQ(fi_mr_bind(region, &target.ep->fid, 0), 0);
      ASSERT_EQ(fi_mr_enable(region), 0);
    }
    const bool is_virtual = mode == FI_MR_BASIC || (mode & FI_MR_VIRT_ADDR) != 0;
    remote = is_virtual ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0;
    key = fi_mr_key(region);
  }

  void close_setting() {
    EXPECT_EQ(fi_close(&region->fid), 0);
    initiator.close();
    target.close();
    if (domain_of_b != domain) {
      EXPECT_EQ(fi_close(&domain_of_b->fid), 0);
      EXPECT_EQ(fi_close(&fabric_of_b->fid), 0);
    }
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    initiator = {};
    target = {};
  }

  void fill(std::size_t length) {
    ++round;
    for (std::size_t i = 0; i < length; ++i) source[i] = static_cast<char>(round * 7 + i * 13 + i / 251);
    std::ranges::fill(sink, 0);
    pieces = {{{source.data(), length / 2}, {source.data() + length / 2, length - length / 2}}};
  }

  enum class Form : std::uint8_t { kPlain, kPieces, kMessage, kInject, kWithData, kInjectData, kCount };
  static bool injects(Form form) { return form == Form::kInject || form == Form::kInjectData; }
  static bool has_data(Form form) { return form == Form::kWithData || form == Form::kInjectData; }

  ssize_t send(Form form, std::size_t length) {
    fid_ep* ep = initiator.ep;
    char* bytes = source.data();
    const fi_msg msg{pieces.data(), nullptr, 2, to_target, this, 0};
    switch (form) {
      case Form::kPlain: return fi_send(ep, bytes, length, nullptr, to_target, this);
      case Form::kPieces: return fi_sendv(ep, pieces.data(), nullptr, 2, to_target, this);
      case Form::kMessage: return fi_sendmsg(ep, &msg, level);
      case Form::kInject: return fi_inject(ep, bytes, length, to_target);
      case Form::kWithData: return fi_senddata(ep, bytes, length, nullptr, kData, to_target, this);
      default: return fi_injectdata(ep, bytes, length, kData, to_target);
    }
  }
  ssize_t send_tagged(Form form, std::size_t length) {
    fid_ep* ep = initiator.ep;
    char* bytes = source.data();
    const fi_msg_tagged msg{pieces.data(), nullptr, 2, to_target, kTag, 0, this, 0};
    switch (form) {
      case Form::kPlain: return fi_tsend(ep, bytes, length, nullptr, to_target, kTag, this);
      case Form::kPieces: return fi_tsendv(ep, pieces.data(), nullptr, 2, to_target, kTag, this);
      case Form::kMessage: return fi_tsendmsg(ep, &msg, level);
      case Form::kInject: return fi_tinject(ep, bytes, length, to_target, kTag);
      case Form::kWithData: return fi_tsenddata(ep, bytes, length, nullptr, kData, to_target, kTag, this);
      default: return fi_tinjectdata(ep, bytes, length, kData, to_target, kTag);
    }
  }
  ssize_t write(Form form, std::size_t length) {
    fid_ep* ep = initiator.ep;
    char* bytes = source.data();
    const fi_rma_iov place{remote, length, key};
    const fi_msg_rma msg{pieces.data(), nullptr, 2, to_target, &place, 1, this, 0};
    switch (form) {
      case Form::kPlain: return fi_write(ep, bytes, length, nullptr, to_target, remote, key, this);
      case Form::kPieces: return fi_writev(ep, pieces.data(), nullptr, 2, to_target, remote, key, this);
      case Form::kMessage: return fi_writemsg(ep, &msg, level);
      case Form::kInject: return fi_inject_write(ep, bytes, length, to_target, remote, key);
      case Form::kWithData: return fi_writedata(ep, bytes, length, nullptr, kData, to_target, remote, key, this);
      default: return fi_inject_writedata(ep, bytes, length, kData, to_target, remote, key);
    }
  }

  /// @param is_late  the receive is posted behind it
  void message(bool tagged, Form form, std::size_t length, bool is_late) {
    fill(length);
    const auto receive = [&] {
      return tagged ? fi_trecv(target.ep, sink.data(), length, nullptr, FI_ADDR_UNSPEC, kTag, 0, &sink)
                    : fi_recv(target.ep, sink.data(), length, nullptr, FI_ADDR_UNSPEC, &sink);
    };
    if (!is_late) {
      ASSERT_EQ(receive(), 0);
    }
    ASSERT_EQ(tagged ? send_tagged(form, length) : send(form, length), 0);
    if (is_late) {
      ASSERT_EQ(receive(), 0);
    }
    const std::uint64_t kind = tagged ? FI_TAGGED : FI_MSG;
    initiator.expect_end(FI_SEND | kind, this, !injects(form));
    fi_cq_tagged_entry expected{};
    expected.flags = FI_RECV | kind | (has_data(form) ? FI_REMOTE_CQ_DATA : 0);
    expected.op_context = &sink;
    expected.len = length;
    expected.buf = sink.data();
    target.expect_message(expected);
    EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(length), sink.begin()));
  }

  void access(Form form, std::size_t length) {
    fill(length);
    ASSERT_EQ(write(form, length), 0);
    // A counter alone tells of what is injected; else what is written next is the sign.
    initiator.expect_end(FI_WRITE | FI_RMA, this, !injects(form));
    if (injects(form) && initiator.told == Told::kQueue) {
      const iovec none{nullptr, 0};
      const fi_rma_iov place{remote, 0, key};
      const fi_msg_rma msg{&none, nullptr, 0, to_target, &place, 1, this, 0};
      ASSERT_EQ(fi_writemsg(initiator.ep, &msg, FI_FENCE | FI_DELIVERY_COMPLETE), 0);
      initiator.expect_end(FI_WRITE | FI_RMA, this, true);
    }
    if (has_data(form) && target.told != Told::kCounter) {
      const fi_cq_tagged_entry entry = target.queue.next();
      EXPECT_EQ(entry.flags, FI_REMOTE_WRITE | FI_RMA | FI_REMOTE_CQ_DATA);
      EXPECT_EQ(entry.data, kData);
      EXPECT_EQ(entry.len, length);
    }
    EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(length), memory.begin()));
  }

  void fetch(Form form, std::size_t length) {
    fill(length);
    std::ranges::copy(source, memory.begin());
    const std::array<iovec, 2> places{{{sink.data(), length / 2}, {sink.data() + length / 2, length - length / 2}}};
    const fi_rma_iov place{remote, length, key};
    const fi_msg_rma msg{places.data(), nullptr, 2, to_target, &place, 1, this, 0};
    fid_ep* ep = initiator.ep;
    const ssize_t started =
        form == Form::kPlain    ? fi_read(ep, sink.data(), length, nullptr, to_target, remote, key, this)
        : form == Form::kPieces ? fi_readv(ep, places.data(), nullptr, 2, to_target, remote, key, this)
                                : fi_readmsg(ep, &msg, level);
    ASSERT_EQ(started, 0);
    initiator.expect_end(FI_READ | FI_RMA, this, true);
    EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(length), sink.begin()));
  }

  enum class Family : std::uint8_t { kBase, kFetch, kCompare };

  /// Adds, or exchanges what is there for it.
  ssize_t change(Family family, Form form, fi_op op) {
    fid_ep* ep = initiator.ep;
    const fi_ioc given{&operand, 1}, compared{&known, 1};
    fi_ioc got{&old, 1};
    const fi_rma_ioc place{remote, 1, key};
    const fi_msg_atomic msg{&given, nullptr, 1, to_target, &place, 1, FI_UINT64, op, this, 0};
    if (form == Form::kInject) return fi_inject_atomic(ep, &operand, 1, to_target, remote, key, FI_UINT64, op);
    if (family == Family::kBase) {
      if (form == Form::kMessage) return fi_atomicmsg(ep, &msg, level);
      return form == Form::kPlain ? fi_atomic(ep, &operand, 1, nullptr, to_target, remote, key, FI_UINT64, op, this)
                                  : fi_atomicv(ep, &given, nullptr, 1, to_target, remote, key, FI_UINT64, op, this);
    }
    if (family == Family::kFetch) {
      if (form == Form::kMessage) return fi_fetch_atomicmsg(ep, &msg, &got, nullptr, 1, level);
      return form == Form::kPlain
                 ? fi_fetch_atomic(ep, &operand, 1, nullptr, &old, nullptr, to_target, remote, key, FI_UINT64, op, this)
                 : fi_fetch_atomicv(ep, &given, nullptr, 1, &got, nullptr, 1, to_target, remote, key, FI_UINT64, op,
                                    this);
    }
    if (form == Form::kMessage) return fi_compare_atomicmsg(ep, &msg, &compared, nullptr, 1, &got, nullptr, 1, level);
    return form == Form::kPlain ? fi_compare_atomic(ep, &operand, 1, nullptr, &known, nullptr, &old, nullptr, to_target,
                                                    remote, key, FI_UINT64, op, this)
                                : fi_compare_atomicv(ep, &given, nullptr, 1, &compared, nullptr, 1, &got, nullptr, 1,
                                                     to_target, remote, key, FI_UINT64, op, this);
  }

  void atomic(Family family, Form form) {
    const std::uint64_t before = ++round;
    std::memcpy(memory.data(), &before, sizeof before);
    operand = 1000;
    known = before;
    old = 0;
    ASSERT_EQ(change(family, form, family == Family::kCompare ? FI_CSWAP : FI_SUM), 0);
    const bool is_told = form != Form::kInject;
    initiator.expect_end((family == Family::kBase ? FI_WRITE : FI_READ) | FI_ATOMIC, this, is_told);
    if (!is_told && initiator.told == Told::kQueue) {
      ASSERT_EQ(fi_fetch_atomic(initiator.ep, &operand, 1, nullptr, &old, nullptr, to_target, remote, key, FI_UINT64,
                                FI_ATOMIC_READ, this),
                0);
      initiator.expect_end(FI_READ | FI_ATOMIC, this, true);
    }
    std::uint64_t now = 0;
    std::memcpy(&now, memory.data(), sizeof now);
    EXPECT_EQ(now, family == Family::kCompare ? operand : before + operand);
    if (family != Family::kBase) {
      EXPECT_EQ(old, before);
    }
  }

  void run_all() {
    for (const std::size_t length : kLengths) {
      for (int i = 0; i < static_cast<int>(Form::kCount) && !HasFailure(); ++i) {
        const Form form{static_cast<std::uint8_t>(i)};
        SCOPED_TRACE("form " + std::to_string(i) + ", " + std::to_string(length) + " bytes");
        if (injects(form) && length > kMostInjected) continue;
        for (const bool tagged : {false, true}) message(tagged, form, length, (i % 2 == 0) == tagged);
        access(form, length);
        if (form <= Form::kMessage) fetch(form, length);
      }
    }
    for (const Form form : {Form::kPlain, Form::kPieces, Form::kMessage, Form::kInject}) {
      SCOPED_TRACE("atomic, form " + std::to_string(static_cast<int>(form)));
      for (const Family family : {Family::kBase, Family::kFetch, Family::kCompare})
        if (form != Form::kInject || family == Family::kBase) atomic(family, form);
    }
  }

  void run(const Setting& setting) {
    SCOPED_TRACE("level " + std::to_string(setting.level) + ", registration " + std::to_string(setting.mr_mode) +
                 ", progress " + std::to_string(setting.progress) + ", threads " + std::to_string(setting.threading));
    open_setting(setting);
    if (!HasFailure()) run_all();
    if (!HasFailure()) close_setting();
  }

  Side initiator;
  Side target;
  fi_addr_t to_target = FI_ADDR_NOTAVAIL;
  std::uint64_t level = 0;
  fid_mr* region = nullptr;
  std::uint64_t remote = 0;
  std::uint64_t key = 0;
  std::uint64_t round = 0;
  std::uint64_t operand = 0, known = 0, old = 0;
  std::array<iovec, 2> pieces{};
  std::vector<char> source = std::vector<char>(kMostBytes), sink = std::vector<char>(kMostBytes);
  alignas(8) std::array<char, kMostBytes> memory{};
};

TEST_P(FiMatrix, Every_call_is_told_of) {
  constexpr std::array kRegistrations = {0, int{FI_MR_BASIC}, int{FI_MR_VIRT_ADDR}, int{FI_MR_PROV_KEY},
                                         int{FI_MR_ENDPOINT}};
  constexpr std::array kVectors = {FI_AV_MAP, FI_AV_TABLE};
  constexpr std::array kProgress = {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL};
  constexpr std::array kThreading = {FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT,
                                     FI_THREAD_FID};
  const auto [told, way] = GetParam();
  std::size_t turn = kWays.size() * static_cast<std::size_t>(told) + static_cast<std::size_t>(way);
  for (const std::uint64_t wanted : kLevels) {
    if (HasFailure()) return;
    run({told, way, wanted, kVectors[turn % 2], kRegistrations[turn % 5], kProgress[turn / 2 % 2],
         kThreading[turn % 5]});
    ++turn;
  }
}

INSTANTIATE_TEST_SUITE_P(By, FiMatrix, ::testing::Combine(::testing::ValuesIn(kTold), ::testing::ValuesIn(kWays)));

}  // namespace
}  // namespace portofu::test
