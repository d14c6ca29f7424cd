// Relays that need no call, and waits by one API for what the other has done.

#include <chrono>

#include "world.h"

namespace compare {
namespace {

// ---- A relay -------------------------------------------------------------------------------------------------------

// Rank 1 arms one put to rank 2 and then computes; rank 0 puts to rank 1. Rank 2 raises the flag when it has been told.
constexpr auto kComputing = std::chrono::seconds(5);
constexpr const char* kRelayed = "relayed while the relay computes";
constexpr const char* kFresh = "what arrives is what the relay has just got";
constexpr const char* kSecond = "a second message, nothing armed";
constexpr const char* kLate = "armed only then";

/// Rank 1, armed: computes without any call. @return whether rank 2 was told meanwhile
std::string relayed_without_a_call(World& w) {
  return yes_or_no(compute_until([&] { return w.self.stage().flag == 1; }, kComputing));
}

Facts relay_portals(World& w) {
  if (w.rank() == 0) {
    const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
    const auto put = [&](std::uint64_t value) {
      w.self.meet();
      w.write(0, value);
      MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, w.portals.id(1), kOtherPt, 0, kLanding, nullptr, 0));
      PortalsSide::next(w.portals.source_eq);
    };
    put(11);
    put(12);
    for (int i = 0; i < 3; ++i) w.self.meet();
    return {};
  }
  if (w.rank() == 1) {
    const ptl_handle_ct_t ct = w.portals.alloc_ct();
    w.portals.open_pt(kOtherPt, PTL_EQ_NONE);
    w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(1), kMemoryBytes, 0, ct));
    const auto arm = [&](ptl_size_t threshold) {
      MUST_PTL(PtlTriggeredPut(w.portals.silent_md, kLanding, 8, PTL_NO_ACK_REQ, w.portals.id(2), kPt, 0, kLanding,
                               nullptr, 0, ct, threshold));
    };
    arm(1);
    w.self.meet();
    const std::string relayed = relayed_without_a_call(w);
    w.self.meet();
    PortalsSide::wait(ct, 2);
    w.self.meet();
    w.self.meet();
    arm(2);
    w.self.meet();
    return {{kRelayed, relayed}};
  }
  w.self.meet();
  const ptl_event_t event = PortalsSide::next(w.portals.target_eq);
  const std::string fresh = yes_or_no(w.look(2, kLanding) == 11);
  const bool from_relay = event.initiator.phys.pid == w.portals.id(1).phys.pid;
  w.self.stage().flag = 1;
  w.self.meet();
  w.self.meet();
  const std::string second = PortalsSide::told(w.portals.target_eq);
  w.self.meet();
  const std::string late = text(PortalsSide::next(w.portals.target_eq));
  w.self.meet();
  return {{kFresh, fresh},
          {"sender in the notice", from_relay ? "the relay" : "another"},
          {kSecond, second},
          {kLate, late}};
}

Facts relay_utofu(World& w) {
  TofuSide relay(w.self, w.rank() == 1 ? UTOFU_VCQ_FLAG_SESSION_MODE : 0);
  if (w.rank() == 0) {
    const auto put = [&](std::uint64_t value) {
      w.self.meet();
      w.write(0, value);
      MUST_TOFU(utofu_put(relay.vcq, relay.id(1), relay.at(0, 0), relay.at(1, kLanding), 8, 0,
                          UTOFU_ONESIDED_FLAG_SPS(1) | kTellLocal, nullptr));
      relay.next_mrq();
    };
    put(21);
    put(22);
    for (int i = 0; i < 3; ++i) w.self.meet();
    return {};
  }
  if (w.rank() == 1) {
    const auto arm = [&] {
      MUST_TOFU(
          utofu_put(relay.vcq, relay.id(2), relay.at(1, kLanding), relay.at(2, kLanding), 8, 0, kTellRemote, nullptr));
    };
    arm();
    w.self.meet();
    const std::string relayed = relayed_without_a_call(w);
    w.self.meet();
    await([&] { return w.look(1, kLanding) == 22; }, "the second message");
    w.self.meet();
    w.self.meet();
    arm();
    w.self.meet();
    return {{kRelayed, relayed}};
  }
  w.self.meet();
  const Notice notice = relay.next_mrq();
  const std::string fresh = yes_or_no(w.look(2, kLanding) == 21);
  w.self.stage().flag = 1;
  w.self.meet();
  w.self.meet();
  const std::string second = relay.told();
  w.self.meet();
  const std::string late = text(relay.next_mrq());
  w.self.meet();
  return {{kFresh, fresh},
          {"sender in the notice", notice.fields.vcq_id == relay.id(1) ? "the relay" : "another"},
          {kSecond, second},
          {kLate, late}};
}

// ---- Waiting by one API for what the other did ---------------------------------------------------------------------

constexpr std::uint64_t kRounds = 100;

/// Rank 0 writes to rank 1 by one API and tells it by the other; rank 1 waits, then looks at the data.
/// @param write_and_tell  (round), returns when both are under way in the order that is meant
/// @param wait            (round), returns when rank 1 was told
template <class WriteAndTell, class Wait>
std::string mixed(World& w, WriteAndTell&& write_and_tell, Wait&& wait) {
  std::uint64_t there = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    if (w.rank() == 0) {
      w.write(0, round);
      write_and_tell();
    } else {
      wait(round);
      there += w.look(1, kLanding) == round;
    }
    w.self.meet();
  }
  return of(there, kRounds);
}

Facts mixed_waits(World& w) {
  const ptl_handle_ct_t ct = w.portals.alloc_ct();
  w.portals.open_pt(kOtherPt, PTL_EQ_NONE);
  w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(w.rank()), kMemoryBytes, 0, ct));
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  w.self.meet();
  const auto here = w.tofu.at(0, 0), there = w.tofu.at(1, kLanding);
  const std::string by_portals = mixed(
      w,
      [&] {
        MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), here, there, 8, 0, kTellLocal, nullptr));
        w.tofu.next_mrq();
        MUST_PTL(PtlPut(w.portals.silent_md, 0, 0, PTL_NO_ACK_REQ, w.portals.id(1), kOtherPt, 0, 0, nullptr, 0));
      },
      [&](std::uint64_t round) { PortalsSide::wait(ct, round); });
  const std::string by_utofu = mixed(
      w,
      [&] {
        MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, w.portals.id(1), kPt, 0, kLanding, nullptr, 0));
        PortalsSide::next(w.portals.source_eq);
        MUST_TOFU(utofu_put_piggyback8(w.tofu.vcq, w.tofu.id(1), 0, there + 64, 8, 0, kTellRemote, nullptr));
      },
      [&](std::uint64_t) { w.tofu.next_mrq(); });
  if (w.rank() == 0) return {};
  return {{"data of utofu_put there when PtlCTPoll returns", by_portals},
          {"data of PtlPut there when utofu_poll_mrq gives the notice", by_utofu}};
}

}  // namespace

Theme relay_theme() {
  return {
      "Relays, and both APIs together",
      {{"A relay that needs no call",
        "Rank 1 arms one put to rank 2 (PtlTriggeredPut on a counter; a put on a session mode VCQ) and then computes; "
        "rank 0 puts 8 bytes to rank 1, twice.",
        relay_portals,
        relay_utofu,
        {{kRelayed, "yes", "yes"},
         {kFresh, "yes", "yes"},
         {"sender in the notice", "the relay", "the relay"},
         {kSecond, "nothing", "nothing"},
         {kLate, "PTL_EVENT_PUT", "UTOFU_MRQ_TYPE_RMT_PUT"}},
        "In Portals the relay chooses counter and threshold, in session mode the sender says by its SPS how many "
        "waiting descriptors start, in their order; both start once, and at once if they are armed too late.",
        /*processes=*/3},
       {"Waiting by one API for what the other did",
        "Rank 0 writes to rank 1 by one API, waits until that is visible, and tells rank 1 by the other.",
        mixed_waits,
        nullptr,
        {{"data of utofu_put there when PtlCTPoll returns", "100 of 100", nullptr},
         {"data of PtlPut there when utofu_poll_mrq gives the notice", "100 of 100", nullptr}},
        "Counters count no puts of uTofu, and an MRQ hears of none of Portals, so what one API wrote has to be told by "
        "a message of the other, sent after the local MRQ notice or the ACK."}}};
}

}  // namespace compare
