#pragma once
// What gates do with the values of a round: combine them. @spec uTofu guide, 3.8.2

#include "engine/event/barrier_gate.h"

namespace portofu {

/// into = into (operation) other. Two of different operations, or with different numbers of items, are a mismatch, and
/// nothing that meets one afterwards changes that.
/// @pre both are possible
void combine(GateValue& into, const GateValue& other);

/// Whether a value that a peer has sent is one that its operation may have.
bool is_possible(const GateValue& value);

}  // namespace portofu
