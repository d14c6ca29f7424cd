"""Tables, JSON and plots of what was measured."""

import json

import stats


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def bytes_or_count(x):
    for size, unit in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if x >= size and x % size == 0:
            return f"{x / size:.0f} {unit}"
    return f"{x:.0f}"


def table(rows, markdown):
    """Rows of cells, the first one the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for i, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("| " + " | ".join(cells) + " |" if markdown else "  " + "  ".join(cells))
        if i == 0 and markdown:
            lines.append("|" + "|".join("-" * (width + 1) + (":" if n else "-") for n, width in enumerate(widths)) + "|")
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


def write(output, where, results, missing):
    summary = stats.Summary(results)
    dropped = sum(summary.dropped.values())
    parts = [("Measured on", None, where), ("Dropped", None, f"{dropped} of {len(results)} measurements, because the "
              "cores moved apart or together meanwhile")]
    parts += [(title, rows, None) for title, rows in group_tables(summary)]
    if missing:
        parts.append(("Missing", [["what", "why"]] + [[f"{group}: {api}", why] for (group, api), why in missing.items()],
                      None))
    for name, markdown in (("results.txt", False), ("results.md", True)):
        text = ""
        for title, rows, line in parts:
            text += f"{'## ' if markdown else ''}{title}\n\n" + (f"{line}\n" if line else table(rows, markdown)) + "\n"
        (output / name).write_text(text)
    (output / "results.json").write_text(json.dumps({"machine": where, "missing": [[*key, why] for key, why in missing.items()], "results": results}))
    print((output / "results.txt").read_text())
