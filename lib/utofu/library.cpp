#include "lib/utofu/library.h"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/settings.h"
#include "engine/door/process.h"
#include "lib/utofu/own_queues.h"

namespace portofu::utofu {

constinit std::array<LaneDoor, kLanePlaces> doors{};
constinit std::array<std::atomic<std::uint8_t>, kMaxTniCount> gate_engines{};

namespace {

/// Nobody finds a lane any more.
void forget_lanes() {
  for (LaneDoor& door : doors) {
    door.handle.store(0, std::memory_order_relaxed);
    door.user.store(nullptr, std::memory_order_relaxed);
  }
}

/// The same while other threads may be inside one. @return false if one of them does not come out
bool leave_lanes() {
  std::vector<const LaneSeat*> users;
  for (LaneDoor& door : doors) {
    door.handle.store(0, std::memory_order_relaxed);
    if (const LaneSeat* user = door.user.exchange(nullptr, std::memory_order_relaxed)) users.push_back(user);
  }
  if (users.empty()) return true;
  before_rare_look_at_threads();  // (L2)
  const std::uint64_t deadline_ns = monotonic_ns() + Engine::kLingerNs;
  for (const LaneSeat* user : users) {
    while (user->busy.load(std::memory_order_acquire)) {
      if (monotonic_ns() > deadline_ns) return false;
      sched_yield();
    }
  }
  return true;
}

struct Library {
  ForkMutex mutex;  ///< Of opening; never taken on the data path.
  /// Set from the first VCQ or VBG on, and, but for the first, from the first CQ there.
  std::array<std::atomic<Engine*>, kMostEngines> engines{};

  void forget() {
    for (std::atomic<Engine*>& engine : engines) engine.store(nullptr);
  }
  ~Library() {
    if (engines.front().load() != nullptr && end_process_engine(!leave_lanes())) forget();
  }
};

Library library;
thread_local const char* last_words = "";

/// A child has no VCQ and no VBG (6.1.4.1).
void forget_in_child() {
  new (&library.mutex) ForkMutex;
  library.forget();
  forget_lanes();
  OwnQueues::forget_in_child();
}

/// Set when the library is loaded, so that no fork can come between the first call and the handler.
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, forget_in_child);

/// Under libportofu_malloc.so, malloc gives memory that peers map from now on.
[[maybe_unused]] const bool wants_shared_memory = (want_shared_memory(), true);

bool read_count(const char* name, std::uint32_t* value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return false;
  char* end = nullptr;
  const unsigned long number = std::strtoul(text, &end, 10);
  if (*end != '\0' || *text == '-' || number > UINT32_MAX) {
    log_error("%s=%s is not allowed (a number); the default is taken", name, text);
    return false;
  }
  *value = static_cast<std::uint32_t>(number);
  return true;
}

/// The closest of the allowed sizes of an MRQ; the larger of two that are equally close.
std::uint32_t read_mrq_entries(const char* name, std::uint32_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  static constexpr std::array<std::uint32_t, 6> kSizes{2048, 8192, 32768, 131072, 524288, 2097152};
  char* end = nullptr;
  unsigned long number = std::strtoul(text, &end, 10);
  std::string unit = end;
  for (char& letter : unit) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (end == text || *text == '-' || (!unit.empty() && unit != "ki" && unit != "mi")) {
    log_error("%s=%s is not allowed (2Ki, 8Ki, 32Ki, 128Ki, 512Ki or 2Mi); the default is taken", name, text);
    return otherwise;
  }
  number = std::min<unsigned long>(number, 1u << 30);
  if (unit == "ki") number <<= 10;
  if (unit == "mi") number <<= 20;
  std::uint32_t best = kSizes[0];
  for (const std::uint32_t size : kSizes) {
    const auto distance = [number](unsigned long to) { return to > number ? to - number : number - to; };
    if (distance(size) <= distance(best)) best = size;
  }
  return best;
}

TofuSettings read_tofu_settings() {
  TofuSettings read;
  read_count("UTOFU_NUM_EXCLUSIVE_CQS", &read.exclusive_cqs);
  read.session_cqs_kept = read_count("UTOFU_NUM_SESSION_MODE_CQS", &read.session_cqs);
  read.mrq_entries = read_mrq_entries("UTOFU_NUM_MRQ_ENTRIES", read.mrq_entries);
  read.session_mrq_entries = read_mrq_entries("UTOFU_NUM_MRQ_ENTRIES_SESSION", read.session_mrq_entries);
  const char* const protect = std::getenv("UTOFU_SWAP_PROTECT");  // "A value other than 0 or 1 ... is assumed to be 1."
  read.swap_protect = protect != nullptr && *protect != '\0' && std::string_view(protect) != "0";
  return read;
}

std::optional<NodeMap> find_node_map() {
  std::string why;
  return NodeMap::find(settings(), &why);
}

/// @return the engine
Engine* with_tofu(Engine* engine) {
  const Engine::Duty duty(*engine);
  Core& core = duty.core();
  if (core.tofu == nullptr) {
    core.tofu = std::make_unique<Tofu>(my_coordinates(), core.directory, settings().cmp_id_count);
    core.tofu->tell_apart(core.outstanding.first_id());
  }
  return engine;
}

}  // namespace

Settings read_engine_settings() { return read_settings(); }

const TofuSettings& tofu_settings() { return read_once<TofuSettings, read_tofu_settings>(); }

const std::optional<NodeMap>& node_map() { return read_once<std::optional<NodeMap>, find_node_map>(); }

const Coordinates& my_coordinates() {
  static constexpr Coordinates kOrigin{};
  return node_map() ? node_map()->own_coordinates() : kOrigin;
}

Engine* engine_at(std::uint64_t number) {
  if (number >= kMostEngines) return nullptr;
  Engine* const open = library.engines[number].load(std::memory_order_acquire);
  return open == nullptr || open->is_interrupted() ? nullptr : open;
}

Engine* open_engine(const char* call) {
  std::atomic<Engine*>& first = library.engines.front();
  if (first.load(std::memory_order_acquire) != nullptr) return engine();
  const NoCancellation whole;
  const std::lock_guard<ForkMutex> lock(library.mutex);
  if (first.load(std::memory_order_acquire) != nullptr) return engine();
  OpenError error = OpenError::kNone;
  std::string why;
  Engine* opened = hold_process_engine(0, &error, &why);
  if (opened == nullptr) {
    tell_why_not_open(call, error, why);
    return nullptr;
  }
  first.store(with_tofu(opened), std::memory_order_release);
  return opened;
}

bool open_engine_at(std::uint32_t number, std::string* why) {
  if (library.engines[number].load(std::memory_order_acquire) != nullptr) return true;
  Engine* const opened = open_further_engine(number, why);
  if (opened != nullptr) library.engines[number].store(with_tofu(opened), std::memory_order_release);
  return opened != nullptr;
}

int failed(int code, const char* words) {
  last_words = words;
  return code;
}

const char* last_error() { return last_words; }

}  // namespace portofu::utofu
