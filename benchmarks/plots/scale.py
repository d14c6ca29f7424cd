#!/usr/bin/python3
"""Draws what `machines_scale POWER FILE.json` has written: the time of collective operations by the number of ranks, a
line for each algorithm.

usage: scale.py FILE.json FILE.svg"""

import json
import sys
from pathlib import Path

import svg

PANELS = (("barrier", "utofu", "Barrier of uTofu on tofud"), ("sum", "portals", "Triggered sum of Portals on bxi2"))


def figure_of(measured):
    """@param measured  by panel a list of series, each with its `name` and `points` (ranks, us)"""
    figure = svg.Figure("scale", "How long does a collective operation take, by the number of nodes?", "ranks",
                        "virtual time, us")
    for key, api, title in PANELS:
        lines = [svg.Line(api, f"{svg.style.look(api).name}: {series['name']}",
                          [(ranks, us, us, us) for ranks, us in series["points"]], mark)
                 for mark, series in enumerate(measured[key])]
        figure.panels.append(svg.Panel(title, lines))
    return figure


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    measured = json.loads(Path(arguments[0]).read_text())
    Path(arguments[1]).write_text(svg.draw(figure_of(measured)))


if __name__ == "__main__":
    main(sys.argv[1:])
