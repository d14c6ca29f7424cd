// Portals 4.3, 3.11: persistent list entries that tell their process nothing, as PGAS programs have them: full events
// are disabled and nothing is counted. Once such an entry has answered somebody, an implementation may carry out what
// follows in another way, for example by loads and stores of the initiator. So every test first lets it answer
// (warm_up), and then looks whether it still behaves as every other entry. Its memory is always from the heap.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <set>
#include <thread>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(SilentEntry);

namespace {

using Bytes = std::vector<unsigned char>;
using Memory = std::vector<std::uint64_t>;  ///< Of a target.

constexpr unsigned int kSilent = PTL_LE_EVENT_COMM_DISABLE;
constexpr unsigned int kOnlyFailures = PTL_LE_EVENT_SUCCESS_DISABLE;  ///< As silent, as long as all goes well.
constexpr std::size_t kWords = 20 * 1024;                             ///< Of most target memory.
constexpr std::size_t kLocal = 100'064;  ///< Bytes of an initiator's region: the longest message and some room.
constexpr ptl_size_t kSpare = 4088;      ///< Offset in Ends::data of the word that warm_up uses.
constexpr ptl_size_t kIn = 1024;         ///< Offset in Ends::data for what is fetched.

ptl_le_t le_over(Memory& memory, unsigned int options) { return le_of(memory.data(), memory.size() * 8, options); }

Bytes bytes_of(const Memory& memory) {
  REQUIRE_OK(PtlAtomicSync());
  const auto* first = reinterpret_cast<const unsigned char*>(memory.data());
  return Bytes(first, first + memory.size() * 8);
}

std::uint64_t look(std::uint64_t& word) {
  REQUIRE_OK(PtlAtomicSync());
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

/// Waits for what another process brings about without an event.
template <class Condition>
void wait_until(Condition holds, Where where = Where::current()) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  for (; !holds(); std::this_thread::yield())
    if (std::chrono::steady_clock::now() > end) stop("waited in vain", where);
}

/// Fetches the first word of an entry and puts it back, so that nothing changes, and waits for each answer.
void warm_up(const Ends& ends, ptl_process_t target, ptl_pt_index_t pt = kPt, Where where = Where::current()) {
  const Message word{.length = 8, .local_offset = kSpare, .pt = pt};
  for (int i = 0; i < 4; ++i) {
    get(ends.md, target, word, where);
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_OK, where);
    put_and_wait(ends, target, word, PTL_NI_OK, where);
  }
}

/// The target appends a silent entry, and every initiator has it answer. The handle is for the target alone.
ptl_handle_le_t expose(Process& self, const Ni& ni, const Ends& ends, Memory& memory) {
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  self.target([&] { entry = append(ni, le_over(memory, kSilent)); });
  self.initiator([&] { warm_up(ends, ni.target()); });
  return entry;
}

enum class Operation { put, get, atomic, fetch_atomic, swap, cswap, mswap };
constexpr Operation kAll[] = {Operation::put,  Operation::get,   Operation::atomic, Operation::fetch_atomic,
                              Operation::swap, Operation::cswap, Operation::mswap};

bool fetches(Operation operation) { return operation == Operation::get || operation >= Operation::fetch_atomic; }
ptl_event_kind_t end_of(Operation operation) { return fetches(operation) ? PTL_EVENT_REPLY : PTL_EVENT_ACK; }

bool legal(const Ni& ni, Operation operation, ptl_size_t length) {
  if (operation >= Operation::cswap) return length == 1 || length == 8;
  if (operation >= Operation::fetch_atomic) return length <= ni.limits().max_fetch_atomic_size;
  return length <= (operation == Operation::atomic ? ni.limits().max_atomic_size : ni.limits().max_msg_size);
}

/// Memory of the initiator for an operation.
struct Local {
  ptl_handle_md_t out;
  ptl_handle_md_t in;
  ptl_size_t in_offset = kIn;
  const void* operand = "operand";  ///< Of eight bytes.
};

/// Items are bytes if the length is no multiple of eight.
void start(Operation operation, const Local& local, ptl_process_t target, Message message) {
  message.type = message.length % 8 == 0 ? PTL_UINT64_T : PTL_UINT8_T;
  if (operation == Operation::put) put(local.out, target, message);
  if (operation == Operation::atomic) atomic(local.out, target, message);
  if (operation == Operation::fetch_atomic) fetch_atomic(local.in, local.in_offset, local.out, target, message);
  message.op = operation == Operation::cswap ? PTL_CSWAP : operation == Operation::mswap ? PTL_MSWAP : PTL_SWAP;
  if (operation >= Operation::swap) swap(local.in, local.in_offset, local.out, target, message, local.operand);
  message.local_offset = local.in_offset;
  if (operation == Operation::get) get(local.in, target, message);
}

/// What an operation makes of the target, where the lowest byte of an item comes first.
void carry_out(Operation operation, unsigned char* target, const unsigned char* source, const unsigned char* operand,
               ptl_size_t length) {
  const bool sums = operation == Operation::atomic || operation == Operation::fetch_atomic;
  if (operation == Operation::get) return;
  if (operation == Operation::cswap && std::memcmp(target, operand, length) != 0) return;
  unsigned int carry = 0;
  for (ptl_size_t i = 0; i < length; ++i) {
    const unsigned int mask = operation == Operation::mswap ? operand[i] : 0xff;
    const unsigned int sum = (i % 8 == 0 || length % 8 != 0 ? 0 : carry) + target[i] + source[i];
    carry = sum >> 8;
    target[i] = static_cast<unsigned char>((sums ? sum : (target[i] & ~mask) | (source[i] & mask)) & 0xff);
  }
}

/// Takes the events of one operation: SEND, but not of a get, and its end, in any order (3.13.2: "there is no
/// guaranteed ordering between PTL_EVENT_SEND and PTL_EVENT_ACK"). Checks the fields that table 3-3 defines.
void expect_events(ptl_handle_eq_t eq, Operation operation, const Message& message, ptl_size_t mlength) {
  std::set<ptl_event_kind_t> kinds;
  for (int i = 0; i < (operation == Operation::get ? 1 : 2); ++i) {
    const ptl_event_t event = next_event(eq);
    const bool send = event.type == PTL_EVENT_SEND && operation != Operation::get;
    kinds.insert(event.type);
    EXPECT_TRUE((send || event.type == end_of(operation)) && event.ni_fail_type == PTL_NI_OK) << describe(event);
    EXPECT_EQ(event.user_ptr, message.user_ptr);
    EXPECT_EQ(event.mlength, send ? message.length : mlength) << describe(event);
    EXPECT_TRUE(send || event.ptl_list == PTL_PRIORITY_LIST) << describe(event);
    EXPECT_TRUE(send || mlength == 0 || event.remote_offset == message.remote_offset) << describe(event);
  }
  EXPECT_EQ(kinds.size(), operation == Operation::get ? 1u : 2u);
  expect_empty(eq);
}

struct Place {
  ptl_size_t offset, length;
};

struct Shape {
  unsigned int ni_options = kNonMatching;
  unsigned int le_options = kSilent;
  std::size_t piece_bytes = kLocal;     ///< Of an initiator's region, which PTL_IOVEC makes of pieces.
  ptl_size_t entry_bytes = 8 * kWords;  ///< The memory is of 8 * kWords bytes and begins with the entry.
  std::vector<Place> places = {{65, 1}, {66, 1},      {80, 8},      {88, 8},      {75, 7},
                               {8, 64}, {1024, 4096}, {4097, 4095}, {40, 100000}, {33, 99999}};
};

/// A region as its pieces lie in memory, with zeros between them.
Bytes spread(const Bytes& region, std::size_t piece_bytes) {
  Bytes all(2 * kLocal);
  for (std::size_t i = 0; i < kLocal; ++i) all[i / piece_bytes * 2 * piece_bytes + i % piece_bytes] = region[i];
  return all;
}

/// Does every operation at every place, and compares all memory of both sides with a model each time. The processor of
/// the target writes all of the memory anew before each.
void check_every_operation(Process& self, const Shape& shape) {
  const Ni ni(self, shape.ni_options);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  Memory memory(kWords);
  Bytes out(2 * kLocal), in(2 * kLocal);
  std::vector<ptl_iovec_t> pieces[2];
  const auto bind = [&](Bytes& bytes, std::vector<ptl_iovec_t>& list) {
    for (std::size_t at = 0; at < kLocal; at += shape.piece_bytes)
      list.push_back({&bytes[2 * at], std::min(shape.piece_bytes, kLocal - at)});
    if (list.size() == 1) return bind_md(ni, md_of(bytes.data(), kLocal, eq));
    return bind_md(ni, md_of(list.data(), list.size(), eq, PTL_CT_NONE, PTL_IOVEC));
  };
  const ptl_handle_md_t out_md = bind(out, pieces[0]), in_md = bind(in, pieces[1]);
  unsigned int seed = 0;
  self.target([&] { append(ni, le_of(memory.data(), shape.entry_bytes, shape.le_options)); });
  self.initiator([&] { warm_up(ends, ni.target()); });
  for (const Place& place : shape.places)
    for (const Operation operation : kAll) {
      if (!legal(ni, operation, place.length)) continue;
      const Message message{
          .length = place.length, .local_offset = 5, .remote_offset = place.offset, .user_ptr = tag(++seed)};
      const ptl_size_t room = place.offset < shape.entry_bytes ? shape.entry_bytes - place.offset : 0;
      const ptl_size_t mlength = std::min(place.length, room), at = room > 0 ? place.offset : 0;
      const Bytes data = pattern(kLocal, seed);
      Bytes model = pattern(8 * kWords, seed + 100);
      const unsigned char* operand = seed % 2 == 0 ? &data[50] : &model[at];  // PTL_CSWAP swaps only with the latter.
      SCOPED_TRACE("operation " + std::to_string(static_cast<int>(operation)) + ", " + std::to_string(place.length) +
                   " bytes at " + std::to_string(place.offset));
      self.target([&] { std::memcpy(memory.data(), model.data(), model.size()); });
      self.initiator([&] {
        Bytes fetched(kLocal);
        std::ranges::copy(spread(data, shape.piece_bytes), out.begin());
        std::ranges::fill(in, 0);
        start(operation, {out_md, in_md, 11, operand}, ni.target(), message);
        expect_events(eq, operation, message, mlength);
        if (fetches(operation)) std::copy_n(&model[at], mlength, &fetched[11]);
        EXPECT_TRUE(in == spread(fetched, shape.piece_bytes)) << "fetched";
        EXPECT_TRUE(out == spread(data, shape.piece_bytes)) << "sent";
      });
      carry_out(operation, &model[at], &data[5], operand, mlength);
      self.target([&] {
        EXPECT_TRUE(bytes_of(memory) == model);
        expect_empty(ends.target_eq);
      });
    }
}

/// What a descriptor is to report of one operation.
struct Report {
  Operation operation;
  ptl_ack_req_t ack;
  unsigned int quiet;    ///< 0 or the option that holds back events.
  unsigned int counted;  ///< PTL_MD_EVENT_CT_*.
};

/// Starts the operation with 24 bytes where the entry has room for 16, and checks its events and counts.
void check_report(const Ni& ni, const Ends& ends, ptl_handle_eq_t eq, const Report& report, void* user_ptr) {
  const bool of_send = (report.counted & PTL_MD_EVENT_CT_SEND) != 0, sends = report.operation != Operation::get;
  const bool answered = fetches(report.operation) || report.ack != PTL_NO_ACK_REQ;
  const bool loud = report.quiet != PTL_MD_EVENT_SUCCESS_DISABLE;
  // 3.13.4: in SEND mlength "may be larger than the number of bytes delivered".
  const ptl_size_t each = (report.counted & PTL_MD_EVENT_CT_BYTES) == 0 ? 1 : of_send ? 24 : 16;
  const ptl_size_t count = (of_send ? sends : answered) ? each : 0;
  const std::ptrdiff_t send_events = report.quiet == 0 && sends ? 1 : 0;
  // 3.15.1: of other acknowledgments than PTL_ACK_REQ "Full events may or may not be generated".
  const std::ptrdiff_t sure_ends = loud && (fetches(report.operation) || report.ack == PTL_ACK_REQ) ? 1 : 0;
  std::multiset<ptl_event_kind_t> kinds;
  const auto seen = [&](ptl_event_kind_t kind) { return static_cast<std::ptrdiff_t>(kinds.count(kind)); };
  const auto note = [&](const ptl_event_t& event) {
    if (event.user_ptr == user_ptr) kinds.insert(event.type);  // Else it is one that may come or not, of another.
  };
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 2048, eq, ct, report.quiet | report.counted));
  start(report.operation, {md, md}, ni.target(),
        {.length = 24, .remote_offset = 8 * kWords - 16, .user_ptr = user_ptr, .ack = report.ack});
  while (seen(PTL_EVENT_SEND) < send_events || seen(end_of(report.operation)) < sure_ends) note(next_event(eq));
  wait_for_count(ct, count);
  put_and_wait(ends, ni.target(), {.length = 0});  // Something that comes later.
  std::ranges::for_each(drain(eq), note);
  EXPECT_EQ(seen(PTL_EVENT_SEND), send_events);
  EXPECT_LE(seen(end_of(report.operation)), loud && answered ? 1 : 0);
  EXPECT_EQ(count_of(ct).success, count);
  EXPECT_EQ(count_of(ct).failure, 0u);
}

}  // namespace
