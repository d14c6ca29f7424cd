#include "engine/inspect/picture_archive.h"

#include <gtest/gtest.h>

#include "engine/queue/clock.h"
#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

/// A job that waits for a message that is not there, looked at twice.
Looks made_up_looks() {
  std::vector<ProcessPicture> job = made_up_job(2);
  PortalPicture& portal = add_portal(job[1], 4);
  add_entry(portal, 0x10, job_id(0)).ct_handle = kJobCounter;
  add_header(portal, 0x11, job_id(0));
  portal.disabled_since_ns = 5'000;
  add_sleep(job[1], WaitKind::kCounters, 1);
  job[1].core.sleeps[0].since_ns = monotonic_ns();
  interface_in(job[1]).counters.push_back({kJobCounter, 0, 0, {{{3, PacketType::kPut, 0}}, 1, false}});
  job[0].program = "solver";
  job[0].waiting.push_back({7, 0x123, 9});
  job[0].core.vcqs.emplace_back().id = 77;
  return {job, job};
}

TEST(PictureArchive, Looks__arrive_as_they_were) {
  Looks there;
  ASSERT_TRUE(unpack_looks("Welcome to host b\n" + pack_looks(made_up_looks()), &there));
  ASSERT_EQ(there.before.size(), 2u);
  ASSERT_EQ(there.now.size(), 2u);
  EXPECT_EQ(there.now[0].program, "solver");
  EXPECT_EQ(there.now[0].waiting.at(0).waiting_packets, 9u);
  EXPECT_EQ(there.now[0].core.vcqs.at(0).id, 77u);
  EXPECT_EQ(there.now[1].id(), job_id(1));
  const PortalPicture& portal = there.now[1].core.interfaces.at(0).portals.at(0);
  EXPECT_EQ(portal.priority.items.at(0).criteria.match_bits, 0x10u);
  EXPECT_EQ(portal.unexpected.items.at(0).key.match_bits, 0x11u);
  EXPECT_EQ(there.now[1].core.interfaces[0].counters.at(0).waiting.items.at(0).threshold, 3u);
}

TEST(PictureArchive, Findings__are_those_of_the_pictures_themselves) {
  Looks there;
  ASSERT_TRUE(unpack_looks(pack_looks(made_up_looks()), &there));
  const std::vector<Finding> wanted = find_causes(made_up_looks().now);
  const std::vector<Finding> found = find_causes(there.now);
  ASSERT_FALSE(wanted.empty());
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].kind, wanted[i].kind);
}

TEST(PictureArchive, Times__become_those_of_the_clock_here) {
  const Looks looks = made_up_looks();
  Looks there;
  ASSERT_TRUE(unpack_looks(pack_looks(looks), &there));
  const std::uint64_t moved = there.now[1].core.sleeps[0].since_ns - looks.now[1].core.sleeps[0].since_ns;
  EXPECT_LT(moved, 60'000'000'000u) << "the same clock: what was needed in between";
  EXPECT_EQ(there.now[1].core.interfaces[0].portals[0].disabled_since_ns, 5'000 + moved);
  EXPECT_EQ(there.now[1].core.interfaces[0].last_refused.at_ns, 0u) << "no time is none";
}

TEST(PictureArchive, Text__that_is_cut_longer_or_of_another_build_is_refused) {
  const std::string text = pack_looks(made_up_looks());
  Looks there;
  for (std::size_t length = 0; length < text.size(); length += 5)
    EXPECT_FALSE(unpack_looks(text.substr(0, length), &there)) << length;
  EXPECT_FALSE(unpack_looks(text + "x", &there));
  std::string other = text;
  ++other[other.find("=\n") + 2];  // The stamp follows.
  EXPECT_FALSE(unpack_looks(other, &there));
  EXPECT_FALSE(unpack_looks("bash: ptl_info: command not found", &there));
}

TEST(AddLooks, Process__that_both_have_seen_is_there_once) {
  Looks here = made_up_looks();
  Looks there;
  there.now = made_up_job(3);
  there.before = there.now;
  add_looks(std::move(there), &here);
  EXPECT_EQ(here.now.size(), 3u);
  EXPECT_EQ(here.before.size(), 3u);
  EXPECT_EQ(here.now[0].program, "solver") << "the own look is kept";
}

TEST(AddLooks, Ranks__of_several_hosts_are_explained_in_their_order) {
  Looks here, there;
  here.now = {made_up_job(2)[1]};
  there.now = {made_up_job(1)[0]};
  here.before = here.now;
  there.before = there.now;
  add_looks(std::move(there), &here);
  const std::vector<Explanation> jobs = explain_looks(std::move(here));
  ASSERT_EQ(jobs.size(), 1u);
  ASSERT_EQ(jobs[0].processes.size(), 2u);
  EXPECT_EQ(jobs[0].processes[0].rank, 0);
  EXPECT_EQ(jobs[0].processes[1].rank, 1);
}

}  // namespace
}  // namespace portofu
