#pragma once
// Names of processes each of which is a node of its own: who has a name is asked there, and the answer takes its time.
// A node whose process has died says that nobody has it. Whoever gives a name up tells all others first.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "engine/topology/tofu_id.h"
#include "engine/wire/sim/sim_random.h"
#include "tests/simulation/tofu_node.h"

namespace portofu::simulation {

class FarDirectory;

/// What all of them share.
struct FarNames {
  explicit FarNames(std::uint64_t seed) : random(seed) {}

  SimRandom random;
  std::uint64_t most_looks = 0;  ///< That a question, and its answer, take at most. 0: the answer is there at once.
  TofuClaims claims;
  std::map<Coordinates, ProcessId> nodes;
  std::set<std::uint64_t> dead;  ///< By process_key.
  std::vector<FarDirectory*> all;
};

class FarDirectory final : public NodeDirectory {
 public:
  FarDirectory(FarNames& names, ProcessId self, const Coordinates& at) : names_(names), self_(self) {
    names.nodes[at] = self;
    names.all.push_back(this);
  }
  ~FarDirectory() override { std::erase(names_.all, this); }
  FarDirectory(const FarDirectory&) = delete;
  FarDirectory& operator=(const FarDirectory&) = delete;

  ClaimResult claim(std::uint64_t key) override {
    return names_.claims.emplace(key, self_).second ? ClaimResult::kClaimed : ClaimResult::kTaken;
  }

  void release(std::uint64_t key) override {
    names_.claims.erase(key);
    for (FarDirectory* const other : names_.all) {
      if (other != this && !names_.dead.contains(process_key(other->self_))) other->hear(self_);
    }
  }

  FindResult find(std::uint64_t key, NameOwner* owner) override {
    const auto [at, is_new] = questions_.try_emplace(key);
    Question& question = at->second;
    if (is_new) question = {looks(), looks(), false, {}};
    if (question.out != 0) return --question.out, FindResult::kLater;
    if (!question.is_answered) question.answer = ask(key);
    question.is_answered = true;
    if (question.back != 0) return --question.back, FindResult::kLater;
    const ProcessId found = question.answer;
    questions_.erase(at);
    if (found == ProcessId{}) return FindResult::kNobody;
    *owner = {found};
    return FindResult::kFound;
  }

 private:
  struct Question {
    std::uint64_t out = 0;   ///< Looks until the node has it.
    std::uint64_t back = 0;  ///< And then until the answer is here.
    bool is_answered = false;
    ProcessId answer;  ///< {0, 0}: nobody.
  };

  std::uint64_t looks() const { return names_.random.below(names_.most_looks + 1); }
  ProcessId node_of(std::uint64_t key) const { return names_.nodes.at(coordinates_of(key)); }
  ProcessId ask(std::uint64_t key) const {
    const auto found = names_.claims.find(key);
    const bool is_dead = names_.dead.contains(process_key(node_of(key)));
    return is_dead || found == names_.claims.end() ? ProcessId{} : found->second;
  }

  /// The answer to what it was asked may be under way, and is not good any more.
  void hear(ProcessId other) {
    std::erase_if(questions_, [&](const auto& entry) { return node_of(entry.first) == other; });
    if (when_moved) when_moved(other);
  }

  FarNames& names_;
  const ProcessId self_;
  std::map<std::uint64_t, Question> questions_;
};

}  // namespace portofu::simulation
