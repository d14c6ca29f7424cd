#pragma once
// Where the nodes of a job are: which address has which coordinates, and where this node is among them. Every process
// of a job comes to the same answer without asking anybody.
//
// With a hosts file (PORTOFU_HOSTS) the file says it. Without one, PORTOFU_COORDS places this node and no other one is
// known; or, if the fabric is switched on or the launcher tells of other nodes, coordinates follow from the addresses
// (coordinates_of_address). A lone node is (0,0,0,0,0,0).
//
// A lone machine may stand for several nodes (PORTOFU_PER_NODE, PORTOFU_SHAPE): each has coordinates of its own. Who
// owns a CQ of any of them is found on the machine, as for a node that nobody knows.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/settings.h"
#include "engine/topology/host_file.h"
#include "engine/topology/local_place.h"

namespace portofu {

class NodeMap {
 public:
  /// @param why  a sentence for people on failure
  /// @return nothing if there is a hosts file that cannot be understood, or that does not name this node
  static std::optional<NodeMap> find(const Settings& settings, std::string* why);

  /// For tests: the same without the environment of the process.
  /// @param place  among the processes of the machine
  static std::optional<NodeMap> find(const Settings& settings, std::uint32_t own_nid, bool launcher_spans_nodes,
                                     const LocalPlace& place, std::string* why);

  std::uint32_t own_nid() const { return own_nid_; }

  /// Coordinates of the node with this number of a machine that stands for several: those of a group of twelve first.
  static constexpr Coordinates virtual_coordinates(std::uint32_t number) {
    const std::uint32_t group = number / 12;
    const std::uint32_t in_group = number % 12;
    return {static_cast<std::uint8_t>(group),
            static_cast<std::uint8_t>(group >> 8),
            static_cast<std::uint8_t>(group >> 16),
            static_cast<std::uint8_t>(in_group / 6),
            static_cast<std::uint8_t>(in_group / 2 % 3),
            static_cast<std::uint8_t>(in_group % 2)};
  }

  /// Of this process among those of its job on this node.
  const LocalPlace& own_place() const { return place_; }

  /// Of this node.
  const Coordinates& own_coordinates() const { return own_; }

  /// The job has, or may have, processes on other nodes.
  bool spans_nodes() const { return spans_nodes_; }

  /// NIDs of the hosts file; empty: any.
  const std::vector<std::uint32_t>& nids() const { return nids_; }

  /// @return 0 if it is not known that a node is there
  std::uint32_t nid_at(const Coordinates& at) const;

 private:
  void choose_virtual_node(const Settings& settings, bool spans_nodes, const LocalPlace& place);

  std::uint32_t own_nid_ = 0;
  Coordinates own_{};
  LocalPlace place_;
  bool spans_nodes_ = false;
  bool by_address_ = false;  ///< Coordinates follow from addresses.
  std::vector<Host> hosts_;
  std::vector<std::uint32_t> nids_;
};

}  // namespace portofu
