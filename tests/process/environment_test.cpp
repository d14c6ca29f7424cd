// Settings in the environment that make no sense: each is named on standard error with what is allowed and what is
// taken instead, and the program runs.

#include <gtest/gtest.h>
#include <portals4.h>

#include <cstdlib>
#include <string>

#include "engine/config/settings.h"
#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

/// Opens an interface in a child with the environment as it is. @return what the child wrote to standard error
std::string stderr_of_a_run(int* status) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  ChildProcess child([&] {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    if (PtlInit() != PTL_OK) return 1;
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) != PTL_OK)
      return 2;
    PtlFini();
    return 0;
  });
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  *status = child.wait_status();
  return text;
}

TEST(Environment, Good_values__are_taken_in_silence) {
  const OwnNode node;
  setenv("PORTOFU_WINDOW", "17", 1);
  setenv("PORTOFU_RING_CELLS", "0x40", 1);
  int status = -1;
  EXPECT_EQ(stderr_of_a_run(&status), "");
  EXPECT_EQ(status, 0);
  unsetenv("PORTOFU_WINDOW");
  unsetenv("PORTOFU_RING_CELLS");
}

TEST(Environment, Bad_values__are_named_with_range_and_default_and_the_program_runs) {
  const OwnNode node;
  const std::string node_id = std::getenv("PORTOFU_NID");
  for (const SettingRow& row : setting_table()) {
    // What follows from PORTOFU_NID being bad would meet the other processes of this machine.
    if (std::string(row.name) == "PORTOFU_NID" || row.kind == SettingKind::kText) continue;
    for (const std::string bad : {"nonsense", "-1", "99999999999", "3.5", "1k"}) {
      setenv(row.name, bad.c_str(), 1);
      int status = -1;
      const std::string text = stderr_of_a_run(&status);
      EXPECT_EQ(status, 0) << row.name << "=" << bad;
      EXPECT_NE(text.find(std::string(row.name) + "=" + bad), std::string::npos) << text;
      EXPECT_NE(text.find(allowed_text(row)), std::string::npos) << row.name << ": " << text;
      EXPECT_NE(text.find(default_text(row)), std::string::npos) << row.name << ": " << text;
      unsetenv(row.name);
    }
  }
}

TEST(Environment, Values_outside_their_range__are_refused) {
  const OwnNode node;
  for (const SettingRow& row : setting_table()) {
    if (row.kind != SettingKind::kInteger && row.kind != SettingKind::kPowerOfTwo) continue;
    if (row.maximum == UINT32_MAX) continue;
    setenv(row.name, std::to_string(std::uint64_t{row.maximum} + 1).c_str(), 1);
    int status = -1;
    EXPECT_NE(stderr_of_a_run(&status).find(row.name), std::string::npos) << row.name;
    EXPECT_EQ(status, 0);
    unsetenv(row.name);
  }
}

}  // namespace
}  // namespace portofu
