#include "engine/wire/capture/capture_file.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"
#include "engine/wire/capture/pcapng.h"

namespace portofu {
namespace {

// Numbers of the format.
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kUserApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint8_t kNanoseconds = 9;
constexpr std::uint16_t kFlags = 2;
constexpr std::uint32_t kInbound = 1;
constexpr std::uint32_t kOutbound = 2;
constexpr std::uint16_t kUser0 = 147;

constexpr std::uint32_t padded(std::uint32_t bytes) { return (bytes + 3) & ~3u; }

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// A block that is put together: type, length, content, length.
class Block {
 public:
  explicit Block(std::uint32_t type) { add(std::array<std::uint32_t, 2>{type, 0}); }

  template <class T>
  void add(const T& value) {
    append(bytes_of(value));
  }

  void add_option(std::uint16_t code, std::span<const std::byte> value) {
    add(std::array<std::uint16_t, 2>{code, static_cast<std::uint16_t>(value.size())});
    append(value);
    bytes_.resize(padded(static_cast<std::uint32_t>(bytes_.size())));
  }

  /// The whole block, with the end of its options.
  std::span<const std::byte> finish() {
    add(std::uint32_t{0});
    const auto length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    add(length);
    std::memcpy(bytes_.data() + sizeof(std::uint32_t), &length, sizeof length);
    return bytes_;
  }

 private:
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  std::vector<std::byte> bytes_;
};

std::span<const std::byte> bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

/// What stands behind it and its padding.
struct PacketBlockTail {
  std::uint16_t code;
  std::uint16_t option_bytes;
  std::uint32_t flags;
  std::uint32_t end_of_options;
  std::uint32_t block_bytes;
};
static_assert(sizeof(PacketBlockTail) == 16);

iovec part(const void* data, std::size_t bytes) { return {const_cast<void*>(data), bytes}; }

}  // namespace

std::unique_ptr<CaptureFile> CaptureFile::create(const std::string& path, const std::string& interface_name,
                                                 std::string* why) {
  const NoCancellation whole;
  OwnDescriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const int error = errno;
  if (fd) {
    std::unique_ptr<CaptureFile> made(new CaptureFile(std::move(fd)));
    if (made->begin(interface_name)) return made;
    *why = system_failure("write", path, errno);
    return nullptr;
  }
  const bool is_missing = error == ENOENT || error == ENOTDIR;
  *why = system_failure("open", path, error, is_missing ? "set PORTOFU_PCAPNG to a directory that is there" : "");
  return nullptr;
}

bool CaptureFile::begin(const std::string& interface_name) {
  Block section(kSectionBlock);
  section.add(kByteOrderMagic);
  section.add(std::array<std::uint16_t, 2>{1, 0});
  section.add(UINT64_MAX);  // The length of the section is not known.
  section.add_option(kUserApplication, bytes_of_text("Portofu"));
  Block interface(kInterfaceBlock);
  interface.add(std::array<std::uint16_t, 2>{kUser0, 0});
  interface.add(std::uint32_t{0});  // No limit.
  interface.add_option(kInterfaceName, bytes_of_text(interface_name));
  interface.add_option(kTimeResolution, bytes_of(kNanoseconds));
  for (const auto bytes : {section.finish(), interface.finish()}) {
    if (::write(fd_.number(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return false;
  }
  return true;
}

void CaptureFile::write(std::uint64_t time_ns, const CaptureRecord& record, const PacketHeader* header,
                        const std::byte* payload) {
  if (!fd_) return;
  const NoCancellation whole;
  const std::uint32_t head_bytes = sizeof record + (header != nullptr ? sizeof *header : 0);
  const std::uint32_t payload_bytes = header != nullptr ? header->payload_bytes : 0;
  const std::uint32_t here = payload != nullptr ? std::min(payload_bytes, kMostCapturedBytes) : 0;
  const std::uint32_t captured = head_bytes + here;
  const std::uint32_t padding = padded(captured) - captured;
  const auto block_bytes =
      static_cast<std::uint32_t>(sizeof(PacketBlockHead) + padded(captured) + sizeof(PacketBlockTail));
  const PacketBlockHead head{kPacketBlock,
                             block_bytes,
                             0,
                             static_cast<std::uint32_t>(time_ns >> 32),
                             static_cast<std::uint32_t>(time_ns),
                             captured,
                             head_bytes + payload_bytes};
  const std::uint32_t flags = record.direction == CaptureDirection::kSent ? kOutbound : kInbound;
  const PacketBlockTail tail{kFlags, sizeof flags, flags, 0, block_bytes};
  constexpr std::uint32_t kZero = 0;
  const std::array<iovec, 6> parts{
      part(&head, sizeof head), part(&record, sizeof record), part(header, header != nullptr ? sizeof *header : 0),
      part(payload, here),      part(&kZero, padding),        part(&tail, sizeof tail)};
  if (writev(fd_.get(), parts.data(), parts.size()) == static_cast<ssize_t>(block_bytes)) return;
  log_error("%s; nothing more is captured", system_failure("write", "a capture of packets", errno).c_str());
  fd_.close();
}

}  // namespace portofu
