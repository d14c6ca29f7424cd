// fork, exit without PtlFini, and many lives of the library in one process.

#include <dirent.h>

#include <cstdlib>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

int entry_count(const char* directory) {
  int count = 0;
  DIR* listing = opendir(directory);
  while (listing != nullptr && readdir(listing) != nullptr) ++count;
  if (listing != nullptr) closedir(listing);
  return count;
}

int open_files() { return entry_count("/proc/self/fd"); }
int threads() { return entry_count("/proc/self/task"); }

int mappings() {
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  int lines = 0;
  for (int c = 0; file != nullptr && (c = std::fgetc(file)) != EOF;) lines += c == '\n' ? 1 : 0;
  if (file != nullptr) std::fclose(file);
  return lines;
}

/// Sends to itself and waits for the acknowledgement. @return PTL_OK if all went well
int talk_to_myself() {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t id{};
  std::uint64_t source = 42;
  std::uint64_t target = 0;
  const ptl_le_t le{&target, sizeof target, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
  ptl_event_t event{};
  unsigned int which = 0;
  int rc = PtlInit();
  const auto next = [&rc](int result) {
    if (rc == PTL_OK) rc = result;
    return rc == PTL_OK;
  };
  next(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni)) &&
      next(PtlGetPhysId(ni, &id)) && next(PtlEQAlloc(ni, 16, &eq)) &&
      next(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt)) &&
      next(PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry));
  const ptl_md_t description{&source, sizeof source, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
  next(PtlMDBind(ni, &description, &md)) && next(PtlPut(md, 0, 8, PTL_ACK_REQ, id, pt, 0, 0, nullptr, 0)) &&
      next(PtlEQPoll(&eq, 1, kPatienceMs, &event, &which));
  if (rc == PTL_OK && (event.type != PTL_EVENT_ACK || target != 42)) rc = PTL_FAIL;
  return rc;
}

// 3.5: "A child process does not inherit any Portals resources from its parent."
TEST(Fork, Child__has_nothing_and_harms_nothing) {
  const OwnNode node;
  run_processes(2, [&](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    for (const int peer : {0, 1}) put_and_wait(ends, ni.id(peer), {.length = 8});
    for (int round = 0; round < 5; ++round) {
      ChildProcess child([&] {
        ptl_event_t event{};
        if (PtlPut(ends.md, 0, 8, PTL_NO_ACK_REQ, ni.id(0), kPt, 0, 0, nullptr, 0) != PTL_NO_INIT) return 1;
        if (PtlEQGet(ends.source_eq, &event) != PTL_NO_INIT) return 2;
        if (PtlNIFini(ni) != PTL_NO_INIT) return 3;
        PtlFini();
        PtlAbort();
        if (round == 4) std::exit(0);  // Runs the destructors of the library, too.
        return 0;
      });
      put_and_wait(ends, ni.id(1 - self.rank()), {.length = 8});
      EXPECT_EQ(child.wait_status(), 0) << "round " << round;
      put_and_wait(ends, ni.id(1 - self.rank()), {.length = 8});
    }
    EXPECT_EQ(node.segment_count(), 2);
    self.barrier();
  });
}

TEST(Fork, Child__may_start_the_library_itself) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    const ptl_process_t parent = ni.target();
    ChildProcess child([parent] {
      if (const int rc = talk_to_myself(); rc != PTL_OK) return rc;
      ptl_handle_ni_t own = PTL_INVALID_HANDLE;
      ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
      ptl_handle_md_t md = PTL_INVALID_HANDLE;
      std::uint64_t source = 77;
      ptl_event_t event{};
      unsigned int which = 0;
      if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &own) != PTL_OK) return 50;
      if (PtlEQAlloc(own, 16, &eq) != PTL_OK) return 51;
      const ptl_md_t description{&source, sizeof source, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
      if (PtlMDBind(own, &description, &md) != PTL_OK) return 52;
      if (PtlPut(md, 0, 8, PTL_ACK_REQ, parent, kPt, 0, 0, nullptr, 0) != PTL_OK) return 53;
      if (PtlEQPoll(&eq, 1, kPatienceMs, &event, &which) != PTL_OK || event.ni_fail_type != PTL_NI_OK) return 54;
      PtlFini();
      return 0;
    });
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_NE(event.initiator.phys.pid, parent.phys.pid);
    EXPECT_EQ(word, 77u);
    EXPECT_EQ(child.wait_status(), 0);
  });
}

TEST(Exit, Process_that_returns_from_main_without_PtlFini__leaves_nothing) {
  const OwnNode node;
  ChildProcess child([] {
    if (talk_to_myself() != PTL_OK) return 1;
    std::exit(0);
  });
  EXPECT_EQ(child.wait_status(), 0);
  EXPECT_EQ(node.segment_count(), 0);
}

// _exit and a signal leave the segment behind; the next process of the node removes it.
TEST(Exit, Process_that_ends_without_destructors__is_cleaned_up_by_the_next) {
  const OwnNode node;
  for (const bool killed : {false, true}) {
    ChildProcess child([killed] {
      if (talk_to_myself() != PTL_OK) return 1;
      if (killed) kill(getpid(), SIGKILL);
      return 0;
    });
    EXPECT_EQ(child.wait_status(), killed ? 128 + SIGKILL : 0);
    EXPECT_LE(node.segment_count(), 1) << "none if some other process of the machine has swept already";
    ChildProcess next([] {
      const int rc = talk_to_myself();
      PtlFini();
      return rc;
    });
    EXPECT_EQ(next.wait_status(), 0);
    EXPECT_EQ(node.segment_count(), 0);
  }
}

TEST(Lives, Hundred_cycles__leave_no_file_no_thread_and_no_mapping) {
  const OwnNode node;
  ChildProcess child([] {
    int files = 0, own_threads = 0, maps = 0;
    for (int cycle = 0; cycle < 100; ++cycle) {
      if (talk_to_myself() != PTL_OK) return 1;
      PtlFini();
      if (cycle == 9) files = open_files(), own_threads = threads(), maps = mappings();
    }
    if (open_files() != files) return 2;
    if (threads() != own_threads) return 3;
    // The allocator may map a little more; a mapping for each cycle would be seen.
    return mappings() > maps + 20 ? 4 : 0;
  });
  EXPECT_EQ(child.wait_status(), 0);
}

TEST(Lives, Same_pid__is_free_again_at_once) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni steady(self);
    const Ends ends(steady);
    std::uint64_t word = 0;
    append(steady, me_of(steady, &word, sizeof word));
    self.barrier();
    // Rank 1 has one more process that comes and goes with the same pid, and sends to rank 0 each time.
    if (self.rank() == 1) {
      const ptl_process_t target = steady.target();
      ChildProcess child([target] {
        for (int cycle = 0; cycle < 100; ++cycle) {
          ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
          ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
          ptl_handle_md_t md = PTL_INVALID_HANDLE;
          std::uint64_t source = static_cast<std::uint64_t>(cycle);
          std::uint64_t fetched = 0;
          ptl_event_t event{};
          unsigned int which = 0;
          if (PtlInit() != PTL_OK) return 1;
          if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, 4321, nullptr, nullptr, &ni) != PTL_OK) return 2;
          if (PtlEQAlloc(ni, 16, &eq) != PTL_OK) return 3;
          ptl_md_t description{&source, sizeof source, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
          if (PtlMDBind(ni, &description, &md) != PTL_OK) return 4;
          if (PtlPut(md, 0, 8, PTL_ACK_REQ, target, kPt, 0, 0, nullptr, 0) != PTL_OK) return 5;
          if (PtlEQPoll(&eq, 1, kPatienceMs, &event, &which) != PTL_OK) return 6;
          if (event.ni_fail_type != PTL_NI_OK) return 20 + event.ni_fail_type;
          description.start = &fetched;
          if (PtlMDBind(ni, &description, &md) != PTL_OK) return 7;
          if (PtlGet(md, 0, 8, target, kPt, 0, 0, nullptr) != PTL_OK) return 8;
          if (PtlEQPoll(&eq, 1, kPatienceMs, &event, &which) != PTL_OK) return 9;
          if (event.ni_fail_type != PTL_NI_OK || fetched != source) return 40 + event.ni_fail_type;
          PtlFini();
        }
        return 0;
      });
      EXPECT_EQ(child.wait_status(), 0);
    }
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
