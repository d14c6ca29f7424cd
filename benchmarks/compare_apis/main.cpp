// compare_apis: Portals and uTofu side by side, as observed; see README.md, which it writes.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "page.h"
#include "play.h"
#include "row.h"

namespace compare {
namespace {

struct Options {
  bool quick = false;
  const char* file = nullptr;  ///< nullptr: the page is printed.
  const char* only = "";       ///< Rows whose title contains it.
  int repetitions = 9;         ///< Of timed rows.
};

constexpr const char* kUsage =
    "usage: compare_apis [--quick | --markdown FILE] [--only WORDS]\n"
    "Runs patterns of communication over Portals and over uTofu and prints what was observed, side by side.\n"
    "    --markdown FILE  writes the page into FILE when nothing contradicted it\n"
    "    --quick          leaves out what is timed, prints one line a row\n"
    "    --only WORDS     runs the rows whose titles contain WORDS\n"
    "Exit status: 0; 1 if an observation contradicts a sentence of the page; 2 for a wrong command line.\n";

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const bool last = i + 1 == argc;
    if (std::strcmp(argv[i], "--quick") == 0) {
      options->quick = true;
    } else if (std::strcmp(argv[i], "--markdown") == 0 && !last) {
      options->file = argv[++i];
    } else if (std::strcmp(argv[i], "--only") == 0 && !last) {
      options->only = argv[++i];
    } else {
      return false;
    }
  }
  return !options->quick || options->file == nullptr;
}

int run(const Options& options) {
  std::string page = page_head(options.repetitions), against;
  for (const Theme& theme : {completion_theme(), order_theme(), overload_theme(), error_theme(), atomic_theme(),
                             relay_theme(), barrier_theme(), traffic_theme(), time_theme()}) {
    page += theme_head(theme);
    for (const Row& row : theme.rows) {
      if (row.title.find(options.only) == std::string::npos || (row.timed && options.quick)) continue;
      const Outcome outcome = play(row, options.quick, row.timed ? options.repetitions : 1);
      const std::string wrong = contradictions(row, outcome);
      if (options.quick) std::printf("%s %s\n", wrong.empty() ? "as presumed " : "CONTRADICTED", row.title.c_str());
      std::fflush(stdout);
      page += section(row, outcome);
      against += wrong;
    }
  }
  if (!options.quick && options.file == nullptr) std::printf("%s", page.c_str());
  if (!against.empty()) {
    std::fflush(stdout);
    std::fprintf(stderr, "compare_apis: THE RUN CONTRADICTS THE PAGE\n%s", against.c_str());
    return 1;
  }
  if (options.file == nullptr) return 0;
  std::ofstream file(options.file);
  file << page;
  file.close();
  if (!file) std::fprintf(stderr, "compare_apis: cannot write %s\n", options.file);
  return file ? 0 : 1;
}

}  // namespace
}  // namespace compare

int main(int argc, char** argv) {
  compare::Options options;
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::printf("%s", compare::kUsage);
    return 0;
  }
  if (!compare::parse(argc, argv, &options)) {
    std::fprintf(stderr, "%s", compare::kUsage);
    return 2;
  }
  // A job of its own: programs that run at the same time keep their CQs.
  setenv("PORTOFU_JOB_KEY", std::to_string(getpid()).c_str(), 1);
  setenv("PORTOFU_PEER_CHECK_MS", "20", 0);
  return compare::run(options);
}
