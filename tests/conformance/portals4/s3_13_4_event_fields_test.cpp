// Portals 4.3, 3.13.4: table 3-3, every field of every event of a successful operation. Of ptl_list the table says that
// it is defined in REPLY and ACK only.

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(EventFields);

namespace {

alignas(64) unsigned char target_memory[256];
alignas(64) unsigned char overflow_memory[256];

// What the initiator asks for: each field has a value of its own.
const Message kMessage{.length = 48,
                       .local_offset = 16,
                       .remote_offset = 72,
                       .match_bits = 0xfeedfacecafebeef,
                       .hdr_data = 0x0123456789abcdef,
                       .user_ptr = reinterpret_cast<void*>(0x1111),
                       .op = PTL_BXOR,
                       .type = PTL_UINT32_T};

enum class Operation { put, get, atomic, fetch_atomic, swap };

struct Kinds {
  Operation operation;
  ptl_event_kind_t direct;
  ptl_event_kind_t overflow;
};
constexpr Kinds kAll[] = {{Operation::put, PTL_EVENT_PUT, PTL_EVENT_PUT_OVERFLOW},
                          {Operation::get, PTL_EVENT_GET, PTL_EVENT_GET_OVERFLOW},
                          {Operation::atomic, PTL_EVENT_ATOMIC, PTL_EVENT_ATOMIC_OVERFLOW},
                          {Operation::fetch_atomic, PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC_OVERFLOW},
                          {Operation::swap, PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC_OVERFLOW}};

ptl_op_t operation_in_event(Operation operation) { return operation == Operation::swap ? PTL_SWAP : PTL_BXOR; }

// Starts the operation and checks the events of the initiator.
void do_operation(const Ni& ni, ptl_handle_md_t md, ptl_handle_eq_t eq, Operation operation, ptl_list_t list,
                  ptl_size_t mlength) {
  Message message = kMessage;
  const bool fetches = operation != Operation::put && operation != Operation::atomic;
  if (operation == Operation::put) put(md, ni.target(), message);
  if (operation == Operation::get) get(md, ni.target(), message);
  if (operation == Operation::atomic) atomic(md, ni.target(), message);
  if (operation == Operation::fetch_atomic) fetch_atomic(md, 1024, md, ni.target(), message);
  message.op = PTL_SWAP;
  if (operation == Operation::swap) swap(md, 1024, md, ni.target(), message);
  const int events = operation == Operation::get ? 1 : 2;  // SEND and ACK or REPLY, in any order.
  int sends = 0;
  for (int i = 0; i < events; ++i) {
    const ptl_event_t event = next_event(eq);
    SCOPED_TRACE(describe(event));
    EXPECT_EQ(event.user_ptr, kMessage.user_ptr);
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
    if (event.type == PTL_EVENT_SEND) {
      ++sends;
      EXPECT_EQ(event.mlength, kMessage.length) << "bytes sent, not bytes delivered";
      continue;
    }
    EXPECT_EQ(event.type, fetches ? PTL_EVENT_REPLY : PTL_EVENT_ACK);
    EXPECT_EQ(event.mlength, mlength);
    EXPECT_EQ(event.remote_offset, kMessage.remote_offset);
    EXPECT_EQ(event.ptl_list, list);
  }
  EXPECT_EQ(sends, events - 1);
}

struct Expected {
  ptl_event_kind_t kind;
  void* user_ptr;
  unsigned char* start;
  ptl_size_t mlength;
  Operation operation;
};

void check_target_event(Process& self, const Ni& ni, const ptl_event_t& event, const Expected& expected, ptl_uid_t uid,
                        bool matching) {
  SCOPED_TRACE(describe(event));
  EXPECT_EQ(event.type, expected.kind);
  EXPECT_TRUE(same_process(ni, event.initiator, ni.id(self.size() - 1)));
  EXPECT_EQ(event.pt_index, kPt);
  EXPECT_EQ(event.uid, uid);
  EXPECT_EQ(event.match_bits, matching ? kMessage.match_bits : 0);
  EXPECT_EQ(event.rlength, kMessage.length);
  EXPECT_EQ(event.mlength, expected.mlength);
  EXPECT_EQ(event.remote_offset, kMessage.remote_offset);
  EXPECT_EQ(event.start, expected.start);
  EXPECT_EQ(event.user_ptr, expected.user_ptr);
  EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
  if (expected.operation == Operation::get) return;
  EXPECT_EQ(event.hdr_data, kMessage.hdr_data);
  if (expected.operation == Operation::put) return;
  EXPECT_EQ(event.atomic_operation, operation_in_event(expected.operation));
  EXPECT_EQ(event.atomic_type, kMessage.type);
}

ptl_uid_t initiator_uid(Process& self, const Ni& ni) {
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  return self.share(uid).back();
}

ptl_me_t entry(const Ni& ni, unsigned char* memory, ptl_size_t length, unsigned int options = 0) {
  ptl_me_t me = me_of(ni, memory, length, options);
  me.match_bits = kMessage.match_bits;
  return me;
}

// All operations against a priority entry of `length` bytes.
void check_direct(Process& self, unsigned int ni_options, ptl_size_t length, ptl_size_t mlength) {
  const Ni ni(self, ni_options);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq));
  const ptl_uid_t uid = initiator_uid(self, ni);
  const bool matching = (ni_options & PTL_NI_MATCHING) != 0;
  self.target([&] {
    if (matching) append(ni, entry(ni, target_memory, length), PTL_PRIORITY_LIST, tag(0x2222));
    if (!matching) append(ni, le_of(target_memory, length), PTL_PRIORITY_LIST, tag(0x2222));
  });
  for (const Kinds& kinds : kAll) {
    self.initiator([&] { do_operation(ni, md, eq, kinds.operation, PTL_PRIORITY_LIST, mlength); });
    self.target([&] {
      check_target_event(self, ni, next_event(ends.target_eq),
                         {kinds.direct, tag(0x2222), target_memory + 72, mlength, kinds.operation}, uid, matching);
      expect_empty(ends.target_eq);
    });
  }
}

}  // namespace

// Table 3-3: GET, PUT, ATOMIC, FETCH_ATOMIC at the target; SEND, ACK, REPLY at the initiator.
TEST_BOTH_WAYS(EventFields, Section3_13_4__direct) { check_direct(self, kMatching, 256, 48); }
TEST_BOTH_WAYS(EventFields, Section3_13_4__direct_truncated) { check_direct(self, kMatching, 72 + 16, 16); }
TEST_BOTH_WAYS(EventFields, Section3_13_4__direct_non_matching) { check_direct(self, kNonMatching, 256, 48); }
TEST_BOTH_WAYS(EventFields, Section3_13_4__direct_logical) {
  check_direct(self, PTL_NI_MATCHING | PTL_NI_LOGICAL, 256, 48);
}

// Table 3-3: the *_OVERFLOW events; start points into the overflow entry, user_ptr is that of the appended entry.
TEST_BOTH_WAYS(EventFields, Section3_13_4__overflow) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq));
  const ptl_uid_t uid = initiator_uid(self, ni);
  self.target([&] { append(ni, entry(ni, overflow_memory, 72 + 16), PTL_OVERFLOW_LIST, tag(0x3333)); });
  for (const Kinds& kinds : kAll) {
    self.initiator([&] { do_operation(ni, md, eq, kinds.operation, PTL_OVERFLOW_LIST, 16); });
    self.target([&] {
      unsigned char* start = overflow_memory + 72;
      check_target_event(self, ni, next_event(ends.target_eq), {kinds.direct, tag(0x3333), start, 16, kinds.operation},
                         uid, true);
      const ptl_me_t searching = entry(ni, nullptr, 0, PTL_ME_USE_ONCE);
      REQUIRE_OK(PtlMESearch(ni, kPt, &searching, PTL_SEARCH_ONLY, tag(0x4444)));
      check_target_event(self, ni, next_event(ends.target_eq),
                         {PTL_EVENT_SEARCH, tag(0x4444), start, 16, kinds.operation}, uid, true);
      append(ni, entry(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, tag(0x5555));
      check_target_event(self, ni, next_event(ends.target_eq),
                         {kinds.overflow, tag(0x5555), start, 16, kinds.operation}, uid, true);
      expect_empty(ends.target_eq);
    });
  }
}

// Table 3-3: LINK, AUTO_UNLINK, AUTO_FREE: pt_index, user_ptr, ni_fail_type.
TEST_BOTH_WAYS(EventFields, Section3_13_4__link_auto_unlink_auto_free) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, entry(ni, overflow_memory, 256, PTL_ME_USE_ONCE | PTL_ME_EVENT_COMM_DISABLE | kLink), PTL_OVERFLOW_LIST,
           tag(0x6666));
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), kMessage); });
  self.target([&] {
    append(ni, entry(ni, nullptr, 0, PTL_ME_EVENT_OVER_DISABLE), PTL_PRIORITY_LIST, tag(0x7777));
    for (ptl_event_kind_t kind : {PTL_EVENT_LINK, PTL_EVENT_AUTO_UNLINK, PTL_EVENT_AUTO_FREE}) {
      const ptl_event_t event = next_event(ends.target_eq, kind);
      EXPECT_EQ(event.pt_index, kPt);
      EXPECT_EQ(event.user_ptr, tag(0x6666));
    }
  });
}

// Table 3-3: a GET with MANAGE_LOCAL: at the target remote_offset is "the offset requested by the initiator", at the
// initiator what "the operation used at the target".
TEST_BOTH_WAYS(EventFields, Section3_13_4__remote_offset_with_manage_local) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, entry(ni, target_memory, 256, PTL_ME_MANAGE_LOCAL)); });
  for (ptl_size_t used : {0u, 48u}) {
    self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), kMessage).remote_offset, used); });
    self.target([&] {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(event.remote_offset, kMessage.remote_offset);
      EXPECT_EQ(event.start, target_memory + used);
    });
  }
}

// 3.13.4: "Fields marked with a bullet are defined for both success and error conditions": ACK and REPLY of a refused
// operation keep type, user_ptr and ni_fail_type.
TEST_BOTH_WAYS(EventFields, Section3_13_4__failure_at_the_initiator) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = entry(ni, target_memory, 256);
    me.options &= ~(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    append(ni, me);
  });
  self.initiator([&] {
    put(ends.md, ni.target(), kMessage);
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK, PTL_NI_OP_VIOLATION).user_ptr, kMessage.user_ptr);
    get(ends.md, ni.target(), kMessage);
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_OP_VIOLATION).user_ptr, kMessage.user_ptr);
  });
}

// The same at the target, where an operation fails when it meets memory that is not there.
TEST_BOTH_WAYS(EventFields, Section3_13_4__failure_at_the_target) {
  const Ni ni(self);
  const Ends ends(ni);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  const ptl_uid_t uid = initiator_uid(self, ni);
  auto* const nowhere = reinterpret_cast<unsigned char*>(4096);
  self.target([&] { append(ni, entry(ni, nowhere, 256), PTL_PRIORITY_LIST, tag(0x2222)); });
  for (const Kinds& kinds : kAll) {
    self.initiator([&] {
      Message message = kMessage;
      if (kinds.operation == Operation::put) put(ends.md, ni.target(), message);
      if (kinds.operation == Operation::get) get(ends.md, ni.target(), message);
      if (kinds.operation == Operation::atomic) atomic(ends.md, ni.target(), message);
      if (kinds.operation == Operation::fetch_atomic) fetch_atomic(ends.md, 1024, ends.md, ni.target(), message);
      message.op = PTL_SWAP;
      if (kinds.operation == Operation::swap) swap(ends.md, 1024, ends.md, ni.target(), message);
      EXPECT_EQ(next_event(ends.source_eq).ni_fail_type, PTL_NI_SEGV);
    });
    self.target([&] {
      const ptl_event_t event = next_event(ends.target_eq, kinds.direct, PTL_NI_SEGV);
      SCOPED_TRACE(describe(event));
      EXPECT_TRUE(same_process(ni, event.initiator, ni.id(self.size() - 1)));
      EXPECT_EQ(event.pt_index, kPt);
      EXPECT_EQ(event.uid, uid);
      EXPECT_EQ(event.match_bits, kMessage.match_bits);
      EXPECT_EQ(event.user_ptr, tag(0x2222));
      EXPECT_EQ(event.start, nowhere + kMessage.remote_offset);
      EXPECT_EQ(event.rlength, kMessage.length);
      EXPECT_LE(event.mlength, kMessage.length) << "of what, if nothing was moved, the table does not say";
      if (kinds.operation != Operation::get) {
        EXPECT_EQ(event.hdr_data, kMessage.hdr_data);
      }
      if (kinds.operation != Operation::get && kinds.operation != Operation::put) {
        EXPECT_EQ(event.atomic_operation, operation_in_event(kinds.operation));
        EXPECT_EQ(event.atomic_type, kMessage.type);
      }
    });
  }
}

// The same for the overflow events: the operation has failed in the memory of the overflow entry.
TEST_BOTH_WAYS(EventFields, Section3_13_4__failure_in_the_overflow_list) {
  const Ni ni(self);
  const Ends ends(ni);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  const ptl_uid_t uid = initiator_uid(self, ni);
  auto* const nowhere = reinterpret_cast<unsigned char*>(4096);
  self.target([&] { append(ni, entry(ni, nowhere, 256), PTL_OVERFLOW_LIST, tag(0x3333)); });
  for (const Kinds& kinds : kAll) {
    SCOPED_TRACE("operation " + std::to_string(static_cast<int>(kinds.operation)));
    self.initiator([&] {
      Message message = kMessage;
      if (kinds.operation == Operation::put) put(ends.md, ni.target(), message);
      if (kinds.operation == Operation::get) get(ends.md, ni.target(), message);
      if (kinds.operation == Operation::atomic) atomic(ends.md, ni.target(), message);
      if (kinds.operation == Operation::fetch_atomic) fetch_atomic(ends.md, 1024, ends.md, ni.target(), message);
      message.op = PTL_SWAP;
      if (kinds.operation == Operation::swap) swap(ends.md, 1024, ends.md, ni.target(), message);
      const ptl_event_t event = next_event(ends.source_eq);
      EXPECT_EQ(event.ni_fail_type, PTL_NI_SEGV);
      EXPECT_EQ(event.user_ptr, kMessage.user_ptr);
    });
    self.target([&] {
      EXPECT_EQ(next_event(ends.target_eq, kinds.direct, PTL_NI_SEGV).user_ptr, tag(0x3333));
      append(ni, entry(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, tag(0x5555));
      const ptl_event_t event = next_event(ends.target_eq);
      SCOPED_TRACE(describe(event));
      EXPECT_EQ(event.type, kinds.overflow);
      EXPECT_EQ(event.ni_fail_type, PTL_NI_SEGV);
      EXPECT_TRUE(same_process(ni, event.initiator, ni.id(self.size() - 1)));
      EXPECT_EQ(event.pt_index, kPt);
      EXPECT_EQ(event.uid, uid);
      EXPECT_EQ(event.match_bits, kMessage.match_bits);
      EXPECT_EQ(event.user_ptr, tag(0x5555));
      EXPECT_EQ(event.start, nowhere + kMessage.remote_offset);
      if (kinds.operation != Operation::get) {
        EXPECT_EQ(event.hdr_data, kMessage.hdr_data);
      }
      expect_empty(ends.target_eq);
    });
  }
}

// Table 3-3: of events without an operation of another process: PT_DISABLED has type, pt_index and ni_fail_type; a
// SEARCH that finds nothing has user_ptr and pt_index; a SEND that fails has user_ptr.
TEST_BOTH_WAYS(EventFields, Section3_13_4__pt_disabled_search_and_send_that_fail) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t nowhere = bind_md(ni, md_of(reinterpret_cast<void*>(4096), 256, eq));
  self.target([&] { append(ni, entry(ni, target_memory, 256)); });
  self.initiator([&] {
    put(nowhere, ni.target(),
        {.length = 8, .match_bits = kMessage.match_bits, .user_ptr = tag(8), .ack = PTL_NO_ACK_REQ});
    const ptl_event_t event = next_event(eq, PTL_EVENT_SEND, PTL_NI_SEGV);
    EXPECT_EQ(event.user_ptr, tag(8));
    put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1, .user_ptr = tag(9)}, PTL_NI_PT_DISABLED);
  });
  self.target([&] {
    ptl_event_t event = next_event(ends.target_eq);
    // The message from memory that is not there may have reached the target before its sender knew.
    if (event.type == PTL_EVENT_PUT) event = next_event(ends.target_eq);
    EXPECT_EQ(event.type, PTL_EVENT_PT_DISABLED) << describe(event);
    EXPECT_EQ(event.pt_index, kPt);
    const ptl_me_t searching = entry(ni, nullptr, 0);
    REQUIRE_OK(PtlMESearch(ni, kPt, &searching, PTL_SEARCH_ONLY, tag(0x4444)));
    event = next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    EXPECT_EQ(event.user_ptr, tag(0x4444));
    EXPECT_EQ(event.pt_index, kPt);
  });
}
