// fi_poll(3): poll sets.

#include <memory>
#include <mutex>
#include <new>

#include "lib/libfabric/cntr.h"
#include "lib/libfabric/cq.h"
#include "lib/libfabric/credit.h"

namespace portofu::fabric {
namespace {

struct PollSet {
  fid_poll fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  std::mutex mutex;  ///< Guards `members`.
  struct Member {
    struct fid* object;
    CounterState seen;  ///< Of a counter, when it was last reported.
  };
  std::vector<Member> members;

  bool remove(const struct fid* object) {
    const std::lock_guard lock(mutex);
    return std::erase_if(members, [object](const Member& member) { return member.object == object; }) > 0;
  }
};

/// Those of the process, for queues and counters that close.
struct PollSets {
  std::mutex mutex;  ///< Guards `sets`; taken before that of a set.
  std::vector<PollSet*> sets;
};
PollSets open_sets;

CounterState state_of(const CounterFid& cntr) {
  const Engine::Duty duty(*cntr.domain->engine);
  return cntr.state(duty.core());
}

bool has_news(PollSet::Member& member) {
  if (member.object->fclass == FI_CLASS_CQ) return is_ready(*object_of<CompletionQueue>(member.object));
  const CounterFid& cntr = *object_of<CounterFid>(member.object);
  const Engine::Duty duty(*cntr.domain->engine);
  const CounterState now = cntr.state(duty.core());
  const bool is_news = std::exchange(member.seen, now) != now;
  if (!is_news) note_vain_look(duty.core());
  return is_news;
}

int poll(fid_poll* fid, void** contexts, int count) {
  auto* set = object_of<PollSet>(fid);
  set->domain->engine->step();
  const std::lock_guard lock(set->mutex);
  int found = 0;
  for (PollSet::Member& member : set->members) {
    if (found < count && has_news(member)) contexts[found++] = member.object->context;
  }
  return found;
}

int add(fid_poll* fid, struct fid* object, std::uint64_t flags) {
  return guarded([&] {
    auto* set = object_of<PollSet>(fid);
    if (flags != 0 || object == nullptr || (object->fclass != FI_CLASS_CQ && object->fclass != FI_CLASS_CNTR))
      return -FI_EINVAL;
    const std::lock_guard lock(set->mutex);
    const bool counts = object->fclass == FI_CLASS_CNTR;
    set->members.push_back({object, counts ? state_of(*object_of<CounterFid>(object)) : CounterState{}});
    return 0;
  });
}

int remove(fid_poll* fid, struct fid* object, std::uint64_t flags) {
  return flags == 0 && object_of<PollSet>(fid)->remove(object) ? 0 : -FI_EINVAL;
}

int close(fid* object) {
  auto* set = object_of<PollSet>(object);
  {
    const std::scoped_lock lock(open_sets.mutex, set->mutex);
    if (!set->members.empty()) return -FI_EBUSY;
    std::erase(open_sets.sets, set);
  }
  --set->domain->users;
  delete set;
  return 0;
}

fi_ops object_calls = {sizeof(fi_ops), close, refuse_bind, refuse_control, refuse_ops, NotThere{}, NotThere{}};
fi_ops_poll calls = {sizeof(fi_ops_poll), poll, add, remove};

}  // namespace

void forget_poll_sets() { new (&open_sets) PollSets; }

void leave_poll_sets(const fid* object) {
  const std::lock_guard lock(open_sets.mutex);
  for (PollSet* set : open_sets.sets) set->remove(object);
}

int open_poll(fid_domain* domain, fi_poll_attr* attr, fid_poll** opened) {
  return guarded([&] {
    if (attr != nullptr && attr->flags != 0) return -FI_EINVAL;
    auto set = std::make_unique<PollSet>();
    set->domain = object_of<Domain>(domain);
    const std::lock_guard lock(open_sets.mutex);
    open_sets.sets.push_back(set.get());
    ++set->domain->users;
    set->fid.fid = {FI_CLASS_POLL, nullptr, &object_calls};
    set->fid.ops = &calls;
    *opened = &set.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
