// A signal arrives in the middle of a call that opens or closes something, and its handler calls exit(3), which runs
// destructors of the program. What the call has in hand by then, such as the lock of the memory, is theirs to use. Here
// the signal comes while memory is taken or given back, which is where such a handler waited for ever.

#include <portals4.h>
#include <signal.h>
#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/own_operators.h"

namespace portofu {
namespace {

constexpr int kPassed = 0;   ///< The signal has come nowhere.
constexpr int kEnded = 3;    ///< By exit() in the handler.
constexpr int kTorn = 4;     ///< Memory was wanted of an allocator that was in the middle of something.
constexpr int kPlaces = 64;  ///< In each call, at most.

/// Of the calling thread.
constinit thread_local bool is_watched = false;
constinit thread_local int uses = 0;       ///< Of the allocator, while it is watched.
constinit thread_local int signal_at = 0;  ///< At this use; less than 0: never.
constinit thread_local bool is_inside = false;

/// A use of the allocator: as with that of the C library another one cannot begin in the middle.
class Use {
 public:
  Use() {
    if (is_inside) _exit(kTorn);
    is_inside = true;
    if (is_watched && uses++ == signal_at) raise(SIGUSR1);
  }
  ~Use() { is_inside = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
};

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) {
  const Use use;
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  return memory != nullptr ? memory : throw std::bad_alloc();
}

void release(void* memory) {
  const Use use;
  std::free(memory);
}

namespace {

/// As any program has some.
struct Destroyed {
  ~Destroyed() { release(allocate(64, 16)); }
};
const Destroyed destroyed;

void end_process(int) { std::exit(kEnded); }

/// The calls, in this order.
enum class Call { kInit, kOpen, kOpenSecond, kClose, kFini, kCreate, kCreateSecond, kFree, kFreeSecond };
constexpr Call kCalls[] = {Call::kInit,   Call::kOpen,         Call::kOpenSecond, Call::kClose,     Call::kFini,
                           Call::kCreate, Call::kCreateSecond, Call::kFree,       Call::kFreeSecond};

struct Opened {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_ni_t second_ni = PTL_INVALID_HANDLE;
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_hdl_t second_vcq = 0;
};

bool open_interface(unsigned int options, ptl_handle_ni_t* ni) {
  return PtlNIInit(PTL_IFACE_DEFAULT, options | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, ni) == PTL_OK;
}

bool make(Call call, Opened& opened) {
  switch (call) {
    case Call::kInit: return PtlInit() == PTL_OK;
    case Call::kOpen: return open_interface(PTL_NI_MATCHING, &opened.ni);
    case Call::kOpenSecond: return open_interface(PTL_NI_NO_MATCHING, &opened.second_ni);
    case Call::kCreate: return utofu_create_vcq(0, UTOFU_VCQ_FLAG_THREAD_SAFE, &opened.vcq) == UTOFU_SUCCESS;
    case Call::kCreateSecond: return utofu_create_vcq(1, 0, &opened.second_vcq) == UTOFU_SUCCESS;
    case Call::kFree: return utofu_free_vcq(opened.vcq) == UTOFU_SUCCESS;
    case Call::kFreeSecond: return utofu_free_vcq(opened.second_vcq) == UTOFU_SUCCESS;
    case Call::kClose: return PtlNIFini(opened.ni) == PTL_OK;
    case Call::kFini: PtlFini(); return true;
  }
  return false;
}

/// @param use  of the allocator in that call, at which the signal comes; less than 0: it does not
/// @param all  set to how many there are
[[noreturn]] void run(Call watched, int use, std::atomic<int>& all) {
  signal(SIGUSR1, end_process);
  Opened opened;
  for (const Call call : kCalls) {
    uses = 0;
    signal_at = use;
    is_watched = call == watched;
    if (!make(call, opened)) _exit(1);
    if (is_watched) all = uses;
    is_watched = false;
  }
  std::exit(kPassed);
}

TEST(EndsOpening, Handler_that_calls_exit__has_not_interrupted_who_opens_or_closes) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer keeps signals back in its own way";
#endif
  const OwnNode node;
  const SharedMemory<std::atomic<int>> all;
  for (const Call call : kCalls) {
    const std::string name = "call " + std::to_string(static_cast<int>(call));
    ChildProcess counting([&]() -> int { run(call, -1, *all); });
    ASSERT_EQ(counting.wait_status(), kPassed) << name;
    const int count = *all;
    const int places = std::min(count, kPlaces);
    for (int place = 0; place < places; ++place) {
      const int use = count * place / places;
      ChildProcess child([&]() -> int { run(call, use, *all); });
      ASSERT_TRUE(eventually([&] { return child.has_ended(); })) << name << " hangs, use " << use;
      // A process that need not wait for another takes memory less often.
      const int status = child.wait_status();
      EXPECT_EQ(status, status == kPassed && *all <= use ? kPassed : kEnded)
          << name << ", use " << use << " of " << count;
    }
  }
}

}  // namespace
}  // namespace portofu
