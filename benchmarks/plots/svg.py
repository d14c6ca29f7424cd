"""Draws one figure as SVG: panels side by side over the same axes, and one legend for all of them. The text is text,
the fonts are the reader's, nothing is loaded. What is in a figure, questions.py and history.py decide."""

import datetime
import math
from dataclasses import dataclass, field
from html import escape

import style
from words import bytes_or_count, number

PANEL_WIDTH, PANEL_HEIGHT = 390, 240
LEFT, RIGHT, TOP, BOTTOM = 74, 18, 26, 44  # Of each panel, for labels.
TITLE_HEIGHT, LEGEND_ROW = 30, 20
COLUMNS = 2
CHARACTER, WIDE_CHARACTER = 6.6, 7.2  # Pixels of a letter of 12 pixels, on the average, and in the widest names.
ROW_HEIGHT = 26  # Of a figure of dots.


@dataclass
class Line:
    """One series: points (x, median, least, greatest), sorted. `mark` counts lines of one library in a figure."""
    api: str
    name: str
    points: list
    mark: int = 0


@dataclass
class Panel:
    """One without lines keeps its place free."""
    title: str
    lines: list


@dataclass
class Figure:
    """`x_is`: "count", of bytes, too, is logarithmic, "date" is days; "none" draws a row of dots for each line, with
    the values along x. `y_label` ends in the unit. `group`: of the results; empty if they are not of one."""
    name: str
    title: str
    x_label: str
    y_label: str
    panels: list = field(default_factory=list)
    x_is: str = "count"
    group: str = ""

    def unit(self):
        return self.y_label.rpartition(", ")[2]

    def all_lines(self):
        return [line for panel in self.panels for line in panel.lines]

    def lines(self):
        """One line for each name, for the legend: ours, peers, limits."""
        order = (style.OURS, style.PEER, style.LIMIT)
        return sorted({line.name: line for line in self.all_lines()}.values(),
                      key=lambda line: (order.index(style.look(line.api).kind), line.mark))


# ---- Axes ---------------------------------------------------------------------------------------------------------

class ValueAxis:
    """Logarithmic, from the smallest to the greatest median and some of their spread: one bad round squeezes nothing.
    What is not more than 0 stands at the lower end. Per cent are linear."""

    def __init__(self, lines, length, unit):
        self.length = length
        self.linear = unit == "%"
        points = [point for line in lines for point in line.points if point[1] > 0]
        if self.linear or not points:
            self.low, self.high = 0, max([100] + [point[3] for point in points])
            self.linear = True
            return
        least = max(min(point[1] for point in points) / 2, min(point[2] for point in points))
        most = min(max(point[1] for point in points) * 2, max(point[3] for point in points))
        margin = max(math.log10(most / least) * 0.06, 0.05)
        self.low, self.high = math.log10(least) - margin, math.log10(most) + margin

    def at(self, value):
        """Pixels from the lower end."""
        if not self.linear:
            value = math.log10(value) if value > 0 else self.low
        return self.length * min(max((value - self.low) / (self.high - self.low), 0), 1)

    def ticks(self):
        if self.linear:
            yield from range(0, int(self.high) + 1, 20)
            return
        decades = self.high - self.low
        steps = (1, 1.5, 2, 3, 5, 7) if decades < 0.8 else (1, 2, 5) if decades < 2.5 else (1,)
        for power in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in steps:
                if self.low <= math.log10(step) + power <= self.high:
                    yield step * 10 ** power

    @staticmethod
    def text(value):
        return f"{value:,.0f}".replace(",", " ") if value >= 1000 else number(value)


class PointAxis:
    """Sizes and counts, logarithmic with a place for 0; or days."""

    def __init__(self, lines, length, x_is):
        self.x_is, self.length = x_is, length
        self.values = sorted({point[0] for line in lines for point in line.points}) or [1]
        self.zero = math.log2(min([x for x in self.values if x > 0] or [1])) - 2
        places = [self.place(x) for x in self.values]
        margin = max((places[-1] - places[0]) * 0.03, 0.5)
        self.low, self.high = places[0] - margin, places[-1] + margin

    def place(self, x):
        if self.x_is == "date":
            return x
        return math.log2(x) if x > 0 else self.zero

    def at(self, x):
        return self.length * (self.place(x) - self.low) / (self.high - self.low)

    def ticks(self):
        """Where something was measured, as long as the texts have room."""
        free_from = -math.inf
        for x in self.values:
            half = len(self.text(x)) * CHARACTER / 2 + 3
            if self.at(x) - half >= free_from:
                free_from = self.at(x) + half
                yield x

    def text(self, x):
        if self.x_is == "date":
            return datetime.date.fromordinal(int(x)).strftime("%Y-%m-%d")
        return bytes_or_count(x)


# ---- Marks and lines ------------------------------------------------------------------------------------------------

def mark(kind, x, y, colour, size=4.0):
    fill = "#ffffff" if kind in ("ring", "frame") else colour
    paint = f'fill="{fill}" stroke="{colour}" stroke-width="1.5"'
    if kind in ("circle", "ring"):
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size - 0.5:.1f}" {paint}/>'
    if kind in ("square", "frame"):
        return (f'<rect x="{x - size + 0.8:.1f}" y="{y - size + 0.8:.1f}" width="{2 * size - 1.6:.1f}" '
                f'height="{2 * size - 1.6:.1f}" {paint}/>')
    corners = {"triangle": ((0, -size), (size, size * 0.8), (-size, size * 0.8)),
               "diamond": ((0, -size - 0.5), (size + 0.5, 0), (0, size + 0.5), (-size - 0.5, 0))}[kind]
    return f'<polygon points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)}" {paint}/>'


def stroke(api):
    look = style.look(api)
    dots = f' stroke-dasharray="{style.DOTS}" stroke-linecap="round"' if look.kind == style.LIMIT else ""
    return f'fill="none" stroke="{look.colour}" stroke-width="{style.WIDTHS[look.kind]}"{dots}'


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def mark_of(line):
    return style.MARKS[line.mark % len(style.MARKS)]


def holds_everywhere(line):
    """A limit that has one point holds for all sizes: a message cannot be faster, however long it is."""
    return style.look(line.api).kind == style.LIMIT and len(line.points) == 1


def draw_line(line, x_axis, y_axis, unit):
    look = style.look(line.api)
    places = [(x_axis.at(x), y_axis.length - y_axis.at(middle)) for x, middle, _, _ in line.points]
    if holds_everywhere(line):
        return [f'<path class="line" d="M0 {places[0][1]:.1f}H{x_axis.length}" {stroke(line.api)}/>']
    parts = []
    for (x, _, least, most), (at, _) in zip(line.points, places):
        low, high = (y_axis.length - y_axis.at(value) for value in (least, most))
        parts.append(f'<path d="M{at:.1f} {low:.1f}V{high:.1f}" stroke="{look.colour}" stroke-opacity="0.4"/>')
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts.append(f'<path class="line" d="M{path}" {stroke(line.api)}/>')
    for (x, middle, least, most), (at, y) in zip(line.points, places):
        told = f"{line.name}, {x_axis.text(x)}: {number(middle)} {unit} ({number(least)} to {number(most)})"
        parts.append(f"<g><title>{escape(told)}</title>{mark(mark_of(line), at, y, look.colour)}</g>")
    return parts


# ---- Panels ---------------------------------------------------------------------------------------------------------

def grid(x_axis, y_axis, figure):
    width, height = x_axis.length, y_axis.length
    parts = [f'<rect width="{width}" height="{height}" fill="#ffffff" stroke="#999999"/>']
    for value in y_axis.ticks():
        y = height - y_axis.at(value)
        parts += [f'<path d="M0 {y:.1f}H{width}" stroke="#e4e4e4"/>', text(-6, y + 4, y_axis.text(value), "end")]
    for x in x_axis.ticks():
        at = x_axis.at(x)
        parts += [f'<path d="M{at:.1f} {height}v-4" stroke="#999999"/>', text(at, height + 16, x_axis.text(x))]
    parts.append(text(width / 2, height + 34, figure.x_label))
    parts.append(text(0, 0, figure.y_label, more=f' transform="translate(-60 {height / 2}) rotate(-90)"'))
    return parts


def panels_of_lines(figure):
    """(x, y, parts) of each panel, and the height of all."""
    lines = figure.all_lines()
    x_axis = PointAxis(lines, PANEL_WIDTH, figure.x_is)
    y_axis = ValueAxis(lines, PANEL_HEIGHT, figure.unit())
    placed = []
    for i, panel in enumerate(figure.panels):
        if not panel.lines:
            continue
        # Ours last, on top.
        drawn = sorted(panel.lines, key=lambda line: style.look(line.api).kind == style.OURS)
        parts = [text(PANEL_WIDTH / 2, -8, panel.title, more=' font-weight="bold"'), *grid(x_axis, y_axis, figure)]
        parts += [part for line in drawn for part in draw_line(line, x_axis, y_axis, figure.unit())]
        row, column = divmod(i, COLUMNS)
        placed.append((LEFT + column * (LEFT + PANEL_WIDTH + RIGHT), TOP + row * (TOP + PANEL_HEIGHT + BOTTOM), parts))
    return placed, math.ceil(len(figure.panels) / COLUMNS) * (TOP + PANEL_HEIGHT + BOTTOM)


def panels_of_dots(figure):
    """A row for each series, its name at the left of all panels; the values go to the right."""
    names = [line.name for line in figure.lines()]
    label_width = max(len(name) for name in names) * WIDE_CHARACTER + 12
    columns = len(figure.panels)
    width = min(PANEL_WIDTH, (WIDTH - label_width - RIGHT * columns) / columns)
    height = ROW_HEIGHT * len(names)
    axis = ValueAxis(figure.all_lines(), width, figure.unit())
    placed = []
    for i, panel in enumerate(figure.panels):
        parts = [text(width / 2, -8, panel.title, more=' font-weight="bold"'),
                 f'<rect width="{width:.1f}" height="{height}" fill="#ffffff" stroke="#999999"/>']
        for value in dot_ticks(axis):
            at = axis.at(value)
            parts += [f'<path d="M{at:.1f} 0V{height}" stroke="#e4e4e4"/>', text(at, height + 16, axis.text(value))]
        parts.append(text(width / 2, height + 34, figure.y_label))
        for row, name in enumerate(names):
            y = (row + 0.5) * ROW_HEIGHT
            if i == 0:
                parts.append(text(-11, y + 4, name, "end"))
            parts += [part for line in panel.lines if line.name == name for part in draw_dot(line, axis, y, figure)]
        placed.append((label_width + i * (width + RIGHT), TOP, parts))
    return placed, TOP + height + BOTTOM


def dot_ticks(axis):
    """As many as have room beside each other."""
    free_from = -math.inf
    for value in axis.ticks():
        half = len(axis.text(value)) * CHARACTER / 2 + 3
        if axis.at(value) - half >= free_from:
            free_from = axis.at(value) + half
            yield value


def draw_dot(line, axis, y, figure):
    look = style.look(line.api)
    _, middle, least, most = line.points[0]
    told = f"{line.name}: {number(middle)} {figure.unit()} ({number(least)} to {number(most)})"
    size = 6 if look.kind == style.OURS else 4
    return [f'<path d="M{axis.at(least):.1f} {y}H{axis.at(most):.1f}" {stroke(line.api)} stroke-opacity="0.5"/>',
            f'<g class="line"><title>{escape(told)}</title>'
            f'{mark("ring" if look.kind == style.LIMIT else "circle", axis.at(middle), y, look.colour, size)}</g>']


# ---- The figure -----------------------------------------------------------------------------------------------------

WIDTH = COLUMNS * (LEFT + PANEL_WIDTH + RIGHT)


def legend(figure):
    """Rows of samples with their names. @return parts, height"""
    parts, x, y = [], LEFT, 0
    for line in figure.lines():
        needed = 44 + len(line.name) * CHARACTER + 20
        if x + needed > WIDTH and x > LEFT:
            x, y = LEFT, y + LEGEND_ROW
        colour = style.look(line.api).colour
        parts += [f'<path d="M{x} {y}h36" {stroke(line.api)}/>', text(x + 44, y + 4, line.name, "start")]
        if not holds_everywhere(line):
            parts.append(mark(mark_of(line), x + 18, y, colour))
        x += needed
    return parts, y + LEGEND_ROW


def draw(figure):
    """The figure as one element <svg>."""
    dots = figure.x_is == "none"
    placed, height = panels_of_dots(figure) if dots else panels_of_lines(figure)
    parts = [text(LEFT, 20, figure.title, "start", more=' font-size="15" font-weight="bold"')]
    for x, y, body in placed:
        parts.append(f'<g transform="translate({x:.1f} {y + TITLE_HEIGHT})">{"".join(body)}</g>')
    bottom = TITLE_HEIGHT + height
    if not dots:
        entries, legend_height = legend(figure)
        parts.append(f'<g transform="translate(0 {bottom + 10})">{"".join(entries)}</g>')
        bottom += legend_height + 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" '
            f'font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{bottom}" fill="#ffffff"/>'
            + "\n".join(parts) + "</svg>\n")
