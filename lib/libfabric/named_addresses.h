#pragma once
// An address vector with a name, which processes of a node share: a file in memory that maps places to addresses.
// @spec fi_av(3), "name"

#include <cstdint>
#include <memory>
#include <string>

#include "lib/libfabric/address.h"

namespace portofu::fabric {

struct NamedAddresses {
  /// @param count      addresses that it has room for, if it is made
  /// @param read_only  FI_READ: it exists, and is not changed
  /// @return nullptr, with the reason in `error`, if it cannot be had
  static std::unique_ptr<NamedAddresses> open(const std::string& name, std::uint64_t count, bool read_only, int* error);
  ~NamedAddresses();
  NamedAddresses(const NamedAddresses&) = delete;
  NamedAddresses& operator=(const NamedAddresses&) = delete;

  bool is_read_only() const { return read_only_; }

  /// Places that are or were in use.
  std::uint64_t size() const;

  /// @return an address of pid 0 if there is none
  Address at(std::uint64_t place) const;

  /// Puts an address into the first place that is free. @return its place; UINT64_MAX if there is none
  std::uint64_t insert(const Address& address);

  /// @param address  what is known to be there; another one stays
  /// @return how many were removed before; UINT64_MAX if this one was not
  std::uint64_t remove(std::uint64_t place, const Address& address);

  /// Counts what anybody has removed: what was read before may be there no more.
  std::uint64_t removals() const;

  /// For applications: the places of all addresses, in their order. Nobody reads it here.
  fi_addr_t* places() const;

 private:
  struct Shared;
  NamedAddresses() = default;

  std::uint64_t room() const;

  Shared* shared_ = nullptr;
  std::uint64_t bytes_ = 0;  ///< Mapped.
  std::string path_;
  int fd_ = -1;  ///< Carries a lock: the file is in use. Whoever could have it alone is the last one, and removes it.
  bool read_only_ = false;
};

}  // namespace portofu::fabric
