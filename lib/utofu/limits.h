#pragma once
// The numbers of the guide's chapter 6 that no setting changes.

#include <algorithm>

#include "engine/door/process.h"
#include "engine/door/tofu.h"
#include "lib/utofu/library.h"

namespace portofu::utofu {

inline constexpr std::size_t kStagAlignment = 256;
inline constexpr std::size_t kMaxEdataBytes = 1;

/// CQ IDs are below this. Of the machine's CQs as many are available as the setting says, but not the lowest.
inline std::uint32_t cq_id_limit() { return std::max(settings().cq_count, kTofuCqs); }

/// Whether an id names a VCQ that could be: known kind, coordinates and limits.
inline bool is_vcq_id(std::uint64_t id) {
  return is_kind(id, TofuIdKind::kVcq) && is_coordinates(coordinates_of(id)) && tni_of(id) < settings().tni_count &&
         queue_of(id) < cq_id_limit() && component_of(id) < settings().cmp_id_count;
}

inline bool is_vbg_id(std::uint64_t id) {
  return is_kind(id, TofuIdKind::kVbg) && is_coordinates(coordinates_of(id)) && tni_of(id) < settings().tni_count &&
         queue_of(id) < settings().start_vbg_count + settings().relay_vbg_count && component_of(id) == 0;
}

}  // namespace portofu::utofu
