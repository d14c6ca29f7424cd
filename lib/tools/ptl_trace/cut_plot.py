#!/usr/bin/env python3
"""Cuts a plot out of a report of ptl_trace, as an SVG of its own.

usage: cut_plot.py REPORT.html timeline|matrix|sizes|depths|waits OUTPUT.svg
"""

import re
import sys
from pathlib import Path


def main():
    report, plot, output = sys.argv[1:]
    page = Path(report).read_text(encoding="utf-8")
    found = re.search(rf'<svg id="{plot}" width="(\d+)" height="(\d+)">(.*?)</svg>', page, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    if not found or not style:
        sys.exit(f"{report} has no plot {plot}")
    width, height, content = found.groups()
    content = re.sub(r"<title>.*?</title>", "", content, flags=re.DOTALL)  # Only shown below a mouse.
    content = re.sub(r"></(rect|line|circle)>", "/>", re.sub(r"(\d)\.00\b", r"\1", content))
    Path(output).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
                            f'<style>{style[1].strip()}</style><rect width="100%" height="100%" fill="#fff"/>'
                            f"{content.strip()}</svg>\n", encoding="utf-8")


if __name__ == "__main__":
    main()
