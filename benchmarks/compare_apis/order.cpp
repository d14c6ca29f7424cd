// Order between operations, and the flags that change it.

#include <algorithm>

#include "world.h"

namespace compare {
namespace {

// ---- Order of notices ----------------------------------------------------------------------------------------------

constexpr std::uint64_t kPuts = 100;

/// Whether the numbers begin with 0 and go up by 1.
std::string in_order(const std::vector<std::uint64_t>& numbers) {
  std::uint64_t right = 0;
  for (std::uint64_t i = 0; i < numbers.size(); ++i) right += numbers[i] == i;
  return right == kPuts ? "all of them" : "not all";
}

/// @param md_options  of the MD that the puts are sent from
Facts notices_of_portals(World& w, unsigned int md_options) {
  std::vector<std::uint64_t> numbers;
  if (w.rank() == 1) {
    while (numbers.size() < kPuts) numbers.push_back(PortalsSide::next(w.portals.target_eq).hdr_data);
    return {{"told to the target in the order of the calls", in_order(numbers)}};
  }
  const ptl_handle_md_t md = w.portals.bind(md_options | PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, w.portals.id(1), kPt, 0, kLanding, reinterpret_cast<void*>(i), i));
  }
  while (numbers.size() < kPuts) {
    numbers.push_back(reinterpret_cast<std::uint64_t>(PortalsSide::next(w.portals.source_eq).user_ptr));
  }
  return {{"told to the initiator in the order of the calls", in_order(numbers)}};
}

Facts notices_portals(World& w) { return notices_of_portals(w, 0); }
Facts unordered_notices_portals(World& w) { return notices_of_portals(w, PTL_MD_UNORDERED); }

Facts notices_utofu(World& w) {
  std::vector<std::uint64_t> numbers;
  if (w.rank() == 0) {
    for (std::uint64_t i = 0; i < kPuts; ++i) {
      MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), w.tofu.at(1, kLanding), 8, i,
                          kTellLocal | kTellRemote, nullptr));
    }
  }
  while (numbers.size() < kPuts) numbers.push_back(w.tofu.next_mrq().fields.edata);
  return {{w.rank() == 1 ? "told to the target in the order of the calls"
                         : "told to the initiator in the order of the calls",
           in_order(numbers)}};
}

// ---- A flag behind a block -----------------------------------------------------------------------------------------

constexpr std::size_t kBlockWords = 4096;
constexpr std::size_t kFlag = kLanding + kMemoryBytes / 4;

/// Rank 0 puts a block and then a flag, and waits for neither; rank 1 reads the flag with its CPU and then the block.
/// @param put  (offset of the source, offset at the target, bytes)
template <class Put>
Facts flag_behind_block(World& w, const char* what, Put&& put) {
  const std::uint64_t rounds = w.self.quick() ? 20 : 200;
  std::uint64_t complete = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (w.rank() == 0) {
      auto* words = reinterpret_cast<std::uint64_t*>(w.self.memory(0));
      std::fill(words, words + kBlockWords + 1, round);
      put(0, kLanding, 8 * kBlockWords);
      put(8 * kBlockWords, kFlag, 8);
    } else {
      await([&] { return w.look(1, kFlag) == round; }, "the flag");
      const auto* words = reinterpret_cast<const std::uint64_t*>(w.self.memory(1) + kLanding);
      complete += std::all_of(words, words + kBlockWords, [&](std::uint64_t word) { return word == round; });
    }
    w.self.meet();
  }
  if (w.rank() == 0) return {};
  return {{what, complete == rounds ? "every time" : of(complete, rounds)}};
}

Facts flag_with_md(World& w, const char* what, unsigned int options) {
  const ptl_handle_md_t md = w.portals.bind(options);
  return flag_behind_block(w, what, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    MUST_PTL(PtlPut(md, from, bytes, PTL_NO_ACK_REQ, w.portals.id(1), kPt, 0, to, nullptr, 0));
  });
}

Facts flag_with_tofu_flags(World& w, const char* what, unsigned long flags) {
  return flag_behind_block(w, what, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    void* cbdata = nullptr;
    utofu_poll_tcq(w.tofu.vcq, 0, &cbdata);  // Makes room.
    MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, from), w.tofu.at(1, to), bytes, 0, flags, nullptr));
  });
}

constexpr const char* kAsked = "block complete when the flag is seen, order asked for";
constexpr const char* kPromise = "promise of the target's interface";
constexpr const char* kNotAsked = "the same, order not asked for";

Facts flag_portals(World& w) {
  Facts facts = flag_with_md(w, kAsked, 0);
  const Facts more = flag_with_md(w, kNotAsked, PTL_MD_UNORDERED);
  facts.insert(facts.end(), more.begin(), more.end());
  const bool total = (w.portals.limits.features & PTL_TOTAL_DATA_ORDERING) != 0;
  const bool covers = w.portals.limits.max_waw_ordered_size >= 8 * kBlockWords;
  if (w.rank() == 1) facts.push_back({kPromise, total && covers ? "PTL_TOTAL_DATA_ORDERING, for this length" : "none"});
  return facts;
}

Facts flag_utofu(World& w) {
  Facts facts = flag_with_tofu_flags(w, kAsked, kStrong);
  const Facts more = flag_with_tofu_flags(w, kNotAsked, 0);
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

// ---- A get behind a put --------------------------------------------------------------------------------------------

/// Rank 0 puts a number and gets the word at once, without waiting in between.
/// @param put_then_get  starts both and returns when the get is complete
template <class PutThenGet>
Facts get_behind_put(World& w, PutThenGet&& put_then_get) {
  if (w.rank() == 1) {
    w.self.meet();
    return {};
  }
  const std::uint64_t rounds = 100;
  std::uint64_t fresh = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    w.write(0, round);
    put_then_get();
    fresh += w.look(0, 8) == round;
  }
  w.self.meet();
  return {{"the get sees the put", of(fresh, rounds)}};
}

Facts get_behind_put_portals(World& w) {
  return get_behind_put(w, [&] {
    MUST_PTL(PtlPut(w.portals.silent_md, 0, 8, PTL_NO_ACK_REQ, w.portals.id(1), kPt, 0, kLanding, nullptr, 0));
    MUST_PTL(PtlGet(w.portals.md, 8, 8, w.portals.id(1), kPt, 0, kLanding, nullptr));
    PortalsSide::next(w.portals.source_eq);
  });
}

Facts get_behind_put_utofu(World& w) {
  return get_behind_put(w, [&] {
    const auto there = w.tofu.at(1, kLanding);
    MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), there, 8, 0, 0, nullptr));
    MUST_TOFU(utofu_get(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 8), there, 8, 0, kTellLocal | kStrong, nullptr));
    w.tofu.next_mrq();
  });
}

}  // namespace

Theme order_theme() {
  const std::string at_target = "told to the target in the order of the calls";
  const std::string at_initiator = "told to the initiator in the order of the calls";
  return {"Order",
          {{"Order of notices",
            "Rank 0 puts 100 times to rank 1; every put carries its number and is told on both sides.",
            notices_portals,
            notices_utofu,
            {{at_target, "all of them", "all of them"}, {at_initiator, nullptr, "all of them"}},
            "Both APIs promise the order at the target; at the initiator uTofu promises it for each remote VCQ and "
            "path, while ACKs may come in any order and have to be told apart by user_ptr."},
           {"Order of notices on a network that reorders",
            "The same with PTL_MD_UNORDERED, while PORTOFU_SHUFFLE delays packets and takes them in any order that was "
            "not promised.",
            unordered_notices_portals,
            notices_utofu,
            {{at_target, "not all", "all of them"}, {at_initiator, "not all", "all of them"}},
            "PTL_MD_UNORDERED gives up the order of matching and telling, which uTofu has no way to give up: its "
            "notices of one VCQ and path stay in order.",
            /*processes=*/2,
            /*setting=*/"PORTOFU_SHUFFLE=1"},
           {"A flag behind a block",
            "Rank 0 puts 32 KiB and then a flag of 8 bytes beside them; rank 1 reads the flag with its CPU, then the "
            "block.",
            flag_portals,
            flag_utofu,
            {{kAsked, "every time", "every time"}, {kPromise, "PTL_TOTAL_DATA_ORDERING, for this length", nullptr}},
            "The defaults are opposite: Portals keeps total order up to max_waw_ordered_size where it offers "
            "PTL_TOTAL_DATA_ORDERING, unless the MD says PTL_MD_UNORDERED, and uTofu promises nothing unless the call "
            "says UTOFU_ONESIDED_FLAG_STRONG_ORDER, whatever this engine does without it."},
           {"A get behind a put",
            "Rank 0 puts a number to rank 1 and gets the same word without waiting in between.",
            get_behind_put_portals,
            get_behind_put_utofu,
            {{"the get sees the put", "100 of 100", "100 of 100"}},
            "A get that must see the put before it needs nothing in Portals up to max_waw_ordered_size, and in uTofu "
            "UTOFU_ONESIDED_FLAG_STRONG_ORDER on the get (used here)."}}};
}

}  // namespace compare
