"""The targets, each a ratio of medians of the same run or a bound of its own."""

from dataclasses import dataclass, field

import stats


@dataclass
class Series:
    """Where a number stands. `x` is None for the point of the row, "best" for the best of all points."""
    group: str
    api: str
    what: str
    x: object = None
    memory: object = None  # None: whatever was measured.


@dataclass
class Target:
    """kind "cost": ours is at most `bound` times the best reference, or that and `allowance`; "gain": ours is at least `bound` times as fast;
    "absolute": ours is at most `bound`. With several points the worst one counts."""
    text: str
    ours: Series
    kind: str
    bound: float
    references: list = field(default_factory=list)
    points: tuple = (None,)
    scale: float = 1  # Of the reference.
    allowance: float = 0


SIZES = tuple(float(1 << shift) for shift in range(14, 27, 2))
LONG = tuple(float(1 << shift) for shift in range(16, 23, 2))
LINE = Series("latency", "raw", "bouncing line", 8)
UCX_PUT = Series("latency", "ucx", "put", 8)
MPI_PEERS = ("ob1", "openmpi ucx", "mpich")


def mpi_peers(group, x=None):
    return [Series(group, api, "send", x) for api in MPI_PEERS]


def onlooked(who):
    """Half round trip and rate while somebody looks on."""
    return (Series("onlookers", "portals", f"put, non-matching, counter, {who}", 8),
            Series("onlookers", "portals", f"put, matching, event, {who}", 64))


def all_targets():
    for way in ("put", "piggyback"):
        mapped = Series("latency", "utofu", f"{way}, memory polled", 8, "shared")
        yield Target(f"uTofu {way} 8 B into mapped memory, polled: bouncing line", mapped, "cost", 1.3, [LINE])
        yield Target(f"uTofu {way} 8 B into mapped memory, polled: UCX put", mapped, "gain", 1, [UCX_PUT])
    for way in ("put", "piggyback"):
        yield Target(f"uTofu {way} 8 B into any memory, target not calling: kernel's write of 8 B",
                     Series("latency", "utofu", f"{way}, memory polled", 8, "malloc"), "cost", 1.2,
                     [Series("latency", "raw", "process_vm_writev", 8)])
    yield Target("Portals put 8 B, counter, non-matching: UCX active message",
                 Series("latency", "portals", "put, non-matching, counter", 8, "malloc"), "gain", 1.2,
                 [Series("latency", "ucx", "active message", 8)])
    yield Target("Portals put 8 B, event, matching, 1000 entries: UCX tagged, ob1",
                 Series("match", "portals", "put 8 B, entries posted", 1000), "gain", 1.2,
                 [Series("latency", "ucx", "tagged", 8), Series("latency", "ob1", "send", 8)])
    yield Target("Portals rate 8 B, window 64, matching, event: best tagged rate",
                 Series("rate", "portals", "put, matching, event", 64, "malloc"), "gain", 1.5,
                 [Series("rate", "ucx", "tagged", 64), *mpi_peers("rate", 64)])
    yield Target("uTofu put rate 8 B into mapped memory: UCX put",
                 Series("rate", "utofu", "put, TCQ notice of the last", "best", "shared"), "gain", 1,
                 [Series("rate", "ucx", "put", "best")])
    for group, x, name in (("latency", 8, "half round trip"), ("rate", 64, "rate, window 64")):
        yield Target(f"MPI 8 B {name}: best MPI", Series(group, "mpi portals4", "send", x), "gain", 1,
                     mpi_peers(group, x))
    for what in ("tagged", "fi_pingpong"):
        yield Target(f"libfabric 8 B half round trip, {what}: provider shm",
                     Series("latency", "libfabric portofu", what, 8), "gain", 2,
                     [Series("latency", "libfabric shm", what, 8)])
    yield Target("libfabric tagged rate, window 64: provider shm",
                 Series("rate", "libfabric portofu", "tagged", 64), "gain", 3,
                 [Series("rate", "libfabric shm", "tagged", 64)])
    for group, x, name, kind, bound in (("latency", 8, "half round trip", "cost", 0.75),
                                        ("rate", 64, "rate, window 64", "gain", 2)):
        yield Target(f"MPI 8 B {name} over our provider: over portals4", Series(group, "mpi ofi", "send", x), kind, bound,
                     [Series(group, "mpi portals4", "send", x)])
    for what in ("barrier", "allreduce"):
        yield Target(f"MPI {what}, 4, 8, 16 processes, over our provider: over portals4",
                     Series("many", "mpi ofi", what), "gain", 2, [Series("many", "mpi portals4", what)],
                     (4.0, 8.0, 16.0))
    for place, memory in (("any", "malloc"), ("mapped", "shared")):
        raw, uct = (Series("flagged", api, "data, flag", None, memory) for api in ("utofu", "uct utofu"))
        yield Target(f"UCT data, flag, 8 B, {place} memory: uTofu, or 0.1 us more", uct, "cost", 1.1, [raw], (8.0,),
                     allowance=0.1)
        yield Target(f"UCT data, flag, 64 KiB to 4 MiB, {place} memory: uTofu", uct, "cost", 1.03, [raw], LONG)
    copies = [Series("bandwidth", "raw", f"two copies pipelined, ring of {ring}") for ring in ("8 KiB", "1 MiB")]
    for api, what in (("mpi portals4", "send"), ("portals", "put")):
        ours = Series("bandwidth", api, what, None, "malloc")
        yield Target(f"{api} bandwidth, 16 KiB to 64 MiB: best peer without mapped memory", ours, "gain", 2.5,
                     [*mpi_peers("bandwidth"), Series("bandwidth", "ucx", "tagged"),
                      Series("bandwidth", "ucx", "active message")], SIZES)
        yield Target(f"{api} bandwidth, 16 KiB to 64 MiB: two copies pipelined", ours, "gain", 0.8, copies, SIZES)
    # As with ucx_perftest and a memcpy, the target is told nothing; the initiator hears of the last one.
    for api, what in (("portals", "put, ACK of the last"), ("utofu", "put, TCQ notice of the last")):
        ours = Series("bandwidth", api, what, None, "shared")
        yield Target(f"{api} bandwidth into mapped memory: one memcpy", ours, "gain", 0.9,
                     [Series("bandwidth", "raw", "one memcpy")], SIZES)
        yield Target(f"{api} bandwidth into mapped memory: UCX put", ours, "gain", 1,
                     [Series("bandwidth", "ucx", "put")], SIZES)
    for api, silent, what in (("portals", "fetch-add, target not told", "fetch-add"), ("utofu", "ARMW add", "ARMW add")):
        yield Target(f"{api} fetch-add 8 B in mapped memory: UCX", Series("atomic", api, silent, 8, "shared"), "gain",
                     1, [Series("atomic", "ucx", "fetch-add", 8)])
        yield Target(f"{api} fetch-add 8 B in any memory: round trip of the bouncing line",
                     Series("atomic", api, what, 8, "malloc"), "cost", 2.5, [LINE], scale=2)
    for what in ("put 8 B, entries posted", "append, unexpected headers"):
        yield Target(f"{what}: 10 000 against 1", Series("match", "portals", what, 10000), "cost", 1.5,
                     [Series("match", "portals", what, 1)])
    for what in ("hop of a ring", "all-to-all", "barrier", "allreduce"):
        for peers, apis in (("best MPI, nobody told", ("ob1", "mpich")), ("Open MPI that is told", ("ob1 told",))):
            yield Target(f"MPI {what}, 4, 8, 16 processes: {peers}", Series("many", "mpi portals4", what), "gain", 1.2,
                         [Series("many", api, what) for api in apis], (4.0, 8.0, 16.0))
    for api, what in (("portals", "PtlCTWait"), ("portals", "PtlEQWait"), ("mpi portals4", "MPI_Recv")):
        yield Target(f"CPU of 8 processes in {what} in 10 s, ms", Series("idle", api, what, 8), "absolute", 10)
    for api, what in (("portals", "put, acknowledged"), ("utofu", "put, local notice")):
        for rest, bound in (("a core free, median", 30), ("all cores busy, 99 %", 1000)):
            yield Target(f"{api} put 8 B to a target that computes, {rest}, us",
                         Series("bypass", api, f"{what}, {rest}", 8), "absolute", bound)
    yield Target("shared memory a process, 64 that all talk to each other, MiB",
                 Series("memory", "portals", "process that talks to so many", 63), "absolute", 4)
    for api, what in (("portals", "put, event"), ("utofu", "put, MRQ notice")):
        ours, others = (Series("threads", api, f"{what}, {who}") for who in ("threads", "processes"))
        yield Target(f"{api} put 8 B, 2 to 8 threads a side, half round trip: as many processes", ours, "cost", 1.25,
                     [others], (2.0, 4.0, 8.0))
        ours, others = (Series("threads", api, f"{what}, {who}, rate") for who in ("threads", "processes"))
        yield Target(f"{api} put 8 B, 2 to 8 threads a side, rate: as many processes", ours, "gain", 0.9, [others],
                     (2.0, 4.0, 8.0))
    yield Target("utofu put 8 B, 2 to 8 threads that share a VCQ, rate: one thread",
                 Series("threads", "utofu", "put, threads that share a VCQ, rate"), "gain", 0.7,
                 [Series("threads", "utofu", "put, TCQ notices, processes, rate", 1)], (2.0, 4.0, 8.0))
    for place in ("shared memory", "fabric"):
        ours, alone = (Series("flood", "portals", f"round trips, {place}, {how}", 512)
                       for how in ("beside a flood", "alone"))
        yield Target(f"portals round trips of two beside a flood of a stuck third, {place}: alone", ours, "gain", 0.9,
                     [alone])
    alone, rate_alone = onlooked("alone")
    for who, part in (("last steps recorded", 0.02), ("ptl_top attached", 0.01)):
        ours, rate = onlooked(who)
        yield Target(f"Portals put 8 B, half round trip, {who}: alone", ours, "cost", 1 + part, [alone])
        yield Target(f"Portals rate 8 B, window 64, {who}: alone", rate, "gain", 1 - part, [rate_alone])
    yield Target("Portals put 8 B, half round trip, all steps traced: alone, or 0.1 us more",
                 onlooked("all steps traced")[0], "cost", 1, [alone], allowance=0.1)


def is_rate(unit):
    return unit.endswith("/s")


class Table:
    """Judges every target by what was measured."""

    def __init__(self, summary, missing):
        self.summary = summary
        self.missing = missing

    def find(self, series, x, label):
        """(median, unit) of a series at a point, or None."""
        wanted = x if series.x is None else series.x
        found = []
        for key in self.summary.keys():
            if key[:3] == (series.group, series.api, series.what) and (series.memory in (None, key[3])) \
                    and wanted in ("best", key[4]):
                value = self.summary.median(key, label)
                if value is not None:
                    found.append((value, self.summary.units[key]))
        if not found:
            return None
        return max(found) if is_rate(found[0][1]) else min(found)

    def at(self, target, x, label):
        """(how far from the target: 1 is just met, more is better; ours, best reference, its name, ratio), or None."""
        ours = self.find(target.ours, x, label)
        if ours is None:
            return None
        value, unit = ours
        if target.kind == "absolute":
            return target.bound / max(value, 1e-9), value, None, "", None
        found = [(reference[0] * target.scale, series) for series in target.references
                 for reference in [self.find(series, x, label)] if reference]
        if not found:
            return None
        best, series = (max if is_rate(unit) else min)(found, key=lambda pair: pair[0])
        name = series.api if series.api != "raw" else series.what
        if target.kind == "cost":
            ratio = value / best
            allowed = max(target.bound * best, best + target.allowance if target.allowance else 0)
            return allowed / value, value, best, name, ratio
        ratio = value / best if is_rate(unit) else best / value
        return ratio / target.bound, value, best, name, ratio

    def judged(self, everything=False):
        """Rows of (text, label, point, ours, best reference, its name, ratio, bound in words, verdict, closeness), where
        the last is 1 if the target is just met, more if better, and None if there is no number.
        @param everything  also targets of groups that nobody wanted to measure"""
        groups = {key[0] for key in self.summary.keys()} | {group for group, _ in self.missing}
        for target in all_targets():
            if target.ours.group not in groups and not everything:
                continue
            said, shown = 0, {"cost": "at most {} x", "gain": "at least {} x", "absolute": "at most {}"}[target.kind]
            for label in stats.LABELS:
                if label == "any" and said:
                    continue
                points = [(self.at(target, x, label), x) for x in target.points]
                points = [(result, x) for result, x in points if result is not None]
                if not points or (label != "any" and self.unlabelled(target)):
                    continue
                (closeness, ours, best, name, ratio), x = min(points, key=lambda pair: pair[0][0])
                lack = 100 * (1 / closeness - 1)
                verdict = "met" if lack <= 0 else f"missed by {max(lack, 1):.0f} %"
                said += 1
                yield (target.text, label, x, ours, best, name, ratio, shown.format(target.bound), verdict,
                       closeness)
            if not said:
                yield (target.text, "", None, None, None, "", None, shown.format(target.bound), self.reason(target),
                       None)

    def unlabelled(self, target):
        keys = [key for key in self.summary.keys() if key[:3] == (target.ours.group, target.ours.api, target.ours.what)]
        return all(self.summary.labels(key) == ["any"] for key in keys)

    def reason(self, target):
        for series in [target.ours, *target.references]:
            for name in (series.api, f"{series.api} in {series.memory} memory"):
                if (series.group, name) in self.missing:
                    return f"missing: {name}"
        return "not measured"
