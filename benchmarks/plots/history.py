"""Runs that were kept, one JSON file per machine and run in benchmarks/results, and how some numbers moved."""

import datetime
import json
from dataclasses import dataclass
from pathlib import Path

import style
from questions import aligned
from svg import Figure, Line, Panel

DIRECTORY = Path(__file__).resolve().parent.parent / "results"
FIELDS = ("text", "label", "x", "ours", "best", "whose", "ratio", "bound", "verdict")


@dataclass(frozen=True)
class Indicator:
    """`series`: (api, what, text of a target); `value` is "ours" or "ratio" of that row."""
    name: str
    title: str
    y_label: str
    value: str
    series: tuple


INDICATORS = (
    Indicator("over-time-latency", "Did messages of 8 bytes become faster?", "half round trip, us", "ours", (
        ("portals", "put, matching, event, 1000 entries",
         "Portals put 8 B, event, matching, 1000 entries: UCX tagged, ob1"),
        ("portals", "put, non-matching, counter", "Portals put 8 B, counter, non-matching: UCX active message"),
        ("utofu", "put into mapped memory, polled", "uTofu put 8 B into mapped memory, polled: UCX put"),
        ("mpi portals4", "send", "MPI 8 B half round trip: best MPI"))),
    Indicator("over-time-rate", "Did more messages of 8 bytes go through?", "million messages a second", "ours", (
        ("portals", "put, matching, event, window 64",
         "Portals rate 8 B, window 64, matching, event: best tagged rate"),
        ("utofu", "put into mapped memory", "uTofu put rate 8 B into mapped memory: UCX put"),
        ("mpi portals4", "send, window 64", "MPI 8 B rate, window 64: best MPI"))),
    Indicator("over-time-bandwidth", "Did long messages of the worst size get closer to the limit?",
              "ratio to the limit", "ratio", (
                  ("portals", "put, of two copies pipelined",
                   "portals bandwidth, 16 KiB to 64 MiB: two copies pipelined"),
                  ("portals", "put into mapped memory, of one memcpy",
                   "portals bandwidth into mapped memory: one memcpy"),
                  ("utofu", "put into mapped memory, of one memcpy", "utofu bandwidth into mapped memory: one memcpy"),
                  ("mpi portals4", "send, of two copies pipelined",
                   "mpi portals4 bandwidth, 16 KiB to 64 MiB: two copies pipelined"))),
)


def keep(directory, name, where, targets, series):
    """Writes a run. One line for each target that was measured and each median: two runs can be compared by eye.
    @param name     of the machine, short
    @param where    machine and date in words
    @param targets  rows as targets.Table.judged() yields them"""
    date = datetime.date.today().isoformat()
    rows = [json.dumps(dict(zip(FIELDS, row))) for row in targets if row[FIELDS.index("ours")] is not None]
    medians = [json.dumps(entry) for entry in series]
    head = json.dumps({"name": name, "date": date, "machine": where})[1:-1]
    body = ",\n".join(f'"{field}": [\n' + ",\n".join(lines) + "\n]"
                      for field, lines in (("targets", rows), ("series", medians)))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{date}-{name}.json"
    path.write_text("{" + head + ",\n" + body + "}\n")
    return path


def load(directory=DIRECTORY):
    """All runs that were kept, oldest first."""
    runs = [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]
    return sorted(runs, key=lambda run: (run["date"], run["name"]))


def points_of(runs, text, label, value):
    """(day, value, value, value) of one target on one machine: a run has no spread here."""
    points = {}
    for run in runs:
        for row in run["targets"]:
            if row["text"] == text and row["label"] == label and row[value] is not None:
                day = datetime.date.fromisoformat(run["date"]).toordinal()
                points[day] = (day, *[row[value]] * 3)
    return sorted(points.values())


def figures(runs):
    """A figure for each indicator, with a panel for each machine and distance."""
    machines = list(dict.fromkeys(run["name"] for run in runs))
    for indicator in INDICATORS:
        figure = Figure(indicator.name, indicator.title, "day", indicator.y_label, x_is="date")
        rows = []
        for machine in machines:
            of_machine = [run for run in runs if run["name"] == machine]
            lines = {label: lines_of(indicator, of_machine, label) for label in ("near", "far")}
            rows.append({label: Panel(f"{machine}, {label}", found) for label, found in lines.items() if found})
        figure.panels = aligned([row for row in rows if row])
        if figure.panels:
            yield figure


def lines_of(indicator, runs, label):
    lines = []
    for i, (api, what, text) in enumerate(indicator.series):
        points = points_of(runs, text, label, indicator.value)
        mark = sum(other[0] == api for other in indicator.series[:i])
        if points:
            lines.append(Line(api, f"{style.look(api).name}: {what}", points, mark))
    return lines
