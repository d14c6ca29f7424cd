#include "engine/inspect/picture_archive.h"

#include <cstring>
#include <type_traits>

#include "engine/inspect/inspection_root.h"
#include "engine/queue/clock.h"

namespace portofu {
namespace {

constexpr std::string_view kMagic = "\n=== looks of Portofu ===\n";

/// What has no pointers goes as it lies in memory. Both sides are the same build.
template <class T>
concept Plain = std::is_trivially_copyable_v<T>;

class Writer {
 public:
  void bytes(void* from, std::size_t size) { text.append(static_cast<const char*>(from), size); }
  /// @return how many items follow
  std::size_t count(std::size_t items) {
    bytes(&items, sizeof items);
    return items;
  }
  std::string text;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  void bytes(void* to, std::size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_ || size == 0) return;
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  /// @return how many items follow; each has a byte at least
  std::size_t count(std::size_t) {
    std::size_t items = 0;
    bytes(&items, sizeof items);
    ok_ = ok_ && items <= rest_.size();
    return ok_ ? items : 0;
  }
  bool is_done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

template <class Archive, class... Items>
void go_through(Archive& archive, Items&... items) {
  (carry(archive, items), ...);
}

template <class Archive, Plain T>
void carry(Archive& archive, T& item) {
  archive.bytes(&item, sizeof item);
}

template <class Archive>
void carry(Archive& archive, std::string& text) {
  text.resize(archive.count(text.size()));
  archive.bytes(text.data(), text.size());
}

template <class Archive, class T>
void carry(Archive& archive, std::vector<T>& items) {
  items.resize(archive.count(items.size()));
  for (T& item : items) carry(archive, item);
}

// The names of all fields, so that a new one is not forgotten: the compiler counts them.

template <class Archive, class T>
void carry(Archive& archive, Listed<T>& listed) {
  auto& [items, size, moving] = listed;
  go_through(archive, items, size, moving);
}

template <class Archive>
void carry(Archive& archive, PortalPicture& portal) {
  auto& [pt_index, enabled, flow_control, disabled_by, since, searches, missed, grows, eq, priority, overflow,
         unexpected] = portal;
  go_through(archive, pt_index, enabled, flow_control, disabled_by, since, searches, missed, grows, eq, priority,
             overflow, unexpected);
}

template <class Archive>
void carry(Archive& archive, CounterPicture& counter) {
  auto& [handle, success, failure, waiting, sets] = counter;
  go_through(archive, handle, success, failure, waiting, sets);
}

template <class Archive>
void carry(Archive& archive, InterfacePicture& ni) {
  auto& [index, ranks, own_rank, last_refused, undelivered, dropped, portals, counters, queues, descriptors] = ni;
  go_through(archive, index, ranks, own_rank, last_refused, undelivered, dropped, portals, counters, queues,
             descriptors);
}

template <class Archive>
void carry(Archive& archive, VcqPicture& vcq) {
  auto& [id, session, tcq_unread, tcq_entries, mrq_unread, mrq_entries, delayed, steps, waiting, failed, astray,
         astray_from, tcq_progress, mrq_progress] = vcq;
  go_through(archive, id, session, tcq_unread, tcq_entries, mrq_unread, mrq_entries, delayed, steps, waiting, failed,
             astray, astray_from, tcq_progress, mrq_progress);
}

template <class Archive>
void carry(Archive& archive, CorePicture& core) {
  auto& [interfaces, operations, peers, sleeps, polls, vcqs, gates, ownerless, last_astray, words] = core;
  go_through(archive, interfaces, operations, peers, sleeps, polls, vcqs, gates, ownerless, last_astray, words);
}

template <class Archive>
void carry(Archive& archive, ProcessPicture& process) {
  auto& [descriptor, sight, run_state, program, rank, waiting, events_lost, application_looks, polls, core] = process;
  go_through(archive, descriptor, sight, run_state, program, rank, waiting, events_lost, application_looks, polls,
             core);
}

/// @param later  how much the clock here is ahead of the one there
void move_times(std::vector<ProcessPicture>& processes, std::uint64_t later) {
  const auto move = [later](std::uint64_t& at_ns) {
    if (at_ns != 0) at_ns += later;
  };
  for (ProcessPicture& process : processes) {
    for (SleepPicture& sleep : process.core.sleeps) move(sleep.since_ns);
    move(process.core.last_astray.at_ns);
    for (WordPicture& word : process.core.words) move(word.use.since_ns);
    for (VcqPicture& vcq : process.core.vcqs) move(vcq.last_failed.at_ns);
    for (InterfacePicture& ni : process.core.interfaces) {
      move(ni.last_refused.at_ns);
      move(ni.undelivered.at_ns);
      for (PortalPicture& portal : ni.portals) move(portal.disabled_since_ns);
    }
  }
}

}  // namespace

std::string pack_looks(const Looks& looks) {
  Looks copy = looks;
  std::uint64_t stamp = layout_stamp();
  std::uint64_t now = monotonic_ns();
  Writer writer;
  writer.text = kMagic;
  go_through(writer, stamp, now, copy.before, copy.now);
  return std::move(writer.text);
}

bool unpack_looks(std::string_view text, Looks* looks) {
  const std::size_t begin = text.find(kMagic);
  if (begin == std::string_view::npos) return false;
  Reader reader(text.substr(begin + kMagic.size()));
  std::uint64_t stamp = 0;
  std::uint64_t then = 0;
  go_through(reader, stamp, then);
  if (stamp != layout_stamp()) return false;
  go_through(reader, looks->before, looks->now);
  if (!reader.is_done()) return false;
  const std::uint64_t later = monotonic_ns() - then;
  move_times(looks->before, later);
  move_times(looks->now, later);
  return true;
}

}  // namespace portofu
