// ptl_run: starts the processes of a job, on this node or on several.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "engine/door/inspection.h"
#include "lib/tools/man_page.h"
#include "lib/tools/ptl_run/agent.h"
#include "lib/tools/ptl_run/check_file.h"
#include "lib/tools/ptl_run/host_helper.h"
#include "lib/tools/ptl_run/job.h"

namespace {

const portofu::tools::ManPage kPage{
    .name = "ptl_run",
    .sentence = "start the processes of a parallel job, on this node or on several",
    .synopsis =
        "-n COUNT [OPTION]... PROGRAM [ARGUMENT]...\n    ptl_run --hosts HOSTS [-n COUNT] [OPTION]... PROGRAM "
        "[ARGUMENT]...",
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
        "    grace. One line on standard error says which rank was the first. So does a job end whose\n"
        "    labelled output cannot be written, because the disk is full or its reader is gone.\n"
        "\n"
        "    Processes of one job hear only each other: they get a job key, drawn for this job, unless\n"
        "    PORTOFU_JOB_KEY is set already.\n"
        "\n"
        "CORES\n"
        "    Each rank may use an equal share of the cores, neighbours, if there is one for each (--bind\n"
        "    share); its threads and those of the library have room there. Cores are left alone to which\n"
        "    another process of the user is bound, as the ranks of another job are, so a second job finds\n"
        "    none, and its ranks run anywhere. core, l3 and numa bind each rank to one core, to the cores\n"
        "    that share an L3 cache, or to those of a NUMA domain, whoever else is there. --map l3 and\n"
        "    --map numa take turns among caches or domains. With -v it is told what each rank has.\n"
        "\n"
        "HOSTS\n"
        "    --hosts takes a list, as in a,b:4,10.0.0.7, or, if there is a slash in it, the path of a file\n"
        "    with a host a line: HOST[:COUNT] [X,Y,Z,A,B,C], the latter being its uTofu coordinates; #\n"
        "    begins a comment. Ranks are given to the hosts in blocks, in the order of the hosts: COUNT to\n"
        "    each, or 1. If no host has a COUNT, the ranks of -n are spread evenly.\n"
        "\n"
        "    A host that is named by an IPv4 address is known to the job by this address; of the others\n"
        "    ptl_run asks the address by which Portofu knows them (PORTOFU_INTERFACE chooses). All of them\n"
        "    make the hosts file that PORTOFU_HOSTS names for the ranks; packets from elsewhere are refused.\n"
        "\n"
        "    The agent (--agent, PORTOFU_LAUNCH_AGENT, else ssh -x) is started once a host, as AGENT HOST\n"
        "    COMMAND, and must not ask for anything; for this very host it is needed only if it is given.\n"
        "    COMMAND starts this program, at the same path, as a helper, which talks to ptl_run through the\n"
        "    agent's standard input and output: there is no port to listen at, and no key on a command\n"
        "    line. Ranks begin in the working directory of ptl_run, with the environment of the host,\n"
        "    PATH, LD_LIBRARY_PATH, LD_PRELOAD, all of PORTOFU_*, UTOFU_* and FI_*, and what --export\n"
        "    names. If the connection to a host ends, so does the job, and the helper kills its ranks.\n",
    .rest =
        "ENVIRONMENT\n"
        "    Each rank gets\n"
        "    PMI_FD, PMI_RANK, PMI_SIZE          the dialogue, its rank, the number of ranks\n"
        "    MPI_LOCALRANKID, MPI_LOCALNRANKS    the same numbers within its node, as mpiexec.hydra does\n"
        "    PORTOFU_JOB_KEY                     of the job\n"
        "    PORTOFU_HOSTS, PORTOFU_NID          with --hosts: the nodes of the job, and its own\n"
        "    FI_OFI_RXM_MSG_RX_SIZE              with --hosts: 128, if nothing else says it; less memory\n"
        "    PORTOFU_PER_NODE                    with --per-node: ranks of a node\n"
        "\n"
        "EXIT STATUS\n"
        "    0 if every rank exits with 0, else the status of the first that ended badly; 128 + N if\n"
        "    signal N ended it. 123: every rank exits with 0, and --check has found something. 125: ptl_run\n"
        "    itself failed; 126: PROGRAM cannot be executed; 127: there is no PROGRAM.\n"
        "\n"
        "EXAMPLES\n"
        "    ptl_run -n 4 ./program --its-own-option\n"
        "    ptl_run -n 2 --label sh -c 'echo I am $PMI_RANK of $PMI_SIZE'\n"
        "    ptl_run -n 16 --per-node 4 ./utofu_program\n"
        "    ptl_run --hosts a:2,b:2 ./program\n"
        "    ptl_run --hosts ./nodes -n 16 --agent 'ssh -p 2222' --export OMP_NUM_THREADS ./program\n"};

/// Whether a variable goes to ranks on other hosts by itself. What says where a node is does not.
bool is_exported(const std::string& name) {
  for (const char* own :
       {"PORTOFU_NID", "PORTOFU_COORDS", "PORTOFU_HOSTS", "PORTOFU_JOB_KEY", "PORTOFU_LAUNCH_AGENT"}) {
    if (name == own) return false;
  }
  for (const char* given : {"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"}) {
    if (name == given) return true;
  }
  return name.starts_with("PORTOFU_") || name.starts_with("UTOFU_") || name.starts_with("FI_");
}

std::vector<std::string> exported(const std::vector<std::string>& wanted) {
  std::vector<std::string> result;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const std::string name = text.substr(0, text.find('='));
    if (is_exported(name) || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) result.push_back(text);
  }
  return result;
}

int fail(const std::string& what) {
  std::fprintf(stderr, "ptl_run: %s. ptl_run --help explains.\n", what.c_str());
  return portofu::tools::kLauncherFailed;
}

/// Without a number of processes a job has as many as its nodes take. @return what is wrong; empty: nothing
std::string fill_shape(const std::string& text, int per_node, int* size) {
  if (text.empty()) return "";
  const auto shape = portofu::NodeShape::parse(text);
  if (!shape)
    return "--shape " + text + " is none: one to three numbers as in 2x3x2 are, or the six lengths of a torus";
  const std::uint64_t room = std::uint64_t{shape->count()} * static_cast<unsigned>(per_node != 0 ? per_node : 1);
  if (*size == 0 && room <= portofu::tools::kMaxRankCount) *size = static_cast<int>(room);
  if (static_cast<std::uint64_t>(*size) <= room) return "";
  return "--shape " + text + " has room for " + std::to_string(room) + " processes";
}

/// @return what is wrong; empty: nothing
std::string place_on_hosts(const std::string& hosts, const std::string& agent, portofu::tools::JobOptions* options) {
  std::string why;
  auto parsed = portofu::tools::read_hosts(hosts, &why);
  if (!parsed || !portofu::tools::place_ranks(&*parsed, options->size, &why)) return "--hosts: " + why;
  options->size = 0;
  for (const auto& host : *parsed) options->size += host.count;
  options->hosts = std::move(*parsed);
  options->agent = portofu::tools::agent_words(agent, &options->agent_for_all);
  return "";
}

/// What the command line asks for.
struct Wanted {
  portofu::tools::JobOptions job;
  std::string hosts;
  std::string agent;
  std::vector<std::string> exports;
  std::string bind;
  std::string map;
  int per_node = 0;
  std::string shape;
  std::string check;
};

void add_options(CLI::App* app, Wanted* wanted) {
  using namespace portofu::tools;
  app->add_option("-n,--np", wanted->job.size, "Number of processes, 1 to " + std::to_string(kMaxRankCount) + ".")
      ->option_text("COUNT")
      ->check(CLI::Range(1, kMaxRankCount));
  app->add_option("--hosts", wanted->hosts, "Hosts to run on: a list HOST[:COUNT],... or, with a slash, a file.")
      ->option_text("HOSTS");
  app->add_option("--agent", wanted->agent,
                  "Command that runs another on a host; without it, PORTOFU_LAUNCH_AGENT or ssh -x.")
      ->option_text("COMMAND");
  app->add_option("-x,--export", wanted->exports, "Variable that ranks on hosts get from here, too; may be repeated.")
      ->option_text("NAME")
      ->allow_extra_args(false);
  app->add_option("--bind", wanted->bind,
                  "Cores of a rank: share, none, core, l3 or numa; without it, PORTOFU_BIND or share.")
      ->option_text("WHAT")
      ->check(CLI::IsMember({"share", "none", "core", "l3", "numa"}));
  app->add_option("--map", wanted->map, "Where the next rank goes: core, l3 or numa; without it, PORTOFU_MAP or core.")
      ->option_text("WHERE")
      ->check(CLI::IsMember({"core", "l3", "numa"}));
  app->add_option("--per-node", wanted->per_node, "The machine stands for several uTofu nodes with so many ranks each.")
      ->option_text("COUNT")
      ->check(CLI::Range(1, kMaxRankCount));
  app->add_option("--shape", wanted->shape,
                  "How these nodes are arranged, as 2x3x2: their numbers run along the first side first. "
                  "Six numbers are X, Y, Z, A, B and C of a torus.")
      ->option_text("SHAPE");
  app->add_flag("--check", wanted->check,
                "Finds what works here by luck; as --check=FILE the findings are in FILE, too, as JSON.")
      ->option_text("[=FILE]");
  app->add_flag("-l,--label", wanted->job.label, "Writes [RANK] in front of every line of output.");
  app->add_flag("-v,--verbose", wanted->job.verbose, "Tells when ranks begin and end.");
  app->add_option("--grace", wanted->job.grace_seconds, "Seconds between SIGTERM and SIGKILL; without it, 5.")
      ->option_text("SECONDS")
      ->check(CLI::Range(0, kMaxGraceSeconds));
}

/// A job on this node. @return exit status
int run_here(portofu::tools::JobOptions options, const std::string& check) {
  if (options.size == 0) return fail("-n or --np, the number of processes, is missing");
  if (check.empty()) return portofu::tools::Job(std::move(options)).run();
  const portofu::tools::CheckFile file(check);
  if (!file.is_open()) return fail("the file for --check cannot be written: " + file.why());
  return file.tell(portofu::tools::Job(std::move(options)).run());
}

/// What is opened later must not take the number of a standard file that the caller has closed: output would go there.
void open_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
  }
}

/// @return exit status
int run(Wanted wanted) {
  portofu::tools::JobOptions& options = wanted.job;
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
  if (options.command.empty()) return fail("no program");
  if (options.command.front().starts_with('-')) return fail("there is no option " + options.command.front());
  const bool is_virtual = wanted.per_node != 0 || !wanted.shape.empty();
  if (is_virtual && !wanted.hosts.empty())
    return fail("--per-node and --shape are for one machine, and --hosts names the nodes");
  if (const std::string wrong = fill_shape(wanted.shape, wanted.per_node, &options.size); !wrong.empty())
    return fail(wrong);
  if (!wanted.bind.empty()) setenv("PORTOFU_BIND", wanted.bind.c_str(), 1);
  if (!wanted.map.empty()) setenv("PORTOFU_MAP", wanted.map.c_str(), 1);
  if (wanted.per_node != 0) setenv("PORTOFU_PER_NODE", std::to_string(wanted.per_node).c_str(), 1);
  if (!wanted.shape.empty()) setenv("PORTOFU_SHAPE", wanted.shape.c_str(), 1);
  if (wanted.hosts.empty()) return run_here(std::move(options), wanted.check);
  if (!wanted.check.empty())
    return fail("--check is for one machine: its findings are files there; set PORTOFU_CHECK=1");
  if (const std::string wrong = place_on_hosts(wanted.hosts, wanted.agent, &options); !wrong.empty())
    return fail(wrong);
  options.environment = exported(wanted.exports);
  return portofu::tools::Job(std::move(options)).run();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace portofu::tools;
  open_standard_files();
  if (argc == 2 && std::string(argv[1]) == kHelperOption) return HostHelper().run();
  Wanted wanted;
  wanted.job.size = 0;
  CLI::App app;
  app.prefix_command();
  add_options(&app, &wanted);
  const int status = parse_command_line(app, kPage, argc, argv, kLauncherFailed);
  if (status >= 0) return status;
  wanted.job.command = app.remaining();
  return run(std::move(wanted));
}
