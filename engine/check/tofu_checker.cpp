#include "engine/check/tofu_checker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/memory/stadd_access.h"
#include "engine/observe/hex_text.h"

namespace portofu {
namespace {

constexpr const char* kOrder = "uTofu guide, 2.2.10";

const char* call_of(const Descriptor& d) {
  switch (d.type) {
    case PacketType::kTofuPut: return d.tofu.brings_data ? "utofu_put_piggyback" : "utofu_put";
    case PacketType::kTofuGet: return "utofu_get";
    case PacketType::kTofuArmw: return "utofu_armw";
    default: return "utofu_nop";
  }
}

std::string stadd_range(std::uint64_t stadd, std::uint64_t bytes) {
  return "STADD " + hex_text(stadd) + ", " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

std::string vcq_text(const VirtualControlQueue& vcq) { return "VCQ " + hex_text(vcq.id); }

/// All that peers have asked of this lane.
std::uint64_t matched_by(const Core& core) {
  return core.counters.get(Counter::kPutsMatched) + core.counters.get(Counter::kGetsMatched) +
         core.counters.get(Counter::kAtomicsMatched);
}

bool writes_there(PacketType type) { return type == PacketType::kTofuPut || type == PacketType::kTofuArmw; }

bool is_local_of(NoticeKind kind, PacketType type) {
  switch (kind) {
    case NoticeKind::kLocalPut: return type == PacketType::kTofuPut;
    case NoticeKind::kLocalGet: return type == PacketType::kTofuGet;
    case NoticeKind::kLocalArmw: return type == PacketType::kTofuArmw;
    default: return false;
  }
}

}  // namespace

TofuChecker::Heard TofuChecker::hear(const Core& core) {
  const std::uint64_t matched = matched_by(core);
  asked_.fetch_add(matched - std::exchange(matched_, matched), std::memory_order_relaxed);
  return {asked_.load(std::memory_order_relaxed), told_.load(std::memory_order_relaxed)};
}

TofuChecker::Posted TofuChecker::describe(Core& core, const VirtualControlQueue& vcq, const Descriptor& d) {
  Posted posted{};
  posted.call = call_of(d);
  posted.type = d.type;
  posted.tcq_notice = (d.tofu_meta & kTofuTcqNotice) != 0;
  posted.local_notice = (d.tofu_meta & kTofuLocalNotice) != 0;
  posted.remote_notice = (d.tofu_meta & kTofuRemoteNotice) != 0;
  posted.strong = (d.tofu_meta & kTofuStrongOrder) != 0;
  posted.flagged = posted.strong || d.tofu.brings_data;  // Its last byte comes last (6.1.3.1), or it is in one line.
  posted.edata = static_cast<std::uint8_t>(d.tofu_meta);
  posted.tcq_place = d.tofu.tcq_place;
  posted.path = d.tofu.remote_vcq_id;
  posted.remote = d.type == PacketType::kTofuNop ? 0 : with_own_path(d.tofu.remote_vcq_id);
  posted.remote_stadd = d.remote_stadd;
  posted.local_stadd = d.tofu.local_stadd;
  posted.length = d.length;
  posted.heard = hear(core);
  const bool is_put = d.type == PacketType::kTofuPut && !d.tofu.brings_data;
  if (!is_put && d.type != PacketType::kTofuGet) return posted;
  NiFail fail = NiFail::kOk;
  const StaddAccess access{d.tofu.local_stadd, d.length, is_put ? PacketType::kTofuGet : PacketType::kTofuPut};
  const RegisteredRegion* region = find_region(core.tofu->stadds(vcq), access, &fail);
  if (region == nullptr) return posted;
  (is_put ? posted.source : posted.destination) =
      Fingerprint(region->segment, stadd_offset(d.tofu.local_stadd), d.length);
  return posted;
}

void TofuChecker::starts(Core& core, const VirtualControlQueue& vcq, const Descriptor& d) {
  Queue& queue = queues_[vcq.handle];
  if (++queue.since_poll == core.settings.toq_entries + std::uint64_t{1}) {
    log_.tell({"tcq_not_polled", call_of(d), vcq_text(vcq), "uTofu guide, 3.7",
               std::to_string(queue.since_poll) +
                   " descriptors were posted since utofu_poll_tcq has made room in the TCQ: on the machine the call "
                   "returns UTOFU_ERR_BUSY",
               "poll the TCQ until it is empty, also if no notice is asked for"});
  }
  if (d.type == PacketType::kTofuNop || vcq.session) return;
  Posted posted = describe(core, vcq, d);
  for (const Posted& earlier : queue.posted) check_order(earlier, posted);
  check_early_use(queue, posted);
  check_flag(queue, posted);
  if (queue.posted.size() == kMostPosted) queue.posted.pop_front();
  queue.posted.push_back(std::move(posted));
}

/// Two communications of one VCQ touch the same bytes of the remote memory, and nothing orders them.
void TofuChecker::check_order(const Posted& earlier, const Posted& later) {
  if (earlier.over || earlier.remote != later.remote || earlier.heard != later.heard) return;
  if (later.strong && earlier.path == later.path) return;
  if (earlier.remote_stadd >= later.remote_stadd + later.length) return;
  if (later.remote_stadd >= earlier.remote_stadd + earlier.length) return;
  if (!writes_there(earlier.type) && !writes_there(later.type)) return;
  if (earlier.type == PacketType::kTofuArmw && later.type == PacketType::kTofuArmw) return;
  log_.tell({"overwrites_unordered", later.call, "remote " + stadd_range(later.remote_stadd, later.length), kOrder,
             std::string("an earlier ") + earlier.call + " of " + std::to_string(earlier.length) +
                 " bytes is at the same bytes, and the program has not learnt that it is over: either may come first",
             "read its local MRQ notice first, or set UTOFU_ONESIDED_FLAG_STRONG_ORDER on the later one"});
}

/// Memory that a get is still to fill is sent on.
void TofuChecker::check_early_use(const Queue& queue, const Posted& posted) {
  if (posted.source.begin() == nullptr) return;
  for (const Posted& get : queue.posted) {
    if (!get.local_notice || get.over || !get.destination.overlaps(posted.source.begin(), posted.length)) continue;
    log_.tell({"buffer_used_early", posted.call, "local " + stadd_range(posted.local_stadd, posted.length), kOrder,
               "it sends memory that an earlier utofu_get still fills: its local MRQ notice has not been read",
               "read the notice first"});
    return;
  }
}

/// A word behind data of which no notice tells anybody: perhaps the target polls it, and takes the data for complete.
/// Whether it does shows when it answers, and nothing that is in order was sent before the next such word.
void TofuChecker::check_flag(Queue& queue, const Posted& posted) {
  // A local notice, too: the program may mean it by what it says to the target.
  const bool is_told = posted.strong || posted.remote_notice || posted.local_notice;
  if (queue.flag.path == posted.path && is_told) queue.flag.open = false;
  for (Posted& earlier : queue.posted) earlier.flagged |= is_told && earlier.path == posted.path;
  if (posted.type == PacketType::kTofuGet || posted.length > kFlagBytes || is_told) return;
  const auto is_data = [&](const Posted& data) {
    return data.path == posted.path && data.type == PacketType::kTofuPut && data.length > kFlagBytes &&
           !data.remote_notice && !data.local_notice && !data.flagged && data.heard.asked == posted.heard.asked;
  };
  if (std::ranges::none_of(queue.posted, is_data)) return;
  confirm_flag(queue, posted.heard.asked);
  queue.flag = {posted.call, posted.path, posted.heard.asked,
                "remote " + stadd_range(posted.remote_stadd, posted.length), true};
}

void TofuChecker::confirm_flag(Queue& queue, std::uint64_t asked) {
  if (!queue.flag.open || asked == queue.flag.asked) return;
  queue.flag.open = false;
  log_.tell({"flag_unordered", queue.flag.call, queue.flag.object, kOrder,
             "it went behind data without STRONG_ORDER, no notice tells the target of either, and the target has "
             "answered: a flag that is polled in memory may be seen before the data",
             "set UTOFU_ONESIDED_FLAG_STRONG_ORDER on the flag, or UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE on the data"});
}

void TofuChecker::learns(Posted& posted) {
  if (std::exchange(posted.left, true)) return;
  const auto change = posted.source.find_change();
  if (!change) return;
  const std::string where = change->bytes == 1 ? "byte " + std::to_string(change->first)
                                               : "bytes from " + std::to_string(change->first) + " on";
  log_.tell({"source_changed", posted.call, "local " + stadd_range(posted.local_stadd, posted.length),
             "uTofu guide, 3.7",
             where + (change->bit >= 0 ? " (bit " + std::to_string(change->bit) + " first)" : "") +
                 " changed before the program had read the TCQ notice or the local MRQ notice",
             "leave the source alone until utofu_poll_tcq, or utofu_poll_mrq for UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, "
             "has returned its notice",
             static_cast<std::int64_t>(change->first), change->bit});
}

/// TCQ notices are in the order of posting, so one tells of all before it, too, and makes room for as many.
void TofuChecker::polls_tcq(const VirtualControlQueue& vcq) {
  Queue& queue = queues_[vcq.handle];
  queue.since_poll = vcq.tcq.unread();
  for (Posted& posted : queue.posted) {
    if (posted.tcq_place < vcq.tcq.read_place() && posted.tcq_notice) learns(posted);
  }
}

void TofuChecker::polls_mrq(const VirtualControlQueue& vcq) {
  const std::uint64_t unread = vcq.mrq.unread();
  if (unread * 8 < std::uint64_t{vcq.mrq.entry_count()} * 7) return;
  log_.tell({"mrq_nearly_full", "utofu_poll_mrq", vcq_text(vcq), "uTofu guide, 3.7, 4.3.2.3",
             std::to_string(unread) + " notices waited in the MRQ of " + std::to_string(vcq.mrq.entry_count()) +
                 ": its overflow ends the program",
             "poll more often, or set UTOFU_NUM_MRQ_ENTRIES"});
}

void TofuChecker::meets(const VirtualControlQueue& vcq, const VirtualControlQueue& other) {
  std::string sentence = "two threads are in calls of it at the same time, and it is not thread-safe";
  if (&vcq != &other)
    sentence = "a thread is in a call of it, another one in a call of " + vcq_text(other) +
               ", which shares its CQ, and neither is thread-safe";
  log_.tell({"threads_at_once", "utofu", vcq_text(vcq), "uTofu guide, 2.5", sentence,
             "create it with UTOFU_VCQ_FLAG_THREAD_SAFE, or one for each thread with UTOFU_VCQ_FLAG_EXCLUSIVE, or let "
             "one thread at a time call"});
}

void TofuChecker::reads(const VirtualControlQueue& vcq, const Notice& notice) {
  // What a get or an ARMW has fetched may tell how far the target is.
  if (notice.kind == NoticeKind::kLocalGet || notice.kind == NoticeKind::kLocalArmw)
    told_.fetch_add(1, std::memory_order_relaxed);
  Queue& queue = queues_[vcq.handle];
  const auto is_of = [&](const Posted& posted) {
    return posted.local_notice && is_local_of(notice.kind, posted.type) &&
           posted.remote == with_own_path(notice.vcq_id) && posted.edata == static_cast<std::uint8_t>(notice.edata);
  };
  const auto found = std::ranges::find_if(queue.posted, is_of);
  if (found == queue.posted.end()) return;
  learns(*found);
  // It has read and written after all that were before it on its path (2.2.10).
  for (auto earlier = queue.posted.begin(); found->strong && earlier != found; ++earlier) {
    if (earlier->path != found->path) continue;
    learns(*earlier);
    earlier->over = true;
  }
  queue.posted.erase(found);
}

void TofuChecker::passes_barrier() { told_.fetch_add(1, std::memory_order_relaxed); }

void TofuChecker::leaves(const VirtualControlQueue& vcq, const RegisteredRegion& region) {
  const auto uses = [&](const Posted& posted) {
    const bool is_get = posted.type == PacketType::kTofuGet;
    const bool is_local = posted.source.bytes() != 0 || posted.destination.bytes() != 0;
    const bool is_open =
        is_get ? posted.local_notice && !posted.over : (posted.tcq_notice || posted.local_notice) && !posted.left;
    return is_local && is_open && stag_of(posted.local_stadd) == region.stag;
  };
  const Queue& queue = queues_[vcq.handle];
  const auto user = std::ranges::find_if(queue.posted, uses);
  if (user == queue.posted.end() && region.pending == 0) return;
  const std::string who = user != queue.posted.end() ? user->call : "a communication of another process";
  log_.tell({"registration_freed_in_use", "utofu_dereg_mem", "STADD " + hex_text(make_stadd(region.stag)),
             "uTofu guide, 3.6, 3.7", who + " uses the memory, and the program has not read that it is over",
             "read the notice of every communication first"});
}

void TofuChecker::frees_region(const VirtualControlQueue& vcq, const RegisteredRegion& region) {
  log_.tell({"left_at_end", "utofu_free_vcq", "STADD " + hex_text(make_stadd(region.stag)) + " of " + vcq_text(vcq),
             "uTofu guide, 3.6.1.1", "memory is registered when its VCQ is freed", "deregister it before"});
}

void TofuChecker::frees(Core& core, VirtualControlQueue& vcq, const char* call) {
  Queue& queue = queues_[vcq.handle];
  confirm_flag(queue, hear(core).asked);
  const auto is_unread = [](const Posted& posted) { return posted.tcq_notice && !posted.left; };
  const auto unread = std::ranges::count_if(queue.posted, is_unread);
  if (unread != 0) {
    log_.tell({"notices_unread", call, vcq_text(vcq) + ", TCQ", "uTofu guide, 3.7",
               std::to_string(unread) + " TCQ notices were asked for and never read, errors among them perhaps",
               "poll the TCQ, or do not ask for notices"});
  }
  const std::uint64_t in_mrq = vcq.unread_notices();
  if (in_mrq != 0) {
    log_.tell({"notices_unread", call, vcq_text(vcq) + ", MRQ", "uTofu guide, 3.7",
               std::to_string(in_mrq) + " MRQ notices were never read, errors among them perhaps",
               "poll the MRQ before the VCQ is freed"});
  }
  queues_.erase(vcq.handle);
}

void TofuChecker::uses(const char* call, const MachineLimit& limit, std::uint64_t value) {
  if (value <= limit.most) return;
  log_.tell({"limit_exceeded", call, std::string(limit.what) + ' ' + std::to_string(value), limit.section,
             "Fugaku takes " + std::to_string(limit.most) + " at most", "keep to what the machine has"});
}

void TofuChecker::ends(Core& core) {
  if (core.tofu == nullptr) return;
  core.tofu->for_each_vcq([&](VirtualControlQueue& vcq) {
    frees(core, vcq, "exit");
    log_.tell({"left_at_end", "exit", vcq_text(vcq), "uTofu guide, 3.3.1", "it was not freed",
               "call utofu_free_vcq before the program ends"});
  });
}

}  // namespace portofu
