"""Which plots there are. Each answers one question, with at most style.MOST_LINES series, near beside far. What no
question asks for stands in the plots by API, so that nothing that was measured is lost."""

import re
from dataclasses import dataclass

import style
from svg import Figure, Line, Panel

LABELS = {"near": "near: a line in less than 100 ns", "far": "far: 100 ns or more",
          "any": "near and far not told apart"}

# What the points of a group are; a group that is not here has one point for each series.
POINTS = {"latency": ("bytes", "count"), "rate": ("messages of a window", "count"), "bandwidth": ("bytes", "count"),
          "flagged": ("bytes", "count"), "flagged bandwidth": ("bytes", "count"),
          "match": ("entries or headers", "count"), "many": ("processes", "count"), "barrier": ("processes", "count"),
          "memory": ("peers that a process talks to", "count"),
          "threads": ("threads or processes of each side", "count")}
# What the values are, in words and with their unit.
VALUES = {"latency": "half round trip", "flagged": "half round trip", "match": "time of one", "many": "time of one", "barrier": "time of one",
          "rate": "million messages a second", "atomic": "time of one",
          "overlap": "of the communication hidden", "bypass": "time of a put", "idle": "CPU time in 10 s",
          "flood": "million round trips a second",
          "onlookers": "half round trip, or million messages a second", "memory": "shared memory of a process"}


@dataclass(frozen=True)
class Question:
    """`series`: (api, what, memory), where None as memory is any."""
    name: str
    title: str
    group: str
    series: tuple


def slug(name):
    """A name as part of a file's."""
    return re.sub(r"[^\w]+", "-", name)


def of(what, *apis, memory=None):
    return tuple((api, what, memory) for api in apis)


ONLOOKERS = ("alone", "last steps recorded", "all steps traced", "ptl_top attached", "checked")
MPIS = ("mpi portals4", "ob1", "openmpi ucx", "mpich")
SHORT_MPIS = ("mpi portals4", "mpi ofi", "ob1", "openmpi ucx", "mpich")  # Of what short messages are measured for.
COPY = ("raw", "copy in and out", None)
LINE = ("raw", "bouncing line", None)
RINGS = (("raw", "two copies pipelined, ring of 8 KiB", None), ("raw", "two copies pipelined, ring of 1 MiB", None))

QUESTIONS = (
    Question("latency-portals", "How long does a Portals put take?", "latency",
             (*of("put, matching, event", "portals"), *of("put, non-matching, counter", "portals"),
              *of("tagged", "ucx"), *of("active message", "ucx"), COPY)),
    Question("latency-libfabric", "How long does a tagged message of libfabric take?", "latency",
             (*of("tagged", "libfabric portofu", "libfabric shm", "ucx"),
              *of("fi_pingpong", "libfabric portofu", "libfabric shm"), COPY)),
    Question("latency-utofu-mapped", "How long does a uTofu put into mapped memory take?", "latency",
             (*of("put, memory polled", "utofu", memory="shared"), *of("put", "ucx"), COPY, LINE)),
    Question("latency-utofu", "How long does a uTofu put into any memory take?", "latency",
             (*of("put, MRQ notice", "utofu", memory="malloc"), *of("put, memory polled", "utofu", memory="malloc"),
              *of("put, memory polled, calling", "utofu", memory="malloc"), *of("active message", "ucx"), COPY,
              *of("process_vm_writev", "raw"))),
    Question("latency-mpi", "How long does an MPI message take?", "latency", (*of("send", *SHORT_MPIS), COPY)),
    *(Question(f"{slug(group)}-{place}", f"{title} into {place} memory?", group,
               (*of("data, flag", "utofu", "uct utofu", memory=memory),
                *of("data, flag, short", "utofu", "uct utofu", memory=memory),
                *((("openmpi utofu", "data, flag, locked", None), ("openmpi utofu", "data, flag, flushed", None))
                  if memory == "malloc" else ())))
      for place, memory in (("any", "malloc"), ("mapped", "shared"))
      for group, title in (("flagged", "How long do two puts take, data and a flag,"),
                           ("flagged bandwidth", "How fast are data with a flag behind them,"))),
    Question("match", "Do long lists make a Portals put slower?", "match",
             of("put 8 B, entries posted", "portals") + of("append, unexpected headers", "portals")),
    Question("rate-portals", "How many Portals puts of 8 bytes go through in a second?", "rate",
             (*of("put, matching, event", "portals"), *of("put, non-matching, counter", "portals"),
              *of("tagged", "ucx"), *of("active message", "ucx"))),
    Question("rate-utofu", "How many uTofu puts of 8 bytes go through in a second?", "rate",
             (*of("put, TCQ notice of the last", "utofu", memory="shared"),
              *of("put, TCQ notice of the last", "utofu", memory="malloc"),
              *of("put, MRQ notice", "utofu", memory="malloc"), *of("put", "ucx"))),
    Question("rate-libfabric", "How many tagged messages of libfabric go through in a second?", "rate",
             of("tagged", "libfabric portofu", "libfabric shm", "ucx")),
    Question("rate-mpi", "How many MPI messages of 8 bytes go through in a second?", "rate",
             of("send", *SHORT_MPIS)),
    Question("bandwidth-portals", "How fast are long Portals and uTofu puts into any memory?", "bandwidth",
             (*of("put", "portals", "utofu", memory="malloc"), *of("tagged", "ucx"), *of("active message", "ucx"),
              *RINGS)),
    Question("bandwidth-mapped", "How fast are long puts into mapped memory?", "bandwidth",
             (*of("put, ACK of the last", "portals", memory="shared"),
              *of("put, TCQ notice of the last", "utofu", memory="shared"), *of("put", "ucx"),
              *of("one memcpy", "raw"))),
    Question("bandwidth-mpi", "How fast are long MPI messages?", "bandwidth", (*of("send", *MPIS), *RINGS)),
    Question("bandwidth-both-ways", "How fast are long messages both ways at once?", "bandwidth",
             (*of("put, both ways", "portals", "utofu", memory="malloc"), *of("send, both ways", *MPIS))),
    Question("atomic-mapped", "How long does a fetch-add in mapped memory take?", "atomic",
             (*of("fetch-add, target not told", "portals", memory="shared"), *of("ARMW add", "utofu", memory="shared"),
              *of("fetch-add", "mpi portals4", memory="shared"), *of("fetch-add", "ucx"),
              *of("fetch-add contended", "raw"))),
    Question("atomic-any", "How long does a fetch-add in any memory take?", "atomic",
             (*of("fetch-add", "portals", memory="malloc"), *of("ARMW add", "utofu", memory="malloc"),
              *of("fetch-add", "mpi portals4", memory="malloc"), *of("fetch-add", "ob1", "mpich"))),
    Question("overlap", "How much of 1 MiB moves while the receiver computes?", "overlap",
             (*of("put", "portals", "utofu"), *of("send", "mpi portals4", "ob1", "mpich"))),
    Question("bypass-portals", "How long does a Portals put take to a target that computes?", "bypass",
             tuple(("portals", f"put, acknowledged, {rest}", None) for rest in (
                 "a core free, median", "a core free, 99 %", "all cores busy, median", "all cores busy, 99 %"))),
    Question("bypass-utofu", "How long does a uTofu put take to a target that computes?", "bypass",
             tuple(("utofu", f"put, local notice, {rest}", None) for rest in (
                 "a core free, median", "a core free, 99 %", "all cores busy, median", "all cores busy, 99 %"))),
    Question("barrier", "How long does a barrier without MPI take?", "barrier",
             of("barrier of puts", "portals") + of("barrier of gates", "utofu")),
    *(Question(f"many-{slug(what)}", f"How long does {article} {what} of many MPI processes on two cores take?",
               "many", of(what, "mpi portals4", "mpi ofi", "ob1", "ob1 told", "mpich"))
      for article, what in (("a", "hop of a ring"), ("an", "all-to-all"), ("a", "barrier"), ("an", "allreduce"))),
    Question("idle", "How much CPU do processes use that wait?", "idle",
             (*of("PtlCTWait", "portals"), *of("PtlEQWait", "portals"),
              *of("MPI_Recv", "mpi portals4", "ob1", "mpich"))),
    Question("memory", "How much shared memory does a process need?", "memory",
             of("process that talks to so many", "portals")),
    Question("flood", "Does a flood to a process that is stuck slow others down?", "flood",
             tuple(("portals", f"round trips, {place}, {how}", None) for place in ("shared memory", "fabric")
                   for how in ("alone", "beside a flood"))),
    Question("onlookers", "What does it cost a put when somebody looks on?", "onlookers",
             tuple(("portals", f"put, non-matching, counter, {who}", None) for who in ONLOOKERS)),
    Question("onlookers-rate", "How many puts a second are left when somebody looks on?", "onlookers",
             tuple(("portals", f"put, matching, event, {who}", None) for who in ONLOOKERS)),
    Question("threads", "Do threads of a process slow each other's puts down?", "threads",
             (*of("put, event, threads", "portals"), *of("put, event, processes", "portals"),
              *of("put, MRQ notice, threads", "utofu"), *of("put, MRQ notice, processes", "utofu"))),
    Question("threads-rate", "Do threads of a process put as often as processes?", "threads",
             (*of("put, event, threads, rate", "portals"), *of("put, event, processes, rate", "portals"),
              *of("put, MRQ notice, threads, rate", "utofu"), *of("put, MRQ notice, processes, rate", "utofu"),
              *of("put, threads that share a VCQ, rate", "utofu"),
              *of("put, TCQ notices, processes, rate", "utofu"))),
)


def series_of(summary, group):
    """{(api, what, memory): (unit, {label: points})} of what was measured."""
    found = {}
    for key in summary.keys():
        if key[0] != group:
            continue
        _, by_label = found.setdefault(key[1:4], (summary.units[key], {}))
        for label in summary.labels(key):
            least, middle, most, _ = summary.spread(key, label)
            by_label.setdefault(label, []).append((key[4], middle, least, most))
    return found


def matches(wanted, key):
    return wanted[:2] == key[:2] and wanted[2] in (None, key[2])


def figure_of(name, title, group, chosen, found):
    """The series `chosen` of a group, near beside far; None where there is nothing. All have the unit of the first."""
    units = [found[key][0] for key in chosen]
    if not chosen:
        return None
    x_label, x_is = POINTS.get(group, ("", "none"))
    value = VALUES.get(group)
    figure = Figure(name, title, x_label, f"{value}, {units[0]}" if value and units[0] != "M/s" else value or units[0],
                    x_is=x_is, group=group)
    marks = {}
    for key in chosen:
        marks[key] = sum(other[0] == key[0] for other in marks)
    for label in LABELS:
        lines = [Line(key[0], style.series_name(*key), sorted(found[key][1][label]), marks[key])
                 for key in chosen if label in found[key][1]]
        if lines:
            figure.panels.append(Panel(LABELS[label], lines))
    return figure if figure.panels else None


def asked(summary):
    """A figure for each question that the results can answer, in order. The limits alone are no answer."""
    for question in QUESTIONS:
        found = series_of(summary, question.group)
        chosen = [key for wanted in question.series for key in found if matches(wanted, key)]
        figure = figure_of(question.name, question.title, question.group, chosen[:style.MOST_LINES], found)
        if figure and any(style.look(line.api).kind != style.LIMIT for line in figure.lines()):
            yield figure


def aligned(rows):
    """Panels of rows {label: Panel} for a figure, near under near and far under far."""
    labels = [label for label in LABELS if any(label in row for row in rows)]
    return [row.get(label, Panel("", [])) for row in rows for label in labels]


def by_peer(summary):
    """Small multiples: each question with several peers once more, ours and the limits beside each of them alone."""
    names = {title: label for label, title in LABELS.items()}
    for figure in asked(summary):
        kinds = {line.api: style.look(line.api).kind for line in figure.lines()}
        peers = [api for api, kind in kinds.items() if kind == style.PEER]
        if len(peers) < 2 or style.OURS not in kinds.values() or figure.x_is == "none":
            continue
        rows = []
        for peer in peers:
            rows.append({})
            for panel in figure.panels:
                lines = [line for line in panel.lines if kinds[line.api] != style.PEER or line.api == peer]
                if any(line.api == peer for line in lines):
                    label = names[panel.title]
                    told = "" if label == "any" else f", {label}"
                    rows[-1][label] = Panel(f"beside {style.look(peer).name}{told}", lines)
        yield Figure(f"{figure.name}-peers", f"{figure.title.rstrip('?')}, beside each peer?", figure.x_label,
                     figure.y_label, aligned(rows), figure.x_is)


def by_api(summary):
    """Small multiples: all series of one library in one group, unless the questions show all of them already."""
    shown = {(figure.group, line.name) for figure in asked(summary) for line in figure.lines()}
    for group in dict.fromkeys(key[0] for key in summary.keys()):
        found = series_of(summary, group)
        for api in dict.fromkeys(key[0] for key in found):
            keys = [key for key in found if key[0] == api]
            if all((group, style.series_name(*key)) in shown for key in keys):
                continue
            yield from figures_of_api(group, api, keys, found)


def figures_of_api(group, api, keys, found):
    """In parts of as many lines as one plot may have, as even as can be."""
    parts = -(-len(keys) // style.MOST_LINES)
    size = -(-len(keys) // parts)
    for part in range(parts):
        title = f"{style.look(api).name}: how do its operations compare? ({group}" + (
            f", {part + 1} of {parts})" if parts > 1 else ")")
        name = f"{group}-{slug(api)}-all" + (f"-{part + 1}" if parts > 1 else "")
        figure = figure_of(name, title, group, keys[part * size:(part + 1) * size], found)
        if figure:
            yield figure
