#pragma once
// A directory of queues and gates that says what the test wants it to say, and counts how often it was asked.

#include <deque>
#include <utility>

#include "engine/segment/node_directory.h"

namespace portofu {

struct PlayedDirectory : NodeDirectory {
  ClaimResult claim(std::uint64_t) override { return ClaimResult::kClaimed; }
  void release(std::uint64_t) override {}
  FindResult find(std::uint64_t, NameOwner* owner) override {
    ++asked;
    std::pair<FindResult, NameOwner> answer{result, now};
    if (!answers.empty()) {
      answer = answers.front();
      answers.pop_front();
    }
    *owner = answer.second;
    return answer.first;
  }
  std::deque<std::pair<FindResult, NameOwner>> answers;  ///< To the next questions; then:
  NameOwner now{{0x0a000001, 2}, 0};
  FindResult result = FindResult::kLater;
  int asked = 0;
};

}  // namespace portofu
