// Shapes, and their gates.

#include "tests/simulation/tofu_shape.h"

#include <utility>

#include "engine/queue/assert.h"

namespace portofu::simulation {

CircuitShape::CircuitShape(SimRandom& random, std::size_t participant_count)
    : random_(random), count_(participant_count) {
  tni_count_ = percent(50) ? 1 : 2 + static_cast<std::uint32_t>(random_.below(3));
  Group all(count_);
  for (std::size_t i = 0; i < count_; ++i) all[i] = i;
  shuffle(all);
  switch (random_.below(5)) {
    case 0: butterfly(all); break;
    case 1: ring(all); break;
    case 2: spread(all); break;
    case 3: tree(all); break;
    default: groups(all); break;
  }
  check_contributions();
  make_gates();
}

void CircuitShape::shuffle(Group& group) {
  for (std::size_t i = group.size(); i > 1; --i) std::swap(group[i - 1], group[random_.below(i)]);
}

/// 5.2.1; those beyond a power of two hand in their values first, and get the result last (figure 2.17).
void CircuitShape::butterfly(const Group& group) {
  name += " butterfly";
  std::size_t power = 1;
  while (2 * power <= group.size()) power *= 2;
  Stage before, after;
  for (std::size_t i = power; i < group.size(); ++i) {
    before.push_back({group[i], group[i - power], false});
    after.push_back({group[i - power], group[i], true});
  }
  stages.push_back(before);
  for (std::size_t distance = 1; distance < power; distance *= 2) {
    Stage stage;
    for (std::size_t i = 0; i < power; ++i) stage.push_back({group[i], group[i ^ distance], false});
    stages.push_back(stage);
  }
  stages.push_back(after);
}

/// Once around to collect, once more to tell.
void CircuitShape::ring(const Group& group) {
  name += " ring";
  for (std::size_t i = 0; i + 1 < group.size(); ++i) stages.push_back({{group[i], group[i + 1], false}});
  const bool back = percent(50);
  for (std::size_t i = 0; i + 1 < group.size(); ++i) {
    const std::size_t last = group.size() - 1;
    if (back) {
      stages.push_back({{group[last - i], group[last - i - 1], true}});
    } else {
      stages.push_back({{group[(last + i) % group.size()], group[(last + i + 1) % group.size()], true}});
    }
  }
}

/// Dissemination: everybody sends to the one at twice the distance of the stage before. Contributions may come twice.
void CircuitShape::spread(const Group& group) {
  name += " dissemination";
  exact = (group.size() & (group.size() - 1)) == 0;
  for (std::size_t distance = 1; distance < group.size(); distance *= 2) {
    Stage stage;
    for (std::size_t i = 0; i < group.size(); ++i)
      stage.push_back({group[i], group[(i + distance) % group.size()], false});
    stages.push_back(stage);
  }
}

/// Hops along a random tree to its root, in an order in which children come before their parents.
std::size_t CircuitShape::gather(const Group& group, std::vector<Hop>* hops) {
  const std::size_t width = 1 + random_.below(4);
  for (std::size_t i = group.size() - 1; i > 0; --i) {
    const std::size_t nearest = i > width ? i - width : 0;
    hops->push_back({group[i], group[nearest + random_.below(i - nearest)], false});
  }
  return group.front();
}

void CircuitShape::tree(const Group& group) {
  name += " tree";
  std::vector<Hop> hops;
  gather(group, &hops);
  for (const Hop& hop : hops) stages.push_back({hop});
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) stages.push_back({{hop->to, hop->from, true}});
}

/// Trees in groups, any shape among their roots, and back.
void CircuitShape::groups(const Group& group) {
  name += " groups:";
  std::vector<Group> parts(1 + random_.below(4));
  for (const std::size_t participant : group) parts[random_.below(parts.size())].push_back(participant);
  std::vector<Hop> hops;
  Group roots;
  for (const Group& part : parts) {
    if (!part.empty()) roots.push_back(gather(part, &hops));
  }
  for (const Hop& hop : hops) stages.push_back({hop});
  switch (random_.below(3)) {
    case 0: butterfly(roots); break;
    case 1: ring(roots); break;
    default: spread(roots); break;
  }
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) stages.push_back({{hop->to, hop->from, true}});
}

/// The shapes themselves are checked: whose contributions come to whom, and how often.
void CircuitShape::check_contributions() const {
  std::vector<std::vector<int>> has(count_, std::vector<int>(count_));
  for (std::size_t i = 0; i < count_; ++i) has[i][i] = 1;
  for (const Stage& stage : stages) {
    const auto sent = has;
    for (const Hop& hop : stage) {
      for (std::size_t i = 0; i < count_; ++i) has[hop.to][i] = sent[hop.from][i] + (hop.gives ? 0 : has[hop.to][i]);
    }
  }
  for (const auto& row : has) {
    for (const int times : row) PORTOFU_ASSERT(exact ? times == 1 : times >= 1);
  }
}

// ---- Gates ---------------------------------------------------------------------------------------------------------

std::size_t CircuitShape::add_gate(std::size_t participant, std::uint32_t tni) {
  PlannedGate gate;
  gate.participant = participant;
  gate.tni = tni;
  gates.push_back(gate);
  return gates.size() - 1;
}

void CircuitShape::signal(std::size_t from, std::size_t to) {
  PORTOFU_ASSERT(gates[from].local_target == PlannedGate::kNone && gates[to].local_source == PlannedGate::kNone);
  PORTOFU_ASSERT(from != to && gates[from].tni == gates[to].tni && gates[from].participant == gates[to].participant);
  gates[from].local_target = to;
  gates[to].local_source = from;
}

void CircuitShape::packet(std::size_t from, std::size_t to) {
  PORTOFU_ASSERT(gates[from].remote_target == PlannedGate::kNone && gates[to].remote_source == PlannedGate::kNone);
  gates[from].remote_target = to;
  gates[to].remote_source = from;
}

/// The gate that sends what the participant has so far: the current one, or a relay gate behind it.
std::size_t CircuitShape::sender(std::size_t participant) {
  const std::size_t now = current_[participant];
  if (gates[now].remote_target == PlannedGate::kNone) return now;
  const std::size_t relay = add_gate(participant, gates[now].tni);
  signal(now, relay);
  return current_[participant] = relay;
}

/// Now and then the value goes on inside the process, by a signal, or by a packet to another TNI.
void CircuitShape::wander(std::size_t participant) {
  const std::size_t now = current_[participant];
  if (percent(8)) {
    const std::size_t relay = add_gate(participant, gates[now].tni);
    signal(now, relay);
    current_[participant] = relay;
  } else if (tni_count_ > 1 && percent(15)) {
    const std::size_t from = sender(participant);
    const auto tni = static_cast<std::uint32_t>(random_.below(tni_count_));
    const std::size_t relay = add_gate(participant, tni);
    packet(from, relay);
    current_[participant] = relay;
  }
}

void CircuitShape::make_gates() {
  for (std::size_t i = 0; i < count_; ++i) {
    starts.push_back(add_gate(i, static_cast<std::uint32_t>(random_.below(tni_count_))));
    gates.back().start = true;
  }
  current_ = starts;
  for (const Stage& stage : stages) {
    std::vector<std::size_t> senders;
    for (const Hop& hop : stage) wander(hop.from);
    for (const Hop& hop : stage) senders.push_back(sender(hop.from));
    for (std::size_t i = 0; i < stage.size(); ++i) {
      const std::size_t to = stage[i].to;
      const std::size_t gate = add_gate(to, gates[current_[to]].tni);
      if (!stage[i].gives) signal(current_[to], gate);
      packet(senders[i], gate);
      current_[to] = gate;
    }
  }
  for (std::size_t i = 0; i < count_; ++i) close(i);
}

/// Whether the current gate, which sends nothing, can be the end of the start/end gate.
bool CircuitShape::becomes_end(std::size_t participant) {
  const std::size_t now = current_[participant], start = starts[participant];
  const PlannedGate gate = gates[now];
  if (now == start || gate.tni != gates[start].tni || gate.local_source == start) return false;
  if (gate.remote_target != PlannedGate::kNone || percent(25)) return false;
  gates[now].removed = true;
  if (gate.local_source != PlannedGate::kNone) {
    gates[gate.local_source].local_target = start;
    gates[start].local_source = gate.local_source;
  }
  if (gate.remote_source != PlannedGate::kNone) {
    gates[gate.remote_source].remote_target = start;
    gates[start].remote_source = gate.remote_source;
  }
  return true;
}

/// Leads what the participant has at last to the end of its start/end gate.
void CircuitShape::close(std::size_t participant) {
  const std::size_t start = starts[participant];
  wander(participant);
  if (becomes_end(participant)) return;
  std::size_t now = current_[participant];
  if (now == start && percent(50)) return;  // Nobody else takes part, and nothing is awaited.
  if (now == start) {
    const std::size_t relay = add_gate(participant, gates[start].tni);
    signal(start, relay);
    now = current_[participant] = relay;
  }
  if (gates[now].tni == gates[start].tni && percent(85)) return signal(now, start);
  packet(sender(participant), start);
}

}  // namespace portofu::simulation
