#pragma once
// What a user can set from the environment. One table (setting_table) holds names, defaults, ranges and sentences;
// help, lib/environment.md and parser all come from it. Read once, when an engine opens; constant afterwards.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace portofu {

/// The values in force. A default in this struct is the default of the table; a test compares the two.
struct Settings {
  std::uint32_t nid = 0;                      ///< PORTOFU_NID, host byte order; 0: look for an interface.
  std::string interface;                      ///< PORTOFU_INTERFACE; empty: the best one.
  std::uint32_t job_key = 0;                  ///< PORTOFU_JOB_KEY; 0: that of the launcher or the user.
  std::uint32_t spin_count = 2000;            ///< PORTOFU_SPIN, empty polls before a yield.
  std::uint32_t sleep_after_us = 200;         ///< PORTOFU_SLEEP_AFTER_US.
  std::uint32_t progress_thread = 1;          ///< PORTOFU_PROGRESS_THREAD; 0: none is started.
  std::uint32_t guard_period_us = 500;        ///< PORTOFU_GUARD_PERIOD_US.
  std::uint32_t window_operations = 1024;     ///< PORTOFU_WINDOW, a peer.
  std::uint32_t ring_cells = 128;             ///< PORTOFU_RING_CELLS, a power of two.
  std::uint32_t ring_data_bytes = 32768;      ///< PORTOFU_RING_DATA_BYTES, a power of two.
  std::uint32_t send_area_bytes = 2097152;    ///< PORTOFU_SEND_AREA_BYTES, a power of two.
  std::uint32_t long_data = 0;                ///< PORTOFU_LONG_DATA, values of LongData.
  std::uint32_t channel_count = 1024;         ///< PORTOFU_CHANNELS.
  std::uint32_t peer_check_ms = 100;          ///< PORTOFU_PEER_CHECK_MS.
  std::uint32_t direct = 1;                   ///< PORTOFU_DIRECT; 0: memory of peers is reached by packets only.
  std::uint32_t heap_mib = 1024;              ///< PORTOFU_HEAP_MIB; 0: there is no heap that peers map.
  std::uint32_t unexpected_mib = 256;         ///< PORTOFU_UNEXPECTED_MIB.
  std::uint32_t fabric = 2;                   ///< PORTOFU_FABRIC, values of FabricUse.
  std::string fabric_provider;                ///< PORTOFU_FABRIC_PROVIDER; empty: chosen by what it can do.
  std::uint32_t fabric_endpoint = 0;          ///< PORTOFU_FABRIC_ENDPOINT, values of EndpointKind.
  std::string datagram_faults;                ///< PORTOFU_DATAGRAM_FAULTS; empty: none.
  std::uint32_t fabric_base_port = 0;         ///< PORTOFU_FABRIC_BASE_PORT.
  std::uint32_t directory_port = 0;           ///< PORTOFU_DIRECTORY_PORT; 0: by user and job key.
  std::string hosts;                          ///< PORTOFU_HOSTS; empty: there is no file.
  std::string launch_agent;                   ///< PORTOFU_LAUNCH_AGENT, of ptl_run; empty: ssh -x.
  std::uint32_t bind = 0;                     ///< PORTOFU_BIND, of ptl_run, values of BindTo.
  std::uint32_t map = 0;                      ///< PORTOFU_MAP, of ptl_run, values of MapBy.
  std::uint32_t shuffle_seed = 0;             ///< PORTOFU_SHUFFLE; 0: packets are taken as they come.
  std::string sim;                            ///< PORTOFU_SIM; empty: time is real.
  std::string pcapng;                         ///< PORTOFU_PCAPNG; empty: packets are not captured.
  std::string coords;                         ///< PORTOFU_COORDS; empty: 0,0,0,0,0,0.
  std::uint32_t tni_count = 6;                ///< PORTOFU_TNIS.
  std::uint32_t cq_count = 9;                 ///< PORTOFU_CQS, a TNI.
  std::uint32_t lanes = 0;                    ///< PORTOFU_LANES; 0: by cores and processes of the node.
  std::uint32_t local_rank = UINT32_MAX;      ///< PORTOFU_LOCAL_RANK; UINT32_MAX: that of the launcher.
  std::uint32_t local_size = 0;               ///< PORTOFU_LOCAL_SIZE; 0: that of the launcher.
  std::uint32_t per_node = 0;                 ///< PORTOFU_PER_NODE; 0: all processes of the machine are on one node.
  std::string shape;                          ///< PORTOFU_SHAPE; empty: groups of twelve nodes.
  std::string rank_cqs;                       ///< PORTOFU_RANK_CQS; empty: the CQs are divided evenly.
  std::uint32_t start_vbg_count = 16;         ///< PORTOFU_START_VBGS, a TNI.
  std::uint32_t relay_vbg_count = 32;         ///< PORTOFU_RELAY_VBGS, a TNI.
  std::uint32_t cmp_id_count = 8;             ///< PORTOFU_CMP_IDS, a CQ.
  std::uint32_t reserved_stag_count = 256;    ///< PORTOFU_RESERVED_STAGS, a VCQ.
  std::uint32_t max_putget_bytes = 16777215;  ///< PORTOFU_MAX_PUTGET_SIZE.
  std::uint32_t max_mtu = 1920;               ///< PORTOFU_MAX_MTU.
  std::uint32_t max_gap = 255;                ///< PORTOFU_MAX_GAP.
  std::uint32_t toq_entries = 2048;           ///< PORTOFU_TOQ_ENTRIES, a VCQ.
  std::uint32_t log_level = 1;                ///< PORTOFU_LOG, values of LogLevel.
  std::string check;                          ///< PORTOFU_CHECK; empty or 0: nothing is checked.
  std::uint32_t stall_s = 0;                  ///< PORTOFU_STALL_S; 0: waits say nothing.
  std::string record;                         ///< PORTOFU_RECORD; empty: off.
  std::uint32_t keep_dead = 0;                ///< PORTOFU_KEEP_DEAD.
};

/// When the endpoint opens by which other nodes reach this process.
enum class FabricUse : std::uint32_t {
  kOff = 0,   ///< Never.
  kOn = 1,    ///< With the engine, which cannot open without it.
  kAuto = 2,  ///< With the engine if hosts file or launcher tell of other nodes, else with the first packet to one.
};

/// What the fabric is asked for.
enum class EndpointKind : std::uint32_t {
  kReliable = 0,  ///< Reliable datagrams (FI_EP_RDM).
  kDatagram = 1,  ///< Unreliable ones (FI_EP_DGRAM), which wire/reliable makes reliable.
};

/// How the text of a setting is read.
enum class SettingKind : std::uint8_t {
  kInteger,     ///< Decimal, or hexadecimal after 0x.
  kPowerOfTwo,  ///< The same, and one bit only.
  kNodeId,      ///< Dotted IPv4, or an integer in host byte order.
  kText,        ///< Taken as it is.
  kWord,        ///< One of SettingRow::unit, or its number there, from 0.
};

/// One row of the table.
struct SettingRow {
  const char* name;                 ///< Name of the environment variable.
  SettingKind kind;                 ///< How its value is read.
  std::uint32_t Settings::*number;  ///< Where a number goes; nullptr for kText.
  std::string Settings::*text;      ///< Where a text goes; nullptr for the others.
  std::uint32_t minimum;            ///< Smallest value allowed; unused for kText.
  std::uint32_t maximum;            ///< Largest value allowed. For kText: most characters.
  const char* unit;                 ///< Of the value; "" if it has none. For kWord: all words, with a space between.
  const char* default_words;        ///< Said instead of the default where the number says nothing; else nullptr.
  const char* sentence;             ///< For people: what it does.
};

/// The table, in the order of the help.
std::span<const SettingRow> setting_table();

/// Finds a variable's value; nullptr if it is not set. std::getenv, or a test's own.
using GetVariable = std::function<const char*(const char* name)>;

/// Takes one line of complaint, without a newline.
using TakeComplaint = std::function<void(const std::string& line)>;

/// Reads every setting. A bad value never fails: the default is taken, and one line names the variable, what is allowed
/// and what was taken. An empty value counts as not set.
/// @param complain  called once for each bad value
Settings read_settings(const GetVariable& get_variable, const TakeComplaint& complain);

/// Names in an environment that are no setting's, but nearly one's. Others are none of our business: scripts have
/// theirs.
/// @param environment  as `environ`
/// @param complain  called once for each such name
void look_for_misspelled(const char* const* environment, const TakeComplaint& complain);

/// Both from the environment of the process, with complaints on stderr, but for those that were told when it was
/// read before. Not to be called while another thread changes the environment.
Settings read_settings();

/// The default as the help says it: "200 us".
std::string default_text(const SettingRow& row);

/// What a value may be: "50..100000", "a power of two, 16..4096".
std::string allowed_text(const SettingRow& row);

/// The whole table for a terminal, one paragraph a setting.
std::string settings_help();

/// The rows of the table in lib/environment.md.
std::string settings_markdown();

}  // namespace portofu
