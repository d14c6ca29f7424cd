// Claims of queues and gates, handles of VCQs, and what is remembered of owners.

#include "engine/core/tofu.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace portofu {
namespace {

constexpr Coordinates kHere{1, 2, 3, 1, 2, 0};

/// A directory in which the test says who has what.
class FakeDirectory final : public NodeDirectory {
 public:
  ClaimResult claim(std::uint64_t key) override {
    if (broken) return ClaimResult::kFailed;
    return owners.emplace(key, ProcessId{1, 1}).second ? ClaimResult::kClaimed : ClaimResult::kTaken;
  }
  void release(std::uint64_t key) override { owners.erase(key); }
  FindResult find(std::uint64_t key, NameOwner* owner) override {
    ++asked;
    if (!owners.contains(key)) return FindResult::kNobody;
    *owner = {owners.at(key)};
    return FindResult::kFound;
  }

  std::atomic<std::uint64_t>* stags_given(std::uint64_t key) override { return counted ? &given[key] : nullptr; }

  std::map<std::uint64_t, ProcessId> owners;
  std::map<std::uint64_t, std::atomic<std::uint64_t>> given;
  bool counted = false;
  bool broken = false;
  int asked = 0;
};

class TofuTest : public testing::Test {
 protected:
  FakeDirectory directory;
  Tofu tofu{kHere, &directory};
};

TEST_F(TofuTest, Queue__is_claimed_once_and_found_by_its_numbers) {
  ControlQueue* queue = tofu.claim_queue(2, 5, CqMode::kSession);
  ASSERT_NE(queue, nullptr);
  EXPECT_EQ(queue->mode, CqMode::kSession);
  EXPECT_TRUE(queue->is_empty());
  EXPECT_EQ(tofu.queue(make_queue_number(2, 5, 0)), queue);
  EXPECT_EQ(tofu.queue(make_queue_number(2, 5, 7)), queue);
  EXPECT_EQ(tofu.queue(make_queue_number(2, 6, 0)), nullptr);
  EXPECT_EQ(tofu.claim_queue(2, 5, CqMode::kShared), nullptr);
  tofu.release_queue(2, 5);
  EXPECT_EQ(tofu.queue(make_queue_number(2, 5, 0)), nullptr);
  EXPECT_TRUE(directory.owners.empty());
  EXPECT_NE(tofu.claim_queue(2, 5, CqMode::kShared), nullptr);
}

/// @return the STag of the next registration
std::uint32_t next_stag(ControlQueue* queue) {
  static std::array<std::byte, 64> memory;
  std::uint64_t stadd = 0;
  EXPECT_EQ(queue->stadds.add({0, memory.data(), memory.size(), false}, &stadd), Status::kOk);
  return stag_of(stadd);
}

TEST_F(TofuTest, Queue__counts_STags_on_from_its_owner_before_where_the_directory_knows) {
  for (std::uint32_t life = 0; life < 3; ++life) {
    EXPECT_EQ(next_stag(tofu.claim_queue(2, 5, CqMode::kShared)), kFirstDynamicStag);
    tofu.release_queue(2, 5);
  }
  directory.counted = true;
  for (std::uint32_t life = 0; life < 3; ++life) {
    EXPECT_EQ(next_stag(tofu.claim_queue(2, 5, CqMode::kShared)), kFirstDynamicStag + life);
    tofu.release_queue(2, 5);
  }
  EXPECT_EQ(next_stag(tofu.claim_queue(2, 6, CqMode::kShared)), kFirstDynamicStag) << "another queue";
}

/// Queues whose numbers share a place among the near ones.
TEST_F(TofuTest, Queues__are_found_in_turns_and_not_when_they_are_released) {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> names{{0, 0}, {0, 8}, {8, 0}, {8, 8}, {5, 3}};
  std::vector<ControlQueue*> queues;
  for (const auto& [tni, cq] : names) queues.push_back(tofu.claim_queue(tni, cq, CqMode::kShared));
  const auto found = [&](std::size_t i) {
    return tofu.queue(make_queue_number(names[i].first, names[i].second, 1 + static_cast<std::uint32_t>(i)));
  };
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(found(i), queues[i]) << i;
  }
  ASSERT_EQ(found(1), queues[1]);
  tofu.release_queue(names[1].first, names[1].second);
  EXPECT_EQ(found(1), nullptr);
  EXPECT_EQ(found(0), queues[0]);
  tofu.release_queue(names[2].first, names[2].second);  // Another one is near in its place.
  EXPECT_EQ(found(2), nullptr);
  EXPECT_EQ(found(0), queues[0]);
  EXPECT_EQ(found(3), queues[3]);
}

TEST_F(TofuTest, Near_owner__is_forgotten_with_whatever_may_change_it) {
  const std::uint64_t id = make_tofu_id(TofuIdKind::kVcq, {9, 9, 9, 0, 0, 0}, make_queue_number(1, 2, 3));
  const std::uint64_t gate = make_tofu_id(TofuIdKind::kVbg, kHere, make_queue_number(4, 20, 0));
  auto* const peer = reinterpret_cast<Peer*>(&tofu);  // Nobody looks at it.
  const auto keep = [&] {
    tofu.keep_near_owner({id, peer, 6});
    ASSERT_NE(tofu.near_owner(id), nullptr);
    EXPECT_EQ(tofu.near_owner(id)->peer, peer);
    EXPECT_EQ(tofu.near_owner(id)->names, 6u);
    EXPECT_EQ(tofu.near_owner(id + 1), nullptr) << "another component may have another owner to come";
  };
  EXPECT_EQ(tofu.near_owner(id), nullptr);
  NameOwner owner;
  const std::vector<std::function<void()>> changes{[&] { tofu.distrust_owner_of(id); },
                                                   [&] { tofu.ask_owner(id, &owner); },
                                                   [&] { ASSERT_NE(tofu.claim_queue(2, 5, CqMode::kShared), nullptr); },
                                                   [&] { ASSERT_NE(tofu.claim_gate(gate), nullptr); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    keep();
    changes[i]();
    EXPECT_EQ(tofu.near_owner(id), nullptr) << i;
  }
}

TEST_F(TofuTest, Queue_of_another_process__is_not_claimed) {
  directory.owners[claim_key(make_tofu_id(TofuIdKind::kVcq, kHere, make_queue_number(2, 5, 3)))] = {1, 2};
  EXPECT_EQ(tofu.claim_queue(2, 5, CqMode::kShared), nullptr);
  EXPECT_EQ(tofu.queue(make_queue_number(2, 5, 0)), nullptr);
  EXPECT_FALSE(tofu.is_refused());
  directory.broken = true;
  EXPECT_EQ(tofu.claim_queue(2, 6, CqMode::kShared), nullptr);
  EXPECT_TRUE(tofu.is_refused());
  directory.broken = false;
  EXPECT_EQ(tofu.claim_queue(2, 5, CqMode::kShared), nullptr);
  EXPECT_FALSE(tofu.is_refused()) << "a living process has it";
}

TEST_F(TofuTest, Vcq__is_found_by_number_and_by_handle_until_it_leaves) {
  ControlQueue* queue = tofu.claim_queue(0, 1, CqMode::kShared);
  queue->vcqs[3] = std::make_unique<VirtualControlQueue>(16, 16);
  VirtualControlQueue& vcq = *queue->vcqs[3];
  ASSERT_TRUE(tofu.enter(vcq));
  EXPECT_FALSE(queue->is_empty());
  EXPECT_EQ(tofu.vcq_of_number(make_queue_number(0, 1, 3)), &vcq);
  EXPECT_EQ(tofu.vcq_of_number(make_queue_number(0, 1, 2)), nullptr);
  EXPECT_EQ(tofu.vcq_of_number(make_queue_number(0, 1, 8)), nullptr) << "There are 8 components.";
  const Handle handle = vcq.handle;
  EXPECT_NE(handle, 0u);
  EXPECT_EQ(tofu.vcq(handle), &vcq);
  EXPECT_EQ(tofu.vcq(0), nullptr);
  tofu.leave(vcq);
  EXPECT_EQ(tofu.vcq(handle), nullptr);
  VirtualControlQueue next(16, 16);
  ASSERT_TRUE(tofu.enter(next));
  EXPECT_NE(next.handle, handle) << "An old handle names nobody.";
  EXPECT_EQ(tofu.vcq(handle), nullptr);
}

// What failed of the puts of a process may be told when another one has its PID.
TEST_F(TofuTest, Vcq_of_the_next_life__has_another_handle) {
  const auto first_handle = [](std::uint64_t life) {
    Tofu one(kHere, nullptr);
    one.tell_apart(life);
    VirtualControlQueue vcq(16, 16);
    EXPECT_TRUE(one.enter(vcq));
    EXPECT_EQ(one.vcq(vcq.handle), &vcq);
    return vcq.handle;
  };
  EXPECT_NE(first_handle(1), first_handle(2));
  EXPECT_EQ(first_handle(1), first_handle(1));
}

TEST_F(TofuTest, Gates__are_claimed_apart_from_queues) {
  const std::uint64_t id = make_tofu_id(TofuIdKind::kVbg, kHere, make_queue_number(4, 20, 0));
  ASSERT_NE(tofu.claim_queue(4, 20, CqMode::kShared), nullptr);
  BarrierGate* gate = tofu.claim_gate(id);
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->id, id);
  EXPECT_EQ(tofu.gate(queue_number(id)), gate);
  EXPECT_EQ(tofu.claim_gate(id), nullptr);
  int count = 0;
  tofu.for_each_gate([&count](const BarrierGate&) { ++count; });
  EXPECT_EQ(count, 1);
  tofu.release_gate(id);
  EXPECT_EQ(tofu.gate(queue_number(id)), nullptr);
  EXPECT_EQ(directory.owners.size(), 1u);
}

TEST_F(TofuTest, Owner__is_asked_once_and_then_remembered_for_all_components_and_paths) {
  const std::uint64_t id = make_tofu_id(TofuIdKind::kVcq, {9, 9, 9, 0, 0, 0}, make_queue_number(1, 2, 3));
  NameOwner owner;
  EXPECT_FALSE(tofu.recall_owner(id, &owner));
  EXPECT_EQ(tofu.ask_owner(id, &owner), FindResult::kNobody);
  directory.owners[claim_key(id)] = {1, 7};
  EXPECT_EQ(tofu.ask_owner(id, &owner), FindResult::kFound);
  EXPECT_EQ(owner, (ProcessId{1, 7}));
  owner = {};
  EXPECT_TRUE(tofu.recall_owner(with_path(id, 11) + 1, &owner));
  EXPECT_EQ(owner, (ProcessId{1, 7}));
  EXPECT_EQ(directory.asked, 2);
  tofu.distrust_owner_of(id);
  EXPECT_TRUE(tofu.recall_owner(id, &owner)) << "who had it last answers for it";
  EXPECT_EQ(owner.names, kNamesMoving);
  EXPECT_EQ(tofu.ask_owner(id, &owner), FindResult::kFound);
  EXPECT_NE(owner.names, kNamesMoving);
}

TEST(Tofu, Without_a_directory__everything_is_free_and_nobody_else_is_known) {
  Tofu alone(kHere, nullptr);
  EXPECT_NE(alone.claim_queue(0, 0, CqMode::kShared), nullptr);
  NameOwner owner;
  EXPECT_EQ(alone.ask_owner(make_tofu_id(TofuIdKind::kVcq, kHere, 0), &owner), FindResult::kNobody);
  alone.release_queue(0, 0);
}

}  // namespace
}  // namespace portofu
