#include "engine/wire/ofi/fabric_library.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

namespace portofu {
namespace {

void own_handler(int) {}

using Handler = void (*)(int);

Handler handler_of(int number) {
  struct sigaction now {};
  EXPECT_EQ(sigaction(number, nullptr, &now), 0);
  return now.sa_handler;
}

TEST(FabricLibrary, Load__leaves_the_handlers_of_signals_as_they_were) {
  struct sigaction own {};
  own.sa_handler = own_handler;
  ASSERT_EQ(sigaction(SIGTERM, &own, nullptr), 0);
  const std::vector<int> numbers{SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGINT, SIGTERM};
  std::vector<Handler> before;
  for (const int number : numbers) before.push_back(handler_of(number));
  std::string why;
  const FabricLibrary* library = FabricLibrary::load(&why);
  ASSERT_NE(library, nullptr) << why;
  EXPECT_EQ(FabricLibrary::load(&why), library);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(handler_of(numbers[i]), before[i]) << numbers[i];
  EXPECT_EQ(handler_of(SIGTERM), own_handler);
}

}  // namespace
}  // namespace portofu
