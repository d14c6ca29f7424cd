#pragma once
// Fabric and domain: what everything else is opened from. @spec fi_fabric(3), fi_domain(3)

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lib/libfabric/inherited.h"
#include "lib/libfabric/library.h"

namespace portofu::fabric {

struct CounterFid;
struct EventQueueFid;
struct Gate;
struct MemoryRegion;
struct Receive;

/// Every object counts those that need it; it cannot be closed before them (-FI_EBUSY).
using Users = std::atomic<std::uint32_t>;

struct Fabric {
  fid_fabric fid{};
  Inheritable inherited{fid.fid};
  Users users{0};
  Fabric* opened_next = nullptr;  ///< Which of those that are open was opened next (fabric.cpp).
};

struct Domain;

/// What waits for a counter and is no descriptor, kept alive in Domain::local_calls.
struct KeptCall : LocalCall {
  Domain* domain = nullptr;
  Handle changes = 0;                  ///< Counter that it, or what it starts, will change; 0: none.
  const Descriptor* starts = nullptr;  ///< The transfer that it starts, if that has been made already.
};

struct Domain {
  Domain();
  ~Domain();

  fid_domain fid{};
  Inheritable inherited{fid.fid};
  Fabric* fabric = nullptr;
  Lane* lane = nullptr;      ///< Where it is, with all that is opened from it; its own until it is destroyed.
  Engine* engine = nullptr;  ///< Of the lane.
  Users users{0};
  EventQueueFid* eq = nullptr;       ///< Bound to it.
  bool tells_regions = false;        ///< FI_REG_MR: registrations are told at `eq`.
  std::uint32_t address_format = 0;  ///< What applications see of addresses.
  bool virtual_addresses = false;    ///< FI_MR_VIRT_ADDR: remote addresses are the target's, not offsets.
  bool chooses_keys = false;         ///< FI_MR_PROV_KEY.
  bool binds_regions = false;        ///< FI_MR_ENDPOINT: a region is reached through one endpoint.
  bool enables_regions = false;      ///< FI_MR_RMA_EVENT: a region with FI_RMA_EVENT is reached when it is enabled.
  std::uint64_t next_key = 1;        ///< On duty: of `chooses_keys`.
  std::unordered_map<Handle, std::unique_ptr<Gate>> gates;  ///< On duty, by counter: of operations in several parts.
  std::vector<Gate*> idle_gates;                            ///< On duty: of operations that are over.
  std::vector<Gate*> left_gates;      ///< On duty: of those that nobody is told of; parts may still run.
  std::vector<CounterFid*> counters;  ///< On duty: those of the application.
  std::unordered_map<const LocalCall*, std::shared_ptr<KeptCall>> local_calls;  ///< On duty.
  std::vector<Receive*> receivers;                                              ///< On duty: enabled endpoints.
  /// On duty, by key: whose memory others may reach, or will when they are enabled.
  std::unordered_map<std::uint64_t, MemoryRegion*> regions;
};

template <class Object, class Fid>
Object* object_of(Fid* fid) {
  return reinterpret_cast<Object*>(fid);  // Each begins with its fid.
}

/// fi_provider::fabric.
int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context);

/// In the child of a fork: a fabric is its own, too, and nothing is open there. Of those that were opened first, last.
void inherit_fabric(Fabric& fabric);

/// Says in what fi_getinfo returns which fabric and which domain are open: what the hints name, else the first ones.
/// @return 0 | -FI_ENODATA: what the hints name is not ours, or not of one another
int name_opened(const fi_info* hints, fi_info& info);

/// Nothing to bind, to control or to open.
int refuse_bind(fid* object, fid* other, std::uint64_t flags);
int refuse_control(fid* object, int command, void* argument);
int refuse_ops(fid* object, const char* name, std::uint64_t flags, void** ops, void* context);

// The functions of fi_ops_domain, each in the file of its page.
int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context);
int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context);
int open_cntr(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context);
int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
int open_scalable(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
int open_shared_receive(fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context);
int open_shared_transmit(fid_domain* domain, fi_tx_attr* attr, fid_stx** stx, void* context);
int open_poll(fid_domain* domain, fi_poll_attr* attr, fid_poll** pollset);
/// A queue or counter is about to close: no poll set asks it any more.
void leave_poll_sets(const fid* object);
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op op, fi_atomic_attr* attr, std::uint64_t flags);
int open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context);
int control_domain(fid* domain, int command, void* argument);
extern fi_ops_mr region_calls;

}  // namespace portofu::fabric
