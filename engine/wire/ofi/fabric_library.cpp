#include "engine/wire/ofi/fabric_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>

namespace portofu {
namespace {

constexpr const char* kSoname = "libfabric.so.1";

std::atomic<bool> ending{false};
std::atomic<void (*)()> last_act{nullptr};

void end_libfabric() {
  if (void (*const act)() = last_act.load(std::memory_order_relaxed)) act();
  ending.store(true, std::memory_order_relaxed);
}

ForkMutex gate_mutex;

/// From the start: who forks must not come between the first look at a lock and its registration here.
[[maybe_unused]] const int fork_waits =
    pthread_atfork([] { gate_mutex.lock(); }, [] { gate_mutex.unlock(); }, [] { gate_mutex.unlock(); });

template <class Function>
bool find_symbol(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

/// Libraries of providers install handlers of signals when they are loaded, which would end the program in their way
/// and take the place of its own, and of ours (memory/guarded_copy). This puts back what was there before.
class KeepSignals {
 public:
  KeepSignals() {
    for (int number = 1; number < kSignals; ++number)
      known_[number] = sigaction(number, nullptr, &before_[number]) == 0;
  }
  ~KeepSignals() {
    for (int number = 1; number < kSignals; ++number) {
      struct sigaction now {};
      if (!known_[number] || sigaction(number, nullptr, &now) != 0) continue;
      const bool same = (now.sa_flags & SA_SIGINFO) == (before_[number].sa_flags & SA_SIGINFO) &&
                        now.sa_handler == before_[number].sa_handler;
      if (!same) sigaction(number, &before_[number], nullptr);
    }
  }
  KeepSignals(const KeepSignals&) = delete;
  KeepSignals& operator=(const KeepSignals&) = delete;

 private:
  static constexpr int kSignals = NSIG;
  struct sigaction before_[kSignals] {};
  bool known_[kSignals] = {};
};

/// What was loaded, or why it was not.
struct Loaded {
  FabricLibrary calls;
  std::string why;

  Loaded() {
    const KeepSignals keep;
    void* library = dlopen(kSoname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      why = dlerror();
      return;
    }
    decltype(&::fi_version) version = nullptr;
    const bool found =
        find_symbol(library, "fi_getinfo", &calls.getinfo) && find_symbol(library, "fi_freeinfo", &calls.freeinfo) &&
        find_symbol(library, "fi_dupinfo", &calls.dupinfo) && find_symbol(library, "fi_fabric", &calls.fabric) &&
        find_symbol(library, "fi_strerror", &calls.strerror) && find_symbol(library, "fi_version", &version);
    if (!found || FI_MAJOR(version()) != FI_MAJOR_VERSION) {
      why = std::string(kSoname) + " is not the libfabric that this library was compiled with";
      return;
    }
    // Lets it load its providers now.
    fi_info* any = nullptr;
    if (calls.getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &any) == 0) calls.freeinfo(any);
    // Runs before the destructors of any library.
    std::atexit(end_libfabric);
  }
};

}  // namespace

const FabricLibrary* FabricLibrary::load(std::string* why) {
  static const auto* const loaded = new Loaded;
  *why = loaded->why;
  return loaded->why.empty() ? &loaded->calls : nullptr;
}

ForkMutex& FabricLibrary::gate() { return gate_mutex; }

void FabricLibrary::before_end(void (*act)()) { last_act.store(act, std::memory_order_relaxed); }

bool FabricLibrary::is_ending() { return ending.load(std::memory_order_relaxed); }

}  // namespace portofu
