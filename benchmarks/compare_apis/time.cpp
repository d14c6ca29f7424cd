// What things cost: half round trips, messages a second, answered operations.

#include <chrono>
#include <functional>

#include "world.h"

namespace compare {
namespace {

using Clock = std::chrono::steady_clock;
using Step = std::function<void()>;

// ---- Half a round trip ---------------------------------------------------------------------------------------------

constexpr int kRounds = 2000, kSlowRounds = 2000;

/// Both processes send and receive in turns. @return half a round trip, at rank 0
Facts ping_pong(World& w, const std::string& what, const Step& send, const Step& receive, int rounds = kRounds) {
  w.self.meet();
  const auto start = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    if (w.rank() == 1) receive();
    send();
    if (w.rank() == 0) receive();
  }
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / (2.0 * rounds);
  w.self.meet();
  if (w.rank() != 0) return {};
  return {measured(what, ns, "ns")};
}

void append(Facts* facts, const Facts& more) { facts->insert(facts->end(), more.begin(), more.end()); }

const std::string kTold = "told of each message, 8 bytes", kToldLong = "the same, 4096 bytes";
const std::string kCheapest = "the cheapest way to be told of 8 bytes";
const std::string kReadCalling = "reading memory, and calling the library meanwhile, 8 bytes";
const std::string kRead = "reading memory only, 8 bytes";

/// Waits for the word at kLanding to take the next value; calls `meanwhile` between two looks.
Step reader(World& w, std::uint64_t* expected, Step meanwhile) {
  return [&w, expected, meanwhile = std::move(meanwhile)] {
    ++*expected;
    while (w.look(w.rank(), kLanding) != *expected) meanwhile();
  };
}

Facts latency_portals(World& w) {
  const ptl_process_t peer = w.portals.id(1 - w.rank());
  const auto put = [&](ptl_pt_index_t pt, ptl_size_t bytes) {
    return [&w, peer, pt, bytes] {
      MUST_PTL(PtlPut(w.portals.silent_md, 0, bytes, PTL_NO_ACK_REQ, peer, pt, 0, kLanding, nullptr, 0));
    };
  };
  const auto event = [&] {
    ptl_event_t got{};
    while (PtlEQGet(w.portals.target_eq, &got) != PTL_OK) {
    }
  };
  const ptl_handle_ct_t ct = w.portals.alloc_ct();
  ptl_pt_index_t counted = 0;
  MUST_PTL(PtlPTAlloc(w.portals.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &counted));
  const ptl_handle_me_t entry =
      w.portals.append(counted, PortalsSide::entry(w.self.memory(w.rank()), kMemoryBytes, 0, ct));
  ptl_size_t count = 0;
  Facts facts = ping_pong(w, kTold, put(kPt, 8), event);
  append(&facts, ping_pong(w, kToldLong, put(kPt, 4096), event));
  append(&facts, ping_pong(w, kCheapest, put(counted, 8), [&] {
    ++count;
    while (PortalsSide::successes(ct) < count) {
    }
  }));
  std::uint64_t sent = 0, seen = 0;
  const Step next = [&, send = put(counted, 8)] {
    w.write(0, ++sent);
    send();
  };
  append(&facts, ping_pong(w, kReadCalling, next, reader(w, &seen, [&] { PortalsSide::successes(ct); })));
  append(&facts, ping_pong(w, kRead, next, reader(w, &seen, [] {}), kSlowRounds));
  w.self.meet();
  MUST_PTL(PtlMEUnlink(entry));
  MUST_PTL(PtlPTFree(w.portals.ni, counted));
  MUST_PTL(PtlCTFree(ct));
  return facts;
}

Facts latency_utofu(World& w) {
  const int other = 1 - w.rank();
  const utofu_stadd_t there = w.tofu.at(other, kLanding);
  const auto look_at_tcq = [&] {
    void* cbdata = nullptr;
    utofu_poll_tcq(w.tofu.vcq, 0, &cbdata);
  };
  const auto put = [&](std::size_t bytes) {
    return [&w, &look_at_tcq, other, there, bytes] {
      MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(other), w.tofu.at(w.rank(), 0), there, bytes, 0, kTellRemote, nullptr));
      look_at_tcq();
    };
  };
  const auto notice = [&] {
    utofu_mrq_notice got{};
    while (utofu_poll_mrq(w.tofu.vcq, 0, &got) != UTOFU_SUCCESS) {
    }
  };
  const auto piggyback = [&](std::uint64_t value, unsigned long flags) {
    MUST_TOFU(utofu_put_piggyback8(w.tofu.vcq, w.tofu.id(other), value, there, 8, 0, flags, nullptr));
    look_at_tcq();
  };
  Facts facts = ping_pong(w, kTold, put(8), notice);
  append(&facts, ping_pong(w, kToldLong, put(4096), notice));
  append(&facts, ping_pong(
                     w, kCheapest, [&] { piggyback(0, kTellRemote); }, notice));
  std::uint64_t sent = 0, seen = 0;
  const Step next = [&] { piggyback(++sent, 0); };
  append(&facts, ping_pong(w, kReadCalling, next, reader(w, &seen, [&] {
                             utofu_mrq_notice got{};
                             utofu_poll_mrq(w.tofu.vcq, 0, &got);
                           })));
  append(&facts, ping_pong(w, kRead, next, reader(w, &seen, [] {}), kSlowRounds));
  return facts;
}

// ---- Messages a second, and round trips of gets and atomics ---------------------------------------------------------

constexpr int kBatch = 64, kBatches = 200;

/// Rank 0 sends batches; rank 1 takes each as a whole and answers it with one message.
Facts rate(World& w, const std::string& what, const Step& send_batch, const Step& take_batch, const Step& answer,
           const Step& take_answer) {
  w.self.meet();
  const auto start = Clock::now();
  for (int i = 0; i < kBatches; ++i) {
    if (w.rank() == 0) send_batch(), take_answer();
    if (w.rank() == 1) take_batch(), answer();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  w.self.meet();
  if (w.rank() != 0) return {};
  return {measured(what, kBatch * kBatches / seconds / 1e6, "million/s")};
}

/// Rank 0 does something that is answered again and again. @return the time of one
Facts round_trip(World& w, const std::string& what, const Step& operation) {
  w.self.meet();
  Facts facts;
  if (w.rank() == 0) {
    const auto start = Clock::now();
    for (int i = 0; i < kRounds; ++i) operation();
    facts = {measured(what, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kRounds, "ns")};
    w.self.stage().flag = 1;
  } else {  // Serves, and looks into a queue, as a program does that waits for something else.
    ptl_event_t got{};
    while (w.self.stage().flag == 0) PtlEQGet(w.portals.source_eq, &got);
  }
  w.self.meet();
  if (w.rank() == 0) w.self.stage().flag = 0;
  return facts;
}

const std::string kRate = "puts of 8 bytes, told of each";
const std::string kGet = "get of 8 bytes, round trip", kAdd = "fetch-and-add of 8 bytes, round trip";

Facts rate_portals(World& w) {
  const auto put = [&] {
    MUST_PTL(
        PtlPut(w.portals.silent_md, 0, 8, PTL_NO_ACK_REQ, w.portals.id(1 - w.rank()), kPt, 0, kLanding, nullptr, 0));
  };
  const auto event = [&](ptl_handle_eq_t eq) {
    ptl_event_t got{};
    while (PtlEQGet(eq, &got) != PTL_OK) {
    }
    return got.type;
  };
  const auto batch = [&](const auto& step) {
    for (int i = 0; i < kBatch; ++i) step();
  };
  const auto take = [&] { event(w.portals.target_eq); };
  return rate(
      w, kRate, [&] { batch(put); }, [&] { batch(take); }, put, take);
}

Facts rate_utofu(World& w) {
  const int other = 1 - w.rank();
  const auto put = [&] {
    MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(other), w.tofu.at(w.rank(), 0), w.tofu.at(other, kLanding), 8, 0,
                        kTellRemote, nullptr));
  };
  const auto take = [&] {
    utofu_mrq_notice got{};
    while (utofu_poll_mrq(w.tofu.vcq, 0, &got) != UTOFU_SUCCESS) {
    }
  };
  const auto batch = [&](const auto& step) {
    for (int i = 0; i < kBatch; ++i) step();
    void* cbdata = nullptr;
    utofu_poll_tcq(w.tofu.vcq, 0, &cbdata);
  };
  return rate(
      w, kRate, [&] { batch(put); }, [&] { batch(take); }, put, take);
}

Facts answered_portals(World& w) {
  const ptl_process_t target = w.portals.id(1);
  const auto reply = [&] {
    ptl_event_t got{};
    while (PtlEQGet(w.portals.source_eq, &got) != PTL_OK) {
    }
  };
  Facts facts = round_trip(w, kGet, [&] {
    MUST_PTL(PtlGet(w.portals.md, 0, 8, target, kPt, 0, kLanding, nullptr));
    reply();
  });
  append(&facts, round_trip(w, kAdd, [&] {
    MUST_PTL(PtlFetchAtomic(w.portals.md, 8, w.portals.silent_md, 0, 8, target, kPt, 0, kLanding, nullptr, 0, PTL_SUM,
                            PTL_UINT64_T));
    reply();
  }));
  return facts;
}

Facts answered_utofu(World& w) {
  const auto there = w.tofu.at(1, kLanding);
  const auto notice = [&] {
    utofu_mrq_notice got{};
    void* cbdata = nullptr;
    while (utofu_poll_mrq(w.tofu.vcq, 0, &got) != UTOFU_SUCCESS) {
    }
    utofu_poll_tcq(w.tofu.vcq, 0, &cbdata);
  };
  Facts facts = round_trip(w, kGet, [&] {
    MUST_TOFU(utofu_get(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), there, 8, 0, kTellLocal, nullptr));
    notice();
  });
  append(&facts, round_trip(w, kAdd, [&] {
    MUST_TOFU(utofu_armw8(w.tofu.vcq, w.tofu.id(1), UTOFU_ARMW_OP_ADD, 1, there, 0, kTellLocal, nullptr));
    notice();
  }));
  return facts;
}

}  // namespace

Theme time_theme() {
  Row latency{"Half a round trip",
              "Two processes put to each other in turns; every wait is a loop of non-blocking calls, or of loads. "
              "After each put of uTofu the TCQ is read, as the guide wants it.",
              latency_portals,
              latency_utofu,
              {},
              "As long as something is called in the loop, both APIs are within a factor of two of each other; waiting "
              "by loads alone, the quickest way on Tofu hardware, is slower here: by some system calls in uTofu, where "
              "the kernel writes what nobody is told of, by much in Portals, where only the library's own thread then "
              "serves the process."};
  Row rates{"Messages a second",
            "Rank 0 sends batches of 64 puts, rank 1 is told of each and answers each batch with a put.",
            rate_portals,
            rate_utofu,
            {},
            "The rates of both APIs are within a factor of three, so a port changes the rate by less than that."};
  Row answered{"Operations that are answered",
               "Rank 0 waits for each answer; rank 1 only serves.",
               answered_portals,
               answered_utofu,
               {},
               "A get and an atomic cost about the same in both APIs, within a factor of two."};
  for (Row* row : {&latency, &rates, &answered}) row->timed = true;
  latency.times = {
      {kTold, "", 2}, {kToldLong, "", 2}, {kCheapest, "", 2}, {kReadCalling, "", 2}, {kRead, kReadCalling, 2}};
  rates.times = {{kRate, "", 3}};
  answered.times = {{kGet, "", 2}, {kAdd, "", 2}};
  return {"Time", {latency, rates, answered}};
}

}  // namespace compare
