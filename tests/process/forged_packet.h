#pragma once
// Packets as no engine sends them: from those that are foreign or malformed in one known way, to those of which every
// field is anything.

#include <array>
#include <random>

#include "engine/atomic/atomic_unit.h"
#include "engine/descriptor/descriptor.h"
#include "engine/memory/stadd_table.h"
#include "engine/topology/tofu_id.h"
#include "engine/wire/header.h"
#include "tests/process/player.h"

namespace portofu {

/// What is known of a forged packet.
enum class Forgery : int {
  kForeign,    ///< Another job key: counted in packets_refused_key.
  kMalformed,  ///< No packet has this type, or these flags: counted in packets_refused_malformed.
  kWild,       ///< It may be good.
};

class Forger {
 public:
  Forger(std::uint64_t seed, std::uint32_t job_key, std::uint32_t uid) : random_(seed), job_key_(job_key), uid_(uid) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool once_in(std::uint64_t times) { return below(times) == 0; }
  std::uint64_t any() { return random_(); }

  /// A header for a payload of that many bytes; counted as what it is.
  PacketHeader header(std::uint32_t payload_bytes, Forgery* what) {
    PacketHeader made = once_in(2) ? plausible(payload_bytes) : wild(payload_bytes);
    *what = static_cast<Forgery>(below(8) < 6 ? 2 : below(2));
    if (*what == Forgery::kForeign) made.job_key = job_key_ + 1 + static_cast<std::uint32_t>(below(1000));
    if (*what == Forgery::kMalformed && once_in(2)) {
      made.type = static_cast<PacketType>(13 + below(243));
    } else if (*what == Forgery::kMalformed) {
      made.flags |= 128;
    }
    return made;
  }

 private:
  /// A request that may be granted, but for its place.
  PacketHeader plausible(std::uint32_t payload_bytes) {
    PacketHeader made = wild(payload_bytes);
    const std::array<PacketType, 6> requests{PacketType::kPut,     PacketType::kGet,     PacketType::kAtomic,
                                             PacketType::kTofuPut, PacketType::kTofuGet, PacketType::kFetchAtomic};
    made.type = requests[below(requests.size())];
    made.flags = static_cast<std::uint8_t>(below(2));
    made.interface_index = is_tofu(made.type) ? kTofuInterface : 1;
    made.ni_fail_type = 0;
    made.atomic_operation = static_cast<std::uint8_t>(atomic_operation_at(below(4)));
    made.atomic_type = static_cast<std::uint8_t>(atomic_type_at(below(8)));
    made.match_bits = 0;
    const bool reads = made.type == PacketType::kGet || made.type == PacketType::kTofuGet;
    if (reads) made.payload_bytes = 0;
    if (reads || made.type == PacketType::kFetchAtomic) made.flags = kFlagAnswerWanted;
    made.length = reads ? below(9000) : payload_bytes;
    made.initiator_rank = queue();
    made.remote_offset = is_tofu(made.type) ? stadd() : offset();
    return made;
  }

  PacketHeader wild(std::uint32_t payload_bytes) {
    PacketHeader made{};
    made.type = static_cast<PacketType>(1 + below(12));
    made.flags = static_cast<std::uint8_t>(any() & any() & kKnownFlags);
    made.interface_index = static_cast<std::uint8_t>(once_in(8) ? below(256) : 1);
    made.ni_fail_type = static_cast<std::uint8_t>(once_in(8) ? below(4) : 0);
    const std::array<std::uint16_t, 3> entries{kPlayerPt, kReadOnlyPt, static_cast<std::uint16_t>(below(300))};
    made.pt_index = entries[below(entries.size())];
    made.atomic_operation =
        static_cast<std::uint8_t>(once_in(16) ? 0 : static_cast<int>(atomic_operation_at(below(24))));
    made.atomic_type = static_cast<std::uint8_t>(once_in(16) ? 0 : static_cast<int>(atomic_type_at(below(18))));
    made.payload_bytes = payload_bytes;
    made.operation_id = static_cast<std::uint32_t>(once_in(4) ? any() : below(200));
    made.match_bits = once_in(2) ? 0 : any();
    made.hdr_data = once_in(2) ? make_tofu_id(TofuIdKind::kVcq, {}, queue()) : any();
    made.remote_offset = is_tofu(made.type) ? stadd() : offset();
    const std::array<std::uint64_t, 5> lengths{payload_bytes, 8, below(100'000), ~below(4096), any()};
    made.length = once_in(2) ? payload_bytes : lengths[below(lengths.size())];
    made.initiator_rank = once_in(8) ? static_cast<std::uint32_t>(any()) : queue();
    made.uid = once_in(16) ? static_cast<std::uint32_t>(any()) : uid_;
    made.job_key = job_key_;
    return made;
  }

  /// Of the players, mostly of the target, which has rank 0.
  std::uint32_t queue() {
    return make_queue_number(static_cast<std::uint32_t>(once_in(4) ? below(6) : 0), 0, kPlayerComponent);
  }

  std::uint64_t offset() {
    const std::array<std::uint64_t, 6> places{
        0, kWordOffset, kPlayerBytes - below(64), kReadOnlyBytes - below(64), ~below(128), any()};
    return once_in(2) ? below(kPutBytes) : places[below(places.size())];
  }

  std::uint64_t stadd() {
    const std::uint32_t stag =
        once_in(8) ? static_cast<std::uint32_t>(below(400)) : static_cast<std::uint32_t>(kPlayerStag + below(2));
    return once_in(8) ? any() : make_stadd(reserved_stag(kPlayerComponent, stag)) + offset();
  }

  std::mt19937_64 random_;
  const std::uint32_t job_key_;
  const std::uint32_t uid_;
};

}  // namespace portofu
