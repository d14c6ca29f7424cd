"""The arithmetic of the comparison: medians per label, spread, counts of what was dropped. A result is a dictionary as
the programs print it, with `group`, `api` and `round` added by the driver."""

import statistics
from collections import defaultdict

LABELS = ("near", "far", "any")
NEAR_NS = 100
DISAGREEMENT = 1.5


def agree(times):
    """Whether these may be times of one thing between cores that did not move."""
    return max(times) <= DISAGREEMENT * min(times)


def label_of(before_ns, after_ns):
    """What the bouncing line says about a series between two measurements of it; as World::labelled in world.h."""
    if not agree((before_ns, after_ns)) or (before_ns < NEAR_NS) != (after_ns < NEAR_NS):
        return "dropped"
    return "near" if before_ns < NEAR_NS else "far"


def key_of(result):
    """What a result is a measurement of."""
    return tuple(result[field] for field in ("group", "api", "what", "memory", "x"))


def as_bandwidths(results):
    """The half round trips of data with a flag behind them once more, as what of the data goes through in a second."""
    return [{**result, "group": "flagged bandwidth", "value": result["x"] / result["value"] / 1e3, "unit": "GB/s"}
            for result in results if result["group"] == "flagged"]


class Summary:
    """Medians and spread of everything that was measured, per label."""

    def __init__(self, results):
        self.values = defaultdict(list)
        self.units = {}
        self.dropped = defaultdict(int)
        for result in results:
            key = key_of(result)
            self.units[key] = result["unit"]
            if result["label"] == "dropped":
                self.dropped[key] += 1
            else:
                self.values[key, result["label"]].append(result["value"])

    def keys(self):
        return list(self.units)

    def median(self, key, label):
        """None if there is no such result. What has no label counts under every one."""
        values = self.values.get((key, label)) or self.values.get((key, "any"))
        return statistics.median(values) if values else None

    def spread(self, key, label):
        """Least, median, greatest, number of rounds; or None."""
        values = self.values.get((key, label))
        return (min(values), statistics.median(values), max(values), len(values)) if values else None

    def labels(self, key):
        return [label for label in LABELS if (key, label) in self.values]
