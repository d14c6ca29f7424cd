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

  /// Puts an address behind the others. @return its place; UINT64_MAX if there is no room
  std::uint64_t append(const Address& address);

  void remove(std::uint64_t place);

  /// For applications: the places of all addresses, in the order in which they were put in. Nobody reads it here.
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
