#!/usr/bin/python3
"""Driver of `./run bench`: runs every program of the comparison in turns, round after round, and hands what they say to
the report. Nothing is dropped silently: what is missing or fails stands in the report with its reason."""

import argparse
import contextlib
import fcntl
import json
import os
import platform
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import report
import stats

HERE = Path(__file__).resolve().parent
SHARED_MEMORY_UCX = {"UCX_TLS": "posix,sysv,cma,self", "UCX_LOG_LEVEL": "fatal"}
JOB_LIMIT_S = 40
ALL_DONE_S = 600  # From the start of `./run bench`, which may have to build, too.
MOST_ROUNDS, FEWEST_ROUNDS = 7, 5
SHARED_ALLOCATOR = "libportofu_malloc.so"  # Preloaded, it makes malloc give memory that both sides map.
NOT_APPLICABLE = 77  # As kNotApplicable in world.h.


class Missing(Exception):
    """A program that is not there, fails, or does not end. `may_pass`: it may help to try again."""

    def __init__(self, reason, may_pass=True):
        super().__init__(reason)
        self.may_pass = may_pass


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=*")]
    errors = [line for line in lines if re.search(r"error|fail|cannot|return code|abort|signal", line, re.I)]
    return (errors or lines or ["no output"])[0][:160]


def start(command, environment=None, **pipes):
    """A process group of its own, so that whatever it has started can be ended, too."""
    if shutil.which(command[0]) is None:
        raise Missing(f"{command[0]} is not installed", may_pass=False)
    return subprocess.Popen(command, env={**os.environ, **(environment or {})}, start_new_session=True, text=True,
                            stdin=subprocess.DEVNULL, **pipes)


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(command, environment=None, limit_s=JOB_LIMIT_S):
    """What a command prints; Missing when it fails or lasts longer than its limit."""
    process = start([str(word) for word in command], environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # A launcher clears away its ranks.
        time.sleep(1)
        raise Missing(f"does not end within {limit_s} s") from None
    finally:
        end(process)
    if process.returncode != 0:
        raise Missing(f"{last_words(err + out)} [exit {process.returncode}]", process.returncode != NOT_APPLICABLE)
    return out


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_pair(server, client, port, environment=None):
    """What the client prints; it is started when the server listens."""
    def listens():
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:] if Path(table).exists() else []:
                words = line.split()
                if words[3] == "0A" and words[1].endswith(f":{port:04X}"):
                    return True
        return False

    with tempfile.TemporaryFile("w+") as log:
        process = start(server, environment, stdout=log, stderr=log)
        try:
            give_up = time.monotonic() + 10
            while not listens():
                if process.poll() is not None or time.monotonic() > give_up:
                    log.seek(0)
                    raise Missing(f"the server does not start: {last_words(log.read())}")
                time.sleep(0.01)
            return run(client, environment, 30)
        finally:
            end(process)


@contextlib.contextmanager
def watching(tool):
    """Runs a tool in a terminal of its own meanwhile, whose screen nobody sees."""
    if not tool.exists():
        raise Missing(f"there is no {tool.name} in this build", may_pass=False)
    screen, terminal = pty.openpty()
    process = subprocess.Popen([tool], env={**os.environ, "TERM": "xterm"}, stdin=terminal, stdout=terminal,
                               stderr=terminal, start_new_session=True)
    os.close(terminal)
    try:
        threading.Thread(target=read_all, args=(screen,), daemon=True).start()
        yield
        if process.poll() is not None:
            raise Missing(f"{tool.name} has ended [exit {process.returncode}]")
    finally:
        end(process)


def read_all(fd):
    with contextlib.suppress(OSError):  # The other end is closed.
        while os.read(fd, 65536):
            pass
    os.close(fd)


def parsed(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def mca(text):
    """Open MPI's parameters from names and values in turns."""
    words = text.split()
    return [word for pair in zip(words[::2], words[1::2]) for word in ("--mca", *pair)]


class Bench:
    """What the sources of results share."""

    def __init__(self, options):
        self.build = options.build
        self.openmpi = options.openmpi
        self.component = options.component
        self.output = options.output
        self.quick = options.quick
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.built = {}

    def arguments(self, job):
        words = [job.get("program_group", job["group"]), "--ms", str(3 if self.quick else job.get("ms", 25)),
                 "--memory", job.get("memory", "malloc"), "--processes", str(job.get("processes", 2)),
                 "--limit", str(JOB_LIMIT_S - 10)]
        points = job.get("quick_points" if self.quick else "points")
        return words + (["--points", ",".join(str(int(point)) for point in points)] if points else [])

    # ---- Ours and the machine ------------------------------------------------------------------------------------

    def program(self, job):
        return parsed(run([self.build / "bin" / f"compare_{job['api']}", *self.arguments(job)], self.allocator(job)))

    # Who looks on while messages are sent, and what the environment of the processes has for it.
    ONLOOKERS = {"alone": {}, "last steps recorded": {"PORTOFU_RECORD": "last"},
                 "all steps traced": {"PORTOFU_RECORD": "DIRECTORY"}, "ptl_top attached": {},
                 "checked": {"PORTOFU_CHECK": "DIRECTORY/findings"}}
    ONLOOKED = ("put, non-matching, counter", "put, matching, event")

    def onlookers(self, job):
        """Two series of our program, whose names say who looks on."""
        who = job["onlooker"]
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            environment = {name: value.replace("DIRECTORY", directory)
                           for name, value in self.ONLOOKERS[who].items()}
            watch = watching if who.startswith("ptl_top") else contextlib.nullcontext
            with watch(self.build / "bin" / "ptl_top"):
                results = parsed(run([self.build / "bin" / "compare_portals", *self.arguments(job)], environment))
        return [{**result, "what": f"{result['what']}, {who}"} for result in results if result["what"] in self.ONLOOKED]

    def allocator(self, job):
        """What makes all of malloc memory that both sides map, if the job wants that."""
        if job.get("memory") != "shared":
            return {}
        library = self.build / "lib" / SHARED_ALLOCATOR
        if not library.exists():
            raise Missing(f"there is no {SHARED_ALLOCATOR} in this build", may_pass=False)
        return {"LD_PRELOAD": str(library)}

    def uct(self, job):
        """Our program for UCT, over the component that is preloaded."""
        environment = self.preloaded_component(job)
        binary = self.compiled("uct", ["c++"], ("uct.cpp", "world.h", "options.h"), ["-luct", "-lucs"])
        return parsed(run([binary, *self.arguments(job)], environment))

    def preloaded_component(self, job):
        """What loads the UCT component `utofu`; any other allocator has to come first."""
        if self.component is None or not self.component.exists():
            raise Missing("there is no UCT component; ./run bench builds it", may_pass=False)
        preload = [*self.allocator(job).values(), str(self.component)]
        return {"LD_PRELOAD": " ".join(preload), "UCX_TLS": "utofu,self", "UCX_WARN_UNUSED_ENV_VARS": "n"}

    def threads(self, job):
        """Threads of two processes beside as many processes, a core each as far as there are enough."""
        most = len(os.sched_getaffinity(0)) // 2
        points = [point for point in THREADS if point <= max(most, 2)]
        words = [job["api"], "--ms", str(3 if self.quick else 25), "--limit", str(JOB_LIMIT_S - 10), "--points",
                 ",".join(str(point) for point in (points[:2] if self.quick else points))]
        return parsed(run([self.build / "bin" / "compare_threads", *words]))

    # ---- MPI -------------------------------------------------------------------------------------------------------

    def mpi_program(self, compiler):
        """The path of the MPI program, compiled once with each MPI."""
        name = "-".join(["mpi", *Path(compiler).parts[-3:]]).replace("/", "")
        return self.compiled(name, [compiler], ("mpi.cpp", "world.h", "options.h"), [])

    def compiled(self, name, compiler, sources, libraries):
        """The path of a program whose first source is compiled when one of its sources is newer."""
        if name not in self.built:
            binary = self.output / "bin" / name
            binary.parent.mkdir(parents=True, exist_ok=True)
            newest = max((HERE / source).stat().st_mtime for source in sources)
            if not binary.exists() or binary.stat().st_mtime < newest:
                run([*compiler, "-std=c++20", "-O3", HERE / sources[0], "-o", binary, *libraries], limit_s=120)
            self.built[name] = binary
        return self.built[name]

    def mpi(self, job):
        """As lib/openmpi.md says ("mpi portals4"), Debian's over our provider ("mpi ofi"), or over a peer's own transport.
        None but the told one knows that there are more processes than cores."""
        api, processes = job["api"], job.get("processes", 2)
        environment = {"OMPI_MCA_hwloc_base_binding_policy": "none", **SHARED_MEMORY_UCX}
        if os.geteuid() == 0:
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        slots = ["--oversubscribe"] if api == "ob1 told" else ["--host", f"localhost:{processes}"]
        if api == "mpich":
            words = ["mpirun.mpich", "-np", str(processes), self.mpi_program("mpicxx.mpich")]
        elif api == "openmpi ucx":
            words = ["mpirun.openmpi", *slots, "-np", str(processes),
                     *mca("pml ucx pml_ucx_tls any pml_ucx_devices any"), self.mpi_program("mpicxx.openmpi")]
        elif api == "openmpi utofu":
            preloads = [word for item in self.preloaded_component(job).items() for word in ("-x", "=".join(item))]
            words = ["mpirun.openmpi", *slots, *preloads, "-np", str(processes),
                     *mca("pml ucx osc ucx pml_ucx_tls any pml_ucx_devices any"), self.mpi_program("mpicxx.openmpi")]
        elif api == "mpi ofi":
            environment |= self.provider("portofu")
            words = ["mpirun.openmpi", *slots, "-x", "FI_PROVIDER_PATH", "-np", str(processes),
                     *mca("pml cm mtl ofi mtl_ofi_provider_include portofu"), self.mpi_program("mpicxx.openmpi")]
        else:
            if not self.openmpi:
                raise Missing("no Open MPI was named")
            environment["LD_LIBRARY_PATH"] = str(self.build / "lib")
            way = ("pml cm mtl portals4" if api == "mpi portals4" else
                   "pml ob1 btl self,vader osc ^portals4 coll ^portals4")
            preloads = [word for item in self.allocator(job).items() for word in ("-x", "=".join(item))]
            words = [self.openmpi / "bin" / "mpirun", *slots, *preloads, "-np", str(processes),
                     *mca(way), self.mpi_program(str(self.openmpi / "bin" / "mpicxx"))]
        return parsed(run([*words, *self.arguments(job)], environment))

    # ---- UCX and libfabric -------------------------------------------------------------------------------------------

    def labelled(self, measure):
        """Results of a program that cannot measure the bouncing line itself, measured again when the cores move."""
        results = []
        for _ in range(3):
            line = [parsed(run([self.build / "bin" / "compare_raw", "line"]))[-1]["line_ns"][1]]
            found = measure()
            line.append(parsed(run([self.build / "bin" / "compare_raw", "line"]))[-1]["line_ns"][0])
            label = stats.label_of(*line)
            results += [{"label": label, "line_ns": line, "memory": "malloc", **result} for result in found]
            if label != "dropped":
                break
        return results

    # Tests of ucx_perftest for each group, the names of their series, and about how long one operation takes beside its
    # bytes, in microseconds.
    UCX_TESTS = {
        "latency": [("ucp_put_lat", "put", 0.2), ("ucp_am_lat", "active message", 0.3), ("tag_lat", "tagged", 0.3)],
        "rate": [("ucp_put_bw", "put", 0.02), ("ucp_am_bw", "active message", 0.2), ("tag_bw", "tagged", 0.2)],
        "bandwidth": [("ucp_put_bw", "put", 1), ("ucp_am_bw", "active message", 1), ("tag_bw", "tagged", 1)],
        "atomic": [("ucp_fadd", "fetch-add", 0.1)]}

    def ucx(self, job):
        """One batch for each test, between two measurements of the bouncing line. The half round trip of a put into
        polled memory stands before and after each point, to see whether the cores moved meanwhile."""
        group, budget_s = job["group"], 0.003 if self.quick else job.get("ms", 25) / 1e3
        points = job["quick_points" if self.quick else "points"]
        results = []
        for test, what, fixed_us in self.UCX_TESTS[group]:
            lines = [self.UCX_PUT]
            for point in points:
                size = point if group in ("latency", "bandwidth") else 8
                if size < 8 and "put" in test:
                    continue
                count = max(2, int(budget_s / (fixed_us * 1e-6 + size / 2e10)))
                window = f" -O {point}" if group == "rate" else ""
                lines += [f"{point} -t {test} -s {size} -n {count} -w {count // 10 + 1}{window}\n", self.UCX_PUT]
            results += self.labelled(lambda: self.ucx_batch(group, what, lines))
        return results

    UCX_PUT = "put -t ucp_put_lat -s 8 -n 3000 -w 100\n"

    def ucx_batch(self, group, what, lines):
        batch = self.output / "ucx.batch"
        batch.write_text("".join(lines))
        port = free_port()
        common = ["-p", str(port), "-b", str(batch)]
        here, there = self.cpus[0], self.cpus[-1]
        text = run_pair(["ucx_perftest", "-c", str(there), *common],
                        ["ucx_perftest", "localhost", "-c", str(here), *common, "-f", "-v"], port, SHARED_MEMORY_UCX)
        rows = [words for words in (line.split(",") for line in text.splitlines()) if len(words) == 9]
        rows = [words for words in rows if words[0] == "put" or words[0].isdigit()]
        if len(rows) != len(lines):
            raise Missing(f"ucx_perftest printed {len(rows)} results of {len(lines)}: {last_words(text)}")
        results = []
        for before, words, after in zip(rows[::2], rows[1::2], rows[2::2]):
            microseconds, megabytes, messages = float(words[4]), float(words[6]), float(words[8])
            value, unit = {"rate": (messages / 1e6, "M/s"),
                           "bandwidth": (megabytes * 1048576 / 1e9, "GB/s")}.get(group, (microseconds, "us"))
            stood = stats.agree([float(row[4]) for row in (rows[0], before, after, rows[-1])])
            results.append({"what": what, "x": float(words[0]), "value": value, "unit": unit, "memory": "mapped",
                            **({} if stood else {"label": "dropped"})})
        return results

    def provider(self, name):
        """What makes libfabric find a provider, and our program use it."""
        return {"FI_PROVIDER_PATH": str(self.build / "lib" / "libfabric"), "COMPARE_PROVIDER": name}

    def libfabric(self, job):
        """Our program over the provider that the job names."""
        return parsed(run([self.build / "bin" / "compare_libfabric", *self.arguments(job)],
                          self.provider(job["api"].split()[1])))

    def pingpong(self, job):
        """libfabric's own program over the provider that the job names."""
        name = job["api"].split()[1]
        results = []
        for point in job["quick_points" if self.quick else "points"]:
            count = 100 if self.quick else max(20, int(0.03 / (0.4e-6 + point / 5e9)))
            results += self.labelled(lambda: self.fi_pingpong(name, point, count))
        return results

    def fi_pingpong(self, name, size, count):
        port = free_port()
        common = ["-p", name, "-e", "rdm", "-m", "tagged", "-I", str(count), "-S", str(size)]
        here, there = (["taskset", "-c", str(cpu), "fi_pingpong", *common] for cpu in (self.cpus[0], self.cpus[-1]))
        text = run_pair([*there, "-B", str(port)], [*here, "-P", str(port), "localhost"], port, self.provider(name))
        words = text.splitlines()[-1].split() if text else []
        if len(words) != 8:
            raise Missing(f"fi_pingpong printed no result: {last_words(text)}")
        return [{"what": "fi_pingpong", "x": size, "value": float(words[6]), "unit": "us"}]


LATENCY = [0, 8, 64, 1024, 8192, 65536, 1 << 20, 4 << 20]
WINDOWS = [1, 4, 16, 64, 256]
THREADS = [1, 2, 4, 8]
FLAGGED = [8, 64, 512, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20]
BANDWIDTH = [4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20]


def jobs():
    """Every job of a round, in order: which function of Bench runs it, and with what."""
    pair = ["mpi portals4", "ob1", "openmpi ucx", "mpich"]

    def over_mpi(group, apis, **more):
        return [{"group": group, "api": api, "by": "mpi", **more} for api in apis]

    def ours(group, apis=("raw", "portals", "utofu"), **more):
        return [{"group": group, "api": api, "by": "program", **more} for api in apis]

    latency = {"points": LATENCY, "quick_points": [8, 1024], "ms": 12}
    windows = {"points": WINDOWS, "quick_points": [64]}
    few = {"points": [8, 1024, 65536], "quick_points": [8]}
    sizes = {"points": BANDWIDTH, "quick_points": [65536], "ms": 30}
    yield from ours("latency", **latency)
    yield from ours("latency", ["raw"], program_group="kernel")
    yield from ours("latency", ["utofu"], **latency, memory="shared")
    yield from over_mpi("latency", pair, **latency)
    yield {"group": "latency", "api": "ucx", "by": "ucx", **latency}
    for provider in ("libfabric portofu", "libfabric shm"):
        yield {"group": "latency", "api": provider, "by": "libfabric", **few, "ms": 12}
        yield {"group": "latency", "api": provider, "by": "pingpong", **few}
    yield from over_mpi("latency", ["mpi ofi"], **few, ms=12, rounds=3)
    flagged = {"points": FLAGGED, "quick_points": [8, 65536], "ms": 8, "rounds": 5}
    for memory in ("malloc", "shared"):
        yield from ours("flagged", ["utofu"], **flagged, memory=memory)
        yield {"group": "flagged", "api": "uct utofu", "by": "uct", **flagged, "memory": memory}
    yield from over_mpi("flagged", ["openmpi utofu"], **flagged)
    yield from ours("match", ["portals"])
    yield from ours("rate", ["portals", "utofu"], **windows)
    yield from ours("rate", ["utofu"], **windows, memory="shared")
    yield from over_mpi("rate", pair, **windows)
    yield {"group": "rate", "api": "ucx", "by": "ucx", **windows}
    for provider in ("libfabric portofu", "libfabric shm"):
        yield {"group": "rate", "api": provider, "by": "libfabric", **windows}
    yield from over_mpi("rate", ["mpi ofi"], points=[64], quick_points=[64], rounds=3)
    yield from ours("bandwidth", **sizes)
    yield from ours("bandwidth", ["portals", "utofu"], **sizes, memory="shared")
    yield from over_mpi("bandwidth", pair, **sizes)
    yield {"group": "bandwidth", "api": "ucx", "by": "ucx", **sizes}
    yield from ours("atomic")
    yield from ours("atomic", ["portals", "utofu"], memory="shared")
    yield from over_mpi("atomic", ["mpi portals4", "ob1", "mpich"])
    yield from over_mpi("atomic", ["mpi portals4"], memory="shared")
    yield {"group": "atomic", "api": "ucx", "by": "ucx", "points": [8], "quick_points": [8]}
    yield from ours("overlap", ["portals", "utofu"])
    yield from over_mpi("overlap", ["mpi portals4", "ob1", "mpich"])
    yield from ours("bypass", ["portals", "utofu"])
    for processes in (2, 4, 8):
        yield from ours("barrier", ["portals", "utofu"], processes=processes)
    for processes in (2, 4, 8, 16):
        yield from over_mpi("many", ["mpi portals4", "ob1", "ob1 told", "mpich"], processes=processes, ms=50)
        if processes > 2:
            yield from over_mpi("many", ["mpi ofi"], processes=processes, ms=50, rounds=3)
    yield from ours("idle", ["portals"], processes=9, ms=1500, rounds=3)
    yield from over_mpi("idle", ["mpi portals4"], processes=9, ms=10000, rounds=1)
    yield from over_mpi("idle", ["ob1", "mpich"], processes=9, ms=1500, rounds=1)
    yield from ours("memory", ["portals"], processes=64, rounds=1)
    yield from ours("flood", ["portals"], processes=4)
    for api in ("portals", "utofu"):
        yield {"group": "threads", "api": api, "by": "threads"}
    for onlooker in Bench.ONLOOKERS:
        for program_group, point in (("latency", 8), ("rate", 64)):
            yield {"group": "onlookers", "program_group": program_group, "api": "portals", "by": "onlookers",
                   "onlooker": onlooker, "points": [point], "quick_points": [point]}


def machine():
    """A line of text about where this was measured."""
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"{model}, {cores} cores, Linux {platform.release()}, load {load:.1f}, {time.strftime('%Y-%m-%d %H:%M')}"


class Failures:
    """Why a job has no results, by (group, name of the series). After the second time, or when trying again cannot
    help, the job is not started any more."""

    def __init__(self):
        self.reasons, self.counts = {}, {}

    def add(self, key, reason):
        self.counts[key] = self.counts.get(key, 0) + (1 if reason.may_pass else 2)
        self.reasons[key] = str(reason)

    def hopeless(self, key):
        return self.counts.get(key, 0) >= 2


@contextlib.contextmanager
def turn(lock):
    """Holds a lock that builds on the same machine may hold, too."""
    if lock is None:
        yield
        return
    with open(lock, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def has_time(number, used_s, left_s):
    """Whether round `number` is begun: the first FEWEST_ROUNDS are, a later one if it is likely to end in time."""
    return number <= FEWEST_ROUNDS or used_s / (number - 1) <= left_s


def measure(bench, chosen, rounds, limit_s, wanted_s, lock):
    """Rounds of all jobs. @return results, reasons of what is missing by (group, name)
    @param limit_s   seconds after which nothing more is started
    @param wanted_s  seconds for which whole rounds are begun"""
    results, failures, left = [], Failures(), limit_s
    for number in range(1, rounds + 1):
        used = limit_s - left
        if not has_time(number, used, wanted_s - used):
            print(f"    {number - 1} rounds: with another one all would not be done within {ALL_DONE_S} s",
                  file=sys.stderr)
            break
        with turn(lock):
            for job in chosen:
                name = job["api"] + (f" in {job['memory']} memory" if "memory" in job else "")
                if failures.hopeless((job["group"], name)) or number > job.get("rounds", rounds):
                    continue
                if left < 0:
                    failures.reasons["everything", "all"] = f"out of time in round {number} of {rounds}"
                    return results, failures.reasons
                began = time.monotonic()
                outcome = ""
                try:
                    found = [{"group": job["group"], "api": job["api"], "round": number, **result}
                             for result in getattr(bench, job["by"])(job)]
                    results += found + stats.as_bandwidths(found)
                except Missing as reason:
                    failures.add((job["group"], name), reason)
                    outcome = f" - {reason}"
                seconds = time.monotonic() - began
                left -= seconds
                print(f"    round {number} of {rounds}: {job['group']}, {name}: {seconds:.1f} s{outcome}",
                      file=sys.stderr)
    return results, failures.reasons


def main():
    everything = list(jobs())
    names = list(dict.fromkeys(job["group"] for job in everything))
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"all, or some of: {' '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="one short round: shows that everything works")
    parser.add_argument("--rounds", type=int,
                        help=f"default: {MOST_ROUNDS}, or fewer, down to {FEWEST_ROUNDS}, to be done in ten minutes")
    parser.add_argument("--only", default=".", metavar="REGEX", help="APIs whose names match")
    parser.add_argument("--limit", type=float, default=450, help="seconds of measuring after which no more is started")
    parser.add_argument("--keep", metavar="MACHINE", help="keep the medians in benchmarks/results, under this name")
    parser.add_argument("--lock", type=Path, help="file to lock for each round, so that builds can take turns with it")
    parser.add_argument("--spent", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--openmpi", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--component", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.groups) - set(names)
    if unknown:
        parser.error(f"no such group: {' '.join(sorted(unknown))}; there are: {' '.join(names)}")
    if options.keep and (options.quick or not re.fullmatch(r"[a-z0-9-]+", options.keep)):
        parser.error("--keep needs a name of small letters, digits and dashes, and no --quick")
    options.output.mkdir(parents=True, exist_ok=True)
    chosen = [job for job in everything
              if job["group"] in (options.groups or names) and re.search(options.only, job["api"])]
    where = machine() + (", quick: the numbers mean little" if options.quick else "")
    rounds = 1 if options.quick else options.rounds or MOST_ROUNDS
    wanted_s = options.limit if options.rounds else ALL_DONE_S - options.spent
    results, missing = measure(Bench(options), chosen, rounds, options.limit, wanted_s, options.lock)
    report.write(options.output, where, results, missing, options.keep)


if __name__ == "__main__":
    main()
