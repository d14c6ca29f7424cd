#pragma once
// The two completion queues of a VCQ: the TCQ, whose entries are taken when a descriptor is posted and are read in that
// order, and the MRQ, whose entries are made by what arrives. Both in the process's own memory, used on duty.

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/growing_ring.h"
#include "engine/queue/fresh_line.h"

namespace portofu {

/// @spec uTofu guide, 2.2.1.2, 3.7.4.1
class TransmitCompleteQueue {
 public:
  /// @param entry_count  descriptors that may be posted and not read
  explicit TransmitCompleteQueue(std::uint32_t entry_count)
      : entry_count_(entry_count), mask_(std::bit_ceil(entry_count) - 1), entries_(mask_ + 1) {}

  std::uint64_t unread() const { return next_ - oldest_; }
  /// All places below have been read, or told nobody.
  std::uint64_t read_place() const { return oldest_; }
  bool has_room(std::uint64_t wanted) {
    if (wanted > entry_count_ - unread()) forget_silent();
    return wanted <= entry_count_ - unread();
  }

  /// Gives back the entries that nobody will read.
  void forget_silent() {
    while (unread() != 0 && is_done(oldest()) && !oldest().notice) ++oldest_;
  }

  /// Takes the next place. @pre has_room(1)
  /// @param notice  whether success is told
  std::uint64_t take(void* callback_data, bool notice) {
    Entry& entry = entry_of(next_);
    entry.callback_data = callback_data;
    entry.fail = NiFail::kOk;
    entry.notice = notice;
    entry.done.store(false, std::memory_order_relaxed);
    return next_++;
  }

  /// The place that was taken last is nobody's. @pre its descriptor was not started
  void take_back() { --next_; }

  /// The place that was taken last.
  std::uint64_t last_place() const { return next_ - 1; }

  /// The descriptor of a place has left, or never will. A failure is always told.
  void complete(std::uint64_t place, NiFail fail) {
    Entry& entry = entry_of(place);
    entry.fail = fail;
    entry.notice = entry.notice || fail != NiFail::kOk;
    // (T1) Partner: is_done.
    entry.done.store(true, std::memory_order_release);
  }

  /// The descriptor has left before anybody could ask for it: take and complete in one. @pre has_room(1)
  void take_done(void* callback_data) {
    Entry& entry = entry_of(next_++);
    entry.callback_data = callback_data;
    entry.fail = NiFail::kOk;
    entry.notice = true;
    entry.done.store(true, std::memory_order_relaxed);
  }

  /// Reads the oldest notice. @return false if the oldest descriptor is still on its way, or there is none
  bool read(void** callback_data, NiFail* fail) {
    while (unread() != 0 && is_done(oldest())) {
      const Entry& entry = entry_of(oldest_++);
      if (!entry.notice) continue;
      *callback_data = entry.callback_data;
      *fail = entry.fail;
      return true;
    }
    return false;
  }

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  struct Entry {
    void* callback_data = nullptr;
    NiFail fail = NiFail::kOk;
    bool notice = false;  ///< It is to be read.
    std::atomic<bool> done{false};
  };
  // (T1) A VCQ that is not thread-safe reads its TCQ without the duty.
  static bool is_done(const Entry& entry) { return entry.done.load(std::memory_order_acquire); }
  Entry& entry_of(std::uint64_t place) { return entries_[place & mask_]; }
  Entry& oldest() { return entry_of(oldest_); }

  std::uint64_t entry_count_;
  std::uint64_t mask_;  ///< A power of two less one: a division takes longer than a put.
  std::vector<Entry> entries_;
  std::uint64_t oldest_ = 0;  ///< Place of the oldest entry that is not read; places count up.
  std::uint64_t next_ = 0;    ///< Place of the next descriptor.
};

/// Kinds of MRQ notices; values of utofu_mrq_notice_type.
enum class NoticeKind : std::uint8_t {
  kLocalPut = 0,
  kRemotePut = 1,
  kLocalGet = 2,
  kRemoteGet = 3,
  kLocalArmw = 4,
  kRemoteArmw = 5
};

/// One MRQ notice; fields of utofu_mrq_notice.
struct Notice {
  NoticeKind kind = NoticeKind::kLocalPut;
  NiFail fail = NiFail::kOk;
  bool remote_fault = true;  ///< With `fail`: it is the remote side's memory or STADD; false: ours.
  std::uint64_t vcq_id = 0;  ///< Of the other side.
  std::uint64_t edata = 0;
  std::uint64_t remote_value = 0;
  std::uint64_t local_stadd = 0;
  std::uint64_t remote_stadd = 0;
};

/// Copies a notice whose fields were written a moment ago.
inline void copy_fresh(Notice& to, const Notice& from) {
  to.kind = fresh(from.kind);
  to.fail = fresh(from.fail);
  to.remote_fault = fresh(from.remote_fault);
  to.vcq_id = fresh(from.vcq_id);
  to.edata = fresh(from.edata);
  to.remote_value = fresh(from.remote_value);
  to.local_stadd = fresh(from.local_stadd);
  to.remote_stadd = fresh(from.remote_stadd);
}

/// @spec uTofu guide, 2.2.1.3, 3.7.4.2, 4.3.2.3
class MessageReceiveQueue {
 public:
  /// @param entry_count  notices that may wait; more overflow
  explicit MessageReceiveQueue(std::uint32_t entry_count) : entry_count_(entry_count) {}

  std::uint32_t entry_count() const { return entry_count_; }

  /// @return false if the queue is full: the notice is lost, which ends the program (guide, chapter 7)
  bool post(const Notice& notice) {
    if (notices_.size() >= entry_count_) return false;
    copy_fresh(notices_.add(), notice);
    posted_.store(posted() + 1, std::memory_order_relaxed);
    return true;
  }
  bool read(Notice* notice) {
    if (notices_.empty()) return false;
    copy_fresh(*notice, notices_.front());
    notices_.pop_front();
    ++read_;
    return true;
  }

  /// Whether nothing is to be read; for whoever reads, without the duty.
  bool is_empty() const { return posted() == read_; }

  /// Notices ever posted; any thread. And read; by whoever reads.
  std::uint64_t posted() const { return posted_.load(std::memory_order_relaxed); }
  std::uint64_t read_count() const { return read_; }
  std::uint64_t unread() const { return posted() - read_count(); }

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  GrowingRing<Notice> notices_;
  std::uint32_t entry_count_;  ///< Most that may wait.
  std::atomic<std::uint64_t> posted_{0};
  std::uint64_t read_ = 0;
};

/// Notices that the thread of a VCQ makes for itself, beside the MRQ: of communications that were complete when they
/// were posted. Each remembers how many of the MRQ came before it, so both together are read in order.
class OwnNoticeQueue {
 public:
  static constexpr std::uint32_t kEntries = 256;  ///< Further ones go by the MRQ.

  bool is_empty() const { return head_ == tail_; }
  std::uint64_t size() const { return tail_ - head_; }
  bool has_room() const { return tail_ - head_ < kEntries; }

  /// @pre has_room()
  Notice& add(const MessageReceiveQueue& mrq) {
    Entry& entry = entries_[tail_++ % kEntries];
    entry.behind = mrq.posted();
    return entry.notice;
  }

  /// The next notice, if nothing in the MRQ comes before it; nullptr if there is none. Valid until drop.
  const Notice* front(const MessageReceiveQueue& mrq) const {
    if (is_empty()) return nullptr;
    const Entry& entry = entries_[head_ % kEntries];
    return entry.behind <= mrq.read_count() ? &entry.notice : nullptr;
  }
  void drop() { ++head_; }

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  struct Entry {
    Notice notice;
    std::uint64_t behind = 0;  ///< MessageReceiveQueue::posted when it was made.
  };
  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace portofu
