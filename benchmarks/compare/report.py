"""Tables, JSON and the page of what was measured."""

import json
import sys
from pathlib import Path

import stats
import targets

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "plots"))
import history  # noqa: E402
import page  # noqa: E402
from words import bytes_or_count, number  # noqa: E402


def table(rows, markdown):
    """Rows of cells, the first one the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for i, row in enumerate(rows):
        cells = [cell.rjust(width) if column else cell.ljust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("| " + " | ".join(cells) + " |" if markdown else ("  " + "  ".join(cells)).rstrip())
        if i == 0 and markdown:
            rulers = ["-" * (width + 1) + (":" if column else "-") for column, width in enumerate(widths)]
            lines.append("|" + "|".join(rulers) + "|")
    return "\n".join(lines) + "\n"


def group_tables(summary):
    """(title, rows) per group and label."""
    for group in dict.fromkeys(key[0] for key in summary.keys()):
        keys = [key for key in summary.keys() if key[0] == group]
        units = list(dict.fromkeys(summary.units[key] for key in keys))
        points = sorted({key[4] for key in keys})
        for label in stats.LABELS:
            series = {}
            for key in keys:
                spread = summary.spread(key, label)
                if spread:
                    series.setdefault(key[1:4], {})[key[4]] = spread[1]
            if series:
                head = [f"{group}, {'/'.join(units)}"] + [bytes_or_count(x) for x in points]
                rows = [[f"{api}: {what}" + ("" if memory == "malloc" else f" ({memory})")]
                        + [number(cells.get(x)) for x in points] for (api, what, memory), cells in series.items()]
                yield f"{group}, {label}" if label != "any" else group, [head, *rows]


def target_table(summary, missing):
    rows = [["what", "cores", "ours", "best", "whose", "ratio", "target", ""]]
    for text, label, x, ours, best, name, ratio, bound, verdict, _ in targets.Table(summary, missing).judged():
        text += f" (worst: {bytes_or_count(x)})" if x is not None else ""
        where = "" if label == "any" else label
        rows.append([text, where, number(ours), number(best), name or "-", number(ratio), bound, verdict])
    return rows


def medians(summary):
    for key in summary.keys():
        for label in summary.labels(key):
            least, middle, most, count = summary.spread(key, label)
            yield {**dict(zip(("group", "api", "what", "memory", "x"), key)), "unit": summary.units[key], "label": label,
                   "median": middle, "least": least, "greatest": most, "rounds": count}


def as_json(where, summary, results, missing):
    return json.dumps({"machine": where, "missing": [[*key, why] for key, why in missing.items()],
                       "series": list(medians(summary)), "results": results}, indent=1)


def write(output, where, results, missing, keep_as=None):
    """@param keep_as  name of the machine under which the run is kept in the repository; None: it is not"""
    summary = stats.Summary(results)
    (output / "results.json").write_text(as_json(where, summary, results, missing))
    if keep_as:
        rows = targets.Table(summary, missing).judged()
        print(f"kept as {history.keep(history.DIRECTORY, keep_as, where, rows, medians(summary))}", file=sys.stderr)
    page.write(output, where, summary, list(targets.Table(summary, missing).judged(everything=True)), missing,
               history.load())
    dropped = sum(summary.dropped.values())
    near, far = (sum(result["label"] == label for result in results) for label in ("near", "far"))
    parts = [("Machine", None, f"{where}\n\nMedians of all rounds. near: the cores hand a cache line over in less than "
              f"{stats.NEAR_NS} ns. {near} measurements were near, {far} far, and {dropped} were\ndropped, because the "
              "cores moved apart or together meanwhile."), ("Targets", target_table(summary, missing), None)]
    parts += [(title, rows, None) for title, rows in group_tables(summary)]
    if missing:
        rows = [["what", "why"]] + [[f"{group}: {api}", why] for (group, api), why in missing.items()]
        parts.append(("Missing", rows, None))
    for name, markdown in (("results.txt", False), ("results.md", True)):
        text = ""
        for title, rows, line in parts:
            text += f"{'## ' if markdown else ''}{title}\n\n" + (f"{line}\n" if line else table(rows, markdown)) + "\n"
        (output / name).write_text(text)
    print((output / "results.txt").read_text())
    print(f"The page with the plots is {output / 'index.html'}")
