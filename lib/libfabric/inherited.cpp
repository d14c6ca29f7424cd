#include "lib/libfabric/inherited.h"

#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <mutex>
#include <new>
#include <utility>

#include "engine/door/process.h"
#include "lib/libfabric/domain.h"

namespace portofu::fabric {
namespace {

/// All that are open. A child that a signal handler has forked in the middle of a change can walk along them, too.
struct Known {
  ForkMutex mutex;
  Inheritable* first = nullptr;
};
Known known;

/// The calling thread forks.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool holds_known = false;

using Refused = Failing<FI_EOPBADSTATE>;  ///< What was inherited is in no state for a call.

template <class Table>
Table refused = all_calls<Table, Refused>();

int close_nothing(fid*) { return 0; }
fi_ops refused_object = {sizeof(fi_ops), close_nothing, Refused{}, Refused{}, Refused{}, Refused{}, Refused{}};

template <class Fid>
Fid& as(fid& object) {
  return reinterpret_cast<Fid&>(object);
}

void refuse_endpoint(fid_ep& ep) {
  ep.ops = &refused<fi_ops_ep>;
  ep.cm = &refused<fi_ops_cm>;
  ep.msg = &refused<fi_ops_msg>;
  ep.rma = &refused<fi_ops_rma>;
  ep.tagged = &refused<fi_ops_tagged>;
  ep.atomic = &refused<fi_ops_atomic>;
}

void refuse_tables(fid& object) {
  switch (object.fclass) {
    case FI_CLASS_DOMAIN:
      as<fid_domain>(object).ops = &refused<fi_ops_domain>;
      as<fid_domain>(object).mr = &refused<fi_ops_mr>;
      break;
    case FI_CLASS_EP:
    case FI_CLASS_SEP:
    case FI_CLASS_TX_CTX:
    case FI_CLASS_RX_CTX:
    case FI_CLASS_SRX_CTX: refuse_endpoint(as<fid_ep>(object)); break;
    case FI_CLASS_AV: as<fid_av>(object).ops = &refused<fi_ops_av>; break;
    case FI_CLASS_CQ: as<fid_cq>(object).ops = &refused<fi_ops_cq>; break;
    case FI_CLASS_CNTR: as<fid_cntr>(object).ops = &refused<fi_ops_cntr>; break;
    case FI_CLASS_EQ: as<fid_eq>(object).ops = &refused<fi_ops_eq>; break;
    case FI_CLASS_WAIT: as<fid_wait>(object).ops = &refused<fi_ops_wait>; break;
    case FI_CLASS_POLL: as<fid_poll>(object).ops = &refused<fi_ops_poll>; break;
    default: break;  // It has no calls but those of all.
  }
}

}  // namespace

Inheritable::Inheritable(struct fid& object) : object_(object) {
  const std::lock_guard lock(known.mutex);
  link();
}

void Inheritable::link() {
  previous_ = nullptr;
  next_ = known.first;
  if (next_ != nullptr) next_->previous_ = this;
  known.first = this;
}

void Inheritable::link_behind(Inheritable* last) {
  previous_ = last;
  next_ = nullptr;
  (last != nullptr ? last->next_ : known.first) = this;
}

Inheritable::~Inheritable() {
  const std::lock_guard lock(known.mutex);
  (previous_ != nullptr ? previous_->next_ : known.first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void hold_inherited() {
  // What a signal handler has interrupted, it does not wait for.
  holds_known = !ForkMutex::has_this_thread_one();
  if (holds_known) known.mutex.lock();
}

void give_inherited() {
  if (std::exchange(holds_known, false)) known.mutex.unlock();
}

void refuse_inherited() {
  new (&known.mutex) ForkMutex;
  holds_known = false;
  Inheritable* rest = std::exchange(known.first, nullptr);
  Inheritable* last = nullptr;
  while (rest != nullptr) {
    Inheritable& each = *std::exchange(rest, rest->next_);
    if (each.object_.fclass == FI_CLASS_FABRIC) {
      inherit_fabric(*object_of<Fabric>(&each.object_));
      each.link_behind(std::exchange(last, &each));
      continue;
    }
    refuse_tables(each.object_);
    each.object_.ops = &refused_object;
    each.object_.fclass = FI_CLASS_UNSPEC;  // So it is bound to nothing, and nothing waits for it.
  }
}

}  // namespace portofu::fabric
