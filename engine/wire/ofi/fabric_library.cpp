#include "engine/wire/ofi/fabric_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace portofu {
namespace {

constexpr const char* kSoname = "libfabric.so.1";

std::atomic<bool> ending{false};

template <class Function>
bool find_symbol(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

/// What was loaded, or why it was not.
struct Loaded {
  FabricLibrary calls;
  std::string why;

  Loaded() {
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
    // Runs before the destructors of any library.
    std::atexit([] { ending.store(true, std::memory_order_relaxed); });
  }
};

}  // namespace

const FabricLibrary* FabricLibrary::load(std::string* why) {
  static const auto* const loaded = new Loaded;
  *why = loaded->why;
  return loaded->why.empty() ? &loaded->calls : nullptr;
}

bool FabricLibrary::is_ending() { return ending.load(std::memory_order_relaxed); }

}  // namespace portofu
