#include "lib/tools/ptl_trace/merge_captures.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace portofu::tools {
namespace {

// Of the format (draft-ietf-opsawg-pcapng), in the byte order of this machine: all files are of its processes.
constexpr std::uint32_t kSectionBlock = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::size_t kLeastBlockBytes = 12;
constexpr std::size_t kInterfacePlace = 8;  ///< In a packet block.
constexpr std::size_t kTimePlace = 12;
constexpr std::size_t kLeastPacketBytes = 32;

std::uint32_t word_at(std::string_view bytes, std::size_t place) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + place, sizeof word);
  return word;
}

struct CapturedPacket {
  std::uint64_t time = 0;
  std::string block;
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
    const std::uint32_t bytes = word_at(file, 4);
    if (bytes < kLeastBlockBytes || bytes % 4 != 0 || bytes > file.size()) return;
    std::string block(file.substr(0, bytes));
    file.remove_prefix(bytes);
    const std::uint32_t type = word_at(block, 0);
    if (type == kSectionBlock) {
      merged->section = std::move(block);
    } else if (type == kInterfaceBlock) {
      merged->interfaces += block;
      ++merged->interface_count;
    } else if (type == kPacketBlock && bytes >= kLeastPacketBytes) {
      const std::uint32_t interface = first_interface + word_at(block, kInterfacePlace);
      if (interface >= merged->interface_count) return;
      std::memcpy(block.data() + kInterfacePlace, &interface, sizeof interface);
      const std::uint64_t high = word_at(block, kTimePlace);
      const std::uint64_t time = high << 32 | word_at(block, kTimePlace + 4);
      merged->packets.push_back({time, std::move(block)});
    }
  }
}

bool write_all(const Merged& merged, const std::string& output) {
  const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::FILE* const file = fd >= 0 ? fdopen(fd, "w") : nullptr;
  if (file == nullptr) return false;
  const auto put = [file](const std::string& bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  };
  bool written = put(merged.section) && put(merged.interfaces);
  for (const CapturedPacket& packet : merged.packets) written = written && put(packet.block);
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
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(stream), {}};
    take(file, &merged);
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
