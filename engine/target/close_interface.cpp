#include "engine/target/close_interface.h"

#include <vector>

namespace portofu {
namespace {

void let_go(Peer& peer, std::uint32_t index) {
  if (peer.request_stream.mode == ArrivalMode::kDeliver && peer.request_stream.header.interface_index == index) {
    peer.request_stream.mode = ArrivalMode::kDiscard;
    peer.request_stream.entry = nullptr;
  }
  for (OutgoingAnswer& answer : peer.answers) {
    if (answer.arrival.mode != ArrivalMode::kDeliver || answer.interface_index != index) continue;
    answer.arrival.mode = ArrivalMode::kIdle;
    answer.arrival.entry = nullptr;
  }
  peer.requests.remove_and_dispose_if(
      [index](const OutgoingRequest& request) {
        return request.descriptor.interface_index == index && !request.progress.started;
      },
      [](OutgoingRequest* request) { delete request; });
}

void close_operations(Core& core, std::uint32_t index) {
  std::vector<std::uint32_t> ids;
  core.outstanding.for_each([&](std::uint32_t id, const OutstandingOperation& operation) {
    if (operation.interface_index == index) ids.push_back(id);
  });
  for (const std::uint32_t id : ids) {
    OutstandingOperation* operation = core.outstanding.find(id);
    --operation->peer->outstanding;
    core.outstanding.close(id);
  }
}

void empty_lists(PortalTableEntry& portal) {
  while (UnexpectedEntry* header = portal.unexpected.first()) {
    portal.unexpected.remove(*header);
    delete static_cast<UnexpectedHeader*>(header);
  }
  portal.priority.clear();
  portal.overflow.clear();
}

}  // namespace

void close_interface_on_duty(Core& core, std::uint32_t index) {
  Interface& ni = *core.interfaces[index];
  for (auto& [key, peer] : core.peers) let_go(*peer, index);
  close_operations(core, index);
  core.fired.remove_and_dispose_if(
      [index](const TriggeredOperation& operation) { return operation.descriptor.interface_index == index; },
      [](TriggeredOperation* operation) { delete operation; });
  for (auto& portal : ni.portal_table) {
    if (portal != nullptr) empty_lists(*portal);
  }
  core.interfaces[index].reset();
  ++core.activity;
}

}  // namespace portofu
