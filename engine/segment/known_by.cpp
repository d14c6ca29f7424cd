// Telling by datagrams, each repeated until it is answered.

#include "engine/segment/known_by.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"
#include "engine/segment/layout.h"
#include "engine/segment/mapping.h"
#include "engine/topology/node_id.h"

namespace portofu {
namespace {

/// News that are under way at a time; each has a socket.
constexpr std::size_t kMostTold = Kernel::kMostWaited;

/// Who has not answered for so long is told again, then after twice as long, and so on, but not later than that: a
/// kernel that says for a dead process that nobody is there does so six times, and then once a second.
constexpr std::uint64_t kTellAgainNs = 20'000'000;
constexpr std::uint64_t kTellLatestNs = 320'000'000;

/// Who has not answered the last time, because it stands still, or its node is gone, is waited for so long.
constexpr std::uint64_t kSilentNs = 50'000'000;

/// Who has been told of a death in vain for so long has lost the dead process long since: the reliable wire gives a
/// silent peer up after a third of it. So the names of the dead do not stay for ever when a network is gone.
constexpr std::uint64_t kGoneSeconds = 30;

std::uint64_t word_of(Knower knower) { return std::uint64_t{knower.nid} << 32 | std::uint64_t{knower.port} << 16 | 1; }

/// The word without what is known of its silence.
constexpr std::uint64_t kKnowerMask = ~std::uint64_t{0xfffe};
constexpr std::uint64_t kSilent = 2;
constexpr std::uint64_t kSinceMask = 0x3fff;  ///< Behind kSilent.

constexpr std::uint64_t kLinkOnly = 4;  ///< Without kSilent.

bool has_link_only(std::uint64_t word) { return (word & (kSilent | kLinkOnly)) == kLinkOnly; }
bool is_silent(std::uint64_t word) { return (word & kSilent) != 0; }
std::uint64_t now_seconds() { return kernel().now_ns() / 1'000'000'000; }
std::uint64_t silent_seconds(std::uint64_t word) { return (now_seconds() - (word >> 2)) & kSinceMask; }

/// The word of one who has not answered; since when, is that of the first time.
std::uint64_t silent_word(std::uint64_t word) {
  return is_silent(word) ? word : word | kSilent | (now_seconds() & kSinceMask) << 2;
}

/// The table of a segment, and what its descriptor says.
class Table {
 public:
  explicit Table(int fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return;
    if (pread(fd, &descriptor, sizeof descriptor, 0) != static_cast<ssize_t>(sizeof descriptor)) return;
    if (!has_head(descriptor, static_cast<std::uint64_t>(status.st_size))) return;
    mapping_ = Mapping::map(fd, SegmentLayout().known_by_offset(), sizeof(KnownByShared));
  }

  bool is_there() const { return static_cast<bool>(mapping_); }
  std::atomic<std::uint64_t>& place(std::size_t index) {
    return reinterpret_cast<KnownByShared*>(mapping_.at(0))->places[index];
  }

  SegmentDescriptorShared descriptor{};

 private:
  Mapping mapping_;
};

/// In another network the knowers' addresses are others', and that nobody is there says nothing of them.
bool is_of_our_network(const SegmentDescriptorShared& owner) {
  return owner.network == 0 || owner.network == network_identity();
}

/// One who is being told.
struct Telling {
  std::size_t place = 0;
  std::uint64_t word = 0;
  std::uint64_t deadline_ns = 0;
  std::unique_ptr<DatagramSocket> socket{};  ///< nullptr: nothing can be sent, because the address of the node is gone.
  bool over = false;
  bool has_heard = false;  ///< `over` because it says so.

  PortAddress knower() const {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint16_t>(word >> 16 & 0xffff)};
  }

  /// Who has heard has forgotten the names of a process that lives, but not the link to it.
  std::uint64_t next_word(NamesLost lost) const {
    if (!over) return silent_word(word);
    return has_heard && lost == NamesLost::kSome ? (word & kKnowerMask) | kLinkOnly : 0;
  }

  /// Nobody is at the port: who was there is gone.
  void send(const NamesNews& news) {
    if (!socket->send(std::as_bytes(std::span(&news, 1))) && errno == ECONNREFUSED) over = true;
  }

  void look(const NamesNews& news) {
    NamesNews answer{};
    for (;;) {
      const ssize_t bytes = socket->receive(std::as_writable_bytes(std::span(&answer, 1)), nullptr);
      if (bytes < 0) {
        over = over || errno == ECONNREFUSED;
        return;
      }
      const bool is_answer = bytes == static_cast<ssize_t>(sizeof answer) && answer.magic == kNewsMagic &&
                             answer.kind == NewsKind::kHeard && answer.nonce == news.nonce;
      has_heard = has_heard || is_answer;
      over = over || is_answer;
    }
  }
};

/// Tells some, until all have heard or the time is over.
void tell_some(std::vector<Telling>& some, const NamesNews& news, const Meanwhile& meanwhile) {
  std::vector<DatagramSocket*> waited(some.size());
  std::uint64_t again_ns = 0, pause_ns = kTellAgainNs;
  for (;;) {
    const std::uint64_t now = kernel().now_ns();
    const auto is_done = [now](const Telling& one) { return one.over || now >= one.deadline_ns; };
    if (std::all_of(some.begin(), some.end(), is_done)) return;
    if (now >= again_ns) {
      for (Telling& one : some) {
        if (!one.over && one.socket != nullptr) one.send(news);
      }
      again_ns = now + pause_ns;
      pause_ns = std::min(2 * pause_ns, kTellLatestNs);
    }
    for (std::size_t i = 0; i < some.size(); ++i) waited[i] = some[i].over ? nullptr : some[i].socket.get();
    kernel().wait(waited, meanwhile);
    for (Telling& one : some) {
      if (!one.over && one.socket != nullptr) one.look(news);
    }
  }
}

}  // namespace

bool note_knower(int segment_fd, Knower knower) {
  const NoCancellation whole;
  Table table(segment_fd);
  if (!table.is_there() || knower.port == 0) return false;
  const std::uint64_t word = word_of(knower);
  for (std::size_t i = 0; i < kKnownByPlaces; ++i) {
    std::uint64_t seen = table.place(i).load(std::memory_order_acquire);
    if ((seen & kKnowerMask) == word) {
      // (N1) As if it were written now: somebody who has told it just before may be about to clear the place.
      if (table.place(i).compare_exchange_strong(seen, word, std::memory_order_seq_cst)) return true;
    }
    if (seen == 0 && table.place(i).compare_exchange_strong(seen, word, std::memory_order_seq_cst)) return true;
  }
  return false;
}

bool tell_knowers(int segment_fd, NamesLost lost, int timeout_ms, const Meanwhile& meanwhile) {
  const NoCancellation whole;
  Table table(segment_fd);
  if (!table.is_there()) return true;
  const SegmentDescriptorShared& owner = table.descriptor;
  const std::uint64_t now = kernel().now_ns();
  const std::uint64_t deadline_ns = now + static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
  const bool may_tell = is_of_our_network(owner);
  bool all = true;
  for (std::size_t next = 0; next < kKnownByPlaces;) {
    std::vector<Telling> some;
    for (; next < kKnownByPlaces && some.size() < kMostTold; ++next) {
      const std::uint64_t word = table.place(next).load(std::memory_order_seq_cst);  // (N1)
      if (word == 0 || (lost == NamesLost::kSome && has_link_only(word))) continue;
      Telling one{next, word, is_silent(word) ? std::min(now + kSilentNs, deadline_ns) : deadline_ns};
      one.socket = kernel().open_socket({owner.nid, 0});
      if (one.socket == nullptr && is_shortage(errno)) {
        all = false;
        continue;
      }
      if (!may_tell || one.socket == nullptr || !one.socket->connect(one.knower())) one.deadline_ns = now;
      some.push_back(std::move(one));
    }
    NamesNews news{kNewsMagic, owner.job_key, owner.uid, NewsKind::kMoved, owner.nid, owner.pid, 0, 0};
    news.nonce = kernel().now_ns() ^ owner.incarnation;
    if (lost == NamesLost::kAllWithItsLife) news.life = owner.incarnation;
    tell_some(some, news, meanwhile);
    for (Telling& one : some) {
      const bool is_gone =
          lost == NamesLost::kAllWithItsLife && is_silent(one.word) && silent_seconds(one.word) >= kGoneSeconds;
      one.over = one.over || is_gone;
      all = all && one.over;
      table.place(one.place).compare_exchange_strong(one.word, one.next_word(lost), std::memory_order_seq_cst);
    }
  }
  return all;
}

}  // namespace portofu
