#include "lib/portals4/limits.h"

#include <algorithm>

namespace portofu::portals {
namespace {

// SPEC: "an interface must support a max_pt_index of at least 249" (3.6.1), and likewise for the ordered sizes. Portofu
// does; who asks for less gets less, so that a program can test what it does at its limits.

std::uint32_t grant(int desired, std::uint32_t most) {
  return desired <= 0 ? most : std::min(static_cast<std::uint32_t>(desired), most);
}

std::uint64_t grant_size(std::uint64_t desired, std::uint64_t most) {
  return desired == 0 ? most : std::min(desired, most);
}

}  // namespace

Limits grant_limits(const ptl_ni_limits_t* desired) {
  Limits limits = kDefaultLimits;
  if (desired == nullptr) return limits;
  limits.max_entries = grant(desired->max_entries, limits.max_entries);
  limits.max_unexpected_headers = grant(desired->max_unexpected_headers, limits.max_unexpected_headers);
  limits.max_mds = grant(desired->max_mds, limits.max_mds);
  limits.max_cts = grant(desired->max_cts, limits.max_cts);
  limits.max_eqs = grant(desired->max_eqs, limits.max_eqs);
  limits.max_pt_index = grant(desired->max_pt_index, limits.max_pt_index);
  limits.max_iovecs = grant(desired->max_iovecs, limits.max_iovecs);
  limits.max_list_size = grant(desired->max_list_size, limits.max_list_size);
  limits.max_triggered_ops = grant(desired->max_triggered_ops, limits.max_triggered_ops);
  limits.max_msg_size = grant_size(desired->max_msg_size, limits.max_msg_size);
  limits.max_atomic_size = grant_size(desired->max_atomic_size, limits.max_atomic_size);
  limits.max_fetch_atomic_size = grant_size(desired->max_fetch_atomic_size, limits.max_fetch_atomic_size);
  limits.max_waw_ordered_size = grant_size(desired->max_waw_ordered_size, limits.max_waw_ordered_size);
  limits.max_war_ordered_size = grant_size(desired->max_war_ordered_size, limits.max_war_ordered_size);
  limits.max_volatile_size = grant_size(desired->max_volatile_size, limits.max_volatile_size);
  return limits;
}

ptl_ni_limits_t actual_limits(const Limits& granted) {
  ptl_ni_limits_t actual{};
  actual.max_entries = static_cast<int>(granted.max_entries);
  actual.max_unexpected_headers = static_cast<int>(granted.max_unexpected_headers);
  actual.max_mds = static_cast<int>(granted.max_mds);
  actual.max_cts = static_cast<int>(granted.max_cts);
  actual.max_eqs = static_cast<int>(granted.max_eqs);
  actual.max_pt_index = static_cast<int>(granted.max_pt_index);
  actual.max_iovecs = static_cast<int>(granted.max_iovecs);
  actual.max_list_size = static_cast<int>(granted.max_list_size);
  actual.max_triggered_ops = static_cast<int>(granted.max_triggered_ops);
  actual.max_msg_size = granted.max_msg_size;
  actual.max_atomic_size = granted.max_atomic_size;
  actual.max_fetch_atomic_size = granted.max_fetch_atomic_size;
  actual.max_waw_ordered_size = granted.max_waw_ordered_size;
  actual.max_war_ordered_size = granted.max_war_ordered_size;
  actual.max_volatile_size = granted.max_volatile_size;
  actual.features = PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS;
  return actual;
}

}  // namespace portofu::portals
