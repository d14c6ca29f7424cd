#!/usr/bin/python3
"""The arithmetic of the comparison: medians, near and far, ratios; and what becomes of programs that fail."""

import sys
import unittest
from pathlib import Path

import bench
import report
import stats
import targets


def result(api, what, x, value, label="near", unit="us", group="latency", memory="malloc"):
    return {"group": group, "api": api, "what": what, "x": x, "value": value, "label": label, "unit": unit,
            "memory": memory}


class Labels(unittest.TestCase):
    def test_two_looks_at_the_line_that_agree(self):
        self.assertEqual(stats.label_of(40, 50), "near")
        self.assertEqual(stats.label_of(160, 150), "far")

    def test_two_that_disagree(self):
        self.assertEqual(stats.label_of(40, 160), "dropped")
        self.assertEqual(stats.label_of(160, 300), "dropped")
        self.assertEqual(stats.label_of(90, 110), "dropped")


class Rounds(unittest.TestCase):
    def test_five_whatever_they_take(self):
        self.assertTrue(bench.has_time(1, used_s=0, left_s=-1))
        self.assertTrue(bench.has_time(5, used_s=800, left_s=-100))

    def test_more_only_if_they_end_in_time(self):
        self.assertTrue(bench.has_time(6, used_s=250, left_s=50))
        self.assertFalse(bench.has_time(6, used_s=250, left_s=49))
        self.assertFalse(bench.has_time(7, used_s=300, left_s=49))


class Medians(unittest.TestCase):
    def setUp(self):
        self.summary = stats.Summary([result("a", "put", 8, value, label) for value, label in
                                      ((3, "near"), (1, "near"), (2, "near"), (9, "far"), (100, "dropped"))])
        self.key = ("latency", "a", "put", "malloc", 8)

    def test_near_and_far_are_apart(self):
        self.assertEqual(self.summary.median(self.key, "near"), 2)
        self.assertEqual(self.summary.median(self.key, "far"), 9)

    def test_spread_and_count(self):
        self.assertEqual(self.summary.spread(self.key, "near"), (1, 2, 3, 3))

    def test_dropped_ones_are_counted_and_nothing_else(self):
        self.assertEqual(self.summary.dropped[self.key], 1)
        self.assertEqual(self.summary.labels(self.key), ["near", "far"])

    def test_what_has_no_label_counts_under_every_one(self):
        summary = stats.Summary([result("a", "put", 8, 5, "any")])
        self.assertEqual(summary.median(self.key, "far"), 5)


class Bandwidths(unittest.TestCase):
    def test_of_half_round_trips_of_flagged_data_alone(self):
        found = stats.as_bandwidths([result("a", "data, flag", 4096, 2, group="flagged"), result("a", "put", 8, 1)])
        self.assertEqual([(entry["group"], entry["x"], entry["value"], entry["unit"]) for entry in found],
                         [("flagged bandwidth", 4096, 2.048, "GB/s")])


class Targets(unittest.TestCase):
    def judge(self, results, missing=None):
        table = targets.Table(stats.Summary(results), missing or {})
        return {(row[0], row[1]): row for row in table.judged()}

    def row(self, results, text, label="near", missing=None):
        rows = self.judge(results, missing)
        return next(row for key, row in rows.items() if key[0].startswith(text) and key[1] == label)

    def test_a_cost_is_a_ratio_of_medians(self):
        found = self.row([result("utofu", "put, memory polled", 8, 2.4), result("raw", "process_vm_writev", 8, 2)],
                         "uTofu put 8 B into any memory")
        self.assertAlmostEqual(found[6], 1.2)
        self.assertEqual(found[8], "met")

    def test_a_cost_may_have_an_allowance(self):
        for ours, verdict in ((0.29, "met"), (0.31, "missed by 3 %")):
            results = [result("uct utofu", "data, flag", 8, ours, group="flagged"),
                       result("utofu", "data, flag", 8, 0.2, group="flagged")]
            self.assertEqual(self.row(results, "UCT data, flag, 8 B, any memory")[8], verdict)

    def test_a_gain_is_against_the_best_reference(self):
        ours = result("portals", "put 8 B, entries posted", 1000, 0.2, group="match")
        found = self.row([ours, result("ucx", "tagged", 8, 0.3), result("ob1", "send", 8, 0.12)],
                         "Portals put 8 B, event, matching")
        self.assertEqual((found[5], found[8]), ("ob1", "missed by 100 %"))

    def test_more_is_better_for_rates(self):
        found = self.row([result("portals", "put, matching, event", 64, 30, unit="M/s", group="rate"),
                          result("ucx", "tagged", 64, 15, unit="M/s", group="rate"),
                          result("mpich", "send", 64, 20, unit="M/s", group="rate")], "Portals rate")
        self.assertEqual((found[5], found[6], found[8]), ("mpich", 1.5, "met"))

    def test_the_worst_point_counts(self):
        results = [result("portals", "put", x, 40, unit="GB/s", group="bandwidth") for x in (16384.0, 65536.0)]
        results += [result("ob1", "send", x, peer, unit="GB/s", group="bandwidth")
                    for x, peer in ((16384.0, 10), (65536.0, 20))]
        found = self.row(results, "portals bandwidth, 16 KiB to 64 MiB: best peer")
        self.assertEqual((found[2], found[8]), (65536, "missed by 25 %"))

    def test_near_and_far_are_not_mixed(self):
        rows = self.judge([result("portals", "put, non-matching, counter", 8, 1, "near"),
                           result("ucx", "active message", 8, 2, "far")])
        self.assertFalse([row for key, row in rows.items() if row[6] is not None])

    def test_a_bound_of_its_own(self):
        waiting = result("portals", "PtlCTWait", 8, 12, "any", "ms", "idle")
        found = self.row([waiting], "CPU of 8 processes in PtlCTWait", "any")
        self.assertEqual(found[8], "missed by 20 %")

    def test_what_is_missing_is_named(self):
        found = self.row([result("raw", "bouncing line", 8, 0.05)], "uTofu put 8 B into mapped memory", "",
                         {("latency", "utofu in shared memory"): "no allocator"})
        self.assertEqual(found[8], "missing: utofu in shared memory")


class Programs(unittest.TestCase):
    def test_one_that_fails_is_missing_with_its_last_words(self):
        with self.assertRaisesRegex(bench.Missing, "an error .exit 3"):
            bench.run(["sh", "-c", "echo an error >&2; exit 3"])

    def test_one_that_does_not_end_is_missing(self):
        with self.assertRaisesRegex(bench.Missing, "does not end"):
            bench.run(["sleep", "60"], limit_s=0.1)

    def test_one_that_is_not_there_is_not_tried_again(self):
        failures = bench.Failures()
        try:
            bench.run(["no-such-program"])
        except bench.Missing as reason:
            failures.add("key", reason)
        self.assertTrue(failures.hopeless("key"))

    def test_every_series_of_a_target_is_one_that_a_program_prints(self):
        names = ("raw.cpp", "portals.cpp", "utofu.cpp", "threads.cpp", "mpi.cpp", "world.h", "bench.py")
        sources = "".join((Path(__file__).parent / name).read_text() for name in names)
        known = {(job["group"], job["api"]) for job in bench.jobs()}
        for target in targets.all_targets():
            for series in [target.ours, *target.references]:
                unknown = [part for part in series.what.split(", ") if part not in sources]
                self.assertEqual(unknown, [], series)
                self.assertIn((series.group, series.api), known)


class Tables(unittest.TestCase):
    def test_numbers_have_three_digits(self):
        self.assertEqual([report.number(value) for value in (0.04567, 12.345, 123.4, 12345.6, None)],
                         ["0.0457", "12.3", "123", "12346", "-"])

    def test_markdown_has_a_ruler(self):
        self.assertEqual(report.table([["a", "b"], ["cc", "1"]], True), "| a  | b |\n|----|--:|\n| cc | 1 |\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
