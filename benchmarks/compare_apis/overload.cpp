// What happens when nobody reads, when nobody expects, and when nobody waits.

#include <sched.h>

#include <chrono>

#include "world.h"

namespace compare {
namespace {

// ---- Overflow of the queue of notices ------------------------------------------------------------------------------

constexpr std::uint64_t kEvents = 4, kMessages = 20;

Facts overflow_portals(World& w) {
  if (w.rank() == 1) {
    const ptl_handle_eq_t eq = w.portals.alloc_eq(kEvents);
    w.portals.open_pt(kOtherPt, eq);
    w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(1), kMemoryBytes, 0));
    w.self.meet();
    w.self.meet();
    ptl_event_t event{};
    const int rc = PtlEQGet(eq, &event);
    const std::uint64_t first = event.hdr_data;
    std::uint64_t count = rc == PTL_EQ_DROPPED || rc == PTL_OK, arrived = 0;
    while (PtlEQGet(eq, &event) == PTL_OK) ++count;
    for (std::uint64_t i = 0; i < kMessages; ++i) arrived += w.look(1, kLanding + 8 * i) == i + 1;
    return {{"the next look says", text_of_ptl(rc)},
            {"notices left", of(count, kMessages) + ", from number " + std::to_string(first) + " on"},
            {"data in memory", of(arrived, kMessages)}};
  }
  w.self.meet();
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  std::uint64_t acks = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    w.write(0, i + 1);
    MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, w.portals.id(1), kOtherPt, 0, kLanding + 8 * i, nullptr, i + 1));
    const ptl_event_t event = PortalsSide::next(w.portals.source_eq);
    acks += event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK;
  }
  w.self.meet();
  return {{"the initiator hears", std::to_string(acks) + " times PTL_EVENT_ACK"}};
}

Facts overflow_utofu(World& w) {
  w.self.meet();
  if (w.rank() == 1) {
    compute_until([] { return false; }, std::chrono::seconds(30));  // Reads no notice, until the library has enough.
    return {};
  }
  Notice notice;
  for (int sent = 0; notice.rc == UTOFU_ERR_NOT_FOUND && sent < 100000; ++sent) {
    // One at a time: of many that wait for a process that ends, each one makes a notice of failure here.
    MUST_TOFU(utofu_put_piggyback8(w.tofu.vcq, w.tofu.id(1), 1, w.tofu.at(1, kLanding), 8, 0, kTellRemote | kTellTcq,
                                   nullptr));
    w.tofu.next_tcq();
    notice.rc = utofu_poll_mrq(w.tofu.vcq, 0, &notice.fields);
  }
  return {{"the initiator hears", text(notice)}};
}

// ---- A message that nobody expects ---------------------------------------------------------------------------------

Facts unexpected_portals(World& w) {
  const ptl_process_t target = w.portals.id(1);
  if (w.rank() == 0) {
    w.write(0, 11);
    w.self.meet();
    MUST_PTL(PtlPut(w.portals.md, 0, 8, PTL_ACK_REQ, target, kOtherPt, 0, 0, nullptr, 0));
    PortalsSide::next(w.portals.source_eq);
    const ptl_event_t ack = PortalsSide::next(w.portals.source_eq);
    w.self.meet();
    return {{"told to the initiator", text(ack)}};
  }
  w.portals.open_pt(kOtherPt, w.portals.target_eq);
  const ptl_me_t overflow = PortalsSide::entry(w.self.memory(1), 4096, PTL_ME_MANAGE_LOCAL | PTL_ME_OP_PUT);
  w.portals.append(kOtherPt, overflow, PTL_OVERFLOW_LIST);
  w.self.meet();
  w.self.meet();
  const std::string early = PortalsSide::told(w.portals.target_eq);
  w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(1) + kLanding, 8, PTL_ME_USE_ONCE | PTL_ME_OP_PUT));
  const ptl_event_t event = PortalsSide::next(w.portals.target_eq);
  const bool in_overflow = event.start >= w.self.memory(1) && event.start < w.self.memory(1) + 4096;
  return {{"told to the target", early},
          {"when the target posts its buffer", text(event)},
          {"the data is", in_overflow && w.look(1, kLanding) == 0 ? "in the overflow buffer" : "elsewhere"}};
}

constexpr unsigned int kStag = 7;

Facts unexpected_utofu(World& w) {
  utofu_stadd_t there = 0;
  MUST_TOFU(utofu_query_stadd(w.tofu.id(1), kStag, &there));
  if (w.rank() == 1) {
    w.self.meet();
    const std::string early = w.tofu.told();
    utofu_stadd_t mine = 0;
    utofu_onesided_caps* caps = nullptr;
    MUST_TOFU(utofu_query_onesided_caps(0, &caps));
    const std::size_t bytes = caps->stag_address_alignment;
    MUST_TOFU(utofu_reg_mem_with_stag(w.tofu.vcq, w.self.memory(1) + kLanding, bytes, kStag, 0, &mine));
    return {{"told to the target", early},
            {"when the target posts its buffer", w.tofu.told()},
            {"the data is", w.look(1, kLanding) == 0 ? "lost" : "there"}};
  }
  w.write(0, 22);
  MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), there, 8, 0, kTellRemote, nullptr));
  const Notice notice = w.tofu.next_mrq();
  w.self.meet();
  return {{"told to the initiator", text(notice)}};
}

// ---- Posting without looking ---------------------------------------------------------------------------------------

constexpr int kPosts = 5000;

Facts busy_portals(World& w) {
  if (w.rank() == 1) return {};
  int rc = PTL_OK, accepted = 0;
  for (; accepted < kPosts && rc == PTL_OK; accepted += rc == PTL_OK)
    rc = PtlPut(w.portals.silent_md, 0, 8, PTL_NO_ACK_REQ, w.portals.id(1), kPt, 0, kLanding, nullptr, 0);
  return {{"calls that were accepted", std::to_string(accepted)}, {"the last call", text_of_ptl(rc)}};
}

/// Puts kPosts times with these flags, or until a call says BUSY for longer than the target can need.
Facts post(World& w, const std::string& what, unsigned long flags) {
  int rc = UTOFU_SUCCESS, accepted = 0;
  const auto put = [&] {
    rc = utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), w.tofu.at(1, kLanding), 8, 0, flags, nullptr);
    return rc == UTOFU_SUCCESS;
  };
  const std::chrono::milliseconds patience(flags == 0 ? 10000 : 100);
  while (accepted < kPosts && (put() || compute_until([&] { return sched_yield() == 0 && put(); }, patience)))
    ++accepted;
  return {{"calls that were accepted" + what, std::to_string(accepted)}, {"the last call" + what, text_of_tofu(rc)}};
}

Facts busy_utofu(World& w) {
  if (w.rank() == 1) return {};
  Facts facts = post(w, "", kTellTcq);
  w.tofu.next_tcq();
  const int rc = utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), w.tofu.at(1, kLanding), 8, 0, 0, nullptr);
  facts.push_back({"after reading one TCQ notice", text_of_tofu(rc)});
  for (void* cbdata = nullptr; utofu_poll_tcq(w.tofu.vcq, 0, &cbdata) != UTOFU_ERR_NOT_FOUND;) {
  }
  facts.push_back(post(w, ", without the TCQ notice", 0).front());
  return facts;
}

}  // namespace

Theme overload_theme() {
  return {"Overload and surprise",
          {{"Overflow of the queue of notices",
            "Rank 1 reads no notices: 20 messages for an event queue of 4 events, and as many as it takes for an MRQ "
            "of 2048.",
            overflow_portals,
            overflow_utofu,
            {{"the next look says", "PTL_EQ_DROPPED", nullptr},
             {"notices left", "4 of 20, from number 17 on", nullptr},
             {"data in memory", "20 of 20", nullptr},
             {"the initiator hears", "20 times PTL_EVENT_ACK", "UTOFU_ERR_MRQ_PEER"},
             {"the target's process", nullptr, "ended by SIGABRT"},
             {"its last words", nullptr, "utofu: asynchronous error: MRQ Overflow on TNI 0 CQ 1"}},
            "An event queue loses its oldest events and says so (or disables the portal table entry, if flow control "
            "was asked for); an MRQ that overflows ends the target's process, so every remote notice needs a credit.",
            /*processes=*/2,
            /*setting=*/"UTOFU_NUM_MRQ_ENTRIES=2Ki",
            /*mortal_rank=*/1},
           {"A message that nobody expects",
            "Rank 0 puts 8 bytes before rank 1 has posted the buffer for them; in Portals an overflow list is there, "
            "in uTofu the address is that of a STag which both have agreed upon.",
            unexpected_portals,
            unexpected_utofu,
            {{"told to the initiator", "PTL_EVENT_ACK", "UTOFU_ERR_MRQ_RMT_STADD"},
             {"told to the target", "PTL_EVENT_PUT", "nothing"},
             {"when the target posts its buffer", "PTL_EVENT_PUT_OVERFLOW", "nothing"},
             {"the data is", "in the overflow buffer", "lost"}},
            "uTofu matches nothing and keeps nothing: the initiator has to know that the buffer is there, so what "
            "Portals does with an overflow list becomes a protocol of buffers and credits."},
           {"Posting without looking",
            "Rank 0 puts 5000 times, asks for notices of completion in uTofu, and looks into no queue; rank 1 does "
            "nothing.",
            busy_portals,
            busy_utofu,
            {{"calls that were accepted", "5000", "2048"},
             {"the last call", "PTL_OK", "UTOFU_ERR_BUSY"},
             {"after reading one TCQ notice", nullptr, "UTOFU_SUCCESS"},
             {"calls that were accepted, without the TCQ notice", nullptr, "5000"}},
            "A Portals call keeps what cannot go out yet; a uTofu call says UTOFU_ERR_BUSY when the TCQ is full of "
            "notices that were not read, and because the guide wants it read even where none was asked for, which this "
            "engine does not need, every loop of calls should contain utofu_poll_tcq."}}};
}

}  // namespace compare
