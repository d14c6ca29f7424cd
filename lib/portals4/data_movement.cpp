// 3.15 Data movement operations.

#include <atomic>

#include "lib/portals4/transfer.h"

using namespace portofu::portals;
using portofu::PacketType;

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           void* user_ptr, ptl_hdr_data_t hdr_data) {
  return put(transfer(PacketType::kPut, md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset,
                      user_ptr),
             ack_req, hdr_data);
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr) {
  return get(transfer(PacketType::kGet, md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset,
                      user_ptr));
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
  return atomic(transfer(PacketType::kAtomic, md_handle, local_offset, length, target_id, pt_index, match_bits,
                         remote_offset, user_ptr),
                ack_req, hdr_data, {operation, datatype});
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype) {
  return fetch_atomic(transfer(PacketType::kFetchAtomic, put_md_handle, local_put_offset, length, target_id, pt_index,
                               match_bits, remote_offset, user_ptr),
                      {get_md_handle, local_get_offset}, hdr_data, {operation, datatype});
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
            const void* operand, ptl_op_t operation, ptl_datatype_t datatype) {
  return portofu::portals::swap(transfer(PacketType::kSwap, put_md_handle, local_put_offset, length, target_id,
                                         pt_index, match_bits, remote_offset, user_ptr),
                                {get_md_handle, local_get_offset}, hdr_data, operand, {operation, datatype});
}

int PtlAtomicSync(void) {
  if (!is_initialised()) return PTL_NO_INIT;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // PTL_COHERENT_ATOMICS: nothing is held back (3.15.8).
  return PTL_OK;
}
