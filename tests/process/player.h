#pragma once
// A process of a test that talks to others through one of the two APIs: the same few operations either way, so that
// kills and soaks are one program for both. Ranks reach each other by what the two APIs compute from the rank alone;
// nothing is exchanged. Whoever dies and comes back has the same address again.

#include <cstdint>
#include <memory>

#include "tests/process/test_nodes.h"

namespace portofu {

enum class Api : int { kPortals, kTofu };

enum class Operation : int { kShortPut, kLongPut, kGet, kFetch };
inline constexpr int kOperationCount = 4;

/// How an operation has ended.
enum class Ending : int {
  kDone,
  kPeerGone,  ///< PTL_NI_UNDELIVERABLE, UTOFU_ERR_MRQ_PEER.
  kNotOpen,   ///< The target is there, and has not opened its memory yet, or has closed it.
  kWrong,     ///< Anything else, also wrong data: a fault of the library.
};

struct Outcome {
  int slot = 0;
  Ending ending = Ending::kWrong;
  int code = 0;  ///< kWrong: of the API, or kWrongData.
};

/// Outcome::code for data that nobody has sent.
inline constexpr int kWrongData = 9999;

/// Used by one thread.
class Player {
 public:
  static constexpr int kSlots = 32;  ///< Operations under way at once, at most.

  virtual ~Player() = default;

  /// Opens the interface and everything on it. May be called again after close.
  /// @return false if that is not possible now: the address may still be held by a former life
  virtual bool open() = 0;

  /// Closes the interface with whatever is under way; outcomes of that do not come any more.
  virtual void close() = 0;

  /// Starts an operation; `slot` is free. @return false if the library is busy
  virtual bool post(int slot, int target, Operation operation) = 0;

  /// Waits some milliseconds at most for the end of an operation. @return false if none has ended
  virtual bool next(Outcome* outcome) = 0;

  /// Starts a short put of whose end nobody hears. @return false if the library is busy
  virtual bool put_unheard(int target) = 0;

  /// Makes a put wait for a trigger and fires it: a triggered operation, or a descriptor in session mode.
  virtual void trigger(int target) = 0;

  /// @return false if something outside of the registered memory was written, or what peers may only read
  virtual bool is_untouched() const = 0;
};

/// @param rank  of this process, below 6
std::unique_ptr<Player> make_player(Api api, const TestNodes& nodes, int rank);
std::unique_ptr<Player> make_portals_player(const TestNodes& nodes, int rank);
std::unique_ptr<Player> make_tofu_player(const TestNodes& nodes, int rank);

/// What a process does that comes to the node of a rank: it removes what the dead have left there. @return 0
int open_and_close(const TestNodes& nodes, int rank);

// The memory of every player, as its peers see it. Puts write the first part of it, kFetch counts in the word behind
// that. Gets read other memory, which holds constant_byte and which nobody may write.
inline constexpr std::uint64_t kPutBytes = 65536;
inline constexpr std::uint64_t kWordOffset = kPutBytes;
inline constexpr std::uint64_t kPlayerBytes = kPutBytes + 4096;
inline constexpr std::uint64_t kReadOnlyBytes = 8192;

// Where they find it: the portal table entries of Portals, the STags of uTofu. PIDs and components of a rank.
inline constexpr std::uint32_t kPlayerPt = 7;
inline constexpr std::uint32_t kReadOnlyPt = 8;
inline constexpr std::uint32_t kPlayerStag = 1;
inline constexpr std::uint32_t kReadOnlyStag = 2;
inline constexpr std::uint32_t kPlayerPid = 3000;  ///< Plus the rank.
inline constexpr std::uint32_t kPlayerComponent = 2;

inline constexpr std::uint64_t kShortPutBytes = 24;
inline constexpr std::uint64_t kLongPutBytes = 40000;
inline constexpr std::uint64_t kGetBytes = 5000;

constexpr unsigned char constant_byte(std::uint64_t at) { return static_cast<unsigned char>(at * 7 + at / 256 + 1); }

}  // namespace portofu
