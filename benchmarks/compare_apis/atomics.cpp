// Atomic operations: results, widths, and both APIs on one word.

#include <set>

#include "world.h"

namespace compare {
namespace {

// ---- Fetch-and-add -------------------------------------------------------------------------------------------------

Facts fetch_add_portals(World& w) {
  if (w.rank() == 1) {
    w.write(kLanding, 0x5ffffffffu);
    w.self.meet();
    w.self.meet();
    return {{"told to the target", PortalsSide::told(w.portals.target_eq)},
            {"32 bits wrap, the next word stays", yes_or_no(w.look(1, kLanding) == 0x600000001u - 0x100000000u)}};
  }
  w.self.meet();
  w.write(0, 2);
  MUST_PTL(PtlFetchAtomic(w.portals.md, 8, w.portals.md, 0, 4, w.portals.id(1), kPt, 0, kLanding, nullptr, 0, PTL_SUM,
                          PTL_UINT32_T));
  const ptl_event_t first = PortalsSide::next(w.portals.source_eq), second = PortalsSide::next(w.portals.source_eq);
  w.self.meet();
  return {{"told to the initiator", text(first) + ", " + text(second)},
          {"old value", w.look(0, 8) == 0xffffffffu ? "in the memory of the MD" : "elsewhere"}};
}

Facts fetch_add_utofu(World& w) {
  if (w.rank() == 1) {
    w.write(kLanding, 0x5ffffffffu);
    w.self.meet();
    w.self.meet();
    return {{"told to the target", w.tofu.told()},
            {"32 bits wrap, the next word stays", yes_or_no(w.look(1, kLanding) == 0x600000001u - 0x100000000u)}};
  }
  w.self.meet();
  MUST_TOFU(utofu_armw4(w.tofu.vcq, w.tofu.id(1), UTOFU_ARMW_OP_ADD, 2, w.tofu.at(1, kLanding), 0, kTellAll, nullptr));
  const int tcq = w.tofu.next_tcq();
  const Notice notice = w.tofu.next_mrq();
  w.self.meet();
  return {{"told to the initiator", text(notice) + ", TCQ: " + text_of_tofu(tcq)},
          {"old value", notice.fields.rmt_value == 0xffffffffu ? "in the notice" : "elsewhere"}};
}

// ---- Widths, operations, alignment ---------------------------------------------------------------------------------

std::string list(const std::set<std::size_t>& numbers) {
  std::string all;
  for (const std::size_t number : numbers) all += (all.empty() ? "" : ", ") + std::to_string(number);
  return all;
}

struct Datatype {
  ptl_datatype_t name;
  std::size_t bytes;
};
constexpr Datatype kDatatypes[] = {{PTL_INT8_T, 1},       {PTL_UINT8_T, 1},
                                   {PTL_INT16_T, 2},      {PTL_UINT16_T, 2},
                                   {PTL_INT32_T, 4},      {PTL_UINT32_T, 4},
                                   {PTL_INT64_T, 8},      {PTL_UINT64_T, 8},
                                   {PTL_FLOAT, 4},        {PTL_FLOAT_COMPLEX, 8},
                                   {PTL_DOUBLE, 8},       {PTL_DOUBLE_COMPLEX, 16},
                                   {PTL_LONG_DOUBLE, 16}, {PTL_LONG_DOUBLE_COMPLEX, 32}};

/// Fetches `bytes` at `offset` of rank 1. @return whether it came back well
std::string fetch(World& w, ptl_op_t op, Datatype type, std::size_t bytes, std::size_t offset) {
  const int rc = op < PTL_SWAP ? PtlFetchAtomic(w.portals.md, 4096, w.portals.md, 0, bytes, w.portals.id(1), kPt, 0,
                                                offset, nullptr, 0, op, type.name)
                               : PtlSwap(w.portals.md, 4096, w.portals.md, 0, bytes, w.portals.id(1), kPt, 0, offset,
                                         nullptr, 0, w.self.memory(0), op, type.name);
  if (rc != PTL_OK) return "the call: " + text_of_ptl(rc);
  ptl_event_t event{};
  do {
    event = PortalsSide::next(w.portals.source_eq);
  } while (event.type != PTL_EVENT_REPLY);
  return text(event);
}

Facts widths_portals(World& w) {
  if (w.rank() == 1) return {};
  std::set<std::size_t> widths, operations, types;
  for (const Datatype& type : kDatatypes) {
    if (fetch(w, PTL_SUM, type, type.bytes, kLanding) != "PTL_EVENT_REPLY") continue;
    widths.insert(type.bytes);
    types.insert(type.name);
  }
  for (int op = 0; op < PTL_OP_LAST; ++op) {
    const std::string result = fetch(w, static_cast<ptl_op_t>(op), {PTL_UINT64_T, 8}, 8, kLanding);
    if (result == "PTL_EVENT_REPLY") operations.insert(static_cast<std::size_t>(op));
  }
  return {{"bytes of an operand that can be added", list(widths)},
          {"types that can be added", std::to_string(types.size())},
          {"operations on 64 bits", std::to_string(operations.size())},
          {"4 words in one call", fetch(w, PTL_SUM, {PTL_UINT64_T, 8}, 32, kLanding)},
          {"8 bytes at an address that is not a multiple of 8", fetch(w, PTL_SUM, {PTL_UINT64_T, 8}, 8, kLanding + 4)}};
}

Facts widths_utofu(World& w) {
  if (w.rank() == 1) return {};
  const auto there = w.tofu.at(1, kLanding);
  std::set<std::size_t> widths;
  std::uint64_t operations = 0;
  const auto done = [&](int rc) { return rc == UTOFU_SUCCESS && w.tofu.next_mrq().rc == UTOFU_SUCCESS; };
  const auto armw = [&](int op) {
    return utofu_armw8(w.tofu.vcq, w.tofu.id(1), static_cast<utofu_armw_op>(op), 1, there, 0, kTellLocal, nullptr);
  };
  if (done(utofu_armw4(w.tofu.vcq, w.tofu.id(1), UTOFU_ARMW_OP_ADD, 1, there, 0, kTellLocal, nullptr)))
    widths.insert(4);
  if (done(armw(UTOFU_ARMW_OP_ADD))) widths.insert(8);
  for (int op = 0; op < 64; ++op) operations += done(armw(op));
  operations += done(utofu_cswap8(w.tofu.vcq, w.tofu.id(1), 0, 1, there, 0, kTellLocal, nullptr));
  utofu_armw8(w.tofu.vcq, w.tofu.id(1), UTOFU_ARMW_OP_ADD, 1, there + 4, 0, kTellLocal, nullptr);
  const int odd = w.tofu.next_mrq().rc;
  return {{"bytes of an operand that can be added", list(widths)},
          {"types that can be added", std::to_string(widths.size())},
          {"operations on 64 bits", std::to_string(operations)},
          {"8 bytes at an address that is not a multiple of 8", text_of_tofu(odd)}};
}

// ---- Compare and swap ----------------------------------------------------------------------------------------------

Facts swap_portals(World& w) {
  if (w.rank() == 1) {
    w.write(kLanding, 5);
    w.self.meet();
    w.self.meet();
    return {};
  }
  w.self.meet();
  const auto swap = [&](ptl_op_t op, std::uint64_t operand, std::uint64_t value) {
    w.write(0, value);
    MUST_PTL(PtlSwap(w.portals.md, 8, w.portals.silent_md, 0, 8, w.portals.id(1), kPt, 0, kLanding, nullptr, 0,
                     &operand, op, PTL_UINT64_T));
    const ptl_event_t event = PortalsSide::next(w.portals.source_eq);
    return text(event) + ", old value " + std::to_string(w.look(0, 8)) + ", then " +
           std::to_string(w.look(1, kLanding));
  };
  const Facts facts = {{"5 compared with 7, new value 9", swap(PTL_CSWAP, 7, 9)},
                       {"5 compared with 5, new value 9", swap(PTL_CSWAP, 5, 9)},
                       {"swap if 20 is greater", swap(PTL_CSWAP_GT, 20, 1)}};
  w.self.meet();
  return facts;
}

Facts swap_utofu(World& w) {
  if (w.rank() == 1) {
    w.write(kLanding, 5);
    w.self.meet();
    w.self.meet();
    return {};
  }
  w.self.meet();
  const auto swap = [&](std::uint64_t expected, std::uint64_t value) {
    MUST_TOFU(utofu_cswap8(w.tofu.vcq, w.tofu.id(1), expected, value, w.tofu.at(1, kLanding), 0, kTellLocal, nullptr));
    const Notice notice = w.tofu.next_mrq();
    return text(notice) + ", old value " + std::to_string(notice.fields.rmt_value) + ", then " +
           std::to_string(w.look(1, kLanding));
  };
  const Facts facts = {{"5 compared with 7, new value 9", swap(7, 9)}, {"5 compared with 5, new value 9", swap(5, 9)}};
  w.self.meet();
  return facts;
}

// ---- Both APIs on one word -----------------------------------------------------------------------------------------

Facts one_word(World& w) {
  const std::uint64_t rounds = w.self.quick() ? 50 : 400, all = rounds * static_cast<std::uint64_t>(w.self.size());
  Stage& stage = w.self.stage();
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  w.write(kLanding, 1);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    std::uint64_t old = 0;
    if (i % 2 == 0) {
      MUST_PTL(PtlFetchAtomic(md, kLanding + 8, md, kLanding, 8, w.portals.id(0), kPt, 0, 0, nullptr, 0, PTL_SUM,
                              PTL_UINT64_T));
      PortalsSide::next(w.portals.source_eq);
      old = w.look(w.rank(), kLanding + 8);
    } else {
      MUST_TOFU(utofu_armw8(w.tofu.vcq, w.tofu.id(0), UTOFU_ARMW_OP_ADD, 1, w.tofu.at(0, 0), 0, kTellLocal, nullptr));
      old = w.tofu.next_mrq().fields.rmt_value;
    }
    require(old < kMostValues, "a value was fetched that cannot be");
    ++stage.seen[old];
  }
  w.self.meet();
  if (w.rank() != 0) return {};
  std::uint64_t once = 0;
  for (std::uint64_t value = 0; value < all; ++value) once += stage.seen[value] == 1;
  return {{"sum is exact", yes_or_no(w.look(0, 0) == all)}, {"every value was fetched once", yes_or_no(once == all)}};
}

}  // namespace

Theme atomic_theme() {
  return {
      "Atomic operations",
      {{"Fetch-and-add of 32 bits",
        "Rank 0 adds 2 to a 32-bit word of rank 1 that is all ones, and asks for every notice.",
        fetch_add_portals,
        fetch_add_utofu,
        {{"told to the initiator", "PTL_EVENT_SEND, PTL_EVENT_REPLY", "UTOFU_MRQ_TYPE_LCL_ARMW, TCQ: UTOFU_SUCCESS"},
         {"told to the target", "PTL_EVENT_FETCH_ATOMIC", "UTOFU_MRQ_TYPE_RMT_ARMW"},
         {"old value", "in the memory of the MD", "in the notice"},
         {"32 bits wrap, the next word stays", "yes", "yes"}},
        "The old value lies where the get MD says, or in rmt_value of a notice that has to be asked for and read in "
        "time: a uTofu program needs no memory for it, a Portals program no queue."},
       {"Widths, operations, alignment",
        "Rank 0 tries what can be added to, or swapped with, memory of rank 1.",
        widths_portals,
        widths_utofu,
        {{"bytes of an operand that can be added", "1, 2, 4, 8, 16, 32", "4, 8"},
         {"types that can be added", "14", "2"},
         {"operations on 64 bits", "19", "6"},
         {"4 words in one call", "PTL_EVENT_REPLY", nullptr},
         {"8 bytes at an address that is not a multiple of 8", "PTL_EVENT_REPLY with PTL_NI_DROPPED",
          "UTOFU_ERR_MRQ_RMT_STADD"}},
        "From uTofu to Portals everything has a counterpart; the other way narrow, wide, signed and floating types, "
        "minimum and maximum, and several items in a call become loops of utofu_cswap4 and utofu_cswap8, or messages."},
       {"Compare and swap",
        "Rank 0 compares and swaps a word of rank 1 that is 5.",
        swap_portals,
        swap_utofu,
        {{"5 compared with 7, new value 9", "PTL_EVENT_REPLY, old value 5, then 5",
          "UTOFU_MRQ_TYPE_LCL_ARMW, old value 5, then 5"},
         {"5 compared with 5, new value 9", "PTL_EVENT_REPLY, old value 5, then 9",
          "UTOFU_MRQ_TYPE_LCL_ARMW, old value 5, then 9"},
         {"swap if 20 is greater", "PTL_EVENT_REPLY, old value 9, then 1", nullptr}},
        "Both answer with the old value whether or not it was swapped, and neither calls the difference an error; only "
        "Portals compares by order, too."},
       {"One word through both APIs",
        "Eight processes add 1 to one word of rank 0, in turns by PtlFetchAtomic and by utofu_armw8.",
        one_word,
        nullptr,
        {{"sum is exact", "yes", nullptr}, {"every value was fetched once", "yes", nullptr}},
        "A program may be ported piece by piece: operations of both APIs on one word are atomic against each other.",
        /*processes=*/8}}};
}

}  // namespace compare
