#pragma once
// Pictures of processes that there never were, for tests of what is found in them; and the memory of the test itself.

#include <unistd.h>

#include <cstdint>
#include <vector>

#include "engine/inspect/far_memory.h"
#include "engine/inspect/job_view.h"

namespace portofu {

inline constexpr std::uint32_t kJobNid = 0x0a000001;
inline constexpr Handle kJobCounter = make_handle(HandleKind::kCountingEvent, 1, 0, 3);
inline constexpr Handle kJobQueue = make_handle(HandleKind::kEventQueue, 1, 0, 4);
inline constexpr Handle kJobMd = make_handle(HandleKind::kMemoryDescriptor, 1, 0, 5);

constexpr ProcessId job_id(std::uint32_t rank) { return {kJobNid, 100 + rank}; }

/// Ranks 0, 1, ..., each with a matching physical interface.
inline std::vector<ProcessPicture> made_up_job(std::uint32_t ranks) {
  std::vector<ProcessPicture> job(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    job[rank].descriptor.nid = kJobNid;
    job[rank].descriptor.pid = job_id(rank).pid;
    job[rank].descriptor.incarnation = 1 + rank;
    job[rank].descriptor.os_pid = 1000 + rank;
    job[rank].rank = rank;
    job[rank].sight = Sight::kWhole;
    job[rank].run_state = RunState::kRuns;
    job[rank].core.interfaces.emplace_back().index = 1;
  }
  return job;
}

inline InterfacePicture& interface_in(ProcessPicture& process) { return process.core.interfaces.front(); }

inline PortalPicture& add_portal(ProcessPicture& process, std::uint32_t pt_index) {
  PortalPicture& portal = interface_in(process).portals.emplace_back();
  portal.pt_index = pt_index;
  return portal;
}

/// An entry of the priority list. @param source  {0, 0}: any
inline EntryPicture& add_entry(PortalPicture& portal, std::uint64_t bits, ProcessId source = {},
                               std::uint64_t ignore = 0) {
  EntryPicture& entry = portal.priority.items.emplace_back();
  const bool any = source == ProcessId{};
  entry.criteria = {bits, ignore, source, any, any};
  return entry;
}

inline void add_header(PortalPicture& portal, std::uint64_t bits, ProcessId source) {
  portal.unexpected.items.push_back({{bits, source}, 8, true});
}

/// A thread that sleeps until kJobCounter reaches `test`, or at kJobQueue.
inline void add_sleep(ProcessPicture& process, WaitKind kind, std::uint64_t test = 0) {
  SleepPicture& sleep = process.core.sleeps.emplace_back();
  sleep.subject.kind = kind;
  sleep.subject.add(kind == WaitKind::kCounters ? kJobCounter : kJobQueue, test);
}

/// A loop of looks at an object.
inline PollPicture& add_loop(ProcessPicture& process, WaitKind kind, std::uint64_t object) {
  process.polls = true;
  PollPicture& poll = process.core.polls.emplace_back();
  poll = {{kind, object, 7}, true};
  return poll;
}

inline CounterPicture& add_counter(ProcessPicture& process, std::uint64_t success) {
  return interface_in(process).counters.emplace_back(CounterPicture{kJobCounter, success, 0, {}});
}

/// What one of the searches of job_view.h finds.
inline std::vector<Finding> found_in(const std::vector<ProcessPicture>& job,
                                     void (*find)(const JobView&, std::vector<Finding>*)) {
  std::vector<Finding> findings;
  find(JobView(job), &findings);
  return findings;
}

/// This process, as an onlooker would see it.
class OwnMemory {
 public:
  FarMemory& operator*() { return memory_; }

 private:
  std::uint64_t mark_ = 0x1234567;
  FarMemory memory_{getpid(), reinterpret_cast<std::uint64_t>(&mark_), mark_};
};

}  // namespace portofu
