"""The page of a run: its table of targets and all plots in one HTML file, which loads nothing."""

from html import escape

import history
import questions
import style
import svg
from words import bytes_or_count, number

STYLE = """
body { font-family: sans-serif; max-width: 1150px; margin: 1em auto; padding: 0 1em; color: #222; background: #fff; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid #ddd; padding: 3px 8px; text-align: right; }
th:first-child, td:first-child { text-align: left; min-width: 22em; }
.met, .missed, .absent, .target { white-space: nowrap; }
figure { margin: 2em 0; } figure svg { max-width: 100%; height: auto; }
.met { color: #00693e; } .missed { color: #b3261e; } .absent { color: #767676; }
nav { columns: 2; font-size: 14px; } nav ul { margin: 0; padding-left: 1.2em; } nav b { display: block; }
"""
BAR_PIXELS = 60  # Of a target that is just met.
MOST_OF_BAR = 2  # Times as good as the target; what is better is drawn alike.


def spare(closeness):
    """What there is beyond a target that is met. Of one whose number is 0 nobody can say."""
    if closeness > 1e6:
        return ""
    return f", {100 * (closeness - 1):.0f} % to spare" if closeness < 10 else f", {closeness:.0f} times as good"


def verdict_cell(verdict, closeness):
    """Met or missed and by how much, with a bar that reaches its line where the target is just met."""
    if closeness is None:
        return f'<td class="absent">{escape(verdict)}</td><td></td>'
    kind = "met" if verdict == "met" else "missed"
    words = f"{verdict}{spare(closeness)}" if kind == "met" else verdict
    width = BAR_PIXELS * min(closeness, MOST_OF_BAR)
    return (f'<td class="{kind}">{escape(words)}</td><td class="{kind}">'
            f'<svg width="{BAR_PIXELS * MOST_OF_BAR}" height="12">'
            f'<rect y="2" width="{width:.0f}" height="8" fill="currentColor"/>'
            f'<path d="M{BAR_PIXELS} 0V12" stroke="#222222"/></svg></td>')


def target_table(rows):
    """@param rows  as targets.Table.judged() yields them"""
    lines = ["<table><tr><th>what, and what it is compared with</th><th>cores</th><th>ours</th><th>best</th>"
             "<th>whose</th><th>ratio</th><th>target</th><th>met?</th><th></th></tr>"]
    for text, label, x, ours, best, name, ratio, bound, verdict, closeness in rows:
        text += f" (worst: {bytes_or_count(x)})" if x is not None else ""
        cells = [text, "" if label == "any" else label, number(ours), number(best), name or "-", number(ratio)]
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
                     + f'<td class="target">{escape(bound)}</td>{verdict_cell(verdict, closeness)}</tr>')
    return "\n".join(lines) + "</table>"


def summary_of(rows):
    met = sum(row[8] == "met" for row in rows)
    absent = sum(row[9] is None for row in rows)
    return f"{met} met, {len(rows) - met - absent} missed, {absent} not measured."


def how_to_read():
    looks = [f'<b style="color:{look.colour}">{escape(look.name)}</b>' for look in style.LOOKS.values()]
    return ("<p>Each plot has one question as its title. A library has the same colour everywhere: " + ", ".join(looks)
            + ". Ours is thick, a limit of the machine dotted. A mark is the median of all rounds, the thin bar "
            "behind it goes from the least to the greatest value; point at a mark to read them. Axes are logarithmic, "
            "but for days and per cent. Near and far say how long the two cores took to hand over a cache line "
            "meanwhile.</p>")


def contents(sections):
    lines = ['<nav><b><a href="#targets">Targets</a></b>']
    for title, figures in sections:
        entries = "".join(f'<li><a href="#{figure.name}">{escape(figure.title)}</a></li>' for figure in figures)
        lines.append(f"<b>{escape(title)}</b><ul>{entries}</ul>")
    return "\n".join(lines) + "</nav>"


def sections_of(summary, runs):
    """(title, figures) of all that can be drawn."""
    sections = (("Questions", list(questions.asked(summary))), ("Over time", list(history.figures(runs))),
                ("Beside each peer", list(questions.by_peer(summary))),
                ("Everything, by library", list(questions.by_api(summary))))
    return [(title, figures) for title, figures in sections if figures]


def html(where, rows, sections, missing):
    parts = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8"><title>Portofu beside its peers</title>',
             f"<style>{STYLE}</style></head><body>", "<h1>Portofu beside its peers</h1>", f"<p>{escape(where)}</p>",
             contents(sections), how_to_read(), '<h2 id="targets">Targets</h2>',
             f"<p>{summary_of(rows)} The line in the last column is the target: a bar that reaches it is met.</p>",
             target_table(rows)]
    for title, figures in sections:
        parts.append(f"<h2>{escape(title)}</h2>")
        parts += [f'<figure id="{figure.name}">{svg.draw(figure)}</figure>' for figure in figures]
    if missing:
        entries = "".join(f"<li>{escape(f'{group}: {api}: {why}')}</li>" for (group, api), why in missing.items())
        parts.append(f"<h2>Missing</h2><ul>{entries}</ul>")
    return "\n".join([*parts, "</body></html>\n"])


def write(output, where, summary, rows, missing, runs):
    """Writes index.html, and each plot alone into plots/."""
    sections = sections_of(summary, runs)
    (output / "index.html").write_text(html(where, rows, sections, missing))
    plots = output / "plots"
    plots.mkdir(exist_ok=True)
    for old in plots.glob("*.svg"):
        old.unlink()
    for _, figures in sections:
        for figure in figures:
            (plots / f"{figure.name}.svg").write_text(svg.draw(figure))
