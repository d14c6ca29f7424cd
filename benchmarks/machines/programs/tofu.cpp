// What programs measure on Tofu: one kind of operation between rank 0 and a peer, or round all ranks. Times are not
// taken here: who runs it in virtual time has those of the messages.
//
//   ptl_sim --nodes 12 ./machines_program_tofu put|get|armw|stream|ring PEER BYTES COUNT

#include <utofu.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "benchmarks/machines/programs/pmi.h"

namespace portofu::machines {
namespace {

using Word = std::atomic<std::uint64_t>;

constexpr std::uint64_t kAnswer = 7;

/// A rank with one VCQ, and one piece of memory: what is sent, and behind it what comes.
class Rank {
 public:
  /// `value` stands in the last word of what is sent before a peer hears of it.
  Rank(std::size_t bytes, std::uint64_t value)
      : half_((bytes + 511) / 256 * 256), memory_(2 * half_ / sizeof(std::uint64_t) + 32) {
    utofu_vcq_id_t id = 0;
    outgoing(bytes).store(value);
    require(utofu_create_vcq(0, 0, &vcq_) == UTOFU_SUCCESS, "no VCQ");
    require(utofu_query_vcq_id(vcq_, &id) == UTOFU_SUCCESS, "no VCQ ID");
    const std::size_t length = memory_.size() * sizeof(std::uint64_t);
    require(utofu_reg_mem(vcq_, memory_.data(), length, 0, &own_) == UTOFU_SUCCESS, "memory is not registered");
    pmi_.tell(std::to_string(id) + ':' + std::to_string(own_));
  }

  std::uint32_t number() const { return pmi_.rank; }
  std::uint32_t count() const { return pmi_.size; }

  void aim_at(std::uint32_t peer) {
    require(std::sscanf(pmi_.word_of(peer).c_str(), "%lu:%lu", &peer_, &there_) == 2, "the peer has told nothing");
  }
  void end() {
    pmi_.barrier();
    require(utofu_dereg_mem(vcq_, own_, 0) == UTOFU_SUCCESS, "memory is not deregistered");
    require(utofu_free_vcq(vcq_) == UTOFU_SUCCESS, "the VCQ is not freed");
  }

  /// The last word of a message of so many bytes.
  Word& outgoing(std::size_t bytes) { return word(bytes - sizeof(Word)); }
  Word& incoming(std::size_t bytes) { return word(half_ + bytes - sizeof(Word)); }

  void put(std::size_t bytes, unsigned long flags) {
    int rc = UTOFU_ERR_BUSY;
    while (rc == UTOFU_ERR_BUSY) rc = utofu_put(vcq_, peer_, own_, there_ + half_, bytes, 0, flags, nullptr);
    require(rc == UTOFU_SUCCESS, "utofu_put");
  }
  void get(std::size_t bytes) {
    require(utofu_get(vcq_, peer_, own_ + half_, there_, bytes, 0, 0, nullptr) == UTOFU_SUCCESS, "utofu_get");
  }
  void add() {
    require(utofu_armw8(vcq_, peer_, UTOFU_ARMW_OP_ADD, 1, there_, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr) ==
                UTOFU_SUCCESS,
            "utofu_armw8");
  }
  std::uint64_t await_notice() {
    utofu_mrq_notice notice{};
    int rc = UTOFU_ERR_NOT_FOUND;
    while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_mrq(vcq_, 0, &notice);
    require(rc == UTOFU_SUCCESS, "utofu_poll_mrq");
    return notice.rmt_value;
  }
  /// Takes a notice of what has left.
  bool poll_sent() {
    void* data = nullptr;
    const int rc = utofu_poll_tcq(vcq_, 0, &data);
    require(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_NOT_FOUND, "utofu_poll_tcq");
    return rc == UTOFU_SUCCESS;
  }

 private:
  Word& word(std::size_t offset) { return reinterpret_cast<Word&>(memory_[offset / sizeof(std::uint64_t)]); }

  Pmi pmi_;
  const std::size_t half_;
  std::vector<std::uint64_t> memory_;
  utofu_vcq_hdl_t vcq_ = 0;
  utofu_stadd_t own_ = 0;
  utofu_vcq_id_t peer_ = 0;
  utofu_stadd_t there_ = 0;
};

struct Wanted {
  const char* kind;
  std::uint32_t peer;
  std::size_t bytes;
  std::uint64_t count;
};

void await_memory(const Word& word, std::uint64_t value) {
  while (word.load(std::memory_order_acquire) != value) {
  }
}

/// A message goes to and fro, and its last word is polled.
void play_put(Rank& rank, const Wanted& wanted) {
  for (std::uint64_t i = 1; i <= wanted.count; ++i) {
    rank.outgoing(wanted.bytes).store(i);
    if (rank.number() == 0) rank.put(wanted.bytes, 0);
    await_memory(rank.incoming(wanted.bytes), i);
    if (rank.number() != 0) rank.put(wanted.bytes, 0);
  }
}

void play_get(Rank& rank, const Wanted& wanted) {
  for (std::uint64_t i = 0; i < wanted.count && rank.number() == 0; ++i) {
    rank.incoming(wanted.bytes).store(0);
    rank.get(wanted.bytes);
    await_memory(rank.incoming(wanted.bytes), kAnswer);
  }
}

void play_armw(Rank& rank, const Wanted& wanted) {
  for (std::uint64_t i = 0; i < wanted.count && rank.number() == 0; ++i) {
    rank.add();
    const std::uint64_t before = rank.await_notice();
    require(before == i || wanted.bytes != sizeof(std::uint64_t), "the peer's word has another value");
  }
}

/// As fast as the interface takes them; a notice is taken for each.
void play_stream(Rank& rank, const Wanted& wanted) {
  if (rank.number() != 0) {
    rank.await_notice();
    return;
  }
  std::uint64_t told = 0;
  for (std::uint64_t i = 0; i < wanted.count; ++i) {
    const bool is_last = i + 1 == wanted.count;
    rank.put(wanted.bytes, UTOFU_ONESIDED_FLAG_TCQ_NOTICE | (is_last ? UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE : 0));
    told += rank.poll_sent() ? 1 : 0;
  }
  while (told < wanted.count) told += rank.poll_sent() ? 1 : 0;
}

/// A message round all ranks, each of which takes a notice before it goes on.
void play_ring(Rank& rank, const Wanted& wanted) {
  for (std::uint64_t i = 0; i < wanted.count; ++i) {
    if (rank.number() != 0) rank.await_notice();
    rank.put(wanted.bytes, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
    if (rank.number() == 0) rank.await_notice();
  }
}

int play(const Wanted& wanted) {
  Rank rank(wanted.bytes, std::strcmp(wanted.kind, "get") == 0 ? kAnswer : 0);
  const bool is_ring = std::strcmp(wanted.kind, "ring") == 0;
  const bool takes_part = is_ring || rank.number() == 0 || rank.number() == wanted.peer;
  rank.aim_at(is_ring ? (rank.number() + 1) % rank.count() : rank.number() == 0 ? wanted.peer : 0);
  constexpr std::pair<const char*, void (*)(Rank&, const Wanted&)> kKinds[] = {
      {"put", play_put}, {"get", play_get}, {"armw", play_armw}, {"stream", play_stream}, {"ring", play_ring}};
  bool is_known = false;
  for (const auto& [name, run] : kKinds) {
    if (std::strcmp(wanted.kind, name) != 0) continue;
    is_known = true;
    if (takes_part) run(rank, wanted);
  }
  require(is_known, "kinds: put, get, armw, stream, ring");
  rank.end();
  return 0;
}

}  // namespace
}  // namespace portofu::machines

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: machines_program_tofu put|get|armw|stream|ring PEER BYTES COUNT\n");
    return 2;
  }
  const portofu::machines::Wanted wanted{arguments[1], static_cast<std::uint32_t>(std::atoi(arguments[2])),
                                         static_cast<std::size_t>(std::atol(arguments[3])),
                                         static_cast<std::uint64_t>(std::atol(arguments[4]))};
  portofu::machines::require(wanted.bytes >= 8 && wanted.bytes % 8 == 0, "messages are of whole words");
  return portofu::machines::play(wanted);
}
