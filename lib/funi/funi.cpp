// The functions of funi.h, but those of contexts.

#include <funi.h>

#include <array>
#include <cstdio>
#include <memory>
#include <new>

#include "lib/funi/interface.h"

namespace {

constexpr std::uint32_t kCloseMs = 2000;

/// What ranks tell each other of themselves.
std::string text_of(const funi_address_t& address) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%u:%u:%u:%u", address.nid, address.pid, address.reply_entry,
                address.request_entry);
  return text.data();
}

bool read_address(const std::string& text, funi_address_t* address) {
  return std::sscanf(text.c_str(), "%u:%u:%u:%u", &address->nid, &address->pid, &address->reply_entry,
                     &address->request_entry) == 4;
}

std::string key_of(std::uint32_t node) { return "funi-" + std::to_string(node); }

int meet_job(funi_interface& ni) {
  auto& job = ni.job();
  if (!job.has_launcher()) {
    ni.set_route(0, ni.address());
    return FUNI_SUCCESS;
  }
  if (!job.put(key_of(job.rank()), text_of(ni.address())) || !job.barrier()) return FUNI_ERR_NETWORK;
  for (std::uint32_t node = 0; node < job.size(); ++node) {
    funi_address_t address{};
    if (!read_address(job.get(key_of(node)), &address)) return FUNI_ERR_NETWORK;
    ni.set_route(node, address);
  }
  return FUNI_SUCCESS;
}

}  // namespace

int funi_open(const funi_options_t* options, funi_t* ni) {
  if (ni == nullptr) return FUNI_ERR_ARGUMENT;
  try {
    auto made = std::make_unique<funi_interface>();
    const int error = made->open(options != nullptr ? *options : funi_options_t{});
    if (error != FUNI_SUCCESS) return error;
    *ni = made.release();
    return FUNI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return FUNI_ERR_MEMORY;
  }
}

int funi_open_job(const funi_options_t* options, funi_t* ni, uint32_t* node, uint32_t* nodes) {
  if (ni == nullptr || node == nullptr || nodes == nullptr) return FUNI_ERR_ARGUMENT;
  try {
    auto made = std::make_unique<funi_interface>();
    if (!made->job().begin()) return FUNI_ERR_NETWORK;
    if (made->job().size() > FUNI_NODES) return FUNI_ERR_ARGUMENT;
    funi_options_t wanted = options != nullptr ? *options : funi_options_t{};
    wanted.node = made->job().rank();
    int error = made->open(wanted);
    if (error == FUNI_SUCCESS) error = meet_job(*made);
    if (error != FUNI_SUCCESS) return error;
    *node = made->job().rank();
    *nodes = made->job().size();
    *ni = made.release();
    return FUNI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return FUNI_ERR_MEMORY;
  }
}

int funi_close(funi_t ni) {
  if (ni == nullptr) return FUNI_ERR_ARGUMENT;
  const std::unique_ptr<funi_interface> ended(ni);
  if (!ni->job().has_launcher()) return FUNI_SUCCESS;
  const bool is_delivered = ni->flush(kCloseMs);
  ni->job().barrier();
  return is_delivered ? FUNI_SUCCESS : FUNI_ERR_TIMEOUT;
}

int funi_get_address(funi_t ni, funi_address_t* address) {
  if (ni == nullptr || address == nullptr) return FUNI_ERR_ARGUMENT;
  *address = ni->address();
  return FUNI_SUCCESS;
}

int funi_set_route(funi_t ni, uint32_t node, const funi_address_t* address) {
  if (ni == nullptr || address == nullptr || node >= FUNI_NODES) return FUNI_ERR_ARGUMENT;
  try {
    ni->set_route(node, *address);
    return FUNI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return FUNI_ERR_MEMORY;
  }
}

int funi_map(funi_t ni, void* start, size_t bytes, uint32_t* address) {
  if (ni == nullptr || start == nullptr || bytes == 0 || address == nullptr) return FUNI_ERR_ARGUMENT;
  try {
    *address = ni->map(start, bytes);
    return *address != 0 ? FUNI_SUCCESS : FUNI_ERR_MEMORY;
  } catch (const std::bad_alloc&) {
    return FUNI_ERR_MEMORY;
  }
}

int funi_unmap(funi_t ni, uint32_t address) { return ni == nullptr ? FUNI_ERR_ARGUMENT : ni->unmap(address); }

int funi_address_of(funi_t ni, const void* start, size_t bytes, uint32_t* address) {
  if (ni == nullptr || address == nullptr) return FUNI_ERR_ARGUMENT;
  *address = ni->address_of(start, bytes);
  return *address != 0 ? FUNI_SUCCESS : FUNI_ERR_ADDRESS;
}

int funi_read(funi_t ni, funi_register_t which, uint32_t* value) {
  return ni == nullptr ? FUNI_ERR_ARGUMENT : ni->read(which, value);
}

int funi_write(funi_t ni, funi_register_t which, uint32_t value) {
  return ni == nullptr ? FUNI_ERR_ARGUMENT : ni->write(which, value, /*privileged=*/false);
}

int funi_write_privileged(funi_t ni, funi_register_t which, uint32_t value) {
  return ni == nullptr ? FUNI_ERR_ARGUMENT : ni->write(which, value, /*privileged=*/true);
}

int funi_wait(funi_t ni, uint32_t timeout_ms) { return ni == nullptr ? FUNI_ERR_ARGUMENT : ni->wait(timeout_ms); }

int funi_take_fault(funi_t ni, funi_fault_t* fault) {
  return ni == nullptr || fault == nullptr ? FUNI_ERR_ARGUMENT : ni->take_fault(fault);
}

int funi_get_counts(funi_t ni, funi_counts_t* counts) {
  if (ni == nullptr || counts == nullptr) return FUNI_ERR_ARGUMENT;
  *counts = ni->counts();
  return FUNI_SUCCESS;
}

const char* funi_error_name(int error) {
  static constexpr std::array kNames{"FUNI_SUCCESS",     "FUNI_ERR_ARGUMENT", "FUNI_ERR_PRIVILEGE", "FUNI_ERR_BUSY",
                                     "FUNI_ERR_ADDRESS", "FUNI_ERR_NODE",     "FUNI_ERR_PACKET",    "FUNI_ERR_PEER",
                                     "FUNI_ERR_MEMORY",  "FUNI_ERR_NETWORK",  "FUNI_ERR_TIMEOUT",   "FUNI_ERR_HANDLER"};
  const bool is_known = error <= 0 && static_cast<std::size_t>(-error) < kNames.size();
  return is_known ? kNames[static_cast<std::size_t>(-error)] : "unknown";
}
