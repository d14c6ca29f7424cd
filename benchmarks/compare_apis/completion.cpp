// What completes when, and who is told.

#include <bit>
#include <chrono>

#include "world.h"

namespace compare {
namespace {

// ---- A put that tells everything -----------------------------------------------------------------------------------

Facts told_put_portals(World& w) {
  if (w.rank() == 1) {
    const ptl_event_t event = PortalsSide::next(w.portals.target_eq);
    return {{"told to the target", text(event)},
            {"data is there by then", yes_or_no(w.look(1, kLanding) == 11)},
            {"bits that travel with it", std::to_string(std::popcount(event.hdr_data))},
            {"the target learns where", yes_or_no(event.start == w.self.memory(1) + kLanding)},
            {"the target learns how much", yes_or_no(event.mlength == 8)}};
  }
  w.write(0, 11);
  MUST_PTL(PtlPut(w.portals.md, 0, 8, PTL_ACK_REQ, w.portals.id(1), kPt, 0, kLanding, nullptr, ~ptl_hdr_data_t{0}));
  const ptl_event_t first = PortalsSide::next(w.portals.source_eq), second = PortalsSide::next(w.portals.source_eq);
  const bool there = w.look(1, kLanding) == 11;
  return {{"source may be reused", text(first)},
          {"data is at the target", text(second)},
          {"checked in its memory", yes_or_no(there)},
          {"the initiator learns how much", yes_or_no(second.mlength == 8)}};
}

Facts told_put_utofu(World& w) {
  if (w.rank() == 1) {
    const Notice notice = w.tofu.next_mrq();
    const std::size_t bits = std::popcount(notice.fields.edata);
    const bool end = notice.fields.rmt_stadd == w.tofu.at(1, kLanding + 8);
    return {{"told to the target", text(notice)},
            {"data is there by then", yes_or_no(w.look(1, kLanding) == 22)},
            {"bits that travel with it", std::to_string(bits)},
            {"the target learns where", end ? "the end only" : "no"},
            {"the target learns how much", yes_or_no(notice.fields.lcl_stadd != 0)}};
  }
  w.write(0, 22);
  utofu_onesided_caps* caps = nullptr;
  MUST_TOFU(utofu_query_onesided_caps(0, &caps));
  const std::uint64_t edata = (std::uint64_t{1} << 8 * caps->max_edata_size) - 1;
  MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), w.tofu.at(1, kLanding), 8, edata, kTellAll, nullptr));
  const int tcq = w.tofu.next_tcq();
  const Notice notice = w.tofu.next_mrq();
  const bool there = w.look(1, kLanding) == 22;
  const bool end = notice.fields.rmt_stadd == w.tofu.at(1, kLanding + 8);
  return {{"source may be reused", "TCQ: " + text_of_tofu(tcq)},
          {"data is at the target", "MRQ: " + text(notice)},
          {"checked in its memory", yes_or_no(there)},
          {"the initiator learns how much", end ? "the end only" : "no"}};
}

// ---- A put that tells nothing --------------------------------------------------------------------------------------

Facts silent_put_portals(World& w) {
  if (w.rank() == 1) {
    w.portals.open_pt(kOtherPt, PTL_EQ_NONE);
    const ptl_handle_ct_t ct = w.portals.alloc_ct();
    w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(1), kMemoryBytes, 0, ct));
    w.self.meet();
    await([&] { return w.look(1, kLanding) == 11; }, "the word");
    w.self.meet();
    return {{"seen by reading memory", yes_or_no(w.look(1, kLanding) == 11)},
            {"told to the target", PortalsSide::told(w.portals.target_eq)},
            {"counted at the target", std::to_string(PortalsSide::wait(ct, 1).success)}};
  }
  w.self.meet();
  w.write(0, 11);
  MUST_PTL(PtlPut(w.portals.silent_md, 0, 8, PTL_NO_ACK_REQ, w.portals.id(1), kOtherPt, 0, kLanding, nullptr, 0));
  w.self.meet();
  return {{"told to the initiator", PortalsSide::told(w.portals.source_eq)}};
}

Facts silent_put_utofu(World& w) {
  w.self.meet();
  if (w.rank() == 1) {
    await([&] { return w.look(1, kLanding) == 22; }, "the word");
    w.self.meet();
    return {{"seen by reading memory", yes_or_no(w.look(1, kLanding) == 22)}, {"told to the target", w.tofu.told()}};
  }
  w.write(0, 22);
  MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), w.tofu.at(1, kLanding), 8, 0, 0, nullptr));
  w.self.meet();
  return {{"told to the initiator", w.tofu.told()}};
}

// ---- A get ---------------------------------------------------------------------------------------------------------

Facts get_portals(World& w) {
  if (w.rank() == 1) {
    w.write(kLanding, 11);
    w.self.meet();
    return {{"told to the owner of the data", text(PortalsSide::next(w.portals.target_eq))}};
  }
  w.self.meet();
  MUST_PTL(PtlGet(w.portals.md, 0, 8, w.portals.id(1), kPt, 0, kLanding, nullptr));
  const ptl_event_t event = PortalsSide::next(w.portals.source_eq);
  const bool there = w.look(0, 0) == 11;
  return {{"data has come", text(event)},
          {"checked in memory", yes_or_no(there)},
          {"and besides", PortalsSide::told(w.portals.source_eq)}};
}

Facts get_utofu(World& w) {
  if (w.rank() == 1) {
    w.write(kLanding, 22);
    w.self.meet();
    return {{"told to the owner of the data", text(w.tofu.next_mrq())}};
  }
  w.self.meet();
  MUST_TOFU(utofu_get(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), w.tofu.at(1, kLanding), 8, 0, kTellAll, nullptr));
  const int tcq = w.tofu.next_tcq();
  const Notice notice = w.tofu.next_mrq();
  const bool there = w.look(0, 0) == 22;
  return {{"data has come", "MRQ: " + text(notice)},
          {"checked in memory", yes_or_no(there)},
          {"and besides", "TCQ: " + text_of_tofu(tcq) + " (it has started)"}};
}

// ---- Reuse of the source at once -----------------------------------------------------------------------------------

constexpr std::uint64_t kReuses = 100;

/// Puts the numbers 1, 2, ... from one word that is overwritten as soon as each call returns.
/// @return the other side's: how many arrived as they were when the call was made
template <class Put>
Facts reuse(World& w, const std::string& limit, Put&& put) {
  if (w.rank() == 0) {
    for (std::uint64_t i = 0; i < kReuses; ++i) {
      w.write(0, i + 1);
      put(kLanding + 8 * i);
      w.write(0, ~std::uint64_t{0});
    }
    w.self.meet();
    return {{"most bytes", limit}};
  }
  const auto arrived = [&](std::uint64_t i) { return w.look(1, kLanding + 8 * i); };
  await([&] { return arrived(kReuses - 1) != 0; }, "the last word");
  std::uint64_t right = 0;
  for (std::uint64_t i = 0; i < kReuses; ++i) right += arrived(i) == i + 1;
  w.self.meet();
  return {{"sent as it was at the call", of(right, kReuses)}};
}

Facts reuse_portals(World& w) {
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_VOLATILE);
  return reuse(w, std::to_string(w.portals.limits.max_volatile_size), [&](std::size_t offset) {
    MUST_PTL(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, w.portals.id(1), kPt, 0, offset, nullptr, 0));
  });
}

Facts reuse_utofu(World& w) {
  utofu_onesided_caps* caps = nullptr;
  MUST_TOFU(utofu_query_onesided_caps(0, &caps));
  return reuse(w, std::to_string(caps->max_piggyback_size), [&](std::size_t offset) {
    MUST_TOFU(utofu_put_piggyback(w.tofu.vcq, w.tofu.id(1), w.self.memory(0), w.tofu.at(1, offset), 8, 0, 0, nullptr));
  });
}

// ---- A target that computes ----------------------------------------------------------------------------------------

/// Rank 1 computes without any call until rank 0 has had a put, an atomic and a get served.
/// @param serve  does the three and returns when all are complete
template <class Serve>
Facts progress(World& w, Serve&& serve) {
  std::atomic<std::uint64_t>& done = w.self.stage().flag;
  w.self.meet();
  if (w.rank() == 1) {
    const bool served = compute_until([&] { return done == 1; }, std::chrono::seconds(5));
    w.self.meet();
    return {{"put, atomic and get complete while the target computes", yes_or_no(served)}};
  }
  serve();
  done = 1;
  w.self.meet();
  return {};
}

Facts progress_portals(World& w) {
  return progress(w, [&] {
    MUST_PTL(PtlPut(w.portals.md, 0, 8, PTL_NO_ACK_REQ, w.portals.id(1), kPt, 0, kLanding, nullptr, 0));
    MUST_PTL(PtlFetchAtomic(w.portals.md, 8, w.portals.md, 0, 8, w.portals.id(1), kPt, 0, kLanding, nullptr, 0, PTL_SUM,
                            PTL_UINT64_T));
    MUST_PTL(PtlGet(w.portals.md, 16, 8, w.portals.id(1), kPt, 0, kLanding, nullptr));
    for (int replies = 0; replies < 2;) replies += PortalsSide::next(w.portals.source_eq).type == PTL_EVENT_REPLY;
  });
}

Facts progress_utofu(World& w) {
  return progress(w, [&] {
    const auto here = w.tofu.at(0, 0), there = w.tofu.at(1, kLanding);
    MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), here, there, 8, 0, 0, nullptr));
    MUST_TOFU(utofu_armw8(w.tofu.vcq, w.tofu.id(1), UTOFU_ARMW_OP_ADD, 1, there, 0, kTellLocal, nullptr));
    MUST_TOFU(utofu_get(w.tofu.vcq, w.tofu.id(1), here, there, 8, 0, kTellLocal, nullptr));
    for (int notices = 0; notices < 2; ++notices) w.tofu.next_mrq();
  });
}

}  // namespace

Theme completion_theme() {
  return {
      "What completes when, and who is told",
      {{"A put that tells everything",
        "Rank 0 puts 8 bytes to rank 1 and asks for every notice that the API has.",
        told_put_portals,
        told_put_utofu,
        {{"source may be reused", "PTL_EVENT_SEND", "TCQ: UTOFU_SUCCESS"},
         {"data is at the target", "PTL_EVENT_ACK", "MRQ: UTOFU_MRQ_TYPE_LCL_PUT"},
         {"told to the target", "PTL_EVENT_PUT", "UTOFU_MRQ_TYPE_RMT_PUT"},
         {"data is there by then", "yes", "yes"},
         {"checked in its memory", "yes", "yes"},
         {"bits that travel with it", "64", "8"},
         {"the target learns how much", "yes", "no"}},
        "SEND, ACK and PUT are TCQ, local MRQ and remote MRQ notice; but an event also says where and how much, which "
        "uTofu leaves to agreement, to one byte of EDATA and to the end address."},
       {"A put that tells nothing",
        "The same put, and nobody asks for anything; rank 1 reads the word with its CPU.",
        silent_put_portals,
        silent_put_utofu,
        {{"seen by reading memory", "yes", "yes"},
         {"told to the target", "nothing", "nothing"},
         {"counted at the target", "1", "—"},
         {"told to the initiator", "nothing", "nothing"}},
        "In Portals the target decides by its entry what it is told, and may have arrivals only counted; in uTofu the "
        "initiator decides for both by the flags of each call, and a target that should count must be sent notices."},
       {"A get",
        "Rank 0 gets 8 bytes from rank 1 and asks for every notice.",
        get_portals,
        get_utofu,
        {{"data has come", "PTL_EVENT_REPLY", "MRQ: UTOFU_MRQ_TYPE_LCL_GET"},
         {"checked in memory", "yes", "yes"},
         {"told to the owner of the data", "PTL_EVENT_GET", "UTOFU_MRQ_TYPE_RMT_GET"},
         {"and besides", "nothing", "TCQ: UTOFU_SUCCESS (it has started)"}},
        "The TCQ notice of a get has no counterpart and says nothing about data: wait for the local MRQ notice where "
        "you waited for REPLY."},
       {"Reuse of the source at once",
        "Rank 0 puts one word 100 times and overwrites it as soon as each call has returned; PTL_MD_VOLATILE against "
        "utofu_put_piggyback.",
        reuse_portals,
        reuse_utofu,
        {{"sent as it was at the call", "100 of 100", "100 of 100"}},
        "Piggyback is a volatile MD for a few bytes, and needs no registered source; longer data has to be copied by "
        "the program or to wait for the TCQ."},
       {"Progress while the target computes",
        "Rank 1 computes and calls nothing; rank 0 puts, adds atomically and gets, and waits for the answers.",
        progress_portals,
        progress_utofu,
        {{"put, atomic and get complete while the target computes", "yes", "yes"}},
        "Neither API needs calls at the target: what works without polling in one works so in the other."}}};
}

}  // namespace compare
