#include "lib/tools/ptl_sim/counter_read.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace portofu::tools {
namespace {

/// More text than that is looked at in parts, of which each shows a little of the next.
constexpr std::size_t kPartBytes = 16 << 20;
constexpr std::size_t kOverlapBytes = 64;
/// The halves are joined this near behind the read.
constexpr std::size_t kJoinBytes = 40;

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;

/// shl $32 of any 64-bit register.
bool joins_halves(std::span<const unsigned char> behind) {
  for (std::size_t i = 0; i + 4 <= std::min(behind.size(), kJoinBytes); ++i) {
    const bool is_wide = behind[i] == 0x48 || behind[i] == 0x49;
    if (is_wide && behind[i + 1] == 0xc1 && (behind[i + 2] & 0xf8) == 0xe0 && behind[i + 3] == 32) return true;
  }
  return false;
}
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
constexpr std::uint16_t kMachine = EM_NONE;
#endif

void add(std::string* names, const char* name) {
  if (names->find(std::string(name) + ',') == std::string::npos) *names += std::string(name) + ',';
}

/// @param names  each with a comma behind it
void look(std::span<const unsigned char> text, std::string* names) {
#if defined(__x86_64__)
  for (std::size_t i = 0; i + 3 <= text.size(); ++i) {
    if (text[i] != 0x0f) continue;
    if (text[i + 1] == 0x01 && text[i + 2] == 0xf9) add(names, "rdtscp");
    if (text[i + 1] == 0x31 && joins_halves(text.subspan(i + 2))) add(names, "rdtsc");
  }
#elif defined(__aarch64__)
  for (std::size_t i = 0; i + 4 <= text.size(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, &text[i], sizeof word);
    if ((word & ~0x1fu) == 0xd53be040u) add(names, "mrs cntvct_el0");
  }
#else
  (void)text;
  (void)names;
#endif
}

std::string without_last_comma(std::string names) {
  if (!names.empty()) names.pop_back();
  for (std::size_t at = 0; (at = names.find(',', at)) != std::string::npos; at += 2) names.replace(at, 1, ", ");
  return names;
}

template <typename Type>
bool read_at(std::ifstream& file, std::uint64_t offset, Type* data, std::size_t count) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  std::vector<char> bytes(count * sizeof(Type));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::memcpy(data, bytes.data(), bytes.size());
  return static_cast<std::size_t>(file.gcount()) == bytes.size();
}

}  // namespace

std::string counter_reads(std::span<const unsigned char> text) {
  std::string names;
  look(text, &names);
  return without_last_comma(names);
}

std::string counter_reads_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr head{};
  if (!file || !read_at(file, 0, &head, 1) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return "";
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != kMachine) return "";
  if (head.e_phentsize != sizeof(Elf64_Phdr)) return "";
  std::vector<Elf64_Phdr> parts(head.e_phnum);
  if (!read_at(file, head.e_phoff, parts.data(), parts.size())) return "";
  std::string names;
  std::vector<unsigned char> text;
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    for (std::uint64_t from = 0; from < part.p_filesz; from += kPartBytes) {
      text.resize(std::min<std::uint64_t>(part.p_filesz - from, kPartBytes + kOverlapBytes));
      if (!read_at(file, part.p_offset + from, text.data(), text.size())) return "";
      look(text, &names);
    }
  }
  return without_last_comma(names);
}

std::string program_file(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::string file = (directory.empty() ? "." : directory) + '/' + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

}  // namespace portofu::tools
