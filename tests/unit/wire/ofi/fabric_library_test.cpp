#include "engine/wire/ofi/fabric_library.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace portofu {
namespace {

void own_handler(int) {}

TEST(FabricLibrary, Load__leaves_the_handlers_of_signals_as_they_were) {
  struct sigaction own {};
  own.sa_handler = own_handler;
  ASSERT_EQ(sigaction(SIGTERM, &own, nullptr), 0);
  std::string why;
  const FabricLibrary* library = FabricLibrary::load(&why);
  ASSERT_NE(library, nullptr) << why;
  EXPECT_EQ(FabricLibrary::load(&why), library);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGINT, SIGTERM}) {
    struct sigaction now {};
    ASSERT_EQ(sigaction(number, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, number == SIGTERM ? own_handler : SIG_DFL) << number;
  }
}

}  // namespace
}  // namespace portofu
