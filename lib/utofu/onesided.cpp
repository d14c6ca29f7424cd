// 3.7.1 and 3.7.2: start functions and preparation functions. Each names its arguments; toq.cpp does the rest.

#include "lib/utofu/toq.h"

using namespace portofu;
using namespace portofu::utofu;

int utofu_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
              size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
                  size_t length, uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                     utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                     unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                         utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                         unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void* lcl_data, utofu_stadd_t rmt_stadd,
                        size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuPiggyback;
  r.remote_vcq_id = rmt_vcq_id;
  r.data = lcl_data;
  r.has_data = true;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data, utofu_stadd_t rmt_stadd,
                         size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuPiggyback;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_data;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
              size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
                  size_t length, uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                     utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                     unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                         utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                         unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op, uint32_t op_value,
                utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.armw_op = static_cast<int>(armw_op);
  if (r.armw_op < UTOFU_ARMW_OP_SWAP) r.armw_op = -1;
  r.local = op_value;
  r.remote_stadd = rmt_stadd;
  r.length = 4;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op, uint64_t op_value,
                utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.armw_op = static_cast<int>(armw_op);
  if (r.armw_op < UTOFU_ARMW_OP_SWAP) r.armw_op = -1;
  r.local = op_value;
  r.remote_stadd = rmt_stadd;
  r.length = 8;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value, uint32_t new_value,
                 utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.compared = old_value;
  r.local = new_value;
  r.remote_stadd = rmt_stadd;
  r.length = 4;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value, uint64_t new_value,
                 utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.compared = old_value;
  r.local = new_value;
  r.remote_stadd = rmt_stadd;
  r.length = 8;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void* cbdata) {
  Request r;
  r.kind = DescriptorKind::kTofuNop;
  r.flags = flags;
  return submit(vcq_hdl, r, {cbdata});
}

int utofu_prepare_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                      utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, void* desc,
                      size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                          utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, size_t mtu,
                          size_t gap, void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                             utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                             unsigned long int flags, void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                 utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                 uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* desc,
                                 size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuPut;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void* lcl_data,
                                utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuPiggyback;
  r.remote_vcq_id = rmt_vcq_id;
  r.data = lcl_data;
  r.has_data = true;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data,
                                 utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                 void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuPiggyback;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_data;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                      utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, void* desc,
                      size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                          utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, size_t mtu,
                          size_t gap, void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                             utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                             unsigned long int flags, void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                 utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                 uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* desc,
                                 size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuGet;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = lcl_stadd;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  r.stride = stride;
  r.block_count = num_blocks;
  r.mtu = mtu;
  r.gap = gap;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                        uint32_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                        size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.armw_op = static_cast<int>(armw_op);
  if (r.armw_op < UTOFU_ARMW_OP_SWAP) r.armw_op = -1;
  r.local = op_value;
  r.remote_stadd = rmt_stadd;
  r.length = 4;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                        uint64_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                        size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.armw_op = static_cast<int>(armw_op);
  if (r.armw_op < UTOFU_ARMW_OP_SWAP) r.armw_op = -1;
  r.local = op_value;
  r.remote_stadd = rmt_stadd;
  r.length = 8;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value, uint32_t new_value,
                         utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                         size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.compared = old_value;
  r.local = new_value;
  r.remote_stadd = rmt_stadd;
  r.length = 4;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value, uint64_t new_value,
                         utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                         size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuArmw;
  r.remote_vcq_id = rmt_vcq_id;
  r.compared = old_value;
  r.local = new_value;
  r.remote_stadd = rmt_stadd;
  r.length = 8;
  r.edata = edata;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}

int utofu_prepare_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void* desc, size_t* desc_size) {
  Request r;
  r.kind = DescriptorKind::kTofuNop;
  r.flags = flags;
  return submit(vcq_hdl, r, {nullptr, desc, desc_size, true});
}
