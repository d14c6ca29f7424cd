#pragma once
// One unreliable datagram endpoint of libfabric (FI_EP_DGRAM): what wire/reliable makes a wire of between nodes whose
// fabric promises nothing. A process is addressed by its NID and PID alone, as by OfiWire. The provider is chosen by
// what it can do: datagrams with their source, between IPv4 addresses, that it takes over at once (fi_inject).
//
// Who is gone. libfabric hides what kernels say about ports that nobody has, so a peer is knocked for before what is
// sent there, not too often (doorplate.h). A provider that uses the UDP port itself stands at it as a doorplate does;
// where none does, the doorplate is there. Kernels say it rarely, and our datagrams use that up, so what is said to the
// provider's socket is looked at, too.

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/observe/counters.h"
#include "engine/segment/own_descriptor.h"
#include "engine/wire/ofi/doorplate.h"
#include "engine/wire/ofi/fabric_objects.h"
#include "engine/wire/ofi/fabric_options.h"
#include "engine/wire/ofi/socket_keeper.h"
#include "engine/wire/reliable/datagram.h"
#include "engine/wire/reliable/packet_buffer.h"

namespace portofu {

/// In front of every datagram. Checked in this order: length and checksum, job key and user, then where it comes from.
struct DatagramEnvelope {
  std::uint32_t checksum;  ///< CRC32C of the rest of the envelope; what follows has one of its own (frame.h).
  std::uint32_t magic;     ///< kDatagramMagic.
  std::uint32_t job_key;   ///< Of the sending process; another one is refused.
  std::uint32_t uid;       ///< Usage ID of the sending process; another one is refused.
  std::uint32_t nid;       ///< Of the sending process; agrees with the address that the fabric tells, if it knows it.
  std::uint32_t pid;       ///< Of the sending process; the same.
};
static_assert(sizeof(DatagramEnvelope) == 24 && std::is_trivially_copyable_v<DatagramEnvelope>);

/// "Pod" and the version of the format.
inline constexpr std::uint32_t kDatagramMagic = 0x02646f50;

/// Fills in the checksum.
void seal_envelope(DatagramEnvelope& envelope);

/// Used by one thread at a time. In a forked child it does nothing.
class FabricDatagrams final : public DatagramEndpoint, public SocketKeeper {
 public:
  /// @param why  a sentence for people on failure
  /// @return nullptr on failure
  static std::unique_ptr<FabricDatagrams> open(FabricOptions options, Counters counters, std::string* why);
  ~FabricDatagrams() override;
  FabricDatagrams(const FabricDatagrams&) = delete;
  FabricDatagrams& operator=(const FabricDatagrams&) = delete;

  std::uint32_t max_bytes() const override {
    return datagram_bytes_ - static_cast<std::uint32_t>(sizeof(DatagramEnvelope));
  }
  bool send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
            std::span<const std::byte> body) override;
  std::uint32_t receive(std::byte* buffer, ProcessId* source) override;
  /// Does not always look if there was nothing for long (empty_looks.h).
  bool has_datagrams() override;
  bool take_unreachable(ProcessId* peer) override;
  std::uint64_t unreachable_since_ns() const override { return unreachable_since_ns_; }
  std::uint64_t now_ns() const override;
  int wait_fd() const override { return wait_fd_.number(); }
  bool may_sleep() override;
  bool is_over() const override;

  bool is_open() const override { return true; }
  void attend(int fd, std::function<void()> handle) override;

 private:
  /// Memory of one datagram that arrives; providers may use `room` as they like meanwhile.
  struct Slot {
    fi_context2 room{};
    PacketBuffer memory;
  };
  struct Arrival {
    Slot* slot = nullptr;
    std::size_t bytes = 0;
    fi_addr_t source = FI_ADDR_NOTAVAIL;  ///< FI_ADDR_NOTAVAIL: nobody whose address was inserted.
  };
  struct Unreachable {
    ProcessId id;
    std::uint64_t since_ns = 0;  ///< When something left that found nobody there; 0: not known.
  };
  struct Peer {
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    std::uint64_t knocked_ns = 0;
  };

  FabricDatagrams(FabricOptions options, Counters counters);
  bool open_fabric(std::uint16_t port, std::string* why);
  bool open_objects(const FabricLibrary& library, fi_info* info, std::string* why);
  bool open_doors(std::uint16_t port, std::string* why);
  bool wait_for(int fd, std::uint32_t events);
  void post(Slot& slot);
  void look();
  void look_at_door();
  bool is_told_absent(ProcessId id) const;
  std::uint64_t sent_at(const Absent& absent) const;
  Peer* find_peer(ProcessId id);
  Peer* make_peer(ProcessId id);
  bool may_come(const DatagramEnvelope& envelope, fi_addr_t source);
  std::uint32_t open_datagram(const Arrival& arrival, std::byte* buffer, ProcessId* source);

  const FabricOptions options_;
  Counters counters_;
  const std::uint64_t fork_generation_;  ///< Of the process that opened it.
  FabricObjects objects_;
  std::uint32_t datagram_bytes_ = 0;  ///< Most of one, with its envelope.
  PacketBuffer outgoing_;             ///< Where one is put together.
  Doorplate door_;
  std::uint64_t looked_at_door_ns_ = 0;
  OwnDescriptor wait_fd_;  ///< An epoll over the fabric, the door, and what attend was given.
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> unposted_;  ///< The provider had no room for them.
  std::deque<Arrival> arrived_;
  std::deque<Unreachable> unreachable_;
  std::uint64_t unreachable_since_ns_ = 0;         ///< Of the one that was taken last.
  std::unordered_map<std::uint64_t, Peer> peers_;  ///< By (nid, pid).
  std::function<void()> handle_;                   ///< Of attend.
  std::uint32_t empty_looks_ = 0;                  ///< In a row.
};

}  // namespace portofu
