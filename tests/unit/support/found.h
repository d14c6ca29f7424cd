#pragma once
// A log of findings that a test reads.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/check/finding.h"

namespace portofu {

class Found {
 public:
  Found() { testing::internal::CaptureStderr(); }
  ~Found() {
    testing::internal::GetCapturedStderr();
    std::remove(file_.c_str());
  }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;

  const std::string& file() const { return file_; }
  /// All lines of JSON so far.
  std::string text() const {
    std::ifstream file(file_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool has(const std::string& words) const { return text().find(words) != std::string::npos; }
  bool is_empty() const { return text().empty(); }

 private:
  static std::string fresh_name() {
    static int count = 0;
    return testing::TempDir() + "found-" + std::to_string(getpid()) + '-' + std::to_string(count++);
  }
  std::string file_ = fresh_name();

 public:
  FindingLog log{file_, 3};
};

}  // namespace portofu
