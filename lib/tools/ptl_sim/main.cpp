// ptl_sim: runs a job in virtual time.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/door/inspection.h"
#include "lib/sim/layout.h"
#include "lib/sim/machine.h"
#include "lib/tools/man_page.h"
#include "lib/tools/ptl_run/job.h"
#include "lib/tools/ptl_sim/coordinator.h"
#include "lib/tools/ptl_sim/counter_read.h"
#include "lib/tools/ptl_sim/output_file.h"
#include "lib/tools/ptl_sim/path_section.h"
#include "lib/tools/ptl_sim/preload.h"
#include "lib/tools/ptl_sim/report.h"
#include "lib/tools/ptl_sim/sweep.h"
#include "lib/tools/ptl_sim/virtual_timeline.h"
#include "lib/tools/ptl_trace/chrome_json.h"
#include "lib/tools/ptl_trace/report.h"
#include "lib/tools/ptl_trace/summary.h"

namespace {

const portofu::tools::ManPage kPage{
    .name = "ptl_sim",
    .sentence = "run a parallel program in the time of a machine that is not there",
    .synopsis =
        "--nodes SHAPE [OPTION]... PROGRAM [ARGUMENT]...\n"
        "    ptl_sim --sweep nodes=SHAPE,... [OPTION]... PROGRAM [ARGUMENT]...",
    .description =
        "    Starts PROGRAM as often as the nodes have ranks, as ptl_run does, and orders all that the\n"
        "    library does in virtual time: calls cost what they cost on the machine, and messages take as\n"
        "    long as its network lets them. The program is any that is linked with libportals or\n"
        "    libtofucom. One rank runs at a time, so a job takes about as long as all its ranks one after\n"
        "    the other.\n"
        "\n"
        "    Time begins when every rank has sent something, waits, looks again and again, or sleeps\n"
        "    elsewhere. What ranks do before, as to find each other by PMI, takes none.\n"
        "\n"
        "    From then on the program's clocks show virtual time: clock_gettime, gettimeofday, time, and so\n"
        "    MPI_Wtime and std::chrono. Its sleeps let virtual time pass.\n"
        "\n"
        "    At the end, times are told on standard error: of each rank, and what they went into. --path\n"
        "    adds what determines the end of the job, --trace and --report write a timeline and a page.\n"
        "\n"
        "MEMORY THAT IS POLLED\n"
        "    A rank that uses the CPU for --patience without a call of the library is taken to poll its\n"
        "    memory, if others can go on: it stops until something arrives for it. What it spends with\n"
        "    that costs nothing in virtual time, and --patience in real time. A program that computes for\n"
        "    longer between two calls needs more --patience; the report says when a call came too late.\n"
        "\n"
        "THE SAME TIMES\n"
        "    With --compute none and fixed a program that has one thread and does the same each time gets\n"
        "    the same times each time, however busy this machine is. Not so one whose ranks talk past the\n"
        "    library, by files, pipes or PMI, in the middle: who sleeps for such a reason holds nobody up,\n"
        "    and comes back at the time that it is then.\n",
    .rest =
        "ENVIRONMENT\n"
        "    Each rank gets what ptl_run gives, and\n"
        "    PORTOFU_SIM                         where the ranks share virtual time\n"
        "    PORTOFU_PER_NODE, PORTOFU_SHAPE     the nodes, with coordinates of their own\n"
        "    PORTOFU_TNIS, PORTOFU_CQS, PORTOFU_CMP_IDS\n"
        "                                        of the machine\n"
        "    LD_PRELOAD                          libportofu_clock.so before all else; not with --real-clocks\n"
        "    OMPI_MCA_*                          with --launcher: mpirun lets ranks share cores, and binds none\n"
        "    OMP_WAIT_POLICY=passive             unless it is set, or --compute is cpu\n"
        "    PORTOFU_DIRECT, PORTOFU_HEAP_MIB, PORTOFU_PROGRESS_THREAD, PORTOFU_FABRIC: 0, so that all\n"
        "    that ranks do to each other is a message\n"
        "\n"
        "EXIT STATUS\n"
        "    As of ptl_run. 125 also if no rank has used the library, and if the program hangs: all wait,\n"
        "    and nothing is under way.\n"
        "\n"
        "EXAMPLES\n"
        "    ptl_sim --nodes 2x3x2 --per-node 4 ./program --its-own-option\n"
        "    ptl_sim --sweep nodes=12,24,48 --plot times.svg ./program\n"
        "    ptl_sim --nodes 8 --launcher mpirun -n 8 --mca pml cm --mca mtl portals4 ./program\n"
        "    ptl_sim --machine ./mine.json --nodes 64 --compute cpu=2 --json times.json ./program\n"};

int fail(const std::string& what) {
  std::fprintf(stderr, "ptl_sim: %s. ptl_sim --help explains.\n", what.c_str());
  return portofu::tools::kLauncherFailed;
}

/// "none", "fixed=NS", "cpu" or "cpu=FACTOR". @return false if it is none of them
bool parse_compute(const std::string& text, portofu::tools::TimeCosts* costs) {
  using portofu::VirtualCompute;
  const std::string word = text.substr(0, text.find('='));
  const bool has_number = word.size() < text.size();
  double number = 0;
  if (has_number) {
    const char* const digits = text.c_str() + word.size() + 1;
    char* end = nullptr;
    number = std::strtod(digits, &end);
    if (*digits == '\0' || *end != '\0' || !(number >= 0 && number <= 1e9)) return false;
  }
  constexpr double kThousandths = 1000;
  costs->compute_word = static_cast<std::uint64_t>(has_number ? number * kThousandths : kThousandths);
  if (word == "none") costs->compute = VirtualCompute::kNone;
  if (word == "fixed") costs->compute = VirtualCompute::kFixed;
  if (word == "cpu") costs->compute = VirtualCompute::kCpu;
  return (word == "none" && !has_number) || (word == "fixed" && has_number) || word == "cpu";
}

/// Of PORTOFU_CQS and PORTOFU_CMP_IDS, at most.
constexpr std::uint32_t kMostQueues = 4096;
constexpr std::uint32_t kMostVirtualQueues = 256;

/// @param limit  of the machine; 0: without limit
/// @param most   that the library can have
void set_limit(const char* name, std::uint32_t limit, std::uint32_t most) {
  setenv(name, std::to_string(limit == 0 ? most : std::min(limit, most)).c_str(), 1);
}

/// What the ranks find in their environment.
void set_environment(const std::string& path, int per_node, const std::string& shape,
                     const portofu::sim::Machine& machine) {
  setenv("PORTOFU_SIM", path.c_str(), 1);
  setenv("PORTOFU_PER_NODE", std::to_string(per_node).c_str(), 1);
  setenv("PORTOFU_SHAPE", shape.c_str(), 1);
  setenv("PORTOFU_TNIS", std::to_string(machine.interfaces.count).c_str(), 1);
  set_limit("PORTOFU_CQS", machine.limits.queues_per_interface, kMostQueues);
  set_limit("PORTOFU_CMP_IDS", machine.limits.virtual_queues_per_queue, kMostVirtualQueues);
  for (const char* off : {"PORTOFU_PROGRESS_THREAD", "PORTOFU_DIRECT", "PORTOFU_HEAP_MIB", "PORTOFU_FABRIC"})
    setenv(off, "0", 1);
}

/// The command line, beside what is in the options of the job and of the coordinator.
struct Wanted {
  std::string machine = "tofud";
  std::string shape;
  int per_node = 1;
  std::string compute = "none";
  std::uint64_t patience_us = 0;  ///< 0: nothing was said.
  std::uint64_t hang_s = 60;
  bool real_clocks = false;
  std::string sweep;  ///< Empty: there is one run.
  bool launcher = false;
  std::string json;
  std::string plot;
  std::string trace;
  std::string report;
  std::uint64_t most_messages = 100'000;
  bool has_messages = false;
  bool tells_path = false;
  bool quiet = false;

  bool needs_history() const {
    return tells_path || !json.empty() || !trace.empty() || !report.empty() || !sweep.empty();
  }
};

void add_options(CLI::App* app, Wanted* wanted, portofu::tools::JobOptions* job) {
  using namespace portofu::tools;
  app->add_option("--machine", wanted->machine,
                  "A machine that comes with Portofu, or a file of one; without it, tofud.")
      ->option_text("MACHINE");
  app->add_option("--nodes", wanted->shape,
                  "Nodes of the job, as 12, 4x3 or 2x3x2; six numbers are X, Y, Z, A, B and C of a torus.")
      ->option_text("SHAPE");
  app->add_option("--sweep", wanted->sweep,
                  "In place of --nodes: runs the program for each of several sizes, as nodes=12,24,48, and tells the "
                  "time of each.")
      ->option_text("nodes=SHAPE,...");
  app->add_option("--per-node", wanted->per_node, "Ranks of a node; without it, 1.")
      ->option_text("COUNT")
      ->check(CLI::Range(1, kMaxRankCount));
  app->add_option("--compute", wanted->compute,
                  "What the program does between calls costs none, fixed=NS before each call, or its CPU time: cpu, or "
                  "cpu=FACTOR; without it, none.")
      ->option_text("WHAT");
  app->add_option(
         "--patience", wanted->patience_us,
         "Microseconds of CPU time without a call; without it, 200, and a second in programs of MPI that have not "
         "polled memory yet.")
      ->option_text("US")
      ->check(CLI::Range(1, 60'000'000));
  app->add_option("--hang", wanted->hang_s,
                  "Seconds in which nothing happens, after which the job ends; without it, 60.")
      ->option_text("SECONDS")
      ->check(CLI::Range(1, 86'400));
  app->add_flag("--launcher", wanted->launcher, "PROGRAM starts all ranks, as mpirun does, and so is started once.");
  app->add_flag("--real-clocks", wanted->real_clocks,
                "Clocks that the program reads show real time, and its sleeps take it.");
  app->add_option("--json", wanted->json, "File for the times, as JSON.")->option_text("FILE");
  app->add_option("--plot", wanted->plot, "With --sweep: file for a plot of time by size, as SVG.")
      ->option_text("FILE");
  app->add_flag("--messages", wanted->has_messages, "Each message is in the file of --json, too.");
  app->add_option("--trace", wanted->trace,
                  "File for a timeline, which https://ui.perfetto.dev and chrome://tracing open.")
      ->option_text("FILE");
  app->add_option("--most", wanted->most_messages,
                  "Messages in the timeline at most, from its beginning; without it, 100000.")
      ->option_text("COUNT")
      ->check(CLI::Range(0, 1'000'000'000));
  app->add_option("--report", wanted->report, "File for a page with plots, which a browser opens without a network.")
      ->option_text("FILE");
  app->add_flag("--path", wanted->tells_path,
                "The critical path is told, too: which ranks, messages and links determine the end.");
  app->add_flag("-q,--quiet", wanted->quiet, "Times are not told on standard error.");
  app->add_flag("-l,--label", job->label, "Writes [RANK] in front of every line of output.");
  app->add_option("--grace", job->grace_seconds, "Seconds between SIGTERM and SIGKILL; without it, 5.")
      ->option_text("SECONDS")
      ->check(CLI::Range(0, kMaxGraceSeconds));
}

/// One line for each program of the command that reads the processor's counter.
void tell_of_counter_reads(const Wanted& wanted, const std::vector<std::string>& command) {
  if (wanted.quiet || wanted.real_clocks) return;
  for (std::size_t i = 0; i < (wanted.launcher ? command.size() : 1); ++i) {
    const std::string file = portofu::tools::program_file(command[i]);
    const std::string reads = file.empty() ? "" : portofu::tools::counter_reads_of(file);
    if (reads.empty()) continue;
    std::fprintf(stderr, "ptl_sim: %s seems to read the processor's counter itself (%s), which shows real time\n",
                 command[i].c_str(), reads.c_str());
  }
}

/// What a run needs, beside its program.
struct Setup {
  portofu::sim::Machine machine;
  portofu::sim::Layout layout;
  portofu::tools::CoordinatorOptions order;
  portofu::tools::TimeCosts costs;
};

/// @param why  a sentence on failure
std::optional<Setup> prepare(const Wanted& wanted, std::string* why) {
  using namespace portofu::tools;
  auto machine = portofu::sim::load_machine(wanted.machine, why);
  if (!machine) return std::nullopt;
  auto layout = portofu::sim::lay_out(*machine, wanted.shape, why);
  if (!layout) return std::nullopt;
  const std::uint64_t ranks = std::uint64_t{layout->node_count()} * static_cast<unsigned>(wanted.per_node);
  Setup setup{std::move(*machine), std::move(*layout), {}, {}};
  setup.order = {.rank_count = static_cast<std::uint32_t>(ranks),
                 .per_node = static_cast<std::uint32_t>(wanted.per_node),
                 .look_ps = setup.machine.processor.look_ps,
                 .notice_ps = setup.machine.interfaces.notice_ps,
                 .keeps_history = wanted.needs_history(),
                 .is_quiet = wanted.quiet,
                 .has_launcher = wanted.launcher,
                 .hang_ns = wanted.hang_s * 1'000'000'000};
  if (wanted.patience_us != 0) setup.order.patience_ns = setup.order.mpi_patience_ns = wanted.patience_us * 1000;
  const auto& processor = setup.machine.processor;
  setup.costs.calls_ps = {processor.put_ps, processor.get_ps, processor.atomic_ps, processor.barrier_ps};
  setup.costs.poll_ps = processor.poll_ps;
  setup.costs.empty_poll_ps = processor.empty_poll_ps;
  setup.costs.keeps_spans = setup.order.keeps_history;
  if (ranks > kMaxRankCount) {
    *why = "these are " + std::to_string(ranks) + " ranks, and " + std::to_string(kMaxRankCount) + " are the most";
  } else if (!portofu::NodeShape::parse(wanted.shape)) {
    *why = "--nodes " + wanted.shape + " is none: up to three sides as in 2x3x2, of " +
           portofu::NodeShape::most_sides_text() + " nodes at most, or the six lengths of a torus";
  } else if (!parse_compute(wanted.compute, &setup.costs)) {
    *why = "--compute " + wanted.compute + " is none of none, fixed=NS, cpu, cpu=FACTOR";
  } else {
    return setup;
  }
  return std::nullopt;
}

std::string program_name(const portofu::tools::JobOptions& job) {
  return std::filesystem::path(job.command.front()).filename();
}

portofu::tools::SweepPoint point_of(const portofu::tools::Coordinator& coordinator,
                                    const portofu::sim::Network& network, const portofu::tools::CriticalPath& path,
                                    const std::string& shape) {
  portofu::tools::SweepPoint point;
  point.shape = shape;
  point.nodes = network.node_count();
  point.ranks = static_cast<std::uint32_t>(coordinator.times().size());
  point.time_ps = coordinator.end_ps();
  point.messages = coordinator.message_count();
  for (const auto& one : coordinator.times()) point.late_calls += one.late_calls;
  point.path_ps = path.sums_ps;
  return point;
}

/// Runs the job, and tells its times.
/// @param point  of a sweep, to be filled in; else nullptr
/// @return exit status
int simulate(const Wanted& wanted, portofu::tools::JobOptions job, portofu::tools::SweepPoint* point) {
  using namespace portofu::tools;
  std::string why;
  auto setup = prepare(wanted, &why);
  if (!setup) return fail(why);
  OutputFile json(wanted.json);
  OutputFile trace(wanted.trace);
  OutputFile report(wanted.report);
  const auto trouble = [&] {
    for (const OutputFile* const file : {&json, &trace, &report}) {
      if (!file->trouble().empty()) return file->trouble();
    }
    return std::string();
  };
  if (!trouble().empty()) return fail(trouble());

  const SharedTime time(setup->order.rank_count, setup->costs);
  if (!time.is_open()) return fail(time.why());
  set_environment(time.path(), wanted.per_node, wanted.shape, setup->machine);
  if (setup->costs.compute != portofu::VirtualCompute::kCpu) let_openmp_sleep();
  portofu::sim::Network network(setup->machine, std::move(setup->layout));
  Coordinator coordinator(setup->order, time, network);
  const std::string program = program_name(job);
  job.size = wanted.launcher ? 1 : static_cast<int>(setup->order.rank_count);
  job.is_launcher = wanted.launcher;
  job.watcher = &coordinator;
  const int result = Job(std::move(job)).run();
  const bool is_unused = result == 0 && !coordinator.has_begun();
  const char* const why_unused = "no rank has used the library, so there is no time to tell";

  const History& history = coordinator.history();
  const CriticalPath path = find_critical_path(history);
  const JsonOptions content{.per_node = setup->order.per_node,
                            .has_messages = wanted.has_messages,
                            .status = is_unused ? kLauncherFailed : result,
                            .complaint = is_unused ? why_unused : coordinator.complaint()};
  if (json.is_wanted()) json.write_text(report_json(coordinator, network, path, content));
  if (trace.is_wanted() || report.is_wanted()) {
    Timeline timeline = virtual_timeline(history, coordinator.ids(), program);
    timeline.links = link_uses(network);
    trace.write([&](std::FILE* file) { return write_chrome_json(timeline, wanted.most_messages, file); });
    report.write_text(report_html(timeline, summarize(timeline), path_section(path, history, network)));
  }
  if (point != nullptr) *point = point_of(coordinator, network, path, wanted.shape);
  if (is_unused) return fail(why_unused);
  if (!wanted.quiet && result == 0) std::fputs(report_text(coordinator, network).c_str(), stderr);
  if (wanted.tells_path && result == 0) std::fputs(path_text(path, history, network).c_str(), stderr);
  return trouble().empty() ? result : fail(trouble());
}

/// Runs the program for one size after the other. @return exit status: of the first run that ends badly
int sweep(const Wanted& wanted, const portofu::tools::JobOptions& job) {
  using namespace portofu::tools;
  const std::vector<std::string> shapes = parse_sweep(wanted.sweep);
  if (shapes.empty()) return fail("--sweep " + wanted.sweep + " is none: nodes=12,24,48 is one");
  std::string why;
  Sweep result{.machine = wanted.machine, .program = program_name(job), .per_node = 1, .status = 0, .points = {}};
  result.per_node = static_cast<std::uint32_t>(wanted.per_node);
  Wanted one = wanted;
  one.json.clear();
  one.tells_path = false;
  one.quiet = true;
  for (const std::string& shape : shapes) {
    one.shape = shape;
    if (!prepare(one, &why)) return fail(why);
  }
  OutputFile json(wanted.json);
  OutputFile plot(wanted.plot);
  if (!json.trouble().empty() || !plot.trouble().empty()) return fail(json.trouble() + plot.trouble());
  for (const std::string& shape : shapes) {
    one.shape = shape;
    SweepPoint point;
    result.status = simulate(one, job, &point);
    if (result.status != 0) {
      std::fprintf(stderr, "ptl_sim: the sweep ends at nodes=%s\n", shape.c_str());
      break;
    }
    result.points.push_back(point);
  }
  if (!wanted.quiet && !result.points.empty()) std::fputs(sweep_text(result).c_str(), stderr);
  json.write_text(sweep_json(result));
  plot.write_text(sweep_svg(result));
  return json.trouble().empty() && plot.trouble().empty() ? result.status : fail(json.trouble() + plot.trouble());
}

/// What does not go together. @return what is wrong; empty: nothing
std::string find_conflict(const Wanted& wanted) {
  if (wanted.sweep.empty() == wanted.shape.empty()) return "either --nodes or --sweep says on how many nodes";
  const bool is_of_one_run =
      !wanted.trace.empty() || !wanted.report.empty() || wanted.tells_path || wanted.has_messages;
  if (!wanted.sweep.empty() && is_of_one_run)
    return "--trace, --report, --path and --messages are of one run, not of a --sweep";
  if (wanted.sweep.empty() && !wanted.plot.empty()) return "--plot is of a --sweep";
  if (wanted.has_messages && wanted.json.empty()) return "--messages says what is in the file of --json, and needs it";
  std::set<std::filesystem::path> files;
  for (const std::string& file : {wanted.json, wanted.plot, wanted.trace, wanted.report}) {
    std::error_code error;  // What has no such form cannot be written either, which is told later.
    const std::filesystem::path one = std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
    if (!file.empty() && one != "/dev/null" && !files.insert(one).second) return "two outputs go into the file " + file;
  }
  if (!wanted.sweep.empty() && wanted.launcher)
    return "--launcher starts a number of ranks of its own, and a --sweep asks for several";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace portofu::tools;
  JobOptions job;
  Wanted wanted;
  CLI::App app;
  app.prefix_command();
  add_options(&app, &wanted, &job);
  const int status = parse_command_line(app, kPage, argc, argv, kLauncherFailed);
  if (status >= 0) return status;
  job.command = app.remaining();
  if (!job.command.empty() && job.command.front() == "--") job.command.erase(job.command.begin());
  if (job.command.empty()) return fail("no program");
  if (job.command.front().starts_with('-')) return fail("there is no option " + job.command.front());
  const std::string conflict = find_conflict(wanted);
  if (!conflict.empty()) return fail(conflict);
  tell_of_counter_reads(wanted, job.command);
  if (!wanted.real_clocks) preload_clock();
  if (wanted.launcher) let_mpirun_share_cores();
  return wanted.sweep.empty() ? simulate(wanted, std::move(job), nullptr) : sweep(wanted, job);
}
