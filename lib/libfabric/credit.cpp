#include "lib/libfabric/credit.h"

#include <utility>

#include "engine/door/libfabric.h"
#include "lib/libfabric/endpoint.h"
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
  *md = {};
  md->use = ni.mds.use_of(credit.md_handle);
  md->segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
  md->options = kMdEventSendDisable | kMdEventSuccessDisable | kMdEventCtAck;
  md->handle = credit.md_handle;
  md->ct_handle = credit.ct_handle;
  return true;
}

}  // namespace

void take_if_awaited(Core& core) { answer_if_awaited(core, interface_of(core)); }

void note_miss(Core& core) {
  Interface& ni = interface_of(core);
  ni.is_awaited = true;
  give_late_answers(core, ni);
}

void note_sleep(Core& core, const Domain& domain, bool& is_slept_at, bool sleeps) {
  if (std::exchange(is_slept_at, sleeps)) --domain.lane->sleepers;
  if (sleeps) ++domain.lane->sleepers;
  look_after_sleepers(core, *domain.lane);
}

void look_after_sleepers(Core& core, const Lane& lane) {
  Interface& ni = interface_of(core);
  ni.is_slept_at = lane.sleepers != 0 && waits_for_message(ni);
  if (ni.is_slept_at) give_late_answers(core, ni);
}

namespace {

/// Looks what has been answered, and whether messages are held.
void look_at_answers(Core& core, Credit& credit) {
  const CountingEvent& answers = *interface_of(core).cts.find(credit.ct_handle);
  credit.answered = answers.reached();
  // What has fired and not started yet is still before the next one.
  credit.holds = answers.has_waiting() || !core.fired.empty();
}

/// When what is held now has left.
Trigger after_held(const Credit& credit) { return {credit.ct_handle, credit.marks - kMostMarks + 1}; }

}  // namespace

Trigger turn_behind_held(Core& core, Credit& credit) {
  if (credit.holds) look_at_answers(core, credit);
  return credit.holds ? after_held(credit) : Trigger{};
}

Trigger look_for_turn(Core& core, Credit& credit) {
  look_at_answers(core, credit);
  if (credit.marks - credit.answered < kMostMarks && !credit.holds) return {};
  credit.holds = true;
  return after_held(credit);
}

bool make_mark(Core& core, Credit& credit, Descriptor* mark) {
  credit.bytes = 0;
  if (credit.md_handle == 0 && !open_credit(core, credit)) return false;
  mark->interface_index = kFabricInterface;
  mark->portals.md_handle = credit.md_handle;
  mark->portals.ack_req = AckRequest::kCount;  // A fence does not wait for it.
  return true;
}

void close_credit(Core& core, Domain& domain, Credit& credit) {
  if (credit.md_handle == 0) return;
  Interface& ni = interface_of(core);
  close_memory(ni, ni.mds.find(std::exchange(credit.md_handle, 0)));
  take_all_out(domain, core, *ni.cts.find(credit.ct_handle));
  ni.cts.free(credit.ct_handle);
  credit = {};
}

}  // namespace portofu::fabric
