#pragma once
// A file of packets that tools for captures read (pcapng, draft-ietf-opsawg-pcapng). Every record is one write(2), so
// what a process has captured is there when it is killed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/segment/own_descriptor.h"
#include "engine/wire/capture/capture_record.h"
#include "engine/wire/header.h"

namespace portofu {

/// Payload of a packet that is captured at most; readers refuse longer records than 256 KiB.
inline constexpr std::uint32_t kMostCapturedBytes = 131'072;

/// Used by one thread at a time.
class CaptureFile {
 public:
  /// Creates a file that only its user can read: it will contain the job key and what the program sends.
  /// @param interface_name  what Wireshark calls the place where the packets were seen
  /// @param why             a sentence for people on failure
  /// @return nullptr on failure, also if there is such a file already
  static std::unique_ptr<CaptureFile> create(const std::string& path, const std::string& interface_name,
                                             std::string* why);

  /// @param time_ns  since 1970
  /// @param header   nullptr: none follows
  /// @param payload  nullptr: it is not here, and the record says that it is missing
  void write(std::uint64_t time_ns, const CaptureRecord& record, const PacketHeader* header, const std::byte* payload);

 private:
  explicit CaptureFile(OwnDescriptor fd) : fd_(std::move(fd)) {}
  bool begin(const std::string& interface_name);

  OwnDescriptor fd_;  ///< None after a failure: nothing is captured any more.
};

}  // namespace portofu
