#pragma once
// A word that everybody may change by Portals, too.

#include <gtest/gtest.h>
#include <portals4.h>

#include <array>
#include <cstdint>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {

/// The word as an entry of Portals, and a memory descriptor to change it with.
class PortalsSide {
 public:
  explicit PortalsSide(std::uint64_t* word) {
    EXPECT_EQ(PtlInit(), PTL_OK);
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni_),
              PTL_OK);
    EXPECT_EQ(PtlGetPhysId(ni_, &id_), PTL_OK);
    EXPECT_EQ(PtlEQAlloc(ni_, 64, &eq_), PTL_OK);
    ptl_pt_index_t pt = 0;
    EXPECT_EQ(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, 3, &pt), PTL_OK);
    ptl_le_t le{};
    le.start = word;
    le.length = sizeof *word;
    le.ct_handle = PTL_CT_NONE;
    le.uid = PTL_UID_ANY;
    le.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_LINK_DISABLE;
    EXPECT_EQ(PtlLEAppend(ni_, 3, &le, PTL_PRIORITY_LIST, nullptr, &le_), PTL_OK);
    ptl_md_t md{};
    md.start = operands_.data();
    md.length = sizeof operands_;
    md.eq_handle = eq_;
    md.ct_handle = PTL_CT_NONE;
    md.options = PTL_MD_EVENT_SEND_DISABLE;
    EXPECT_EQ(PtlMDBind(ni_, &md, &md_), PTL_OK);
  }
  ~PortalsSide() { PtlFini(); }
  PortalsSide(const PortalsSide&) = delete;
  PortalsSide& operator=(const PortalsSide&) = delete;

  ptl_process_t id() const { return id_; }

  /// Adds 1 to the word of this process, or of another. @return what was there
  std::uint64_t fetch_add() { return fetch_add(id_); }
  std::uint64_t fetch_add(ptl_process_t owner) {
    operands_ = {1, 0};
    EXPECT_EQ(PtlFetchAtomic(md_, 8, md_, 0, 8, owner, 3, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T), PTL_OK);
    ptl_event_t event{};
    unsigned int which = 0;
    EXPECT_EQ(PtlEQPoll(&eq_, 1, kPatienceMs, &event, &which), PTL_OK);
    return operands_[1];
  }

 private:
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq_ = PTL_INVALID_HANDLE;
  ptl_handle_le_t le_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  ptl_process_t id_{};
  std::array<std::uint64_t, 2> operands_{};
};

}  // namespace portofu::test
