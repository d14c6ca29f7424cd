#pragma once
// What 3.15 and 3.16 share: a data movement operation is one descriptor, started now or when a counter reaches a
// threshold.

#include "lib/portals4/library.h"

namespace portofu::portals {

/// In place of an index beyond every portal table.
inline constexpr std::uint16_t kNoPortalIndex = UINT16_MAX;

/// The arguments that every operation has, as they come; `submit` checks them. For a fetching operation `md_handle` is
/// the memory to send from.
inline Descriptor transfer(PacketType type, ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                           ptl_size_t remote_offset, void* user_ptr) {
  Descriptor d;
  d.type = type;
  d.pt_index = pt_index < kPortalTableSize ? static_cast<std::uint16_t>(pt_index) : kNoPortalIndex;
  d.portals.md_handle = md_handle;
  d.portals.target = {target_id.phys.nid, target_id.phys.pid};  // A rank stands where the union has it, in `nid`.
  d.portals.local_offset = local_offset;
  d.length = length;
  d.match_bits = match_bits;
  d.remote_offset = remote_offset;
  d.portals.user_ptr = user_ptr;
  return d;
}

/// What an atomic adds.
struct AtomicPart {
  ptl_op_t operation;
  ptl_datatype_t datatype;
};

/// What a fetching atomic or swap adds.
struct FetchPart {
  ptl_handle_md_t get_md_handle;
  ptl_size_t local_get_offset;
};

/// The rest of the arguments, and off it goes, or it is armed.
/// @param trigger  nullptr: it starts at once
int put(Descriptor&& d, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const Trigger* trigger = nullptr);
int get(Descriptor&& d, const Trigger* trigger = nullptr);
int atomic(Descriptor&& d, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const AtomicPart& part,
           const Trigger* trigger = nullptr);
int fetch_atomic(Descriptor&& d, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const AtomicPart& part,
                 const Trigger* trigger = nullptr);
int swap(Descriptor&& d, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const void* operand, const AtomicPart& part,
         const Trigger* trigger = nullptr);

/// Starts or arms a change of a counter.
int triggered_count(PacketType type, ptl_handle_ct_t ct_handle, ptl_ct_event_t amount, const Trigger& trigger);

}  // namespace portofu::portals
