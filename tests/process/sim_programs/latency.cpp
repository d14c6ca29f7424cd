// A program of two ranks that measures its puts by std::chrono: rank 0 tells what a put takes one way. They look into
// their memory, and sleep or read a clock between looks if an argument says so.

#include <chrono>
#include <thread>

#include "tests/process/sim_roles.h"

using namespace portofu;

namespace {

std::string between_looks;

/// @return false: a second is over
bool await(const TofuPair& pair, std::uint64_t word) {
  const auto began = std::chrono::steady_clock::now();
  if (between_looks.empty()) pair.await_memory(word);
  while (sim_memory[0].load() != word) {
    if (between_looks == "sleep") std::this_thread::sleep_for(std::chrono::microseconds(1));
    if (std::chrono::steady_clock::now() - began > std::chrono::seconds(1)) return false;
  }
  return true;
}

/// @return nanoseconds of a put one way
template <typename Clock>
double measure(TofuPair& pair, std::uint64_t first) {
  constexpr int kRounds = 20;
  const auto began = Clock::now();
  for (std::uint64_t word = first; word < first + kRounds; ++word) {
    const bool answers = !pair.is_even();
    if (answers && !await(pair, word)) std::_Exit(6);
    if (!pair.put(word, 0)) std::_Exit(8);
    if (!answers && !await(pair, word)) std::_Exit(6);
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count() / kRounds / 2;
}

}  // namespace

int main(int argc, char** argv) {
  TofuPair pair;
  if (argc > 1) between_looks = argv[1];
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
