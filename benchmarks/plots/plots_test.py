#!/usr/bin/python3
"""The plots and the page of `./run bench`: few lines, one colour for each library, nothing that is loaded, and no crash
where something was not measured."""

import json
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))

import bench  # noqa: E402
import report  # noqa: E402
import stats  # noqa: E402
import targets  # noqa: E402

import history  # noqa: E402
import page  # noqa: E402
import questions  # noqa: E402
import scale  # noqa: E402
import style  # noqa: E402
import svg  # noqa: E402

RATES = {"rate": "M/s", "flood": "M/s", "bandwidth": "GB/s", "overlap": "%", "idle": "ms", "memory": "MiB"}
XS = {"latency": (0, 8, 1024), "rate": (1, 64), "bandwidth": (4096, 1 << 20), "match": (1, 10000), "many": (2, 4),
      "barrier": (2, 4), "memory": (0, 1, 63)}


def result(group, api, what, x, value, label="near", memory="malloc"):
    return {"group": group, "api": api, "what": what, "x": x, "value": value, "label": label, "memory": memory,
            "unit": RATES.get(group, "us")}


def all_results(labels=("near", "far")):
    """Something for every series that a question asks for, two rounds each."""
    return [result(question.group, api, what, x, 1 + x / 100 + number, label, memory or "malloc")
            for question in questions.QUESTIONS for api, what, memory in question.series
            for x in XS.get(question.group, (8,)) for number in range(2) for label in labels]


def all_figures(results, runs=()):
    return [figure for _, figures in page.sections_of(stats.Summary(results), runs) for figure in figures]


def kept_run(name="a-machine", date="2026-11-25", ours=0.2):
    rows = [{"text": text, "label": "near", "x": None, "ours": ours, "best": 0.1, "whose": "ucx", "ratio": 0.5,
             "bound": "at least 1 x", "verdict": "missed by 100 %"}
            for indicator in history.INDICATORS for _, _, text in indicator.series]
    return {"name": name, "date": date, "machine": "words", "targets": rows, "series": []}


class Looks(unittest.TestCase):
    def test_every_library_of_a_job_has_one(self):
        self.assertEqual({job["api"] for job in bench.jobs()} - set(style.LOOKS), set())

    def test_no_two_have_the_same_colour_or_name(self):
        for field in ("colour", "name"):
            self.assertEqual(len({getattr(look, field) for look in style.LOOKS.values()}), len(style.LOOKS))

    def test_ours_are_thick_and_only_limits_dotted(self):
        widths = {api: float(re.search(r'stroke-width="([\d.]+)"', svg.stroke(api))[1]) for api in style.LOOKS}
        for api, look in style.LOOKS.items():
            if look.kind == style.OURS:
                self.assertGreater(widths[api], max(widths[peer] for peer in ("ucx", "ob1", "mpich", "raw")))
            self.assertEqual("dasharray" in svg.stroke(api), look.kind == style.LIMIT)

    def test_one_that_the_table_lacks_is_drawn_nevertheless(self):
        figures = all_figures([result("latency", "new library", "put", x, 1) for x in (8, 64)])
        self.assertIn("new library: put", svg.draw(figures[0]))


class Questions(unittest.TestCase):
    def test_each_can_be_answered(self):
        names = [figure.name for figure in questions.asked(stats.Summary(all_results()))]
        self.assertEqual(names, [question.name for question in questions.QUESTIONS])

    def test_each_asks_for_what_a_job_measures(self):
        known = {(job["group"], job["api"]) for job in bench.jobs()}
        known |= {("flagged bandwidth", api) for group, api in known if group == "flagged"}
        sources = "".join(path.read_text() for path in (HERE.parent / "compare").glob("*") if path.is_file())
        for question in questions.QUESTIONS:
            for api, what, _ in question.series:
                self.assertIn((question.group, api), known, question.name)
                self.assertEqual([part for part in what.split(", ") if part not in sources], [], question.name)

    def test_titles_are_questions_and_names_are_unique(self):
        figures = all_figures(all_results(), [kept_run()])
        self.assertEqual([figure.title for figure in figures if "?" not in figure.title], [])
        self.assertEqual(len({figure.name for figure in figures}), len(figures))

    def test_limits_alone_are_no_answer(self):
        results = [entry for entry in all_results() if entry["api"] == "raw"]
        self.assertEqual(list(questions.asked(stats.Summary(results))), [])
        self.assertTrue(list(questions.by_api(stats.Summary(results))))

    def test_near_stands_beside_far(self):
        figure = next(questions.asked(stats.Summary(all_results())))
        self.assertEqual([panel.title.split(":")[0] for panel in figure.panels], ["near", "far"])

    def test_each_peer_alone_has_ours_beside_it(self):
        figure = next(found for found in questions.by_peer(stats.Summary(all_results()))
                      if found.name == "latency-mpi-peers")
        for panel in figure.panels:
            kinds = [style.look(line.api).kind for line in panel.lines]
            self.assertEqual(kinds.count(style.PEER), 1)
            self.assertGreaterEqual(kinds.count(style.OURS), 1)

    def test_near_is_under_near_where_a_peer_was_far_only(self):
        results = [entry for entry in all_results() if entry["api"] != "ob1" or entry["label"] == "far"]
        figure = next(found for found in questions.by_peer(stats.Summary(results))
                      if found.name == "latency-mpi-peers")
        ends = [panel.title.rpartition(", ")[2] for panel in figure.panels]
        self.assertEqual({ends[i] for i in range(0, len(ends), 2)}, {"", "near"})
        self.assertEqual({ends[i] for i in range(1, len(ends), 2)}, {"far"})


class Plots(unittest.TestCase):
    def test_at_most_six_lines_each(self):
        many = [result("latency", "portals", f"way {i}", x, 1) for i in range(20) for x in (8, 64)]
        figures = all_figures(all_results() + many, [kept_run(), kept_run(date="2026-11-26")])
        for figure in figures:
            self.assertLessEqual(len(figure.lines()), style.MOST_LINES, figure.name)
        drawn = {line.name for figure in figures for line in figure.lines()}
        self.assertEqual([i for i in range(20) if f"Portals: way {i}" not in drawn], [])

    def test_nothing_that_was_measured_is_lost(self):
        results = all_results() + [result("atomic", "ucx", "swap", 8, 1)]
        drawn = {line.name for figure in all_figures(results) for line in figure.lines()}
        measured = {style.series_name(entry["api"], entry["what"], entry["memory"]) for entry in results}
        self.assertEqual(measured - drawn, set())

    def test_lines_of_one_library_have_different_marks(self):
        for figure in all_figures(all_results()):
            marks = [(line.api, line.mark) for line in figure.lines()]
            self.assertEqual(len(set(marks)), len(marks), figure.name)

    def test_are_whole_xml_and_say_their_units(self):
        for figure in all_figures(all_results(), [kept_run()]):
            ElementTree.fromstring(svg.draw(figure))
            self.assertNotEqual(figure.y_label, "", figure.name)

    def test_a_missing_series_or_label_does_not_crash(self):
        everything = all_results()
        for left_out in sorted({(entry["group"], entry["api"]) for entry in everything}):
            rest = [entry for entry in everything if (entry["group"], entry["api"]) != left_out]
            for figure in all_figures(rest):
                svg.draw(figure)
        for figure in all_figures(all_results(("far",))) + all_figures(all_results(("any",))):
            svg.draw(figure)

    def test_nothing_at_all_makes_no_plot(self):
        self.assertEqual(all_figures([]), [])

    def test_what_took_no_time_is_drawn_at_the_end(self):
        figures = all_figures([result("idle", "portals", "PtlCTWait", 8, 0, "any"),
                               result("idle", "ob1", "MPI_Recv", 8, 700, "any")])
        self.assertEqual(re.findall(r"\de-\d", svg.draw(figures[0])), [])
        svg.draw(all_figures([result("idle", "portals", "PtlCTWait", 8, 0, "any")])[0])

    def test_a_limit_with_one_point_holds_for_all_sizes(self):
        line = svg.Line("raw", "bouncing line", [(8, 0.05, 0.05, 0.05)])
        other = svg.Line("ucx", "put", [(8, 1, 1, 1), (64, 2, 2, 2)])
        figure = svg.Figure("name", "title", "bytes", "us", [svg.Panel("near", [line, other])])
        self.assertRegex(svg.draw(figure), f'class="line" d="M0 [0-9.]+H{svg.PANEL_WIDTH}"')


class Axes(unittest.TestCase):
    def line(self, *points):
        return [svg.Line("ucx", "put", [(x, y, y, y) for x, y in points])]

    def test_zero_bytes_stand_left_of_the_others(self):
        axis = svg.PointAxis(self.line((0, 1), (8, 1), (64, 1)), 400, "count")
        self.assertLess(axis.at(0), axis.at(8))

    def test_texts_do_not_touch(self):
        axis = svg.PointAxis(self.line(*((x, 1) for x in range(1000, 1100))), 400, "count")
        places = [axis.at(x) for x in axis.ticks()]
        self.assertGreater(min(b - a for a, b in zip(places, places[1:])), 4 * svg.CHARACTER)

    def test_one_bad_round_squeezes_nothing(self):
        line = svg.Line("ucx", "put", [(8, 1, 1, 1e6), (64, 10, 10, 10)])
        axis = svg.ValueAxis([line], 100, "us")
        self.assertGreater(axis.at(10) - axis.at(1), 50)
        self.assertEqual(axis.at(1e6), 100)


class Scale(unittest.TestCase):
    def test_every_algorithm_has_a_line_with_all_its_points(self):
        series = [{"name": name, "points": [[2, 1.5], [4, 3], [8, 4.5]]} for name in ("ring", "binary tree")]
        figure = scale.figure_of({"barrier": series, "sum": series[:1]})
        self.assertEqual([len(panel.lines) for panel in figure.panels], [2, 1])
        drawn = svg.draw(figure)
        ElementTree.fromstring(drawn)
        self.assertIn("<title>uTofu: binary tree, 4: 3 us (3 to 3)</title>", drawn)
        self.assertEqual(drawn.count("<title>"), 9)


class Page(unittest.TestCase):
    def html(self, results, missing=None):
        summary = stats.Summary(results)
        rows = list(targets.Table(summary, missing or {}).judged(everything=True))
        return page.html("A machine, 2026-11-26", rows, page.sections_of(summary, [kept_run()]), missing or {})

    def test_loads_nothing(self):
        text = self.html(all_results()).replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertEqual(re.findall(r"https?:|//\w|<script|<link|<img|<iframe|@import|url\(|\bsrc=", text), [])
        self.assertEqual([to for to in re.findall(r'href="([^"]*)"', text) if not to.startswith("#")], [])

    def test_contents_lead_to_every_plot(self):
        text = self.html(all_results())
        ids = re.findall(r'<(?:figure|h2) id="([^"]*)"', text)
        self.assertEqual(sorted(ids), sorted(re.findall(r'href="#([^"]*)"', text)))
        self.assertEqual(len(set(ids)), len(ids))

    def test_a_target_that_was_not_measured_says_so(self):
        text = self.html([result("latency", "raw", "bouncing line", 8, 0.05)],
                         {("idle", "portals"): "no core"})
        self.assertIn('<td class="absent">not measured</td>', text)
        self.assertIn('<td class="absent">missing: portals</td>', text)
        self.assertIn("0 met, 0 missed", text)
        self.assertIn("idle: portals: no core", text)

    def test_met_and_missed_say_by_how_much(self):
        text = self.html([result("latency", "ucx", "active message", 8, 1.8),
                          result("latency", "portals", "put, non-matching, counter", 8, 1),
                          result("latency", "mpi portals4", "send", 8, 2), result("latency", "ob1", "send", 8, 1)])
        self.assertIn("met, 50 % to spare", text)
        self.assertIn('<td class="met">met</td>', self.html([result("idle", "portals", "PtlCTWait", 8, 0, "any")]))
        self.assertIn("missed by 100 %", text)

    def test_names_are_escaped(self):
        self.assertNotIn("<b>bad", self.html([result("latency", "<b>bad", "a & b", x, 1) for x in (8, 64)]))

    def test_is_written_with_each_plot_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory)
            (output / "plots").mkdir()
            (output / "plots" / "old.svg").write_text("")
            summary = stats.Summary(all_results())
            page.write(output, "A machine", summary, list(targets.Table(summary, {}).judged()), {}, [])
            self.assertIn("A machine", (output / "index.html").read_text())
            self.assertFalse((output / "plots" / "old.svg").exists())
            self.assertTrue((output / "plots" / "latency-mpi.svg").exists())


class History(unittest.TestCase):
    def test_what_is_kept_is_read_again(self):
        summary = stats.Summary(all_results())
        rows = [row[:-1] for row in targets.Table(summary, {}).judged()]
        measured = [row for row in rows if row[3] is not None]
        self.assertGreater(len(rows), len(measured))
        with tempfile.TemporaryDirectory() as directory:
            path = history.keep(Path(directory) / "results", "a-machine", "words", rows, report.medians(summary))
            [run] = history.load(path.parent)
        self.assertEqual((run["name"], len(run["targets"])), ("a-machine", len(measured)))
        self.assertEqual(run["series"], list(report.medians(summary)))
        self.assertTrue(list(history.figures([run])))

    def test_a_panel_for_each_machine_and_a_point_for_each_day(self):
        runs = [kept_run("a", "2026-11-24", 0.3), kept_run("a", "2026-11-25"), kept_run("b")]
        figure = next(history.figures(runs))
        self.assertEqual([panel.title for panel in figure.panels], ["a, near", "b, near"])
        self.assertEqual([point[1] for point in figure.panels[0].lines[0].points], [0.3, 0.2])

    def test_every_target_that_it_follows_is_one(self):
        texts = {target.text for target in targets.all_targets()}
        followed = {text for indicator in history.INDICATORS for _, _, text in indicator.series}
        self.assertEqual(followed - texts, set())

    def test_what_is_in_the_repository_can_be_read(self):
        runs = history.load()
        self.assertTrue(runs)
        for run in runs:
            self.assertTrue(run["machine"] and run["targets"], run["name"])
            for row in run["targets"]:
                self.assertEqual(sorted(row), sorted(history.FIELDS))
                self.assertIn(row["label"], stats.LABELS)
        for path in history.DIRECTORY.glob("*.json"):
            run = json.loads(path.read_text())
            self.assertEqual(path.name, f"{run['date']}-{run['name']}.json")


if __name__ == "__main__":
    sys.exit(unittest.main())
