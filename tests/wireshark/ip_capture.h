#pragma once
// A capture file of IPv4 packets (pcap, LINKTYPE_RAW) with datagrams and pieces of TCP connections, as a network would
// have carried them. Times are a millisecond apart.

#include <arpa/inet.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/topology/process_id.h"

namespace portofu::wireshark {

using Bytes = std::vector<std::byte>;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Both parts, one behind the other.
inline Bytes joined(std::span<const std::byte> first, std::span<const std::byte> second) {
  Bytes both(first.begin(), first.end());
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

class IpCapture {
 public:
  explicit IpCapture(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) throw std::runtime_error("cannot create " + path);
    constexpr std::uint32_t kRawIp = 101;
    const std::uint32_t head[] = {0xa1b2c3d4, 4u << 16 | 2, 0, 0, 262144, kRawIp};
    write(bytes_of(head));
  }
  ~IpCapture() { std::fclose(file_); }
  IpCapture(const IpCapture&) = delete;
  IpCapture& operator=(const IpCapture&) = delete;

  /// The port of a process is its PID.
  void datagram(ProcessId from, ProcessId to, std::span<const std::byte> payload) {
    constexpr std::uint8_t kUdp = 17;
    const std::uint16_t head[] = {port(from), port(to), htons(static_cast<std::uint16_t>(8 + payload.size())), 0};
    packet(kUdp, from, to, joined(bytes_of(head), payload));
  }

  /// The next bytes from one end of a connection to the other.
  void segment(ProcessId from, ProcessId to, std::span<const std::byte> payload) {
    constexpr std::uint8_t kTcp = 6;
    constexpr std::uint16_t kAckPush = 5u << 12 | 0x18;
    std::uint32_t& sent = sent_[{process_key(from), process_key(to)}];
    const std::uint32_t back = sent_[{process_key(to), process_key(from)}];
    const std::uint32_t numbers[] = {htonl(1 + sent), htonl(1 + back)};
    const std::uint16_t ports[] = {port(from), port(to)};
    const std::uint16_t rest[] = {htons(kAckPush), htons(512), 0, 0};
    sent += static_cast<std::uint32_t>(payload.size());
    packet(kTcp, from, to, joined(joined(bytes_of(ports), bytes_of(numbers)), joined(bytes_of(rest), payload)));
  }

 private:
  static std::uint16_t port(ProcessId id) { return htons(static_cast<std::uint16_t>(id.pid)); }

  void packet(std::uint8_t protocol, ProcessId from, ProcessId to, std::span<const std::byte> content) {
    struct {
      std::uint8_t version = 0x45, service = 0;
      std::uint16_t bytes = 0, id = 0, flags = 0;
      std::uint8_t hops = 64, protocol = 0;
      std::uint16_t checksum = 0;
      std::uint32_t from = 0, to = 0;
    } head;
    head.bytes = htons(static_cast<std::uint16_t>(sizeof head + content.size()));
    head.protocol = protocol;
    head.from = htonl(from.nid);
    head.to = htonl(to.nid);
    const auto length = static_cast<std::uint32_t>(sizeof head + content.size());
    const std::uint32_t record[] = {1, 1000 * ++count_, length, length};
    write(bytes_of(record));
    write(bytes_of(head));
    write(content);
  }

  void write(std::span<const std::byte> bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) throw std::runtime_error("cannot write");
  }

  std::FILE* file_;
  std::uint32_t count_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> sent_;  ///< Bytes, by who sends to whom.
};

}  // namespace portofu::wireshark
