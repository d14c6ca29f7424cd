// Portals 4.3, 3.13.3: operations that cannot be delivered, and memory that is not there. Refusals by permission are
// tested in s3_12_1_entry_options_test.cpp, by flow control in s2_08_flow_control_test.cpp.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <string>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(FailureNotification);

namespace {

// Pages that are mapped, followed by one that is not.
unsigned char* pages_before_a_hole(std::size_t count) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, (count + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || munmap(static_cast<char*>(pages) + count * page, page) != 0) stop("mmap");
  return static_cast<unsigned char*>(pages);
}
unsigned char* page_before_a_hole() { return pages_before_a_hole(1); }

ptl_size_t page_size() { return static_cast<ptl_size_t>(sysconf(_SC_PAGESIZE)); }

// Starts puts and gets, short and long, numbered by user_ptr.
void start_operations(ptl_handle_md_t md, ptl_process_t target, int count) {
  for (int i = 0; i < count; ++i) {
    const Message message{.length = i % 4 < 2 ? 300000u : 8u, .user_ptr = tag(i)};
    if (i % 2 == 0) put(md, target, message);
    if (i % 2 == 1) get(md, target, message);
  }
}

// Waits until each of them has ended: by ACK or REPLY, or by a SEND that tells a failure.
void finish_operations(ptl_handle_eq_t eq, int count) {
  std::set<void*> open;
  for (int i = 0; i < count; ++i) open.insert(tag(i));
  while (!open.empty()) {
    const ptl_event_t event = next_event(eq);
    EXPECT_TRUE(event.ni_fail_type == PTL_NI_OK || event.ni_fail_type == PTL_NI_UNDELIVERABLE) << describe(event);
    if (event.type != PTL_EVENT_SEND || event.ni_fail_type != PTL_NI_OK) open.erase(event.user_ptr);
  }
}

// Operations towards a process that is not there end with PTL_NI_UNDELIVERABLE. For a put with an acknowledgment, SEND
// may tell it ("a locally generated failure"), or ACK.
void expect_undeliverable(const Ni& ni, ptl_process_t nobody) {
  std::vector<unsigned char> data = pattern(64);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(data.data(), data.size(), eq));
  get(md, nobody, {.length = 8, .user_ptr = tag(1)});
  EXPECT_EQ(next_event(eq, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE).user_ptr, tag(1));
  put(md, nobody, {.length = 8, .user_ptr = tag(2)});
  ptl_event_t event = next_event(eq);
  EXPECT_EQ(event.user_ptr, tag(2));
  if (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK) event = next_event(eq);
  EXPECT_TRUE(event.type == PTL_EVENT_SEND || event.type == PTL_EVENT_ACK) << describe(event);
  EXPECT_EQ(event.ni_fail_type, PTL_NI_UNDELIVERABLE) << describe(event);
}

// Memory that is mapped here can be used until somebody notices that its owner is dead (PORTOFU_PEER_CHECK_MS).
void wait_until_noticed(ptl_handle_md_t md, ptl_handle_eq_t eq, ptl_process_t dead) {
  for (ptl_time_t ms = 0; ms < kPatienceMs; ++ms) {
    get(md, dead, {.length = 8});
    if (next_event(eq).ni_fail_type != PTL_NI_OK) return;
    usleep(1000);
  }
  ADD_FAILURE() << "nobody noticed that the process is dead";
}

}  // namespace

// 3.13.3: PTL_NI_UNDELIVERABLE "Indicates a system failure that prevents message delivery": no process has the pid.
TEST_PROCESSES(1, FailureNotification, Section3_13_3__target_that_never_was) {
  const Ni ni(self);
  ptl_process_t nobody = ni.target();
  nobody.phys.pid = nobody.phys.pid == 65001 ? 65002 : 65001;
  expect_undeliverable(ni, nobody);
  const Ends ends(ni);
  append(ni, me_of(ni, nullptr, 0));
  put_and_wait(ends, ni.target(), {.length = 1});
}

// 3.13.3, and nobody waits for the dead: the target is killed.
TEST_PROCESSES(3, FailureNotification, Section3_13_3__target_that_dies) {
  const Ni ni(self);
  const Ends ends(ni);
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  if (self.rank() != 2) append(ni, me_of(ni, nullptr, 0));
  self.barrier();
  if (self.rank() == 2) put_and_wait(ends, ni.id(0), {.length = 1});
  if (self.rank() == 2) put_and_wait(ends, ni.id(1), {.length = 1});
  self.barrier();
  if (self.rank() == 1) self.die();
  self.barrier();
  if (self.rank() == 2) {
    expect_undeliverable(ni, ni.id(1));
    put_and_wait(ends, ni.id(0), {.length = 1});  // The living are not touched by it.
  }
  self.barrier();
}

// Note 12: "every operation started will finish with an event", also if the target is killed while it is working on
// them.
TEST_PROCESSES(2, FailureNotification, Section3_13_3__target_that_dies_in_the_middle) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  alloc_pt(ni, PTL_EQ_NONE);
  std::vector<unsigned char> memory(300000);
  const ptl_handle_md_t md = bind_md(ni, md_of(memory.data(), memory.size(), eq));
  append(ni, me_of(ni, memory.data(), memory.size()));
  self.barrier();
  if (self.rank() == 1) self.die();
  constexpr int kOperations = 200;
  start_operations(md, ni.id(1), kOperations);
  finish_operations(eq, kOperations);
  self.barrier();
  wait_until_noticed(md, eq, ni.id(1));
  expect_undeliverable(ni, ni.id(1));
}

// The same if it is stopped first, so that the operations certainly wait for it.
TEST_PROCESSES(2, FailureNotification, Section3_13_3__target_that_is_stopped_and_dies) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  alloc_pt(ni, PTL_EQ_NONE);
  std::vector<unsigned char> memory(300000);
  const ptl_handle_md_t md = bind_md(ni, md_of(memory.data(), memory.size(), eq));
  append(ni, me_of(ni, memory.data(), memory.size()));
  const pid_t target = self.share(getpid())[1];
  if (self.rank() == 1) {
    self.announce_death();
    raise(SIGSTOP);
  }
  wait_for_state("/proc/" + std::to_string(target), 'T');
  constexpr int kOperations = 50;
  start_operations(md, ni.id(1), kOperations);
  ASSERT_EQ(kill(target, SIGKILL), 0);
  finish_operations(eq, kOperations);
  self.barrier();
}

// 3.13.3: "To allow PTL_EVENT_SEND events to be local operations, all errors requiring remote information are delivered
// in PTL_EVENT_ACK or PTL_EVENT_REPLY events."
TEST_BOTH_WAYS(FailureNotification, Section3_13_3__send_does_not_tell_what_happened_at_the_target) {
  const Ni ni(self);
  Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq));
  self.target([&] {
    ptl_me_t closed = me_of(ni, nullptr, 0);
    closed.options &= ~PTL_ME_OP_PUT;
    append(ni, closed);
  });
  self.initiator([&] {
    for (const Message& message : {Message{.length = 8}, Message{.length = 8, .match_bits = 1}}) {
      put(md, ni.target(), message);
      const int events = message.match_bits == 0 ? 2 : 1;  // The second one matches nothing and gets no ACK (2.8).
      for (int i = 0; i < events; ++i) {
        const ptl_event_t event = next_event(eq);
        EXPECT_TRUE(event.type == PTL_EVENT_SEND || (event.type == PTL_EVENT_ACK && events == 2)) << describe(event);
        EXPECT_EQ(event.ni_fail_type, event.type == PTL_EVENT_SEND ? PTL_NI_OK : PTL_NI_OP_VIOLATION)
            << describe(event);
      }
    }
  });
}

// The same of flow control (2.8, discussion: its notification "is only delivered to the initiator of an operation in
// the PTL_EVENT_ACK or PTL_EVENT_REPLY event"), for short and long messages, and for counts as for full events.
TEST_BOTH_WAYS(FailureNotification, Section3_13_3__send_does_not_tell_of_flow_control) {
  const Ni ni(self);
  Ends ends(ni, PTL_PT_FLOWCTRL);
  std::vector<unsigned char> data = pattern(200000);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  ptl_handle_ct_t ct = PTL_CT_NONE;
  REQUIRE_OK(PtlCTAlloc(ni, &ct));
  const ptl_handle_md_t md = bind_md(ni, md_of(data.data(), data.size(), eq));
  const ptl_handle_md_t counted = bind_md(ni, md_of(data.data(), data.size(), PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_SEND));
  self.barrier();
  self.initiator([&] {
    const ptl_size_t lengths[] = {0, 8, 3000, 200000};
    for (const ptl_size_t length : lengths) {
      put(md, ni.target(), {.length = length});
      for (int i = 0; i < 2; ++i) {
        const ptl_event_t event = next_event(eq);
        EXPECT_EQ(event.ni_fail_type, event.type == PTL_EVENT_SEND ? PTL_NI_OK : PTL_NI_PT_DISABLED)
            << length << " bytes: " << describe(event);
      }
      put(counted, ni.target(), {.length = length});
    }
    EXPECT_EQ(wait_for_count(ct, std::size(lengths)).failure, 0u);
    expect_empty(eq);
  });
}

// 3.13.1: SEND "is logged after it is safe to reuse the buffer, but does not mean the message has been processed by the
// target": it comes while the target stands still, and ACK does not. What it has said it has said: the target's death
// is told by ACK.
TEST_PROCESSES(2, FailureNotification, Section3_13_1__send_comes_while_the_target_stands_still) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq));
  append(ni, me_of(ni, nullptr, 0));
  self.barrier();
  const pid_t target = self.share(getpid())[1];
  if (self.rank() == 0) put_and_wait(ends, ni.id(1), {.length = 1});
  self.barrier();
  if (self.rank() == 1) {
    self.announce_death();
    raise(SIGSTOP);
  }
  wait_for_state("/proc/" + std::to_string(target), 'T');
  put(md, ni.id(1), {.length = 8, .user_ptr = tag(3)});
  EXPECT_EQ(next_event(eq, PTL_EVENT_SEND).user_ptr, tag(3));
  expect_empty(eq);
  ASSERT_EQ(kill(target, SIGKILL), 0);
  EXPECT_EQ(next_event(eq, PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE).user_ptr, tag(3));
  self.barrier();
}

// A process that has ended properly is gone too.
TEST_PROCESSES(2, FailureNotification, Section3_13_3__target_that_has_closed_its_interface) {
  const Ni ni(self);
  const Ends ends(ni);
  if (self.rank() == 1) append(ni, me_of(ni, nullptr, 0));
  self.barrier();
  if (self.rank() == 0) put_and_wait(ends, ni.id(1), {.length = 1});
  self.barrier();
  if (self.rank() == 1) {
    REQUIRE_OK(PtlNIFini(ni));
    PtlFini();
  }
  self.barrier();
  if (self.rank() == 0) expect_undeliverable(ni, ni.id(1));
  self.barrier();
}

// 3.10: an operation that "would access an unallocated region of the MD ... may simply fail ... If a full event is
// delivered, it must set ni_fail_type to PTL_NI_SEGV". Never a crash. 3.13.3: there is an ACK unless "a locally
// generated failure is delivered in the PTL_EVENT_SEND", so exactly one of the two tells it, however long the put is.
TEST_BOTH_WAYS(FailureNotification, Section3_10__put_from_memory_that_is_not_there) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t everything = bind_md(ni, md_of(nullptr, PTL_SIZE_MAX, eq));
  std::vector<unsigned char> memory(1 << 20);
  const ptl_handle_md_t good = bind_md(ni, md_of(memory.data(), memory.size(), eq));
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    const auto hole = reinterpret_cast<ptl_size_t>(pages_before_a_hole(64)) + 64 * page_size();
    for (ptl_size_t length : {8u, 3000u, 100000u, 300000u, 1000000u}) {
      const ptl_size_t good_bytes = length > 100000 ? 200000 : 4;  // Of the long ones some packets leave.
      put(everything, ni.target(), {.length = length, .local_offset = hole - good_bytes, .user_ptr = tag(length)});
      ptl_event_t event = next_event(eq);
      EXPECT_EQ(event.user_ptr, tag(length)) << "the put before has ended: " << describe(event);
      if (event.ni_fail_type == PTL_NI_OK) event = next_event(eq);
      EXPECT_EQ(event.ni_fail_type, PTL_NI_SEGV) << length << " bytes: " << describe(event);
      put(good, ni.target(), {.length = 8, .user_ptr = tag(1)});  // Whatever else comes of the other comes before.
      next_event(eq, PTL_EVENT_SEND);
      EXPECT_EQ(next_event(eq, PTL_EVENT_ACK).user_ptr, tag(1));
    }
    put_and_wait(ends, ni.target(), {.length = 8});
  });
}

// 3.13.3: "a PTL_EVENT_ACK will be delivered if it is requested, except when ... a locally generated failure is
// delivered in the PTL_EVENT_SEND". 3.10.1: PTL_MD_EVENT_SEND_DISABLE "does not affect counting events". So a SEND that
// is only counted counts its failure once, and takes no event from whoever asks for that of an ACK.
TEST_BOTH_WAYS(FailureNotification, Section3_13_3__failed_send_is_told_by_event_or_count_or_ack) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> memory(1 << 20);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  const auto put_from_hole = [&](unsigned int options, ptl_ack_req_t ack, ptl_size_t length) {
    const bool has_event = (options & PTL_MD_EVENT_SEND_DISABLE) == 0;
    const bool counts_send = (options & PTL_MD_EVENT_CT_SEND) != 0;
    const bool has_ack = !has_event && (!counts_send || ack == PTL_ACK_REQ);
    const bool counts_ack = has_ack && (options & PTL_MD_EVENT_CT_ACK) != 0;
    const ptl_handle_eq_t eq = alloc_eq(ni);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    const ptl_handle_md_t md = bind_md(ni, md_of(nullptr, PTL_SIZE_MAX, eq, ct, options));
    const auto hole = reinterpret_cast<ptl_size_t>(pages_before_a_hole(64)) + 64 * page_size();
    const ptl_size_t good_bytes = length > 100000 ? 200000 : 4;  // Of the long ones some packets leave.
    put(md, ni.target(), {.length = length, .local_offset = hole - good_bytes, .ack = ack});
    if (has_event) next_event(eq, PTL_EVENT_SEND, PTL_NI_SEGV);
    if (has_ack && ack == PTL_ACK_REQ) next_event(eq, PTL_EVENT_ACK, PTL_NI_SEGV);
    wait_for_counts(ct, 0, (counts_send ? 1u : 0u) + (counts_ack ? 1u : 0u));
    put_and_wait(ends, ni.target(), {.length = 8});  // Whatever else comes of the other one comes before.
    expect_empty(eq);
    EXPECT_EQ(count_of(ct).success, 0u);
    EXPECT_EQ(count_of(ct).failure, (counts_send ? 1u : 0u) + (counts_ack ? 1u : 0u));
    REQUIRE_OK(PtlMDRelease(md));
    REQUIRE_OK(PtlCTFree(ct));
    REQUIRE_OK(PtlEQFree(eq));
  };
  constexpr unsigned int kOptions[] = {PTL_MD_EVENT_SEND_DISABLE, PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_ACK};
  self.initiator([&] {
    for (const ptl_size_t length : {8u, 100000u, 1000000u}) {
      for (unsigned int choice = 0; choice < 8; ++choice) {
        unsigned int options = 0;
        for (unsigned int i = 0; i < 3; ++i) options |= (choice >> i & 1) != 0 ? kOptions[i] : 0;
        SCOPED_TRACE(std::to_string(length) + " bytes, options " + std::to_string(options));
        for (const ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ})
          put_from_hole(options, ack, length);
      }
    }
  });
}

// 3.10: the same for the memory into which a get shall deliver.
TEST_BOTH_WAYS(FailureNotification, Section3_10__get_into_memory_that_is_not_there) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_md_t everything = bind_quiet(ni, nullptr, PTL_SIZE_MAX, ends.source_eq);
  std::vector<unsigned char> memory(1 << 20);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    const auto hole = reinterpret_cast<ptl_size_t>(page_before_a_hole()) + page_size();
    for (ptl_size_t length : {8u, 3000u, 100000u}) {
      get(everything, ni.target(), {.length = length, .local_offset = hole - 4});
      next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_SEGV);
    }
    put_and_wait(ends, ni.target(), {.length = 8});
  });
}

// 3.12: "If an incoming operation attempts to access an unallocated region of the ME, ... ni_fail_type to PTL_NI_SEGV",
// in the event of the target and of the initiator.
TEST_BOTH_WAYS(FailureNotification, Section3_12__target_memory_that_is_not_there) {
  const Ni ni(self);
  const Ends ends(ni);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  std::vector<unsigned char> out = pattern(100000);
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  ptl_size_t hole = 0;
  self.target([&] {
    hole = reinterpret_cast<ptl_size_t>(page_before_a_hole()) + page_size();
    append(ni, me_of(ni, nullptr, PTL_SIZE_MAX));
  });
  hole = self.share(hole)[0];
  for (ptl_size_t length : {8u, 3000u, 100000u}) {
    const Message message{.length = length, .remote_offset = hole - 4};
    self.initiator([&] {
      put(md, ni.target(), message);
      next_event(ends.source_eq, PTL_EVENT_ACK, PTL_NI_SEGV);
      get(md, ni.target(), message);
      next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_SEGV);
    });
    self.target([&] {
      next_event(ends.target_eq, PTL_EVENT_PUT, PTL_NI_SEGV);
      next_event(ends.target_eq, PTL_EVENT_GET, PTL_NI_SEGV);
    });
  }
}

// 3.12: "A message with an invalid address/offset pair that is of zero bytes will not cause a PTL_NI_SEGV".
TEST_BOTH_WAYS(FailureNotification, Section3_12__zero_bytes_do_not_access_memory) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_md_t everything = bind_quiet(ni, nullptr, PTL_SIZE_MAX, ends.source_eq);
  self.target([&] { append(ni, me_of(ni, reinterpret_cast<void*>(8), 100)); });
  self.initiator([&] {
    put(everything, ni.target(), {.length = 0, .local_offset = 16, .remote_offset = 24});
    next_event(ends.source_eq, PTL_EVENT_ACK);
    get(everything, ni.target(), {.length = 0, .local_offset = 16, .remote_offset = 24});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
  });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    next_event(ends.target_eq, PTL_EVENT_GET);
  });
}
