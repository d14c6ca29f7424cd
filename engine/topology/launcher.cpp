#include "engine/topology/launcher.h"

#include <cstdlib>

namespace portofu {

bool launcher_spans_nodes(const std::function<const char*(const char* name)>& get_variable) {
  const auto number = [&get_variable](const char* name) {
    const char* text = get_variable(name);
    return text == nullptr ? 0 : std::atol(text);
  };
  const auto more_than_here = [&number](const char* all, const char* here) {
    return number(here) > 0 && number(all) > number(here);
  };
  return more_than_here("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE") ||
         more_than_here("PMI_SIZE", "MPI_LOCALNRANKS") || number("SLURM_STEP_NUM_NODES") > 1;
}

}  // namespace portofu
