// A program of two ranks that measures its puts by std::chrono: rank 0 tells what a put takes one way.

#include <chrono>
#include <thread>

#include "tests/process/sim_roles.h"

using namespace portofu;

namespace {

/// @return nanoseconds of a put one way
template <typename Clock>
double measure(TofuPair& pair, std::uint64_t first) {
  constexpr int kRounds = 20;
  const auto began = Clock::now();
  for (std::uint64_t word = first; word < first + kRounds; ++word) {
    const bool answers = !pair.is_even();
    if (answers) pair.await_memory(word);
    if (!pair.put(word, 0)) std::_Exit(8);
    if (!answers) pair.await_memory(word);
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count() / kRounds / 2;
}

}  // namespace

int main() {
  TofuPair pair;
  if (!pair.open()) return 7;
  const double steady_ns = measure<std::chrono::steady_clock>(pair, 1);
  const double system_ns = measure<std::chrono::system_clock>(pair, 101);
  const auto before = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const std::chrono::nanoseconds slept = std::chrono::steady_clock::now() - before;
  if (pair.is_even()) {
    std::printf("steady %.3f system %.3f slept %lld\n", steady_ns, system_ns, static_cast<long long>(slept.count()));
  }
  return pair.close();
}
