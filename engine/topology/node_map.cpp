#include "engine/topology/node_map.h"

#include <algorithm>
#include <cstdlib>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/topology/launcher.h"
#include "engine/topology/node_id.h"
#include "engine/topology/node_shape.h"

namespace portofu {
namespace {

/// Why a machine is one node although PORTOFU_PER_NODE is set; nullptr: it is not.
const char* obstacle_to_virtual_nodes(const Settings& settings, bool spans_nodes, const LocalPlace& place) {
  if (!settings.coords.empty()) return "PORTOFU_COORDS says where this process is";
  if (!settings.hosts.empty()) return "PORTOFU_HOSTS says where the nodes are";
  if (spans_nodes) return "the job may have other machines, each of which is one node";
  if (place.rank == LocalPlace::kNoRank) return "nobody tells the local rank; PORTOFU_LOCAL_RANK does";
  return nullptr;
}

/// What PORTOFU_COORDS says.
Coordinates read_coordinates(const std::string& text) {
  if (const auto at = parse_coordinates(text)) return *at;
  static constinit ToldOnce told;
  if (told.is_first()) {
    log_error("PORTOFU_COORDS=%s is not allowed (X,Y,Z,A,B,C; A < 2, B < 3, C < 2); 0,0,0,0,0,0 is taken",
              text.c_str());
  }
  return {};
}

/// Where the node with this number of a machine that stands for several is.
Coordinates place_in_shape(const std::string& text, std::uint32_t number) {
  if (text.empty()) return NodeMap::virtual_coordinates(number);
  static constinit ToldOnce told;
  const auto shape = NodeShape::parse(text);
  if (shape && number < shape->count()) return shape->coordinates(number);
  if (told.is_first()) {
    shape ? log_warning("PORTOFU_SHAPE=%s has no node %u: give it more, or the job fewer processes; it is left aside",
                        text.c_str(), number)
          : log_warning("PORTOFU_SHAPE=%s is no shape: one to three numbers as in 2x3x2 are, or six; it is left aside",
                        text.c_str());
  }
  return NodeMap::virtual_coordinates(number);
}

}  // namespace

std::optional<NodeMap> NodeMap::find(const Settings& settings, std::string* why) {
  const bool spans = launcher_spans_nodes([](const char* name) { return std::getenv(name); });
  const std::uint32_t nid = find_node_id(settings.nid, settings.interface);
  const bool is_chosen = settings.nid == 0 && settings.hosts.empty();
  static constinit ToldOnce told;
  if (spans && is_chosen && is_inner_address(list_interface_addresses(), nid) && told.is_first()) {
    log_warning(
        "the NID of this node is %s, the address of a bridge inside it or of loopback, which other nodes of the "
        "job may have, too: PORTOFU_INTERFACE or PORTOFU_NID names another one",
        node_id_text(nid).c_str());
  }
  return find(settings, nid, spans, find_local_place(settings, [](const char* name) { return std::getenv(name); }),
              why);
}

std::optional<NodeMap> NodeMap::find(const Settings& settings, std::uint32_t own_nid, bool launcher_spans,
                                     const LocalPlace& place, std::string* why) {
  NodeMap map;
  map.own_nid_ = own_nid;
  map.place_ = place;
  const auto use = static_cast<FabricUse>(settings.fabric);
  const bool may_span = use == FabricUse::kOn || (use == FabricUse::kAuto && launcher_spans);
  if (settings.per_node != 0 || !settings.shape.empty()) map.choose_virtual_node(settings, may_span, place);
  if (settings.hosts.empty()) {
    map.spans_nodes_ = may_span;
    map.by_address_ = map.spans_nodes_ && settings.coords.empty();
    if (map.by_address_) map.own_ = coordinates_of_address(own_nid);
    if (!settings.coords.empty()) map.own_ = read_coordinates(settings.coords);
    return map;
  }
  auto hosts = read_host_file(settings.hosts, why);
  if (!hosts) {
    *why = "PORTOFU_HOSTS=" + settings.hosts + ": " + *why;
    return std::nullopt;
  }
  const auto own = std::ranges::find(*hosts, own_nid, &Host::nid);
  if (own == hosts->end()) {
    *why = "PORTOFU_HOSTS=" + settings.hosts +
           " does not name this node; PORTOFU_NID or PORTOFU_INTERFACE says which "
           "of its addresses counts";
    return std::nullopt;
  }
  map.own_ = own->at;
  map.spans_nodes_ = use == FabricUse::kOn || (use == FabricUse::kAuto && hosts->size() > 1);
  for (const Host& host : *hosts) map.nids_.push_back(host.nid);
  map.hosts_ = std::move(*hosts);
  return map;
}

void NodeMap::choose_virtual_node(const Settings& settings, bool spans_nodes, const LocalPlace& place) {
  const char* const obstacle = obstacle_to_virtual_nodes(settings, spans_nodes, place);
  if (obstacle == nullptr) {
    const VirtualNode node = virtual_node(place, std::max(settings.per_node, 1u));
    own_ = place_in_shape(settings.shape, node.number);
    place_ = node.place;
    return;
  }
  static constinit ToldOnce told;
  if (!told.is_first()) return;
  settings.shape.empty() ? log_warning("PORTOFU_PER_NODE=%u is left aside: %s", settings.per_node, obstacle)
                         : log_warning("PORTOFU_SHAPE=%s is left aside: %s", settings.shape.c_str(), obstacle);
}

std::uint32_t NodeMap::nid_at(const Coordinates& at) const {
  if (at == own_) return own_nid_;
  if (by_address_) return address_of_coordinates(at, own_nid_);
  const auto found = std::ranges::find(hosts_, at, &Host::at);
  return found == hosts_.end() ? 0 : found->nid;
}

}  // namespace portofu
