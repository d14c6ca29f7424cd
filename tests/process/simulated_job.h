#pragma once
// A job in virtual time that a test starts: the test program is its own rank, and plays a role.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/process/launcher.h"

namespace portofu {

/// Run to its end.
struct Simulated {
  int status = 0;
  std::string output;
  nlohmann::json report;

  std::uint64_t time_ps() const { return report["time_ps"]; }
};

inline std::uint64_t number_of(const nlohmann::json& object, const char* key) { return object[key]; }

/// ptl_sim with options, and this very program as its ranks.
inline Words simulated(const Words& options) {
  Words words{PORTOFU_PTL_SIM};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(own_program());
  return words;
}

/// @param is_one_run  else it is a sweep
/// @param meanwhile   done when the job has started
inline Simulated run(const std::string& role, Words options, bool is_one_run = true,
                     const std::function<void(const Launcher&)>& meanwhile = {}) {
  const std::string path = testing::TempDir() + "ptl_sim_test." + std::to_string(getpid()) + ".json";
  options.insert(options.end(), {"--json", path});
  if (is_one_run) options.push_back("--messages");
  Simulated job;
  Launcher launcher(simulated(options), role);
  if (meanwhile) meanwhile(launcher);
  job.status = launcher.wait_status();
  job.output = launcher.output();
  std::ifstream file(path);
  job.report = nlohmann::json::parse(file, nullptr, false);
  std::filesystem::remove(path);
  return job;
}

}  // namespace portofu
