#!/usr/bin/env python3
"""Runs the commands of the users' pages as they are printed there.

Every line of every code block, and every command in the text, is either run here, or compared with what the scripts do,
or has a reason why it is not run. What is new in a page and has none of the three is a failure, and so is an entry here
that no page has any longer: so neither can drift. Blocks of a language (```c, ```text) are no commands: run_examples.py
runs the programs, and what the README says that the demo prints is compared with what it prints.

usage: run_readme.py --openmpi PREFIX --portofu PREFIX --log DIRECTORY [--only REGEX]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SUITE = "readme"
# The pages whose commands are run.
PAGES = ("README.md", "lib/README.md", "lib/openmpi.md", "lib/nodes.md", "lib/environment.md", "lib/tracing.md",
         "lib/utofu/README.md", "lib/fugaku/README.md")
# What begins a command in the text; other code in the text names files, functions and variables.
TOOLS = ("./run ", "ptl_run ", "ptl_info ", "ptl_ping ", "ptl_top ", "ptl_trace ", "ptl_sim ", "mpirun ", "mpiexec ", "ctest ", "cmake ",
         "cc ", "mpicc ", "LD_PRELOAD=", "build/release/bin/")
# MPI programs that stand for ./program: all predefined types, derived types, and windows.
MPI_PROGRAMS = ("predefined_types", "collectives", "scattered_collectives", "one_sided", "one_sided_types")

PORTALS_PROGRAM = """
#include <portals4.h>
int main(void) {
  ptl_handle_ni_t ni;
  if (PtlInit() != PTL_OK) return 1;
  if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, 0, 0, &ni) != PTL_OK) return 2;
  PtlNIFini(ni);
  PtlFini();
  return 0;
}
"""
HEAP_PROGRAM = """
#include <portofu.h>
#include <stddef.h>
int main(void) {
  size_t bytes = 100000;
  LINE
  if (field == NULL) return 1;
  field[0] = field[bytes / sizeof *field - 1] = 1;
  portofu_free(field);
  return 0;
}
"""
UTOFU_PROGRAM = """
#include <stdio.h>
#include <utofu.h>
int main(void) {
  uint8_t at[6];
  utofu_vcq_hdl_t vcq;
  if (utofu_query_my_coords(at) != UTOFU_SUCCESS || utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS) return 1;
  printf("%d,%d,%d,%d,%d,%d\\n", at[0], at[1], at[2], at[3], at[4], at[5]);
  return 0;
}
"""
TOPOLOGY_PROGRAM = """
#include <mpi-ext.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, at[6];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (FJMPI_Topology_get_coords(MPI_COMM_WORLD, rank, FJMPI_TOFU_SYS, 6, at) != MPI_SUCCESS) return 1;
  printf("%d,%d,%d,%d,%d,%d\\n", at[0], at[1], at[2], at[3], at[4], at[5]);
  return MPI_Finalize();
}
"""

# Command or line of a page, and why it is not run by this script.
NOT_RUN = {
    "./run demo": "takes minutes; its script is run here with one turn of measurements",
    "./run bench": "takes ten minutes",
    "./run bench onlookers": "takes minutes, and wants cores that are free",
    "./run test": "runs this",
    "./run docs": "wants Doxygen; the tables that it writes are tests of their own",
    "ptl_run --hosts a,b:4,c ./program": "wants other machines; tests/hosts has hosts of its own",
    "mpiexec -genv PORTOFU_JOB_KEY 4711": "is a part of a command",
    "mpirun": "is a name",
    "mpiexec": "is a name",
    "./run test utofu": "is a suite of its own",
    "ptl_run": "is a name",
    "ptl_run --hosts": "is a name",
    "ptl_info --explain --hosts": "wants several hosts; tests/process has two",
    "ptl_info --explain --hosts a,b": "wants several hosts; tests/process has two",
    "ptl_info --remove-dead": "removes what other tests look at; tests/unit/segment has a directory for it",
    "ptl_top": "wants a terminal; tests/process has one for it",
    "ptl_trace": "is a name",
    "ptl_sim": "is a name",
    "ptl_trace --report": "is a name; a whole command stands in lib/tracing.md",
    "ptl_trace --last": "wants a process that records its steps; tests/process has some",
    "ptl_trace --merge DIRECTORY": "wants files of other machines; tests/process has some of this one",
    "build/release/bin/compare_apis": "takes a minute, and is a test of the release preset's benchmarks",
    "10.0.0.1 0,0,0,0,0,0": "is a hosts file of other machines; tests/unit/config reads such files",
    "10.0.0.2 0,0,0,1,0,0": "is a hosts file of other machines; tests/unit/config reads such files",
}


def blocks(text, language):
    """The contents of all code blocks of a language; "" is for commands."""
    return [block for tag, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if tag == language]


def code_lines(text):
    """The lines of all code blocks: continued ones joined, without comments and without empty ones."""
    for block in blocks(text, ""):
        joined = re.sub(r"\s*\\\n\s*", " ", block)
        for line in joined.splitlines():
            line = re.sub(r"\s+(#.*|/\*.*\*/)$", "", line)
            if line.strip():
                yield re.sub(r"\s+", " ", line.strip())


def text_commands(text):
    """Commands in the text between code blocks."""
    prose = re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.M | re.S)
    for code in re.findall(r"`([^`\n]+)`", prose):
        if (code + " ").startswith(TOOLS):
            yield code


class Failure(Exception):
    pass


class Readme:
    def __init__(self, arguments):
        self.openmpi = Path(arguments.openmpi)
        self.portofu = Path(arguments.portofu)
        self.log = Path(arguments.log).resolve()
        self.work = self.log / "work"
        self.used = set()
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.environment = dict(os.environ, PATH=f"{self.openmpi}/bin:{self.portofu}/bin:{os.environ['PATH']}",
                                PORTOFU_TEST_SECONDS="150", OMPI_MCA_rmaps_base_oversubscribe="1")
        if os.geteuid() == 0:
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        # PKG_CONFIG_PATH of the line with export, which holds for the line after it.
        self.exports = {}

    def shell(self, command, seconds=240, directory=None):
        command = command.replace("PREFIX", str(self.portofu))
        done = subprocess.run(["bash", "-c", command], cwd=directory or self.work, text=True, timeout=seconds,
                              env=dict(self.environment, **self.exports), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        with open(self.log / "commands.log", "a", encoding="utf-8") as log:
            log.write(f"$ {command}\n{done.stdout}\n")
        if done.returncode != 0:
            last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
            raise Failure(f"exit {done.returncode}: {' '.join(last)[:140]}")
        return done.stdout

    # ---- What stands for a command ------------------------------------------------------------------------------

    def repository(self, command):
        return self.shell(command, directory=REPOSITORY)

    def install(self, command):
        """Into another place than the one that everything else uses."""
        place = self.work / "installed"
        subprocess_command = command.replace("PREFIX", str(place))
        self.repository(subprocess_command)
        if not (place / "lib" / "libportals.so.4").exists():
            raise Failure(f"no lib/libportals.so.4 under {place}")
        for page in ("man1/ptl_run.1", "man3/PtlPut.3", "man3/utofu_put.3", "man7/portofu.7"):
            if not (place / "share" / "man" / page).exists():
                raise Failure(f"no share/man/{page} under {place}")

    def export(self, command):
        name, value = command.removeprefix("export ").split("=", 1)
        self.exports[name] = value.replace("PREFIX", str(self.portofu))

    def compile_program(self, command):
        (self.work / "program.c").write_text(PORTALS_PROGRAM)
        self.shell(f"{command} && ./a.out")

    def cmake_lines(self, lines):
        project = self.work / "project"
        project.mkdir(exist_ok=True)
        (project / "program.c").write_text(PORTALS_PROGRAM)
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(p C)\n" + lines[0] +
            "\nadd_executable(program program.c)\n" + lines[1] + "\n")
        self.shell("cmake -S project -B project/build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build project/build && "
                   "project/build/program")

    def heap_line(self, line):
        (self.work / "heap.c").write_text(HEAP_PROGRAM.replace("LINE", line))
        self.shell("export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig; cc heap.c -o heap "
                   "$(pkg-config --cflags --libs portofu) -Wl,-rpath,PREFIX/lib && ./heap")

    def mpirun_in_virtual_time(self, command):
        """One core has to do all, so this is one short program."""
        self.mpirun(command, ("virtual_time",))

    def mpirun(self, command, programs=MPI_PROGRAMS):
        for program in programs:
            source = REPOSITORY / "tests" / "mpi" / "programs" / f"{program}.c"
            self.shell(f"mpicc -std=c11 -D_GNU_SOURCE -O2 -pthread {source} -o program")
            if ": verified on 4 ranks" not in self.shell(command):
                raise Failure(f"{program} does not say that it has verified anything")

    def preload(self, command):
        """Other pages leave out where the library is."""
        self.shell(command.replace("=lib", "=PREFIX/lib/lib") + " /bin/ls")

    def ptl_run(self, command):
        (self.work / "program.c").write_text(PORTALS_PROGRAM)
        self.shell("export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig; cc program.c -o program "
                   f"$(pkg-config --cflags --libs portals4) -Wl,-rpath,PREFIX/lib && {command}")

    def matrix(self, command):
        """The example of FUNi, which verifies its result."""
        printed = self.shell("export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig; " +
                             command.replace("lib/funi/", f"{REPOSITORY}/lib/funi/"))
        if command.startswith("ptl_run") and ": right" not in printed:
            raise Failure("the product is not right")

    def topology(self, command):
        (self.work / "program.c").write_text(TOPOLOGY_PROGRAM)
        self.shell(f"{command} -Wl,-rpath,PREFIX/lib && mv a.out program")

    def topology_run(self, command):
        """Twelve processes are on six nodes."""
        places = [line for line in self.shell(command).splitlines() if re.fullmatch(r"\d(,\d){5}", line)]
        if sorted(Counter(places).values()) != [2] * 6:
            raise Failure(f"the processes are at {places}")

    def shape(self, command):
        """Forty-eight processes are on twelve nodes."""
        self.virtual_nodes(command.removesuffix("./program"), [4] * 12)

    def virtual_nodes(self, command, expected=(4, 4, 4, 4)):
        """Sixteen processes are on four nodes."""
        (self.work / "nodes.c").write_text(UTOFU_PROGRAM)
        printed = self.shell("export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig; cc nodes.c -o nodes "
                             f"$(pkg-config --cflags --libs utofu) -Wl,-rpath,PREFIX/lib && {command} ./nodes")
        if sorted(Counter(printed.splitlines()).values()) != list(expected):
            raise Failure(f"the processes are at {printed.split()}")

    def configure(self, command):
        """Takes minutes; what ./run openmpi gives to configure is compared with it."""
        given = self.shell("source .ci/common.sh; source tests/mpi/openmpi.sh; openmpi_configure_arguments",
                           directory=REPOSITORY).splitlines()
        for wanted in re.findall(r'(--with-portals4=\S+|LDFLAGS="[^"]*")', command):
            wanted = wanted.replace('"', "").replace("PREFIX", str(self.portofu))
            if wanted not in given:
                raise Failure(f"./run openmpi does not configure with {wanted}")

    def parameter(self, line):
        """A line of openmpi-mca-params.conf."""
        if line not in (self.openmpi / "etc" / "openmpi-mca-params.conf").read_text().splitlines():
            raise Failure("openmpi-mca-params.conf of ./run openmpi has no such line")

    def demo(self):
        """The README shows some lines of what it prints; other numbers may stand in them."""
        def frame(line):
            return re.sub(r"[\d.]+", "N", " ".join(line.split()))

        printed = self.repository(f"tests/mpi/demo.sh --prefix {self.openmpi} --log {self.log}/demo --repetitions 1")
        frames = {frame(line) for line in printed.splitlines()}
        for line in blocks((REPOSITORY / "README.md").read_text(encoding="utf-8"), "text")[0].splitlines():
            if frame(line) not in frames:
                raise Failure(f"the demo prints no such line: {line.strip()}")

    def handler_of(self, command):
        """What runs or judges a command; None if nothing does."""
        rules = (
            (r"\./run help$", self.repository), (r"\./run install PREFIX$", self.install),
            (r"\./run openmpi$", lambda command: None),  # Has run: it made the Open MPI that is used here.
            (r"cmake --(preset|build --preset) release$", self.repository),
            (r"cmake --install build/release --prefix PREFIX$", self.install),
            (r"export ", self.export), (r"cc program\.c ", self.compile_program), (r"double \*field", self.heap_line),
            (r"LD_PRELOAD=(PREFIX\S+|libportofu_malloc\.so)$", self.preload),
            (r"cc lib/funi/matrix\.c |ptl_run -n 4 \./matrix$", self.matrix),
            (r"mpicc -I", self.topology), (r"mpirun .*PORTOFU_SHAPE", self.topology_run),
            (r"ptl_run --shape", self.shape),
            (r"\./configure --with-portals4", self.configure), (r"mpirun .* \./program$", self.mpirun),
            (r"(mtl|osc|btl)_\w+ = \w+$|(pml|mtl) = \w+$", self.parameter), (r"ptl_run (--check )?-n 4 \./program$", self.ptl_run),
            (r"ptl_info( --settings| --topology| --explain)?$|ptl_ping$", self.shell),
            (r"ptl_run -n 16 --per-node 4$", self.virtual_nodes),
            (r"ptl_sim .*--launcher mpirun .* \./program$", self.mpirun_in_virtual_time),
            (r"ptl_sim .*\./program$", self.ptl_run),
            (r"ptl_trace .* ptl_run -n 2 \./program$", self.ptl_run),
        )
        for pattern, handler in rules:
            if re.match(pattern, command):
                return handler
        return None

    def run_one(self, command, following):
        if command in NOT_RUN:
            self.used.add(command)
            return "SKIP", NOT_RUN[command]
        if command.startswith("find_package("):
            self.cmake_lines([command, following])
        elif not command.startswith("target_link_libraries("):
            handler = self.handler_of(command)
            if handler is None:
                return "FAIL", "nothing here says how to run it, or why not"
            handler(command)
        return "PASS", ""


def report(verdict, name, seconds, reason):
    print(f"{verdict} {SUITE}: {name} ({seconds} s){' - ' + reason if reason else ''}", flush=True)
    results = os.environ.get("PORTOFU_RESULTS")
    if results:
        with open(results, "a", encoding="utf-8") as file:
            file.write(f"{verdict}\t{SUITE}\t{name}\t{reason}\n")
    return verdict == "FAIL"


def judge(name, action):
    """Runs one; returns whether it failed."""
    started = time.monotonic()
    try:
        verdict, reason = action()
    except (Failure, subprocess.TimeoutExpired, OSError) as problem:
        verdict, reason = "FAIL", str(problem)
    return report(verdict, name, int(time.monotonic() - started), reason)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--openmpi", "--portofu", "--log"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only", default=".")
    arguments = parser.parse_args()
    readme = Readme(arguments)
    texts = [(REPOSITORY / page).read_text(encoding="utf-8") for page in PAGES]
    commands = list(dict.fromkeys(command for text in texts for command in [*code_lines(text), *text_commands(text)]))
    failures = 0
    for command, following in zip(commands, commands[1:] + [""]):
        if re.search(arguments.only, command):
            failures += judge(command, lambda: readme.run_one(command, following))
    if re.search(arguments.only, "the demo"):
        failures += judge("the demo, with one turn of measurements", lambda: (readme.demo(), ("PASS", ""))[1])
    if arguments.only == ".":
        for stale in sorted(set(NOT_RUN) - readme.used):
            failures += report("FAIL", stale, 0, "no page has such a command any more")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
