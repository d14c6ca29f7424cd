// Portals 4.3, 3.11: persistent list entries that tell their process nothing (no full events, no counts), as PGAS
// programs have them, with memory from the heap. Once such an entry has answered, an implementation may carry out what
// follows in another way, for example by loads and stores of the initiator; nobody may notice.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>

#include "../harness/fixture.h"
#include "tests/support/eventually.h"

using namespace conformance;

PORTALS_SUITE(SilentEntry);

namespace {
using Bytes = std::vector<unsigned char>;
constexpr unsigned int kSilent = PTL_LE_EVENT_COMM_DISABLE;
constexpr unsigned int kOnlyFailures = PTL_LE_EVENT_SUCCESS_DISABLE;  ///< As silent, as long as all goes well.
constexpr std::size_t kMemory = 160 * 1024;                           ///< Bytes of an entry.
constexpr std::size_t kLocal = 100'064;  ///< Bytes of an initiator's region: the longest message and some room.
alignas(8) constexpr unsigned char kOperand[8] = {1, 2, 3, 4, 5, 6, 7, 8};

std::uint64_t& word(Bytes& m, std::size_t i) { return static_cast<std::uint64_t*>(static_cast<void*>(m.data()))[i]; }
/// The value of a word that Portals changes.
std::uint64_t look(Bytes& memory, std::size_t i) {
  REQUIRE_OK(PtlAtomicSync());
  return std::atomic_ref(word(memory, i)).load(std::memory_order_acquire);
}

/// Waits for what another process brings about without an event.
void wait_until(const auto& holds, Where where = Where::current()) {
  if (!portofu::eventually(holds)) stop("waited in vain", where);
}

/// Fetches the first word of an entry and puts it back, so that nothing changes, and waits for each answer.
void warm_up(const Ends& ends, ptl_process_t target, ptl_pt_index_t pt = kPt) {
  const Message first{.length = 8, .local_offset = 4088, .pt = pt};
  for (int i = 0; i < 4; ++i) {
    get(ends.md, target, first);
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    put_and_wait(ends, target, first);
  }
}

ptl_handle_le_t append_over(const Ni& ni, Bytes& memory, unsigned int options, ptl_pt_index_t pt = kPt) {
  return append(ni, le_of(memory.data(), memory.size(), options), PTL_PRIORITY_LIST, nullptr, pt);
}

/// A silent entry at kPt of the target, which has answered every initiator, and everywhere one at kOtherPt that tells.
struct Scene {
  Scene(Process& self, Bytes& silent, Bytes& loud) : ni(self, kNonMatching), ends(ni, 0, 4096) {
    alloc_pt(ni, ends.target_eq, 0, kOtherPt);
    append_over(ni, loud, 0, kOtherPt);
    self.target([&] { entry = append_over(ni, silent, kSilent); });
    self.initiator([&] { warm_up(ends, ni.target()); });
  }
  const Ni ni;
  const Ends ends;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;  ///< The silent one, at the target.
};

enum class Op { put, get, atomic, fetch_atomic, swap, cswap, mswap };
constexpr Op kAll[] = {Op::put, Op::get, Op::atomic, Op::fetch_atomic, Op::swap, Op::cswap, Op::mswap};
bool fetches(Op op) { return op == Op::get || op >= Op::fetch_atomic; }
ptl_event_kind_t end_of(Op op) { return fetches(op) ? PTL_EVENT_REPLY : PTL_EVENT_ACK; }

/// Memory of the initiator for an operation, and the counting event that triggers it, if any.
struct Local {
  ptl_handle_md_t out, in;
  ptl_size_t in_offset = 1024;
  const unsigned char* operand = kOperand;
  ptl_handle_ct_t trigger = PTL_CT_NONE;
};

void start_triggered(Op op, const Local& local, ptl_process_t to, const Message& message) {
  const auto [size, from, at, bits, data, user, ack, pt, sum, type] = message;
  const auto [out, in, into, operand, ct] = local;
  if (op == Op::put) REQUIRE_OK(PtlTriggeredPut(out, from, size, ack, to, pt, 0, at, user, 0, ct, 1));
  if (op == Op::get) REQUIRE_OK(PtlTriggeredGet(in, into, size, to, pt, 0, at, user, ct, 1));
  if (op == Op::atomic) REQUIRE_OK(PtlTriggeredAtomic(out, from, size, ack, to, pt, 0, at, user, 0, sum, type, ct, 1));
  if (op == Op::fetch_atomic)
    REQUIRE_OK(PtlTriggeredFetchAtomic(in, into, out, from, size, to, pt, 0, at, user, 0, sum, type, ct, 1));
  if (op >= Op::swap)
    REQUIRE_OK(PtlTriggeredSwap(in, into, out, from, size, to, pt, 0, at, user, 0, operand, sum, type, ct, 1));
  REQUIRE_OK(PtlCTInc(ct, {1, 0}));
}

/// Atomics are sums; items are bytes if the length is no multiple of eight.
void start(Op op, const Local& local, ptl_process_t target, Message message) {
  message.type = message.length % 8 == 0 ? PTL_UINT64_T : PTL_UINT8_T;
  if (op >= Op::swap) message.op = op == Op::swap ? PTL_SWAP : op == Op::cswap ? PTL_CSWAP : PTL_MSWAP;
  if (local.trigger != PTL_CT_NONE) return start_triggered(op, local, target, message);
  if (op == Op::put) put(local.out, target, message);
  if (op == Op::atomic) atomic(local.out, target, message);
  if (op == Op::fetch_atomic) fetch_atomic(local.in, local.in_offset, local.out, target, message);
  if (op >= Op::swap) swap(local.in, local.in_offset, local.out, target, message, local.operand);
  message.local_offset = local.in_offset;
  if (op == Op::get) get(local.in, target, message);
}

/// What an operation makes of the target, where the lowest byte of an item comes first.
void carry_out(Op op, unsigned char* to, const unsigned char* from, const unsigned char* operand, ptl_size_t length) {
  if (op == Op::get || (op == Op::cswap && std::memcmp(to, operand, length) != 0)) return;
  for (unsigned int i = 0, sum = 0; i < length; ++i) {
    const unsigned int mask = op == Op::mswap ? operand[i] : 0xff;
    sum = (i % 8 == 0 || length % 8 != 0 ? 0 : sum >> 8) + to[i] + from[i];
    const bool moves = op == Op::put || op >= Op::swap;
    to[i] = static_cast<unsigned char>((moves ? (to[i] & ~mask) | (from[i] & mask) : sum) & 0xff);
  }
}

/// Checks events and counts of an operation on `md`. SEND and its end come in any order (3.13.2), other acknowledgments
/// than PTL_ACK_REQ may make a full event or not (3.15.1), and table 3-3 says which fields are defined.
void check_reports(const Ends& ends, const ptl_md_t& md, Op op, const Message& message, ptl_size_t mlength) {
  const auto has = [&](unsigned int option) { return (md.options & option) != 0; };
  const bool answered = fetches(op) || message.ack != PTL_NO_ACK_REQ, loud = !has(PTL_MD_EVENT_SUCCESS_DISABLE);
  const bool sure = loud && (fetches(op) || message.ack == PTL_ACK_REQ), of_send = has(PTL_MD_EVENT_CT_SEND);
  const std::size_t sends = op != Op::get && loud && !has(PTL_MD_EVENT_SEND_DISABLE) ? 1u : 0u;
  const ptl_size_t each = !has(PTL_MD_EVENT_CT_BYTES) ? 1 : of_send ? message.length : mlength;
  const ptl_size_t count = (of_send ? op != Op::get : answered) ? each : 0;
  std::size_t seen[2] = {};  // SEND, and ends.
  const auto note = [&](const ptl_event_t& event) {
    if (event.user_ptr != message.user_ptr) return;  // One that may come or not, of an earlier operation.
    const bool send = event.type == PTL_EVENT_SEND;
    ++seen[send ? 0 : 1];
    EXPECT_TRUE(event.ni_fail_type == PTL_NI_OK && (send || event.type == end_of(op))) << describe(event);
    EXPECT_TRUE(event.mlength == (send ? message.length : mlength) || !(send || sure)) << describe(event);
    const bool placed = event.remote_offset == message.remote_offset || mlength == 0;
    EXPECT_TRUE(send || !sure || (placed && event.ptl_list == PTL_PRIORITY_LIST)) << describe(event);
  };
  while (seen[0] < sends || (sure && seen[1] == 0)) note(next_event(md.eq_handle));
  wait_for_count(md.ct_handle, count);
  next_event(ends.source_eq);  // Of something that came later.
  std::ranges::for_each(drain(md.eq_handle), note);
  EXPECT_TRUE(seen[0] == sends && seen[1] <= (answered && loud ? 1u : 0u)) << seen[0] << " and " << seen[1];
  EXPECT_TRUE(count_of(md.ct_handle).success == count && count_of(md.ct_handle).failure == 0) << "expected " << count;
}
using Places = std::vector<std::pair<ptl_size_t, ptl_size_t>>;  ///< Remote offsets and lengths.
struct Shape {
  unsigned int ni_options = kNonMatching, le_options = kSilent;
  ptl_size_t entry_bytes = kMemory;  ///< At the start of memory of kMemory bytes.
  std::ptrdiff_t split = 0;          ///< Not 0: the initiator's regions are two pieces, the first of this many bytes.
  bool triggered = false;
  bool all_reports = false;  ///< Each place with another kind of acknowledgment, of events and of counts.
  Places places = {{65, 1}, {66, 1},      {80, 8},      {88, 8},      {75, 7},
                   {8, 64}, {1024, 4096}, {4097, 4095}, {40, 100000}, {33, 99999}};
};

/// Does every operation at every place, each with fresh memory of both sides, and compares all of it with a model.
void check_all(Process& self, const Shape& shape) {
  Bytes memory(kMemory), out(kLocal), in(kLocal);
  const Ni ni(self, shape.ni_options);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_size_t longest_atomic = std::min(ni.limits().max_atomic_size, ni.limits().max_fetch_atomic_size);
  const auto split = static_cast<std::size_t>(shape.split), rest = kLocal - split;
  ptl_iovec_t pieces[2][2] = {{{&out[rest - 1] + 1, split}, {&out[0], rest}},
                              {{&in[rest - 1] + 1, split}, {&in[0], rest}}};
  constexpr ptl_ack_req_t kAcks[] = {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ, PTL_NO_ACK_REQ};
  constexpr unsigned int kQuiet[] = {0, PTL_MD_EVENT_SEND_DISABLE, PTL_MD_EVENT_SUCCESS_DISABLE};
  constexpr unsigned int kCounted[] = {PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_MD_EVENT_CT_SEND};
  self.target([&] { append(ni, le_of(memory.data(), shape.entry_bytes, shape.le_options)); });
  self.initiator([&] { warm_up(ends, ni.target()); });
  for (unsigned int i = 0; i < std::size(kAll) * shape.places.size(); ++i) {
    const Op op = kAll[i % std::size(kAll)];
    const auto& [offset, length] = shape.places[i / std::size(kAll)];
    const ptl_size_t longest = op < Op::atomic ? ni.limits().max_msg_size : longest_atomic;
    if (length > longest || (op >= Op::cswap && length != 1 && length != 8)) continue;  // 3.15.4: "single data items".
    const std::size_t number = shape.all_reports ? i / std::size(kAll) : 0;
    const ptl_ack_req_t ack = kAcks[number % 4];
    unsigned int options = kQuiet[number / 4 % 3] | kCounted[number / 12 % 2];
    if (number >= 24 && ack != PTL_OC_ACK_REQ) options |= PTL_MD_EVENT_CT_BYTES;  // 3.15.1: it "does not support" that.
    const Message message{.length = length, .local_offset = 9, .remote_offset = offset, .user_ptr = tag(i), .ack = ack};
    const ptl_size_t at = std::min(offset, shape.entry_bytes), mlength = std::min(length, shape.entry_bytes - at);
    const Bytes raw = pattern(kLocal, i);
    Bytes data = raw, model = pattern(kMemory, i + 100), fetched(kLocal);
    std::rotate(data.rbegin(), data.rbegin() + shape.split, data.rend());  // The first piece is the last in memory.
    const unsigned char* operand = i % 2 == 0 ? &data[48] : &model[at];    // PTL_CSWAP swaps only with the latter.
    SCOPED_TRACE(testing::Message() << "operation " << i % std::size(kAll) << ", " << length << " bytes at " << offset);
    self.target([&] { memory = model; });
    self.initiator([&] {
      if (fetches(op)) std::copy_n(&model[at], mlength, &fetched[11]);
      std::rotate(fetched.begin(), fetched.begin() + shape.split, fetched.end());
      std::ranges::copy(raw, out.begin());
      std::ranges::fill(in, 0);
      const ptl_handle_ct_t ct = alloc_ct(ni), trigger = shape.triggered ? alloc_ct(ni) : PTL_CT_NONE;
      ptl_md_t mds[2] = {md_of(out.data(), kLocal, eq, ct, options), md_of(in.data(), kLocal, eq, ct, options)};
      for (std::size_t k = 0; k < 2 && split > 0; ++k) mds[k] = md_of(pieces[k], 2, eq, ct, options | PTL_IOVEC);
      start(op, {bind_md(ni, mds[0]), bind_md(ni, mds[1]), 11, operand, trigger}, ni.target(), message);
      put(ends.md, ni.target(), {});
      check_reports(ends, mds[0], op, message, mlength);
      if (shape.all_reports) wait_until([&] { return in == fetched; });  // Some descriptors do not tell of the end.
      EXPECT_TRUE(in == fetched && out == raw);
    });
    carry_out(op, &model[at], &data[9], operand, mlength);
    self.target([&] {
      REQUIRE_OK(PtlAtomicSync());
      if (shape.all_reports) wait_until([&] { return memory == model; });
      EXPECT_TRUE(memory == model);
      expect_empty(ends.target_eq);
    });
  }
}
}  // namespace

// 3.15.2 to 3.15.7, 3.13.4: what operations do, and report; 3.11.1: COMM_DISABLE: no "full events that indicate a
// communication operation" at the target; SUCCESS_DISABLE: none "if the ni_fail_type would be PTL_OK"; 3.9: ranks.
TEST_BOTH_WAYS(SilentEntry, Section3_15__operations_reach_exactly_their_bytes) { check_all(self, {}); }
TEST_BOTH_WAYS(SilentEntry, Section3_11_1__success_disable_on_a_logical_interface) {
  check_all(self, {.ni_options = PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, .le_options = kOnlyFailures});
}
// 3.10.1: it "behaves exactly as ... a single virtually contiguous region", also where an item lies in two pieces.
TEST_BOTH_WAYS(SilentEntry, Section3_10_1__iovec) { check_all(self, {.split = 15}); }
// 3.16: when the threshold is reached, "the operation proceeds at the initiator", as if it were called then.
TEST_BOTH_WAYS(SilentEntry, Section3_16__triggered) { check_all(self, {.triggered = true}); }
// 3.10.1: *_DISABLE "does not affect counting events", counts of events and of bytes; 3.15.1: kinds of acknowledgment;
// 3.13.4: mlength in SEND "may be larger than the number of bytes delivered": the entry has room for 16 of 24 bytes.
TEST_BOTH_WAYS(SilentEntry, Section3_15_1__every_kind_of_report) {
  check_all(self, {.all_reports = true, .places = Places(48, {kMemory - 16, 24})});
}
// 3.11: "Messages that are outside the bounds of the LE are truncated to zero bytes". kFar: offset + length overflows.
TEST_BOTH_WAYS(SilentEntry, Section3_11__truncation) {
  constexpr ptl_size_t kFar = PTL_SIZE_MAX - 7;
  const Places places = {{992, 16},  {997, 7},  {0, 100000},   {40, 4096}, {1000, 8}, {2000, 64},
                         {kFar, 16}, {kFar, 8}, {kFar + 7, 1}, {8, 0},     {2000, 0}, {kFar, 0}};
  check_all(self, {.entry_bytes = 1000, .places = places});
}

// 3.11.1: without PTL_LE_OP_PUT or PTL_LE_OP_GET "it is treated as an operations failure", another uid "as a
// permissions failure"; 3.7.3: a disabled portal table entry accepts "no new messages", until PtlPTEnable (3.7.4).
TEST_BOTH_WAYS(SilentEntry, Section3_7_3__refusals) {
  Bytes memory(kMemory), model(kMemory);
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  for (int kind = 0; kind < 4; ++kind) {  // For everything, which warms up, for puts, for gets, for another user.
    ptl_le_t le = le_of(memory.data(), memory.size(), kind % 2 == 0 ? kSilent : kOnlyFailures);
    le.options &= ~(kind == 1 ? PTL_LE_OP_GET : kind == 2 ? PTL_LE_OP_PUT : 0u);
    le.uid = kind == 3 ? uid + 1 : PTL_UID_ANY;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    self.target([&] { entry = append(ni, le); });
    for (int round = 0; round < 6; ++round) {
      const auto end = [&](Op op) {
        const bool refused = kind == 1 ? fetches(op) : kind == 2 && op != Op::get;
        const ptl_ni_fail_t enabled = refused ? PTL_NI_OP_VIOLATION : kind == 3 ? PTL_NI_PERM_VIOLATION : PTL_NI_OK;
        return round % 2 == 0 ? enabled : PTL_NI_PT_DISABLED;
      };
      for (const Op op : kAll) {
        if (end(op) == PTL_NI_OK) carry_out(op, &model[8], &ends.data[0], kOperand, 8);
        if (!self.is_initiator()) continue;
        start(op, {ends.md, ends.md}, ni.target(), {.length = 8, .remote_offset = 8});
        next_event(ends.source_eq, end_of(op), end(op));
      }
      self.barrier();
      self.target([&] { EXPECT_TRUE(memory == model) << kind; });
      self.target([&] { EXPECT_RC(round % 2 == 0 ? PtlPTDisable(ni, kPt) : PtlPTEnable(ni, kPt), PTL_OK); });
    }
    self.target([&] { EXPECT_RC(PtlLEUnlink(entry), PTL_OK); });
  }
  self.target([&] { wait_for_status(ni, PTL_SR_OPERATION_VIOLATIONS, 3 * (5 + 6)); });
  self.target([&] { wait_for_status(ni, PTL_SR_PERMISSION_VIOLATIONS, 3 * 7); });
  self.target([&] { expect_empty(ends.target_eq); });
}

// 2.7.1: byte by byte a store or a read comes after an earlier store, and a store after an earlier read, below the
// limits; 2.7.3: this holds for "overlapping portals", here for one that tells of all. Else nothing is waited for.
TEST_BOTH_WAYS(SilentEntry, Section2_7_1__order_with_an_entry_that_tells) {
  constexpr std::size_t kOperations = 400, kLongest = 40000;
  Bytes memory(kMemory), model(kMemory), in(kOperations * kLongest), expected(in.size()), out = pattern(kLocal);
  const Scene s(self, memory, memory);
  const ptl_size_t war = s.ni.limits().max_war_ordered_size - 1;
  const ptl_size_t waw = std::min<ptl_size_t>(s.ni.limits().max_waw_ordered_size - 1, kLongest);
  const ptl_handle_md_t out_md = bind_quiet(s.ni, out.data(), out.size(), s.ends.source_eq);
  const ptl_handle_md_t in_md = bind_quiet(s.ni, in.data(), in.size(), s.ends.source_eq);
  unsigned int random = 20240607, open = 0, loud = 0, reads = 0;
  const auto below = [&](ptl_size_t bound) { return ((random = random * 1664525 + 1013904223) >> 8) % bound; };
  for (std::size_t i = 0; i < kOperations; ++i, ++open) {  // In all processes: they all know what is to come of it.
    const Op op = kAll[below(std::size(kAll))];
    const ptl_size_t most = std::min(op == Op::get ? war : waw, below(3) > 0 ? 63 : waw);
    const Message message{.length = op <= Op::get ? 1 + below(most) : 8,
                          .local_offset = 8 * below(100),
                          .remote_offset = op <= Op::get ? below(64) : 8 * below(8),
                          .pt = below(2) == 0 ? kPt : kOtherPt};
    for (; message.length > war && reads > 0 && open > 0; --open)
      if (self.is_initiator()) next_event(s.ends.source_eq);
    reads = (open > 0 ? reads : 0u) + (fetches(op) ? 1u : 0u);
    const unsigned char* source = &out[message.local_offset];
    unsigned char* there = &model[message.remote_offset];
    if (self.is_initiator()) start(op, {out_md, in_md, i * kLongest, source + 8}, s.ni.target(), message);
    if (fetches(op)) std::copy_n(there, message.length, &expected[i * kLongest]);
    carry_out(op, there, source, source + 8, message.length);
    loud += message.pt == kOtherPt ? 1u : 0u;
  }
  self.initiator([&] {
    for (; open > 0; --open) next_event(s.ends.source_eq);
    EXPECT_TRUE(in == expected);
  });
  for (; self.is_target() && loud > 0; --loud) EXPECT_EQ(next_event(s.ends.target_eq).ni_fail_type, PTL_NI_OK);
  REQUIRE_OK(PtlAtomicSync());
  self.target([&] { EXPECT_TRUE(memory == model); });
}

// 2.7.1: with PTL_TOTAL_DATA_ORDERING "the first message must be entirely delivered before any part of the second
// message is delivered": silent data and then an event, or other data and then a silent flag.
TEST_PROCESSES(2, SilentEntry, Section2_7_1__total_data_ordering_with_an_entry_that_tells) {
  Bytes silent(kMemory), loud(kMemory), out(kMemory);
  const Scene s(self, silent, loud);
  if ((s.ni.limits().features & PTL_TOTAL_DATA_ORDERING) == 0) self.skip("not promised by the interface");
  const ptl_handle_md_t md = bind_quiet(s.ni, out.data(), out.size(), s.ends.source_eq);
  constexpr std::size_t kFlag = kMemory / 8 - 1, kLengths[] = {1, 8, 500, 12500};
  for (std::uint64_t round = 1; round <= 400; ++round, self.barrier()) {
    const std::size_t words = std::min(kLengths[round / 2 % 4], s.ni.limits().max_waw_ordered_size / 8 - 1);
    const bool silent_data = round % 2 == 0;
    if (self.is_initiator()) {
      for (std::size_t i = 0; i < words; ++i) word(out, i) = round;
      put(md, s.ni.target(), {.length = 8 * words, .pt = silent_data ? kPt : kOtherPt});
      put(md, s.ni.target(), {.length = 8, .remote_offset = 8 * kFlag, .pt = silent_data ? kOtherPt : kPt});
      for (int i = 0; i < 2; ++i) next_event(s.ends.source_eq, PTL_EVENT_ACK);
      continue;
    }
    if (!silent_data) wait_until([&] { return look(silent, kFlag) == round; });
    if (silent_data) next_event(s.ends.target_eq, PTL_EVENT_PUT);
    for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(look(silent_data ? silent : loud, i), round) << "word " << i;
    if (!silent_data) next_event(s.ends.target_eq, PTL_EVENT_PUT);
  }
}

// 3.11.3: after PtlLEUnlink the next entry is the first, which "always matches" (2.5.1), silent or not; the old memory
// is the program's alone. Without a next one messages are dropped (2.5), and puts not answered (2.8).
TEST_BOTH_WAYS(SilentEntry, Section3_11_3__next_entry_or_none) {
  constexpr std::size_t kRounds = 30;
  std::vector<Bytes> memories(kRounds + 1);
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  std::vector<ptl_handle_le_t> entries;
  const auto add = [&] {
    const std::size_t i = entries.size();
    memories[i].resize(kMemory);
    entries.push_back(append_over(ni, memories[i], std::array{kSilent, kOnlyFailures, 0u}[i % 3]));
  };
  self.target(add);
  for (std::size_t round = 0; round < kRounds; ++round) {
    self.initiator([&] { warm_up(ends, ni.target()); });
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .remote_offset = 8 * round + 8}); });
    self.target([&] {
      Bytes expected(kMemory);
      std::copy_n(&ends.data[0], 8, &expected[8 * round + 8]);
      EXPECT_TRUE(memories[round] == expected);
      for (int i = 0; round % 3 == 2 && i < 9; ++i) next_event(ends.target_eq);
      expect_empty(ends.target_eq);
      if (round % 2 == 0) add();
      EXPECT_RC(PtlLEUnlink(entries[round]), PTL_OK);
      std::ranges::fill(memories[round], 0x55);
    });
    if (round % 2 == 0) continue;
    self.initiator([&] {
      for (const Op op : kAll) start(op, {ends.md, ends.md}, ni.target(), {.length = 8});
      for (int i = 0; i < 5; ++i) next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
    });
    self.target([&] { wait_for_status(ni, PTL_SR_DROP_COUNT, static_cast<ptl_sr_value_t>(7 * (round + 1) / 2)); });
    self.target(add);
  }
  for (std::size_t i = 0; self.is_target() && i < kRounds; ++i) EXPECT_TRUE(memories[i] == Bytes(kMemory, 0x55));
}

// 3.7.3: PtlPTDisable "blocks until ... all messages being actively processed are completed"; 3.11.3: an entry that
// "has pending operations" is not unlinked. Others add meanwhile: nothing is lost, or done where it may not be.
TEST_PROCESSES(3, SilentEntry, Section3_11_3__disabling_and_unlinking_under_load) {
  Bytes memories[2] = {Bytes(kMemory), Bytes(kMemory)}, nothing, one = {1, 0, 0, 0, 0, 0, 0, 0};
  const Scene s(self, memories[0], nothing);
  const ptl_handle_md_t md = bind_quiet(s.ni, one.data(), 8, s.ends.source_eq);
  ptl_handle_le_t entries[2] = {s.entry, PTL_INVALID_HANDLE};
  self.target([&] { entries[1] = append_over(s.ni, memories[1], kSilent); });
  std::uint64_t collected = 0, done = 0;
  for (std::size_t round = 0; self.is_target() && round < 100; ++round) {
    Bytes &first = memories[round % 2], &second = memories[1 - round % 2];
    REQUIRE_OK(PtlPTDisable(s.ni, kPt));
    const std::uint64_t before = look(first, 0), later = look(second, 0);
    put_and_wait(s.ends, s.ni.target(), {.pt = kOtherPt});  // Time for what comes too late.
    EXPECT_EQ(look(first, 0), before) << "disabled";
    REQUIRE_OK(PtlPTEnable(s.ni, kPt));
    wait_until([&] { return look(first, 0) != before; });
    wait_until([&] { return PtlLEUnlink(entries[round % 2]) == PTL_OK; });
    collected += look(first, 0);
    word(first, 0) = 0;
    wait_until([&] { return look(second, 0) != later; });
    ASSERT_EQ(look(first, 0), 0u) << "unlinked";
    entries[round % 2] = append_over(s.ni, first, kSilent);
  }
  for (int rank = 1; self.is_target() && rank < 3; ++rank)  // They may stop.
    put(s.ends.md, s.ni.id(rank), {.ack = PTL_NO_ACK_REQ, .pt = kOtherPt});
  for (int i = 0; self.is_initiator() && drain(s.ends.target_eq).empty(); ++i) {
    start(i % 2 == 0 ? Op::atomic : Op::fetch_atomic, {md, s.ends.md}, s.ni.target(), {.length = 8});
    const ptl_event_t event = next_event(s.ends.source_eq);
    if (event.ni_fail_type != PTL_NI_OK && event.ni_fail_type != PTL_NI_PT_DISABLED) stop(describe(event));
    done += event.ni_fail_type == PTL_NI_OK ? 1u : 0u;
  }
  for (const std::uint64_t others : self.share(done)) collected -= others;
  self.target([&] { EXPECT_EQ(collected + look(memories[0], 0) + look(memories[1], 0), 0u); });
}

// 2.5: the portal index selects "an entry in the portal table", the interface the table: many of them, without waiting.
TEST_BOTH_WAYS(SilentEntry, Section3_7__many_entries_of_two_interfaces) {
  constexpr std::size_t kEntries = 24, kPuts = 20;
  std::vector<Bytes> memories(kEntries, Bytes(8192));
  const Ni nis[2] = {Ni(self, kNonMatching), Ni(self, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL)};
  const Ends ends[2] = {Ends(nis[0]), Ends(nis[1])};
  const auto pt = [](std::size_t i) { return static_cast<ptl_pt_index_t>(20 + i / 2); };  // Of each interface in turn.
  for (std::size_t i = 0; i < kEntries; ++i) alloc_pt(nis[i % 2], ends[i % 2].target_eq, 0, pt(i));
  for (std::size_t i = 0; i < kEntries; ++i) append_over(nis[i % 2], memories[i], kSilent, pt(i));
  self.barrier();
  self.initiator([&] {
    for (std::size_t i = 0; i < kEntries; ++i) warm_up(ends[i % 2], nis[i % 2].target(), pt(i));
    for (std::size_t k = 0, i = 0; k < kEntries * kPuts; ++k, i = k * 7 % kEntries)
      put(ends[i % 2].md, nis[i % 2].target(),
          {.length = 8, .local_offset = 8 * i, .remote_offset = 8 * (k / kEntries), .pt = pt(i)});
    for (std::size_t k = 0; k < kEntries * kPuts; ++k) next_event(ends[k % 2].source_eq, PTL_EVENT_ACK);
  });
  for (std::size_t k = 0; self.is_target() && k < kEntries * kPuts; ++k)
    EXPECT_EQ(std::memcmp(&memories[k % kEntries][k / kEntries * 8], &ends[0].data[k % kEntries * 8], 8), 0) << k;
}

// 3.15.4: atomics are atomic to each other on one interface, here also through an entry that tells (rank 3), and with
// PTL_COHERENT_ATOMICS "relative to processor-initiated atomic operations".
TEST_PROCESSES(4, SilentEntry, Section3_15_4__increments_of_all_are_atomic) {
  constexpr std::size_t kRounds = 400;
  Bytes memory(kMemory), local(16);
  const Scene s(self, memory, memory);
  const std::size_t by_processor = (s.ni.limits().features & PTL_COHERENT_ATOMICS) != 0 ? 200'000u : 0u;
  const ptl_handle_md_t md = bind_quiet(s.ni, local.data(), 16, s.ends.source_eq);
  const Message message{.length = 8, .remote_offset = 8, .pt = self.rank() == 3 ? kOtherPt : kPt};
  std::array<std::uint64_t, kRounds> mine{};
  word(local, 0) = 1;
  for (std::size_t i = 0; self.is_initiator() && i < kRounds; ++i) {
    for (const Op op : {Op::atomic, Op::fetch_atomic}) start(op, {md, md, 8}, s.ni.target(), message);
    for (int k = 0; k < 2; ++k) EXPECT_EQ(next_event(s.ends.source_eq).ni_fail_type, PTL_NI_OK);
    mine[i] = word(local, 1);
  }
  for (std::size_t i = 0; self.is_target() && i < by_processor; ++i) std::atomic_ref(word(memory, 1)).fetch_add(1);
  std::set<std::uint64_t> all;
  for (const auto& one : self.share(mine)) all.insert(one.begin(), one.end());
  EXPECT_EQ(all.size(), 3 * kRounds + 1) << "The target has zeros.";
  self.target([&] { EXPECT_EQ(look(memory, 1), 3 * 2 * kRounds + by_processor); });
}
