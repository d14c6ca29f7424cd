// ptl_trace: what a program does, step by step.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "lib/tools/man_page.h"
#include "lib/tools/ptl_trace/chrome_json.h"
#include "lib/tools/ptl_trace/last_steps.h"
#include "lib/tools/ptl_trace/late_steps.h"
#include "lib/tools/ptl_trace/merge_captures.h"
#include "lib/tools/ptl_trace/report.h"
#include "lib/tools/ptl_trace/summary.h"
#include "lib/tools/ptl_trace/traced_run.h"

namespace portofu::tools {
namespace {

const ManPage kPage{
    .name = "ptl_trace",
    .sentence = "record what the processes of a program do, or show the last steps of one",
    .synopsis =
        "[OPTION]... PROGRAM [ARGUMENT]...\n    ptl_trace --merge DIRECTORY [OPTION]...\n    ptl_trace --last [PID]",
    .description =
        "    Runs PROGRAM, which may be ptl_run or mpirun, and lets each lane of its processes write down\n"
        "    all its steps: calls, packets out and in, matches, deliveries, events, counts, triggers,\n"
        "    waits, sleeps. Then puts them together and writes a trace, which https://ui.perfetto.dev and\n"
        "    chrome://tracing open: calls and waits of threads, steps of lanes, arrows from each packet\n"
        "    out to the same packet in, and from counts to what they triggered. A summary goes to\n"
        "    standard error: sizes, matches and how deep, unexpected messages, time in the library and\n"
        "    what was waited for, the ten slowest messages. --report writes the same as a page with plots.\n"
        "    With --pcapng the processes capture their packets, too, and reach no memory of peers directly.\n"
        "\n"
        "    Processes of one machine have one clock. Clocks of several machines are set by what messages\n"
        "    between them took in either direction. The directory of the recording is below TMPDIR, or\n"
        "    /tmp; where other machines do not share it, collect their files and use --merge.\n"
        "\n"
        "    With --last, prints the last steps of a process that runs with PORTOFU_RECORD=last, also if\n"
        "    it hangs, or has died. PID is that of Portals or of the kernel.\n",
    .rest =
        "EXIT STATUS\n"
        "    That of PROGRAM, 128 + N if signal N ended it; 125 if ptl_trace itself failed, 126 if PROGRAM\n"
        "    cannot be executed, 127 if there is none. With --last: 0, or 1 if no such process is found,\n"
        "    or standard output cannot be written.\n"
        "\n"
        "EXAMPLES\n"
        "    ptl_trace --output trace.json ptl_run -n 2 ./program\n"
        "    ptl_trace --report report.html mpirun -n 4 ./program\n"
        "    ptl_trace --pcapng job.pcapng ptl_run -n 2 ./program\n"
        "    PORTOFU_RECORD=last ./program & ptl_trace --last\n"};

constexpr int kFailed = 125;

struct TraceOptions {
  std::string output = "portofu-trace.json";
  std::string report;  ///< File for the page; empty: none.
  std::string pcapng;  ///< File for the packets; empty: they are not captured.
  std::string merged;  ///< Directory; empty: a program is run.
  std::uint64_t most_flows = 100'000;
  std::uint64_t most_steps = most_steps_in_memory();
  std::vector<std::string> command;
};

int fail(const std::string& what) {
  std::fprintf(stderr, "ptl_trace: %s. ptl_trace --help explains.\n", what.c_str());
  return kFailed;
}

/// Whether a file may be written, as far as can be known without making it: before a run whose steps would be lost.
bool may_write(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file(path);
  errno = 0;
  if (std::filesystem::is_directory(file, error)) {
    errno = EISDIR;
  } else if (access(path.c_str(), W_OK) != 0 && errno == ENOENT) {
    errno = 0;
    const std::string directory = file.has_parent_path() ? file.parent_path().string() : ".";
    if (access(directory.c_str(), W_OK | X_OK) == 0) return true;
  }
  if (errno == 0) return true;
  std::fprintf(stderr, "ptl_trace: %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

/// @param body  bool(std::FILE*), false: it could not be written
template <class Body>
bool write_file(const std::string& path, const Body& body) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  bool written = file != nullptr && body(file);
  if (file != nullptr && std::fclose(file) != 0) written = false;
  if (!written) std::fprintf(stderr, "ptl_trace: %s: %s\n", path.c_str(), std::strerror(errno));
  return written;
}

bool write_trace(const Timeline& timeline, const TraceOptions& options) {
  return write_file(options.output,
                    [&](std::FILE* file) { return write_chrome_json(timeline, options.most_flows, file); });
}

bool write_report(const Timeline& timeline, const Summary& summary, const std::string& path) {
  if (path.empty()) return true;
  const std::string page = report_html(timeline, summary);
  return write_file(path,
                    [&](std::FILE* file) { return std::fwrite(page.data(), 1, page.size(), file) == page.size(); });
}

/// @return false if nothing could be written
bool put_together(const std::string& directory, const TraceOptions& options) {
  std::vector<std::string> complaints;
  auto lanes = read_all_steps(directory, kStepFilePrefix, options.most_steps, &complaints);
  for (const std::string& line : complaints) std::fprintf(stderr, "ptl_trace: %s\n", line.c_str());
  if (lanes.empty()) {
    std::fprintf(stderr, "ptl_trace: no process has recorded anything\n");
    return false;
  }
  const Timeline timeline = merge(std::move(lanes));
  const Summary summary = summarize(timeline);
  std::fprintf(stderr, "\nptl_trace: %s\n%s", options.output.c_str(), summary_text(timeline, summary).c_str());
  if (count_flows(timeline) > options.most_flows) {
    std::fprintf(stderr, "the trace has the first %llu packets (--most)\n",
                 static_cast<unsigned long long>(options.most_flows));
  }
  const bool is_traced = write_trace(timeline, options);
  return write_report(timeline, summary, options.report) && is_traced;
}

bool write_captures(const std::string& directory, const TraceOptions& options) {
  std::string why;
  if (options.pcapng.empty() || merge_captures(directory, options.pcapng, &why)) return true;
  std::fprintf(stderr, "ptl_trace: %s\n", why.c_str());
  return false;
}

int trace(const TraceOptions& options) {
  for (const std::string& path : {options.output, options.report, options.pcapng}) {
    if (!path.empty() && !may_write(path)) return kFailed;
  }
  const StepDirectory directory;
  if (directory.path().empty()) return kFailed;
  const int status = run_traced(options.command, directory.path(), !options.pcapng.empty());
  const bool is_captured = write_captures(directory.path(), options);
  const bool written = put_together(directory.path(), options) && is_captured;
  return status == 0 && !written ? kFailed : status;
}

}  // namespace
}  // namespace portofu::tools

int main(int argc, char** argv) {
  using namespace portofu::tools;
  TraceOptions options;
  CLI::App app;
  app.prefix_command();
  app.add_option("-o,--output", options.output, "File for the trace; without it, portofu-trace.json.")
      ->option_text("FILE");
  app.add_option("-r,--report", options.report, "File for a page with plots, which a browser opens without a network.")
      ->option_text("FILE");
  app.add_option("--pcapng", options.pcapng, "File for the packets, as Wireshark reads it (PORTOFU_PCAPNG).")
      ->option_text("FILE");
  app.add_option("--merge", options.merged, "Puts the files of steps of a directory together, and runs nothing.")
      ->option_text("DIRECTORY");
  app.add_option("--most", options.most_flows, "Packets in the trace at most, from its beginning; without it, 100000.")
      ->option_text("COUNT")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--steps", options.most_steps,
                 "Steps to read at most, the first ones; without it, those that half of the free memory holds.")
      ->option_text("COUNT")
      ->check(CLI::Range(0, 1'000'000'000));
  std::uint32_t last = 0;
  CLI::Option* const shows_last =
      app.add_option("--last", last, "Prints the last steps of all processes, or of the one with this PID.");
  shows_last->expected(0, 1)->option_text("[PID]");
  std::uint64_t count = 4096;
  app.add_option("-n,--count", count, "With --last: so many steps of each lane at most.")
      ->option_text("COUNT")
      ->needs(shows_last);
  const int status = parse_command_line(app, kPage, argc, argv, kFailed);
  if (status >= 0) return status;
  if (shows_last->count() != 0) return status_of_output(kPage, print_last_steps(last, count));
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
  if (!options.merged.empty()) {
    const bool is_captured = write_captures(options.merged, options);
    return put_together(options.merged, options) && is_captured ? 0 : kFailed;
  }
  if (options.command.empty()) return fail("no program");
  if (options.command.front().starts_with('-')) return fail("there is no option " + options.command.front());
  return trace(options);
}
