#include "lib/utofu/toq.h"

#include <cstring>
#include <new>

#include "engine/door/process.h"
#include "engine/door/tofu.h"
#include "lib/utofu/direct.h"

namespace portofu::utofu {
namespace {

constexpr unsigned long kKnownOnesidedFlags =
    kStrongFlags | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_PADDING |
    UTOFU_ONESIDED_FLAG_CACHE_INJECTION | UTOFU_ONESIDED_FLAG_DELAY_START | UTOFU_ONESIDED_FLAG_TCQ_NOTICE |
    UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_SPS(15) | UTOFU_ONESIDED_FLAG_PATH(255);

int check_flags(unsigned long flags) {
  if ((flags & ~kKnownOnesidedFlags) != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
  const auto path = static_cast<std::uint32_t>(flags >> 28 & 255);
  if (path != 0 && ((path & 0xf0) != 0x10 || !is_path(unpack_path(path & 15))))
    return failed(UTOFU_ERR_INVALID_PATH_ID, "not a path id");
  return UTOFU_SUCCESS;
}

std::size_t most_bytes(const Request& request, const Settings& limits) {
  if (request.kind != PacketType::kTofuPiggyback) return limits.max_putget_bytes;
  return request.has_data ? kMaxPiggybackBytes : sizeof request.local;
}

int check(const Request& r, const Settings& limits) {
  if (const int rc = check_flags(r.flags); rc != UTOFU_SUCCESS) return rc;
  if (r.kind == PacketType::kTofuNop) return UTOFU_SUCCESS;
  if (!is_vcq_id(r.remote_vcq_id)) return failed(UTOFU_ERR_INVALID_VCQ_ID, "not a VCQ id");
  if (r.edata >> (8 * kMaxEdataBytes) != 0) return failed(UTOFU_ERR_INVALID_EDATA, "edata is too large");
  if (r.length > most_bytes(r, limits)) return failed(UTOFU_ERR_INVALID_SIZE, "too many bytes");
  if (r.has_data && r.data == nullptr && r.length != 0) return failed(UTOFU_ERR_INVALID_POINTER, "lcl_data is NULL");
  if (r.mtu > limits.max_mtu || r.gap > limits.max_gap) return failed(UTOFU_ERR_INVALID_ARG, "mtu or gap is too large");
  if (r.kind != PacketType::kTofuArmw) return UTOFU_SUCCESS;
  if (r.armw_op < 0 || r.armw_op > UTOFU_ARMW_OP_OR) return failed(UTOFU_ERR_INVALID_OP, "no such operation");
  return UTOFU_SUCCESS;
}

std::uint16_t meta_of(const Request& r) {
  std::uint64_t meta = r.edata | (r.flags >> 24 & 15) << kTofuStepsShift;
  if ((r.flags & UTOFU_ONESIDED_FLAG_TCQ_NOTICE) != 0) meta |= kTofuTcqNotice;
  if ((r.flags & UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE) != 0) meta |= kTofuLocalNotice;
  if ((r.flags & UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE) != 0) meta |= kTofuRemoteNotice;
  if ((r.flags & kStrongFlags) != 0) meta |= kTofuStrongOrder;
  return static_cast<std::uint16_t>(meta);
}

/// What every descriptor says. @param block  which of several
[[gnu::always_inline]] inline TofuDescriptor head_of(const Request& r, std::size_t block) {
  TofuDescriptor head;
  head.kind = r.kind;
  head.meta = meta_of(r);
  head.length = static_cast<std::uint32_t>(r.length);
  head.remote_vcq_id = r.remote_vcq_id;
  head.remote_stadd = r.remote_stadd + block * r.stride;
  head.local = r.local + block * r.stride;
  return head;
}

TofuCell make_cell(const Request& r, std::size_t block) {
  TofuCell cell;
  cell.head = head_of(r, block);
  if (r.kind == PacketType::kTofuArmw) {
    AtomicOperation operation = AtomicOperation::kCswap;
    find_operation(r.armw_op, &operation);
    cell.head.code = static_cast<std::uint8_t>(operation);
    if (r.length == 8) cell.head.code |= kTofuCodeWide;
    if (operation == AtomicOperation::kCswap) {
      cell.head.code |= kTofuCodeLong;
      std::memcpy(cell.more.data(), &r.compared, sizeof r.compared);
    }
  }
  if (r.has_data) {
    cell.head.code |= kTofuCodeLong;
    if (r.length > 0) std::memcpy(cell.more.data(), r.data, r.length);
  }
  return cell;
}

/// What the engine posts for a descriptor whose fields are in range, and that brings no data.
[[gnu::always_inline]] inline Descriptor expand_head(const VirtualControlQueue& vcq, const TofuDescriptor& head) {
  Descriptor d;
  d.type = head.kind;
  d.interface_index = kTofuInterface;
  d.tofu_meta = head.meta;
  d.remote_stadd = head.remote_stadd;
  d.length = head.length;
  d.tofu = {vcq.handle, false, head.remote_vcq_id, head.local, 0};
  return d;
}

/// The same for one with all that it brings.
Descriptor expand(const VirtualControlQueue& vcq, const TofuCell& cell) {
  const TofuDescriptor& head = cell.head;
  Descriptor d = expand_head(vcq, head);
  const bool is_long = (head.code & kTofuCodeLong) != 0;
  if (head.kind == PacketType::kTofuArmw) {
    d.atomic_operation = head.code & kTofuCodeOperation;
    d.atomic_type =
        static_cast<std::uint8_t>((head.code & kTofuCodeWide) != 0 ? AtomicType::kUint64 : AtomicType::kUint32);
    d.operand = {};
    if (is_long) std::memcpy(d.operand.data(), cell.more.data(), 8);
    std::memcpy(d.operand.data() + 8, &head.local, 8);
  } else if (head.kind == PacketType::kTofuPiggyback) {
    d.type = PacketType::kTofuPut;
    d.tofu.brings_data = true;
    if (is_long) {
      copy_fresh_words(d.operand, cell.more);
    } else {
      std::memcpy(d.operand.data(), &head.local, sizeof head.local);
    }
  }
  return d;
}

/// What the engine posts for a request. Puts and gets need no cell in between.
Descriptor describe(const VirtualControlQueue& vcq, const Request& r, std::size_t block) {
  const bool brings_nothing = r.kind == PacketType::kTofuPut || r.kind == PacketType::kTofuGet;
  return brings_nothing ? expand_head(vcq, head_of(r, block)) : expand(vcq, make_cell(r, block));
}

[[gnu::always_inline]] inline void start_untold(Core& core, VirtualControlQueue& vcq, Descriptor& d) {
  if (!vcq.session) return start_descriptor(core, d);
  arm_operation(core, vcq.steps, d, {vcq.handle, vcq.posted + 1});
  ++vcq.posted;
}

[[gnu::cold, gnu::noinline]] void start_told(Core& core, VirtualControlQueue& vcq, Descriptor& d) {
  if (Checker* const checker = core.checker()) checker->tofu.starts(core, vcq, d);
  start_untold(core, vcq, d);
}

[[gnu::always_inline]] inline void start(Core& core, VirtualControlQueue& vcq, Descriptor& d) {
  if (core.observers != nullptr) [[unlikely]]
    return start_told(core, vcq, d);
  start_untold(core, vcq, d);
}

void start_delayed(Core& core, VirtualControlQueue& vcq) {
  while (!vcq.delayed.empty()) {
    Descriptor d = vcq.delayed.front();  // It stays where it is if there is no memory to start it.
    start(core, vcq, d);
    vcq.delayed.pop_front();
  }
}

/// What was held back starts if it is in the way (3.7.9.1: the flag "may be ignored if the TOQ is full"). Otherwise a
/// program that polls and tries again, as 3.7.1.1 says, would find no room for ever.
/// @return whether there is room now
[[gnu::cold, gnu::noinline]] bool make_room(Core& core, VirtualControlQueue& vcq, std::size_t count) {
  start_delayed(core, vcq);
  return vcq.tcq.has_room(count);
}

void post(Core& core, VirtualControlQueue& vcq, Descriptor&& d, void* callback_data, bool delays) {
  d.tofu.tcq_place = vcq.tcq.take(callback_data, (d.tofu_meta & kTofuTcqNotice) != 0);
  if (delays) {
    vcq.delayed.push_back(d);
    vcq.direct.forget();
  } else {
    start(core, vcq, d);
  }
}

/// Posts the descriptors of a call. Without memory at the first of them nothing has happened, and the call says so. At
/// a later one that descriptor alone fails, and the TCQ tells it (2.2.12).
/// @param post_one  void(std::size_t), posts the descriptor of that number
template <class PostOne>
void post_all(Core& core, VirtualControlQueue& vcq, std::size_t count, PostOne&& post_one) {
  try {
    if (count != 0) post_one(0);
  } catch (const std::bad_alloc&) {
    vcq.tcq.take_back();
    throw;
  }
  for (std::size_t n = 1; n < count; ++n) {
    try {
      post_one(n);
    } catch (const std::bad_alloc&) {
      vcq.tcq.complete(vcq.tcq.last_place(), NiFail::kDropped);
      ++core.activity;
    }
  }
}

[[gnu::cold, gnu::noinline]] void tell_limits(Checker& checker, const Request& request) {
  checker.tofu.uses("utofu_put, utofu_get", kLengthLimit, request.length);
  checker.tofu.uses("utofu_put_gap, utofu_get_gap", kMtuLimit, request.mtu);
  checker.tofu.uses("utofu_put_gap, utofu_get_gap", kGapLimit, request.gap);
}

int post_request(utofu_vcq_hdl_t vcq_hdl, const Request& request, const Settings& limits, void* callback_data) {
  return with_vcq(vcq_hdl, [&](Core& core, VirtualControlQueue& vcq) {
    const RecordedCall call(core, request.kind, request.length * request.block_count);
    if (Checker* const checker = core.checker()) [[unlikely]]
      tell_limits(*checker, request);
    const bool delays = (request.flags & UTOFU_ONESIDED_FLAG_DELAY_START) != 0;
    if (request.block_count > limits.toq_entries)
      return failed(UTOFU_ERR_INVALID_NUMBER, "more blocks than the TOQ has entries");
    if (!vcq.tcq.has_room(request.block_count) && !make_room(core, vcq, request.block_count))
      return failed(UTOFU_ERR_BUSY, "the TOQ or the TCQ is full");
    if (!delays) start_delayed(core, vcq);
    post_all(core, vcq, request.block_count,
             [&](std::size_t block) { post(core, vcq, describe(vcq, request, block), callback_data, delays); });
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int prepare(utofu_vcq_hdl_t vcq_hdl, const Request& request, const Destination& to) {
  if (to.desc == nullptr || to.desc_size == nullptr || reinterpret_cast<std::uintptr_t>(to.desc) % 8 != 0)
    return failed(UTOFU_ERR_INVALID_POINTER, "desc is NULL or not aligned, or desc_size is NULL");
  return with_vcq(vcq_hdl, [&](Core&, const VirtualControlQueue&) {
    auto* at = static_cast<std::byte*>(to.desc);
    for (std::size_t block = 0; block < request.block_count; ++block) {
      const TofuCell cell = make_cell(request, block);
      std::memcpy(at, &cell, cell.bytes());
      at += cell.bytes();
    }
    *to.desc_size = static_cast<std::size_t>(at - static_cast<std::byte*>(to.desc));
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

/// Reads the cell at the front of [at, at + left). What a program has spoiled is found here.
bool read_cell(const std::byte* at, std::size_t left, TofuCell* cell) {
  *cell = TofuCell();
  if (left < kShortTofuDescriptorBytes) return false;
  std::memcpy(&cell->head, at, kShortTofuDescriptorBytes);
  const TofuDescriptor& head = cell->head;
  if (cell->bytes() > left) return false;
  if (cell->bytes() > kShortTofuDescriptorBytes)
    std::memcpy(cell->more.data(), at + kShortTofuDescriptorBytes, cell->more.size());
  const bool is_long = (head.code & kTofuCodeLong) != 0;
  switch (head.kind) {
    case PacketType::kTofuNop: return head.code == 0;
    case PacketType::kTofuPut:
    case PacketType::kTofuGet:
      return head.code == 0 && head.length <= settings().max_putget_bytes && is_vcq_id(head.remote_vcq_id);
    case PacketType::kTofuPiggyback:
      return head.length <= (is_long ? kMaxPiggybackBytes : 8) && is_vcq_id(head.remote_vcq_id);
    case PacketType::kTofuArmw: {
      const auto operation = static_cast<AtomicOperation>(head.code & kTofuCodeOperation);
      const bool compares = operation == AtomicOperation::kCswap;
      return is_armw_operation(operation) && compares == is_long &&
             head.length == ((head.code & kTofuCodeWide) != 0 ? 8u : 4u) && is_vcq_id(head.remote_vcq_id);
    }
    default: return false;
  }
}

}  // namespace

int submit(utofu_vcq_hdl_t vcq_hdl, const Request& request, const Destination& destination) {
  const Settings& limits = settings();
  if (const int rc = check(request, limits); rc != UTOFU_SUCCESS) return rc;
  return destination.prepares ? prepare(vcq_hdl, request, destination)
                              : post_request(vcq_hdl, request, limits, destination.callback_data);
}

}  // namespace portofu::utofu

using namespace portofu;
using namespace portofu::utofu;

int utofu_post_toq(utofu_vcq_hdl_t vcq_hdl, void* desc, size_t desc_size, void* cbdata) {
  if (desc_size != 0 && desc == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "desc is NULL");
  return with_vcq(vcq_hdl, [&](Core& core, VirtualControlQueue& vcq) {
    const RecordedCall call(core, ApiCall::kPostToq, desc_size);
    const auto* const first = static_cast<const std::byte*>(desc);
    TofuCell cell;
    std::size_t count = 0;
    for (std::size_t at = 0; at < desc_size; at += cell.bytes(), ++count) {
      if (!read_cell(first + at, desc_size - at, &cell))
        return failed(UTOFU_ERR_INVALID_DESC, "not a prepared descriptor");
    }
    if (count > settings().toq_entries)
      return failed(UTOFU_ERR_INVALID_SIZE, "more descriptors than the TOQ has entries");
    if (!vcq.tcq.has_room(count) && !make_room(core, vcq, count))
      return failed(UTOFU_ERR_BUSY, "the TOQ or the TCQ is full");
    start_delayed(core, vcq);
    std::size_t at = 0;
    post_all(core, vcq, count, [&](std::size_t) {
      read_cell(first + at, desc_size - at, &cell);
      at += cell.bytes();
      post(core, vcq, expand(vcq, cell), cbdata, false);
    });
    return static_cast<int>(UTOFU_SUCCESS);
  });
}
