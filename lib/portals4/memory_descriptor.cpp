// 3.10 Memory descriptors.

#include "engine/door/process.h"
#include "lib/portals4/region.h"

using namespace portofu;
using namespace portofu::portals;

static_assert(PTL_MD_EVENT_SEND_DISABLE == kMdEventSendDisable &&
              PTL_MD_EVENT_SUCCESS_DISABLE == kMdEventSuccessDisable);
static_assert(PTL_MD_EVENT_CT_SEND == kMdEventCtSend && PTL_MD_EVENT_CT_REPLY == kMdEventCtReply);
static_assert(PTL_MD_EVENT_CT_ACK == kMdEventCtAck && PTL_MD_EVENT_CT_BYTES == kMdEventCtBytes);
static_assert(PTL_MD_UNORDERED == kMdUnordered && PTL_MD_VOLATILE == kMdVolatile && PTL_MD_UNRELIABLE == kMdUnreliable);

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md, ptl_handle_md_t* md_handle) {
  const auto bind = [&](Core&, Interface& ni) {
    if (md == nullptr || md_handle == nullptr || (md->options & ~PTL_MD_OPTIONS_MASK) != 0) return PTL_ARG_INVALID;
    if (!is_eq_or_none(ni, md->eq_handle) || !is_ct_or_none(ni, md->ct_handle)) return PTL_ARG_INVALID;
    MemorySegment segment;
    const Region region{md->start, md->length, (md->options & PTL_IOVEC) != 0};
    if (const int rc = describe(ni, region, &segment); rc != PTL_OK) return rc;
    Handle handle = 0;
    MemoryDescriptor* descriptor = ni.mds.allocate(&handle);
    if (descriptor == nullptr) return PTL_NO_SPACE;
    *descriptor = {std::move(segment),        md->options, handle, eq_or_zero(md->eq_handle),
                   ct_or_zero(md->ct_handle), 0,           false,  ni.mds.use_of(handle)};
    *md_handle = handle;
    return PTL_OK;
  };
  return guarded([&] { return with_interface(ni_handle, bind); });
}

int PtlMDRelease(ptl_handle_md_t md_handle) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  const Engine::Duty duty(*engine);
  Interface* ni = home_of(duty.core(), md_handle);
  MemoryDescriptor* md = ni != nullptr ? ni->mds.find(md_handle) : nullptr;
  if (md == nullptr || md->released) return PTL_ARG_INVALID;
  if (Checker* const checker = duty.core().checker()) [[unlikely]]
    checker->portals.releases(*md);
  // With operations pending the slot stays until their last SEND or REPLY; the handle is invalid from now on.
  md->released = true;
  ++md->pending;
  end_operation(*ni, *md);
  return PTL_OK;
}
