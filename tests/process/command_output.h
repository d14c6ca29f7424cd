#pragma once
// What a program says, run as users run it.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace portofu {

/// Runs a command. @return what it wrote to both outputs
inline std::string output_of(const std::string& command, int* status = nullptr) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), got);
  const int ended = pclose(pipe);
  if (status != nullptr) *status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  return text;
}

/// The browser of the machine; empty: there is none.
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    int status = 1;
    output_of(std::string("command -v ") + name, &status);
    if (status == 0) return name;
  }
  return "";
}

/// What a browser makes of a page. @param directory  for its own files
inline std::string drawn_page(const std::string& browser, const std::string& directory, const std::string& page) {
  return output_of("timeout 60 " + browser +
                   " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" + directory +
                   "/profile --dump-dom file://" + page + " 2>/dev/null");
}

}  // namespace portofu
