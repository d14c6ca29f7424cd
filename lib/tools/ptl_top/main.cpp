// ptl_top: what the processes of Portofu on this node do, again and again.

#include <unistd.h>

#include <cstdio>

#include "lib/tools/man_page.h"
#include "lib/tools/ptl_info/explanation_text.h"
#include "lib/tools/ptl_top/rates.h"
#include "lib/tools/ptl_top/screen.h"

namespace portofu::tools {
namespace {

const ManPage kPage{
    .name = "ptl_top",
    .sentence = "show what the processes of Portofu on this node do",
    .synopsis = "[OPTION]...",
    .description =
        "    Shows the processes of this user that have an interface open, with what happens in them each\n"
        "    second: messages sent, bytes in both directions, events, sleeps, processor time; how full its\n"
        "    fullest event queue and MRQ are; packets that others have sent to a process and it has not\n"
        "    taken; and for whom it waits: who owes it an answer, or has not taken its packets.\n"
        "\n"
        "    Keys: up and down choose a process. Enter shows who waits for it, its queues, and all that it\n"
        "    has counted; p its peers, l its lists, counters and operations as ptl_info --explain does; f\n"
        "    goes to the process that it waits for. Page up and Page down move what is shown. s sorts by\n"
        "    another column, j shows one job only, q ends.\n"
        "\n"
        "    Queues, peers and lists are read from the memory of the processes, as ptl_info --explain does.\n"
        "\n"
        "    Processes are only looked at; they do not notice it, and may be hanging.\n",
    .rest =
        "EXIT STATUS\n"
        "    0, also when Control-C ends it, or 1 if the shared memory directory cannot be read, there is no\n"
        "    terminal, or the table cannot be written, or 2 for a wrong command line. Of SIGTERM, SIGQUIT\n"
        "    and SIGHUP, as if its terminal is closed, it dies when the terminal is as it was. A shell says\n"
        "    143, 131 and 129 then.\n"};

int print_once(const TopOptions& options, bool as_json) {
  Look before;
  Look now;
  if (!look_at_node(options.directory, &before)) {
    std::fprintf(stderr, "ptl_top: cannot read %s\n", options.directory.c_str());
    return 1;
  }
  usleep(static_cast<useconds_t>(options.interval_s * 1e6));
  if (!look_at_node(options.directory, &now)) return 1;
  const std::vector<Row> rows = rows_between(before, now, options.job_key, Order::kRank);
  if (as_json) {
    std::printf("%s\n", json_of(rows).c_str());
    return 0;
  }
  for (const std::string& line : table_of(rows)) std::printf("%s\n", line.c_str());
  const std::string foreign = foreign_text(foreign_segments(options.directory));
  if (!foreign.empty()) std::printf("There are %s\n", foreign.c_str());
  return 0;
}

}  // namespace
}  // namespace portofu::tools

int main(int argc, char** argv) {
  using namespace portofu::tools;
  TopOptions options{.directory = portofu::SegmentOptions{}.directory};
  bool once = false;
  bool as_json = false;
  CLI::App app;
  app.add_flag("-1,--once", once, "Prints one table, of what happens within the interval, and ends.");
  app.add_flag("--json", as_json, "With --once: prints it as JSON, an object for each process.")->needs("--once");
  app.add_option("-i,--interval", options.interval_s, "Seconds between two looks, 0.05 to 3600; 1 if none are said.")
      ->option_text("SECONDS")
      ->check(CLI::Range(0.05, 3600.0));
  app.add_option("-j,--job", options.job_key, "Shows the processes with this job key only.")->option_text("KEY");
  const int status = parse_command_line(app, kPage, argc, argv, 2);
  if (status >= 0) return status;
  return once ? status_of_output(kPage, print_once(options, as_json)) : show_on_screen(options);
}
