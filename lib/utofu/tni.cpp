// 3.2 TNI query.

#include <cstdlib>

#include "lib/utofu/limits.h"

using namespace portofu;
using namespace portofu::utofu;

static_assert(sizeof(utofu_onesided_caps) == 88 && sizeof(utofu_barrier_caps) == 32);
static_assert(sizeof(utofu_vbg_setting) == 48 && sizeof(utofu_mrq_notice) == 64);

namespace {

utofu_onesided_caps read_onesided_caps() {
  return {
      .flags = UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE | UTOFU_ONESIDED_CAP_FLAG_ARMW,
      .armw_ops = UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP | UTOFU_ONESIDED_CAP_ARMW_OP_SWAP | UTOFU_ONESIDED_CAP_ARMW_OP_ADD |
                  UTOFU_ONESIDED_CAP_ARMW_OP_XOR | UTOFU_ONESIDED_CAP_ARMW_OP_AND | UTOFU_ONESIDED_CAP_ARMW_OP_OR,
      .num_cmp_ids = settings().cmp_id_count,
      .num_reserved_stags = settings().reserved_stag_count,
      .cache_line_size = kTofuLineBytes,
      .stag_address_alignment = kStagAlignment,
      .max_toq_desc_size = kMaxTofuDescriptorBytes,
      .max_putget_size = settings().max_putget_bytes,
      .max_piggyback_size = kMaxPiggybackBytes,
      .max_edata_size = kMaxEdataBytes,
      .max_mtu = settings().max_mtu,
      .max_gap = settings().max_gap,
  };
}

utofu_barrier_caps barrier_caps = {
    .flags = 0,
    .reduce_ops = UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER | UTOFU_BARRIER_CAP_REDUCE_OP_BAND |
                  UTOFU_BARRIER_CAP_REDUCE_OP_BOR | UTOFU_BARRIER_CAP_REDUCE_OP_BXOR | UTOFU_BARRIER_CAP_REDUCE_OP_MAX |
                  UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC | UTOFU_BARRIER_CAP_REDUCE_OP_SUM |
                  UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM,
    .max_uint64_reduction = kMaxReduceItems,
    .max_double_reduction = kMaxReduceSums,
};

int list_tnis(utofu_tni_id_t** tni_ids, size_t* num_tnis) {
  if (tni_ids == nullptr || num_tnis == nullptr)
    return failed(UTOFU_ERR_INVALID_POINTER, "tni_ids or num_tnis is NULL");
  const std::uint32_t count = settings().tni_count;
  auto* ids = static_cast<utofu_tni_id_t*>(std::malloc(count * sizeof(utofu_tni_id_t)));
  if (ids == nullptr) return failed(UTOFU_ERR_OUT_OF_MEMORY, "no memory");
  for (std::uint32_t i = 0; i < count; ++i) ids[i] = static_cast<utofu_tni_id_t>(i);
  *tni_ids = ids;
  *num_tnis = count;
  return UTOFU_SUCCESS;
}

template <class Caps>
int query_caps(utofu_tni_id_t tni_id, Caps& caps, Caps** tni_caps) {
  if (tni_caps == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "tni_caps is NULL");
  if (tni_id >= settings().tni_count) return failed(UTOFU_ERR_INVALID_TNI_ID, "no such TNI");
  *tni_caps = &caps;
  return UTOFU_SUCCESS;
}

}  // namespace

int utofu_get_onesided_tnis(utofu_tni_id_t** tni_ids, size_t* num_tnis) { return list_tnis(tni_ids, num_tnis); }

int utofu_get_barrier_tnis(utofu_tni_id_t** tni_ids, size_t* num_tnis) { return list_tnis(tni_ids, num_tnis); }

int utofu_query_onesided_caps(utofu_tni_id_t tni_id, struct utofu_onesided_caps** tni_caps) {
  return query_caps(tni_id, read_once<utofu_onesided_caps, read_onesided_caps>(), tni_caps);
}

int utofu_query_barrier_caps(utofu_tni_id_t tni_id, struct utofu_barrier_caps** tni_caps) {
  return query_caps(tni_id, barrier_caps, tni_caps);
}
