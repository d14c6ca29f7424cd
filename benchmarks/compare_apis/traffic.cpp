// What operations cost in packets and cache lines, by the counters of the engines.

#include <chrono>
#include <functional>
#include <thread>

#include "engine_counters.h"
#include "world.h"

namespace compare {
namespace {

using Step = std::function<void()>;

void append(Facts* facts, const Facts& more) { facts->insert(facts->end(), more.begin(), more.end()); }

/// The library's own thread may still be counting what the other process has seen already.
Traffic look_when_quiet() {
  Traffic seen = look_at_own_engine();
  for (Traffic next;; seen = next) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    next = look_at_own_engine();
    if (next.packets == seen.packets && next.bytes == seen.bytes) return next;
  }
}

/// Does something once to open the channels and once to count. @param operation  rank 0's; ends when its data is there
/// @return packets and cache lines of both processes, by rank 0
Facts traffic(World& w, const std::string& what, const Step& operation) {
  const auto once = [&] {
    if (w.rank() == 0) operation();
    w.self.meet();
  };
  once();
  const Traffic before = look_when_quiet();
  w.self.meet();
  once();
  const auto of_both = w.self.share(look_when_quiet() - before);
  if (w.rank() != 0) return {};
  const auto numbers = [](std::uint64_t out, std::uint64_t back) {
    return std::to_string(out) + " + " + std::to_string(back);
  };
  return {{what, numbers(of_both[0].packets, of_both[1].packets) + " packets, " +
                     numbers(lines_written(of_both[0]), lines_written(of_both[1])) + " lines"}};
}

const std::string kSilent8 = "put of 8 bytes, nothing asked", kSilent0 = "put of no bytes, nothing asked";
const std::string kLocal8 = "put of 8 bytes, told when it is there";
const std::string kTold8 = "put of 8 bytes, told to the target";
const std::string kGet8 = "get of 8 bytes", kAdd8 = "fetch-and-add of 8 bytes";

Facts traffic_portals(World& w) {
  const ptl_process_t target = w.portals.id(1);
  const auto put = [&](ptl_size_t bytes) {
    return [&w, target, bytes] {
      MUST_PTL(PtlPut(w.portals.silent_md, 0, bytes, PTL_NO_ACK_REQ, target, kPt, 0, kLanding, nullptr, 0));
    };
  };
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  Facts facts = traffic(w, kSilent0, put(0));
  append(&facts, traffic(w, kSilent8, put(8)));
  append(&facts, traffic(w, kTold8, put(8)));
  append(&facts, traffic(w, kLocal8, [&] {
    MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, target, kPt, 0, kLanding, nullptr, 0));
    PortalsSide::next(w.portals.source_eq);
  }));
  append(&facts, traffic(w, kGet8, [&] {
    MUST_PTL(PtlGet(md, 0, 8, target, kPt, 0, kLanding, nullptr));
    PortalsSide::next(w.portals.source_eq);
  }));
  append(&facts, traffic(w, kAdd8, [&] {
    MUST_PTL(PtlFetchAtomic(md, 8, md, 0, 8, target, kPt, 0, kLanding, nullptr, 0, PTL_SUM, PTL_UINT64_T));
    PortalsSide::next(w.portals.source_eq);
  }));
  return facts;
}

Facts traffic_utofu(World& w) {
  const auto here = w.tofu.at(0, 0), there = w.tofu.at(1, kLanding);
  const auto put = [&](std::size_t bytes, unsigned long flags) {
    MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), here, there, bytes, 0, flags | kTellTcq, nullptr));
    w.tofu.next_tcq();
  };
  Facts facts = traffic(w, kSilent0, [&] { put(0, 0); });
  append(&facts, traffic(w, kSilent8, [&] { put(8, 0); }));
  append(&facts, traffic(w, kTold8, [&] { put(8, kTellRemote); }));
  append(&facts, traffic(w, kLocal8, [&] {
    put(8, kTellLocal);
    w.tofu.next_mrq();
  }));
  append(&facts, traffic(w, kGet8, [&] {
    MUST_TOFU(utofu_get(w.tofu.vcq, w.tofu.id(1), here, there, 8, 0, kTellLocal, nullptr));
    w.tofu.next_mrq();
  }));
  append(&facts, traffic(w, kAdd8, [&] {
    MUST_TOFU(utofu_armw8(w.tofu.vcq, w.tofu.id(1), UTOFU_ARMW_OP_ADD, 1, there, 0, kTellLocal, nullptr));
    w.tofu.next_mrq();
  }));
  return facts;
}

}  // namespace

Theme traffic_theme() {
  return {"Packets and cache lines",
          {{"Packets and cache lines",
            "What one operation costs, by the counters of both engines (rank 0 + rank 1): packets published, and the "
            "cache lines that the senders write for them.",
            traffic_portals,
            traffic_utofu,
            {{kSilent0, "1 + 0 packets, 1 + 0 lines", "1 + 0 packets, 1 + 0 lines"},
             {kSilent8, "1 + 0 packets, 2 + 0 lines"},
             {kTold8, "1 + 0 packets, 2 + 0 lines", "1 + 0 packets, 2 + 0 lines"},
             {kLocal8, "1 + 0 packets, 2 + 0 lines"},
             {kGet8, "1 + 1 packets, 1 + 2 lines", "1 + 1 packets, 1 + 2 lines"},
             {kAdd8, "1 + 1 packets, 2 + 2 lines", "1 + 1 packets, 2 + 2 lines"}},
            "Only what is asked for travels: notices at the target cost nothing on the way. An ACK that has nothing "
            "to say but that all is well is 8 bytes beside the packets, and not counted here; a local MRQ notice takes "
            "a packet back, because it is told in order. But a put of uTofu of which the target is told nothing may "
            "need no packet at all, because the kernel can write it while nobody looks there."}}};
}

}  // namespace compare
