#pragma once
// Address vectors: an fi_addr_t is the place of an address, for maps and for tables. @spec fi_av(3)

#include <rdma/fi_domain.h>

#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "lib/libfabric/address.h"
#include "lib/libfabric/credit.h"
#include "lib/libfabric/domain.h"

namespace portofu::fabric {

struct EventQueueFid;
struct NamedAddresses;

struct AddressVector {
  fid_av fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  Core* core = nullptr;  ///< Of the domain's engine; for whoever is on duty.
  Users users{0};
  int context_bits = 0;                                 ///< fi_av_attr::rx_ctx_bits: the upper bits of an fi_addr_t.
  bool tells = false;                                   ///< FI_EVENT: insertions are told at `eq`.
  EventQueueFid* eq = nullptr;                          ///< Of insertions that tell when they are done.
  std::unique_ptr<NamedAddresses> shared;               ///< Of a vector with a name; nullptr: it has none.
  std::uint64_t removals_seen = 0;                      ///< On duty: of `shared`, when we looked last.
  std::vector<Address> addresses;                       ///< On duty: what is known of `shared`. A pid of 0: removed.
  std::vector<Credit> credits;                          ///< On duty: by place, which is one of `places`.
  std::size_t held_fences = 0;                          ///< On duty: of `credits`, with holds_fence.
  std::set<std::uint64_t> free_places;                  ///< On duty: of addresses that were removed.
  std::unordered_map<std::uint64_t, fi_addr_t> places;  ///< On duty: by key_of, for FI_SOURCE.
  /// On duty, by place: how often an address was inserted once more. It has one place then, and one credit.
  std::unordered_map<std::uint64_t, std::uint32_t> more_uses;

  AddressVector();
  ~AddressVector();

  static std::uint64_t key_of(ProcessId endpoint) { return process_key(endpoint); }

  std::uint64_t place_of(fi_addr_t address) const {
    return context_bits == 0 ? address : address & (~std::uint64_t{0} >> context_bits);
  }

  /// On duty: whether there is an address at a place, as far as is known.
  bool has(std::uint64_t place) const { return place < addresses.size() && addresses[place].pid != 0; }

  /// On duty: whom an fi_addr_t means. @return nullptr if it means nobody; `context`: of a scalable endpoint
  const Address* find(fi_addr_t address, std::uint32_t* context) {
    const std::uint64_t place = place_of(address);
    if (shared != nullptr && (has_changed() || !has(place))) [[unlikely]]
      look_again();
    if (!has(place)) [[unlikely]]
      return nullptr;
    *context = 0;  // Whatever is inserted has one.
    if (context_bits == 0) [[likely]]
      return &addresses[place];
    *context = static_cast<std::uint32_t>(address >> (64 - context_bits));
    return addresses[place].has_context(*context) ? &addresses[place] : nullptr;
  }

  /// On duty. An endpoint has one, whichever of its places in a vector with a name is meant: its messages stay in
  /// order.
  /// @pre find has found it
  Credit& credit_of(fi_addr_t address) {
    const std::uint64_t place = place_of(address);
    return credits[shared == nullptr ? place : first_place(place)];
  }

  /// On duty: the place of an endpoint. @param endpoint  as events show it
  fi_addr_t find(ProcessId endpoint) {
    auto found = places.find(key_of(endpoint));
    if (shared != nullptr && (has_changed() || found == places.end())) [[unlikely]] {
      look_again();
      found = places.find(key_of(endpoint));
    }
    return found != places.end() ? found->second : FI_ADDR_NOTAVAIL;
  }

  /// On duty: puts an address at a place. Throws bad_alloc without memory; then the vector is as it was.
  void set(std::uint64_t place, const Address& address);
  /// On duty: forgets the address at a place, and what waits to go there. @pre there is one
  void drop(std::uint64_t place);

 private:
  void forget_place(std::uint64_t place);  ///< On duty: of a source. Another place that it has gets its credit.
  std::uint64_t first_place(std::uint64_t place) const;  ///< On duty: which of `places` its endpoint has.
  bool has_changed() const;                              ///< Somebody has removed something from `shared`.
  void look_again();  ///< On duty: finds what others have put into `shared`, and what they have removed.
};

}  // namespace portofu::fabric
