// 3.7.1 and 3.7.2: start functions and preparation functions. Each names its arguments; toq.cpp does the rest.

#include <cstring>

#include "lib/utofu/direct.h"
#include "lib/utofu/toq.h"

using namespace portofu;
using namespace portofu::utofu;

namespace {

Destination to_toq(void* callback_data) { return {.callback_data = callback_data}; }

Destination to_memory(void* desc, std::size_t* desc_size) {
  return {.desc = desc, .desc_size = desc_size, .prepares = true};
}

/// What every request to a peer has; the caller adds what is its own.
/// @param local  the local STADD, or a value
Request request_of(PacketType kind, utofu_vcq_id_t rmt_vcq_id, std::uint64_t local, utofu_stadd_t rmt_stadd,
                   std::size_t length, std::uint64_t edata, unsigned long flags) {
  Request r;
  r.kind = kind;
  r.remote_vcq_id = rmt_vcq_id;
  r.local = local;
  r.remote_stadd = rmt_stadd;
  r.length = length;
  r.edata = edata;
  r.flags = flags;
  return r;
}

Request put_of(utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, std::size_t length,
               std::uint64_t edata, unsigned long flags) {
  return request_of(PacketType::kTofuPut, rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags);
}

Request get_of(utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd, std::size_t length,
               std::uint64_t edata, unsigned long flags) {
  return request_of(PacketType::kTofuGet, rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags);
}

Request piggyback_of(utofu_vcq_id_t rmt_vcq_id, const void* lcl_data, utofu_stadd_t rmt_stadd, std::size_t length,
                     std::uint64_t edata, unsigned long flags) {
  Request r = request_of(PacketType::kTofuPiggyback, rmt_vcq_id, 0, rmt_stadd, length, edata, flags);
  r.data = lcl_data;
  r.has_data = true;
  return r;
}

Request piggyback8_of(utofu_vcq_id_t rmt_vcq_id, std::uint64_t lcl_data, utofu_stadd_t rmt_stadd, std::size_t length,
                      std::uint64_t edata, unsigned long flags) {
  return request_of(PacketType::kTofuPiggyback, rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags);
}

/// @param bytes  4 or 8
Request armw_of(std::size_t bytes, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op, std::uint64_t op_value,
                utofu_stadd_t rmt_stadd, std::uint64_t edata, unsigned long flags) {
  Request r = request_of(PacketType::kTofuArmw, rmt_vcq_id, op_value, rmt_stadd, bytes, edata, flags);
  r.armw_op = armw_op < UTOFU_ARMW_OP_SWAP ? -1 : static_cast<int>(armw_op);
  return r;
}

/// @param bytes  4 or 8
Request cswap_of(std::size_t bytes, utofu_vcq_id_t rmt_vcq_id, std::uint64_t old_value, std::uint64_t new_value,
                 utofu_stadd_t rmt_stadd, std::uint64_t edata, unsigned long flags) {
  Request r = request_of(PacketType::kTofuArmw, rmt_vcq_id, new_value, rmt_stadd, bytes, edata, flags);
  r.compared = old_value;
  return r;
}

Request in_blocks(Request r, std::size_t stride, std::size_t num_blocks) {
  r.stride = stride;
  r.block_count = num_blocks;
  return r;
}

Request paced(Request r, std::size_t mtu, std::size_t gap) {
  r.mtu = mtu;
  r.gap = gap;
  return r;
}

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// An ARMW in memory that both sides map.
template <class Word>
bool armw_goes_at_once(utofu_vcq_hdl_t hdl, const DirectCall& call, unsigned long flags, AtomicOperation operation,
                       Word value, Word compared = 0) {
  if ((call.stadd & (sizeof(Word) - 1)) != 0) return false;
  return goes_at_once(hdl, call, flags, sizeof(Word),
                      [&](DirectLane& lane) { return armw_at_once<Word>(lane, call, operation, value, compared); });
}

// What the calls with a way for single words do with the rest: kept apart, so that the shortest way stays short.

[[gnu::noinline]] int put_data(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                               utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                               void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, length, edata, notices_of(flags), cbdata, keeps_order(flags)};
  const auto go = [&](DirectLane& lane) { return put_at_once(lane, call, lcl_stadd); };
  if (goes_at_once(vcq_hdl, call, flags, UINT64_MAX, go)) return UTOFU_SUCCESS;
  return submit(vcq_hdl, put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), to_toq(cbdata));
}

[[gnu::noinline]] int put_piggyback8_data(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data,
                                          utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                                          unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, length, edata, notices_of(flags), cbdata, keeps_order(flags)};
  const auto go = [&](DirectLane& lane) {
    return piggyback_at_once(lane, call, reinterpret_cast<const std::byte*>(&lcl_data));
  };
  if (goes_at_once(vcq_hdl, call, flags, sizeof lcl_data, go)) return UTOFU_SUCCESS;
  return submit(vcq_hdl, piggyback8_of(rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags), to_toq(cbdata));
}

}  // namespace

int utofu_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
              size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  if (is_word(length, edata, flags)) [[likely]] {
    const LaneUse use(door_of(vcq_hdl), vcq_hdl);
    if (DirectLane* const lane = use.lane()) [[likely]] {
      const DirectCall call{rmt_vcq_id, rmt_stadd, length, edata, notices_of(flags), cbdata, keeps_order(flags)};
      const std::byte* const from = lane->find_local(lcl_stadd, sizeof(std::uint64_t), false, true);
      if (from != nullptr && put_word_at_once(*lane, call, word_at(from))) [[likely]]
        return UTOFU_SUCCESS;
    }
  }
  return put_data(vcq_hdl, rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags, cbdata);
}

int utofu_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
                  size_t length, uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  return submit(vcq_hdl, paced(put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), mtu, gap),
                to_toq(cbdata));
}

int utofu_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                     utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                     unsigned long int flags, void* cbdata) {
  return submit(vcq_hdl, in_blocks(put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks),
                to_toq(cbdata));
}

int utofu_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                         utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                         unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  return submit(
      vcq_hdl,
      paced(in_blocks(put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks), mtu, gap),
      to_toq(cbdata));
}

int utofu_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void* lcl_data, utofu_stadd_t rmt_stadd,
                        size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, length, edata, notices_of(flags), cbdata, keeps_order(flags)};
  const auto go = [&](DirectLane& lane) {
    return piggyback_at_once(lane, call, static_cast<const std::byte*>(lcl_data));
  };
  if (lcl_data != nullptr && goes_at_once(vcq_hdl, call, flags, kMaxPiggybackBytes, go)) return UTOFU_SUCCESS;
  return submit(vcq_hdl, piggyback_of(rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags), to_toq(cbdata));
}

int utofu_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data, utofu_stadd_t rmt_stadd,
                         size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  if (is_word(length, edata, flags)) [[likely]] {
    const LaneUse use(door_of(vcq_hdl), vcq_hdl);
    if (DirectLane* const lane = use.lane()) [[likely]] {
      const DirectCall call{rmt_vcq_id, rmt_stadd, length, edata, notices_of(flags), cbdata, keeps_order(flags)};
      if (put_word_at_once(*lane, call, lcl_data)) [[likely]]
        return UTOFU_SUCCESS;
    }
  }
  return put_piggyback8_data(vcq_hdl, rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags, cbdata);
}

int utofu_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
              size_t length, uint64_t edata, unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, length, edata, notices_of(flags), cbdata, keeps_order(flags)};
  const auto go = [&](DirectLane& lane) { return get_at_once(lane, call, lcl_stadd); };
  if (goes_at_once(vcq_hdl, call, flags, UINT64_MAX, go)) return UTOFU_SUCCESS;
  return submit(vcq_hdl, get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), to_toq(cbdata));
}

int utofu_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd, utofu_stadd_t rmt_stadd,
                  size_t length, uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  return submit(vcq_hdl, paced(get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), mtu, gap),
                to_toq(cbdata));
}

int utofu_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                     utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                     unsigned long int flags, void* cbdata) {
  return submit(vcq_hdl, in_blocks(get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks),
                to_toq(cbdata));
}

int utofu_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                         utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                         unsigned long int flags, size_t mtu, size_t gap, void* cbdata) {
  return submit(
      vcq_hdl,
      paced(in_blocks(get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks), mtu, gap),
      to_toq(cbdata));
}

int utofu_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op, uint32_t op_value,
                utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, 4, edata, notices_of(flags), cbdata, keeps_order(flags)};
  AtomicOperation operation = AtomicOperation::kSum;
  if (find_operation(armw_op, &operation) && armw_goes_at_once(vcq_hdl, call, flags, operation, op_value))
    return UTOFU_SUCCESS;
  return submit(vcq_hdl, armw_of(4, rmt_vcq_id, armw_op, op_value, rmt_stadd, edata, flags), to_toq(cbdata));
}

int utofu_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op, uint64_t op_value,
                utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, 8, edata, notices_of(flags), cbdata, keeps_order(flags)};
  AtomicOperation operation = AtomicOperation::kSum;
  if (find_operation(armw_op, &operation) && armw_goes_at_once(vcq_hdl, call, flags, operation, op_value))
    return UTOFU_SUCCESS;
  return submit(vcq_hdl, armw_of(8, rmt_vcq_id, armw_op, op_value, rmt_stadd, edata, flags), to_toq(cbdata));
}

int utofu_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value, uint32_t new_value,
                 utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, 4, edata, notices_of(flags), cbdata, keeps_order(flags)};
  if (armw_goes_at_once(vcq_hdl, call, flags, AtomicOperation::kCswap, new_value, old_value)) return UTOFU_SUCCESS;
  return submit(vcq_hdl, cswap_of(4, rmt_vcq_id, old_value, new_value, rmt_stadd, edata, flags), to_toq(cbdata));
}

int utofu_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value, uint64_t new_value,
                 utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata) {
  const DirectCall call{rmt_vcq_id, rmt_stadd, 8, edata, notices_of(flags), cbdata, keeps_order(flags)};
  if (armw_goes_at_once(vcq_hdl, call, flags, AtomicOperation::kCswap, new_value, old_value)) return UTOFU_SUCCESS;
  return submit(vcq_hdl, cswap_of(8, rmt_vcq_id, old_value, new_value, rmt_stadd, edata, flags), to_toq(cbdata));
}

int utofu_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void* cbdata) {
  return submit(vcq_hdl, Request{.kind = PacketType::kTofuNop, .flags = flags}, to_toq(cbdata));
}

int utofu_prepare_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                      utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, void* desc,
                      size_t* desc_size) {
  return submit(vcq_hdl, put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), to_memory(desc, desc_size));
}

int utofu_prepare_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                          utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, size_t mtu,
                          size_t gap, void* desc, size_t* desc_size) {
  return submit(vcq_hdl, paced(put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), mtu, gap),
                to_memory(desc, desc_size));
}

int utofu_prepare_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                             utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                             unsigned long int flags, void* desc, size_t* desc_size) {
  return submit(vcq_hdl, in_blocks(put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks),
                to_memory(desc, desc_size));
}

int utofu_prepare_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                 utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                 uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* desc,
                                 size_t* desc_size) {
  return submit(
      vcq_hdl,
      paced(in_blocks(put_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks), mtu, gap),
      to_memory(desc, desc_size));
}

int utofu_prepare_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void* lcl_data,
                                utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                void* desc, size_t* desc_size) {
  return submit(vcq_hdl, piggyback_of(rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags),
                to_memory(desc, desc_size));
}

int utofu_prepare_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data,
                                 utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                 void* desc, size_t* desc_size) {
  return submit(vcq_hdl, piggyback8_of(rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags),
                to_memory(desc, desc_size));
}

int utofu_prepare_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                      utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, void* desc,
                      size_t* desc_size) {
  return submit(vcq_hdl, get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), to_memory(desc, desc_size));
}

int utofu_prepare_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                          utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, size_t mtu,
                          size_t gap, void* desc, size_t* desc_size) {
  return submit(vcq_hdl, paced(get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), mtu, gap),
                to_memory(desc, desc_size));
}

int utofu_prepare_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                             utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                             unsigned long int flags, void* desc, size_t* desc_size) {
  return submit(vcq_hdl, in_blocks(get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks),
                to_memory(desc, desc_size));
}

int utofu_prepare_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                 utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                 uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* desc,
                                 size_t* desc_size) {
  return submit(
      vcq_hdl,
      paced(in_blocks(get_of(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags), stride, num_blocks), mtu, gap),
      to_memory(desc, desc_size));
}

int utofu_prepare_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                        uint32_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                        size_t* desc_size) {
  return submit(vcq_hdl, armw_of(4, rmt_vcq_id, armw_op, op_value, rmt_stadd, edata, flags),
                to_memory(desc, desc_size));
}

int utofu_prepare_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                        uint64_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                        size_t* desc_size) {
  return submit(vcq_hdl, armw_of(8, rmt_vcq_id, armw_op, op_value, rmt_stadd, edata, flags),
                to_memory(desc, desc_size));
}

int utofu_prepare_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value, uint32_t new_value,
                         utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                         size_t* desc_size) {
  return submit(vcq_hdl, cswap_of(4, rmt_vcq_id, old_value, new_value, rmt_stadd, edata, flags),
                to_memory(desc, desc_size));
}

int utofu_prepare_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value, uint64_t new_value,
                         utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* desc,
                         size_t* desc_size) {
  return submit(vcq_hdl, cswap_of(8, rmt_vcq_id, old_value, new_value, rmt_stadd, edata, flags),
                to_memory(desc, desc_size));
}

int utofu_prepare_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void* desc, size_t* desc_size) {
  return submit(vcq_hdl, Request{.kind = PacketType::kTofuNop, .flags = flags}, to_memory(desc, desc_size));
}
