#include "lib/libfabric/credit.h"

#include <utility>

#include "lib/libfabric/halves.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {
namespace {

/// A memory descriptor whose acknowledgements are counted, and which tells of nothing.
bool open_credit(Core& core, Credit& credit) {
  Interface& ni = interface_of(core);
  CountingEvent* answers = ni.cts.allocate(&credit.ct_handle);
  if (answers == nullptr) return false;
  answers->reset_on_duty();
  answers->let_failures_start();
  MemoryDescriptor* md = ni.mds.allocate(&credit.md_handle);
  if (md == nullptr) {
    ni.cts.free(std::exchange(credit.ct_handle, 0));
    return false;
  }
  *md = {.former = md->former};
  md->segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
  md->options = kMdEventSendDisable | kMdEventSuccessDisable | kMdEventCtAck;
  md->handle = credit.md_handle;
  md->ct_handle = credit.ct_handle;
  return true;
}

}  // namespace

Trigger look_for_turn(Core& core, Credit& credit) {
  const CountingEvent& answers = *interface_of(core).cts.find(credit.ct_handle);
  credit.answered = answers.reached();
  // What has fired and not started yet is still before the next one.
  credit.holds = answers.has_waiting() || !core.fired.empty();
  if (credit.marks - credit.answered < kMostMarks && !credit.holds) return {};
  credit.holds = true;
  return {credit.ct_handle, credit.marks - kMostMarks + 1};
}

bool make_mark(Core& core, Credit& credit, Descriptor* mark) {
  credit.bytes = 0;
  if (credit.md_handle == 0 && !open_credit(core, credit)) return false;
  mark->interface_index = kFabricInterface;
  mark->portals.md_handle = credit.md_handle;
  mark->portals.ack_req = AckRequest::kFull;
  return true;
}

void close_credit(Core& core, Domain& domain, Credit& credit) {
  if (credit.md_handle == 0) return;
  Interface& ni = interface_of(core);
  close_memory(ni, &credit.md_handle);
  take_all_out(domain, core, *ni.cts.find(credit.ct_handle));
  ni.cts.free(credit.ct_handle);
  credit = {};
}

}  // namespace portofu::fabric
