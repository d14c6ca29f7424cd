// A program of pairs. Even ranks compute for far longer than a rank that polls its memory is left alone, and put a
// word. All sleep between looks for theirs; with an argument they sleep once, and then only look.

#include <ctime>

#include "tests/process/sim_roles.h"

using namespace portofu;

namespace {

long cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

void compute(long ns) {
  const long until_ns = cpu_ns() + ns;
  while (cpu_ns() < until_ns) {
  }
}

}  // namespace

int main(int count, char**) {
  TofuPair pair;
  if (!pair.open()) return 1;
  const bool sleeps_once = count > 1;
  for (std::uint64_t word = 1; word <= 3; ++word) {
    if (pair.is_even()) compute(sleeps_once ? 60'000'000 : 20'000'000);
    if (pair.is_even() && !pair.put(word, 0)) return 2;
    if (sleeps_once) usleep(100);
    while (sim_memory[0] != word) {
      if (!sleeps_once) usleep(5);
    }
    if (!pair.is_even() && !pair.put(word, 0)) return 3;
  }
  return pair.close();
}
