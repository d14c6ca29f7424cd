// What MPI does to start takes no virtual time: its processes talk to their launcher, and wait for that by looking at
// the clock and at the network in turn. Nor does what it does to end, for the same reason. C, and Fortran, which calls
// the names with a P.

#include <dlfcn.h>

#include <atomic>

#include "lib/clock/program_start.h"
#include "lib/clock/seen_time.h"

namespace portofu {
namespace {

using MpiInit = int(int*, char***);
using MpiInitThread = int(int*, char***, int, int*);
using MpiFinalize = int();

std::atomic<bool> starts_mpi{false};

/// A function of MPI, also if a part of the program has loaded MPI for itself.
void* find_in_mpi(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* file : {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"}) {
    if (found != nullptr) return found;
    void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = dlsym(library, name);
  }
  return found;
}

template <typename Function, typename... Arguments>
int start_mpi(const char* name, Arguments... arguments) {
  auto* const real = reinterpret_cast<Function*>(find_in_mpi(name));
  constexpr int kErrorOfAnyMpi = 1;
  if (real == nullptr) return kErrorOfAnyMpi;
  // MPI's own call of the other name begins nothing.
  const bool is_outer = !starts_mpi.exchange(true);
  const int status = real(arguments...);
  if (!is_outer) return status;
  starts_mpi.store(false);
  const ProgramClock* const engine = engine_of_program();
  if (engine != nullptr) engine->start_up(false);
  return status;
}

int end_mpi(const char* name) {
  auto* const real = reinterpret_cast<MpiFinalize*>(find_in_mpi(name));
  constexpr int kErrorOfAnyMpi = 1;
  if (real == nullptr) return kErrorOfAnyMpi;
  const ProgramClock* const engine = engine_of_program();
  if (engine != nullptr) engine->retire();
  return real();
}

}  // namespace

bool is_starting_mpi() { return starts_mpi.load(); }

}  // namespace portofu

using namespace portofu;

extern "C" {

int MPI_Init(int* count, char*** words) { return start_mpi<MpiInit>("MPI_Init", count, words); }
int PMPI_Init(int* count, char*** words) { return start_mpi<MpiInit>("PMPI_Init", count, words); }

int MPI_Init_thread(int* count, char*** words, int wanted, int* given) {
  return start_mpi<MpiInitThread>("MPI_Init_thread", count, words, wanted, given);
}
int PMPI_Init_thread(int* count, char*** words, int wanted, int* given) {
  return start_mpi<MpiInitThread>("PMPI_Init_thread", count, words, wanted, given);
}

int MPI_Finalize() { return end_mpi("MPI_Finalize"); }
int PMPI_Finalize() { return end_mpi("PMPI_Finalize"); }

}  // extern "C"
