// Cost of matching: what an incoming message pays in the match list, and what an append pays in the unexpected list, at
// 1 to 10 000 entries. The match bits are laid out as Open MPI's MTL does it: protocol, context, source, tag.
//
//   find    the search alone; every entry is found equally often, in random order
//   cycle   search, remove, append again: what a receive costs as a whole

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "engine/match/match_list.h"
#include "engine/match/unexpected_list.h"

namespace portofu {
namespace {

constexpr std::uint64_t kProtocolMask = 0xf000000000000000u;
constexpr std::uint64_t kSourceMask = 0x0000ffffff000000u;
constexpr std::uint64_t kTagMask = 0x00000000007fffffu;
constexpr std::uint32_t kSourceCount = 64;
constexpr std::size_t kKeyCount = 1 << 14;  ///< Keys that a benchmark goes round in.

std::uint64_t mpi_bits(std::uint64_t context, std::uint64_t source, std::uint64_t tag) {
  return (1ull << 60) | (context << 48) | (source << 24) | tag;
}

/// The n-th message of a job: 64 sources, and a tag that no other message has.
MatchKey key_of(std::uint32_t n) {
  const std::uint32_t source = n % kSourceCount;
  return {mpi_bits(1, source, n), {source, 0}};
}

MatchCriteria criteria_of(const MatchKey& key, std::uint64_t ignore_bits, bool any_source) {
  return {key.match_bits, ignore_bits, key.source, any_source, true};
}

/// The mixes. Each returns what the n-th receive asks for; the n-th message of key_of() is for it.
MatchCriteria exact(std::uint32_t n) { return criteria_of(key_of(n), 0, false); }
MatchCriteria any_source(std::uint32_t n) { return criteria_of(key_of(n), kProtocolMask | kSourceMask, true); }

/// 13 of 16 receives name source and tag; of the others, some take any source, some any tag of a source of their own
/// (in another communicator, so that they take nobody's message), one both.
MatchCriteria mpi_mix(std::uint32_t n) {
  MatchKey other = key_of(n);
  other.match_bits = mpi_bits(2 + n, n % kSourceCount, n);
  switch (n % 16) {
    case 3: return any_source(n);
    case 7: return criteria_of(other, kProtocolMask | kTagMask, false);
    case 11: return criteria_of(other, kProtocolMask | kSourceMask | kTagMask, true);
    default: return criteria_of(key_of(n), kProtocolMask, false);
  }
}

/// More masks than classes: every entry with a mask of its own among 64, most of the list is walked.
MatchCriteria many_masks(std::uint32_t n) { return criteria_of(key_of(n), (1ull + n % 64) << 48, false); }

/// Does the n-th receive of mpi_mix take the n-th message?
bool takes_its_message(std::uint32_t n) { return n % 16 != 7 && n % 16 != 11; }

/// Numbers below `count`, in random order, each as often as the others.
std::vector<std::uint32_t> shuffled(std::uint32_t count, bool (*wanted)(std::uint32_t)) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; numbers.size() < std::max<std::size_t>(kKeyCount, count); ++i) {
    if (wanted == nullptr || wanted(i % count)) numbers.push_back(i % count);
  }
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(1));
  return numbers;
}

using Mix = MatchCriteria (*)(std::uint32_t);

struct PostedReceives {
  PostedReceives(std::uint32_t count, Mix mix) : entries(new MatchEntry[count]) {
    for (std::uint32_t i = 0; i < count; ++i) {
      entries[i].criteria = mix(i);
      list.append(entries[i]);
    }
  }
  ~PostedReceives() { list.clear(); }

  std::unique_ptr<MatchEntry[]> entries;
  MatchList list;
};

constexpr auto kAccept = [](MatchEntry&) { return true; };

/// What the other loops cost without the list.
void loop_alone(benchmark::State& state) {
  const auto numbers = shuffled(10000, nullptr);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(key_of(numbers[next]));
    if (++next == numbers.size()) next = 0;
  }
}

void match_find(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  PostedReceives receives(count, mix);
  const auto numbers = shuffled(count, mix == mpi_mix ? takes_its_message : nullptr);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(receives.list.find(key_of(numbers[next]), kAccept));
    if (++next == numbers.size()) next = 0;
  }
}

void match_miss(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  PostedReceives receives(count, mix);
  std::uint32_t next = count;
  for (auto _ : state) benchmark::DoNotOptimize(receives.list.find(key_of(next++), kAccept));
}

void match_cycle(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  PostedReceives receives(count, mix);
  const auto numbers = shuffled(count, mix == mpi_mix ? takes_its_message : nullptr);
  std::size_t next = 0;
  for (auto _ : state) {
    MatchEntry* entry = receives.list.find(key_of(numbers[next]), kAccept);
    receives.list.remove(*entry);
    receives.list.append(*entry);
    if (++next == numbers.size()) next = 0;
  }
}

/// Messages arrive in the order in which the receives were posted.
void match_cycle_in_order(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  PostedReceives receives(count, mix);
  std::uint32_t next = 0;
  for (auto _ : state) {
    MatchEntry* entry = receives.list.find(key_of(next), kAccept);
    receives.list.remove(*entry);
    receives.list.append(*entry);
    if (++next == count) next = 0;
  }
}

struct UnexpectedHeaders {
  explicit UnexpectedHeaders(std::uint32_t count) : entries(new UnexpectedEntry[count]) {
    for (std::uint32_t i = 0; i < count; ++i) {
      entries[i].key = key_of(i);
      list.append(entries[i]);
    }
  }
  ~UnexpectedHeaders() { list.clear(); }

  std::unique_ptr<UnexpectedEntry[]> entries;
  UnexpectedList list;
};

void unexpected_find(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  UnexpectedHeaders headers(count);
  const auto numbers = shuffled(count, nullptr);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(headers.list.find_first(mix(numbers[next])));
    if (++next == numbers.size()) next = 0;
  }
}

void unexpected_miss(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  UnexpectedHeaders headers(count);
  std::uint32_t next = count;
  for (auto _ : state) benchmark::DoNotOptimize(headers.list.find_first(mix(next++)));
}

void unexpected_cycle(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  UnexpectedHeaders headers(count);
  const auto numbers = shuffled(count, mix == mpi_mix ? takes_its_message : nullptr);
  std::size_t next = 0;
  for (auto _ : state) {
    UnexpectedEntry* entry = headers.list.find_first(mix(numbers[next]));
    if (entry == nullptr) return state.SkipWithError("a header is missing");
    headers.list.remove(*entry);
    headers.list.append(*entry);
    if (++next == numbers.size()) next = 0;
  }
}

/// All headers arrive, then all are received in random order: cost per header with everything, the index too.
void unexpected_flood(benchmark::State& state, Mix mix) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  UnexpectedHeaders headers(count);
  auto numbers = shuffled(count, nullptr);
  std::vector<bool> is_seen(count);
  std::erase_if(numbers, [&](std::uint32_t n) { return is_seen[n] || (is_seen[n] = true, false); });
  for (auto _ : state) {
    for (const std::uint32_t n : numbers) {
      if (UnexpectedEntry* entry = headers.list.find_first(mix(n))) headers.list.remove(*entry);
    }
    headers.list.clear();
    for (std::uint32_t i = 0; i < count; ++i) headers.list.append(headers.entries[i]);
  }
  state.SetItemsProcessed(state.iterations() * count);
}

void entry_counts(benchmark::internal::Benchmark* one) {
  for (const int count : {1, 10, 100, 1000, 10000}) one->Arg(count);
}

BENCHMARK(loop_alone);
BENCHMARK_CAPTURE(match_find, exact, exact)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_find, mpi_mix, mpi_mix)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_find, any_source, any_source)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_find, worst_many_masks, many_masks)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_miss, exact, exact)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_miss, mpi_mix, mpi_mix)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_cycle, exact, exact)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_cycle, mpi_mix, mpi_mix)->Apply(entry_counts);
BENCHMARK_CAPTURE(match_cycle_in_order, exact, exact)->Apply(entry_counts);

BENCHMARK_CAPTURE(unexpected_find, exact, exact)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_find, mpi_mix, mpi_mix)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_find, any_source, any_source)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_find, worst_many_masks, many_masks)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_miss, exact, exact)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_cycle, exact, exact)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_cycle, mpi_mix, mpi_mix)->Apply(entry_counts);
BENCHMARK_CAPTURE(unexpected_flood, exact, exact)->Apply(entry_counts)->Arg(100000);
BENCHMARK_CAPTURE(unexpected_flood, mpi_mix, mpi_mix)->Apply(entry_counts)->Arg(100000);

}  // namespace
}  // namespace portofu
