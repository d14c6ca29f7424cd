#pragma once
// Which processes of a job wait for one another, and for what.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/inspect/job_view.h"

namespace portofu {

class WaitGraph {
 public:
  /// That a process waits for another one.
  struct Edge {
    const char* what;        ///< "a message", "an answer".
    std::uint64_t progress;  ///< Of where that would come to (Finding::progress).
  };
  /// Of each process, by its place in the job, whom it waits for.
  using Edges = std::map<std::size_t, std::map<std::size_t, Edge>>;

  explicit WaitGraph(const JobView& job);

  const Edges& edges() const { return edges_; }

  /// Whether the process at a place waits for what a triggered operation of an interface of its peer would send.
  bool awaits(std::size_t place, const InterfacePicture& from, const TriggerPicture& trigger) const;

  /// The place of a process in the job. @return nullptr if it was not seen
  const std::size_t* place_of(ProcessId id) const;

  /// Whether a process waits for the one at a place, or has something under way to it.
  bool waits_for(const ProcessPicture& process, std::size_t place) const;

  /// "rank 0, rank 2": who does. @return empty: nobody
  std::string waiters(std::size_t place) const;

  /// The shortest way from a process back to itself, by processes behind it only, so that each circle is found once.
  /// @return empty if there is none
  std::vector<std::size_t> circle_of(std::size_t start) const;

 private:
  void add_edges_of(std::size_t from);
  void add_sources(std::size_t from, WaitKind kind, Handle handle);
  void add_polled(std::size_t from);
  void add_gates(std::size_t from);
  void add_locks(const ProcessPicture& owner);
  void add(std::size_t from, ProcessId to, const Edge& edge);

  /// An entry that a process waits at.
  struct Awaited {
    const InterfacePicture* ni;
    std::uint32_t pt_index;
    const EntryPicture* entry;
  };

  const JobView& job_;
  std::map<std::uint64_t, std::size_t> places_;
  Edges edges_;
  std::map<std::size_t, std::vector<Awaited>> awaited_;
};

}  // namespace portofu
