#include "lib/funi/program_image.h"

#include <link.h>

#include <cstddef>

namespace portofu::funi {
namespace {

/// The first object is the program itself.
int note_program(dl_phdr_info* info, std::size_t, void* program) {
  *static_cast<dl_phdr_info*>(program) = *info;
  return 1;
}

const dl_phdr_info& program() {
  static const dl_phdr_info kProgram = [] {
    dl_phdr_info info{};
    dl_iterate_phdr(note_program, &info);
    return info;
  }();
  return kProgram;
}

bool is_inside(std::uint64_t offset, bool code) {
  for (ElfW(Half) i = 0; i < program().dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = program().dlpi_phdr[i];
    const bool is_kind = part.p_type == PT_LOAD && ((part.p_flags & PF_X) != 0) == code && (part.p_flags & PF_R) != 0;
    if (is_kind && offset >= part.p_vaddr && offset - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

}  // namespace

std::uint32_t offset_in_program(std::uintptr_t address, bool code) {
  const std::uint64_t offset = address - program().dlpi_addr;
  return offset <= 0xffffffffu && is_inside(offset, code) ? static_cast<std::uint32_t>(offset) : 0;
}

void* address_in_program(std::uint32_t offset, bool code) {
  // A variable lies inside with all of its bytes.
  const bool is_there = offset != 0 && is_inside(offset, code) && (code || is_inside(offset + sizeof(void*) - 1, code));
  return is_there ? reinterpret_cast<void*>(program().dlpi_addr + offset) : nullptr;
}

}  // namespace portofu::funi
