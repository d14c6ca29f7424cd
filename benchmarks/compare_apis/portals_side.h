// What the patterns of Portals share: an interface that knows its peers, an MD and an entry over all memory of the
// process, waits that end, and names. What a pattern is about it calls itself.
#pragma once

#include <portals4.h>

#include <string>
#include <vector>

#include "player.h"

namespace compare {

inline constexpr ptl_pt_index_t kPt = 1;       ///< Its entry covers all memory of the process and makes full events.
inline constexpr ptl_pt_index_t kOtherPt = 2;  ///< Free for a pattern.
inline constexpr ptl_pt_index_t kThirdPt = 3;  ///< The same.

std::string text(ptl_event_kind_t kind);
std::string text_of_failure(ptl_ni_fail_t failure);
std::string text_of_ptl(int rc);
std::string text(const ptl_event_t& event);  ///< The kind, and the failure if it is one.

/// Ends the process unless a call that a pattern takes for granted has succeeded.
void must_ptl(int rc, const char* call);
#define MUST_PTL(call) ::compare::must_ptl((call), #call)

class PortalsSide {
 public:
  explicit PortalsSide(Player& self);
  ~PortalsSide();
  PortalsSide(const PortalsSide&) = delete;
  PortalsSide& operator=(const PortalsSide&) = delete;

  ptl_process_t id(int rank) const { return ids_[static_cast<std::size_t>(rank)]; }

  ptl_handle_eq_t alloc_eq(ptl_size_t count);
  ptl_handle_ct_t alloc_ct();
  void open_pt(ptl_pt_index_t pt, ptl_handle_eq_t eq);

  /// An MD over all memory of the process.
  ptl_handle_md_t bind(unsigned int options, ptl_handle_eq_t eq = PTL_EQ_NONE);

  /// An entry that takes messages of everybody, with any match bits.
  static ptl_me_t entry(void* start, ptl_size_t length, unsigned int options, ptl_handle_ct_t ct = PTL_CT_NONE);
  ptl_handle_me_t append(ptl_pt_index_t pt, const ptl_me_t& me, ptl_list_t list = PTL_PRIORITY_LIST);

  /// Waits for the next event.
  static ptl_event_t next(ptl_handle_eq_t eq);
  /// Names of all events that are in the queue now, or "nothing".
  static std::string told(ptl_handle_eq_t eq);
  /// Waits until the counter has come to `count`, and gives it.
  static ptl_ct_event_t wait(ptl_handle_ct_t ct, ptl_size_t count);
  static ptl_size_t successes(ptl_handle_ct_t ct);
  ptl_sr_value_t status(ptl_sr_index_t index) const;

  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};                        ///< Of the interface, as it was opened.
  ptl_handle_eq_t source_eq = PTL_INVALID_HANDLE;  ///< Of md.
  ptl_handle_eq_t target_eq = PTL_INVALID_HANDLE;  ///< Of the entry at kPt.
  ptl_handle_md_t md = PTL_INVALID_HANDLE;         ///< Over all memory; tells everything to source_eq.
  ptl_handle_md_t silent_md = PTL_INVALID_HANDLE;  ///< Over all memory; tells nothing.

 private:
  std::byte* memory_;
  std::vector<ptl_process_t> ids_;
};

}  // namespace compare
