#pragma once
// What a program of uTofu does that the guide does not allow, seen at its calls. On duty.
//
// A program knows that a source is free when it reads the TCQ notice, or the local MRQ notice; that a communication is
// over when it reads the latter, or that of a later one of STRONG_ORDER. Between two communications for which it has
// read nothing there is no order, unless the second is of STRONG_ORDER (2.2.10). Others may have told the program that
// the first is over: by a message, at any of its queues, by what it has fetched, or by a barrier. Each of these ends
// such a doubt.

#include <atomic>
#include <compare>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "engine/check/finding.h"
#include "engine/check/fingerprint.h"
#include "engine/check/machine_limits.h"
#include "engine/core/core.h"

namespace portofu {

class TofuChecker {
 public:
  explicit TofuChecker(FindingLog& log) : log_(log) {}

  /// Before a descriptor of a VCQ starts. In session mode it waits for its step, and what it reads until then may be
  /// what others write (2.2.8), so it is only counted.
  void starts(Core& core, const VirtualControlQueue& vcq, const Descriptor& descriptor);

  /// The program has looked at the TCQ, and perhaps read a notice.
  void polls_tcq(const VirtualControlQueue& vcq);

  /// The program looks at the MRQ, and gets a notice.
  void polls_mrq(const VirtualControlQueue& vcq);
  void reads(const VirtualControlQueue& vcq, const Notice& notice);

  /// The program has learnt that a barrier, or a reduction, is over.
  static void passes_barrier();

  /// A thread is in a call of a VCQ while another one is in a call of a VCQ of the same CQ, of the same one perhaps,
  /// and neither is thread-safe.
  void meets(const VirtualControlQueue& vcq, const VirtualControlQueue& other);

  /// A region is registered no more. @param stadd  of its first byte
  void leaves(const VirtualControlQueue& vcq, const RegisteredRegion& region);

  /// A VCQ is freed, and had this registered still.
  void frees_region(const VirtualControlQueue& vcq, const RegisteredRegion& region);
  void frees(Core& core, VirtualControlQueue& vcq, const char* call);

  /// A call uses a value that the machine need not take.
  void uses(const char* call, const MachineLimit& limit, std::uint64_t value);

  /// Packets may have arrived.
  void look(const Core& core) { hear(core); }

  /// The engine ends with what it has.
  void ends(Core& core);

 private:
  /// How often others may have told the program something.
  struct Heard {
    std::uint64_t asked = 0;  ///< By what they have sent.
    std::uint64_t told = 0;   ///< By what the program has fetched, and by barriers.
    auto operator<=>(const Heard&) const = default;
  };
  /// A communication of which the program has not read all.
  struct Posted {
    const char* call;
    PacketType type;
    bool tcq_notice;
    bool local_notice;
    bool remote_notice;
    bool strong;
    bool left = false;     ///< The program knows that the source is free.
    bool over = false;     ///< It knows that a later one is over, which came behind this one.
    bool flagged = false;  ///< It, or something behind it, may tell the target that it is complete.
    std::uint8_t edata;
    std::uint64_t tcq_place;
    std::uint64_t remote;  ///< VCQ ID without path.
    std::uint64_t path;    ///< VCQ ID with it.
    std::uint64_t remote_stadd;
    std::uint64_t local_stadd;
    std::uint64_t length;
    Heard heard;              ///< When it was posted.
    Fingerprint source;       ///< Of a put from memory.
    Fingerprint destination;  ///< Of a get.
  };
  /// A word that was put behind data, both without a notice. It is a flag if something arrives before something ordered
  /// follows it: what is only a part of a message has its flag behind it.
  struct Doubt {
    const char* call = "";
    std::uint64_t path = 0;
    std::uint64_t asked = 0;  ///< Heard::asked when it was put.
    std::string object;
    bool open = false;
  };
  struct Queue {
    std::deque<Posted> posted;     ///< Oldest first; at most kMostPosted.
    std::uint64_t since_poll = 0;  ///< Descriptors that may have entries in the TCQ.
    Doubt flag;
  };

  static constexpr std::size_t kMostPosted = 1024;
  static constexpr std::uint64_t kFlagBytes = 8;

  Heard hear(const Core& core);
  Posted describe(Core& core, const VirtualControlQueue& vcq, const Descriptor& d);
  void check_order(const Posted& earlier, const Posted& later);
  void check_flag(Queue& queue, const Posted& posted);
  void check_early_use(const Queue& queue, const Posted& posted);
  void confirm_flag(Queue& queue, std::uint64_t asked);
  void learns(Posted& posted);

  /// Of the process, because a program that waits for one queue may learn it from another, which is of another lane
  /// with a checker of its own. Relaxed: threads that tell each other have their own order.
  static inline std::atomic<std::uint64_t> asked_{0};
  static inline std::atomic<std::uint64_t> told_{0};

  FindingLog& log_;
  std::uint64_t matched_ = 0;  ///< What of `asked_` is of this lane.
  std::unordered_map<Handle, Queue> queues_;
};

}  // namespace portofu
