// Wrong addresses, wrong permission, wrong process, and who hears of it.

#include "world.h"

namespace compare {
namespace {

/// Rank 1's memory of 8 bytes at `offset` as rank 0 sees it.
std::string untouched(World& w, std::size_t offset) { return w.look(1, offset) == 0 ? "untouched" : "written"; }

// ---- Wrong addresses -----------------------------------------------------------------------------------------------

Facts address_portals(World& w) {
  if (w.rank() == 1) {
    w.portals.open_pt(kOtherPt, w.portals.target_eq);
    w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(1) + kLanding, 12, 0));
    w.portals.open_pt(kThirdPt, w.portals.target_eq);
    w.portals.append(kThirdPt, PortalsSide::entry(w.self.memory(1) + kLanding + 4096, 12, PTL_ME_NO_TRUNCATE));
    const auto before = w.portals.status(PTL_SR_DROP_COUNT);
    w.self.meet();
    w.self.meet();
    const auto dropped = w.portals.status(PTL_SR_DROP_COUNT) - before;
    return {{"the target is told", PortalsSide::told(w.portals.target_eq) + "; drop count " + std::to_string(dropped)}};
  }
  const ptl_process_t target = w.portals.id(1);
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  const ptl_handle_md_t noisy = w.portals.bind(0, w.portals.source_eq);
  w.write(0, ~std::uint64_t{0});
  w.self.meet();
  const int local = PtlPut(md, kMemoryBytes, 8, PTL_ACK_REQ, target, kOtherPt, 0, 0, nullptr, 0);
  MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, target, kOtherPt, 0, 8, nullptr, 0));
  const ptl_event_t over = PortalsSide::next(w.portals.source_eq);
  MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, target, 99, 0, 0, nullptr, 0));
  const ptl_event_t nowhere = PortalsSide::next(w.portals.source_eq);
  MUST_PTL(PtlPut(noisy, 0, 8, PTL_ACK_REQ, target, kThirdPt, 0, 8, nullptr, 0));
  const ptl_event_t refused = PortalsSide::next(w.portals.source_eq);
  w.self.meet();
  return {{"source outside of its memory", "the call: " + text_of_ptl(local)},
          {"4 of 8 bytes behind the end", text(over) + ", " + std::to_string(over.mlength) + " bytes stored"},
          {"the same, PTL_ME_NO_TRUNCATE",
           text(refused) + ", then " + PortalsSide::told(w.portals.source_eq) + "; " + untouched(w, kLanding + 4096)},
          {"no such address", text(nowhere)}};
}

Facts address_utofu(World& w) {
  utofu_stadd_t small = 0;
  if (w.rank() == 1) MUST_TOFU(utofu_reg_mem(w.tofu.vcq, w.self.memory(1) + kLanding, 12, 0, &small));
  static std::byte elsewhere[12];  // A region of its own: a part of a registered one is only a name for it.
  if (w.rank() == 1) MUST_TOFU(utofu_reg_mem(w.tofu.vcq, elsewhere, sizeof elsewhere, 0, &small));
  small = w.self.share(small)[1];
  if (w.rank() == 1) {
    w.self.meet();
    return {{"the target is told", w.tofu.told()}};
  }
  const auto put = [&](utofu_stadd_t from, utofu_stadd_t to) {
    MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), from, to, 8, 0, 0, nullptr));
  };
  put(w.tofu.at(0, kMemoryBytes), w.tofu.at(1, kLanding));
  const int local = w.tofu.next_tcq();
  put(w.tofu.at(0, 0), small + 8);
  const Notice over = w.tofu.next_mrq();
  put(w.tofu.at(0, 0), utofu_stadd_t{0x2fff} << 40);
  const Notice nowhere = w.tofu.next_mrq();
  w.self.meet();
  return {{"source outside of its memory", "TCQ: " + text_of_tofu(local)},
          {"4 of 8 bytes behind the end", text(over)},
          {"no such address", text(nowhere)}};
}

// ---- Wrong permission ----------------------------------------------------------------------------------------------

Facts permission_portals(World& w) {
  const ptl_process_t target = w.portals.id(1);
  if (w.rank() == 1) {
    w.portals.open_pt(kOtherPt, w.portals.target_eq);
    w.portals.append(kOtherPt, PortalsSide::entry(w.self.memory(1) + kLanding, 8, PTL_ME_OP_GET));
    w.portals.open_pt(kThirdPt, w.portals.target_eq);
    ptl_me_t foreign = PortalsSide::entry(w.self.memory(1) + kLanding, 8, 0);
    MUST_PTL(PtlGetUid(w.portals.ni, &foreign.uid));
    ++foreign.uid;
    w.portals.append(kThirdPt, foreign);
    w.self.meet();
    w.self.meet();
    const auto violations = w.portals.status(PTL_SR_OPERATION_VIOLATIONS);
    return {{"the target is told",
             PortalsSide::told(w.portals.target_eq) + "; operation violations " + std::to_string(violations)}};
  }
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  w.write(0, 11);
  w.self.meet();
  MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, target, kOtherPt, 0, 0, nullptr, 0));
  const ptl_event_t put = PortalsSide::next(w.portals.source_eq);
  MUST_PTL(PtlPut(md, 0, 8, PTL_ACK_REQ, target, kThirdPt, 0, 0, nullptr, 0));
  const ptl_event_t foreign = PortalsSide::next(w.portals.source_eq);
  w.self.meet();
  return {{"a put to what may only be read", text(put)},
          {"memory", untouched(w, kLanding)},
          {"a put to what is for another user", text(foreign)}};
}

Facts permission_utofu(World& w) {
  static std::uint64_t constant = 0;
  utofu_stadd_t stadd = 0;
  if (w.rank() == 1)
    MUST_TOFU(utofu_reg_mem(w.tofu.vcq, &constant, sizeof constant, UTOFU_REG_MEM_FLAG_READ_ONLY, &stadd));
  stadd = w.self.share(stadd)[1];
  if (w.rank() == 1) {
    w.self.meet();
    return {{"memory", constant == 0 ? "untouched" : "written"}, {"the target is told", w.tofu.told()}};
  }
  w.write(0, 22);
  MUST_TOFU(utofu_put(w.tofu.vcq, w.tofu.id(1), w.tofu.at(0, 0), stadd, 8, 0, kTellAll, nullptr));
  const int tcq = w.tofu.next_tcq();
  const Notice notice = w.tofu.next_mrq();
  w.self.meet();
  return {{"a put to what may only be read", "MRQ: " + text(notice) + " (TCQ: " + text_of_tofu(tcq) + ")"}};
}

// ---- Nobody there --------------------------------------------------------------------------------------------------

Facts nobody_portals(World& w) {
  if (w.rank() == 1) return {};
  ptl_process_t nobody = w.portals.id(1);
  nobody.phys.pid = PTL_PID_MAX - 1;
  const ptl_handle_md_t md = w.portals.bind(PTL_MD_EVENT_SEND_DISABLE, w.portals.source_eq);
  const int rc = PtlPut(md, 0, 8, PTL_ACK_REQ, nobody, kPt, 0, 0, nullptr, 0);
  return {{"the call", text_of_ptl(rc)}, {"then", text(PortalsSide::next(w.portals.source_eq))}};
}

Facts nobody_utofu(World& w) {
  if (w.rank() == 1) return {};
  utofu_vcq_id_t nobody = 0;
  std::uint8_t coords[6] = {};
  MUST_TOFU(utofu_construct_vcq_id(coords, 5, 8, 7, &nobody));
  const int rc = utofu_put(w.tofu.vcq, nobody, w.tofu.at(0, 0), w.tofu.at(1, 0), 8, 0, 0, nullptr);
  return {{"the call", text_of_tofu(rc)}, {"then", "MRQ: " + text(w.tofu.next_mrq())}};
}

}  // namespace

Theme error_theme() {
  return {"Errors",
          {{"Wrong addresses",
            "Rank 0 puts 8 bytes from and to where it must not, and asks for everything that tells it.",
            address_portals,
            address_utofu,
            {{"source outside of its memory", "the call: PTL_ARG_INVALID", "TCQ: UTOFU_ERR_TCQ_STADD"},
             {"4 of 8 bytes behind the end", "PTL_EVENT_ACK, 4 bytes stored", "UTOFU_ERR_MRQ_RMT_LENGTH"},
             {"the same, PTL_ME_NO_TRUNCATE", "PTL_EVENT_SEND, then nothing; untouched", nullptr},
             {"no such address", "PTL_EVENT_ACK with PTL_NI_DROPPED", "UTOFU_ERR_MRQ_RMT_STADD"},
             {"the target is told", "PTL_EVENT_PUT; drop count 2", "nothing"}},
            "What is too long is cut in Portals and counts as success, so compare mlength with rlength; in uTofu it is "
            "an error of the initiator alone, told whatever notices were asked for, and nothing is stored."},
           {"Wrong permission",
            "Rank 0 puts 8 bytes to memory of rank 1 that may only be read.",
            permission_portals,
            permission_utofu,
            {{"a put to what may only be read", "PTL_EVENT_ACK with PTL_NI_OP_VIOLATION",
              "MRQ: UTOFU_ERR_MRQ_RMT_MEMORY (TCQ: UTOFU_SUCCESS)"},
             {"memory", "untouched", "untouched"},
             {"a put to what is for another user", "PTL_EVENT_ACK with PTL_NI_PERM_VIOLATION", nullptr},
             {"the target is told", "nothing; operation violations 1", "nothing"}},
            "Both tell the initiator only, but Portals has a right for each operation and user and counts offences at "
            "the target, and uTofu knows only whether the registration is read-only."},
           {"Nobody there",
            "Rank 0 puts 8 bytes to a process that does not exist.",
            nobody_portals,
            nobody_utofu,
            {{"the call", "PTL_OK", "UTOFU_SUCCESS"},
             {"then", "PTL_EVENT_ACK with PTL_NI_UNDELIVERABLE", "MRQ: UTOFU_ERR_MRQ_PEER"}},
            "No call fails because of the peer; uTofu reports it even if no notice was asked for, Portals only where "
            "SEND, ACK or REPLY are wanted."}}};
}

}  // namespace compare
