#include "lib/tools/ptl_trace/merge_captures.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {
namespace {

/// The beginning of a block. @pre it is there
template <class Head>
Head head_of(std::string_view bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

/// A file that is in memory as far as it is looked at.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      void* const at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<const char*>(at), bytes};
    }
    if (fd >= 0) close(fd);
  }
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

struct CapturedPacket {
  std::uint64_t time = 0;
  std::string_view block;              ///< As it lies in its file.
  std::uint32_t interface_number = 0;  ///< In the merged file.
};

struct Merged {
  std::string section;     ///< The first one; all are alike.
  std::string interfaces;  ///< Blocks.
  std::uint32_t interface_count = 0;
  std::vector<CapturedPacket> packets;
};

/// Takes what a file holds, up to the first block that is none.
void take(std::string_view file, Merged* merged) {
  const std::uint32_t first_interface = merged->interface_count;
  while (file.size() >= kLeastBlockBytes) {
    const auto [type, bytes] = head_of<BlockHead>(file);
    if (bytes < kLeastBlockBytes || bytes % 4 != 0 || bytes > file.size()) return;
    const std::string_view block = file.substr(0, bytes);
    file.remove_prefix(bytes);
    if (type == kSectionBlock) {
      merged->section = block;
    } else if (type == kInterfaceBlock) {
      merged->interfaces += block;
      ++merged->interface_count;
    } else if (type == kPacketBlock && bytes >= sizeof(PacketBlockHead) + sizeof(std::uint32_t)) {
      const auto head = head_of<PacketBlockHead>(block);
      const std::uint32_t number = head.interface_number + first_interface;
      if (number >= merged->interface_count) return;
      merged->packets.push_back({std::uint64_t{head.time_high} << 32 | head.time_low, block, number});
    }
  }
}

bool write_all(const Merged& merged, const std::string& output) {
  const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::FILE* const file = fd >= 0 ? fdopen(fd, "w") : nullptr;
  if (file == nullptr) return false;
  const auto put = [file](std::string_view bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  };
  bool written = put(merged.section) && put(merged.interfaces);
  for (const CapturedPacket& packet : merged.packets) {
    auto head = head_of<PacketBlockHead>(packet.block);
    head.interface_number = packet.interface_number;
    written = written && put({reinterpret_cast<const char*>(&head), sizeof head});
    written = written && put(packet.block.substr(sizeof head));
  }
  return std::fclose(file) == 0 && written;
}

}  // namespace

bool merge_captures(const std::string& directory, const std::string& output, std::string* why) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".pcapng") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  Merged merged;
  std::vector<MappedFile> files;  // Packets may need more memory than there is, and only their places are noted.
  for (const auto& path : paths) {
    files.emplace_back(path);
    take(files.back().bytes(), &merged);
  }
  if (merged.interface_count == 0) {
    *why = "no process has captured anything";
    return false;
  }
  std::ranges::stable_sort(merged.packets, {}, &CapturedPacket::time);
  if (write_all(merged, output)) return true;
  *why = output + ": " + std::strerror(errno);
  return false;
}

}  // namespace portofu::tools
