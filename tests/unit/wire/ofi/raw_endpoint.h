#pragma once
// A fabric endpoint without a wire over it, and what it has reported.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/ofi/fabric_endpoint.h"
#include "tests/support/eventually.h"
#include "tests/unit/wire/ofi/ofi_pair.h"

namespace portofu {

/// Where a process of a node has its endpoint.
inline std::uint16_t fabric_port() { return static_cast<std::uint16_t>(OfiOptions().base_port + test_pid()); }

struct RawEndpoint {
  /// @param nid  an address of this machine
  explicit RawEndpoint(std::uint32_t nid, std::uint16_t port = fabric_port()) {
    std::string why;
    endpoint = FabricEndpoint::open("", nid, port, &why);
    EXPECT_NE(endpoint, nullptr) << why;
  }

  FabricEndpoint* operator->() const { return endpoint.get(); }

  /// Sends, as soon as the provider takes it; the peer has to look meanwhile.
  bool send(fi_addr_t to, const void* data, std::size_t bytes) {
    SendBuffer* const buffer = endpoint->take_buffer();
    std::memcpy(buffer->data, data, bytes);
    buffer->bytes = static_cast<std::uint32_t>(bytes);
    FabricSend result = FabricSend::kLater;
    eventually([&] {
      look();
      if (meanwhile) meanwhile();
      result = endpoint->send(to, buffer);
      return result != FabricSend::kLater;
    });
    if (result != FabricSend::kTaken) endpoint->give_buffer(buffer);
    return result == FabricSend::kTaken;
  }
  bool send(fi_addr_t to, const std::string& text) { return send(to, text.data(), text.size()); }

  /// Takes what there is.
  void look() {
    std::array<FabricEvent, 16> events;
    const std::size_t count = endpoint->poll(events);
    for (std::size_t i = 0; i < count; ++i) note(events[i]);
  }

  void note(const FabricEvent& event) {
    switch (event.kind) {
      case FabricEvent::Kind::kArrived:
        arrived.emplace_back(reinterpret_cast<const char*>(event.data), event.bytes);
        sources.push_back(event.source);
        if (keeps) held.push_back(event.holder);
        if (!keeps) endpoint->release(event.holder);
        break;
      case FabricEvent::Kind::kSent:
      case FabricEvent::Kind::kFailed:
        event.kind == FabricEvent::Kind::kSent ? ++sent : ++failed;
        endpoint->give_buffer(event.buffer);
        break;
      case FabricEvent::Kind::kFetched:
      case FabricEvent::Kind::kMissed:
        event.kind == FabricEvent::Kind::kFetched ? ++fetched : ++missed;
        last_fetch = event.fetch;
        break;
    }
  }

  std::unique_ptr<FabricEndpoint> endpoint;
  std::function<void()> meanwhile;  ///< What the peer does while this one waits.
  std::vector<std::string> arrived;
  std::vector<fi_addr_t> sources;
  std::vector<ReceiveBuffer*> held;
  bool keeps = false;  ///< Buffers of what arrives are not given back.
  int sent = 0;
  int failed = 0;
  int fetched = 0;
  int missed = 0;
  FetchBuffer* last_fetch = nullptr;
};

}  // namespace portofu
