// fi_av(3): address vectors.

#include "lib/libfabric/av.h"

#include <arpa/inet.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/libfabric/eq.h"
#include "lib/libfabric/named_addresses.h"

namespace portofu::fabric {
namespace {

ProcessId endpoint_at(const Address& address) { return endpoint_of(address.process(), address.number); }

/// On duty: puts an address of a vector of this process into the first place that is free. One that is there already
/// keeps its place, so that its messages stay in order, and count once towards what waits at it.
std::uint64_t add_own(AddressVector& av, const Address& address) {
  const auto known = av.places.find(AddressVector::key_of(endpoint_at(address)));
  if (known != av.places.end()) {
    ++av.more_uses[known->second];
    if (address.contexts != 0) av.addresses[known->second].contexts = address.contexts;
    return known->second;
  }
  const auto free = av.free_places.begin();
  if (free == av.free_places.end()) {
    const std::uint64_t place = av.addresses.size();
    av.set(place, address);
    return place;
  }
  const std::uint64_t place = *free;
  av.set(place, address);
  av.free_places.erase(free);
  return place;
}

/// On duty: the same of a vector with a name.
std::uint64_t add_shared(AddressVector& av, const Address& address) {
  const std::uint64_t place = av.shared->insert(address);
  if (place == UINT64_MAX) throw std::bad_alloc();
  try {
    if (av.has(place)) av.drop(place);  // Somebody else has removed it.
    av.set(place, address);
  } catch (...) {
    av.shared->remove(place, address);
    throw;
  }
  return place;
}

/// On duty. @return 0 | FI_EINVAL | FI_ENOMEM: it is in no place
int add(AddressVector& av, const Address& address, fi_addr_t* place) {
  *place = FI_ADDR_NOTAVAIL;
  if (!address.is_good()) return FI_EINVAL;
  return -guarded([&] {
    *place = av.shared != nullptr ? add_shared(av, address) : add_own(av, address);
    return 0;
  });
}

/// Where an insertion says what became of it.
struct Results {
  fi_addr_t* places;  ///< nullptr: nobody wants to know.
  std::uint64_t flags;
  void* context;
};

/// What insertions may be told. A program that names an address itself (FI_AV_USER_ID) would wait for that name.
constexpr std::uint64_t kInsertFlags = FI_MORE | FI_SYNC_ERR | FI_NUMERICHOST;

int insert_all(AddressVector& av, const std::vector<Address>& addresses, const Results& results) {
  if ((results.flags & ~kInsertFlags) != 0) return -FI_EBADFLAGS;
  if (av.tells && av.eq == nullptr) return -FI_ENOEQ;
  if (av.shared != nullptr && av.shared->is_read_only()) return -FI_EACCES;
  // "This flag applies to synchronous insertions only": the context of others is the application's.
  const bool lists_errors = (results.flags & FI_SYNC_ERR) != 0 && !av.tells;
  auto* errors = lists_errors ? static_cast<int*>(results.context) : nullptr;
  int inserted = 0;
  const Engine::Duty duty(*av.domain->engine);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    fi_addr_t place = FI_ADDR_NOTAVAIL;
    const int error = add(av, addresses[i], &place);
    if (results.places != nullptr) results.places[i] = place;
    if (errors != nullptr) errors[i] = error;
    if (error != 0 && av.tells) av.eq->post_error({&av.fid.fid, results.context, i, error, 0, nullptr, 0});
    inserted += error == 0 ? 1 : 0;
  }
  if (!av.tells) return inserted;
  av.eq->post(FI_AV_COMPLETE, {&av.fid.fid, results.context, static_cast<std::uint64_t>(inserted)});
  return 0;
}

int insert(fid_av* fid, const void* bytes, std::size_t count, fi_addr_t* places, std::uint64_t flags, void* context) {
  return guarded([&] {
    if (bytes == nullptr && count != 0) return -FI_EINVAL;
    std::vector<Address> addresses(count);
    for (std::size_t i = 0; i < count; ++i)
      addresses[i] = read_address(static_cast<const std::byte*>(bytes) + i * sizeof(Address));
    return insert_all(*object_of<AddressVector>(fid), addresses, {places, flags, context});
  });
}

/// The `index`th name behind a name that ends in a number, which keeps its width: host09, host10.
std::string name_behind(const std::string& name, std::size_t index) {
  std::size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0 && name.size() - digits < 9)
    --digits;
  if (index == 0 || digits == name.size()) return index == 0 ? name : std::string();
  std::string number = std::to_string(std::stoul(name.substr(digits)) + index);
  const std::size_t width = name.size() - digits;
  if (number.size() < width) number.insert(0, width - number.size(), '0');
  return name.substr(0, digits) + number;
}

/// The first PIDs of a range of nodes; addresses that cannot be had are those of no node.
std::vector<Address> nodes_from(const char* node, std::size_t count, const char* service, std::uint64_t flags) {
  std::vector<Address> found(count);
  in_addr first{};
  const bool numeric = inet_pton(AF_INET, node, &first) == 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = numeric ? node : name_behind(node, i);
    if (name.empty() || resolve(name.c_str(), service, (flags & FI_NUMERICHOST) != 0, &found[i]) != 0)
      found[i] = Address{};
    if (numeric && found[i].nid != 0) found[i].nid += static_cast<std::uint32_t>(i);
  }
  return found;
}

int insert_range(fid_av* fid, const char* node, std::size_t node_count, const char* service, std::size_t service_count,
                 fi_addr_t* places, std::uint64_t flags, void* context) {
  return guarded([&] {
    constexpr std::size_t kMost = std::size_t{1} << 24;
    if (node == nullptr || service == nullptr || node_count > kMost || service_count > kMost / (node_count + 1))
      return -FI_EINVAL;
    in_addr numeric{};
    // "If node is a non-numeric string, it must contain a numeric suffix if nodecnt > 1."
    if (node_count > 1 && inet_pton(AF_INET, node, &numeric) != 1 && name_behind(node, 1).empty()) return -FI_EINVAL;
    std::vector<Address> addresses;
    for (const Address& first : nodes_from(node, node_count, service, flags)) {
      for (std::size_t i = 0; i < service_count; ++i) {
        addresses.push_back(first);
        if (first.nid != 0) addresses.back().pid += static_cast<std::uint32_t>(i);
      }
    }
    return insert_all(*object_of<AddressVector>(fid), addresses, {places, flags, context});
  });
}

int insert_service(fid_av* fid, const char* node, const char* service, fi_addr_t* place, std::uint64_t flags,
                   void* context) {
  // What has no service is the address of nobody, unless the node is a whole one.
  if (node == nullptr) return -FI_EINVAL;
  return guarded([&] {
    return insert_all(*object_of<AddressVector>(fid), nodes_from(node, 1, service, flags), {place, flags, context});
  });
}

int remove(fid_av* fid, fi_addr_t* places, std::size_t count, std::uint64_t flags) {
  auto* av = object_of<AddressVector>(fid);
  if (flags != 0) return -FI_EINVAL;
  if (av->shared != nullptr && av->shared->is_read_only()) return -FI_EACCES;
  return guarded([&] {
    const Engine::Duty duty(*av->domain->engine);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t context = 0;
      if (av->find(places[i], &context) == nullptr) return -FI_EINVAL;
      const std::uint64_t place = av->place_of(places[i]);
      if (const auto more = av->more_uses.find(place); more != av->more_uses.end()) {
        if (--more->second == 0) av->more_uses.erase(more);
        continue;
      }
      if (av->shared == nullptr) av->free_places.insert(place);  // First, since it takes memory.
      // Who knew of all removals knows of this one, too.
      if (av->shared != nullptr && av->shared->remove(place, av->addresses[place]) == av->removals_seen)
        ++av->removals_seen;
      av->drop(place);
    }
    return 0;
  });
}

int look_up(fid_av* fid, fi_addr_t place, void* address, std::size_t* bytes) {
  return guarded([&] {
    auto* av = object_of<AddressVector>(fid);
    const Engine::Duty duty(*av->domain->engine);
    std::uint32_t context = 0;
    const Address* found = av->find(place, &context);
    if (found == nullptr) return -FI_EINVAL;
    std::array<std::byte, sizeof *found> written;
    write_address(*found, av->domain->address_format, written.data());
    std::memcpy(address, written.data(), std::min(*bytes, written.size()));
    *bytes = written.size();
    return 0;
  });
}

/// "10.0.0.1:4711/0". There may be no memory for a string.
const char* text_of(fid_av*, const void* bytes, char* text, std::size_t* room) {
  const Address address = read_address(bytes);
  const std::uint32_t nid = address.nid;
  const int length = std::snprintf(text, *room, "%u.%u.%u.%u:%u/%u", nid >> 24, nid >> 16 & 0xff, nid >> 8 & 0xff,
                                   nid & 0xff, address.pid, unsigned{address.number});
  *room = static_cast<std::size_t>(length) + 1;
  return text;
}

int close(fid* object) {
  auto* av = object_of<AddressVector>(object);
  if (av->users.load() != 0) return -FI_EBUSY;
  if (av->eq != nullptr) --av->eq->users;
  {
    const Engine::Duty duty(*av->domain->engine);
    for (Credit& credit : av->credits) close_credit(duty.core(), *av->domain, credit);
  }
  --av->domain->users;
  delete av;
  return 0;
}

int bind(fid* object, fid* other, std::uint64_t flags) {
  auto* av = object_of<AddressVector>(object);
  if (other == nullptr || other->fclass != FI_CLASS_EQ || flags != 0 || av->eq != nullptr) return -FI_EINVAL;
  if (object_of<EventQueueFid>(other)->fabric != av->domain->fabric) return -FI_EDOMAIN;
  av->eq = object_of<EventQueueFid>(other);
  ++av->eq->users;
  return 0;
}

fi_ops object_calls = {sizeof(fi_ops), close, bind, refuse_control, refuse_ops, NotThere{}, NotThere{}};

fi_ops_av calls = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = insert_service,
    .insertsym = insert_range,
    .remove = remove,
    .lookup = look_up,
    .straddr = text_of,
    .av_set = NotThere{},
};

}  // namespace

AddressVector::AddressVector() = default;
AddressVector::~AddressVector() = default;

void AddressVector::set(std::uint64_t place, const Address& address) {
  const std::uint64_t before = addresses.size();
  try {
    if (place >= before) {
      addresses.resize(place + 1);
      credits.resize(place + 1);
    }
    places.emplace(key_of(endpoint_at(address)), place);
  } catch (...) {
    addresses.resize(before);
    credits.resize(before);
    throw;
  }
  addresses[place] = address;
}

std::uint64_t AddressVector::first_place(std::uint64_t place) const {
  return places.find(key_of(endpoint_at(addresses[place])))->second;
}

void AddressVector::forget_place(std::uint64_t place) {
  const std::uint64_t key = key_of(endpoint_at(addresses[place]));
  const auto found = places.find(key);
  if (found == places.end() || found->second != place) return;
  // Several processes may have put one address into a vector with a name.
  for (std::uint64_t other = 0; shared != nullptr && other < addresses.size(); ++other) {
    if (other == place || !has(other) || key_of(endpoint_at(addresses[other])) != key) continue;
    found->second = other;
    std::swap(credits[place], credits[other]);
    return;
  }
  places.erase(found);
}

void AddressVector::drop(std::uint64_t place) {
  forget_place(place);
  addresses[place].pid = 0;
  if (credits[place].holds_fence) --held_fences;
  close_credit(*core, *domain, credits[place]);
}

bool AddressVector::has_changed() const { return shared->removals() != removals_seen; }

void AddressVector::look_again() {
  removals_seen = shared->removals();
  for (std::uint64_t i = 0; i < shared->size(); ++i) {
    const Address found = shared->at(i);
    if (has(i) && addresses[i] == found) continue;
    if (has(i)) drop(i);
    if (found.is_good()) set(i, found);
  }
}

int open_av(fid_domain* domain_fid, fi_av_attr* attr, fid_av** opened, void* context) {
  return guarded([&] {
    if (attr == nullptr || attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > 16 || attr->type > FI_AV_TABLE)
      return -FI_EINVAL;
    if ((attr->flags & ~std::uint64_t{FI_EVENT | FI_READ | FI_SYMMETRIC}) != 0) return -FI_EBADFLAGS;
    if ((attr->flags & FI_READ) != 0 && attr->name == nullptr) return -FI_EINVAL;
    auto av = std::make_unique<AddressVector>();
    int error = 0;
    if (attr->name != nullptr)
      av->shared = NamedAddresses::open(attr->name, attr->count, (attr->flags & FI_READ) != 0, &error);
    if (error != 0 && av->shared == nullptr) return error;
    if (av->shared != nullptr && attr->map_addr == nullptr) attr->map_addr = av->shared->places();
    av->tells = (attr->flags & FI_EVENT) != 0;
    av->domain = object_of<Domain>(domain_fid);
    ++av->domain->users;
    {
      const Engine::Duty duty(*av->domain->engine);
      av->core = &duty.core();
    }
    av->context_bits = attr->rx_ctx_bits;
    if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
    av->fid.fid = {FI_CLASS_AV, context, &object_calls};
    av->fid.ops = &calls;
    *opened = &av.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
