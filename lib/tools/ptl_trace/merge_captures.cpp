#include "lib/tools/ptl_trace/merge_captures.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
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
    const auto [type, bytes] = head_of<BlockHead>(file);
    if (bytes < kLeastBlockBytes || bytes % 4 != 0 || bytes > file.size()) return;
    std::string block(file.substr(0, bytes));
    file.remove_prefix(bytes);
    if (type == kSectionBlock) {
      merged->section = std::move(block);
    } else if (type == kInterfaceBlock) {
      merged->interfaces += block;
      ++merged->interface_count;
    } else if (type == kPacketBlock && bytes >= sizeof(PacketBlockHead) + sizeof(std::uint32_t)) {
      auto head = head_of<PacketBlockHead>(block);
      head.interface_number += first_interface;
      if (head.interface_number >= merged->interface_count) return;
      std::memcpy(block.data(), &head, sizeof head);
      merged->packets.push_back({std::uint64_t{head.time_high} << 32 | head.time_low, std::move(block)});
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
    std::ostringstream file;
    file << stream.rdbuf();
    take(file.str(), &merged);
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
