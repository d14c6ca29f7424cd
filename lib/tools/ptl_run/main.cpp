// ptl_run: starts the processes of a job on this node.

#include <cstdio>

#include "lib/tools/man_page.h"
#include "lib/tools/ptl_run/job.h"

namespace {

const portofu::tools::ManPage kPage{
    .name = "ptl_run",
    .sentence = "start the processes of a parallel job on this node",
    .synopsis = "-n COUNT [OPTION]... PROGRAM [ARGUMENT]...",
    .description =
        "    Starts PROGRAM COUNT times. The processes learn their rank and the size of the job, and\n"
        "    exchange what they need to find each other, in the dialogue of PMI-1, as under\n"
        "    mpiexec.hydra. Options for PROGRAM stand behind it.\n"
        "\n"
        "    Standard input goes to rank 0; the others read nothing. SIGINT, SIGTERM, SIGHUP, SIGQUIT,\n"
        "    SIGUSR1 and SIGUSR2 are passed on to all ranks; the first four also ask for the end of the\n"
        "    job, and sent twice they kill it.\n"
        "\n"
        "    When a rank exits with a status other than 0, is ended by a signal, aborts, or ends while\n"
        "    others wait for it at a PMI barrier, all others get SIGTERM, and SIGKILL after the time of\n"
        "    grace. One line on standard error says which rank was the first.\n",
    .rest =
        "ENVIRONMENT\n"
        "    Each rank gets\n"
        "    PMI_FD, PMI_RANK, PMI_SIZE          the dialogue, its rank, the number of ranks\n"
        "    MPI_LOCALRANKID, MPI_LOCALNRANKS    the same numbers, as mpiexec.hydra calls them\n"
        "\n"
        "EXIT STATUS\n"
        "    0 if every rank exits with 0, else the status of the first that ended badly; 128 + N if\n"
        "    signal N ended it. 125: ptl_run itself failed; 126: PROGRAM cannot be executed; 127: there\n"
        "    is no PROGRAM.\n"
        "\n"
        "EXAMPLES\n"
        "    ptl_run -n 4 ./program --its-own-option\n"
        "    ptl_run -n 2 --label sh -c 'echo I am $PMI_RANK of $PMI_SIZE'\n"};

}  // namespace

int main(int argc, char** argv) {
  using namespace portofu::tools;
  JobOptions options;
  CLI::App app;
  app.prefix_command();
  app.add_option("-n,--np", options.size, "Number of processes, 1 to " + std::to_string(kMaxRankCount) + ".")
      ->option_text("COUNT")
      ->required()
      ->check(CLI::Range(1, kMaxRankCount));
  app.add_flag("-l,--label", options.label, "Writes [RANK] in front of every line of output.");
  app.add_flag("-v,--verbose", options.verbose, "Tells when ranks begin and end.");
  app.add_option("--grace", options.grace_seconds, "Seconds between SIGTERM and SIGKILL; without it, 5.")
      ->option_text("SECONDS")
      ->check(CLI::Range(0, kMaxGraceSeconds));
  const int status = parse_command_line(app, kPage, argc, argv, kLauncherFailed);
  if (status >= 0) return status;
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
  if (options.command.empty() || options.command.front().starts_with('-')) {
    std::fprintf(stderr, "ptl_run: %s. ptl_run --help explains.\n",
                 options.command.empty() ? "no program" : ("there is no option " + options.command.front()).c_str());
    return kLauncherFailed;
  }
  return Job(std::move(options)).run();
}
