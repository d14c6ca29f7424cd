// The engine touches memory of the application in its own time, so a wrong address must not become a crash that nobody
// can explain (Portals 4.3, 3.10, 3.11: PTL_NI_SEGV). Copies run in a stretch of code that uses no stack: when an
// instruction there faults, the handler lets it go on at the stretch's failing exit. Everything else keeps a jump
// buffer, and goes on at a function that jumps there. The handler itself always returns, as the kernel and the
// sanitizers expect. Faults from anywhere else, and signals that somebody sends, are for the action that was there
// before (earlier_action.h).

#include "engine/memory/guarded_copy.h"

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "engine/memory/earlier_action.h"
#include "engine/queue/cpu.h"
#include "engine/queue/fork_mutex.h"

#if defined(__x86_64__)

extern "C" {
/// guarded_copy, by its name in C. Copies without writing a byte twice (memcpy may): 8 bytes, the usual message, at
/// once; from 256 bytes on blocks of 128 bytes to whole cache lines by AVX, or of 64 without; then of 32 bytes, then
/// words of falling size, each one load and one store. By AVX a copy within the first-level cache is twice as fast (59
/// and 115 GB/s), and one to an address that is no multiple of 32 from the second-level cache by a third.
int portofu_copy(void* target, const void* source, std::size_t bytes);
/// The same by streaming stores, as far as there are 64 bytes at a time. `target` is aligned to 16 bytes.
int portofu_copy_streaming(void* target, const void* source, std::size_t bytes);
/// Where a fault of the stretch [portofu_copy_streaming, portofu_copy_end) continues.
void portofu_copy_fault();
void portofu_copy_end();
/// Where this library begins, and where its code ends; made by the linker.
[[gnu::visibility("hidden")]] extern const char __ehdr_start;
[[gnu::visibility("hidden")]] extern const char etext;
}

/// Whether this is a CPU of Intel that is good at `rep movsb` ("fast short rep mov"). They are also those on which
/// AVX-512 does not slow down everything else.
static const bool kCopiesStrings = [] {
  return portofu::cpu_copies_short_strings() && __builtin_cpu_is("intel") != 0;
}();

std::uint8_t portofu_copy_wide = []() -> std::uint8_t {
  if (__builtin_cpu_supports("avx") == 0) return 0;
  return kCopiesStrings && __builtin_cpu_supports("avx512f") != 0 ? 2 : 1;
}();

/// From so many bytes on whole cache lines are copied by one `rep movsb`, which reads no line that it overwrites. By it
/// 16 KiB within the first-level cache are a quarter faster than by AVX (230 against 180 GB/s), and all that comes from
/// further away by 5 to 10 %. What leaves the first-level cache and stays in the second goes by AVX-512, and asks for
/// both sides 2 KiB ahead: 10 to 15 % faster. For less AVX-512 is slower, 10 to 20 % up to 16 KiB where the other side
/// reads what was copied.
std::size_t portofu_copy_string_from = kCopiesStrings ? 4096 : SIZE_MAX;

// portofu_step: copies so many bytes by one load and one store, if the bit of that weight is set in `when`.
asm(R"(
  .macro portofu_step bytes, when, load, in, store, out
    test $\bytes, \when
    jz 6f
    \load (%rsi), \in
    \store \out, (%rdi)
    add $\bytes, %rsi
    add $\bytes, %rdi
6:
  .endm
  .text
  .p2align 5
  .globl portofu_copy_streaming, portofu_copy, portofu_copy_end, portofu_copy_fault
  .hidden portofu_copy_streaming, portofu_copy, portofu_copy_end, portofu_copy_fault
  .globl _ZN7portofu12guarded_copyEPSt4bytePKS0_m
  .type _ZN7portofu12guarded_copyEPSt4bytePKS0_m, @function
  .type portofu_copy_streaming, @function
  .type portofu_copy, @function
portofu_copy_streaming:
  cmp $64, %rdx
  jb 9f
8:
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movdqu 32(%rsi), %xmm2
  movdqu 48(%rsi), %xmm3
  movntdq %xmm0, (%rdi)
  movntdq %xmm1, 16(%rdi)
  movntdq %xmm2, 32(%rdi)
  movntdq %xmm3, 48(%rdi)
  add $64, %rsi
  add $64, %rdi
  sub $64, %rdx
  cmp $64, %rdx
  jae 8b
9:
  sfence
_ZN7portofu12guarded_copyEPSt4bytePKS0_m:
portofu_copy:
  cmp $8, %rdx
  jne 9f
  mov (%rsi), %rax
  mov %rax, (%rdi)
  mov $1, %eax
  ret
9:
  cmp $32, %rdx
  jb 2f
  cmp $256, %rdx
  jae 7f
1:
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movups %xmm0, (%rdi)
  movups %xmm1, 16(%rdi)
  add $32, %rsi
  add $32, %rdi
  sub $32, %rdx
  cmp $32, %rdx
  jae 1b
2:
  cmp $8, %rdx
  jb 3f
  mov (%rsi), %rax
  mov %rax, (%rdi)
  add $8, %rsi
  add $8, %rdi
  sub $8, %rdx
  jmp 2b
3:
  portofu_step 4, %dl, mov, %eax, mov, %eax
  portofu_step 2, %dl, movzwl, %eax, mov, %ax
  portofu_step 1, %dl, movzbl, %eax, mov, %al
  mov $1, %eax
  ret
7:
  cmpb $0, portofu_copy_wide(%rip)
  je 11f
  mov %rdi, %rax
  neg %rax
  and $63, %eax
  sub %rax, %rdx
  portofu_step 1, %dil, movzbl, %eax, mov, %al
  portofu_step 2, %dil, movzwl, %eax, mov, %ax
  portofu_step 4, %dil, mov, %eax, mov, %eax
  portofu_step 8, %dil, mov, %rax, mov, %rax
  portofu_step 16, %dil, movdqu, %xmm0, movaps, %xmm0
  portofu_step 32, %dil, vmovdqu, %ymm0, vmovdqa, %ymm0
  cmp portofu_copy_string_from(%rip), %rdx
  jb 10f
  cmpb $2, portofu_copy_wide(%rip)
  jne 12f
  cmp $32768, %rdx    # 32 KiB
  jb 12f
  cmp $1572864, %rdx  # 1.5 MiB
  jae 12f
13:
  prefetcht0 2048(%rsi)
  prefetcht0 2112(%rsi)
  prefetcht0 2176(%rsi)
  prefetcht0 2240(%rsi)
  prefetchw 2048(%rdi)
  prefetchw 2112(%rdi)
  prefetchw 2176(%rdi)
  prefetchw 2240(%rdi)
  vmovdqu64 (%rsi), %zmm0
  vmovdqu64 64(%rsi), %zmm1
  vmovdqu64 128(%rsi), %zmm2
  vmovdqu64 192(%rsi), %zmm3
  vmovdqa64 %zmm0, (%rdi)
  vmovdqa64 %zmm1, 64(%rdi)
  vmovdqa64 %zmm2, 128(%rdi)
  vmovdqa64 %zmm3, 192(%rdi)
  add $256, %rsi
  add $256, %rdi
  add $-256, %rdx
  cmp $256, %rdx
  jae 13b
  vzeroupper
  jmp portofu_copy
10:
  vmovdqu (%rsi), %ymm0
  vmovdqu 32(%rsi), %ymm1
  vmovdqu 64(%rsi), %ymm2
  vmovdqu 96(%rsi), %ymm3
  vmovdqa %ymm0, (%rdi)
  vmovdqa %ymm1, 32(%rdi)
  vmovdqa %ymm2, 64(%rdi)
  vmovdqa %ymm3, 96(%rdi)
  sub $-128, %rsi
  sub $-128, %rdi
  add $-128, %rdx
  cmp $128, %rdx
  jae 10b
  vzeroupper
  jmp portofu_copy
12:
  vzeroupper
  mov %rdx, %rcx
  and $-64, %rcx
  sub %rcx, %rdx
  rep movsb
  jmp portofu_copy
11:
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movdqu 32(%rsi), %xmm2
  movdqu 48(%rsi), %xmm3
  movups %xmm0, (%rdi)
  movups %xmm1, 16(%rdi)
  movups %xmm2, 32(%rdi)
  movups %xmm3, 48(%rdi)
  add $64, %rsi
  add $64, %rdi
  sub $64, %rdx
  cmp $64, %rdx
  jae 11b
  jmp portofu_copy
portofu_copy_end:
portofu_copy_fault:
  xor %eax, %eax
  cmpb $0, portofu_copy_wide(%rip)
  je 18f
  vzeroupper
18:
  ret
  .size portofu_copy, . - portofu_copy
  .size _ZN7portofu12guarded_copyEPSt4bytePKS0_m, . - portofu_copy
)");

#endif

namespace portofu {
namespace {

using JumpBuffer = void* [5];

// initial-exec: the library must not call into the loader's TLS allocator from a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local JumpBuffer* current_guard = nullptr;

EarlierActions earlier_segv;
EarlierActions earlier_bus;
ForkMutex install_mutex;

[[noreturn]] void leave_guarded_call() {
  JumpBuffer* guard = current_guard;
  current_guard = nullptr;
  __builtin_longjmp(*guard, 1);
}

#if defined(__x86_64__)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
bool is_in_library(std::uintptr_t) { return true; }  // Their runtime touches memory for us.
#else
/// What a guarded call runs is code of ours. A handler of the application that interrupts it, and faults, is not.
bool is_in_library(std::uintptr_t instruction) {
  return instruction >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) &&
         instruction < reinterpret_cast<std::uintptr_t>(&etext);
}
#endif
#endif

/// Lets the interrupted thread go on at a failing exit. @return false if it was in none of our stretches
bool leave_stretch(void* context) {
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  auto& registers = machine.gregs;
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (at >= reinterpret_cast<std::uintptr_t>(&portofu_copy_streaming) &&
      at < reinterpret_cast<std::uintptr_t>(&portofu_copy_end)) {
    registers[REG_RIP] = reinterpret_cast<greg_t>(&portofu_copy_fault);
    return true;
  }
  if (current_guard == nullptr || !is_in_library(at)) return false;
  // A call's stack: behind the red zone, and as if a return address had been pushed.
  registers[REG_RSP] = ((registers[REG_RSP] - 128) & ~greg_t{15}) - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&leave_guarded_call);
#elif defined(__aarch64__)
  if (current_guard == nullptr) return false;
  machine.pc = reinterpret_cast<std::uintptr_t>(&leave_guarded_call);
#else
#error "Say here how a thread goes on at leave_guarded_call."
#endif
  return true;
}

/// Not ours are signals that somebody sends, also while the engine copies.
void on_fault(int signal_number, siginfo_t* info, void* context) {
  const int error = errno;
  if (!is_of_instruction(signal_number, info) || !leave_stretch(context))
    (signal_number == SIGSEGV ? earlier_segv : earlier_bus).act(signal_number, info, context);
  errno = error;
}

}  // namespace

void install_fault_guard() {
  const std::lock_guard lock(install_mutex);
  earlier_segv.stand_before(SIGSEGV, on_fault);
  earlier_bus.stand_before(SIGBUS, on_fault);
}

#if !defined(__x86_64__)
bool guarded_copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  struct Copy {
    std::byte* target;
    const std::byte* source;
    std::size_t bytes;
  } copy{target, source, bytes};
  return guarded_call(
      [](void* argument) {
        const auto* told = static_cast<const Copy*>(argument);
        std::memcpy(told->target, told->source, told->bytes);
      },
      &copy);
}
#endif

bool guarded_copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
#if defined(__x86_64__)
  if (reinterpret_cast<std::uintptr_t>(target) % 16 == 0) return portofu_copy_streaming(target, source, bytes) != 0;
#endif
  return guarded_copy(target, source, bytes);
}

bool guarded_look(const std::byte* memory, std::size_t bytes) {
  struct Range {
    const std::byte* memory;
    std::size_t bytes;
  } range{memory, bytes};
  const auto look = [](void* argument) {
    constexpr std::size_t kPage = 4096;
    const auto* told = static_cast<const Range*>(argument);
    const auto load = [told](std::size_t at) {
      static_cast<void>(std::atomic_ref(const_cast<std::byte&>(told->memory[at])).load(std::memory_order_relaxed));
    };
    for (std::size_t at = 0; at < told->bytes; at += kPage) load(at);
    if (told->bytes != 0) load(told->bytes - 1);
  };
  return guarded_call(look, &range);
}

bool guarded_touch(std::byte* byte) {
  const auto touch = [](void* argument) {
#if defined(__x86_64__)
    asm volatile("lock orb $0, (%0)" : : "r"(argument) : "memory");  // Unseen by sanitizers: it is no race.
#else
    std::atomic_ref(*static_cast<unsigned char*>(argument)).fetch_or(0, std::memory_order_relaxed);
#endif
  };
  return guarded_call(touch, byte);
}

__attribute__((noinline)) bool guarded_call(void (*run)(void*), void* argument) {
  JumpBuffer buffer;
  if (__builtin_setjmp(buffer) != 0) return false;
  current_guard = &buffer;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  run(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_guard = nullptr;
  return true;
}

}  // namespace portofu
