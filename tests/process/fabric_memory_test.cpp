// Memory that runs out in the middle of a call of libfabric: the call says so, leaves nothing behind, and does what it
// is to do when there is memory again. Each use of the allocator in each call fails once.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <functional>
#include <vector>

#include "tests/conformance/libfabric/fabric_fixture.h"
#include "tests/process/failing_memory.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

/// Objects of a process, opened by the calls in their order.
struct Opened {
  test::Info info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_domain* second_domain = nullptr;
  fid_eq* eq = nullptr;
  fid_av* av = nullptr;
  fid_av* writer = nullptr;
  fid_av* reader = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* cntr = nullptr;
  fid_wait* wait_set = nullptr;
  fid_cq* waiting_cq = nullptr;
  fid_cntr* waiting_cntr = nullptr;
  fid_poll* poll_set = nullptr;
  fid_ep* ep = nullptr;
  fid_ep* alias = nullptr;
  fid_ep* srx = nullptr;
  fid_stx* stx = nullptr;
  fid_ep* sep = nullptr;
  fid_ep* tx = nullptr;
  fid_ep* rx = nullptr;
  fid_mr* early_region = nullptr;
  fid_mr* region = nullptr;
  fi_addr_t self = FI_ADDR_NOTAVAIL;
  std::array<std::uint64_t, 4> memory{};
  std::array<std::uint64_t, 4> local{};
  fi_triggered_context trigger{};
};

int insert_self(Opened& o) {
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  if (const int result = fi_getname(&o.ep->fid, name.data(), &bytes); result != 0) return result;
  const int inserted = fi_av_insert(o.av, name.data(), 1, &o.self, 0, nullptr);
  return inserted == 1 ? 0 : inserted == 0 ? -FI_ENOMEM : inserted;
}

/// Three more addresses: what is not inserted has no place, and the others have the next ones.
int insert_several(Opened& o) {
  std::array<fi_addr_t, 3> places{};
  const int inserted = fi_av_insertsym(o.av, "10.1.1.1", 1, "5001", places.size(), places.data(), 0, nullptr);
  if (inserted < 0) return inserted;
  fi_addr_t next = o.self;
  for (const fi_addr_t place : places) {
    if (place != FI_ADDR_NOTAVAIL && place != ++next) return -FI_EOTHER;
  }
  const bool all = inserted == static_cast<int>(places.size());
  for (fi_addr_t& place : places) {
    if (place == FI_ADDR_NOTAVAIL) continue;
    const int removed = fi_av_remove(o.av, &place, 1, 0);
    if (removed == 0 || (removed == -FI_ENOMEM && all && fi_av_remove(o.av, &place, 1, 0) == 0)) continue;
    return -FI_EOTHER;
  }
  return all ? 0 : -FI_ENOMEM;
}

int write_event(Opened& o) {
  const fi_eq_entry entry{&o.eq->fid, nullptr, 0};
  const ssize_t written = fi_eq_write(o.eq, FI_NOTIFY, &entry, sizeof entry, 0);
  return written == sizeof entry ? 0 : static_cast<int>(written);
}

/// The text is there, or is none.
int write_address(Opened& o) {
  std::array<std::byte, 64> name;
  std::array<char, 64> text;
  std::size_t bytes = name.size();
  std::size_t room = text.size();
  if (fi_av_lookup(o.av, o.self, name.data(), &bytes) != 0) return -FI_EOTHER;
  const char* written = fi_av_straddr(o.av, name.data(), text.data(), &room);
  return written == text.data() ? 0 : written == nullptr ? -FI_ENOMEM : -FI_EOTHER;
}

/// An address that another vector of the name has got.
int look_up_shared(Opened& o) {
  fi_addr_t place = FI_ADDR_NOTAVAIL;
  if (o.reader == nullptr || o.writer == nullptr) return -FI_EOTHER;
  const int inserted = fi_av_insertsvc(o.writer, "10.1.1.1", "5001", &place, 0, nullptr);
  if (inserted < 1) return inserted == 0 ? -FI_ENOMEM : inserted;
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  return fi_av_lookup(o.reader, place, name.data(), &bytes);
}

int open_shared_vectors(Opened& o) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "portofu-reader-%d", getpid());
  fi_av_attr attr{};
  attr.name = name.data();
  if (o.writer == nullptr) {
    if (const int result = fi_av_open(o.domain, &attr, &o.writer, nullptr); result != 0) return result;
  }
  return fi_av_open(o.domain, &attr, &o.reader, nullptr);
}

int open_waiting_queue(Opened& o) {
  fi_cq_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = o.wait_set;
  return fi_cq_open(o.domain, &attr, &o.waiting_cq, nullptr);
}

int open_waiting_counter(Opened& o) {
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = o.wait_set;
  return fi_cntr_open(o.domain, &attr, &o.waiting_cntr, nullptr);
}

/// A write to two pieces of remote memory.
int write_pieces(Opened& o) {
  const iovec piece{o.local.data(), 16};
  const std::array<fi_rma_iov, 2> remote{{{0, 8, 7}, {16, 8, 7}}};
  const fi_msg_rma msg{&piece, nullptr, 1, o.self, remote.data(), remote.size(), nullptr, 0};
  return static_cast<int>(fi_writemsg(o.ep, &msg, 0));
}

int receive_later(Opened& o) {
  const iovec piece{o.local.data(), 8};
  o.trigger.event_type = FI_TRIGGER_THRESHOLD;
  o.trigger.trigger.threshold = {o.cntr, 1000};
  const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &o.trigger, 0};
  return static_cast<int>(fi_recvmsg(o.ep, &msg, FI_TRIGGER));
}

int open_named_vector(Opened& o) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "portofu-memory-%d", getpid());
  fi_av_attr attr{};
  attr.name = name.data();
  fid_av* av = nullptr;
  const int result = fi_av_open(o.domain, &attr, &av, nullptr);
  return result != 0 ? result : fi_close(&av->fid);
}

int bind_all(Opened& o) {
  if (const int result = fi_ep_bind(o.ep, &o.av->fid, 0); result != 0) return result;
  if (const int result = fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV); result != 0) return result;
  return fi_ep_bind(o.ep, &o.cntr->fid, FI_WRITE);
}

int enable_context(fid_ep* context, fid_cq* cq, std::uint64_t flags) {
  if (const int result = fi_ep_bind(context, &cq->fid, flags); result != 0) return result;
  return fi_enable(context);
}

int register_memory(Opened& o, std::uint64_t key, fid_mr** region) {
  return fi_mr_reg(o.domain, o.memory.data(), sizeof o.memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, region,
                   nullptr);
}

struct Call {
  const char* name;
  std::function<int(Opened&)> make;
};

std::vector<Call> all_calls() {
  return {
      {"fi_fabric", [](Opened& o) { return fi_fabric(o.info->fabric_attr, &o.fabric, nullptr); }},
      {"fi_domain", [](Opened& o) { return fi_domain(o.fabric, o.info.get(), &o.domain, nullptr); }},
      {"second fi_domain", [](Opened& o) { return fi_domain(o.fabric, o.info.get(), &o.second_domain, nullptr); }},
      {"fi_eq_open", [](Opened& o) { return fi_eq_open(o.fabric, nullptr, &o.eq, nullptr); }},
      {"fi_av_open",
       [](Opened& o) {
         fi_av_attr attr{};
         return fi_av_open(o.domain, &attr, &o.av, nullptr);
       }},
      {"fi_av_open with a name", open_named_vector},
      {"fi_cq_open", [](Opened& o) { return fi_cq_open(o.domain, nullptr, &o.cq, nullptr); }},
      {"fi_cntr_open", [](Opened& o) { return fi_cntr_open(o.domain, nullptr, &o.cntr, nullptr); }},
      {"fi_wait_open", [](Opened& o) { return fi_wait_open(o.fabric, nullptr, &o.wait_set); }},
      {"fi_cq_open in a wait set", open_waiting_queue},
      {"fi_cntr_open in a wait set", open_waiting_counter},
      {"fi_poll_open", [](Opened& o) { return fi_poll_open(o.domain, nullptr, &o.poll_set); }},
      {"fi_poll_add", [](Opened& o) { return fi_poll_add(o.poll_set, &o.cntr->fid, 0); }},
      {"fi_mr_reg before an endpoint", [](Opened& o) { return register_memory(o, 6, &o.early_region); }},
      {"fi_endpoint", [](Opened& o) { return fi_endpoint(o.domain, o.info.get(), &o.ep, nullptr); }},
      {"fi_ep_bind", bind_all},
      {"fi_enable", [](Opened& o) { return fi_enable(o.ep); }},
      {"fi_ep_alias", [](Opened& o) { return fi_ep_alias(o.ep, &o.alias, FI_TRANSMIT); }},
      {"fi_srx_context", [](Opened& o) { return fi_srx_context(o.domain, nullptr, &o.srx, nullptr); }},
      {"fi_stx_context", [](Opened& o) { return fi_stx_context(o.domain, nullptr, &o.stx, nullptr); }},
      {"fi_scalable_ep", [](Opened& o) { return fi_scalable_ep(o.domain, o.info.get(), &o.sep, nullptr); }},
      {"fi_scalable_ep_bind", [](Opened& o) { return fi_scalable_ep_bind(o.sep, &o.av->fid, 0); }},
      {"fi_tx_context", [](Opened& o) { return fi_tx_context(o.sep, 0, nullptr, &o.tx, nullptr); }},
      {"fi_rx_context", [](Opened& o) { return fi_rx_context(o.sep, 0, nullptr, &o.rx, nullptr); }},
      {"fi_enable of a sending context", [](Opened& o) { return enable_context(o.tx, o.cq, FI_TRANSMIT); }},
      {"fi_enable of a receiving context", [](Opened& o) { return enable_context(o.rx, o.cq, FI_RECV); }},
      {"fi_mr_reg", [](Opened& o) { return register_memory(o, 7, &o.region); }},
      {"fi_mr_bind", [](Opened& o) { return fi_mr_bind(o.region, &o.cntr->fid, FI_REMOTE_WRITE); }},
      {"fi_av_insert", insert_self},
      {"fi_av_insertsym", insert_several},
      {"fi_writemsg", write_pieces},
      {"fi_recvmsg with a trigger", receive_later},
      {"fi_cancel", [](Opened& o) { return static_cast<int>(fi_cancel(&o.ep->fid, &o.trigger)); }},
      {"fi_recvmsg with a trigger again", receive_later},
      {"fi_cntr_add", [](Opened& o) { return fi_cntr_add(o.cntr, 1000); }},
      {"fi_eq_write", write_event},
      {"fi_av_straddr", write_address},
      {"fi_av_open of one name", open_shared_vectors},
      {"fi_av_lookup", look_up_shared},
  };
}

int close_all(Opened& o) {
  const auto close = [](auto* object) { return object != nullptr ? fi_close(&object->fid) : 0; };
  int wrong = 0;
  const auto note = [&wrong](int result) { wrong += result != 0 ? 1 : 0; };
  note(close(o.alias));
  note(close(o.tx));
  note(close(o.rx));
  note(close(o.sep));
  note(close(o.ep));
  note(close(o.srx));
  note(close(o.stx));
  note(close(o.early_region));
  note(close(o.region));
  if (o.poll_set != nullptr && o.cntr != nullptr) fi_poll_del(o.poll_set, &o.cntr->fid, 0);
  note(close(o.poll_set));
  note(close(o.waiting_cq));
  note(close(o.waiting_cntr));
  note(close(o.wait_set));
  note(close(o.cntr));
  note(close(o.cq));
  note(close(o.reader));
  note(close(o.writer));
  note(close(o.av));
  note(close(o.eq));
  note(close(o.second_domain));
  note(close(o.domain));
  note(close(o.fabric));
  return wrong;
}

/// Makes a call of which a use of the allocator fails, and makes it again if that was told.
End fail(const Call& call, int use, Opened& o) {
  int result = 0;
  const bool has_failed = make_failing(use, &result, [&] { return call.make(o); });
  if (result == 0) return has_failed ? End::kGood : End::kAllUsesHaveFailed;
  if (!has_failed || (result != -FI_ENOMEM && result != -FI_EAGAIN)) return tell(call.name, "does not tell", result);
  // Who waits looks at all that the engine has.
  if (o.cntr != nullptr) fi_cntr_wait(o.cntr, 1000, 1);
  result = call.make(o);
  return result == 0 ? End::kGood : tell(call.name, "fails again", result);
}

/// Opens and closes everything.
/// @param use  of the allocator in a call that fails
End live(const std::vector<Call>& calls, const Call& failing, int use, const OwnNode& node) {
  Opened o;
  o.info = test::get_info(test::make_hints().get());
  End end = End::kWrong;
  for (const Call& call : calls) {
    if (&call == &failing) {
      if ((end = fail(call, use, o)) == End::kWrong) return end;
    } else if (const int result = call.make(o); result != 0) {
      return tell(call.name, "a later call fails", result);
    }
  }
  if (const int left = close_all(o); left != 0) return tell(failing.name, "objects that cannot be closed", left);
  const int left = node.segment_count();
  return left == 0 ? end : tell(failing.name, "names that are left", left);
}

TEST(FabricMemory, Runs_out_in_the_middle_of_a_call__which_leaves_nothing_behind) {
  const OwnNode node;
  const std::vector<Call> calls = all_calls();
  for (const Call& failing : calls)
    expect_good_lives(failing.name, [&](int use) { return live(calls, failing, use, node); });
}

/// Behind so many bytes of messages to an address goes a mark, which has a counter and memory of its own. An address
/// may be inserted often, and each time it is another one.
End send_without_marks(int) {
  static std::array<std::byte, std::size_t{1} << 20> message, received;
  constexpr int kAddresses = 1100;  // More than one piece of the tables has room for.
  Opened o;
  o.info = test::get_info(test::make_hints().get());
  for (const Call& call : all_calls()) {
    if (const int result = call.make(o); result != 0) return tell(call.name, "fails", result);
    if (call.make.target<int (*)(Opened&)>() != nullptr && *call.make.target<int (*)(Opened&)>() == insert_self) break;
  }
  for (int i = 0; i < kAddresses; ++i) {
    if (const int result = insert_self(o); result != 0) return tell("fi_av_insert", "fails", result);
    if (fi_recv(o.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, nullptr) != 0) return End::kWrong;
    const auto send = [&] {
      return static_cast<int>(fi_send(o.ep, message.data(), message.size(), nullptr, o.self, nullptr));
    };
    int result = -FI_ENOMEM;
    for (int use = 0; result == -FI_ENOMEM; ++use) make_failing(use, &result, send);
    if (result != 0) return tell("fi_send", "fails", result);
  }
  return close_all(o) == 0 ? End::kAllUsesHaveFailed : End::kWrong;
}

TEST(FabricMemory, Runs_out_for_a_mark__which_is_done_without) {
  const OwnNode node;
  expect_good_lives("fi_send", send_without_marks);
}

}  // namespace
}  // namespace portofu
