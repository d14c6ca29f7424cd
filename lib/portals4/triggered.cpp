// 3.16 Triggered operations.

#include "lib/portals4/transfer.h"

using namespace portofu::portals;
using portofu::PacketType;
using portofu::Trigger;

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) {
  const Trigger trigger{trig_ct_handle, threshold};
  return put(transfer(PacketType::kPut, md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset,
                      user_ptr),
             ack_req, hdr_data, &trigger);
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  const Trigger trigger{trig_ct_handle, threshold};
  return get(transfer(PacketType::kGet, md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset,
                      user_ptr),
             &trigger);
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  const Trigger trigger{trig_ct_handle, threshold};
  return atomic(transfer(PacketType::kAtomic, md_handle, local_offset, length, target_id, pt_index, match_bits,
                         remote_offset, user_ptr),
                ack_req, hdr_data, {operation, datatype}, &trigger);
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                            void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  const Trigger trigger{trig_ct_handle, threshold};
  return fetch_atomic(transfer(PacketType::kFetchAtomic, put_md_handle, local_put_offset, length, target_id, pt_index,
                               match_bits, remote_offset, user_ptr),
                      {get_md_handle, local_get_offset}, hdr_data, {operation, datatype}, &trigger);
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                     const void* operand, ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold) {
  const Trigger trigger{trig_ct_handle, threshold};
  return portofu::portals::swap(transfer(PacketType::kSwap, put_md_handle, local_put_offset, length, target_id,
                                         pt_index, match_bits, remote_offset, user_ptr),
                                {get_md_handle, local_get_offset}, hdr_data, operand, {operation, datatype}, &trigger);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
  return triggered_count(PacketType::kCountIncrement, ct_handle, increment, {trig_ct_handle, threshold});
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
  return triggered_count(PacketType::kCountSet, ct_handle, new_ct, {trig_ct_handle, threshold});
}
