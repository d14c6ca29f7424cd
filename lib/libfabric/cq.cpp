// fi_cq(3): completion queues.

#include "lib/libfabric/cq.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "engine/door/process.h"
#include "lib/libfabric/credit.h"
#include "lib/libfabric/endpoint.h"
#include "lib/libfabric/word.h"

namespace portofu::fabric {
namespace {

/// The error of a completion. Of what a target refused, what it was says why.
int error_of(const Event& event) {
  switch (event.ni_fail_type) {
    case NiFail::kOk: return 0;
    case NiFail::kUndeliverable: return FI_ECONNABORTED;
    case NiFail::kPtDisabled:
    case NiFail::kDropped: {
      const WordKind kind = kind_of(event.user_ptr);
      return kind == WordKind::kSend || kind == WordKind::kTaggedSend ? FI_ECONNREFUSED : FI_EKEYREJECTED;
    }
    case NiFail::kPermViolation:
    case NiFail::kOpViolation: return FI_EACCES;
    case NiFail::kSegv: return FI_EFAULT;
    case NiFail::kTruncated: return FI_ETRUNC;
    case NiFail::kCanceled: return FI_ECANCELED;
    case NiFail::kNoMatch: return FI_ENOMSG;
    default: return FI_EIO;
  }
}

bool is_of_target(EventKind kind) {
  return kind == EventKind::kPut || kind == EventKind::kAtomic || kind == EventKind::kFetchAtomic ||
         kind == EventKind::kGet;
}

/// The index is asked first: no event of an initiator has one, so mostly nothing else has to be asked.
bool is_of_memory(const Event& event) {
  return portal_use(event.pt_index) == PortalUse::kMemory && is_of_target(event.type);
}

/// Events that are nobody's completion: what failed in memory of ours is told to whoever did it.
bool is_silent(const Event& event) {
  return is_of_memory(event) && (!event.has_data || event.ni_fail_type != NiFail::kOk);
}

/// What is no plain end of a message, or of a transfer that was started here.
[[gnu::noinline]] std::uint64_t flags_of_rare(const Event& event, std::uint64_t flags) {
  if (event.type == EventKind::kAtomic || event.type == EventKind::kFetchAtomic) return flags | FI_ATOMIC;
  if (event.type != EventKind::kAutoUnlink) return flags;
  // That a buffer is used up is no message: who finds FI_RECV looks for one. That it is canceled ends its receive, too.
  return event.ni_fail_type == NiFail::kOk ? FI_MULTI_RECV : flags | FI_MULTI_RECV;
}

[[gnu::always_inline]] inline std::uint64_t flags_of(const Event& event, bool of_memory) {
  const std::uint64_t data = event.has_data ? FI_REMOTE_CQ_DATA : 0;
  if (of_memory) [[unlikely]]
    return FI_REMOTE_WRITE | (event.type == EventKind::kPut ? FI_RMA : FI_ATOMIC) | data;
  const std::uint64_t flags = flags_of(kind_of(event.user_ptr));
  if (event.type == EventKind::kPut || event.type == EventKind::kSend) [[likely]]
    return flags | data;
  return flags_of_rare(event, flags) | data;
}

fi_addr_t source_of(const Lane& lane, const Event& event) {
  const Receive* receive = is_of_target(event.type) ? receiver_of(lane, event.pt_index / kPortalsPerEndpoint) : nullptr;
  if (receive == nullptr || receive->av == nullptr) return FI_ADDR_NOTAVAIL;
  fi_addr_t found = FI_ADDR_NOTAVAIL;
  guarded([&] {
    found = receive->av->find(event.initiator);
    return 0;
  });
  return found;
}

constexpr std::size_t entry_bytes(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_MSG: return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA: return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED: return sizeof(fi_cq_tagged_entry);
    default: return sizeof(fi_cq_entry);
  }
}

/// Each format begins with what the one before it has, so an entry is written as far as the format goes.
[[gnu::always_inline]] inline void write_entry(fi_cq_format format, const Event& event, std::byte* place) {
  auto* entry = reinterpret_cast<fi_cq_tagged_entry*>(place);
  entry->op_context = context_of(event.user_ptr);
  if (format == FI_CQ_FORMAT_CONTEXT) return;
  const bool of_memory = is_of_memory(event);
  entry->flags = flags_of(event, of_memory);
  entry->len = fresh(event.mlength);
  if (format == FI_CQ_FORMAT_MSG) return;
  entry->buf = of_memory ? nullptr : event.start;  // That of an initiator's event is nullptr, too.
  entry->data = event.has_data ? event.hdr_data : 0;
  if (format == FI_CQ_FORMAT_TAGGED) entry->tag = event.match_bits;
}

/// One look at the queue: takes up to `count` completions.
struct Look {
  CompletionQueue& cq;
  std::byte* place;
  std::size_t count;
  fi_addr_t* sources;  ///< nullptr: not wanted.
  ssize_t result = -FI_EAGAIN;

  /// @return whether there was anything
  bool operator()(Core& core) {
    EventQueue& events = cq.events(core);
    const fi_cq_format format = cq.format;
    std::byte* next = place;
    std::size_t taken = 0;
    bool failed = false;
    while (taken < count && !events.empty()) {
      const Event& event = events.oldest_on_duty();
      if (!is_silent(event)) {
        failed = event.ni_fail_type != NiFail::kOk;
        if (failed) break;
        write_entry(format, event, next);
        next += entry_bytes(format);
        if (sources != nullptr) sources[taken] = source_of(*cq.domain->lane, event);
        ++taken;
      }
      if (events.remove_oldest_on_duty()) [[unlikely]]
        cq.overrun = true;
    }
    failed |= cq.overrun && events.empty();
    if (taken > 0) result = static_cast<ssize_t>(taken);
    if (taken == 0 && failed) result = -FI_EAVAIL;
    const bool found = taken > 0 || failed;
    if (!found) {
      core.polled.note(WaitKind::kEventQueue, cq.eq_handle);
      note_vain_look(core);
    }
    return found;
  }
};

/// The condition of a blocking read.
struct BlockingLook {
  Look& look;
  std::optional<std::uint64_t> known;  ///< CompletionQueue::answered, when it looked first.

  bool operator()(Core& core) {
    if (!known.has_value()) known = look.cq.answered;
    if (look(core)) return true;
    // All who wait return, and if nobody does, who comes next.
    if (look.cq.signals == *known) return false;
    look.cq.answered = look.cq.signals;
    return true;
  }
  void describe(WaitSubject& subject) const {
    subject.kind = WaitKind::kEventQueue;
    subject.add(look.cq.eq_handle, 0);
  }
};

ssize_t read_from(fid_cq* fid, void* entries, std::size_t count, fi_addr_t* sources) {
  auto* cq = object_of<CompletionQueue>(fid);
  Look look{*cq, static_cast<std::byte*>(entries), count, sources};
  look_into(*cq->domain->engine, look);
  return look.result;
}

ssize_t read(fid_cq* fid, void* entries, std::size_t count) { return read_from(fid, entries, count, nullptr); }

ssize_t read_from_or_wait(fid_cq* fid, void* entries, std::size_t count, fi_addr_t* sources, const void*,
                          int timeout_ms) {
  auto* cq = object_of<CompletionQueue>(fid);
  Look look{*cq, static_cast<std::byte*>(entries), count, sources};
  BlockingLook ends{look, std::nullopt};
  const std::uint64_t timeout_ns =
      timeout_ms < 0 ? Engine::kForever : static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
  cq->domain->engine->wait(ends, timeout_ns, OnAbort::kGoOn, OnSignal::kReturn);
  return look.result;
}

ssize_t read_or_wait(fid_cq* fid, void* entries, std::size_t count, const void* condition, int timeout_ms) {
  return read_from_or_wait(fid, entries, count, nullptr, condition, timeout_ms);
}

/// Error data there are none. The entry of applications before 1.5 ends with `err_data`; later ones say how much room
/// they have there, or leave it to the provider where the data are.
void say_no_data(const CompletionQueue& cq, fi_cq_err_entry* entry) {
  const bool knows_size = FI_VERSION_GE(cq.domain->fabric->fid.api_version, FI_VERSION(1, 5));
  if (!knows_size || entry->err_data_size == 0) entry->err_data = nullptr;
  if (knows_size) entry->err_data_size = 0;
}

ssize_t read_error(fid_cq* fid, fi_cq_err_entry* entry, std::uint64_t) {
  auto* cq = object_of<CompletionQueue>(fid);
  const Engine::Duty duty(*cq->domain->engine);
  EventQueue& events = cq->events(duty.core());
  if (events.empty() && cq->overrun) {
    write_entry(FI_CQ_FORMAT_TAGGED, {}, reinterpret_cast<std::byte*>(entry));
    entry->flags = entry->olen = 0;
    entry->err = FI_EOVERRUN;
    entry->prov_errno = 0;
    say_no_data(*cq, entry);
    return 1;
  }
  if (events.empty() || events.oldest_on_duty().ni_fail_type == NiFail::kOk || is_silent(events.oldest_on_duty()))
    return -FI_EAGAIN;
  const Event& event = events.oldest_on_duty();
  write_entry(FI_CQ_FORMAT_TAGGED, event, reinterpret_cast<std::byte*>(entry));
  entry->olen = event.ni_fail_type == NiFail::kTruncated ? event.rlength - event.mlength : 0;
  entry->err = error_of(event);
  entry->prov_errno = static_cast<int>(event.ni_fail_type);
  say_no_data(*cq, entry);
  cq->overrun |= events.remove_oldest_on_duty();
  return 1;
}

int signal(fid_cq* fid) {
  auto* cq = object_of<CompletionQueue>(fid);
  const Engine::Duty duty(*cq->domain->engine);
  ++cq->signals;
  ++duty.core().activity;
  return 0;
}

const char* text_of(fid_cq*, int provider_error, const void*, char* text, std::size_t room) {
  static constexpr std::array kTexts = {"no error",
                                        "the peer is gone",
                                        "the peer takes nothing any more",
                                        "nothing there",
                                        "not allowed",
                                        "not allowed to do that",
                                        "memory not mapped",
                                        "no message",
                                        "no such memory",
                                        "outside memory",
                                        "longer than the buffer",
                                        "canceled"};
  const auto index = static_cast<std::size_t>(provider_error);
  const char* found = index < kTexts.size() ? kTexts[index] : "unknown";
  if (text != nullptr && room > 0) {
    std::strncpy(text, found, room - 1);
    text[room - 1] = 0;
  }
  return found;
}

void close_events(CompletionQueue& cq) {
  const Engine::Duty duty(*cq.domain->engine);
  note_sleep(duty.core(), *cq.domain, cq.is_slept_at, false);
  cq.events(duty.core()).close();
  interface_of(duty.core()).eqs.free(cq.eq_handle);
}

int close(fid* object) {
  auto* cq = object_of<CompletionQueue>(object);
  if (cq->users.load() != 0) return -FI_EBUSY;
  cq->wait.leave_set();
  leave_poll_sets(object);
  close_events(*cq);
  --cq->domain->users;
  delete cq;
  return 0;
}

int control(fid* object, int command, void* argument) {
  return object_of<CompletionQueue>(object)->wait.control(command, argument);
}

fi_ops object_calls = {sizeof(fi_ops), close, refuse_bind, control, refuse_ops, NotThere{}, NotThere{}};

fi_ops_cq calls = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = read_from,
    .readerr = read_error,
    .sread = read_or_wait,
    .sreadfrom = read_from_or_wait,
    .signal = signal,
    .strerror = text_of,
};

/// Completions for which there is room at first: some applications open hundreds of queues for as many as they may ever
/// have receives, and use few.
constexpr std::size_t kFirstSize = 127;

int open_events(CompletionQueue& cq, std::size_t size) {
  if (size > EventQueue::kMaxCount) return -FI_EINVAL;
  const Engine::Duty duty(*cq.domain->engine);
  Interface& ni = interface_of(duty.core());
  EventQueue* events = ni.eqs.allocate(&cq.eq_handle);
  if (events == nullptr) return -FI_ENOMEM;
  if (!events->open(std::min(size != 0 ? size : kFirstSize, kFirstSize))) {
    ni.eqs.free(cq.eq_handle);
    return -FI_ENOMEM;
  }
  events->let_grow();
  return 0;
}

}  // namespace

bool is_ready(CompletionQueue& cq) {
  cq.domain->engine->step();
  const Engine::Duty duty(*cq.domain->engine);
  if (cq.has_news(duty.core())) return true;
  note_vain_look(duty.core());
  return false;
}

bool CompletionQueue::has_news_or_arms() {
  domain->engine->step();
  const Engine::Duty duty(*domain->engine);
  const bool sleeps = !has_news(duty.core());
  note_sleep(duty.core(), *domain, is_slept_at, sleeps);
  if (!sleeps) return true;
  wait.settle();
  EventQueue& waiting = events(duty.core());
  if (wait.fd() >= 0) waiting.arm_on_duty(wait.fd());
  return false;
}

int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** opened, void* context) {
  return guarded([&] {
    const fi_cq_attr none{};
    const fi_cq_attr& wanted = attr != nullptr ? *attr : none;
    if (wanted.format > FI_CQ_FORMAT_TAGGED) return -FI_ENOSYS;
    if ((wanted.flags & ~std::uint64_t{FI_AFFINITY}) != 0) return -FI_EBADFLAGS;
    auto cq = std::make_unique<CompletionQueue>();
    cq->domain = object_of<Domain>(domain);
    cq->format = wanted.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : wanted.format;
    cq->fid.fid = {FI_CLASS_CQ, context, &object_calls};
    // The wait object comes last: a set asks its members at once.
    int result = open_events(*cq, wanted.size);
    if (result == 0 && (result = cq->wait.open(wanted.wait_obj, wanted.wait_set, &cq->fid.fid)) != 0) close_events(*cq);
    if (result != 0) return result;
    ++cq->domain->users;
    cq->fid.ops = &calls;
    *opened = &cq.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
