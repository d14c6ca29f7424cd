// ptl_info: what Portofu is on this node, and what its processes are doing.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "engine/config/settings.h"
#include "engine/door/inspection.h"
#include "lib/tools/machine.h"
#include "lib/tools/man_page.h"
#include "lib/tools/ptl_info/explain.h"
#include "lib/tools/ptl_info/far_hosts.h"
#include "lib/tools/ptl_info/topology.h"

namespace portofu::tools {
namespace {

const ManPage kPage{
    .name = "ptl_info",
    .sentence = "show limits, settings and running processes of Portofu on this node",
    .synopsis = "[OPTION]...",
    .description =
        "    Without options, shows the version, the node ID, the limits that an interface gets when none\n"
        "    are asked for, and every process of this user that has an interface open: its addresses, who\n"
        "    may send to it and how many packets wait there, the numbers of its endpoints of libfabric,\n"
        "    and what it has counted.\n"
        "\n"
        "    Processes are only looked at; they do not notice it, and may be hanging. A process that has\n"
        "    died without removing its segment is marked so; the next process that starts removes it, if it\n"
        "    had not PORTOFU_KEEP_DEAD=1.\n"
        "\n"
        "    With --explain, says why a program hangs. For each process: what its threads wait for, posted\n"
        "    entries and unexpected headers, counters with the operations that wait for them, event queues,\n"
        "    operations that are not answered, and the queues and barrier gates of uTofu. Then what is wrong\n"
        "    with them, as far as it lasts: a header that differs from the nearest entry in some bits, a\n"
        "    counter that lacks events, an ACK that nobody owes, a disabled portal table entry, a full queue,\n"
        "    a peer that is stopped or dead, a circle of processes that wait for each other.\n"
        "\n"
        "    It reads the memory of the processes, and needs the kernel's leave for that: the same user,\n"
        "    kernel.yama.ptrace_scope 0 or root, and the same build of Portofu.\n"
        "\n"
        "    With --hosts, all hosts of a job are looked at, and what is wrong between them is found, too. The\n"
        "    hosts are named as for ptl_run; without names they are those of PORTOFU_HOSTS of the processes\n"
        "    here, as ptl_run --hosts sets it. The agent starts this program, at the same path, on each.\n",
    .rest =
        "EXIT STATUS\n"
        "    0, or 1 if the shared memory directory cannot be read, no process has the PID that is asked for,\n"
        "    a host does not answer, or standard output cannot be written, or 2 for a wrong command line.\n"};

struct InfoOptions {
  bool limits = false;
  bool settings = false;
  bool processes = false;
  bool topology = false;
  bool all_counters = false;
  bool remove_dead = false;
  std::uint32_t pid = 0;  ///< 0: all.
};

void print_number(const char* name, std::uint64_t value) {
  std::printf("    %-24s %llu\n", name, static_cast<unsigned long long>(value));
}

void print_node() {
  const Settings settings = read_settings();
  const std::uint32_t nid = find_node_id(settings.nid, settings.interface);
  std::printf("Portofu %s, Portals 4.3\nNode ID %s (%u)\n", PORTOFU_VERSION, node_id_text(nid).c_str(), nid);
}

void print_limits() {
  const Limits& limits = kDefaultLimits;
  std::printf("\nLimits of an interface\n");
  print_number("max_entries", limits.max_entries);
  print_number("max_unexpected_headers", limits.max_unexpected_headers);
  print_number("max_mds", limits.max_mds);
  print_number("max_cts", limits.max_cts);
  print_number("max_eqs", limits.max_eqs);
  print_number("max_pt_index", limits.max_pt_index);
  print_number("max_iovecs", limits.max_iovecs);
  print_number("max_list_size", limits.max_list_size);
  print_number("max_triggered_ops", limits.max_triggered_ops);
  print_number("max_msg_size", limits.max_msg_size);
  print_number("max_atomic_size", limits.max_atomic_size);
  print_number("max_fetch_atomic_size", limits.max_fetch_atomic_size);
  print_number("max_waw_ordered_size", limits.max_waw_ordered_size);
  print_number("max_war_ordered_size", limits.max_war_ordered_size);
  print_number("max_volatile_size", limits.max_volatile_size);
  std::printf(
      "    features                 total data ordering, coherent atomics, inaccessible memory at the target\n");
}

void print_settings() {
  std::printf("\nSettings, from environment variables\n");
  for (const SettingRow& row : setting_table()) {
    if (const char* value = std::getenv(row.name)) std::printf("    set: %s=%s\n", row.name, value);
  }
  std::printf("%s", settings_help().c_str());
}

/// The name of a program that runs, or an empty text.
std::string program_name(std::uint32_t os_pid) {
  std::ifstream file("/proc/" + std::to_string(os_pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

void print_channel(const ChannelView& channel) {
  const SlotWord word = SlotWord::unpack(channel.slot_word);
  std::printf("    channel %-4u from PID %-6u %s, %u packets wait\n", channel.slot_index, word.claimer.pid,
              slot_state_name(word.state), channel.waiting_packets);
}

void print_endpoints(std::uint64_t endpoints) {
  if (endpoints == 0) return;
  std::printf("    endpoints of libfabric    ");
  for (int number = 0; number < 64; ++number) {
    if ((endpoints >> number & 1) != 0) std::printf(" %d", number);
  }
  std::printf("\n");
}

/// Engines of the process whose segment this is, each of which has one.
std::size_t count_engines(const SegmentView& one, const std::vector<SegmentView>& all) {
  return static_cast<std::size_t>(std::ranges::count_if(all, [&one](const SegmentView& other) {
    return other.life == SegmentLife::kLiving && other.descriptor.nid == one.descriptor.nid &&
           other.descriptor.os_pid == one.descriptor.os_pid;
  }));
}

/// @param engines  of the process
void print_process(const SegmentView& view, std::size_t engines, bool all_counters) {
  if (view.life == SegmentLife::kUnknown) {
    std::printf("\n%s is not a segment of this version\n", view.name.c_str());
    return;
  }
  const SegmentDescriptorShared& owner = view.descriptor;
  const bool living = view.life == SegmentLife::kLiving;
  std::printf("\nPID %u on node %s: %s %u", owner.pid, node_id_text(owner.nid).c_str(),
              living ? "process" : "DEAD, was process", owner.os_pid);
  if (living) std::printf(" (%s)", program_name(owner.os_pid).c_str());
  if (living && engines > 1) std::printf(", one of its %zu lanes", engines);
  std::printf(", usage ID %u, job key %u\n", owner.uid, owner.job_key);
  std::printf("    %zu of %u channels in use\n", view.channels.size(), owner.channel_count);
  for (const ChannelView& channel : view.channels) print_channel(channel);
  print_endpoints(view.endpoints);
  for (const CounterRow& row : counter_table()) {
    const std::uint64_t value = view.counters[static_cast<std::size_t>(row.counter)];
    if (value == 0 && !all_counters) continue;
    std::printf("    %-26s %12llu %s\n", row.label, static_cast<unsigned long long>(value), row.unit);
  }
}

/// A living process with its lanes, each of which has a segment.
struct LaneGroup {
  std::uint32_t os_pid = 0;
  std::vector<const SegmentView*> lanes;
  std::vector<ThreadPlace> threads;
};

std::vector<LaneGroup> group_lanes(const std::vector<SegmentView>& views) {
  std::vector<LaneGroup> processes;
  for (const SegmentView& view : views) {
    if (view.life != SegmentLife::kLiving) continue;
    const std::uint32_t os_pid = view.descriptor.os_pid;
    auto own = std::ranges::find(processes, os_pid, &LaneGroup::os_pid);
    if (own == processes.end()) own = processes.insert(own, {os_pid, {}, threads_of(os_pid)});
    own->lanes.push_back(&view);
  }
  return processes;
}

/// Whether some lane of one process has a channel to some lane of the other.
bool sends_to(const LaneGroup& sender, const LaneGroup& receiver) {
  const auto is_senders = [&sender](const ChannelView& channel) {
    const ProcessId from = SlotWord::unpack(channel.slot_word).claimer;
    return std::ranges::any_of(sender.lanes, [&from](const SegmentView* lane) {
      return lane->descriptor.nid == from.nid && lane->descriptor.pid == from.pid;
    });
  };
  return std::ranges::any_of(receiver.lanes,
                             [&](const SegmentView* lane) { return std::ranges::any_of(lane->channels, is_senders); });
}

/// Living processes, with their lanes and threads, on the cores of the machine, and how far those are that they
/// exchange messages with.
bool print_topology() {
  std::string why;
  const auto machine = read_machine(&why);
  if (!machine) {
    std::fprintf(stderr, "ptl_info: %s\n", why.c_str());
    return false;
  }
  std::printf("\nCores that this process may use\n%s", machine_text(*machine).c_str());
  std::vector<SegmentView> views;
  view_segments(SegmentOptions{}.directory, &views);
  const std::vector<LaneGroup> processes = group_lanes(views);
  for (const LaneGroup& one : processes) {
    std::printf("\nPID %u: process %u (%s)", one.lanes.front()->descriptor.pid, one.os_pid,
                program_name(one.os_pid).c_str());
    if (one.lanes.size() > 1) std::printf(", %zu lanes, PID", one.lanes.size());
    for (std::size_t i = 0; i < one.lanes.size() && one.lanes.size() > 1; ++i)
      std::printf("%s %u", i == 0 ? "" : ",", one.lanes[i]->descriptor.pid);
    std::printf("\n%s", threads_text(*machine, one.threads).c_str());
    for (const LaneGroup& other : processes) {
      if (&other == &one || (!sends_to(one, other) && !sends_to(other, one))) continue;
      const std::string distance = distance_text(*machine, one.threads, other.threads);
      std::printf("    messages with process %u%s%s\n", other.os_pid, distance.empty() ? "" : ": ", distance.c_str());
    }
  }
  return true;
}

/// @return false if they cannot be seen, or the one that is asked for is not there
bool print_processes(const InfoOptions& options) {
  const std::string directory = SegmentOptions{}.directory;
  std::vector<SegmentView> views;
  if (!view_segments(directory, &views)) {
    std::fprintf(stderr, "ptl_info: cannot read %s\n", directory.c_str());
    return false;
  }
  std::size_t shown = 0;
  for (const SegmentView& view : views) {
    if (options.pid != 0 && view.descriptor.pid != options.pid) continue;
    print_process(view, count_engines(view, views), options.all_counters);
    ++shown;
  }
  const std::string which = options.pid != 0 ? " with PID " + std::to_string(options.pid) : "";
  if (shown == 0) std::printf("\nNo process of user %u%s has an interface open\n", geteuid(), which.c_str());
  return shown != 0 || options.pid == 0;
}

int show(InfoOptions options) {
  if (options.remove_dead) {
    std::printf("%d segments were removed\n", remove_dead_segments(SegmentOptions{}.directory));
    return 0;
  }
  options.processes = options.processes || options.pid != 0;
  const bool chosen = options.limits || options.settings || options.processes || options.topology;
  print_node();
  if (options.limits || !chosen) print_limits();
  if (options.settings) print_settings();
  if (options.topology && !print_topology()) return 1;
  if ((options.processes || !chosen) && !print_processes(options)) return 1;
  return 0;
}

}  // namespace
}  // namespace portofu::tools

int main(int argc, char** argv) {
  using namespace portofu::tools;
  if (argc == 2 && std::string(argv[1]) == kLooksOption) return write_looks();
  InfoOptions options;
  CLI::App app;
  app.add_flag("-l,--limits", options.limits, "Shows the limits.");
  app.add_flag("-s,--settings", options.settings, "Shows the settings, what each does, and which are set.");
  app.add_flag("-p,--processes", options.processes, "Shows the processes.");
  app.add_flag("-t,--topology", options.topology,
               "Shows the cores and what they share; where the threads of processes have run last, their lanes, "
               "and how far those are that exchange messages.");
  app.add_option("--pid", options.pid, "Shows the process with this Portals PID only.")->option_text("PID");
  ExplainOptions explained;
  CLI::Option* const explains =
      app.add_option("-e,--explain", explained.pid, "Says why processes hang: all, or the one with this Portals PID.");
  explains->expected(0, 1)->option_text("[PID]");
  app.add_flag("-j,--json", explained.json, "With --explain: says it in JSON.")->needs(explains);
  CLI::Option* const hosts = app.add_option(
      "--hosts", explained.hosts,
      "With --explain: looks on other hosts, too: a list or file as for ptl_run, or the nodes of the jobs "
      "here.");
  hosts->expected(0, 1)->option_text("[HOSTS]")->needs(explains);
  app.add_option("--agent", explained.agent,
                 "Command that runs another on a host; without it, PORTOFU_LAUNCH_AGENT or "
                 "ssh -x.")
      ->option_text("COMMAND")
      ->needs(hosts);
  app.add_flag("--remove-dead", options.remove_dead, "Removes what dead processes of this user have left.");
  app.add_flag("-a,--all", options.all_counters, "Shows counters that are zero, too.");
  const int status = parse_command_line(app, kPage, argc, argv, 2);
  if (status >= 0) return status;
  explained.on_hosts = hosts->count() != 0;
  return status_of_output(kPage, explains->count() != 0 ? explain(explained) : show(options));
}
