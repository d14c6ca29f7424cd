#pragma once
// What 3.15 and 3.16 share: a data movement operation is one descriptor, started now or when a counter reaches a
// threshold.

#include "lib/portals4/library.h"

namespace portofu::portals {

/// When an operation starts.
struct Trigger {
  ptl_handle_ct_t ct_handle = PTL_CT_NONE;  ///< PTL_CT_NONE: at once.
  ptl_size_t threshold = 0;
  bool waits = false;  ///< It is a triggered operation.
};

/// Arguments that every operation has. For a fetching one `md_handle` is the memory to send from.
struct Transfer {
  ptl_handle_md_t md_handle;
  ptl_size_t local_offset;
  ptl_size_t length;
  ptl_process_t target_id;
  ptl_pt_index_t pt_index;
  ptl_match_bits_t match_bits;
  ptl_size_t remote_offset;
  void* user_ptr;
};

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

int put(const Transfer& transfer, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const Trigger& trigger);
int get(const Transfer& transfer, const Trigger& trigger);
int atomic(const Transfer& transfer, ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const AtomicPart& part,
           const Trigger& trigger);
int fetch_atomic(const Transfer& transfer, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const AtomicPart& part,
                 const Trigger& trigger);
int swap(const Transfer& transfer, const FetchPart& fetch, ptl_hdr_data_t hdr_data, const void* operand,
         const AtomicPart& part, const Trigger& trigger);

/// Starts or arms a change of a counter.
int triggered_count(DescriptorKind kind, ptl_handle_ct_t ct_handle, ptl_ct_event_t amount, const Trigger& trigger);

}  // namespace portofu::portals
