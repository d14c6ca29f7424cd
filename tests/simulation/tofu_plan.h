#pragma once
// What a few processes of uTofu write into their TOQs, drawn from a seed, and what must follow from it whatever the
// order in which packets travel. Nothing of the engine is asked.
//
// Every message writes to a place of its own. A session mode VCQ forwards what it has received only where the guide
// promises that it is there: where so many steps are needed that they cannot come together without that message.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/atomic/atomic_unit.h"
#include "engine/descriptor/descriptor.h"
#include "engine/event/notice_queue.h"
#include "engine/topology/tofu_id.h"
#include "engine/wire/sim/sim_random.h"

namespace portofu::simulation {

/// What is wrong with a message.
enum class PlannedFault : std::uint8_t {
  kNone,
  kRemoteStadd,   ///< Nobody has registered the remote STADD.
  kRemoteBehind,  ///< It lies behind its region.
  kRemoteLength,  ///< The range leaves its region.
  kReadOnly,      ///< The remote region must not be written.
  kNoVcq,         ///< The CQ has no such VCQ.
  kNoQueue,       ///< Nobody has such a CQ.
  kLocalStadd,    ///< Nobody has registered the local STADD.
  kLocalLength    ///< The local range leaves its region.
};

/// What the plans of a test look like.
struct SessionTaste {
  std::size_t message_count = 40;
  std::size_t most_processes = 4;
  std::uint64_t session_percent = 60;  ///< VCQs in session mode.
  std::uint64_t nop_percent = 10;      ///< Of the descriptors of session mode VCQs.
  std::uint64_t fault_percent = 4;
  std::uint32_t most_steps = 3;     ///< SPS of most messages; a tenth draws up to 15.
  std::uint64_t late_percent = 25;  ///< VCQs whose descriptors are written when everything else has come to rest.
  bool lossy = false;               ///< Over reliable wires on a bad network.
  /// Processes use memory of their peers without them. Not with faults: what such a use tells at once may overtake the
  /// notice of an earlier put that wanted none, and has failed at the peer.
  bool shows_memory = false;
};

/// One descriptor. Places are offsets into the memory of a process.
struct PlannedMessage {
  PacketType kind = PacketType::kTofuNop;
  std::size_t from = 0;  ///< VCQ.
  std::size_t to = 0;    ///< VCQ; meaningless for a NOP.
  PlannedFault fault = PlannedFault::kNone;
  bool starts = true;  ///< False: the steps for it never come.
  bool tcq = false;
  bool local = false;
  bool remote = false;
  bool strong = false;
  bool forwards = false;   ///< The source is what the VCQ has received.
  bool scribbles = false;  ///< The source is overwritten when the TCQ says that it may be.
  std::uint32_t sps = 0;
  std::uint8_t edata = 0;
  std::uint64_t length = 0;
  std::uint64_t source_at = 0;  ///< At `from`; a get's at `to`.
  std::uint64_t target_at = 0;  ///< At `to`; a get's at `from`.
  std::vector<std::byte> data;  ///< What lies there afterwards; for puts and gets.

  AtomicOperation operation = AtomicOperation::kSum;
  std::uint64_t value = 0;
  std::uint64_t compared = 0;
  std::uint64_t old_value = 0;  ///< What the notice must say.

  bool is_put() const { return kind == PacketType::kTofuPut || kind == PacketType::kTofuPiggyback; }
  bool is_good() const { return starts && fault == PlannedFault::kNone; }
};

struct PlannedVcq {
  std::size_t process = 0;
  std::uint32_t number = 0;
  std::uint64_t id = 0;
  bool session = false;
  bool late = false;
  std::vector<std::size_t> messages;  ///< Its TOQ, in order.
  std::uint64_t steps = 0;            ///< That arrive.
};

/// A notice, and the message that it tells of.
struct PlannedNotice {
  Notice notice;
  std::size_t message = 0;
};

/// An order that the guide promises: notices of one side about one other VCQ. @spec uTofu guide, 2.2.10
struct NoticeStream {
  bool remote = false;
  std::uint64_t peer_id = 0;
  friend auto operator<=>(const NoticeStream&, const NoticeStream&) = default;
};

class TofuPlan {
 public:
  static constexpr std::uint64_t kConstantBytes = 12288;           ///< At the front of each memory; never written.
  static constexpr std::uint64_t kReadOnlyBytes = kConstantBytes;  ///< Registered once more as read-only.

  TofuPlan(SimRandom& random, const SessionTaste& taste);

  std::vector<Coordinates> coordinates;  ///< Of each process.
  std::vector<PlannedVcq> vcqs;
  std::vector<PlannedMessage> messages;
  std::vector<std::vector<std::byte>> before;  ///< Memory of each process.
  std::vector<std::vector<std::byte>> after;   ///< When everything has happened.

  /// The remote VCQ ID as the message names it: with the path of the pair.
  std::uint64_t named_id(const PlannedMessage& message) const;

  /// What the TCQ must tell of a message.
  static NiFail tcq_fail(const PlannedMessage& message);

  // What follows needs the STADDs, which each VCQ gets when it registers the memory of its process.
  std::vector<std::uint64_t> stadds;            ///< By VCQ.
  std::vector<std::uint64_t> read_only_stadds;  ///< Of the first kReadOnlyBytes.

  /// Remote and local STADD of a message, right or wrong.
  std::uint64_t remote_stadd(const PlannedMessage& message) const;
  std::uint64_t local_stadd(const PlannedMessage& message) const;

  /// Notices of each VCQ.
  std::vector<std::map<NoticeStream, std::vector<PlannedNotice>>> expected_notices() const;

 private:
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool percent(std::uint64_t share) { return random_.below(100) < share; }

  void make_vcqs();
  void make_messages();
  void make_message(std::size_t from, bool starts);
  void draw_flags(PlannedMessage& message);
  void draw_fault(PlannedMessage& message);
  std::uint64_t draw_length();
  std::uint64_t take_room(std::size_t process, std::uint64_t bytes, std::uint64_t alignment);
  std::uint64_t take_word(const PlannedMessage& message);

  void fill_memory();
  void choose_source(PlannedMessage& message, std::uint64_t place);
  std::vector<const PlannedMessage*> certain_sources(const PlannedMessage& message, std::uint64_t place) const;
  void apply(PlannedMessage& message);
  void apply_armw(PlannedMessage& message);

  SimRandom& random_;
  const SessionTaste taste_;
  std::vector<std::uint64_t> used_;                                                  ///< Bytes of each memory.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::uint64_t>> words_;  ///< Of each pair of VCQs.
  std::vector<std::uint32_t> paths_;                                                 ///< Of each pair of VCQs.
};

}  // namespace portofu::simulation
