// Portals 4.3, 3.10: memory descriptors.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(MemoryDescriptor);

namespace {

int put_rc(ptl_handle_md_t md, ptl_process_t target, ptl_size_t offset, ptl_size_t length) {
  return PtlPut(md, offset, length, PTL_NO_ACK_REQ, target, kPt, 0, 0, nullptr, 0);
}

int get_rc(ptl_handle_md_t md, ptl_process_t target, ptl_size_t offset, ptl_size_t length) {
  return PtlGet(md, offset, length, target, kPt, 0, 0, nullptr);
}

// An MD with full events and counts, with the given options.
struct Counted {
  Counted(const Ni& ni, Ends& ends, unsigned int options)
      : eq(alloc_eq(ni)),
        ct(alloc_ct(ni)),
        md(bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq, ct, options))) {}
  ptl_handle_eq_t eq;
  ptl_handle_ct_t ct;
  ptl_handle_md_t md;
};

// A persistent entry of 8 bytes: longer messages are truncated to 8.
alignas(64) unsigned char target_memory[8];
void accept_8_bytes(const Ni& ni) { append(ni, me_of(ni, target_memory, sizeof target_memory)); }

// Sends something ordinary and waits for its end: whatever came before has had its time.
void settle(const Ni& ni, const Ends& ends) { put_and_wait(ends, ni.target(), {.length = 1}); }

}  // namespace

// 3.10: an MD that "covers the entire virtual address range by setting start to NULL and length to PTL_SIZE_MAX".
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10__whole_address_space) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_md_t everything =
      bind_md(ni, md_of(nullptr, PTL_SIZE_MAX, ends.source_eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE));
  std::vector<unsigned char> memory(100000);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    const std::vector<unsigned char> out = pattern(memory.size(), 7);
    std::vector<unsigned char> in(memory.size());
    put(everything, ni.target(), {.length = out.size(), .local_offset = reinterpret_cast<ptl_size_t>(out.data())});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).mlength, out.size());
    get(everything, ni.target(), {.length = in.size(), .local_offset = reinterpret_cast<ptl_size_t>(in.data())});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, in.size());
    EXPECT_EQ(in, out);
  });
  self.target([&] { EXPECT_EQ(memory, pattern(memory.size(), 7)); });
}

// 3.10.1: no restriction on "the starting address or the length of the region", so also none; Open MPI binds such MDs.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__zero_length) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_md_t nothing = bind_quiet(ni, nullptr, 0, ends.source_eq);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    put(nothing, ni.target(), {.length = 0, .hdr_data = 5});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).mlength, 0u);
    get(nothing, ni.target(), {.length = 0});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, 0u);
    EXPECT_RC(put_rc(nothing, ni.target(), 0, 1), PTL_ARG_INVALID);
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, 5u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_GET).rlength, 0u);
  });
}

// 3.10.1: "There are no restrictions on buffer alignment"; 3.15.2: local offset and length select the region.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__any_alignment_and_offset) {
  const Ni ni(self);
  Ends ends(ni);
  std::vector<unsigned char> memory(512);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    for (ptl_size_t offset : {0u, 1u, 3u, 7u, 64u, 65u})
      for (ptl_size_t length : {1u, 2u, 3u, 7u, 8u, 9u, 63u, 64u, 65u, 200u}) {
        put_and_wait(ends, ni.target(), {.length = length, .local_offset = offset, .remote_offset = 5 + offset});
        std::vector<unsigned char> back(length + 2);
        const ptl_handle_md_t md = bind_quiet(ni, back.data(), back.size(), ends.source_eq);
        get(md, ni.target(), {.length = length, .local_offset = 1, .remote_offset = 5 + offset});
        next_event(ends.source_eq, PTL_EVENT_REPLY);
        EXPECT_EQ(std::memcmp(back.data() + 1, ends.data.data() + offset, length), 0) << offset << ' ' << length;
        EXPECT_EQ(back.front(), 0);
        EXPECT_EQ(back.back(), 0);
        REQUIRE_OK(PtlMDRelease(md));
      }
  });
}

// 3.15.2: "It is an error for the local offset and length parameters to specify memory outside the memory described".
TEST_PROCESSES(1, MemoryDescriptor, Section3_15_2__region_outside_the_descriptor) {
  const Ni ni(self);
  const Ends ends(ni);
  accept_8_bytes(ni);
  unsigned char memory[64] = {};
  ptl_iovec_t pieces[2] = {{memory, 20}, {memory + 30, 12}};
  const ptl_handle_md_t plain = bind_md(ni, md_of(memory, 32));
  const ptl_handle_md_t scattered = bind_md(ni, md_of(pieces, 2, PTL_EQ_NONE, PTL_CT_NONE, PTL_IOVEC));
  for (ptl_handle_md_t md : {plain, scattered}) {
    for (const auto& [offset, length] : {std::pair<ptl_size_t, ptl_size_t>{0, 33},
                                         {32, 1},
                                         {31, 2},
                                         {PTL_SIZE_MAX, 1},
                                         {1, PTL_SIZE_MAX},
                                         {PTL_SIZE_MAX - 3, 8}}) {
      EXPECT_RC(put_rc(md, ni.target(), offset, length), PTL_ARG_INVALID) << offset << " + " << length;
      EXPECT_RC(get_rc(md, ni.target(), offset, length), PTL_ARG_INVALID) << offset << " + " << length;
    }
    EXPECT_RC(put_rc(md, ni.target(), 0, 32), PTL_OK);
    EXPECT_RC(put_rc(md, ni.target(), 32, 0), PTL_OK);
    EXPECT_RC(put_rc(md, ni.target(), 31, 1), PTL_OK);
  }
  settle(ni, ends);
}

// 3.10.1, 3.10.2: PTL_IOVEC: length counts elements; "The offset is computed as if the region were a single contiguous
// region", on both sides.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_2__iovec_behaves_as_one_region) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> memory(300);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    std::vector<unsigned char> source = pattern(1000, 3);
    // Pieces of odd sizes at odd places, out of order, one of them empty: 3 + 0 + 100 + 57 + 1 + 100 = 261 bytes.
    ptl_iovec_t pieces[6] = {{&source[500], 3},  {&source[0], 0},   {&source[1], 100},
                             {&source[333], 57}, {&source[999], 1}, {&source[777], 100}};
    std::vector<unsigned char> flat;
    for (const ptl_iovec_t& piece : pieces) {
      const unsigned char* start = static_cast<unsigned char*>(piece.iov_base);
      flat.insert(flat.end(), start, start + piece.iov_len);
    }
    ASSERT_EQ(flat.size(), 261u);
    const ptl_handle_md_t md =
        bind_md(ni, md_of(pieces, 6, ends.source_eq, PTL_CT_NONE, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE));
    for (const auto& [offset, length] : {std::pair<ptl_size_t, ptl_size_t>{0, 261},
                                         {2, 2},
                                         {3, 100},
                                         {50, 200},
                                         {102, 60},
                                         {160, 1},
                                         {160, 101},
                                         {261, 0}}) {
      std::vector<unsigned char> back(261);
      const ptl_handle_md_t back_md = bind_quiet(ni, back.data(), back.size(), ends.source_eq);
      put(md, ni.target(), {.length = length, .local_offset = offset});
      next_event(ends.source_eq, PTL_EVENT_ACK);
      get(back_md, ni.target(), {.length = length});
      next_event(ends.source_eq, PTL_EVENT_REPLY);
      EXPECT_EQ(std::memcmp(back.data(), flat.data() + offset, length), 0) << offset << " + " << length;
      REQUIRE_OK(PtlMDRelease(back_md));
    }
    // And scattering: what a get brings goes to the pieces, and to nothing between them.
    std::vector<unsigned char> fresh = pattern(261, 9);
    put_and_wait(ends, ni.target(), {.length = 261});
    std::vector<unsigned char> scattered(1000);
    for (ptl_iovec_t& piece : pieces)
      piece.iov_base = &scattered[static_cast<std::size_t>(static_cast<unsigned char*>(piece.iov_base) - &source[0])];
    const ptl_handle_md_t in_md =
        bind_md(ni, md_of(pieces, 6, ends.source_eq, PTL_CT_NONE, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE));
    get(in_md, ni.target(), {.length = 200, .local_offset = 50});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    std::size_t offset = 0;
    for (const ptl_iovec_t& piece : pieces)
      for (std::size_t i = 0; i < piece.iov_len; ++i, ++offset) {
        unsigned char& byte = static_cast<unsigned char*>(piece.iov_base)[i];
        const bool inside = offset >= 50 && offset < 250;
        EXPECT_EQ(byte, inside ? ends.data[offset - 50] : 0) << "offset " << offset;
        byte = 0;
      }
    EXPECT_EQ(scattered, std::vector<unsigned char>(1000)) << "between the pieces";
  });
}

// 3.10.3: "there is no linkage between this structure and the memory descriptor".
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_3__structure_is_copied) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    ptl_md_t described = md_of(ends.data.data(), 8, ends.source_eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
    const ptl_handle_md_t md = bind_md(ni, described);
    described = md_of(nullptr, 0);
    put(md, ni.target(), {.length = 8});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).mlength, 8u);
  });
}

// 3.10.3: "an invalid event queue was associated with the md, or other contents in the md were illegal".
TEST_PROCESSES(1, MemoryDescriptor, Section3_10_3__illegal_contents) {
  const Ni ni(self);
  const Ni other(self, kNonMatching);
  unsigned char memory[8];
  const auto bind_rc = [&](ptl_handle_eq_t eq, ptl_handle_ct_t ct) {
    const ptl_md_t md = md_of(memory, 8, eq, ct);
    ptl_handle_md_t handle = PTL_INVALID_HANDLE;
    return PtlMDBind(ni, &md, &handle);
  };
  EXPECT_RC(bind_rc(PTL_EQ_NONE, PTL_CT_NONE), PTL_OK);
  EXPECT_RC(bind_rc(alloc_eq(ni), alloc_ct(ni)), PTL_OK);
  EXPECT_RC(bind_rc(PTL_INVALID_HANDLE, PTL_CT_NONE), PTL_ARG_INVALID);
  EXPECT_RC(bind_rc(PTL_EQ_NONE, PTL_INVALID_HANDLE), PTL_ARG_INVALID);
  EXPECT_RC(bind_rc(alloc_ct(ni), PTL_CT_NONE), PTL_ARG_INVALID);
  EXPECT_RC(bind_rc(PTL_EQ_NONE, alloc_eq(ni)), PTL_ARG_INVALID);
  EXPECT_RC(bind_rc(alloc_eq(other), PTL_CT_NONE), PTL_ARG_INVALID);
  EXPECT_RC(bind_rc(PTL_EQ_NONE, alloc_ct(other)), PTL_ARG_INVALID);
}

// 3.10.4: "A memory descriptor may be released before a PTL_EVENT_ACK event is delivered, in which case the
// acknowledgment will be discarded."
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_4__release_before_the_ack) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    for (int round = 0; round < 100; ++round) {
      const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 8, ends.source_eq));
      put(md, ni.target(), {.length = 8, .user_ptr = tag(1)});
      // SEND and ACK may come in either order; the release needs SEND only.
      while (next_event(ends.source_eq).type != PTL_EVENT_SEND) {
      }
      EXPECT_RC(PtlMDRelease(md), PTL_OK);
    }
    settle(ni, ends);
  });
}

// The same, where another memory descriptor has got the handle before the acknowledgement comes.
TEST_PROCESSES(2, MemoryDescriptor, Section3_10_4__late_ack_and_the_same_handle_again) {
  const Ni ni(self);
  Ends ends(ni);
  const std::vector<pid_t> pids = self.share(getpid());
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8});  // From now on they know each other.
    const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 8, ends.source_eq));
    ASSERT_EQ(kill(pids[0], SIGSTOP), 0);
    put(md, ni.target(), {.length = 8, .user_ptr = tag(1)});
    next_event(ends.source_eq, PTL_EVENT_SEND);
    EXPECT_RC(PtlMDRelease(md), PTL_OK);
    const ptl_handle_eq_t other_eq = alloc_eq(ni);
    const ptl_handle_ct_t other_ct = alloc_ct(ni);
    constexpr int kMost = 100'000;
    for (int i = 0; i < kMost; ++i) {
      const ptl_handle_md_t other =
          bind_md(ni, md_of(ends.data.data(), 8, other_eq, other_ct, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_SEND));
      if (other == md) break;
      EXPECT_RC(PtlMDRelease(other), PTL_OK);
    }
    ASSERT_EQ(kill(pids[0], SIGCONT), 0);
    settle(ni, ends);
    expect_empty(other_eq);
    EXPECT_EQ(count_of(other_ct).success, 0u);
  });
}

// 3.10.1: PTL_MD_EVENT_SEND_DISABLE: no SEND; "does not affect counting events".
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__send_disable) {
  const Ni ni(self);
  Ends ends(ni);
  const Counted sender(ni, ends, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_SEND);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 8});
    next_event(sender.eq, PTL_EVENT_ACK);
    wait_for_count(sender.ct, 1);
    settle(ni, ends);
    expect_empty(sender.eq);
    EXPECT_EQ(count_of(sender.ct).success, 1u);
  });
}

// 3.10.1: PTL_MD_EVENT_SUCCESS_DISABLE: no event of success, but of failure; counts are not affected.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__success_disable) {
  const Ni ni(self);
  Ends ends(ni);
  const Counted sender(
      ni, ends, PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY);
  alloc_pt(ni, PTL_EQ_NONE, PTL_PT_ALLOC_DISABLED, kOtherPt);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 8});
    get(sender.md, ni.target(), {.length = 8});
    wait_for_count(sender.ct, 2);
    put(sender.md, ni.target(), {.length = 8, .user_ptr = tag(4), .pt = kOtherPt});
    EXPECT_EQ(next_event(sender.eq, PTL_EVENT_ACK, PTL_NI_PT_DISABLED).user_ptr, tag(4));
    wait_for_counts(sender.ct, 2, 1);
    settle(ni, ends);
    expect_empty(sender.eq);
  });
}

// 3.14: "counting events are disabled by default and must be explicitly enabled".
TEST_BOTH_WAYS(MemoryDescriptor, Section3_14__nothing_is_counted_by_default) {
  const Ni ni(self);
  Ends ends(ni);
  const Counted sender(ni, ends, 0);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    put(sender.md, ni.target(), {.length = 8});
    get(sender.md, ni.target(), {.length = 8});
    EXPECT_EQ(next_kinds(sender.eq, 3),
              (std::vector<ptl_event_kind_t>{PTL_EVENT_REPLY, PTL_EVENT_SEND, PTL_EVENT_ACK}));
    settle(ni, ends);
    EXPECT_EQ(count_of(sender.ct).success, 0u);
  });
}

// 3.10.1: each of CT_SEND, CT_REPLY, CT_ACK counts its own kind of event.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__each_kind_is_counted_by_its_option) {
  const Ni ni(self);
  Ends ends(ni);
  const Counted sends(ni, ends, PTL_MD_EVENT_CT_SEND);
  const Counted replies(ni, ends, PTL_MD_EVENT_CT_REPLY);
  const Counted acks(ni, ends, PTL_MD_EVENT_CT_ACK);
  const Counted all(ni, ends, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    for (const Counted* one : {&sends, &replies, &acks, &all}) {
      put(one->md, ni.target(), {.length = 8});
      put(one->md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ});
      get(one->md, ni.target(), {.length = 8});
      next_kinds(one->eq, 4);
    }
    wait_for_count(sends.ct, 2);
    wait_for_count(replies.ct, 1);
    wait_for_count(acks.ct, 1);
    wait_for_count(all.ct, 4);
    settle(ni, ends);
    EXPECT_EQ(count_of(sends.ct).success, 2u);
    EXPECT_EQ(count_of(replies.ct).success, 1u);
    EXPECT_EQ(count_of(acks.ct).success, 1u);
    EXPECT_EQ(count_of(all.ct).success, 4u);
    EXPECT_EQ(count_of(all.ct).failure, 0u);
  });
}

// 3.10.1: PTL_MD_EVENT_CT_BYTES: "The increment is by the mlength that would be specified by the associated full
// event"; for SEND the bytes sent (3.13.4), for ACK and REPLY those that the target moved. "Failure events always
// increment the count by one."
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__bytes_are_counted) {
  const Ni ni(self);
  Ends ends(ni);
  const Counted sends(ni, ends, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_BYTES);
  const Counted replies(ni, ends, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES);
  const Counted acks(ni, ends, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES);
  alloc_pt(ni, PTL_EQ_NONE, PTL_PT_ALLOC_DISABLED, kOtherPt);
  self.target([&] { accept_8_bytes(ni); });  // Of 20 bytes it takes 8.
  self.initiator([&] {
    for (const Counted* one : {&sends, &replies, &acks}) {
      put(one->md, ni.target(), {.length = 20});
      get(one->md, ni.target(), {.length = 20});
      put(one->md, ni.target(), {.length = 20, .pt = kOtherPt});
      get(one->md, ni.target(), {.length = 20, .pt = kOtherPt});
      next_kinds(one->eq, 6);
    }
    wait_for_counts(replies.ct, 8, 1);
    wait_for_counts(acks.ct, 8, 1);
    settle(ni, ends);
    EXPECT_EQ(count_of(replies.ct).success, 8u);
    EXPECT_EQ(count_of(replies.ct).failure, 1u);
    EXPECT_EQ(count_of(acks.ct).success, 8u);
    EXPECT_EQ(count_of(acks.ct).failure, 1u);
    // The SEND of the refused put may tell the failure, or not (3.13.3).
    wait_for_count(sends.ct, 20);
    const ptl_ct_event_t sent = count_of(sends.ct);
    EXPECT_TRUE((sent.success == 40 && sent.failure == 0) || (sent.success == 20 && sent.failure == 1))
        << sent.success << ' ' << sent.failure;
  });
}

// 3.10.1: each counted event adds its bytes "exactly once": SEND and ACK of a put are two events, and 3.15.1 has the
// bytes of an ACK counted whatever else is.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__bytes_of_each_counted_event) {
  const Ni ni(self);
  Ends ends(ni);
  constexpr unsigned int kBoth = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES;
  const Counted puts(ni, ends, kBoth);
  const Counted all(ni, ends, kBoth | PTL_MD_EVENT_CT_REPLY);
  self.target([&] { accept_8_bytes(ni); });  // Of 20 bytes it takes 8.
  self.initiator([&] {
    put(puts.md, ni.target(), {.length = 20});
    put(all.md, ni.target(), {.length = 20, .ack = PTL_CT_ACK_REQ});
    put(all.md, ni.target(), {.length = 20, .ack = PTL_NO_ACK_REQ});
    get(all.md, ni.target(), {.length = 20});
    wait_for_count(puts.ct, 20 + 8);
    wait_for_count(all.ct, 2 * 20 + 8 + 8);
    settle(ni, ends);
    EXPECT_EQ(count_of(puts.ct).success, 20u + 8);
    EXPECT_EQ(count_of(all.ct).success, 2u * 20 + 8 + 8);
    EXPECT_EQ(count_of(all.ct).failure, 0u);
  });
}

// 3.10.1: PTL_MD_VOLATILE: up to max_volatile_size "the application may modify any send buffers immediately following
// the return"; longer operations "should not return an error solely because" of the length.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__volatile_buffer) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_size_t longest = std::min<ptl_size_t>(ni.limits().max_volatile_size, 2048);
  std::vector<unsigned char> memory(100 * longest);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    std::vector<unsigned char> buffer(ni.limits().max_volatile_size < 1u << 24 ? ni.limits().max_volatile_size + 1 : 1);
    buffer.resize(std::max<std::size_t>(buffer.size(), longest));
    const ptl_handle_md_t md = bind_md(ni, md_of(buffer.data(), buffer.size(), ends.source_eq, PTL_CT_NONE,
                                                 PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE));
    for (unsigned int i = 0; i < 100; ++i) {
      std::fill(buffer.begin(), buffer.end(), static_cast<unsigned char>(i + 1));
      put(md, ni.target(), {.length = longest, .remote_offset = i * longest});
    }
    std::fill(buffer.begin(), buffer.end(), 0xff);
    for (int i = 0; i < 100; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    put(md, ni.target(), {.length = buffer.size(), .remote_offset = memory.size()});
    next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    for (unsigned int i = 0; i < 100; ++i)
      EXPECT_EQ(
          std::count(memory.data() + i * longest, memory.data() + (i + 1) * longest, static_cast<unsigned char>(i + 1)),
          static_cast<std::ptrdiff_t>(longest));
  });
}

// 3.10.1, 3.15.2: PTL_MD_UNRELIABLE: "only PTL_NO_ACK_REQ may be used". The put itself may be lost.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__unreliable) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] { accept_8_bytes(ni); });
  self.initiator([&] {
    const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 8, ends.source_eq, PTL_CT_NONE, PTL_MD_UNRELIABLE));
    EXPECT_RC(put_rc(md, ni.target(), 0, 8), PTL_OK);
    next_event(ends.source_eq, PTL_EVENT_SEND);
    for (ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ})
      EXPECT_RC(PtlPut(md, 0, 8, ack, ni.target(), kPt, 0, 0, nullptr, 0), PTL_ARG_INVALID) << ack;
  });
}

// 3.10.1: PTL_MD_VOLATILE holds for atomics as well, "e.g., put or atomic, not get"; "the MD can be of any size".
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__volatile_buffer_of_atomics) {
  const Ni ni(self);
  const Ends ends(ni);
  if (ni.limits().max_volatile_size < 64) self.skip("max_volatile_size is too small");
  alignas(8) std::int64_t counts[8] = {};
  self.target([&] { append(ni, me_of(ni, counts, sizeof counts)); });
  self.initiator([&] {
    const ptl_handle_md_t md = bind_md(
        ni, md_of(nullptr, PTL_SIZE_MAX, ends.source_eq, PTL_CT_NONE, PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE));
    std::int64_t values[16];
    const auto at = reinterpret_cast<ptl_size_t>(values);
    for (int i = 0; i < 1000; ++i) {
      std::fill(std::begin(values), std::end(values), 1);
      if (i % 2 == 0) atomic(md, ni.target(), {.length = 64, .local_offset = at});
      if (i % 2 == 1) fetch_atomic(ends.md, 0, md, ni.target(), {.length = 64, .local_offset = at});
      std::fill(std::begin(values), std::end(values), 1000);
    }
    for (int i = 0; i < 1000; ++i) next_event(ends.source_eq);
  });
  self.target([&] {
    for (std::int64_t count : counts) EXPECT_EQ(count, 1000);
  });
}

// 3.10.1: PTL_MD_VOLATILE holds whatever the memory descriptor looks like: with PTL_IOVEC "any send buffers" are those
// of all pieces.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__volatile_buffer_in_pieces) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_size_t piece = std::min<ptl_size_t>(ni.limits().max_volatile_size, 2048) / 3;
  if (piece == 0) self.skip("max_volatile_size is too small");
  constexpr unsigned int kPuts = 250;
  std::vector<unsigned char> memory(kPuts * 2 * piece);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    std::vector<unsigned char> buffer(6 * piece);
    const ptl_iovec_t pieces[] = {
        {buffer.data() + 4 * piece, piece}, {buffer.data() + 2 * piece, piece}, {buffer.data(), piece}};
    const ptl_handle_md_t md = bind_md(
        ni, md_of(pieces, 3, ends.source_eq, PTL_CT_NONE, PTL_IOVEC | PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE));
    for (unsigned int i = 0; i < kPuts; ++i) {
      std::fill(buffer.begin(), buffer.end(), static_cast<unsigned char>(i + 1));
      put(md, ni.target(), {.length = 2 * piece, .local_offset = piece / 2, .remote_offset = i * 2 * piece});
    }
    std::fill(buffer.begin(), buffer.end(), 0xff);
    for (unsigned int i = 0; i < kPuts; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    for (unsigned int i = 0; i < kPuts; ++i) {
      const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(i * 2 * piece);
      const auto end = begin + static_cast<std::ptrdiff_t>(2 * piece);
      EXPECT_EQ(std::count(begin, end, static_cast<unsigned char>(i + 1)), end - begin) << "put " << i;
    }
  });
}

// 3.10.1 and 3.16: a triggered operation "uses the state of the buffer after the threshold condition is met", also of a
// volatile one; one whose threshold has been reached "is immediately processed", so that its buffer may be modified.
TEST_BOTH_WAYS(MemoryDescriptor, Section3_10_1__volatile_buffer_of_triggered_operations) {
  const Ni ni(self);
  const Ends ends(ni);
  if (ni.limits().max_volatile_size < 64) self.skip("max_volatile_size is too small");
  constexpr unsigned int kPuts = 250;
  std::vector<unsigned char> memory((kPuts + 1) * 64);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    std::vector<unsigned char> buffer(64, 0xee);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    const ptl_handle_md_t md = bind_md(ni, md_of(buffer.data(), buffer.size(), ends.source_eq, PTL_CT_NONE,
                                                 PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE));
    const auto triggered_put = [&](unsigned int place) {
      REQUIRE_OK(PtlTriggeredPut(md, 0, 64, PTL_ACK_REQ, ni.target(), kPt, 0, place * 64, nullptr, 0, ct, 1));
    };
    triggered_put(0);
    std::fill(buffer.begin(), buffer.end(), 0xaa);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    next_event(ends.source_eq, PTL_EVENT_ACK);
    for (unsigned int i = 1; i <= kPuts; ++i) {
      std::fill(buffer.begin(), buffer.end(), static_cast<unsigned char>(i));
      triggered_put(i);
    }
    std::fill(buffer.begin(), buffer.end(), 0xff);
    for (unsigned int i = 1; i <= kPuts; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    for (unsigned int i = 0; i <= kPuts; ++i) {
      const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(i * 64);
      EXPECT_EQ(std::count(begin, begin + 64, static_cast<unsigned char>(i == 0 ? 0xaa : i)), 64) << "put " << i;
    }
  });
}

// 3.6.1: max_iovecs: "Maximum number of I/O vectors for a single memory descriptor, list entry, or match list entry"; a
// list that is not there.
TEST_PROCESSES(1, MemoryDescriptor, Section3_10_2__iovec_up_to_the_limit) {
  ptl_ni_limits_t wanted = generous_limits();
  wanted.max_iovecs = 100;
  const Ni ni(self, kMatching, &wanted);
  alloc_pt(ni, PTL_EQ_NONE);
  const int limit = ni.limits().max_iovecs;
  if (limit > 1000000) self.skip("the limit is too high to be reached");
  unsigned char byte = 0;
  std::vector<ptl_iovec_t> pieces(static_cast<std::size_t>(limit) + 1, {&byte, 1});
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  for (ptl_size_t count : {static_cast<ptl_size_t>(limit), static_cast<ptl_size_t>(limit) + 1}) {
    const int expected = count == pieces.size() ? PTL_ARG_INVALID : PTL_OK;
    const ptl_md_t described = md_of(pieces.data(), count, PTL_EQ_NONE, PTL_CT_NONE, PTL_IOVEC);
    const ptl_me_t me = me_of(ni, pieces.data(), count, PTL_IOVEC);
    EXPECT_RC(PtlMDBind(ni, &described, &md), expected) << count;
    EXPECT_RC(PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, nullptr, &entry), expected) << count;
  }
  // Offsets into it could not be told.
  ptl_iovec_t too_long[2] = {{&byte, PTL_SIZE_MAX}, {&byte, 1}};
  const ptl_md_t endless = md_of(too_long, 2, PTL_EQ_NONE, PTL_CT_NONE, PTL_IOVEC);
  const ptl_me_t endless_entry = me_of(ni, too_long, 2, PTL_IOVEC);
  EXPECT_RC(PtlMDBind(ni, &endless, &md), PTL_ARG_INVALID);
  EXPECT_RC(PtlMEAppend(ni, kPt, &endless_entry, PTL_PRIORITY_LIST, nullptr, &entry), PTL_ARG_INVALID);
  const ptl_md_t nothing = md_of(nullptr, 2, PTL_EQ_NONE, PTL_CT_NONE, PTL_IOVEC);
  EXPECT_RC(PtlMDBind(ni, &nothing, &md), PTL_ARG_INVALID);
}
