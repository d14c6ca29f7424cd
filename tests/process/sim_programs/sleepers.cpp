// A program of pairs. Even ranks compute for far longer than a rank that polls its memory is left alone, and put a
// word. All sleep between looks for theirs.

#include <ctime>

#include "tests/process/sim_roles.h"

using namespace portofu;

int main() {
  TofuPair pair;
  if (!pair.open()) return 1;
  for (std::uint64_t word = 1; word <= 3; ++word) {
    timespec used{};
    while (pair.is_even() && used.tv_nsec < static_cast<long>(word) * 20'000'000 && used.tv_sec == 0)
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    if (pair.is_even() && !pair.put(word, 0)) return 2;
    while (sim_memory[0] != word) usleep(5);
    if (!pair.is_even() && !pair.put(word, 0)) return 3;
  }
  return pair.close();
}
