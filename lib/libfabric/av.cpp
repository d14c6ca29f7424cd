// fi_av(3): address vectors.

#include "lib/libfabric/av.h"

#include <cstdio>
#include <cstring>

#include "lib/libfabric/eq.h"

namespace portofu::fabric {
namespace {

ProcessId endpoint_at(const Address& address) {
  return endpoint_of(address.process(), static_cast<std::uint16_t>(address.number));
}

bool is_good(const Address& address) {
  return address.format == kAddressFormat && address.nid != 0 && address.pid != 0 && address.pid <= kMaxPid &&
         address.number < kMaxEndpoints;
}

/// On duty.
fi_addr_t add(AddressVector& av, const Address& address) {
  const fi_addr_t place = av.addresses.size();
  av.addresses.push_back(address);
  av.places.emplace(AddressVector::key_of(endpoint_at(address)), place);
  return place;
}

int insert(fid_av* fid, const void* addresses, std::size_t count, fi_addr_t* places, std::uint64_t flags,
           void* context) {
  return guarded([&] {
    auto* av = object_of<AddressVector>(fid);
    if (addresses == nullptr && count != 0) return -FI_EINVAL;
    auto* errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
    int inserted = 0;
    const Engine::Duty duty(*av->domain->engine);
    for (std::size_t i = 0; i < count; ++i) {
      Address address;
      std::memcpy(&address, static_cast<const std::byte*>(addresses) + i * sizeof address, sizeof address);
      const bool good = is_good(address);
      const fi_addr_t place = good ? add(*av, address) : FI_ADDR_NOTAVAIL;
      if (places != nullptr) places[i] = place;
      if (errors != nullptr) errors[i] = good ? 0 : FI_EINVAL;
      if (!good && av->eq != nullptr) av->eq->post_error({&fid->fid, context, i, FI_EINVAL, 0, nullptr, 0});
      inserted += good ? 1 : 0;
    }
    if (av->eq == nullptr) return inserted;
    av->eq->post(FI_AV_COMPLETE, {&fid->fid, context, static_cast<std::uint64_t>(inserted)});
    return 0;
  });
}

int insert_service(fid_av* fid, const char* node, const char* service, fi_addr_t* place, std::uint64_t flags,
                   void* context) {
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  Address address;
  if (const int result = resolve(node, service, (flags & FI_NUMERICHOST) != 0, &address); result != 0) return result;
  return insert(fid, &address, 1, place, flags, context);
}

int remove(fid_av* fid, fi_addr_t* places, std::size_t count, std::uint64_t) {
  auto* av = object_of<AddressVector>(fid);
  const Engine::Duty duty(*av->domain->engine);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t place = av->place_of(places[i]);
    if (place >= av->addresses.size() || av->addresses[place].pid == 0) return -FI_EINVAL;
    const auto found = av->places.find(AddressVector::key_of(endpoint_at(av->addresses[place])));
    if (found != av->places.end() && found->second == place) av->places.erase(found);
    av->addresses[place].pid = 0;
  }
  return 0;
}

int look_up(fid_av* fid, fi_addr_t place, void* address, std::size_t* bytes) {
  auto* av = object_of<AddressVector>(fid);
  const Engine::Duty duty(*av->domain->engine);
  std::uint32_t context = 0;
  const Address* found = av->find(place, &context);
  if (found == nullptr) return -FI_EINVAL;
  std::memcpy(address, found, std::min(*bytes, sizeof *found));
  *bytes = sizeof *found;
  return 0;
}

const char* text_of(fid_av*, const void* address, char* text, std::size_t* bytes) {
  Address read;
  std::memcpy(&read, address, sizeof read);
  const int length = std::snprintf(text, *bytes, "%s", address_text(read).c_str());
  *bytes = static_cast<std::size_t>(length) + 1;
  return text;
}

int close(fid* object) {
  auto* av = object_of<AddressVector>(object);
  if (av->users.load() != 0) return -FI_EBUSY;
  if (av->eq != nullptr) --av->eq->users;
  --av->domain->users;
  delete av;
  return 0;
}

int bind(fid* object, fid* other, std::uint64_t flags) {
  auto* av = object_of<AddressVector>(object);
  if (other->fclass != FI_CLASS_EQ || flags != 0 || av->eq != nullptr) return -FI_EINVAL;
  av->eq = object_of<EventQueueFid>(other);
  ++av->eq->users;
  return 0;
}

fi_ops object_calls = {sizeof(fi_ops), close, bind, refuse_control, refuse_ops, NotThere{}, NotThere{}};

fi_ops_av calls = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = insert_service,
    .insertsym = NotThere{},
    .remove = remove,
    .lookup = look_up,
    .straddr = text_of,
    .av_set = NotThere{},
};

}  // namespace

int open_av(fid_domain* domain_fid, fi_av_attr* attr, fid_av** opened, void* context) {
  return guarded([&] {
    if (attr == nullptr || attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > 16) return -FI_EINVAL;
    if (attr->name != nullptr) return -FI_ENOSYS;  // Not shared between processes.
    auto av = std::make_unique<AddressVector>();
    av->domain = object_of<Domain>(domain_fid);
    ++av->domain->users;
    av->context_bits = attr->rx_ctx_bits;
    if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
    av->fid.fid = {FI_CLASS_AV, context, &object_calls};
    av->fid.ops = &calls;
    *opened = &av.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
