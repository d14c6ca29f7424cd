#include "play.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

#include "world.h"

namespace compare {

void World::clear() {
  self.meet();
  std::memset(self.memory(rank()), 0, kMemoryBytes);
  PortalsSide::told(portals.source_eq);
  PortalsSide::told(portals.target_eq);
  tofu.told();
  for (void* cbdata = nullptr; utofu_poll_tcq(tofu.vcq, 0, &cbdata) != UTOFU_ERR_NOT_FOUND;) {
  }
  Stage& stage = self.stage();
  if (rank() == 0) {
    stage.flag = 0;
    for (auto& seen : stage.seen) seen = 0;
  }
  stage.counts[rank()] = 0;
  self.meet();
}

namespace {

constexpr unsigned int kMostSeconds = 120;  ///< A process that has not ended then is ended by the kernel.

/// Both ends of a pipe; what a process writes there the parent reads when all have ended.
struct Pipe {
  Pipe() { require(pipe(ends) == 0, "no pipe"); }
  int ends[2];
};

void send(int fd, char column, const Facts& facts) {
  std::ostringstream lines;
  lines.precision(17);
  for (const Fact& fact : facts)
    lines << column << '\t' << fact.what << '\t' << fact.value << '\t' << fact.measured << '\t' << fact.number << '\n';
  const std::string all = lines.str();
  require(write(fd, all.data(), all.size()) == static_cast<ssize_t>(all.size()), "the pipe is closed");
}

void receive(int fd, Outcome* outcome) {
  std::string all;
  char some[4096];
  for (ssize_t got = 0; (got = read(fd, some, sizeof some)) > 0;) all.append(some, static_cast<std::size_t>(got));
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string column, measured, number;
    Fact fact;
    std::getline(fields, column, '\t');
    std::getline(fields, fact.what, '\t');
    std::getline(fields, fact.value, '\t');
    std::getline(fields, measured, '\t');
    std::getline(fields, number);
    fact.measured = measured == "1";
    fact.number = std::strtod(number.c_str(), nullptr);
    (column == "p" ? outcome->portals : outcome->utofu).push_back(fact);
  }
}

void use_own_cpu(int rank) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(rank, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// The life of one process of a row.
void act(const Row& row, Player& self, int repetitions, int fd) {
  alarm(kMostSeconds);
  if (row.setting != nullptr) putenv(const_cast<char*>(row.setting));
  if (row.timed && sysconf(_SC_NPROCESSORS_ONLN) >= row.processes) use_own_cpu(self.rank());
  World world(self);
  for (int i = 0; i < repetitions; ++i) {
    world.clear();
    send(fd, 'p', row.portals(world));
    if (row.utofu == nullptr) continue;
    world.clear();
    send(fd, 'u', row.utofu(world));
  }
  if (row.mortal_rank >= 0) _exit(0);  // There is nobody left to close the interfaces with.
  self.meet();
}

void await_end(const Row& row, int rank, pid_t child, Outcome* outcome) {
  int status = 0;
  waitpid(child, &status, 0);
  if (rank == row.mortal_rank) {
    const std::string how = WIFSIGNALED(status) ? "ended by SIG" + std::string(sigabbrev_np(WTERMSIG(status)))
                                                : "left with status " + std::to_string(WEXITSTATUS(status));
    outcome->utofu.push_back({"the target's process", how});
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    outcome->trouble += "process " + std::to_string(rank) + " failed; ";
  }
}

/// What a process that ends itself says last: its first line on standard error, without the log's "portofu[PID]: error:
/// ".
void read_last_words(int fd, Outcome* outcome) {
  char text[512] = {};
  const ssize_t got = read(fd, text, sizeof text - 1);
  std::string words(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  if (words.starts_with("portofu[") && words.find(": ") != words.npos) words.erase(0, words.find(": ") + 2);
  if (words.starts_with("error: ")) words.erase(0, 7);
  outcome->utofu.push_back({"its last words", words.substr(0, words.find('\n'))});
}

}  // namespace

Outcome play(const Row& row, bool quick, int repetitions) {
  void* memory = mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory");
  auto* stage = new (memory) Stage;
  std::vector<Pipe> pipes(static_cast<std::size_t>(row.processes));
  std::vector<pid_t> children;
  Pipe last_words;
  for (int rank = 0; rank < row.processes; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    if (rank == row.mortal_rank) dup2(last_words.ends[1], STDERR_FILENO);
    Player self(*stage, rank, row.processes, quick);
    act(row, self, repetitions, pipes[static_cast<std::size_t>(rank)].ends[1]);
    _exit(0);
  }
  close(last_words.ends[1]);
  Outcome outcome;
  for (std::size_t rank = 0; rank < pipes.size(); ++rank) {
    close(pipes[rank].ends[1]);
  }
  for (std::size_t rank = 0; rank < pipes.size(); ++rank) {
    receive(pipes[rank].ends[0], &outcome);
    close(pipes[rank].ends[0]);
    await_end(row, static_cast<int>(rank), children[rank], &outcome);
  }
  if (row.mortal_rank >= 0) read_last_words(last_words.ends[0], &outcome);
  close(last_words.ends[0]);
  munmap(memory, sizeof(Stage));
  return outcome;
}

}  // namespace compare
