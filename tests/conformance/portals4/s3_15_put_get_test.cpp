// Portals 4.3, 3.15.1 to 3.15.3: kinds of acknowledgment, put, get, and messages that find no entry (2.5, 2.8).
#include <algorithm>
#include <cstring>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(PutGet);

namespace {

alignas(64) unsigned char target_memory[64];

// An MD with SEND events, and with ACKs counted.
struct Sender {
  Sender(const Ni& ni, Ends& ends, unsigned int options = 0)
      : eq(alloc_eq(ni)),
        ct(alloc_ct(ni)),
        md(bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq, ct, PTL_MD_EVENT_CT_ACK | options))) {}
  ptl_handle_eq_t eq;
  ptl_handle_ct_t ct;
  ptl_handle_md_t md;
};

}  // namespace

// 3.15.2: SEND "completion of the send on the initiator node", ACK "that the operation was processed by the target",
// PUT "at the target node to indicate the end of data delivery". 3.13.2: SEND and ACK are not ordered.
TEST_BOTH_WAYS(PutGet, Section3_15_2__put_makes_send_ack_and_put) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends);
  self.target([&] { append(ni, me_of(ni, target_memory, 64)); });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 64});
    EXPECT_EQ(next_kinds(sender.eq, 2), (std::vector<ptl_event_kind_t>{PTL_EVENT_SEND, PTL_EVENT_ACK}));
  });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(std::memcmp(target_memory, pattern(64).data(), 64), 0);
    expect_empty(ends.target_eq);
  });
  self.initiator([&] { expect_empty(sender.eq); });
}

// 3.15.1: without PTL_ACK_REQ there is no acknowledgment.
TEST_BOTH_WAYS(PutGet, Section3_15_1__no_ack_req) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends);
  self.target([&] { append(ni, me_of(ni, target_memory, 64)); });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 64, .ack = PTL_NO_ACK_REQ});
    next_event(sender.eq, PTL_EVENT_SEND);
    put_and_wait(ends, ni.target(), {.length = 1});
    expect_empty(sender.eq);
    EXPECT_EQ(count_of(sender.ct).success, 0u);
  });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(std::memcmp(target_memory, pattern(64).data(), 64), 0);
  });
}

// 3.15.1: every kind of acknowledgment is "capable of generating a counting event".
TEST_BOTH_WAYS(PutGet, Section3_15_1__each_kind_of_ack_is_counted) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_md_t without_eq = bind_md(ni, md_of(ends.data.data(), 64, PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_ACK));
  self.target([&] { append(ni, me_of(ni, target_memory, 64)); });
  self.initiator([&] {
    ptl_size_t count = 0;
    for (ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
      ++count;
      put(sender.md, ni.target(), {.length = 64, .ack = ack});
      put(without_eq, ni.target(), {.length = 64, .ack = ack});
      EXPECT_EQ(wait_for_count(sender.ct, count).success, count) << ack;
      EXPECT_EQ(wait_for_count(ct, count).success, count) << ack;
    }
    // SEND three times, ACK once for PTL_ACK_REQ; for the other kinds full events "may or may not be generated".
    put_and_wait(ends, ni.target(), {.length = 1});
    int sends = 0;
    int acks = 0;
    for (const ptl_event_t& event : drain(sender.eq)) {
      sends += event.type == PTL_EVENT_SEND ? 1 : 0;
      acks += event.type == PTL_EVENT_ACK ? 1 : 0;
    }
    EXPECT_EQ(sends, 3);
    EXPECT_GE(acks, 1);
    EXPECT_LE(acks, 3);
  });
}

// 3.15.1: PTL_CT_ACK_REQ with PTL_MD_EVENT_CT_BYTES counts mlength; a failure counts one.
TEST_BOTH_WAYS(PutGet, Section3_15_1__ct_ack_counts_bytes_and_failures) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends, PTL_MD_EVENT_CT_BYTES);
  alloc_pt(ni, PTL_EQ_NONE, PTL_PT_ALLOC_DISABLED, kOtherPt);
  self.target([&] { append(ni, me_of(ni, target_memory, 24)); });
  self.initiator([&] {
    for (ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ}) {
      put(sender.md, ni.target(), {.length = 64, .ack = ack});
      put(sender.md, ni.target(), {.length = 64, .ack = ack, .pt = kOtherPt});
    }
    wait_for_counts(sender.ct, 48, 2);
    EXPECT_EQ(count_of(sender.ct).success, 48u);
    EXPECT_EQ(count_of(sender.ct).failure, 2u);
  });
}

// 3.15.1: PTL_OC_ACK_REQ: "A message being dropped due to a failure to match or a permissions violation does not
// represent an operational failure": success.
TEST_BOTH_WAYS(PutGet, Section3_15_1__operation_completed_although_dropped) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends);
  self.target([&] {
    ptl_me_t closed = me_of(ni, target_memory, 64);
    closed.options &= ~PTL_ME_OP_PUT;
    append(ni, closed);
  });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 8, .ack = PTL_OC_ACK_REQ});
    EXPECT_EQ(wait_for_count(sender.ct, 1).failure, 0u);
    put(sender.md, ni.target(), {.length = 8, .match_bits = 1, .ack = PTL_OC_ACK_REQ});
    EXPECT_EQ(wait_for_count(sender.ct, 2).failure, 0u);
    atomic(sender.md, ni.target(), {.length = 8, .match_bits = 1, .ack = PTL_OC_ACK_REQ});
    EXPECT_EQ(wait_for_count(sender.ct, 3).failure, 0u);
  });
  self.target([&] {
    wait_for_status(ni, PTL_SR_OPERATION_VIOLATIONS, 1);
    wait_for_status(ni, PTL_SR_DROP_COUNT, 2);
  });
}

// 3.13.3, PTL_NI_PT_DISABLED: the entry "did not process the operation", and PTL_OC_ACK_REQ tells of what "has
// successfully completed Portals operation processing at the target": a failure, as for the other kinds.
TEST_BOTH_WAYS(PutGet, Section3_15_1__operation_at_a_disabled_entry_has_failed) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends);
  self.target([&] { EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK); });
  self.initiator([&] {
    std::uint64_t failures = 0;
    for (ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
      put(sender.md, ni.target(), {.length = 8, .ack = ack});
      wait_for_counts(sender.ct, 0, ++failures);
      EXPECT_EQ(count_of(sender.ct).success, 0u) << ack;
    }
  });
}

// 2.8: without flow control a message that matches nothing is dropped, PTL_SR_DROP_COUNT is incremented, "An
// acknowledgment or reply event will not be generated in this case". SEND comes (3.13.3: it is local).
TEST_BOTH_WAYS(PutGet, Section2_8__put_without_match_is_dropped_without_ack) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 64);
    me.match_bits = 1;
    append(ni, me);
  });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 64, .user_ptr = tag(1)});
    // What SEND says of it: s3_13_3_failure_test.cpp.
    ptl_event_t send = next_event(sender.eq);
    EXPECT_EQ(send.type, PTL_EVENT_SEND);
    EXPECT_EQ(send.user_ptr, tag(1));
    atomic(sender.md, ni.target(), {.length = 8, .user_ptr = tag(2)});
    send = next_event(sender.eq);
    EXPECT_EQ(send.type, PTL_EVENT_SEND);
    EXPECT_EQ(send.user_ptr, tag(2));
    put_and_wait(ends, ni.target(), {.length = 1, .match_bits = 1});
    expect_empty(sender.eq);
    EXPECT_EQ(count_of(sender.ct).success, 0u);
    EXPECT_EQ(count_of(sender.ct).failure, 0u);
  });
  self.target([&] {
    wait_for_status(ni, PTL_SR_DROP_COUNT, 2);
    EXPECT_EQ(ni.status(PTL_SR_PERMISSION_VIOLATIONS), 0);
    EXPECT_EQ(ni.status(PTL_SR_OPERATION_VIOLATIONS), 0);
    next_event(ends.target_eq, PTL_EVENT_PUT);
    expect_empty(ends.target_eq);
  });
}

// The same for a get. 2.8 says that no reply event is generated; 3.13.3, note 12: "every operation started will finish
// with an event", and PTL_NI_DROPPED is for just that. Ours: REPLY with PTL_NI_DROPPED, as Open MPI needs (M11).
TEST_BOTH_WAYS(PutGet, Section3_13_3__get_without_match_is_dropped) {
  const Ni ni(self);
  Ends ends(ni);
  append(ni, me_of(ni, target_memory, 64));
  self.barrier();
  self.initiator([&] {
    get(ends.md, ni.target(), {.length = 8, .match_bits = 1, .user_ptr = tag(1)});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED).user_ptr, tag(1));
    fetch_atomic(ends.md, 64, ends.md, ni.target(), {.length = 8, .match_bits = 1});
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
    swap(ends.md, 64, ends.md, ni.target(), {.length = 8, .match_bits = 1, .op = PTL_SWAP});
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
    EXPECT_EQ(ends.data, pattern(4096));
  });
  self.target([&] { wait_for_status(ni, PTL_SR_DROP_COUNT, 3); });
}

// 3.15.3: REPLY at the initiator, GET at the target; no SEND and no ACK.
TEST_BOTH_WAYS(PutGet, Section3_15_3__get_makes_reply_and_get) {
  const Ni ni(self);
  Ends ends(ni);
  const Sender sender(ni, ends, PTL_MD_EVENT_CT_REPLY);
  self.target([&] {
    std::memset(target_memory, 0x77, 64);
    append(ni, me_of(ni, target_memory, 64));
  });
  self.initiator([&] {
    get(sender.md, ni.target(), {.length = 64, .local_offset = 100});
    next_event(sender.eq, PTL_EVENT_REPLY);
    std::vector<unsigned char> expected = pattern(4096);
    std::fill_n(expected.begin() + 100, 64, 0x77);
    EXPECT_EQ(ends.data, expected);
    EXPECT_EQ(wait_for_count(sender.ct, 1).success, 1u);
    expect_empty(sender.eq);
  });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_GET);
    expect_empty(ends.target_eq);
  });
}

// Data of every size arrives whole, by whatever way the implementation moves it, and nothing else is touched.
TEST_BOTH_WAYS(PutGet, Section3_15__data_of_all_sizes) {
  const Ni ni(self);
  const Ends ends(ni);
  constexpr ptl_size_t kLargest = 5 * 1024 * 1024 + 13;
  std::vector<unsigned char> memory(kLargest + 64);
  std::vector<unsigned char> out = pattern(kLargest, 4);
  std::vector<unsigned char> in(kLargest + 64);
  const ptl_handle_md_t out_md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  const ptl_handle_md_t in_md = bind_quiet(ni, in.data(), in.size(), ends.source_eq);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  ptl_size_t sizes[] = {0,      1,      2,      3,       7,       8,       9,       15,    16,    17,    31,
                        33,     63,     64,     65,      100,     127,     128,     129,   255,   256,   257,
                        511,    512,    513,    1023,    1025,    2047,    2048,    2049,  4095,  4096,  4097,
                        8191,   8192,   8193,   16383,   16385,   32767,   32769,   65535, 65536, 65537, 131071,
                        131073, 262144, 262145, 1000000, 1048576, 1048577, kLargest};
  for (ptl_size_t size : sizes) {
    self.initiator([&] {
      put(out_md, ni.target(), {.length = size, .remote_offset = 5});
      EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).mlength, size);
      get(in_md, ni.target(), {.length = size, .local_offset = 3, .remote_offset = 5});
      EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, size);
      EXPECT_TRUE(std::equal(in.begin() + 3, in.begin() + 3 + static_cast<std::ptrdiff_t>(size), out.begin())) << size;
      EXPECT_TRUE(std::all_of(in.begin(), in.begin() + 3, [](unsigned char byte) { return byte == 0; })) << size;
      EXPECT_EQ(in[3 + size], 0) << size;
    });
    self.target([&] {
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).mlength, size);
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_GET).mlength, size);
      EXPECT_TRUE(std::equal(memory.begin() + 5, memory.begin() + 5 + static_cast<std::ptrdiff_t>(size), out.begin()));
      EXPECT_EQ(memory[4], 0) << size;
      EXPECT_EQ(memory[5 + size], 0) << size;
    });
  }
}

// 2.1: application bypass: a target that computes and never calls Portals receives puts, answers gets, does atomics.
TEST_BOTH_WAYS(PutGet, Section2_1__target_need_not_call_portals) {
  const Ni ni(self);
  Ends ends(ni);
  std::vector<unsigned char> memory(300000);
  std::vector<unsigned char> out = pattern(memory.size());
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  // While the initiator is busy, the target waits at a barrier of the harness, outside of Portals.
  self.initiator([&] {
    for (int round = 0; round < 20; ++round)
      for (ptl_size_t length : {8u, 3000u, 300000u}) {
        put(md, ni.target(), {.length = length});
        next_event(ends.source_eq, PTL_EVENT_ACK);
        get(md, ni.target(), {.length = length});
        next_event(ends.source_eq, PTL_EVENT_REPLY);
        atomic(ends.md, ni.target(), {.length = 8, .op = PTL_BXOR, .type = PTL_UINT64_T});
        next_event(ends.source_eq, PTL_EVENT_ACK);
      }
  });
}

// 3.15.2: hdr_data: all 64 bits; user_ptr "does not need to be a pointer".
TEST_BOTH_WAYS(PutGet, Section3_15_2__hdr_data_and_user_ptr) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(UINTPTR_MAX)); });
  for (ptl_hdr_data_t data : {ptl_hdr_data_t{0}, ~ptl_hdr_data_t{0}, ptl_hdr_data_t{1} << 63}) {
    self.initiator([&] {
      put(ends.md, ni.target(), {.hdr_data = data, .user_ptr = tag(~data)});
      EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).user_ptr, tag(~data));
    });
    self.target([&] {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(event.hdr_data, data);
      EXPECT_EQ(event.user_ptr, tag(UINTPTR_MAX));
    });
  }
}

// Many operations outstanding at once, both ways at once: nothing is lost, nothing comes twice.
TEST_PROCESSES(2, PutGet, Section3_15__both_directions_at_once) {
  const Ni ni(self);
  Ends ends(ni);
  constexpr int kRounds = 50;
  constexpr int kBurst = 100;
  std::vector<unsigned char> memory(4096);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  ptl_me_t me = me_of(ni, memory.data(), memory.size(), PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
  me.ct_handle = ct;
  append(ni, me);
  self.barrier();
  const ptl_process_t other = ni.id(1 - self.rank());
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBurst; ++i) {
      if (i % 3 == 2) get(ends.md, other, {.length = 64, .local_offset = 2048});
      if (i % 3 != 2) put(ends.md, other, {.length = static_cast<ptl_size_t>(i % 3 == 0 ? 8 : 2000)});
    }
    for (int i = 0; i < kBurst; ++i) EXPECT_EQ(next_event(ends.source_eq).ni_fail_type, PTL_NI_OK);
  }
  wait_for_count(ct, kRounds * kBurst);
  self.barrier();
  EXPECT_EQ(count_of(ct).success, static_cast<ptl_size_t>(kRounds * kBurst));
  expect_empty(ends.source_eq);
}

// 3.4: an acknowledgment kind that there is not.
TEST_PROCESSES(1, PutGet, Section3_15_2__illegal_ack_req) {
  const Ni ni(self);
  const Ends ends(ni);
  EXPECT_RC(PtlPut(ends.md, 0, 8, static_cast<ptl_ack_req_t>(4), ni.target(), kPt, 0, 0, nullptr, 0), PTL_ARG_INVALID);
}
