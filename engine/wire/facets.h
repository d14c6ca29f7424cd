#pragma once
// What only some wires can do beside carrying packets. A wire hands out each as a pointer, and who has none hands out
// nullptr: there is no facet that does nothing. A wire over another wire has to say for each what becomes of it, or it
// does not compile.

namespace portofu {

class Loans;        ///< loans.h: payloads stay in the memory of their sender.
class Copies;       ///< copies.h: either side copies what was lent, when it likes.
class PeerMemory;   ///< peer_memory.h: memory of the peer that this process uses without it.
class Completions;  ///< completions.h: operations are acknowledged without packets.
class OtherNodes;   ///< other_nodes.h: sockets, timers, and names of other nodes.

/// One of them, or nullptr; always named by who makes the wire.
template <class T>
struct Facet {
  Facet(T* facet) : facet_(facet) {}      // NOLINT(google-explicit-constructor): it stands for the pointer
  operator T*() const { return facet_; }  // NOLINT(google-explicit-constructor)

 private:
  T* facet_;
};

struct Facets {
  Facet<Loans> loans;
  Facet<Copies> copies;
  Facet<PeerMemory> peer_memory;
  Facet<Completions> completions;
  Facet<OtherNodes> other_nodes;
};

}  // namespace portofu
