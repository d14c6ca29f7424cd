// The table of settings. A new setting is a field of Settings and a row here; the parser needs no change, and the
// target settings_page writes the table in lib/environment.md (a test compares them).

#include <array>

#include "engine/config/settings.h"

namespace portofu {
namespace {

constexpr std::uint32_t kMax = UINT32_MAX;

const std::array<SettingRow, 52> kTable{{
    {"PORTOFU_NID", SettingKind::kNodeId, &Settings::nid, nullptr, 1, kMax - 1, "", "address of an interface",
     "Node ID of this node: an IPv4 address or the integer that it stands for. All processes of a node need the same."},
    {"PORTOFU_INTERFACE", SettingKind::kText, nullptr, &Settings::interface, 0, 15, "",
     "first with a carrier, not a bridge",
     "Network interface whose IPv4 address is the node ID, if PORTOFU_NID is not set."},
    {"PORTOFU_JOB_KEY", SettingKind::kInteger, &Settings::job_key, nullptr, 0, kMax, "",
     "of the launcher, or of the user on this node",
     "Key of the job, not 0. Packets that carry another one are refused."},
    {"PORTOFU_SPIN", SettingKind::kInteger, &Settings::spin_count, nullptr, 0, kMax, "polls", nullptr,
     "Empty polls in a row before the polling thread yields its core."},
    {"PORTOFU_SLEEP_AFTER_US", SettingKind::kInteger, &Settings::sleep_after_us, nullptr, 0, 10'000'000, "us", nullptr,
     "Time of empty polling before a waiting thread sleeps until the doorbell rings."},
    {"PORTOFU_PROGRESS_THREAD", SettingKind::kInteger, &Settings::progress_thread, nullptr, 0, 1, "", nullptr,
     "1: a thread of the library serves peers while the application computes. 0: only calls of the application do."},
    {"PORTOFU_GUARD_PERIOD_US", SettingKind::kInteger, &Settings::guard_period_us, nullptr, 50, 100'000, "us", nullptr,
     "How often the progress thread looks whether the application still polls; more rarely while that shares its "
     "core."},
    {"PORTOFU_WINDOW", SettingKind::kInteger, &Settings::window_operations, nullptr, 1, 65536, "operations", nullptr,
     "Operations towards one peer whose answers may be outstanding; more of them wait at the initiator."},
    {"PORTOFU_RING_CELLS", SettingKind::kPowerOfTwo, &Settings::ring_cells, nullptr, 16, 4096, "cells", nullptr,
     "Packets that a shared memory channel holds in one direction."},
    {"PORTOFU_RING_DATA_BYTES", SettingKind::kPowerOfTwo, &Settings::ring_data_bytes, nullptr, 16384, 1'048'576,
     "bytes", nullptr, "Payload that a shared memory channel holds in one direction."},
    {"PORTOFU_SEND_AREA_BYTES", SettingKind::kPowerOfTwo, &Settings::send_area_bytes, nullptr, 65536, 67'108'864,
     "bytes", nullptr,
     "Memory for long payloads that this process sends, to all peers together. Taken when it is needed."},
    {"PORTOFU_LONG_DATA", SettingKind::kInteger, &Settings::long_data, nullptr, 0, 4, "", nullptr,
     "How long payloads travel. 0: as is found to be fast, 1: as short ones, 2: through the send area with ordinary "
     "stores, 3: with streaming stores, 4: copied once, by the kernel."},
    {"PORTOFU_CHANNELS", SettingKind::kInteger, &Settings::channel_count, nullptr, 1, 65536, "channels", nullptr,
     "Peers on this node that may send to this process at the same time."},
    {"PORTOFU_PEER_CHECK_MS", SettingKind::kInteger, &Settings::peer_check_ms, nullptr, 1, 10'000, "ms", nullptr,
     "How often the engine looks whether the peers it waits for are alive."},
    {"PORTOFU_DIRECT", SettingKind::kInteger, &Settings::direct, nullptr, 0, 1, "", nullptr,
     "1: memory of peers is reached by the kernel, or by the initiator itself, where that can be done. 0: always by "
     "packets."},
    {"PORTOFU_HEAP_MIB", SettingKind::kInteger, &Settings::heap_mib, nullptr, 0, 1'048'576, "MiB", nullptr,
     "Most memory of portofu_alloc, which peers map. It costs memory only when it is used. 0: there is none."},
    {"PORTOFU_UNEXPECTED_MIB", SettingKind::kInteger, &Settings::unexpected_mib, nullptr, 1, 1'048'576, "MiB", nullptr,
     "Memory for messages of libfabric that nobody has received yet. Beyond it senders wait, after some more MiB "
     "each."},
    {"PORTOFU_FABRIC", SettingKind::kInteger, &Settings::fabric, nullptr, 0, 2, "", nullptr,
     "When other nodes can reach this process. 0: never, 1: always, 2: if the hosts file or the launcher tells of "
     "other "
     "nodes, or once it has sent something there."},
    {"PORTOFU_FABRIC_PROVIDER", SettingKind::kText, nullptr, &Settings::fabric_provider, 0, 63, "",
     "first that has reliable datagrams", "Provider of libfabric, as fi_info names it: tcp, verbs."},
    {"PORTOFU_FABRIC_ENDPOINT", SettingKind::kWord, &Settings::fabric_endpoint, nullptr, 0, 1, "reliable datagram",
     "reliable",
     "What libfabric is asked for. reliable: reliable datagrams. datagram: unreliable ones, which the library itself "
     "makes reliable; the endpoint then opens with the engine. All processes of a job need the same."},
    {"PORTOFU_DATAGRAM_FAULTS", SettingKind::kText, nullptr, &Settings::datagram_faults, 0, 127, "", "none",
     "For tests of PORTOFU_FABRIC_ENDPOINT=datagram: what is done to the datagrams that this process sends, as "
     "loss=10,duplicate=5,corrupt=1,reorder=64,seed=7. Percent of them, later ones that overtake one in eight, and a "
     "seed."},
    {"PORTOFU_FABRIC_BASE_PORT", SettingKind::kInteger, &Settings::fabric_base_port, nullptr, 0, 64511, "", nullptr,
     "The port of a process on the fabric is this plus its PID. All processes of a job need the same."},
    {"PORTOFU_DIRECTORY_PORT", SettingKind::kInteger, &Settings::directory_port, nullptr, 0, 65535, "",
     "20000..29999, by user and job key",
     "uTofu: UDP port where processes of other nodes ask who owns a control queue. All processes of a job need the "
     "same."},
    {"PORTOFU_HOSTS", SettingKind::kText, nullptr, &Settings::hosts, 0, 4095, "", "none",
     "File with the nodes of the job, one IPv4 address a line, and coordinates X,Y,Z,A,B,C if the node has others than "
     "the line number."},
    {"PORTOFU_LAUNCH_AGENT", SettingKind::kText, nullptr, &Settings::launch_agent, 0, 4095, "", "ssh -x",
     "ptl_run: command that, given a host and a command line, runs that on the host."},
    {"PORTOFU_BIND", SettingKind::kWord, &Settings::bind, nullptr, 0, 4, "share none core l3 numa", "share",
     "ptl_run: the cores that a rank may use. share: an equal share of those to which no other process of the user is "
     "bound, if there is one for each rank. core, l3, numa: one, those of an L3 cache, those of a NUMA domain."},
    {"PORTOFU_MAP", SettingKind::kWord, &Settings::map, nullptr, 0, 2, "core l3 numa", "core",
     "ptl_run: where the next rank goes. core: to the neighbouring core. l3, numa: to the next L3 cache or NUMA "
     "domain."},
    {"PORTOFU_SHUFFLE", SettingKind::kInteger, &Settings::shuffle_seed, nullptr, 0, kMax, "", nullptr,
     "Not 0: packets are delayed and taken in any order that Portals allows, by this seed. For tests, and slow."},
    {"PORTOFU_SIM", SettingKind::kText, nullptr, &Settings::sim, 0, 4095, "", "none",
     "Set by ptl_sim for the ranks that it starts: the file by which they share virtual time."},
    {"PORTOFU_PCAPNG", SettingKind::kText, nullptr, &Settings::pcapng, 0, 4095, "", "none",
     "Directory where the packets that a process sends and receives are captured, for Wireshark: a file each. "
     "Memory of peers is then reached by packets only. Slow, and all processes of a job need the same."},
    {"PORTOFU_COORDS", SettingKind::kText, nullptr, &Settings::coords, 0, 31, "", "0,0,0,0,0,0",
     "uTofu: coordinates X,Y,Z,A,B,C of this node; X, Y, Z at most 255, A and C at most 1, B at most 2."},
    {"PORTOFU_TNIS", SettingKind::kInteger, &Settings::tni_count, nullptr, 1, 256, "TNIs", nullptr,
     "uTofu: network interfaces of a node."},
    {"PORTOFU_CQS", SettingKind::kInteger, &Settings::cq_count, nullptr, 1, 4096, "CQs", nullptr,
     "uTofu: control queues of a TNI, shared by the processes of the node."},
    {"PORTOFU_LANES", SettingKind::kInteger, &Settings::lanes, nullptr, 1, 16, "lanes", "cores of the process, or 1",
     "Lanes that the control queues and barrier gates of uTofu and the domains of libfabric in a process are spread "
     "over, so that threads that use different ones do not wait for each other. 1: one for all, as in a job on several "
     "nodes without PORTOFU_FABRIC_ENDPOINT=datagram, where each has an endpoint of 70 MiB."},
    {"PORTOFU_LOCAL_RANK", SettingKind::kInteger, &Settings::local_rank, nullptr, 0, 65535, "", "of the launcher",
     "uTofu: rank of this process among those of its job on the node. It says which CQs the process takes first."},
    {"PORTOFU_LOCAL_SIZE", SettingKind::kInteger, &Settings::local_size, nullptr, 0, 65536, "", "of the launcher",
     "uTofu: processes of the job on the node, each of which has an equal share of 12 CQs: of 4, local rank r takes CQ "
     "3r first. If nobody tells, 4 are assumed."},
    {"PORTOFU_PER_NODE", SettingKind::kInteger, &Settings::per_node, nullptr, 0, 65536, "processes", "all",
     "uTofu: each so many local ranks of a job on one machine are on a node of their own, with coordinates and CQs of "
     "its own, as if the machine were several nodes. 0: the machine is one node. All processes of a job need the "
     "same."},
    {"PORTOFU_SHAPE", SettingKind::kText, nullptr, &Settings::shape, 0, 31, "", "groups of twelve",
     "uTofu: how the nodes are arranged that one machine stands for, as 2x3x2. Their numbers run along the first side, "
     "then along the second. Each side is a snake in two axes of the torus: X and A, Y and B, Z and C. Six numbers are "
     "the lengths of the torus itself, X first."},
    {"PORTOFU_RANK_CQS", SettingKind::kText, nullptr, &Settings::rank_cqs, 0, 1023, "", "an equal share",
     "uTofu: the CQ that each local rank takes first, as 0,2,5,8."},
    {"PORTOFU_START_VBGS", SettingKind::kInteger, &Settings::start_vbg_count, nullptr, 1, 2048, "gates", nullptr,
     "uTofu: start/end barrier gates of a TNI, shared by the processes of the node."},
    {"PORTOFU_RELAY_VBGS", SettingKind::kInteger, &Settings::relay_vbg_count, nullptr, 0, 2048, "gates", nullptr,
     "uTofu: relay barrier gates of a TNI, shared by the processes of the node."},
    {"PORTOFU_CMP_IDS", SettingKind::kInteger, &Settings::cmp_id_count, nullptr, 1, 256, "VCQs", nullptr,
     "uTofu: component ids of a CQ, and so its VCQs."},
    {"PORTOFU_RESERVED_STAGS", SettingKind::kInteger, &Settings::reserved_stag_count, nullptr, 1, 32768, "STags",
     nullptr, "uTofu: STags of a VCQ that a program can choose."},
    {"PORTOFU_MAX_PUTGET_SIZE", SettingKind::kInteger, &Settings::max_putget_bytes, nullptr, 1, kMax, "bytes", nullptr,
     "uTofu: most bytes of a put or get."},
    {"PORTOFU_MAX_MTU", SettingKind::kInteger, &Settings::max_mtu, nullptr, 1, kMax, "bytes", nullptr,
     "uTofu: largest mtu that a program may ask for."},
    {"PORTOFU_MAX_GAP", SettingKind::kInteger, &Settings::max_gap, nullptr, 0, kMax, "", nullptr,
     "uTofu: largest gap that a program may ask for."},
    {"PORTOFU_TOQ_ENTRIES", SettingKind::kInteger, &Settings::toq_entries, nullptr, 16, 65536, "descriptors", nullptr,
     "uTofu: descriptors of a VCQ that are posted and whose TCQ entries are not read."},
    {"PORTOFU_LOG", SettingKind::kInteger, &Settings::log_level, nullptr, 0, 2, "", nullptr,
     "What is written to standard error. 0: errors, 1: warnings too, 2: information too."},
    {"PORTOFU_CHECK", SettingKind::kText, nullptr, &Settings::check, 0, 4095, "", "0",
     "What works here by luck is found, and said on standard error (see ptl_run --check). 0: nothing is looked for, "
     "1: it is, else: a file where findings are added as lines of JSON, too. Then all goes by packets "
     "(PORTOFU_DIRECT)."},
    {"PORTOFU_STALL_S", SettingKind::kInteger, &Settings::stall_s, nullptr, 0, 86'400, "s", nullptr,
     "A call that has slept so long in the library, or a loop of calls to which so long nothing has come, says once, "
     "on standard error, why (see ptl_info). 0: none does."},
    {"PORTOFU_RECORD", SettingKind::kText, nullptr, &Settings::record, 0, 4095, "", "off",
     "last: the last 4096 steps of each lane can be read from outside (ptl_trace --last). Another text: a directory, "
     "where each lane writes a file of all its steps. off: neither."},
    {"PORTOFU_KEEP_DEAD", SettingKind::kInteger, &Settings::keep_dead, nullptr, 0, 1, "", nullptr,
     "1: when this process is dead its segment stays, for ptl_info, until ptl_info --remove-dead or a process that "
     "wants its PID removes it; and last steps of the dead stay when it opens. 0: it removes them, if it records its "
     "own."},
}};

}  // namespace

std::span<const SettingRow> setting_table() { return kTable; }

std::string default_text(const SettingRow& row) {
  if (row.default_words != nullptr) return row.default_words;
  std::string text = std::to_string(Settings{}.*row.number);
  if (*row.unit != '\0') text.append(" ").append(row.unit);
  return text;
}

std::string allowed_text(const SettingRow& row) {
  std::string range = std::to_string(row.minimum) + ".." + std::to_string(row.maximum);
  switch (row.kind) {
    case SettingKind::kInteger: return range;
    case SettingKind::kPowerOfTwo: return "a power of two, " + range;
    case SettingKind::kNodeId: return "an IPv4 address, or " + range;
    case SettingKind::kWord: return "one of: " + std::string(row.unit);
    case SettingKind::kText: return "at most " + std::to_string(row.maximum) + " characters";
  }
  return {};
}

std::string settings_help() {
  std::string help;
  for (const SettingRow& row : setting_table()) {
    help.append(row.name).append("\n    ").append(row.sentence);
    help.append("\n    Default: ").append(default_text(row));
    help.append(". Allowed: ").append(allowed_text(row)).append(".\n");
  }
  return help;
}

std::string settings_markdown() {
  std::string rows;
  for (const SettingRow& row : setting_table()) {
    rows.append("| `").append(row.name).append("` | ").append(default_text(row)).append(" | ");
    rows.append(allowed_text(row)).append(" | ").append(row.sentence).append(" |\n");
  }
  return rows;
}

}  // namespace portofu
