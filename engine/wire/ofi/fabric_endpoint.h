#pragma once
// One reliable datagram endpoint of libfabric: messages to addresses, in order for each address, and nothing else. It
// knows nothing of links and packets; ofi_wire does. The provider is chosen by what it can do, never by its name.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/wire/ofi/fabric_objects.h"

namespace portofu {

/// Longest message, and size of a send buffer.
inline constexpr std::size_t kFabricMessageBytes = 16384;

/// Longest piece of a peer's memory that is fetched at once.
inline constexpr std::size_t kFetchBytes = 1048576;

enum class FabricOperation : std::uint8_t { kSend, kReceive, kFetch };

/// What an operation of libfabric is about; providers may use `room` as they like while it is under way.
struct FabricContext {
  explicit FabricContext(FabricOperation what) : operation(what) {}

  fi_context2 room{};
  FabricOperation operation;
};

/// Memory of one outgoing message.
struct SendBuffer : FabricContext {
  SendBuffer() : FabricContext(FabricOperation::kSend) {}

  void* owner = nullptr;       ///< The caller's.
  std::uint32_t bytes = 0;     ///< Length of the message; the caller's.
  void* descriptor = nullptr;  ///< Of the registered memory, if the provider wants that.
  alignas(64) std::byte data[kFabricMessageBytes];
};

/// Memory of one incoming message. Larger ones for many messages (FI_MULTI_RECV) are not used: tcp under ofi_rxm (1.17)
/// gives such a buffer back while a message from another connection is still arriving in it, and does not say where; if
/// its sender dies then, nothing ever tells that the buffer is free. Memory of one message ends with one completion or
/// one error.
struct ReceiveBuffer : FabricContext {
  ReceiveBuffer() : FabricContext(FabricOperation::kReceive) {}

  std::byte* memory = nullptr;  ///< kFabricMessageBytes.
};

/// Memory of this process that peers may read.
struct ExposedMemory {
  fid_mr* registration = nullptr;
  std::uint64_t address = 0;  ///< What a peer has to name,
  std::uint64_t key = 0;      ///< and this: not to be guessed.
};

/// Where memory of a peer is read to.
struct FetchBuffer : FabricContext {
  FetchBuffer() : FabricContext(FabricOperation::kFetch) {}

  void* owner = nullptr;  ///< The caller's; nullptr: forsaken.
  fid_mr* registration = nullptr;
  std::unique_ptr<std::byte[]> memory;  ///< kFetchBytes.
};

/// What FabricEndpoint::poll reports.
struct FabricEvent {
  enum class Kind : std::uint8_t {
    kSent,     ///< `buffer` is the caller's again.
    kFailed,   ///< The same, and the message may not have arrived.
    kArrived,  ///< `data` and `source`; to be given back by release.
    kFetched,  ///< `fetch` is the caller's again, and full.
    kMissed,   ///< `fetch` is the caller's again; the peer's memory is not there any more, or the peer itself.
  };
  Kind kind = Kind::kSent;
  SendBuffer* buffer = nullptr;
  FetchBuffer* fetch = nullptr;
  ReceiveBuffer* holder = nullptr;  ///< Of `data`.
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;  ///< Who sent it; FI_ADDR_NOTAVAIL: nobody whose address was inserted.
};

/// Outcome of FabricEndpoint::send.
enum class FabricSend : std::uint8_t {
  kTaken,   ///< An event follows.
  kLater,   ///< The provider takes nothing now: it has no room, or no connection yet.
  kShort,   ///< The same, because this process lacks what a connection takes: descriptors, memory.
  kFailed,  ///< It never will.
};

/// Fetches of one process that may be under way.
inline constexpr std::size_t kMostFetches = 4;

/// Used by one thread at a time. In a forked child it must be neither used nor destroyed.
class FabricEndpoint {
 public:
  /// @param provider  empty: the first that can do what is needed
  /// @param nid, port  where it can be reached, IPv4 in host byte order
  /// @param why  a sentence for people on failure
  /// @return nullptr on failure
  static std::unique_ptr<FabricEndpoint> open(const std::string& provider, std::uint32_t nid, std::uint16_t port,
                                              std::string* why);
  ~FabricEndpoint();
  FabricEndpoint(const FabricEndpoint&) = delete;
  FabricEndpoint& operator=(const FabricEndpoint&) = delete;

  /// @return FI_ADDR_NOTAVAIL if it cannot be an address
  fi_addr_t insert(std::uint32_t nid, std::uint16_t port) { return objects_.insert(nid, port); }

  /// A buffer to fill and send. @return nullptr without memory
  SendBuffer* take_buffer();
  void give_buffer(SendBuffer* buffer) { free_buffers_.push_back(buffer); }
  FabricSend send(fi_addr_t to, SendBuffer* buffer);

  /// Whether memory can be exposed and fetched.
  bool can_fetch() const { return can_fetch_; }

  /// @param bytes  at most kFetchBytes; all of it can be read
  /// @return without registration if that is not possible now
  ExposedMemory expose(const std::byte* memory, std::size_t bytes);

  /// Nobody can read it any more, be a fetch under way or not.
  void hide(const ExposedMemory& exposed);

  /// @return nullptr if kMostFetches are in use
  FetchBuffer* take_fetch_buffer();
  void give_fetch_buffer(FetchBuffer* buffer) { free_fetches_.push_back(buffer); }

  /// The caller does not wait any more for what is read into it.
  void forsake(FetchBuffer* buffer);

  /// @return true if it had been forsaken: then it is nobody's business any more
  bool take_back(FetchBuffer* buffer);

  /// Reads `bytes` bytes at `address` of a peer.
  FabricSend fetch(fi_addr_t from, FetchBuffer* buffer, std::size_t bytes, std::uint64_t address, std::uint64_t key);

  /// Makes progress, and reports what has happened.
  /// @return number of events
  std::size_t poll(std::span<FabricEvent> events);
  void release(ReceiveBuffer* holder);

  /// Readable when poll would find something, provided that may_sleep has said so before.
  int wait_fd() const { return objects_.wait_fd; }
  bool may_sleep() { return objects_.may_sleep(); }

 private:
  FabricEndpoint() = default;
  bool open_objects(const FabricLibrary& library, fi_info* info, std::string* why);
  bool add_receive_buffers(std::string* why);
  void post(ReceiveBuffer& buffer);
  bool take_error(FabricEvent& event);
  bool take_arrival(FabricEvent& event, const fi_cq_msg_entry& entry);
  fid_mr* register_memory(const void* memory, std::size_t bytes, std::uint64_t access);

  struct BufferSlab {
    std::unique_ptr<SendBuffer[]> buffers;
    fid_mr* registration = nullptr;
  };

  FabricObjects objects_;
  bool registers_ = false;      ///< The provider wants local memory registered.
  bool can_fetch_ = false;      ///< It reads memory of peers.
  bool names_address_ = false;  ///< Exposed memory is named by its address, not from 0.
  bool chooses_key_ = false;    ///< The provider does, not we.
  std::uint64_t key_mask_ = 0;  ///< Keys that it takes.
  std::unique_ptr<std::byte[]> receive_memory_;
  fid_mr* receive_registration_ = nullptr;  ///< If the provider wants it.
  std::deque<ReceiveBuffer> receive_buffers_;
  std::vector<ReceiveBuffer*> unposted_;  ///< The provider had no room for them.
  std::vector<BufferSlab> slabs_;
  std::vector<SendBuffer*> free_buffers_;
  std::deque<FetchBuffer> fetch_buffers_;
  std::vector<FetchBuffer*> free_fetches_;
  std::size_t forsaken_ = 0;  ///< Of `fetch_buffers_`.
};

}  // namespace portofu
