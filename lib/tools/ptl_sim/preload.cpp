#include "lib/tools/ptl_sim/preload.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace portofu::tools {

/// In ../lib of the installation and of the build tree alike.
bool preload_clock() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path library = program.parent_path().parent_path() / "lib" / "libportofu_clock.so";
  if (!std::filesystem::exists(library, error)) return false;
  const char* const earlier = std::getenv("LD_PRELOAD");
  const std::string rest = earlier != nullptr && *earlier != '\0' ? std::string(":") + earlier : "";
  return setenv("LD_PRELOAD", (library.string() + rest).c_str(), 1) == 0;
}

void let_mpirun_share_cores() {
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
}

void let_openmp_sleep() { setenv("OMP_WAIT_POLICY", "passive", 0); }

}  // namespace portofu::tools
