"""Plots of the comparison by gnuplot: the medians of all rounds, with bars from the least to the greatest value."""

import subprocess

LOGARITHMIC_X = 2
XLABELS = {"latency": "bytes", "rate": "messages of a window", "bandwidth": "bytes", "match": "entries or headers",
           "many": "processes", "barrier": "processes", "memory": "peers that a process talks to"}
# Dashes tell whose series it is: ours solid, peers dashed, the machine's limits dotted.
OURS = ("portals", "utofu", "mpi portals4")


def dash_of(api):
    return 1 if api in OURS else 3 if api == "raw" else 2


def script_of(title, where, xlabel, unit, series):
    """series: {name: (api, [(x, median, least, greatest)])}"""
    lines = ["set output output_name", f'set title "{title}\\n{where}" noenhanced',
             "set key outside right top noenhanced", "set grid",
             f'set xlabel "{xlabel}"', f'set ylabel "{unit}"', f"set logscale x {LOGARITHMIC_X}", "set logscale y",
             "set format y '%g'", "set format x '%.0s%c'"]
    for i, (_, points) in enumerate(series.values()):
        lines += [f"$data{i} << EOD", *(" ".join(f"{value:.6g}" for value in point) for point in points), "EOD"]
    plots = [f'$data{i} using 1:2:3:4 with yerrorlines dt {dash_of(api)} lw 1.5 ps 0.5 title "{name}"'
             for i, (name, (api, _)) in enumerate(series.items())]
    return "\n".join(lines) + "\nplot " + ", \\\n  ".join(plots) + "\n"


def draw(path, script):
    """Writes path.svg and path.png. @return None, or why it did not work"""
    for suffix, terminal in (("svg", "svg size 1200,700 dynamic background 'white' font 'sans,12'"),
                             ("png", "pngcairo size 1200,700 font 'sans,10'")):
        text = f"set terminal {terminal}\noutput_name = '{path}.{suffix}'\n{script}"
        try:
            done = subprocess.run(["gnuplot"], input=text, text=True, capture_output=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode != 0:
            return done.stderr.strip()[:200]
    return None


def plots_of(summary, labels):
    """(file name, title, group, unit, series) of everything that has more than one point."""
    collected = {}
    for key in summary.keys():
        group, api, what, memory, x = key
        for label in labels:
            spread = summary.spread(key, label)
            if group not in XLABELS or not spread or x <= 0:
                continue
            name = group if label == "any" else f"{group}-{label}"
            if group in ("many", "match"):
                name += "-" + "".join(c if c.isalnum() else "-" for c in what)
            title = f"{group}, {label}" if label != "any" else group
            _, _, _, series = collected.setdefault(name, (title, group, summary.units[key], {}))
            line = series.setdefault(f"{api}: {what}" + ("" if memory == "malloc" else f" ({memory})"), (api, []))
            line[1].append((x, spread[1], max(spread[0], 1e-9), max(spread[2], 1e-9)))
    for name, (title, group, unit, series) in collected.items():
        if any(len(points) > 1 for _, points in series.values()):
            yield name, title, group, unit, {key: (api, sorted(points)) for key, (api, points) in series.items()}


def write(output, where, summary, labels):
    """Draws all plots into `output`. @return why some are not there, by name"""
    missing = {}
    for name, title, group, unit, series in plots_of(summary, labels):
        reason = draw(output / name, script_of(title, where, XLABELS[group], unit, series))
        if reason:
            missing[name] = reason
    return missing
